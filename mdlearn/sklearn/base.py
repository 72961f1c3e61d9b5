"""Base classes of all scikit-learn estimators that fit: parameters, validation, the fit, and what a Model gives."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import sklearn.exceptions
from sklearn.base import BaseEstimator, ClassifierMixin, is_regressor
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mdlearn.api import certified_model
from mdlearn.data.features.kernels import PARAMETERS
from mdlearn.data.kernel_functions import kernel_function_takes_objects
from mdlearn.errors import ConvergenceWarning
from mdlearn.forms.proof import Certificate
from mdlearn.model.class_decisions import PAIRWISE, n_decision_functions
from mdlearn.objectives.base import Objective
from mdlearn.plugins.registry import find
from mdlearn.sklearn.callbacks import CallbackSupportMixin, CallbackTasks, with_callbacks
from mdlearn.sklearn.params import FLOATS, NestedParams, param_entries, sklearn_seed
from mdlearn.sklearn.streaming import Streaming
from mdlearn.sklearn.validation import validated_sklearn_input
from mdlearn.stages import DEFAULT_TOL, Call, DefaultTolerance, checked_limits

ESTIMATOR_TOL = 1e-10
"""scikit-learn's checks compare decision values to 7 digits, and objectives bound only the squares of their errors."""


class EstimatorConvergenceWarning(ConvergenceWarning, sklearn.exceptions.ConvergenceWarning):
    """A fit of an estimator stopped before its gap was `tol`: a ConvergenceWarning of scikit-learn's, too."""


