"""Scoring of held-out rows: scores from decision values, or the caller's own function of a model."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.errors import did_you_mean
from mdlearn.model.class_decisions import class_probabilities, labels_of_decisions
from mdlearn.model.regression import r2
from mdlearn.selection import metrics

WHOLE = ("ovr", "joint")
"""Ways of several classes with one score per class, of which probabilities are made."""

Score = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], float]
"""score(classes, f, y, weights) from decision values f of shape (n,) or (n, k)."""


def _score_by_labels(score: Callable[[np.ndarray, np.ndarray, np.ndarray], float]) -> Score:
    """Scoring function of decision values that compares the labels which they stand for."""
    return lambda classes, f, y, weights: score(y, labels_of_decisions(classes, f), weights)


def _score_auc(classes: np.ndarray, f: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Scoring by the AUC of decision values: for the second of two classes, else the mean of each against the rest."""
    if f.ndim == 1:
        return metrics.auc(y == classes[1], f, weights)
    return float(np.mean([metrics.auc(y == label, f[:, j], weights) for j, label in enumerate(classes)]))


def _score_f1(classes: np.ndarray, f: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Scoring by the F1 of decision values, for the second of two classes."""
    return metrics.f1(y == classes[1], f >= 0, weights)


def _score_log_loss(classes: np.ndarray, f: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Scoring by the negative log loss of class probabilities."""
    place = np.searchsorted(classes, y)
    return metrics.neg_log_loss(class_probabilities(f)[np.arange(place.shape[0]), place], weights)


def _score_by_all_labels(classes: np.ndarray, f: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Scoring by the share of rows with all of several labels right."""
    return float(np.average(((f >= 0) == (y > 0)).all(axis=1), weights=weights))


def _score_by_each_label(classes: np.ndarray, f: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Scoring by the share of right entries of the matrix of several labels: 1 less the Hamming loss."""
    return float(np.average(((f >= 0) == (y > 0)).mean(axis=1), weights=weights))


def _score_f1_of_labels(classes: np.ndarray, f: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Scoring by the mean over several labels of their F1."""
    return float(np.mean([metrics.f1(y[:, j] > 0, f[:, j] >= 0, weights) for j in range(f.shape[1])]))


def _score_f1_of_entries(classes: np.ndarray, f: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Scoring by the F1 of all entries of the matrix of several labels together."""
    return metrics.f1((y > 0).ravel(), (f >= 0).ravel(), np.repeat(weights, f.shape[1]))


NAMED: dict[str, dict[str, Score]] = {
    "classification": {
        "accuracy": _score_by_labels(metrics.accuracy),
        "balanced_accuracy": _score_by_labels(metrics.balanced_accuracy),
        "auc": _score_auc,
        "roc_auc": _score_auc,
        "f1": _score_f1,
        "f1_macro": _score_by_labels(metrics.f1_macro),
        "f1_micro": _score_by_labels(metrics.f1_micro),
        "neg_log_loss": _score_log_loss,
    },
    "regression": {"r2": lambda classes, f, y, weights: r2(y, f, weights)},
    "multi-label": {
        "accuracy": _score_by_all_labels,
        "hamming": _score_by_each_label,
        "f1_macro": _score_f1_of_labels,
        "f1_micro": _score_f1_of_entries,
    },
}
NAMED["semi-supervised"] = NAMED["classification"]
"""Scores by task and name; the first of each task is its default."""


@dataclass(frozen=True)
class Scoring:
    """Scoring by which held-out rows are judged: larger is better."""

    name: str
    values: Score | None  # score from decision values
    function: Callable[..., Any] | None = None  # the caller's function(model, X, y), if there is one instead
    borrowed: bool = False  # whether it is scikit-learn's, found by its name

    @property
    def all_classes(self) -> bool:
        """Whether held-out rows need to be of every class."""
        return self.values is _score_auc

    def check(self, objective: Any, multiclass: str, n_classes: int) -> None:
        """Raise ValueError before any fit where the models will not have what is scored."""
        if self.values is _score_log_loss and not (objective.probabilities and (n_classes < 3 or multiclass in WHOLE)):
            raise ValueError(
                f"scoring={self.name!r} needs probabilities, which models of {objective.name!r} with multiclass="
                f"{multiclass!r} do not have; give another scoring, or an objective such as 'l2lr'"
            )
        if self.values is _score_f1 and n_classes > 2:
            raise ValueError(f"scoring='f1' is for two classes and y has {n_classes}; give 'f1_macro' or 'f1_micro'")

    def call(self, model: Any, X: Any, y: Any, weights: np.ndarray | None) -> float:
        """Score by the caller's function; it is given weights where there are some."""
        assert self.function is not None
        try:
            told = self.function(model, X, y) if weights is None else self.function(model, X, y, sample_weight=weights)
        except AttributeError as error:
            if self.borrowed:
                raise ValueError(f"scoring={self.name!r} cannot judge these models: {error}") from error
            raise
        try:
            return float(told)
        except (TypeError, ValueError):
            raise TypeError(f"scoring returned {told!r:.60}; it needs to return a number") from None


def scoring_of(given: Any, task: str, weighted: bool = False) -> Scoring:
    """Find what `scoring` means for the task of this name; `weighted` says that a function will be given weights.

    Models of a plugin's task are judged by their `score`, unless something else is given.

    Raises ValueError, TypeError for an unknown name, or a function that does not take `sample_weight` although there
    are weights.
    """
    known = NAMED.get(task, {"score": None})
    if given is None:
        given = next(iter(known))
    if given == "score" and task not in NAMED:
        return Scoring("score", None, lambda model, X, y, sample_weight=None: model.score(X, y, sample_weight))
    if isinstance(given, str):
        if given in known:
            return Scoring(given, known[given])
        elsewhere = any(given in names for names in NAMED.values())
        found, others = _sklearn_scorer(given) if not elsewhere else (None, [])
        if found is not None:
            return Scoring(given, None, found, borrowed=True)
        raise ValueError(
            f"scoring {given!r} is unknown for {task}; give one of {', '.join(known)}, a name that scikit-learn has, "
            f"or a callable{did_you_mean(given, [*known, *others])}"
        )
    if not callable(given):
        raise TypeError(f"scoring needs to be one of {', '.join(known)}, or a callable(model, X, y); got {given!r:.60}")
    if weighted and not _scoring_takes_weights(given):
        raise TypeError(
            "sample_weight is given, and scoring does not take it; give a callable(model, X, y, sample_weight=None), "
            "so that weights count in scores too"
        )
    return Scoring(getattr(given, "__name__", type(given).__name__), None, given)


def _sklearn_scorer(name: str) -> tuple[Callable[..., Any] | None, list[str]]:
    """Scoring function of scikit-learn by name, and all names; nothing where it is not installed."""
    try:
        from sklearn.metrics import get_scorer, get_scorer_names
    except ImportError:
        return None, []
    names: list[str] = get_scorer_names()
    return (get_scorer(name) if name in names else None), names


def _scoring_takes_weights(function: Callable[..., Any]) -> bool:
    """Whether a caller's scoring function takes the argument `sample_weight`."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # it does not say: its own error will
        return True
    return any(one.name == "sample_weight" or one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
