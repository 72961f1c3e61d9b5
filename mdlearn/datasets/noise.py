"""Noise for data that exist already."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mdlearn.data.validation import check_number
from mdlearn.datasets.common import checked_dataset_matrix, dataset_generator, dataset_row_slices


def add_noise(X: Any, snr: float, random_state: Any = None) -> np.ndarray:
    """Add white Gaussian noise of a given signal-to-noise ratio to every feature.

    The MDLM paper (table 4) says no more than that. Here the ratio is plain, not in decibels: each feature's variance
    over the variance of its noise, so that features may have any units. Noise of p percent is ``snr=100 / p``,
    a ratio of r decibels ``snr=10 ** (r / 10)``. A constant feature stays as it is.

    Parameters
    ----------
    X : array-like of shape (m, d)
        Dense rows. They are not changed.
    snr : float
        Above 0; infinity adds nothing.
    random_state : None, int or numpy Generator
        Seed.

    Returns
    -------
    ndarray of shape (m, d)
        A new array: float32 for float32 rows, else float64.
    """
    X = checked_dataset_matrix(X)
    snr = check_number(snr, "snr", low=0, strict=True)
    rng = dataset_generator(random_state, "add_noise")
    scale = X.std(axis=0, dtype=np.float64) / math.sqrt(snr)
    noisy = np.empty(X.shape, dtype=X.dtype)
    for rows in dataset_row_slices(*X.shape):
        part = X[rows]
        noisy[rows] = part + scale * rng.standard_normal(part.shape)
    return noisy
