"""Variance term of a loss column: its quadratic part, and rows whitened by it, shared by columns or a column's own."""

from __future__ import annotations

import weakref
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas

from mdlearn.numerics import cholesky
from mdlearn.solvers.systems.scatter import SignedMeans


class LossColumnQuadratic:
    """Quadratic part of a loss column of the hybrid solver: matrix A and its Cholesky factor.

    Both are None for the identity, which is without its last entry where a bias is free.

    Attributes
    ----------
    A, L : ndarray of shape (n, n) or None
    free : bool
    """

    def __init__(self, A: np.ndarray | None, L: np.ndarray | None, free: bool) -> None:
        self.A, self.L, self.free = A, L, free

    @property
    def diagonal(self) -> np.ndarray | float:
        """The diagonal of A, but for a free bias."""
        return 1.0 if self.A is None else np.diagonal(self.A)

    def times(self, w: np.ndarray) -> np.ndarray:
        """A w."""
        if self.free:
            return np.append(w[:-1], 0.0)
        return w if self.A is None else self.A @ w

    def solved(self, g: np.ndarray) -> np.ndarray:
        """A^-1 g."""
        return g if self.L is None else cholesky.cholesky_solve(self.L, g)

    def squared_length(self, g: np.ndarray) -> float:
        """g' A^-1 g."""
        return float(g @ self.solved(g))

    def shifted(self, factor: float, M: np.ndarray) -> np.ndarray:
        """M + factor A, written into M."""
        if self.A is None:
            M.flat[:: M.shape[0] + 1] += factor
        else:
            M += factor * self.A
        return M


class WhiteningTilts(NamedTuple):
    """Tilts of whitened rows, a row for each column.

    `tilted`: multiple of q in the last entry of the rows; `last`, `squares`: these entries, and squared lengths with
    them; `mean_rows`: mean signed rows with theirs, (q, q'tilted).
    """

    means: SignedMeans
    tilted: np.ndarray
    last: np.ndarray
    squares: np.ndarray
    mean_rows: np.ndarray


class LossColumnWhitening:
    """Whitening that columns of a form share: for counts and kappa, M's factor L, rows X L^-T, and their squares.

    The rows lie in a block with one entry more, which is a column's own: one column at a time has the block itself.
    """

    def __init__(self, counts: np.ndarray, kappa: float, L: np.ndarray, block: np.ndarray, squares: np.ndarray) -> None:
        self.counts, self.kappa, self.L, self.rows, self.squares = counts, kappa, L, block[:, :-1], squares
        self._blocks = [block]
        self._tilts: WhiteningTilts | None = None  # of the last columns

    def tilts(self, means: SignedMeans) -> WhiteningTilts:
        """Return what is a column's own, for all columns whose means are there: one pass over the rows."""
        found = self._tilts
        if found is None or found.means is not means:
            column = means.columns[0]
            q: np.ndarray = blas.dtrsm(1.0, self.L.T, means.means.T, lower=0, trans_a=1).T
            weight, lengths = column.kappa * column.total, np.einsum("ij,ij->i", q, q)
            share = np.sqrt(weight / (1.0 - weight * lengths))[:, None]
            tilted, mean_rows = share * q, np.hstack((q, share * lengths[:, None]))
            last = tilted @ self.rows.T
            self._tilts = found = WhiteningTilts(means, tilted, last, self.squares + np.square(last), mean_rows)
        return found

    def block(self, holder: object) -> np.ndarray:
        """Return the rows with room for one entry more; those of a column that is still in use are copied."""
        try:
            block = self._blocks.pop()
        except IndexError:
            block = np.empty((self.rows.shape[0], self.rows.shape[1] + 1))
            block[:, :-1] = self.rows
            return block
        weakref.finalize(holder, self._blocks.append, block).atexit = False
        return block
