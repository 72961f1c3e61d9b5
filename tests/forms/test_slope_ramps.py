"""Given losses whose slope grows linearly from a threshold on: found by their functions, and fitted as declared."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from given_losses import BEYOND, EXPONENTIAL, HUBER, LOGISTIC, RUBBER, SHORT, SQUARE, TAIL
from smooth_reference import overlapping

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.given import GivenLoss
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.forms.proof import Start
from mdlearn.objectives.base import Parameter, Terms
from mdlearn.solvers.common.warm_start import start_multipliers
from mdlearn.solvers.stochastic.solver import DualBound

COUNTS = np.array([1.0, 0.5, 3.0, 0.0, 2.0])


def rounded(width, lowest=0.0):
    """The hinge loss with its corner rounded over a width, and a constant."""

    def slope(t):
        return -np.clip((1.0 - t) / width, 0.0, 1.0)

    def value(t):
        short = 1.0 - t
        return lowest + np.where(short < width, 0.5 / width * np.maximum(short, 0.0) ** 2, short - 0.5 * width)

    return GivenLoss(value, slope, lambda t: ((t > 1.0 - width) & (t < 1.0)) / width)


def bumped(place, height, width=0.01):
    """The squared hinge with a second derivative that is a trace larger at some margins, by a parabola."""

    def bump(t):
        x = np.clip((t - place) / width, -1.0, 1.0)
        slope = height * width * (x - x**3 / 3.0 - 2.0 / 3.0)  # 0 beyond, so that only what is left of it is steeper
        value = height * width**2 * (x**2 / 2.0 - x**4 / 12.0 - 2.0 * x / 3.0 + 1.0 / 4.0)
        left = np.minimum(t - (place - width), 0.0)
        return value + left * height * width * (-4.0 / 3.0), slope, height * np.maximum(1.0 - x * x, 0.0)

    return GivenLoss(
        lambda t: np.maximum(0.0, 1.0 - t) ** 2 + bump(t)[0],
        lambda t: -2.0 * np.maximum(0.0, 1.0 - t) + bump(t)[1],
        lambda t: 2.0 * (t < 1.0) + bump(t)[2],
    )


def fitted(terms, X, y, **settings):
    class Given(mdlearn.Objective):
        name = "given"
        summary = formula = "a given loss"
        parameters: ClassVar = {"C": Parameter(1.0, "weight of the summed loss")}

        def terms(self, params, total):
            return Terms(loss=terms)

    return mdlearn.fit(Given, X, y, **settings)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (SHORT, {1: (1.0, 2.0, np.inf, 0.0)}),
        (BEYOND, {-1: (2.0, 2.0, np.inf, 0.0)}),
        (SQUARE, {1: (1.0, 2.0, np.inf, 0.0), -1: (1.0, 2.0, np.inf, 0.0)}),
        (HUBER, {1: (1.0, 2.0, 1.0, 0.0)}),
        (rounded(1e-3), {1: (1.0, 1e3, 1.0, 0.0)}),
        (rounded(0.3, lowest=-0.7), {1: (1.0, 1.0 / 0.3, 1.0, -0.7)}),
        (LOGISTIC, {}),
        (EXPONENTIAL, {}),
        (RUBBER, {}),
        (TAIL, {}),
        (bumped(-2.013, 1e-3), {}),
        (bumped(0.9, 1e-5), {}),
    ],
)
def test_slopes_that_grow_linearly_are_found(loss, expected):
    found = {side: ramp for side, ramp in loss.ramps.items() if ramp is not None}
    assert found.keys() == expected.keys()
    for side, numbers in expected.items():
        np.testing.assert_allclose(found[side], numbers, rtol=1e-12, atol=1e-14)


def test_a_bump_without_height_is_no_bump():
    """The reference of the test above: what is left of a bump of height 0 is the squared hinge."""
    assert bumped(-2.013, 0.0).ramps[1] is not None


@pytest.mark.parametrize("loss", [SHORT, BEYOND, SQUARE, HUBER, rounded(0.3, lowest=-0.7)])
def test_what_engines_read_is_what_the_functions_say(loss):
    z = np.array([-30.0, -0.2, 0.85, 2.5, 17.0])
    for term in loss.terms(0.7):
        assert term.estimated_value(z, COUNTS) == pytest.approx(term.value(z, COUNTS), rel=1e-14)
        beta = term.slopes(z, COUNTS)
        expected = 0.7 * COUNTS * np.maximum(-term.side * loss.derivative(z), 0.0)
        np.testing.assert_allclose(beta, expected, rtol=1e-14)
        for share in (0.0, 0.4, 1.0):
            found = term.estimated_bound(share * beta, COUNTS)
            assert found == pytest.approx(term.bound(share * beta, COUNTS), rel=1e-13, abs=1e-14)
        flat = term.softness(COUNTS) * beta
        inside = (beta > 0) & (beta < term.caps(COUNTS))
        np.testing.assert_allclose(flat[inside], (term.side * (term.threshold - z))[inside], rtol=1e-13)
        assert (term.caps(COUNTS)[COUNTS == 0] == 0).all()


@pytest.mark.parametrize("solver", ["newton", "newton-cg"])
def test_a_given_squared_hinge_takes_the_steps_of_a_declared_one(solver):
    """As many steps, to as good a point: that the loss is quadratic on both sides of its threshold is made use of."""
    X, y = overlapping(300, 4, seed=3)
    settings = {"solver": solver, "bias": "none", "kernel": "rbf" if solver == "newton-cg" else "linear"}
    ours, theirs = (fitted(terms, X, y, **settings) for terms in (SHORT.terms(0.8), (HingeTerm(0.8, power=2),)))
    assert ours.n_iter == theirs.n_iter
    assert ours.certificate.objective == pytest.approx(theirs.certificate.objective, rel=1e-12)
    assert ours.certificate.lower_bound == pytest.approx(theirs.certificate.lower_bound, rel=1e-12)


def test_stochastic_engines_search_a_parabola_exactly():
    """Multipliers on the line between 0 and a guess, those of the declared term: not the best of some lengths."""
    X, y = overlapping(200, 3, seed=3)
    features, signs = LinearFeatures(DenseRows(X)), np.where(y > 0, 1.0, -1.0)

    def best(terms):
        column = Column(signs, np.ones(200), 0.0, 0.0, terms)
        found = DualBound(MarginForm(features, (column,), "none"), column)
        for _ in found.improve(np.zeros(200)):
            pass
        return found.best.beta

    np.testing.assert_allclose(best(SHORT.terms(0.8)), best((HingeTerm(0.8, power=2),)), rtol=1e-12)
    assert (best(HUBER.terms(0.8)) <= 0.8).all()


def test_multipliers_of_a_start_stay_below_their_caps():
    X, y = overlapping(40, 2, seed=1)
    signs = np.where(y > 0, 1.0, -1.0)
    column = Column(signs, np.ones(40), 0.0, 0.0, HUBER.terms(0.7))
    start = Start(np.zeros(X.shape[1]), 0.0, np.zeros((1, 40)), None)
    for beta in start_multipliers(column, start, np.full(40, -5.0)):
        assert (beta <= column.caps).all()
