"""Training rows as a CSR matrix, used as it was given; products with vectors are compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

import mdlearn._solvers.csr as kernels
from mdlearn.data.rows.rows import (
    BLOCK_ENTRIES,
    COPY_BYTES,
    SPAN_ENTRIES,
    DenseRows,
    Rows,
    RowsInMemory,
    Selection,
    largest_entry_of_rows,
    row_steps_of_entries,
    steps,
)
from mdlearn.numerics.lazy_property import kept

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


NO_ENTRIES = np.empty(0, np.int8)
"""What stands for the entries of CSR rows where all that are stored are 1."""
ZEROS_COLUMNS, ZEROS_ROWS, STORED_SHARE = 40, 256, 0.3
"""Columns of dense rows from which zeros are looked for, rows that are looked at, and the share of other entries."""


@dataclass(frozen=True, eq=False)
class CsrRows(RowsInMemory):
    """Rows of a CSR matrix of float32 or float64 with int32 or int64 indices.

    Attributes
    ----------
    X : csr_matrix of shape (m, d)
        In canonical format: no duplicate entries.
    model_dtype : dtype or None
    """

    X: csr_matrix
    sparse: ClassVar[bool] = True

    def take(self, rows: Selection) -> CsrRows:
        """Selected rows as `CsrRows`; copied, piece by piece where an array selects them from a large X."""
        A = self.X
        if isinstance(rows, slice) or A.nnz <= BLOCK_ENTRIES:
            return CsrRows(A[rows], model_dtype=self.model_dtype)
        ends = np.zeros(rows.shape[0] + 1, dtype=A.indptr.dtype)
        np.cumsum(A.indptr[rows + 1] - A.indptr[rows], out=ends[1:])
        data, indices = np.empty(int(ends[-1]), A.data.dtype), np.empty(int(ends[-1]), A.indices.dtype)
        for part in steps(rows.shape[0], BLOCK_ENTRIES * self.shape[0] // A.nnz):
            some, place = A[rows[part]], slice(int(ends[part.start]), int(ends[part.stop]))
            data[place], indices[place] = some.data, some.indices
        return CsrRows(csr_matrix_like(A, data, indices, ends), model_dtype=self.model_dtype)

    def write(self, rows: np.ndarray, out: np.ndarray) -> None:
        kernels.write(self.X.data, self.X.indices, self.X.indptr, rows, out)

    def block(self, rows: Selection) -> np.ndarray:
        dense: np.ndarray = self.X[rows].astype(np.float64).toarray()
        return dense

    @kept
    def entries_but_ones(self) -> np.ndarray:
        """Stored entries as compiled loops take them: an empty array of int8 where every one is 1, as of indicators."""
        data = self.X.data
        parts = (slice(0, 1), *steps(data.shape[0], SPAN_ENTRIES))
        return NO_ENTRIES if all((data[part] == 1).all() for part in parts) else data

    @property
    def n_entries(self) -> int:
        """Stored entries."""
        return int(self.X.nnz)

    def matrix(self) -> csr_matrix:
        return self.X.astype(np.float64, copy=False)

    def largest(self) -> float:
        parts = steps(self.X.nnz, BLOCK_ENTRIES)
        return float(np.max([largest_entry_of_rows(self.X.data[part]) for part in parts], initial=0.0))

    def spans(self) -> Iterable[slice]:
        """Row ranges of about BLOCK_ENTRIES stored entries each."""
        return row_steps_of_entries(self.X.indptr, BLOCK_ENTRIES)

    def scaled(self, by: np.ndarray) -> CsrRows:
        return CsrRows(self.matrix().multiply(by).tocsr())

    def inner(self, others: Rows, centre: np.ndarray | None = None) -> np.ndarray:
        assert centre is None, "sparse rows stay where they are"
        product = self.matrix() @ others.matrix().T
        return np.asarray(product.toarray() if others.sparse else product)

    def dot(self, w: np.ndarray) -> np.ndarray:
        if w.ndim > 1:
            return super().dot(w)
        w = _vector_for_csr_product(w, self.shape[1])
        return self._product(kernels.dot, self.entries_but_ones, w, np.empty(self.shape[0]))

    def adjoint(self, v: np.ndarray) -> np.ndarray:
        if v.ndim > 1:
            return super().adjoint(v)
        v = _vector_for_csr_product(v, self.shape[0])
        return self._product(kernels.adjoint, self.entries_but_ones, v, np.zeros(self.shape[1]))

    def dot_and_adjoint(self, w: np.ndarray, last: float, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        m, d = self.shape
        w, weights = _vector_for_csr_product(w, d), _vector_for_csr_product(weights, m)
        z, sums = np.empty(m), np.zeros(d)
        A = self.entries_but_ones, self.X.indices, self.X.indptr
        for rows in self.spans():
            kernels.dot_and_adjoint(*A, w, last, weights, z, sums, rows.start, rows.stop)
        return z, sums

    def _product(self, kernel: Callable[..., None], data: np.ndarray, v: np.ndarray, out: np.ndarray) -> np.ndarray:
        for rows in self.spans():
            kernel(data, self.X.indices, self.X.indptr, v, out, rows.start, rows.stop)
        return out

    def squares(self, scale: np.ndarray | None = None, centre: np.ndarray | None = None) -> np.ndarray:
        """sum_j x_ij^2 / scale_j of every row, float64."""
        assert centre is None, "sparse rows stay where they are"
        out = np.empty(self.shape[0])
        if scale is not None:
            return self._product(kernels.squares, self.X.data, _vector_for_csr_product(1.0 / scale, self.shape[1]), out)
        found: np.ndarray | None = vars(self).get("row_squares")
        if found is not None:
            return found.copy()  # who asks may write into it
        self._write_squares(out)
        return out

    def small_by_squares(self, most: float) -> bool:
        squares = np.empty(self.shape[0])
        small = self._write_squares(squares) <= most * most
        if small:
            vars(self)["row_squares"] = squares
        return small

    def _write_squares(self, out: np.ndarray) -> float:
        """Write the squared length of every row; return their sum."""
        A = self.X
        return sum(kernels.row_squares(A.data, A.indptr, out, rows.start, rows.stop) for rows in self.spans())

    def column_squares(self, weights: np.ndarray) -> np.ndarray:
        """sum_i weights_i x_ij^2 of every column, float64."""
        v = _vector_for_csr_product(weights, self.shape[0])
        return self._product(kernels.column_squares, self.X.data, v, np.zeros(self.shape[1]))

    def spread(self, counts: np.ndarray, mean: float) -> float:
        """sum_ij counts_i (x_ij - mean)^2 over all entries, those that are not stored included."""
        total = 0.0
        for rows in self.spans():
            A = self.take(rows).matrix()
            stored = np.diff(A.indptr)
            total += float(np.repeat(counts[rows], stored) @ np.square(A.data - mean))
            total += mean * mean * float(counts[rows] @ (self.shape[1] - stored))
        return total

    def _piece(self, rows: slice) -> csr_matrix:
        """Rows of a range as CSR in float64; their entries are views where they are float64 already."""
        A = self.X
        if rows.start == 0 and rows.stop == self.shape[0]:
            return self.matrix()
        # Indexing the matrix would copy indices and entries.
        part = slice(int(A.indptr[rows.start]), int(A.indptr[rows.stop]))
        data, ends = A.data[part].astype(np.float64, copy=False), A.indptr[rows.start : rows.stop + 1] - part.start
        return type(A)((data, A.indices[part], ends), shape=(rows.stop - rows.start, self.shape[1]))


@dataclass(frozen=True, eq=False)
class CsrRowsWithoutColumn(CsrRows):
    """CSR rows as if one column of the matrix were empty, without a copy."""

    place: int  # the column

    def block(self, rows: Selection) -> np.ndarray:
        """Selected rows as a dense float64 array, with zeros in the column `place`."""
        dense = super().block(rows)
        dense[:, self.place] = 0.0
        return dense

    def take(self, rows: Selection) -> CsrRows:
        """Selected rows, copied; entries in the column `place` become 0."""
        part = self.X[rows].copy()
        part.data[part.indices == self.place] = 0.0
        return CsrRows(part, model_dtype=self.model_dtype)

    def write(self, rows: np.ndarray, out: np.ndarray) -> None:
        super().write(rows, out)
        out[:, self.place] = 0.0

    def matrix(self) -> csr_matrix:
        """All rows as a CSR matrix of float64, copied."""
        return self.take(slice(None)).matrix()

    def scaled(self, by: np.ndarray) -> CsrRows:
        return CsrRows(self.matrix()).scaled(by)

    def dot(self, w: np.ndarray) -> np.ndarray:
        w = np.array(w, dtype=np.float64)
        w[self.place] = 0.0
        return super().dot(w)

    def adjoint(self, v: np.ndarray) -> np.ndarray:
        out = super().adjoint(v)
        out[self.place] = 0.0
        return out

    def dot_and_adjoint(self, w: np.ndarray, last: float, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return Rows.dot_and_adjoint(self, w, last, weights)

    def squares(self, scale: np.ndarray | None = None, centre: np.ndarray | None = None) -> np.ndarray:
        """sum_j x_ij^2 / scale_j of every row, float64."""
        scale = np.ones(self.shape[1]) if scale is None else np.array(scale, dtype=np.float64)
        scale[self.place] = np.inf
        return super().squares(scale, centre)

    def column_squares(self, weights: np.ndarray) -> np.ndarray:
        out = super().column_squares(weights)
        out[self.place] = 0.0
        return out


INDEX_BYTES = 4
"""Bytes of a column's number in a CSR matrix."""

