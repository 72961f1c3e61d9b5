"""Start of a fit from a model, and whether the two have the same rows, classes and features."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mdlearn.data.features.kernels import Kernel
from mdlearn.data.validation import Data
from mdlearn.forms.problem import Form
from mdlearn.forms.proof import Start
from mdlearn.model.class_decisions import PAIRWISE
from mdlearn.model.model import Model

SAME_PARAMETER = 1e-9
"""Relative difference of two kernel parameters that counts as none."""


class WarmStart:
    """Warm start from a model: starts of the problems of a fit.

    TypeError for what is no model, ValueError where it has another `objective`, `bias` or `multiclass` than the fit.
    """

    def __init__(self, model: Any, objective: str, bias: str, multiclass: str) -> None:
        if not isinstance(model, Model):
            raise TypeError(f"warm_start needs to be a Model, which fit returns; got {type(model).__name__}")
        self.model, self.multiclass = model, multiclass
        self.places: Sequence[np.ndarray] = ()
        _check_model_start_agrees("objective", model.objective, objective)
        _check_model_start_agrees("bias", model.bias, bias)
        if model.classes_.shape[0] > 2:
            _check_model_start_agrees("multiclass", model.multiclass, multiclass)

    def check(self, data: Data, kernel: Kernel, places: Sequence[np.ndarray]) -> None:
        """Raise ValueError where rows, classes or kernel differ; `places` are the caller's rows of each problem."""
        model = self.model
        _check_model_start_agrees("number of rows", model.duals.shape[-1], data.n_given)
        _check_model_start_agrees("kernel", model.kernel.name, kernel.name)
        if kernel.name == "callable" and model.kernel.function is not kernel.function:
            _check_model_start_agrees("kernel", "another function", "this one")
        columns = data.n_given if kernel.name == "precomputed" else data.X.shape[1]
        _check_model_start_agrees("number of columns", model.n_features_in_, columns)
        _check_model_start_agrees("classes", model.classes_.tolist(), data.classes.tolist())
        for name, value in kernel.params.items():
            if not math.isclose(model.kernel.params[name], value, rel_tol=SAME_PARAMETER):
                _check_model_start_agrees(f"kernel parameter {name}", model.kernel.params[name], value)
        self.places = places

    def starts(self, form: Form, first: int, n: int) -> Sequence[Sequence[Start]]:
        """Where problems first ... first + n - 1 may begin, those of one form: a Start for each column.

        ValueError when the features of the form are not those of the model: other landmarks, another basis.
        """
        model, features = self.model, form.features
        pairs = len(self.places) > 1 and self.multiclass in PAIRWISE
        known = [_start_attribute(model.extras, name, first, pairs) for name in features.attributes()]
        if not (
            _same_start_maps(model._map, features.mapping())
            and _equal_starts(known, list(features.attributes().values()))
        ):
            names = ", ".join(features.attributes()) or "a map"
            raise ValueError(
                f"warm_start needs a model of the same features, and this fit has other ones ({names}) than the model; "
                "give the parameters, weights and random_state that made those of the model, or no warm_start"
            )
        rows = self.places[first if pairs else 0]
        found = [self._start(form, j, rows) for j in ([first] if pairs else range(model.intercept_.shape[0]))]
        if n == 1:
            return [found]
        return [[one] for one in found] if len(found) == n else [[]] * n

    def _start(self, form: Form, j: int, rows: np.ndarray) -> Start:
        model = self.model
        duals = model.duals[j][:, rows] if model.duals.ndim == 3 else model.duals[j][None, rows]
        alpha = None if model._alpha is None else model._alpha[j, rows].astype(np.float64)
        coef = form.features.from_model(None if model._coef is None else model._coef[j].astype(np.float64), alpha)
        return Start(coef, float(model.intercept_[j]), duals.astype(np.float64), alpha)


def _check_model_start_agrees(what: str, theirs: Any, ours: Any) -> None:
    """Raise ValueError unless a warm start's model and this fit agree on something about the problem."""
    if theirs != ours:
        raise ValueError(
            f"warm_start needs a model of the same kind of problem; {what}: {theirs!r} there, {ours!r} here; "
            f"give a model with the same {what}, or no warm_start"
        )


def _start_attribute(extras: Mapping[str, Any], name: str, j: int, pairs: bool) -> Any:
    """Attribute of the model of a warm start, or of one of its pairs of classes; None: it has none."""
    value = extras.get(name)
    return value[j] if pairs and value is not None else value


def _same_start_maps(theirs: Any, ours: Any) -> bool:
    """Whether the feature maps of a warm start's model and of a fit make the same features."""
    if theirs is None or ours is None:
        return theirs is ours
    try:
        values = theirs.encoded(), ours.encoded()
    except ValueError:  # they hold code, which is the user's business
        values = theirs.attributes(), ours.attributes()
    a, b = (dict(one) for one in values)
    return type(theirs) is type(ours) and a.keys() == b.keys() and _equal_starts(list(a.values()), list(b.values()))


def _equal_starts(theirs: list[Any], ours: list[Any]) -> bool:
    """Whether the arrays of a warm start's model equal those of a fit, one by one."""
    return all(np.array_equal(a, b) for a, b in zip(theirs, ours, strict=True))