@dataclass(eq=False, repr=False, kw_only=True)
class CertifiedEstimator(NestedParams, CallbackSupportMixin, BaseEstimator):
    """Base class of all scikit-learn estimators that fit: an objective's name, with its parameters as attributes."""

    bias: str | None = None
    solver: Any = "auto"
    solver_options: Mapping[str, Any] | None = None
    tol: float | str = ESTIMATOR_TOL
    max_iter: int | None = None
    time_limit: float | None = None
    random_state: Any = None
    n_threads: int | None = None
    warm_start: bool = False
    callback: Callable[[Any], Any] | None = None
    verbose: int = 0
    _objective: ClassVar[type[Objective] | None] = None

    def _task(self) -> Any:
        """The objective, a class or an instance."""
        return self._objective

    def _own(self) -> dict[str, Any]:
        """Hyper-parameters given: None stands for the objective's default."""
        task = self._task()
        given = {name: getattr(self, name) for name in (*task.parameters, *task.aliases)}
        return {name: value for name, value in given.items() if value is not None}

    def _kernel(self) -> dict[str, Any]:
        """Kernel and those of its parameters that it has; nothing for linear objectives."""
        return {}

    def _classes(self) -> tuple[str, Any]:
        """Way of several classes and the factors of their weights; nothing for numbers."""
        return "auto", None

    def _n_problems(self, y: np.ndarray) -> int:
        """Number of problems that a fit solves one by one, as far as y tells."""
        return 1

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Rows and y, checked in scikit-learn's words."""
        numbers = is_regressor(self)
        if self._objects:
            X, y = self._rows(X, reset=True), validated_sklearn_input(self, "no_validation", y, y_numeric=numbers)
        else:
            X, y = validated_sklearn_input(self, X, y, accept_sparse=self._sparse, dtype=FLOATS, y_numeric=numbers)
        if not numbers:
            check_classification_targets(y)
        return X, y

    @property
    def _sparse(self) -> str | bool:
        """Format that sparse X is converted to; False: a Gram matrix is dense."""
        kernel = self._kernel().get("kernel")
        return False if isinstance(kernel, str) and kernel == "precomputed" else "csr"

    @property
    def _objects(self) -> bool:
        """Whether the kernel compares objects, which are no table of numbers."""
        kernel = self._kernel().get("kernel", "linear")
        built_in = isinstance(kernel, str) and kernel in PARAMETERS
        return not built_in and kernel_function_takes_objects(find("kernel", kernel))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = not self._sparse
        tags.input_tags.sparse = bool(self._sparse)
        with suppress(TypeError, ValueError):  # a wrong kernel is told at fit
            if self._objects:
                tags.input_tags.two_d_array = tags.input_tags.sparse = False
                tags.input_tags.string = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit and certify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            Training rows; the Gram matrix of shape (m, m) with ``kernel="precomputed"``; a list of objects where a
            plugin's kernel compares such.
        y : array-like of shape (m,)
            Two or more labels; for a regression numbers.
        sample_weight : array-like of shape (m,), optional
            Repetition counts >= 0: an integer weight equals repeated rows.

        Returns
        -------
        estimator
            This one.

        Raises
        ------
        ValueError, TypeError
            One sentence: what was given, what is needed.

        Warns
        -----
        EstimatorConvergenceWarning
            When the certified gap did not reach `tol`.
        """
        started = time.perf_counter()
        X, y = self._checked(X, y)
        streamed = hasattr(self, "_portions")  # then the model holds nothing to begin with
        start = getattr(self, "model_", None) if self.warm_start and not streamed else None
        given = {"X": X, "y": y, "metadata": None if sample_weight is None else {"sample_weight": sample_weight}}
        tasks = CallbackTasks(self, given, self._n_problems(y), (self.n_threads or 1) == 1, self.callback)
        dtype = np.dtype(np.float64) if self._objects else X.dtype
        call = self._call(started, dtype, tasks.callback)
        kernel = self._kernel()
        kernel.pop("kernel", None)
        params = {**kernel, **self._own()}
        model, shortfalls = certified_model(call, params, X, y, sample_weight, self._classes()[1], start)
        for shortfall in shortfalls:
            warnings.warn(shortfall.text, EstimatorConvergenceWarning, stacklevel=3)
        names = getattr(self, "feature_names_in_", None)
        self.model_ = model if names is None else replace(model, _names=tuple(names))
        self.__dict__.pop("_portions", None)
        tasks.end({"model_": self.model_})
        return self

    def _call(self, started: float, dtype: np.dtype[Any], callback: Any, decisions: bool = True) -> Call:
        """Call that `mdlearn.fit` would make of these parameters; by default with the `tol` for the rows' type.

        `decisions`: whether `tol` may be "decisions".
        """
        default = ESTIMATOR_TOL if dtype == np.float64 else float(DEFAULT_TOL)
        tol = DefaultTolerance(default) if self.tol == ESTIMATOR_TOL else self.tol
        given = tol, self.max_iter, self.time_limit, callback, self.verbose, self.n_threads
        limits = checked_limits(started, *given, decisions=decisions)
        kernel, engine = self._kernel().get("kernel", "linear"), (self.solver, self.solver_options)
        ways = (self.bias, self._classes()[0])
        return Call.of(self._task(), kernel, *engine, *ways, limits, sklearn_seed(self.random_state))

    def _rows(self, X: Any, reset: bool = False) -> Any:
        """Rows to predict for (`reset`: to fit), checked in scikit-learn's words; objects are left to the kernel."""
        if not self._objects:
            return validated_sklearn_input(self, X, reset=reset, accept_sparse=self._sparse, dtype=FLOATS)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit to numbers
        return X

    def predict(self, X: Any) -> np.ndarray:
        """Return labels; of a regression, numbers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Rows; for a precomputed kernel the values (n, m) against all training rows.

        Returns
        -------
        ndarray of shape (n,)
            f = 0 is the second label; ties go to the first class in `classes_`.
        """
        return self._fitted.predict(self._rows(X))

    @property
    def _fitted(self) -> Any:
        """The model; NotFittedError, which is an AttributeError too, before there is one."""
        check_is_fitted(self)
        return self.model_

    @property
    def certificate_(self) -> Certificate:
        """Objective, lower bound and relative gap of the coefficients."""
        return self._fitted.certificate

    @property
    def coef_(self) -> np.ndarray:
        """Coefficients of p problems (1 for two classes, else k, or one per pair), shape (p, d); linear kernel only."""
        return self._fitted.coef_

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts, shape (p,)."""
        return self._fitted.intercept_

    @property
    def dual_coef_(self) -> np.ndarray:
        """Signed multipliers over all training rows, shape (p, m); not where w is no combination of rows."""
        return self._fitted.dual_coef_

    @property
    def support_(self) -> np.ndarray:
        """Training rows with a multiplier other than 0."""
        return self._fitted.support_

    @property
    def n_support_(self) -> np.ndarray:
        """Number of support vectors per class, shape (k,); of a regression, (1,)."""
        return self._fitted.n_support_

    @property
    def n_iter_(self) -> int:
        """Reports of the engine, summed over the problems."""
        return self._fitted.n_iter


@dataclass(eq=False, repr=False, kw_only=True)
class CertifiedClassifier(Streaming, ClassifierMixin, CertifiedEstimator):
    """Base class of all scikit-learn classifiers."""

    multiclass: str = "auto"
    class_weight: Mapping[Any, float] | str | None = None
    stream_total: float | None = None

    def _classes(self) -> tuple[str, Any]:
        return self.multiclass, self.class_weight

    def _n_problems(self, y: np.ndarray) -> int:
        way = self._task().multiclass[0] if self.multiclass == "auto" else self.multiclass
        return 1 if way == "joint" else n_decision_functions(len(np.unique(y)), way)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Rows; for a precomputed kernel the values (n, m) against all training rows.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
            (n,) for two classes; else the score of each class: raw ones ("ovr", "joint"), votes with a tie-break
            ("ovo") or memberships ("fuzzy-min", "fuzzy-avg").
        """
        return self._fitted.decision_function(self._rows(X))

    def _has_probabilities(self) -> bool:
        if hasattr(self, "model_"):
            return hasattr(self.model_, "predict_proba")
        return bool(self._task().probabilities) and self.multiclass not in PAIRWISE

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every class; there where the objective defines it (logistic losses).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        ndarray of shape (n, k)
            No class has a larger one than the label of `predict`.
        """
        return self._fitted.predict_proba(self._rows(X))

    @property
    def classes_(self) -> np.ndarray:
        """Sorted labels, shape (k,)."""
        return self._fitted.classes_


@dataclass(eq=False, repr=False, kw_only=True)
class KernelEstimator(CertifiedEstimator):
    """Base class of the scikit-learn estimators of objectives that take kernels."""

    kernel: Any = "linear"
    gamma: Any = "scale"
    degree: int = 3
    coef0: float = 0.0
    kernel_params: Mapping[str, Any] | None = None

    def _kernel(self) -> dict[str, Any]:
        """Kernel and parameters, only those that the kernel has: a grid can hold several kernels."""
        names = PARAMETERS.get(self.kernel, ()) if isinstance(self.kernel, str) else ()
        own = {name: getattr(self, name) for name in names}
        given = param_entries(self.kernel_params, "kernel_params")
        if "kernel" in given:
            raise ValueError("kernel_params holds the kernel's own parameters; give the kernel itself as kernel=")
        return {"kernel": self.kernel, **own, **given}


@dataclass(eq=False, repr=False, kw_only=True)
class BaseKernelClassifier(CertifiedClassifier, KernelEstimator):
    """Base class of the scikit-learn classifiers of objectives that take kernels."""
