"""Checked forms: what an objective outside mdlearn returns is looked at once per fit, before any long work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mdlearn.data.features.feature_map import FeatureMap
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.validation import Data
from mdlearn.errors import call_with_error_notes, came, class_is_foreign, faulty
from mdlearn.forms.answer_faults import Fault, floats_answer_fault, number_answer_fault, solution_answer_fault
from mdlearn.forms.column import Column
from mdlearn.forms.composite import Composite
from mdlearn.forms.margin import BIASES, MarginForm, check_bounded_in_bias
from mdlearn.forms.problem import Form, Problem, Several
from mdlearn.forms.proof import Solution
from mdlearn.model.task import task_of
from mdlearn.objectives.base import Objective
from mdlearn.objectives.declaration.parameters_and_terms import declared_loss_fault

FEATURES = "LinearFeatures or KernelFeatures"
"""What a form and the checks of it call features."""

COMPARED_ROWS, ROUNDING_OF_FEATURES = 64, 1e-6
"""Rows whose decision values by features of a foreign objective are held against those of the model; difference,
relative to |x||w| and a hundred times the largest value, that is rounding, of float32 too."""
JUDGED_VALUES = ("coef", "alpha", "intercept")
"""Values of a solution that its certificate is about; None counts as NaN, which later checks refuse."""


def check_features(task: Objective, features: Any, data: Data) -> None:
    """Check in a fit the features that a foreign objective made; FaultyPlugin for others than those of all rows."""
    fault = _form_features_fault(features)
    if not fault and features.n_rows != data.X.shape[0]:
        fault = f"returned features of {features.n_rows} rows, those of all {data.X.shape[0]} rows are needed"
    place = None if fault else features.mapping()
    if place is not None and not isinstance(place, FeatureMap):
        fault = f"returned features with a map of type {type(place).__name__}, a FeatureMap or None is needed"
    elif isinstance(place, FeatureMap) and (
        place.columns != data.X.shape[1]
        or (place.linear and isinstance(features, LinearFeatures) and place.width != features.width)
    ):
        fault = (
            f"returned a {type(place).__name__} with columns = {place.columns} and width = {place.width}, "
            f"{data.X.shape[1]} and {features.width} are needed"
        )
    if fault:
        raise faulty(task, "objective", "features", fault)


def check_form(task: Objective, form: Form, data: Data) -> None:
    """Check the form that a foreign objective wrote for a fit; FaultyPlugin says what is wrong with it.

    ValueError where its parameters leave a free bias without an optimum.
    """
    own = type(task)
    if own.form is not Objective.form or own.problem is not Objective.problem:
        fault = _fault_of_checked_form(form) or (
            own.arranged is Objective.arranged and _form_number_fault(task, form, data)
        )
        if fault:
            method = "form" if own.problem is Objective.problem else "problem"
            raise faulty(task, "objective", method, fault)
    # Without a squared norm coefficients can do the same, and others look at both.
    if isinstance(form, MarginForm) and form.ridge > 0:
        check_bounded_in_bias(form.bias, form.columns)


def arranged_form_solutions(task: Objective, solutions: Sequence[Solution], form: Form, data: Data) -> list[Solution]:
    """Return the solutions of a form as its objective arranges them.

    Those of a form over the rows of X are certified as they are: FaultyPlugin for others.
    """
    of_rows, found = class_is_foreign(type(task)) and getattr(form.features, "rows", None) is data.X, []
    for one in solutions:
        before = {name: np.array(getattr(one, name), dtype=float) for name in (JUDGED_VALUES if of_rows else ())}
        made = call_with_error_notes(task, "objective", "arranged", one, form)
        found.append(made)
        for name, values in before.items() if isinstance(made, Solution) else ():
            after = np.asarray(getattr(made, name), dtype=float)
            if after.shape == values.shape and np.isfinite(after).all() and not np.array_equal(after, values):
                fault = f"returned other {name} than the form's, which is over the rows of X; leave them as they are"
                raise faulty(task, "objective", "arranged", fault)
    return found


def check_form_solutions(task: Objective, solutions: Sequence[Any], form: Form, data: Data, one_each: bool) -> None:
    """Check the solutions of a foreign objective's fit: types, number of decision values, and lengths.

    `one_each`: every solution is that of a pair of classes, with rows of its own.
    """
    own, place = type(task), form.features.mapping()
    method = "arranged" if own.arranged is not Objective.arranged else "form"
    if own.problem is not Objective.problem and method == "form":
        method = "problem"
    fault = next(filter(None, map(solution_answer_fault, solutions)), None)
    if not fault and not one_each:
        k, n = n_decision_values(task, data), sum(max(np.size(one.intercept), 1) for one in solutions)
        if n != k:
            fault = f"led to {n} decision value{'s' * (n > 1)} {_form_for_classes(task, data)}, {k} {_are(k)} needed"
        fault = fault or _form_lengths_fault(solutions, place.width if place else data.X.shape[1], data.X.shape[0])
        if not fault and own.features is not Objective.features and method != "arranged":
            method, fault = "features", _features_of_rows_fault(solutions, form, data)
    if fault:
        raise faulty(task, "objective", method, fault)


def _features_of_rows_fault(solutions: Sequence[Solution], form: Form, data: Data) -> Fault:
    """Fault of explicit features that are not, row by row, what the model makes of the rows of X: some of them."""
    features, m = form.features, data.X.shape[0]
    place = features.mapping()
    if not isinstance(features, LinearFeatures) or features.n_rows != m or not (place is None or place.linear):
        return None
    some = np.unique(np.linspace(0, m - 1, min(m, COMPARED_ROWS)).astype(np.intp))
    rows = data.X.take(some)
    rows = rows if place is None else place.checked(rows)
    for one in solutions:
        if one.coef is None or np.ndim(one.coef) != 1:
            continue
        certified, found = features.decision(one.coef)[some], rows.dot(one.coef)
        sizes = np.sqrt(rows.squares()) * float(np.linalg.norm(one.coef))
        off = np.abs(certified - found) - ROUNDING_OF_FEATURES * (sizes + 100.0 * np.abs(certified).max(initial=0.0))
        if off.max(initial=0.0) > 0:
            i = int(off.argmax())
            return (
                f"returned features whose product with the coefficients is {float(certified[i]):.10g} for row "
                f"{int(data.rows[some[i]])}, where the model has {float(found[i]):.10g}; features need to be the rows "
                "of X, or those of a FeatureMap that are the same each time"
            )
    return None


def n_decision_values(task: Objective, data: Data) -> int:
    """Return how many decision values a form's solutions need: one per class where the task has such, for two one."""
    return data.classes.shape[0] if data.several and task_of(task).by_class else 1


