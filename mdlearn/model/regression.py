"""The fitted model of an objective whose task is regression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.labels import check_targets
from mdlearn.data.validation import check_weights
from mdlearn.model.model import Model


class RegressionModel(Model):
    """Fitted model of a regression: as `Model`, but predictions are numbers, and there are no classes and no margins.

    Attributes
    ----------
    classes_ : ndarray of shape (0,)
        There are none.
    n_support_ : ndarray of shape (1,)
        Number of training rows with a non-zero dual coefficient.
    """

    task: ClassVar[str] = "regression"
    measure: ClassVar[str] = "R^2"

    def predictions(self, f: np.ndarray) -> np.ndarray:
        """Return decision values as they are: they are the numbers, shape (n,), float64, that `predict` returns."""
        return f

    def certified(self, X: Any) -> np.ndarray:
        """Raise TypeError: labels belong to classes."""
        raise TypeError(
            f"{self.objective!r} is a regression, which has no labels; decision_bounds(X) bounds its numbers"
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 = 1 - sum c (y - f)^2 / sum c (y - mean y)^2; of equal numbers, 1 if all are met, else 0."""
        f = self.predict(X)
        return r2(check_targets(y, f.shape[0]), f, check_weights(sample_weight, f.shape[0]))

    def margins(self, X: Any, y: Any, normalized: bool = False, per_class: bool = False) -> np.ndarray:
        """Raise TypeError: margins belong to classes."""
        raise TypeError(f"{self.objective!r} is a regression, which has no margins; residuals are predict(X) - y")

    @property
    def predict_proba(self) -> Callable[[Any], np.ndarray]:
        """AttributeError: probabilities belong to classes."""
        raise AttributeError(f"predict_proba does not exist: {self.objective!r} is a regression")


def r2(y: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None = None) -> float:
    """R^2 of a regression's predictions of y, see `RegressionModel.score`; `weights` are counts, None: one each."""
    counts = np.ones(y.shape[0]) if weights is None else weights
    missed = float(counts @ np.square(y - predicted))
    spread = float(counts @ np.square(y - float(np.average(y, weights=counts))))
    return 1.0 - missed / spread if spread > 0 else float(missed == 0)
