"""Scores of predictions, straight from their definitions."""

from __future__ import annotations

import numpy as np


def accuracy(y: np.ndarray, predicted: np.ndarray) -> float:
    """Share of right labels.

    Parameters
    ----------
    y, predicted : ndarray of shape (n,)
        Labels, n >= 1.
    """
    return float(np.mean(y == predicted))


def auc(positive: np.ndarray, f: np.ndarray) -> float:
    """Area under the ROC curve: the share of pairs of a positive and another row that f puts in the right order.

    A pair with equal f counts one half (Mann and Whitney).

    Parameters
    ----------
    positive : ndarray of shape (n,), bool
    f : ndarray of shape (n,)

    Raises
    ------
    ValueError
        When all rows are of one kind.
    """
    n_positive = int(np.count_nonzero(positive))
    n_other = positive.shape[0] - n_positive
    if n_positive == 0 or n_other == 0:
        raise ValueError("the area under the ROC curve needs rows of both classes; the test part has one")
    pairs = float(_ranks(f)[positive].sum()) - 0.5 * n_positive * (n_positive + 1)
    return pairs / (n_positive * n_other)


def f1_macro(y: np.ndarray, predicted: np.ndarray) -> float:
    """Mean over classes of F1 = 2 TP / (2 TP + FP + FN); a class that neither y nor `predicted` has is left out.

    Parameters
    ----------
    y, predicted : ndarray of shape (n,)
        Labels, n >= 1.
    """
    right, given, told = _counts(y, predicted)
    return float(np.mean(2.0 * right / (given + told)))


def f1_micro(y: np.ndarray, predicted: np.ndarray) -> float:
    """F1 of the counts of all classes together; with one label per row that is the accuracy.

    Parameters
    ----------
    y, predicted : ndarray of shape (n,)
        Labels, n >= 1.
    """
    right, given, told = _counts(y, predicted)
    return float(2.0 * right.sum() / (given.sum() + told.sum()))


def average_ranks(values: np.ndarray) -> np.ndarray:
    """Rank 1 for the largest value; equal values share the mean of their ranks, and NaN come last.

    Parameters
    ----------
    values : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n,)
    """
    return _ranks(-np.where(np.isnan(values), -np.inf, values))


def _ranks(f: np.ndarray) -> np.ndarray:
    """Rank 1 for the smallest value; equal values share the mean of their ranks."""
    _, place, count = np.unique(f, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    ranks: np.ndarray = (last - 0.5 * (count - 1))[place.reshape(-1)]
    return ranks


def _counts(y: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Per class that occurs: rows labelled right, rows of the class (TP + FN), rows labelled with it (TP + FP)."""
    classes = np.unique(np.concatenate([y, predicted]))
    own, told = y == classes[:, None], predicted == classes[:, None]
    return (own & told).sum(axis=1), own.sum(axis=1), told.sum(axis=1)
