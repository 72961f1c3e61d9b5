"""Stored tiles: a Gaussian kernel matrix of which a bounded number of bytes is kept, for systems of many products.

A value between 0 and 1 takes 16 bits, and a product reads it ten times faster than it makes it from 123 columns. What
rounding changes, the next Newton step finds in its gradient, whose margins are made of values that are not rounded: it
needs to be small beside what a system adds to the diagonal. Of a symmetric matrix, half is kept.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from mdlearn._solvers import gaussian
from mdlearn.data.features.kernel_tiles import TILE_LENGTH, VALUE_OPERATIONS, KernelTiles, Tile

ROUNDED_UNITS = 65535.0
"""Units of a rounded value of 1, the largest number of 16 bits."""
ROUNDED_CURVATURE = 0.5
"""Curvature times the length of the rounding of a matrix up to which rounded values lead a Newton step."""

STORING_OPERATIONS, READING_OPERATIONS = 300.0, 20.0
"""Operations that it costs to keep a value, most of them for new memory, and to use one that is kept."""


def storing_pays(length: float, products: float) -> bool:
    """Whether so many products with values made of `length` numbers cost less once these are kept."""
    made = 2.0 * length + VALUE_OPERATIONS
    return products * (made - READING_OPERATIONS) > made + STORING_OPERATIONS


def stored_tile_bytes(m: int, rounded: bool) -> float:
    """Bytes of half of a symmetric matrix of order m, tile by tile: at most so many are kept."""
    return (2.0 if rounded else 4.0) * 0.5 * m * (m + min(m, TILE_LENGTH))


class StoredTiles(KernelTiles):
    """Tiles of a bounded kernel matrix, of which the first ones are kept.

    Parameters
    ----------
    source : KernelTiles
    n_bytes : float
        Of all values that are kept.
    rounded : bool
        Whether to 16 bits; else to single precision.
    """

    def __init__(self, source: KernelTiles, n_bytes: float, rounded: bool) -> None:
        self.source, self.n_rows, self.length, self.dtype = source, source.n_rows, source.length, np.float32
        self.rounded, self.n_bytes, self.in_threads = rounded, n_bytes, source.in_threads
        self.held: list[Tile] = []

    def fill(self) -> Generator[None, None, None]:
        """Make the tiles that are kept."""
        kind = np.dtype(np.uint16 if self.rounded else np.float32)
        room = np.empty(
            int(min(self.n_bytes, stored_tile_bytes(self.n_rows, self.rounded)) / kind.itemsize), dtype=kind
        )

        def tiles_with_room() -> Iterator[Tile]:
            at = 0
            for rows, columns, side in self.source.upper_half():
                shape = rows.stop - rows.start, columns.stop - columns.start
                end = at + shape[0] * shape[1]
                if end > room.shape[0]:
                    return
                own, at = room[at:end].reshape(shape), end
                self.held.append((rows, columns, own))
                yield rows, columns, (side, own)

        def work(tile: Tile) -> None:
            rows, _, (side, own) = tile
            values = self.source._values(rows, side)
            own[...] = np.rint(values * ROUNDED_UNITS) if self.rounded else values

        yield from self._over(tiles_with_room(), work)
        self.length = 0

    def _add_all(self, out: np.ndarray, coef: np.ndarray, first: int = 0) -> Generator[None, None, None]:
        """Add sum_j coef_j k(x_i, x_j) over all rows j to out_i, for every row i; values that are kept come first."""
        unit = 1.0 / ROUNDED_UNITS if self.rounded else 1.0
        lines = np.ascontiguousarray(unit * coef.reshape(self.n_rows, -1).T, dtype=np.float32)
        sums = np.zeros(lines.shape)

        def work(tile: Tile) -> tuple[np.ndarray, np.ndarray]:
            rows, columns, own = tile
            right, below = np.zeros((len(lines), own.shape[0])), np.zeros((len(lines), own.shape[1]))
            for v, r, b in zip(lines, right, below):
                if self.rounded:
                    gaussian.add_both_sides(own, v[rows], v[columns], r, b)
                else:
                    r[:], b[:] = own @ v[columns], own.T @ v[rows]
            return right, below

        def use(tile: Tile, parts: tuple[np.ndarray, np.ndarray]) -> None:
            rows, columns, _ = tile
            sums[:, rows] += parts[0]
            if rows.start != columns.start:
                sums[:, columns] += parts[1]

        yield from self._over(self.held, work, use)
        out += sums.T.reshape(out.shape)
        yield from self.source._add_all(out, coef, len(self.held))

    def take(self, index: np.ndarray) -> KernelTiles:
        """Tiles of the same kernel over the rows `index`, of which none is kept."""
        return self.source.take(index)

    def _side(self, index: np.ndarray) -> object:
        return self.source._side(index)

    def _values(self, rows: slice | np.ndarray, side: object) -> np.ndarray:
        return self.source._values(rows, side)
