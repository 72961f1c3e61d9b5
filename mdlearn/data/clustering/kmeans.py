"""Weighted k-means (`kmeans`) over distinct rows."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mdlearn.data.clustering.distances import squared_distances
from mdlearn.data.clustering.lloyd import LloydRows, lloyd_run
from mdlearn.data.rows.distinct import Distinct
from mdlearn.numerics import memory

Centres = Generator[np.ndarray | None, None, np.ndarray]
TAIL = 1e-5
"""Share of the sum of squares that a round has to take off: the last of many rounds cost more than they give."""


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
