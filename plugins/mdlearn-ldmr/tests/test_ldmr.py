"""LDMR: every promise of an objective, the optimum found by other means, and the methods at its ends."""

import numpy as np
import pytest
from mdlearn_ldmr import LDMR
from scipy.optimize import minimize

import mdlearn
from mdlearn.testing import parametrize_with_checks

C, K, EPSILON = 2.0, 0.7, 0.3


@parametrize_with_checks(["ldmr", LDMR(C=C, k=K, epsilon=EPSILON), LDMR(k=0.0), LDMR(C=0.0), LDMR(epsilon=0.0)])
def test_conformance(objective, check):
    check(objective)


def test_registered():
    (record,) = [one for one in mdlearn.list_plugins() if one.distribution == "mdlearn-ldmr"]
    assert (record.objectives, record.solvers, record.state) == (("ldmr",), (), "ok")


def sample():
    """Noisy numbers far from 0, with repetition counts, one of them 0."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 4))
    y = 3.0 + X @ [1.0, -2.0, 0.5, 0.0] + 0.6 * rng.standard_normal(50)
    counts = rng.integers(0, 4, 50).astype(float)
    return X, y, counts


def columns(X, kernel):
    """Columns whose inner products are the kernel."""
    if kernel == "linear":
        return X
    lengths, turns = np.linalg.eigh(np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2)))
    return turns * np.sqrt(np.maximum(lengths, 0))


def by_program(F, y, counts, penalized):
    """The same objective with slack variables above and below the tube, by a general solver."""
    m, d = F.shape

    def value(v):
        w, s = v[:d], v[d:]
        miss = F @ w - y
        gradient = np.concatenate([penalized * w + K * F.T @ (counts * miss), C * counts])
        return 0.5 * penalized @ w**2 + 0.5 * K * counts @ miss**2 + C * counts @ s, gradient

    inside = [
        {"type": "ineq", "fun": lambda v: EPSILON + v[d:] - F @ v[:d] + y, "jac": lambda v: np.hstack([-F, np.eye(m)])},
        {"type": "ineq", "fun": lambda v: EPSILON + v[d:] + F @ v[:d] - y, "jac": lambda v: np.hstack([F, np.eye(m)])},
    ]
    start = np.concatenate([np.zeros(d), np.abs(y)])
    bounds = [(None, None)] * d + [(0, None)] * m
    options = {"maxiter": 500, "ftol": 1e-14}
    found = minimize(value, start, jac=True, bounds=bounds, constraints=inside, method="SLSQP", options=options)
    w = found.x[:d]
    miss = np.abs(F @ w - y)
    return 0.5 * penalized @ w**2 + counts @ (0.5 * K * miss**2 + C * np.maximum(0, miss - EPSILON))


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_optimum(bias, kernel):
    X, y, counts = sample()
    F = columns(X, kernel)
    penalized = np.ones(F.shape[1])
    if bias != "none":
        F = np.column_stack([F, np.ones(len(F))])
        penalized = np.append(penalized, 1.0 if bias == "regularized" else 0.0)
    value = by_program(F, y, counts, penalized)
    settings = {"gamma": 0.5} if kernel == "rbf" else {}
    model = mdlearn.fit(
        LDMR, X, y, sample_weight=counts, C=C, k=K, epsilon=EPSILON, kernel=kernel, bias=bias, tol=1e-12, **settings
    )
    certificate = model.certificate
    assert certificate.converged and certificate.kind == "duality gap"
    # The general solver is the less exact of the two, and never below the optimum.
    assert certificate.lower_bound <= value * (1 + 1e-12)
    assert certificate.objective == pytest.approx(value, rel=1e-7)


def test_without_the_tube_it_is_ridge_regression():
    X, y, counts = sample()
    model = mdlearn.fit(LDMR, X, y, sample_weight=counts, C=0.0, k=3.0, bias="none", tol=1e-14)
    w = np.linalg.solve(np.eye(4) + 3.0 * X.T @ (counts[:, None] * X), 3.0 * X.T @ (counts * y))
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-10)
    np.testing.assert_allclose(model.predict(X), X @ w, rtol=1e-10)


def test_without_squares_it_is_support_vector_regression():
    """The conditions of the epsilon-insensitive loss, recomputed: multipliers at C c outside the tube, 0 inside."""
    X, y, counts = sample()
    model = mdlearn.fit(LDMR, X, y, sample_weight=counts, C=0.5, k=0.0, epsilon=0.4, bias="free", tol=1e-13)
    alpha, miss = model.dual_coef_[0], model.predict(X) - y
    np.testing.assert_allclose(model.coef_[0], X.T @ alpha, atol=1e-9)
    assert abs(alpha.sum()) < 1e-9
    np.testing.assert_allclose(alpha[miss > 0.4 + 1e-6], -0.5 * counts[miss > 0.4 + 1e-6], atol=1e-9)
    np.testing.assert_allclose(alpha[miss < -0.4 - 1e-6], 0.5 * counts[miss < -0.4 - 1e-6], atol=1e-9)
    np.testing.assert_allclose(alpha[np.abs(miss) < 0.4 - 1e-6], 0.0, atol=1e-9)


def test_outliers_pull_less_than_squares_alone():
    rng = np.random.default_rng(2)
    x = rng.uniform(-3, 3, (200, 1))
    y = 2.0 * x[:, 0] + 0.1 * rng.standard_normal(200)
    y[:10] += 60.0
    slopes = [mdlearn.fit(LDMR, x, y, C=c, k=k).coef_[0, 0] for c, k in ((1.0, 0.001), (0.0, 1.0))]
    assert abs(slopes[0] - 2.0) < 0.05 < abs(slopes[1] - 2.0)


def test_real_data():
    diabetes = pytest.importorskip("sklearn.datasets").load_diabetes()
    X, y = diabetes.data / diabetes.data.std(axis=0), diabetes.target
    for kernel in ("linear", "rbf"):
        model = mdlearn.fit("ldmr", X[:300], y[:300], C=5.0, epsilon=10.0, kernel=kernel)
        assert model.certificate.converged
    assert mdlearn.fit("ldmr", X[:300], y[:300], C=5.0, epsilon=10.0).score(X[300:], y[300:]) > 0.4
