"""Separability of rows: constraints of a hard margin that cannot be met, and how far margins can be raised."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.forms.proof import SMALLEST_NORMAL, Solution

RELATIVE_MARGIN = 1e-7
"""Geometric margin, in units of the largest row, below which separability is rounding (a kernel's |w| is a root)."""
HIDDEN = 100.0
"""How many times as large a margin may be proved that rounding nevertheless hides."""
LARGEST_PROGRAM, LARGEST_ROWS = 4e6, 2e7
"""Non-zero entries of the rows up to which a linear program is asked, and entries in all of rows that are dense."""
ACCURACY = 1e-10
"""Feasibility tolerance of linear programs, the smallest that HiGHS takes; entries are scaled to at most 1."""


def margin_bound(form: MarginForm, column: Column, beta: np.ndarray) -> float:
    """Separability bound: upper bound of the geometric margin min_i z_i / |w| of any w, proved by multipliers.

    For weights u >= 0 with sum 1 over the constraints, min z <= sum u_i z_i = (sum u_i r_i).w, so the margin is at
    most |sum u_i r_i|. A free bias takes part only when sum u_i y_i = 0; the imbalance is removed first.
    """
    hard = np.array([t.hard and t.side > 0 and t.threshold > 0 for t in column.terms])
    weights = beta[hard].sum(axis=0)
    if not np.isfinite(weights).all():
        return 0.0
    if form.bias == "free":
        positive, negative = float(weights[column.y > 0].sum()), float(weights[column.y < 0].sum())
        if min(positive, negative) <= 0:
            return math.inf
        weights = np.where(column.y > 0, weights / positive, weights / negative)
    total = float(weights.sum())
    if total <= 0:
        return math.inf
    alpha = column.y * weights / total
    squares = form.features.squared_norm(form.features.expand(alpha))
    if form.bias == "regularized":
        total = float(alpha.sum())
        squares += total * total
    return math.sqrt(max(squares, 0.0))


def check_separable(form: MarginForm, column: Column, beta: np.ndarray) -> None:
    """Check separability: raise ValueError once the multipliers prove that no point meets the constraints."""
    if margin_bound(form, column, beta) <= RELATIVE_MARGIN * math.sqrt(float(form.features.squares().max())):
        raise _inseparable_error()


def check_separated(form: MarginForm, column: Column, solution: Solution) -> None:
    """Check separability at the end: ValueError where an engine's last coefficients separate by rounding alone.

    A margin that multipliers would refuse is refused, too, where they were not that good; so is none at all, where
    they leave but little more.
    """
    intercept = float(solution.intercept) if form.bias == "regularized" else 0.0
    longest = math.sqrt(float(form.features.squares().max()))
    margin = 1.0 / max(math.hypot(float(solution.norm), intercept), SMALLEST_NORMAL)
    if math.isinf(solution.certificate.objective):
        margin = margin_bound(form, column, solution.beta) / HIDDEN
    if margin <= RELATIVE_MARGIN * longest:
        raise ValueError(
            "C=inf asks every margin to be at least 1, but rounding hides whether the training rows are separable with "
            "this kernel and bias; give a finite C, another kernel or a bias"
        )


def check_separable_by_program(form: MarginForm, column: Column) -> None:
    """Check separability by a linear program, the last resort: ValueError when no point meets the constraints.

    An interior point method can lose its digits before its multipliers prove anything (equal rows of both classes).
    """
    signed = separability_rows(form, column, LARGEST_PROGRAM)
    if signed is None:
        return
    m = signed.shape[0]
    # Multipliers that prove the opposite can be scaled until the largest is 1.
    if separation_value(signed, np.ones(m), np.zeros(m)) < m - 0.5:
        raise _inseparable_error()


def separability_rows(form: MarginForm, column: Column, largest: float) -> Any:
    """Signed rows y_i (x_i, 1) for the linear program of separability: CSR, counts > 0, largest entry of columns 1.

    None where the Gram matrix is not known yet, or where there are too many entries: more than `largest` that are not
    zero, or more than LARGEST_ROWS of dense rows.
    """
    from scipy.sparse import csr_matrix, diags, hstack

    features, used = form.features, np.flatnonzero(column.counts > 0)
    if not features.ready:
        return None
    sparse = isinstance(features, LinearFeatures) and features.rows.sparse
    if not sparse and used.shape[0] * features.width > LARGEST_ROWS:
        return None
    rows = csr_matrix(features.matrix()[used])
    if rows.nnz > largest:
        return None
    rows = rows @ diags(1.0 / np.maximum(abs(rows).max(axis=0).toarray().ravel(), np.finfo(float).tiny))
    if form.bias != "none":
        rows = hstack([rows, np.ones((used.shape[0], 1))])
    return (diags(column.y[used]) @ rows).tocsr()


def separation_value(signed: Any, gain: np.ndarray, price: np.ndarray) -> float:
    """Separate rows by a linear program: largest ``sum_i gain_i min(1, z_i) - price_i max(0, -z_i)``, z = signed w.

    `gain` and `price` are at least 0; a price may be infinite, so that no margin is negative. The dual is solved,
    because it has n equations and beside these only bounds: maximise ``sum p`` subject to ``signed' (p + q) = 0``,
    ``0 <= p <= gain``, ``0 <= q <= price``; the value is ``sum gain - sum p``.
    """
    from scipy.optimize import linprog
    from scipy.sparse import hstack

    m, n = signed.shape
    finite = price[np.isfinite(price)]
    unit = max(float(gain.max()), float(finite.max(initial=0.0)))
    equations = signed.T.tocsc()
    found = linprog(
        np.repeat([-1.0, 0.0], m),
        A_eq=hstack([equations, equations], format="csc"),
        b_eq=np.zeros(n),
        bounds=np.column_stack([np.zeros(2 * m), np.append(gain, price) / unit]),
        method="highs",
        options={"primal_feasibility_tolerance": ACCURACY, "dual_feasibility_tolerance": ACCURACY},
    )
    return float(gain.sum() + unit * found.fun) if found.status == 0 else math.nan


def _inseparable_error() -> ValueError:
    """Error for C = inf on rows without separability, with what to do."""
    return ValueError(
        "C=inf asks every margin to be at least 1, but the training rows are not separable with this kernel and "
        "bias; give a finite C, another kernel or a bias"
    )
