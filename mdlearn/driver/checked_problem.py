"""Checked problem: a plugin's certificates are held against each other and labelled, for mdlearn cannot make them anew.

What a problem of mdlearn certifies is its own proof, and so is what it makes of a plugin's declarations (terms, or a
`Composite`). A plugin's own `certify`, or a bound or residual that it computes, is its word.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mdlearn.errors import FaultyProblem
from mdlearn.forms.base import overrides_problem_base
from mdlearn.forms.problem import Form, Problem
from mdlearn.forms.proof import Certificate, Solution

CERTIFYING_METHODS = (
    "certify",
    "certify_best",
    "certify_as_is",
    "joined",
    "certificate_of",
    "untouched",
    "bound",
    "proven_bound",
    "residual",
    "_solution",
    "_bounded",
    "_stationary",
)
"""Methods of problems that make certificates, those of composites included."""


def checked_problem(problem: Problem, form: Form) -> Any:
    """Return a problem as it is where its certificates are mdlearn's own, else one that checks and labels them."""
    return CheckedProblem(problem, form.features.dtype) if problem_certifies_itself(type(problem)) else problem


def problem_certifies_itself(cls: type) -> bool:
    """Whether a problem's class has certificates that are made by code of a plugin."""
    return overrides_problem_base(cls, *CERTIFYING_METHODS)


class CheckedProblem:
    """Problem of a plugin whose certificates are compared with each other; all else is that problem's.

    `dtype`: type of the rows, and of coefficients as models hold them; `name`: the class, which vouches for the
    certificates.
    """

    def __init__(self, problem: Problem, dtype: np.dtype[Any]) -> None:
        self.problem, self.rounding = problem, math.sqrt(float(np.finfo(dtype).eps))
        self.name = f"{type(problem).__module__}.{type(problem).__qualname__}"
        self.least, self.highest = math.inf, -math.inf  # objective and bound of all that was certified

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem, name)

    def certify(self, point: Any, tol: float) -> Solution:
        """Certify a point, checked and labelled."""
        return self._checked("certify", self.problem.certify(point, tol), tol)

    def certify_best(self, point: Any, tol: float) -> Solution:
        """Certify the best that can be made of a point, checked and labelled."""
        return self._checked("certify_best", self.problem.certify_best(point, tol), tol)

    def certify_as_is(self, point: Any, tol: float) -> Solution:
        """Certify a point as it stands, checked and labelled."""
        return self._checked("certify_as_is", self.problem.certify_as_is(point, tol), tol)

    def joined(self, primal: Solution, proof: Solution, tol: float) -> Solution:
        """Return a solution with the bound of another, checked and labelled."""
        return self._checked("joined", self.problem.joined(primal, proof, tol), tol)

    def untouched(self, tol: float, bounded: bool) -> Solution | None:
        """Return w = 0 without any work, checked and labelled; None where that takes more."""
        found = self.problem.untouched(tol, bounded)
        return None if found is None else self._checked("untouched", found, tol)

    def _checked(self, method: str, solution: Solution, tol: float) -> Solution:
        told = solution.certificate
        told = replace(told, objective=float(told.objective), lower_bound=float(told.lower_bound))
        if math.isnan(told.objective) or math.isnan(told.lower_bound):
            raise self._fault(method, f"certifies objective {told.objective!r} and lower bound {told.lower_bound!r}")
        self._check_value(method, solution, told.objective)
        self.least, self.highest = min(self.least, told.objective), max(self.highest, told.lower_bound)
        if self.highest > self.least + self._allowed(self.highest, self.least):
            raise self._fault(
                method,
                f"has certified the lower bound {self.highest!r} and, of the same problem, the objective "
                f"{self.least!r}, which is below it",
            )
        return replace(solution, certificate=self._labelled(told, tol))

    def _labelled(self, told: Certificate, tol: float) -> Certificate:
        """Return a certificate whose gap is no smaller than its values make it, with the name of who vouches for it."""
        problem, gap = self.problem, told.gap
        if told.kind != "residual" or math.isfinite(told.lower_bound):
            gap = max(gap, problem.gap_of(told.objective, told.lower_bound))
        gap = math.inf if math.isnan(gap) else max(gap, 0.0)
        return replace(told, gap=gap, tol=tol, converged=gap <= tol, vouched_by=self.name)

    def _check_value(self, method: str, solution: Solution, told: float) -> None:
        """Compare a certified objective with the one that the problem declares for these coefficients."""
        if told == math.inf:  # a point that promises nothing
            return
        value = self.problem.value_of(solution)
        if value is None:
            return
        if not abs(value - told) <= self._allowed(value, told):
            raise self._fault(
                method,
                f"certifies the objective {told!r}, but value_of gives {float(value)!r} at these coefficients",
            )

    def _allowed(self, one: float, other: float) -> float:
        """Difference of two values that rounding to the type of the rows can make."""
        return self.rounding * max(abs(one), abs(other), 0.01 * abs(self.problem.reference))

    def _fault(self, method: str, what: str) -> FaultyProblem:
        return FaultyProblem(f"{self.name}.{method} {what}")
