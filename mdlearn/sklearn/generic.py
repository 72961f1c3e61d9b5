"""The classifier of any objective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from mdlearn.plugins.manager import find
from mdlearn.sklearn.base import KernelClassifier
from mdlearn.sklearn.documents import estimator
from mdlearn.sklearn.params import entries


@estimator
class MarginClassifier(KernelClassifier):
    """Classifier of any objective of classes, plugins' ones too.

    Parameters
    ----------
    objective : str, Objective class or instance, default "ldm"
        See `mdlearn.list_objectives`.
    params : mapping, optional
        Hyper-parameters of the objective by name; searched over as ``params__NAME``.
    %(shared)s

    Attributes
    ----------
    %(attributes)s

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from mdlearn.sklearn import MarginClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> search = GridSearchCV(MarginClassifier("ww"), {"params__C": [0.1, 1.0]}, cv=3).fit(X, y)
    >>> sorted(search.best_estimator_.params)
    ['C']
    """

    objective: Any = field(default="ldm", kw_only=False)
    params: Mapping[str, Any] | None = None

    def _task(self) -> Any:
        """The objective; ValueError for one of regression."""
        found = find("objective", self.objective)
        if found.task != "classification":
            raise ValueError(f"MarginClassifier needs an objective of classes; {found.name!r} is one of {found.task}")
        return found

    def _own(self) -> dict[str, Any]:
        """Hyper-parameters as given."""
        return entries(self.params, "params")
