"""Decisions about several classes from problems of two: one per pair of classes, and what their values say."""

from __future__ import annotations

from itertools import combinations

import numpy as np

PAIRWISE = ("ovo", "fuzzy-min", "fuzzy-avg")
EACH_LABEL = "each"
"""Way of several labels a row: one problem for each label, two labels included."""


def class_decision_pairs(k: int) -> list[tuple[int, int]]:
    """Pairs (low, high) of classes that one-vs-one problems decide, in their order; the high one is positive."""
    return list(combinations(range(k), 2))


def n_decision_functions(k: int, multiclass: str) -> int:
    """Number of decision functions for k classes: rows of coefficients; one without decision values by class."""
    if multiclass == EACH_LABEL:
        return k
    if k in (0, 2) or multiclass == "none":
        return 1
    return k * (k - 1) // 2 if multiclass in PAIRWISE else k


def class_decision_values(F: np.ndarray, k: int, multiclass: str) -> np.ndarray:
    """Decision values of classes, from those of all problems, F (n, p): (n,), or (n, k) for k > 2 classes or labels."""
    if multiclass == EACH_LABEL:
        return F
    if k <= 2 or multiclass == "none":
        return F[:, 0]
    return class_decision_scores(F, k, multiclass) if multiclass in PAIRWISE else F


def labels_of_decisions(classes: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Labels from decision values: f = 0 is the second label; ties go to the first class."""
    labels: np.ndarray = classes[_codes_of_decisions(f)]
    return labels


def _codes_of_decisions(f: np.ndarray) -> np.ndarray:
    """Class index that each row's decision values stand for."""
    return (f >= 0).astype(np.intp) if f.ndim == 1 else f.argmax(axis=1)


def class_decision_scores(F: np.ndarray, k: int, multiclass: str) -> np.ndarray:
    """Return (n, k) scores of classes from the decision values F (n, pairs) of one-vs-one problems.

    "ovo": votes, plus the summed values squashed into (-1/3, 1/3), which only order equal votes. "fuzzy-min" and
    "fuzzy-avg": memberships of Abe's fuzzy pairwise classification, the minimum or the average over the other classes
    of min(1, D_ij).
    """
    if multiclass == "ovo":
        return _votes_of_decisions(F, k)
    member = np.full((F.shape[0], k), np.inf if multiclass == "fuzzy-min" else 0.0)
    for p, (low, high) in enumerate(class_decision_pairs(k)):
        for code, value in ((low, -F[:, p]), (high, F[:, p])):
            capped = np.minimum(1.0, value)
            if multiclass == "fuzzy-min":
                np.minimum(member[:, code], capped, out=member[:, code])
            else:
                member[:, code] += capped / (k - 1)
    return member


def _votes_of_decisions(F: np.ndarray, k: int) -> np.ndarray:
    """Votes for k classes from decision values of pairs, with a share of less than a vote that breaks ties."""
    votes, total = np.zeros((F.shape[0], k)), np.zeros((F.shape[0], k))
    for p, (low, high) in enumerate(class_decision_pairs(k)):
        votes[:, low] += F[:, p] < 0
        votes[:, high] += F[:, p] >= 0
        total[:, low] -= F[:, p]
        total[:, high] += F[:, p]
    return votes + total / (3.0 * (np.abs(total) + 1.0))


def class_probabilities(f: np.ndarray) -> np.ndarray:
    """Probabilities of classes from decision values: sigma(f) over the sum, (n, k), for scores (n,) of two or (n, k).

    Where rounding makes the predicted class one of several equal ones, it gets the next larger number.
    """
    predicted = _codes_of_decisions(f)
    if f.ndim == 1:
        f = np.column_stack([-f, f])
    # ln sigma(f): scores of -1000 for every class still have a largest one.
    logs = -np.logaddexp(0.0, -f)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    result: np.ndarray = shares / shares.sum(axis=1, keepdims=True)
    tied = np.flatnonzero(result.argmax(axis=1) != predicted)
    result[tied, predicted[tied]] = np.nextafter(result[tied].max(axis=1), 2.0)
    return result