def _form_for_classes(task: Objective, data: Data) -> str:
    """Words in the check of a form: what the number of its columns is for."""
    own = task_of(task)
    if own.by_class:
        return f"for {data.classes.shape[0]} {'classes' if data.indicators is None else 'labels'}"
    return "for numbers" if own.built_in else f"for the task {own.name!r}"


def _are(count: int) -> str:
    """Verb in the check of a form, for so many."""
    return "is" if count == 1 else "are"


def _form_lengths_fault(solutions: Sequence[Solution], width: int, n_rows: int) -> Fault:
    """Fault of the lengths of a form's solutions over all rows."""
    lengths = {"coef": width, "alpha": n_rows, "beta": n_rows}
    for one in solutions:
        for name, length in lengths.items():
            value = getattr(one, name)
            if value is not None and value.shape[-1] != length:
                needed = f"a length of {length} is needed"
                return f"led to {came(value)} as {name}, {needed}"
        if one.coef is None and one.alpha is None:
            return "led to neither coef nor alpha, one of them is needed"
    return None


def _form_features_fault(features: Any) -> Fault:
    """Fault of features in a form."""
    if isinstance(features, (LinearFeatures, KernelFeatures)):
        return None
    return f"returned {came(features)} as features, {FEATURES} are needed"


def _fault_of_checked_form(form: Any) -> Fault:
    """Fault of a form by itself."""
    if not isinstance(form, (MarginForm, Problem, Several)):
        return f"returned {came(form)}, a MarginForm, Composite, Problem or form of Several is needed"
    fault = _form_features_fault(getattr(form, "features", None))
    if fault:
        return fault
    bias = getattr(form, "bias", None)
    if bias not in BIASES:
        return f"returned a form with the bias {bias!r}, one of {', '.join(BIASES)} is needed"
    if isinstance(form, MarginForm):
        return _form_columns_fault(form)
    if isinstance(form, Problem):
        values = {"at_zero": number_answer_fault(getattr(form, "at_zero", None), what=" as at_zero")}
        unit = getattr(form, "unit", None)
        values["unit"] = number_answer_fault(unit, np.finfo(float).tiny, np.finfo(float).max, " as unit")
        fault = next(filter(None, values.values()), None)
    return fault or (_form_composite_fault(form) if isinstance(form, Composite) else None)


