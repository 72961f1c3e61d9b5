"""Points chosen to stand for a data set (landmarks, or centres of clusters), and projections of rows on them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from mdlearn.data.clustering.kmeans import Centres, kmeans
from mdlearn.data.features.kernels import Kernel, make_kernel
from mdlearn.data.rows.arrays import check_rows
from mdlearn.data.rows.distinct import Distinct
from mdlearn.data.rows.rows import BLOCK_ENTRIES, DenseRows, Rows, steps
from mdlearn.data.validation import check_number
from mdlearn.errors import did_you_mean
from mdlearn.numerics import memory

SELECTIONS = ("random", "pca", "kmeans")
PROJECTIONS = ("dot", "rbf")
PROJECTED_ROWS = 64
"""Rows that are projected at once: BLAS rounds products of as many rows alike."""


def choose(how: Any, points: Distinct, n: int, seed: int, name: str = "n_landmarks", restarts: int = 1) -> Centres:
    """Choose landmarks, or centres of clusters, by one of SELECTIONS or by a function.

    A coroutine, as `kmeans` is: it yields points that could be used, or None, and returns the points. The first ones,
    at once, are random rows.

    `how`: "random": distinct rows, without replacement. "pca": leading right singular vectors of the centred rows,
    counted by weight, themselves neither centred nor scaled; the largest entry is positive (Zantedeschi, Emonet &
    Sebban, L3-SVMs, 2017, section 2). "kmeans": centres of k-means, the best of `restarts` runs. A callable
    f(X, n, seed) gets the distinct rows in lexicographic order in float64 (an array, or a CSR matrix) and returns an
    array of shape (n, d). `n`: 1 to the number of distinct rows, for "pca" also at most d; `name`: the parameter that
    says so, for errors.

    Returns an array of shape (n, d), float64. Raises TypeError or ValueError for an unknown selection, a number out of
    range, or a function that does not return such an array.
    """
    if not callable(how) and (not isinstance(how, str) or how not in SELECTIONS):
        raise (ValueError if isinstance(how, str) else TypeError)(
            f"{how!r} is no way to choose points; give one of {', '.join(SELECTIONS)} or a callable f(X, n, seed)"
            + did_you_mean(how, SELECTIONS)
        )
    points.require(n, name)
    memory.require(8.0 * n * points.rows.shape[1], f"{n} points in {points.rows.shape[1]} columns", f"lower {name}")
    rng = np.random.default_rng(seed)
    if callable(how):
        return _landmarks_by_function(how, points, n, seed, name)
    if how == "kmeans":
        return (yield from kmeans(points, n, rng, restarts))
    if how == "pca":
        _check_pca_landmarks(points, n, name)
    chosen = points.block(rng.choice(len(points), n, replace=False))
    if how == "random":
        return chosen
    yield chosen
    return (yield from _pca_landmarks(points, n))


def in_time(work: Centres) -> Generator[None, Any, np.ndarray]:
    """Run a choice of landmarks or centres to its end; when the time is up, stop with the best ones so far."""
    best = None
    while True:
        try:
            found = next(work)
        except StopIteration as done:
            points: np.ndarray = done.value
            return points
        best = best if found is None else found
        if (yield) and best is not None:
            work.close()
            return best


def _landmarks_by_function(function: Any, points: Distinct, n: int, seed: int, name: str) -> np.ndarray:
    """Landmarks or centres that the caller's function chooses, checked."""
    d = points.rows.shape[1]
    if not points.rows.sparse:
        memory.require(8.0 * len(points) * d, "the rows in float64 for a callable", "choose points by name")
    result = check_rows(
        function(points.rows.take(points.where).matrix(), n, seed), f"what the callable for {name} returned"
    )
    if result.shape != (n, d):
        raise ValueError(
            f"the callable that chooses points returned shape {result.shape}; it needs to be ({n}, {d}) for {name}={n}"
        )
    return result.block(slice(None))


def given_landmarks(points: Any, what: str, d: int | None) -> np.ndarray:
    """Landmarks or centres that the caller gave, float64 of shape (n, d), d None: any; `what` names them in errors."""
    rows = check_rows(points, what)
    if d is not None and rows.shape[1] != d:
        raise ValueError(f"{what} has {rows.shape[1]} columns but X has {d}; give points with the columns of X")
    return np.array(rows.block(slice(None)))


