"""The record of a fit's progress: what a callback sees and a model keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mdlearn.forms.proof import Certificate, gap_between


@dataclass(frozen=True)
class State:
    """What a callback sees, and one record of a model's history.

    Attributes
    ----------
    iteration : int
        Reports of this problem so far, from 1.
    objective, lower_bound, gap : float
        Best values so far, as the engine estimates them.
    elapsed : float
        Seconds since fit was entered.
    problem : int
        Index of the class or pair being solved.
    row_dots : int or None
        Products with single rows so far, where the engine counts them (``cd`` on sparse rows): a measure of work that
        does not depend on the machine. Not kept in files.
    point : int or None
        Position in its grid of the point of a path; None for a single fit. For callbacks: models do not keep it.
    """

    iteration: int
    objective: float
    lower_bound: float
    gap: float
    elapsed: float
    problem: int
    row_dots: int | None = field(default=None, compare=False)
    point: int | None = field(default=None, compare=False)


def settled(
    history: Sequence[State], certificates: Sequence[Certificate], scales: Sequence[tuple[float, bool]]
) -> list[State]:
    """A history by problems, which promises nothing that certificates do not hold, and ends with these.

    Estimates of engines can be better than what is true, and are withdrawn where a later look finds less. Problems in
    threads report in any order.

    Parameters
    ----------
    history : sequence of State
    certificates : sequence of Certificate
        One for each problem.
    scales : sequence of (float, bool)
        The problem's value at w = 0, and whether it has constraints: what gaps are relative to.

    Returns
    -------
    list of State
    """
    found = sorted(history, key=lambda state: state.problem)
    for i in reversed(range(len(found))):
        state, told = found[i], certificates[found[i].problem]
        values, gap = (told.objective, told.lower_bound), told.gap
        if i + 1 < len(found) and found[i + 1].problem == state.problem:
            later = found[i + 1]
            same, gap = (later.objective, later.lower_bound), later.gap
            values = max(state.objective, same[0]), min(state.lower_bound, same[1])
            if not math.isfinite(values[1]):
                gap = state.gap
            elif values != same:
                gap = gap_between(*values, *scales[state.problem])
        found[i] = replace(state, objective=values[0], lower_bound=values[1], gap=gap)
    return found
