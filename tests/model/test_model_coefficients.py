"""The model's coefficients: they reproduce decision values, follow from the multipliers, name the support."""

from __future__ import annotations

import numpy as np
import pytest
from judging import signs
from model_cases import BIASES, data
from reference import gram

import mdlearn
from mdlearn.model import build


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("solver", ["auto", "cd", "interior"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_dual_coefficients_of_a_linear_model(bias, classes, solver, tol):
    """f(x) = sum alpha_i <x_i, x> + intercept, at any tolerance (the contract states no exception)."""
    X, y = data(classes)
    model = mdlearn.fit("ldm", X, y, bias=bias, solver=solver, tol=tol, C=5.0)
    fresh = np.random.default_rng(9).standard_normal((50, 4))
    f = np.atleast_2d(model.decision_function(fresh).T)
    np.testing.assert_allclose(model.dual_coef_ @ (X @ fresh.T) + model.intercept_[:, None], f, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(model.coef_ @ fresh.T + model.intercept_[:, None], f, rtol=1e-12, atol=1e-12)
    if bias == "regularized":  # the constant feature: its weight is sum alpha_i
        np.testing.assert_allclose(model.dual_coef_.sum(axis=1), model.intercept_, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "precomputed", "callable"])
def test_dual_coefficients_of_a_kernel_model(kernel, classes, bias):
    X, y = data(classes)
    fresh = np.random.default_rng(9).standard_normal((50, 4))
    settings = {"kernel": kernel, "bias": bias, "tol": 1e-9}
    if kernel in ("rbf", "poly"):
        settings["gamma"] = 0.3
    if kernel == "poly":
        settings |= {"degree": 2, "coef0": 1.0}
    if kernel == "callable":
        settings["kernel"] = lambda A, B: gram(A, B, "rbf", 0.2, dtype=np.float64)
        between = gram(X, fresh, "rbf", 0.2, dtype=np.float64)
    elif kernel == "precomputed":
        between = X @ fresh.T
    else:
        between = gram(X, fresh, kernel, 0.3, 2, 1.0, dtype=np.float64)
    model = mdlearn.fit("ldm", X @ X.T if kernel == "precomputed" else X, y, **settings)
    f = np.atleast_2d(model.decision_function(between.T if kernel == "precomputed" else fresh).T)
    np.testing.assert_allclose(model.dual_coef_ @ between + model.intercept_[:, None], f, rtol=1e-9, atol=1e-9)
    if bias == "regularized":
        np.testing.assert_allclose(model.dual_coef_.sum(axis=1), model.intercept_, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_dual_coefficients_follow_from_the_multipliers(kernel, bias):
    """SPEC 2: alpha_i = c_i y_i [lambda2 / m - (4 lambda1 / m)(z_i - mean z)] + y_i beta_i at the optimum."""
    X, y = data()
    weight = np.random.default_rng(3).exponential(1.0, 90)
    C, lambda1, lambda2 = 2.0, 1.5, 0.4
    model = mdlearn.fit(
        "ldm", X, y, sample_weight=weight, kernel=kernel, bias=bias, C=C, lambda1=lambda1, lambda2=lambda2, tol=1e-13
    )
    target = signs(y, model.classes_)[:, 0]
    z, m = target * model.decision_function(X), weight.sum()
    mean = weight @ z / m
    beta = model.duals[0]
    expected = target * (beta + weight * (lambda2 / m - 4 * lambda1 / m * (z - mean)))
    np.testing.assert_allclose(model.dual_coef_[0], expected, rtol=1e-5, atol=1e-6)
    # Complementary slackness, the other half of the optimality conditions.
    np.testing.assert_allclose(beta[z < 1 - 1e-4], (C * weight)[z < 1 - 1e-4], rtol=1e-6)
    assert (beta[z > 1 + 1e-4] <= 1e-6).all()
    if bias == "free":
        assert model.dual_coef_[0].sum() == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("tol", [1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("bias", BIASES)
def test_multipliers_stay_in_their_box(bias, kernel, classes, tol):
    X, y = data(classes)
    weight = np.random.default_rng(4).exponential(1.0, 90)
    weight[::7] = 0.0
    model = mdlearn.fit("ldm", X, y, sample_weight=weight, kernel=kernel, bias=bias, C=0.7, tol=tol)
    assert (model.duals >= 0).all() and (model.duals <= 0.7 * weight * (1 + 1e-14)).all()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("objective", ["ldm", "svm"])
def test_support(objective, kernel, classes):
    X, y = data(classes)
    model = mdlearn.fit(objective, X, y, kernel=kernel, tol=1e-8)
    support = model.support_
    assert np.issubdtype(support.dtype, np.integer) and (np.diff(support) > 0).all()
    np.testing.assert_array_equal(support, np.flatnonzero((model.dual_coef_ != 0).any(axis=0)))
    assert np.sum(model.n_support_) == len(support)
    np.testing.assert_array_equal(model.n_support_, [np.sum(y[support] == k) for k in range(classes)])
    if objective == "svm" and classes == 2:
        z = signs(y, model.classes_)[:, 0] * model.decision_function(X)
        assert len(support) < 90, "an SVM on easy rows is sparse"
        assert np.isin(np.flatnonzero(z < 1 - 1e-3), support).all(), "rows inside the margin are support vectors"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_few_solutions_go_together_and_many_one_after_the_other(multiclass, dtype, monkeypatch):
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((40, 3)).astype(dtype), np.arange(40) % 3
    kinds = {"multiclass": multiclass, "tol": 1e-4, "sample_weight": np.arange(40) % 5}
    together = mdlearn.fit("svm", X, y, **kinds)
    monkeypatch.setattr(build, "FEW_VALUES", 0)
    single = mdlearn.fit("svm", X, y, **kinds)
    for name in ("coef_", "dual_coef_", "duals", "support_", "n_support_"):
        one, other = getattr(together, name), getattr(single, name)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
