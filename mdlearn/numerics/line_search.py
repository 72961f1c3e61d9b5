"""Line search: the minimum of a convex objective along a line, from the rise of its slope; the top of a parabola."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

TRIALS = 60
"""Most derivatives of a search."""
FAR_LENGTH = 1e12
"""Length beyond which an objective that still falls has no minimum along the line."""
GROWTH = 8.0
ROUGH_SLOPE = 0.1
"""Share of the first slope that may be left along one of many Newton steps."""
SLOPE_ROUNDING = 1e-12
"""Share of the first slope that rounding may leave at the minimum of a piecewise quadratic."""


def line_minimum(start: float, along: Callable[[float], tuple[float, float]], close: float) -> float:
    """Line search: length at which the slope is 0 but for a share `close` of its `start`; infinite where it never is.

    Newton's method on the slope, within the bracket known so far. Along a piecewise quadratic it ends on the piece of
    the minimum, and there exactly.

    `start`: slope at 0; `along`: along(t) returns how much the slope has risen since 0, and the second derivative at t.
    """
    if not start < 0:
        return np.inf
    low, high, t = 0.0, np.inf, 1.0
    for _ in range(TRIALS):
        rise, bend = along(t)
        value = start + rise
        if not abs(value) > close * abs(start):
            break
        if value < 0 and t > FAR_LENGTH:
            return np.inf
        low, high = (t, high) if value < 0 else (low, t)
        t = min(t - value / bend, GROWTH * t) if bend > 0 else GROWTH * t
        if not low < t < high:
            t = 0.5 * (low + high) if np.isfinite(high) else GROWTH * low
        if t in (low, high):
            break
    return t


def line_secant(slope: Callable[[float], float], start: float) -> Callable[[float], tuple[float, float]]:
    """Make the function `along` of a line search by secants, for second derivatives that cost much to compute."""
    last = 0.0, start

    def along(t: float) -> tuple[float, float]:
        nonlocal last
        value, before = slope(t), last
        last = t, value
        return value - start, (value - before[1]) / (t - before[0])

    return along


def parabola_maximum(value: Callable[[float], float]) -> float:
    """Length in [0, 1] of a line search at which a concave parabola is highest."""
    low, middle, high = value(0.0), value(0.5), value(1.0)
    slope, bend = 4.0 * middle - 3.0 * low - high, 2.0 * (low - 2.0 * middle + high)
    return float(np.clip(-0.5 * slope / bend, 0.0, 1.0)) if bend < 0 else float(high > low)
