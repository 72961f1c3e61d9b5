"""Sums of multipliers that a bound asks to be 0, from multipliers where they are not."""

from __future__ import annotations

import numpy as np
import pytest

from mdlearn.data.features.spaces import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.certificates.margin import dual
from mdlearn.forms.margin import Column, MarginForm


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_multipliers_that_are_far_from_balance_prove_what_balanced_ones_do(bias):
    """Of what the variance's multipliers have along the counts and the labels, 1e13 times as much, nothing is left."""
    rng = np.random.default_rng(0)
    counts, y = rng.integers(1, 4, 12).astype(float), np.resize([1.0, -1.0, 1.0], 12)
    column = Column(y, counts, 3.0, 1.0, ())
    form = MarginForm(LinearFeatures(DenseRows(rng.standard_normal((12, 3)))), (column,), bias)
    beta, sigma = np.zeros((0, 12)), rng.standard_normal(12)
    plain = dual(form, column, beta, sigma)
    far = dual(form, column, beta, sigma + 1e13 * counts * (1.0 + (y if bias == "free" else 0.0)))
    sizes = float(np.abs(far.alpha).sum())
    assert abs(float((y * far.alpha - column.pull).sum())) <= 1e-14 * sizes
    if bias == "free":
        assert abs(float(far.alpha.sum())) <= 1e-14 * sizes
    assert far.lower <= plain.lower + 1e-2 * abs(plain.lower) and np.abs(far.alpha).max() < 1e3
