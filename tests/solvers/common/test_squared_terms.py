"""Squared terms alone: exact minima along lines, also where weights and thresholds differ from row to row."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column
from mdlearn.forms.row_terms import RowTerms
from mdlearn.solvers.common.smooth_losses import SquaredTerms


@pytest.mark.parametrize("shifts", [False, True], ids=["alike", "shifts"])
@pytest.mark.parametrize("weights", [False, True], ids=["one", "weights"])
@pytest.mark.parametrize("offset", [False, True], ids=["signs", "targets"])
def test_the_minimum_along_a_line(offset, weights, shifts):
    rng, terms = np.random.default_rng(0), (HingeTerm(0.7, power=2), HingeTerm(1.9, -1, 1.3, 2))
    z, dz, counts = rng.standard_normal(30), rng.standard_normal(30), rng.uniform(0.5, 2.0, 30)
    target = rng.standard_normal(30) if offset else None
    own = RowTerms(
        rng.uniform(0, 4, (2, 30)) if weights else None, rng.standard_normal((2, 30)) if shifts else np.zeros(30)
    )
    column = Column(np.ones(30), counts, 0.0, 0.0, terms, offset=target, by_row=own)

    def loss(t):
        there = z + t * dz - (target if offset else 0.0)
        q, s = own.weights if weights else np.ones((2, 30)), own.shifts if shifts else np.zeros((2, 30))
        return sum(
            one.weight * float((counts * q[k]) @ np.maximum(0, one.side * (one.threshold + s[k] - there)) ** 2)
            for k, one in enumerate(terms)
        )

    h = 1e-6
    slope, bend = (loss(h) - loss(-h)) / (2 * h) - 40.0, 3.0  # with a pull of 40 and a curvature of 3 beside the loss
    wanted = minimize_scalar(lambda t: loss(t) - 40.0 * t + 0.5 * bend * t * t, bounds=(0, 100), method="bounded",
                             options={"xatol": 1e-10}).x  # fmt: skip
    assert wanted > 0.1
    assert SquaredTerms(column).length(z, dz, slope, bend) == pytest.approx(wanted, rel=1e-6)
