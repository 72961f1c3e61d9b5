"""Passes over decision values: given and declared terms, blocks of any length, derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from given_losses import EXPONENTIAL, HUBER, RUBBER
from mdlm_paper import sample, signs_of

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.validation import check_data
from mdlearn.forms import loss_passes
from mdlearn.forms.joint.margin_composite import MarginComposite
from mdlearn.forms.loss_passes import LossPass
from mdlearn.forms.losses import HingeTerm, LogisticTerm
from mdlearn.forms.margin import Column, MarginForm


def columns_of(terms, k=3, **more):
    X, y = sample(k)
    data = check_data(X, y, np.random.default_rng(3).uniform(0.5, 2.0, 60), None, square=False)
    columns = tuple(Column(s, data.counts, 0.3, 0.1, terms) for s in signs_of(y).T)
    return MarginForm(LinearFeatures(data.X), columns, "regularized", penalty=0.3, joint=True, **more), X


BAND = (HingeTerm(0.3, threshold=0.5, power=2), HingeTerm(0.2, side=-1, threshold=0.8, power=2))
MIXED = (*BAND, *RUBBER.terms(0.4), LogisticTerm(0.1, 3.0, 0.2), *HUBER.terms(0.2), *RUBBER.terms(0.1))


@pytest.mark.parametrize("piece", [7, 1 << 17])
@pytest.mark.parametrize("terms", [MIXED, RUBBER.terms(1.0), EXPONENTIAL.terms(0.1)], ids=["mixed", "two sides", "one"])
def test_value_gradient_and_product(terms, piece, monkeypatch):
    """Against the columns' own values, and differences of these, for blocks of any length."""
    monkeypatch.setattr(loss_passes, "VALUES_PER_CALL", piece)
    form, X = columns_of(terms)
    problem = MarginComposite(form, form.columns)
    rng = np.random.default_rng(0)
    W, V = 0.5 * rng.standard_normal(problem.shape), rng.standard_normal(problem.shape)

    def value(W):
        f = X @ W[:5] + W[5]
        return sum(c.distribution_value(c.y * f[:, j]) for j, c in enumerate(form.columns)) + 0.5 * (W**2).sum()

    look, h = problem.at(W), 1e-5
    assert problem.losses.mixed
    assert problem.smooth(look) == pytest.approx(value(W), rel=1e-12)
    slope = (value(W + h * V) - value(W - h * V)) / (2 * h)
    assert (problem.slope(look) * V).sum() == pytest.approx(slope, rel=1e-7)
    change = problem.slope(problem.at(W + h * V)) - problem.slope(problem.at(W - h * V))
    assert problem.product(look)(V) == pytest.approx(change / (2 * h), abs=1e-4)
    assert problem.lipschitz() >= (problem.product(look)(V) * V).sum() / (V**2).sum()
    assert problem.sampled(W, np.arange(60)) == pytest.approx(problem.slope(look), abs=1e-12)


def test_the_pass_is_chosen_by_the_kinds_of_terms():
    declared, given = columns_of((*BAND, *RUBBER.terms(0.0)))[0], columns_of(MIXED)[0]
    assert not LossPass(declared.columns).mixed, "terms without weight are left out"
    mixed = LossPass(given.columns)
    # Largest side by side: squared 0.6 below 0.5, rubber 0.5 (once, not for either side), Huber 0.4, logistic 0.075.
    assert mixed.steepest == pytest.approx(np.full(3, 0.6 + 0.5 + 0.4 + 0.075), rel=1e-6)
    assert np.array_equal(mixed.floors, np.zeros(3)) and mixed.reach >= 8.0
