"""Soft clusters, smoothness, levels, engines and interruption of the L3-SVM."""

from __future__ import annotations

import numpy as np
import pytest
from l3 import block_features, distances, problem, projected, weighted_blocks
from reference import optimum

import mdlearn
from mdlearn.data.features import smoothed_clusters
from mdlearn.data.features.clustered_rows import BlockRows, Layout
from mdlearn.data.features.smoothed_clusters import SmoothedClusterRows, cluster_smoothing
from mdlearn.data.rows.rows import DenseRows
from mdlearn.errors import ConvergenceWarning
from mdlearn.objectives import l3svm
from mdlearn.testing import CHECKS


def fit(X, y, **settings):
    return mdlearn.fit("l3svm", X, y, **{"tol": 1e-10, **settings})


def laplacian(centers):
    """Graph Laplacian of s_kl = exp(-|c_k - c_l|^2 / mean of |c_k - c_l|^2)."""
    D = distances(centers, centers)
    K = len(centers)
    S = np.exp(-D / (D.sum() / (K * (K - 1)))) * (1 - np.eye(K))
    return np.diag(S.sum(axis=1)) - S, S


@pytest.mark.parametrize("membership", ["hard", "soft"])
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_smoothness_against_an_independent_optimum(bias, membership):
    """1/2 tr theta' (I + rho Laplacian) theta, by another factor than the package's: the symmetric root."""
    X, y, centers, landmarks = problem(K=6)
    settings = {"C": 30.0, "bias": bias, "membership": membership, "smoothness": 2.5}
    model = fit(X, y, centers=centers, landmarks=landmarks, **settings)
    Lap, S = laplacian(centers)
    theta = model.coef_[0]
    pairs = sum(S[k, l] * ((theta[k] - theta[l]) ** 2).sum() for k in range(6) for l in range(k))
    weights = np.eye(6)[distances(X, centers).argmin(axis=1)]
    if membership == "soft":
        D = distances(X, centers)
        near = np.exp(-(D - D.min(axis=1, keepdims=True)) / D.min(axis=1).mean())
        near[D > np.sort(D, axis=1)[:, 3:4]] = 0.0
        weights = near / near.sum(axis=1, keepdims=True)
    Phi = weighted_blocks(projected(X, landmarks), weights)
    f = Phi @ theta.ravel() + model.intercept_[0]
    assert np.allclose(model.decision_function(X), f, atol=1e-10)
    b = model.intercept_[0] if bias == "regularized" else 0.0
    value = 0.5 * ((theta**2).sum() + b * b + 2.5 * pairs) + 30.0 / 60 * np.maximum(1 - y * f, 0).sum()
    assert model.certificate.objective == pytest.approx(value, rel=1e-10)
    lam, U = np.linalg.eigh(np.eye(6) + 2.5 * Lap)
    root = np.kron(U / np.sqrt(lam) @ U.T, np.eye(5))
    answer = optimum(Phi @ root, y, C=30.0 / 60, bias=bias)
    assert model.certificate.objective == pytest.approx(answer.value, rel=1e-9)
    assert np.allclose(theta.ravel(), root @ answer.w.astype(float), atol=2e-4)


def test_no_smoothness_is_the_paper_and_much_makes_clusters_equal():
    X, y, centers, landmarks = problem()
    given = {"centers": centers, "landmarks": landmarks}
    plain, none, much = (fit(X, y, **given, **s) for s in ({}, {"smoothness": 1e-12}, {"smoothness": 1e9}))
    assert none.certificate.objective == pytest.approx(plain.certificate.objective, rel=1e-9)
    theta = much.coef_[0]
    assert np.abs(theta - theta[0]).max() < 1e-6 * np.abs(theta).max()
    # All clusters with one theta: a ridge of K.
    answer = optimum(projected(X, landmarks) / 2.0, y, C=100.0 / 60, bias="regularized")
    assert much.certificate.objective == pytest.approx(answer.value, rel=1e-6)


