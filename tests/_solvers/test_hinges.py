"""Sums of hinges and of their conjugates in compiled code, against sums of fractions."""

from fractions import Fraction

import numpy as np
import pytest

from mdlearn._solvers import hinges


@pytest.mark.parametrize("m", [0, 1, 7, 8, 9, 300, 1030])
@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("squared", [False, True])
def test_the_sum_of_hinges(m, side, squared):
    rng = np.random.default_rng(m)
    z, counts = rng.standard_normal(m), rng.integers(0, 3, m) * rng.random(m)
    excess = [max(Fraction(0), Fraction(side) * (Fraction(0.75) - Fraction(one))) for one in z]
    true = sum(Fraction(c) * (e * e if squared else e) for c, e in zip(counts, excess))
    assert hinges.loss(z, counts, side, 0.75, squared) == pytest.approx(float(true), rel=1e-15 * (1 + m**0.5), abs=0)


@pytest.mark.parametrize("m", [0, 1, 8, 300])
@pytest.mark.parametrize("unit", [1.0, 1e-300, 1e200])
def test_the_sum_of_squared_multipliers(m, unit):
    """Rows of weight 0 have none; multipliers are of the size of the loss's weight, and their squares may be 0."""
    rng = np.random.default_rng(m)
    counts = rng.integers(0, 3, m) * rng.random(m)
    beta, scale = np.where(counts > 0, unit * rng.random(m), 0.0), 0.25 / unit
    true = Fraction(scale) * sum(Fraction(b) ** 2 / Fraction(c) for b, c in zip(beta, counts) if c > 0)
    assert hinges.squares(beta, counts, scale) == pytest.approx(float(true), rel=1e-15 * (2 + m**0.5), abs=0)


def test_many_rows_lose_no_digits():
    """Of equal terms all roundings go one way: one sum over a million would lose a hundred times as much."""
    m, one = 1_000_000, 1.0 - 0.9
    assert hinges.loss(np.full(m, 0.9), np.ones(m), 1.0, 1.0, False) == pytest.approx(m * one, rel=2e-13)


def test_lengths_that_differ_are_refused():
    with pytest.raises(ValueError, match="differ in length"):
        hinges.loss(np.ones(3), np.ones(2), 1.0, 1.0, True)
    with pytest.raises(ValueError, match="differ in length"):
        hinges.squares(np.ones(3), np.ones(2), 1.0)
