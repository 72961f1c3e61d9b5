"""Answers of problems that nothing was done for: w = 0, with what their terms and the weight of their rows say."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mdlearn.forms.proof import Solution, judge


class AtZero(NamedTuple):
    """What is known of a problem at w = 0, b = 0 without its rows, as certificates state it.

    Attributes
    ----------
    value : float
        The objective but for constraints; the scale of the gap.
    lower : float
        What multipliers 0 say; -inf where a mean pulls at the rows.
    hard : bool
        Whether there are constraints.
    """

    value: float
    lower: float
    hard: bool


class Blanks:
    """Solutions w = 0 in the shape of another problem's.

    Parameters
    ----------
    like : Solution
    tol : float
    """

    def __init__(self, like: Solution, tol: float) -> None:
        self.like, self.tol = like, tol
        self.coef = None if like.coef is None else np.zeros(like.coef.shape)
        self.none = np.zeros(np.shape(like.intercept)) if np.ndim(like.intercept) else 0.0
        self.arrays: dict[int, tuple[np.ndarray | None, np.ndarray]] = {}

    def solution(self, n_rows: int, zero: AtZero) -> Solution:
        """Return w = 0 for a problem of so many rows, certified."""
        if n_rows not in self.arrays:
            alpha, beta = (
                None if one is None else np.broadcast_to(0.0, (*one.shape[:-1], n_rows))
                for one in (self.like.alpha, self.like.beta)
            )
            assert beta is not None
            self.arrays[n_rows] = alpha, beta
        alpha, beta = self.arrays[n_rows]
        objective = np.inf if zero.hard else zero.value
        certificate = judge(objective, zero.lower, zero.value, zero.hard, self.tol)
        return Solution(self.coef, self.none, alpha, beta, self.none, certificate)
