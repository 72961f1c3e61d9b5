"""Explicit kernel columns: f(x) = sum_j coef_j k(x, z_j) + b with basis rows z_j among the training rows.

Where an objective penalises the coefficients of a basis instead of a norm in function space, a kernel is nothing but a
way to make columns. They are made by row blocks when first asked for, and kept where they fit `COPY_BYTES`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.feature_map import check_feature_map_size
from mdlearn.data.features.gram import cheap_gram_diagonal, gram_diagonal
from mdlearn.data.features.kernel_rounding import safe_length
from mdlearn.data.features.kernel_tiles import SquaredTiles, TiledMatrix
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.distinct import distinct
from mdlearn.data.rows.rows import (
    BLOCK_ENTRIES,
    COPY_BYTES,
    SPAN_ENTRIES,
    DenseRows,
    Rows,
    Selection,
    largest_entry_of_rows,
    steps,
)
from mdlearn.data.validation import Data
from mdlearn.numerics import memory
from mdlearn.numerics.lazy_property import kept
from mdlearn.numerics.pivoted_cholesky import pivoted_cholesky_of_kernel, pivoted_cholesky_of_square


@dataclass(frozen=True, eq=False)
class BasisColumns(Rows):
    """Kernel columns of a basis: values k(x_i, z_j) as rows of numbers, shape (m, N), computed by blocks."""

    source: Rows  # shape (m, d): training rows, or the Gram matrix itself for a precomputed kernel
    kernel: Kernel
    index: np.ndarray  # shape (N,), intp: position of each basis row in `source`
    _store: dict[str, Any] = field(default_factory=dict, repr=False)
    made_when_asked: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, int]:
        return self.source.shape[0], int(self.index.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    @property
    def complete(self) -> bool:
        """Whether all blocks have been computed once, or are never kept (a time limit can end a fit before that)."""
        if "done" in self._store:
            return bool(self._store["done"].all())
        return "basis" in self._store or (self.forgotten and bool(self.tiled.answers))

    @kept
    def symmetric(self) -> bool:
        """Whether they are a kernel matrix, all rows in order, whose values are made of inner products."""
        return self.kernel.plain and np.array_equal(self.index, np.arange(self.shape[0]))

    @property
    def kept_bytes(self) -> float:
        """Bytes of all values, where these are kept; else 0."""
        m, n = self.shape
        return 8.0 * m * n if 8.0 * m * n <= COPY_BYTES else 0.0

    @property
    def forgotten(self) -> bool:
        """Whether products are made of tiles of a symmetric matrix that is too large to be kept."""
        return not self.kept_bytes and self.symmetric

    @kept
    def tiled(self) -> TiledMatrix:
        """The kernel matrix as products, where it is symmetric."""
        return TiledMatrix(*self.kernel.centred_copy(self.source))

    def spans(self) -> Iterable[slice]:
        """Row ranges of a few SPAN_ENTRIES: a kernel block is worth some rows at once."""
        return steps(self.shape[0], self._step)

    @property
    def _step(self) -> int:
        return max(64, 4 * SPAN_ENTRIES // self.shape[1])

    def block(self, rows: Selection) -> np.ndarray:
        """Kernel values of some rows; a view where they are kept and `rows` is a slice."""
        m, n = self.shape
        if not self.kept_bytes:
            return self._values(rows)
        # Two threads may fill the same part: with the same bits.
        if "done" not in self._store:
            self._store.setdefault("kept", np.empty((m, n)))
            self._store.setdefault("done", np.zeros(-(-m // self._step), dtype=bool))
        kept, done = self._store["kept"], self._store["done"]
        parts = np.unique(np.arange(m)[rows] // self._step)
        for part in parts[~done[parts]].tolist():
            span = slice(part * self._step, min(m, (part + 1) * self._step))
            kept[span] = self._values(span)
            done[part] = True
        values: np.ndarray = kept[rows]
        return values

    def _values(self, rows: Selection) -> np.ndarray:
        if self.kernel.name == "precomputed":
            self._store["basis"] = self.source
            return np.ascontiguousarray(self.source.block(rows)[:, self.index])
        values = self.kernel.block(self.source.take(rows), self._basis)
        check_feature_map_size(largest_entry_of_rows(values) if values.size else 0.0)
        return values

    @property
    def folded(self) -> bool:
        """Whether products go through w = sum_j coef_j z_j: where kernel values are too many to be kept."""
        return self.kernel.name == "linear" and self.source.sparse and not self.kept_bytes

    def dot(self, w: np.ndarray) -> np.ndarray:
        if self.forgotten:
            return self.tiled.dot(w)
        return self.source.dot(self._basis.adjoint(w)) if self.folded else super().dot(w)

    def adjoint(self, v: np.ndarray) -> np.ndarray:
        if self.forgotten:
            return self.tiled.dot(v)
        return self._basis.dot(self.source.adjoint(v)) if self.folded else super().adjoint(v)

    @property
    def _basis(self) -> Rows:
        """The basis rows."""
        if "basis" not in self._store:
            self._store["basis"] = self.source.take(self.index)
        basis: Rows = self._store["basis"]
        return basis

    def take(self, rows: Selection) -> DenseRows:
        """Selected rows as `DenseRows`, their kernel values computed."""
        return DenseRows(self.block(rows))

    def matrix(self) -> np.ndarray:
        return self.block(slice(None))

    def inner(self, others: Rows, centre: np.ndarray | None = None) -> np.ndarray:
        dense = others.take(slice(None)) if isinstance(others, BasisColumns) else others
        return self.take(slice(None)).inner(dense, centre)


@dataclass(frozen=True)
class BasisFeatures(LinearFeatures):
    """Features by a basis: phi(x) = (k(x, z_1), ..., k(x, z_N)), with |w|^2 = sum_j ridge_j w_j^2.

    A basis row that stands for several equal ones shares its coefficient among them: N copies with coefficients a / N
    each cost a^2 / N, so that its ridge is one over its weight.
    """

    rows: BasisColumns  # shape (m, N)
    places: np.ndarray = field(kw_only=True)  # shape (N,), intp: position of each basis row among the caller's rows
    by_rows: ClassVar[bool] = False

    def computed(self) -> Generator[None, None, None]:
        """Compute the columns, which are kept where they fit."""
        for span in self.rows.spans():
            self.rows.block(span)
            yield
            if "done" not in self.rows._store:
                return

    def square(self, counts: np.ndarray) -> np.ndarray | None:
        """The kernel matrix where every row is in the basis, in order, and equal ones share a coefficient."""
        index, ridge = self.rows.index, np.ones(self.width) if self.ridge is None else self.ridge
        whole = np.array_equal(index, np.arange(self.n_rows)) and np.array_equal(ridge * counts, np.ones(self.width))
        return self.rows.matrix() if whole else None

    def squared_length(self, coef: np.ndarray) -> float:
        """Squared norm of f in the kernel's function space."""
        index, total = self.rows.index, 0.0
        if self.rows.forgotten:
            return float(coef @ self.rows.dot(coef))
        for part in steps(index.shape[0], BLOCK_ENTRIES // index.shape[0]):
            total += float(coef[part] @ self.rows.block(index[part]) @ coef)
        return total

    @property
    def by_products(self) -> bool:  # type: ignore[override]
        """Whether inner products of rows are K diag(1 / ridge) K, of a kernel matrix K that need not be kept."""
        return self.rows.symmetric

    def columns(self, single: bool) -> SquaredTiles:
        """Inner products of rows, by two products with the kernel matrix."""
        return SquaredTiles(self.rows.tiled.tiles(single), self._weights)

    @property
    def _weights(self) -> np.ndarray:
        return np.ones(self.width) if self.ridge is None else 1.0 / self.ridge

    def partial_factor(self, rank: int, constant: float) -> Generator[None, None, np.ndarray]:
        """Return a partial factor of inner products with a constant added, its other columns orthogonal in counts."""
        squares, tiles = gram_diagonal(self.rows.kernel, self.rows.source), self.rows.tiled.tiles(single=True)
        L = yield from pivoted_cholesky_of_kernel(tiles.across, squares, rank, 0.0)
        return (yield from pivoted_cholesky_of_square(L, self._weights, constant))

    def squares_at_most(self) -> np.ndarray:
        """Upper bounds of the squared norms of rows: k(x, z)^2 <= k(x, x) k(z, z)."""
        squares = np.maximum(gram_diagonal(self.rows.kernel, self.rows.source), 0.0)
        check_feature_map_size(float(squares.max(initial=0.0)))
        own = squares[self.rows.index]
        found: np.ndarray = squares * float((own if self.ridge is None else own / self.ridge).sum())
        return found

    def typical_square(self, counts: np.ndarray) -> float:
        """Mean share that a row's own column has in its squared norm, over rows counted by weight."""
        return float(np.average(np.square(gram_diagonal(self.rows.kernel, self.rows.source)), weights=counts))

    @kept
    def lengths(self) -> np.ndarray:
        """Length of every column over the rows; upper bounds where products are made of tiles."""
        if not self.rows.forgotten:
            return super().lengths
        squares = gram_diagonal(self.rows.kernel, self.rows.source)
        return np.sqrt(squares * float(squares.sum()))

    @kept
    def row_lengths(self) -> np.ndarray:
        """Length of every row; upper bounds where products are made of tiles."""
        return self.lengths if self.rows.forgotten else super().row_lengths

    @kept
    def longest_row(self) -> float:
        """Length of the longest row; an upper bound where products are made of tiles."""
        return float(self.row_lengths.max()) if self.rows.forgotten else super().longest_row

    @kept
    def all_lengths(self) -> float:
        """Root of the sum of the squared lengths of all rows; an upper bound where products are made of tiles."""
        return safe_length(self.row_lengths) if self.rows.forgotten else super().all_lengths

    def seconds_of_decision(self, n: int) -> float:
        """Wall seconds of coefficients and decision values of n multipliers, as far as a tile of values tells."""
        return self._seconds_of_value * self.n_rows**2

    @kept
    def _seconds_of_value(self) -> float:
        return self.rows.tiled.tiles(single=False).seconds_of_value()

    def most(self, alpha: np.ndarray) -> float:
        """Upper bound of the squared norm of `expand`: k(x, z)^2 <= k(x, x) k(z, z)."""
        columns = self.rows
        squares = cheap_gram_diagonal(columns.kernel, columns.source) if alpha.any() else None
        if squares is None:
            return super().most(alpha)
        own = squares[columns.index] if self.ridge is None else squares[columns.index] / self.ridge
        length = float(np.abs(alpha) @ np.sqrt(np.maximum(squares, 0.0)))
        return length * length * float(own.sum())

    def expand(self, alpha: np.ndarray) -> np.ndarray:
        """Return w = (X' alpha) / ridge; alpha = 0 needs no kernel values."""
        return super().expand(alpha) if alpha.any() else np.zeros(self.width)

    def decision(self, coef: np.ndarray) -> np.ndarray:
        """Return f on the training rows; coef = 0 needs no kernel values."""
        return self.rows.dot(coef) if coef.any() else np.zeros(self.n_rows)

    def blur(self, coef: np.ndarray) -> np.ndarray:
        """Possible error of every decision value: rounding of sums, and of w where models predict by w in float32."""
        return super().blur(coef) + self._beside(coef)

    def haze(self, alpha: np.ndarray, element: np.ndarray | None) -> float:
        """Possible error by which a bound is too large: of the squared norm, and of predictions weighted by alpha."""
        if element is None:
            return np.inf if self._folds else super().haze(alpha, element)
        return super().haze(alpha, element) + float(np.abs(alpha) @ self._beside(element))

    def most_blur(self, coef: np.ndarray) -> float:
        """Infinity where predictions are off by more than the rows say."""
        return np.inf if self._folds else super().most_blur(coef)

    def most_haze(self, alpha: np.ndarray, element: np.ndarray | None) -> float:
        """Infinity where predictions are off by more than the rows say."""
        return np.inf if self._folds else super().most_haze(alpha, element)

    @property
    def _folds(self) -> bool:
        """Whether models predict by w in float32, and not by the coefficients of basis rows."""
        return self.rows.kernel.name == "linear" and self.dtype != np.float64

    def _beside(self, coef: np.ndarray) -> np.ndarray:
        """Absolute difference of predictions by a rounded w from those of the basis rows, for every row."""
        if not (self._folds and coef.any()):
            return np.zeros(self.n_rows)
        w = np.asarray(self.to_model(coef, None)[0])
        return np.abs(self.rows.source.dot(w.astype(self.dtype).astype(np.float64) - w))

    def to_model(self, coef: np.ndarray, alpha: np.ndarray | None) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return w of a linear kernel (else None), and the coefficients as those of their rows."""
        columns = self.rows
        spread = np.zeros(self.n_rows)
        spread[columns.index] = coef
        return columns.source.adjoint(spread) if columns.kernel.name == "linear" else None, spread

    def from_model(self, coef: np.ndarray | None, alpha: np.ndarray | None) -> np.ndarray:
        """Coefficients of the basis rows from those of all rows."""
        assert alpha is not None
        found: np.ndarray = alpha[self.rows.index]
        return found

    def attributes(self) -> dict[str, np.ndarray]:
        """`basis_indices_`: positions of the basis rows among the caller's rows."""
        return {"basis_indices_": self.places}


def check_basis_indices(name: str, value: Any) -> np.ndarray:
    """Return the row indices of a basis as int64; `basis_positions` compares them with the data."""
    index = np.asarray(value)
    wanted = f"{name} needs to be a one-dimensional array of row numbers (integers >= 0, each once)"
    if index.dtype.kind not in "iu":
        raise TypeError(f"{wanted}; got {'values of dtype ' + str(index.dtype) if index.ndim else repr(value)}")
    if index.ndim != 1 or index.shape[0] == 0:
        raise ValueError(f"{wanted}; got shape {index.shape}")
    if int(index.min()) < 0:
        raise ValueError(f"{wanted}; got {int(index.min())}")
    values, counts = np.unique(index, return_counts=True)
    if values.shape[0] < index.shape[0]:
        raise ValueError(f"{wanted}; {int(values[counts > 1][0])} comes more than once")
    return index.astype(np.int64)


def basis_positions(name: str, index: np.ndarray, data: Data) -> np.ndarray:
    """Positions in `data` of the caller's basis rows `index`; rows that are not part of the problem drop out."""
    if int(index.max()) >= data.n_given:
        raise ValueError(
            f"{name} names row {int(index.max())}, but X has {data.n_given} rows; give 0 to {data.n_given - 1}"
        )
    at = np.searchsorted(data.rows, index)
    inside = at < data.rows.shape[0]
    inside[inside] = data.rows[at[inside]] == index[inside]
    if not inside.any():
        raise ValueError(f"{name} names no row of positive weight of these classes; give at least one")
    return at[inside].astype(np.intp)


def basis_features(data: Data, kernel: Kernel, index: np.ndarray, shared: bool) -> BasisFeatures:
    """Features of the basis rows at `index`; `shared`: a basis row of weight w stands for w equal ones."""
    counts = data.counts[index]
    ridge = 1.0 / counts if shared and (counts != 1.0).any() else None
    return BasisFeatures(BasisColumns(data.X, kernel, index), ridge, places=data.rows[index])


def choose_basis_by_cholesky(data: Data, kernel: Kernel, tol: float) -> Generator[None, Any, np.ndarray]:
    """Choose basis rows by incomplete Cholesky factorisation of the Gram matrix with diagonal pivoting.

    The next row is the one that is farthest, in function space, from the span of those before; the first of them in
    lexicographic order. It ends when no squared distance is above `tol` times the largest k(x, x). Each distinct row
    is looked at once. There is always a first row, also where the kernel is 0 everywhere or `tol` is 1. Yields after
    each row, and ends when it is told that the time is up; O(m N^2) operations, m N numbers.
    """
    given = kernel.name == "precomputed"
    where = np.arange(data.X.shape[0]) if given else distinct(data.X, data.counts).where
    rows = data.X if given else data.X.take(where)
    n = where.shape[0]
    left, late = np.full(n, -np.inf), False
    for span in steps(n, 64):
        left[span] = np.diagonal(rows.block(span)[:, span] if given else kernel.block(rows.take(span), rows.take(span)))
        late = yield
        if late:
            break
    floor = max(tol, n * float(np.finfo(float).eps)) * float(left.max())
    L = np.empty((min(n, 64), n))
    chosen: list[int] = []
    while left.max() > floor and not (late and chosen):
        p, r = int(np.argmax(left)), len(chosen)
        if r == L.shape[0]:
            size = min(n, 2 * r)
            memory.require(8.0 * size * n, f"a basis of more than {r} rows", "raise basis_tol")
            L = np.concatenate([L, np.empty((size - r, n))])
        column = rows.block(slice(p, p + 1))[0] if given else kernel.block(rows, rows.take(slice(p, p + 1)))[:, 0]
        L[r] = (column - L[:r, p] @ L[:r]) / np.sqrt(left[p])
        left -= L[r] * L[r]
        left[p] = -np.inf
        chosen.append(p)
        late = yield
    return where[np.array(chosen or [int(np.argmax(left))], dtype=np.intp)]
