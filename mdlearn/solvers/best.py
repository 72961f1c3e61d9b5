"""The best point of a problem so far: the driver's choice among an engine's reports."""

from __future__ import annotations

import numpy as np

from mdlearn.forms.problem import Problem
from mdlearn.forms.proof import TINY
from mdlearn.solvers.base import Report

LEVEL = 1e-12
"""Relative difference of two objective values that counts as none, where there are no bounds."""


class Best:
    """The point of smallest gap so far; where there are no bounds, that of smallest objective.

    A small residual says nothing about the objective: without bounds it decides only where objectives are the same.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.point = problem, problem.start()
        self.objective, self.lower_bound, self.gap, self.excess = np.inf, -np.inf, np.inf, np.inf

    @property
    def sharp_gap(self) -> float:
        """Gap relative to the objective alone."""
        return self.excess / max(abs(self.objective), TINY)

    def take(self, report: Report, latest: bool) -> bool:
        """Keep a report's point if it is the best so far, or anyway when the `latest` counts; say whether it was."""
        objective, lower, residual = report.objective, report.lower_bound, report.residual
        excess = objective - lower if residual is None else residual
        gap = self.problem.gap(objective, lower if residual is None else objective - residual)
        better = gap < self.gap or (np.isinf(self.gap) and lower >= self.lower_bound)
        if residual is not None and np.isfinite(self.objective):
            level = LEVEL * abs(self.objective)
            better = objective < self.objective - level or (objective <= self.objective + level and gap < self.gap)
        if not (latest or better):
            return False
        self.point, self.objective, self.lower_bound = report.point, objective, lower
        self.gap, self.excess = gap, excess
        return True
