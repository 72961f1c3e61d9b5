"""Certificates in one compiled pass: their values in higher precision, and what the pass leaves to others."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from given_losses import SQUARE

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.certificates import certified_solution
from mdlearn.forms.certificates.certified_solution import values_in_one_pass
from mdlearn.forms.certificates.primal import primal
from mdlearn.forms.column import Column
from mdlearn.forms.given import GivenTerm
from mdlearn.forms.losses import HingeTerm, LogisticTerm
from mdlearn.forms.margin import MarginForm, Point

LOSSES = {
    "hinge": (HingeTerm(0.7),),
    "squared": (HingeTerm(0.7, power=2, threshold=0.8),),
    "band": (HingeTerm(0.7, threshold=0.8, power=2), HingeTerm(0.3, side=-1, threshold=1.2, power=2)),
    "hinge and squared": (HingeTerm(0.4), HingeTerm(0.3, side=-1, threshold=2.0, power=2), HingeTerm(0.0)),
    "logistic": (LogisticTerm(0.7, alpha=2.0, threshold=0.5),),
    "given": SQUARE.terms(0.7),
}
LONG = np.longdouble


def problem(loss, bias, distribution=(0.0, 0.0), m=61, d=5, seed=0):
    """A form, its column and a point whose multipliers miss their bounds, and the sums that are to be 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d)) + 0.5
    y, counts = np.where(rng.random(m) < 0.6, 1.0, -1.0), rng.uniform(0.0, 3.0, m)
    counts[::7] = 0.0
    column = Column(y, counts, *distribution, LOSSES[loss])
    form = MarginForm(LinearFeatures(DenseRows(X)), (column,), bias)
    own = rng.standard_normal(m) / m
    beta = rng.uniform(-0.2, 1.5, (len(column.terms), m))
    intercept = {"none": 0.0, "regularized": float(own.sum()), "free": 0.3}[bias]
    return form, column, Point(beta, rng.standard_normal(m), X.T @ own, intercept, own)


def loss_and_bound(term, z, beta, counts):
    """Loss of a term at margins, and minus its conjugate at multipliers; the given one is a squared loss."""
    if isinstance(term, GivenTerm):
        term = HingeTerm(term.weight, term.side, 1.0, 2)
    linear = term.side * LONG(term.threshold) * beta.sum()
    if isinstance(term, LogisticTerm):
        caps, used = LONG(term.weight) * counts, counts > 0
        p = beta[used] / caps[used]
        part = np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0)
        part += np.where(p < 1, (1 - p) * np.log(np.where(p < 1, 1 - p, 1)), 0)
        value = (counts * np.logaddexp(LONG(0), term.alpha * (term.threshold - z))).sum() * term.weight / term.alpha
        return value, linear - (caps[used] * part).sum() / term.alpha
    excess = np.maximum(term.side * (LONG(term.threshold) - z), 0)
    if term.power == 1:
        return term.weight * (counts * excess).sum(), linear
    used = counts > 0
    return term.weight * (counts * excess**2).sum(), linear - (beta[used] ** 2 / counts[used]).sum() / (4 * term.weight)


def expected(form, column, point):
    """Objective and bound by their definitions."""
    X, y, c = form.features.rows.X.astype(LONG), column.y.astype(LONG), column.counts.astype(LONG)
    w, b, total, T = point.coef.astype(LONG), LONG(point.intercept), c.sum(), column.terms
    f = X @ w + b
    z = y * f
    mean = (c * z).sum() / total
    objective = (w @ w + (b * b if form.bias == "regularized" else 0)) / 2 - column.mean * mean
    objective += column.variance * (c * (z - mean) ** 2).sum() / total
    beta = np.minimum(np.maximum(point.beta.astype(LONG), 0), column.caps)
    sigma = np.where(c > 0, point.sigma, LONG(0))
    sigma = sigma - c * sigma.sum() / total if column.variance > 0 else 0 * sigma
    sides = np.array([t.side for t in T], LONG)
    rest = y * (sigma + column.mean * c / total)
    if form.bias == "free":
        pushes = sides[:, None] * y * beta
        excess = pushes.sum() + rest.sum()
        wrong = pushes * excess > 0
        beta = np.where(wrong, beta * (1 - abs(excess) / beta[wrong].sum()), beta)
    alpha = y * (sides @ beta) + rest
    bound = -((X.T @ alpha) @ (X.T @ alpha)) / 2
    if form.bias == "regularized":
        bound -= alpha.sum() ** 2 / 2
    if column.variance > 0:
        used = c > 0
        bound -= (sigma[used] ** 2 / c[used]).sum() * total / (4 * column.variance)
    for term, b in zip(T, beta):
        value, part = loss_and_bound(term, z, b, c)
        objective, bound = objective + value, bound + part
    return objective, bound, beta, alpha


