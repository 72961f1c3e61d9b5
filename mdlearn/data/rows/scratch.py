"""Scratch memory, used again and again: some rows in float64 at a time, for several products."""

from __future__ import annotations

import math

import numpy as np


class Room:
    """Scratch memory for pieces of rows: arrays by name, which a loop uses again and again.

    New ones of some megabytes cost a fault for each page of memory wherever the allocator gives them back at once, as
    that of a Dask worker does: three times the time of a pass.
    """

    def __init__(self) -> None:
        self.held: dict[str, np.ndarray] = {}

    def array(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """An array of this shape, with whatever is in it."""
        size = math.prod(shape)
        if name not in self.held or self.held[name].shape[0] < size:
            self.held[name] = np.empty(size)
        return self.held[name][:size].reshape(shape)


class ScratchPiece:
    """Piece of rows in a float64 array of scratch memory, for several products.

    `X` of shape (n, d).
    """

    def __init__(self, X: np.ndarray, room: Room) -> None:
        self.X, self.room = X, room

    def dot(self, W: np.ndarray) -> np.ndarray:
        """X W' for W of shape (k, d), shape (n, k)."""
        return np.asarray(self.X @ W.T)

    def adjoint(self, A: np.ndarray) -> np.ndarray:
        """A' X for A of shape (n, k), shape (k, d)."""
        return np.asarray(A.T @ self.X)

    def sizes(self, A: np.ndarray) -> np.ndarray:
        """Product A' |X| for A of shape (n, k), shape (k, d); |X| holds the absolute values of all entries."""
        return np.asarray(A.T @ np.abs(self.X, out=self.room.array("scaled", self.X.shape)))

    def add_square(self, H: np.ndarray, weights: np.ndarray) -> None:
        """Add sum_i weights_i x_i x_i' to H, shape (d, d); weights are not negative."""
        used = np.flatnonzero(weights > 0)
        S = self.room.array("scaled", (used.shape[0], self.X.shape[1]))
        if used.shape[0] == weights.shape[0]:
            np.multiply(self.X, np.sqrt(weights)[:, None], out=S)
        else:
            np.take(self.X, used, axis=0, out=S, mode="clip")
            S *= np.sqrt(weights[used])[:, None]
        H += S.T @ S

    def dense(self, which: slice | np.ndarray) -> np.ndarray:
        """Selected rows of this piece as an array."""
        return self.X[which]
