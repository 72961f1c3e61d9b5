"""Symmetric matrices by blocks, what pairs of classes share of them, and what is known of one that is never whole."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mdlearn._solvers import gaussian
from mdlearn._solvers.gaussian import RowMaker
from mdlearn._solvers.known_rows import KnownRows, SelectedRows
from mdlearn._solvers.products import add_rows, write_symmetric
from mdlearn.data.features.kernel_rounding import kernel_half_roundings
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.rows.distinct import EqualRows, distinct
from mdlearn.data.rows.rows import Rows, steps
from mdlearn.numerics.pieces_in_threads import over_pieces

BLOCK_OPERATIONS = 1 << 28
"""Floating-point operations of one block of a symmetric matrix."""
CACHED_LENGTH, THIN, BLOCK_LENGTH = 128, 128, 1024
"""Length of products up to which blocks are THIN x BLOCK_LENGTH entries: what a cache of 1 MB holds."""
DIFFERENCES_LENGTH = 48
"""Columns up to which values of all rows are made of differences."""
SINGLE_ROW_LENGTH = 128
"""Columns up to which rows that steps ask for are made one at a time, of differences. A value costs twice as much as in
a group of rows, but groups are made of twice as many rows as steps ask for. On 1,800 to 5,600 rows of 64 columns
(digits), 121 (mushroom) and 123 (a9a) fits took 0.4 to 1 of the time, of 256 (usps) 1 to 1.1."""

GATHERED_SHARE, ADDED_SHARE = 0.2, 0.8
"""Shares of entries that are not 0 up to which rows of a matrix take less time than the matrix as it lies: gathered
ones for several vectors, and ones that are added where they lie. With 0.8 these took 0.4 to 0.9 of the time of BLAS."""
GATHERED_ENTRIES, ADDED_ENTRIES = 1 << 16, 1 << 23
"""Entries of a matrix that are gathered at once, which stay in the cache until they are added, and of rows that are
added in one call, which takes some milliseconds."""
CLASS_BLOCK_BYTES, SHARING_PAIR_ROWS = float(1 << 26), 1024
"""Bytes of rows and Gram matrices of all classes, and rows of the largest pair, up to which pairs share them.

