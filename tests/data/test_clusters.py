"""Distinct rows, weighted k-means and membership, judged by their definitions written out in NumPy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from draining import drain

from mdlearn.data.clustering import kmeans as kmeans_module
from mdlearn.data.clustering.distances import assign, mean_nearest_distance, memberships
from mdlearn.data.clustering.kmeans import Lloyd, LloydInMemory, LloydRows, kmeans
from mdlearn.data.rows import distinct as distinct_module
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.distinct import distinct
from mdlearn.data.rows.rows import DenseRows
from mdlearn.numerics.errstate import overflow_errstate


def centres(rows, n, counts=None, seed=0, restarts=1):
    counts = np.ones(rows.shape[0]) if counts is None else counts
    return drain(kmeans(distinct(rows, counts), n, np.random.default_rng(seed), restarts))[1]


def squared(X, C):
    """All squared distances, written out."""
    return ((X[:, None, :] - C) ** 2).sum(axis=2)


def inertia(X, C, counts=1.0):
    return float((counts * squared(X, C).min(axis=1)).sum())


def blobs(m=300, d=3, groups=8, seed=0):
    rng = np.random.default_rng(seed)
    return 3.0 * rng.standard_normal((groups, d))[rng.integers(groups, size=m)] + rng.standard_normal((m, d))


def tied(m=400, d=6, seed=0):
    """Rows of few different numbers, zeros of both signs among them: many equal rows, many equal beginnings."""
    values = np.array([-2.0, -0.5, -0.0, 0.0, 0.0, 0.0, 0.5, 3.0], dtype=np.float32)
    return np.random.default_rng(seed).choice(values, size=(m, d))


def stored(X, dtype=np.float64, index=np.int32):
    """CSR with some zeros stored."""
    at = np.nonzero((X != 0) | (np.random.default_rng(2).random(X.shape) < 0.3))
    A = sp.csr_matrix((X[at].astype(dtype), at), shape=X.shape)
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    return A


SOURCES = {
    "float64": lambda X: DenseRows(X.astype(np.float64)),
    "float32": lambda X: DenseRows(X.astype(np.float32)),
    "fortran": lambda X: DenseRows(np.asfortranarray(X, dtype=np.float64)),
    "csr": lambda X: CsrRows(sp.csr_matrix(X.astype(np.float64))),
    "csr float32 int64 with stored zeros": lambda X: CsrRows(stored(X, np.float32, np.int64)),
}


@pytest.mark.parametrize("copies", [None, 2], ids=["at once", "column by column"])
@pytest.mark.parametrize("source", SOURCES)
def test_distinct_rows_are_those_of_numpy_in_lexicographic_order(source, copies, monkeypatch):
    if copies is not None:
        monkeypatch.setattr(distinct_module, "BLOCK_ENTRIES", copies)
    X = tied()
    counts = np.random.default_rng(1).integers(0, 4, size=X.shape[0]).astype(float)
    rows = SOURCES[source](X)
    assert np.array_equal(rows.block(slice(None)), X)
    points = distinct(rows, counts)
    kept = counts > 0
    expected, inverse = np.unique(X[kept].astype(np.float64) + 0.0, axis=0, return_inverse=True)
    assert len(expected) < kept.sum()
    assert np.array_equal(points.block(slice(None)), expected)
    assert np.array_equal(points.counts, np.bincount(inverse.ravel(), weights=counts[kept]))


def test_long_rows_that_differ_late_are_told_apart():
    X = np.zeros((50, 300))
    X[:, 299] = np.random.default_rng(0).permutation(25).repeat(2)
    for rows in (DenseRows(X), CsrRows(sp.csr_matrix(X))):
        points = distinct(rows, np.ones(50))
        assert np.array_equal(points.block(slice(None))[:, 299], np.arange(25))
        assert np.array_equal(points.counts, np.full(25, 2.0))


@pytest.mark.parametrize("source", SOURCES)
def test_kmeans_ends_where_centres_are_means_of_their_cells(source):
    X = blobs().astype(np.float32).astype(np.float64)
    rows = SOURCES[source](X)
    counts = np.random.default_rng(1).random(X.shape[0]) + 0.1
    C = centres(rows, 7, counts)
    cell = squared(X, C).argmin(axis=1)
    means = [np.average(X[cell == k], axis=0, weights=counts[cell == k]) for k in range(7)]
    assert np.allclose(C, means, rtol=0, atol=1e-12 * np.abs(X).max())
    assert np.array_equal(assign(rows, C), cell)
    # Rounding aside, the way from the seeds does not depend on how rows are stored.
    assert np.allclose(C, centres(DenseRows(X), 7, counts), atol=1e-10)


def plain_lloyd(X, counts, C):
    """Lloyd's iteration without bounds."""
    while True:
        cell = squared(X, C).argmin(axis=1)
        new = np.array([np.average(X[cell == k], axis=0, weights=counts[cell == k]) for k in range(len(C))])
        if np.allclose(new, C, rtol=0, atol=1e-13):
            return new
        C = new


