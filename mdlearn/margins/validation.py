"""Validation of arrays and weights for the functions on margins."""

from __future__ import annotations

from typing import Any

import numpy as np

# Quotients of sums, as voting margins are, may leave their range by rounding, and by nothing more.
ROUNDING_OF_MARGINS = 1e-12


def validate_margins(z: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
    """Validate margins and weights: return them in float64, without the rows of weight 0."""
    z = validate_margin_array(z, "the array of margins")
    if z.ndim != 1:
        raise ValueError(f"the array of margins has shape {z.shape}, but one number per row, shape (n,), is needed")
    w = validate_margin_counts(sample_weight, z.size)
    return z[w > 0], w[w > 0]


def validate_margin_counts(sample_weight: Any, n: int) -> np.ndarray:
    """Validate weights of n margins: return them in float64; None means one each."""
    if sample_weight is None:
        return np.ones(n)
    w = validate_margin_array(sample_weight, "sample_weight")
    if w.shape != (n,):
        raise ValueError(f"sample_weight has shape {w.shape}, but there are {n} rows; give one weight per row")
    if w.min() < 0:
        raise ValueError(f"sample_weight has a negative entry, {w.min():g}; weights are repetition counts")
    if w.max() == 0:
        raise ValueError("sample_weight is zero everywhere; at least one row needs a positive weight")
    return w


def validate_margin_array(values: Any, name: str) -> np.ndarray:
    """Validate ``values``, an argument of a function on margins: a non-empty finite float64 array."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} cannot be read as an array of real numbers") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} holds {array.dtype.name}, but real numbers are needed")
    if array.size == 0:
        raise ValueError(f"{name} is empty, but at least one number is needed")
    array = array.astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity; remove or replace such entries")
    return array


def validate_margin_number(value: Any, name: str) -> float:
    """Validate ``value``, an argument of a function on margins: a finite float; errors name it ``name``."""
    array = validate_margin_array(value, name)
    if array.ndim != 0:
        raise ValueError(f"{name} has shape {array.shape}, but a single number is needed")
    return float(array)


def validate_margin_signs(y: Any, rows: np.ndarray, name: str, weights: np.ndarray) -> np.ndarray:
    """Validate labels for margins as signs: those of positive weight have two values, and the second in order is 1."""
    y = np.asarray(y)
    if y.shape != (rows.shape[0],):
        raise ValueError(f"y has shape {y.shape}, but {name} has {rows.shape[0]} rows; give one label per row")
    labels = np.unique(y[weights > 0])
    if labels.size != 2:
        raise ValueError(f"y has {labels.size} distinct labels of positive weight, but exactly two are needed")
    return np.where(y == labels[1], 1.0, -1.0)
