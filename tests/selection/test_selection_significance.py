"""t-tests against SciPy, against the definition, and where scores have no spread."""

import math

import numpy as np
import pytest
from scipy import stats

from mdlearn.selection import paired_test, welch_test

RNG = np.random.default_rng(5)
A, B = 0.8 + 0.05 * RNG.standard_normal(10), 0.78 + 0.02 * RNG.standard_normal(10)


@pytest.mark.parametrize("confidence", [0.95, 0.5])
def test_paired_against_scipy(confidence):
    told, true = paired_test(A, B, confidence), stats.ttest_rel(A, B)
    low, high = true.confidence_interval(confidence)
    assert told.difference == pytest.approx(A.mean() - B.mean(), rel=1e-12)
    assert (told.statistic, told.pvalue) == pytest.approx((true.statistic, true.pvalue), rel=1e-10)
    assert (told.df, told.confidence) == (9, confidence)
    assert (told.low, told.high) == pytest.approx((low, high), rel=1e-10)


def test_welch_against_scipy():
    told, true = welch_test(A, B[:6]), stats.ttest_ind(A, B[:6], equal_var=False)
    low, high = true.confidence_interval(0.95)
    values = (told.statistic, told.df, told.pvalue, told.low, told.high)
    assert values == pytest.approx((true.statistic, true.df, true.pvalue, low, high), rel=1e-10)
    # One of the two without spread: its degrees of freedom do not count.
    told, true = welch_test(A, [0.7, 0.7, 0.7]), stats.ttest_1samp(A, 0.7)
    assert (told.statistic, told.df, told.pvalue) == pytest.approx((true.statistic, 9, true.pvalue), rel=1e-10)


@pytest.mark.parametrize("test", [paired_test, welch_test])
def test_scores_without_spread(test):
    same = test([0.9, 0.9, 0.9], [0.9, 0.9, 0.9])
    assert (same.difference, same.statistic, same.pvalue, same.low, same.high) == (0, 0, 1, 0, 0)
    # Equal but for rounding: 0.1 + 0.2 is not 0.3.
    same = test([0.1 + 0.2] * 4, [0.3] * 4)
    assert (same.statistic, same.pvalue) == (0, 1)
    less = test([0.5, 0.5], [0.75, 0.75])
    assert (less.statistic, less.pvalue, less.low, less.high) == (-math.inf, 0, -0.25, -0.25)


def test_a_constant_shift_is_no_chance_for_pairs():
    assert paired_test(A, A - 0.01).pvalue == 0
    assert 0.1 < welch_test(A, A - 0.01).pvalue < 1
    assert paired_test(A, A).pvalue == 1


def test_the_two_sides_mirror_each_other():
    one, other = paired_test(A, B), paired_test(B, A)
    assert (one.statistic, one.pvalue, one.low) == (-other.statistic, other.pvalue, -other.high)


@pytest.mark.parametrize(
    "test, a, b, match",
    [
        (paired_test, [0.5], [0.4], "a has one score"),
        (welch_test, [0.5, 0.6], [0.4], "b has one score"),
        (paired_test, A, B[:5], "10 scores and b has 5"),
        (paired_test, [0.5, np.nan], [0.4, 0.5], "a contains NaN"),
        (welch_test, A[None], B, r"shape \(1, 10\)"),
        (welch_test, ["a", "b"], B, "a "),
    ],
)
def test_errors(test, a, b, match):
    with pytest.raises((ValueError, TypeError), match=match):
        test(a, b)


@pytest.mark.parametrize("confidence", [0, 1, 1.5])
def test_confidence_is_a_probability(confidence):
    with pytest.raises(ValueError, match="confidence"):
        paired_test(A, B, confidence)