@pytest.mark.parametrize("way", [Lloyd, LloydInMemory])
@pytest.mark.parametrize("seed", range(4))
def test_passing_over_rows_does_not_change_the_iteration(seed, way):
    X = blobs(600, 4, seed=seed)
    points = distinct(DenseRows(X), np.random.default_rng(seed).random(600) + 0.5)
    cloud = LloydRows(points)
    drain(cloud.setup())
    start = cloud.take(np.arange(0, 600, 50)).block(slice(None))
    run, rounds = way(cloud, start), 0
    while drain(run.assign())[1]:
        assert np.array_equal(
            run.labels, squared(cloud.take(slice(None)).block(slice(None)), run.centers).argmin(axis=1)
        )
        drain(run.update())
        rounds += 1
    assert rounds > 5
    expected = plain_lloyd(points.block(slice(None)), points.counts, start + cloud.centre)
    assert np.allclose(run.centers + cloud.centre, expected, atol=1e-11)
    assert run.inertia == pytest.approx(inertia(points.block(slice(None)), expected, points.counts), rel=1e-10)


@pytest.mark.parametrize("copies", [kmeans_module.COPY_BYTES, 0.0], ids=["held", "looked up"])
@pytest.mark.parametrize("source", ["float64", "float32", "csr"])
def test_weights_are_repetitions_and_order_is_nothing(source, copies, monkeypatch):
    monkeypatch.setattr(kmeans_module, "COPY_BYTES", copies)
    rng, X = np.random.default_rng(0), blobs()
    counts = rng.integers(0, 4, size=X.shape[0]).astype(float)
    repeated = np.repeat(X, counts.astype(int), axis=0)
    shuffle = rng.permutation(repeated.shape[0])
    C = centres(SOURCES[source](X), 9, counts)
    assert np.array_equal(C, centres(SOURCES[source](repeated), 9))
    assert np.array_equal(C, centres(SOURCES[source](repeated[shuffle]), 9))
    assert not np.allclose(C, centres(SOURCES[source](X), 9))


@pytest.mark.parametrize("seed", range(20))
def test_bounds_that_are_held_give_the_run_of_the_plain_iteration(seed):
    rng = np.random.default_rng(seed)
    m, d, K = int(rng.integers(20, 300)), int(rng.integers(1, 20)), int(rng.integers(1, 20))
    X = blobs(m, d, groups=5, seed=seed) * 10.0 ** rng.integers(-6, 7) + rng.integers(0, 2) * 1e3
    cloud = LloydRows(distinct(DenseRows(X), 10.0 ** rng.uniform(-8, 8, m)))
    drain(cloud.setup())
    assert isinstance(kmeans_module.lloyd_run(cloud, np.zeros((K, d))), LloydInMemory)
    start = cloud.take(rng.choice(m, K, replace=False)).block(slice(None))
    runs = [way(cloud, start) for way in (Lloyd, LloydInMemory)]
    for _ in range(100):
        with overflow_errstate():  # as in a fit: BLAS once raised a flag in lanes that it does not use
            moved = [drain(run.assign())[1] for run in runs]
        assert moved[0] == moved[1] and np.array_equal(runs[0].labels, runs[1].labels)
        if not moved[0]:
            break
        for run in runs:
            drain(run.update())
        # Means of the rows, however heavy those were that have left.
        own = np.array([np.average(cloud.held.X[run.labels == k], axis=0, weights=cloud.counts[run.labels == k])
                        for k in range(K)])  # fmt: skip
        size = np.abs(cloud.held.X).max()
        assert np.abs(runs[1].centers - own).max() <= 1e-12 * size
        assert np.abs(runs[0].centers - own).max() <= 1e-12 * size
    assert not moved[0]


