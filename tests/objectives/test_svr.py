"""Support vector regression against its printed program, and against LIBSVM."""

import numpy as np
import pytest
from scipy.optimize import minimize

import mdlearn


def numbers(seed, m=20):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3))
    return X, X @ [1.0, -2.0, 0.5] + rng.standard_normal(m), rng.integers(0, 4, m)


def least(F, y, caps, epsilon):
    """min 1/2 |w|^2 + caps.xi over (w, xi >= 0) with |F w - y| <= epsilon + xi, which SLSQP finds."""
    m, d = F.shape
    rows = np.block([[-F, np.eye(m)], [F, np.eye(m)]])
    room = {"type": "ineq", "fun": lambda x: rows @ x + epsilon + np.append(y, -y), "jac": lambda x: rows}
    cost = np.append(np.zeros(d), caps)
    own = np.append(np.ones(d), np.zeros(m))

    def whole(x):
        return 0.5 * own @ x**2 + cost @ x, own * x + cost

    start = np.append(np.zeros(d), np.maximum(np.abs(y) - epsilon, 0.0))
    options, bounds = {"ftol": 1e-15, "maxiter": 1000}, [(None, None)] * d + [(0, None)] * m
    w = minimize(whole, start, jac=True, bounds=bounds, constraints=room, method="SLSQP", options=options).x[:d]
    return 0.5 * w @ w + caps @ np.maximum(0.0, np.abs(F @ w - y) - epsilon)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_the_optimum_of_the_printed_program(seed, kernel, bias):
    X, y, counts = numbers(seed)
    model = mdlearn.fit("svr", X, y, sample_weight=counts, kernel=kernel, bias=bias, C=0.7, epsilon=0.3, tol=1e-10)
    K = X @ X.T if kernel == "linear" else np.exp(-model.params["gamma"] * ((X[:, None] - X) ** 2).sum(axis=2))
    F = np.column_stack([X, np.ones(len(X))]) if kernel == "linear" else np.linalg.cholesky(K + (bias == "regularized"))
    best = least(F[:, :3] if kernel == "linear" and bias == "none" else F, y, 0.7 * counts, 0.3)
    assert model.certificate.converged and model.certificate.objective == pytest.approx(best, rel=1e-7)
    # The printed sum, from predictions and dual coefficients of the model.
    alpha, b = model.dual_coef_[0], float(model.intercept_[0])
    value = 0.5 * alpha @ K @ alpha + 0.5 * b * b * (bias == "regularized")
    value += 0.7 * counts @ np.maximum(0.0, np.abs(model.predict(X) - y) - 0.3)
    assert model.certificate.objective == pytest.approx(value, rel=1e-9)


def test_a_free_bias_is_that_of_libsvm():
    svm = pytest.importorskip("sklearn.svm")
    X, y, counts = numbers(5)
    model = mdlearn.fit("svr", X, y + 7.0, sample_weight=counts, bias="free", C=0.7, epsilon=0.3, tol=1e-11)
    theirs = svm.SVR(kernel="linear", C=0.7, epsilon=0.3, tol=1e-9).fit(X, y + 7.0, sample_weight=counts)
    assert model.predict(X) == pytest.approx(theirs.predict(X), abs=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_sweeps_over_a_tube_without_width_do_not_crawl(seed):
    # Both multipliers of a row are free there, and one takes back what the other gives.
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 3))
    X[:, 0] = 1.0
    y = X @ [0.2, -0.3, 0.1] + 1e-3 * rng.standard_normal(80)
    given = {"C": 10.0, "epsilon": 0.0, "kernel": "rbf", "bias": "none"}
    model = mdlearn.fit("svr", X, y, **given, solver="cd", tol=1e-3, max_iter=300)
    best = mdlearn.fit("svr", X, y, **given, solver="interior", tol=1e-9).certificate.objective
    assert model.certificate.converged and best <= model.certificate.objective <= best * (1 + 2e-3)


@pytest.mark.parametrize("solver", ["cd", "interior", "decomposition"])
@pytest.mark.parametrize("bias", ["regularized", "free"])
@pytest.mark.parametrize("unit", [2.0**-100, 2.0**300])
def test_the_unit_of_targets_is_free(unit, bias, solver):
    # With y, epsilon and C in another unit, w is, too: the objective is that of unit 1 times its square.
    X, y, counts = numbers(6)
    given = {"sample_weight": counts, "kernel": "rbf", "bias": bias, "tol": 1e-8}
    one = mdlearn.fit("svr", X, y, C=5.0, epsilon=0.01, **given).certificate
    other = mdlearn.fit("svr", X, y * unit, C=5.0 * unit, epsilon=0.01 * unit, solver=solver, **given).certificate
    assert one.converged and other.converged
    assert other.objective / unit / unit == pytest.approx(one.objective, rel=2e-8)


def test_what_has_no_meaning_for_numbers():
    X, y, _ = numbers(0)
    with pytest.raises(ValueError, match="multiclass 'ovr' is not possible here; give one of auto, none"):
        mdlearn.fit("svr", X, y, multiclass="ovr")
    with pytest.raises(ValueError, match="C needs to be a finite number >= 0; got inf"):
        mdlearn.fit("svr", X, y, C=np.inf)
