"""Distances of rows to centres, and membership of rows in clusters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mdlearn.data.rows.rows import BLOCK_ENTRIES, SPAN_ENTRIES, DenseRows, Rows, steps

TIE = 1e-12
"""Error of a squared distance next to the squares it was subtracted from; closer ones are computed again, plainly."""
NEAREST = 4
"""Clusters that a row with soft membership belongs to."""


CENTRED_COLUMNS = 30
"""Columns up to which sparse rows are taken as dense ones: these can be centred, and products cost no more."""


def _sparse_distances_suit(rows: Rows) -> bool:
    """Whether distances of rows are computed from their stored entries."""
    return rows.sparse and rows.shape[1] > CENTRED_COLUMNS


def rows_per_distance_block(width: int, rows: Rows) -> int:
    """Number of rows to multiply with `width` vectors in one block, which stays in the cache where rows are dense."""
    if _sparse_distances_suit(rows):
        return BLOCK_ENTRIES // (4 * max(width, 64))
    return min(2 * SPAN_ENTRIES // width, BLOCK_ENTRIES // rows.shape[1])


def squared_distances(rows: Rows, centers: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Squared distances of rows, whose squared lengths are `squares`, to centres; shape (m, K)."""
    D = rows.inner(DenseRows(centers))
    D *= -2.0
    D += squares[:, None]
    D += DenseRows(centers).squares()
    return np.maximum(D, 0.0, out=D)


def _distance_blocks(rows: Rows, centers: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Row ranges, their squared distances to all centres, and the size of what these were subtracted from.

    Dense rows are taken less the mean of the centres: distances keep their digits far from the origin.
    """
    sparse = _sparse_distances_suit(rows)
    shift = 0.0 if sparse else centers.mean(axis=0)
    shifted = centers - shift
    longest = float(DenseRows(shifted).squares().max())
    for part in steps(rows.shape[0], rows_per_distance_block(centers.shape[0], rows)):
        block = rows.take(part) if sparse else DenseRows(rows.block(part) - shift)
        squares = block.squares()
        yield part, squared_distances(block, shifted, squares), squares + longest


def assign(rows: Rows, centers: np.ndarray) -> np.ndarray:
    """Assign every row to its nearest centre by distance: indices (m,), intp (Euclidean; ties to the lowest).

    What rounding leaves open is decided by plain sums of squared differences: so a row's label depends neither on the
    rows beside it nor on how they are stored.
    """
    labels = np.empty(rows.shape[0], dtype=np.intp)
    for part, D, size in _distance_blocks(rows, centers):
        here, near = np.arange(D.shape[0]), D.argmin(axis=1)
        limit = D[here, near] + TIE * size
        D[here, near] = np.inf
        open_ = np.flatnonzero(D.min(axis=1) <= limit)
        D[here, near] = 0.0
        for some in steps(open_.shape[0], BLOCK_ENTRIES // (8 * rows.shape[1])):
            which = open_[some]
            close = D[which] <= limit[which, None]
            near[which] = _nearest_by_distances(rows.block(part.start + which), centers, close)
        labels[part] = near
    return labels


def _nearest_by_distances(X: np.ndarray, centers: np.ndarray, close: np.ndarray) -> np.ndarray:
    """Nearest of the `close` cluster centres, by distances as plain sums of squared differences."""
    D = np.full(close.shape, np.inf)
    for k in np.flatnonzero(close.any(axis=0)):
        at = np.flatnonzero(close[:, k])
        away = X[at] - centers[k]
        D[at, k] = np.einsum("ij,ij->i", away, away)
    return D.argmin(axis=1)


def mean_nearest_distance(rows: Rows, counts: np.ndarray, centers: np.ndarray) -> float:
    """Mean squared distance of rows to the nearest centre, counted by weight: the width of soft clusters."""
    total = 0.0
    for part, D, _ in _distance_blocks(rows, centers):
        total += float(counts[part] @ D.min(axis=1))
    return total / float(counts.sum())


def memberships(rows: Rows, centers: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Soft memberships by distance: weights exp(-|x - c_k|^2 / width) of the few nearest centres, divided by their sum.

    Returned are clusters, nearest first (ties: lowest index first), and weights, both of shape (m, t) with
    t = min(K, NEAREST). A width of zero gives all weight to the nearest.
    """
    m, t = rows.shape[0], min(NEAREST, centers.shape[0])
    labels, weights = np.empty((m, t), dtype=np.intp), np.empty((m, t))
    for part, D, _ in _distance_blocks(rows, centers):
        here = np.arange(D.shape[0])
        for j in range(t):
            nearest = D.argmin(axis=1)
            labels[part, j], weights[part, j] = nearest, D[here, nearest]
            D[here, nearest] = np.inf
        away = weights[part] - weights[part, :1]
        W = np.exp(-away / width) if width > 0 else (away == 0).astype(np.float64)
        weights[part] = W / W.sum(axis=1, keepdims=True)
    return labels, weights
