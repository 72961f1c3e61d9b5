"""Weighted k-means (`kmeans`) over distinct rows: k-means++, then Lloyd's iteration.

Bounds show which distances of an iteration cannot matter; results are those of the plain one.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

import numpy as np

from mdlearn._solvers import lloyd as kernel
from mdlearn.data.clustering.distances import rows_per_distance_block, squared_distances
from mdlearn.data.rows.distinct import Distinct
from mdlearn.data.rows.rows import BLOCK_ENTRIES, COPY_BYTES, DenseRows, Rows, Selection, steps
from mdlearn.numerics import memory

SLACK = 1e-7
"""Error of a distance next to the longest row: what is closer than that is computed anew."""
LEAST_SQUARED_LENGTH = 1e-300
"""Least unit of squared lengths."""
OPEN = 0.1
"""Share of rows that products in float32 may leave open."""
Centres = Generator[np.ndarray | None, None, np.ndarray]
TAIL = 1e-5
"""Share of the sum of squares that a round has to take off: the last of many rounds cost more than they give."""


class LloydRows:
    """Distinct rows as Lloyd's iteration reads them: dense ones less their mean, so that distances keep their digits.

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
            self.held = self.take(slice(None)) if self.sparse else (yield from self._copied())
        for part in self.parts(1):
            with np.errstate(over="ignore", invalid="ignore"):
                self.squares[part] = self.take(part).squares()
            yield
        if not np.isfinite(self.squares).all():
            raise ValueError("X holds numbers whose squares overflow; scale X before clustering it")
        self.slack = SLACK * float(np.sqrt(self.squares.max()))

    def _copied(self) -> Generator[None, None, Rows]:
        """All rows, dense, less their mean."""
        held = np.empty((self.n, self.d))
        for part in self.parts(1):
            held[part] = self.points.block(part) - self.centre
            yield
        return DenseRows(held)

    def take(self, which: Selection) -> Rows:
        """Selected distinct rows; dense ones less the mean."""
        if self.held is not None:
            return self.held.take(which)
        if self.sparse:
            return self.points.rows.take(self.points.where[which])
        return DenseRows(self.points.block(which) - self.centre)

    def parts(self, width: int) -> Iterable[slice]:
        """Blocks of rows for products with `width` vectors."""
        return steps(self.n, rows_per_distance_block(width, self.points.rows))


