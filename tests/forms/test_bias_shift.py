"""The free intercept that is best beside given margins: no other one is better, and the middle one of an interval."""

from __future__ import annotations

import numpy as np
import pytest

from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, best_bias_alone, best_bias_shift

TERMS = {"hinge": (HingeTerm(1.0),), "two sides": (HingeTerm(1.0), HingeTerm(0.7, side=-1, threshold=2.0))}


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("positive", [0.5, 0.02, 1.0])
@pytest.mark.parametrize(("m", "digits"), [(50, 12), (30_000, 12), (30_000, 1)])
def test_no_other_shift_is_better(terms, positive, m, digits, rng):
    y = np.where(rng.random(m) < positive, 1.0, -1.0)
    counts = rng.choice([0.0, 0.5, 1.0, 2.0], m)
    column = Column(y, counts, 0.0, 0.0, TERMS[terms])
    z = np.round(3.0 * rng.standard_normal(m), digits)  # with one digit, thousands of kinks are equal
    shift = best_bias_shift(column, z)
    value = column.distribution_value(z + shift * y)
    # The objective is convex and piecewise linear in the shift: the best one is at a kink, or between two best ones.
    kinks = np.unique(np.concatenate([y * (t.threshold - z) for t in column.terms]))
    for other in kinks[rng.integers(0, kinks.shape[0], 300)]:
        assert value <= column.distribution_value(z + other * y) * (1.0 + 1e-12)
    for step in (1e-6, 1e-3, 0.1):
        for other in (shift - step, shift + step):
            assert value <= column.distribution_value(z + other * y) * (1.0 + 1e-12)


def test_the_middle_of_an_interval_among_many_rows():
    half = 20_000
    y = np.repeat([1.0, -1.0], half)
    z = np.concatenate([np.full(half, 1.5), np.full(half, 1.25)])  # shifts from -0.5 to 0.25 cost nothing
    assert best_bias_shift(Column(y, np.ones(2 * half), 0.0, 0.0, TERMS["hinge"]), z) == -0.125


@pytest.mark.parametrize("positive", [0, 3, 6, 7, 12])
@pytest.mark.parametrize(
    "term", [HingeTerm(2.0), HingeTerm(0.7, side=-1, threshold=-2.0), HingeTerm(1.0, threshold=-1.0)]
)
def test_the_best_at_zero_is_that_of_margins_of_zero(term, positive):
    y = np.where(np.arange(12) < positive, 1.0, -1.0)
    column = Column(y, np.ones(12), 0.0, 0.0, (term,))
    assert best_bias_alone(column) == best_bias_shift(column, np.zeros(12))
