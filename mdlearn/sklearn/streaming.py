"""Streaming estimators of scikit-learn: `partial_fit`, stochastic steps over rows that come in portions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from mdlearn.data.features.kernels import Kernel
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.arrays import check_rows, selected_rows
from mdlearn.data.validation import Data, check_number, check_weights, validate_class_factors
from mdlearn.forms.margin import MarginForm
from mdlearn.forms.problem import as_joint_problem
from mdlearn.forms.proof import Certificate
from mdlearn.model.build import model_without_rows
from mdlearn.model.class_decisions import PAIRWISE
from mdlearn.model.model import Model
from mdlearn.numerics.interruptible import finished
from mdlearn.objectives.base import Objective
from mdlearn.sklearn.params import FLOATS
from mdlearn.sklearn.validation import validated_sklearn_input
from mdlearn.solvers.stochastic.portions import Descent, advance_portion, begin_portions
from mdlearn.stages import Call

STREAMED_ENGINES = ("asgd", "sgd")
"""Engines whose steps read one or two rows at a time."""


@dataclass(frozen=True, eq=False)
class Portions:
    """State of a streaming estimator that `partial_fit` keeps between calls.

    Attributes
    ----------
    seen : float
        Sum of the weights so far.
    unit : float
        Weight that one step stands for: the mean of the first call's.
    calls : int
    descents : tuple of Descent
        One for two classes, else one per class.
    """

    seen: float
    unit: float
    calls: int
    descents: tuple[Descent, ...]


class Streaming:
    """Streaming for estimators: adds `partial_fit` to classifiers whose solver is "asgd" or "sgd"."""

    # What the classifiers have.
    class_weight: Any
    tol: float | str
    stream_total: float | None
    _call: Callable[..., Call]
    _kernel: Callable[[], dict[str, Any]]
    _own: Callable[[], dict[str, Any]]

    def _streams(self) -> bool:
        solver = getattr(self, "solver", None)
        name = solver if isinstance(solver, str) else getattr(solver, "name", None)
        kernel = self._kernel().get("kernel", "linear")
        if name in STREAMED_ENGINES and isinstance(kernel, str) and kernel == "linear":
            return True
        raise AttributeError(f"partial_fit needs kernel='linear' and solver={' or '.join(map(repr, STREAMED_ENGINES))}")

    @available_if(_streams)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Take steps over some more rows: one pass over them, in a random order that `random_state` decides.

        There with ``solver="asgd"`` (averaged) or "sgd", a linear kernel, and ``bias="none"`` or "regularized". What is
        approached is the objective of `fit` over all rows: with m their weights' sum, each call's rows stand for all,
        so that every row's loss counts as it does there, margin mean and variance are those of the call's rows, and the
        squared norm is spread over m rows. After `fit`, steps go on from its coefficients, and its rows count as ones
        of the first call's mean weight. Nothing certifies the result: `certificate_` has the kind "none".

        Rows should come shuffled, some hundred a call: B rows have on average (1 - 1/B) of the variance of all. On
        features of unit variance, five passes of asgd end about 1 percent above the optimum at C = 0.01, 5 percent at
        C = 0.1 and 5 to 25 percent at C = 1; a single one, with all rows new, 1 to 30 percent above it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Labels, any of `classes`.
        classes : array-like of shape (k,), optional
            All labels that will ever come; needed in the first call, unless `fit` came before.
        sample_weight : array-like of shape (n,), optional
            Repetition counts >= 0; a call takes as many steps as its weights add up to in units of the first call's
            mean weight.

        Returns
        -------
        estimator
            This one.

        Raises
        ------
        ValueError, TypeError
            For a first call without `classes`, unknown labels, an objective that needs all rows at once, or steps that
            diverge.
        """
        model: Model | None = getattr(self, "model_", None)
        old: Portions | None = getattr(self, "_portions", None)
        X, y = validated_sklearn_input(self, X, y, accept_sparse="csr", dtype=FLOATS, reset=model is None)
        check_classification_targets(y)
        data = self._portion(X, y, _stream_labels(None if model is None else model.classes_, classes), sample_weight)
        if old is None:
            unit = float(data.counts.mean())
            old = Portions(0.0 if model is None else unit * model.duals.shape[-1], unit, 0, ())
        seen = old.seen + data.total
        call = self._call(time.perf_counter(), X.dtype, None, decisions=False)
        task, form, params = self._written(call, data, seen if self.stream_total is None else self._total())
        engine: Any = call.engine
        refusal = engine.refusal(form)
        if refusal is not None:
            raise ValueError(f"partial_fit cannot take this problem: {refusal}")
        descents, steps = [], max(1, math.ceil(data.total / old.unit - 1e-9))
        for j, column in enumerate(form.columns):
            rng = np.random.default_rng([call.seed, j, old.calls])
            start = old.descents[j] if old.descents else self._start(call, form, j, old, steps, rng)
            descents.append(advance_portion(start, form, column, steps, rng))
        self._portions = replace(old, seen=seen, calls=old.calls + 1, descents=tuple(descents))
        names = getattr(self, "feature_names_in_", None)
        self.model_ = model_without_rows(
            task.name,
            params,
            (call.bias, call.multiclass, task.probabilities),
            (engine.name, "asked for"),
            (old.calls + 1, []),
            Certificate(math.nan, -math.inf, math.inf, "none", call.limits.tol, False),
            data.classes,
            np.array([one.current for one in descents]),
            data.X.dtype,
            None if names is None else tuple(names),
            Kernel("linear"),
        )
        return self

    def _start(
        self, call: Call, form: MarginForm, j: int, old: Portions, steps: int, rng: np.random.Generator
    ) -> Descent:
        """Where steps over the first portion begin: at w = 0, or at the coefficients of `fit`."""
        engine: Any = call.engine
        options, column = engine.check_options(call.options), form.columns[j]
        whole = max(steps, math.ceil(column.total / old.unit - 1e-9))
        start = begin_portions(options, form, column, whole, engine.start_of_average(whole, options), rng)
        model: Model | None = getattr(self, "model_", None)
        if model is None:
            return start
        if model._coef is None or model._coef.shape != (len(form.columns), form.features.width):
            raise ValueError("partial_fit cannot go on from this fit, of another kernel; clone the estimator first")
        before = int(model.duals.shape[-1])
        w = np.append(model._coef[j], model.intercept_[j]).astype(np.float64)
        return replace(start, w=w, t=before, t0=max(start.t0, before))

    def _portion(self, X: Any, y: np.ndarray, labels: np.ndarray, sample_weight: Any) -> Data:
        """Rows of positive weight, with the classes of the whole stream."""
        strange = np.setdiff1d(y, labels)
        if strange.shape[0]:
            raise ValueError(
                f"y holds the label {strange.tolist()[0]!r}, which is not in classes; classes: {labels.tolist()}"
            )
        codes, weights = np.searchsorted(labels, y), check_weights(sample_weight, y.shape[0])
        given = self.class_weight
        if isinstance(given, str):
            raise ValueError(f"class_weight={given!r} needs all labels at once; give partial_fit a mapping of factors")
        counts = weights * validate_class_factors(given, labels, codes, weights)[codes]
        at = np.flatnonzero(counts > 0)
        if not at.shape[0]:
            raise ValueError("sample_weight times class_weight is zero everywhere; give rows that count")
        return Data(selected_rows(check_rows(X), at), codes[at], counts[at], labels, at, y.shape[0], None)

    def _total(self) -> float:
        limit = float(np.finfo(float).max)
        return float(check_number(self.stream_total, "stream_total", low=0.0, high=limit, strict=True))

    def _written(self, call: Call, data: Data, total: float) -> tuple[Objective, MarginForm, dict[str, Any]]:
        """The objective and its form over rows that stand for all: their weights add up to `total`."""
        task, way = call.task(self._own())[0], call.multiclass
        if data.classes.shape[0] > 2 and way in PAIRWISE:
            raise ValueError(f"partial_fit needs one score per class, not multiclass={way!r}; give multiclass='ovr'")
        whole = replace(data, counts=data.counts * (total / data.total))
        params, kernel = task.complete(task.resolve(total), whole), Kernel("linear")
        features = finished(task.features(whole, kernel, params, np.random.default_rng(0)))
        form = task.form(whole, features, call.bias, params)
        form = as_joint_problem(form) if way == "joint" else form
        plain = type(features) is LinearFeatures and features.rows is data.X
        if not plain or type(task).problem is not Objective.problem:
            raise ValueError(
                f"objective {task.name!r} makes its features of all rows; partial_fit needs the rows alone"
            )
        return task, form, params


def _stream_labels(known: np.ndarray | None, classes: Any) -> np.ndarray:
    """Sorted labels of a streaming estimator: given in the first call, the same in every later one."""
    if classes is None:
        if known is None:
            raise ValueError("classes must be passed on the first call to partial_fit: all labels that will ever come")
        return known
    given: np.ndarray = np.unique(np.asarray(classes))
    if given.shape[0] < 2:
        raise ValueError(f"classes holds {given.shape[0]} class; a classifier needs at least two classes")
    if known is not None and not np.array_equal(known, given):
        raise ValueError(f"classes are {given.tolist()}, and were {known.tolist()} in the first call to partial_fit")
    return given
