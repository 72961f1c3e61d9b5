"""Objectives of regression: the optimum by other means, every engine, weights, types and refusals.

z is the residual f(x) - y: variance and mean of the family are those of residuals, so that the objective here is
1/2 |w|^2 + v Var(f - y) - a mean(f - y) + losses of f - y.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from regression_cases import Above, Rounded, Tube, sample
from scipy.optimize import LinearConstraint, minimize

import mdlearn
from mdlearn.errors import ConvergenceWarning
from mdlearn.objectives.base import Parameter
from mdlearn.testing import parametrize_with_checks

CASES = [
    Tube(),
    Tube(k=0.3),
    Tube(v=20.0, a=3.0),
    Tube(C=0.0, k=2.0, v=3.0, a=5.0),
    Tube(k=0.5, v=3.0, epsilon=0.0),
    Rounded(),
    Rounded(v=10.0),
    Above(),
]


@pytest.mark.slow
@parametrize_with_checks(CASES)
def test_conformance(objective, check):
    check(objective)


def optimum(F, y, counts, penalized, C, k, v, a, epsilon):
    """The tube's objective by an interior point method for general programs, with a slack per row."""
    (m, d), total = F.shape, counts.sum()
    centred = F - counts @ F / total
    Q = (
        np.diag(penalized)
        + 2 * k * F.T @ (counts[:, None] * F)
        + 2 * v / total * centred.T @ (counts[:, None] * centred)
    )
    q = -2 * k * F.T @ (counts * y) - 2 * v / total * centred.T @ (counts * y) - a * counts @ F / total
    constant = k * counts @ y**2 + v * counts @ (y - counts @ y / total) ** 2 / total + a * counts @ y / total
    H = np.zeros((d + m, d + m))
    H[:d, :d] = Q

    def value(p):
        return 0.5 * p[:d] @ Q @ p[:d] + q @ p[:d] + C * counts @ p[d:]

    def slope(p):
        return np.concatenate([Q @ p[:d] + q, C * counts])

    if C == 0:
        w = np.linalg.solve(Q, -q)
        return value(np.append(w, np.zeros(m))) + constant
    eye = np.eye(m)
    rows = np.vstack([np.hstack([-F, eye]), np.hstack([F, eye]), np.hstack([np.zeros((m, d)), eye])])
    low = np.concatenate([-y - epsilon, y - epsilon, np.zeros(m)])
    start = np.concatenate([np.zeros(d), np.abs(y) + 1.0])
    tight = {"gtol": 1e-11, "xtol": 1e-13, "barrier_tol": 1e-11, "maxiter": 3000}
    found = minimize(
        value, start, jac=slope, hess=lambda p: H, constraints=LinearConstraint(rows, low, np.inf),
        method="trust-constr", options=tight,
    )  # fmt: skip
    w = found.x[:d]
    return value(np.append(w, np.maximum(np.abs(F @ w - y) - epsilon, 0.0))) + constant


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("task", CASES[:5], ids=range(5))
def test_the_optimum(task, bias):
    X, y, counts = sample(24)
    keep = counts > 0
    F, penalized = X, np.ones(4)
    if bias != "none":
        F, penalized = np.column_stack([X, np.ones(24)]), np.array([1, 1, 1, 1, float(bias == "regularized")])
    model = mdlearn.fit(task, X, y, sample_weight=counts, bias=bias, tol=1e-13)
    want = optimum(
        F[keep], y[keep], counts[keep], penalized, **{key: model.params[key] for key in ("C", "k", "v", "a", "epsilon")}
    )
    certificate = model.certificate
    scale = max(abs(want), 1.0)
    assert certificate.objective <= want + 1e-7 * scale  # the general solver is the less exact one
    assert certificate.lower_bound >= want - 1e-5 * scale
    assert certificate.lower_bound <= want + 1e-12 * scale and certificate.gap <= 1e-12


def value_of(task, model, X, y, counts):
    """Objective of the rounded and logistic cases at a model's coefficients, from their formulas."""
    w, b = model.coef_[0], model.intercept_[0]
    z, p = X @ w + b - y, model.params
    value = 0.5 * w @ w + (0.5 * b * b if model.bias == "regularized" else 0.0)
    if isinstance(task, Rounded):
        mean = counts @ z / counts.sum()
        return value + p["v"] * counts @ (z - mean) ** 2 / counts.sum() + p["C"] * counts @ (np.sqrt(1 + z * z) - 1)
    return value + p["C"] * counts @ (np.logaddexp(0, 1 - z) + 0.1 * z * z)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("task", CASES[5:], ids=["rounded", "spread", "logistic"])
def test_smooth_losses_have_no_slope_left(task, bias):
    X, y, counts = sample()
    model = mdlearn.fit(task, X, y, sample_weight=counts, bias=bias, tol=1e-13)
    held = value_of(task, model, X, y, counts)
    assert model.certificate.objective == pytest.approx(held, rel=1e-12)
    start = np.append(model.coef_[0], model.intercept_[0])

    class Moved:
        params = model.params

        def __init__(self, p):
            self.bias, self.coef_, self.intercept_ = bias, [p[:4]], [p[4]]

    for j in range(5 if bias != "none" else 4):
        step = 1e-5 * np.eye(5)[j]
        ahead, behind = (value_of(task, Moved(start + s * step), X, y, counts) for s in (1, -1))
        assert abs(ahead - behind) / 2e-5 < 1e-5 * abs(held)