Of the matrix of a larger pair, engines compute some rows alone: 4,435 rows in six classes (satimage) took 1.1 times as
long with shared values, 1,797 in ten (digits) 0.8 times."""
LEAST_SHARED_COLUMNS = 49
"""Columns from which folds share rows of a Gaussian matrix: a row of few takes as long to gather as to compute.
Searches of 4,000 rows of a9a (123 columns) took 0.86 to 0.96 of the time, of 10,000 rows of ijcnn1 (22) 0.95 to 1.1."""
MATRIX_GROWTH = 2
"""How many times as many entries memory of matrices that proves too small has next: what is not used costs nothing."""
CHECKED_ROWS, ALONE_SHARE = 64, 1e-4
"""Rows of which a function's values are computed again, and the difference of two values, made in different blocks,
that may be rounding: float32 sums of 1e5 terms."""
TYPICAL_ROWS = 64
"""Distinct rows that tell the typical length of a row where all of them would take as long as many kernel values."""


class GramMemory:
    """Memory of square matrices that one kernel matrix after the other takes: the first use of memory costs much."""

    def __init__(self) -> None:
        self.numbers: dict[str, np.ndarray] = {}
        self.owner: GramRowsCache | None = None

    def owned_by(self, owner: GramRowsCache) -> GramMemory:
        """Give it to another matrix; the last one forgets the rows that it has there, and writes no more."""
        if self.owner is not None and self.owner is not owner:
            self.owner.rows, self.owner.memory = None, GramMemory()
        self.owner = owner
        return self

    def matrix(self, name: str, n: int) -> np.ndarray:
        """Return the (n, n) matrix of that name, whatever it contains."""
        before = self.numbers[name].shape[0] if name in self.numbers else 0
        if before < n * n:
            self.numbers.pop(name, None)
            self.numbers[name] = np.empty(max(n * n, MATRIX_GROWTH * before))
        return self.numbers[name][: n * n].reshape(n, n)


@dataclass(eq=False)
class GramRowsCache:
    """Cache of parts of a Gram matrix, which `KernelFeatures` remember beside the whole of it."""

    rows: KnownRows | None = None
    answers: tuple[tuple[np.ndarray, np.ndarray], ...] = ()  # the last decision values
    centred_copy: tuple[Kernel, Rows] | None = None  # what values are computed from
    typical: float | None = None  # mean of k(x, x)
    deficit: float = 0.0  # what k(x, x) lack, relative to themselves, for the matrix to be positive semidefinite
    memory: GramMemory = field(default_factory=GramMemory)
    reused: bool = False  # whether several fits, the points of a path, have them in common
    concurrent: bool = False  # whether several threads ask for values at the same time
    merged: tuple[EqualRows, Any] | None = None  # groups of equal rows, and features of a row of each
    fold: FoldGramRows | None = None  # where rows come from that several folds share


class GramRowMaker:
    """Maker of rows of the Gram matrix of a plain kernel.

    Gaussian values of dense rows with few columns are made of differences, one row at a time by compiled loops.

    `single`: what makes single rows; without it, some together cost much less.
    """

    def __init__(self, kernel: Kernel, rows: Rows) -> None:
        self.kernel, self.rows, self.single = kernel, rows, None
        self.centre = None if rows.sparse else kernel.centre
        self.squares = kernel.squares(rows, self.centre)
        if kernel.name == "rbf" and not rows.sparse and rows.shape[1] <= SINGLE_ROW_LENGTH:
            self.single = _single_gaussian_rows(kernel, rows)

    def fill(self, index: np.ndarray, out: np.ndarray) -> Generator[None, None, None]:
        """Write the rows `index` of the matrix into `out`."""
        for part in steps(index.shape[0], THIN):
            own = index[part]
            left, squares = self.rows.take(own), self.squares[own] if self.squares.shape[0] else self.squares
            for others in steps(out.shape[1], THIN * BLOCK_LENGTH // own.shape[0]):
                right = self.squares[others] if self.squares.shape[0] else self.squares
                out[part, others] = self.kernel.tile(left, self.rows.take(others), self.centre, squares, right)
            yield


class StudyGramRows:
    """Rows of the Gaussian matrix of all rows of a study, of which folds take theirs: they have most rows in common.

    Values are differences with the centre of all rows, in every fold: their bits depend on nothing that is shared.

    `kernel`, `rows`: of the study; `most`: bytes that the matrix may take; above, and where columns are few, folds
    compute rows of their own.
    """

    def __init__(self, kernel: Kernel, rows: Rows, memory: GramMemory, most: float) -> None:
        self.kernel, self.rows, self.memory = kernel, rows, memory
        self.fits = rows.shape[1] >= LEAST_SHARED_COLUMNS and 8.0 * rows.shape[0] ** 2 <= most
        self.known: KnownRows | None = None

    @staticmethod
    def suits(kernel: Kernel, rows: Rows) -> bool:
        """Whether rows of a matrix are made of differences."""
        narrow = not rows.sparse and rows.shape[1] <= SINGLE_ROW_LENGTH
        return kernel.plain and kernel.name == "rbf" and narrow

    def maker(self, index: np.ndarray) -> RowMaker:
        """Return what makes single rows of the matrix between the rows `index`."""
        if not self.fits:
            return _single_gaussian_rows(*self.kernel.centred_copy(self.rows.take(index)))
        if self.known is None:
            m, single = self.rows.shape[0], _single_gaussian_rows(*self.kernel.centred_copy(self.rows))
            place, order = np.full(m, -1, dtype=np.int64), np.empty(m, dtype=np.int64)
            self.known = KnownRows(self.memory.matrix("study", m), place, order, np.ones(m), single)
        return SelectedRows(self.known, index)


@dataclass(frozen=True)
class FoldGramRows:
    """Rows `index` of a study, as those of a fold whose Gaussian matrix takes its rows from the study's."""

    study: StudyGramRows
    index: np.ndarray

    def shared_kernel(self, kernel: Kernel) -> Kernel | None:
        """Return the kernel of the fold with the centre of all rows; None where it is another one than the study's."""
        own = self.study.kernel
        same = kernel.plain and kernel.name == own.name and kernel.params == own.params
        return replace(kernel, centre=own.centre) if same else None

    def take(self, rows: np.ndarray) -> FoldGramRows:
        """Return the same for some rows of the fold."""
        return FoldGramRows(self.study, self.index[rows])

    def maker(self) -> RowMaker:
        """Return what makes single rows of the fold's matrix."""
        return self.study.maker(self.index)


