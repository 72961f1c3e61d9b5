"""Arrays that a caller gives as X, as rows, without a copy where type and layout allow; and copies that Ctrl-C ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from copy import copy
from typing import Any

import numpy as np

from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import BLOCK_ENTRIES, DenseRows, Rows, read_only_rows, row_steps_of_entries, steps
from mdlearn.numerics import memory

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
INDICES = (np.dtype(np.int32), np.dtype(np.int64))

LARGEST_ENTRY = 1e140
"""Largest number in X: sums of squares, times weights, stay finite."""
CONVERTED_ENTRIES = 1 << 21
"""Stored entries that SciPy converts or sorts at once."""
OBJECT_KERNEL = "the kernel of a plugin that compares such objects"
"""What takes a list of strings or of other objects."""


def check_rows(X: Any, what: str = "X") -> Rows:
    """Return an array X as rows of finite float32 or float64 numbers, without a copy where its type allows.

    Sparse input becomes CSR (converted once). float32 and float64 stay what they are, also in another byte order;
    integers, booleans and other floats become float64.

    Raises
    ------
    TypeError
        For complex, string or other non-numeric input.
    ValueError
        For another number of dimensions, no rows, no columns, NaN or infinity.
    """
    if type(X) is np.ndarray and X.dtype in FLOATS and X.ndim == 2 and X.flags.aligned:
        rows: Rows = DenseRows(X)
    else:
        if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
            place = _place_in_array(X, *np.argwhere(np.ma.getmaskarray(X))[0].tolist())
            raise ValueError(f"{what} has masked entries{place}; remove or impute such values first")
        rows = array_as_rows(X, what)
    if rows.shape[0] == 0:
        raise ValueError(f"{what} has 0 rows; give at least one")
    if rows.shape[1] == 0:
        raise ValueError(f"{what} has 0 columns; give at least one feature")
    if rows.small_by_squares(LARGEST_ENTRY):
        return rows
    largest = rows.largest()
    if not np.isfinite(largest):
        at = _place_in_array(X, *_first_wrong_array_entry(rows, lambda values: ~np.isfinite(values)))
        raise ValueError(f"{what} contains NaN or infinity{at}; remove or impute such values first")
    if largest > LARGEST_ENTRY:
        at = _place_in_array(X, *_first_wrong_array_entry(rows, lambda values: np.abs(values) > LARGEST_ENTRY))
        raise ValueError(f"{what} holds numbers of size {largest:.3g}{at}, whose squares overflow; scale the features")
    return rows


def _first_wrong_array_entry(rows: Rows, wrong: Callable[[np.ndarray], np.ndarray]) -> tuple[int, int]:
    """Row and column of the first wrong entry of an array, where there is one."""
    for span in rows.spans():
        bad = wrong(rows.block(span))
        if bad.any():
            row, column = np.argwhere(bad)[0].tolist()
            return span.start + row, column
    raise AssertionError("no entry is wrong")


def _place_in_array(X: Any, row: int, column: int | None = None) -> str:
    """Place of an entry in an array, as errors say it: row and column from 0, or the name of a data frame's column."""
    names = list(getattr(X, "columns", ()))
    if column is None:
        return f" in row {row}"
    told = f"{names[column]!r}" if column < len(names) else f"{column}"
    return f" in row {row}, column {told}"


def array_as_rows(X: Any, what: str = "X") -> Rows:
    """Return an array X as rows like `check_rows`, for an X whose entries have been checked already."""
    return _sparse_array_as_rows(X, what) if hasattr(X, "tocsr") else _dense_array_as_rows(X, what)


def _sparse_array_as_rows(X: Any, what: str) -> CsrRows:
    """Rows of a sparse array or matrix: CSR in an order and types that compiled loops can read."""
    A = convert_to_csr(X)
    _check_array_dtype(A.dtype, what)
    if A.ndim != 2:
        raise ValueError(f"{what} has {A.ndim} dimension(s); give a 2-D matrix of shape (rows, columns)")
    _check_sparse_array_indices(A, what)
    data, kind = _float_array(A.data), np.result_type(A.indices, A.indptr)
    kind = kind if kind in INDICES else np.dtype(np.int64)
    if data is not A.data or not A.indices.dtype == A.indptr.dtype == kind:
        # Set as attributes: the constructor would make int32 of int64 indices.
        same, A = A, type(A)(A.shape, dtype=data.dtype)
        A.data, A.indices, A.indptr = data, same.indices.astype(kind, copy=False), same.indptr.astype(kind, copy=False)
    if not A.has_canonical_format:
        A = convert_to_canonical_csr(A)
    A = copy(A)  # another matrix of the same arrays: the caller's stays writable
    # Compiled loops read arrays without gaps: others are copied.
    A.data, A.indices, A.indptr = (read_only_rows(np.ascontiguousarray(part)) for part in (A.data, A.indices, A.indptr))
    return CsrRows(A)


