"""Block factor of Q + R' D R for rows with entries in one block of columns each: an arrow, solved block by block.

Without a variance term only the bias connects the blocks. So a problem of K blocks costs what its blocks cost: I +
sum_i D_i phi_i phi_i' is factored block by block, and a border for the bias comes with it.

A block with fewer rows of positive weight than columns is solved through a matrix of the number of those rows
(Woodbury): the many that have few rows together by compiled loops, others one by one. Where columns have very different
scales, inner products of rows have lost the small ones, which shows in pivots; such a block is solved through a matrix
of the number of its columns, which holds every scale for itself.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mdlearn._solvers import blocks as kernel
from mdlearn.data.features.clustered_rows import BlockRows
from mdlearn.data.features.gram import BLOCK_OPERATIONS, gram_matrix_by_blocks
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.rows import COPY_BYTES, Rows, steps
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.numerics import cholesky
from mdlearn.solvers.systems.row_and_gram import Map, RowSystem
from mdlearn.solvers.systems.weighted_gram import Work

COMPILED_BLOCK_ROWS = 64
"""Rows of a block up to which compiled loops are faster than BLAS, which is called from Python."""
LOOPS = 1 << 24
"""Multiplications of compiled loops at once: some milliseconds."""
LOST_PIVOT, LOST_DIAGONAL = 1e-11, 1e14
"""Pivot, relative to the diagonal, below which a matrix of rows has lost the differences between them, and the diagonal
above which the identity that is added to it is lost."""
MOST_COLUMNS = 500
"""Columns up to which a matrix of columns may take its place: a few milliseconds a block."""
Part = tuple[Map, np.ndarray, float]
"""Inverse of M = I + B'B as a function, M^-1 B' d, and d' (I + BB')^-1 d, for B = diag(d) F."""


class BlockFactor:
    """Block factor of Q + R' D R, made by `factor_blocks`.

    `weights` (shape (m,)): D; `border` (shape (K, L)): the inverse times sum_i D_i phi_i; `left`: sum_i D_i less the
    border's share, what is left for a bias.
    """

    def __init__(self, rows: BlockRows, weights: np.ndarray) -> None:
        self.weights = weights
        self.border, self.left = np.zeros((rows.layout.n_blocks, rows.width)), 0.0
        self.packed: PackedBlockFactors | None = None
        self.single: dict[int, Map] = {}

    def inverse(self, rhs: np.ndarray) -> np.ndarray:
        """Inverse of the blocks times a vector."""
        rhs = rhs.reshape(self.border.shape)
        out = rhs.copy() if self.packed is None else self.packed.inverse(rhs)
        for k, part in self.single.items():
            out[k] = part(rhs[k])
        return out.ravel()


class PackedBlockFactors:
    """Packed factor of blocks with few rows: their scaled rows B one after the other, and the factors of I + BB'."""

    def __init__(self, B: np.ndarray, starts: np.ndarray) -> None:
        self.B, self.starts = B, starts
        sizes = np.diff(starts)
        self.places = np.append(0, np.cumsum(sizes * sizes))
        self.work = np.append(0, np.cumsum(sizes * sizes * (B.shape[1] + sizes)))
        self.N = np.empty(int(self.places[-1]))
        self.own = np.arange(B.shape[0])

    def factor(self) -> Generator[None, None, None]:
        """Factor I + BB' of every block."""
        first = 0
        while first < self.starts.shape[0] - 1:
            last = max(first + 1, int(np.searchsorted(self.work, self.work[first] + LOOPS)) - 1)
            kernel.factor(self.B, self.starts, self.places, self.N, first, last)
            yield
            first = last

    def lost(self) -> np.ndarray:
        """Blocks whose factors have lost the differences between rows, after `factor`."""
        n = np.diff(self.starts)
        block = np.repeat(np.arange(n.shape[0]), n)
        at = np.arange(block.shape[0]) - self.starts[block]
        pivots = np.square(self.N[self.places[block] + at * (n[block] + 1)])
        diagonal = 1.0 + np.einsum("ij,ij->i", self.B, self.B)
        return np.unique(block[_block_factor_lost_digits(pivots, diagonal)])

    def solve(self, v: np.ndarray) -> np.ndarray:
        """(I + BB')^-1 v."""
        v = v.copy()
        kernel.solve(self.N, self.starts, self.places, v)
        return v

    def times(self, W: np.ndarray) -> np.ndarray:
        """B w, w the line of each block."""
        out = np.empty(self.B.shape[0])
        kernel.dot(self.B, self.starts, W, out, 0, self.B.shape[0])
        return out

    def collected(self, v: np.ndarray) -> np.ndarray:
        """B' v, a line for every block."""
        out = np.zeros((self.starts.shape[0] - 1, self.B.shape[1]))
        kernel.adjoint(self.B, self.starts, self.own, v, out, 0, self.B.shape[0])
        return out

    def inverse(self, R: np.ndarray) -> np.ndarray:
        """(I + B'B)^-1 times the lines of R, refined once: with large weights, the difference has lost digits."""
        x = R - self.collected(self.solve(self.times(R)))
        rest = R - x - self.collected(self.times(x))
        x += rest - self.collected(self.solve(self.times(rest)))
        return x