def _single_gaussian_rows(kernel: Kernel, rows: Rows) -> gaussian.GaussianRows:
    """Return what makes single rows of a Gaussian matrix of differences."""
    scaled = rows.block(slice(None)).T * np.sqrt(kernel.params["gamma"])
    return gaussian.GaussianRows(np.ascontiguousarray(scaled), np.empty(scaled.shape[0]))


def cheap_gram_diagonal(kernel: Kernel, rows: Rows) -> np.ndarray | None:
    """Diagonal of the Gram matrix, where that takes no more than the rows (the matrix, of a precomputed kernel)."""
    if kernel.name == "precomputed":
        return np.concatenate([np.diagonal(rows.block(r)[:, r]) for r in steps(rows.shape[0], THIN)])
    if kernel.name == "linear":
        return rows.squares()
    return kernel.diagonal(rows) if kernel.plain else None


def gram_diagonal(kernel: Kernel, rows: Rows) -> np.ndarray:
    """Diagonal of the Gram matrix: k(x, x) of every row."""
    known = cheap_gram_diagonal(kernel, rows)
    if known is not None:
        return known
    parts = [rows.take(part) for part in steps(rows.shape[0], THIN)]
    return np.concatenate([np.diagonal(kernel.block(part, part)) for part in parts])


def mean_gram_diagonal(kernel: Kernel, rows: Rows, counts: np.ndarray) -> float:
    """Mean of k(x, x) over rows counted by weight, or over a few distinct ones where all would take long."""
    squares = cheap_gram_diagonal(kernel, rows)
    if squares is not None:
        return float(np.average(squares, weights=counts))
    found = distinct(rows, counts)
    some = rows.take(found.where[np.linspace(0, len(found) - 1, min(TYPICAL_ROWS, len(found))).astype(np.intp)])
    return float(np.diagonal(kernel.block(some, some)).mean())


