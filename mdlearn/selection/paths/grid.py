"""The points of a grid, in which order they are solved, and where each may begin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from mdlearn.objectives.base import Objective
from mdlearn.stages import Call

Asked = tuple[Objective, dict[str, Any]]
"""An objective with its hyper-parameters, and the parameters of the kernel."""


def asked_of(call: Call, grid: Any, params: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[Asked]]:
    """Points of a grid and what they ask for, each checked."""
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


def grouped(keys: Sequence[Any]) -> list[list[int]]:
    """Positions of equal keys, in the order in which they come first; keys may hold arrays."""
    groups: list[list[int]] = []
    for i, key in enumerate(keys):
        for group in groups:
            if same(keys[group[0]], key):
                group.append(i)
                break
        else:
            groups.append([i])
    return groups


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal: mappings and arrays by what they hold."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b)
    return a is b or bool(a == b)


def place_of(task: Objective, params: dict[str, Any], total: float) -> list[float] | None:
    """Weights of the terms of a problem: what is dear to change first. None where an objective writes no terms."""
    try:
        terms = task.terms(params, total)
    except NotImplementedError:
        return None
    weights = [term.weight for term in terms.loss]
    return [terms.variance, terms.penalty, *weights, terms.mean]


class Route:
    """The way through the points of one group.

    Points are visited by increasing weights, the variance first. Each begins at the nearest point that is solved, where
    distances are those of the logarithms of the weights.

    Parameters
    ----------
    places : list of list of float, or None
        Weights of every point (see `place_of`).
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