@pytest.mark.parametrize("distribution", [(0.0, 0.0), (0.9, 0.4)])
@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("loss", LOSSES)
def test_csr_rows_have_the_values_of_dense_ones(loss, bias, distribution):
    form, column, point = problem(loss, bias, distribution)
    X = form.features.rows.X
    same = MarginForm(LinearFeatures(CsrRows(sp.csr_matrix(X))), (column,), bias)
    point = Point(point.beta, point.sigma)
    one, other = (values_in_one_pass(form, column, point, own=False) for form in (form, same))
    assert other.primal[0] == pytest.approx(one.primal[0], rel=1e-14)
    assert other.proof.lower == pytest.approx(one.proof.lower, rel=1e-13)
    for found, dense in ((other.z, one.z), (other.primal[1], one.primal[1]), (other.own, one.own)):
        np.testing.assert_allclose(found, dense, rtol=1e-12, atol=1e-14)
    assert (
        values_in_one_pass(same, column, Point(point.beta, point.sigma, one.primal[1], 0.0, one.own), own=True) is None
    )


@pytest.mark.parametrize("distribution", [(0.0, 0.0), (0.0, 0.4), (0.9, 0.4)])
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("loss", LOSSES)
def test_values_are_those_of_the_definitions(loss, bias, distribution):
    form, column, point = problem(loss, bias, distribution)
    found = values_in_one_pass(form, column, point, own=True)
    if bias == "free" and (loss == "hinge" or distribution[0] > 0):
        assert found is None, "the intercept, or sigma, moves"
        return
    objective, bound, beta, alpha = expected(form, column, point)
    assert found.primal[0] == pytest.approx(float(objective), rel=1e-14)
    assert found.proof.lower == pytest.approx(float(bound), rel=1e-13)
    np.testing.assert_allclose(found.proof.beta, beta.astype(float), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(found.proof.alpha, alpha.astype(float), rtol=1e-13, atol=1e-14)
    assert ((found.proof.beta >= 0) & (found.proof.beta <= column.caps)).all()
    X = form.features.rows.X.astype(LONG)
    np.testing.assert_allclose(found.proof.element, (X.T @ alpha).astype(float), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("m, d", [(1, 1), (2, 3), (3, 8), (4, 9), (5, 17), (66, 24), (2300, 60)])
def test_any_shape(m, d):
    form, column, point = problem("squared", "regularized", m=m, d=d, seed=m)
    if not column.counts.any():
        column = Column(column.y, np.ones(m), 0.0, 0.0, column.terms)
    found = values_in_one_pass(form, column, point, own=True)
    objective, bound, _, _ = expected(form, column, point)
    assert found.primal[0] == pytest.approx(float(objective), rel=1e-14)
    assert found.proof.lower == pytest.approx(float(bound), rel=1e-13)


def test_what_the_engine_handed_in_stays_as_it_is():
    form, column, point = problem("hinge", "regularized")
    before = point.beta.copy(), point.coef.copy(), point.alpha.copy(), point.sigma.copy()
    found = values_in_one_pass(form, column, point, own=True)
    for was, now in zip(before, (point.beta, point.coef, point.alpha, point.sigma)):
        np.testing.assert_array_equal(was, now)
    assert not np.shares_memory(found.proof.beta, point.beta) and not np.shares_memory(found.own, point.alpha)
    assert not np.shares_memory(found.primal[1], point.coef)


def test_multipliers_that_shrinking_does_not_balance_prove_nothing():
    form, column, point = problem("squared", "free", (0.0, 0.4))
    column = Column(np.ones(61), column.counts, 0.0, 0.4, column.terms)
    point = Point(np.zeros_like(point.beta), point.sigma, point.coef, 0.3, point.alpha)
    found = values_in_one_pass(form, column, point, own=True)
    assert found.proof.lower == -np.inf, "the mean pulls, and nothing is there that could give way"


@pytest.mark.parametrize("by", [1e-8, 1.0])
def test_coefficients_that_the_dual_ones_do_not_make(by):
    form, column, point = problem("squared", "regularized")
    assert values_in_one_pass(form, column, point, own=True) is not None
    coef = point.coef.copy()
    coef[2] += by
    other = Point(point.beta, point.sigma, coef, point.intercept, point.alpha)
    assert values_in_one_pass(form, column, other, own=True) is None
    moved = Point(point.beta, point.sigma, point.coef, point.intercept + by, point.alpha)
    assert values_in_one_pass(form, column, moved, own=True) is None


def test_margins_that_miss_a_threshold_by_rounding_reach_it():
    """Of rows that count: the last one does not, and is far from its threshold."""
    X, y = np.array([[1.0], [-1.0], [0.1]]), np.array([1.0, -1.0, 1.0])
    column = Column(y, np.array([1.0, 1.0, 0.0]), 0.0, 0.0, (HingeTerm(5.0),))
    form = MarginForm(LinearFeatures(DenseRows(X)), (column,), "none")
    for length, grown in ((0.9, 0.9), (1.0, 1.0), (1.0 - 1e-12, 1.0)):
        alpha = np.array([0.5, -0.5, 0.0])
        point = Point(np.abs(alpha)[None], np.zeros(3), np.array([length]), 0.0, length * alpha)
        found = values_in_one_pass(form, column, point, own=True)
        value, coef, intercept = found.primal
        assert coef[0] == found.own[0] - found.own[1] == found.z[0] == grown
        assert value == primal(form, column, coef, intercept)[0] <= primal(form, column, point.coef, 0.0)[0]


def rows_of_two_kinds(m=90, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 6)) + 1.0
    return X, np.where(X @ rng.standard_normal(6) + rng.standard_normal(m) > 0.5, "b", "a")


CALLS = {
    "svm": ("svm", {"C": 3.0}, True),
    "lsvm": ("lsvm", {"nu": 0.5}, True),
    "ldm": ("ldm", {"C": 2.0}, True),
    "l2lr": ("l2lr", {}, True),
    "l2lr, regularized": ("l2lr", {"bias": "regularized"}, True),
    "weights": ("svm", {"sample_weight": np.arange(90) % 4, "class_weight": "balanced"}, True),
    "hard": ("svm", {"C": np.inf}, False),
    "tight": ("svm", {"tol": 1e-10}, False),
    "free hinges": ("svm", {"bias": "free"}, False),
}


@pytest.mark.parametrize("case", CALLS)
def test_fits_are_certified_as_step_by_step(case, monkeypatch):
    name, given, used = CALLS[case]
    X, y = rows_of_two_kinds()
    if case == "hard":
        X = X + 5.0 * np.where(y == "b", 1.0, -1.0)[:, None]
    told = []

    def counted(*given, own):
        found = values_in_one_pass(*given, own=own)
        told.append(found if own else None)
        return found

    def of_multipliers_alone(*given, own):
        return None if own else values_in_one_pass(*given, own=own)

    monkeypatch.setattr(certified_solution, "values_in_one_pass", counted)
    quick = mdlearn.fit(name, X, y, **{"tol": 1e-5, **given})
    assert any(one is not None for one in told) == used
    monkeypatch.setattr(certified_solution, "values_in_one_pass", of_multipliers_alone)
    slow = mdlearn.fit(name, X, y, **{"tol": 1e-5, **given})
    for one in ("objective", "lower_bound"):
        assert getattr(quick.certificate, one) == pytest.approx(getattr(slow.certificate, one), rel=1e-12)
    assert quick.certificate.converged and slow.certificate.converged
    np.testing.assert_array_equal(quick.coef_, slow.coef_)
    np.testing.assert_allclose(quick.dual_coef_, slow.dual_coef_, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(quick.duals, slow.duals, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("distribution", [(0.0, 0.0), (0.0, 0.4), (0.9, 0.4)])
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("loss", LOSSES)
def test_values_of_multipliers_are_those_of_the_coefficients_they_stand_for(loss, bias, distribution):
    form, column, point = problem(loss, bias, distribution)
    alone = Point(point.beta, point.sigma)
    found = values_in_one_pass(form, column, alone, own=False)
    if bias == "free":
        assert found is None, "the intercept moves"
        return
    X, alpha = form.features.rows.X.astype(LONG), expected(form, column, point)[3]
    made = Point(point.beta, point.sigma, X.T @ alpha, alpha.sum() if bias == "regularized" else LONG(0))
    objective, bound, beta, _ = expected(form, column, made)
    assert found.primal[0] == pytest.approx(float(objective), rel=1e-13)
    assert found.proof.lower == pytest.approx(float(bound), rel=1e-13)
    assert found.primal[2] == pytest.approx(float(made.intercept), rel=1e-12, abs=1e-13)
    np.testing.assert_allclose(found.primal[1], made.coef.astype(float), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found.own, alpha.astype(float), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(found.proof.beta, beta.astype(float), rtol=1e-14, atol=1e-15)
    assert not np.shares_memory(found.proof.beta, point.beta)


def test_an_intercept_beside_multipliers_may_be_better_than_theirs():
    form, column, point = problem("hinge", "regularized")
    told = [
        values_in_one_pass(form, column, Point(point.beta, point.sigma, intercept=b), own=False) for b in (0.0, 0.3)
    ]
    assert told[0] is not None and told[1] is None


def test_coefficients_come_with_what_they_are_made_of():
    form, column, point = problem("hinge", "regularized")
    for coef, own in ((point.coef, point.alpha[1:]), (point.coef[1:], point.alpha)):
        with pytest.raises(ValueError, match="do not fit the rows"):
            values_in_one_pass(form, column, Point(point.beta, point.sigma, coef, 0.0, own), own=True)


@pytest.mark.parametrize("case", ["svm", "lsvm", "ldm", "weights", "tight"])
def test_multipliers_are_certified_as_step_by_step(case, monkeypatch):
    name, given, _ = CALLS[case]
    X, y = rows_of_two_kinds()
    told = []

    def counted(*given, own):
        found = values_in_one_pass(*given, own=own)
        told.append(None if own else found)
        return found

    monkeypatch.setattr(certified_solution, "values_in_one_pass", counted)
    call = {"tol": 1e-5, "solver": "cd", **given}
    quick = mdlearn.fit(name, X, y, **call)
    assert any(one is not None for one in told)
    monkeypatch.setattr(certified_solution, "values_in_one_pass", lambda *given, own: None)
    slow = mdlearn.fit(name, X, y, **call)
    for one in ("objective", "lower_bound"):
        assert getattr(quick.certificate, one) == pytest.approx(getattr(slow.certificate, one), rel=1e-12)
    assert quick.certificate.converged and slow.certificate.converged
    np.testing.assert_allclose(quick.coef_, slow.coef_, rtol=1e-12)
    np.testing.assert_allclose(quick.dual_coef_, slow.dual_coef_, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("change", [np.float32, np.asfortranarray], ids=["float32", "by columns"])
def test_rows_of_other_kinds_are_left_to_others(change, monkeypatch):
    X, y = rows_of_two_kinds()
    seen = []
    monkeypatch.setattr(certified_solution.point_values, "values", lambda *given: seen.append(given))
    assert mdlearn.fit("svm", change(X), y, tol=1e-4).certificate.converged
    assert not seen


def test_many_rows_are_left_to_others():
    told = [values_in_one_pass(*problem("squared", "regularized", m=m), own=True) for m in (8000, 8001)]
    assert told[0] is not None and told[1] is None


@pytest.mark.parametrize("shift", [0.0, 40.0])
def test_bounds_hold_in_exact_arithmetic(shift):
    """Rows far from 0 have long sums, of which rounding takes its share."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((500, 3)) + shift
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(500) > shift, 1, -1)
    model = mdlearn.fit("svm", X, y, C=4.0, tol=1e-3)
    rows, beta = [[Fraction(v) for v in row] + [Fraction(1)] for row in X], [Fraction(v) for v in model.duals[0]]
    assert all(0 <= b <= 4 for b in beta)
    element = [sum(int(s) * b * row[j] for s, b, row in zip(y, beta, rows)) for j in range(4)]
    w = [Fraction(v) for v in (*model.coef_[0], float(model.intercept_[0]))]
    margins = [int(s) * sum(v * x for v, x in zip(w, row)) for s, row in zip(y, rows)]
    objective = sum(v * v for v in w) / 2 + 4 * sum(max(Fraction(0), 1 - z) for z in margins)
    assert Fraction(model.certificate.lower_bound) <= sum(beta) - sum(v * v for v in element) / 2
    assert objective <= Fraction(model.certificate.objective)
