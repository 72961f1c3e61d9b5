"""Incumbent, the best of a problem so far: the driver's choice among w = 0, a start and an engine's reports."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from mdlearn.forms.problem import Problem
from mdlearn.forms.proof import AT_REST, Solution, judge_residual
from mdlearn.numerics.lazy_property import kept
from mdlearn.solvers.base import Report

LEVEL = 1e-12
"""Relative difference of two objective values that counts as none."""
ROUNDED_RISE = 1e-14
"""Relative rise of a bound that is rounding."""
HALVED = 0.5
"""Share of a gap at the limit of rounding that the next one is to be below: else no later one is waited for."""


class Incumbent:
    """Incumbent of a fit: the point of smallest objective and the one of largest bound, which may be two points.

    Values are those of certificates: estimates of the engine until a certificate has been made of them. A small
    residual says nothing about the objective: without bounds it decides only where objectives are the same.

    `last`: whether the last point is the answer, unless w = 0 has a smaller objective: only bounds compete then;
    `certifies`: whether a point whose report promises to meet `tol` is certified at once, so that nothing else need be
    asked of it.

    `objective`, `lower_bound`, `gap`: what a certificate will state, as far as estimates are true; `promised`: the
    smallest objective of coefficients before they are rounded to the type of the rows; `at_limit`: whether rounding
    lets no later point of the same engine meet `tol`.
    """

    def __init__(self, problem: Problem, tol: float, last: bool, certifies: bool) -> None:
        self.problem, self.tol, self.last, self.certifies = problem, tol, last, certifies
        self.zero = problem.values(*problem.bounds_at_start())
        self.objective, self.lower_bound = self.zero
        self.gap, self.before, self.promised = math.inf, math.inf, math.inf
        self.at_limit, self.limited = False, math.inf  # and the gap of the last point that was
        self.solution: Solution | None = None  # the best of what is certified
        self.settled = False  # whether that is the answer to all that was reported
        self.point: Any = None  # what has no certificate yet: the best point,
        self.proof: Any = None  # and that of the best bound
        self.replaced: tuple[Any, float] | None = None  # what had the best bound before a promise, and that bound

    def begin(self) -> bool:
        """Certify where the problem begins, if it has such a place; say whether nothing is left to do."""
        place = self.problem.starting_point()
        if place is None or self.last:
            return False
        self.solution = self.problem.certify_as_is(place, self.tol)
        told = self.solution.certificate
        self.objective, self.lower_bound = min(self.objective, told.objective), max(self.lower_bound, told.lower_bound)
        return told.gap <= max(self.tol, AT_REST) and told.objective <= self.zero[0]

    def take(self, report: Report) -> None:
        """Keep a report's point where its objective is the smallest so far, or its bound the largest."""
        self.before, self.settled = self.objective, False
        if report.residual is not None:
            self._take_residual(report, report.residual)
            return
        problem = self.problem
        objective, lower = problem.values(report.objective, report.lower_bound)
        better = objective < min(self.objective, self.promised) and lower > self.lower_bound
        alone = better and self.certifies and problem.estimates_hold  # the report alone may meet `tol`
        if alone and (gap := problem.gap_of(objective, lower)) <= self.tol:
            if self.proof is not None:
                self.replaced = self.proof, self.lower_bound
            self.promised = self.objective = objective
            self.lower_bound, self.point, self.proof, self.gap = lower, report.point, report.point, gap
            return
        if self.last or objective < min(self.objective, self.promised):
            self.promised = objective
            held, _ = problem.values(problem.stored_objective(report.point, report.objective), report.lower_bound)
            if self.last or held < self.objective:
                self.objective, self.point = held, report.point
        if lower > self.lower_bound or math.isinf(lower) or problem.corrects:
            _, lower = problem.values(report.objective, problem.stored_bound(report.point, report.lower_bound))
        # A later point whose bound is larger by rounding alone may have lost digits that the earlier one has.
        if lower > self.lower_bound + (0.0 if self.proof is None else ROUNDED_RISE * abs(self.lower_bound)):
            self.lower_bound, self.proof = lower, report.point
        self.gap = problem.gap_of(self.objective, self.lower_bound)

    def _take_residual(self, report: Report, residual: float) -> None:
        objective, below = self.problem.values(report.objective, report.objective - residual)
        gap = judge_residual(objective, objective - below, self.problem.reference, self.tol).gap
        level = LEVEL * abs(self.objective) if math.isfinite(self.objective) else 0.0
        if objective < self.objective - level or (objective <= self.objective + level and gap < self.gap):
            self.objective, self.gap, self.point = objective, gap, report.point

    def proven(self) -> bool:
        """Certify what promises to meet `tol`; say whether it does, or whether rounding lets no later point do so.

        Nothing is promised where the best point and the best bound miss `tol`, or rest, but for what rounding to a type
        costs. The coefficients that multipliers stand for say the same as they: these are the answer, unless others of
        before have a smaller objective whose dual coefficients can be told.
        """
        enough = max(self.tol, AT_REST)
        if not self.gap <= enough:
            promised = self.problem.gap_of(min(self.objective, self.promised), self.lower_bound)
            if not promised <= enough:
                return False
        at_limit, proof = False, self.proof
        if proof is None and not self.problem.expandable:
            proof = self.point
        if proof is not None and not (proof is self.point and self.problem.has_dual_coefficients(proof, self.tol)):
            found = self.problem.certify(proof, self.tol)
            told, at_limit = found.certificate, found.at_limit
            most = self.before + LEVEL * abs(self.before)
            if not self.problem.expandable:
                most = self.zero[0] if self.solution is None else self.solution.certificate.objective
            if told.converged and told.objective <= most:
                self.solution, self.point, self.proof = self._with_earlier(found), None, None
                self.settled = self.solution.certificate.objective <= self.zero[0]
                self._read(self.solution)
                return True
            if not self.problem.expandable:
                if self.solution is None or told.gap < self.solution.certificate.gap:
                    self.solution = found
                self.point = self.proof = None
                self._read(self.solution)
                return self._rests(at_limit)
        solution = self.certified()
        return solution.certificate.converged or self._rests(at_limit or solution.at_limit)

    def _rests(self, at_limit: bool) -> bool:
        """Whether points at the limit of rounding get no better: what it costs grows with their coefficients."""
        before, self.at_limit = self.limited, at_limit
        self.limited = self.gap if at_limit else math.inf
        return at_limit and not self.gap < HALVED * before

    def resume(self) -> None:
        """Let another engine go on: what rounding costs the best point so far says nothing of its points."""
        self.at_limit, self.limited = False, math.inf
        if self.solution is not None:
            self.solution = replace(self.solution, at_limit=False)

    def certified(self, as_is: bool = False) -> Solution:
        """Certify the best point with the best bound, once.

        `as_is`: what certification itself could improve stays as it is. The answer after n reports is then one of those
        that are known after more, and these lead to no worse one.
        """
        if self.settled and self.solution is not None:
            return self.solution
        problem, tol = self.problem, self.tol
        judged = problem.certify_as_is if as_is else problem.certify_best
        point, proof = self.point, self.proof
        self.point = self.proof = None
        if point is not None:
            self._join(judged(point, tol))
        if self.solution is None or not self.solution.certificate.objective <= self.zero[0]:
            self._join(judged(problem.start(), tol))
        assert self.solution is not None
        if proof is not None and proof is not point and not as_is:
            self._join(problem.certify(proof, tol))  # its own coefficients were worse than those of the point
        elif proof is not None and proof is not point:
            self.solution = problem.joined(self.solution, problem.certify(proof, tol), tol)
        self.solution, self.settled = self._with_earlier(self.solution), True
        self._read(self.solution)
        return self.solution

    def _with_earlier(self, solution: Solution) -> Solution:
        """A solution with the bound that was the best before a promise, or with that of w = 0, where these are better.

        Rounding can take more from the bound of the point that promised than it took from the other's. The bound of
        w = 0 costs a pass over the rows: a point that meets `tol` has a better one, but for optima that are nearly 0.
        """
        problem, told = self.problem, solution.certificate
        replaced, self.replaced = self.replaced, None
        if replaced is not None and told.lower_bound < replaced[1] - LEVEL * abs(replaced[1]):
            solution = problem.joined(solution, problem.certify(replaced[0], self.tol), self.tol)
        lower = solution.certificate.lower_bound
        if lower < problem.values(0.0, problem.highest_bound_at_start())[1] and lower < self._bound_at_start:
            solution = problem.joined(solution, problem.certify(problem.start(), self.tol), self.tol)
        return solution

    @kept
    def _bound_at_start(self) -> float:
        """The bound of w = 0, as a certificate states it."""
        return self.problem.values(self.zero[0], self.problem.bound_at_start())[1]

    def _join(self, found: Solution) -> None:
        """The better coefficients, with the better bound."""
        before = self.solution
        if before is None:
            self.solution = found
        elif _better_incumbent(found, before):
            self.solution = self.problem.joined(found, before, self.tol)
        else:
            self.solution = self.problem.joined(before, found, self.tol)

    def _read(self, solution: Solution) -> None:
        told, self.promised = solution.certificate, math.inf
        self.objective, self.lower_bound, self.gap = told.objective, told.lower_bound, told.gap


def _better_incumbent(one: Solution, other: Solution) -> bool:
    """Whether the first solution has the smaller objective; of equal ones, the smaller gap."""
    a, b = one.certificate, other.certificate
    level = LEVEL * abs(b.objective) if math.isfinite(b.objective) else 0.0
    return a.objective < b.objective - level or (a.objective <= b.objective + level and a.gap < b.gap)
