"""Leave-one-out of logistic losses by Newton steps with the Hessian of all rows, for many rows at once.

At the optimum of all rows ``H = R + Z' D Z`` for rows z_j = y_j x_j. Without one repetition of row i it is
``H - d_i z_i z_i'`` there, which one factor of H solves with for every i. Steps with that matrix and the true gradient
contract by the share that the second derivatives of the other rows change, which a single row hardly does. Where it
does, the row takes Newton steps of its own.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mdlearn._solvers import logistic
from mdlearn.forms.column import Column
from mdlearn.forms.losses import LogisticTerm

LOO_NEWTON_STEPS = 30
"""Steps to the optimum of all rows, and from there to that without a row."""
LOO_STEP_END = 1e-7
"""Change of the decision value in the last step; what is left is a small share of it."""
LOO_CONTRACTION = 0.5
"""Share of the step before from which on a row takes steps of its own."""
LEAST_SHARE = 1e-6
"""Share of a Newton step below which only rounding keeps the value from falling."""
MARGINS_OF_ROWS_AT_ONCE = 1 << 15
"""Margins of several optima that are computed at once: buffers that caches have room for."""


class LogisticRows:
    """Rows Z = y x of a column with logistic losses, the constant last; `free` leaves that out of the norm."""

    def __init__(self, column: Column, A: np.ndarray, free: bool) -> None:
        self.column, self.A, self.Z, self.ridge = column, A, column.y[:, None] * A, np.ones(A.shape[1])
        self.ridge[-1] = 0.0 if free else 1.0
        pairs = zip(column.terms, column.caps)
        self.terms = [(t, cap) for t, cap in pairs if isinstance(t, LogisticTerm) and t.weight > 0]

    def forces(self, U: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Loss, multipliers and second derivatives of all rows at margins U (B, m)."""
        mu, bends, own, bent = np.empty((4, *U.shape))
        value, z, several = 0.0, U.reshape(-1), False
        for term, cap in self.terms:
            into = (own, bent) if several else (mu, bends)
            caps = np.broadcast_to(cap, U.shape).reshape(-1)
            value += logistic.slopes(z, caps, term.alpha, term.threshold, *(one.reshape(-1) for one in into))
            if several:
                mu += own
                bends += bent
            several = True
        if self.column.pulled:
            mu += self.column.pull
            value -= float((U @ self.column.pull).sum())
        return value, mu, bends

    def gradient(self, theta: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """Gradients of the objective of all rows at coefficients (B, n)."""
        return np.asarray(self.ridge * theta - mu @ self.Z)

    def optimum(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Optimum of all rows, from a point near it, and H there; None where Newton steps do not end."""
        for _ in range(LOO_NEWTON_STEPS):
            loss, mu, bends = self.forces((self.Z @ theta)[None])
            value = float(loss + 0.5 * (self.ridge * theta) @ theta)
            H = np.diag(self.ridge) + self.Z.T @ (bends[0][:, None] * self.Z)
            slope = self.gradient(theta[None], mu)[0]
            step = np.linalg.solve(H, slope)
            if float(np.abs(self.Z @ step).max()) <= LOO_STEP_END:
                return theta - step, H
            share = 1.0
            while share > LEAST_SHARE and self.value(theta - share * step) > value - 0.1 * share * float(slope @ step):
                share *= 0.5
            theta = theta - share * step
        return None

    def value(self, theta: np.ndarray) -> float:
        """Objective of all rows."""
        return float(self.forces((self.Z @ theta)[None])[0] + 0.5 * (self.ridge * theta) @ theta)

    def left_out(self, rows: np.ndarray, theta: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Margins of some rows, each at the optimum without one repetition of it; NaN where steps do not end."""
        counts, Z = self.column.counts[rows], self.Z[rows]
        at = np.arange(rows.shape[0])
        towards = np.linalg.solve(H, Z.T).T
        leverage = np.einsum("ij,ij->i", Z, towards)
        _, mu, bends = self.forces((self.Z @ theta)[None])
        own, bend = mu[0, rows] / counts, bends[0, rows] / counts
        gain = bend / (1.0 - bend * leverage)
        found = theta - self._step(own[:, None] * towards, towards, Z, gain)
        values, open_rows, before = np.full(rows.shape[0], np.nan), at, np.full(rows.shape[0], np.inf)
        for _ in range(LOO_NEWTON_STEPS):
            mu = self.forces(found @ self.Z.T)[1]
            some = open_rows
            own = mu[np.arange(some.shape[0]), rows[some]] / counts[some]
            slope = self.gradient(found, mu) + own[:, None] * Z[some]
            down = self._step(np.linalg.solve(H, slope.T).T, towards[some], Z[some], gain[some])
            found = found - down
            size = np.sqrt(np.einsum("ij,ij->i", down @ H, down) * leverage[some])
            done = size <= LOO_STEP_END
            values[some[done]] = np.einsum("ij,ij->i", Z[some[done]], found[done])
            slow = ~done & (size > LOO_CONTRACTION * before)
            for b in np.flatnonzero(slow):
                values[some[b]] = self._alone(int(rows[some[b]]), theta)
            rest = ~done & ~slow
            open_rows, found, before = some[rest], found[rest], size[rest]
            if not open_rows.shape[0]:
                break
        return values

    def _alone(self, i: int, theta: np.ndarray) -> float:
        """Margin of a row at the optimum without one repetition of it, by Newton steps of its own; NaN without end."""
        counts = self.column.counts.copy()
        counts[i] -= 1.0
        column = Column(
            self.column.y, counts, 0.0, self.column.mean * counts.sum() / self.column.total, self.column.terms
        )
        rest = LogisticRows(column, self.A, self.ridge[-1] == 0.0)
        whole = rest.optimum(theta)
        return np.nan if whole is None else float(self.Z[i] @ whole[0])

    @staticmethod
    def _step(P: np.ndarray, towards: np.ndarray, Z: np.ndarray, gain: np.ndarray) -> np.ndarray:
        """Solutions with H without each row, from those with H."""
        return np.asarray(P + towards * (gain * np.einsum("ij,ij->i", Z, P))[:, None])


def logistic_values_left_out(
    column: Column, A: np.ndarray, free: bool, start: np.ndarray
) -> Generator[None, None, np.ndarray]:
    """Margins u of all rows, each without one repetition of it; NaN where steps do not end. Interruptible."""
    problem, m = LogisticRows(column, A, free), A.shape[0]
    u = np.full(m, np.nan)
    whole = problem.optimum(start)
    if whole is None:
        return u
    step = max(1, MARGINS_OF_ROWS_AT_ONCE // m)
    for first in range(0, m, step):
        yield
        rows = np.arange(first, min(first + step, m))
        u[rows] = problem.left_out(rows, *whole)
    return u
