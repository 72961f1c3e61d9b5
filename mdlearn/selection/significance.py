"""Significance of a difference between two methods: t-tests on their scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.margins.validation import validate_margin_array, validate_margin_number


@dataclass(frozen=True)
class TTest:
    """Significance of the difference of two means: result of a t-test.

    Attributes
    ----------
    difference : float
        Mean of `a` less mean of `b`.
    statistic : float
        t: the difference in units of its standard error; infinite for a difference without any spread.
    df : float
        Degrees of freedom.
    pvalue : float
        Probability, two-sided, of a t at least as large if the means were equal.
    low, high : float
        Ends of the confidence interval of the difference.
    confidence : float
        Probability that the interval covers the true difference.
    """

    difference: float
    statistic: float
    df: float
    pvalue: float
    low: float
    high: float
    confidence: float


def paired_test(a: Any, b: Any, confidence: float = 0.95) -> TTest:
    """Significance by the paired t-test (Student): do two methods that were scored on the same splits differ?

    Parameters
    ----------
    a, b : array-like, shape (n,)
        Scores on the same splits in the same order, n >= 2: `CrossValidation.scores`, a row of `Selection.scores`.
    confidence : float, default 0.95
        Of the interval, between 0 and 1.

    Returns
    -------
    TTest
        Differences that are all the same have no spread: then t is 0 with p = 1 where they are 0, else t is infinite
        with p = 0, and the interval is one number.

    Raises
    ------
    TypeError, ValueError
        For scores that are no finite numbers, of other lengths, or fewer than two.

    Notes
    -----
    The test takes differences to be independent. Scores of folds are not: their training parts overlap, so that their
    spread is too small and p as well. Dietterich found that such a test of cross-validation scores, and far more so one
    of scores of repeated random splits, sees differences too often where there are none; Nadeau and Bengio give the
    reason and a correction. Read p as a hint, not as a probability. The LDM paper tests 30 random halves of the data
    this way, at 95 %.

    References
    ----------
    T. G. Dietterich, "Approximate statistical tests for comparing supervised classification learning algorithms",
    Neural Computation 10, 1998. C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine Learning 52,
    2003. T. Zhang and Z.-H. Zhou, "Large margin distribution machine", KDD 2014.
    """
    first, second = _checked_significance_scores(a, "a"), _checked_significance_scores(b, "b")
    if first.shape != second.shape:
        raise ValueError(
            f"a has {first.size} scores and b has {second.size}; a paired test needs both on the same splits, or take "
            "welch_test"
        )
    d, blur = first - second, _significance_rounding(first, second)
    return _t_test(float(d.mean()), _significance_variance(d, blur) / d.size, d.size - 1.0, blur, confidence)


def welch_test(a: Any, b: Any, confidence: float = 0.95) -> TTest:
    """Significance by Welch's t-test, for unequal variances: do two methods scored on different splits differ?

    Parameters
    ----------
    a, b : array-like, shape (n_a,) and (n_b,)
        Scores, at least two of each.
    confidence : float, default 0.95
        Of the interval, between 0 and 1.

    Returns
    -------
    TTest
        Scores without any spread are answered as in `paired_test`.

    Raises
    ------
    TypeError, ValueError
        For scores that are no finite numbers, or fewer than two.

    Notes
    -----
    Scores of overlapping splits are not independent; see `paired_test`, which is also the sharper test where both
    methods were scored on the same splits.

    References
    ----------
    B. L. Welch, "The generalization of Student's problem when several different population variances are involved",
    Biometrika 34, 1947.
    """
    first, second = _checked_significance_scores(a, "a"), _checked_significance_scores(b, "b")
    blur = _significance_rounding(first, second)
    parts = np.array(
        [_significance_variance(first, blur) / first.size, _significance_variance(second, blur) / second.size]
    )
    df = first.size + second.size - 2.0
    if parts.any():
        share = parts / parts.max()  # squares of small variances would vanish
        df = float(share.sum() ** 2 / (share**2 / np.array([first.size - 1, second.size - 1])).sum())
    return _t_test(float(first.mean() - second.mean()), float(parts.sum()), df, blur, confidence)


def _checked_significance_scores(values: Any, name: str) -> np.ndarray:
    """Scores for a test of significance, checked: two or more in one dimension."""
    scores = validate_margin_array(values, name)
    if scores.ndim != 1:
        raise ValueError(f"{name} has shape {scores.shape}; give a list of scores, shape (n,)")
    if scores.size < 2:
        raise ValueError(f"{name} has one score, which says nothing about the spread of scores; give two or more")
    return scores


def _significance_rounding(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference of two scores that may be rounding alone, for a test of significance."""
    return 4.0 * float(np.finfo(float).eps) * max(float(np.abs(a).max()), float(np.abs(b).max()))


def _significance_variance(values: np.ndarray, blur: float) -> float:
    """Variance of scores in a test of significance, divisor n - 1; 0 where it is no more than rounding."""
    return 0.0 if float(np.ptp(values)) <= blur else float(values.var(ddof=1))


def _t_test(difference: float, variance: float, df: float, blur: float, confidence: float) -> TTest:
    """Result of a t-test of significance, from the difference, its variance and the degrees of freedom."""
    # scipy.stats takes a second to import: only who tests pays for it.
    from scipy.stats import t as student

    confidence = validate_margin_number(confidence, "confidence")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r} is not between 0 and 1; give, for example, 0.95")
    if variance == 0:
        if abs(difference) <= blur:
            return TTest(0.0, 0.0, df, 1.0, 0.0, 0.0, confidence)
        return TTest(difference, math.copysign(math.inf, difference), df, 0.0, difference, difference, confidence)
    error = math.sqrt(variance)
    reach = float(student.ppf(0.5 + 0.5 * confidence, df)) * error
    pvalue = 2.0 * float(student.sf(abs(difference) / error, df))
    return TTest(difference, difference / error, df, pvalue, difference - reach, difference + reach, confidence)