def _check_sparse_array_indices(A: Any, what: str) -> None:
    """Raise ValueError for wrong indices of a sparse matrix: compiled loops trust them, and SciPy does not check."""
    ends = A.indptr
    right = 0 == ends[0] <= ends[-1] <= min(A.data.shape[0], A.indices.shape[0]) and bool((ends[1:] >= ends[:-1]).all())
    if right and ends[-1] > 0:
        used = A.indices[: ends[-1]]
        right = 0 <= int(used.min()) and int(used.max()) < A.shape[1]
    if not right:
        raise ValueError(f"{what} is a sparse matrix whose indices do not fit its shape {A.shape}; build it again")


def _object_array_error(X: Any, A: np.ndarray, what: str) -> TypeError | ValueError:
    """Error for an array of objects that do not all become numbers."""
    if A.ndim == 2:
        for row, column in np.ndindex(*A.shape):
            value = A[row, column]
            try:
                float(value)
            except (TypeError, ValueError):
                at = _place_in_array(X, row, column)
                if type(value).__name__ in ("NAType", "NaTType"):
                    return ValueError(f"{what} contains missing values{at}; remove or impute such values first")
                return TypeError(
                    f"{what} holds values that are not numbers{at} ({value!r:.40}); encode them as numbers first"
                )
    if A.ndim == 0 or _is_list_of_blocks(X):
        return _not_an_array(X, what)
    kernel = f", or give {OBJECT_KERNEL}" if A.ndim == 1 else ""
    return TypeError(f"{what} holds values that are not numbers; encode them as numbers first{kernel}")


def first_word_in_array(values: Any) -> int | None:
    """Position of the first entry of a one-dimensional array that is no real number; None if all are, or it is none."""
    if not isinstance(values, Collection) or getattr(values, "ndim", 1) != 1:
        return None
    for i, value in enumerate(values):
        if isinstance(value, (complex, np.complexfloating)):
            return i
        try:
            float(value)
        except (TypeError, ValueError):
            return i
    return None


def _is_list_of_blocks(X: Any) -> bool:
    """Whether what cannot be an array is a list of row blocks (X, y)."""
    return isinstance(X, list) and isinstance(X[0], tuple) and any(getattr(one, "ndim", 0) == 2 for one in X[0])


def _not_an_array(X: Any, what: str) -> TypeError:
    """Error for an X that is no array and no list of rows."""
    kind = "list of tuples" if isinstance(X, list) else type(X).__name__
    source = callable(X) or (hasattr(X, "__iter__") and not hasattr(X, "keys"))
    hint = "; row blocks go to fit, without y, alone" if source else ""
    return TypeError(f"{what} is a {kind}, not an array of shape (rows, columns){hint}")


def _uneven_row_of_array(X: Any) -> str:
    """Which row of a list that makes no array differs from the one before; empty where the rows are not the reason."""
    if not isinstance(X, (list, tuple)):
        return ""
    lengths = [len(row) if hasattr(row, "__len__") else 0 for row in X]
    found = next((i for i in range(1, len(lengths)) if lengths[i] != lengths[i - 1]), None)
    return "" if found is None else f"; row {found} has {lengths[found]} entries, the one before {lengths[found - 1]}"


