"""Recognising that constraints cannot be met: the dual of a hard margin is unbounded on inseparable data."""

from __future__ import annotations

import math

import numpy as np

from mdlearn.forms.margin import Column, MarginForm

RELATIVE_MARGIN = 1e-7
"""Geometric margin, in units of the largest row, below which separability is rounding (a kernel's |w| is a root)."""
LARGEST_PROGRAM = 4e6
"""Entries of the constraint matrix up to which a linear program is asked."""


def margin_bound(form: MarginForm, column: Column, beta: np.ndarray) -> float:
    """Upper bound of the geometric margin min_i z_i / |w| that any w reaches, proved by multipliers.

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
        squares += float(alpha.sum()) ** 2
    return math.sqrt(max(squares, 0.0))


def check_separable(form: MarginForm, column: Column, beta: np.ndarray) -> None:
    """Raise ValueError once the multipliers prove that no point meets the constraints."""
    if margin_bound(form, column, beta) <= RELATIVE_MARGIN * math.sqrt(float(form.features.squares().max())):
        raise _inseparable()


def check_by_program(form: MarginForm, column: Column) -> None:
    """Raise ValueError when a linear program says that no point meets the constraints; the last resort.

    An interior point method can lose its digits before its multipliers prove anything (equal rows of both classes).
    """
    from scipy.optimize import linprog

    used = np.flatnonzero(column.counts > 0)
    m, width = used.shape[0], form.features.width
    if m * width > LARGEST_PROGRAM or not form.features.ready:
        return
    rows = form.features.matrix()[used]
    rows = rows / max(float(np.abs(rows).max()), np.finfo(float).tiny)
    if form.bias != "none":
        rows = np.hstack([rows, np.ones((m, 1))])
    signed = column.y[used, None] * rows
    answer = linprog(np.zeros(rows.shape[1]), A_ub=-signed, b_ub=-np.ones(m), bounds=(None, None), method="highs")
    if answer.status == 2:
        raise _inseparable()


def _inseparable() -> ValueError:
    return ValueError(
        "C=inf asks every margin to be at least 1, but the training rows are not separable with this kernel and "
        "bias; give a finite C, another kernel or a bias"
    )