@pytest.mark.parametrize("t", [1, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tied_rows_against_the_matrix_that_they_stand_for(t, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    m, K, L = 31, 5, 4
    layout = Layout.of(np.array([np.sort(rng.choice(K, t, replace=False)) for _ in range(m)]), K)
    centers = rng.standard_normal((K, 3))
    A, S = cluster_smoothing(centers, 1.7)
    Lap, similar = laplacian(centers)
    assert np.allclose(np.linalg.inv(A @ A.T), np.eye(K) + 1.7 * Lap) and np.allclose(S, similar)
    plain = BlockRows(rng.standard_normal((m * t, L)).astype(dtype), layout)
    rows = SmoothedClusterRows(plain.F, layout, A)
    X = plain.block(slice(None)) @ np.kron(A, np.eye(L))
    monkeypatch.setattr(smoothed_clusters, "BLOCK_ENTRIES", 50)
    w, W, v = rng.random(K * L), rng.random((K * L, 3)), rng.random(m)
    for found, wanted in (
        (rows.block(slice(None)), X),
        (rows.dot(w), X @ w),
        (rows.dot(W), X @ W),
        (rows.adjoint(v), X.T @ v),
        (rows.adjoint(X[:, :2]), X.T @ X[:, :2]),
        (rows.block(np.array([], dtype=int)), X[:0]),
        (rows.squares(), (X**2).sum(axis=1)),
        (rows.column_squares(v), v @ X**2),
        (rows.inner(rows), X @ X.T),
        (rows.inner(DenseRows(X)), X @ X.T),
        (rows.take(np.array([4, 4, 0])).inner(rows), X[[4, 4, 0]] @ X.T),
        (rows.scaled(w).block(slice(None)), X * w),
        (rows.matrix().toarray(), X),
    ):
        assert found.shape == wanted.shape and np.allclose(found, wanted, rtol=1e-12, atol=1e-12)


CHOICES = [{}, {"membership": "soft"}, {"smoothness": 1.0}, {"smoothness": 1.0, "membership": "soft"}]


@pytest.mark.slow
@pytest.mark.parametrize("settings", CHOICES, ids=str)
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_compiled_sweeps_find_the_optimum_of_second_order_steps(loss, bias, settings):
    X, y, centers, landmarks = problem(m=2200)
    given = {"centers": centers, "landmarks": landmarks, "bias": bias, "loss": loss, **settings}
    swept = fit(X, y, solver="cd", tol=1e-9, **given)
    exact = fit(X, y, solver="newton" if loss == "squared_hinge" else "interior", tol=1e-9, **given)
    assert swept.certificate.converged and exact.certificate.converged
    assert swept.certificate.objective == pytest.approx(exact.certificate.objective, rel=2e-9)
    assert np.allclose(swept.decision_function(X), exact.decision_function(X), atol=5e-3)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("L", [2, 30])
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_blocks_are_solved_like_the_dense_matrix(C, L, bias):
    """Few and many landmarks: both ways of factoring a block, beside an svm on the dense matrix."""
    X, y, centers, landmarks = problem(m=150, K=9, L=L)
    model = fit(X, y, C=C, bias=bias, centers=centers, landmarks=landmarks, solver="interior", tol=1e-9)
    Phi = block_features(X, centers, landmarks)
    plain = mdlearn.fit("svm", Phi, y, C=C / 150, bias=bias, solver="interior", tol=1e-9)
    assert model.certificate.objective == pytest.approx(plain.certificate.objective, rel=3e-9)


def test_levels_know_repeated_rows():
    X, y, _, _ = problem(m=50)
    weight = np.random.default_rng(3).integers(1, 9, 50)
    settings = {"n_clusters": 3, "n_levels": 2, "solver": "interior", "tol": 1e-6}
    a = fit(X, y, sample_weight=weight, **settings)
    b = fit(np.repeat(X, weight, axis=0), np.repeat(y, weight), **settings)
    assert np.array_equal(a.landmarks_, b.landmarks_)


def test_the_next_level_has_the_support_vectors_as_landmarks():
    X, y, _, _ = problem(m=80)
    settings = {"n_clusters": 3, "tol": 1e-9}
    first, second = fit(X, y, **settings), fit(X, y, n_levels=2, **settings)
    alpha = np.abs(first.dual_coef_[0])
    rows = {tuple(row) for row in X[alpha > 1e-4 * alpha.max()].tolist()}
    assert 0 < len(rows) < 80
    assert {tuple(row) for row in second.landmarks_.tolist()} == rows and second.params["n_landmarks"] == 3
    by_hand = fit(X, y, centers=first.centers_, landmarks=second.landmarks_, tol=1e-9)
    assert second.certificate.objective == pytest.approx(by_hand.certificate.objective, rel=1e-8)
    assert second.certificate.converged and second.coef_.shape == (1, 3, len(rows))
    answer = optimum(block_features(X, second.centers_, second.landmarks_), y, C=100.0 / 80, bias="regularized")
    assert second.certificate.objective == pytest.approx(answer.value, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_squared_hinge_passes_the_checks_of_objectives(check):
    check(l3svm.L3SVM(loss="squared_hinge", n_clusters=3))


def test_the_clock_ends_the_search_for_points(monkeypatch):
    """What has found points hands in the last of them once the time is up."""
    X, y, _, _ = problem()
    told = []

    def endless(how, points, n, *rest):
        for found in range(10**4):
            told.append(found)
            yield np.full((n, 3), float(found)) if found % 2 == 0 else None
        raise AssertionError("nobody looked at the clock")

    monkeypatch.setattr(l3svm, "choose", endless)
    with pytest.warns(ConvergenceWarning, match="time_limit reached"):
        model = fit(X, y, time_limit=0.0)
    # One step each for centres and landmarks, and one that was too late to be stopped.
    assert len(told) <= 4 and not model.coef_.any()
    assert np.array_equal(model.centers_, np.zeros((10, 3))) and model.landmarks_.shape == (3, 3)
