"""Dual value in the certificate of a margin form: multipliers made feasible, and their lower bound."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mdlearn.forms.certificates.without_ridge import without_ridge
from mdlearn.forms.margin import Column, MarginForm


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


MOST_CORRECTIONS, SMALL_CORRECTION = 4, 1e-2
"""Most corrections of sums that have to be 0, and what one may take away beside what remains for it to be the last:
rounding of large terms that cancel is seen in the small ones that are left."""


ROUNDING_OF_SUMS = 1e-14
"""What is left of sums that are 0, relative to their terms."""


def feasible_dual(
    form: MarginForm, column: Column, beta: np.ndarray, sigma: np.ndarray, estimated: bool = False
) -> Dual:
    """Make multipliers feasible for a margin form's certificate and return the dual value there.

    `estimated`: as engines need it, but for some digits of given losses.
    """
    beta = np.minimum(np.maximum(beta, 0.0), column.caps)
    if form.ridge == 0 and not form.features.ready:
        return _dual_value_without_bound(column, beta)
    if form.ridge == 0:
        repaired = without_ridge(form, column, beta, feasible_variance_dual(column, sigma))
    else:
        repaired = dual_multipliers_with_sums(form, column, beta, sigma)
    if repaired is None:
        return _dual_value_without_bound(column, beta)
    beta, sigma = repaired
    alpha = column.alpha(beta, sigma)
    value, element = column.bound(beta, sigma, estimated), None
    if not form.features.ready:
        # A fit that ended before any kernel value was known: the bound is loose, but it is one.
        total = float(alpha.sum()) if form.bias == "regularized" else 0.0
        squares = form.features.most(alpha) + total * total
        return _dual_value_without_bound(column, beta)._replace(lower=value - 0.5 * squares)
    if form.ridge > 0:
        element = form.features.expand(alpha)
        value -= 0.5 * form.norm(element, float(alpha.sum()))
    return Dual(value, alpha, beta, element)


def _dual_value_without_bound(column: Column, beta: np.ndarray) -> Dual:
    """Dual in a margin form's certificate for multipliers that no feasible ones are near to: no bound."""
    return Dual(-math.inf, np.zeros_like(column.y), beta, None)


def dual_multipliers_with_sums(
    form: MarginForm, column: Column, beta: np.ndarray, sigma: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return multipliers of a form with a ridge, moved to the sums that variance and bias ask for; None: none are."""
    sigma = feasible_variance_dual(column, sigma)
    return _balanced_dual_multipliers(column, beta, sigma) if form.bias == "free" else (beta, sigma)


def feasible_variance_dual(column: Column, sigma: np.ndarray) -> np.ndarray:
    """Variance's multipliers in a margin form's certificate, shifted along the counts to sum 0 at least loss."""
    if column.kappa == 0:
        return np.zeros(sigma.shape)
    centred = sigma if column.whole else np.where(column.counts > 0, sigma, 0.0)
    for _ in range(MOST_CORRECTIONS):
        excess = float(centred.sum())
        centred = centred - column.counts * (excess / column.total)
        if abs(excess) <= SMALL_CORRECTION * float(np.abs(centred).sum()):
            break
    return centred


def _balanced_dual_multipliers(
    column: Column, beta: np.ndarray, sigma: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Multipliers in a margin form's certificate with sum alpha_i = 0 for a free bias; None: none within bounds.

    With a variance term, sigma moves along c (y - mean y), which keeps its own sum at 0. Without one, or where all
    signs are the same, multipliers that push the sum the wrong way shrink in proportion, then the others grow towards
    their caps.
    """
    others = column.sides @ beta + column.pull
    excess = float(column.y @ (others + sigma))
    if column.kappa > 0 and abs(column.label_mean) < 1.0:
        direction = column.counts * (column.y - column.label_mean)
        for _ in range(MOST_CORRECTIONS):
            sigma = feasible_variance_dual(column, sigma - direction * (excess / float(direction @ column.y)))
            before, excess = excess, float(column.y @ (others + sigma))
            if abs(before) <= SMALL_CORRECTION * float(np.abs(others + sigma).sum()):
                break
        return beta, sigma
    signs = np.multiply.outer(column.sides, column.y)
    beta = beta.copy()
    shrink = (signs * excess > 0) & (beta > 0)
    room = float(beta[shrink].sum())
    cut = min(1.0, abs(excess) / room) if room > 0 else 0.0
    beta[shrink] *= 1.0 - cut
    # A part of the room is exactly enough: what a subtraction would leave is rounding.
    rest = 0.0 if 0.0 < cut < 1.0 else abs(excess) - room
    if rest > 0:
        grow = signs * excess < 0
        space = np.where(np.isinf(column.caps), 1.0, column.caps - beta)[grow]
        total = float(space.sum())
        # Sums of the multipliers that are 0 by their making leave rounding behind.
        if rest <= ROUNDING_OF_SUMS * float(np.abs(sigma).sum() + np.abs(column.pull).sum()):
            return beta, sigma
        if total <= 0 or (np.isfinite(column.caps[grow]).all() and rest > total * (1 + 1e-12)):
            return None
        beta[grow] = np.minimum(beta[grow] + space * (rest / total), column.caps[grow])
    return beta, sigma
