"""Training rows as they were given: dense or CSR, float32 or float64, any layout; worked on in row blocks.

Nothing here copies X: products go through blocks, which are brought to float64 one at a time, so that sums are float64
whatever the rows are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mdlearn._solvers import reading
from mdlearn.data.rows.scratch import Room, ScratchPiece
from mdlearn.numerics.lazy_property import kept

Selection = slice | np.ndarray
Change = Callable[[slice, np.ndarray], np.ndarray]
"""What some rows become: called with their range and one number each."""
BLOCK_ENTRIES = 1 << 20
"""Entries of a block in a product of matrices: 8 MB of float64."""
SPAN_ENTRIES = 1 << 17
"""Entries of a block in a product with a vector: 1 MB of float64, which stays in the cache after its conversion."""
WHOLE_ENTRIES = 1 << 19
"""Entries of dense float64 rows up to which a pass is one call: nothing is converted, and it takes 0.5 ms at most."""
TRANSPOSED_COLUMNS = 64
"""Columns from which a product with several vectors is faster transposed."""
PASS_ENTRIES = 1 << 24
"""Entries that a pass goes through between two heartbeats: about 10 ms."""
COPY_BYTES = 256e6
"""Bytes that a copy of rows may take in an engine, where a copy makes it faster."""


def read_only_rows(A: np.ndarray) -> np.ndarray:
    """Read-only view of the array of training rows, or of another: engines must not change what they are judged by."""
    view = A.view()
    view.setflags(write=False)
    return view


def steps(n: int, step: int) -> Iterable[slice]:
    """Row ranges of `step` rows (at least one) that cover 0 ... n - 1: a tuple where one will do.

    Small work has one range, and a generator that gives it costs as much as the work.
    """
    step = max(1, step)
    if 0 < n <= step:
        return (slice(0, n),)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def row_steps_of_entries(ends: np.ndarray, most: int) -> Iterable[slice]:
    """Ranges of the rows (or columns) of a compressed matrix, of `most` stored entries (or one row) at most.

    A tuple where one will do, as of `steps`.
    """
    n = ends.shape[0] - 1
    if n > 0 and ends[n] - ends[0] <= most:
        return (slice(0, n),)
    return _several_row_steps_of_entries(ends, most)


def _several_row_steps_of_entries(ends: np.ndarray, most: int) -> Iterator[slice]:
    start = 0
    while start < ends.shape[0] - 1:
        stop = max(start + 1, int(np.searchsorted(ends, ends[start] + most, side="right")) - 1)
        yield slice(start, stop)
        start = stop


class Rows(ABC):
    """Base class of training rows, shape (m, d): all that engines, kernels and the certificate know of X.

    Row blocks are the inner currency. A source of rows says how a block of them looks in float64 (`block`) and which
    ranges are worth one step (`spans`); products follow. It need not hold its rows in memory, only the blocks. The
    compiled loops are the exception: they read the arrays of `DenseRows` and `CsrRows` as they are.

    Attributes
    ----------
    sparse : bool
        Whether most entries are zeros that are not stored: then `block` costs more than the entries do.
    """

    sparse: ClassVar[bool] = False
    made_when_asked: ClassVar[bool] = False
    """Whether blocks are computed when they are asked for, and checked then."""

    @property
    def complete(self) -> bool:
        """Whether nothing is left to compute."""
        return True

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(m, d)."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: the type that models of these rows have."""

    @property
    def entry_dtype(self) -> np.dtype[Any]:
        """float32 or float64: the type of the numbers as they are kept."""
        return self.dtype

    @abstractmethod
    def block(self, rows: Selection) -> np.ndarray:
        """Selected rows as a dense float64 array that BLAS takes as it is; possibly a view, so never written to."""

    @abstractmethod
    def take(self, rows: Selection) -> Rows:
        """Selected rows, as `Rows`."""

    def write(self, rows: np.ndarray, out: np.ndarray) -> None:
        """Write selected rows into a float64 array."""
        out[...] = self.block(rows)

    def piece(self, rows: Selection, room: Room) -> ScratchPiece:
        """Selected rows for several products, one after the other; good until the room is used for other rows."""
        return ScratchPiece(self.block(rows), room)

    def scaled(self, by: np.ndarray) -> Rows:
        """These rows in float64 with their columns multiplied by numbers; for few rows."""
        return DenseRows(self.block(slice(None)) * by)

    def written(self) -> Generator[None, None, Any]:
        """Write out what compiled loops read, in interruptible pieces; here it is there already."""
        return None
        yield  # what makes this a generator

    @abstractmethod
    def matrix(self) -> Any:
        """All rows in float64 as a user's function takes them: an array, or a CSR matrix."""

    @abstractmethod
    def inner(self, others: Rows, centre: np.ndarray | None = None) -> np.ndarray:
        """Inner products with other rows, float64 and dense; of dense rows also with a `centre` taken from both."""

    @property
    def whole(self) -> Any:
        """All rows in the form that multiplies fastest, where one range of them is a pass; else None."""
        spans = self.spans()
        return self._piece(*spans) if isinstance(spans, tuple) else None

    @property
    def coupled(self) -> int:
        """Columns that rows connect: X'DX consists of diagonal blocks of this size."""
        return self.shape[1]

    @property
    def without_zeros(self) -> Rows:
        """The rows as passes with one vector go over them: dense ones without zeros, where such a copy was made."""
        return vars(self).get("csr_copy", self)

    @property
    def n_entries(self) -> int:
        """Entries that a pass goes through."""
        m, d = self.shape
        return m * d

    def spans(self) -> Iterable[slice]:
        """Row ranges to go through one after the other, of at most SPAN_ENTRIES entries each (or one row)."""
        m, d = self.shape
        return steps(m, SPAN_ENTRIES // d)

    def largest(self) -> float:
        """Largest size of an entry; NaN or infinity where X holds one."""
        whole = self.whole
        if whole is not None:
            return largest_entry_of_rows(whole)
        return float(np.max([largest_entry_of_rows(self._piece(rows)) for rows in self.spans()]))

    def small_by_squares(self, most: float) -> bool:
        """Whether the sum of all squares says that every entry is finite and at most `most`; False: it does not.

        One pass finds it, and the squared length of every row, which is kept.
        """
        return False

    def dot(self, w: np.ndarray) -> np.ndarray:
        """X w in float64, for w of shape (d,) or (d, k)."""
        w = np.asarray(w, dtype=np.float64)
        whole = self.whole if w.ndim == 1 else None
        if whole is not None:
            return np.asarray(whole @ w)
        m, d = self.shape
        out = np.empty((m, *w.shape[1:]))
        wide = w.ndim == 2 and d >= TRANSPOSED_COLUMNS and not self.sparse
        for rows in self.spans():
            piece = self._piece(rows)
            # As in `adjoint`, for rows that are not too short.
            out[rows] = (w.T @ piece.T).T if wide else piece @ w
        return out

    def adjoint(self, v: np.ndarray) -> np.ndarray:
        """X' v in float64, for v of shape (m,) or (m, k)."""
        whole = self.whole if v.ndim == 1 else None
        if whole is not None:
            return np.asarray(whole.T @ v)
        out = np.zeros((*v.shape[1:], self.shape[1]))
        for rows in self.spans():
            piece = self._piece(rows)
            # BLAS is twice as fast with the long side last.
            out += piece.T @ v[rows] if v.ndim == 1 else v[rows].T @ piece
        return out.T

    def dot_and_adjoint(self, w: np.ndarray, last: float, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return z = X w + last, and X' (weights z), for w of shape (d,) and weights of shape (m,)."""
        z = self.dot(w) + last
        return z, self.adjoint(weights * z)

    def squares(self, scale: np.ndarray | None = None, centre: np.ndarray | None = None) -> np.ndarray:
        """sum_j x_ij^2 / scale_j of every row, float64; of dense rows also of x_i - centre."""
        out = np.empty(self.shape[0])
        for rows in self.spans():
            B = self._piece(rows) if centre is None else self._piece(rows) - centre
            if scale is None and B.flags.c_contiguous:
                reading.row_squares(B, out[rows])
            else:
                out[rows] = np.einsum("ij,ij->i", B, B if scale is None else B / scale)
        return out

    def spread(self, counts: np.ndarray, mean: float) -> float:
        """sum_ij counts_i (x_ij - mean)^2 over all entries, a sum of terms that do not cancel."""
        return float(counts @ self.squares(centre=np.full(self.shape[1], mean)))

    def column_squares(self, weights: np.ndarray) -> np.ndarray:
        """sum_i weights_i x_ij^2 of every column, float64."""
        out = np.zeros(self.shape[1])
        for rows in self.spans():
            B = self._piece(rows)
            out += np.einsum("ij,ij,i->j", B, B, weights[rows])  # memory for squares would cost ten times the sums
        return out

    def _piece(self, rows: slice) -> Any:
        """Rows of a range in float64, in the form that multiplies fastest."""
        return self.block(rows)


@dataclass(frozen=True, eq=False)
class RowsInMemory(Rows):
    """Training rows of an array or matrix in memory (or mapped into it)."""

    X: Any  # shape (m, d)
    # Type that models have; None: that of X. Features of float32 rows are float64, models of them float32.
    model_dtype: np.dtype[Any] | None = field(default=None, kw_only=True)

    @kept
    def shape(self) -> tuple[int, int]:
        m, d = self.X.shape
        return int(m), int(d)

    @kept
    def dtype(self) -> np.dtype[Any]:
        return self.entry_dtype if self.model_dtype is None else self.model_dtype

    @property
    def entry_dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.X.dtype
        return dtype

    def through(self, w: np.ndarray, change: Change) -> Generator[None, None, np.ndarray]:
        """Return X' v in float64, v = change(rows, X w): one pass, every block is used twice while it is at hand."""
        out, done = np.zeros(self.shape[1]), 0
        for rows in self.spans():
            piece = self._piece(rows)
            out += piece.T @ change(rows, piece @ w)
            done += (rows.stop - rows.start) * self.shape[1]
            if done >= PASS_ENTRIES:
                done = 0
                yield
        yield
        return out


@dataclass(frozen=True, eq=False, init=False)
class DenseRows(RowsInMemory):
    """Rows of a dense array of float32 or float64, in any memory layout.

    Attributes
    ----------
    X : ndarray of shape (m, d)
    model_dtype : dtype or None
    suits_blas : bool
        Whether BLAS takes X as it is, and so any range of its rows.
    """

    X: np.ndarray
    suits_blas: bool = field(init=False, repr=False)

    def __init__(self, X: np.ndarray, *, model_dtype: np.dtype[Any] | None = None) -> None:
        own = vars(self)
        own["X"], own["model_dtype"] = X, model_dtype
        self.__post_init__()

    def __post_init__(self) -> None:
        # Derived dataclasses, as those of plugins, have an __init__ of their own.
        own, X, model_dtype = vars(self), self.X, self.model_dtype
        own["X"], own["suits_blas"], own["shape"] = read_only_rows(X), _rows_suit_blas(X), X.shape
        own["dtype"] = X.dtype if model_dtype is None else model_dtype

    def take(self, rows: Selection) -> DenseRows:
        """Selected rows as `DenseRows`; a view where `rows` is a slice, else a copy made block by block."""
        some = self.X[rows] if isinstance(rows, slice) else gathered_rows(self.X, rows)
        return DenseRows(some, model_dtype=self.model_dtype)

    def piece(self, rows: Selection, room: Room) -> ScratchPiece:
        """Selected rows for several products; what is not float64 is converted within the room."""
        some = self.X[rows]
        if some.dtype == np.float64:
            return ScratchPiece(self.block(rows), room)
        held = room.array("rows", some.shape)
        held[...] = some
        return ScratchPiece(held, room)

    def block(self, rows: Selection) -> np.ndarray:
        """Selected rows as a dense float64 array; a view where no conversion is needed and `rows` is a slice."""
        some = self.X[rows]
        return some if self.suits_blas and isinstance(rows, slice) else _rows_for_blas(some)

    @property
    def whole(self) -> Any:
        """X itself where BLAS takes it as it is: a small fit asks a dozen times."""
        m, d = self.shape
        return self.X if self.suits_blas and 0 < m * d <= WHOLE_ENTRIES else super().whole

    def small_by_squares(self, most: float) -> bool:
        X = self.X
        if not (self.suits_blas and X.flags.c_contiguous):
            return False
        squares = np.empty(X.shape[0])
        if X.size <= WHOLE_ENTRIES:
            total = reading.row_squares(X, squares)
        else:
            total = sum(reading.row_squares(X[rows], squares[rows]) for rows in self.spans())
        small = total <= most * most
        if small:
            squares.flags.writeable = False
            vars(self)["row_squares"] = squares
        return small

    def squares(self, scale: np.ndarray | None = None, centre: np.ndarray | None = None) -> np.ndarray:
        found = vars(self).get("row_squares") if scale is None and centre is None else None
        return super().squares(scale, centre) if found is None else found

    def matrix(self) -> np.ndarray:
        return np.asarray(self.X, dtype=np.float64)

    def inner(self, others: Rows, centre: np.ndarray | None = None) -> np.ndarray:
        """Inner products with other rows, less `centre` on both sides, float64."""
        if others.sparse:
            return others.inner(self).T
        assert isinstance(others, DenseRows)
        width, out = self.shape[1], None
        if centre is not None or not (_rows_suit_blas(self.X) and _rows_suit_blas(others.X)):
            # Converted by ranges of columns: a block of few but very long rows is no small block.
            width = max(64, BLOCK_ENTRIES // max(self.shape[0], others.shape[0]))
        for columns in steps(self.shape[1], width):
            left, right = _rows_for_blas(self.X[:, columns]), _rows_for_blas(others.X[:, columns])
            if centre is not None:
                left, right = left - centre[columns], right - centre[columns]
            product = left @ right.T
            out = product if out is None else np.add(out, product, out=out)
        assert out is not None
        return out


def gathered_rows(A: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Gathered rows at some places, in C order: one call would look at no signal for as long as the copy takes."""
    places = np.flatnonzero(places) if places.dtype == np.bool_ else places
    at_once = BLOCK_ENTRIES // max(math.prod(A.shape[1:]), 1)
    by_rows = np.asarray(A) if A.flags.c_contiguous else None  # of others, `take` would copy all rows first
    if by_rows is not None and places.shape[0] <= at_once:
        return by_rows.take(places, axis=0)
    out = np.empty((places.shape[0], *A.shape[1:]), dtype=A.dtype)
    for part in steps(places.shape[0], at_once):
        out[part] = A[places[part]] if by_rows is None else by_rows.take(places[part], axis=0)
    return out


def largest_entry_of_rows(piece: np.ndarray) -> float:
    """Largest absolute value among entries of rows, without a copy of their size; NaN where there is one."""
    return float(np.maximum(piece.max(), -piece.min()))


def _rows_suit_blas(A: np.ndarray) -> bool:
    """Whether BLAS takes training rows as they lie in memory; NumPy multiplies others by slow loops."""
    (m, d), (down, along), size = A.shape, A.strides, A.itemsize
    return A.dtype == np.float64 and ((along == size and down >= d * size) or (down == size and along >= m * size))


def _rows_for_blas(A: np.ndarray) -> np.ndarray:
    """Training rows themselves where BLAS takes them, else a copy in float64 by ranges."""
    return A if _rows_suit_blas(A) else np.ascontiguousarray(A, dtype=np.float64)