class Lloyd:
    """Run of Lloyd's iteration; `upper` and `lower` bound each row's distance to its own and to the next centre."""

    def __init__(self, cloud: LloydRows, centers: np.ndarray) -> None:
        self.cloud, self.centers = cloud, centers
        self.labels = np.full(cloud.n, -1, dtype=np.intp)
        self.upper, self.lower = np.full(cloud.n, np.inf), np.zeros(cloud.n)
        self.total = float(cloud.counts @ cloud.squares)
        self.inertia = np.inf

    def assign(self) -> Generator[None, None, bool]:
        """Give every row to its nearest centre, ties to the lowest index; tell whether any row moved."""
        moved = yield from self._scan()
        return self._refill() or moved

    def _scan(self) -> Generator[None, None, bool]:
        """`assign` without a look at empty clusters."""
        cloud, moved = self.cloud, False
        stale = np.flatnonzero(self.upper + cloud.slack > self.lower)
        for part in steps(stale.shape[0], rows_per_distance_block(self.centers.shape[0], cloud.points.rows)):
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
        return moved

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
        cloud, K = self.cloud, self.centers.shape[0]
        weights = np.bincount(self.labels, weights=cloud.counts, minlength=K)
        sums = yield from self._sums(weights)
        new = sums / weights[:, None]
        by = np.sqrt(((new - self.centers) ** 2).sum(axis=1))
        self._loosen(by)
        self.centers = new
        self.inertia = max(0.0, self.total - float(weights @ (new * new).sum(axis=1)))

    def _sums(self, weights: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Sum of the rows of each cluster, counted by weight; `weights` is the sum of these."""
        from scipy.sparse import csc_matrix

        cloud, K = self.cloud, self.centers.shape[0]
        sums = np.zeros_like(self.centers)
        for part in cloud.parts(1):
            n = part.stop - part.start
            pick = csc_matrix((cloud.counts[part], self.labels[part], np.arange(n + 1)), shape=(K, n))
            product = pick @ cloud.take(part).matrix()
            sums += product.toarray() if cloud.sparse else product
            yield
        return sums

    def _loosen(self, by: np.ndarray) -> None:
        """Make bounds hold after centres moved `by`."""
        self.upper += by[self.labels]
        last = int(by.argmax())
        others = np.delete(by, last).max(initial=0.0)
        # No row's bound depends on how far its own centre moved.
        self.lower -= np.where(self.labels == last, others, by[last])


class LloydInMemory(Lloyd):
    """Run of Lloyd's iteration over dense rows in memory: float32 products where these suffice, and sums that are kept.

    Whatever the rounding of products leaves open is decided by plain distances in float64. Where that is much, because
    some rows lie very far out, products are made in float64 from then on.
    """

    def __init__(self, cloud: LloydRows, centers: np.ndarray) -> None:
        super().__init__(cloud, centers)
        assert isinstance(cloud.held, DenseRows)
        self.X = cloud.held.X
        self.sums = np.zeros_like(centers)
        # Weights when sums were made, or since then where larger.
        self.heaviest = np.full(centers.shape[0], np.inf)
        self.unit = max(float(cloud.squares.max()), LEAST_SQUARED_LENGTH)
        self.own = self._scaled(np.float32)

    def _scaled(self, dtype: Any) -> np.ndarray:
        """Rows of at most unit length, made in pieces between which Ctrl-C is seen."""
        out = np.empty(self.X.shape, dtype)
        for part in self._pieces():
            out[part] = self.X[part] / np.sqrt(self.unit)
        return out

    def _scan(self) -> Generator[None, None, bool]:
        """Compute what bounds leave open."""
        cloud, C, moved, unclear = self.cloud, self.centers, 0, 0
        stale = np.flatnonzero(self.upper + cloud.slack > self.lower)
        size = np.sqrt(self.unit)
        scaled = np.ascontiguousarray(C / size, dtype=self.own.dtype)
        halves = (0.5 * (C * C).sum(axis=1) / self.unit).astype(self.own.dtype)
        # d products and sums, and a few roundings more, of numbers whose products are 1 at most.
        margin = (C.shape[1] + 8.0) * 0.5 * float(np.finfo(self.own.dtype).eps)
        for part in steps(stale.shape[0], 2 * rows_per_distance_block(C.shape[0], cloud.points.rows)):
            which = stale[part]
            products = self.own[which] @ scaled.T
            found = kernel.assign(
                self.X, C, which, products, halves, self.unit, margin, cloud.counts, self.upper, self.lower,
                self.labels, self.sums,
            )  # fmt: skip
            moved, unclear = moved + found[0], unclear + found[1]
            yield
        if self.own.dtype == np.float32 and unclear > OPEN * stale.shape[0]:
            self.own = self._scaled(np.float64)
        return moved > 0

    def _pieces(self) -> Iterable[slice]:
        """Row ranges of some milliseconds."""
        return steps(self.cloud.n, 2 * BLOCK_ENTRIES // self.centers.shape[1])

    def _refill(self) -> bool:
        """Sums of clusters that give and take a row are made anew."""
        refilled = super()._refill()
        if refilled:
            self.heaviest[:] = np.inf
        return refilled

    def _sums(self, weights: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Sums as rows came and went; anew where much has gone: its rounding is left."""
        light = 2.0 * weights < self.heaviest
        if light.any():
            self.sums[light] = 0.0
            for part in self._pieces():
                kernel.add(
                    self.X, self.cloud.counts, self.labels, light.view(np.uint8), self.sums, part.start, part.stop
                )
                yield
        self.heaviest = np.where(light, weights, np.maximum(weights, self.heaviest))
        return self.sums


def lloyd_run(cloud: LloydRows, centers: np.ndarray) -> Lloyd:
    """Run of Lloyd's iteration from some centres: `LloydInMemory` for dense rows that are in memory."""
    return LloydInMemory(cloud, centers) if isinstance(cloud.held, DenseRows) else Lloyd(cloud, centers)


def kmeans(points: Distinct, n_clusters: int, rng: np.random.Generator, restarts: int = 1) -> Centres:
    """Weighted k-means: k-means++ seeds, then Lloyd's iteration until it lowers the sum by less than TAIL.

    A coroutine. It yields centres, shape (n_clusters, d), whenever it has found better ones, and None in between, after
    a block of work each; the first ones, at once, are random rows. Whoever stops it keeps the last centres that it got.

    Returned are those of the run, of `restarts` with different seeds, that has the smallest sum of weighted squared
    distances. No cluster is left empty: one that lost its last row gets the row that lies farthest from its own centre.
    Distances that cannot matter are not computed (see `Lloyd`); results are those of the plain iteration.

    Raises ValueError for more clusters than distinct rows. See Arthur & Vassilvitskii, k-means++ (2007).
    """
    points.require(n_clusters, "n_clusters")
    memory.require(64.0 * n_clusters * points.rows.shape[1], f"k-means with {n_clusters} centres", "use fewer clusters")
    best = points.block(np.sort(rng.choice(len(points), n_clusters, replace=False)))
    yield best
    cloud, least = LloydRows(points), np.inf
    yield from cloud.setup()
    for _ in range(restarts):
        seeds = yield from _kmeans_seeds(cloud, n_clusters, rng)
        run = lloyd_run(cloud, cloud.take(seeds).block(slice(None)))
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


def _kmeans_seeds(cloud: LloydRows, n: int, rng: np.random.Generator) -> Generator[None, None, np.ndarray]:
    """Seeds of k-means++: each is drawn by weight times squared distance to the seeds before it."""
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
