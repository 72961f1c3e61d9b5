"""Metrics of predictions, straight from their definitions; rows counted by weight."""

from __future__ import annotations

import numpy as np

Weights = np.ndarray | None

ROUNDING_OF_SCORES = 1e-12
"""Difference of decision values, relative to the larger of their own and the median size, that rounding makes."""


def accuracy(y: np.ndarray, predicted: np.ndarray, weights: Weights = None) -> float:
    """Metric: share of right labels.

    Parameters
    ----------
    y, predicted : ndarray of shape (n,)
        Labels, n >= 1.
    weights : ndarray of shape (n,), optional
        Repetition counts, here and below; None means one each.
    """
    return float(np.average(y == predicted, weights=weights))


def auc(positive: np.ndarray, f: np.ndarray, weights: Weights = None) -> float:
    """Metric: area under the ROC curve, the share of pairs of a positive and another row in the right order of f.

    A pair with equal f counts one half (Mann and Whitney). Equal rows may have values that differ by rounding, by their
    place in a block; so values within rounding of each other are equal.

    Parameters
    ----------
    positive : ndarray of shape (n,), bool
    f : ndarray of shape (n,)
    weights : ndarray of shape (n,), optional

    Raises
    ------
    ValueError
        When all rows are of one kind.
    """
    counts = np.ones(f.shape[0]) if weights is None else weights
    values, place = np.unique(f, return_inverse=True)
    size = np.maximum(np.abs(values), float(np.median(np.abs(f))))
    apart = np.diff(values) > ROUNDING_OF_SCORES * np.maximum(size[1:], size[:-1])
    level = np.append(0, np.cumsum(apart))[place.reshape(-1)]
    own = np.bincount(level, np.where(positive, counts, 0.0))
    others = np.bincount(level, np.where(positive, 0.0, counts))
    if own.sum() == 0 or others.sum() == 0:
        raise ValueError("the area under the ROC curve needs rows of both classes; the test part has one")
    below = np.cumsum(others) - others
    return float(own @ (below + 0.5 * others) / (own.sum() * others.sum()))


def f1_macro(y: np.ndarray, predicted: np.ndarray, weights: Weights = None) -> float:
    """Metric: mean over classes of F1 = 2 TP / (2 TP + FP + FN), without classes that neither y nor `predicted` has.

    Parameters
    ----------
    y, predicted : ndarray of shape (n,)
        Labels, n >= 1.
    weights : ndarray of shape (n,), optional
    """
    right, given, told = _metric_counts(y, predicted, weights)
    return float(np.mean(2.0 * right / (given + told)))


def f1_micro(y: np.ndarray, predicted: np.ndarray, weights: Weights = None) -> float:
    """Metric: F1 of the counts of all classes together; with one label per row that is the accuracy.

    Parameters
    ----------
    y, predicted : ndarray of shape (n,)
        Labels, n >= 1.
    weights : ndarray of shape (n,), optional
    """
    right, given, told = _metric_counts(y, predicted, weights)
    return float(2.0 * right.sum() / (given.sum() + told.sum()))


def f1(positive: np.ndarray, told: np.ndarray, weights: Weights = None) -> float:
    """Metric: F1 = 2 TP / (2 TP + FP + FN) of one class; 0 where no row is of it and none is labelled with it.

    Parameters
    ----------
    positive, told : ndarray of shape (n,), bool
        Rows of the class, and rows labelled with it.
    weights : ndarray of shape (n,), optional
    """
    counts = np.ones(positive.shape[0]) if weights is None else weights
    both = float(counts[positive].sum() + counts[told].sum())
    return 2.0 * float(counts[positive & told].sum()) / both if both > 0 else 0.0


def balanced_accuracy(y: np.ndarray, predicted: np.ndarray, weights: Weights = None) -> float:
    """Metric: mean over the classes in y of the share of their rows that are labelled right.

    Parameters
    ----------
    y, predicted : ndarray of shape (n,)
        Labels, n >= 1.
    weights : ndarray of shape (n,), optional
    """
    right, given, _ = _metric_counts(y, predicted, weights)
    return float(np.mean(right[given > 0] / given[given > 0]))


def neg_log_loss(own: np.ndarray, weights: Weights = None) -> float:
    """Metric: mean logarithm of the probability of the right label, at least that of the rounding of 1.

    Parameters
    ----------
    own : ndarray of shape (n,)
        Probability of every row's own label.
    weights : ndarray of shape (n,), optional
    """
    return float(np.average(np.log(np.maximum(own, np.finfo(float).eps)), weights=weights))


def average_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks by a metric, 1 for the largest value; equal ones share the mean of their ranks, and NaN come last.

    Parameters
    ----------
    values : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n,)
    """
    _, place, count = np.unique(-np.where(np.isnan(values), -np.inf, values), return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    ranks: np.ndarray = (last - 0.5 * (count - 1))[place.reshape(-1)]
    return ranks


def _metric_counts(y: np.ndarray, predicted: np.ndarray, weights: Weights) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts for metrics by class that occurs: rows labelled right, of the class (TP + FN), labelled so (TP + FP)."""
    classes, codes = np.unique(np.concatenate([y, predicted]), return_inverse=True)
    own, told = codes.reshape(2, -1)
    counts = np.ones(own.shape[0]) if weights is None else weights
    k = classes.shape[0]
    right = np.bincount(own[own == told], counts[own == told], minlength=k)
    return right, np.bincount(own, counts, minlength=k), np.bincount(told, counts, minlength=k)
