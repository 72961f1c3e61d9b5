"""The newton engine on logistic terms: kernels, variance and mean, mixed losses, sharp losses, the line search."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from newton_reference import features_of
from pairwise import pairs_first
from scipy.optimize import minimize
from scipy.special import expit
from smooth_reference import BIASES, formula, overlapping
from smooth_reference import optimum as reference

import mdlearn
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm, LogisticTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.objectives.base import Parameter, Terms
from mdlearn.plugins.registry import registry
from mdlearn.solvers.common.smooth_losses import SmoothLosses


class Smooth(mdlearn.Objective):
    """1/2 |w|^2 + v Var - a mean + w/m sum (logistic + D squares above 2); with ridge=0 without the norm."""

    name = "smooth"
    summary = "logistic loss with margin variance and mean"
    formula = "ridge/2 |w|^2 + v Var(z) - a mean(z) + w/m sum [ 1/alpha ln(1 + exp(-alpha (z - 1))) + D (z - 2)_+^2 ]"
    parameters: ClassVar = {
        "w": Parameter(50.0, "weight of the loss"),
        "alpha": Parameter(5.0, "sharpness"),
        "v": Parameter(0.0, "weight of the variance"),
        "a": Parameter(0.0, "weight of the mean"),
        "D": Parameter(0.0, "weight above 2"),
        "ridge": Parameter(1.0, "1 or 0"),
    }

    def terms(self, params, total):
        w = params["w"] / total
        loss = (LogisticTerm(w, params["alpha"]), HingeTerm(params["D"] * w, -1, 2.0, 2))
        return Terms(params["v"], params["a"], loss, ridge=params["ridge"])


def scaled(w, alpha=5.0, v=0.0, a=0.0, **rest):
    """The same problem in units of the loss, as the reference writes it."""
    return {"lam": 0.5 / w, "alpha": alpha, "threshold": 1.0, "v": v / w, "a": a / w, **rest}


@pytest.mark.parametrize("v, a", [(0.0, 0.0), (0.0, 2.0), (30.0, 0.0), (1000.0, 5.0)])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_variance_mean_and_kernels(kernel, bias, v, a):
    X, y = overlapping(70)
    weight = np.random.default_rng(2).uniform(0.2, 3.0, 70)
    model = mdlearn.fit(Smooth, X, y, v=v, a=a, kernel=kernel, bias=bias, sample_weight=weight, tol=1e-12)
    best = reference(features_of(X, kernel, weight), y, bias, **scaled(50.0, v=v, a=a, weight=weight))[0]
    assert model.solver == "newton" and model.certificate.gap <= 1e-12
    assert model.certificate.objective == pytest.approx(50.0 * best, rel=1e-11)
    assert model.certificate.lower_bound <= 50.0 * best * (1 + 1e-12 * np.sign(best))


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_logistic_and_squared_terms_together(kernel, bias):
    X, y = overlapping(60)
    model = mdlearn.fit(Smooth, X, y, v=3.0, D=0.7, kernel=kernel, bias=bias, tol=1e-12)
    F = features_of(X, kernel)
    R = y[:, None] * (F if bias == "none" else np.hstack([F, np.ones((60, 1))]))

    def value(u):
        upper = np.maximum(0.0, R @ u - 2.0)
        squares, slope, _ = formula(u, F, y, bias, **scaled(50.0, v=3.0))
        return 50.0 * squares + 35.0 * (upper**2).mean(), 50.0 * slope + 70.0 / 60 * R.T @ upper

    found = minimize(value, np.zeros(R.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 2000})
    assert np.abs(value(found.x)[1]).max() <= 1e-5
    assert model.certificate.gap <= 1e-12
    assert model.certificate.objective == pytest.approx(found.fun, rel=1e-10)


@pytest.mark.parametrize("v, a", [(1.0, 0.0), (1.0, 0.125), (0.01, 0.0)])
@pytest.mark.parametrize("bias", BIASES)
def test_no_ridge_but_a_variance(bias, v, a):
    """The binary MDLM: mean loss + v Var - a mean, no norm."""
    X, y = overlapping(150, 5)
    model = mdlearn.fit(Smooth, X, y, w=1.0, v=v, a=a, ridge=0, bias=bias, tol=1e-12)
    best, w, b = reference(X, y, bias, **{**scaled(1.0, v=v, a=a), "lam": 0.0})
    assert model.certificate.gap <= 1e-12 and model.certificate.objective == pytest.approx(best, rel=1e-11)
    np.testing.assert_allclose(model.coef_[0], w, atol=1e-6)
    assert model.intercept_[0] == pytest.approx(b, abs=1e-6)


@pytest.mark.parametrize(*pairs_first(scale=[1e-2, 1.0, 1e2], alpha=[0.1, 10.0, 1e3, 1e5], w=[1e-3, 1.0, 1e4, 1e8]))
def test_sharp_losses_and_steep_ones(scale, alpha, w):
    """Far from their threshold these losses have no curvature left in float64; steps must neither stall nor fly off."""
    X, y = overlapping(100, 5, noise=0.3)
    for kernel in ("linear", "rbf"):
        model = mdlearn.fit(Smooth, scale * X, y, w=w, alpha=alpha, kernel=kernel, tol=1e-10)
        values = np.array([state.objective for state in model.history])
        assert model.certificate.converged and model.n_iter <= 100
        assert (np.diff(values) <= 1e-12 * np.abs(values[:-1])).all(), "every step goes down"


def test_the_end_is_quadratic():
    X, y = overlapping()
    gaps = []
    settings = {"lam": 1e-3, "tol": 1e-13, "solver": "newton"}
    model = mdlearn.fit("l2lr", X, y, callback=lambda state: gaps.append(state.gap), **settings)
    assert model.n_iter <= 6 and gaps[-1] <= 1e-13
    assert gaps[-1] <= 10 * gaps[-2] ** 1.5


@pytest.mark.parametrize("alpha", [0.5, 5.0, 500.0])
def test_the_line_search(alpha):
    """The length takes the derivative along the step to a hundredth of its first value, for any positive model."""
    rng = np.random.default_rng(0)
    y, c = np.ones(30), rng.uniform(0.1, 2.0, 30)
    column = Column(y, c, 0.0, 0.0, (LogisticTerm(0.7, alpha), HingeTerm(0.1, -1, 1.5, 2)))
    for far in (1.0, 30.0, 1e3):
        loss = SmoothLosses(column)
        z, bend = far * rng.standard_normal(30), 0.5
        D = loss.model(z)
        assert (D >= np.array([t.curvatures(z, c) for t in column.terms])).all() and np.isfinite(D).all()
        assert (D.max(axis=1) <= np.array([t.steepest for t in column.terms]) * c.max() * (1 + 1e-12)).all()
        gradient = -column.sides @ np.array([t.slopes(z, c) for t in column.terms])
        dz = -gradient / (D.sum(axis=0) + bend)  # one feature per row, ridge `bend`, from the point where w = 0
        square = bend * dz @ dz
        t = loss.length(z, dz, -(square + D.sum(axis=0) @ np.square(dz)), square)
        at = z + t * dz
        slope = t * square - (column.sides @ np.array([t.slopes(at, c) for t in column.terms])) @ dz
        first = gradient @ dz
        assert t > 0 and abs(slope) <= 0.011 * abs(first)


def test_without_a_minimum_along_the_line():
    """Separated rows without a norm: the loss alone flattens out, together with a mean term it falls without end."""
    column, z, dz = Column(np.ones(4), np.ones(4), 0.0, 2.0, (LogisticTerm(0.1),)), np.zeros(4), np.ones(4)
    slope = column.terms[0].slopes(z, np.ones(4))[None]
    flat = SmoothLosses(column).length(z, dz, -slope.sum(), 0.0)
    assert column.terms[0].slopes(z + flat * dz, np.ones(4))[0] <= 0.011 * slope[0, 0]
    assert SmoothLosses(column).length(z, dz, -(slope + column.pull).sum(), 0.0) == np.inf


def test_what_it_refuses():
    rows = DenseRows(np.eye(3))
    column = Column(np.array([1.0, -1.0, 1.0]), np.ones(3), 0.0, 0.0, (LogisticTerm(1.0),))
    engine, kernel = registry().solvers["newton"](), KernelFeatures(rows, Kernel("rbf", {"gamma": 1.0}))
    assert "explicit rows" in engine.refusal(MarginForm(kernel, (column,), "none", ridge=0.0))
    assert engine.refusal(MarginForm(kernel, (column,), "none")) is None
    assert engine.refusal(MarginForm(LinearFeatures(rows), (column,), "none", ridge=0.0)) is None
    hinge = Column(column.y, column.counts, 0.0, 0.0, (HingeTerm(1.0), LogisticTerm(1.0)))
    assert "'hinge'" in engine.refusal(MarginForm(kernel, (hinge,), "none"))


@pytest.mark.parametrize("seed", [221, 280, 368])
def test_rows_that_pull_at_a_free_intercept_but_do_not_bend(seed):
    """Light rows on the wrong side of nearly hard losses: there is a slope and no curvature anywhere."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 3)) * [0.1, 30.0, 3.0]
    y = np.where(X @ [0.0, 0.05, 1.0] + 0.3 > 0, 1, -1)
    counts = rng.integers(0, 3, 20) + 1e-3
    y = np.where((counts < 1) & (rng.random(20) < 0.5), -y, y)
    model = mdlearn.fit(
        "mlr", X, y, alpha=80.0, lam=5e-5, bias="free", sample_weight=counts, tol=1e-12, solver="newton"
    )
    assert model.certificate.converged
    z = y * (X @ model.coef_[0] + model.intercept_[0])
    slope = counts * expit(-80.0 * (z - 1.0)) * y / counts.sum()
    assert abs(slope.sum()) < 1e-4 * np.abs(slope).sum()
    np.testing.assert_allclose(2 * 5e-5 * model.coef_[0], slope @ X, atol=1e-3 * np.abs(slope) @ np.abs(X).max(axis=1))
