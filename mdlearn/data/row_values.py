"""Values that callers give for their rows, as those of the rows of a problem."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mdlearn.data.validation import Data


def row_values(data: Data, values: Any, name: str, *, low: float = -math.inf) -> np.ndarray:
    """Return the values of the rows of `data`, from numbers that the caller gave for every row of X.

    Rows of weight 0 are not among those of `data`, nor are, by turns, those of other folds and of other classes.

    Parameters
    ----------
    data : Data
    values : array-like of shape (n,)
        A number for each row of the caller's X.
    name : str
        What errors call them.
    low : float, default -inf
        Smallest number allowed in rows that count.

    Returns
    -------
    ndarray of shape (m,), float64

    Raises
    ------
    ValueError
        For another length, or NaN, infinity or numbers below `low` in rows that count.
    TypeError
        For anything but numbers.
    """
    found = np.asarray(values)
    if found.dtype.kind not in "biuf":
        raise TypeError(f"{name} needs to be numbers, one per row of X; got an array of {found.dtype}")
    if found.shape != (data.n_given,):
        raise ValueError(f"{name} needs one number per row of X, shape ({data.n_given},); got shape {found.shape}")
    mine = found[data.rows].astype(np.float64)
    if not np.isfinite(mine).all():
        row = int(data.rows[int(np.isfinite(mine).argmin())])
        raise ValueError(f"{name} has NaN or infinity in row {row}; give a finite number for every row of X")
    if (below := mine < low).any():
        at = int(below.argmax())
        value, row = float(mine[at]), int(data.rows[at])
        raise ValueError(f"{name} needs to be numbers >= {low:g}, one per row of X; got {value!r} in row {row}")
    return mine
