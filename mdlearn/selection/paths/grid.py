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
    """Points of a grid as the user gives it: all combinations of a mapping, or the union of several grids.

    Raises
    ------
    TypeError, ValueError
        For anything else, for a grid without points, and for a name that `params` has as well.
    """
    points = _combined(grid) if isinstance(grid, Mapping) else _united(grid)
    both = [name for name in names_of(points) if name in params]
    if both:
        raise ValueError(f"{both[0]!r} is in the grid and has one value beside it; give it once")
    return points


def names_of(points: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names that some point has, in the order in which they come first."""
    return list(dict.fromkeys(name for point in points for name in point))


def _combined(grid: Mapping[Any, Any], title: str = "grid", alone: bool = False) -> list[dict[str, Any]]:
    """All combinations of the values; the last name varies fastest. `alone`: a value may stand without a sequence."""
    if not grid and not alone:
        raise ValueError(f"{title} is empty; give a mapping of hyper-parameters to values")
    values = []
    for name, given in grid.items():
        if not isinstance(name, str):
            raise TypeError(f"a grid needs names of hyper-parameters; got {name!r}")
        single = isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable)
        if single or getattr(given, "ndim", 1) != 1:
            if not alone:
                raise TypeError(f"{title}[{name!r}] needs to be a sequence of values; got {given!r}")
            given = [given]
        values.append(list(given))
        if not values[-1]:
            raise ValueError(f"{title}[{name!r}] is empty; give at least one value")
    return [dict(zip(grid, one)) for one in product(*values)]


def _united(grid: Any) -> list[dict[str, Any]]:
    """Points of several grids, one grid after the other; a point whose values stand alone is a grid of one point."""
    if isinstance(grid, (str, bytes)) or not isinstance(grid, Sequence):
        raise TypeError(f"grid needs to be a mapping of names to values, or a sequence of such grids; got {grid!r}")
    if not grid:
        raise ValueError("grid is empty; give at least one point")
    points = []
    for i, one in enumerate(grid):
        if not isinstance(one, Mapping):
            raise TypeError(f"grid[{i}] needs to be a mapping of hyper-parameters to values; got {one!r}")
        points += _combined(one, f"grid[{i}]", alone=True)
    return points