def _dense_array_as_rows(X: Any, what: str) -> DenseRows:
    """Rows of a dense array, list or data frame, in types that compiled loops can read."""
    given = X
    if hasattr(X, "to_numpy") and not isinstance(X, np.ndarray):
        X = X.to_numpy()
    try:
        A = np.asarray(X)
    except ValueError:
        if _is_list_of_blocks(X):
            raise _not_an_array(X, what) from None
        raise ValueError(
            f"{what} is not a rectangular array; give rows of equal length{_uneven_row_of_array(X)}"
        ) from None
    if A.dtype.kind == "O":
        try:
            A = A.astype(np.float64)
        except (TypeError, ValueError):
            raise _object_array_error(given, A, what) from None
    if A.dtype.kind in "US" and (found := first_word_in_array(A.reshape(-1))) is not None and A.ndim == 2:
        row, column = divmod(found, A.shape[1])
        at = _place_in_array(given, row, column)
        raise TypeError(f"{what} has dtype {A.dtype}; give real numbers, not {str(A[row, column])!r:.40}{at}")
    if A.ndim == 1 and A.dtype.kind in "US":
        raise TypeError(f"{what} has dtype {A.dtype}; give real numbers, or {OBJECT_KERNEL}")
    _check_array_dtype(A.dtype, what)
    if A.ndim != 2:
        raise ValueError(f"{what} has {A.ndim} dimension(s); give a 2-D array of shape (rows, columns)")
    return DenseRows(_float_array(A))


def _float_array(A: np.ndarray) -> np.ndarray:
    """Array itself where compiled loops can read it, else a copy: float32 or float64 if it is that, else float64."""
    if A.dtype in FLOATS and A.flags.aligned:
        return A
    native = A.dtype.newbyteorder("=")
    dtype = native if native in FLOATS else np.dtype(np.float64)
    if A.ndim == 1 or A.size <= BLOCK_ENTRIES:
        return A.astype(dtype)
    out = np.empty_like(A, dtype=dtype)
    long = int(np.argmax(A.strides))  # in the order of the memory, in pieces between which Ctrl-C is seen
    for part in steps(A.shape[long], BLOCK_ENTRIES * A.shape[long] // A.size):
        place = (slice(None),) * long + (part,)
        out[place] = A[place]
    return out


def _check_array_dtype(dtype: np.dtype[Any], what: str) -> None:
    """Raise TypeError unless the type of an array's entries is one of real numbers."""
    if dtype.kind == "c":
        raise TypeError(f"{what} holds complex numbers; give real ones")
    if dtype.kind not in "biuf":
        raise TypeError(f"{what} has dtype {dtype}; give real numbers")


def selected_rows(A: Rows, rows: np.ndarray) -> Rows:
    """Selected rows of A: a view where they follow each other, else a copy."""
    if rows[-1] - rows[0] + 1 == rows.shape[0]:
        return A.take(slice(int(rows[0]), int(rows[-1]) + 1))
    if not A.sparse:
        size = float(rows.shape[0]) * A.shape[1] * A.dtype.itemsize
        memory.require(size, f"a copy of the {rows.shape[0]} rows of positive weight", "give X without the other rows")
    return A.take(rows)


def copied_by_rows(A: np.ndarray) -> np.ndarray:
    """Copy rows in C order, by ranges between which Ctrl-C is seen."""
    out = np.empty(A.shape, dtype=A.dtype)
    for part in steps(A.shape[0], BLOCK_ENTRIES // max(math.prod(A.shape[1:]), 1)):
        out[part] = A[part]
    return out


def zeros_by_rows(n: int) -> np.ndarray:
    """Rows of zeros, shape (n, n), made by ranges: new memory can take a second per 100 MB at first touch."""
    out = np.empty((n, n))
    for part in steps(n, BLOCK_ENTRIES // max(n, 1)):
        out[part] = 0.0
    return out


def convert_to_csr(X: Any) -> Any:
    """Convert a sparse matrix to CSR, unless it is that already; large CSC and COO matrices go piece by piece."""
    if X.format in ("csc", "coo") and X.ndim == 2 and X.nnz > CONVERTED_ENTRIES:
        if X.format == "csc":  # some columns after the others, else some entries
            parts = row_steps_of_entries(X.indptr, CONVERTED_ENTRIES)
            return _join_converted_pieces(X, [(part.start, X[:, part].tocsr()) for part in parts])
        triples = ((X.data[part], (X.row[part], X.col[part])) for part in steps(X.nnz, CONVERTED_ENTRIES))
        return _join_converted_pieces(X, [(0, type(X)(one, shape=X.shape).tocsr()) for one in triples])
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
