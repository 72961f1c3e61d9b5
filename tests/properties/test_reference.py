"""The judge is judged: reference.py against scipy's optimisers, scikit-learn's SVC and the formula written out."""

from __future__ import annotations

import numpy as np
import pytest
from reference import dual_value, factor, gram, kernel_optimum, linear_objective, optimum, scale_gamma
from scipy.optimize import Bounds, LinearConstraint, linprog, minimize

import mdlearn

BIASES = ("none", "regularized", "free")


def problem(m=14, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(m) % 3 == 0, 1.0, -1.0)
    return rng.standard_normal((m, d)) + 0.4 * y[:, None], y, rng.integers(1, 4, m).astype(float)


def literal(X, y, w, b, counts, C, lambda1, lambda2, bias):
    """The printed formula with numpy's own mean and variance, weights as repeated rows."""
    rows = np.repeat(np.arange(len(y)), counts.astype(int))
    z = y[rows] * (X[rows] @ w + b)
    value = 0.5 * w @ w + 2 * lambda1 * np.var(z) - lambda2 * np.mean(z) + C * np.maximum(0, 1 - z).sum()
    return value + (0.5 * b * b if bias == "regularized" else 0.0)


@pytest.mark.parametrize("lambdas", [(0.0, 0.0), (0.0, 0.1), (1.3, 0.4)], ids=str)
@pytest.mark.parametrize("bias", BIASES)
def test_formula_and_bound(bias, lambdas):
    X, y, counts = problem()
    hyper = {"C": 1.7, "lambda1": lambdas[0], "lambda2": lambdas[1], "bias": bias}
    answer = optimum(X, y, weight=counts, **hyper)
    w = answer.w.astype(float)
    assert answer.gap <= 1e-12
    assert answer.value == pytest.approx(literal(X, y, w, answer.b, counts, **hyper), rel=1e-13)
    assert answer.value == pytest.approx(linear_objective(X, y, w, answer.b, counts, **hyper), rel=1e-13)
    repeated = optimum(np.repeat(X, counts.astype(int), axis=0), np.repeat(y, counts.astype(int)), **hyper)
    assert repeated.value == pytest.approx(answer.value, rel=1e-13)
    kernel = kernel_optimum(gram(X, X), y, weight=counts, **hyper)
    assert kernel.value == pytest.approx(answer.value, rel=1e-13)
    for form in ({"X": X}, {"G": X @ X.T}):
        assert dual_value(answer.beta, y, counts, *lambdas, bias, **form) == pytest.approx(answer.value, rel=1e-12)
    # Nothing near it is better.
    rng = np.random.default_rng(1)
    for size in (1e-1, 1e-3, 1e-5):
        for _ in range(50):
            dw = size * rng.standard_normal(3)
            db = 0.0 if bias == "none" else size * rng.standard_normal()
            assert literal(X, y, w + dw, answer.b + db, counts, **hyper) >= answer.value * (1 - 1e-13)


@pytest.mark.parametrize("bias", BIASES)
def test_against_scipys_constrained_optimiser(bias):
    """(w, b, xi) with xi >= 0 and z + xi >= 1, by trust-constr."""
    X, y, counts = problem(seed=2)
    m, d = X.shape
    hyper = {"C": 1.2, "lambda1": 0.8, "lambda2": 0.3, "bias": bias}
    answer = optimum(X, y, weight=counts, **hyper)
    total = counts.sum()
    R = y[:, None] * np.hstack([X, np.ones((m, 1))])
    centred = R - counts @ R / total
    ridge = np.diag([1.0] * d + [1.0 if bias == "regularized" else 0.0])
    H = np.zeros((d + 1 + m, d + 1 + m))
    H[: d + 1, : d + 1] = ridge + 4 * 0.8 / total * centred.T @ (counts[:, None] * centred)
    c = np.concatenate([-0.3 * counts @ R / total, 1.2 * counts])
    low = np.concatenate([np.full(d + 1, -np.inf), np.zeros(m)])
    high = np.full(d + 1 + m, np.inf)
    if bias == "none":
        low[d], high[d] = 0.0, 0.0
    found = minimize(
        lambda v: v @ H @ v / 2 + c @ v,
        np.concatenate([np.zeros(d + 1), np.ones(m)]),
        jac=lambda v: H @ v + c,
        hess=lambda v: H,
        method="trust-constr",
        bounds=Bounds(low, high),
        constraints=[LinearConstraint(np.hstack([R, np.eye(m)]), 1.0, np.inf)],
        options={"gtol": 1e-10, "xtol": 1e-12, "barrier_tol": 1e-11, "maxiter": 5000},
    )
    assert answer.value == pytest.approx(found.fun, rel=1e-6)
    assert answer.value <= found.fun + 1e-9 * abs(found.fun)


