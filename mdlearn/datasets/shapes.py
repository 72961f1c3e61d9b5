"""Shapes: small sets in the plane."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mdlearn.data.validation import check_number
from mdlearn.datasets.common import LARGEST_FLOAT, balanced_labels, dataset_generator


def checkerboard(m: int = 1000, size: int = 4, *, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Points in the shape of a checkerboard (LSVM paper: 1000 points on 4 x 4 fields).

    Parameters
    ----------
    m : int, default 1000
        Number of points, uniform on [0, size)^2.
    size : int, default 4
        Fields per side, at least 2.
    random_state : None, int or numpy Generator
        Seed.

    Returns
    -------
    X : ndarray of shape (m, 2)
    y : ndarray of shape (m,)
        +1 where ``floor(x1) + floor(x2)`` is even, else -1.
    """
    m = check_number(m, "m", low=1, integer=True)
    size = check_number(size, "size", low=2, integer=True)
    X = dataset_generator(random_state, "checkerboard").random((m, 2)) * size
    return X, np.where(np.floor(X).sum(axis=1) % 2 == 0, 1.0, -1.0)


def xor(m: int = 400, *, noise: float = 0.3, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Shape of XOR: four round groups at (+-1, +-1), opposite corners alike (L3-SVM paper, figure 1: 400 points).

    The paper states the number of points only. Clusters and their spread are this library's choice.

    Parameters
    ----------
    m : int, default 400
        Number of points; corners have equal numbers, up to one point.
    noise : float, default 0.3
        Standard deviation around a corner, in both directions.
    random_state : None, int or numpy Generator
        Seed.

    Returns
    -------
    X : ndarray of shape (m, 2)
    y : ndarray of shape (m,)
        +1 where the signs of the corner's coordinates differ, else -1.
    """
    m = check_number(m, "m", low=1, integer=True)
    noise = check_number(noise, "noise", low=0, high=LARGEST_FLOAT)
    rng = dataset_generator(random_state, "xor")
    corner = rng.permutation(np.arange(m) % 4)
    signs = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [1.0, -1.0]])[corner]
    return signs + noise * rng.standard_normal((m, 2)), -signs[:, 0] * signs[:, 1]


def swiss_roll(m: int = 400, *, noise: float = 0.0, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Shape of two sheets rolled up together, seen from the end (L3-SVM paper, figure 2: 400 points, balanced).

    The paper states no more than that. As in scikit-learn's ``make_swiss_roll``, a sheet is ``t (cos t, sin t)`` with
    t uniform on [1.5 pi, 4.5 pi], plus noise. Left out is the sheet's width, which tells nothing about the class. The
    second sheet is the first one turned by half a circle: sheets are about pi apart.

    Parameters
    ----------
    m : int, default 400
        Number of points; classes have equal numbers, up to one point.
    noise : float, default 0
        Standard deviation of the normal noise on both coordinates.
    random_state : None, int or numpy Generator
        Seed.

    Returns
    -------
    X : ndarray of shape (m, 2)
    y : ndarray of shape (m,)
        The sheet: -1 or +1 (the turned one).
    """
    m = check_number(m, "m", low=1, integer=True)
    noise = check_number(noise, "noise", low=0, high=LARGEST_FLOAT)
    rng = dataset_generator(random_state, "swiss_roll")
    y = balanced_labels(m, rng)
    t = rng.uniform(1.5 * math.pi, 4.5 * math.pi, m)
    X = (-y * t)[:, None] * np.column_stack([np.cos(t), np.sin(t)])
    return X + noise * rng.standard_normal((m, 2)), y
