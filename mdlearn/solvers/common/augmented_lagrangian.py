"""From a good guess to the optimum: the method of multipliers on hinge terms, by Newton steps over few rows.

Every hinge is replaced by its envelope around the multipliers so far: quadratic on a slope of some width, linear
beyond. That is smooth, and its Newton systems hold the rows on a slope alone: few, once the multipliers are about
right. Its solution gives the next multipliers, and the next slopes are narrower (Rockafellar, "Augmented Lagrangians
and applications of the proximal point algorithm in convex programming", 1976). A start makes this the cheap way.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mdlearn.forms.certificates.margin import relative_gap
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.solvers.base import Steps
from mdlearn.solvers.common.active_set import ActiveSet
from mdlearn.solvers.common.primal_dual import PrimalDual, make_report

SPAN, WIDTH_SHRINKAGE = 0.3, 0.3
"""Margin that the first slopes span, in units of a typical kink, and how much narrower the next ones are."""
NEWTON_STEPS_PER_REPORT = 8
"""Newton steps between two reports. A report whose slopes are not solved for leaves multipliers and width alone."""
LINE_SEARCH_SLOPE = 0.1
"""Share of the first derivative along a step that may be left at its end."""
EVALUATIONS = 30
"""Most derivatives along one step."""
FAR_GUESS_GAP = 1e3
"""Gap of a guess from which steps without it are cheaper."""
STALL_REPORTS = 3
"""Reports in which the gap is not halved after which other steps are worth more."""
ACTIVE_SET_GAP, ACTIVE_SET_GAP_FALL = 1e-7, 0.03
"""Gap from which the active set is worth a guess, and the fall that makes another guess worthwhile."""


class AugmentedLagrangian:
    """One column: an element with its margins, and the multipliers that the envelopes are around."""

    def __init__(self, state: PrimalDual, element: np.ndarray, beta: np.ndarray) -> None:
        self.state, self.element, self.centre = state, element, beta
        column = state.column
        self.z = state.margins(element)
        boxed = np.isfinite(column.caps) & (column.caps > 0)
        widest = float(np.median(column.caps[boxed])) if boxed.any() else state.typical_multiplier
        self.width = SPAN * state.typical_kink / widest

    def multipliers(self, z: np.ndarray) -> np.ndarray:
        """Slopes of the envelopes at margins z, shape (T, m): within the box."""
        column = self.state.column
        ahead = self.width * self.centre + column.sides[:, None] * (column.kinks - z)
        return np.clip(ahead / (self.width + column.softness), 0.0, column.caps)

    def inside(self, beta: np.ndarray) -> np.ndarray:
        """Rows on a slope, shape (T, m)."""
        return np.asarray((beta > 0) & (beta < self.state.column.caps))

    def run(self) -> Steps:
        """Yield reports; end when the gap falls no more, or before the first where the guess is none."""
        state, finish = self.state, ActiveSet(self.state)
        begun = make_report(state, self.element, self.centre, self.z)
        if not relative_gap(state.column, begun.objective, begun.lower_bound) <= FAR_GUESS_GAP:
            return
        best, stalled, next_finish = np.inf, 0, ACTIVE_SET_GAP
        while stalled < STALL_REPORTS:
            try:
                solved = yield from self._solve()
            except NotPositiveDefinite:
                return
            self.z = state.margins(self.element)
            beta = self.multipliers(self.z)
            report = make_report(state, self.element, beta, self.z)
            yield report
            gap = relative_gap(state.column, report.objective, report.lower_bound)
            stalled = 0 if gap < 0.5 * best else stalled + 1
            best = min(best, gap)
            if best < next_finish:
                next_finish = ACTIVE_SET_GAP_FALL * best
                yield from finish.attempt(self.element, beta, self.inside(beta))
            if solved:
                self.centre, self.width = beta, WIDTH_SHRINKAGE * self.width

    def _solve(self) -> Generator[None, None, bool]:
        """Newton steps on the smooth objective; say whether the last one met the slopes that it was made for."""
        state, softness = self.state, self.state.column.softness
        for _ in range(NEWTON_STEPS_PER_REPORT):
            beta = self.multipliers(self.z)
            sloped = self.inside(beta)
            D = np.where(sloped, 1.0 / (self.width + softness), 0.0).sum(axis=0)
            yield from state.system.factor(D)
            step = -state.system.solve(state.residual(self.element, beta))
            dz = state.margins(step)
            bend = state.form.norm(*state.coefficients(step)) - float(dz @ state.column.spread(dz))
            length = self._length(beta, dz, bend, bend + float(D @ np.square(dz)))
            self.element, self.z = self.element + length * step, self.z + length * dz
            yield
            if length == 1.0 and np.array_equal(self.inside(self.multipliers(self.z)), sloped):
                return True
        return False

    def _length(self, beta: np.ndarray, dz: np.ndarray, bend: float, start: float) -> float:
        """Where the derivative along a step has all but vanished; 1 where it has there.

        It rises from -start, by the equation that the step solves; `bend` is the second derivative of all but the loss.
        """
        sides = self.state.column.sides

        def derivative(t: float) -> float:
            return t * bend - start - float((sides @ (self.multipliers(self.z + t * dz) - beta)) @ dz)

        low, high, at_low, at_high = 0.0, 1.0, -start, derivative(1.0)
        for k in range(EVALUATIONS):
            if -LINE_SEARCH_SLOPE * start <= at_high <= 0.1 * LINE_SEARCH_SLOPE * start:
                return high
            if at_high < 0:
                low, at_low, high = high, at_high, 2.0 * high
                at_high = derivative(high)
                continue
            # Secant steps, with a bisection every third time against one-sided convergence.
            t = low - at_low * (high - low) / (at_high - at_low) if k % 3 else 0.5 * (low + high)
            value = derivative(t)
            if value > 0:
                high, at_high = t, value
            elif value >= -LINE_SEARCH_SLOPE * start:
                return t
            else:
                low, at_low = t, value
        return low
