"""Where an engine may begin: the solution of another problem over the same features. It is no part of any problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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
