"""Rounding in a certificate, bounded without a pass over the rows: both values hold, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import mdlearn
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.base import array_fault
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column

COST = 30.0


def sample():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((150, 9)) + 3.0
    scores = X @ rng.standard_normal(9) + 0.3 * rng.standard_normal(150)
    return X, np.where(scores > scores.mean(), 1.0, -1.0)


def exact_objective(model, X, y):
    w, b = [Fraction(v) for v in model.coef_[0]], Fraction(float(model.intercept_[0]))
    total = (sum(v * v for v in w) + b * b) / 2
    for row, sign in zip(X, y):
        margin = Fraction(sign) * (sum(Fraction(x) * v for x, v in zip(row, w)) + b)
        total += Fraction(COST) * max(Fraction(0), 1 - margin)
    return total


@pytest.mark.parametrize("tol, passes", [(1e-6, False), (1e-11, True)])
def test_no_pass_for_what_is_a_small_share_of_the_gap_asked_for(tol, passes, monkeypatch):
    asked, blur = [], LinearFeatures.blur
    monkeypatch.setattr(LinearFeatures, "blur", lambda self, coef: asked.append(coef) or blur(self, coef))
    X, y = sample()
    model = mdlearn.fit("svm", X, y, C=COST, tol=tol)
    told, exact = model.certificate, exact_objective(model, X, y)
    assert told.converged and bool(asked) == passes
    assert exact <= Fraction(told.objective) <= exact * (1 + Fraction(2, 10**12))


def test_the_bound_holds_below_the_best_objective():
    X, y = sample()
    best = exact_objective(mdlearn.fit("svm", X, y, C=COST, tol=1e-11), X, y)
    for tol in (1e-2, 1e-4, 1e-6, 1e-8):
        assert Fraction(mdlearn.fit("svm", X, y, C=COST, tol=tol).certificate.lower_bound) <= best


def test_numbers_whose_squares_overflow_are_finite():
    assert array_fault("coef", np.array([1e200, -1e300]), (2,)) is None
    for wrong in (np.nan, np.inf):
        assert "NaN or infinity in coef" in array_fault("coef", np.array([1e200, wrong]), (2,))


def test_a_mean_of_no_weight_makes_no_number_of_an_overflow():
    column = Column(np.array([1.0, -1.0]), np.ones(2), 0.0, 0.0, (HingeTerm(1.0),))
    assert column.distribution_value(np.array([-np.inf, 3.0])) == np.inf


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
def test_quick_bounds_of_rounding_are_above_those_of_every_row(scale):
    rng = np.random.default_rng(0)
    features = LinearFeatures(DenseRows(scale * rng.standard_normal((40, 6))))
    coef, alpha = rng.standard_normal(6), rng.standard_normal(40)
    assert features.blur(coef).max() <= features.most_blur(coef) * (1 + 1e-12)
    element = features.expand(alpha)
    assert 0 < features.haze(alpha, element) <= features.most_haze(alpha, element)
    assert 0 < features.haze(alpha, None) <= features.most_haze(alpha, None) * (1 + 1e-12)
    assert features.most_blur(0.0 * coef) == features.most_haze(0.0 * alpha, 0.0 * element) == 0.0
    assert not features.blur(0.0 * coef).any()


@pytest.mark.parametrize(
    "kernel, params", [("rbf", {"gamma": 0.3}), ("poly", {"gamma": 0.5, "degree": 3, "coef0": 1.0})]
)
def test_quick_bounds_of_a_kernel_are_above_those_of_every_row_and_close(kernel, params):
    rng = np.random.default_rng(1)
    features = KernelFeatures(DenseRows(rng.standard_normal((40, 6))), Kernel(kernel, params))
    alpha = rng.standard_normal(40)
    blur, haze = features.blur(alpha), features.haze(alpha, None)
    assert blur.max() <= features.most_blur(alpha) < np.inf
    assert 0 < haze <= features.most_haze(alpha, None) < np.inf
    if kernel == "rbf":  # where all rows are of one length
        assert features.most_blur(alpha) <= 10.0 * blur.max()
    assert features.most_blur(0.0 * alpha) == features.most_haze(0.0 * alpha, None) == 0.0


@pytest.mark.parametrize("bias", ["free", "regularized", "none"])
def test_rounding_of_a_kernel_is_looked_at_row_by_row_for_small_gaps_alone(bias, monkeypatch):
    asked, blur = [], KernelFeatures.blur
    monkeypatch.setattr(KernelFeatures, "blur", lambda self, coef: asked.append(coef) or blur(self, coef))
    X, y = sample()
    loose = mdlearn.fit("svm", X, y, kernel="rbf", gamma=0.05, bias=bias, tol=1e-3).certificate
    assert loose.converged and not asked
    tight = mdlearn.fit("svm", X, y, kernel="rbf", gamma=0.05, bias=bias, tol=1e-11).certificate
    assert tight.converged and asked
    assert loose.lower_bound <= tight.objective * (1 + 1e-13) and tight.lower_bound <= loose.objective * (1 + 1e-13)
