"""Objectives without a ridge: the condition of their dual, sum_i alpha_i (x_i, 1) = 0, and whether an optimum exists.

A residual r of the condition makes a bound wrong by r.w at the optimum's w, so only rounding is let pass. Newton's own
multipliers meet it. Slopes at an approximate optimum nearly do; they are moved by the least change, measured in the
curvature of each multiplier's own conjugate, that meets it but for rounding.
"""

from __future__ import annotations

import math

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.affine import AffineRows
from mdlearn.forms.certificates.separability import LARGEST_ROWS, reach, signed_rows
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.numerics.symmetric_eigenvalues import eigen

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
SETTLED, RESTLESS, STRANGE_GAP = 1e-4, 0.01, 0.7
"""Gap below which it is strange that margins still move by this share of the largest, and of their last move."""
STRANGE_STEPS = 15
"""Steps after which a larger gap is strange, too."""
AT_ONCE = 1e6
"""Multiplications for the matrix of a correction up to which every point can have one (a millisecond)."""
LARGEST_PROGRAM = 5e5
"""Non-zero entries of the rows up to which a linear program is asked (seconds)."""
SURE_MARGIN = 1e-9
"""Margin, in units of the largest, above which a row is on its side in spite of rounding."""


def without_ridge(
    form: MarginForm, column: Column, beta: np.ndarray, sigma: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return multipliers with sum alpha_i (x_i, 1) = 0; None when no correction within their boxes was found.

    Without a mean term alpha = 0 is possible, too: it says that the objective is not negative.
    """
    features = form.features
    assert isinstance(features, LinearFeatures)
    rows = AffineRows(features.rows, form.bias != "none")
    residual, clean = _residual(rows, column, beta, sigma)
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
            freedom = np.array([t.freedom(b, column.counts) for t, b in zip(column.terms, beta)]).reshape(beta.shape)
            metric = Metric(rows, column, freedom.sum(axis=0))
        f = column.y * rows.dot(metric.solve(residual))
        moved = beta - column.sides[:, None] * freedom * f
        beta = np.clip(moved, 0.0, column.caps)
        if not np.array_equal(beta, moved):  # what met its bound gives way no more: others have to
            metric = None
        sigma = sigma + column.spread(f)
        residual, clean = _residual(rows, column, beta, sigma)
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
    """Part of nearly constant columns in sum alpha_i x_i, times coefficients that give a margin of `reach`."""
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


def corrects_at_once(form: MarginForm) -> bool:
    """Whether corrections of multipliers are so cheap that every point can have one."""
    return float(form.features.n_rows) * form.features.width**2 <= AT_ONCE


def _residual(rows: AffineRows, column: Column, beta: np.ndarray, sigma: np.ndarray) -> tuple[np.ndarray, bool]:
    """sum_i alpha_i (x_i, 1), and whether it is 0 but for rounding."""
    residual = rows.adjoint(column.y * (column.sides @ beta + sigma + column.pull))
    # alpha itself may be a difference that is all rounding: margins that can all be equal have alpha = 0.
    size = beta.sum(axis=0) + np.abs(sigma) + np.abs(column.pull)
    total = float(size.sum())
    # An upper bound of sum_i size_i |x_ij| (Cauchy-Schwarz), without a pass over |x|.
    terms = np.sqrt(rows.column_squares(size) * total)
    units = ROUNDINGS_OF_RESIDUAL * max(1.0, math.sqrt(column.y.shape[0] / ROWS_PER_ROUNDING))
    return residual, bool((np.abs(residual) <= units * np.finfo(float).eps * terms).all())


class Metric:
    """M = sum_i freedom_i x_i x_i' + kappa sum_i c_i (r_i - mean)(r_i - mean)', solved by eigenvalues.

    Attributes
    ----------
    rank : int
        Of M, as far as rounding tells.
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
        values, self.vectors = eigen(self.scale[:, None] * M * self.scale)
        small = values <= n * np.finfo(float).eps * max(float(values[-1]), 0.0)
        self.rank = n - int(np.count_nonzero(small))
        self.inverse = np.where(small, 0.0, 1.0 / np.where(small, 1.0, values))

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Solve M h = rhs in the directions that M holds."""
        h: np.ndarray = self.scale * (self.vectors @ (self.inverse * (self.vectors.T @ (self.scale * rhs))))
        return h


class Attainment:
    """Watches the margins of a fit of logistic terms without a ridge: on separable rows there is no optimum.

    Other forms pass: a ridge holds every direction, and squared terms reach their least value.
    """

    def __init__(self, form: MarginForm, column: Column) -> None:
        self.form, self.column = form, column
        self.moved, self.steps = np.inf, 0
        self.waiting = form.ridge == 0 and {t.kind for t in column.terms if t.weight > 0} == {"logistic"}

    def examine(self, z: np.ndarray, moved: float, gap: float) -> None:
        """Raise ValueError when margins z prove that there is no optimum; `moved` is the last change of the largest.

        The smallest gap says nothing here: the bound reaches the infimum, too. But margins go on moving then.
        """
        if not self.waiting:
            return
        largest, used = float(np.abs(z).max()), z[self.column.counts > 0]
        # Rows of zeros have margin 0 whatever w is.
        if self.column.variance == 0 and largest > 0 and ((used > SURE_MARGIN * largest) | (used == 0)).all():
            raise _unattained()
        restless = moved > RESTLESS * largest and moved > STRANGE_GAP * self.moved
        self.moved, self.steps = moved, self.steps + 1
        if (gap < SETTLED and restless) or (not gap < SETTLED and self.steps >= STRANGE_STEPS):
            self._ask()

    def conclude(self, gap: float) -> None:
        """Raise ValueError when a fit ends without a bound because there is no optimum."""
        if self.waiting and not gap < SETTLED:
            self._ask()

    def _ask(self) -> None:
        self.waiting = False
        if recedes(self.form, self.column):
            raise _unattained()


def check_attained(form: MarginForm, column: Column, beta: np.ndarray) -> None:
    """Raise ValueError where multipliers that prove a bound are at their ends because there is no optimum.

    At an optimum those of logistic terms are inside; far out along a direction without end they go to 0.
    """
    kinds = {t.kind for t in column.terms if t.weight > 0}
    at_end = (beta <= 0) | (beta >= column.caps)
    if kinds == {"logistic"} and (at_end & (column.counts > 0)).any() and recedes(form, column):
        raise _unattained()


def recedes(form: MarginForm, column: Column) -> bool:
    """Whether v Var(z) - a mean(z) + logistic terms falls along some direction without end.

    With a variance term, margins can only grow all alike: a least squares problem. Else a linear program says whether
    ``sum caps max(0, -z) - a mean(z)``, the slope far out, is negative for some w; without a mean term, whether some
    margins are positive and none is negative. False where the program would be too large.
    """
    signed = signed_rows(form, column, LARGEST_PROGRAM)
    if signed is None:
        return False
    m, used = signed.shape[0], column.counts > 0
    if column.variance > 0:
        if signed.shape[0] * signed.shape[1] > LARGEST_ROWS:
            return False
        rows = signed.toarray()
        w = np.linalg.lstsq(rows, np.ones(m), rcond=None)[0]
        return bool(np.abs(rows @ w - 1.0).max() < SURE_MARGIN)
    pull = column.pull[used]
    if not pull.any():
        # A direction that is possible at all takes some margin to 1.
        return reach(signed, np.ones(m), np.full(m, np.inf)) > 0.5
    # Gains are cut off at margin 1, so that the program is bounded: the sign of its value stays the same.
    return reach(signed, pull, column.caps[:, used].sum(axis=0)) > 1e-7 * float(pull.sum())


def _unattained() -> ValueError:
    return ValueError(
        "without a squared norm in the objective there is no optimum on these training rows: they can be separated, so "
        "that it falls along a direction without end; give the squared norm a positive weight"
    )
