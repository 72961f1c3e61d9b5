"""The fitted model: coefficients, predictions, margins and the certificate that goes with them."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.labels import check_labels, check_model_labels
from mdlearn.data.rows.rows import Rows
from mdlearn.data.validation import check_weights, validated_column_names
from mdlearn.errors import UnprovenWarning, did_you_mean
from mdlearn.model.class_decisions import PAIRWISE, class_decision_values, class_probabilities, labels_of_decisions
from mdlearn.model.decision_bounds import DecisionRoom, class_decision_bounds, has_certain_class
from mdlearn.model.file.persistence import save
from mdlearn.model.onnx.export import export
from mdlearn.model.record import FittedRecord
from mdlearn.numerics.blas_threads import blas_threads
from mdlearn.numerics.errstate import overflow_errstate
from mdlearn.numerics.lazy_property import kept
from mdlearn.numerics.memory import memory_error_in_words


class Model(FittedRecord):
    """Fitted model: a classifier.

    Coefficients, intercepts, dual coefficients and multipliers have the type of the rows at fit, float32 or float64;
    decision values are float64.

    Attributes
    ----------
    objective : str
        Name of the objective.
    params : dict
        All hyper-parameters, defaults filled in; kernel parameters included.
    kernel : Kernel
        The kernel with its parameters.
    bias : str
        "none", "regularized" or "free".
    multiclass : str
        "ovr", "joint", "ovo", "fuzzy-min" or "fuzzy-avg": how more than two classes are told apart.
    probabilities : bool
        Whether the objective makes sigma(f) a probability: then there is `predict_proba`.
    solver, solver_reason : str
        The engine that ran, and why it was chosen.
    solver_claims : dict of str to float or None
        For ``solver="auto"``: the engines that were asked, with the cost of the fit that each one claims, in
        floating-point operations; None: no claim. Empty for an engine that was asked for.
    n_iter : int
        Reports of the engine, summed over the problems.
    history : list of State
        One record per report: iteration, objective, lower_bound, gap, elapsed, problem.
    certificate : Certificate
        Objective, lower bound and gap of these coefficients.
    classes_ : ndarray of shape (k,)
        Sorted labels.
    n_features_in_ : int
        Columns of X at fit (rows for a precomputed kernel).
    intercept_ : ndarray of shape (p,)
        Intercepts. The number p of problems is 1 for two classes, else k, or k (k - 1) / 2 for pairs of classes (i, j)
        with i < j, of which j is the positive one.
    duals : ndarray of shape (p, m); (p, T, m) for a loss of T > 1 terms
        Multipliers of the loss terms, within [0, C c_i] for the hinge.
    support_ : ndarray of intp
        Training rows with a non-zero dual coefficient.
    n_support_ : ndarray of shape (k,)
        Their number per class.
    extras : dict
        Attributes that only some objectives have (`basis_indices_`, `centers_`, `landmarks_`), by name: arrays, or
        tuples of arrays with one per pair of classes.
    """

    task: ClassVar[str] = "classification"
    measure: ClassVar[str] = "accuracy"
    """What `score` returns."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x): shape (n,) for two classes and for regression, (n, k) else.

        For more than two classes these are the raw scores of each class ("ovr", "joint"), votes with a tie-break below
        one half ("ovo"), or memberships ("fuzzy-min", "fuzzy-avg").

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Rows; for a precomputed kernel the values (n, m) against all training rows.

        Returns
        -------
        ndarray of shape (n,) or (n, k), float64

        Raises
        ------
        ValueError
            For another number of columns than at fit, or other column names.
        """
        return class_decision_values(self._values(self._check(X)), self.classes_.shape[0], self.multiclass)

    def decision_bounds(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the decision values that the exact optimum has.

        No optimum is farther from the coefficients than `certificate.distance`, and a decision value is an inner
        product with phi(x): |f(x) - f*(x)| <= distance |phi(x)|. For an objective with 1/2 |w|^2 whose coefficients
        are those of their multipliers the distance is sqrt(P - D), else at most sqrt(2 (P - D)); what rounding may have
        done to f(x) is added. Where nothing is proven (a free bias, an objective without a squared norm, a precomputed
        kernel, a certificate without a bound) the bounds are infinite, and a warning says why.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            As for `decision_function`, errors included.

        Returns
        -------
        lower, upper : ndarray of the shape of `decision_function(X)`, float64

        Warns
        -----
        UnprovenWarning
            Where the bounds are infinite.
        """
        return self._decision_bounds(self._check(X))[1:]

    def certified(self, X: Any) -> np.ndarray:
        """Return whether the exact optimum is proven to give a row the label that `predict` gives it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            As for `decision_function`, errors included.

        Returns
        -------
        ndarray of shape (n,), bool

        Warns
        -----
        UnprovenWarning
            Where no row can be, as of `decision_bounds`.
        """
        return self._certain(*self._decision_bounds(self._check(X)))

    @property
    def unproven(self) -> str:
        """Why no decision value of the exact optimum is bounded, as the end of a sentence; empty where one is."""
        if type(self).decision_function is not Model.decision_function:
            return f"the decision values are those of {type(self).__name__}"
        return self._decision_room.why

    def _certain(self, f: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Whether all decision values between the bounds stand for the same label as f, shape (n,)."""
        if f.ndim > 1:
            return has_certain_class(f, lower, upper)
        same: np.ndarray = (self.predictions(lower) == self.predictions(upper)) & (lower <= f) & (f <= upper)
        return same

    def _values(self, A: Rows) -> np.ndarray:
        """Decision values of all problems, (n, p)."""
        threads = self._choose_threads(float(math.prod(A.shape)) * self._n_terms)
        with memory_error_in_words("the prediction"), overflow_errstate(), blas_threads(threads):
            values = self._scores(A) + self.intercept_
            finite = np.isfinite(values).all(axis=1)
            if not finite.all():
                raise ValueError(f"the decision values of row {int(finite.argmin())} overflow; scale the features")
            return values

    @kept
    def _decision_room(self) -> DecisionRoom:
        """Room between decision values and those of the optimum, prepared once."""
        return DecisionRoom(self)

    def _decision_bounds(self, A: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Decision values with their bounds, which are infinite, with a warning, where nothing is proven."""
        values, k = self._values(A), self.classes_.shape[0]
        f = class_decision_values(values, k, self.multiclass)
        if self.unproven:
            warnings.warn(
                f"no decision value of the optimum is bounded: {self.unproven}", UnprovenWarning, stacklevel=3
            )
            return f, np.full(f.shape, -np.inf), np.full(f.shape, np.inf)
        with memory_error_in_words("the bounds"), overflow_errstate():
            room = self._decision_room.of_rows(self, A)
        return f, *class_decision_bounds(values - room, values + room, k, self.multiclass)

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of every row: f = 0 is the second label; ties go to the first class in `classes_`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            As for `decision_function`, errors included.

        Returns
        -------
        ndarray of shape (n,)
            Labels, of the type of `classes_`.
        """
        return self.predictions(self.decision_function(X))

    def predictions(self, f: np.ndarray) -> np.ndarray:
        """Return what decision values stand for, as `predict` does: a label for every row.

        Parameters
        ----------
        f : ndarray of shape (n,) or (n, k)
            What `decision_function` returned.

        Returns
        -------
        ndarray of shape (n,)
        """
        return labels_of_decisions(self.classes_, f)

    @property
    def predict_proba(self) -> Callable[[Any], np.ndarray]:
        """predict_proba(X) returns the probability of every class, shape (n, k).

        For two classes sigma(f) = 1 / (1 + exp(-f)) is that of the second label (MDLM paper, eq. 2.1); for more, the
        sigma of every class's score are divided by their sum. No class has a larger one than the label of `predict`.
        AttributeError unless the objective is made for it (`probabilities`) and has one score per class.
        """
        if not self.probabilities:
            raise AttributeError(f"predict_proba does not exist: scores of {self.objective!r} are no probabilities")
        if self.classes_.shape[0] > 2 and self.multiclass in PAIRWISE:
            raise AttributeError(f"predict_proba needs one score per class; this model has {self.multiclass!r}")

        def predict_proba(X: Any) -> np.ndarray:  # scikit-learn's scorers ask for its name
            return class_probabilities(self.decision_function(X))

        return predict_proba

    def margins(self, X: Any, y: Any, normalized: bool = False, per_class: bool = False) -> np.ndarray:
        """Return margins: y f for two classes, f_y - max of the others for more.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Rows, as for `decision_function`.
        y : array-like of shape (n,)
            Their labels, all among `classes_`.
        normalized : bool, default False
            Divide by |w| (two classes, or each column with `per_class`), or by the norm of all w together.
        per_class : bool, default False
            Return (n, k) margins of the one-vs-rest problems instead.

        Returns
        -------
        ndarray of shape (n,) or (n, k), float64

        Raises
        ------
        ValueError
            For an unknown label, or `per_class` with pairs of classes.
        """
        f = self.decision_function(X)
        codes = self._codes(y, f.shape[0])
        with overflow_errstate():
            return self._margins(f, codes, normalized, per_class)

    def _margins(self, f: np.ndarray, codes: np.ndarray, normalized: bool, per_class: bool) -> np.ndarray:
        """Margins of decision values; what overflows is infinite."""
        norms = np.where(self._norms > 0, self._norms, 1.0)
        if f.ndim == 1:
            z = np.where(codes == 1, f, -f) / (norms[0] if normalized else 1.0)
            return np.column_stack([z, z]) if per_class else z
        if per_class:
            if self.multiclass in PAIRWISE:
                raise ValueError(f"per_class margins need one problem per class; this model has {self.multiclass!r}")
            signs = np.where(codes[:, None] == np.arange(f.shape[1]), 1.0, -1.0)
            return signs * f / (norms if normalized else 1.0)
        own = f[np.arange(f.shape[0]), codes]
        others = f.copy()
        others[np.arange(f.shape[0]), codes] = -np.inf
        return (own - others.max(axis=1)) / (float(np.sqrt(np.square(self._norms).sum())) or 1.0 if normalized else 1.0)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the (weighted) share of rows that `predict` labels right.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
            Labels, all among `classes_`.
        sample_weight : array-like of shape (n,), optional
            Repetition counts. Default: 1 for every row.

        Returns
        -------
        float
            Within [0, 1].
        """
        predicted = self.predict(X)
        codes = self._codes(y, predicted.shape[0])
        right = codes == np.searchsorted(self.classes_, predicted)
        return float(np.average(right, weights=check_weights(sample_weight, right.shape[0])))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this model to one file, which `mdlearn.load` reads.

        The file is replaced as a whole or not at all; it holds arrays and a JSON header, no code.

        Parameters
        ----------
        path : path
            File to write, by this exact name; conventionally ``*.npz``.

        Raises
        ------
        ValueError
            For a callable kernel, clustering, selection of landmarks or projection.
        OSError
            When the file cannot be written.
        """
        save(self, path)

    def to_onnx(self, target_opset: int | None = None) -> Any:
        """Return this model as an onnx.ModelProto, which computes in float64.

        Input: "X" as for `decision_function`, in the type of the rows at fit. Outputs: "label" (n,), "scores" as of
        `decision_function`, "probabilities" where there is `predict_proba`; for regression "value" (n,) alone.

        Parameters
        ----------
        target_opset : int, default 18
            Version of ONNX's operators, from 13 on.

        Returns
        -------
        onnx.ModelProto

        Raises
        ------
        ImportError
            Without the package onnx: pip install "mdlearn[onnx]".
        ValueError
            For callables, kernels and features of plugins, labels that ONNX lacks, or more than 2 GB of constants.
        """
        return export(self, target_opset)

    def __sklearn_tags__(self) -> Any:
        """Tags that scikit-learn's scorers ask for: whether this is a classifier."""
        from sklearn.utils import ClassifierTags, RegressorTags, Tags, TargetTags

        if self.measure == "accuracy":
            return Tags("classifier", TargetTags(required=True), classifier_tags=ClassifierTags())
        return Tags("regressor", TargetTags(required=True), regressor_tags=RegressorTags())

    def _codes(self, y: Any, n: int) -> np.ndarray:
        labels, codes = check_labels(y, n)
        return check_model_labels(labels, codes, self.classes_)

    def _check(self, X: Any) -> Rows:
        names = validated_column_names(X)
        if self._names is not None and names is not None and names != self._names:
            hint = next((told for name in names if (told := did_you_mean(name, self._names))), "")
            raise ValueError(f"X has the columns {list(names)}; the model was fitted on {list(self._names)}{hint}")
        A = self.kernel.rows_of(X)
        if A.shape[1] != self.n_features_in_:
            what = "kernel values against all training rows" if self.kernel.name == "precomputed" else "columns"
            raise ValueError(f"X has {A.shape[1]} columns; the model needs {self.n_features_in_} {what}")
        return A
