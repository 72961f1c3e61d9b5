"""The points of a grid: mappings of hyper-parameters to values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from mdlearn.objectives.base import Objective
from mdlearn.stages import Call

Asked = tuple[Objective, dict[str, Any]]
"""An objective with its hyper-parameters, and the parameters of the kernel."""


def asked_of(call: Call, grid: Any, params: Mapping[str, Any]) -> tuple[list[dict[str, Any]] | None, list[Asked]]:
    """Points of a grid and what they ask for, each checked; None and nothing for a grid of None."""
    if grid is None:
        call.task(params)
        return None, []
    points = points_of(grid, params)
    return points, [call.task({**params, **point}) for point in points]


def points_of(grid: Any, params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Points of a grid as the user gives it: all combinations of a mapping, or a sequence of mappings.

    Raises
    ------
    TypeError, ValueError
        For anything else, for a grid without points, for points with different names, and for a name that `params`
        has as well.
    """
    points = _combined(grid) if isinstance(grid, Mapping) else _listed(grid)
    names = list(points[0])
    both = [name for name in names if name in params]
    if both:
        raise ValueError(f"{both[0]!r} is in the grid and has one value beside it; give it once")
    return points


def _combined(grid: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """All combinations of the values; the last name varies fastest."""
    if not grid:
        raise ValueError("grid is empty; give a mapping of hyper-parameters to values")
    values = []
    for name, given in grid.items():
        _check_name(name)
        single = isinstance(given, (str, bytes, Mapping)) or getattr(given, "ndim", 1) == 0
        if single or not isinstance(given, Iterable):
            raise TypeError(f"grid[{name!r}] needs to be a sequence of values; got {given!r}")
        values.append(list(given))
        if not values[-1]:
            raise ValueError(f"grid[{name!r}] is empty; give at least one value")
    return [dict(zip(grid, one)) for one in product(*values)]


def _listed(grid: Any) -> list[dict[str, Any]]:
    if isinstance(grid, (str, bytes)) or not isinstance(grid, Sequence):
        raise TypeError(f"grid needs to be a mapping of names to values, or a sequence of such points; got {grid!r}")
    if not grid:
        raise ValueError("grid is empty; give at least one point")
    for i, point in enumerate(grid):
        if not isinstance(point, Mapping):
            raise TypeError(f"grid[{i}] needs to be a mapping of hyper-parameters to values; got {point!r}")
        for name in point:
            _check_name(name)
        if set(point) != set(grid[0]):
            raise ValueError(
                f"points of a grid need the same names; grid[0] has {_told(grid[0])} and grid[{i}] has {_told(point)}"
            )
    return [{name: point[name] for name in grid[0]} for point in grid]


def _check_name(name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"a grid needs names of hyper-parameters; got {name!r}")


def _told(point: Mapping[str, Any]) -> str:
    return ", ".join(map(str, point)) or "none"
