"""Rows of blocks against the dense matrix that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from draining import drain

from mdlearn.data.clustering.distances import mean_nearest_distance
from mdlearn.data.features import clustered_rows as module
from mdlearn.data.features.clustered_rows import BlockRows, Layout, clustered_rows
from mdlearn.data.features.landmarks import landmark_projection
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.errors import InsufficientMemory

M, K, L = 57, 6, 5


def rows_and_matrix(t, dtype, seed=0):
    """Rows in t blocks each, written out entry by entry as well; block 2 stays empty."""
    rng = np.random.default_rng(seed)
    full = [k for k in range(K) if k != 2]
    labels = np.array([np.sort(rng.choice(full, t, replace=False)) for _ in range(M)])
    values = rng.standard_normal((M, t, L)).astype(dtype)
    values[3] = 0.0
    X = np.zeros((M, K * L))
    for i in range(M):
        for j, k in enumerate(labels[i]):
            X[i, k * L : (k + 1) * L] = values[i, j]
    layout = Layout.of(labels, K)
    F = np.empty((M * t, L), dtype=dtype)
    F[layout.place] = values
    return BlockRows(F, layout), X


@pytest.fixture(params=[(1, np.float64), (1, np.float32), (3, np.float64), (3, np.float32)], ids=str)
def pair(request):
    return rows_and_matrix(*request.param)


@pytest.fixture(params=[module.SPAN_ENTRIES, 17], ids=["one piece", "many pieces"], autouse=True)
def span(request, monkeypatch):
    monkeypatch.setattr(module, "SPAN_ENTRIES", request.param)


def close(a, b):
    """Equal up to rounding in float64, also where rows are float32."""
    return a.shape == b.shape and a.dtype == np.float64 and np.allclose(a, b, rtol=1e-13, atol=1e-13)


def test_every_product_is_that_of_the_dense_matrix(pair):
    rows, X = pair
    rng = np.random.default_rng(1)
    assert rows.shape == X.shape and rows.sparse and rows.dtype == rows.F.dtype
    w, W, v, counts, scale = (rng.random(n) for n in (K * L, (K * L, 3), M, M, K * L))
    assert close(rows.dot(w), X @ w) and close(rows.dot(W), X @ W) and close(rows.dot(W.T.copy().T), X @ W)
    assert close(rows.dot(w.astype(np.float32)), X @ w.astype(np.float32).astype(float))
    assert close(rows.adjoint(v), X.T @ v) and close(rows.adjoint(X[:, :2]), X.T @ X[:, :2])
    assert close(rows.squares(), (X**2).sum(axis=1))
    assert close(rows.squares(scale), (X**2 / scale).sum(axis=1))
    assert close(rows.column_squares(counts), counts @ X**2)


SELECTIONS = {
    "all": slice(None),
    "range": slice(5, 40),
    "none": slice(0, 0),
    "order and repetition": np.array([7, 3, 3, 50, 0, 7]),
    "mask": np.arange(M) % 3 == 1,
}


@pytest.mark.parametrize("selection", SELECTIONS)
def test_selections_are_those_of_the_dense_matrix(pair, selection):
    rows, X = pair
    which = SELECTIONS[selection]
    part = rows.take(which)
    w = np.random.default_rng(0).random(K * L)
    assert type(part) is BlockRows and part.dtype == rows.dtype
    assert np.array_equal(rows.block(which), X[which]) and np.array_equal(part.block(slice(None)), X[which])
    assert close(part.dot(w), X[which] @ w)
    assert close(part.adjoint(np.full(part.shape[0], 2.0)), 2.0 * X[which].sum(axis=0))
    assert np.array_equal(part.take(slice(0, 2)).block(slice(None)), X[which][:2])


def test_matrix_is_a_canonical_csr_matrix(pair):
    rows, X = pair
    A = rows.matrix()
    assert sp.issparse(A) and A.dtype == np.float64 and A.has_canonical_format
    assert np.array_equal(A.toarray(), X) and A.nnz == rows.F.size


def test_inner_products_with_every_kind_of_rows(pair):
    rows, X = pair
    others, Y = rows_and_matrix(2, np.float64, seed=5)
    assert close(rows.inner(rows), X @ X.T) and close(rows.inner(others), X @ Y.T)
    assert close(others.inner(rows), Y @ X.T)
    for other in (DenseRows(Y), DenseRows(np.asfortranarray(Y)), CsrRows(sp.csr_matrix(Y))):
        assert close(rows.inner(other), X @ Y.T) and close(other.inner(rows), Y @ X.T)
    scale = np.random.default_rng(0).random(K * L) + 0.5
    assert close(drain(LinearFeatures(rows, scale).gram())[1], X / scale @ X.T)


def test_spans_cover_the_rows_once(pair):
    rows, _ = pair
    seen = [i for span in rows.spans() for i in range(M)[span]]
    assert seen == list(range(M))


def test_numbers_that_are_not_finite_are_seen(pair):
    rows, _ = pair
    assert np.isfinite(rows.largest())
    rows.F[-1, -1] = np.inf
    assert not np.isfinite(rows.largest())


def problem(dtype=np.float64):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 4)).astype(dtype)
    return X, X[:6].astype(float) + 0.25, rng.standard_normal((7, 4))


STORES = {"dense": DenseRows, "csr": lambda X: CsrRows(sp.csr_matrix(X))}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("projection", ["dot", "rbf"])
def test_features_lie_in_the_block_of_the_nearest_centre(projection, store, dtype):
    X, C, P = problem(dtype)
    rows = STORES[store](X)
    X = X.astype(float)
    mu = X @ P.T if projection == "dot" else np.exp(-((X[:, None] - P) ** 2).sum(axis=2) / 3.0)
    D = ((X[:, None] - C) ** 2).sum(axis=2)
    hard = np.eye(6)[D.argmin(axis=1)]
    near = np.exp(-(D - D.min(axis=1, keepdims=True)) / mean_nearest_distance(rows, np.ones(80), C))
    near[D > np.sort(D, axis=1)[:, 3:4]] = 0.0
    soft = near / near.sum(axis=1, keepdims=True)
    kernel = landmark_projection(projection, 3.0, rows, np.ones(80))
    for width, weights in ((None, hard), (mean_nearest_distance(rows, np.ones(80), C), soft)):
        phi = drain(clustered_rows(rows, C, P, kernel, width))[1]
        expected = (weights[:, :, None] * mu[:, None, :]).reshape(80, -1)
        assert phi.dtype == dtype and phi.shape == (80, 42)
        tolerance = 1e-11 if dtype == np.float64 else 1e-6
        assert np.allclose(phi.block(slice(None)), expected, rtol=tolerance, atol=tolerance)


def test_features_that_do_not_fit_are_refused(monkeypatch):
    X, C, P = problem()
    monkeypatch.setattr("mdlearn.numerics.memory.NEGLIGIBLE_BYTES", 0.0)
    monkeypatch.setattr("mdlearn.numerics.memory.available_bytes", lambda: 2 * 80 * 7 * 8.0 - 1)
    rows = DenseRows(X)
    with pytest.raises(InsufficientMemory, match="7 features of 80 rows"):
        drain(clustered_rows(rows, C, P, landmark_projection("dot", None, rows, np.ones(80))))
