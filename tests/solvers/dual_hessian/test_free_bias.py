"""Sweeps over a Gram matrix with a free bias: the optimum, the intercept's condition, kernels of huge values."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn
from mdlearn.errors import ConvergenceWarning
from mdlearn.solvers.dual_hessian import free_bias


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
            name, X, y, sample_weight=counts, bias="free", kernel="rbf", gamma=gamma, solver=solver, tol=tol, **params
        )
        for solver, tol in (("cd", 1e-9), ("interior", 5e-9))  # what rounding allows depends on the processor
    )
    assert own.certificate.converged and own.solver == "cd"
    assert own.certificate.objective == pytest.approx(other.certificate.objective, rel=6e-9)
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


@pytest.mark.slow
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


HESSIANS = {
    "ExactHessian": (60, {"C": 10.0, "lambda1": 100.0, "lambda2": 50.0}),
    "DeflatedHessian": (700, {"C": 10.0, "lambda1": 1.0, "lambda2": 1.0}),
    "CholeskyOrderedHessian": (700, {"C": 10.0, "lambda1": 5e4, "lambda2": 2e4}),
}


@pytest.mark.parametrize("shares", [0.5, 0.1])
@pytest.mark.parametrize("kind", HESSIANS)
def test_working_sets_where_the_variance_holds_the_bias(kind, shares, monkeypatch):
    """Whatever the Hessian without a bias is, its border makes the optimum that interior points find."""
    m, params = HESSIANS[kind]
    rng = np.random.default_rng(m)
    X = rng.standard_normal((m, 3)) + 3.0
    score = X[:, 0] + rng.standard_normal(m)
    y = np.where(score > np.quantile(score, 1.0 - shares), 1.0, -1.0)
    weight = rng.uniform(0.5, 2.0, m)
    met = []
    hold = free_bias.FreeBiasHessian.hold

    def watched(self):
        met.append(type(self.inner).__name__)
        return hold(self)

    monkeypatch.setattr(free_bias.FreeBiasHessian, "hold", watched)
    given = {"sample_weight": weight, "bias": "free", "kernel": "rbf", "gamma": 0.5, **params}
    own = mdlearn.fit("ldm", X, y, solver="cd", tol=1e-9, **given)
    assert met[-1] == kind and own.certificate.converged
    other = mdlearn.fit("ldm", X, y, solver="interior", tol=1e-9, **given)
    assert own.certificate.objective == pytest.approx(other.certificate.objective, rel=3e-9)
    np.testing.assert_allclose(own.intercept_, other.intercept_, rtol=1e-3, atol=1e-4)


def test_paths_and_several_classes_with_a_held_bias():
    """What a neighbour or another class begins with changes nothing."""
    X, _, weight = sample(5, 0.5)
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])
    given = {"kernel": "rbf", "gamma": 1.0, "bias": "free", "sample_weight": weight, "tol": 1e-9}
    path = mdlearn.fit_path("ldm", X, y, {"C": [0.1, 1.0, 10.0], "lambda1": [0.5, 20.0], "lambda2": [1.0]}, **given)
    assert len(path) == 6
    for model in path:
        alone = mdlearn.fit("ldm", X, y, **given, **{name: model.params[name] for name in ("C", "lambda1", "lambda2")})
        assert model.certificate.converged and alone.certificate.converged
        assert model.certificate.objective == pytest.approx(alone.certificate.objective, rel=3e-9)


def test_a_variance_that_feels_no_bias():
    """One class alone has no bias that a variance could hold: its weight is all that is left of the other."""
    X, y, _ = sample(2, 0.5)
    weight = np.where(y > 0, 1.0, 1e-14)
    model = mdlearn.fit(
        "ldm", X, y, sample_weight=weight, kernel="rbf", gamma=1.0, lambda1=3.0, bias="free", solver="cd"
    )
    assert np.isfinite(model.decision_function(X)).all() and model.certificate.gap < 1e-3
