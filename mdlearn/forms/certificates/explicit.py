"""Values of a certificate in one compiled pass, for points with coefficients of their own over explicit dense rows.

Where something has to be repaired, `mdlearn.forms.certificates.margin` does it, step by step and for all features.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mdlearn._solvers import point_values
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.forms.certificates.primal import MISSED_BY_ROUNDING, growth_of_margin
from mdlearn.forms.certificates.representer import EPS, ROUNDED_SUM
from mdlearn.forms.margin import BIASES, Column, MarginForm, Point

ONE_PASS_ROWS = 8000
"""Rows up to which one pass is cheaper than products by BLAS and a call for every value, from three columns on."""


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
    features, terms = form.features, column.table
    if terms is None or type(features) is not LinearFeatures or features.ridge is not None:
        return None
    rows, free = features.rows.whole, form.bias == "free"
    if features.dtype != np.float64 or type(rows) is not np.ndarray or not rows.flags.c_contiguous:
        return None
    m, d = rows.shape
    if m > ONE_PASS_ROWS:
        return None
    if free and (column.kappa > 0 or column.kinds == {"hinge"}):
        return None
    # Copies: the engine may go on writing into its arrays, for the next column.
    coef, own, beta = np.array(point.coef, float), np.array(point.alpha, float), np.array(point.beta, float)
    alpha, z, sums = np.empty(m), np.empty(m), np.empty((3, d))
    intercept = float(point.intercept)
    objective, lower, least, missed = point_values.values(
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
        intercept,
        own,
        np.ascontiguousarray(point.sigma, float),
        beta,
        alpha,
        z,
        sums,
    )
    short = "logistic" not in column.kinds and growth_of_margin(column, least, MISSED_BY_ROUNDING) != 1.0
    if short or not missed <= (ROUNDED_SUM * EPS) ** 2 or not np.count_nonzero(coef):
        return None
    return ExplicitValues((objective, coef, intercept), Dual(lower, alpha, beta, sums[0]), own)
