"""In which order the points of a path are solved, and where each may begin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mdlearn.objectives.base import Objective


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
