"""Values by row in the checks: those that settings make, their length, and what row terms say of rows alone."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mdlearn.api import fit
from mdlearn.objectives.base import Objective
from mdlearn.objectives.declaration.parameters_and_terms import resolve_declared_parameters
from mdlearn.testing.reference import (
    reference_data,
    reference_maker_of_values,
    reference_of_rows,
    reference_sample,
    reference_task,
)
from mdlearn.testing.require import require, require_error


def values_made_by_row(task: Objective) -> dict[str, Any]:
    """Values that settings make by row for the reference, by name; AssertionError for another number of them."""
    n = len(reference_sample(task)[0])
    makers = {name: reference_maker_of_values(task, name) for name in task.parameters}
    found = {name: np.asarray(make(n)) for name, make in makers.items() if make is not None}
    for name, made in found.items():
        told = f"setting {name!r} of {task.name}: by_row({n}) made an array of shape {made.shape}; {n} are needed"
        require(made.shape[:1] == (n,), told)
    return found


def require_length_of_values_by_row(task: Objective, own: dict[str, Any]) -> None:
    """Require that an objective refuses values by row that are more than the rows."""
    X, y, _ = reference_sample(task)
    for name, values in own.items():
        longer = reference_task(task, **{name: np.concatenate([values, values[:1]])})
        told = f"{task.name}: {name} of {len(y) + 1} values for {len(y)} rows of X is accepted; take it by row_values"
        require_error((TypeError, ValueError), partial(fit, longer, X, y), told)


def require_row_terms_of_rows_alone(task: Objective) -> None:
    """Require that row terms are tried, and say by row the same without the rest, where row blocks ask for that."""
    X, y, counts = reference_sample(task)
    data, some = reference_data(task, X, y, counts), np.arange(0, len(y), 2)
    params = resolve_declared_parameters(task, data.total, data)
    found = task.row_terms(data, params)
    own = type(task).row_terms is not Objective.row_terms
    require(
        found is not None or not own or any(reference_maker_of_values(task, name) for name in task.parameters),
        f"{task.name}: row_terms returns None here, so that nothing tries it; declare by_row=... of the Setting that "
        "it reads, or check an instance for which it returns RowTerms",
    )
    if found is None or task.needs_all_rows(params):
        return
    part = reference_of_rows(task, some)
    few = reference_data(part, X[some], y[some], counts[some])
    alone = part.row_terms(few, resolve_declared_parameters(part, data.total, few))
    for name in ("weights", "shifts"):
        one, other = (getattr(terms, name, None) for terms in (alone, found))
        there = np.isin(data.rows, some)
        same = one is None if other is None else one is not None and np.allclose(one, np.asarray(other)[..., there])
        require(
            same,
            f"{task.name}: row_terms says other {name} of rows without the rest, although needs_all_rows is empty; let "
            "it depend on the row alone, or return why row blocks will not do",
        )
