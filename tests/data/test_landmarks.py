"""Landmarks and projections against the definitions: SVD of repeated rows, sets of distinct rows, printed formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from draining import drain

from mdlearn.data.features import landmarks as module
from mdlearn.data.features.landmarks import (
    PROJECTED_ROWS,
    choose,
    given_landmarks,
    landmark_projection,
    landmark_projector,
)
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.distinct import distinct
from mdlearn.data.rows.rows import DenseRows
from mdlearn.errors import InsufficientMemory

SOURCES = {
    "float64": lambda X: DenseRows(X.astype(np.float64)),
    "float32": lambda X: DenseRows(X.astype(np.float32)),
    "csr": lambda X: CsrRows(sp.csr_matrix(X.astype(np.float64))),
}


def chosen(how, rows, n, counts=None, seed=0, **options):
    counts = np.ones(rows.shape[0]) if counts is None else counts
    return drain(choose(how, distinct(rows, counts), n, seed, **options))[1]


def sample(m=120, d=6, seed=0):
    """Rows away from the origin, of different spread, some of them equal, representable in float32."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d)) * np.arange(1, d + 1) + 5.0
    X[::7] = X[0]
    return X.astype(np.float32).astype(np.float64)


COUNTS = np.random.default_rng(5).integers(0, 4, size=120).astype(float)


def principal(X, n):
    """Right singular vectors of the centred matrix, the largest entry of each made positive."""
    V = np.linalg.svd(X - X.mean(axis=0))[2][:n]
    return np.array([v if v[np.abs(v).argmax()] > 0 else -v for v in V])


