"""One driver for all engines: clock, Ctrl-C, callback, progress, history, and the stop rule (the certified gap)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.driver.checked_engine import CheckedEngine
from mdlearn.driver.checked_problem import checked_problem
from mdlearn.driver.generator_threads import run_in_threads
from mdlearn.driver.incumbent import Incumbent
from mdlearn.driver.later_problems import LaterProblems, SolvedProblem, solved_by_stack
from mdlearn.driver.limits import OUT_OF_TIME, LimitedRun, Limits, LimitShortfall
from mdlearn.errors import FaultyProblem, class_is_foreign
from mdlearn.forms.problem import Form, Problem, problems_of
from mdlearn.forms.proof import Certificate, ProvenZeros, Solution, Start, State, combine_proofs, fit_history
from mdlearn.numerics.blas_threads import GUARD
from mdlearn.numerics.interruptible import finished, with_heartbeat
from mdlearn.numerics.seeds import seeded_rng
from mdlearn.numerics.symmetric_eigenvalues import symmetric_eigen_seconds
from mdlearn.solvers.base import Offer, Report, Solver

Reports = Generator[Report | Offer | None, None, None]
"""What an engine hands in, with heartbeats."""
Starts = Callable[[Form, int, int], Sequence[Sequence[Start]]]
"""(form, j, n) -> where the problems j ... j + n - 1, those of the form, may begin."""

REACHED_GAP = 1e-11
"""Gap below which another engine has nothing to add but rounding of its own."""
RELIEF_STEPS = 3000
"""Steps of such another engine, heartbeats included."""
PARALLEL_ENTRIES = 1.8e7
"""Entries of the rows, times problems, from which problems are solved at the same time: some tenths of a second.

Below, short steps of several threads wait for the interpreter: 40 classes of 400 x 1,024 took 1.3 times as long."""
NO_POINT = "it handed in no point"
"""Why the answer is w = 0."""
NO_MORE_REPORTS = object()
"""What `next` gives when an engine has no more to say."""


@dataclass
class Prepared:
    """Preparations that a driver keeps for forms over the same features, by piece and engine; `left` such will come."""

    left: int = 1
    found: dict[tuple[int, str], Any] = field(default_factory=dict)


@dataclass(eq=False)
class DriverOutcome:
    """Outcome of a driver's run of an engine; `stopped` says why it ended early, if it did."""

    solutions: list[Solution]
    certificate: Certificate
    history: list[State]
    n_iter: int
    stopped: str
    shortfall: LimitShortfall | None


Work = Generator[State | None, None, SolvedProblem]
"""What solves one problem."""


