"""Finite Newton for squared hinge terms: the objective is quadratic wherever the set of active rows stays the same.

Each step solves Q + R' D R over the active rows. The full step can cycle between such sets, or raise the objective; the
step length is therefore the exact minimiser along the direction, found among the points where rows become active or
inactive. A step that keeps the set ends at the optimum, but for rounding, and the active-set finish refines it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar

import numpy as np

from mdlearn.data import memory
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.active import ActiveSet
from mdlearn.solvers.base import Solver, Steps, relative_gap
from mdlearn.solvers.linalg import NotPositiveDefinite
from mdlearn.solvers.state import Margins, make_report
from mdlearn.solvers.systems import by_rows, system_of

PATIENCE = 8
"""Steps without progress after which rounding is taken to be reached."""


class Newton(Solver):
    """Finite Newton method with exact line search (``solver="newton"``)."""

    name: ClassVar[str] = "newton"
    purpose: ClassVar[str] = "squared hinge terms, explicit rows with moderate d, or a Gram matrix; every bias"
    default_max_iter: ClassVar[int] = 200
    kinds: ClassVar[frozenset[str]] = frozenset({"squared"})

    def check_memory(self, form: MarginForm, at_once: int = 1) -> None:
        """Ask for two matrices of size d per column (rows), or for the Gram matrix and two of its size per column."""
        m, d = form.features.n_rows, form.features.width + 1
        if by_rows(form):
            size, instead = at_once * (16.0 * d * d + 160.0 * m), "use solver='cd'"
            memory.require(size, f"Newton steps on {d} columns", instead, at_once)
        else:
            size, instead = (8.0 + 16.0 * at_once) * m * m, "use fewer rows or kernel='linear'"
            memory.require(size, f"a kernel problem with {m} rows", instead, at_once)

    def prepare(self, form: MarginForm, options: dict[str, Any]) -> Generator[None, None, Any]:
        """Return the Gram matrix when the problem is solved through it."""
        if by_rows(form):
            return None
        return (yield from form.features.gram())

    def iterate(
        self, form: MarginForm, column: Column, shared: Any, options: dict[str, Any], rng: np.random.Generator
    ) -> Steps:
        """Yield a report per Newton step, then those of the active-set finish."""
        loss = SquaredTerms(column)
        system = system_of(form, column, shared, float(loss.curvature.max(initial=0.0)))
        yield from system.setup()
        state = Margins(form, column, system)
        element = np.zeros_like(system.adjoint(column.y))
        z = state.margins(element)
        held, stalled = None, 0
        best, lowest = np.inf, np.inf
        while True:
            beta, active = loss.slopes(z), loss.active(z)
            report = make_report(state, element, beta, z)
            yield report
            gap = relative_gap(column, report.objective, report.lower_bound)
            stalled = 0 if gap < 0.9 * best or report.objective < lowest else stalled + 1
            best, lowest = min(best, gap), min(lowest, report.objective)
            if stalled >= PATIENCE or (held is not None and np.array_equal(active, held)):
                break
            held = active
            try:
                yield from system.factor((loss.curvature * active).sum(axis=0))
                step = -system.solve(state.residual(element, beta))
            except NotPositiveDefinite:
                break
            dz = state.margins(step)
            length = loss.length(z, dz, active, _bend(state, step, dz))
            if not np.isfinite(length):
                break
            element = element + length * step
            z = state.margins(element)
            yield None
        # Refinement with the multipliers as unknowns: with a large weight, 1 - z has lost their digits.
        yield from ActiveSet(state).attempt(element, beta, active)


def _bend(state: Margins, step: np.ndarray, dz: np.ndarray) -> float:
    """Second derivative along a step of everything but the loss."""
    coef, intercept = state.coefficients(step)
    square = state.form.features.squared_norm(coef)
    if state.form.bias == "regularized":
        square += intercept**2
    return square - float(dz @ state.column.spread(dz))


class SquaredTerms:
    """The loss of a column whose terms are all squared: slopes, active rows, and the minimiser along a line."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self.curvature = 2.0 * np.multiply.outer(np.array([t.weight for t in column.terms]), column.counts)

    def _excess(self, z: np.ndarray) -> np.ndarray:
        """How far each margin is on the punished side of each threshold, shape (T, m)."""
        return self.column.sides[:, None] * (self.column.thresholds[:, None] - z)

    def slopes(self, z: np.ndarray) -> np.ndarray:
        """Multipliers at margins z."""
        return self.curvature * np.maximum(self._excess(z), 0.0)

    def active(self, z: np.ndarray) -> np.ndarray:
        """Rows that a term punishes."""
        return (self._excess(z) > 0) & (self.curvature > 0)

    def length(self, z: np.ndarray, dz: np.ndarray, active: np.ndarray, bend: float) -> float:
        """Minimiser of the objective along a Newton step that changes the margins by dz; `bend` is that of the rest.

        The derivative is piecewise linear and rises. It begins at -(bend + sum of D dz^2), by the equation that the
        step solves; its slope changes where an excess passes 0.
        """
        excess, rate = self._excess(z), -self.column.sides[:, None] * dz
        bends = self.curvature * rate * rate
        start = -(bend + float(bends[active].sum()))
        at = np.divide(-excess, rate, out=np.full_like(excess, -1.0), where=bends > 0)
        # A row that sits on its threshold is not active yet, but may become so at once.
        crossing = (at > 0) | ((at == 0) & (rate > 0))
        order = np.argsort(at[crossing], kind="stable")
        at = np.append(0.0, at[crossing][order])
        changes = (bends * np.sign(rate))[crossing][order]
        slopes = np.maximum(np.append(0.0, np.cumsum(changes)) - start, bend)
        derivative = start + np.append(0.0, np.cumsum(slopes[:-1] * np.diff(at)))
        last = max(int(np.searchsorted(derivative, 0.0)) - 1, 0)
        return float(at[last] - derivative[last] / slopes[last]) if slopes[last] > 0 else np.inf