@pytest.mark.parametrize("blocks", [module.BLOCK_ENTRIES, 1])
@pytest.mark.parametrize("source", SOURCES)
def test_pca_landmarks_are_singular_vectors_of_the_repeated_centred_rows(source, blocks, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_ENTRIES", blocks)
    X = sample()
    expected = principal(np.repeat(X, COUNTS.astype(int), axis=0), 6)
    for n in (1, 3, 6):
        assert np.allclose(chosen("pca", SOURCES[source](X), n, COUNTS), expected[:n], atol=1e-12)


def test_pca_finds_directions_far_smaller_than_the_first():
    X = sample() * 10.0 ** -np.arange(0, 12, 2)
    expected = principal(X, 6)
    # Squares (10^-20 of the largest) would be lost in rounding.
    assert np.allclose(chosen("pca", DenseRows(X), 6), expected, atol=1e-4)


def test_pca_of_fewer_rows_than_columns():
    X = sample(5, 40)
    L = chosen("pca", DenseRows(X), 5)
    rank = len(np.unique(X, axis=0)) - 1
    assert rank == 4 and np.allclose(L[:rank], principal(X, rank), atol=1e-12)
    assert np.allclose(L @ L.T, np.eye(5), atol=1e-13)
    with pytest.raises(ValueError, match="n_landmarks is 6 but X has 5 distinct rows"):
        chosen("pca", DenseRows(X), 6)


@pytest.mark.parametrize("n", [4, 5, 6])
def test_directions_without_variance_do_not_depend_on_rounding(n):
    rng, X = np.random.default_rng(0), sample()
    X[:, 2] = 3.0
    X[:, 4] = X[:, 0] - X[:, 1]
    L = chosen("pca", DenseRows(X), n)
    assert np.allclose(L @ L.T, np.eye(n), atol=1e-13)
    assert np.ptp(X @ L[4:].T, axis=0).max(initial=0.0) < 1e-11
    for _ in range(5):
        assert np.allclose(chosen("pca", DenseRows(X * (1 + 1e-13 * rng.standard_normal())), n), L, atol=1e-9)


def test_equal_entries_do_not_leave_the_sign_to_rounding():
    X = np.outer(np.arange(10.0) - 4.5, [1.0, -1.0, 0.3])
    for wobble in (1e-15, -1e-15):
        L = chosen("pca", DenseRows(X * [1 + wobble, 1, 1]), 1)
        assert np.allclose(L, np.array([[1.0, -1.0, 0.3]]) / np.sqrt(2.09), atol=1e-12)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("how", ["random", "pca", "kmeans"])
def test_choices_depend_on_neither_order_nor_repetition(how, source):
    rng, X = np.random.default_rng(0), sample()
    L = chosen(how, SOURCES[source](X), 4, COUNTS)
    repeated = np.repeat(X, COUNTS.astype(int), axis=0)
    rows = SOURCES[source](repeated[rng.permutation(len(repeated))])
    assert L.dtype == np.float64 and np.array_equal(chosen(how, rows, 4), L)
    assert np.array_equal(chosen(how, rows, 4, seed=1), L) == (how == "pca")


def test_random_landmarks_are_distinct_rows_of_positive_weight():
    X = sample()
    pool = np.unique(X[COUNTS > 0], axis=0)
    everything = chosen("random", DenseRows(X), len(pool), COUNTS)
    assert np.array_equal(np.unique(everything, axis=0), pool)
    firsts = [chosen("random", DenseRows(X), 1, COUNTS, seed=s)[0] for s in range(300)]
    assert len(np.unique(firsts, axis=0)) > 0.8 * len(pool)
    with pytest.raises(ValueError, match=f"n_landmarks is {len(pool) + 1} but X has {len(pool)} distinct rows"):
        chosen("random", DenseRows(X), len(pool) + 1, COUNTS)


@pytest.mark.parametrize("how", ["pca", "kmeans"])
def test_there_are_landmarks_from_the_first_moment(how):
    points = distinct(DenseRows(sample()), COUNTS)
    yielded, last = drain(choose(how, points, 5, 0))
    assert yielded[0].shape == last.shape == (5, 6)


@pytest.mark.parametrize("source", SOURCES)
def test_a_function_gets_the_distinct_rows_in_float64(source):
    X, seen = sample(), []

    def first(A, n, seed):
        seen.append((A, n, seed))
        return (A.toarray() if sp.issparse(A) else A)[:n].tolist()

    L = chosen(first, SOURCES[source](X), 3, COUNTS, seed=11)
    pool = np.unique(X[COUNTS > 0], axis=0)
    A, n, seed = seen[0]
    assert (n, seed, A.dtype, sp.issparse(A)) == (3, 11, np.float64, source == "csr")
    assert np.array_equal(A.toarray() if sp.issparse(A) else A, pool) and np.array_equal(L, pool[:3])


def test_errors_say_what_to_give():
    rows = DenseRows(sample())
    with pytest.raises(ValueError, match="'best' is no way to choose points; give one of random, pca, kmeans"):
        chosen("best", rows, 3)
    with pytest.raises(ValueError, match=r"; did you mean 'kmeans'[?]$"):
        chosen("kmean", rows, 3)
    with pytest.raises(TypeError, match="no way to choose points"):
        chosen(None, rows, 3)
    with pytest.raises(ValueError, match="has 6 directions; give at most that, or choose 'random' or 'kmeans'"):
        chosen("pca", rows, 7)
    with pytest.raises(ValueError, match="n_clusters is 0"):
        chosen("kmeans", rows, 0, name="n_clusters")
    with pytest.raises(ValueError, match=r"returned shape \(2, 6\); it needs to be \(3, 6\) for n_landmarks=3"):
        chosen(lambda X, n, seed: X[:2], rows, 3)
    with pytest.raises(ValueError, match="what the callable for n_landmarks returned contains NaN"):
        chosen(lambda X, n, seed: X[:n] * np.nan, rows, 3)
    with pytest.raises(ValueError, match="centers has 2 columns but X has 6"):
        given_landmarks(np.ones((3, 2)), "centers", 6)
    with pytest.raises(ValueError, match="landmarks contains NaN"):
        given_landmarks([[np.nan] * 6], "landmarks", 6)
    for name, error in (("cosine", ValueError), (3, TypeError)):
        with pytest.raises(error, match="give one of dot, rbf or a callable"):
            landmark_projection(name, 1.0, rows, COUNTS)
    with pytest.raises(ValueError, match=r"; did you mean 'rbf'[?]$"):
        landmark_projection("rfb", 1.0, rows, COUNTS)
    with pytest.raises(ValueError, match="sigma needs to be a number > 0"):
        landmark_projection("rbf", 0.0, rows, COUNTS)


def test_given_points_are_copied_in_float64():
    given = np.ones((2, 6), dtype=np.float32)
    points = given_landmarks(given, "centers", 6)
    assert points.dtype == np.float64 and not np.shares_memory(points, given)
    given = given.astype(float)
    assert not np.shares_memory(given_landmarks(given, "centers", 6), given)


def test_pca_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr("mdlearn.numerics.memory.NEGLIGIBLE_BYTES", 0.0)
    monkeypatch.setattr("mdlearn.numerics.memory.available_bytes", lambda: 2000.0)
    with pytest.raises(InsufficientMemory, match="PCA in 6 columns"):
        chosen("pca", DenseRows(sample()), 2)


@pytest.mark.parametrize("source", SOURCES)
def test_projections_are_the_printed_formulas(source):
    X, L = sample(), sample(7, seed=3)
    rows = SOURCES[source](X)
    away = ((X[:, None, :] - L) ** 2).sum(axis=2)
    for projection, sigma, expected in (
        ("dot", None, X @ L.T),
        ("rbf", 40.0, np.exp(-away / 40.0)),
        (lambda A, B: np.asarray(A @ B.T) ** 2, None, (X @ L.T) ** 2),
    ):
        values = landmark_projection(projection, sigma, rows, COUNTS).block(rows, DenseRows(L))
        assert np.allclose(values, expected, rtol=1e-10)


@pytest.mark.parametrize("projection", ["dot", "rbf"])
def test_projections_of_a_row_are_the_same_bits_in_every_layout_and_company(projection):
    """Rows far away: rounding of a product is millions, and a kernel over projections would tell such rows apart."""
    m = 3 * PROJECTED_ROWS + 7
    X = 3.4e10 + 1e7 * np.random.default_rng(7).standard_normal((m, 8))
    L = X[[3, 50]]
    mu = landmark_projection(projection, 1e14, DenseRows(X), np.ones(m))
    whole = landmark_projector(mu, L, sparse=False)(DenseRows(X))
    assert np.allclose(whole, mu.block(DenseRows(X), DenseRows(L)), rtol=1e-6)
    by_columns = landmark_projector(mu, np.asfortranarray(L), sparse=False)(DenseRows(np.asfortranarray(X)))
    assert np.array_equal(by_columns, whole)
    some = np.array([m - 1, 5, 70, 5])
    assert np.array_equal(landmark_projector(mu, L, sparse=False)(DenseRows(X[some])), whole[some])


def test_projections_of_sparse_rows():
    X, L = sample(), sample(7, seed=3)
    X[np.random.default_rng(1).random(X.shape) > 0.4] = 0.0
    mu = landmark_projection("dot", None, SOURCES["csr"](X), COUNTS)
    assert np.allclose(landmark_projector(mu, L, sparse=True)(SOURCES["csr"](X)), X @ L.T, rtol=1e-12)
