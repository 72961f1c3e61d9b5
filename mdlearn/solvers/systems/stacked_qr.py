"""Explicit rows by a QR factorisation of stacked square roots."""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr, solve_triangular

from mdlearn.numerics import cholesky
from mdlearn.solvers.systems.explicit import RowSystem
from mdlearn.solvers.systems.weighted_gram import Work


class StackedSystem(RowSystem):
    """Explicit rows through a QR factorisation of the stacked square roots, never forming Q + R' D R.

    For few rows and columns with very wide boxes: forming the matrix would lose the ridge beside D |x|^2, and with it
    every direction that the rows on a kink do not span.
    """

    def setup(self) -> Work:
        """Keep the square roots: ridge, and centred rows for the variance."""
        column, n = self.column, self.ridge.shape[0]
        self.X = self.rows(slice(None))
        parts = [np.diag(np.sqrt(self.ridge))]
        if column.kappa > 0:
            centred = self.X - np.multiply.outer(column.y, self.centre)
            parts.append(np.sqrt(column.kappa * column.counts)[:, None] * centred)
        # The rows of the ridge and of the variance as one triangle.
        self.base = np.linalg.qr(np.vstack(parts), mode="r") if len(parts) > 1 else parts[0][:n]
        yield

    def quadratic(self, element: np.ndarray) -> np.ndarray:
        """Q times an element, through the margins."""
        z = self.column.y * self.decision(element)
        return self.ridge * element - self.adjoint(self.column.y * self.column.spread(z))

    def factor(self, D: np.ndarray) -> Work:
        """QR with sorted rows and pivoted columns: stable for rows of very different length."""
        used = np.flatnonzero(D)
        stack = np.vstack([np.sqrt(D[used])[:, None] * self.X[used], self.base])
        size = np.abs(stack).max(axis=1)
        if not np.isfinite(size).all():
            raise cholesky.NotPositiveDefinite("a row overflowed")
        self.triangle, self.pivots = qr(stack[np.argsort(-size, kind="stable")], mode="r", pivoting=True)
        self.triangle = self.triangle[: stack.shape[1]]
        yield

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Solve with the last factor; a direction that nothing holds (a free intercept) stays."""
        R, diagonal = self.triangle, np.abs(np.diagonal(self.triangle))
        rank = int((diagonal > 1e-300 + 1e-18 * diagonal[0]).sum())
        inner = solve_triangular(R[:rank, :rank], rhs[self.pivots[:rank]], trans=1, check_finite=False)
        out = np.zeros_like(rhs)
        out[self.pivots[:rank]] = solve_triangular(R[:rank, :rank], inner, check_finite=False)
        return cholesky.finite(out)
