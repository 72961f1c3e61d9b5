"""Where an engine may begin: the solution of another problem over the same features. It is no part of any problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.data.features.spaces import Features
from mdlearn.forms.proof import Solution


@dataclass(frozen=True, eq=False)
class Start:
    """What a model holds of one column, in the rows and features of the problem that begins with it.

    Attributes
    ----------
    coef : ndarray of shape (width,)
        Coefficients of the features.
    intercept : float
    beta : ndarray of shape (T, m)
        Multipliers, within the boxes of the problem that they come from.
    alpha : ndarray of shape (m,) or None
        Dual coefficients, where there are such.
    """

    coef: np.ndarray
    intercept: float
    beta: np.ndarray
    alpha: np.ndarray | None


def starts_of(solution: Solution, features: Features) -> list[Start]:
    """A Start for every column of a solved problem over features of the same shape; none where they have another."""
    several = np.ndim(solution.intercept) > 0
    parts: list[Any] = [solution.coef, solution.alpha, solution.beta, solution.intercept]
    columns = list(zip(*([None] * len(parts[3]) if part is None else part for part in parts))) if several else [parts]
    found = []
    for coef, alpha, beta, intercept in columns:
        alpha = None if alpha is None else alpha.reshape(-1)
        start = Start(features.recalled(coef, alpha), float(intercept), beta, alpha)
        if start.coef.shape != (features.width,) or beta.shape[-1] != features.n_rows:
            return []
        found.append(start)
    return found
