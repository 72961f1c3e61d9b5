"""A kernel as the feature space of a fit: its Gram matrix, or those of its columns that are asked for.

Explicit rows answer the same questions, so that the certificate and the driver need not know which one they hold:
``expand`` turns representer coefficients alpha into an element w = sum alpha_i phi(x_i), ``decision`` gives f on the
training rows, ``squared_norm`` |w|^2, and ``gram`` computes the Gram matrix in interruptible pieces.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mdlearn._solvers.known_rows import KnownRows
from mdlearn.data.features.gram import (
    FoldGramRows,
    GramMemory,
    GramRowMaker,
    GramRowsCache,
    SharedGram,
    cheap_gram_diagonal,
    check_gram_of_function,
    gram_by_kernel,
    gram_diagonal,
    gram_product,
    mean_gram_diagonal,
    sum_of_gram_rows,
)
from mdlearn.data.features.kernel_rounding import (
    UNIT,
    check_squared_length,
    kernel_half_roundings,
    kernel_rounding_deficit,
    safe_sum,
)
from mdlearn.data.features.kernel_tiles import KernelTiles, make_kernel_tiles
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.arrays import LARGEST_ENTRY
from mdlearn.data.rows.distinct import EqualRows, equal_rows
from mdlearn.data.rows.rows import BLOCK_ENTRIES, Rows, read_only_rows, steps
from mdlearn.numerics.frozen_init import quick_init
from mdlearn.numerics.interruptible import finished
from mdlearn.numerics.lazy_property import kept
from mdlearn.numerics.pivoted_cholesky import pivoted_cholesky_of_kernel


@quick_init
@dataclass(frozen=True)
class KernelFeatures:
    """Features of a kernel, as the space of a fit; its Gram matrix is computed once, when first asked for."""

    rows: Rows  # shape (m, d): training rows, or the Gram matrix itself for a precomputed kernel
    kernel: Kernel
    pair: SharedGram | None = None  # where values come from that pairs of classes share
    _store: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    _known: GramRowsCache = field(default_factory=GramRowsCache, repr=False)
    by_rows: ClassVar[bool] = True
    """Whether models keep dual coefficients over the rows."""

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return self.rows.shape[0]

    @property
    def width(self) -> int:
        """Length of a coefficient vector: one coefficient per training row."""
        return self.n_rows

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: the type of the rows, and of the coefficients that a model keeps."""
        return self.rows.dtype

    @property
    def by_products(self) -> bool:
        """Whether inner products of rows need no matrix that is kept: engines can do with products and columns."""
        return self.kernel.plain

    def partial_factor(self, rank: int, constant: float) -> Generator[None, None, np.ndarray]:
        """Return a partial factor of the matrix with a constant added to every entry."""
        return (yield from pivoted_cholesky_of_kernel(self.columns(single=True).across, self.squares(), rank, constant))

    @property
    def reused(self) -> bool:
        """Whether several fits, the points of a path, share what is known of the Gram matrix."""
        return self._known.reused

    def reuse(self, memory: GramMemory | None = None, fold: FoldGramRows | None = None) -> None:
        """Note that several fits share them, in memory that other matrices had before; `fold`: so do other folds."""
        self._known.reused, self._known.fold = True, fold
        if memory is not None:
            self._known.memory = memory.owned_by(self._known)

    @property
    def concurrent(self) -> bool:
        """Whether several threads ask for values at the same time: rows are then not added to those that are known."""
        return self._known.concurrent

    def ask_at_once(self) -> None:
        """Note that several threads ask for values at the same time."""
        self._known.concurrent = True

    def merged(self, beside: Sequence[np.ndarray]) -> tuple[EqualRows, KernelFeatures] | None:
        """Groups of rows that are equal, with the numbers `beside` them, and features of a row of each.

        Decision values are those of the groups from then on. None where such rows are few.
        """
        known = self._known
        if known.merged is None or not all(map(known.merged[0].level, beside)):
            groups = equal_rows(self.rows, beside)
            if groups is None:
                return None
            known.merged = groups, KernelFeatures(self.rows.take(groups.where), self.kernel)
        groups, features = known.merged
        features._known.reused, features._known.concurrent = known.reused, known.concurrent
        features._known.fold = None if known.fold is None else known.fold.take(groups.where)
        return groups, features

    @property
    def whole(self) -> bool:
        """Whether the whole Gram matrix is there."""
        return "gram" in self._store

    @property
    def ready(self) -> bool:
        """Whether the Gram matrix, rows of it or products are there: a time limit can end a fit before that."""
        known = self._known
        ready = "gram" in self._store or known.rows is not None or bool(known.answers)
        return ready or (known.merged is not None and known.merged[1].ready)

    def most(self, alpha: np.ndarray) -> float:
        """Upper bound of |sum alpha_i phi(x_i)|^2 from k(x, x) alone; infinity where these are not known cheaply."""
        squares = cheap_gram_diagonal(self.kernel, self.rows) if alpha.any() else np.zeros(self.n_rows)
        if squares is None:
            return np.inf
        length = float(np.abs(alpha) @ np.sqrt(np.maximum(squares, 0.0)))
        return length * length  # a power of a Python float would raise where it overflows

    def expand(self, alpha: np.ndarray) -> np.ndarray:
        """Return alpha itself: an element of the feature space is kept as its representer coefficients."""
        return alpha

    def decision(self, coef: np.ndarray) -> np.ndarray:
        """Return f = G alpha; without any kernel values only alpha = 0 can be answered.

        The last two answers are kept: certificates ask for the same one several times.
        """
        if not self.ready and not coef.any():
            return np.zeros(self.n_rows)
        for asked, answer in self._known.answers:
            if asked.shape == coef.shape and (asked == coef).all():
                return answer.copy()
        if self._known.merged is not None and not self.whole:
            groups, features = self._known.merged
            return features.decision(groups.sums(coef))[groups.group]
        if "gram" not in self._store and self.n_rows**2 <= BLOCK_ENTRIES:
            # The whole is one block. It says more: its own rounding, the same of a point in every fit.
            if 2 * int(np.count_nonzero(coef)) >= self.n_rows:
                finished(self.gram())
        if "gram" in self._store:
            return self._remembered(coef, gram_product(self._store["gram"], coef))
        return finished(self.decided(coef))

    def _remembered(self, coef: np.ndarray, answer: np.ndarray) -> np.ndarray:
        self._known.answers = ((coef.copy(), answer.copy()), *self._known.answers[:1])
        return answer

    def decided(self, coef: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Return G alpha, which `decision` then knows, from rows that are known and from tiles of what alpha needs.

        Where alpha differs from the last one in few entries, these are all that it needs.
        """
        rest, f = coef.copy(), np.zeros(self.n_rows)
        if self._known.rows is not None:
            known = self._known.rows
            used = np.flatnonzero(coef[known.index])
            f += sum_of_gram_rows(known.values, used, coef[known.index[used]])
            rest[known.index] = 0.0
        for asked, answer in self._known.answers[:1]:
            change = coef - asked
            # Values of far larger coefficients would bring their rounding.
            larger = np.abs(asked).sum() > 2.0 * np.abs(coef).sum()
            if 2 * np.count_nonzero(change) < np.count_nonzero(rest) and not larger:
                rest, f = change, answer.copy()
        if self.kernel.name == "precomputed":
            f += self.rows.dot(rest)
        elif rest.any():
            missing = np.flatnonzero(rest)
            yield from self.columns(single=False).add(f, missing, rest[missing])
        return self._remembered(coef, f)

    def seconds_of_decision(self, n: int) -> float:
        """Wall seconds that decision values of n coefficients take, as far as one tile of values tells."""
        values = n * (self.n_rows if n < self.n_rows else 0.5 * self.n_rows)  # the whole matrix is symmetric
        return values * self._seconds_of_value

    @kept
    def _seconds_of_value(self) -> float:
        return self.columns(single=False).seconds_of_value()

    def columns(self, single: bool) -> KernelTiles:
        """The matrix as products and blocks that are forgotten: float64 values, or float32 ones where they will do."""
        return make_kernel_tiles(*self.plainest(), single)

    def plainest(self) -> tuple[Kernel, Rows]:
        """Kernel and rows that values of the matrix are made of."""
        return (self.kernel, self.rows) if self.kernel.name == "precomputed" else self._centred_copy()

    def squares_at_most(self) -> np.ndarray:
        """Upper bounds of the squared norms of rows, from what is known without products of them; here: the norms."""
        return self.squares()

    def squares(self) -> np.ndarray:
        """Squared norm of every row in feature space, k(x_i, x_i)."""
        return np.diagonal(self._store["gram"]).copy() if self.whole else gram_diagonal(self.kernel, self.rows)

    def gram_rows(self, index: np.ndarray) -> Generator[None, None, None]:
        """Compute the rows `index` of the Gram matrix of a plain kernel, to be remembered until `gram` is called."""
        known = self.cached_rows()
        if self._known.fold is not None:
            for part in steps(index.shape[0], max(1, BLOCK_ENTRIES // self.n_rows)):
                known.compute(index[part])
                yield
            return
        yield from self._row_maker.fill(index, known.room(index.shape[0]))
        known.note(index)

    def cached_rows(self) -> KnownRows:
        """Return the rows of the Gram matrix that are known, to which more may be added."""
        if self._known.rows is None:
            squares = self.squares()
            self._check_size(squares)
            m, fold = self.n_rows, self._known.fold
            maker = self._row_maker.single if fold is None else fold.maker()
            place, order = np.full(m, -1, dtype=np.int64), np.empty(m, dtype=np.int64)
            self._known.rows = KnownRows(self._known.memory.matrix("rows", m), place, order, squares, maker)
        return self._known.rows

    def room(self, n: int) -> np.ndarray:
        """Memory of a matrix between n rows, which the next one takes again."""
        return self._known.memory.matrix("between", n)

    @kept
    def _row_maker(self) -> GramRowMaker:
        return GramRowMaker(*self._centred_copy())

    def _check_size(self, squares: np.ndarray) -> None:
        """Raise ValueError where sums of squares of kernel values, times weights, would not be finite."""
        right = squares <= LARGEST_ENTRY
        if not right.all():
            row, name = int(right.argmin()), self.kernel.name
            raise ValueError(f"values of the {name} kernel overflow in row {row}; scale the features")

    def to_model(self, coef: np.ndarray, alpha: np.ndarray | None) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return what a model keeps of coefficients: no w, and the coefficients themselves as alpha."""
        return None, coef

    def from_model(self, coef: np.ndarray | None, alpha: np.ndarray | None) -> np.ndarray:
        """Coefficients in these features from what a model keeps: the inverse of `to_model`."""
        assert alpha is not None
        return alpha

    def attributes(self) -> dict[str, np.ndarray]:
        """Arrays that a model of these features has as attributes, by name."""
        mapping = self.mapping()
        return {} if mapping is None else mapping.attributes()

    def mapping(self) -> Any:
        """Map from new rows to the kernel's arguments (a LandmarkMap); None where rows are taken as they are."""
        return self.kernel.mapping()

    def matrix(self) -> np.ndarray:
        """Rows whose products with coefficients are the decision values: the Gram matrix."""
        return self._store["gram"]

    def typical_square(self, counts: np.ndarray) -> float:
        """Mean of k(x, x) over rows counted by weight, known before the Gram matrix is; the same for repeated rows."""
        if self._known.typical is None:
            self._known.typical = mean_gram_diagonal(self.kernel, self.rows, counts)
        return self._known.typical

    def squared_norm(self, coef: np.ndarray, f: np.ndarray | None = None) -> float:
        """Return alpha' G alpha; `f` is G alpha, where it is known.

        Raises ValueError when it is clearly negative: then G is no kernel matrix and the problem is not convex.
        """
        value = float(coef @ (self.decision(coef) if f is None else f))
        if value < 0:
            check_squared_length(value, np.abs(coef), self.squares(), self.blur(coef), self.kernel.title)
        return max(value, 0.0)

    def squared_length(self, coef: np.ndarray) -> float:
        """Squared norm of sum alpha_i phi(x_i) as a function of x: alpha' G alpha, the same as `squared_norm`."""
        return self.squared_norm(coef)

    def blur(self, coef: np.ndarray) -> np.ndarray:
        """Possible rounding error of every decision value of `coef`, from kernel values and from sums.

        Some matrix G + E is that of the kernel, and positive semidefinite: this is at least |E||coef|.
        """
        if not coef.any():
            return np.zeros(self.n_rows)
        sizes = np.abs(coef) * self.lengths
        off = UNIT * (self.roundings * sizes.sum() + float(self.roundings @ sizes))
        return self.lengths * (off + self._known.deficit * sizes)

    def most_blur(self, coef: np.ndarray) -> float:
        """Upper bound of `blur`, as if all rows had the length of the longest and most roundings."""
        merged = self._known.merged is not None and not self.whole
        share = 2.0 * UNIT * (float(self.roundings.max()) if merged else self._most_roundings)
        return self._longest_row * self._longest_row * safe_sum(coef) * (share + self._known.deficit)

    @kept
    def lengths(self) -> np.ndarray:
        """Length of every row in feature space."""
        return np.sqrt(np.maximum(self.squares(), 0.0))

    def longest(self, coef: np.ndarray) -> float:
        """Upper bound of the absolute value of every decision value."""
        return self._longest_row * float(np.abs(coef) @ self.lengths)

    @kept
    def _longest_row(self) -> float:
        return float(self.lengths.max())

    def haze(self, alpha: np.ndarray, element: np.ndarray | None) -> float:
        """Possible rounding error by which half of the squared norm of sum alpha_i phi(x_i) is too small."""
        return 0.5 * float(np.abs(alpha) @ self.blur(alpha))

    def most_haze(self, alpha: np.ndarray, element: np.ndarray | None) -> float:
        """Upper bound of `haze`, as for `most_blur`."""
        return 0.5 * safe_sum(alpha) * self.most_blur(alpha)

    @property
    def roundings(self) -> np.ndarray:
        """Half of the roundings of an entry of the Gram matrix, row by row: of the groups where these have values."""
        if self._known.merged is not None and not self.whole:
            groups, features = self._known.merged
            return features.roundings[groups.group]
        return self._roundings

    @kept
    def _roundings(self) -> np.ndarray:
        return kernel_half_roundings(*self.plainest()) if self.pair is None else self.pair.roundings()

    @kept
    def _most_roundings(self) -> float:
        return float(self._roundings.max())

    def corner(self, index: np.ndarray) -> Generator[None, None, np.ndarray]:
        """The Gram matrix of some rows of a plain kernel, or of any where the whole matrix is there."""
        if "gram" in self._store:
            return self._store["gram"][np.ix_(index, index)]
        kernel, rows = self._centred_copy()
        return (yield from gram_by_kernel(kernel, rows.take(index)))

    def _centred_copy(self) -> tuple[Kernel, Rows]:
        if self._known.centred_copy is None:
            pair = self.pair
            self._known.centred_copy = self.kernel.centred_copy(self.rows) if pair is None else pair.centred_copy()
        return self._known.centred_copy

    def gram(self) -> Generator[None, None, np.ndarray]:
        """Return the Gram matrix, computed by row blocks (yielding between them) at the first call."""
        if "gram" not in self._store:
            if self.kernel.name == "precomputed":
                self._store["gram"] = np.ascontiguousarray(self.rows.block(slice(None)))
            else:
                self._store["gram"] = yield from self._computed_gram()
                if self.kernel.function is not None:
                    check_gram_of_function(self._store["gram"], self.kernel, self.rows)
            self._check_size(np.diagonal(self._store["gram"]))
            self._store["gram"] = read_only_rows(self._store["gram"])
            self._known.rows = None
            self._known.memory.numbers.clear()  # beside the whole matrix it would be one that nobody asked for
            if not self.kernel.plain:
                self._known.deficit = kernel_rounding_deficit(self._store["gram"], self.roundings, self.kernel.title)
        return self._store["gram"]

    def _computed_gram(self) -> Generator[None, None, np.ndarray]:
        if self.pair is not None:
            return (yield from self.pair.gram())
        return (yield from gram_by_kernel(*self._centred_copy()))


Features = LinearFeatures | KernelFeatures
"""The feature space of a fit."""


def features_of_kernel(rows: Rows, kernel: Kernel) -> Features:
    """Features that a kernel makes of training rows: the rows themselves for the linear one."""
    return LinearFeatures(rows) if kernel.name == "linear" else KernelFeatures(rows, kernel)
