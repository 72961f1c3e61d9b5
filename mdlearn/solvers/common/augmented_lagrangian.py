"""Augmented Lagrangian, from a good guess to the optimum: multipliers on hinge terms, by Newton steps over few rows.

Every hinge is replaced by its envelope around the multipliers so far: quadratic on a slope of some width, linear
beyond. That is smooth, and its Newton systems hold the rows on a slope alone: few, once the multipliers are about
right. Its solution gives the next multipliers, and the next slopes are narrower (Rockafellar, "Augmented Lagrangians
and applications of the proximal point algorithm in convex programming", 1976). A start makes this the cheap way.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mdlearn.forms.margin import Column
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.numerics.line_search import ROUGH_SLOPE, line_minimum
from mdlearn.solvers.base import Steps
from mdlearn.solvers.common.active_set import ActiveSet
from mdlearn.solvers.common.primal_dual import PrimalDual, primal_dual_report

SPAN, WIDTH_SHRINKAGE = 0.3, 0.3
"""Margin that the first slopes span, in units of a typical kink, and how much narrower the next ones are."""
NEWTON_STEPS_PER_REPORT = 8
"""Newton steps between two reports. A report whose slopes are not solved for leaves multipliers and width alone."""
FAR_GUESS_GAP = 1e3
"""Gap of a guess from which steps without it are cheaper."""
STALL_REPORTS = 3
"""Reports in which the gap is not halved after which other steps are worth more."""
ACTIVE_SET_GAP, ACTIVE_SET_GAP_FALL = 1e-7, 0.03
"""Gap from which the active set is worth a guess, and the fall that makes another guess worthwhile."""


class AugmentedLagrangianLoss:
    """Loss in an augmented Lagrangian: every hinge is replaced by its envelope around the multipliers `centre`."""

    def __init__(self, column: Column, centre: np.ndarray, width: float) -> None:
        self.column, self.centre, self.width = column, centre, width

    def multipliers(self, z: np.ndarray) -> np.ndarray:
        """Slopes of the envelopes at margins z, shape (T, m): within the box."""
        c = self.column
        ahead = self.width * self.centre + c.sides[:, None] * (c.kinks - z)
        return np.clip(ahead / (self.width + c.softness), 0.0, c.caps)

    def inside(self, beta: np.ndarray) -> np.ndarray:
        """Rows on a slope, shape (T, m)."""
        return np.asarray((beta > 0) & (beta < self.column.caps))

    def bends(self, beta: np.ndarray) -> np.ndarray:
        """Second derivatives, shape (m,), at margins of these slopes."""
        return np.where(self.inside(beta), 1.0 / (self.width + self.column.softness), 0.0).sum(axis=0)

    def step_length(
        self, z: np.ndarray, beta: np.ndarray, dz: np.ndarray, start: float, bend: float, close: float
    ) -> float:
        """Minimiser along a step from margins z with slopes beta, as of `mdlearn.numerics.line_search.line_minimum`.

        `start` is the derivative there, `bend` the second derivative of all but the loss.
        """

        def along(t: float) -> tuple[float, float]:
            there = self.multipliers(z + t * dz)
            rise = float((self.column.sides @ (beta - there)) @ dz)
            return t * bend + rise, bend + float(self.bends(there) @ np.square(dz))

        return line_minimum(start, along, close)


class AugmentedLagrangian(AugmentedLagrangianLoss):
    """Augmented Lagrangian of one column: element with margins, and multipliers that the envelopes are around."""

    def __init__(self, state: PrimalDual, element: np.ndarray, beta: np.ndarray) -> None:
        column = state.column
        boxed = np.isfinite(column.caps) & (column.caps > 0)
        widest = float(np.median(column.caps[boxed])) if boxed.any() else state.typical_multiplier
        super().__init__(column, beta, SPAN * state.typical_kink / widest)
        self.state, self.element, self.z = state, element, state.margins(element)

    def run(self) -> Steps:
        """Yield reports; end when the gap falls no more, or before the first where the guess is none."""
        state, finish = self.state, ActiveSet(self.state)
        begun = primal_dual_report(state, self.element, self.centre, self.z)
        if not state.column.relative_gap(begun.objective, begun.lower_bound) <= FAR_GUESS_GAP:
            return
        best, stalled, next_finish = np.inf, 0, ACTIVE_SET_GAP
        while stalled < STALL_REPORTS:
            try:
                solved = yield from self._solve()
            except NotPositiveDefinite:
                return
            self.z = state.margins(self.element)
            beta = self.multipliers(self.z)
            report = primal_dual_report(state, self.element, beta, self.z)
            yield report
            gap = state.column.relative_gap(report.objective, report.lower_bound)
            stalled = 0 if gap < 0.5 * best else stalled + 1
            best = min(best, gap)
            if best < next_finish:
                next_finish = ACTIVE_SET_GAP_FALL * best
                yield from finish.attempt(self.element, beta, self.inside(beta))
            if solved:
                self.centre, self.width = beta, WIDTH_SHRINKAGE * self.width

    def _solve(self) -> Generator[None, None, bool]:
        """Newton steps on the smooth objective; say whether the last one met the slopes that it was made for."""
        state = self.state
        for _ in range(NEWTON_STEPS_PER_REPORT):
            beta = self.multipliers(self.z)
            D = self.bends(beta)
            yield from state.system.factor(D)
            step = -state.system.solve(state.residual(self.element, beta))
            dz = state.margins(step)
            bend = state.curvature(step, dz)
            # By the equation that the step solves.
            start = -(bend + float(D @ np.square(dz)))
            length = self.step_length(self.z, beta, dz, start, bend, ROUGH_SLOPE)
            if not np.isfinite(length):
                return False
            self.element, self.z = self.element + length * step, self.z + length * dz
            yield
            if length == 1.0 and np.array_equal(self.inside(self.multipliers(self.z)), self.inside(beta)):
                return True
        return False
