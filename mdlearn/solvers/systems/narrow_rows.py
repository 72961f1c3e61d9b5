"""Rows of few columns, kept column by column: what compiled steps over them share."""

from __future__ import annotations

import numpy as np

from mdlearn._solvers import csr, narrow_scatter
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.margin import Column
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.numerics.lazy_property import kept

VECTOR, SINGLE_VECTOR, PIECE_OF_COLUMNS, ROOM = 8, 16, 256, 8
"""Rows are padded to a multiple of the first, in single precision of the second; rows of a piece, and numbers beside
those of columns, in their room."""
NUMBERS_OF_ROWS, NUMBERS_OF_COLUMNS = 17, 12
"""Numbers that steps keep of every row, at most, and steps on hinges of every column beside two matrices and a piece of
rows. All lie in one block with the columns: allocators keep memory for the next fit up to a few times their largest
block, and return the rest: 800 page faults a fit of 8,124 x 22 rows, 250 of soybean_large's squared hinges."""
SHARED_NUMBERS = 2
"""Numbers before those of the rows in a factor that columns share."""
NO_MATRIX = np.empty((0, 0))


class NarrowRows:
    """Narrow rows that all columns of a fit share, and their scatter.

    Attributes
    ----------
    T : ndarray of shape (n, m)
        Row by row a column of the rows, the constant one the last, padded with zeros.
    several : bool
        Whether several loss columns go over them.
    """

    def __init__(self, rows: AffineRows, several: bool = False) -> None:
        self.several = several
        (m, d), n = rows.rows.shape, rows.width
        self._space = (NUMBERS_OF_COLUMNS + 2 * n + PIECE_OF_COLUMNS) * (n + ROOM)
        shape = n + NUMBERS_OF_ROWS, m + -m % VECTOR
        whole = np.empty(shape[0] * shape[1] + self._space)
        block = whole[: shape[0] * shape[1]].reshape(shape)
        self.T, self._tables, self._spaces = block[:n], [block[n:]], [whole[block.size :]]
        if isinstance(rows.rows, DenseRows):
            narrow_scatter.columns(rows.rows.X, self.T)
        else:
            assert isinstance(rows.rows, CsrRows)
            X = rows.rows.X
            self.T[:d], self.T[d:, :m], self.T[d:, m:] = 0.0, 1.0, 0.0
            csr.columns(X.data, X.indices, X.indptr, self.T, 0, m)
        self.scatter: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    @kept
    def first_factor(self) -> np.ndarray | None:
        """Factor of the first step from w = 0, which classes against the rest have in common; None for one column.

        Behind what tells its matrix, the weights of the rows, and before that matrix, which steps on squared hinges
        change. Steps write it, and read it where theirs are the same.
        """
        if not self.several:
            return None
        n, m = self.T.shape
        shared = np.empty(SHARED_NUMBERS + m + 2 * n * (n + ROOM))
        shared[0] = 0.0
        return shared

    @kept
    def single(self) -> np.ndarray:
        """The columns in single precision, padded to a multiple of 16."""
        n, m = self.T.shape
        S = np.zeros((n, m + -m % SINGLE_VECTOR), dtype=np.float32)
        S[:, :m] = self.T
        return S

    def table(self) -> np.ndarray:
        """Room for the numbers of every row: that beside the columns for the first who asks."""
        return self._tables.pop() if self._tables else np.empty((NUMBERS_OF_ROWS, self.T.shape[1]))

    def space(self) -> np.ndarray:
        """Room for the numbers of every column and the matrices of steps on hinges, as for the numbers of rows."""
        return self._spaces.pop() if self._spaces else np.empty(self._space)

    def room(self) -> np.ndarray:
        """Room for pieces of rows."""
        return np.empty((self.T.shape[0] + ROOM, PIECE_OF_COLUMNS))

    def quadratic(self, column: Column) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Matrix of a column's quadratic part, its Cholesky factor, and what the mean term pulls coefficients with."""
        n, m = self.T.shape
        if column.kappa == 0:
            return NO_MATRIX, NO_MATRIX, None
        weights, room = np.empty(m), np.empty((n + 2, n + ROOM))
        v, A, L = np.empty(n), np.empty((n, n)), np.empty((n, n))
        known = self.scatter
        if known is None or known[0] is not column.counts:
            mean, about = np.empty(n), np.zeros((n, n + ROOM))
            narrow_scatter.scatter(self.T, column.counts, weights, self.room(), mean, about)
            self.scatter = known = column.counts, mean, about
        _, mean, about = known
        weighted = column.counts, column.y, mean, about, column.kappa
        if not narrow_scatter.quadratic(self.T, *weighted, weights, room, A, L, v):
            raise NotPositiveDefinite("the matrix of the variance term is not positive definite")
        return A, L, column.mean * v if column.mean > 0 else None
