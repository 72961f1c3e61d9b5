"""Limits of a column's slopes and second derivatives, held against differences of its value."""

from __future__ import annotations

import numpy as np
import pytest

from mdlearn.forms.column import Column
from mdlearn.forms.losses import HingeTerm


@pytest.mark.parametrize("variance", [0.0, 3.0])
@pytest.mark.parametrize(
    "terms",
    [
        (HingeTerm(2.0),),
        (HingeTerm(2.0, power=2),),
        (HingeTerm(2.0), HingeTerm(0.7, side=-1, threshold=2.0)),
        (HingeTerm(0.5), HingeTerm(1.5, threshold=-1.0, power=2)),
    ],
)
def test_no_row_is_steeper_than_its_limits_say_and_some_are_as_steep(terms, variance):
    rng = np.random.default_rng(1)
    m, h = 6, 1e-4
    y, counts = np.array([1.0, -1.0] * 3), np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0])
    column = Column(y, counts, variance, 0.0, terms)
    slopes, bend = column.slope_limits
    hinges = Column(y, counts, 0.0, 0.0, tuple(t for t in terms if t.power == 1))
    rest = Column(y, counts, variance, 0.0, tuple(t for t in terms if t.power == 2))
    steepest, most = np.zeros(m), 0.0
    for _ in range(200):
        z = rng.uniform(-4.0, 4.0, m)
        for i in range(m):
            step = np.where(np.arange(m) == i, h, 0.0)
            slope = abs(hinges.distribution_value(z + step) - hinges.distribution_value(z)) / h
            steepest[i] = max(steepest[i], slope)
            bent = [rest.distribution_value(z + k * step) for k in (-1, 0, 1)]
            most = max(most, (bent[0] - 2.0 * bent[1] + bent[2]) / h**2)
    assert (steepest <= slopes + 1e-8).all()
    assert most <= bend + 1e-5 * (1.0 + bend)
    if len(terms) == 1:
        np.testing.assert_allclose(steepest, slopes, atol=1e-8)
    assert most >= 0.5 * bend


def test_constraints_have_no_limit():
    column = Column(np.ones(2), np.ones(2), 0.0, 0.0, (HingeTerm(np.inf),))
    assert np.isinf(column.slope_limits[1])