class Driver(LimitedRun):
    """Runs one engine over the problems of one form, or of several."""

    def __init__(
        self,
        engine: CheckedEngine,
        options: dict[str, Any],
        limits: Limits,
        seed: int,
        starts: Starts | None = None,
        prepared: Prepared | None = None,
        relief: Sequence[Solver] = (),
        follower: Solver | None = None,
    ) -> None:
        self.prepared, self.relief, self.follower = prepared or Prepared(1), relief, follower
        self.engine, self.options, self.seed, self.starts = engine, options, seed, starts
        self.solver = solver = engine.solver
        engine.tol = limits.tol
        super().__init__(solver.name, limits)
        self.published = solver.ends_itself(options)  # whether it runs to an end of its own
        self.reason, self.unproven = "", ""  # why some problem ended early, and why none can be certified

    def run(self, first: Form, later: LaterProblems | None = None) -> DriverOutcome:
        """Solve every problem and certify; say what the gap asked for was not reached by.

        `later` makes further forms (pairs of classes). Each is made, solved and forgotten when its turn comes.
        """
        problems = self._problems(first)
        count = len(problems) if later is None else len(later)
        at_once = 1 if count == 1 else self._at_once(first, count)
        if not self.late() and (0, self.solver.name) not in self.prepared.found:
            self.engine.require_memory(first, self.options, at_once)
        if (progress := self.progress) is not None:
            progress.problems = count
        if at_once > 1 and isinstance(first.features, KernelFeatures):
            first.features.ask_at_once()
        stacked: dict[int, SolvedProblem] = {}
        try:
            if later is None:
                shared = self._watched(self._preparation(first, 0), cut=True)
                works = []
                for j, problem in enumerate(problems):
                    works.append(self._problem(first, problem, j, shared))
            else:
                stacked = self._watched(self._stacked(first, later))
                works = [self._alone(_ready_form(first), 0), *(self._alone(later.make(j), j) for j in range(1, count))]
            solutions, proofs, scales = [], [], []
            for one in self._all(works, at_once, later, stacked):
                solutions.append(one.solution)
                proofs.append(one.solution.certificate)
                scales.append((one.at_zero, one.hard))
            certificate = combine_proofs(proofs, scales, self.limits.tol)
            if progress is not None and certificate.converged:
                progress.complete()
        finally:
            if progress is not None:
                progress.close()
        self.history = fit_history(self.history, proofs, scales)
        shortfall = None if certificate.converged else self._fell_short(certificate, first.features.dtype == np.float64)
        return DriverOutcome(solutions, certificate, self.history, len(self.history), self.stopped, shortfall)

    def alone(self, form: Form) -> Generator[None, None, Solution]:
        """Solve a form of one problem within the work of another engine, whose driver has clock, callback and Ctrl-C.

        Yields None as often as that engine is to.
        """
        return (yield from with_heartbeat(self._alone(_ready_form(form), 0), None)).solution

    def _at_once(self, form: Form, count: int) -> int:
        """Number of problems to solve at the same time: by default 1, for large ones up to as many as BLAS has threads.

        Each is solved by one thread then, with one of BLAS.
        """
        if self.limits.n_threads is not None:
            return min(self.limits.n_threads or 1, count)
        features = form.features
        if not isinstance(features, LinearFeatures) or count * features.n_entries < PARALLEL_ENTRIES:
            return 1
        if self.late() or not features.ready:  # nothing is made only to be asked for its size
            return 1
        at_once = min(GUARD.found(), count)
        try:
            self.engine.require_memory(form, self.options, at_once)
        except MemoryError:  # one after the other they may fit
            return 1
        return at_once

    def _fell_short(self, certificate: Certificate, exact: bool) -> LimitShortfall | None:
        """Say why the gap was not reached, and what to do."""
        broke = self.engine.broke
        ended = self.stopped or broke or self.reason
        advice = "use another solver" if ended in (NO_POINT, broke) else "allow more"
        if self.unproven:
            ended, advice = self.unproven, "declare one of them"
        at_its_end = self.published and not (self.stopped or self.reason)
        return self.shortfall(self.engine.title, certificate, at_its_end, exact, ended, advice)

    def _problems(self, form: Form, first: int = 0) -> tuple[Problem, ...]:
        """Problems of a form, told where to begin."""
        problems = problems_of(form)
        if any(map(class_is_foreign, map(type, problems))):
            problems = tuple(checked_problem(one, form) for one in problems)
        if self.starts is not None:
            for problem, given in zip(problems, self.starts(form, first, len(problems))):
                problem.begin(given)
        return problems

    def _preparation(self, form: Form, j: int) -> Generator[None, None, Any]:
        """Prepare what columns of a form share, from what those of another form over the same features have shared."""
        known, place = self.prepared, (j, self.solver.name)
        before, left = known.found.pop(place, None), known.left
        if before is None and left > 1 and not self._decomposes_in_time(form):
            left = 1
        shared = yield from self.engine.prepare_next(form, self.options, before, left)
        if left > 1:
            known.found[place] = shared
        return shared

    def _decomposes_in_time(self, form: Form) -> bool:
        """Whether a decomposition that serves several forms ends in time: one call of LAPACK goes on whatever is."""
        remaining = self.limits.deadline - time.perf_counter()
        order = min(form.features.n_rows, form.features.width)
        return remaining == np.inf or symmetric_eigen_seconds(order) < remaining

    def _stacked(self, first: Form, later: LaterProblems) -> Generator[State | None, None, dict[int, SolvedProblem]]:
        """Solve the problems that a stack of all answers; yield a State of each, return their solutions by number."""
        solved: dict[int, SolvedProblem] = {}
        if self.late():
            return solved
        for one in solved_by_stack(self.engine, self.options, later, first, self.limits.tol):
            if self.stopped:
                break
            if one is None:
                yield None
            else:
                j, solution, at_zero = one
                proof, solved[j] = solution.certificate, SolvedProblem(solution, at_zero, False)
                yield self.state(1, proof.objective, proof.lower_bound, proof.gap, j)
        return solved

    def _all(
        self, works: list[Work], at_once: int, later: LaterProblems | None, stacked: dict[int, SolvedProblem]
    ) -> list[SolvedProblem]:
        """Solve the problems, `at_once` of them at a time; clock, callback and Ctrl-C stay in the calling thread.

        Those whose turn does not come are answered for: tens of thousands may be left, of which nothing is made.
        """
        left = [j for j in range(len(works)) if j not in stacked]
        solved: list[SolvedProblem | None] = [stacked.get(j) for j in range(len(works))]
        if at_once > 1:
            share = (self.limits.n_threads or at_once) // at_once
            threads = run_in_threads([works[j] for j in left], min(at_once, len(left)), share, self.late)
            for j, one in zip(left, self._watched(threads) if left else []):
                solved[j] = one
        else:
            for j in left:
                if self.late():
                    break
                solved[j] = self._watched(works[j])
        found: list[SolvedProblem] = []
        equal: dict[tuple[int, float], SolvedProblem | None] = {}
        blanks = None
        for j, one in enumerate(solved):
            if one is None and later is not None and j:
                size = later.size(j)
                if size not in equal:
                    blanks = blanks or ProvenZeros(found[0].solution, self.limits.tol)
                    zero = later.at_zero(size[1])
                    equal[size] = zero and SolvedProblem(blanks.solution(size[0], zero), zero.value, zero.hard)
                one = equal[size]
            found.append(one or finished(works[j]))
        return found

    def _watched(self, work: Generator[State | None, None, Any], cut: bool = False) -> Any:
        """Run work to its end and return its result; its states are recorded, and after each the clock is looked at.

        `cut`: it ends with the time, and its result is None then.
        """
        try:
            while not (cut and self.stopped):
                try:
                    state = next(work)
                except StopIteration as done:
                    return done.value
                if state is None:
                    self.beat()
                elif not self.stopped:  # what other threads were still about to report is of no interest
                    self.record(state)
                self.late()
        finally:
            work.close()

    def _alone(self, make: Generator[None, Any, Form], j: int) -> Work:
        """Make a form of one problem and solve it; nothing is shared with other forms."""
        form, late = None, None
        while form is None:
            try:
                yield make.send(late)
            except StopIteration as done:
                form = done.value
            late = bool(self.stopped)
        (problem,) = self._problems(form, j)
        shared = None
        if not self.stopped:
            self.engine.require_memory(form, self.options, 1)
            shared = yield from self._preparation(form, j)
        return (yield from self._problem(form, problem, j, shared))

    def _problem(self, form: Form, problem: Problem, j: int, shared: Any) -> Work:
        """Solve one problem; yield a State per report, None as a heartbeat. Looks at the clock through `stopped`."""
        untouched = problem.untouched(self.limits.tol, bounded=not (j or self.limits.over)) if self.stopped else None
        if untouched is not None:
            return SolvedProblem(untouched, problem.reference, problem.hard)
        incumbent = Incumbent(problem, self.limits.tol, self.solver.gives_last(self.options), not self.published)
        if incumbent.begin():
            solution = incumbent.certified()
            yield self.state(1, incumbent.objective, incumbent.lower_bound, incumbent.gap, j)
            return SolvedProblem(solution, problem.reference, problem.hard)
        if self.stopped:
            return SolvedProblem(incumbent.certified(), problem.reference, problem.hard)
        count, most = 0, self.limits.max_iter or self.solver.default_max_iter
        others = [*self.relief]
        # One generator for all engines of a problem; making it takes as long as much of a small fit.
        rng = seeded_rng(self.seed, j) if self.solver.draws else None
        reports = self.engine.reports(form, problem, shared, self.options, rng)
        while True:
            count, asked = yield from self._followed(reports, problem, incumbent, j, count, most)
            if asked and self.follower is not None:
                others.insert(0, self.follower)
            engine = None if self.stopped or count >= most else self._next_engine(form, incumbent, others)
            if engine is None:
                break
            incumbent.resume()
            longest = None if engine.solver is self.follower else RELIEF_STEPS
            if rng is None and engine.solver.draws:
                rng = seeded_rng(self.seed, j)
            reports = self._relieved(engine, form, problem, rng, longest)
        if not count and not self.stopped:
            self.reason = NO_POINT
        solution = incumbent.certified(as_is=self.published)
        self.unproven = self.unproven or problem.unproven
        # The linear program of `explain` proves nothing beyond its tolerance: not asked where `max_iter` ended the fit.
        cut = self.stopped or (self.reason and self.limits.max_iter)
        if math.isinf(solution.certificate.objective) and not cut:
            problem.explain()
        if not (self.stopped or self.reason):
            problem.conclude(solution)
        return SolvedProblem(solution, problem.reference, problem.hard)

    def _followed(
        self, reports: Reports, problem: Problem, incumbent: Incumbent, j: int, count: int, most: int
    ) -> Generator[State | None, None, tuple[int, Any]]:
        """Take what an engine reports until it ends, proves enough or may not go on.

        Returns how many reports came, and whether the engine asked for a follower.
        """
        published, offer, asked = self.published, None, None
        while True:
            try:
                report = next(reports)
            except StopIteration as done:
                asked = done.value
                break
            if isinstance(report, Offer):
                offer, report = report, report.make() if report.gap <= self.limits.tol else None
            if report is None:
                yield None
            else:
                count, offer = count + 1, None
                problem.examine(report.point)
                incumbent.take(report)
                proven = not published and incumbent.proven()
                if count >= most and not proven:
                    if not (published and next(reports, NO_MORE_REPORTS) is NO_MORE_REPORTS):
                        self.reason = f"max_iter = {most} reached"
                    incumbent.certified(as_is=True)
                yield self.state(count, incumbent.objective, incumbent.lower_bound, incumbent.gap, j, report.row_dots)
                if proven or count >= most:
                    break
            if offer is not None and not self.stopped and self.limits.too_late_for(offer.seconds):
                self.stopped = OUT_OF_TIME  # its certificate belongs to the time
            if self.stopped:
                break
        reports.close()
        if offer is not None and self.stopped:
            incumbent.take(offer.make())
        return count, asked

    def _next_engine(self, form: Form, incumbent: Incumbent, others: list[Solver]) -> CheckedEngine | None:
        """Take from the list the engine that is to go on: the follower, or another while the gap is not reached.

        Where rounding ended the last one, others go on only from a gap that costs more than half of the digits:
        coefficients are then longer than they need to be.
        """
        while others:
            half = math.sqrt(float(np.finfo(form.features.dtype).eps)) if incumbent.at_limit else 0.0
            if self.stopped or incumbent.certified().certificate.gap <= max(self.limits.tol, REACHED_GAP, half):
                return None
            engine = CheckedEngine(others.pop(0), self.limits.tol)
            if engine.solver.name != self.solver.name and engine.refusal(form) is None:
                return engine
        return None

    def _relieved(
        self, engine: CheckedEngine, form: Form, problem: Problem, rng: np.random.Generator | None, most: int | None
    ) -> Reports:
        """Reports of another engine; where it fails, what the first one found is the answer."""
        try:
            shared_names = self.options.keys() & engine.solver.options.keys()
            options = engine.check_options({name: self.options[name] for name in shared_names})
            engine.require_memory(form, options, 1)
            shared = yield from engine.prepare_next(form, options, None, 1)
            yield from islice(engine.reports(form, problem, shared, options, rng), most)
        except FaultyProblem:  # whatever engine finds it out
            raise
        except (ValueError, MemoryError):
            pass


def _ready_form(form: Form) -> Generator[None, Any, Form]:
    """Return a form that is there already, as the generator that a driver expects of a later one."""
    return form
    yield  # what makes this a generator
