"""Grid of a path: its points, in which order they are solved, and where each may begin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from mdlearn.objectives.base import Objective
from mdlearn.stages import Call

Asked = tuple[Objective, dict[str, Any]]
"""An objective with its hyper-parameters, and the parameters of the kernel."""


def checked_grid_points(call: Call, grid: Any, params: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[Asked]]:
    """Points of a path's grid as the user gives it, and the objective and kernel parameters of each, checked.

    The points are all combinations of a mapping, or the union of several grids. Raises TypeError, ValueError for
    anything else, for a grid without points, and for a name that `params` has as well.
    """
    points = _grid_combinations(grid) if isinstance(grid, Mapping) else _union_of_grids(grid)
    both = [name for name in grid_names(points) if name in params]
    if both:
        raise ValueError(f"{both[0]!r} is in the grid and has one value beside it; give it once")
    return points, [call.task({**params, **point}) for point in points]


def grid_names(points: Sequence[Mapping[str, Any]]) -> list[str]:
    """Hyper-parameters that some point of a grid has, in the order in which they come first."""
    return list(dict.fromkeys(name for point in points for name in point))


def _grid_combinations(grid: Mapping[Any, Any], title: str = "grid", alone: bool = False) -> list[dict[str, Any]]:
    """Combinations of a grid's values; the last name varies fastest. `alone`: a value may stand without a sequence."""
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


def _union_of_grids(grid: Any) -> list[dict[str, Any]]:
    """Points of several grids, one grid after the other; a point whose values stand alone is a grid of one point."""
    several = isinstance(grid, Sequence) or (isinstance(grid, np.ndarray) and grid.ndim == 1)
    if isinstance(grid, (str, bytes)) or not several:
        raise TypeError(f"grid needs to be a mapping of names to values, or a sequence of such grids; got {grid!r}")
    if not len(grid):
        raise ValueError("grid is empty; give at least one point")
    points = []
    for i, one in enumerate(grid):
        if not isinstance(one, Mapping):
            raise TypeError(f"grid[{i}] needs to be a mapping of hyper-parameters to values; got {one!r}")
        points += _grid_combinations(one, f"grid[{i}]", alone=True)
    return points


def equal_grid_points(keys: Sequence[Any]) -> list[list[int]]:
    """Positions of grid points with equal keys, in the order in which they come first; keys may contain arrays."""
    groups: list[list[int]] = []
    for i, key in enumerate(keys):
        for group in groups:
            if same_grid_key(keys[group[0]], key):
                group.append(i)
                break
        else:
            groups.append([i])
    return groups


def same_grid_key(a: Any, b: Any) -> bool:
    """Whether two keys of points in a path's grid are equal: mappings and arrays by their entries."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same_grid_key, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_grid_key(a[name], b[name]) for name in a)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b)
    return a is b or bool(a == b)


def grid_term_weights(task: Objective, params: dict[str, Any], total: float) -> list[float] | None:
    """Weights of the terms of a grid point's problem, the costliest to change first; None without terms."""
    try:
        terms = task.terms(params, total)
    except NotImplementedError:
        return None
    weights = [term.weight for term in terms.loss]
    return [terms.variance, terms.penalty, *weights, terms.mean]


class GridRoute:
    """Order in which the grid points of one group are solved.

    Points are visited by increasing weights, the variance first. Each begins at the nearest point that is solved, where
    distances are those of the logarithms of the weights.

    `places`: weights of every point (see `grid_term_weights`).
    """

    def __init__(self, places: list[list[float] | None]) -> None:
        n = len(places)
        known = [place for place in places if place is not None]
        if len(known) < n or len({len(place) for place in known}) > 1:
            known = [[float(i)] for i in range(n)]
        P = np.array(known)
        self.order: list[int] = np.lexsort(P.T[::-1]).tolist()
        logs = np.zeros(P.shape)
        for j, weights in enumerate(P.T):
            used = np.isfinite(weights) & (weights > 0)
            if used.any():
                low, high = np.log(weights[used].min()), np.log(weights[used].max())
                logs[:, j] = np.log(weights, out=np.full(n, low), where=used)
                # No weight, or an infinite one, is farther away than any other.
                logs[weights == 0, j] = low - 1.0
                logs[np.isinf(weights), j] = high + 1.0
        self.logs, self.ones = logs[self.order], np.ones(len(known[0]))

    def before(self, t: int) -> int | None:
        """Of the first `t` points on the way, the nearest to the next one; of several, the latest."""
        if t == 0:
            return None
        far = np.abs(self.logs[:t] - self.logs[t]) @ self.ones
        return self.order[t - 1 - int(far[::-1].argmin())]
