"""Losses given as NumPy functions: their terms against declared ones, optima found elsewhere, proofs, and refusals."""

from __future__ import annotations

from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from given_losses import (
    BEYOND,
    EXPONENTIAL,
    HUBER,
    LOGISTIC,
    RUBBER,
    SHORT,
    SQUARE,
    TAIL,
    rubber,
    rubber_bend,
    rubber_conjugate,
    rubber_slope,
)
from scipy.optimize import minimize
from smooth_reference import overlapping

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.given import GivenLoss
from mdlearn.forms.losses import HingeTerm, LogisticTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.objectives.base import Parameter, Terms
from mdlearn.solvers.stochastic.solver import SGD
from mdlearn.testing import parametrize_with_checks

COUNTS = np.array([1.0, 0.5, 3.0, 0.0, 2.0, 1.0, 0.25, 1.0])
MARGINS = np.array([-40.0, -3.0, -0.2, 0.1, 0.9, 1.3, 2.5, 30.0])


DECLARED = {
    "logistic": (LOGISTIC, (LogisticTerm(0.7, 1.0, 0.0),)),
    "square": (SQUARE, (HingeTerm(0.7, 1, 1.0, 2), HingeTerm(0.7, -1, 1.0, 2))),
    "squared hinge": (SHORT, (HingeTerm(0.7, 1, 1.0, 2),)),
    "squared hinge beyond": (BEYOND, (HingeTerm(0.7, -1, 2.0, 2),)),
}
ALL = {"rubber": RUBBER, "huber": HUBER, "exponential": EXPONENTIAL, "tail": TAIL}
ALL |= {case: given for case, (given, _) in DECLARED.items()}


def objective_of(given, **more):
    class Given(mdlearn.Objective):
        name = "given"
        summary = formula = "a given loss"
        parameters: ClassVar = {"C": Parameter(1.0, "weight of the summed loss")}

        def terms(self, params, total):
            return Terms(loss=given.terms(params["C"]), **more)

    return Given


@pytest.mark.parametrize("case", DECLARED)
def test_terms_are_those_that_could_have_been_declared(case):
    given, declared = DECLARED[case]
    terms = given.terms(0.7)
    assert [t.side for t in terms] == [t.side for t in declared]
    for one, other in zip(terms, declared, strict=True):
        beta = other.slopes(MARGINS, COUNTS)
        np.testing.assert_allclose(one.slopes(MARGINS, COUNTS), beta, rtol=1e-14, atol=1e-15)
        np.testing.assert_allclose(one.curvatures(MARGINS, COUNTS), other.curvatures(MARGINS, COUNTS), rtol=1e-13)
        np.testing.assert_allclose(one.freedom(beta, COUNTS), other.freedom(beta, COUNTS), rtol=1e-7, atol=1e-15)
        assert one.value(MARGINS, COUNTS) == pytest.approx(other.value(MARGINS, COUNTS), rel=1e-14)
        for share in (0.0, 0.3, 1.0):
            assert one.bound(share * beta, COUNTS) == pytest.approx(other.bound(share * beta, COUNTS), rel=1e-13)


@pytest.mark.parametrize("case", ALL)
def test_a_bound_is_below_the_loss_at_every_margin_and_reached(case):
    far = np.geomspace(60.0, 1e6, 20000)
    grid = np.concatenate([-far, np.linspace(-60.0, 60.0, 240001), far])
    one = np.ones(1)
    for term in ALL[case].terms(1.0):
        values = term.each(grid)
        cap = min(float(term.caps(one)[0]), 20.0)
        for beta in cap * np.array([0.0, 1e-9, 1e-3, 0.2, 0.5, 0.9, 0.999, 1.0]):
            bound, least = term.bound(np.array([beta]), one), float((values + term.side * beta * grid).min())
            assert bound <= least + 1e-12, "the grid holds a lower value"
            assert bound >= least - 1e-5, "the bound gives too much away"


def test_a_given_conjugate_and_looked_up_margins_give_the_same_bound():
    known = GivenLoss(rubber, rubber_slope, rubber_bend, rubber_conjugate)
    for one, other in zip(RUBBER.terms(2.0), known.terms(2.0), strict=True):
        beta = one.slopes(MARGINS, COUNTS)
        for share in (0.0, 0.4, 1.0):
            assert one.bound(share * beta, COUNTS) == pytest.approx(other.bound(share * beta, COUNTS), rel=1e-12)


