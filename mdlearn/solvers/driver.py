"""One driver for all engines: clock, Ctrl-C, callback, progress, history, and the stop rule (the certified gap)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.errors import ConvergenceWarning
from mdlearn.forms.certificate import (
    TINY,
    Certificate,
    Solution,
    certify,
    certify_as_is,
    certify_best,
    combine,
    value_at_zero,
)
from mdlearn.forms.history import State
from mdlearn.forms.margin import Column, MarginForm, Point, zero_point
from mdlearn.forms.separability import check_by_program, check_separable
from mdlearn.solvers.base import Report, Solver, relative_gap
from mdlearn.solvers.progress import Progress
from mdlearn.solvers.threads import one_by_one, side_by_side

EXTRA = 6
"""Reports granted beyond the gap that was asked for while the objective is tiny beside its value at w = 0.

There (huge C, separable data) the gap's denominator is the value at 0, and a few more steps make the gap small
relative to the objective itself.
"""


END = object()
"""What `next` gives when an engine has no more to say."""


@dataclass(frozen=True)
class Limits:
    """When to stop: `tol` is the relative gap (`tol_given`: the user's), `deadline` a `time.perf_counter` value.

    `n_threads` is what columns and BLAS may use together; None: columns one by one, BLAS as found.
    """

    tol: float
    tol_given: bool
    max_iter: int | None
    started: float
    deadline: float
    callback: Callable[[State], Any] | None
    verbose: int
    n_threads: int | None


@dataclass(frozen=True, eq=False)
class Outcome:
    """Everything a run of an engine leaves behind."""

    solutions: list[Solution]
    certificate: Certificate
    history: list[State]
    n_iter: int


class Driver:
    """Runs one engine over the columns of a form."""

    def __init__(self, solver: Solver, options: dict[str, Any], limits: Limits, seed: int) -> None:
        self.solver, self.options, self.limits, self.seed = solver, options, limits, seed
        self.history: list[State] = []
        self.stopped = ""  # why the whole run ends early
        self.reason = ""  # why some column ended early
        self.progress = Progress(limits.verbose, solver.name)

    def run(self, form: MarginForm) -> Outcome:
        """Solve every column and certify; warn once when the gap asked for was not reached."""
        at_once = min(self.limits.n_threads or 1, len(form.columns))
        self.solver.check_memory(form, at_once)
        try:
            shared = self._prepare(form)
            solutions = self._columns(form, shared, at_once)
        finally:
            self.progress.close()
        self.history.sort(key=lambda state: state.problem)  # columns in threads report in any order
        scale = sum(value_at_zero(column) for column in form.columns)
        hard = any(column.hard for column in form.columns)
        certificate = combine([s.certificate for s in solutions], scale, hard, self.limits.tol)
        at_its_end = self.solver.published_end and not (self.stopped or self.reason)
        if not certificate.converged and (self.limits.tol_given or not at_its_end):
            reason, advice = "rounding allows no better", "raise tol or scale the features"
            if form.features.dtype != np.float64:
                advice = "raise tol or give float64 rows"
            if self.stopped or self.reason:
                reason, advice = self.stopped or self.reason, "allow more"
            elif at_its_end:
                reason, advice = "the method's published end", "raise tol, change solver_options or use solver='auto'"
            warnings.warn(
                f"solver {self.solver.name!r} stopped at relative gap {certificate.gap:.2g} instead of "
                f"{self.limits.tol:.2g} ({reason}); {advice}",
                ConvergenceWarning,
                stacklevel=4,
            )
        return Outcome(solutions, certificate, self.history, len(self.history))

    def _late(self) -> bool:
        if not self.stopped and time.perf_counter() >= self.limits.deadline:
            self.stopped = "time_limit reached"
        return bool(self.stopped)

    def _prepare(self, form: MarginForm) -> Any:
        work = self.solver.prepare(form, self.options)
        try:
            while not self._late():
                next(work)
        except StopIteration as done:
            return done.value
        work.close()
        return None

    def _columns(self, form: MarginForm, shared: Any, at_once: int) -> list[Solution]:
        """Solve the columns, `at_once` of them at a time; clock, callback and Ctrl-C stay in the calling thread."""
        columns = [self._column(form, j, shared) for j in range(len(form.columns))]
        run = one_by_one(columns)
        if at_once > 1:
            run = side_by_side(columns, at_once, share=(self.limits.n_threads or 1) // at_once)
        with closing(run):
            while True:
                try:
                    state = next(run)
                except StopIteration as done:
                    solutions: list[Solution] = done.value
                    return solutions
                # Once stopped, what other threads were still about to report is of no interest.
                if state is not None and not self.stopped and self._record(state):
                    self.stopped = "stopped by the callback"
                self._late()

    def _column(self, form: MarginForm, j: int, shared: Any) -> Generator[State | None, None, Solution]:
        """Solve one column; yield a State per report, None as a heartbeat. Looks at the clock through `stopped`."""
        column = form.columns[j]
        best = _Best(column, zero_point(form, column))
        if self.stopped:
            return certify_best(form, column, best.point, self.limits.tol)
        rng = np.random.default_rng([self.seed, j])
        steps = self.solver.iterate(form, column, shared, self.options, rng)
        max_iter = self.limits.max_iter or self.solver.default_max_iter
        iteration, extra = 0, EXTRA
        published = self.solver.published_end
        for report in steps:
            if report is None:
                yield None
            else:
                iteration += 1
                if column.hard:
                    check_separable(form, column, report.point.beta)
                better = best.take(report, latest=published)
                elapsed = time.perf_counter() - self.limits.started
                yield State(iteration, best.objective, best.lower_bound, best.gap, elapsed, j)
                if best.gap <= self.limits.tol and not published:
                    extra -= 1
                    # Once more than a few reports old, any point within the gap will do; before that, a sharp one.
                    if extra == 0 or (better and (extra < 0 or best.sharp_gap <= self.limits.tol)):
                        solution = certify(form, column, best.point, self.limits.tol)
                        if solution.certificate.converged or solution.at_limit:
                            return solution
                if iteration >= max_iter:
                    if not (published and next(steps, END) is END):
                        self.reason = f"max_iter = {max_iter} reached"
                    break
            if self.stopped:
                break
        steps.close()
        judged = certify_as_is if published and iteration else certify_best
        solution = judged(form, column, best.point, self.limits.tol)
        if np.isinf(solution.certificate.objective) and not self.stopped:
            check_by_program(form, column)
        return solution

    def _record(self, state: State) -> bool:
        """Keep and show a state; say whether the callback wants to stop."""
        self.history.append(state)
        self.progress.show(state)
        return self.limits.callback is not None and bool(self.limits.callback(state))


class _Best:
    """The point of smallest gap so far."""

    def __init__(self, column: Column, point: Point) -> None:
        self.column, self.point = column, point
        self.objective, self.lower_bound, self.gap = np.inf, -np.inf, np.inf

    @property
    def sharp_gap(self) -> float:
        """Gap relative to the objective alone."""
        return (self.objective - self.lower_bound) / max(abs(self.objective), TINY)

    def take(self, report: Report, latest: bool) -> bool:
        """Keep a report's point if it is the best so far, or anyway when the `latest` counts; say whether it was."""
        objective, lower = report.objective, report.lower_bound
        gap = max(relative_gap(self.column, objective, lower), 0.0)
        if latest or gap < self.gap or (np.isinf(self.gap) and lower >= self.lower_bound):
            self.point, self.objective, self.lower_bound, self.gap = report.point, objective, lower, gap
            return True
        return False
