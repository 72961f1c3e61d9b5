"""Multipliers of an objective without a ridge: sum_i alpha_i (x_i, 1) = 0 is a condition of its dual.

Slopes at an approximate optimum nearly meet it. They are moved by the least change, measured in the curvature of each
multiplier's own conjugate, that meets it exactly; what is left after that is rounding.
"""

from __future__ import annotations

import numpy as np

from mdlearn.data.features import LinearFeatures
from mdlearn.forms.margin import Column, MarginForm

ROUNDS = 3
"""Corrections: the first is exact but for rounding, unless a multiplier meets its bound."""
CLEAN = 1e-13
"""Residual, relative to the sum of its terms, that counts as rounding."""


def without_ridge(
    form: MarginForm, column: Column, beta: np.ndarray, sigma: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return multipliers with sum alpha_i (x_i, 1) = 0; None when the correction leads out of their boxes."""
    features = form.features
    assert isinstance(features, LinearFeatures)
    bias = form.bias != "none"
    alpha = _signed(column, beta, sigma)
    residual, least = _sum(features, alpha, bias), CLEAN * _sum(features, np.abs(alpha), bias, size=True)
    if (np.abs(residual) <= least).all():
        return beta, sigma
    freedom = np.array([t.freedom(b, column.counts) for t, b in zip(column.terms, beta)]).reshape(beta.shape)
    metric = _Metric(features, column, freedom.sum(axis=0), bias)
    for _ in range(ROUNDS):
        f = column.y * metric.decision(metric.solve(residual))
        beta = np.clip(beta - column.sides[:, None] * freedom * f, 0.0, column.caps)
        sigma = sigma + column.spread(f)
        alpha = _signed(column, beta, sigma)
        residual, least = _sum(features, alpha, bias), CLEAN * _sum(features, np.abs(alpha), bias, size=True)
        if (np.abs(residual) <= least).all():
            return beta, sigma
    return None


def _signed(column: Column, beta: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    alpha: np.ndarray = column.y * (column.sides @ beta + sigma + column.pull)
    return alpha


def _sum(features: LinearFeatures, alpha: np.ndarray, bias: bool, size: bool = False) -> np.ndarray:
    """sum_i alpha_i (x_i, 1), or an upper bound of the sizes of its terms, per column."""
    if size:
        # Cauchy-Schwarz per column costs no second pass over |x|.
        w = np.sqrt(features.rows.column_squares(alpha)) * np.sqrt(float(np.abs(alpha).sum()))
    else:
        w = features.rows.adjoint(alpha)
    return np.append(w, alpha.sum()) if bias else w


class _Metric:
    """M = sum_i freedom_i x_i x_i' + kappa sum_i c_i (r_i - mean)(r_i - mean)', solved by eigenvalues."""

    def __init__(self, features: LinearFeatures, column: Column, freedom: np.ndarray, bias: bool) -> None:
        self.features, self.bias = features, bias
        n = features.width + bias
        M = np.zeros((n, n))
        centre = _sum(features, column.counts * column.y, bias) / column.total
        for span in features.rows.spans():
            B = features.rows.block(span)
            if bias:
                B = np.hstack([B, np.ones((B.shape[0], 1))])
            M += (B * freedom[span, None]).T @ B
            if column.kappa > 0:
                B = B - np.multiply.outer(column.y[span], centre)
                M += (B * (column.kappa * column.counts[span, None])).T @ B
        values, self.vectors = np.linalg.eigh(M)
        small = values <= n * np.finfo(float).eps * max(float(values[-1]), 0.0)
        self.inverse = np.where(small, 0.0, 1.0 / np.where(small, 1.0, values))

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Solve M h = rhs in the directions that M holds."""
        h: np.ndarray = self.vectors @ (self.inverse * (self.vectors.T @ rhs))
        return h

    def decision(self, element: np.ndarray) -> np.ndarray:
        """f on the training rows."""
        rows = self.features.rows
        return rows.dot(element[:-1]) + element[-1] if self.bias else rows.dot(element)
