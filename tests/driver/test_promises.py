"""What an engine's estimates promise is looked at: rounding, or a wrong estimate, can take it back."""

import warnings
from itertools import pairwise

import numpy as np
import pytest

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.driver.incumbent import Incumbent
from mdlearn.driver.limits import LimitedRun, Limits
from mdlearn.forms.certificates.primal import primal
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.forms.problem import problems_of
from mdlearn.forms.proof import combine_proofs, judge
from mdlearn.solvers.base import Report


@pytest.mark.parametrize("promised", [False, True])
def test_a_promise_that_rounding_breaks_costs_nothing_that_was_found(promised):
    """The second point is better by 1e-8 before its coefficients become float32, and worse afterwards."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3)).astype(np.float32)
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(40) > 0, 1.0, -1.0)
    column = Column(y, np.ones(40), 0.0, 0.0, (HingeTerm(10.0),))
    form = MarginForm(LinearFeatures(DenseRows(X)), (column,), "none")
    first = np.array([1.5, 0.25, -0.125])  # float32 holds these
    value = primal(form, column, first, 0.0)[0]
    none = np.zeros((1, 40)), np.zeros(40)
    incumbent = Incumbent(problems_of(form)[0], 1e-6, last=False, certifies=True)
    incumbent.take(Report.estimated(value, 0.0, Point(*none, first)))
    claim = value * (1.0 - 1e-8)
    bound = claim * (1.0 - (1e-7 if promised else 1e-2))
    incumbent.take(Report.estimated(claim, bound, Point(*none, 5.0 * first)))
    assert primal(form, column, 5.0 * first, 0.0)[0] > value
    assert incumbent.certified(as_is=True).certificate.objective == pytest.approx(value, rel=1e-12)


def solved_svm():
    """An SVM's form, its model, and multipliers near its optimum with the bound that they prove."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(40) > 0, 1.0, -1.0)
    column = Column(y, np.ones(40), 0.0, 0.0, (HingeTerm(1.0),))
    form = MarginForm(LinearFeatures(DenseRows(X)), (column,), "none")
    exact = mdlearn.fit("svm", X, y, C=1.0, bias="none", tol=1e-10)
    beta = np.clip(y * exact.dual_coef_[0], 0.0, 1.0)[None]
    bound = float(beta.sum()) - 0.5 * float(np.square(X.T @ (y * beta[0])).sum())
    return form, exact, beta, bound


def test_a_promise_that_does_not_hold_leaves_the_bound_that_was_known():
    """The second point claims to meet `tol`; its multipliers prove less than those of the first."""
    form, exact, beta, bound = solved_svm()
    assert bound > 0.99 * exact.certificate.objective
    incumbent = Incumbent(problems_of(form)[0], 1e-6, last=False, certifies=True)
    coef = exact.coef_[0]
    incumbent.take(Report.estimated(1.1 * exact.certificate.objective, bound, Point(beta, np.zeros(40), coef)))
    claim = exact.certificate.objective
    incumbent.take(Report.estimated(claim, claim, Point(np.zeros((1, 40)), np.zeros(40), coef)))
    assert incumbent.gap == 0 and incumbent.lower_bound == claim
    assert incumbent.certified(as_is=True).certificate.lower_bound == pytest.approx(bound, rel=1e-9)


def test_a_proof_that_meets_a_wide_tolerance_does_not_displace_a_better_point():
    """What the second point's multipliers stand for is within `tol`, and above the first point."""
    form, exact, beta, bound = solved_svm()
    best = exact.certificate.objective
    incumbent = Incumbent(problems_of(form)[0], 0.5, last=False, certifies=True)
    incumbent.take(Report.estimated(best, 0.0, Point(np.zeros((1, 40)), np.zeros(40), exact.coef_[0])))
    shorter = float(0.9 * beta.sum()) - 0.81 * (float(beta.sum()) - bound)
    incumbent.take(Report.estimated(1.3 * best, shorter, Point(0.9 * beta, np.zeros(40))))
    assert incumbent.proven()
    assert incumbent.solution.certificate.objective == pytest.approx(best, rel=1e-9)


def test_a_bound_that_rises_by_rounding_does_not_replace_a_proof():
    """The later point claims one rounding more, and its multipliers prove nothing."""
    form, exact, beta, bound = solved_svm()
    incumbent = Incumbent(problems_of(form)[0], 0.0, last=False, certifies=True)
    value, coef = 1.1 * exact.certificate.objective, exact.coef_[0]
    incumbent.take(Report.estimated(value, bound, Point(beta, np.zeros(40), coef)))
    rounded = float(np.nextafter(bound, np.inf))
    incumbent.take(Report.estimated(0.99 * value, rounded, Point(np.zeros((1, 40)), np.zeros(40), coef)))
    assert incumbent.certified(as_is=True).certificate.lower_bound == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("seed", [2, 4, 7])
def test_a_fit_that_ends_later_has_no_smaller_bound(seed):
    """The bound of w = 0 is nearly exact where a mean pulls far harder than the loss; that of a point that meets `tol`
    has lost what rounding took."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((14, 5)).astype(np.float32)
    y = np.where(np.arange(14) < 4, 1, -1)
    how = {"sample_weight": rng.uniform(0.2, 4.8, 14), "bias": "none", "solver": "interior", "tol": 1e-6}
    given = {"kernel": "poly", "gamma": 4.0, "degree": 4, "coef0": 1.0, "C": 4.8, "lambda1": 0.0, "lambda2": 5.6e7}
    bounds = []
    for n in (1, 10, 20, 50):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
            model = mdlearn.fit("ldm", X, y, max_iter=n, **how, **given)
        bounds.append(model.certificate.lower_bound)
    assert model.certificate.converged
    assert all(b >= a - 1e-10 * abs(a) for a, b in pairwise(bounds))


def test_a_part_that_misses_the_gap_is_what_a_warning_tells():
    """Together, two problems are within the gap: one of them, of little value, is not."""
    limits = Limits(1e-6, False, None, 0.0, np.inf, None, 0, None)
    parts = [judge(1e3, 1e3 * (1.0 - 1e-8), 1e3, False, 1e-6), judge(1.0, 1.0 - 4e-6, 1.0, False, 1e-6)]
    whole = combine_proofs(parts, [(1001.0, False)], 1e-6)
    assert not whole.converged and whole.gap < 1e-6
    told = LimitedRun("cd", limits).shortfall("solver 'cd'", whole, False, True, "")
    assert told is not None and told.text.startswith("solver 'cd' stopped at relative gap 4e-06 instead of 1e-06")
