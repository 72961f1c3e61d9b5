"""The exact problem over rows near a kink, all others held at the bound where they are: the central path in memory."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from mdlearn.data.rows.rows import SPAN_ENTRIES, steps
from mdlearn.numerics import cholesky
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.solvers.common.primal_dual import PrimalDual
from mdlearn.solvers.interior_point.central_path import CentralPath
from mdlearn.solvers.systems.weighted_gram import Work
from mdlearn.streaming.sums.margins import StreamedColumn
from mdlearn.streaming.sums.passes import Near

MOST_STEPS = 100
COMPLEMENTARITY_END = 1e-13
"""Complementarity, relative to its largest, at which the path ends."""
STALL_STEPS = 12


class NearSystem:
    """Rows in memory under any quadratic: what `mdlearn.solvers.interior_point.central_path` asks of a system.

    Parameters
    ----------
    X : ndarray of shape (N, n)
    Q : ndarray of shape (n, n)
    """

    def __init__(self, X: np.ndarray, Q: np.ndarray) -> None:
        self.X, self.Q, self.size = X, Q, Q.shape[0]

    def decision(self, element: np.ndarray) -> np.ndarray:
        """X element."""
        return self.X @ element

    def adjoint(self, v: np.ndarray) -> np.ndarray:
        """X' v."""
        return v @ self.X

    def quadratic(self, element: np.ndarray) -> np.ndarray:
        """Q times an element."""
        return self.Q @ element

    def factor(self, D: np.ndarray) -> Work:
        """Factor Q + X' D X."""
        M, root = self.Q.copy(), np.sqrt(D)
        for rows in steps(self.X.shape[0], SPAN_ENTRIES // self.size):
            S = self.X[rows] * root[rows, None]
            M += S.T @ S
        yield
        if not M[-1, -1] > 0:
            M[-1, -1] = 1.0  # nothing holds the intercept: it stays
        self.L = yield from cholesky.cholesky_shifted(M)

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Solve with the last factor."""
        return cholesky.finite(cholesky.solve(self.L, rhs))


class NearRows(PrimalDual):
    """A column over near rows; `fixed` is what all others add to the gradient: it is Q element - fixed - X' alpha."""

    typical_kink = 1.0

    def __init__(self, one: StreamedColumn, near: Near, Q: np.ndarray, fixed: np.ndarray) -> None:
        column = replace(one.column, y=near.y, counts=near.counts)
        super().__init__(None, column, NearSystem(near.X, Q))  # type: ignore[arg-type]  # neither a form nor features
        self.fixed = fixed
        lengths = np.square(near.X).sum(axis=1)
        self.typical_multiplier = 1.0 / max(float(lengths.mean()), 1e-300) if lengths.shape[0] else 1.0

    def residual(self, element: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """Gradient of the Lagrangian of all rows."""
        pushed = self.system.adjoint(self.column.y * (self.column.sides @ beta))
        return self.system.quadratic(element) - self.fixed - pushed


def minimise(
    state: NearRows, element: np.ndarray, width: float
) -> Generator[None, None, tuple[np.ndarray, np.ndarray]]:
    """Follow the path from an element to its end.

    Parameters
    ----------
    state : NearRows
    element : ndarray of shape (n,)
    width : float
        Margins are about this far from their optimal ones.

    Returns
    -------
    generator
        Yields None, and returns the element and its multipliers, shape (T, N).
    """
    if not state.column.y.shape[0]:
        yield from state.system.factor(np.zeros(0))
        return state.system.solve(state.fixed), np.zeros_like(state.column.caps)
    path = CentralPath(state)
    path.place(element, state.margins(element), 0.25 * width * state.column.caps)
    largest = least = path.complementarity()
    found, stalled = (path.element, path.beta), 0
    for _ in range(MOST_STEPS):
        if not path.alive or stalled >= STALL_STEPS or least <= COMPLEMENTARITY_END * largest:
            break
        try:
            yield from path.step()
        except NotPositiveDefinite:
            break
        # It may rise at first, while the gradient does not vanish yet.
        left = path.complementarity()
        stalled = 0 if path.falling or left < 0.9 * least else stalled + 1
        largest, least = max(largest, left), min(least, left)
        if path.alive and left < 10.0 * least:
            found = path.element, path.beta
    return found
