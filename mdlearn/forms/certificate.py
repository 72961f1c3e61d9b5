"""The certificate: primal and dual values of the declared problem, recomputed outside every engine, in float64.

For multipliers beta in [0, caps], sigma with sum 0 and alpha = y (sum_t side_t beta_t + sigma + a c / m)::

    D = sum_t side_t threshold_t sum_i beta_ti - 1/2 sum delta beta^2 - sum sigma^2 / (2 kappa c)
        - 1/2 |sum alpha_i phi(x_i)|^2  [- 1/2 (sum alpha)^2 for a regularized bias; sum alpha = 0 for a free one]

is a lower bound of the objective whatever the engine did. Every value here costs two passes over the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from mdlearn.forms.margin import Column, MarginForm, Point

TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Certificate:
    """Proof of how close a model's objective is to the optimum.

    Attributes
    ----------
    objective : float
        The full objective at the model's coefficients, constants included.
    lower_bound : float
        No coefficients have a smaller objective.
    gap : float
        (objective - lower_bound) / max(|objective|, 0.01 |objective at w = 0|, tiny); with C = inf the denominator is
        max(|objective|, |lower_bound|, tiny).
    kind : str
        "duality gap", "closed form", "residual", or "none" (then lower_bound is -inf).
    tol : float
        The gap that the fit was asked for.
    converged : bool
        gap <= tol for every part.
    parts : tuple of Certificate
        One per class or pair; empty for a single problem.
    """

    objective: float
    lower_bound: float
    gap: float
    kind: str
    tol: float
    converged: bool
    parts: tuple[Certificate, ...] = field(default=(), repr=False)


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients of one column, with the multipliers that prove them.

    Attributes
    ----------
    coef : ndarray of shape (width,)
        w of explicit features, or representer coefficients of a kernel.
    intercept : float
    alpha : ndarray of shape (m,)
        Signed representer coefficients of the dual point.
    beta : ndarray of shape (T, m)
        Multipliers.
    certificate : Certificate
    """

    coef: np.ndarray
    intercept: float
    alpha: np.ndarray
    beta: np.ndarray
    certificate: Certificate


def objective_at(form: MarginForm, column: Column, z: np.ndarray, squares: float) -> tuple[float, float]:
    """Return (objective, factor) at margins z and squared norm `squares` (bias included where it is regularized).

    Constraints scale the point by `factor` >= 1 to reach feasibility.
    """
    factor = feasibility_factor(column, z)
    if math.isinf(factor):
        return math.inf, factor
    return 0.5 * factor * factor * squares + column.distribution_value(factor * z), factor


def primal(form: MarginForm, column: Column, coef: np.ndarray, intercept: float) -> tuple[float, np.ndarray, float]:
    """Return (objective, margins, factor) of coefficients, from one pass over the rows."""
    z = column.y * (form.features.decision(coef) + intercept)
    squares = form.features.squared_norm(coef)
    if form.bias == "regularized":
        squares += intercept * intercept
    objective, factor = objective_at(form, column, z, squares)
    return objective, z * factor if math.isfinite(factor) else z, factor


def feasibility_factor(column: Column, z: np.ndarray) -> float:
    """Smallest factor >= 1 that takes margins z to side * (factor z - threshold) >= 0; inf when there is none."""
    factor = 1.0
    for term in column.terms:
        if term.hard:
            least = float((term.side * z[column.counts > 0]).min())
            need = term.side * term.threshold
            if least < need:
                factor = max(factor, need / least) if least > 0 and need > 0 else math.inf
    return factor


def value_at_zero(column: Column) -> float:
    """Objective at w = 0, b = 0; the scale of the gap when the optimum itself is near zero."""
    return column.distribution_value(np.zeros_like(column.y))


