"""Linear path: the central path of a linear program, hinges without a squared norm."""

from __future__ import annotations

import numpy as np

from mdlearn.forms.certificates.primal import objective_at
from mdlearn.forms.margin import Point
from mdlearn.solvers.base import Report
from mdlearn.solvers.common.primal_dual import PrimalDual
from mdlearn.solvers.interior_point.central_path import CentralPath

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


class LinearPath(CentralPath):
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
        objective = objective_at(self.state.column, self.z, self.state.form.norm(coef, intercept))[0]
        return Report.estimated(objective, 0.0, Point(self.beta, np.zeros_like(self.z), coef, intercept))
