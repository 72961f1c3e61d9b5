"""From a start to an engine's first iterate: an element for engines on coefficients, multipliers for those on the dual.

A start belongs to another problem: other weights of loss, variance and mean, other counts. Its coefficients are a point
of this problem, too. Its multipliers are in other boxes. Two guesses are made of them, and the dual value decides: as
they are, cut off at the new caps; or as margins tell them, where rows clearly short of a threshold are at their caps,
and the others grow by what those have grown by. Nothing is ever begun below what w = 0 is worth.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from mdlearn.forms.certificate import dual, value_at_zero
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.forms.primal import objective_at
from mdlearn.forms.start import Start
from mdlearn.solvers.base import Report
from mdlearn.solvers.state import Margins
from mdlearn.solvers.systems import GramSystem

CLEARLY = 0.05
"""Distance from a threshold, in units of a typical one, that no row on a kink has."""


def first_element(state: Margins) -> np.ndarray:
    """The start as an element of the system; zeros where there is none, or where w = 0 has the smaller objective."""
    system, column = state.system, state.column
    zero = np.zeros_like(system.adjoint(column.y))
    start = column.start
    if start is None:
        return zero
    inner = start.alpha if isinstance(system, GramSystem) else start.coef
    if inner is None:
        return zero
    element = np.append(inner, start.intercept) if system.bias else inner.copy()
    better = _better(state.form, column, state.margins(element), *state.coefficients(element))
    return element if better else zero


def first_margins(form: MarginForm, column: Column) -> np.ndarray | None:
    """y f at the start; None where w = 0 has the smaller objective, or where there is no start."""
    if column.start is None:
        return None
    z = margins(form, column, column.start)
    return z if _better(form, column, z, column.start.coef, column.start.intercept) else None


def _better(form: MarginForm, column: Column, z: np.ndarray, coef: np.ndarray, intercept: float) -> bool:
    """Whether coefficients with margins z are worth more than w = 0, which meets no constraint."""
    value = objective_at(form, column, z, form.norm(coef, intercept))[0]
    return value < math.inf if column.hard else value <= value_at_zero(column)


def margins(form: MarginForm, column: Column, start: Start) -> np.ndarray:
    """z = y f of a start; a pass over the rows."""
    return np.asarray(column.y * (form.features.decision(start.coef) + start.intercept))


def guesses(column: Column, start: Start, z: np.ndarray) -> list[np.ndarray]:
    """Multipliers (T, m) to begin with, within their boxes, for a start with margins z."""
    caps = column.caps
    beta = _multipliers(column, start)
    kept = np.clip(beta, 0.0, caps)
    short = column.sides[:, None] * (column.kinks - z)
    typical = max(1.0, float(np.abs(column.kinks).mean())) if column.kinks.size else 1.0
    beyond = (short > CLEARLY * typical) & (caps > 0) & np.isfinite(caps)
    grown = beyond & (beta > 0)
    growth = float(np.median(caps[grown] / beta[grown])) if grown.any() else 1.0
    told = np.where(beyond, caps, np.clip(growth * beta, 0.0, caps))
    soft = column.softness > 0
    told[soft] = np.maximum(short[soft], 0.0) / column.softness[soft]
    return [told] if np.array_equal(told, kept) else [told, kept]


def first_multipliers(form: MarginForm, column: Column) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Multipliers of loss (T, m) and variance (m,) of the best dual value, and how far the start is from that.

    None where zeros have the best value, or where there is no start.
    """
    start, nothing = column.start, np.zeros_like(column.y)
    if start is None:
        return None
    z = margins(form, column, start)
    spreads = [column.spread(z)]
    if start.alpha is not None and column.kappa > 0:
        # What the start's own variance made of them: w is then the start's.
        own = column.y * start.alpha - column.sides @ _multipliers(column, start) - column.pull
        spreads.append(own - column.counts * (float(own.sum()) / column.total))
    best, found = dual(form, column, np.zeros(column.caps.shape), nothing)[0], None
    for beta in guesses(column, start, z):
        for sigma in spreads:
            value = dual(form, column, beta, sigma)[0]
            if value > best:
                best, found = value, (beta, sigma)
    if found is None:
        return None
    value = objective_at(form, column, z, form.norm(start.coef, start.intercept))[0]
    return *found, value - best


def _multipliers(column: Column, start: Start) -> np.ndarray:
    """Those of the loss; zeros where the loss had other terms (one without weight may have none)."""
    return start.beta if start.beta.shape == column.caps.shape else np.zeros(column.caps.shape)


class Ascent(Protocol):
    """What coordinate ascent keeps of a column: multipliers, changed in place, and their exact value."""

    form: MarginForm
    column: Column
    beta: np.ndarray
    problem: Any

    def report(self) -> Report:
        """Recompute margins exactly and evaluate."""


def begin(ascent: Ascent) -> Report | None:
    """Move an ascent to the best guess and report that; None where zeros are better, or where there is no start."""
    column, start, problem = ascent.column, ascent.column.start, ascent.problem
    if start is None:
        return None
    best, chosen = ascent.report().lower_bound, None
    moved = start.intercept if ascent.form.bias == "free" else 0.0
    problem.offset = moved
    for beta in guesses(column, start, margins(ascent.form, column, start)):
        ascent.beta[:] = beta
        lower = ascent.report().lower_bound
        if lower > best:
            best, chosen = lower, beta
    ascent.beta[:] = 0.0 if chosen is None else chosen
    problem.offset = 0.0 if chosen is None else moved
    report = ascent.report()
    return None if chosen is None else report


def first_guess(state: Margins) -> tuple[np.ndarray, np.ndarray] | None:
    """An element and multipliers (T, m) for Newton steps over few rows; None where these cannot begin well.

    That is: without a start, where w = 0 is better, with constraints, whose multipliers no box holds, and with a
    variance term over a Gram matrix, where every step takes all rows.
    """
    column = state.column
    dear = isinstance(state.system, GramSystem) and column.kappa > 0
    if column.start is None or column.hard or dear:
        return None
    element = first_element(state)
    return (element, guesses(column, column.start, state.margins(element))[0]) if element.any() else None
