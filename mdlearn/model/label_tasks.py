"""Tasks of labels that plugins bring objectives for: labels of which some are unknown, and several labels a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.labels import check_label_indicators, check_model_labels, check_some_labels
from mdlearn.data.validation import check_weights
from mdlearn.model.model import Model
from mdlearn.model.task import Task


class SemiSupervisedModel(Model):
    """Fitted model of labels of which some were unknown: as `Model`; rows of unknown labels are not judged.

    Attributes
    ----------
    n_support_ : ndarray of shape (k,)
        Number of support rows that are known to be of each class.
    """

    task: ClassVar[str] = "semi-supervised"

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the (weighted) share of right labels among the rows whose label is known.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
            Labels, -1 (NaN among floats) where unknown.
        sample_weight : array-like of shape (n,), optional
            Repetition counts. Default: 1 for every row.

        Returns
        -------
        float
            Within [0, 1].
        """
        predicted = self.predict(X)
        classes, codes = check_some_labels(y, predicted.shape[0])
        known, weights = codes >= 0, check_weights(sample_weight, predicted.shape[0])
        if not (weights[known] > 0).any():
            raise ValueError("y has no known label in a row of positive weight; a score needs one")
        own = check_model_labels(classes[codes[known]], np.arange(int(known.sum())), self.classes_)
        return float(np.average(predicted[known] == self.classes_[own], weights=weights[known]))


class MultiLabelModel(Model):
    """Fitted model of several labels a row: as `Model`, with a decision value and a prediction for each label.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Labels: numbers of the columns of y, or its column names.
    n_support_ : ndarray of shape (k,)
        Number of support rows that have each label.
    """

    task: ClassVar[str] = "multi-label"

    def predictions(self, f: np.ndarray) -> np.ndarray:
        """Return which labels decision values (n, k) stand for: 1 where f >= 0, else 0, shape (n, k)."""
        return (f >= 0).astype(np.intp)

    def _certain(self, f: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Whether all decision values between the bounds stand for the same labels, shape (n,)."""
        alike = (self.predictions(lower) == self.predictions(upper)) & (lower <= f) & (f <= upper)
        same: np.ndarray = alike.all(axis=1)
        return same

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the (weighted) share of rows with all labels right.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like or sparse matrix of shape (n, k)
            0 and 1 of each label.
        sample_weight : array-like of shape (n,), optional
            Repetition counts. Default: 1 for every row.

        Returns
        -------
        float
            Within [0, 1].
        """
        predicted = self.predict(X)
        right = (predicted == self._labels(y, predicted.shape[0])).all(axis=1)
        return float(np.average(right, weights=check_weights(sample_weight, predicted.shape[0])))

    def margins(self, X: Any, y: Any, normalized: bool = False, per_class: bool = False) -> np.ndarray:
        """Return margins s f, s = 1 for labels that a row has, else -1: the smallest of each row, (n,), or all, (n, k).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like or sparse matrix of shape (n, k)
        normalized : bool, default False
            Divide those of each label by its |w|.
        per_class : bool, default False
            Return those of all labels, (n, k).

        Returns
        -------
        ndarray of shape (n,) or (n, k), float64
        """
        f = self.decision_function(X)
        z = np.where(self._labels(y, f.shape[0]), f, -f)
        if normalized:
            z = z / np.where(self._norms > 0, self._norms, 1.0)
        return z if per_class else z.min(axis=1)

    @property
    def predict_proba(self) -> Callable[[Any], np.ndarray]:
        """AttributeError: the probabilities of classes add up to 1, those of labels do not."""
        raise AttributeError(f"predict_proba does not exist: rows of {self.objective!r} may have several labels")

    def _labels(self, y: Any, n: int) -> np.ndarray:
        """Return which labels rows have, (n, k), bool; ValueError for another number of labels than at fit."""
        found = check_label_indicators(y, n)[1]
        if found.shape[1] != self.classes_.shape[0]:
            raise ValueError(f"y has {found.shape[1]} columns; the model knows {self.classes_.shape[0]} labels")
        return found


SEMI_SUPERVISED = Task("some labels", SemiSupervisedModel, by_class=True)
"""Task of classes where the labels of some rows are unknown."""
MULTI_LABEL = Task("indicators", MultiLabelModel, by_class=True)
"""Task of rows that have any number of several labels."""
