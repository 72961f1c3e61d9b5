"""partial_fit: stochastic steps over rows that come in portions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from mdlearn.arguments import one_of
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.features.spaces import LinearFeatures
from mdlearn.data.rows.arrays import check_rows, only
from mdlearn.data.validation import Data, check_number, check_weights, class_factors
from mdlearn.forms.margin import BIASES, MarginForm
from mdlearn.forms.problem import as_one
from mdlearn.forms.proof import Certificate
from mdlearn.model.build import model_without_rows
from mdlearn.model.class_decisions import PAIRWISE
from mdlearn.model.model import Model
from mdlearn.numerics.interruptible import finished
from mdlearn.objectives.base import Objective
from mdlearn.plugins.manager import find, instance_with
from mdlearn.sklearn.params import FLOATS, seed
from mdlearn.solvers.stochastic.portions import Descent, advance, begin
from mdlearn.solvers.stochastic.solver import SGD

STREAMED = ("asgd", "sgd")
"""Engines whose steps read one or two rows at a time."""


@dataclass(frozen=True, eq=False)
class Portions:
    """What is kept between calls.

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
    """Adds `partial_fit` to classifiers whose solver is "asgd" or "sgd"."""

    # What the classifiers have.
    solver: Any
    solver_options: Any
    bias: Any
    multiclass: str
    class_weight: Any
    tol: float
    random_state: Any
    stream_total: float | None
    _kernel: Callable[[], dict[str, Any]]
    _own: Callable[[], dict[str, Any]]
    _task: Callable[[], Any]

    def _streams(self) -> bool:
        solver = getattr(self, "solver", None)
        name = solver if isinstance(solver, str) else getattr(solver, "name", None)
        kernel = self._kernel().get("kernel", "linear")
        if name in STREAMED and isinstance(kernel, str) and kernel == "linear":
            return True
        raise AttributeError(f"partial_fit needs kernel='linear' and solver={' or '.join(map(repr, STREAMED))}")

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
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=FLOATS, reset=model is None)
        check_classification_targets(y)
        data = self._portion(X, y, _labels(None if model is None else model.classes_, classes), sample_weight)
        if old is None:
            unit = float(data.counts.mean())
            old = Portions(0.0 if model is None else unit * model.duals.shape[-1], unit, 0, ())
        seen = old.seen + data.total
        task, form, params, kinds = self._written(data, seen if self.stream_total is None else self._total())
        engine = self._engine(form)
        descents, steps = [], max(1, math.ceil(data.total / old.unit - 1e-9))
        for j, column in enumerate(form.columns):
            rng = np.random.default_rng([seed(self.random_state), j, old.calls])
            if old.descents:
                descents.append(advance(old.descents[j], form, column, steps, rng))
            else:
                descents.append(self._first(engine, form, j, old, steps, rng))
        self._portions = replace(old, seen=seen, calls=old.calls + 1, descents=tuple(descents))
        self.model_ = self._streamed(task, params, kinds, engine.name, data)
        return self

    def _engine(self, form: MarginForm) -> SGD:
        """The engine; ValueError when it cannot take the problem."""
        found = find("solver", self.solver)
        engine: SGD = found() if isinstance(found, type) else found
        refusal = engine.refusal(form)
        if refusal is not None:
            raise ValueError(f"partial_fit cannot take this problem: {refusal}")
        return engine

    def _first(
        self, engine: SGD, form: MarginForm, j: int, old: Portions, steps: int, rng: np.random.Generator
    ) -> Descent:
        """Steps over the first portion: from w = 0, or from the coefficients of `fit`."""
        options, column = engine.check_options(dict(self.solver_options or {})), form.columns[j]
        whole = max(steps, math.ceil(column.total / old.unit - 1e-9))
        start = begin(options, form, column, whole, engine.start_of_average(whole, options), rng)
        model: Model | None = getattr(self, "model_", None)
        if model is not None:
            if model._coef is None or model._coef.shape != (len(form.columns), form.features.width):
                raise ValueError("partial_fit cannot go on from this fit, of another kernel; clone the estimator first")
            before = int(model.duals.shape[-1])
            w = np.append(model._coef[j], model.intercept_[j]).astype(np.float64)
            start = replace(start, w=w, t=before, t0=max(start.t0, before))
        return advance(start, form, column, steps, rng)

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
        counts = weights * class_factors(given, labels, codes, weights)[codes]
        at = np.flatnonzero(counts > 0)
        if not at.shape[0]:
            raise ValueError("sample_weight times class_weight is zero everywhere; give rows that count")
        rows = check_rows(X)
        rows = rows if at.shape[0] == counts.shape[0] else only(rows, at)
        return Data(rows, codes[at], counts[at], labels, at, y.shape[0], None)

    def _total(self) -> float:
        limit = float(np.finfo(float).max)
        return float(check_number(self.stream_total, "stream_total", low=0.0, high=limit, strict=True))

    def _written(self, data: Data, total: float) -> tuple[Objective, MarginForm, dict[str, Any], tuple[str, str]]:
        """The objective and its form over rows that stand for all: their weights add up to `total`."""
        found, own = self._task(), self._own()
        task = instance_with(found, own)
        bias = one_of("bias", task.default_bias if self.bias is None else self.bias, BIASES)
        ways = task.multiclass
        way = one_of("multiclass", self.multiclass, ("auto", *ways))
        way = ways[0] if way == "auto" else way
        if data.classes.shape[0] > 2 and way in PAIRWISE:
            raise ValueError(f"partial_fit needs one score per class, not multiclass={way!r}; give multiclass='ovr'")
        whole = replace(data, counts=data.counts * (total / data.total))
        params, kernel = task.complete(task.resolve(total), whole), Kernel("linear")
        features = finished(task.features(whole, kernel, params, np.random.default_rng(0)))
        form = task.form(whole, features, bias, params)
        form = as_one(form) if way == "joint" else form
        plain = type(features) is LinearFeatures and features.rows is data.X
        if not plain or type(task).problem is not Objective.problem:
            raise ValueError(
                f"objective {task.name!r} makes its features of all rows; partial_fit needs the rows alone"
            )
        return task, form, params, (bias, way)

    def _streamed(
        self, task: Objective, params: dict[str, Any], kinds: tuple[str, str], solver: str, data: Data
    ) -> Model:
        """A model of the coefficients so far, which nothing certifies."""
        portions: Portions = self._portions
        W = np.array([one.current for one in portions.descents])
        names = getattr(self, "feature_names_in_", None)
        return model_without_rows(
            task.name,
            params,
            (*kinds, task.probabilities),
            (solver, "asked for"),
            (portions.calls, []),
            Certificate(math.nan, -math.inf, math.inf, "none", self.tol, False),
            data.classes,
            W,
            data.X.dtype,
            None if names is None else tuple(names),
            Kernel("linear"),
        )


def _labels(known: np.ndarray | None, classes: Any) -> np.ndarray:
    """Sorted labels of a stream: given in the first call, the same in every later one."""
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