def check_gram_of_function(G: np.ndarray, kernel: Kernel, rows: Rows) -> None:
    """Raise ValueError where values for a Gram matrix depend on the order of two rows, or on others in their block.

    Half of the matrix was mirrored: one block is compared with what the other order gives.
    """
    n = min(CHECKED_ROWS, rows.shape[0])
    first, last = rows.take(slice(0, n)), rows.take(slice(rows.shape[0] - n, rows.shape[0]))
    direct = kernel.block(first, last)
    if np.abs(G[:n, -n:] - direct).max() > 1e-8 * np.abs(direct).max():
        raise ValueError(f"{kernel.title} is not symmetric; it needs k(a, b) = k(b, a)")
    few = rows.take(slice(0, (n + 1) // 2))
    alone = kernel.block(few, rows.take(slice(0, 1)))
    together = G[: len(alone), :1]
    off = np.abs(together - alone)
    if off.max() > ALONE_SHARE * np.abs(alone).max():
        i, j = np.unravel_index(int(off.argmax()), off.shape)
        raise ValueError(
            f"{kernel.title} has the value {together[i, j]:.10g} for two rows among all rows, and {alone[i, j]:.10g} "
            "for the same two among fewer; k(a, b) needs to depend on a and b alone"
        )


def gram_blocks(kernel: Kernel, rows: Rows) -> Callable[[slice, slice], np.ndarray]:
    """Return what makes blocks of the Gram matrix, by ranges of rows; squared lengths are made once."""
    if not kernel.plain:
        return lambda a, b: kernel.block(rows.take(a), rows.take(b))
    centre = None if rows.sparse else kernel.centre
    squares = kernel.squares(rows, centre)
    return lambda a, b: kernel.tile(rows.take(a), rows.take(b), centre, squares[a], squares[b])


def gram_matrix_by_blocks(
    m: int,
    inner: int,
    block: Callable[[slice, slice], np.ndarray],
    out: np.ndarray | None = None,
    in_threads: bool = True,
) -> Generator[None, None, np.ndarray]:
    """Fill a Gram or other symmetric (m, m) matrix from blocks (rows, columns) of its lower half; yield between them.

    `inner` is the length of the products behind one entry: it bounds the size of a block. `in_threads`: whether several
    blocks may be made at the same time.
    """
    G = np.empty((m, m)) if out is None else out
    step = 512 if inner <= 1024 else 256
    width = max(step, BLOCK_OPERATIONS // (2 * step * max(inner, 64)))
    if inner <= CACHED_LENGTH:
        # Values are then made faster than memory takes them: blocks stay in the cache until they are mirrored.
        step, width = THIN, BLOCK_LENGTH

    def blocks() -> Iterator[tuple[slice, slice]]:
        for start in range(0, m, step):
            rows = slice(start, min(start + step, m))
            for left in range(0, rows.stop, width):
                yield rows, slice(left, min(left + width, rows.stop))

    def write(piece: tuple[slice, slice]) -> None:
        # GEMM need not round (i, j) and (j, i) alike: one of them is both.
        write_symmetric(np.ascontiguousarray(block(*piece)), G, piece[0].start, piece[1].start)

    def size(piece: tuple[slice, slice]) -> float:
        rows, columns = piece
        return 2.0 * max(inner, 64) * (rows.stop - rows.start) * (columns.stop - columns.start)

    yield from over_pieces(blocks(), write, size, in_threads=in_threads)
    return G


def gram_by_kernel(kernel: Kernel, rows: Rows) -> Generator[None, None, np.ndarray]:
    """Return the Gram matrix of rows; blocks of a kernel that is not made here are asked for in the calling thread."""
    m, d = rows.shape
    return gram_matrix_by_blocks(m, d, gram_blocks(kernel, rows), in_threads=kernel.plain)


def gram_product(G: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return G v, G symmetric, v of shape (m,) or (m, k): of the rows where v is not 0 alone, where these are few."""
    rows = np.flatnonzero(v if v.ndim == 1 else v.any(axis=1))
    if rows.shape[0] > (ADDED_SHARE if v.ndim == 1 else GATHERED_SHARE) * v.shape[0]:
        return np.asarray(G @ v)
    return sum_of_gram_rows(G.T if G.flags.f_contiguous else G, rows, v[rows])


def sum_of_gram_rows(G: np.ndarray, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return sum_i G[rows_i] weights_i, by pieces; for weights of shape (r, k) rows are gathered, for (r,) added."""
    out, added = np.zeros((G.shape[1], *weights.shape[1:])), weights.ndim == 1 and G.flags.c_contiguous
    added = added and G.dtype == np.float64
    for part in steps(rows.shape[0], max(1, (ADDED_ENTRIES if added else GATHERED_ENTRIES) // max(1, G.shape[1]))):
        if added:
            add_rows(G, rows[part], weights[part], out)
        else:
            out += G[rows[part]].T @ weights[part]
    return out


class ClassGramMatrices:
    """Gram matrices of the classes of a plain kernel, each computed once, when first asked for.

    `rows`: class by class; `sizes` (shape (k,)): numbers of rows of the classes.
    """

    def __init__(self, kernel: Kernel, rows: Rows, sizes: np.ndarray) -> None:
        self.kernel, self.rows = kernel.centred_copy(rows)
        self.half_roundings = kernel_half_roundings(self.kernel, self.rows)
        self.values = gram_blocks(self.kernel, self.rows)
        self.spans = [slice(end - size, end) for end, size in zip(np.cumsum(sizes).tolist(), sizes.tolist())]
        self._whole: np.ndarray | None = None
        self._within: dict[int, np.ndarray] = {}
        self._beyond: tuple[int, np.ndarray] = -1, np.empty((0, 0))  # the last class that was asked for, and its values

    def roundings(self) -> np.ndarray:
        """Return half of the roundings of an entry of the Gram matrix, row by row."""
        return self.half_roundings

    def centred_copy(self) -> tuple[Kernel, Rows]:
        """Return kernel and rows for which all blocks between these rows cost less."""
        return self.kernel, self.rows

    def gram(self) -> Generator[None, None, np.ndarray]:
        """Return the Gram matrix of all classes, whose parts are then known."""
        if self._whole is None:
            self._whole = yield from gram_by_kernel(self.kernel, self.rows)
        return self._whole

    def within(self, code: int) -> Generator[None, None, np.ndarray]:
        """Return the Gram matrix of a class; all of it is made at once, so that bits do not depend on who asks."""
        if self._whole is not None:
            return self._whole[self.spans[code], self.spans[code]]
        if code not in self._within:
            first, values, n = self.spans[code].start, self.values, self.spans[code].stop - self.spans[code].start

            def block(a: slice, b: slice) -> np.ndarray:
                return values(slice(first + a.start, first + a.stop), slice(first + b.start, first + b.stop))

            self._within[code] = yield from gram_matrix_by_blocks(n, self.rows.shape[1], block)
        return self._within[code]

    def beyond(self, code: int) -> Generator[None, None, np.ndarray]:
        """Return the values between the rows of a class and those of all classes after it: pairs ask one by one."""
        if self._whole is not None:
            return self._whole[self.spans[code], self.spans[code].stop :]
        if self._beyond[0] != code:
            span, m = self.spans[code], self.rows.shape[0]
            G = np.empty((span.stop - span.start, m - span.stop))
            for part in steps(G.shape[0], BLOCK_OPERATIONS // (2 * max(1, G.shape[1]) * max(self.rows.shape[1], 64))):
                G[part] = self.values(slice(span.start + part.start, span.start + part.stop), slice(span.stop, m))
                yield
            self._beyond = code, G
        return self._beyond[1]


class ClassPairGram:
    """Kernel of the rows of two classes, those of the first before those of the second, from `ClassGramMatrices`."""

    def __init__(self, blocks: ClassGramMatrices, pair: tuple[int, int]) -> None:
        self.blocks, self.pair = blocks, pair
        self.spans = [blocks.spans[code] for code in pair]

    def roundings(self) -> np.ndarray:
        """Return half of the roundings of an entry of the Gram matrix, row by row."""
        return np.concatenate([self.blocks.half_roundings[span] for span in self.spans])

    def centred_copy(self) -> tuple[Kernel, Rows]:
        """Return kernel and rows for which all blocks between these rows cost less."""
        rows = np.concatenate([np.arange(span.start, span.stop) for span in self.spans])
        return self.blocks.kernel, self.blocks.rows.take(rows)

    def gram(self) -> Generator[None, None, np.ndarray]:
        """Return the Gram matrix of both classes."""
        first, second = (yield from self.blocks.within(self.pair[0])), (yield from self.blocks.within(self.pair[1]))
        across = (yield from self.blocks.beyond(self.pair[0])), self.spans[0].stop
        n, m = len(first), len(first) + len(second)
        G = np.empty((m, m))
        G[:n, :n], G[n:, n:] = first, second
        G[:n, n:] = across[0][:, self.spans[1].start - across[1] : self.spans[1].stop - across[1]]
        G[n:, :n] = G[:n, n:].T
        return G


SharedGram = ClassGramMatrices | ClassPairGram
"""Where a kernel's values come from that pairs of classes share: of all classes, or of two."""
