"""Conversion of sparse matrices of any format to canonical CSR, by pieces between which Ctrl-C is seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mdlearn.data.rows.rows import row_steps_of_entries, steps

CONVERTED_ENTRIES = 1 << 21
"""Stored entries that SciPy converts or sorts at once."""


def convert_to_csr(X: Any) -> Any:
    """Convert a sparse matrix to CSR, unless it is that already; large CSC and COO matrices go piece by piece."""
    if X.format in ("csc", "coo") and X.ndim == 2 and X.nnz > CONVERTED_ENTRIES:
        return _join_converted_pieces(X, list(_convert_csc_pieces(X) if X.format == "csc" else _convert_coo_pieces(X)))
    return X.tocsr()


def convert_to_canonical_csr(A: Any) -> Any:
    """Copy a CSR matrix, with sorted indices and no duplicates."""
    if A.nnz <= CONVERTED_ENTRIES:
        A = A.copy()
        A.sum_duplicates()
        return A
    pieces = [A[part] for part in row_steps_of_entries(A.indptr, CONVERTED_ENTRIES)]
    for piece in pieces:
        piece.sum_duplicates()
    ends = np.append(0, np.cumsum(np.concatenate([np.diff(piece.indptr) for piece in pieces])))
    data, indices = np.empty(int(ends[-1]), A.data.dtype), np.empty(int(ends[-1]), A.indices.dtype)
    start = 0
    for piece in pieces:
        place = slice(start, start + piece.nnz)
        data[place], indices[place] = piece.data, piece.indices
        start = place.stop
    return _csr_of_converted_arrays(A, data, indices, ends)


def _convert_csc_pieces(X: Any) -> Iterator[tuple[int, Any]]:
    """Pieces of a CSC matrix, converted: (first column, some columns as CSR)."""
    for part in row_steps_of_entries(X.indptr, CONVERTED_ENTRIES):
        yield part.start, X[:, part].tocsr()


def _convert_coo_pieces(X: Any) -> Iterator[tuple[int, Any]]:
    """Pieces of a COO matrix, converted: (0, some entries as CSR)."""
    for part in steps(X.nnz, CONVERTED_ENTRIES):
        yield 0, type(X)((X.data[part], (X.row[part], X.col[part])), shape=X.shape).tocsr()


def _join_converted_pieces(X: Any, pieces: list[tuple[int, Any]]) -> Any:
    """Sum of converted CSR pieces with all rows, each of them from some column on."""
    m = X.shape[0]
    lengths = np.zeros(m, dtype=np.int64)
    for _, piece in pieces:
        lengths += np.diff(piece.indptr)
    ends = np.append(0, np.cumsum(lengths))
    data, indices = np.empty(int(ends[-1]), X.data.dtype), np.empty(int(ends[-1]), pieces[0][1].indices.dtype)
    cursor = ends[:-1].copy()
    while pieces:
        first, piece = pieces.pop(0)  # its memory goes as that of the whole comes
        own = np.diff(piece.indptr)
        place = np.arange(piece.nnz) + np.repeat(cursor - piece.indptr[:-1], own)
        data[place], indices[place] = piece.data, piece.indices + first
        cursor += own
    return _csr_of_converted_arrays(X, data, indices, ends)


def _csr_of_converted_arrays(X: Any, data: np.ndarray, indices: np.ndarray, ends: np.ndarray) -> Any:
    """CSR matrix of the shape of X, one type of indices; set as attributes: the constructor would check them all."""
    from scipy.sparse import csr_matrix

    A = csr_matrix(X.shape, dtype=data.dtype)
    kind = indices.dtype if ends[-1] <= np.iinfo(indices.dtype).max else np.dtype(np.int64)
    A.data, A.indices, A.indptr = data, indices.astype(kind, copy=False), ends.astype(kind)
    return A
