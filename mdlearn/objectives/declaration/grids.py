"""Grids that objectives declare: what paths and selection try where the caller gives none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mdlearn.errors import call_with_error_notes, came, faulty
from mdlearn.objectives.declaration.parameters_and_terms import Parameter

VARIANCE_RATIOS = (0.0, *(2.0**k for k in range(-10, 1, 2)))
"""Weights of a margin variance in default grids, in units of C m: only there do they act."""


def grid_of_loss_weight(task: Any, total: float) -> dict[str, list[float]]:
    """Default grid of an objective: of C, nu or lam, around its default; ValueError where none of these is open."""
    for name in ("C", "nu", "lam"):
        parameter = task.parameters.get(name)
        if name in task.given or not isinstance(parameter, Parameter):
            continue
        middle = task.resolve(total)[name]
        values = [(middle if 0 < middle < math.inf else 1.0) * 10.0**k for k in range(-3, 4)]
        return {name: [value for value in values if parameter.low <= value <= parameter.high]}
    raise ValueError(f"objective {task.name!r} has no default grid for what is left open; give grid={{name: values}}")


def declared_grid(task: Any, total: float) -> Any:
    """Return the grid that an objective declares for rows of weight `total`; FaultyPlugin for what is none."""
    grid = call_with_error_notes(task, "objective", "grid", total)
    if not isinstance(grid, (Mapping, Sequence)) or isinstance(grid, str):
        raise faulty(task, "objective", "grid", f"returned {came(grid)}, a mapping or a sequence of them is needed")
    return grid
