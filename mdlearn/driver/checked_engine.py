"""Checked engine: what engines hand in is looked at here, for one of a plugin may be wrong in any way."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from functools import partial
from types import GeneratorType
from typing import Any

import numpy as np

from mdlearn.data.rows.distinct import EqualRows
from mdlearn.errors import (
    call_with_error_notes,
    came,
    class_is_foreign,
    faulty,
    note_origin,
    title_in_error,
    with_error_notes,
)
from mdlearn.forms.joint.pair_stack import PairStack
from mdlearn.forms.margin import MarginForm
from mdlearn.forms.problem import Form, Problem
from mdlearn.solvers.base import Offer, Report, Solver, Steps
from mdlearn.solvers.systems.equal_rows import KernelOnEqualRows, groups_of_equal_rows, require_memory_of_groups


class CheckedEngine:
    """Engine whose reports are checked, with errors that name it.

    `tol`: gap above which offers that tell theirs go on with the next heartbeat only; `broke`: the error in its
    arithmetic that ended its work on some problem; empty if there was none; `require_memory`: that of the engine, where
    it is given groups of equal rows by these.
    """

    def __init__(self, solver: Solver, tol: float = 0.0) -> None:
        self.solver, self.broke, self.tol, self.foreign = solver, "", tol, class_is_foreign(type(solver))
        merges = solver.merges_equal_rows
        self.require_memory = partial(require_memory_of_groups, solver) if merges else solver.require_memory

    @property
    def title(self) -> str:
        """Name of the engine in errors, with the plugin that brings it."""
        return title_in_error(self.solver, "solver")

    def refusal(self, form: Form) -> str | None:
        """Why it cannot take a form, or None."""
        refusal: str | None = call_with_error_notes(self.solver, "solver", "refusal", form)
        if refusal is not None and not isinstance(refusal, str):
            raise TypeError(self._fault(f"its refusal returned {refusal!r}, a text or None is needed"))
        return refusal

    def check_options(self, given: dict[str, Any]) -> dict[str, Any]:
        """All options of the engine, with defaults filled in."""
        if not self.foreign:
            return self.solver.check_options(given)
        options: dict[str, Any] = call_with_error_notes(self.solver, "solver", "check_options", given)
        if not isinstance(options, dict) or not options.keys() >= self.solver.options.keys():
            what = f"returned {came(options)}, a dict of all options is needed"
            raise faulty(self.solver, "solver", "check_options", what)
        return options

    def prepare_next(self, form: Form, options: dict[str, Any], before: Any, left: int) -> Generator[None, None, Any]:
        """Prepare what columns share, in interruptible pieces, from what those of another form have shared."""
        groups = groups_of_equal_rows(form) if self.solver.merges_equal_rows else None
        if groups is not None:
            return self._prepared_for_groups(*groups, options, before, left)
        return self._passed("prepare", None, self.solver.prepare_next, form, options, before, left)

    def _prepared_for_groups(
        self, equal: EqualRows, some: MarginForm, options: dict[str, Any], before: Any, left: int
    ) -> Generator[None, None, KernelOnEqualRows]:
        """Prepare what columns share for a row of each group, from what was shared over the same features."""
        same = isinstance(before, KernelOnEqualRows) and before.form.features is some.features
        given = some, options, before.shared if same else None, left
        shared = yield from self._passed("prepare", None, self.solver.prepare_next, *given)
        return KernelOnEqualRows(equal, some, shared)

    def reports(
        self, form: Form, problem: Problem, shared: Any, options: dict[str, Any], rng: np.random.Generator | None
    ) -> Steps:
        """Reports of one problem, each with a point that its certificate can take; None or an Offer as a heartbeat."""
        given: tuple[Any, ...] = options, rng if self.solver.draws else None
        if self.solver.takes_tol:
            given = *given, self.tol
        if isinstance(shared, KernelOnEqualRows):
            return self._passed("iterate", problem, shared.iterate, self.solver, problem.part, *given)
        return self._passed("iterate", problem, self.solver.iterate, form, problem.part, shared, *given)

    def stack_reports(self, stack: PairStack, options: dict[str, Any]) -> Steps:
        """Reports of a stack of pairs, each with a point of some of these; no random numbers are drawn."""
        shared = yield from self._passed("prepare", None, self.solver.prepare, stack, options)
        given = (options, None, self.tol) if self.solver.takes_tol else (options, None)
        return (yield from self._passed("iterate", stack, self.solver.iterate, stack, stack, shared, *given))

    def _passed(
        self, method: str, problem: Problem | PairStack | None, begin: Callable[..., Any], *given: Any
    ) -> Generator[Any, None, Any]:
        """The engine's own generator; an error inside comes through as it is. Without a problem, None is all it has."""
        work = with_error_notes(self.solver, "solver", method, begin, *given) if self.foreign else begin(*given)
        if type(work) is not GeneratorType and not isinstance(work, Generator):  # the second takes long
            raise TypeError(self._fault(f"its {method} returned {type(work).__name__}, a generator is needed"))
        waiting: Offer | None = None
        try:
            while True:
                try:
                    step = next(work)
                    while isinstance(step, Offer) and self.tol < step.gap < math.inf:
                        waiting = step  # before the engine goes on: that may be its end
                        step = next(work)
                except StopIteration as done:
                    if waiting is not None and problem is not None:  # the engine's last word
                        yield self._made(waiting.make, problem)
                    return done.value
                except (ArithmeticError, np.linalg.LinAlgError) as error:
                    told = " ".join([f"ended by {type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
                    if problem is None:  # iterate relies on what this returns
                        raise ValueError(f"{self.title} {told}; scale the features, or use another solver") from error
                    # Numbers beyond float64: the best point so far is the answer, and its certificate says how good.
                    self.broke = told
                    return None
                except Exception as error:
                    note_origin(error, self.solver, "solver", method)
                    raise
                if step is None:
                    step = waiting
                waiting = None
                if step is None or problem is None:
                    yield None
                elif isinstance(step, Offer):
                    yield Offer(partial(self._made, step.make, problem), step.gap, step.seconds)
                else:
                    yield self._check(step, problem)
        finally:
            work.close()

    def _made(self, make: Callable[[], Report], problem: Problem | PairStack) -> Report:
        return self._check(
            with_error_notes(self.solver, "solver", "iterate", make) if self.foreign else make(), problem
        )

    def _check(self, report: Any, problem: Problem | PairStack) -> Report:
        if not isinstance(report, Report):
            raise TypeError(self._fault(f"it yielded {type(report).__name__}, a Report or None is needed"))
        values = {"objective": report.objective, "lower_bound": report.lower_bound, "residual": report.residual}
        for name, value in values.items():
            right = value == value if type(value) is float else name == "residual" and value is None
            if not right and (not isinstance(value, (int, float, np.floating)) or math.isnan(value)):
                raise ValueError(self._fault(f"its report has as {name} {value!r}, a number is needed"))
        fault = problem.fault(report.point)
        if fault:
            raise ValueError(self._fault(fault))
        return report

    def _fault(self, what: str) -> str:
        return f"{self.title} is faulty: {what}; use another solver"


def engine_takes_form(cls: type[Solver], form: Form) -> bool:
    """Whether an engine, its errors caught, takes a form; one that cannot answer does not."""
    try:
        return cls().refusal(form) is None
    except KeyboardInterrupt:
        raise
    except BaseException:
        return False
