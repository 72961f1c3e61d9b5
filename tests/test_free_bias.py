"""Sweeps over a Gram matrix with a free bias: the optimum, the intercept's condition, kernels of huge values."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn
from mdlearn.errors import ConvergenceWarning


def sample(seed, share):
    """Noisy labels with repeated rows of both labels, and weights that are no integers."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((60, 2)), 1)
    X[30:] = X[:30]
    score = X[:, 0] + rng.standard_normal(60)
    return X, np.where(score > np.quantile(score, 1.0 - share), 1.0, -1.0), rng.random(60) + 0.1


def objective(name, params, z, counts, squares):
    """The printed formulas."""
    mean = counts @ z / counts.sum()
    if name == "lsvm":
        return 0.5 * squares + 0.5 * params["nu"] * counts @ np.maximum(0, 1 - z) ** 2
    value = 0.5 * squares + params["C"] * counts @ np.maximum(0, 1 - z)
    if name == "ldm":
        value += 2 * params["lambda1"] * counts @ (z - mean) ** 2 / counts.sum() - params["lambda2"] * mean
    return value


@pytest.mark.parametrize("share", [0.5, 0.05])
@pytest.mark.parametrize("gamma", [0.1, 10.0])
@pytest.mark.parametrize(
    "name, params",
    [
        ("svm", {"C": 1e-2}),
        ("svm", {"C": 1e3}),
        ("ldm", {"C": 0.0, "lambda1": 1.0, "lambda2": 1.0}),
        ("ldm", {"C": 1.0, "lambda1": 5.0, "lambda2": 1.0}),
        ("ldm", {"C": 100.0, "lambda1": 5000.0, "lambda2": 9000.0}),
        ("lsvm", {"nu": 10.0}),
    ],
)
def test_the_optimum(name, params, gamma, share):
    X, y, counts = sample(3, share)
    own, other = (
        mdlearn.fit(
            name, X, y, sample_weight=counts, bias="free", kernel="rbf", gamma=gamma, solver=solver, tol=1e-9, **params
        )
        for solver in ("cd", "interior")
    )
    assert own.certificate.converged and own.solver == "cd"
    assert own.certificate.objective == pytest.approx(other.certificate.objective, rel=3e-9)
    alpha = own.dual_coef_[0]
    G = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    f = G @ alpha + own.intercept_[0]
    assert abs(alpha.sum()) < 1e-9 * np.abs(alpha).sum()
    value = objective(name, params, y * f, counts, alpha @ G @ alpha)
    assert value == pytest.approx(own.certificate.objective, rel=1e-10)


@pytest.mark.parametrize("bias", ["free", "regularized"])
def test_kernels_of_huge_values_beside_a_variance(bias):
    """Where 1 + variance times kernel has no digits left for the 1, cd goes on without the matrix of that."""
    X, y, _ = sample(0, 0.5)
    settings = {"kernel": "poly", "gamma": 0.5, "degree": 3, "C": 100.0, "lambda1": 100.0, "bias": bias}
    with pytest.warns(ConvergenceWarning):
        model = mdlearn.fit("ldm", 1e4 * X, y, solver="cd", time_limit=2.0, **settings)
    assert np.isfinite(model.certificate.objective) and np.isfinite(model.decision_function(1e4 * X)).all()
    assert model.certificate.lower_bound <= 100.0 * 60  # the objective at w = 0


@pytest.mark.parametrize("seed, m, d, C", [(1, 20000, 2, 1e-2), (2, 20000, 2, 1e-2), (1, 20000, 2, 3e-3)])
def test_many_rows_without_signal(seed, m, d, C):
    """Classes that differ by two rows: nearly all rows are close to a kink, and interior points take short steps."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = rng.permutation(np.repeat([1.0, -1.0], [m // 2 + 1, m - m // 2 - 1]))
    params = {"C": C, "lambda1": 0.1 * C, "lambda2": 0.1 * C * m}
    model = mdlearn.fit("ldm", X, y, bias="free", solver="interior", **params)
    certificate = model.certificate
    assert certificate.converged and certificate.gap <= 1e-6

    def value(w, b):
        return objective("ldm", params, y * (X @ w + b), np.ones(m), w @ w)

    w, b = model.coef_[0], model.intercept_[0]
    least = value(w, b)
    assert least == pytest.approx(certificate.objective, rel=1e-10)
    for size in 10.0 ** np.arange(-6, 0):
        for _ in range(10):
            u = size * rng.standard_normal(d + 1)
            assert value(w + u[:d], b + u[d]) >= least - 1e-6 * abs(least)
