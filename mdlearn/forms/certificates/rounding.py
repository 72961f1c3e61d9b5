"""Rounding in a certificate: what it leaves open, and coefficients in the type of the rows.

Features say how far decision values may be off (`blur`) and elements (`haze`). Both the objective and the dual's value
are functions of these, so the rest follows from the declared terms. float32 rows give a float32 model, and a
certificate of what that model holds: numbers beyond the range of the type become its largest number, and the
certificate says what that costs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernel_rounding import ROUNDINGS_HERE, UNIT, safe_length, safe_sum
from mdlearn.forms.certificates.dual import Dual
from mdlearn.forms.certificates.primal import primal, primal_growth_to_thresholds
from mdlearn.forms.margin import Column, MarginForm, best_bias_shift

DEAR_SHARE = 1e-10
"""Share of the objective that rounding may cost without further ado."""
NO_GROWTH = 1e-14
"""Share of the objective below which an upper bound of what rounding costs is all that is asked for."""
UNSEEN_SHARE, MOST_UNSEEN, SHARE_OF_TOL = 2e-14, 1e-12, 1e-5
"""The same for a bound that takes no pass over the rows: below any gap that can be asked for, or a share of the gap
that is asked for, but no more than two objectives that count as equal may differ by."""
NEARLY_BALANCED = 1e-12
"""Share of the mean's pull that the pull of both classes together is where rounding may have made it."""
SINGLE = 2.0
"""What a single margin may be off by, in units of what sums over all are held to."""
TRIED_LENGTHS = 5
"""Lengths that are tried."""
MISS = 0.5
"""Largest relative miss of a threshold that growth is tried for."""
LENGTHENED_LOSS = 1e-6
"""Relative loss of the objective that longer coefficients may make up for."""
WORTH = 1e-9
"""Relative loss of the objective that is worth another pass over the rows, for a better intercept."""


def to_type(values: np.ndarray, dtype: np.dtype[Any], towards_zero: bool = False) -> np.ndarray:
    """Round float64 values of a certificate to `dtype`; towards zero, multipliers stay within their boxes."""
    if values.dtype == dtype:
        return values
    largest = float(np.finfo(dtype).max)
    out = np.clip(values, -largest, largest).astype(dtype)
    if towards_zero:
        out = np.where(np.abs(out) > np.abs(values), np.nextafter(out, np.zeros_like(out)), out)
    return out


def rounded(
    form: MarginForm, column: Column, objective: float, coef: np.ndarray, intercept: float
) -> tuple[float, np.ndarray, float, float]:
    """Rounded (objective, coef, intercept, growth) as a model of the rows' type holds them, still in float64 arrays.

    float64 rows cost nothing, float32 rows a pass or two: margins that met their thresholds miss some by rounding,
    and where that is dear (C = inf, or large), coefficients a trace longer meet them again: by the factor `growth`.
    """
    dtype = form.features.dtype
    if dtype == np.float64:
        return objective, coef, intercept, 1.0
    growth, found = 1.0, []
    for _ in range(TRIED_LENGTHS):
        held = to_type(growth * np.append(coef, intercept), dtype).astype(np.float64)
        value, z, factor = primal(form, column, held[:-1], float(held[-1]))
        if form.bias == "free" and value - objective > WORTH * abs(objective):
            # The intercept that suited coefficients before they were rounded suits them no more.
            shifted = to_type(np.append(held[:-1], held[-1] + best_bias_shift(column, z)), dtype).astype(np.float64)
            trial, moved, own = primal(form, column, shifted[:-1], float(shifted[-1]))
            if trial < value:
                held, value, z, factor = shifted, trial, moved, own
        found.append((factor, value, growth, held))
        dear = value - objective > LENGTHENED_LOSS * abs(objective)
        short = factor if column.hard else primal_growth_to_thresholds(column, z, MISS) if dear else 1.0
        if short == 1.0 or math.isinf(short):
            break
        growth *= short * (1.0 + float(np.finfo(dtype).eps))
    # Soft margins have factor 1.
    _, value, growth, held = min(found, key=lambda one: one[:2])
    return value, held[:-1], float(held[-1]), growth


