"""Problems of a driver beyond its first: forms made in their turn, or many of them solved as one stack."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Protocol

from mdlearn.driver.checked_engine import CheckedEngine
from mdlearn.forms.joint.pair_stack import PairStack, StackedSolution
from mdlearn.forms.problem import Form
from mdlearn.forms.proof import Solution, ZeroProof
from mdlearn.solvers.base import Report


class LaterProblems(Protocol):
    """Problems of a driver, numbered from 0, where all but the first have forms of their own, made in their turn."""

    def __len__(self) -> int:
        """Return the number of problems, the first included."""

    def make(self, j: int) -> Generator[None, Any, Form]:
        """Make a form, in interruptible pieces, told between them whether the time is up."""

    def stack(self, first: Form) -> PairStack | None:
        """Return all problems in one form, that of the first given; None where each is solved on its own."""

    def size(self, j: int) -> tuple[int, float]:
        """Return the number of rows of a problem, and their weight."""

    def at_zero(self, total: float) -> ZeroProof | None:
        """Return what is known at w = 0 of a problem whose rows have this weight; None: that takes its form."""


@dataclass(eq=False)
class SolvedProblem:
    """Solution of one of a driver's problems, with what the sum over problems needs."""

    solution: Solution
    at_zero: float
    hard: bool


def solved_by_stack(
    engine: CheckedEngine, options: dict[str, Any], later: LaterProblems, first: Form, tol: float
) -> Generator[StackedSolution | None, None, None]:
    """Solve what can be solved of all problems as one stack; yield None as a heartbeat."""
    stack = later.stack(first)
    if stack is None or not engine.solver.takes_stack(stack, options, tol):
        return
    for step in engine.stack_reports(stack, options):
        if isinstance(step, Report):
            yield from stack.certified(step.point, tol)
        else:
            yield None
