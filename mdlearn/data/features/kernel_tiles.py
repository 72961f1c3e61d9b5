"""A kernel matrix that nobody keeps: values are made tile by tile, used, and forgotten.

Gaussian values of few columns are made one by one, others from inner products, sums of them in compiled loops; engines
climb on single precision. Where float32 does not hold the digits of the exponents, and for other kernels, values are
those of `Kernel.block`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Self

import numpy as np

from mdlearn._solvers import gaussian, gaussian_tiles
from mdlearn._solvers.products import write_symmetric
from mdlearn.data.features.kernels import FAR_LENGTH, FULL_ROWS, Kernel
from mdlearn.data.rows.rows import BLOCK_ENTRIES, COPY_BYTES, DenseRows, Rows, steps
from mdlearn.numerics.interruptible import finished
from mdlearn.numerics.lazy_property import kept
from mdlearn.numerics.pieces_in_threads import over_pieces, work_in_threads

SUMS_TILE = (512, 256)
"""Rows and columns of kernel values that stay in the cache while sums of them are made."""
TILE_LENGTH = 512
"""Rows and columns of values that stay in the cache while they are made and used."""
SINGLE_LENGTH = 100.0
"""Squared length of rows, in units of 1 / gamma, up to which float32 holds four digits of the least kernel value."""
FEW_COLUMNS, DENSE_COLUMNS = 8, 1000
"""Columns up to which differences are cheaper than products, and up to which sparse rows are written out."""
SUMMED_COLUMNS = 128
"""Columns up to which sums of Gaussian values are compiled loops: of 9 to 123 they took 0.63 to 0.87 of the time of
BLAS and passes over its products, with vectors of eight numbers. With shorter ones BLAS, by FMA, wins on long rows."""
KEPT_PRODUCTS = 4
"""Products that are kept: two of a point's multipliers in a basis, and two of its own coefficients."""
VALUE_OPERATIONS = 64.0
"""Operations that an exponential and its use cost."""

Tile = tuple[slice, slice, Any]
"""Rows and columns of values, and the side that these are made of."""


