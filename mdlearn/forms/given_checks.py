"""Checks of functions given as a loss: whether they belong together, compared at margins around 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]
COMPARED_MARGINS = np.linspace(-8.0, 8.0, 321)
"""Margins at which the functions are compared."""
FINITE_MARGIN = 50.0
"""Margin, on either side, up to which the functions need to be finite; what is not finite beyond counts as infinite."""
COMPARED_STEP = 1e-3
"""Distance of two margins whose values are compared."""
KINK_HALVINGS = 40
"""Times that the interval between two margins is halved in search of a kink."""
EPS = float(np.finfo(float).eps)


def given_values(function: Function, name: str, t: np.ndarray) -> np.ndarray:
    """Check and return the values of a function given as a loss, one per margin; margins are lent for reading only."""
    lent = t.view()
    lent.flags.writeable = False
    with np.errstate(all="ignore"):
        found = np.asarray(function(lent), dtype=np.float64)
    if found.shape != t.shape:
        raise ValueError(
            f"{name} of a given loss needs to return one number per margin; it returned the shape {found.shape} for "
            f"margins of shape {t.shape}"
        )
    return found


def check_functions(value: Function, derivative: Function, second: Function) -> float:
    """Raise ValueError unless a given loss is convex with a continuous slope, its slope, and the slope's slope.

    Returns the largest second derivative found.
    """
    functions = {"value": value, "derivative": derivative, "second": second}
    wide = np.concatenate([COMPARED_MARGINS, np.linspace(-FINITE_MARGIN, FINITE_MARGIN, 101)])
    for name, function in functions.items():
        found = given_values(function, name, wide)
        if not np.isfinite(found).all():
            at = wide[~np.isfinite(found)][0]
            raise ValueError(f"{name} of a given loss is not finite at the margin {at:g}; it needs to be up to 50")
    f, df, ddf = (
        np.array([given_values(function, name, t) for t in (COMPARED_MARGINS, COMPARED_MARGINS + COMPARED_STEP)])
        for name, function in functions.items()
    )
    rounding = (
        8.0 * EPS / COMPARED_STEP * (np.abs(f).sum(axis=0) + np.abs(df).sum(axis=0) * np.abs(COMPARED_MARGINS)) + 1e-300
    )
    # Whatever the shape, the mean slope is near those at the ends; 1e-6 is for slopes that turn in between.
    mean, spare = (f[1] - f[0]) / COMPARED_STEP, 1e-6 * (1.0 + np.abs(df).max(axis=0)) + rounding
    if ((mean < df.min(axis=0) - spare) | (mean > df.max(axis=0) + spare)).any():
        raise ValueError(
            "derivative of a given loss is not that of value; it is with respect to the margin, and not negated"
        )
    if (df[1] - df[0] < -rounding).any() or (ddf < -1e-9 * (1.0 + np.abs(ddf).max())).any():
        raise ValueError("a given loss needs to be convex; its derivative falls, or second is negative somewhere")
    steepest = _check_no_kinks(derivative)
    rate, middle = (
        (df[1] - df[0]) / COMPARED_STEP,
        given_values(second, "second", COMPARED_MARGINS + 0.5 * COMPARED_STEP),
    )
    most, least = np.maximum(ddf.max(axis=0), middle), np.minimum(ddf.min(axis=0), middle)
    room = 0.01 * most + 1e-6 * (1.0 + np.abs(ddf).max()) + rounding
    wrong = (rate > most + room) | (rate < least - room)
    if wrong.any():
        at = COMPARED_MARGINS[wrong][0]
        raise ValueError(f"second of a given loss is not the derivative of its derivative at the margin {at:g}")
    return max(steepest, float(ddf.max()))


def _check_no_kinks(derivative: Function) -> float:
    """Raise ValueError where a given loss has a kink: every interval is halved towards the larger change of its slope.

    Returns the largest rate of change on the way, which tells of bends between the margins of COMPARED_MARGINS.
    """

    def slope(t: np.ndarray) -> np.ndarray:
        return given_values(derivative, "derivative", t)

    (low, high), steepest = (COMPARED_MARGINS[:-1], COMPARED_MARGINS[1:]), 0.0
    for turn in range(KINK_HALVINGS):
        if turn < KINK_HALVINGS // 2:  # later, rounding shows in the quotient
            steepest = max(steepest, float(((slope(high) - slope(low)) / (high - low)).max()))
        middle = 0.5 * (low + high)
        left = slope(middle) - slope(low) > slope(high) - slope(middle)
        low, high = np.where(left, low, middle), np.where(left, middle, high)
    jump = slope(high) - slope(low)
    if (jump > 1e-6 * (1.0 + np.abs(slope(low)))).any():
        at = high[np.argmax(jump)]
        raise ValueError(
            f"a given loss needs a continuous slope; it has a kink at the margin {at:.4g} (HingeTerm declares kinks)"
        )
    return steepest


def check_conjugate(conjugate: Function, t: np.ndarray, f: np.ndarray, s: np.ndarray) -> None:
    """Raise ValueError unless a given loss has f*(s) = s t - f(t), values f and slopes s at margins t, where finite."""
    found = given_values(conjugate, "conjugate", s)
    wrong = np.isfinite(found) & ~(np.abs(found - (s * t - f)) <= 1e-8 * (1.0 + np.abs(s * t) + np.abs(f)))
    if wrong.any() or not np.isfinite(found).any():
        at = t[wrong if wrong.any() else ...][0]
        raise ValueError(
            f"conjugate of a given loss needs to be f*(s) = s t - f(t) at s = f'(t); it is not at the margin {at:g}"
        )