def test_yielded_centres_never_get_worse_and_any_stop_leaves_valid_ones():
    X = blobs(400)
    points = distinct(DenseRows(X), np.ones(400))
    yielded, last = drain(kmeans(points, 20, np.random.default_rng(0), restarts=4))
    found = [C for C in yielded if C is not None]
    assert found[0] is yielded[0] and 5 < len(found) < len(yielded)
    assert all(C.shape == (20, 3) and np.isfinite(C).all() for C in found)
    values = [inertia(X, C) for C in found[1:]]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(values))
    assert np.array_equal(last, found[-1])
    # The first are rows of X.
    assert squared(found[0], X).min(axis=1).max() == 0
    one = kmeans(points, 20, np.random.default_rng(0), restarts=1)
    assert values[-1] <= inertia(X, drain(one)[1])


def test_seeds_are_drawn_by_weight_times_squared_distance():
    X = np.array([[0.0], [1.0], [3.0]])
    points = distinct(DenseRows(X), np.array([2.0, 4.0, 1.0]))
    cloud = LloydRows(points)
    drain(cloud.setup())
    rng = np.random.default_rng(0)
    pairs = np.array([drain(kmeans_module._kmeans_seeds(cloud, 2, rng))[1] for _ in range(4000)])
    share = np.zeros((3, 3))
    np.add.at(share, (pairs[:, 0], pairs[:, 1]), 1 / 4000)
    mass = np.array([2.0, 4.0, 1.0]) * (X - X.T) ** 2
    expected = np.array([2.0, 4.0, 1.0])[:, None] / 7 * mass / mass.sum(axis=1, keepdims=True)
    assert np.abs(share - expected).max() < 4 * np.sqrt(0.25 / 4000)


@pytest.mark.parametrize("source", SOURCES)
def test_as_many_clusters_as_distinct_rows_are_the_rows(source):
    X = tied(60, 3)
    n = len(np.unique(X + 0.0, axis=0))
    C = centres(SOURCES[source](X), n)
    assert inertia(X, C) < 1e-25 and len(np.unique(assign(SOURCES[source](X), C))) == n
    with pytest.raises(ValueError, match=f"n_clusters is {n + 1} but X has {n} distinct rows"):
        centres(SOURCES[source](X), n + 1)
    with pytest.raises(ValueError, match="n_clusters is 0"):
        centres(SOURCES[source](X), 0)


def test_rows_far_from_the_origin_keep_their_digits():
    X = blobs() + 1e7
    near = centres(DenseRows(X - 1e7), 8)
    assert np.allclose(centres(DenseRows(X), 8) - 1e7, near, atol=1e-6)
    assert np.array_equal(assign(DenseRows(X), near + 1e7), squared(X - 1e7, near).argmin(axis=1))


@pytest.mark.parametrize("way", [Lloyd, LloydInMemory])
def test_an_empty_cluster_gets_the_row_farthest_from_its_centre(way):
    X = np.array([[0.0], [1.0], [2.0], [10.0]])
    cloud = LloydRows(distinct(DenseRows(X), np.ones(4)))
    drain(cloud.setup())
    run = way(cloud, np.array([[1.0], [500.0], [900.0]]) - cloud.centre)
    assert drain(run.assign())[1]
    # 10 is farthest from 1, then 0 and 2, of which the first counts.
    assert run.labels.tolist() == [2, 0, 0, 1]
    while True:
        drain(run.update())
        if not drain(run.assign())[1]:
            break
    assert sorted((run.centers + cloud.centre).ravel().tolist()) == [0.0, 1.5, 10.0] and run.inertia == 0.5


