"""Statistics of margins: mean, variance, tails, curve and decomposition by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.margins.validation import (
    ROUNDING_OF_MARGINS,
    validate_margin_array,
    validate_margin_counts,
    validate_margin_number,
    validate_margin_signs,
    validate_margins,
)


def mean(z: Any, sample_weight: Any = None) -> float:
    """Statistic of margins: their mean.

    Parameters
    ----------
    z : array-like, shape (n,)
        Margins ``y f(x)``.
    sample_weight : array-like, shape (n,), optional
        Repetition counts, not negative. Default: 1 for every row.

    Returns
    -------
    float
        ``sum(w z) / m`` with ``m = sum(w)``.

    Raises
    ------
    TypeError
        If an argument does not hold real numbers.
    ValueError
        If an argument is empty, not finite, of the wrong shape, or if the weights are negative or all zero.
    """
    z, w = validate_margins(z, sample_weight)
    return float(w @ z / w.sum())


def variance(z: Any, sample_weight: Any = None) -> float:
    """Statistic of margins: their population variance (divisor ``m = sum(sample_weight)``).

    This is the one variance that every objective of this package is written in; LDM's own term is
    ``gamma_hat = 2 Var(z)`` (Zhang & Zhou, eq. 4).

    Parameters
    ----------
    z : array-like, shape (n,)
        Margins ``y f(x)``.
    sample_weight : array-like, shape (n,), optional
        Repetition counts, not negative. Default: 1 for every row.

    Returns
    -------
    float
        ``sum(w (z - mean)^2) / m``.

    Raises
    ------
    TypeError, ValueError
        As for `mean`.
    """
    z, w = validate_margins(z, sample_weight)
    centred = z - w @ z / w.sum()
    with np.errstate(over="ignore"):  # infinite, then
        return float(w @ (centred * centred) / w.sum())


def minimum(z: Any, sample_weight: Any = None) -> float:
    """Statistic of margins: the smallest among the rows of positive weight.

    Parameters
    ----------
    z : array-like, shape (n,)
        Margins ``y f(x)``.
    sample_weight : array-like, shape (n,), optional
        Repetition counts, not negative. Default: 1 for every row.

    Returns
    -------
    float

    Raises
    ------
    TypeError, ValueError
        As for `mean`.
    """
    z, _ = validate_margins(z, sample_weight)
    return float(z.min())


def top_p(z: Any, p: float, sample_weight: Any = None) -> float:
    """Statistic of margins: the mean of the ``p`` smallest.

    ``p`` is a count of rows, repetitions included; it is not a share and not a rank. ``p = 1`` gives the
    minimum margin, ``p = m`` gives the mean margin. For the lowest tenth of the rows pass ``0.1 * m``.

    Parameters
    ----------
    z : array-like, shape (n,)
        Margins ``y f(x)``.
    p : float
        Number of rows to average, ``0 < p <= m``. If it ends inside a repeated row, the part that belongs
        to it is counted.
    sample_weight : array-like, shape (n,), optional
        Repetition counts, not negative. Default: 1 for every row.

    Returns
    -------
    float

    Raises
    ------
    TypeError, ValueError
        As for `mean`; also if ``p`` is outside ``(0, m]``.
    """
    z, w = validate_margins(z, sample_weight)
    total = float(w.sum())
    p = validate_margin_number(p, "p")
    if not 0 < p <= total * (1 + ROUNDING_OF_MARGINS):
        raise ValueError(f"p={p:g} is not a count of rows in (0, m]; here m = {total:g} (repetitions included)")
    order = np.argsort(z, kind="stable")
    z, w = z[order], w[order]
    before = np.cumsum(w) - w
    taken = np.clip(p - before, 0.0, w)
    return float(taken @ z / taken.sum())


def cumulative_curve(z: Any, sample_weight: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Statistics of margins as a curve: their cumulative distribution (LDM paper, figure 1).

    Parameters
    ----------
    z : array-like, shape (n,)
        Margins ``y f(x)``.
    sample_weight : array-like, shape (n,), optional
        Repetition counts, not negative. Default: 1 for every row.

    Returns
    -------
    values : ndarray, shape (k,)
        The distinct margins, ascending.
    share : ndarray, shape (k,)
        Share of the rows, repetitions included, whose margin is at most ``values[j]``; the last is 1.

    Raises
    ------
    TypeError, ValueError
        As for `mean`.

    Notes
    -----
    Equal margins are merged, so that repeated rows and integer weights give the same two arrays.
    """
    z, w = validate_margins(z, sample_weight)
    values, place = np.unique(z, return_inverse=True)
    share = np.cumsum(np.bincount(place.ravel(), weights=w, minlength=values.size))
    return values, share / share[-1]


