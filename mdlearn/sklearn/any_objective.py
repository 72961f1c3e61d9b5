"""Kernel estimators for scikit-learn of any objective by name: of classes, of regression, and of other tasks."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, column_or_1d

from mdlearn.data.labels import check_some_labels
from mdlearn.model.class_decisions import n_decision_functions
from mdlearn.model.task import task_of
from mdlearn.plugins.registry import find
from mdlearn.sklearn.base import BaseKernelClassifier, KernelEstimator
from mdlearn.sklearn.declared_params import DeclaredParams
from mdlearn.sklearn.documents import documented_estimator


@documented_estimator
class MarginClassifier(DeclaredParams, BaseKernelClassifier):
    """Kernel classifier by any objective of classes, plugins' ones too.

    Objectives of two more tasks come by plugins: labels of which some are unknown (y is -1 there, NaN among floats),
    and several labels a row (y is a matrix of 0 and 1, and so is what `predict` returns).
    A subclass ``class Mine(MarginClassifier, objective=Objective)`` has its objective's hyper-parameters as its own.

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
        if not task_of(found).by_class:
            told = f"{found.name!r} is one of {task_of(found).name}"
            raise ValueError(f"MarginClassifier needs an objective of classes; {told}")
        return found

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Rows and y; scikit-learn's own check knows no unknown labels, which may be NaN or None."""
        kind = task_of(self._task()).y
        if kind == "labels":
            return super()._checked(X, y)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        X = self._rows(X, reset=True)
        if kind == "some labels":
            y = column_or_1d(y, warn=True)
            known = y[~np.isnan(y)] if y.dtype.kind == "f" else y
            assert_all_finite(known, input_name="y")
            check_classification_targets(known)
        return X, y

    def _n_problems(self, y: Any) -> int:
        """Number of problems, as far as y tells."""
        kind = task_of(self._task())
        if kind.y == "indicators":
            return int(np.shape(y)[-1])
        if kind.y == "some labels":
            return n_decision_functions(check_some_labels(y, y.shape[0])[0].shape[0], "ovr")
        return super()._n_problems(y)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of right labels; of rows with several labels, of those with all of them right.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,) or (n, k)
            Labels. Rows whose label is unknown (for objectives that know such rows) do not count.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        if task_of(self._task()).y == "labels":
            return float(super().score(X, y, sample_weight))
        return float(self._fitted.score(self._rows(X), y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(TypeError, ValueError):  # a wrong objective is told at fit
            tags.classifier_tags.multi_label = task_of(self._task()).y == "indicators"
        return tags


@documented_estimator
class MarginRegressor(DeclaredParams, RegressorMixin, KernelEstimator):
    """Kernel regressor by any objective of regression, plugins' ones too.

    A subclass ``class Mine(MarginRegressor, objective=Objective)`` has its objective's hyper-parameters as its own.

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


@documented_estimator
class MarginEstimator(DeclaredParams, KernelEstimator):
    """Kernel estimator by any objective whose task is neither classes nor regression, such as one class or an order.

    Plugins bring these tasks. `predict` and `score` are those of the model: what they mean is the task's business.
    Where that has rows alone, y may be None.
    A subclass ``class Mine(MarginEstimator, objective=Objective)`` has its objective's hyper-parameters as its own.

    Parameters
    ----------
    objective : str, Objective class or instance
        See `mdlearn.list_objectives`.
    params : mapping, optional
        Hyper-parameters of the objective by name; searched over as ``params__NAME``.
    %(shared)s

    Attributes
    ----------
    %(attributes)s

    Examples
    --------
    >>> import mdlearn
    >>> from mdlearn.extend import HingeTerm, Model, Task, Terms
    >>> from mdlearn.sklearn import MarginEstimator
    >>> class LevelModel(Model):
    ...     task = "level"
    ...
    ...     def predictions(self, f):
    ...         return f >= 0.5
    >>> class Level(mdlearn.Objective):
    ...     name, parameters, task = "level", {}, Task("none", LevelModel)
    ...
    ...     def terms(self, params, total):
    ...         return Terms(loss=(HingeTerm(1.0, power=2),))
    >>> MarginEstimator(Level).fit([[1.0], [1.2]]).predict([[1.1], [-3.0]])
    array([ True, False])
    """

    objective: Any = field(kw_only=False)
    params: Mapping[str, Any] | None = None

    def _task(self) -> Any:
        """The objective; ValueError for one that another estimator is for."""
        found = find("objective", self.objective)
        task = task_of(found)
        if task.by_class or task.built_in:
            other = "MarginClassifier" if task.by_class else "MarginRegressor"
            raise ValueError(f"MarginEstimator is for other tasks; {found.name!r} is one of {task.name}, take {other}")
        return found

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Rows in scikit-learn's words, and y as it is for the task to read; scikit-learn hands one to all."""
        return self._rows(X, reset=True), None if task_of(self._task()).y == "none" else y

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit and certify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            Training rows, as other estimators take them.
        y : array-like of shape (m,), optional
            What the task reads; not looked at where it has rows alone.
        sample_weight : array-like of shape (m,), optional
            Repetition counts >= 0: an integer weight equals repeated rows.

        Returns
        -------
        estimator
            This one.
        """
        return super().fit(X, y, sample_weight)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._fitted.decision_function(self._rows(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the score of the model, larger where better.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,), optional
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        return float(self._fitted.score(self._rows(X), y, sample_weight))