@pytest.mark.parametrize("scale, shift", [(1e6, 0.0), (1e-6, 0.0), (1.0, 1e6), (1.0, -1e6)])
def test_units_of_y(scale, shift):
    """f scales with y: C and epsilon in units of y make the same problem."""
    X, y, counts = sample()
    plain = mdlearn.fit(Tube(C=3.0), X, y, sample_weight=counts, bias="free", tol=1e-12)
    moved = mdlearn.fit(
        Tube(C=3.0 * scale, epsilon=0.2 * scale), X, scale * y + shift, sample_weight=counts, bias="free", tol=1e-12
    )
    assert moved.certificate.gap <= 1e-8
    np.testing.assert_allclose((moved.predict(X) - shift) / scale, plain.predict(X), atol=1e-6)


def test_ends_of_units():
    """Stiff losses of large targets, targets within their tube, and variance beside a large mean."""
    X, y, counts = sample(30, 2)
    for scale in (1.0, 1e3, 1e8):
        stiff = Tube(C=1e4 * scale, k=1.0, epsilon=0.1 * scale)
        assert mdlearn.fit(stiff, X, scale * y, solver="interior").certificate.converged
    wide = mdlearn.fit(Tube(epsilon=100.0), X, y, solver="interior").certificate
    assert wide.objective == wide.lower_bound == wide.gap == 0.0
    far = Tube(C=0.0, v=1e5)
    low = mdlearn.fit(far, X, y + 1e6, solver="asgd").certificate.lower_bound
    assert low <= mdlearn.fit(far, X, y + 1e6).certificate.objective * (1 + 1e-9)
    assert mdlearn.fit(far, X, y, sample_weight=counts / 7, bias="free").certificate.converged
    with pytest.raises(ValueError, match="with bias='free' the objective is unbounded below"):
        mdlearn.fit(Tube(C=0.1, a=3.1), X, y, bias="free")
    assert mdlearn.fit(Tube(C=0.1, a=2.9), X, y, bias="free").certificate.converged


@pytest.mark.parametrize("solver", ["sgd", "asgd"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_stochastic_steps(solver, form):
    """Their bound is true, and averaged steps come close."""
    X, y, _ = sample(3000, 6)
    for task in (Tube(), Tube(C=0.0, k=1.0), Tube(v=50.0, a=1.0)):
        best = mdlearn.fit(task, X, y, tol=1e-10).certificate
        found = mdlearn.fit(task, form(X), y, solver=solver, solver_options={"epochs": 20}).certificate
        assert found.lower_bound <= best.objective * (1 + 1e-12)
        assert best.objective * (1 - 1e-9) <= found.objective <= best.objective * (1.01 if solver == "asgd" else 2.0)


def test_float32_and_layouts():
    X, y, counts = sample()
    double = mdlearn.fit(Tube(k=0.3), X, y, sample_weight=counts)
    single = mdlearn.fit(Tube(k=0.3), X.astype(np.float32), y, sample_weight=counts)
    assert single.coef_.dtype == np.float32 and single.predict(X).dtype == np.float64
    assert single.certificate.objective == pytest.approx(double.certificate.objective, rel=1e-5)
    for other in (sp.csr_matrix(X), sp.csc_matrix(X), np.asfortranarray(X)):
        again = mdlearn.fit(Tube(k=0.3), other, y, sample_weight=counts, tol=1e-12)
        assert again.certificate.objective == pytest.approx(double.certificate.objective, rel=1e-6)


def test_what_regression_refuses():
    X, y, _ = sample()
    with pytest.raises(ValueError, match="class_weight 'balanced' is for classifiers"):
        mdlearn.fit(Tube(), X, y, class_weight="balanced")
    with pytest.raises(ValueError, match="multiclass 'ovr' is not possible here; give one of auto, none"):
        mdlearn.fit(Tube(), X, y, multiclass="ovr")
    for solver in ("smw", "apg", "linprog"):
        with pytest.raises(ValueError, match=f"solver '{solver}' cannot take this problem: .*; use one of "):
            mdlearn.fit(Tube(C=0.0, k=1.0), X, y, solver=solver)

    class Hard(Tube):
        parameters: ClassVar = {**Tube.parameters, "C": Parameter(float("inf"), "weight", finite=False)}

    with pytest.raises(ValueError, match="a problem of regression needs a loss of finite weight; lower C"):
        mdlearn.fit(Hard(), X, y)

    class Strange(Tube):
        task = "ranking"

    with pytest.raises(
        TypeError, match="objective 'tube' has the task 'ranking'; known tasks: classification, regression"
    ):
        mdlearn.fit(Strange, X, y)


def test_limits_are_told_as_for_classifiers():
    X, y, _ = sample(400)
    with pytest.warns(ConvergenceWarning, match="max_iter = 1 reached"):
        model = mdlearn.fit(Tube(), X, y, solver="interior", max_iter=1)
    assert not model.certificate.converged and np.isfinite(model.certificate.objective)
