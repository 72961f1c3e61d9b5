"""Declared loss terms: values, slopes, curvatures and conjugates against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn
from mdlearn.forms.losses import HingeTerm, LogisticTerm, Terms, loss_term_table
from mdlearn.forms.margin import Column, MarginForm

LD = np.longdouble
TERMS = {
    "hinge": HingeTerm(0.7),
    "upper hinge": HingeTerm(2.0, -1, 1.5),
    "squared hinge": HingeTerm(0.7, power=2),
    "upper squared": HingeTerm(1.3, -1, 0.5, 2),
    "logistic": LogisticTerm(0.7, 1.0, 0.0),
    "mlr": LogisticTerm(2.0, 5.0, 1.0),
    "sharp": LogisticTerm(0.3, 200.0, -0.5),
}
SMOOTH = [name for name, term in TERMS.items() if term.kind != "hinge"]
COUNTS = np.array([1.0, 2.5, 0.25, 3.0, 1.0])


def printed(term, z):
    """One term at margins z, counts left out, in extended precision."""
    t = LD(1) * term.side * (term.threshold - np.asarray(z, dtype=LD))
    if term.kind == "logistic":
        return term.weight / LD(term.alpha) * np.logaddexp(LD(0), term.alpha * t)
    return term.weight * np.maximum(t, 0) ** term.power


@pytest.mark.parametrize("name", TERMS)
def test_the_value(name):
    term, z = TERMS[name], np.array([-3.0, 0.2, 0.9, 1.4, 7.0])
    assert term.value(z, COUNTS) == pytest.approx(float(COUNTS @ printed(term, z)), rel=1e-14)
    assert term.value_at_zero(7.75) == pytest.approx(float(7.75 * printed(term, 0.0)), rel=1e-14)


@pytest.mark.parametrize("name", SMOOTH)
def test_slopes_and_curvatures_are_derivatives(name):
    """Multipliers are minus the derivative along side * z."""
    term, h = TERMS[name], LD(1e-6)
    for z in (-2.0, -0.51, 0.3, 0.97, 1.02, 1.7):
        at = np.full(5, z)
        slope = COUNTS * (printed(term, at + h) - printed(term, at - h)) / (2 * h)
        curve = COUNTS * (printed(term, at + h) - 2 * printed(term, at) + printed(term, at - h)) / (h * h)
        np.testing.assert_allclose(term.slopes(at, COUNTS), (-term.side * slope).astype(float), rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(term.curvatures(at, COUNTS), curve.astype(float), rtol=1e-5, atol=1e-5)
        assert (term.curvatures(at, COUNTS) <= term.steepest * COUNTS * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", TERMS)
def test_the_bound_is_minus_the_conjugate(name):
    """loss(z) >= bound(beta) - side beta z for every z and every beta in its box, with equality somewhere."""
    term, one = TERMS[name], np.ones(1)
    cap = min(float(term.caps(one)[0]), 5.0)
    # The minimum over z lies where beta is the slope: within 60 / alpha of a logistic threshold.
    grid = np.append(
        np.linspace(-8, 8, 3201), term.threshold + np.linspace(-1, 1, 3201) * 60 / getattr(term, "alpha", 60)
    )
    for share in (0.0, 0.05, 0.5, 0.95, 1.0):
        beta = share * cap
        tangent = np.asarray(printed(term, grid) + term.side * beta * grid, dtype=float)
        bound = term.bound(np.array([beta]), one)
        assert bound <= tangent.min() + 1e-12
        assert bound == pytest.approx(tangent.min(), abs=2e-3 * cap)


@pytest.mark.parametrize("name", SMOOTH)
def test_the_bound_is_met_at_the_slope(name):
    term = TERMS[name]
    for z in np.linspace(-2, 3, 41):
        at = np.full(5, z)
        beta = term.slopes(at, COUNTS)
        assert ((beta >= 0) & (beta <= term.caps(COUNTS))).all()
        met = term.bound(beta, COUNTS) - term.side * float(beta @ at)
        assert met == pytest.approx(term.value(at, COUNTS), rel=1e-11, abs=1e-12)
        # The curvature of the conjugate is one over that of the loss.
        if beta.min() > 1e-9 and beta.max() < 0.999 * term.caps(COUNTS).max():
            np.testing.assert_allclose(term.freedom(beta, COUNTS), term.curvatures(at, COUNTS), rtol=1e-5)


def test_counts_of_zero_leave_a_row_out():
    for term in TERMS.values():
        z, none = np.array([-1.0, 0.3]), np.zeros(2)
        assert term.value(z, none) == 0.0 and not term.caps(none).any()
        assert term.bound(none, none) == 0.0 and not term.freedom(none, none).any()
        if term.kind != "hinge":
            assert not term.slopes(z, none).any() and not term.curvatures(z, none).any()


def test_a_logistic_term_far_from_its_threshold():
    """No overflow, no NaN: the slope is the cap on one side and 0 on the other."""
    term, one = LogisticTerm(2.0, 50.0), np.ones(4)
    z = np.array([-1e300, -1e5, 1e5, 1e300])
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_array_equal(term.slopes(z, one), [2.0, 2.0, 0.0, 0.0])
        np.testing.assert_array_equal(term.curvatures(z, one), np.zeros(4))
        assert term.value(z[1:3], one[:2]) == pytest.approx(2.0 * (1e5 + 1.0), rel=1e-14)
        assert term.bound(np.array([0.0, 2.0, 1e-320, 2.0 * (1 - 1e-16)]), one) == pytest.approx(4.0, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 5.0, 1e3, 1e6])
def test_the_logistic_loss_lies_above_the_hinge_by_ln_2_over_alpha_at_most(alpha):
    z = np.linspace(-3, 5, 1001)
    above = np.array([LogisticTerm(1.0, alpha).value(z[i : i + 1], np.ones(1)) for i in range(len(z))])
    above -= np.maximum(0.0, 1.0 - z)
    assert above.min() >= -1e-15 and above.max() <= np.log(2) / alpha * (1 + 1e-12)


def test_kinds():
    kinds = {name: term.kind for name, term in TERMS.items()}
    assert {kinds["hinge"], kinds["squared hinge"], kinds["mlr"]} == {"hinge", "squared", "logistic"}
    assert HingeTerm(np.inf).kind == HingeTerm(np.inf, power=2).kind == "constraint"


@pytest.mark.parametrize(
    "given", [{"weight": -1.0}, {"weight": np.inf}, {"weight": np.nan}, {"weight": 1.0, "alpha": 0.0},
              {"weight": 1.0, "alpha": np.inf}, {"weight": 1.0, "threshold": np.nan}], ids=str,
)  # fmt: skip
def test_what_a_logistic_term_refuses(given):
    with pytest.raises(ValueError, match=r"^a logistic term needs weight >= 0, alpha > 0 and a threshold"):
        LogisticTerm(**given)


@pytest.mark.parametrize("name", TERMS)
def test_the_numbers_say_what_slopes_are(name):
    term, z = TERMS[name], np.linspace(-3.0, 3.0, 25)
    ((side, threshold, jump, rise, height, sharpness),) = loss_term_table([term])
    e = side * (threshold - z)
    with np.errstate(over="ignore"):
        slopes = np.where(e > 0, jump + rise * e, 0.0) + height / (1.0 + np.exp(-sharpness * e))
    wanted = term.weight * (e > 0) if term.kind == "hinge" else term.slopes(z, np.ones(25))
    assert slopes == pytest.approx(wanted, rel=1e-12, abs=1e-12)


SIGNS = np.array([1.0, 1.0, 1.0, -1.0])
MOVED = {
    "the mean outweighs the smaller class": ((0.0, 0.5, (HingeTerm(0.2),)), COUNTS[1:], True),
    "the smaller class holds it": ((0.0, 0.5, (HingeTerm(0.4),)), COUNTS[1:], False),
    "a logistic loss, too": ((0.0, 0.5, (LogisticTerm(0.2),)), COUNTS[1:], True),
    "squares hold everything": ((0.0, 1.0, (HingeTerm(1e-3, power=2),)), COUNTS[1:], False),
    "so do constraints": ((0.0, 1e9, (HingeTerm(np.inf),)), COUNTS[1:], False),
    "so does a variance": ((1e-3, 1.0, ()), COUNTS[1:], False),
    "nothing does": ((0.0, 1e-9, ()), COUNTS[1:], True),
    "balanced but for rounding": ((0.0, 1.0, ()), np.array([0.1, 0.1, 0.1, 0.3]), False),
}


@pytest.mark.parametrize("case", MOVED)
def test_a_free_bias_that_takes_the_objective_down_without_end(case):
    """Against the value far out on either side; a mean of balanced classes is rounding."""
    (variance, mean, terms), counts, falls = MOVED[case]
    column = Column(SIGNS, counts, variance, mean, terms)
    assert column.unbounded_in_bias == falls
    if not column.hard:
        far = [column.distribution_value(b * SIGNS) - column.at_zero for b in (-1e9, 1e9)]
        assert (min(far) < -0.01) == falls


@pytest.mark.parametrize(("C", "falls"), [(0.02, True), (0.3, False)])
def test_a_variance_does_not_hold_margins_of_one_sign(C, falls):
    """A bias moves all of them alike, so that the loss alone can hold the mean; of both signs it is another matter."""
    rows = Column(np.ones(4), COUNTS[1:], 2.0, 0.5, (HingeTerm(C, side=-1, threshold=1.0),))
    assert rows.unbounded_in_bias == falls
    assert (rows.distribution_value(np.full(4, 1e9)) < rows.at_zero - 0.01) == falls


def test_a_form_of_a_plugin_whose_mean_outweighs_its_loss_is_refused():
    class Pulled(mdlearn.Objective):
        name = "pulled"

        def terms(self, params, total):
            return Terms(loss=(HingeTerm(1e-3),), mean=1.0)

    X, y = np.random.default_rng(0).standard_normal((20, 2)), np.arange(20) < 5
    for given in ((X, y), (lambda: iter([(X, y)]), None)):
        with pytest.raises(
            ValueError, match="with bias='free' the objective is unbounded below: the mean of the margins"
        ):
            mdlearn.fit(Pulled, *given, bias="free")
        assert mdlearn.fit(Pulled, *given, bias="regularized", tol=1e-2).certificate.converged


@pytest.mark.parametrize("base", [HingeTerm, LogisticTerm])
def test_derived_terms_are_refused(base):
    """Compiled engines do not read what a derived class overrides: without a word they would solve another problem."""

    class Own(base):
        def caps(self, counts):
            return 2.0 * super().caps(counts)

    with pytest.raises(TypeError, match="of no derived class; got Own"):
        Terms(loss=(Own(1.0),))

    class Smuggled(mdlearn.Objective):
        name = "smuggled"

        def form(self, data, features, bias, params):
            column = Column(data.first_signs(), data.counts, 0.0, 0.0, (Own(1.0),))
            return MarginForm(features, (column,), bias)

    with pytest.raises(TypeError, match="of no derived class; got Own"):
        mdlearn.fit(Smuggled, [[1.0], [2.0]], [0, 1])