def factor_blocks(rows: BlockRows, D: np.ndarray) -> Generator[None, None, BlockFactor]:
    """Factor Q + R' D R of rows that lie in one block each, with weights D >= 0."""
    made, layout = BlockFactor(rows, D), rows.layout
    root = np.sqrt(D[layout.owner])
    used = np.flatnonzero(root)
    ends = np.searchsorted(used, layout.starts)
    n = np.diff(ends)
    few = n <= min(COMPILED_BLOCK_ROWS, rows.width - 1)
    packed = yield from _pack_small_block_factors(rows.F, root, used, few, n)
    lost: np.ndarray | list[int] = [] if packed is None or rows.width > MOST_COLUMNS else packed.lost()
    if len(lost) > 0:
        few[lost] = False
        packed = yield from _pack_small_block_factors(rows.F, root, used, few, n)
    if packed is not None:
        made.packed, d = packed, root[used[np.repeat(few, n)]]
        inner = packed.solve(d)
        made.border, made.left = packed.collected(inner), float(d @ inner)
    for k in np.flatnonzero(~few).tolist():
        some = used[ends[k] : ends[k + 1]]
        work = _factor_block_by_rows if some.shape[0] < rows.width and k not in lost else _factor_block_by_columns
        made.single[k], made.border[k], left = yield from work(rows.F, some, root[some])
        made.left += left
    return made


def _pack_small_block_factors(
    F: np.ndarray, root: np.ndarray, used: np.ndarray, few: np.ndarray, n: np.ndarray
) -> Generator[None, None, PackedBlockFactors | None]:
    """Factors of the `few` blocks among those with n of the `used` entries each; None where these have no rows."""
    mine = used if few.all() else used[np.repeat(few, n)]
    if mine.shape[0] == 0:
        return None
    B = F[mine].astype(np.float64, copy=False)
    B *= root[mine, None]
    packed = PackedBlockFactors(B, np.append(0, np.cumsum(np.where(few, n, 0))))
    yield from packed.factor()
    return packed


def _factor_block_by_rows(F: np.ndarray, used: np.ndarray, d: np.ndarray) -> Generator[None, None, Part]:
    """Factor a block through I + BB', for few rows."""
    B = F[used].astype(np.float64, copy=False) * d[:, None]
    N = yield from gram_matrix_by_blocks(B.shape[0], B.shape[1], lambda rows, columns: B[rows] @ B[columns].T)
    N[np.diag_indices_from(N)] += 1.0
    diagonal = np.diagonal(N).copy()
    L = yield from cholesky.cholesky_shifted(N)
    if B.shape[1] <= MOST_COLUMNS and _block_factor_lost_digits(np.square(np.diagonal(L)), diagonal).any():
        return (yield from _factor_block_by_columns(F, used, d))
    inner = cholesky.cholesky_solve(L, d)

    def once(r: np.ndarray) -> np.ndarray:
        return r - B.T @ cholesky.cholesky_solve(L, B @ r)

    def refined(r: np.ndarray) -> np.ndarray:
        # With large weights, the difference has lost digits.
        x = once(r)
        return x + once(r - x - B.T @ (B @ x))

    return refined, B.T @ inner, float(d @ inner)