@dataclass(frozen=True, eq=False)
class MarginDecomposition:
    """Statistics of linear margins, mean and variance, directly and from the two classes; see `decomposition`.

    Attributes
    ----------
    mean, variance : float
        Left sides: computed from the margins ``z_i = y_i (w.x_i + b)`` themselves.
    mean_from_classes, variance_from_classes : float
        Right sides of (2.10) and (2.13). The variance is the sum ``within + between``.
    within : float
        ``(1/N) w'(N_pos S_pos + N_neg S_neg) w``.
    between : float
        ``(N_pos N_neg / N^2) (w.(x_pos + x_neg) + 2b)^2``.
    n_pos, n_neg : float
        Rows per class, repetitions included.
    mean_pos, mean_neg : ndarray, shape (d,)
        Class means of the features.
    covariance_pos, covariance_neg : ndarray, shape (d, d)
        Class covariances of the features, divisors ``n_pos`` and ``n_neg``.
    """

    mean: float
    variance: float
    mean_from_classes: float
    variance_from_classes: float
    within: float
    between: float
    n_pos: float
    n_neg: float
    mean_pos: np.ndarray
    mean_neg: np.ndarray
    covariance_pos: np.ndarray
    covariance_neg: np.ndarray


def decomposition(X: Any, y: Any, coef: Any, sample_weight: Any = None, *, intercept: Any = 0.0) -> MarginDecomposition:
    """Split statistics of linear margins, mean and variance, into the parts that the two classes contribute.

    Parameters
    ----------
    X : array-like, shape (n, d)
        Dense rows.
    y : array-like, shape (n,)
        Two labels; the second in sorted order is the class +1.
    coef : array-like, shape (d,) or (1, d)
        Weight vector ``w``, for instance ``model.coef_``.
    sample_weight : array-like, shape (n,), optional
        Repetition counts, not negative. Default: 1 for every row.
    intercept : float or array-like of one number, default 0
        Bias ``b``. The paper has none; with it the class means of the margin shift by ``b``.

    Returns
    -------
    MarginDecomposition
        Both sides, with the class means and covariances. They need ``2 d^2`` numbers.

    Raises
    ------
    TypeError, ValueError
        As for `mean`; also if the shapes do not fit or if there are not exactly two classes.

    Notes
    -----
    Ding, Huang, Zu & Zhang, Margin Distribution Logistic Machine, eq. (2.10) and (2.13). Their (2.12) has
    ``N_pos^2 N_neg / N^2`` where ``N_pos N_neg^2 / N^2`` is right; (2.13) is right as printed, with
    ``(x_pos + x_neg)^2`` read as the outer product.
    """
    X = validate_margin_array(X, "X")
    if X.ndim != 2 or X.shape[1] == 0:
        raise ValueError(f"X has shape {X.shape}, but rows and columns, shape (n, d), are needed")
    w = validate_margin_array(coef, "coef")
    if w.ndim == 2 and w.shape[0] == 1:
        w = w[0]
    if w.shape != (X.shape[1],):
        raise ValueError(f"coef has shape {w.shape}, but X has {X.shape[1]} columns; give one number per column")
    b = validate_margin_array(intercept, "intercept")
    if b.size != 1:
        raise ValueError(f"intercept has {b.size} numbers, but one is needed")
    bias = float(b.reshape(-1)[0])
    weights = validate_margin_counts(sample_weight, X.shape[0])
    signs, used = validate_margin_signs(y, X, "X", weights), weights > 0
    X, signs, weights = X[used], signs[used], weights[used]
    positive = signs > 0
    n_pos, mean_pos, cov_pos = _class_margin_statistics(X[positive], weights[positive])
    n_neg, mean_neg, cov_neg = _class_margin_statistics(X[~positive], weights[~positive])
    n = n_pos + n_neg
    z = signs * (X @ w + bias)
    f_pos, f_neg = float(w @ mean_pos) + bias, float(w @ mean_neg) + bias
    within = float(w @ (n_pos * cov_pos + n_neg * cov_neg) @ w) / n
    between = n_pos * n_neg / n**2 * (f_pos + f_neg) ** 2
    return MarginDecomposition(
        mean=mean(z, weights),
        variance=variance(z, weights),
        mean_from_classes=n_pos / n * f_pos - n_neg / n * f_neg,
        variance_from_classes=within + between,
        within=within,
        between=between,
        n_pos=n_pos,
        n_neg=n_neg,
        mean_pos=mean_pos,
        mean_neg=mean_neg,
        covariance_pos=cov_pos,
        covariance_neg=cov_neg,
    )


def _class_margin_statistics(X: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Statistics of one class, for the decomposition of margins: count, mean and covariance of its rows."""
    total = float(weights.sum())
    centre = weights @ X / total
    centred = X - centre
    return total, centre, (centred * weights[:, None]).T @ centred / total