@pytest.mark.parametrize("source", SOURCES)
def test_ties_go_to_the_lowest_index_however_the_products_round(source):
    # Decimal fractions: |x|^2 - 2 x c + |c|^2 rounds differently for centres on opposite sides.
    rng = np.random.default_rng(0)
    away = rng.random((6, 5)) + 0.1
    C = np.vstack([away, -away])[rng.permutation(12)]
    X = np.zeros((40, 5))
    own = squared(X[:1], C)[0].round(12)
    for order in (np.arange(12), np.arange(12)[::-1]):
        expected = np.flatnonzero(own[order] == own.min())[0]
        assert assign(SOURCES[source](X), C[order]).tolist() == [expected] * 40
    # The same centre twice, and rows one by one.
    X = rng.standard_normal((200, 5)).astype(np.float32).astype(float)
    rows, twice = SOURCES[source](X), np.vstack([C, C])
    labels = assign(rows, twice)
    assert labels.max() < 12 and np.array_equal(labels, squared(X, C).argmin(axis=1))
    assert [int(assign(rows.take(slice(i, i + 1)), twice)[0]) for i in range(200)] == labels.tolist()


def test_memberships_of_far_rows_do_not_depend_on_how_these_are_stored(rng):
    X = np.hstack([rng.standard_normal((60, 2)), np.full((60, 1), 1e6)])
    C, counts = X[:3] + 0.25, np.ones(60)
    dense, sparse = DenseRows(X), CsrRows(sp.csr_matrix(X))
    width = mean_nearest_distance(dense, counts, C)
    assert mean_nearest_distance(sparse, counts, C) == pytest.approx(width, rel=1e-14)
    for a, b in zip(memberships(dense, C, width), memberships(sparse, C, width)):
        np.testing.assert_allclose(a, b, rtol=1e-14)


@pytest.mark.parametrize("source", SOURCES)
def test_membership_is_a_truncated_gaussian_of_the_distance(source):
    X = blobs().astype(np.float32).astype(float)
    C, counts, rows = blobs(10, seed=1), np.random.default_rng(0).integers(1, 4, size=300).astype(float), None
    rows = SOURCES[source](X)
    D = squared(X, C)
    width = mean_nearest_distance(rows, counts, C)
    assert width == pytest.approx((counts @ D.min(axis=1)) / counts.sum(), rel=1e-12)
    labels, weights = memberships(rows, C, width)
    order = np.argsort(D, axis=1)[:, :4]
    raw = np.exp(-np.take_along_axis(D, order, axis=1) / width)
    assert np.array_equal(labels, order)
    assert np.allclose(weights, raw / raw.sum(axis=1, keepdims=True), rtol=1e-9, atol=0)
    # Without width, and for rows too far away for exp: all weight to the nearest.
    hard = memberships(rows, C, 0.0)[1]
    assert np.array_equal(hard, np.tile([1.0, 0, 0, 0], (300, 1)))
    assert np.isfinite(memberships(DenseRows(X + 1e4), C, width)[1]).all()
    assert memberships(rows, C[:1], width)[1].tolist() == [[1.0]] * 300


def test_numbers_whose_squares_overflow_are_refused():
    with pytest.raises(ValueError, match="squares overflow"):
        centres(DenseRows(1e200 * blobs()), 3)


def test_rows_that_rounding_cannot_tell_apart_end_the_iteration():
    X = 1.0 + 1e-16 * np.arange(40.0).reshape(-1, 1) * [8.0, 3.0]
    X[-1] = 500.0
    n = len(np.unique(X, axis=0))
    C = centres(DenseRows(X), n)
    assert n > 10 and C.shape == (n, 2) and inertia(X, C) < 1e-20
