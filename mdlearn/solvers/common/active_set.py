"""Active set for the last digits: guess which rows sit on a kink, solve the equalities exactly, correct, repeat."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.solvers.base import Reports
from mdlearn.solvers.common.primal_dual import PrimalDual, primal_dual_report

MOST_ROUNDS = 12
PATIENT_ROUNDS, HOPELESS_GAP = 2, 1.0
"""Rounds after which a guess is given up that still has a gap like this: as far off as no coefficients at all."""
STIFFNESS = 1e6
"""In units of a typical multiplier per unit of margin: each step shrinks the error by about this factor."""
LARGEST_STIFFNESS = 1e300
"""One whose inverse is a number: rows of size 1e-153 have multipliers of 1e306."""
RUNAWAY_COEFFICIENTS = 1e75
"""Size of coefficients that only a singular system gives; the square of their margins may overflow."""


class ActiveSet:
    """Primal-dual active set method from a guess; equalities by the method of multipliers.

    With rows F on a kink, beta_F is found from Q w = R' beta + a mean and z_F = threshold by steps with a large but
    finite stiffness: the system stays positive definite when rows repeat, and the error falls by orders each step.
    """

    def __init__(self, state: PrimalDual) -> None:
        self.state = state
        self.best = np.inf

    def attempt(self, element: np.ndarray, beta: np.ndarray, free: np.ndarray) -> Reports:
        """Yield reports while the guess improves the gap; costs one factorisation over the free rows per round."""
        state, column, caps = self.state, self.state.column, self.state.column.caps
        boxed = np.isfinite(caps)
        at_cap = boxed & (beta > 0.5 * np.where(boxed, caps, 0.0))
        beta = np.where(free, beta, np.where(at_cap, caps, 0.0))
        seen: set[bytes] = set()
        for done in range(1, MOST_ROUNDS + 1):
            key = np.packbits(free).tobytes() + np.packbits(beta > 0).tobytes()
            # A guess of very many rows is no good one, and their copy would be large.
            if key in seen or np.count_nonzero(free.any(axis=0)) > state.system.most_restricted:
                return
            seen.add(key)
            try:
                element, beta = yield from self._equalities(element, beta, free)
            except NotPositiveDefinite:
                return
            if not (np.abs(element).max(initial=0.0) < RUNAWAY_COEFFICIENTS and np.isfinite(beta).all()):
                return
            z = state.margins(element)
            report = primal_dual_report(state, element, np.clip(beta, 0.0, caps), z)
            gap = column.relative_gap(report.objective, report.lower_bound)
            if gap < self.best:
                self.best = gap
                yield report
            if done >= PATIENT_ROUNDS and gap > HOPELESS_GAP:
                return
            beta, free = self._update_active_set(z, beta, free)

    def _equalities(
        self, element: np.ndarray, beta: np.ndarray, free: np.ndarray
    ) -> Generator[None, None, tuple[np.ndarray, np.ndarray]]:
        state, column, system = self.state, self.state.column, self.state.system
        stiffness = min(STIFFNESS * state.typical_multiplier, LARGEST_STIFFNESS)
        rows = np.flatnonzero(free.any(axis=0))
        chosen, y, soft = free[:, rows], column.y[rows], column.softness[:, rows]
        kinks = column.kinks if column.level else column.kinks[:, rows]
        decision, adjoint = system.restrict(rows)
        d = np.where(chosen, 1.0 / (1.0 / stiffness + soft), 0.0)
        weights = np.zeros_like(column.y)
        weights[rows] = d.sum(axis=0)
        yield from system.factor(weights)
        beta, inner, rw = beta.copy(), beta[:, rows], state.residual(element, beta)
        size = np.inf
        for _ in range(20):
            z = y * decision(element)
            miss = column.sides[:, None] * (kinks - z) - soft * inner
            miss = np.where(chosen, miss, 0.0)
            dw = system.solve(adjoint(y * (column.sides @ (d * miss))) - rw)
            db = d * (miss - column.sides[:, None] * (y * decision(dw))[None, :])
            element, inner = element + dw, inner + db
            rw = rw + system.quadratic(dw) - adjoint(y * (column.sides @ db))
            change = float(np.abs(dw).max())
            yield
            if change <= 1e-15 * float(np.abs(element).max()) or change >= size:
                break
            size = change
        beta[:, rows] = inner
        return element, beta

    def _update_active_set(self, z: np.ndarray, beta: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Free rows whose multiplier left the box go to the bound; bound rows on the wrong side of a kink come free."""
        column, caps = self.state.column, self.state.column.caps
        a = column.sides[:, None] * (z - column.kinks) + column.softness * beta
        low, high = free & (beta < 0.0), free & (beta > caps)
        rounding = 1e-12 * (1.0 + np.abs(z)[None, :])
        enter = ~free & (caps > 0) & (((beta <= 0.0) & (a < -rounding)) | ((beta >= caps) & (a > rounding)))
        beta = np.where(low, 0.0, np.where(high, caps, beta))
        return beta, (free & ~low & ~high) | enter