def rounding_doubt_of_bound(
    form: MarginForm, column: Column, proof: Dual, intercept: float, unseen: float = UNSEEN_SHARE
) -> float:
    """Possible excess of a dual value by rounding: of |sum alpha_i phi(x_i)|^2 / 2, and of a sum that is to be 0.

    For a free bias that is sum alpha_i. What is left of it counts as often as the optimum's intercept is long: as that
    of a point near it, and as the mean's pull at the signs over the curvature of the variance. Where weights balance
    the classes but for rounding, the latter is all that there is, and as uncertain as the sum. A loss has a scale
    beside which this is nothing. A regularized bias is as uncertain there, and all that it adds.
    """
    features, (lower, alpha, _, element), doubt = form.features, proof, 0.0
    if element is not None:
        doubt = features.most_haze(alpha, element)
        if not doubt <= unseen * abs(lower):
            doubt = features.haze(alpha, element) if alpha.any() else 0.0
    if form.bias == "none" or form.ridge == 0 or column.kinds:
        return doubt
    rounding = ROUNDINGS_HERE * UNIT * safe_length(alpha) * math.sqrt(alpha.shape[0])
    pull = abs(float(column.y @ column.pull))
    if form.bias == "regularized":
        balances = pull <= NEARLY_BALANCED * float(column.pull.sum())
        # Mean, square of the bias and bound, once each.
        return doubt + (3.0 * rounding * abs(intercept) if balances else 0.0)
    left = abs(float(alpha.sum())) + rounding
    bend, reach = column.kappa * column.total * (1.0 - column.label_mean**2), abs(intercept)
    if bend > 0 and not (pull == 0 and column.balanced):
        reach += (pull + left) / bend
    return doubt + left * reach


class CertainPoint(NamedTuple):
    """Point with an objective that rounding cannot make larger; `growth` >= 1 is what it was made longer by."""

    objective: float
    coef: np.ndarray
    intercept: float
    growth: float


def certain_point(
    form: MarginForm,
    column: Column,
    objective: float,
    coef: np.ndarray,
    intercept: float,
    f: np.ndarray | None = None,
    unseen: float = UNSEEN_SHARE,
    z: np.ndarray | None = None,
) -> CertainPoint:
    """Return a point of the type of the rows with the largest objective that rounding can have hidden.

    `objective` is what `primal` computes at the point, `f` are its decision values or z its margins, where they are
    known. A share `unseen` of it is not worth a pass over the rows.

    Margins that meet a steep loss by nothing may miss it by rounding. Where that is dear, coefficients a trace longer
    can be worth their own price; constraints ask for them. What is said of a point depends on nothing but the point:
    the one that this returns would be returned as it is, with the same objective or a smaller one.
    """
    most = _rounding_limit(form, column, objective, coef, intercept)
    if most <= unseen * abs(objective):
        return CertainPoint(objective + most, coef, intercept, 1.0)
    off = form.features.blur(coef)
    if not off.any():
        return CertainPoint(objective, coef, intercept, 1.0)
    if z is None or column.hard:
        f = form.features.decision(coef) if f is None else f
        z, objective = _scores_for_rounding(form, column, coef, intercept, f)
    most = objective + _rounding_bound(column, z, _norm_rounding_slopes(form, column, coef), off, objective)
    dear = column.hard or not most - objective <= DEAR_SHARE * abs(objective)
    growth = _growth_against_rounding(column, z, off) if dear else 1.0
    here = CertainPoint(math.inf if column.hard and growth > 1.0 else most, coef, intercept, 1.0)
    dtype, total = form.features.dtype, 1.0
    for _ in range(TRIED_LENGTHS):
        if growth == 1.0 or math.isinf(growth):  # no length makes up for it
            break
        # Less than a trace is no growth, and products of longer coefficients are rounded in their own way.
        total *= 1.0 + max(2.0 * (growth - 1.0) if total > 1.0 else growth - 1.0, float(np.finfo(dtype).eps))
        longer = to_type(total * np.append(coef, intercept), dtype).astype(np.float64)
        own, b = longer[:-1], float(longer[-1])
        off = form.features.blur(own)
        z, value = _scores_for_rounding(form, column, own, b, form.features.decision(own))
        growth = _growth_against_rounding(column, z, off) if column.hard else 1.0
        if growth == 1.0:
            there = CertainPoint(
                value + _rounding_bound(column, z, _norm_rounding_slopes(form, column, own), off, value), own, b, total
            )
            return there if there.objective < here.objective else here
    return here


def _scores_for_rounding(
    form: MarginForm, column: Column, coef: np.ndarray, intercept: float, f: np.ndarray
) -> tuple[np.ndarray, float]:
    """Scores of coefficients and objective but for constraints, from which effects of rounding are bounded."""
    z = column.y * (f + intercept)
    return z, 0.5 * form.norm(coef, intercept, f) + column.distribution_value(z)


