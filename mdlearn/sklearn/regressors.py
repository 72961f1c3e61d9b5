"""Kernel regressor for scikit-learn, for any objective of regression by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from sklearn.base import RegressorMixin

from mdlearn.model.task import task_of
from mdlearn.plugins.registry import find
from mdlearn.sklearn.base import KernelEstimator
from mdlearn.sklearn.documents import estimator
from mdlearn.sklearn.params import param_entries


@estimator
class MarginRegressor(RegressorMixin, KernelEstimator):
    """Kernel regressor by any objective of regression, plugins' ones too.

    Parameters
    ----------
    objective : str, Objective class or instance, default "svr"
        See `mdlearn.list_objectives`.
    params : mapping, optional
        Hyper-parameters of the objective by name; searched over as ``params__NAME``.
    %(shared)s

    Attributes
    ----------
    %(attributes)s

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.preprocessing import scale
    >>> from mdlearn.sklearn import MarginRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = GridSearchCV(MarginRegressor(tol=1e-6), {"params__C": [0.1, 1.0]}, cv=3).fit(X, scale(y))
    >>> bool(search.best_score_ > 0.4), search.best_estimator_.certificate_.converged
    (True, True)
    """

    objective: Any = field(default="svr", kw_only=False)
    params: Mapping[str, Any] | None = None

    def _task(self) -> Any:
        """The objective; ValueError for one of another task."""
        found = find("objective", self.objective)
        name = task_of(found).name
        if name != "regression":
            raise ValueError(f"MarginRegressor needs an objective of regression; {found.name!r} is one of {name}")
        return found

    def _own(self) -> dict[str, Any]:
        """Hyper-parameters as given."""
        return param_entries(self.params, "params")