class KernelTiles(ABC):
    """Tiles of a kernel matrix over some rows, asked for by blocks and by products."""

    n_rows: int
    dtype: Any  # float32 or float64: that of values, and of sums over a tile
    length: int  # numbers that a value is made of
    bounded: bool = True  # whether all values are from 0 to 1
    in_threads: bool = True  # whether several may be made at the same time

    @abstractmethod
    def take(self, index: np.ndarray) -> KernelTiles:
        """Tiles of the same kernel over the rows `index`."""

    @abstractmethod
    def _side(self, index: np.ndarray) -> Any:
        """Data of the columns `index`, from which `_values` makes values."""

    @abstractmethod
    def _values(self, rows: slice | np.ndarray, side: Any) -> np.ndarray:
        """Values between some rows and some columns."""

    def _product(self, rows: slice, side: Any, coef: np.ndarray, out: np.ndarray) -> None:
        out += self._values(rows, side) @ coef

    def _products(self, tile: Tile, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Sums of a tile of the upper half over its columns and, off the diagonal, over its rows."""
        rows, columns, values = tile[0], tile[1], self._values(tile[0], tile[2])
        return values @ coef[columns], None if rows.start == columns.start else values.T @ coef[rows]

    def block(self, index: np.ndarray, room: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Values between some rows, shape (n, n), in a flat array of n^2 numbers or more: new memory costs as much."""
        n = index.shape[0]
        H: np.ndarray = room[: n * n].reshape(n, n)
        tiles = list(steps(n, TILE_LENGTH))
        sides = [self._side(index[tile]) for tile in tiles]

        def work(tile: Tile) -> None:
            rows, columns, side = tile
            values = np.ascontiguousarray(self._values(index[rows], side))
            write_symmetric(values, H, rows.start, columns.start)

        lower = [(rows, *one) for k, rows in enumerate(tiles) for one in zip(tiles[: k + 1], sides)]
        yield from self._over(lower, work)
        return H

    def between(self, index: np.ndarray, others: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Values between some rows and others, shape (n, k)."""
        H = np.empty((index.shape[0], others.shape[0]), dtype=self.dtype)

        def work(tile: Tile) -> None:
            rows, columns, side = tile
            H[rows, columns] = self._values(index[rows], side)

        yield from self._over(self._tiles(index.shape[0], others), work)
        return H

    def across(self, index: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Values between all rows and some, shape (m, n)."""
        H = np.empty((self.n_rows, index.shape[0]), dtype=self.dtype)

        def work(tile: Tile) -> None:
            rows, columns, side = tile
            H[rows, columns] = self._values(rows, side)

        yield from self._over(self._tiles(self.n_rows, index), work)
        return H

    def add(self, out: np.ndarray, index: np.ndarray, coef: np.ndarray) -> Generator[None, None, None]:
        """Add sum_j coef_j k(x_i, x_index_j) to out_i, for every row i."""
        if np.array_equal(index, np.arange(self.n_rows)):
            yield from self._add_all(out, coef)
            return
        coef = np.ascontiguousarray(coef, dtype=self.dtype)

        def work(tile: Tile) -> np.ndarray:
            rows, columns, side = tile
            part = np.zeros((rows.stop - rows.start, *coef.shape[1:]))
            self._product(rows, side, coef[columns], part)
            return part

        def use(tile: Tile, part: np.ndarray) -> None:
            out[tile[0]] += part

        yield from self._over(self._tiles(self.n_rows, index), work, use)

    def _add_all(self, out: np.ndarray, coef: np.ndarray, first: int = 0) -> Generator[None, None, None]:
        """Add sum_j coef_j k(x_i, x_j) over all rows j to out_i, for every row i: a value serves both of its places.

        What the `first` tiles of the upper half add is left out.
        """
        coef = np.ascontiguousarray(coef, dtype=self.dtype)

        def use(tile: Tile, parts: tuple[np.ndarray, np.ndarray | None]) -> None:
            rows, columns, _ = tile
            out[rows] += parts[0]
            if parts[1] is not None:
                out[columns] += parts[1]

        yield from self._over(self.upper_half(first), lambda tile: self._products(tile, coef), use)

    def upper_half(self, first: int = 0) -> Iterator[Tile]:
        """The tiles on the diagonal and above it, without the `first` ones."""
        tiles = list(steps(self.n_rows, TILE_LENGTH))
        for k, columns in enumerate(tiles):
            left = tiles[max(0, first - k * (k + 1) // 2) : k + 1]
            side = self._side(np.arange(columns.start, columns.stop)) if left else None
            for rows in left:
                yield rows, columns, side

    def _tiles(self, n: int, index: np.ndarray) -> Iterator[Tile]:
        """The tiles between n rows and the rows `index`."""
        for columns in steps(index.shape[0], TILE_LENGTH):
            side = self._side(index[columns])
            for rows in steps(n, TILE_LENGTH):
                yield rows, columns, side

    def _over(
        self,
        tiles: Iterable[Tile],
        work: Callable[[Tile], Any],
        use: Callable[[Tile, Any], object] | None = None,
    ) -> Generator[None, None, None]:
        """Work on tiles in pieces, and use the results in the order of tiles."""
        price = 2.0 * self.length + VALUE_OPERATIONS

        def size(tile: Tile) -> float:
            rows, columns, _ = tile
            return price * (rows.stop - rows.start) * (columns.stop - columns.start)

        return over_pieces(tiles, work, size, use, self.in_threads)

    def seconds_of_value(self) -> float:
        """Wall seconds that a value and its use take, as far as one tile tells."""
        index = np.arange(min(self.n_rows, TILE_LENGTH))
        some, out, ones = self.take(index), np.zeros(len(index)), np.ones(len(index))
        seconds = []
        for _ in range(3):  # the first one finds memory cold
            begun = time.perf_counter()
            finished(some.add(out, index, ones))
            seconds.append(time.perf_counter() - begun)
        return min(seconds) / len(index) ** 2


class ArrayTiles(KernelTiles):
    """Base of tiles whose values are made of the rows of one array, in its type."""

    def __init__(self, A: np.ndarray) -> None:
        self.A, self.n_rows, self.length, self.dtype = A, A.shape[0], A.shape[1], A.dtype.type

    def take(self, index: np.ndarray) -> Self:
        return type(self)(self.A[index])


class DifferenceTiles(ArrayTiles):
    """Tiles of Gaussian values of few columns: differences, their squares, exponentials."""

    def _side(self, index: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(self.A[index].T)

    def _values(self, rows: slice | np.ndarray, side: np.ndarray) -> np.ndarray:
        A = self.A[rows]
        K = np.empty((A.shape[0], side.shape[1]), dtype=self.dtype)
        gaussian.block(A, side, K)
        return K

    def _product(self, rows: slice, side: np.ndarray, coef: np.ndarray, out: np.ndarray) -> None:
        gaussian.add_products(self.A[rows], side, coef, out)


class GaussianTiles(ArrayTiles):
    """Tiles of Gaussian values made of inner products of rows x; `squares`: gamma |x|^2; `scale`: 2 gamma."""

    def __init__(self, A: np.ndarray, squares: np.ndarray, scale: float) -> None:
        super().__init__(A)
        self.squares, self.scale = squares, scale

    def take(self, index: np.ndarray) -> GaussianTiles:
        return GaussianTiles(self.A[index], self.squares[index], self.scale)

    def _side(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.ascontiguousarray(self.A[index].T), self.squares[index]

    def _values(self, rows: slice | np.ndarray, side: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        K: np.ndarray = self.A[rows] @ side[0]
        gaussian_tiles.gaussians(K, self.squares[rows], side[1], self.scale)
        return K

    def _product(self, rows: slice, side: tuple[np.ndarray, np.ndarray], coef: np.ndarray, out: np.ndarray) -> None:
        if self.length > SUMMED_COLUMNS or coef.ndim > 1:
            super()._product(rows, side, coef, out)
        else:
            (B, right), left, none = side, self.squares[rows], coef[:0]
            gaussian_tiles.add_products(self.A[rows], B, left, right, self.scale, none, coef, out, out[:0])

    def _products(self, tile: Tile, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        rows, columns, (B, right) = tile
        if self.length > SUMMED_COLUMNS or coef.ndim > 1 or rows.start == columns.start:
            return super()._products(tile, coef)
        A, left = self.A[rows], self.squares[rows]
        across, down = np.zeros(left.shape), np.zeros(right.shape)
        gaussian_tiles.add_products(A, B, left, right, self.scale, coef[rows], coef[columns], across, down)
        return across, down


class ExactTiles(KernelTiles):
    """Tiles of the values of `Kernel.block`, in float64; squared lengths of rows are made once."""

    def __init__(self, kernel: Kernel, rows: Rows) -> None:
        self.kernel, self.rows = kernel, rows
        self.n_rows, self.length = rows.shape
        self.dtype, self.bounded = np.float64, kernel.name == "rbf"
        self.by_lengths = self.bounded and kernel.plain  # else tiles are the kernel's own blocks
        self.in_threads = kernel.plain
        self.centre = kernel.centre if self.by_lengths and not rows.sparse else None
        self.squares = kernel.squares(rows, self.centre) if self.by_lengths else np.empty(self.n_rows)

    def take(self, index: np.ndarray) -> ExactTiles:
        return ExactTiles(self.kernel, self.rows.take(index))

    def _side(self, index: np.ndarray) -> tuple[Rows, np.ndarray]:
        return self.rows.take(index), self.squares[index]

    def _values(self, rows: slice | np.ndarray, side: tuple[Rows, np.ndarray]) -> np.ndarray:
        left = self.rows.take(rows)
        if not self.by_lengths:
            return self.kernel.block(left, side[0])
        return self.kernel.tile(left, side[0], self.centre, self.squares[rows], side[1])


class SquaredTiles:
    """Products with K P K, of tiles of a kernel matrix K and weights P: inner products of rows in a basis of all rows.

    `tiles`: of K; `weights` of shape (m,); `index`: rows whose inner products these are; None: all.
    """

    def __init__(self, tiles: KernelTiles, weights: np.ndarray, index: np.ndarray | None = None) -> None:
        self.tiles, self.weights = tiles, weights
        self.index = np.arange(tiles.n_rows) if index is None else index
        self.n_rows, self.length = self.index.shape[0], tiles.length

    def take(self, index: np.ndarray) -> SquaredTiles:
        """Inner products of the rows `index`."""
        return SquaredTiles(self.tiles, self.weights, self.index[index])

    def add(self, out: np.ndarray, index: np.ndarray, coef: np.ndarray) -> Generator[None, None, None]:
        """Add sum_j coef_j h(x_i, x_index_j) to out_i, for every row i."""
        m = self.tiles.n_rows
        inner, whole = np.zeros(m), np.zeros(m)
        yield from self.tiles.add(inner, self.index[index], coef)
        yield from self.tiles.add(whole, np.arange(m), self.weights * inner)
        out += whole[self.index]


def make_kernel_tiles(kernel: Kernel, rows: Rows, single: bool) -> KernelTiles:
    """Make the tiles of a kernel matrix, in single precision where that is asked for and keeps its digits."""
    d, gaussian_kernel = rows.shape[1], kernel.name == "rbf" and kernel.plain
    if gaussian_kernel and not rows.sparse and d <= FEW_COLUMNS:
        if not single or _tile_row_squares(kernel, rows).max() <= SINGLE_LENGTH:
            by = np.sqrt(kernel.params["gamma"])
            return DifferenceTiles(_tile_rows(kernel, rows, by, np.float32 if single else np.float64))
    elif gaussian_kernel and (not rows.sparse or (single and d <= DENSE_COLUMNS)):
        reach, scale = _tile_row_squares(kernel, rows), 2.0 * kernel.params["gamma"]
        if single and reach.max() <= SINGLE_LENGTH:
            return GaussianTiles(_tile_rows(kernel, rows, np.sqrt(scale), np.float32), reach.astype(np.float32), 1.0)
        if not single and d <= SUMMED_COLUMNS and kernel.centre is None and reach.max() <= 0.5 * FAR_LENGTH:
            return GaussianTiles(np.ascontiguousarray(rows.block(slice(None))), reach, scale)
    return ExactTiles(kernel, rows)


def _tile_row_squares(kernel: Kernel, rows: Rows) -> np.ndarray:
    """Squared length of every row of Gaussian tiles, gamma |x|^2 from the centre."""
    return np.asarray(kernel.params["gamma"] * rows.squares(centre=None if rows.sparse else kernel.centre))


def _tile_rows(kernel: Kernel, rows: Rows, by: float, dtype: Any) -> np.ndarray:
    """Rows of Gaussian tiles: less the centre, multiplied by a number."""
    centre = 0.0 if rows.sparse or kernel.centre is None else kernel.centre
    A = np.empty(rows.shape, dtype=dtype)
    for span in rows.spans():
        A[span] = (rows.block(span) - centre) * by
    return A


class TiledMatrix:
    """A kernel matrix as products of tiles in double precision; the last answers are kept."""

    def __init__(self, kernel: Kernel, rows: Rows) -> None:
        self.kernel, self.rows = kernel, rows
        self.answers: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
        self._tiles: dict[bool, KernelTiles] = {}

    def tiles(self, single: bool) -> KernelTiles:
        """Tiles of the matrix, made once."""
        if single not in self._tiles:
            self._tiles[single] = make_kernel_tiles(self.kernel, self.rows, single)
        return self._tiles[single]

    def dot(self, w: np.ndarray) -> np.ndarray:
        """K w, for w of shape (m,) or (m, k): certificates ask for the same one several times."""
        for asked, answer in self.answers:
            if np.array_equal(asked, w):
                return np.array(answer)
        out, own = np.zeros(w.shape), np.arange(w.shape[0]) if w.ndim > 1 else np.flatnonzero(w)
        finished(self.tiles(single=False).add(out, own, w[own]))
        self.answers = ((w.copy(), out.copy()), *self.answers[: KEPT_PRODUCTS - 1])
        return out


class KernelTileSums:
    """Sums sum_j k(a, b_j) alpha_jc of new rows a: what is made of the rows b_j alone is made once, and kept.

    `rows` (shape (m, d)): the rows b_j; `alpha` of shape (m, k).
    """

    def __init__(self, kernel: Kernel, rows: Rows, alpha: np.ndarray) -> None:
        self.kernel, self.rows, self.alpha = kernel, rows, alpha

    def __call__(self, A: Rows) -> np.ndarray:
        """Return the sums of every row of A, shape (n, k)."""
        out = np.zeros((A.shape[0], self.alpha.shape[1]))
        if not self.kernel.plain:
            for rows in steps(A.shape[0], max(64, 4 * BLOCK_ENTRIES // max(1, self.alpha.shape[0]))):
                out[rows] = self.kernel.block(A.take(rows), self.rows) @ self.alpha
            return out
        dense = self._full or not (A.sparse or self.rows.sparse)
        kernel, own, squares = self._written if dense else (self.kernel, self.rows, self._squares)
        centre, moved = kernel.centre if dense else None, kernel.centre is not self.kernel.centre

        def add(rows: slice) -> None:
            left = A.take(rows)
            if moved or (dense and left.sparse):
                left = DenseRows(left.block(slice(None)) - (0.0 if self.kernel.centre is None else self.kernel.centre))
            own_squares = kernel.squares(left, centre)
            for part in steps(own.shape[0], SUMS_TILE[1]):
                values = kernel.tile(left, own.take(part), centre, own_squares, squares[part])
                out[rows] += values @ self.alpha[part]

        work_in_threads(steps(A.shape[0], SUMS_TILE[0]), add)
        return out

    @property
    def _full(self) -> bool:
        """Whether rows b_j are few, and dense or nearly so: then products of rows written out cost less."""
        m, d = self.rows.shape
        return 8.0 * m * d <= COPY_BYTES and FULL_ROWS * self.rows.n_entries >= m * d

    @kept
    def _written(self) -> tuple[Kernel, Rows, np.ndarray]:
        """Kernel, rows b_j and their squared lengths, as dense rows."""
        kernel, rows = self.kernel.centred_copy(self.rows)
        return kernel, rows, kernel.squares(rows, kernel.centre)

    @kept
    def _squares(self) -> np.ndarray:
        """Squared lengths of the rows b_j as they were given."""
        return self.kernel.squares(self.rows, None)
