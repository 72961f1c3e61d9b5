"""Bounds of penalised problems without a ridge: where slopes are not 0, no multipliers make one."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn
from mdlearn import extend
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
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
            terms = (extend.NormTerm(weight),)
            return extend.Terms(loss=(extend.HingeTerm(1.0, power=2),), ridge=0.0, coefficient_terms=terms)

    loose, tight = (mdlearn.fit(Unridged, X, np.arange(m) % 2, bias="free", tol=tol).certificate for tol in (0.1, 1e-9))
    assert tight.converged
    assert loose.lower_bound <= tight.objective * (1.0 + 1e-9)


@pytest.mark.parametrize("lower", [0.0, -1.0])
def test_coefficients_of_zero_do_not_make_slopes_rest(lower):
    """A slope counted as often as its coefficient differs from 0: at w = 0 never, and any multipliers were a bound."""
    X = np.array([[1.0], [2.0]])
    column = Column(np.ones(2), np.ones(2), 0.0, 0.0, (extend.HingeTerm(1.0, power=2),))
    limits = (extend.LimitTerm(lower=lower),)
    form = MarginForm(LinearFeatures(DenseRows(X)), (column,), "none", ridge=0.0, coefficient_terms=limits)
    problem = PenalisedProblem(form, form.columns)
    slopes = PenalisedPoint(np.zeros((1, 1)), np.full((1, 1, 2), 2.0), np.zeros(1))
    assert problem.objective(np.ones((1, 1))) == 0.0
    assert problem.lower(slopes, np.zeros((2, 1))) <= 0.0
