"""Primal values of the certificate: the objective of coefficients, and what exact arithmetic makes of them."""

from __future__ import annotations

import math

import numpy as np

from mdlearn.forms.losses import growth_to_thresholds
from mdlearn.forms.margin import Column, MarginForm, best_bias_shift

MISSED_BY_ROUNDING = 1e-9
"""Relative miss of a threshold that is made up for wherever that lowers the objective."""


def primal_objective(column: Column, z: np.ndarray, squares: float, estimated: bool = False) -> tuple[float, float]:
    """Primal (objective, factor) of a margin form at margins z and with `squares` as `MarginForm.norm` gives it.

    `estimated`: as engines need it, but for some digits of given losses.

    Constraints scale the point by the smallest `factor` >= 1 that reaches feasibility; infinity where none does.
    """
    factor = 1.0
    for term in column.terms if column.hard else ():
        if term.hard:
            least, need = float((term.side * z[column.counts > 0]).min()), term.side * term.threshold
            if least < need:
                factor = max(factor, need / least) if least > 0 and need > 0 else math.inf
    if math.isinf(factor):
        return math.inf, factor
    value = column.distribution_value(z if factor == 1.0 else factor * z, estimated)
    return 0.5 * factor * factor * squares + value, factor


def primal(
    form: MarginForm, column: Column, coef: np.ndarray, intercept: float, f: np.ndarray | None = None
) -> tuple[float, np.ndarray, float]:
    """Primal (objective, margins, factor) of coefficients, from one pass over the rows.

    `f` are the decision values without the intercept, where they are known: no pass.
    """
    f = form.features.decision(coef) if f is None else f
    z = column.y * (f + intercept)
    objective, factor = primal_objective(column, z, form.norm(coef, intercept, f))
    return objective, z * factor if 1.0 < factor < math.inf else z, factor


def improved_primal(
    form: MarginForm, column: Column, coef: np.ndarray, intercept: float, f: np.ndarray | None = None
) -> tuple[float, np.ndarray, float]:
    """Objective of a primal point made feasible, freed of rounding losses, with the best free intercept.

    `f` are the decision values of coef, where they are known, as for `primal`.
    """
    f = form.features.decision(coef) if f is None else f
    objective, z, factor = primal(form, column, coef, intercept, f)
    if math.isinf(objective):
        return objective, coef, intercept
    if factor != 1.0:
        coef, intercept = factor * coef, factor * intercept
    same = factor == 1.0
    # Margins that miss their thresholds by rounding alone: with C = 1e7 a miss of 1e-15 per row is a loss of the size
    # of |w|^2's last eight digits.
    growth = 1.0 if column.hard else primal_growth_to_thresholds(column, z, MISSED_BY_ROUNDING)
    if growth != 1.0:
        value = primal(form, column, growth * coef, growth * intercept)[0]
        if value < objective:
            objective, coef, intercept, same = value, growth * coef, growth * intercept, False
    if form.bias == "free":
        shifted = intercept + best_bias_shift(column, z)
        trial = primal(form, column, coef, shifted, f if same else None)[0]
        if trial <= objective + 1e-14 * abs(objective):  # on a flat interval rounding decides nothing
            objective, intercept = trial, shifted
    return objective, coef, intercept


def primal_growth_to_thresholds(column: Column, z: np.ndarray, slack: float) -> float:
    """Factor by which a primal point's margins reach thresholds, missed by a relative `slack` at most; else 1."""
    if not column.level or "logistic" in column.kinds:
        return 1.0  # longer coefficients do not make residuals smaller
    return growth_to_thresholds(column.terms, float((z if column.whole else z[column.counts > 0]).min()), slack)
