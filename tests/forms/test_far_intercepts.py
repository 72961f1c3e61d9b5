"""Decision values so large that a logistic term is a kink between two floats: intercepts, tangents and bounds there."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.joint.margin_composite import MarginComposite, floats_of_integers, ordered_integers
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


def value(X, y, w, b):
    """The objective of a model."""
    w = w.astype(LD)
    return loss(X, y, w, b) + LD(PENALTY) * np.abs(w).sum() + LD(RIDGE) / 2 * (w**2).sum()


def kinks(X, w):
    """Intercepts one of which is next to the best: some row has the decision value 0."""
    return [-f for f in X.astype(LD) @ w.astype(LD)]


def composite(X, y, variance=0.0):
    m = float(len(y))
    term = LogisticTerm(1.0 / (m * RIDGE), ALPHA, 1.0)
    column = Column(np.where(y == 1, 1.0, -1.0), np.ones(len(y)), variance / RIDGE, MEAN / RIDGE, (term,))
    form = MarginForm(LinearFeatures(DenseRows(X)), (column,), "free", 1.0, RIDGE, PENALTY / RIDGE, True)
    return MarginComposite(form, (column,))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(6))
def test_no_bound_is_above_what_another_intercept_reaches(seed, dtype):
    X, y = rows(seed)
    X, lowest, found = X.astype(dtype), -np.inf, np.inf
    params = {"alpha": ALPHA, "lambda1": 0.0, "lambda2": MEAN, "beta": PENALTY, "ridge": RIDGE, "bias": "free"}
    for steps in (5, 30, 200):
        model = mdlearn.fit("mdlm", X, y, solver="apg", tol=0.0, max_iter=steps, **params)
        certificate, w = model.certificate, model.coef_[0].astype(float)
        lowest = max(lowest, certificate.lower_bound)
        found = min(found, *(value(X, y, w, b) for b in kinks(X, w)))
        assert float(value(X, y, w, model.intercept_[0])) == pytest.approx(certificate.objective, rel=1e-9)
    assert found < -1e20 and np.isfinite(lowest)
    assert lowest <= found + 1e-12 * abs(found)


@pytest.mark.parametrize("variance", [0.0, 1e-30])
@pytest.mark.parametrize("size", [1.0, 1e8, 1e16])
@pytest.mark.parametrize("seed", range(4))
def test_settled_intercepts_are_best_and_their_tangents_below(seed, size, variance):
    X, y = rows(seed)
    problem = composite(X, y, variance)
    rng = np.random.default_rng(seed)
    w = size * rng.standard_normal(X.shape[1]) / SCALES
    w[:2] *= 1e3
    look = problem.settle(np.append(w, 0.0)[:, None])
    best, b = loss(X, y, w, look.W[-1, 0], variance), look.W[-1, 0]
    assert RIDGE * look.value == pytest.approx(float(best), rel=1e-9)
    others = [loss(X, y, w, other, variance) for other in [*kinks(X, w), b * 2, -b, b + 1e3, 0.0]]
    assert best <= min(others) + 1e-12 * abs(best)
    G, W = look.gradient.astype(LD)[:, 0], look.W.astype(LD)[:, 0]
    origin = LD(look.value) - LD(look.below) - G @ W
    for v in (w, 2 * w, 0 * w, -w, w * rng.random(w.shape)):
        for other in [LD(b), *kinks(X, v)]:
            h, tangent = loss(X, y, v, other, variance) / LD(RIDGE), origin + G @ np.append(v.astype(LD), other)
            assert tangent <= h + 1e-13 * (abs(h) + abs(G) @ abs(W))


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


def test_places_are_in_the_order_of_the_floats():
    values = np.array([-np.inf, -1e300, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, np.nextafter(1.0, 2.0), 1e300, np.inf])
    found = ordered_integers(values)
    assert (np.diff(found)[[0, 1, 2, 3, 5, 6, 7, 8, 9]] > 0).all() and found[4] == found[5] == 0
    assert found[8] - found[7] == 1 and found[6] == 1
    assert np.array_equal(floats_of_integers(found), values)
