"""What rounding leaves open: how much larger an objective may be, and how much smaller a bound, than was computed.

Features say how far decision values may be off (`blur`) and elements (`haze`). Both the objective and the dual's value
are functions of these, so the rest follows from the declared terms.
"""

from __future__ import annotations

import math

import numpy as np

from mdlearn.data.features import KernelFeatures
from mdlearn.forms.margin import Column, MarginForm

DEAR = 1e-10
"""Share of the objective that rounding may cost without further ado."""
SINGLE = 2.0
"""What a single margin may be off by, in units of what sums over all are held to."""


def doubt_of_bound(form: MarginForm, alpha: np.ndarray, element: np.ndarray | None) -> float:
    """What the dual's value at multipliers may be too large by: |sum alpha_i phi(x_i)|^2 / 2, as it was computed."""
    return 0.0 if element is None or not alpha.any() else form.features.haze(alpha, element)


def doubt_of_objective(
    form: MarginForm, column: Column, objective: float, coef: np.ndarray, intercept: float
) -> tuple[float, float]:
    """Return what the objective of coefficients may be too small by, and the factor >= 1 by which they pay less.

    Margins that meet a steep loss by nothing may miss it by rounding. Where that is dear, coefficients a trace longer
    can be worth their own price; constraints ask for them.
    """
    off = form.features.blur(coef)
    if not off.any():
        return 0.0, 1.0
    f = form.features.decision(coef)
    z = column.y * (f + intercept)
    # Of a kernel, the squared norm is made of decision values, too.
    pulls = 0.5 * column.y * coef if isinstance(form.features, KernelFeatures) else 0.0
    plain = _moved(column, z, pulls, off)
    growth = _growth(column, z, off) if column.hard or plain > DEAR * abs(objective) else 1.0
    if growth == 1.0:
        return plain, 1.0
    if math.isinf(growth):  # no length makes up for it
        return math.inf, 1.0
    longer = 0.5 * (growth * growth - 1.0) * form.norm(coef, intercept, f)
    longer += column.distribution_value(growth * z) - column.distribution_value(z)
    longer += _moved(column, growth * z, growth * pulls, growth * off)
    return (plain, 1.0) if plain <= longer and not column.hard else (longer, growth)


def _growth(column: Column, z: np.ndarray, off: np.ndarray) -> float:
    """Factor >= 1 by which margins near a threshold from below meet it wherever they are, and all with a constraint."""
    growth, used = 1.0, column.counts > 0
    for term in column.terms:
        need = term.side * term.threshold
        if column.offset is None and term.kind in ("hinge", "constraint") and term.weight > 0 and need > 0:
            reached = term.side * z - SINGLE * off
            short = used & (reached < need)
            if not term.hard:
                short &= reached >= max(0.5 * need, need - 2.0 * SINGLE * float(off.max()))
            elif (reached[short] <= 0).any():
                return math.inf
            growth = max(growth, float((need / reached[short]).max(initial=1.0)))
    return growth


def _moved(column: Column, scores: np.ndarray, pulls: np.ndarray | float, off: np.ndarray) -> float:
    """What everything but constraints grows by where scores are off by `off`: row by row, the worse of both directions.

    `pulls` are slopes of what else depends on scores.
    """
    z = column.margins(scores)
    slopes = pulls - column.mean / column.total * column.counts - column.spread(z)
    growths = []
    for move in (off, -off):
        growth = slopes * move
        for t in column.terms:
            if not t.hard and t.weight > 0:
                growth += t.weight * column.counts * (t.each(z + move) - t.each(z))
        growths.append(growth)
    return float(np.maximum(*growths).sum()) + 0.5 * column.kappa * float(column.counts @ (off * off))