ROOM_OF_COPY = 1.1
"""Room for the entries of a copy, in the number that some rows tell of; twice as much where it is too little."""


def share_worth_csr(rows: DenseRows) -> float:
    """Share of the entries of dense rows that are not 0, in some of them; the rows keep it."""
    found: float | None = vars(rows).get("share_worth_csr")
    if found is None:
        some = rows.X[:: max(1, rows.shape[0] // ZEROS_ROWS)]
        # Of a comparison NumPy counts many entries at once, of numbers one after the other.
        vars(rows)["share_worth_csr"] = found = float(np.count_nonzero(some != 0)) / some.size
    return found


def worth_csr_copy(rows: DenseRows) -> bool:
    """Whether dense rows are mostly zeros and worth their copy as CSR rows, judged by some of them."""
    m, d = rows.shape
    if d < ZEROS_COLUMNS:
        return False
    share = share_worth_csr(rows)
    return share < STORED_SHARE and share * m * d * (rows.X.itemsize + INDEX_BYTES) <= COPY_BYTES


def csr_copy_of_dense_rows(rows: DenseRows) -> CsrRows:
    """CSR rows of the entries of dense rows that are not 0, copied; the rows keep them as `without_zeros`."""
    from scipy.sparse import csr_matrix

    X, (m, d) = rows.X, rows.shape
    ends, room = np.empty(m + 1, dtype=np.int32), int(ROOM_OF_COPY * share_worth_csr(rows) * m * d) + d
    while True:
        data, indices = np.empty(room, X.dtype), np.empty(room, np.int32)
        n = kernels.gather(X, ends, data, indices)
        if n >= 0:
            break
        room = min(2 * room, m * d)
        del data, indices  # before those that take their place are there
    # Rows that `worth_csr_copy` accepts have fewer entries than int32 counts.
    copy = CsrRows(csr_matrix_like(csr_matrix((1, d), dtype=X.dtype), data[:n], indices[:n], ends))
    vars(rows)["csr_copy"] = copy
    return copy


def csr_matrix_like(A: csr_matrix, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> csr_matrix:
    """Canonical CSR matrix with A's columns; set as attributes, for the constructor would make int32 of int64."""
    out = type(A)((indptr.shape[0] - 1, A.shape[1]), dtype=data.dtype)
    out.data, out.indices, out.indptr = data, indices, indptr
    out.has_canonical_format = True
    return out


def _vector_for_csr_product(v: np.ndarray, n: int) -> np.ndarray:
    """Vector of n float64 numbers, as compiled products of CSR rows take it; ValueError for another shape."""
    if v.shape != (n,):
        raise ValueError(f"a vector of {n} numbers is needed; got the shape {v.shape}")
    return np.ascontiguousarray(v, dtype=np.float64)
