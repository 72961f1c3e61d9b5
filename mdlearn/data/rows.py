"""Training rows as they were given: dense or CSR, float32 or float64, any layout; iterated in row blocks.

Nothing here copies X: products go through blocks of at most BLOCK_ENTRIES entries, which are brought to float64 one
at a time, so that sums are float64 whatever the rows are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Selection = slice | np.ndarray
BLOCK_ENTRIES = 1 << 20
"""Entries of one row block: 8 MB of float64, a few milliseconds of work."""


def _spans(n: int, step: int) -> Iterator[slice]:
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


@dataclass(frozen=True, eq=False)
class DenseRows:
    """Rows of a dense array of float32 or float64, in any memory layout.

    Attributes
    ----------
    X : ndarray of shape (m, d)
    """

    X: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """(m, d)."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self.X.dtype

    @property
    def sparse(self) -> bool:
        """False."""
        return False

    def spans(self) -> Iterator[slice]:
        """Row ranges of at most BLOCK_ENTRIES entries each."""
        return _spans(self.shape[0], max(64, BLOCK_ENTRIES // self.shape[1]))

    def block(self, rows: Selection) -> np.ndarray:
        """Some rows as a dense float64 array; a view where the rows are float64 already and `rows` is a slice."""
        return np.asarray(self.X[rows], dtype=np.float64)

    def take(self, rows: Selection) -> DenseRows:
        """Some rows, as rows."""
        return DenseRows(self.X[rows])

    def dot(self, w: np.ndarray) -> np.ndarray:
        """X w in float64, shape (m,)."""
        if self.X.dtype == np.float64:
            return self.X @ w
        out = np.empty(self.shape[0])
        for rows in self.spans():
            out[rows] = self.block(rows) @ w
        return out

    def adjoint(self, v: np.ndarray) -> np.ndarray:
        """X' v in float64, shape (d,)."""
        if self.X.dtype == np.float64:
            return v @ self.X
        out = np.zeros(self.shape[1])
        for rows in self.spans():
            out += v[rows] @ self.block(rows)
        return out

    def inner(self, others: DenseRows | CsrRows) -> np.ndarray:
        """Inner products with other rows, float64."""
        return self.block(slice(None)) @ others.block(slice(None)).T

    def squares(self, scale: np.ndarray | None = None) -> np.ndarray:
        """sum_j x_ij^2 / scale_j of every row."""
        out = np.empty(self.shape[0])
        for rows in self.spans():
            B = self.block(rows)
            out[rows] = np.einsum("ij,ij->i", B, B if scale is None else B / scale)
        return out


@dataclass(frozen=True, eq=False)
class CsrRows:
    """Rows of a CSR matrix of float32 or float64 with int32 or int64 indices.

    Attributes
    ----------
    X : csr_matrix of shape (m, d)
        In canonical format: no duplicate entries.
    """

    X: csr_matrix

    @property
    def shape(self) -> tuple[int, int]:
        """(m, d)."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self.X.dtype

    @property
    def sparse(self) -> bool:
        """True."""
        return True

    def spans(self) -> Iterator[slice]:
        """Row ranges whose dense form has at most BLOCK_ENTRIES entries each."""
        return _spans(self.shape[0], max(64, BLOCK_ENTRIES // self.shape[1]))

    def block(self, rows: Selection) -> np.ndarray:
        """Some rows as a dense float64 array."""
        return self.X[rows].toarray().astype(np.float64, copy=False)

    def take(self, rows: Selection) -> CsrRows:
        """Some rows, as rows."""
        return CsrRows(self.X[rows])

    def _pieces(self) -> Iterator[tuple[slice, Any]]:
        """Row ranges as float64 CSR; the whole at once where it needs no conversion."""
        m = self.shape[0]
        if self.X.dtype == np.float64:
            yield slice(0, m), self.X
            return
        step = max(64, int(BLOCK_ENTRIES * m / max(1, self.X.nnz)))
        for rows in _spans(m, step):
            yield rows, self.X[rows].astype(np.float64)

    def dot(self, w: np.ndarray) -> np.ndarray:
        """X w in float64, shape (m,)."""
        out = np.empty(self.shape[0])
        for rows, piece in self._pieces():
            out[rows] = piece @ w
        return out

    def adjoint(self, v: np.ndarray) -> np.ndarray:
        """X' v in float64, shape (d,)."""
        out = np.zeros(self.shape[1])
        for rows, piece in self._pieces():
            out += piece.T @ v[rows]
        return out

    def inner(self, others: DenseRows | CsrRows) -> np.ndarray:
        """Inner products with other rows, float64 and dense."""
        if isinstance(others, DenseRows):
            return np.asarray(self.X.astype(np.float64) @ others.block(slice(None)).T)
        return (self.X.astype(np.float64) @ others.X.astype(np.float64).T).toarray()

    def squares(self, scale: np.ndarray | None = None) -> np.ndarray:
        """sum_j x_ij^2 / scale_j of every row."""
        out = np.empty(self.shape[0])
        for rows, piece in self._pieces():
            squared = piece.multiply(piece).tocsr()
            out[rows] = squared @ (np.ones(self.shape[1]) if scale is None else 1.0 / scale)
        return out


Rows = DenseRows | CsrRows
