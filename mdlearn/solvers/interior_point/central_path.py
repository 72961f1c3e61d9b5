"""Central path: Mehrotra's predictor-corrector on multipliers of declared hinge terms, with slacks for both bounds."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mdlearn._solvers import interior as kernel
from mdlearn.data.rows.rows import steps
from mdlearn.forms.certificates.primal import primal_objective
from mdlearn.forms.margin import Point
from mdlearn.solvers.base import Report
from mdlearn.solvers.common.primal_dual import PrimalDual, primal_dual_report
from mdlearn.solvers.systems.system_choice import STIFF_LOSS

ROWS_PER_CALL = 1 << 18
"""Rows of one call of a compiled pass: a few milliseconds."""
LONG_STEP_ENTRIES = 1 << 20
"""Rows times unknowns beyond which a step is long enough to be interrupted within: some milliseconds."""
RUNAWAY_MULTIPLIER = 1e60
"""Multipliers of constraints that cannot be met grow without end; this size, in units of margins, proves as much as any
larger one."""
NEARLY_MET, NEAR_GAP = 1e-5, 1e-6
"""Share of their first miss by which multipliers miss the condition of their dual, and complementarity in units of the
objective at w = 0, from which they are corrected for a bound: earlier ones say nothing."""
ROUNDED_MISS = 1e-16
"""Share of that miss that counts as none: from there complementarity alone says how far the end is."""
AT_END = 1e-13
"""Complementarity, in those units, at which the path has ended, with a bound or without one."""
REFINED_COMPLEMENTARITY = 0.01
"""Complementarity, in those units, from which steps are refined: small multipliers have lost the digits by which they
meet the condition."""
FIRST_SLACK = 30.0
"""Slacks of all margins at the start, in units of a margin: nearly separable rows end with such ones and larger, and a
path that begins below its end takes short steps all the way."""


class CentralPath:
    """Central path, as iterates of the predictor-corrector: element, multipliers, slacks of both bounds.

    `away`: how far the end is where bounds do not tell; infinite where they do.
    """

    away = np.inf

    def __init__(self, state: PrimalDual) -> None:
        self.state = state
        column = state.column
        self.caps, self.kinks = column.caps, np.broadcast_to(column.kinks, column.caps.shape)
        self.boxed = np.isfinite(column.caps)
        self.used = column.caps > 0
        self.count = float(self.used.sum() + (self.boxed & self.used).sum())
        self.alive = self.falling = True
        self.mu = np.inf
        self.element = np.zeros(state.system.size)
        self.z = np.zeros_like(column.y)
        # Of rows, for one call of a compiled pass.
        self.long = column.y.shape[0] * self.element.shape[0] > LONG_STEP_ENTRIES
        self.ranges = [(rows.start, rows.stop) for rows in steps(column.y.shape[0], ROWS_PER_CALL)]
        # Multipliers start inside their box, but no larger than what one row could want on its own.
        scale = state.typical_multiplier * state.typical_kink
        # Refining a solution costs two passes over the rows: only where boxes are so wide that rounding will show.
        self.refinements = 2 if column.caps.max() > STIFF_LOSS * scale else 0
        self.beta = np.where(self.used, np.where(self.boxed, 0.5 * column.caps, scale), 0.0)
        a = state.slopes(self.z) + column.softness * self.beta
        self.s = np.maximum(a, 0.0) + state.typical_kink
        self.xi = np.where(self.boxed, np.maximum(-a, 0.0) + state.typical_kink, 0.0)
        # Kept apart from caps - beta, which would round to 0 close to the cap.
        self.upper = np.where(self.boxed & self.used, column.caps - self.beta, 1.0)

    def start_at(self, element: np.ndarray, z: np.ndarray, mu: float | np.ndarray) -> None:
        """Start at an element instead, every row where the central path of complementarity mu has it for its margin.

        For terms with a box. With slacks s - xi = a: beta s = (cap - beta) xi = mu is a quadratic equation for the
        larger slack; the smaller one follows without a difference of close numbers.
        """
        caps, a = self.state.column.caps, self.state.slopes(z)
        safe = np.where(self.used, caps, 1.0)
        b = safe * np.abs(a) + 2.0 * mu
        larger = (b + np.sqrt(b * b - 4.0 * mu * safe * np.abs(a))) / (2.0 * safe)
        near = mu / larger
        far = np.maximum(safe - near, np.finfo(float).tiny)  # of caps of 1e-300 nothing may be left
        above = a >= 0
        self.element, self.z = element, z
        self.beta = np.where(self.used, np.where(above, near, far), 0.0)
        self.upper = np.where(self.used, np.where(above, far, near), 1.0)
        self.s, self.xi = np.where(above, larger, mu / far), np.where(above, mu / far, larger)

    def inherit(self, other: CentralPath, where: np.ndarray) -> None:
        """Take over the rows of another path, which are at `where` here."""
        for mine, others in zip((self.beta, self.upper, self.s, self.xi), (other.beta, other.upper, other.s, other.xi)):
            mine[:, where] = others

    def complementarity(self) -> float:
        """Sum of multipliers times slacks: the duality gap where both sides are feasible."""
        both = self.boxed & self.used
        return float((self.beta * self.s)[self.used].sum() + (self.upper * self.xi)[both].sum())

    def free(self) -> np.ndarray:
        """Rows that look as if they sat on a kink: multiplier closer to the middle of its box than its slack to 0."""
        upper = np.where(self.boxed, self.upper, np.inf)
        scale = np.median(self.beta[self.used]) / self.state.typical_kink + 1e-300
        inside = (self.beta / scale > self.s) & (upper / scale > self.xi)
        return inside & self.used

    def step(self) -> Generator[None, None, None]:
        """One predictor-corrector step; sets `alive` to False when numbers overflow."""
        state = self.state
        self.beta = self.beta.copy()  # the last ones are in a report
        changes = (np.zeros_like(self.beta) for _ in range(3))
        path = kernel.Path(self.caps, state.column.softness, self.beta, self.upper, self.s, self.xi, *changes)
        d, weight = np.empty_like(self.beta), np.empty_like(self.z)
        largest, gap = 0.0, 0.0
        for rows in self.ranges:
            more, most = kernel.weigh(path, d, weight, *rows)
            gap, largest = gap + more, max(largest, most)
        if not np.isfinite(largest):
            self.alive = False
            return
        yield from state.system.factor(weight)
        rw, mu = state.residual(self.element, self.beta), gap / self.count
        worst = self._direction(path, rw, d, 0.0, 0)[1]
        if self.long:
            yield
        length = min(1.0, 1.0 / worst) if worst > 0 else 1.0
        aim = sum(kernel.ahead(path, length, *rows) for rows in self.ranges)
        centring = (aim / self.count / mu) ** 3 * mu if mu > 0 else 0.0
        (dw, change), worst, largest = self._direction(path, rw, d, centring, self.refinements)
        if not (np.isfinite(dw).all() and np.isfinite(largest)):
            self.alive = False
            return
        length = min(1.0, 0.99 / worst) if worst > 0 else 0.99
        # Complementarity must fall by itself: the gap may stand still while feasibility is still being reached.
        self.falling, self.mu = mu < 0.7 * self.mu, min(mu, self.mu)
        self.alive = largest < RUNAWAY_MULTIPLIER * state.typical_kink
        self.moved(length)
        self.element = self.element + length * dw
        # Where rounding will show, margins are computed anew.
        self.z = state.margins(self.element) if self.refinements else self.z + length * change
        for rows in self.ranges:
            kernel.advance(path, length, *rows)
        if self.long:
            yield

    def moved(self, length: float) -> None:
        """Take note of the length of a step."""

    def report(self) -> Report:
        """Report the present place."""
        return primal_dual_report(self.state, self.element, self.beta, self.z)

    def _direction(
        self, path: kernel.Path, rw: np.ndarray, d: np.ndarray, centring: float, refinements: int
    ) -> tuple[tuple[np.ndarray, np.ndarray], float, float]:
        """Solve for a step; changes in `path` are the predictor's (or zeros), then this one's.

        Returns the change of the element with that of its margins, the inverse of the longest step that leaves
        multipliers and slacks positive, and the largest change of a multiplier.
        """
        state, column, system = self.state, self.state.column, self.state.system
        h, force = np.empty_like(d), np.empty_like(self.z)
        for rows in self.ranges:
            kernel.forces(path, self.kinks, column.sides, self.z, centring, d, h, force, *rows)
        dw = system.solve(system.adjoint(column.y * force) - rw)
        change = state.margins(dw)
        sides = column.sides[:, None]
        db = d * (h - sides * change)
        for _ in range(refinements):
            # Both equations of the step are refined: with d large, h - R dw alone has lost db's digits.
            first = system.adjoint(column.y * (column.sides @ db)) - rw - system.quadratic(dw)
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                second = np.where(self.used, h - sides * change - db / d, 0.0)
            more = system.solve(first + system.adjoint(column.y * (column.sides @ (d * second))))
            turn = state.margins(more)
            dw, change, db = dw + more, change + turn, db + d * (second - sides * turn)
        worst = largest = 0.0
        for rows in self.ranges:
            found = kernel.slacks(path, centring, db, *rows)
            worst, largest = max(worst, found[0]), max(largest, found[1])
        return (dw, change), worst, largest


class LinearCentralPath(CentralPath):
    """Linear program's path of interior points: multipliers need sum alpha_i (x_i, 1) = 0, with a bound at the end.

    `missed`: share of the first miss of that condition that steps have left.
    """

    def __init__(self, state: PrimalDual) -> None:
        super().__init__(state)
        self.missed = 1.0
        self.s += FIRST_SLACK * state.typical_kink
        self.xi += FIRST_SLACK * state.typical_kink

    def moved(self, length: float) -> None:
        """Refine steps towards the end, and see it."""
        self.missed = max((1.0 - length) * self.missed, ROUNDED_MISS)
        left, unit = self.mu * self.count, self.state.column.at_zero
        self.away = self.mu * self.missed
        self.refinements = 1 if left <= REFINED_COMPLEMENTARITY * unit else self.refinements
        self.alive = self.alive and left > AT_END * unit

    def report(self) -> Report:
        """Report the present place, with the bound 0 until multipliers nearly prove another one."""
        if self.missed <= NEARLY_MET and self.mu * self.count <= NEAR_GAP * self.state.column.at_zero:
            return super().report()
        coef, intercept = self.state.coefficients(self.element)
        objective = primal_objective(self.state.column, self.z, self.state.form.norm(coef, intercept))[0]
        return Report.estimated(objective, 0.0, Point(self.beta, np.zeros_like(self.z), coef, intercept))
