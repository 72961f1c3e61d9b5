"""The L3-SVM against the same problem written out: dense block features, an independent solver, the svm objective."""

from __future__ import annotations

import numpy as np
import pytest
from l3 import block_features, clusters, problem, projected
from reference import optimum
from scipy.optimize import minimize

import mdlearn

BIASES = ("none", "regularized", "free")


def fit(X, y, **settings):
    return mdlearn.fit("l3svm", X, y, **{"tol": 1e-10, **settings})


@pytest.mark.parametrize("projection", ["dot", "rbf"])
@pytest.mark.parametrize("bias", BIASES)
def test_hinge_against_an_independent_optimum(bias, projection):
    X, y, centers, landmarks = problem()
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    settings = {"projection": projection, "sigma": 2.0}
    model = fit(X, y, C=30.0, bias=bias, centers=centers, landmarks=landmarks, sample_weight=weight, **settings)
    Phi = block_features(X, centers, landmarks, **settings)
    answer = optimum(Phi, y, C=30.0 / weight.sum(), bias=bias, weight=weight)
    assert model.certificate.objective == pytest.approx(answer.value, rel=1e-9)
    assert model.certificate.lower_bound <= answer.value * (1 + 1e-9)
    assert np.allclose(model.coef_.ravel(), answer.w.astype(float), atol=2e-4)
    assert np.allclose(model.decision_function(X), Phi @ model.coef_.ravel() + model.intercept_, atol=1e-10)


@pytest.mark.parametrize("bias", BIASES)
def test_squared_hinge_against_a_general_optimiser(bias):
    X, y, centers, landmarks = problem()
    model = fit(X, y, C=30.0, loss="squared_hinge", bias=bias, centers=centers, landmarks=landmarks)
    A = np.hstack([block_features(X, centers, landmarks), np.full((len(y), 1), float(bias != "none"))])
    ridge = np.ones(A.shape[1])
    ridge[-1] = float(bias != "free")

    def objective(v):
        slack = np.maximum(1 - y * (A @ v), 0)
        gradient = ridge * v - 60.0 / len(y) * A.T @ (y * slack)
        return 0.5 * v @ (ridge * v) + 30.0 / len(y) * slack @ slack, gradient

    found = minimize(objective, np.zeros(A.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-8})
    assert model.certificate.objective == pytest.approx(found.fun, rel=1e-9)
    assert np.allclose(np.append(model.coef_, model.intercept_), found.x, atol=1e-4)