def _form_composite_fault(form: Composite) -> Fault:
    """Fault of what a form, a Composite, was made of."""
    p = form.features.width + (form.bias != "none")
    if not isinstance(form.features, LinearFeatures):
        return f"returned a Composite over {type(form.features).__name__}, LinearFeatures are needed"
    if not (isinstance(form.shape, tuple) and len(form.shape) == 2 and form.shape[0] == p):
        return f"returned a Composite of shape {form.shape}, ({p}, number of columns) is needed"
    for name in ("ridge", "beta"):
        value = getattr(form, name)
        fault = floats_answer_fault(value, (p,), f" as {name}")
        if not fault and (value < 0).any():
            fault = f"returned a negative number as {name}, numbers >= 0 are needed"
        if fault:
            return fault
    return None


def _form_columns_fault(form: MarginForm) -> Fault:
    """Fault of the columns of a margin form."""
    if not isinstance(form.columns, tuple) or not all(isinstance(one, Column) for one in form.columns):
        return f"returned {came(form.columns)} as columns, a tuple of Column is needed"
    shape, seen = (form.features.n_rows,), set[int]()
    for j, column in enumerate(form.columns):
        arrays = {"counts": column.counts}
        if "y" in vars(column):  # signs of one class against the rest are made when they are asked for
            arrays["y"] = column.y
        if column.offset is not None:
            arrays["offset"] = column.offset
        for name, value in arrays.items():
            if id(value) not in seen:
                fault = floats_answer_fault(value, shape, f" as {name} of column {j}")
                if not fault and value.dtype != np.float64:
                    fault = f"returned {came(value)} as {name} of column {j}, float64 is needed"
                if fault:
                    return fault
            seen.add(id(value))
        if (column.counts < 0).any() or not column.counts.any():
            return f"returned counts of column {j} that are negative or all 0, counts >= 0 are needed, some of them > 0"
        if "y" in arrays and (np.abs(column.y[column.counts > 0]) != 1.0).any():
            return f"returned y of column {j} with other values than signs, -1.0 or 1.0 is needed"
        fault = declared_loss_fault(column.terms)
        if fault:
            return f"returned column {j} with terms that are wrong: {fault}"
    return None


def _form_number_fault(task: Objective, form: Any, data: Data) -> Fault:
    """Fault of a form whose columns are not one per class, as far as it tells before it is solved."""
    n, k = -1, n_decision_values(task, data)
    if isinstance(form, Composite):
        n = form.shape[1]
    elif isinstance(form, MarginForm):
        n = len(form.columns)
    if n in (-1, k):
        return None
    return f"returned {n} column{'s' * (n != 1)} {_form_for_classes(task, data)}, {k} {_are(k)} needed"