def test_where_a_given_conjugate_is_no_number_margins_are_looked_up():
    entropy = GivenLoss(
        LOGISTIC.value, LOGISTIC.derivative, LOGISTIC.second, lambda s: -s * np.log(-s) + (1 + s) * np.log1p(s)
    )
    (one,), (other,) = entropy.terms(0.7), LOGISTIC.terms(0.7)
    for beta in (np.zeros(8), one.caps(COUNTS), 0.3 * one.caps(COUNTS)):
        assert one.bound(beta, COUNTS) == pytest.approx(other.bound(beta, COUNTS), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("case", ["rubber", "huber", "exponential"])
def test_the_optimum_is_the_one_that_another_method_finds(case, bias):
    X, y = overlapping(60, 3, seed=5)
    weight = np.random.default_rng(0).integers(0, 4, 60).astype(float)
    given, v, a, C = ALL[case], 0.4, 0.1, 0.3
    total, signs = weight.sum(), np.where(y > 0, 1.0, -1.0)

    def value(u):
        z = signs * (X @ u[:3] + (u[3] if bias != "none" else 0.0))
        mean = weight @ z / total
        square = u[:3] @ u[:3] + (u[3] ** 2 if bias == "regularized" else 0.0)
        return 0.5 * square + v * (weight @ (z - mean) ** 2) / total - a * mean + C * (weight @ given.value(z))

    start = np.zeros(4)
    for _ in range(5):
        start = minimize(value, start, method="BFGS", options={"gtol": 1e-9}).x
    model = mdlearn.fit(objective_of(given, variance=v, mean=a), X, y, C=C, bias=bias, sample_weight=weight, tol=1e-12)
    u = np.append(model.coef_[0], model.intercept_[0])
    assert model.solver == "newton" and model.certificate.converged
    assert model.certificate.objective == pytest.approx(value(u), rel=1e-13)
    assert model.certificate.objective <= value(start) * (1 + 1e-13)
    assert model.certificate.lower_bound == pytest.approx(value(start), rel=1e-9)
    np.testing.assert_allclose(u[: 3 + (bias != "none")], start[: 3 + (bias != "none")], atol=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("threshold", [-0.3, -2.0])
def test_an_intercept_that_no_row_holds_at_first(threshold, kernel):
    """At w = 0 all margins are beyond the threshold, and only the mean term moves a free intercept."""
    X, y = overlapping(60, 3)
    y[:10] = y[10]
    corner = GivenLoss(
        lambda t: np.maximum(0.0, threshold - t) ** 2,
        lambda t: -2.0 * np.maximum(0.0, threshold - t),
        lambda t: 2.0 * (t < threshold),
    )
    declared = SimpleNamespace(terms=lambda C: (HingeTerm(C, 1, threshold, 2),))
    settings = {"C": 3.0, "bias": "free", "kernel": kernel, "tol": 1e-10}
    best = mdlearn.fit(objective_of(declared, mean=0.4), X, y, solver="interior", **settings).certificate
    for loss in (declared, corner):
        model = mdlearn.fit(objective_of(loss, mean=0.4), X, y, solver="newton", **settings)
        assert model.certificate.converged and best.converged
        assert model.certificate.objective == pytest.approx(best.objective, rel=1e-9)


def test_without_a_squared_norm():
    X, y = overlapping(80, 3, seed=1)
    model = mdlearn.fit(objective_of(LOGISTIC, ridge=0.0), X, y, bias="free", tol=1e-10)
    other = mdlearn.fit("l2lr", X, y, lam=0.0, bias="free", tol=1e-10)
    assert model.certificate.converged
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-6)


@pytest.mark.slow
@parametrize_with_checks([objective_of(RUBBER), objective_of(HUBER, variance=0.5, mean=0.1)])
def test_conformance(objective, check):
    check(objective)


def test_engines_say_what_they_need():
    X, y = overlapping(20, 2)
    column = Column(np.where(y > 0, 1.0, -1.0), np.ones(20), 0.0, 0.0, RUBBER.terms(1.0))
    form = MarginForm(LinearFeatures(DenseRows(X)), (column,), "none")
    assert SGD().refusal(form) == "its compiled steps need the derivative of a given loss as a NativeFunction"
    with pytest.raises(ValueError, match="takes no loss of the kind 'given'"):
        mdlearn.fit(objective_of(RUBBER), X, y, solver="interior")


GOOD = {"value": rubber, "derivative": rubber_slope, "second": rubber_bend}
WRONG = [
    ({"value": 3}, "value of a given loss needs to be a function of an array; got 3"),
    ({"conjugate": 3}, "conjugate of a given loss needs to be a function"),
    (
        {"value": lambda t: 1.0},
        r"needs to return one number per margin; it returned the shape \(\)",
    ),
    ({"derivative": lambda t: -rubber_slope(t)}, "it is with respect to the margin, and not negated"),
    ({"value": lambda t: -rubber(t)}, "^value of a given loss is not what derivative and second"),
    ({"derivative": lambda t: 1.001 * rubber_slope(t)}, "derivative of a given loss is not that of value"),
    ({"value": lambda t: np.exp(t * t), "derivative": lambda t: 2 * t * np.exp(t * t)}, "not finite at the margin"),
    ({"second": lambda t: 2.0 * rubber_bend(t)}, "second of a given loss is not the derivative of its derivative"),
    ({"second": lambda t: -rubber_bend(t)}, "^second of a given loss is not the derivative"),
    ({"conjugate": lambda s: 0.0 * s}, "conjugate of a given loss needs to be"),
    ({"value": np.ones_like, "derivative": np.zeros_like, "second": np.zeros_like}, "is 0 everywhere"),
    ({"value": np.abs, "derivative": np.sign, "second": np.zeros_like}, "it has a kink at the margin"),
    (
        {
            "value": lambda t: np.maximum(0.0, 0.97 - t),
            "derivative": lambda t: -1.0 * (t < 0.97),
            "second": np.zeros_like,
        },
        "it has a kink at the margin 0.97",
    ),
    (
        {"value": np.sin, "derivative": np.cos, "second": lambda t: -np.sin(t)},
        "a given loss needs to be convex; its derivative falls",
    ),
]


@pytest.mark.parametrize("case", WRONG, ids=range(len(WRONG)))
def test_functions_that_do_not_belong_together_are_refused(case):
    given, told = case
    with pytest.raises((ValueError, TypeError), match=told):
        GivenLoss(**{**GOOD, **given})


def test_a_function_cannot_change_the_margins():
    def careless(t):
        t += 1.0
        return t

    with pytest.raises(ValueError, match="read-only"):
        GivenLoss(careless, rubber_slope, rubber_bend)


@pytest.mark.parametrize("weight", [-1.0, np.inf, np.nan])
def test_weights(weight):
    with pytest.raises(ValueError, match="the weight of a given loss needs to be finite and >= 0"):
        RUBBER.terms(weight)
    assert all(t.weight == 0.0 and t.bound(np.zeros(8), COUNTS) == 0.0 for t in RUBBER.terms(0.0))
