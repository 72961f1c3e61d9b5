"""Decomposition of losses with two terms around a band: conditions outside the solver, starts, what is refused."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from decomposition_cases import counted_rounds, data, make_small
from pairwise import pairs_first

import mdlearn
from mdlearn.extend import HingeTerm, Parameter, Terms
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.working_set.block_ascent import BlockAscentDual

POWERS = [(2, 2), (2, 1), (1, 2), (1, 1)]


class Band(mdlearn.Objective):
    """Margins in a band around 1 cost nothing; those beyond it half as much as those short of it."""

    name = "band"
    summary = "margins in a band"
    formula = "1/2 |w|^2 + C sum [max(0, 1-theta-z)^p + 1/2 max(0, z-1-theta)^q]"
    parameters: ClassVar = {"C": Parameter(1.0, "weight"), "theta": Parameter(0.3, "half the width", low=-9.0)}
    powers: ClassVar = (2, 2)
    middle: ClassVar = 1.0

    def terms(self, params, total):
        """Return both sides of the band."""
        (p, q), theta = self.powers, params["theta"]
        above = HingeTerm(0.5 * params["C"], -1, self.middle + theta, q)
        return Terms(loss=(HingeTerm(params["C"], 1, self.middle - theta, p), above))


class Tube(Band):
    """Residuals in a tube cost nothing."""

    name, task, middle = "tube", "regression", 0.0


def of_powers(base, powers):
    return type(base.__name__, (base,), {"powers": powers})


@pytest.fixture
def small(monkeypatch):
    """Limits low enough that some hundred rows go through parts and working sets."""
    make_small(monkeypatch)


def gaussian(X, gamma):
    squares = (X * X).sum(axis=1)
    return np.exp(-gamma * (squares[:, None] + squares - 2.0 * (X @ X.T)))


def value_and_bound(model, G, y, kinks, powers, weights, bias):
    """Objective and lower bound by the dual coefficients alone; conjugates written out, nothing of the library."""
    alpha, b = model.dual_coef_[0], float(model.intercept_[0])
    norm = alpha @ G @ alpha
    z = y * (G @ alpha + b)
    multiplier, value, bound = y * alpha, 0.5 * norm, -0.5 * norm
    if bias == "regularized":
        value, bound = value + 0.5 * b * b, bound - 0.5 * alpha.sum() ** 2
    elif bias == "free":
        assert abs(alpha.sum()) <= 1e-10 * np.abs(alpha).sum()
    for side, kink, power, weight in zip((1, -1), kinks, powers, weights):
        value += weight @ np.maximum(0.0, side * (kink - z)) ** power
        beta = np.maximum(0.0, side * multiplier)
        bound += (side * kink * beta).sum()
        if power == 1:
            assert (beta <= weight * (1 + 1e-9)).all()
        else:
            bound -= (beta * beta / (4.0 * weight)).sum()
    return value, bound


@pytest.mark.parametrize(*pairs_first(powers=POWERS, C=[0.02, 1.0, 100.0], bias=["free", "regularized", "none"]))
def test_the_optimum_of_a_band(small, powers, C, bias):
    X, y = data(m=400)
    counts = np.random.default_rng(3).integers(1, 4, y.shape[0]).astype(float)
    given = {"kernel": "rbf", "gamma": 0.3, "C": C, "bias": bias, "solver": "decomposition", "tol": 1e-6}
    model = mdlearn.fit(of_powers(Band, powers), X, y, sample_weight=counts, **given)
    assert model.certificate.converged
    weights = C * counts, 0.5 * C * counts
    value, bound = value_and_bound(model, gaussian(X, 0.3), y, (0.7, 1.3), powers, weights, bias)
    assert value == pytest.approx(model.certificate.objective, rel=1e-8)
    assert value - bound <= 1.1e-6 * value
    multiplier = y * model.dual_coef_[0]
    assert C < 1 or ((multiplier > 0).any() and (multiplier < 0).any())


@pytest.mark.parametrize("bias", ["free", "regularized", "none"])
@pytest.mark.parametrize("powers", [(2, 2), (1, 1)])
def test_the_optimum_of_a_tube(small, powers, bias):
    """Regression: kinks differ from row to row."""
    X, _ = data(m=400)
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * np.random.default_rng(5).standard_normal(X.shape[0])
    given = {"kernel": "rbf", "gamma": 0.3, "C": 2.0, "theta": 0.2, "bias": bias, "tol": 1e-6}
    model = mdlearn.fit(of_powers(Tube, powers), X, y, solver="decomposition", **given)
    assert model.certificate.converged
    weights, ones = np.full((2, y.shape[0]), [[2.0], [1.0]]), np.ones(y.shape[0])
    value, bound = value_and_bound(model, gaussian(X, 0.3), ones, (y - 0.2, y + 0.2), powers, weights, bias)
    assert value == pytest.approx(model.certificate.objective, rel=1e-8)
    assert value - bound <= 1.1e-6 * value


@pytest.mark.parametrize("C", [0.1, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_where_both_kinks_are_one(seed, C):
    """The median, with a free bias: all multipliers begin at 0, and each may rise or fall with the same gradient."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((36, 3))
    y = X[:, 0] + 0.3 * rng.standard_normal(36)
    given = {"kernel": "rbf", "gamma": 0.3, "C": C, "theta": 0.0, "bias": "free", "tol": 1e-8}
    weights, terms = np.full((2, 36), 0.5 * C), tuple(HingeTerm(0.5 * C, side, 0.0) for side in (1, -1))
    median = type("Median", (Tube,), {"terms": lambda self, params, total: Terms(loss=terms)})
    model = mdlearn.fit(median, X, y, solver="decomposition", **given)
    assert model.certificate.converged
    value, bound = value_and_bound(model, gaussian(X, 0.3), np.ones(36), (y, y), (1, 1), weights, "free")
    assert value - bound <= 1.1e-8 * value