@pytest.mark.parametrize("bias", ["regularized", "free"])
def test_one_cluster_with_orthonormal_landmarks_is_the_linear_svm(bias):
    X, y, _, _ = problem()
    basis = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 3)))[0]
    model = fit(X, y, C=20.0, bias=bias, n_clusters=1, landmarks=basis, tol=1e-12)
    plain = mdlearn.fit("svm", X, y, C=20.0 / len(y), bias=bias, tol=1e-12)
    assert model.certificate.objective == pytest.approx(plain.certificate.objective, rel=1e-11)
    assert np.allclose(model.decision_function(X), plain.decision_function(X), atol=1e-5)
    assert np.allclose(model.folded_coef_[0], plain.coef_, atol=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_weights_are_repetitions_and_rows_have_no_order(loss):
    X, y, _, _ = problem(m=50)
    rng = np.random.default_rng(3)
    weight = rng.integers(0, 4, 50)
    rows = rng.permutation(np.repeat(np.arange(50), weight))
    settings = {"n_clusters": 5, "n_landmarks": 4, "loss": loss, "random_state": 7, "n_restarts": 2}
    a, b = fit(X, y, sample_weight=weight, **settings), fit(X[rows], y[rows], **settings)
    assert np.array_equal(a.landmarks_, b.landmarks_) and np.allclose(a.centers_, b.centers_, rtol=0, atol=1e-12)
    assert a.certificate.objective == pytest.approx(b.certificate.objective, rel=1e-9)
    assert np.allclose(a.decision_function(X), b.decision_function(X), atol=1e-4)


def test_seeds_choose_landmarks_and_repeat_themselves():
    X, y, _, _ = problem()
    first, again, other = (fit(X, y, n_clusters=3, random_state=s) for s in (0, 0, 1))
    assert np.array_equal(first.coef_, again.coef_) and np.array_equal(first.centers_, again.centers_)
    assert not np.array_equal(first.landmarks_, other.landmarks_)
    rows = {tuple(row) for row in X.tolist()}
    assert all(tuple(row) in rows for row in first.landmarks_.tolist())
    fixed = fit(X, y, centers=first.centers_, random_state=0)
    assert np.array_equal(fixed.landmarks_, first.landmarks_)


@pytest.mark.parametrize("bias", ["regularized", "free"])
def test_an_empty_cluster_answers_with_the_bias(bias):
    X, y, centers, landmarks = problem()
    far = np.full((1, 3), 1e3)
    model = fit(X, y, bias=bias, centers=np.vstack([centers[:2], far, centers[2:]]), landmarks=landmarks)
    without = fit(X, y, bias=bias, centers=centers, landmarks=landmarks)
    assert not model.coef_[0, 2].any() and model.intercept_[0] != 0
    assert model.decision_function(far)[0] == model.intercept_[0]
    assert model.certificate.objective == pytest.approx(without.certificate.objective, rel=1e-9)


def test_several_classes_are_problems_of_one_against_the_rest():
    X, y, centers, landmarks = problem(m=90)
    y = np.digitize(X[:, 0] * X[:, 1], [-0.4, 0.4])
    model = fit(X, y, centers=centers, landmarks=landmarks)
    assert model.multiclass == "ovr" and model.coef_.shape == (3, 4, 5) and model.folded_coef_.shape == (3, 4, 3)
    alone = [fit(X, np.where(y == c, 1, -1), centers=centers, landmarks=landmarks) for c in range(3)]
    assert model.certificate.objective == pytest.approx(sum(a.certificate.objective for a in alone), rel=1e-9)
    f = np.column_stack([a.decision_function(X) for a in alone])
    assert np.allclose(model.decision_function(X), f, atol=1e-4)
    assert np.array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))
    with pytest.raises(ValueError, match="multiclass 'ovo' is not possible here; give one of auto, ovr"):
        fit(X, y, multiclass="ovo")


@pytest.mark.parametrize(
    "kernel", [{}, {"kernel": "rbf", "gamma": 0.3}, {"kernel": "poly", "gamma": 0.5, "coef0": 1.0}]
)
@pytest.mark.parametrize("bias", ["regularized", "free"])
def test_the_kernelised_dual_is_an_svm_with_a_masked_gram_matrix(bias, kernel):
    X, y, centers, landmarks = problem()
    model = fit(X, y, C=50.0, bias=bias, centers=centers, landmarks=landmarks, **kernel)
    mu, k = projected(X, landmarks), clusters(X, centers)
    inner = mu @ mu.T
    if kernel.get("kernel") == "rbf":
        inner = np.exp(-0.3 * ((mu[:, None] - mu) ** 2).sum(axis=2))
    elif kernel:
        inner = (0.5 * inner + 1.0) ** 3
    G = inner * (k[:, None] == k)
    plain = mdlearn.fit("svm", G, y, kernel="precomputed", C=50.0 / len(y), bias=bias, tol=1e-10)
    assert model.certificate.objective == pytest.approx(plain.certificate.objective, rel=1e-8)
    assert np.allclose(model.decision_function(X), plain.decision_function(G), atol=2e-3)
    alpha = model.dual_coef_[0]
    assert np.allclose(model.decision_function(X), G @ alpha + model.intercept_, atol=1e-8)
    assert np.abs(alpha).max() <= 50.0 / len(y) * (1 + 1e-12)


def test_a_free_bias_is_the_average_over_free_support_vectors():
    """Over all support vectors, as the paper has it, it is another number."""
    X, y, centers, landmarks = problem()
    model = fit(X, y, bias="free", centers=centers, landmarks=landmarks, tol=1e-12)
    beta, cap = model.duals[0], 100.0 / len(y)
    residual = y - (model.decision_function(X) - model.intercept_)
    free = (beta > 1e-6 * cap) & (beta < (1 - 1e-6) * cap)
    assert 0 < free.sum() < (beta > 0).sum()
    assert model.intercept_[0] == pytest.approx(residual[free].mean(), abs=1e-6)
    assert abs(residual[beta > 0].mean() - model.intercept_[0]) > 1e-2
    assert float(model.dual_coef_.sum()) == pytest.approx(0.0, abs=1e-9)
