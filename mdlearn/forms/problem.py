"""The independent minimisations that a form consists of, as the driver sees them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from mdlearn.forms.certificate import TINY, Solution, certify, certify_as_is, certify_best, value_at_zero
from mdlearn.forms.margin import Column, MarginForm, zero_point
from mdlearn.forms.separability import check_by_program, check_separable


class Problem(ABC):
    """One minimisation with one certificate. Values are in units of the form; certificates are not.

    Attributes
    ----------
    part : object
        What an engine's `iterate` gets as its second argument.
    unit : float
        Value of the objective for one unit of the form.
    at_zero : float
        Value at w = 0, b = 0.
    hard : bool
        Whether there are constraints.
    """

    part: Any
    unit: float
    at_zero: float
    hard: bool = False

    @abstractmethod
    def start(self) -> Any:
        """Return the point w = 0, known before any work."""

    @abstractmethod
    def certify(self, point: Any, tol: float) -> Solution:
        """Certify a point that an engine holds for converged."""

    @abstractmethod
    def certify_best(self, point: Any, tol: float) -> Solution:
        """Certify the best that can be made of a point, for a fit that ends early."""

    @abstractmethod
    def certify_as_is(self, point: Any, tol: float) -> Solution:
        """Certify a point as a published method left it."""

    @abstractmethod
    def examine(self, point: Any) -> None:
        """Raise ValueError when a point proves that there is no optimum."""

    @abstractmethod
    def explain(self) -> None:
        """Raise ValueError when there is no finite objective, as the last resort."""

    def gap(self, objective: float, lower: float) -> float:
        """Relative gap of an engine's own estimates, as the certificate defines it."""
        if math.isinf(objective) or math.isinf(lower):
            return math.inf
        scale = abs(lower) if self.hard else 0.01 * abs(self.at_zero)
        return max((objective - lower) / max(abs(objective), scale, TINY), 0.0)


class ColumnProblem(Problem):
    """One column of a MarginForm."""

    def __init__(self, form: MarginForm, column: Column) -> None:
        self.form, self.part, self.unit, self.hard = form, column, form.unit * column.unit, column.hard
        self.at_zero = value_at_zero(column)

    def start(self) -> Any:
        """Return the point w = 0, known before any work."""
        return zero_point(self.form, self.part)

    def certify(self, point: Any, tol: float) -> Solution:
        """Certify the representer of a point's multipliers."""
        return certify(self.form, self.part, point, tol)

    def certify_best(self, point: Any, tol: float) -> Solution:
        """Certify the better of the representer and the engine's own coefficients."""
        return certify_best(self.form, self.part, point, tol)

    def certify_as_is(self, point: Any, tol: float) -> Solution:
        """Certify the engine's own coefficients."""
        return certify_as_is(self.form, self.part, point, tol)

    def examine(self, point: Any) -> None:
        """Raise ValueError once multipliers prove that constraints cannot be met."""
        if self.hard:
            check_separable(self.form, self.part, point.beta)

    def explain(self) -> None:
        """Raise ValueError when a linear program says that constraints cannot be met."""
        check_by_program(self.form, self.part)


Form = Any
"""A MarginForm, or a Problem that is its own form: both have `features` and `bias`."""


def problems_of(form: Form) -> tuple[Problem, ...]:
    """Return the problems of a form: its columns, all of them as one, or itself when it is one."""
    if isinstance(form, Problem):
        return (form,)
    if form.joint or form.penalty > 0:
        from mdlearn.forms.coupled import MarginComposite  # composites are Problems

        groups = (form.columns,) if form.joint else tuple((column,) for column in form.columns)
        return tuple(MarginComposite(form, group) for group in groups)
    return tuple(ColumnProblem(form, column) for column in form.columns)


def as_one(form: Form) -> Form:
    """Return a form of several columns as one problem; other forms as they are."""
    several = isinstance(form, MarginForm) and len(form.columns) > 1
    return replace(form, joint=True) if several else form
