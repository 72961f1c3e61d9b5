"""Checks of functions given as a loss: whether they belong together, compared at margins around 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mdlearn.errors import add_error_note, came

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
RAMP_ROUNDING = 64.0 * EPS
"""Relative difference of slopes and values of a ramp that rounding of the functions makes."""
BEND_ROUNDING = 1e-9
"""Relative difference of second derivatives of a ramp that rounding of the function makes."""
RAMP_PARTS = 64
"""Parts of a ramp between whose ends the functions are compared with it, beside the margins of the table."""
UNLIMITED_SLOPE = 1e50
"""Slope from which one is taken to grow without end: that at the last margin of the table."""
REAL_KINDS = "biuf"
"""Kinds of dtypes that functions of a loss may return."""


def check_given_values(function: Function, name: str, t: np.ndarray) -> np.ndarray:
    """Check and return the values of a function given as a loss, one per margin; margins are lent for reading only."""
    lent = t.view()
    lent.flags.writeable = False
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(function(lent))
    except Exception as error:
        add_error_note(error, f"{name} of a given loss")
        raise
    if found.dtype.kind not in REAL_KINDS:
        raise TypeError(f"{name} of a given loss needs to return real numbers; it returned {came(found)}")
    found = found.astype(np.float64, copy=False)
    if found.shape != t.shape:
        raise ValueError(
            f"{name} of a given loss needs to return one number per margin; it returned the shape {found.shape} for "
            f"margins of shape {t.shape}"
        )
    return found


def check_given_functions(value: Function, derivative: Function, second: Function) -> float:
    """Raise ValueError unless a given loss is convex with a continuous slope, its slope, and the slope's slope.

    Returns the largest second derivative found.
    """
    functions = {"value": value, "derivative": derivative, "second": second}
    wide = np.concatenate([COMPARED_MARGINS, np.linspace(-FINITE_MARGIN, FINITE_MARGIN, 101)])
    for name, function in functions.items():
        found = check_given_values(function, name, wide)
        if not np.isfinite(found).all():
            at = wide[~np.isfinite(found)][0]
            raise ValueError(f"{name} of a given loss is not finite at the margin {at:g}; it needs to be up to 50")
    f, df, ddf = (
        np.array([check_given_values(function, name, t) for t in (COMPARED_MARGINS, COMPARED_MARGINS + COMPARED_STEP)])
        for name, function in functions.items()
    )
    rounding = (
        8.0 * EPS / COMPARED_STEP * (np.abs(f).sum(axis=0) + np.abs(df).sum(axis=0) * np.abs(COMPARED_MARGINS)) + 1e-300
    )
    # Whatever the shape, the mean slope is near those at the ends; 1e-6 is for slopes that turn in between.
    mean, spare = (f[1] - f[0]) / COMPARED_STEP, 1e-6 * (1.0 + np.abs(df).max(axis=0)) + rounding
    if ((mean < df.min(axis=0) - spare) | (mean > df.max(axis=0) + spare)).any():
        before = check_given_values(value, "value", COMPARED_MARGINS - COMPARED_STEP)
        rates = (df[1] - df[0]) / COMPARED_STEP, (f[1] - 2.0 * f[0] + before) / COMPARED_STEP**2
        raise ValueError(
            _given_derivative_sentence(second, *rates, 8.0 * EPS / COMPARED_STEP**2 * float(np.abs(f).mean()))
        )
    falls = df[1] - df[0] < -rounding
    if falls.any():
        at = COMPARED_MARGINS[falls][0]
        raise ValueError(f"a given loss needs to be convex; its derivative falls at the margin {at:g}")
    steepest = _check_no_kinks(derivative)
    rate, middle = (
        (df[1] - df[0]) / COMPARED_STEP,
        check_given_values(second, "second", COMPARED_MARGINS + 0.5 * COMPARED_STEP),
    )
    most, least = np.maximum(ddf.max(axis=0), middle), np.minimum(ddf.min(axis=0), middle)
    room = 0.01 * most + 1e-6 * (1.0 + np.abs(ddf).max()) + rounding
    negative = (ddf < -1e-9 * (1.0 + np.abs(ddf).max())).any(axis=0)
    wrong = (rate > most + room) | (rate < least - room) | negative
    if wrong.any():
        at = COMPARED_MARGINS[wrong][0]
        raise ValueError(f"second of a given loss is not the derivative of its derivative at the margin {at:g}")
    return max(steepest, float(ddf.max()))


def _given_derivative_sentence(
    second: Function, of_derivative: np.ndarray, of_value: np.ndarray, rounding: float
) -> str:
    """Sentence on a given loss whose derivative is not that of its value: the one that `second` belongs to is right.

    The rates of change are those of the derivative, and of the slope of the value.
    """
    after, before = (
        check_given_values(second, "second", COMPARED_MARGINS + share * COMPARED_STEP) for share in (0.5, -0.5)
    )
    ours = float(np.abs(of_derivative - after).mean())
    values = float(np.abs(of_value - 0.5 * (before + after)).mean())
    noise, hint = 1e-7 * (1.0 + float(np.abs(after).max())) + rounding, "with respect to the margin, and not negated"
    if values > 10.0 * (ours + noise):
        return f"value of a given loss is not what derivative and second belong to; these are {hint}"
    if ours > 10.0 * (values + noise):
        return f"derivative of a given loss is not that of value, as second is; it is {hint}"
    return f"value or derivative of a given loss is wrong: derivative is not that of value; it is {hint}"


def _check_no_kinks(derivative: Function) -> float:
    """Raise ValueError where a given loss has a kink: every interval is halved towards the larger change of its slope.

    Returns the largest rate of change on the way, which tells of bends between the margins of COMPARED_MARGINS.
    """

    def slope(t: np.ndarray) -> np.ndarray:
        return check_given_values(derivative, "derivative", t)

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
    found = check_given_values(conjugate, "conjugate", s)
    room, known = 1e-8 * (1.0 + np.abs(s * t) + np.abs(f)), np.isfinite(found)
    wrong = known & ~(np.abs(found - (s * t - f)) <= room)
    if wrong.any():
        near = known & (np.abs(t) <= COMPARED_MARGINS[-1])
        off = (found - (s * t - f))[near]
        if off.size and (np.abs(off - off[0]) <= room[near] * (1.0 + abs(off[0]))).all():
            raise ValueError(
                f"value or conjugate of a given loss is wrong by the constant {off[0]:.6g}: f*(s) = s t - f(t) is "
                "needed at s = f'(t)"
            )
    if wrong.any() or not np.isfinite(found).any():
        at = t[wrong if wrong.any() else ...][0]
        raise ValueError(
            f"conjugate of a given loss needs to be f*(s) = s t - f(t) at s = f'(t); it is not at the margin {at:g}"
        )


class SlopeRamp(NamedTuple):
    """Slope of one side of a loss that grows linearly from a threshold on, up to a cap: the conjugate is a parabola.

    Attributes
    ----------
    threshold : float
        Margin at which the slope begins.
    bend : float
        Second derivative from there on.
    cap : float
        Largest slope, infinite where it grows without end.
    lowest : float
        Value at the threshold, from which this side of the loss rises.
    """

    threshold: float
    bend: float
    cap: float
    lowest: float


def find_slope_ramp(
    functions: tuple[Function, Function, Function], z: float, side: int, cap: float, grid: np.ndarray
) -> SlopeRamp | None:
    """Return the ramp that one side of a given loss is, None where it is anything else.

    Parameters
    ----------
    functions : tuple of callable
        Value, derivative and second derivative.
    z : float
        Margin at which the side has some slope below its largest.
    side : int
        +1 for the margins at which the loss falls, -1 for those at which it rises.
    cap : float
        Largest slope of that side at margins of the grid.
    grid : ndarray of shape (G,)
        Margins at which the functions are finite, and compared with the ramp.
    """
    value, derivative, second = functions

    def fall(t: np.ndarray) -> np.ndarray:
        return np.maximum(-side * derivative(t), 0.0)

    bend = float(second(np.array([z]))[0])
    if not 0.0 < bend < UNLIMITED_SLOPE:
        return None
    threshold = z + side * float(fall(np.array([z]))[0]) / bend
    cap = cap if cap < UNLIMITED_SLOPE else math.inf
    length = cap / bend
    parts = np.linspace(-0.5, 1.5, 2 * RAMP_PARTS + 1)
    t = np.concatenate([grid, threshold - side * (length if cap < math.inf else 1.0 + abs(threshold)) * parts])
    t = t[(t >= grid[0]) & (t <= grid[-1])]
    found, excess, room = fall(t), side * (threshold - t), RAMP_ROUNDING * (abs(threshold) + np.abs(t))
    along = np.clip(excess, 0.0, length)
    off = np.where(excess > length + room, RAMP_ROUNDING * cap, bend * np.where(excess < -room, RAMP_ROUNDING, room))
    if (np.abs(found - bend * along) > off).any():
        return None
    own = (excess > room) & (np.abs(excess - length) > room)  # at corners the second derivative is either number
    bends = np.where(excess < length, bend, 0.0)
    if (np.abs(second(t) - bends)[own] > BEND_ROUNDING * bend).any():
        return None
    lowest, values = float(value(np.array([threshold]))[0]), value(t)
    with np.errstate(over="ignore", invalid="ignore"):
        rise = bend * along * (excess - 0.5 * along)
        missed = np.abs(values - lowest - rise) > RAMP_ROUNDING * (np.abs(values) + abs(lowest)) + bend * along * room
    return None if missed[own & np.isfinite(rise)].any() else SlopeRamp(threshold, bend, cap, lowest)