def test_against_a_linear_program():
    """One feature: scan w, and minimise the hinge over the bias by a linear program."""
    X, y, _ = problem(10, 1, seed=3)
    answer = optimum(X, y, C=2.0, bias="free")
    best = np.inf
    for w in np.linspace(float(answer.w[0]) - 1e-4, float(answer.w[0]) + 1e-4, 21):
        # min sum xi over (b, xi): y b + xi >= 1 - y x w
        lp = linprog(
            np.append(0.0, np.ones(10)),
            A_ub=-np.hstack([y[:, None], np.eye(10)]),
            b_ub=-(1 - y * X[:, 0] * w),
            bounds=[(None, None)] + [(0, None)] * 10,
        )
        best = min(best, w * w / 2 + 2.0 * lp.fun)
    assert answer.value == pytest.approx(best, rel=1e-7) and answer.value <= best + 1e-9


@pytest.mark.parametrize("C", [1e-2, 1.0, 10.0])  # libsvm keeps its Gram matrix in single precision
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_against_svc(kernel, C):
    svm = pytest.importorskip("sklearn.svm")
    X, y, _ = problem(60, 4, seed=4)
    G = gram(X, X, kernel, 0.4)
    answer = kernel_optimum(G, y, C=C, bias="free")
    peer = svm.SVC(kernel=kernel, gamma=0.4, C=C, tol=1e-12).fit(X, y)
    alpha = np.zeros(60)
    alpha[peer.support_] = peer.dual_coef_[0]
    K = G.astype(float)
    theirs = alpha @ K @ alpha / 2 + C * np.maximum(0, 1 - y * (K @ alpha + peer.intercept_[0])).sum()
    assert answer.gap <= 1e-12
    assert answer.value == pytest.approx(theirs, rel=1e-6) and answer.value <= theirs * (1 + 1e-12)


def test_hard_margin_against_scipy():
    X, y, _ = problem(12, 2, seed=5)
    X = X + 4.0 * y[:, None]
    answer = optimum(X, y, C=np.inf, bias="free")
    R = y[:, None] * np.hstack([X, np.ones((12, 1))])
    found = minimize(
        lambda v: v[:2] @ v[:2] / 2,
        np.array([1.0, 1.0, 0.0]),
        jac=lambda v: np.array([v[0], v[1], 0.0]),
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": lambda v: R @ v - 1, "jac": lambda v: R}],
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    assert answer.value == pytest.approx(found.fun, rel=1e-8) and answer.gap <= 1e-12


def test_kernel_factor_and_gamma():
    X, _, counts = problem(20, 3, seed=6)
    X = np.vstack([X, X[:5]])
    for G in (gram(X, X), gram(X, X, "rbf", 0.3), gram(X, X, "poly", 0.5, 3, 1.0)):
        F = factor(G)
        assert float(np.abs(F @ F.T - G).max()) <= 1e-14 * float(np.abs(G).max())
        assert F.shape[1] <= 20
    assert scale_gamma(X) == pytest.approx(1 / (3 * X.var()), rel=1e-13)
    rows = np.repeat(X[:20], counts.astype(int), axis=0)
    assert scale_gamma(X[:20], counts) == pytest.approx(1 / (3 * rows.var()), rel=1e-13)


@pytest.mark.parametrize("distance", [1e2, 1e4, 1e6])
def test_rbf_values_of_clusters_far_apart(distance):
    """Near rows keep their kernel values, however far the cluster is from the others."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3)) + distance * np.eye(3)[np.arange(30) % 3]
    X[:3] = X[3:6]
    y = rng.integers(0, 2, 30)
    model = mdlearn.fit("svm", X, y, kernel="rbf", gamma=0.5, tol=1e-10)
    K = np.exp(-0.5 * np.square(X[:, None] - X[None]).sum(axis=2))
    f = K @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-12)
    alpha, b = model.dual_coef_[0], model.intercept_[0]
    value = 0.5 * (alpha @ K @ alpha + b * b) + np.maximum(0.0, 1.0 - np.where(y == 1, 1.0, -1.0) * f).sum()
    # Rows lose digits when their mean is taken off.
    assert model.certificate.objective == pytest.approx(value, rel=1e-12 + 1e-16 * distance)


def test_the_scale_of_constant_columns_is_no_rounding():
    X = np.full((7, 3), 0.1)
    X[0] = np.nextafter(0.1, 1.0)
    assert mdlearn.fit("svm", X, [0, 1] * 3 + [0], kernel="rbf").params["gamma"] == 1.0
