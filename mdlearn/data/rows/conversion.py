"""Sparse matrices as CSR in canonical format, in pieces between which Ctrl-C is seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mdlearn.data.rows.rows import steps

CONVERTED_ENTRIES = 1 << 21
"""Stored entries that SciPy converts or sorts at once."""


def to_csr(X: Any) -> Any:
    """A sparse matrix as CSR, as it is where it is that already; large CSC and COO matrices go piece by piece."""
    if X.format in ("csc", "coo") and X.ndim == 2 and X.nnz > CONVERTED_ENTRIES:
        return _joined(X, list(_columns(X) if X.format == "csc" else _entries(X)))
    return X.tocsr()


def canonical(A: Any) -> Any:
    """A copy of a CSR matrix with sorted indices and no duplicates."""
    if A.nnz <= CONVERTED_ENTRIES:
        A = A.copy()
        A.sum_duplicates()
        return A
    pieces, start = [], 0
    while start < A.shape[0]:
        stop = max(start + 1, int(np.searchsorted(A.indptr, A.indptr[start] + CONVERTED_ENTRIES, side="right")) - 1)
        pieces.append(A[start:stop])
        pieces[-1].sum_duplicates()
        start = stop
    ends = np.append(0, np.cumsum(np.concatenate([np.diff(piece.indptr) for piece in pieces])))
    data, indices = np.empty(int(ends[-1]), A.data.dtype), np.empty(int(ends[-1]), A.indices.dtype)
    start = 0
    for piece in pieces:
        place = slice(start, start + piece.nnz)
        data[place], indices[place] = piece.data, piece.indices
        start = place.stop
    return _csr(A, data, indices, ends)


def _columns(X: Any) -> Iterator[tuple[int, Any]]:
    """(first column, some columns as CSR)."""
    start, d = 0, X.shape[1]
    while start < d:
        stop = max(start + 1, int(np.searchsorted(X.indptr, X.indptr[start] + CONVERTED_ENTRIES, side="right")) - 1)
        yield start, X[:, start:stop].tocsr()
        start = stop


def _entries(X: Any) -> Iterator[tuple[int, Any]]:
    """(0, some entries as CSR)."""
    for part in steps(X.nnz, CONVERTED_ENTRIES):
        yield 0, type(X)((X.data[part], (X.row[part], X.col[part])), shape=X.shape).tocsr()


def _joined(X: Any, pieces: list[tuple[int, Any]]) -> Any:
    """The sum of CSR matrices with all rows, each of them from some column on."""
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
    return _csr(X, data, indices, ends)


def _csr(X: Any, data: np.ndarray, indices: np.ndarray, ends: np.ndarray) -> Any:
    """Of the shape of X, with one type of indices; set as attributes, for the constructor would look at them all."""
    from scipy.sparse import csr_matrix

    A = csr_matrix(X.shape, dtype=data.dtype)
    kind = indices.dtype if ends[-1] <= np.iinfo(indices.dtype).max else np.dtype(np.int64)
    A.data, A.indices, A.indptr = data, indices.astype(kind, copy=False), ends.astype(kind)
    return A
