"""Narrow rows of the hybrid solver: few dense columns, which lie one after the other."""

from __future__ import annotations

import numpy as np

from mdlearn._solvers import narrow_scatter
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.margin import Column
from mdlearn.numerics.cholesky import NotPositiveDefinite

NARROW_COLUMNS, NARROW_ENTRIES = 65, 1 << 19
"""Columns, the constant one included, and entries of dense rows up to which they are kept column by column."""
VECTOR, PIECE_OF_COLUMNS, ROOM = 8, 256, 8
"""Rows are padded to a multiple of the first; rows of a piece, and numbers beside those of columns, in their room."""
NUMBERS_OF_ROWS = 16
"""Numbers that steps keep of every row, at most. They lie in one block with the columns: allocators keep memory for the
next fit up to a few times their largest block, and return what is beyond. In one process 8,124 x 22 rows had 800 page
faults a fit without, a third of its time."""
NO_MATRIX = np.empty((0, 0))


class NarrowRows:
    """Narrow rows that all columns of a fit share, and their scatter.

    Attributes
    ----------
    T : ndarray of shape (n, m)
        Row by row a column of the rows, the constant one the last, padded with zeros.
    """

    def __init__(self, rows: AffineRows) -> None:
        assert isinstance(rows.rows, DenseRows)
        m, n = rows.rows.shape[0], rows.width
        block = np.empty((n + NUMBERS_OF_ROWS, m + -m % VECTOR))
        self.T, self._tables = block[:n], [block[n:]]
        narrow_scatter.columns(rows.rows.X, self.T)
        self.scatter: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def table(self) -> np.ndarray:
        """Room for the numbers of every row: that beside the columns for the first who asks."""
        return self._tables.pop() if self._tables else np.empty((NUMBERS_OF_ROWS, self.T.shape[1]))

    def room(self) -> np.ndarray:
        """Room for pieces of rows."""
        return np.empty((self.T.shape[0] + ROOM, PIECE_OF_COLUMNS))

    def quadratic(self, column: Column) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Matrix of a column's quadratic part, its Cholesky factor, and what the mean term pulls coefficients with."""
        n, m = self.T.shape
        if column.kappa == 0:
            return NO_MATRIX, NO_MATRIX, None
        weights, v, A, L = np.empty(m), np.empty(n), np.empty((n, n)), np.empty((n, n))
        known = self.scatter
        if known is None or known[0] is not column.counts:
            mean, about = np.empty(n), np.zeros((n, n + ROOM))
            narrow_scatter.scatter(self.T, column.counts, weights, self.room(), mean, about)
            self.scatter = known = column.counts, mean, about
        _, mean, about = known
        if not narrow_scatter.quadratic(self.T, column.counts, column.y, mean, about, column.kappa, weights, A, L, v):
            raise NotPositiveDefinite("the matrix of the variance term is not positive definite")
        return A, L, column.mean * v if column.mean > 0 else None


def are_narrow(rows: AffineRows) -> bool:
    """Whether rows are few enough dense columns, and small enough, to be kept column by column."""
    few = isinstance(rows.rows, DenseRows) and rows.width <= NARROW_COLUMNS
    return few and rows.rows.shape[0] * rows.width <= NARROW_ENTRIES
