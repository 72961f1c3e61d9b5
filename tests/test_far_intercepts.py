"""Decision values so large that a logistic term is a kink between two floats: intercepts, tangents and bounds there."""

from __future__ import annotations

import numpy as np
import pytest

from mdlearn.data.features import LinearFeatures
from mdlearn.data.rows import DenseRows
from mdlearn.forms.coupled import MarginComposite
from mdlearn.forms.losses import LogisticTerm
from mdlearn.forms.margin import Column, MarginForm

LD = np.longdouble
ALPHA, MEAN, PENALTY, RIDGE = 0.18, 1.19, 8.5e4, 1e-6
SCALES = 10.0 ** np.array([9.0, -3, 0, 2, 10, 6, -4, 5, -6, -3, 10, 2])


def rows(seed, m=17):
    """Small integers times scales, a third of the rows zeros: there a decision value is the intercept."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (m, SCALES.shape[0])) * (rng.random((m, SCALES.shape[0])) < 0.4) * SCALES
    X[::3] = 0.0
    return X, rng.permutation(m) % 5 % 2


def loss(X, y, w, b, variance=0.0):
    """Loss, variance and mean by their formulas, in extended precision."""
    z = np.where(y == 1, 1, -1) * (X.astype(LD) @ w.astype(LD) + LD(b))
    g = LD(ALPHA) * (1 - z)
    each = (np.maximum(g, 0) + np.log1p(np.exp(-np.abs(g)))) / LD(ALPHA) - LD(MEAN) * z
    return (each + LD(variance) * (z - z.mean()) ** 2).mean()


def composite(X, y, variance=0.0):
    m = float(len(y))
    term = LogisticTerm(1.0 / (m * RIDGE), ALPHA, 1.0)
    column = Column(np.where(y == 1, 1.0, -1.0), np.ones(len(y)), variance / RIDGE, MEAN / RIDGE, (term,))
    form = MarginForm(LinearFeatures(DenseRows(X)), (column,), "free", 1.0, RIDGE, PENALTY / RIDGE, True)
    return MarginComposite(form, (column,))


@pytest.mark.parametrize("seed", range(8))
def test_tangents_are_below_where_columns_cancel(seed):
    """Terms of decision values 1e8 times as large as these: all that they lose is off the tangent, and little else."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 6))
    X[:, 3:] = X[:, :3] + 1e-8 * X[:, 3:]
    y, w = np.arange(30) % 2, rng.standard_normal(6)
    plain = composite(X, y).settle(np.append(w, 0.0)[:, None])
    assert 0 < plain.below <= 1e-14 * plain.value
    w = 1e8 * np.append(w[:3], -w[:3])
    look = composite(X, y).settle(np.append(w, 0.0)[:, None])
    G, W = look.gradient.astype(LD)[:, 0], look.W.astype(LD)[:, 0]
    for shift in (0.0, 1e-9, -1e-9):
        v, b = w * (1.0 + shift), W[-1] * (1.0 + shift)
        h = loss(X, y, v, b) / LD(RIDGE)
        assert LD(look.value) - LD(look.below) + G @ (np.append(v.astype(LD), b) - W) <= h
        assert h <= look.value + 100 * look.below + 2e-9 * abs(G) @ abs(W)
