"""Values of the certificate: the objective of coefficients, what exact arithmetic makes of them, and that of the dual.

Of points with coefficients of their own over explicit dense rows one compiled pass finds them all. Where something has
to be repaired, `mdlearn.forms.certificates.margin` does it, step by step and for all features.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mdlearn._solvers import point_values
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.forms.certificates.representer import EPS, ROUNDED_SUM
from mdlearn.forms.margin import BIASES, Column, MarginForm, Point, best_bias_shift

MISSED_BY_ROUNDING = 1e-9
"""Relative miss of a threshold that is made up for wherever that lowers the objective."""
ONE_PASS_ROWS = 8000
"""Rows up to which one pass is cheaper than products by BLAS and a call for every value, from three columns on."""


def objective_at(column: Column, z: np.ndarray, squares: float) -> tuple[float, float]:
    """Primal (objective, factor) of a margin form at margins z and with `squares` as `MarginForm.norm` gives it.

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
    return 0.5 * factor * factor * squares + column.distribution_value(z if factor == 1.0 else factor * z), factor


def primal(
    form: MarginForm, column: Column, coef: np.ndarray, intercept: float, f: np.ndarray | None = None
) -> tuple[float, np.ndarray, float]:
    """Primal (objective, margins, factor) of coefficients, from one pass over the rows.

    `f` are the decision values without the intercept, where they are known: no pass.
    """
    f = form.features.decision(coef) if f is None else f
    z = column.y * (f + intercept)
    objective, factor = objective_at(column, z, form.norm(coef, intercept, f))
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
    growth = 1.0 if column.hard else growth_to_thresholds(column, z, MISSED_BY_ROUNDING)
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


def growth_to_thresholds(column: Column, z: np.ndarray, slack: float) -> float:
    """Factor by which a primal point's margins reach thresholds, missed by a relative `slack` at most; else 1."""
    if not column.level or "logistic" in column.kinds:
        return 1.0  # longer coefficients do not make residuals smaller
    return growth_of_margin(column, float((z if column.whole else z[column.counts > 0]).min()), slack)


def growth_of_margin(column: Column, least: float, slack: float) -> float:
    """Factor by which a primal point's smallest margin reaches thresholds of hinges, as all do then."""
    factor = 1.0
    for term in column.terms:
        if term.side > 0 and term.threshold > 0 and term.weight > 0:
            if not 1.0 - slack < least / term.threshold < 1.0:
                return 1.0
            factor = max(factor, term.threshold / least)
    return factor


class Dual(NamedTuple):
    """Dual value in a margin form's certificate, of multipliers made feasible, and what it was made of.

    Attributes
    ----------
    lower : float
        The bound; -inf where no multipliers near the given ones are feasible.
    alpha : ndarray of shape (m,)
    beta : ndarray of shape (T, m)
    element : ndarray or None
        sum alpha_i phi(x_i), where the value needed it.
    """

    lower: float
    alpha: np.ndarray
    beta: np.ndarray
    element: np.ndarray | None


class ExplicitValues(NamedTuple):
    """Values of a certificate by one pass over explicit rows.

    Attributes
    ----------
    primal : (float, ndarray of shape (d,), float)
        Objective, coefficients and intercept.
    proof : Dual
    own : ndarray of shape (m,)
        Dual coefficients of the coefficients.
    """

    primal: tuple[float, np.ndarray, float]
    proof: Dual
    own: np.ndarray


def values_in_one_pass(form: MarginForm, column: Column, point: Point) -> ExplicitValues | None:
    """Values for the certificate of a point with coefficients and dual ones of its own; None: this pass cannot tell.

    So where rows are no small array by rows, where terms differ from row to row, where the coefficients are not those
    that the dual ones make, or where margins just miss a threshold.
    """
    if form.bias == "free" and (column.kappa > 0 or column.kinds == {"hinge"}):
        return None
    # Copies: the engine may go on writing into its arrays, for the next column.
    return _values(form, column, point, np.array(point.coef, float), np.array(point.alpha, float))


def values_of_multipliers(form: MarginForm, column: Column, point: Point) -> ExplicitValues | None:
    """Values in one pass for the certificate of a point's multipliers, and of the coefficients that these stand for.

    None as for `values_in_one_pass`, and where the intercept is free, or may be better than theirs.
    """
    moved = point.coef is None and point.intercept != 0.0
    if form.ridge == 0 or form.bias == "free" or (form.bias == "regularized" and moved):
        return None
    return _values(form, column, point, None, None)


def _values(
    form: MarginForm, column: Column, point: Point, coef: np.ndarray | None, own: np.ndarray | None
) -> ExplicitValues | None:
    """Values in one pass over explicit rows: of coefficients and what they are made of, or of multipliers alone."""
    features, terms = form.features, column.table
    if terms is None or type(features) is not LinearFeatures or features.ridge is not None:
        return None
    rows = features.rows.whole
    if features.dtype != np.float64 or type(rows) is not np.ndarray or not rows.flags.c_contiguous:
        return None
    m, d = rows.shape
    if m > ONE_PASS_ROWS:
        return None
    beta, alpha, z, sums = np.array(point.beta, float), np.empty(m), np.empty(m), np.empty((3, d))
    objective, intercept, lower, least, missed = point_values.values(
        rows,
        np.ascontiguousarray(column.y),
        np.ascontiguousarray(column.counts),
        column.caps,
        terms,
        column.total,
        column.variance,
        column.mean,
        BIASES.index(form.bias),
        coef,
        float(point.intercept),
        own,
        np.ascontiguousarray(point.sigma, float),
        beta,
        alpha,
        z,
        sums,
    )
    if coef is None or own is None:
        coef, own = sums[0], alpha
    short = "logistic" not in column.kinds and growth_of_margin(column, least, MISSED_BY_ROUNDING) != 1.0
    if short or not missed <= (ROUNDED_SUM * EPS) ** 2 or not np.count_nonzero(coef):
        return None
    return ExplicitValues((objective, coef, intercept), Dual(lower, alpha, beta, sums[0]), own)
