"""Weighted k-means over distinct rows, and membership of rows in clusters."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from mdlearn.data import memory
from mdlearn.data.distinct import Distinct
from mdlearn.data.rows import BLOCK_ENTRIES, COPY_BYTES, SPAN_ENTRIES, DenseRows, Rows, Selection, steps

Centres = Generator[np.ndarray | None, None, np.ndarray]
TAIL = 1e-5
"""Share of the sum of squares that a round has to take off: the last of many rounds cost more than they give."""
SLACK = 1e-7
"""Error of a distance next to the longest row: what is closer than that is computed anew."""
TIE = 1e-12
"""Error of a squared distance next to the squares it was subtracted from; closer ones are computed again, plainly."""
NEAREST = 4
"""Clusters that a row with soft membership belongs to."""


def kmeans(points: Distinct, n_clusters: int, rng: np.random.Generator, restarts: int = 1) -> Centres:
    """Weighted k-means: k-means++ seeds, then Lloyd's iteration until it lowers the sum by less than TAIL.

    A coroutine. It yields centres, shape (n_clusters, d), whenever it has found better ones, and None in between, after
    a block of work each; the first ones, at once, are random rows. Whoever stops it keeps the last centres that it got.

    Parameters
    ----------
    points : Distinct
    n_clusters : int
        1 to the number of distinct rows.
    rng : numpy.random.Generator
    restarts : int
        Runs from different seeds, of which the one with the smallest sum of weighted squared distances counts.

    Returns
    -------
    ndarray of shape (n_clusters, d), float64
        No cluster is left empty: one that lost its last row gets the row that lies farthest from its own centre.

    Raises
    ------
    ValueError
        For more clusters than distinct rows.

    References
    ----------
    Arthur & Vassilvitskii, k-means++ (2007). Rows whose cluster cannot have changed are passed over by the bounds of
    Hamerly, Making k-means even faster (2010); results are those of the plain iteration.
    """
    points.require(n_clusters, "n_clusters")
    memory.require(64.0 * n_clusters * points.rows.shape[1], f"k-means with {n_clusters} centres", "use fewer clusters")
    best = points.block(np.sort(rng.choice(len(points), n_clusters, replace=False)))
    yield best
    cloud, least = _Cloud(points), np.inf
    yield from cloud.setup()
    for _ in range(restarts):
        seeds = yield from _seeds(cloud, n_clusters, rng)
        run = _Lloyd(cloud, cloud.take(seeds).block(slice(None)))
        inertia = np.inf
        while (yield from run.assign()):
            yield from run.update()
            better, before, inertia = run.inertia < least, inertia, run.inertia
            if better:
                least, best = inertia, run.centers + cloud.centre
            yield best if better else None
            if not inertia < (1.0 - TAIL) * before:
                break
    return best


class _Cloud:
    """Distinct rows as k-means reads them: dense ones less their mean, so that distances keep their digits.

    Rows that fit in COPY_BYTES are brought in order and to float64 once; others are looked up block by block.
    """

    def __init__(self, points: Distinct) -> None:
        self.points, self.counts, self.sparse = points, points.counts, points.rows.sparse
        self.n, self.d = len(points), points.rows.shape[1]
        self.centre: np.ndarray | float = 0.0
        self.held: Rows | None = None
        self.squares = np.empty(self.n)

    def setup(self) -> Generator[None, None, None]:
        """Find the mean and the squared lengths."""
        if not self.sparse:
            total = np.zeros(self.d)
            for part in self.parts(1):
                total += self.counts[part] @ self.points.block(part)
                yield
            self.centre = total / self.counts.sum()
        if 12.0 * self.n * self.d <= COPY_BYTES:
            self.held = self.take(slice(None))
        for part in self.parts(1):
            self.squares[part] = _squares(self.take(part))
            yield
        if not np.isfinite(self.squares).all():
            raise ValueError("X holds numbers whose squares overflow; scale X before clustering it")
        self.slack = SLACK * float(np.sqrt(self.squares.max()))

    def take(self, which: Selection) -> Rows:
        """Some rows."""
        if self.held is not None:
            return self.held.take(which)
        if self.sparse:
            return self.points.rows.take(self.points.where[which])
        return DenseRows(self.points.block(which) - self.centre)

    def parts(self, width: int) -> Iterator[slice]:
        """Blocks of rows for products with `width` vectors."""
        return steps(self.n, _at_once(width, self.points.rows))


def _squares(rows: Rows) -> np.ndarray:
    """Squared lengths, infinite where they overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        return rows.squares()


