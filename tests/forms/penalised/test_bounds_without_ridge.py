"""Bounds of penalised problems without a ridge: where slopes are not 0, no multipliers make one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.extend import HingeTerm, LimitTerm, LogisticTerm, NormTerm, Terms
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.forms.penalised.problem import PenalisedPoint, PenalisedProblem


def test_moved_multipliers_keep_a_free_bias():
    """Moved to where coefficients rest, they gave the bias a slope: bounds were 1.1 % above the optimum."""
    rng = np.random.default_rng(1867)
    m, d = int(rng.integers(8, 30)), int(rng.integers(2, 6))
    X = rng.standard_normal((m, d)) * 10.0 ** rng.uniform(-2, 2)
    rng.standard_normal((d, d))
    weight = 10.0 ** rng.uniform(-3, 2)

    class Unridged(mdlearn.Objective):
        name = "unridged"

        def terms(self, params, total):
            terms = (NormTerm(weight),)
            return Terms(loss=(HingeTerm(1.0, power=2),), ridge=0.0, coefficient_terms=terms)

    loose, tight = (mdlearn.fit(Unridged, X, np.arange(m) % 2, bias="free", tol=tol).certificate for tol in (0.1, 1e-9))
    assert tight.converged
    assert loose.lower_bound <= tight.objective * (1.0 + 1e-9)


@pytest.mark.parametrize("lower", [0.0, -1.0])
def test_coefficients_of_zero_do_not_make_slopes_rest(lower):
    """A slope counted as often as its coefficient differs from 0: at w = 0 never, and any multipliers were a bound."""
    X = np.array([[1.0], [2.0]])
    column = Column(np.ones(2), np.ones(2), 0.0, 0.0, (HingeTerm(1.0, power=2),))
    limits = (LimitTerm(lower=lower),)
    form = MarginForm(LinearFeatures(DenseRows(X)), (column,), "none", ridge=0.0, coefficient_terms=limits)
    problem = PenalisedProblem(form, form.columns)
    slopes = PenalisedPoint(np.zeros((1, 1)), np.full((1, 1, 2), 2.0), np.zeros(1))
    assert problem.objective(np.ones((1, 1))) == 0.0
    assert problem.lower(slopes, np.zeros((2, 1))) <= 0.0


def objective_of(**declared):
    class Bare(mdlearn.Objective):
        name = "bare"

        def terms(self, params, total):
            return Terms(ridge=0.0, **declared)

    return Bare


def far_rows(seed, offset):
    """Rows far from 0, whose optimum has coefficients of opposite signs, far larger than those of an early step."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 2))
    y = np.where(X @ [1.0, -1.0] + rng.standard_normal(400) > 0, 1.0, -1.0)
    return X + offset, y


@pytest.mark.parametrize("mean", [0.2, 10.0])
@pytest.mark.parametrize("offset", [30.0, 300.0])
def test_bounds_of_early_points_hold_for_rows_far_from_zero(offset, mean):
    for seed in range(8):
        X, y = far_rows(seed, offset)
        task = objective_of(
            loss=(LogisticTerm(0.3, alpha=1.0, threshold=0.0),), coefficient_terms=(NormTerm(0.2),), mean=mean
        )

        def value(v, X=X, y=y):
            w = np.array([v[0] / offset + v[1], v[0] / offset - v[1]])  # coordinates in which it is well conditioned
            z = y * (X @ w)
            return 0.3 * np.logaddexp(0.0, -z).sum() - mean * z.mean() + 0.2 * np.abs(w).sum()

        least = minimize(value, [0.0, 0.5], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-10}).fun
        told = mdlearn.fit(task, X, y, bias="none", tol=1e-5).certificate
        assert told.lower_bound <= least + 1e-9 * abs(least)
        assert told.converged and told.objective == pytest.approx(least, rel=2e-5)


def test_a_column_of_zeros_beside_others_in_a_sum_has_the_rounding_of_these():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = 5e3 * rng.standard_normal((12, 3)), rng.integers(0, 2, 12)
        X[:, 1], y[:2] = 0.0, (0, 1)
        sum_of_all = LimitTerm(1e-4, 1e-4, matrix=np.ones((1, 3)))
        task = objective_of(loss=(HingeTerm(1.2, power=2),), coefficient_terms=(sum_of_all,), variance=20.0)
        assert mdlearn.fit(task, X, y, tol=1e-7, bias="regularized").certificate.converged
