"""Warm start of an engine: an element for engines on coefficients, multipliers for those on the dual.

A start belongs to another problem: other weights of loss, variance and mean, other counts. Its coefficients are a point
of this problem, too. Its multipliers are in other boxes. There are two guesses: as they are, cut off at the new caps;
or as margins tell them, where rows clearly short of a threshold are at their caps, and the others grow by what those
have grown by. Between the two the dual value is a concave parabola, which says how much of either is best. Nothing is
ever begun below what w = 0 is worth.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Protocol

import numpy as np

from mdlearn.forms.certificates.dual import feasible_dual
from mdlearn.forms.certificates.primal import primal_objective
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.forms.proof import Start
from mdlearn.numerics.line_search import parabola_maximum
from mdlearn.solvers.base import Report
from mdlearn.solvers.common.primal_dual import PrimalDual
from mdlearn.solvers.systems.row_and_gram import GramSystem

CLEARLY = 0.05
"""Distance from a threshold, in units of a typical one, that no row on a kink has."""
MULTIPLIER_TURNS = 2
"""Turns between multipliers of loss and of variance, each at the best place between two guesses."""


def warm_start_element(state: PrimalDual) -> np.ndarray:
    """Element of the system at a warm start; zeros without one, or where w = 0 has the smaller objective."""
    system, column = state.system, state.column
    zero = np.zeros(system.size)
    start = column.start
    if start is None:
        return zero
    inner = start.alpha if isinstance(system, GramSystem) else start.coef
    if inner is None:
        return zero
    element = np.append(inner, start.intercept) if system.bias else inner.copy()
    better = _warm_start_beats_zero(state.form, column, state.margins(element), *state.coefficients(element))
    return element if better else zero


def warm_start_margins(form: MarginForm, column: Column) -> np.ndarray | None:
    """Margins y f at a warm start; None where w = 0 has the smaller objective, or where there is no start."""
    if column.start is None:
        return None
    z = margins_of_start(form, column, column.start)
    return z if _warm_start_beats_zero(form, column, z, column.start.coef, column.start.intercept) else None


def _warm_start_beats_zero(form: MarginForm, column: Column, z: np.ndarray, coef: np.ndarray, intercept: float) -> bool:
    """Whether a warm start with margins z is worth more than w = 0, which meets no constraint."""
    value = primal_objective(column, z, form.norm(coef, intercept))[0]
    return value < math.inf if column.hard else value <= column.at_zero


def margins_of_start(form: MarginForm, column: Column, start: Start) -> np.ndarray:
    """Margins y f of a warm start; a pass over the rows."""
    return np.asarray(column.y * (form.features.decision(start.coef) + start.intercept))


def start_multipliers(column: Column, start: Start, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Multipliers (T, m) of a warm start with margins z: as they were, and by its margins; within bounds."""
    caps = column.caps
    beta = _loss_multipliers_of_start(column, start)
    kept = np.clip(beta, 0.0, caps)
    short = column.sides[:, None] * (column.kinks - z)
    typical = max(1.0, float(np.abs(column.kinks).mean())) if column.kinks.size else 1.0
    beyond = (short > CLEARLY * typical) & (caps > 0) & np.isfinite(caps)
    grown = beyond & (beta > 0)
    growth = float(np.median(caps[grown] / beta[grown])) if grown.any() else 1.0
    told = np.where(beyond, caps, np.clip(growth * beta, 0.0, caps))
    soft = column.softness > 0
    told[soft] = np.minimum(np.maximum(short[soft], 0.0) / column.softness[soft], caps[soft])
    return kept, told


def warm_start_multipliers(form: MarginForm, column: Column) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Warm multipliers of loss (T, m) and variance (m,) of the best dual value, and how far the start is from that.

    None where zeros have the best value, or where there is no start.
    """
    start = column.start
    if start is None:
        return None
    z = margins_of_start(form, column, start)
    low, high = start_multipliers(column, start, z)
    tight = loose = column.spread(z)
    if start.alpha is not None and column.kappa > 0:
        # What the start's own variance made of them: w is then the start's.
        own = column.y * start.alpha - column.sides @ _loss_multipliers_of_start(column, start) - column.pull
        loose = own - column.counts * (float(own.sum()) / column.total)
    moves = high - low, tight - loose
    alphas = column.y * (column.sides @ low + loose + column.pull), column.y * (column.sides @ moves[0])
    elements = np.array([form.features.expand(alpha) for alpha in (*alphas, column.y * moves[1])])
    totals = np.array([*(alpha.sum() for alpha in alphas), column.y @ moves[1]])

    def value(t: float, u: float) -> float:
        share = np.array([1.0, t, u])
        value = column.bound(low + t * moves[0], loose + u * moves[1])
        return value - 0.5 * form.norm(share @ elements, float(share @ totals))

    t, u = 0.5, 0.5
    for _ in range(MULTIPLIER_TURNS):
        t = parabola_maximum(partial(value, u=u)) if moves[0].any() else 0.0
        u = parabola_maximum(partial(value, t)) if moves[1].any() else 0.0
    beta, sigma = low + t * moves[0], loose + u * moves[1]
    best = feasible_dual(form, column, beta, sigma)[0]
    if best <= feasible_dual(form, column, np.zeros(column.caps.shape), np.zeros_like(column.y))[0]:
        return None
    return beta, sigma, primal_objective(column, z, form.norm(start.coef, start.intercept))[0] - best


def _loss_multipliers_of_start(column: Column, start: Start) -> np.ndarray:
    """Multipliers of the loss at a warm start; zeros where the loss had other terms (or none of weight)."""
    return start.beta if start.beta.shape == column.caps.shape else np.zeros(column.caps.shape)


class WarmStartedAscent(Protocol):
    """Interface of an ascent that takes a warm start: multipliers, changed in place, and their exact value."""

    form: MarginForm
    column: Column
    beta: np.ndarray
    problem: Any

    def report(self) -> Report:
        """Recompute margins exactly and evaluate."""


def warm_start_ascent(ascent: WarmStartedAscent) -> Report | None:
    """Move an ascent to the best multipliers of a warm start, if any, and report them; None where zeros are better."""
    column, start, problem = ascent.column, ascent.column.start, ascent.problem
    if start is None:
        return None
    least, beta = ascent.report().lower_bound, ascent.beta
    problem.offset = start.intercept if ascent.form.bias == "free" else 0.0
    low, high = start_multipliers(column, start, margins_of_start(ascent.form, column, start))

    def at(t: float) -> Report:
        beta[:] = low + t * (high - low)
        return ascent.report()

    report = at(parabola_maximum(lambda t: at(t).lower_bound) if (high != low).any() else 0.0)
    if report.lower_bound > least:
        return report
    beta[:], problem.offset = 0.0, 0.0
    ascent.report()  # what it keeps belongs to zeros again
    return None


def warm_start_newton(state: PrimalDual) -> tuple[np.ndarray, np.ndarray] | None:
    """Warm start of Newton steps over few rows: element and multipliers (T, m); None where these cannot begin well.

    That is: without a start, where w = 0 is better, with constraints, whose multipliers no box holds, and with a
    variance term over a Gram matrix, where every step takes all rows.
    """
    column = state.column
    dear = isinstance(state.system, GramSystem) and column.kappa > 0
    if column.start is None or column.hard or dear:
        return None
    element = warm_start_element(state)
    return (element, start_multipliers(column, column.start, state.margins(element))[1]) if element.any() else None