def _block_factor_lost_digits(pivots: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """Where the factor of a block's rows has lost what small columns say."""
    lost: np.ndarray = ~((pivots > LOST_PIVOT * diagonal) & (diagonal < LOST_DIAGONAL))
    return lost


def _factor_block_by_columns(F: np.ndarray, used: np.ndarray, d: np.ndarray) -> Generator[None, None, Part]:
    """Factor a block through I + B'B, for few columns."""
    width, alike = F.shape[1], bool((d == d[0]).all())
    M, h, product = np.zeros((width, width)), np.zeros(width), np.empty((width, width))
    pieces = list(steps(used.shape[0], max(64, 2 * BLOCK_OPERATIONS // (width * width))))
    for part in pieces:
        B = _block_factor_entries(F, used[part])
        B = B if alike else B * d[part, None]
        M += np.matmul(B.T, B, out=product)
        h += B.sum(axis=0) if alike else B.T @ d[part]
        yield
    if alike:
        M *= d[0] * d[0]
        h *= d[0] * d[0]
    M[np.diag_indices_from(M)] += 1.0
    L = yield from cholesky.cholesky_shifted(M)
    border = cholesky.cholesky_solve(L, h)
    # A sum of squares: the difference that it equals would lose its digits.
    left = float(border @ border)
    for part in pieces:
        rest = d[part] * (1.0 - _block_factor_entries(F, used[part]) @ border)
        left += float(rest @ rest)
    return lambda r: cholesky.cholesky_solve(L, r), border, left


def _block_factor_entries(F: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Entries `which` of the blocks F in float64; a view where they follow each other and F is float64."""
    whole = which[-1] - which[0] + 1 == which.shape[0]
    return np.asarray(F[which[0] : which[-1] + 1] if whole else F[which], dtype=np.float64)


class BlockSystem(RowSystem):
    """Linear system by a block factor: explicit rows of blocks, each row in one."""

    def __init__(self, form: MarginForm, column: Column, common: BlockFactor | None = None) -> None:
        super().__init__(form, column)
        self.common = common
        assert isinstance(form.features.rows, BlockRows)
        self.blocks: BlockRows = form.features.rows
        self.most_restricted = int(COPY_BYTES / (8.0 * self.blocks.width))

    def setup(self) -> Work:
        """Nothing to prepare: Q is the ridge."""
        yield

    def quadratic(self, element: np.ndarray) -> np.ndarray:
        return self.ridge * element

    def restrict(self, rows: np.ndarray) -> tuple[Map, Map]:
        part = AffineRows(self.blocks.take(rows), self.bias)
        return part.dot, part.adjoint

    def factor(self, D: np.ndarray) -> Work:
        """Factor the blocks, then eliminate them from the bias; D that all columns begin with was factored before."""
        common = self.common
        if common is not None and np.array_equal(common.weights, D):
            self.made = common
        else:
            self.made = yield from factor_blocks(self.blocks, D)
        if self.bias:
            corner = self.ridge[-1] + self.made.left
            # Nothing holds a free intercept without a row on a kink: it stays.
            self.border, self.corner = self.made.border.ravel(), corner if corner > 0 else 1.0

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Solve with the last factor; the border is that of the inverse already."""
        if not self.bias:
            return cholesky.finite_cholesky_solution(self.made.inverse(rhs))
        b = (rhs[-1] - float(self.border @ rhs[:-1])) / self.corner
        return cholesky.finite_cholesky_solution(np.append(self.made.inverse(rhs[:-1]) - b * self.border, b))

    @staticmethod
    def bytes_of(rows: Rows) -> float:
        """Bytes that factors take when all rows have a weight."""
        assert isinstance(rows, BlockRows)
        n, L = np.diff(rows.layout.starts).astype(np.float64), float(rows.width)
        return 8.0 * float(np.where(n < L, n * (n + L), L * L).sum())
