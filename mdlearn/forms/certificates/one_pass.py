"""Values of a certificate in one compiled pass, of points with coefficients of their own over explicit dense rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mdlearn._solvers import point_values
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.forms.certificates.dual import Dual
from mdlearn.forms.certificates.primal import MISSED_BY_ROUNDING, primal_growth_of_margin
from mdlearn.forms.certificates.representer import EPS, ROUNDED_SUM
from mdlearn.forms.margin import BIASES, Column, MarginForm, Point

ONE_PASS_ROWS = 8000
"""Rows up to which one pass is cheaper than products by BLAS and a call for every value, from three columns on."""


class OnePassValues(NamedTuple):
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


def values_in_one_pass(form: MarginForm, column: Column, point: Point) -> OnePassValues | None:
    """Values for the certificate of a point with coefficients and dual ones of its own; None: this pass cannot tell.

    So where rows are no small array by rows, where terms differ from row to row, where the coefficients are not those
    that the dual ones make, or where margins just miss a threshold.
    """
    if form.bias == "free" and (column.kappa > 0 or column.kinds == {"hinge"}):
        return None
    # Copies: the engine may go on writing into its arrays, for the next column.
    return _one_pass_values(form, column, point, np.array(point.coef, float), np.array(point.alpha, float))


def one_pass_of_multipliers(form: MarginForm, column: Column, point: Point) -> OnePassValues | None:
    """Values in one pass for the certificate of a point's multipliers, and of the coefficients that these stand for.

    None as for `values_in_one_pass`, and where the intercept is free, or may be better than theirs.
    """
    moved = point.coef is None and point.intercept != 0.0
    if form.ridge == 0 or form.bias == "free" or (form.bias == "regularized" and moved):
        return None
    return _one_pass_values(form, column, point, None, None)


def _one_pass_values(
    form: MarginForm, column: Column, point: Point, coef: np.ndarray | None, own: np.ndarray | None
) -> OnePassValues | None:
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
    short = "logistic" not in column.kinds and primal_growth_of_margin(column, least, MISSED_BY_ROUNDING) != 1.0
    if short or not missed <= (ROUNDED_SUM * EPS) ** 2 or not np.count_nonzero(coef):
        return None
    return OnePassValues((objective, coef, intercept), Dual(lower, alpha, beta, sums[0]), own)