def dual(form: MarginForm, column: Column, beta: np.ndarray, sigma: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return (lower bound, alpha, beta) after making the multipliers feasible."""
    beta = np.clip(beta, 0.0, column.caps)
    if not form.features.ready:
        return -math.inf, np.zeros_like(column.y), beta
    sigma = _feasible_sigma(column, sigma)
    if form.bias == "free":
        balanced, sigma = _balance(column, beta, sigma)
        if balanced is None:
            return -math.inf, np.zeros_like(column.y), beta
        beta = balanced
    alpha = column.y * (column.sides @ beta + sigma + column.pull)
    squares = form.features.squared_norm(form.features.expand(alpha))
    if form.bias == "regularized":
        squares += float(alpha.sum()) ** 2
    value = float((column.sides * column.thresholds) @ beta.sum(axis=1)) - 0.5 * float(
        (column.softness * beta**2).sum()
    )
    if column.kappa > 0:
        used = column.counts > 0
        value -= float((sigma[used] ** 2 / column.counts[used]).sum()) / (2.0 * column.kappa)
    return value - 0.5 * squares, alpha, beta


def _feasible_sigma(column: Column, sigma: np.ndarray) -> np.ndarray:
    """Sum zero, nothing where the variance has no weight; the shift along the counts costs the bound least."""
    if column.kappa == 0:
        return np.zeros_like(sigma)
    return np.where(column.counts > 0, sigma - column.counts * (float(sigma.sum()) / column.total), 0.0)


def _balance(column: Column, beta: np.ndarray, sigma: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """Make sum_i alpha_i = 0, the condition of a free bias; None when no multipliers within the box can.

    With a variance term, sigma moves along c (y - mean y), which keeps its own sum at 0. Without one, multipliers that
    push the sum the wrong way shrink in proportion, then the others grow towards their caps.
    """
    excess = float(column.y @ (column.sides @ beta + sigma + column.pull))
    if column.kappa > 0:
        direction = column.counts * (column.y - column.label_mean)
        return beta, sigma - direction * (excess / float(direction @ column.y))
    signs = np.multiply.outer(column.sides, column.y)
    beta = beta.copy()
    shrink = (signs * excess > 0) & (beta > 0)
    room = float(beta[shrink].sum())
    cut = min(1.0, abs(excess) / room) if room > 0 else 0.0
    beta[shrink] *= 1.0 - cut
    rest = abs(excess) - cut * room
    if rest > 0:
        grow = signs * excess < 0
        space = np.where(np.isinf(column.caps), 1.0, column.caps - beta)[grow]
        total = float(space.sum())
        if total <= 0 or (np.isfinite(column.caps[grow]).all() and rest > total * (1 + 1e-12)):
            return None, sigma
        beta[grow] = np.minimum(beta[grow] + space * (rest / total), column.caps[grow])
    return beta, sigma


def certify(form: MarginForm, column: Column, point: Point, tol: float) -> Solution:
    """Compute the coefficients that a point stands for and the proof of their quality.

    The representer of the multipliers comes first: with it, coefficients and dual coefficients say the same. Where it
    does not reach the gap (rounding, an early stop), the engine's own primal point is kept if it is better.
    """
    lower, alpha, beta = dual(form, column, point.beta, point.sigma)
    own = float(alpha.sum()) if form.bias == "regularized" else point.intercept
    candidates = [(form.features.expand(alpha), own)]
    if point.coef is not None:
        candidates.append((point.coef, point.intercept))
    at_zero = value_at_zero(column)
    best: tuple[float, np.ndarray, float] | None = None
    for coef, intercept in candidates:
        if best is not None and judge(best[0], lower, at_zero, column.hard, tol).converged:
            break
        objective, z, factor = primal(form, column, coef, intercept)
        grown = _without_rounding_losses(form, column, coef, intercept, z, objective)
        if grown is not None:
            objective, growth = grown
            coef, intercept = growth * coef, growth * intercept
        if form.bias == "free" and math.isfinite(objective):
            shift = best_shift(column, z)
            trial = primal(form, column, factor * coef, factor * intercept + shift)
            if trial[0] <= objective:
                coef, intercept, factor, objective = factor * coef, factor * intercept + shift, trial[2], trial[0]
        if best is None or objective < best[0]:
            scale = factor if math.isfinite(factor) else 1.0
            best = (objective, scale * coef, scale * intercept)
    assert best is not None
    certificate = judge(best[0], lower, at_zero, column.hard, tol)
    return Solution(best[1], best[2], alpha, beta, certificate)


def _without_rounding_losses(
    form: MarginForm, column: Column, coef: np.ndarray, intercept: float, z: np.ndarray, objective: float
) -> tuple[float, float] | None:
    """Grow a point whose margins miss their thresholds by rounding alone; (objective, factor) if that pays.

    With C = 1e7 a miss of 1e-15 per row is a loss of the size of |w|^2's last eight digits.
    """
    factor = 1.0
    for term in column.terms:
        if term.side > 0 and term.threshold > 0 and term.weight > 0:
            least = float(z[column.counts > 0].min()) / term.threshold
            if not 1.0 - 1e-9 < least < 1.0:
                return None
            factor = max(factor, 1.0 / least)
    if factor == 1.0 or column.hard:
        return None
    value = primal(form, column, factor * coef, factor * intercept)[0]
    return (value, factor) if value < objective else None


def best_shift(column: Column, z: np.ndarray) -> float:
    """Shift of a free intercept that minimises the objective at fixed w; the midpoint when an interval does.

    Only problems without variance and with hinges of power 1 can leave an interval; elsewhere the engine's
    intercept is unique and the shift is 0.
    """
    terms = column.terms
    if column.kappa > 0 or column.hard or not terms or any(t.power == 2 for t in terms):
        return 0.0
    knots, jumps, slope = [], [], -column.mean * column.label_mean
    for term in terms:
        # z_i(shift) = z_i + y_i shift: the hinge is active below (or above) its knot, depending on side * y.
        knots.append(column.y * (term.threshold - z))
        jumps.append(term.weight * column.counts)
        slope -= term.weight * float(column.counts[column.y * term.side > 0].sum())
    at, jump = np.concatenate(knots), np.concatenate(jumps)
    order = np.argsort(at, kind="stable")
    at, slopes = at[order], slope + np.cumsum(jump[order])
    flat = 1e-10 * float(jump.sum())
    first = int(np.searchsorted(slopes, -flat))
    last = int(np.searchsorted(slopes, flat, side="right"))
    if first >= at.shape[0]:
        return float(at[-1])
    if slope >= -flat:  # the interval has no left end
        return float(at[min(last, at.shape[0] - 1)])
    high = at[min(last, at.shape[0] - 1)]
    return float(0.5 * (at[first] + high)) if last < at.shape[0] else float(at[first])


def judge(objective: float, lower: float, at_zero: float, hard: bool, tol: float) -> Certificate:
    """Form the certificate of one problem from its two values."""
    if math.isinf(lower):
        return Certificate(objective, -math.inf, math.inf, "none", tol, False)
    if math.isinf(objective):
        return Certificate(objective, lower, math.inf, "duality gap", tol, False)
    lower = min(lower, objective)  # rounding alone can put it above
    scale = abs(lower) if hard else 0.01 * abs(at_zero)
    gap = (objective - lower) / max(abs(objective), scale, TINY)
    return Certificate(objective, lower, gap, "duality gap", tol, gap <= tol)


def combine(parts: list[Certificate], at_zero: float, hard: bool, tol: float) -> Certificate:
    """Certificate of several problems: sums of the values; converged when every part is."""
    if len(parts) == 1:
        return parts[0]
    objective, lower = sum(p.objective for p in parts), sum(p.lower_bound for p in parts)
    whole = judge(objective, lower, at_zero, hard, tol)
    return Certificate(
        objective, whole.lower_bound, whole.gap, whole.kind, tol, all(p.converged for p in parts), tuple(parts)
    )
