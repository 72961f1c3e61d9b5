"""Objectives without a ridge: the condition of their dual, sum_i alpha_i (x_i, 1) = 0, and multipliers that meet it.

A residual r of the condition makes a bound wrong by r.w at the optimum's w, so only rounding is let pass. Newton's own
multipliers meet it. Slopes at an approximate optimum nearly do; they are moved by the least change, measured in the
curvature of each multiplier's own conjugate, that meets it but for rounding.
"""

from __future__ import annotations

import math

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.affine import AffineRows
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.numerics.symmetric_eigenvalues import symmetric_eigen

MOST_CORRECTIONS = 10
"""Corrections: the first is exact but for rounding, unless a multiplier meets its bound."""
LEAST_FALL_OF_RESIDUAL = 0.7
"""Share of the residual that a correction leaves at most where another one may help."""
ROUNDINGS_OF_RESIDUAL, ROWS_PER_ROUNDING = 4.0, 64.0
"""Units of eps, of the sum of its terms, up to which a residual counts as rounding; rows from which more are due, as
the square root. With 450 units a bound was double the optimum, on rows that differ in the 13th digit."""
NEARLY_CONSTANT = 1e-6
"""Standard deviation of a column, in units of its size, from which rounding does not show in its differences."""
CORRECTED_COLUMNS = 500
"""Columns up to which multipliers are corrected: that takes the eigenvalues of a matrix of this size."""
AT_ONCE = 1e6
"""Multiplications for the matrix of a correction up to which every point can have one (a millisecond)."""


