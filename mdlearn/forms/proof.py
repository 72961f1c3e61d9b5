"""Certificates of any problem: the values that prove a solution, and how they are judged.

Nothing here knows what a problem is made of: `mdlearn.forms.certificates.margin` finds the values of margin columns,
other problems bring their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

SMALLEST_NORMAL = float(np.finfo(float).tiny)
AT_REST = 1e-13
"""Gap from which engines find nothing but other roundings: a tolerance below it is met by chance."""


@dataclass(frozen=True)
class Certificate:
    """Proof of how close a model's objective is to the optimum.

    Attributes
    ----------
    objective : float
        The full objective at the model's coefficients, constants included.
    lower_bound : float
        No coefficients have a smaller objective; -inf where nothing of the kind is known.
    gap : float
        (objective - lower_bound) / max(|objective|, 0.01 |objective at w = 0|, tiny); with C = inf the denominator is
        max(|objective|, |lower_bound|, tiny). For a problem that is not convex, what first-order conditions leave open
        (see `judge_residual`) over the first of these; then a gap of 0 means a stationary point, and nothing more.
    kind : str
        "duality gap", "closed form" (problems of plugins whose answer is a formula), "residual" (from first-order
        conditions; lower_bound is -inf where the problem is not convex), or "none" (then lower_bound is -inf, and gap
        is inf).
    tol : float
        The gap that the fit was asked for.
    converged : bool
        gap <= tol for every part.
    parts : tuple of Certificate
        One per class or pair; empty for a single problem.
    source : str
        "fit" where the values were computed with the model, "file" where they were read from a model file, which proves
        as much as its writer is trusted. Certificates of equal values are equal whatever their source.
    """

    objective: float
    lower_bound: float
    gap: float
    kind: str
    tol: float
    converged: bool
    parts: tuple[Certificate, ...] = field(default=(), repr=False)
    source: str = field(default="fit", compare=False)


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients of one column, with the multipliers that prove them; of all k classes where a problem is joint.

    Attributes
    ----------
    coef : ndarray of shape (d,) or (k, d), or None
        w of explicit columns; None for a kernel. float64, rounded to the type of the rows.
    intercept : float, or ndarray of shape (k,)
    alpha : ndarray of shape (m,) or (k, 1, m), or None
        Signed coefficients over the rows, f(x) = sum alpha_i k(x_i, x) + intercept; None where w is no combination of
        rows.
    beta : ndarray of shape (T, m) or (k, T, m)
        Multipliers.
    norm : float, or ndarray of shape (k,)
        |w| in the space of the features.
    certificate : Certificate
    at_limit : bool
        Rounding to the type of the rows alone costs more than `tol`, and than what is left of any gap in the end: no
        later point of an engine will do better.
    extras : dict of str to ndarray
        What else the features give a model as attributes.
    """

    coef: np.ndarray | None
    intercept: float | np.ndarray
    alpha: np.ndarray | None
    beta: np.ndarray
    norm: float | np.ndarray
    certificate: Certificate
    at_limit: bool = False
    extras: dict[str, np.ndarray] = field(default_factory=dict)


def gap_between(objective: float, lower: float, at_zero: float, hard: bool) -> float:
    """Relative gap of two values, as `Certificate` defines it; infinite unless both are finite."""
    if math.isinf(objective) or math.isinf(lower):
        return math.inf
    scale = abs(lower) if hard else 0.01 * abs(at_zero)
    return max(
        (objective - lower) / max(abs(objective), scale, SMALLEST_NORMAL), 0.0
    )  # rounding alone makes it negative


def judge(objective: float, lower: float, at_zero: float, hard: bool, tol: float) -> Certificate:
    """Form the certificate of one problem from its two values; NaN (overflows of either sign) is no proof."""
    objective = math.inf if math.isnan(objective) else objective
    if not math.isfinite(lower):
        return Certificate(objective, -math.inf, math.inf, "none", tol, False)
    lower = min(lower, objective)
    gap = gap_between(objective, lower, at_zero, hard)
    return Certificate(objective, lower, gap, "duality gap", tol, gap <= tol)


def judge_residual(objective: float, residual: float, at_zero: float, tol: float) -> Certificate:
    """Form the certificate of a problem that is not convex: no lower bound, the gap is that of first-order conditions.

    Parameters
    ----------
    objective : float
    residual : float
        What first-order conditions leave open, >= 0 and in units of the objective: 0 where they hold, and what a convex
        model that touches the objective at the point could still save elsewhere. For example |g|^2 / (2 ridge) with the
        gradient g of an objective that has ridge/2 |w|^2.
    at_zero : float
        Objective at w = 0, for the scale of the gap.
    tol : float

    Returns
    -------
    Certificate
        Of kind "residual", with lower_bound -inf; of kind "none" when objective or residual are not finite.
    """
    if not (math.isfinite(objective) and math.isfinite(residual)):
        return Certificate(objective, -math.inf, math.inf, "none", tol, False)
    gap = gap_between(objective, objective - residual, at_zero, False)
    return Certificate(objective, -math.inf, gap, "residual", tol, gap <= tol)


def combine(parts: list[Certificate], at_zero: float, hard: bool, tol: float) -> Certificate:
    """Certificate of several problems: sums of the values; converged when every part is.

    Where a part has no bound, the sum has none: its gap is the largest of the parts.
    """
    if len(parts) == 1:
        return parts[0]
    objective, lower = sum(p.objective for p in parts), sum(p.lower_bound for p in parts)
    whole = judge(objective, lower, at_zero, hard, tol)
    if math.isinf(lower):
        gap = max(p.gap for p in parts)
        whole = replace(whole, gap=gap, kind="none" if math.isinf(gap) else "residual")
    return Certificate(
        objective, whole.lower_bound, whole.gap, whole.kind, tol, all(p.converged for p in parts), tuple(parts)
    )
