"""The fitted model: coefficients, predictions, margins and the certificate that goes with them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.feature_map import FeatureMap
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.rows.arrays import check_rows
from mdlearn.data.rows.rows import BLOCK_ENTRIES, Rows, steps
from mdlearn.data.validation import check_labels, check_model_labels, check_weights, column_names
from mdlearn.errors import did_you_mean
from mdlearn.forms.certificates.rounding import to_type
from mdlearn.forms.proof import Certificate
from mdlearn.model.class_decisions import PAIRWISE, class_decision_values, class_probabilities, labels_of_decisions
from mdlearn.numerics.blas_threads import blas_threads, threads_for
from mdlearn.numerics.errstate import overflow_errstate
from mdlearn.numerics.lazy_property import kept
from mdlearn.numerics.memory import memory_error_in_words


@dataclass(frozen=True, eq=False, repr=False)
class Model:
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

    measure: ClassVar[str] = "accuracy"
    """What `score` returns."""
    objective: str
    params: dict[str, Any]
    kernel: Kernel
    bias: str
    multiclass: str
    probabilities: bool
    solver: str
    solver_reason: str
    n_iter: int
    history: list[Any]
    certificate: Certificate
    classes_: np.ndarray
    n_features_in_: int
    intercept_: np.ndarray
    duals: np.ndarray
    support_: np.ndarray
    n_support_: np.ndarray
    _names: tuple[str, ...] | None
    _coef: np.ndarray | None
    _alpha: np.ndarray | None
    _rows: Rows | None
    _norms: np.ndarray
    extras: dict[str, Any] = field(default_factory=dict)
    _map: FeatureMap | None = None

    def __getattr__(self, name: str) -> Any:
        found = getattr(type(self), name, None)
        if isinstance(found, property):
            return found.__get__(self)  # it has raised AttributeError, and says why once more
        extras = self.__dict__.get("extras", {})
        if name not in extras:
            told = f"; it has {', '.join(extras)}" if extras else ""
            raise AttributeError(f"this model of {self.__dict__.get('objective')!r} has no attribute {name!r}{told}")
        return extras[name]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and pickles: all but what is prepared for predictions."""
        return {name: value for name, value in vars(self).items() if name != "_scorer"}

    def __repr__(self) -> str:
        gap = f"gap={self.certificate.gap:.2g}"
        told = "" if self.approximation is None else f", approximation={self.approximation!r}"
        return f"Model({self.objective!r}, kernel={self.kernel.name!r}{told}, solver={self.solver!r}, {gap})"

    @property
    def approximation(self) -> str | None:
        """Approximation solved in place of the kernel's problem ("nystroem", "landmarks"); None: the problem itself.

        The certificate of an approximation is that of the problem over its explicit features.
        """
        return None if self._map is None else self._map.approximation

    @property
    def dual_coef_(self) -> np.ndarray:
        """Signed alpha over all training rows, shape (p, m): f(x) = sum alpha_i k(x_i, x) + intercept.

        AttributeError for objectives without a squared norm: their w need not be a combination of rows.
        """
        if self._alpha is None:
            raise AttributeError(f"dual_coef_ does not exist: w of {self.objective!r} is no combination of rows here")
        return self._alpha

    @property
    def coef_(self) -> np.ndarray:
        """Weights of shape (p, d), or what the objective's features show; AttributeError unless the kernel is linear.

        Landmark models: theta of shape (p, K, L). Approximate kernels: weights of the explicit features.
        """
        if self._coef is None:
            raise AttributeError(f"coef_ exists for the linear kernel only; this model has kernel {self.kernel.name!r}")
        return self._coef if self._map is None else self._map.shown(self._coef)

    @property
    def folded_coef_(self) -> np.ndarray:
        """w_k = sum_l theta_kl landmark_l, shape (p, K, d): f(x) = w_k . x + intercept in cluster k.

        AttributeError for models without landmarks, with another projection than "dot" or another kernel than linear.
        """
        folded = None if self._map is None or self._coef is None else self._map.folded(self._coef)
        if folded is None or self._coef is None:
            raise AttributeError("folded_coef_ exists for landmark models with dot projections and linear kernel only")
        return to_type(folded, self._coef.dtype)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Column names of the data frame given at fit; AttributeError when there was none."""
        if self._names is None:
            raise AttributeError("feature_names_in_ exists only after a fit on a data frame with string column names")
        return np.array(self._names, dtype=object)

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
        A = self._check(X)
        threads = threads_for(float(math.prod(A.shape)) * self._n_terms)
        with memory_error_in_words("the prediction"), overflow_errstate(), blas_threads(threads):
            scores = self._scores(A) + self.intercept_
            finite = np.isfinite(scores).all(axis=1)
            if not finite.all():
                raise ValueError(f"the decision values of row {int(finite.argmin())} overflow; scale the features")
            return class_decision_values(scores, self.classes_.shape[0], self.multiclass)

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
        return labels_of_decisions(self.classes_, self.decision_function(X))

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
        # persistence builds Models, so it comes after this module.
        from mdlearn.model.file.persistence import save

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
        # The export knows Models, so it comes after this module.
        from mdlearn.model.onnx.export import export

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
        names = column_names(X)
        if self._names is not None and names is not None and names != self._names:
            hint = next((told for name in names if (told := did_you_mean(name, self._names))), "")
            raise ValueError(f"X has the columns {list(names)}; the model was fitted on {list(self._names)}{hint}")
        A = check_rows(X)
        if A.shape[1] != self.n_features_in_:
            what = "kernel values against all training rows" if self.kernel.name == "precomputed" else "columns"
            raise ValueError(f"X has {A.shape[1]} columns; the model needs {self.n_features_in_} {what}")
        return A

    @property
    def _n_terms(self) -> int:
        """Products with a row of which its decision values are made: coefficients, support rows or features."""
        if self._coef is None:
            return self.support_.shape[0]
        return int(self._coef.shape[0] if self._map is None else self._coef.size)

    def _scores(self, A: Rows) -> np.ndarray:
        """Decision values without intercept, (n, 1) or (n, k), summed in float64."""
        if self._coef is not None:
            return A.dot(self._coef.T) if self._scorer is None else self._scorer(A)
        if self._rows is None:
            return A.dot(self.dual_coef_.T)
        # Basis rows and support rows: nothing else has a coefficient.
        alpha = self.dual_coef_[:, self.support_].T.astype(np.float64)
        return kernel_decisions(A, self._rows, alpha, self.kernel, self._map)

    @kept
    def _scorer(self) -> Callable[[Rows], np.ndarray] | None:
        """Function from rows to decision values by the coefficients of mapped features; None: there are none."""
        return None if self._map is None or self._coef is None else self._map.scorer(self._coef)


def kernel_decisions(A: Rows, rows: Rows, alpha: np.ndarray, kernel: Kernel, mapping: FeatureMap | None) -> np.ndarray:
    """Decision values of a model, sum_i alpha_ij k(x_i, a) over `rows`, of rows a: (n, p) for alpha of shape (s, p)."""
    if mapping is None:
        return kernel.combined(A, rows, alpha)
    F = np.empty((A.shape[0], alpha.shape[1]))
    kernel, support = mapping.over(kernel).centred_copy(rows)
    for some in steps(A.shape[0], max(64, 4 * BLOCK_ENTRIES // max(1, alpha.shape[0]))):
        F[some] = kernel.block(A.take(some), support) @ alpha
    return F