def without_ridge(
    form: MarginForm, column: Column, beta: np.ndarray, sigma: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Multipliers without a ridge, for which sum alpha_i (x_i, 1) = 0; None when no correction within boxes was found.

    Without a mean term alpha = 0 is possible, too: it says that the objective is not negative.
    """
    features = form.features
    assert isinstance(features, LinearFeatures)
    rows = AffineRows(features.rows, form.bias != "none")
    residual, clean = _residual_without_ridge(rows, column, beta, sigma)
    if clean:
        return beta, sigma
    nothing = (np.zeros_like(beta), -column.pull) if column.mean == 0 else None
    if features.width > CORRECTED_COLUMNS:
        return nothing
    metric, size = None, math.inf
    for _ in range(MOST_CORRECTIONS):
        now = float(np.abs(residual).max())
        if not now < LEAST_FALL_OF_RESIDUAL * size:
            break
        size = now
        if metric is None:
            freedom = np.array([t.freedom(b, own) for (t, own), b in zip(column.shares, beta)]).reshape(beta.shape)
            metric = MetricWithoutRidge(rows, column, freedom.sum(axis=0))
        f = column.y * rows.dot(metric.solve(residual))
        moved = beta - column.sides[:, None] * freedom * f
        beta = np.clip(moved, 0.0, column.caps)
        if not np.array_equal(beta, moved):  # what met its bound gives way no more: others have to
            metric = None
        sigma = sigma + column.spread(f)
        residual, clean = _residual_without_ridge(rows, column, beta, sigma)
        if clean:
            return beta, sigma
    return nothing


def doubt_without_ridge(form: MarginForm, alpha: np.ndarray, coef: np.ndarray, intercept: float) -> float:
    """Possible excess of a bound because sum alpha_i (x_i, 1), which is to be 0 without a ridge, is not quite 0.

    The rest counts as often as coefficients are long: their decision values say so, but for their own rounding. Where a
    column hardly differs from row to row, those of an optimum may be as long as one over that difference.
    """
    if not alpha.any():
        return 0.0
    scores = form.features.decision(coef) + intercept if coef.any() else np.full(alpha.shape, intercept)
    doubt = _doubt_of_nearly_constant(form, alpha, 1.0 + float(np.abs(scores).max()))
    if not coef.any():
        return doubt
    return doubt + abs(float(alpha @ scores)) + float(np.abs(alpha) @ form.features.blur(coef))


def _doubt_of_nearly_constant(form: MarginForm, alpha: np.ndarray, reach: float) -> float:
    """Doubt of a bound without a ridge by nearly constant columns, for coefficients that give a margin of `reach`."""
    features = form.features
    assert isinstance(features, LinearFeatures)
    if features.rows.sparse:
        return 0.0  # its zeros differ from all else
    rows, m = features.rows, features.n_rows
    means = rows.adjoint(np.full(m, 1.0 / m))
    squares = rows.column_squares(np.full(m, 1.0 / m))
    near = np.flatnonzero(squares - means**2 <= NEARLY_CONSTANT**2 * squares)
    if near.size == 0:
        return 0.0
    least, most = np.full(near.size, np.inf), np.full(near.size, -np.inf)
    for span in rows.spans():
        block = rows.block(span)[:, near]
        least, most = np.minimum(least, block.min(axis=0)), np.maximum(most, block.max(axis=0))
    spread = most - least
    size = np.abs(alpha)
    terms = np.sqrt(rows.column_squares(size)[near] * float(size.sum()))
    missed = np.abs(rows.adjoint(alpha)[near]) + np.finfo(float).eps * terms
    return reach * float(np.divide(missed, spread, out=np.zeros_like(spread), where=spread > 0).sum())


def cheap_without_ridge(form: MarginForm) -> bool:
    """Whether corrections of multipliers without a ridge are so cheap that every point can have one."""
    return float(form.features.n_rows) * form.features.width**2 <= AT_ONCE


def _residual_without_ridge(
    rows: AffineRows, column: Column, beta: np.ndarray, sigma: np.ndarray
) -> tuple[np.ndarray, bool]:
    """Residual sum_i alpha_i (x_i, 1) of the dual without a ridge, and whether it is 0 but for rounding."""
    residual = rows.adjoint(column.y * (column.sides @ beta + sigma + column.pull))
    # alpha itself may be a difference that is all rounding: margins that can all be equal have alpha = 0.
    size = beta.sum(axis=0) + np.abs(sigma) + np.abs(column.pull)
    total = float(size.sum())
    # An upper bound of sum_i size_i |x_ij| (Cauchy-Schwarz), without a pass over |x|.
    terms = np.sqrt(rows.column_squares(size) * total)
    units = ROUNDINGS_OF_RESIDUAL * max(1.0, math.sqrt(column.y.shape[0] / ROWS_PER_ROUNDING))
    return residual, bool((np.abs(residual) <= units * np.finfo(float).eps * terms).all())


class MetricWithoutRidge:
    """Metric M of corrections without a ridge: sum_i freedom_i x_i x_i' and the variance's own, by eigenvalues.

    `rank`: that of M, as far as rounding tells.
    """

    def __init__(self, rows: AffineRows, column: Column, freedom: np.ndarray) -> None:
        n = rows.width
        M = np.zeros((n, n))
        centre = rows.adjoint(column.counts * column.y) / column.total
        for span in rows.rows.spans():
            B = rows.block(span)
            own = B * np.sqrt(freedom[span, None])
            M += own.T @ own  # B'B of one array is half the price of a product of two
            if column.kappa > 0:
                B = B - np.multiply.outer(column.y[span], centre)
                B *= np.sqrt(column.kappa * column.counts[span, None])
                M += B.T @ B
        # In units of the diagonal, so that the scale of a column does not decide what counts as rounding.
        diagonal = np.diagonal(M)
        self.scale = np.divide(1.0, np.sqrt(diagonal), out=np.zeros(n), where=diagonal > 0)
        values, self.vectors = symmetric_eigen(self.scale[:, None] * M * self.scale)
        small = values <= n * np.finfo(float).eps * max(float(values[-1]), 0.0)
        self.rank = n - int(np.count_nonzero(small))
        self.inverse = np.where(small, 0.0, 1.0 / np.where(small, 1.0, values))

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Solve M h = rhs in the directions that M holds."""
        h: np.ndarray = self.scale * (self.vectors @ (self.inverse * (self.vectors.T @ (self.scale * rhs))))
        return h