def _at_once(width: int, rows: Rows) -> int:
    """How many rows to multiply with `width` vectors in one block: it stays in the cache where rows are dense."""
    if rows.sparse:
        return BLOCK_ENTRIES // (4 * max(width, 64))
    return min(2 * SPAN_ENTRIES // width, BLOCK_ENTRIES // rows.shape[1])


def _seeds(cloud: _Cloud, n: int, rng: np.random.Generator) -> Generator[None, None, np.ndarray]:
    """k-means++: each seed is drawn by weight times squared distance to the seeds before it."""
    chosen = np.empty(n, dtype=np.intp)
    gaps = np.ones(cloud.n)
    for k in range(n):
        mass = np.cumsum(cloud.counts * gaps)
        if mass[-1] > 0:
            chosen[k] = np.searchsorted(mass, rng.random() * mass[-1], side="right")
        else:  # what is left lies at the seeds, as far as rounding can tell
            chosen[k] = np.setdiff1d(np.arange(cloud.n), chosen[:k])[0]
        seed = cloud.take(chosen[k : k + 1]).block(slice(None))
        for part in cloud.parts(1):
            new = squared_distances(cloud.take(part), seed, cloud.squares[part])[:, 0]
            gaps[part] = np.minimum(gaps[part], new) if k else new
            yield
        gaps[chosen[: k + 1]] = 0.0
    return chosen


class _Lloyd:
    """One run. `upper` and `lower` bound each row's distance to its own and to the next centre."""

    def __init__(self, cloud: _Cloud, centers: np.ndarray) -> None:
        self.cloud, self.centers = cloud, centers
        self.labels = np.full(cloud.n, -1, dtype=np.intp)
        self.upper, self.lower = np.full(cloud.n, np.inf), np.zeros(cloud.n)
        self.total = float(cloud.counts @ cloud.squares)
        self.inertia = np.inf

    def assign(self) -> Generator[None, None, bool]:
        """Give every row to its nearest centre, ties to the lowest index; tell whether any row moved."""
        cloud, moved = self.cloud, False
        stale = np.flatnonzero(self.upper + cloud.slack > self.lower)
        for part in steps(stale.shape[0], _at_once(self.centers.shape[0], cloud.points.rows)):
            which = stale[part]
            D = squared_distances(cloud.take(which), self.centers, cloud.squares[which])
            here = np.arange(which.shape[0])
            nearest = D.argmin(axis=1)
            self.upper[which] = np.sqrt(D[here, nearest])
            D[here, nearest] = np.inf
            self.lower[which] = np.sqrt(D.min(axis=1))
            moved = moved or bool((nearest != self.labels[which]).any())
            self.labels[which] = nearest
            yield
        return self._refill() or moved

    def _refill(self) -> bool:
        """Give each empty cluster the row farthest from its centre, of those that share theirs with other rows."""
        sizes = np.bincount(self.labels, minlength=self.centers.shape[0])
        empty = np.flatnonzero(sizes == 0)
        if empty.shape[0] == 0:
            return False
        away = np.empty(self.cloud.n)
        for part in self.cloud.parts(self.centers.shape[0]):
            D = squared_distances(self.cloud.take(part), self.centers, self.cloud.squares[part])
            away[part] = D[np.arange(D.shape[0]), self.labels[part]]
        for k in empty:
            i = int(np.argmax(np.where(sizes[self.labels] > 1, away, -1.0)))
            sizes[self.labels[i]] -= 1
            sizes[k] = 1
            self.labels[i], away[i], self.upper[i], self.lower[i] = k, 0.0, np.inf, 0.0
        return True

    def update(self) -> Generator[None, None, None]:
        """Move every centre to the mean of its rows, and the bounds as far as centres moved."""
        from scipy.sparse import csc_matrix

        cloud, K = self.cloud, self.centers.shape[0]
        sums = np.zeros_like(self.centers)
        for part in cloud.parts(1):
            n = part.stop - part.start
            pick = csc_matrix((cloud.counts[part], self.labels[part], np.arange(n + 1)), shape=(K, n))
            product = pick @ cloud.take(part).matrix()
            sums += product.toarray() if cloud.sparse else product
            yield
        weights = np.bincount(self.labels, weights=cloud.counts, minlength=K)
        new = sums / weights[:, None]
        by = np.sqrt(((new - self.centers) ** 2).sum(axis=1))
        self.upper += by[self.labels]
        self.lower -= by.max()
        self.centers = new
        self.inertia = max(0.0, self.total - float(weights @ (new * new).sum(axis=1)))


def squared_distances(rows: Rows, centers: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Squared distances of rows, whose squared lengths are `squares`, to centres; shape (m, K)."""
    D = rows.inner(DenseRows(centers))
    D *= -2.0
    D += squares[:, None]
    D += DenseRows(centers).squares()
    return np.maximum(D, 0.0, out=D)


def _blocks(rows: Rows, centers: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Row ranges, their distances to all centres, and the size of what these were subtracted from.

    Dense rows are taken less the mean of the centres: distances keep their digits far from the origin.
    """
    shift = 0.0 if rows.sparse else centers.mean(axis=0)
    shifted = centers - shift
    longest = float(DenseRows(shifted).squares().max())
    for part in steps(rows.shape[0], _at_once(centers.shape[0], rows)):
        block = rows.take(part) if rows.sparse else DenseRows(rows.block(part) - shift)
        squares = block.squares()
        yield part, squared_distances(block, shifted, squares), squares + longest


def assign(rows: Rows, centers: np.ndarray) -> np.ndarray:
    """Index of the nearest centre of every row (Euclidean; ties to the lowest index), shape (m,), intp.

    What rounding leaves open is decided by plain sums of squared differences: so a row's label depends neither on the
    rows beside it nor on how they are stored.
    """
    labels = np.empty(rows.shape[0], dtype=np.intp)
    for part, D, size in _blocks(rows, centers):
        here, near = np.arange(D.shape[0]), D.argmin(axis=1)
        limit = D[here, near] + TIE * size
        D[here, near] = np.inf
        open_ = np.flatnonzero(D.min(axis=1) <= limit)
        D[here, near] = 0.0
        for some in steps(open_.shape[0], BLOCK_ENTRIES // (8 * rows.shape[1])):
            which = open_[some]
            close = D[which] <= limit[which, None]
            near[which] = _plainly_nearest(rows.block(part.start + which), centers, close)
        labels[part] = near
    return labels


def _plainly_nearest(X: np.ndarray, centers: np.ndarray, close: np.ndarray) -> np.ndarray:
    """Nearest of the `close` centres by plain sums."""
    D = np.full(close.shape, np.inf)
    for k in np.flatnonzero(close.any(axis=0)):
        at = np.flatnonzero(close[:, k])
        away = X[at] - centers[k]
        D[at, k] = np.einsum("ij,ij->i", away, away)
    return D.argmin(axis=1)


def bandwidth(rows: Rows, counts: np.ndarray, centers: np.ndarray) -> float:
    """Mean squared distance to the nearest centre, rows counted by weight: the width of soft clusters."""
    total = 0.0
    for part, D, _ in _blocks(rows, centers):
        total += float(counts[part] @ D.min(axis=1))
    return total / float(counts.sum())


def memberships(rows: Rows, centers: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Soft membership: weights exp(-|x - c_k|^2 / width) over the few nearest centres, divided by their sum.

    Returns
    -------
    (ndarray of shape (m, t), intp; ndarray of shape (m, t), float64)
        Clusters, nearest first (ties: lowest index first), and weights, t = min(K, NEAREST). A width of zero gives all
        weight to the nearest.
    """
    m, t = rows.shape[0], min(NEAREST, centers.shape[0])
    labels, weights = np.empty((m, t), dtype=np.intp), np.empty((m, t))
    for part, D, _ in _blocks(rows, centers):
        here = np.arange(D.shape[0])
        for j in range(t):
            nearest = D.argmin(axis=1)
            labels[part, j], weights[part, j] = nearest, D[here, nearest]
            D[here, nearest] = np.inf
        away = weights[part] - weights[part, :1]
        W = np.exp(-away / width) if width > 0 else (away == 0).astype(np.float64)
        weights[part] = W / W.sum(axis=1, keepdims=True)
    return labels, weights
