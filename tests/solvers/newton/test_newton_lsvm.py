"""LSVM against its printed primal and dual."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from newton_reference import BIASES, Band, features_of, minimum, printed, sample

import mdlearn
from mdlearn.objectives.base import Parameter
from mdlearn.testing import checks


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("nu", [0.01, 1.0, 50.0])
def test_the_optimum_and_its_dual(kernel, bias, nu):
    X, y = sample()
    model = mdlearn.fit("lsvm", X, y, nu=nu, kernel=kernel, bias=bias, tol=1e-12, solver="newton")
    best, f = minimum(features_of(X, kernel), y, bias, [(0.5 * nu, 1, 1.0)])
    assert model.solver == "newton" and model.certificate.converged and model.certificate.gap <= 1e-12
    assert model.certificate.objective == pytest.approx(best, rel=1e-11)
    np.testing.assert_allclose(model.decision_function(X), f, atol=2e-5 * np.abs(f).max())
    primal, dual, z, u = printed(model, X, y, kernel, nu, bias)
    assert primal == pytest.approx(model.certificate.objective, rel=1e-11)
    assert dual == pytest.approx(primal, rel=1e-11), "the optima of the primal and the dual are equal"
    np.testing.assert_allclose(u, nu * np.maximum(0.0, 1 - z), atol=1e-8 * u.max())
    if bias == "free":
        assert y @ u == pytest.approx(0.0, abs=1e-9 * u.sum())


def test_the_papers_names():
    """w = A'Du, gamma = -e'Du, slack = u / nu, u = Q^-1 e where all of it is positive."""
    X, y = sample()
    model = mdlearn.fit("lsvm", X, y, nu=3.0, tol=1e-12, solver="newton")
    u = model.duals[0]
    np.testing.assert_allclose(model.coef_[0], X.T @ (y * u), atol=1e-12)
    gamma = -model.intercept_[0]
    assert gamma == pytest.approx(-float(y @ u), abs=1e-12)
    np.testing.assert_allclose(np.maximum(0, 1 - y * (X @ model.coef_[0] - gamma)), u / 3.0, atol=1e-12)
    H = y[:, None] * np.hstack([X, -np.ones((60, 1))])
    slope = (np.eye(60) / 3.0 + H @ H.T) @ u - 1
    for step in (0.1, 0.6):  # the fixed point u: Qu - e = ((Qu - e) - alpha u)+
        np.testing.assert_allclose(slope, np.maximum(0, slope - step * u), atol=1e-11)
    # With a small nu every row is active, and the dual is one linear system.
    small = mdlearn.fit("lsvm", X, y, nu=1e-3, tol=1e-12, solver="newton").duals[0]
    assert (small > 0).all()
    np.testing.assert_allclose(small, np.linalg.solve(np.eye(60) / 1e-3 + H @ H.T, np.ones(60)), rtol=1e-11)


def test_nu_is_positive():
    X, y = sample()
    for wrong in (0, 0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"^nu needs to be a (finite )?number > 0; got "):
            mdlearn.fit("lsvm", X, y, nu=wrong)
    assert mdlearn.fit("lsvm", X, y, nu=1e-300).certificate.converged


def test_the_kit_asks_strict_bounds_of_a_parameter():
    class Lenient(Parameter):
        def check(self, name, value):
            return 0.0 if value == 0 else super().check(name, value)

    class Faulty(Band):
        name = "faulty"
        parameters: ClassVar = {**Band.parameters, "C": Lenient(1.0, "weight below 1", strict=True)}

    with pytest.raises(AssertionError, match=r"C=0.0 is accepted"):
        checks.check_bounds(Faulty)


@pytest.mark.parametrize("nu", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_extreme_weights_of_the_loss(kernel, bias, nu):
    X, y = sample(50, 3, seed=4)
    model = mdlearn.fit("lsvm", X, y, nu=nu, kernel=kernel, bias=bias, tol=1e-12, solver="newton")
    primal, dual, _, u = printed(model, X, y, kernel, nu, bias)
    # Weak duality, computed here: no point is better than the dual value. 25 nu is the objective at w = 0.
    scale = max(primal, 0.25 * nu)
    balance = abs(y @ u) if bias == "free" else 0.0
    assert model.certificate.converged and balance <= 1e-9 * u.sum()
    assert (u >= 0).all() and primal - dual <= 1e-9 * scale
    assert model.certificate.objective == pytest.approx(primal, abs=1e-9 * scale)


def steep_problem():
    rng = np.random.default_rng(127)
    X = rng.standard_normal((43, 3)) * 10.0 ** rng.uniform(-3, 3, 3)
    y = np.where(X[:, 0] / np.abs(X[:, 0]).max() + 0.5 * rng.standard_normal(43) > 0, 1, -1)
    return X, y


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_very_steep_losses(kernel, bias):
    """1 - z alone has lost the digits of the multipliers; beyond 1e8 times k(x, x) kernels go to the interior point."""
    X, y = steep_problem()
    tol = 1e-9 if kernel == "linear" else 2e-8
    settings = {"kernel": kernel, "bias": bias, "nu": 5e9, "tol": tol}
    model = mdlearn.fit("lsvm", X, y, solver="newton", **settings)
    other = mdlearn.fit("lsvm", X, y, solver="interior", **settings)
    auto = mdlearn.fit("lsvm", X, y, **settings)
    chosen = "interior" if kernel == "rbf" else "newton"
    assert model.certificate.converged and auto.solver == chosen
    scale = tol * max(other.certificate.objective, 0.005 * 5e9 * 43)
    # Beside 5e9 times the squared slack, rounding moves the interior point's value by about as much as tol.
    assert abs(model.certificate.objective - other.certificate.objective) <= 4 * scale
    assert auto.certificate.converged
