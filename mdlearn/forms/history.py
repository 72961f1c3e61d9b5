"""The record of a fit's progress: what a callback sees and a model keeps."""

from __future__ import annotations

from dataclasses import dataclass, field


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
