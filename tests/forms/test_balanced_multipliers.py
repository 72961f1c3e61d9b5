"""Sums of multipliers that a bound asks to be 0, from multipliers where they are not."""

from __future__ import annotations

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.certificates.dual import feasible_dual
from mdlearn.forms.margin import Column, MarginForm


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_multipliers_that_are_far_from_balance_prove_what_balanced_ones_do(bias):
    """Of what the variance's multipliers have along the counts and the labels, 1e13 times as much, nothing is left."""
    rng = np.random.default_rng(0)
    counts, y = rng.integers(1, 4, 12).astype(float), np.resize([1.0, -1.0, 1.0], 12)
    column = Column(y, counts, 3.0, 1.0, ())
    form = MarginForm(LinearFeatures(DenseRows(rng.standard_normal((12, 3)))), (column,), bias)
    beta, sigma = np.zeros((0, 12)), rng.standard_normal(12)
    plain = feasible_dual(form, column, beta, sigma)
    far = feasible_dual(form, column, beta, sigma + 1e13 * counts * (1.0 + (y if bias == "free" else 0.0)))
    sizes = float(np.abs(far.alpha).sum())
    assert abs(float((y * far.alpha - column.pull).sum())) <= 1e-14 * sizes
    if bias == "free":
        assert abs(float(far.alpha.sum())) <= 1e-14 * sizes
    assert far.lower <= plain.lower + 1e-2 * abs(plain.lower) and np.abs(far.alpha).max() < 1e3


def _fits_of_equal_rows(size, x, lambda0):
    """Fits by three engines, of classes of some rows that weigh the same; signs and exact weights."""
    y = np.repeat([1, -1], size)
    weight = len(y) / (2.0 * np.where(y > 0, *size))
    given = {"sample_weight": weight, "bias": "free", "lambda0": lambda0, "C": 0.2, "basis": "euclidean"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        fits = [mdlearn.fit("uldm", np.full((len(y), 2), x), y, solver=s, **given) for s in ("direct", "cd", "newton")]
    return fits, y.tolist(), [Fraction(c) for c in weight.tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("size", [(2, 5), (2, 11), (3, 4), (3, 7), (5, 8), (6, 7), (7, 19), (11, 23)])
def test_weights_that_balance_but_for_rounding_leave_no_bound_above_the_exact_optimum(size):
    """All rows equal: w = 0, and b alone makes -u b + lambda0/2 (1 - u^2) b^2, with u the exact mean of the signs."""
    for x, lambda0 in itertools.product([0.0, 3.55594589], [1e-6, 0.37]):
        fits, y, weight = _fits_of_equal_rows(size, x, lambda0)
        u, spread = sum(c * s for c, s in zip(weight, y)) / sum(weight), Fraction(lambda0)
        optimum = -u * u / (2 * spread * (1 - u * u))
        assert 0 < -optimum < 1e-25
        proved = [(Fraction(m.certificate.objective), Fraction(m.certificate.lower_bound)) for m in fits]
        assert max(bound for _, bound in proved) <= min(optimum, *[value for value, _ in proved])
        for model, (value, bound) in zip(fits, proved):
            b, w = Fraction(model.intercept_.item()), [Fraction(one) for one in model.coef_.ravel().tolist()]
            f = sum(w) * Fraction(x) + b
            exact = Fraction(0.2) / 2 * sum(one * one for one in w) - u * f + spread / 2 * (1 - u * u) * f * f
            assert value <= 0 and abs(value - exact) <= value - bound


@pytest.mark.parametrize("size", [(1, 1), (4, 4), (2, 8)])
def test_weights_that_balance_exactly_leave_no_doubt(size):
    """Sums of powers of two have no rounding: the optimum is 0, and that is proved."""
    for model in _fits_of_equal_rows(size, 0.0, 0.37)[0]:
        assert model.certificate.converged and model.certificate.lower_bound == 0.0 == model.certificate.objective
        assert model.intercept_.item() == 0.0