def test_a_row_goes_over_to_its_other_term_with_the_gradient_of_it():
    """The gradient that is kept up to date is the one made anew from u, whichever term a row has."""
    rng, m = np.random.default_rng(0), 40
    y, terms = rng.choice([-1.0, 1.0], m), (HingeTerm(2.0, 1, 0.7, 2), HingeTerm(0.5, -1, 1.3))
    dual = BlockAscentDual(MarginForm(None, (), "none"), Column(y, rng.uniform(1.0, 2.0, m), 0.0, 0.0, terms))
    f = rng.uniform(-2.0, 2.0, m)
    for rows in (slice(None), np.arange(3, m, 2)):
        u = np.where(rng.random(m) < 0.5, rng.uniform(-0.1, 0.1, m), 0.0)
        dual.face(u)
        dual.u = u
        assert ((u >= dual.low) & (u <= dual.high)).all()
        e = (dual.target - f)[rows]
        dual.turn(e, rows)
        np.testing.assert_allclose(e, (dual.target - f)[rows], rtol=0, atol=1e-12)
        z, own = (y * f)[rows], u[rows] == 0
        np.testing.assert_array_equal((dual.signs * y)[rows][own], np.where(z < 1.0, 1.0, -1.0)[own])
        # A row between the kinks has nothing to gain from either term.
        inside = own & (z > 0.7) & (z < 1.3)
        violation = np.maximum(e * (dual.u < dual.high)[rows], -e * (dual.u > dual.low)[rows])
        assert inside.any() and violation[inside].max() <= 0.0 < violation[own & ~inside].min()


def test_a_start_of_another_band_is_where_it_begins(small, monkeypatch):
    X, y = data(m=400)
    given = {"kernel": "rbf", "gamma": 0.3, "solver": "decomposition", "tol": 1e-5}
    near = mdlearn.fit(Band, X, y, theta=0.28, C=1.1, **given)
    sizes = counted_rounds(monkeypatch)
    cold = mdlearn.fit(Band, X, y, **given)
    rounds_cold, whole = len(sizes), y.shape[0]
    sizes.clear()
    warm = mdlearn.fit(Band, X, y, warm_start=near, **given)
    assert set(sizes) == {whole} and len(sizes) < rounds_cold
    assert warm.certificate.objective == pytest.approx(cold.certificate.objective, rel=2e-5)


@pytest.mark.parametrize("theta", [0.0, -0.2])
def test_kinks_that_cross_are_refused(theta):
    """Of a squared loss, or where both terms are active at once, a row has no one multiplier."""
    X, y = data(m=60)
    terms = tuple(HingeTerm(1.0, side, 1.0 - side * theta, 2) for side in (1, -1))
    kind = type("Crossed", (Band,), {"terms": lambda self, params, total: Terms(loss=terms)})
    with pytest.raises(ValueError, match="two of opposite sides around a band"):
        mdlearn.fit(kind, X, y, kernel="rbf", solver="decomposition")