def _norm_rounding_slopes(form: MarginForm, column: Column, coef: np.ndarray) -> np.ndarray | float:
    """Slopes by which the rounding of decision values changes a kernel's squared norm."""
    return 0.5 * column.y * coef if isinstance(form.features, KernelFeatures) else 0.0


def rounding_may_show(form: MarginForm, column: Column, objective: float, coef: np.ndarray, intercept: float) -> bool:
    """Whether rounding may show in an objective: without a pass over the rows, from what slopes are at most."""
    if _rounding_limit(form, column, objective, coef, intercept) <= DEAR_SHARE * abs(objective):
        return False
    off = form.features.blur(coef)
    if not off.any():
        return False
    most = float(off.max())
    if column.hard:
        needs = [abs(term.threshold) for term in column.terms if term.hard]
        return not SINGLE * most <= DEAR_SHARE * min(needs)
    slopes, bend = column.slope_limits
    if math.isinf(bend):
        return True
    grows = float((slopes + 0.5 * np.abs(_norm_rounding_slopes(form, column, coef))) @ off) + column.mean * most
    if bend > 0:
        # Losses with slopes of any size: the objective says what their squares add up to.
        reach = form.features.longest(coef) + abs(intercept)
        if column.offset is not None:
            reach += float(np.abs(column.offset).max())
        slope = math.sqrt(2.0 * bend * (abs(objective) + column.mean * reach)) + 0.5 * bend * safe_length(off)
        grows += slope * safe_length(off)
    return not grows <= DEAR_SHARE * abs(objective)


def _growth_against_rounding(column: Column, z: np.ndarray, off: np.ndarray) -> float:
    """Factor >= 1 by which margins near a threshold from below meet it wherever they are, and all with a constraint."""
    growth, used = 1.0, column.counts > 0
    for term in column.terms:
        need = term.side * term.threshold
        if column.level and term.kind in ("hinge", "constraint") and term.weight > 0 and need > 0:
            reached = term.side * z - SINGLE * off
            short = used & (reached < need)
            if not term.hard:
                short &= reached >= max(0.5 * need, need - 2.0 * SINGLE * float(off.max()))
            elif (reached[short] <= 0).any():
                return math.inf
            growth = max(growth, float((need / reached[short]).max(initial=1.0)))
    return growth


def _rounding_limit(form: MarginForm, column: Column, objective: float, coef: np.ndarray, intercept: float) -> float:
    """Quick upper bound of an objective's growth by rounding: objective and second derivatives limit slopes of squares.

    The sum of b_i |e_i| is at most the root of sum b_i times that of sum b_i e_i^2. Infinity: that says nothing.
    """
    off = form.features.most_blur(coef)
    if off == 0:
        return 0.0
    if column.hard or not math.isfinite(off):
        return math.inf
    size = abs(objective)
    if column.mean > 0:
        reach = form.features.longest(coef) + abs(intercept)
        size += column.mean * (reach if column.offset is None else reach + float(np.abs(column.offset).max()))
    steepest, bend = column.steepest
    slopes = steepest + column.mean + math.sqrt(2.0 * bend * size)
    if isinstance(form.features, KernelFeatures):  # whose squared norm is made of decision values
        slopes += 0.5 * safe_sum(coef)
    return off * (slopes + 0.5 * bend * off)


def _rounding_bound(
    column: Column, scores: np.ndarray, pulls: np.ndarray | float, off: np.ndarray, objective: float
) -> float:
    """Upper bound of an objective's growth by rounding, but for constraints, where scores are off by `off` either way.

    `pulls` are slopes of what else depends on scores, `objective` is its value there.
    """
    z, off_squared = column.margins(scores), 0.5 * column.kappa * float(column.counts @ (off * off))
    slopes = pulls - column.mean / column.total * column.counts - column.spread(z)
    # What slopes and second derivatives say at most: where that is enough, no loss is evaluated at other scores.
    places = tuple(zip(column.shares, column.margins_of_terms(z)))
    if math.isfinite(column.steepest[0]):
        steep = np.abs(slopes)
        for ((t, own), there), cap in zip(places, column.caps):
            steep += t.slopes(there, own) + 0.5 * t.steepest * own * off if t.squared else cap
        most = float(steep @ off) + off_squared
        if most <= NO_GROWTH * abs(objective):
            return most
    growths = [slopes * off, -slopes * off]
    for (t, own), there in places:
        if not t.hard and t.weight > 0:
            here = t.each(there)
            for growth, move in zip(growths, (off, -off)):
                growth += t.weight * own * (t.each(there + move) - here)
    return float(np.maximum(*growths).sum()) + off_squared