def _check_pca_landmarks(points: Distinct, n: int, name: str) -> None:
    """Raise ValueError for more PCA landmarks than directions, InsufficientMemory for too large a problem."""
    d = points.rows.shape[1]
    if n > min(d, len(points)):
        raise ValueError(
            f"{name} is {n} but PCA of {len(points)} distinct rows with {d} columns has {min(d, len(points))} "
            f"directions; give at most that, or choose 'random' or 'kmeans'"
        )
    side = min(d, len(points))
    memory.require(100.0 * side * d, f"PCA in {d} columns", "choose 'random' or 'kmeans'")


def _pca_landmarks(points: Distinct, n: int) -> Generator[None, None, np.ndarray]:
    """PCA landmarks: right singular vectors, by a QR factorisation over row blocks: squares would halve the digits."""
    d = points.rows.shape[1]
    step = max(64, BLOCK_ENTRIES // d)
    mean = np.zeros(d)
    for part in steps(len(points), step):
        mean += points.counts[part] @ points.block(part)
        yield
    mean /= points.counts.sum()
    R = np.empty((0, d))
    for part in steps(len(points), max(4 * d, step)):
        R = np.vstack([R, (points.block(part) - mean) * np.sqrt(points.counts[part])[:, None]])
        if R.shape[0] > d:
            R = np.asarray(np.linalg.qr(R, mode="r"))
        yield
    _, s, V = np.linalg.svd(R, full_matrices=False)
    rank = int((s > max(len(points), d) * np.finfo(float).eps * s[0]).sum())
    return _sign_pca_directions(_complete_pca_directions(V[: min(rank, n)], n))


def _complete_pca_directions(V: np.ndarray, n: int) -> np.ndarray:
    """PCA directions V of landmarks and, where fewer than n, unit vectors orthogonal to them and to each other.

    Rows do not vary along these. A unit vector is taken when more than 1/(2d) of its square is left: those passed over
    add up to less than one dimension, so that enough are found, and rounding has no say in the choice.
    """
    d = V.shape[1]
    for j in range(d):
        if V.shape[0] == n:
            break
        rest = np.zeros(d)
        rest[j] = 1.0
        rest -= V.T @ V[:, j]
        if rest @ rest > 0.5 / d:
            rest -= V.T @ (V @ rest)
            V = np.vstack([V, rest / np.linalg.norm(rest)])
    return V


def _sign_pca_directions(V: np.ndarray) -> np.ndarray:
    """PCA directions of landmarks with positive largest entries: of those equal but for rounding, the first."""
    size = np.abs(V)
    at = np.argmax(size >= (1.0 - 1e-6) * size.max(axis=1, keepdims=True), axis=1)
    return V * np.sign(V[np.arange(V.shape[0]), at])[:, None]


def landmark_projection(projection: Any, sigma: Any, rows: Rows, counts: np.ndarray) -> Kernel:
    """Projection on landmarks, mu(x, l), as a kernel: "dot" x . l, "rbf" exp(-|x - l|^2 / sigma), or a callable."""
    if callable(projection):
        return make_kernel(projection, {}, rows, counts)
    if not isinstance(projection, str) or projection not in PROJECTIONS:
        raise (ValueError if isinstance(projection, str) else TypeError)(
            f"projection {projection!r} is unknown; give one of {', '.join(PROJECTIONS)} or a callable k(A, B)"
            + did_you_mean(projection, PROJECTIONS)
        )
    if projection == "dot":
        return make_kernel("linear", {}, rows, counts)
    sigma = check_number(sigma, "sigma", low=0.0, high=np.finfo(float).max, strict=True)
    return make_kernel("rbf", {"gamma": min(1.0 / sigma, np.finfo(float).max)}, rows, counts)


def landmark_projector(projection: Kernel, landmarks: np.ndarray, sparse: bool) -> Callable[[Rows], np.ndarray]:
    """Function that projects rows on landmarks, f(A) of shape (n, L): values do not depend on layout or other rows.

    A kernel over them tells rows apart that their rounding moves, and a model's rows are to be those that were fitted.

    `projection`: mu(x, l); `landmarks` of shape (L, d); `sparse`: whether rows will be sparse. Their products read
    landmarks by columns, which are laid out once.
    """
    points = DenseRows(np.asarray(landmarks, order="F" if sparse else "C"))

    def project(rows: Rows) -> np.ndarray:
        if sparse or projection.function is not None:
            return projection.block(rows, points)
        n, d = rows.shape
        mu, tile = np.empty((n, points.shape[0])), np.zeros((PROJECTED_ROWS, d))
        for part in steps(n, PROJECTED_ROWS):
            some = rows.block(part)
            tile[: some.shape[0]] = some
            mu[part] = projection.block(DenseRows(tile), points)[: some.shape[0]]
        return mu

    return project
