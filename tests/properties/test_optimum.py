"""Optima against the independent solver in reference.py: kernels, biases, weights, classes, every engine."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from judging import assert_optimal, kernel_of, scale_of, signs, true_optimum
from optimum_cases import BIASES, fits_of, overlapping
from pairwise import pairs_first
from reference import optimum, scale_gamma

import mdlearn


def sum_kernel(A, B):
    """A callable kernel that is no preset: an inhomogeneous quadratic plus a Laplacian part."""
    A, B = np.asarray(A), np.asarray(B)
    return (0.3 * A @ B.T + 1.0) ** 2 + np.exp(-np.abs(A[:, None, :] - B[None, :, :]).sum(axis=2))


def kernel_case(name):
    """(X, arguments of fit, kernel values) for a kernel of the contract."""
    X, y = overlapping()
    if name == "precomputed":
        Z = X[:, :3]
        return Z @ Z.T, y, {"kernel": "precomputed"}  # rank 3 of 40
    return (
        X,
        y,
        {
            "linear": {"kernel": "linear"},
            "rbf": {"kernel": "rbf", "gamma": 0.5},
            "rbf-scale": {"kernel": "rbf"},
            "poly": {"kernel": "poly", "gamma": 0.3, "degree": 2, "coef0": 1.0},
            "poly-default": {"kernel": "poly"},
            "callable": {"kernel": sum_kernel},
        }[name],
    )


KERNELS = ("linear", "rbf", "rbf-scale", "poly", "poly-default", "precomputed", "callable")


# ---------------------------------------------------------------- kernels x biases x weights x engines


@pytest.mark.parametrize(*pairs_first(kernel=KERNELS, bias=BIASES, weighted=[False, True]))
def test_ldm_optimum(kernel, bias, weighted):
    X, y, settings = kernel_case(kernel)
    rng = np.random.default_rng(5)
    weight = np.where(rng.random(len(y)) < 0.2, 0.0, rng.exponential(2.0, len(y))) if weighted else None
    settings = {**settings, "bias": bias, "C": 1.5, "lambda1": 0.8, "lambda2": 0.4}
    answer = true_optimum(X, y, settings, weight)
    for _, model, _ in fits_of(X, y, settings, weight, tol=1e-11):
        assert_optimal(model, X, y, settings, weight, answer)
        assert model.certificate.converged and model.certificate.gap <= 1e-11


@pytest.mark.parametrize(*pairs_first(kernel=["linear", "rbf", "precomputed"], bias=BIASES, lambda2=[0.0, 0.3]))
def test_optimum_without_variance(kernel, bias, lambda2):
    """lambda1 = 0: a free bias then has an equality constraint in the dual."""
    X, y, settings = kernel_case(kernel)
    settings = {**settings, "bias": bias, "C": 0.7, "lambda1": 0.0, "lambda2": lambda2}
    answer = true_optimum(X, y, settings)
    for _, model, _ in fits_of(X, y, settings, tol=1e-11):
        assert_optimal(model, X, y, settings, None, answer)


@pytest.mark.slow
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_svm_optimum(kernel, bias):
    X, y, settings = kernel_case(kernel)
    settings = {**settings, "objective": "svm", "bias": bias, "C": 2.0}
    answer = true_optimum(X, y, settings)
    for _, model, _ in fits_of(X, y, settings, tol=1e-11):
        assert_optimal(model, X, y, settings, None, answer)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_paper_defaults_of_lambda(weighted):
    """lambda1 = C m / 256 with m = sum of weights, lambda2 = lambda1 / 4, C = 1, bias regularized."""
    X, y = overlapping()
    weight = np.random.default_rng(1).integers(1, 5, len(y)).astype(float) if weighted else None
    total = weight.sum() if weighted else len(y)
    model = mdlearn.fit("ldm", X, y, sample_weight=weight, tol=1e-11)
    settings = {"bias": "regularized", "C": 1.0, "lambda1": total / 256, "lambda2": total / 1024}
    assert {key: model.params[key] for key in ("C", "lambda1", "lambda2")} == {
        key: settings[key] for key in ("C", "lambda1", "lambda2")
    }
    assert model.bias == "regularized"
    assert_optimal(model, X, y, settings, weight)


def test_gamma_scale_counts_rows_by_weight():
    X, y = overlapping()
    weight = np.random.default_rng(2).integers(0, 4, len(y)).astype(float)
    given = {"C": 1.0, "lambda1": 0.1, "lambda2": 0.1, "bias": "none", "tol": 1e-12}
    scale = mdlearn.fit("ldm", X, y, kernel="rbf", sample_weight=weight, **given)
    number = mdlearn.fit("ldm", X, y, kernel="rbf", sample_weight=weight, gamma=scale_gamma(X, weight), **given)
    np.testing.assert_allclose(scale.decision_function(X), number.decision_function(X), rtol=1e-8, atol=1e-8)
    assert scale_gamma(X, weight) != pytest.approx(scale_gamma(X), rel=1e-3)


# ---------------------------------------------------------------- scikit-learn's SVM is never better


@pytest.mark.slow
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("objective", ["svm", "ldm"])
def test_never_above_svc(objective, kernel, C):
    svm = pytest.importorskip("sklearn.svm")
    X, y = overlapping(150, 5, seed=12)
    shape = {"linear": {}, "rbf": {"gamma": 0.3}, "poly": {"gamma": 0.3, "degree": 3, "coef0": 1.0}}[kernel]
    settings = {"kernel": kernel, "bias": "free", "C": C, **shape}
    if objective == "ldm":
        settings |= {"lambda1": 0.0, "lambda2": 0.0}
    model = mdlearn.fit(objective, X, y, tol=1e-10, **settings)
    peer = svm.SVC(kernel=kernel, gamma=0.3, degree=3, coef0=1.0, C=C, tol=1e-10).fit(X, y)
    G = kernel_of(X, settings)
    G = (X @ X.T if G is None else G).astype(float)
    alpha = np.zeros(150)
    alpha[peer.support_] = peer.dual_coef_[0]
    z = y * (G @ alpha + peer.intercept_[0])
    theirs = alpha @ G @ alpha / 2 + C * np.maximum(0, 1 - z).sum()
    assert model.certificate.objective <= theirs * (1 + 1e-6)
    assert model.certificate.lower_bound <= theirs * (1 + 1e-12)


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("objective", ["svm", "ldm"])
def test_never_above_linear_svc(objective, C):
    svm = pytest.importorskip("sklearn.svm")
    X, y = overlapping(150, 5, seed=13)
    extra = {"lambda1": 0.0, "lambda2": 0.0} if objective == "ldm" else {}
    model = mdlearn.fit(objective, X, y, C=C, bias="regularized", tol=1e-10, **extra)
    peer = svm.LinearSVC(loss="hinge", C=C, intercept_scaling=1, tol=1e-8, max_iter=1_000_000).fit(X, y)
    w, b = peer.coef_[0], peer.intercept_[0]
    theirs = (w @ w + b * b) / 2 + C * np.maximum(0, 1 - y * (X @ w + b)).sum()
    assert model.certificate.objective <= theirs * (1 + 1e-6)


# ---------------------------------------------------------------- several classes


@pytest.mark.slow
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
def test_one_vs_rest_is_k_binary_fits(kernel, bias):
    rng = np.random.default_rng(18)
    X = rng.standard_normal((60, 4))
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + rng.standard_normal((60, 3)), axis=1)]
    given = X @ X.T if kernel == "precomputed" else X
    settings = {"kernel": kernel, "bias": bias, "C": 1.0, "lambda1": 0.5, "lambda2": 0.1}
    if kernel == "rbf":
        settings["gamma"] = 0.3
    joint = mdlearn.fit("ldm", given, y, tol=1e-12, **settings)
    F = joint.decision_function(given)
    assert F.shape == (60, 3)
    singles = []
    for k, label in enumerate(["a", "b", "c"]):
        target = np.where(y == label, 1, -1)
        single = mdlearn.fit("ldm", given, target, tol=1e-12, **settings)
        singles.append(single.certificate)
        np.testing.assert_allclose(F[:, k], single.decision_function(given), rtol=1e-6, atol=1e-6)
        assert_optimal(single, given, target, settings)
    assert joint.certificate.objective == pytest.approx(sum(c.objective for c in singles), rel=1e-10)
    assert joint.certificate.lower_bound == pytest.approx(sum(c.lower_bound for c in singles), rel=1e-10)
    assert len(joint.certificate.parts) == 3
    assert sum(p.objective for p in joint.certificate.parts) == pytest.approx(joint.certificate.objective, rel=1e-12)
    assert sum(p.lower_bound for p in joint.certificate.parts) == pytest.approx(
        joint.certificate.lower_bound, rel=1e-12
    )
    assert joint.certificate.converged == all(p.converged for p in joint.certificate.parts)
    np.testing.assert_array_equal(joint.predict(given), np.array(["a", "b", "c"])[F.argmax(axis=1)])


def test_one_vs_rest_of_ten_classes_with_unequal_sizes():
    rng = np.random.default_rng(19)
    sizes = [2, 3, 4, 5, 6, 7, 8, 9, 10, 30]
    y = np.repeat(np.arange(10) * 3, sizes)
    X = rng.standard_normal((len(y), 6)) + y[:, None] / 10
    settings = {"bias": "regularized", "C": 1.0, "lambda1": 0.2, "lambda2": 0.1}
    model = mdlearn.fit("ldm", X, y, tol=1e-11, **settings)
    total = 0.0
    for k in range(10):
        answer = optimum(X, signs(y, model.classes_)[:, k], C=1.0, lambda1=0.2, lambda2=0.1, bias="regularized")
        part = model.certificate.parts[k]
        assert part.objective == pytest.approx(answer.value, abs=1e-8 * scale_of(answer, settings, None, len(y)))
        total += answer.value
    assert model.certificate.objective == pytest.approx(total, rel=1e-8)


# ---------------------------------------------------------------- the certificate's own arithmetic


@pytest.mark.parametrize("C", [0.0, 1e-3, 1.0, 1e4])
@pytest.mark.parametrize("tol", [1e-2, 1e-6, 1e-10])
def test_gap_is_as_the_contract_defines_it(tol, C):
    X, y = overlapping(50, 3, seed=21)
    for kernel, solver in itertools.product(("linear", "rbf"), ("auto", "cd")):
        model = mdlearn.fit("ldm", X, y, C=C, lambda1=1.0, lambda2=0.5, kernel=kernel, solver=solver, tol=tol)
        c = model.certificate
        scale = max(abs(c.objective), 0.01 * C * 50, np.finfo(float).tiny)
        assert c.gap == pytest.approx((c.objective - c.lower_bound) / scale, rel=1e-12, abs=1e-300)
        assert c.tol == tol and c.kind == "duality gap"
        assert c.converged == (c.gap <= tol) and c.converged
