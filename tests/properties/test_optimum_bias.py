"""The free bias: where no optimum exists, and which intercept is taken where many are optimal."""

from __future__ import annotations

import numpy as np
import pytest
from judging import assert_optimal, engine_names
from optimum_cases import must_accept, overlapping
from reference import bias_interval

import mdlearn


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_infeasible_mean_weight_is_an_error(kernel, weighted):
    """lambda2 |n+ - n-| / m > C min(n+, n-) with a free bias and no variance: unbounded below."""
    X, y = overlapping(20, 3, seed=14)
    y = np.where(np.arange(20) < 5, 1, -1)
    weight = np.where(y > 0, 3.0, 0.5) if weighted else None  # counts 15 and 7.5; without weights 5 and 15
    positive, negative = (15.0, 7.5) if weighted else (5.0, 15.0)
    limit = 2.0 * min(positive, negative) * (positive + negative) / abs(positive - negative)
    given = {"kernel": kernel, "bias": "free", "C": 2.0, "lambda1": 0.0, "sample_weight": weight}
    with pytest.raises(ValueError) as caught:
        mdlearn.fit("ldm", X, y, lambda2=1.01 * limit, **given)
    message = str(caught.value)
    assert "lambda2" in message and "C" in message
    assert f"{positive:g}" in message and f"{negative:g}" in message
    model = mdlearn.fit("ldm", X, y, lambda2=0.99 * limit, tol=1e-11, **given)
    settings = {"kernel": kernel, "bias": "free", "C": 2.0, "lambda1": 0.0, "lambda2": 0.99 * limit}
    assert_optimal(model, X, y, settings, weight)
    # Any variance at all makes it bounded again, and other biases always are.
    mdlearn.fit("ldm", X, y, lambda2=3 * limit, **{**given, "lambda1": 1.0})
    mdlearn.fit("ldm", X, y, lambda2=3 * limit, **{**given, "bias": "regularized"})


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_infeasible_limit_itself_is_allowed(kernel):
    """At equality (exact in binary here) the bias is not unique, but an optimum exists."""
    X, y = overlapping(16, 3, seed=15)
    y = np.where(np.arange(16) < 4, 1, -1)  # lambda2 * 8 / 16 = C * 4 at lambda2 = 8 C
    settings = {"kernel": kernel, "bias": "free", "C": 0.5, "lambda1": 0.0, "lambda2": 4.0}
    if kernel == "rbf":
        settings["gamma"] = 0.5
    model = mdlearn.fit("ldm", X, y, tol=1e-9, **settings)
    assert np.isfinite(model.intercept_).all()
    assert_optimal(model, X, y, settings)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
def test_midpoint_of_the_intercept_interval(kernel):
    """C so small that every multiplier is at its bound: w is unique, b is an interval, its midpoint is chosen."""
    X, y = overlapping(24, 3, seed=16)
    y = np.where(np.arange(24) % 2 == 0, 1, -1)
    X = X + 0.3 * np.arange(24)[:, None] / 24  # nothing symmetric: the midpoint is not 0
    settings = {"kernel": kernel, "bias": "free", "C": 1e-3}
    if kernel == "rbf":
        settings["gamma"] = 0.2
    given = X @ X.T if kernel == "precomputed" else X
    model = mdlearn.fit("svm", given, y, tol=1e-12, **settings)
    f = model.decision_function(given) - model.intercept_[0]
    low, high = bias_interval(f, y, np.ones(24), 1e-3)
    assert high - low > 0.5, "this test needs an interval"
    assert model.intercept_[0] == pytest.approx((low + high) / 2, abs=1e-6)


def test_midpoint_by_hand():
    """Rows 2 (label +1) and 0 (label -1), C = 0.1: w = 0.2, and every b in [-1, 0.6] is optimal."""
    for solver in ("auto", *engine_names()):
        try:
            model = mdlearn.fit("svm", [[2.0], [0.0]], [1, -1], C=0.1, bias="free", tol=1e-12, solver=solver)
        except ValueError:
            assert not must_accept(solver, "linear", "free")
            continue
        assert model.coef_[0, 0] == pytest.approx(0.2, abs=1e-8)
        assert model.intercept_[0] == pytest.approx(-0.2, abs=1e-6)
        assert model.certificate.objective == pytest.approx(0.5 * 0.04 + 0.1 * (2 - 0.4), rel=1e-10)


def test_midpoint_with_mean_weight():
    """lambda2 without variance, unequal classes: the dual's equality is y'(beta + lambda2 / m) = 0."""
    X, y = overlapping(30, 2, seed=17)
    y = np.where(np.arange(30) < 10, 1, -1)
    # beta = C on the ten positives and C/2 on average on the others: those have free multipliers or an interval.
    settings = {"bias": "free", "C": 1e-3, "lambda1": 0.0, "lambda2": 0.02}
    model = mdlearn.fit("ldm", X, y, tol=1e-12, **settings)
    answer = assert_optimal(model, X, y, settings)
    low, high = bias_interval(X @ answer.w.astype(float), y, np.ones(30), 1e-3, 0.02)
    assert low - 1e-5 <= model.intercept_[0] <= high + 1e-5
