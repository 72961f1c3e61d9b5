"""Coefficients in the type of the rows: float32 rows give a float32 model, and a certificate of what that model holds.

Numbers beyond the range of the type become its largest number; the certificate says what that costs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mdlearn.forms.certificates.primal import growth_to_thresholds, primal
from mdlearn.forms.margin import Column, MarginForm, best_shift

TRIED_LENGTHS = 5
MISS = 0.5
"""Largest relative miss of a threshold that growth is tried for."""
LENGTHENED_LOSS = 1e-6
"""Relative loss of the objective that longer coefficients may make up for."""
WORTH = 1e-9
"""Relative loss of the objective that is worth another pass over the rows, for a better intercept."""


def to_type(values: np.ndarray, dtype: np.dtype[Any], towards_zero: bool = False) -> np.ndarray:
    """Round float64 values to `dtype`; towards zero, multipliers stay within their boxes."""
    if values.dtype == dtype:
        return values
    largest = float(np.finfo(dtype).max)
    out = np.clip(values, -largest, largest).astype(dtype)
    if towards_zero:
        out = np.where(np.abs(out) > np.abs(values), np.nextafter(out, np.zeros_like(out)), out)
    return out


def rounded(
    form: MarginForm, column: Column, objective: float, coef: np.ndarray, intercept: float
) -> tuple[float, np.ndarray, float]:
    """Return (objective, coef, intercept) as a model of the rows' type holds them, still in float64 arrays.

    float64 rows cost nothing, float32 rows a pass or two: margins that met their thresholds miss some by rounding,
    and where that is dear (C = inf, or large), coefficients a trace longer meet them again.
    """
    dtype = form.features.dtype
    if dtype == np.float64:
        return objective, coef, intercept
    growth, found = 1.0, []
    for _ in range(TRIED_LENGTHS):
        held = to_type(growth * np.append(coef, intercept), dtype).astype(np.float64)
        value, z, factor = primal(form, column, held[:-1], float(held[-1]))
        if form.bias == "free" and value - objective > WORTH * abs(objective):
            # The intercept that suited coefficients before they were rounded suits them no more.
            shifted = to_type(np.append(held[:-1], held[-1] + best_shift(column, z)), dtype).astype(np.float64)
            trial, moved, own = primal(form, column, shifted[:-1], float(shifted[-1]))
            if trial < value:
                held, value, z, factor = shifted, trial, moved, own
        found.append((factor, value, held))
        dear = value - objective > LENGTHENED_LOSS * abs(objective)
        short = factor if column.hard else growth_to_thresholds(column, z, MISS) if dear else 1.0
        if short == 1.0 or math.isinf(short):
            break
        growth *= short * (1.0 + float(np.finfo(dtype).eps))
    # Soft margins have factor 1.
    _, value, held = min(found, key=lambda one: one[:2])
    return value, held[:-1], float(held[-1])
