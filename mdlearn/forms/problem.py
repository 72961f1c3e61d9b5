"""Problems of a form: the independent minimisations that it consists of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.forms.base import Form, Problem, Several, array_fault
from mdlearn.forms.certificates.certified_solution import (
    Proven,
    certify,
    certify_as_is,
    certify_best,
    stored_bound,
    stored_objective,
)
from mdlearn.forms.certificates.dual import feasible_dual
from mdlearn.forms.certificates.representer import FACTORED_COLUMNS, MOST_STEPS
from mdlearn.forms.certificates.separability import check_separable, check_separable_by_program, check_separated
from mdlearn.forms.certificates.unboundedness import check_unbounded_multipliers
from mdlearn.forms.certificates.without_ridge import cheap_without_ridge
from mdlearn.forms.joint.margin_composite import MarginComposite
from mdlearn.forms.margin import Column, MarginForm, Point, best_bias_alone, started_point, zero_point
from mdlearn.forms.penalised.problem import PenalisedProblem
from mdlearn.forms.proof import Solution, Start

__all__ = ["ColumnProblem", "Form", "Problem", "Several", "as_joint_problem", "problems_of"]

OWN_FIRST = 1e-8
"""Gap down to which coefficients of an engine's own are certified before those that multipliers stand for."""


class ColumnProblem(Problem):
    """Problem of one column of a MarginForm; overflows in its certificate are infinite, and prove nothing: the driver
    has NumPy keep quiet about them."""

    def __init__(self, form: MarginForm, column: Column) -> None:
        self.form, self.part, self.unit, self.hard = form, column, form.unit * column.unit, column.hard
        self.at_zero, features = column.at_zero, form.features
        # Over a Gram matrix rounding can take a promise back, and so can that to the type of the rows.
        self.estimates_hold = isinstance(features, LinearFeatures) and bool(features.dtype == np.float64)
        self.latest: tuple[Any, float, Proven] | None = None  # a point may be certified in two ways

    @property
    def modulus(self) -> float:
        return self.unit * self.form.modulus

    def start(self) -> Any:
        """Return the point w = 0, known before any work."""
        return zero_point(self.form, self.part)

    def begin(self, starts: Sequence[Start]) -> None:
        """Give the engine a column that knows its start."""
        if len(starts) == 1:
            self.part = self.part.with_start(starts[0])

    @property
    def expandable(self) -> bool:
        """Whether coefficients can be told as dual coefficients: over many columns the search for these ends early.

        Not so over few rows, where it has as many directions at most. There the coefficients are needed beside a
        variance: those that its multipliers stand for lack digits where the ridge is small.
        """
        features = self.form.features
        wide = isinstance(features, LinearFeatures) and features.by_rows and features.width > FACTORED_COLUMNS
        if not wide or self.form.ridge == 0:
            return True
        return self.part.kappa > 0 and features.n_rows <= MOST_STEPS

    def has_dual_coefficients(self, point: Any, tol: float) -> bool:
        """Whether a point over explicit rows has coefficients of its own with dual ones, which are certified first.

        For a small gap it is the representer of the multipliers: it says what they do.
        """
        own = point.coef is not None and point.alpha is not None and tol >= OWN_FIRST
        return own and self.form.ridge > 0 and isinstance(self.form.features, LinearFeatures)

    def starting_point(self) -> Any:
        """Return the start as a point, its multipliers as they were."""
        return None if self.part.start is None else started_point(self.form, self.part, self.part.start)

    def bounds_at_start(self) -> tuple[float, float]:
        """Return the value at w = 0, and what multipliers of 0 say; nothing where the margins are pulled at."""
        form, column = self.form, self.part
        value = column.at_zero
        if form.bias == "free":
            shift = best_bias_alone(column)
            value = column.distribution_value(shift * column.y) if shift else value
        lower = -math.inf if column.pulled else column.highest_bound_at_zero
        return math.inf if self.hard else value, -math.inf if math.isnan(lower) else lower

    def bound_at_start(self) -> float:
        """Return what multipliers of 0 say: a pass over the rows where the margins are pulled at."""
        form, column = self.form, self.part
        if not column.pulled:
            return self.bounds_at_start()[1]
        if not cheap_without_ridge(form) if form.ridge == 0 else not form.features.ready:
            return -math.inf
        lower = feasible_dual(form, column, np.zeros(column.caps.shape), np.zeros(column.counts.shape)).lower
        return -math.inf if math.isnan(lower) else lower

    def highest_bound_at_start(self) -> float:
        """Return what multipliers of 0 say but for the ridge's share, which is below 0."""
        column = self.part
        return column.highest_bound_at_zero if self.form.ridge > 0 or not column.pulled else math.inf

    def stored_objective(self, point: Any, objective: float) -> float:
        """Objective as the certificate states it: passes for float32 rows, and where rounding may show in it."""
        if not math.isfinite(objective):
            return objective
        return stored_objective(self.form, self.part, point, objective)

    @property
    def corrects(self) -> bool:
        """Whether multipliers of every point are corrected: without a ridge their sums have to be 0."""
        return bool(self.form.ridge == 0 and self.form.features.ready and cheap_without_ridge(self.form))

    def stored_bound(self, point: Any, lower: float) -> float:
        """Bound as the certificate states it: two passes where rounding of so long multipliers may show in it."""
        return stored_bound(self.form, self.part, point, lower)

    def untouched(self, tol: float, bounded: bool) -> Solution | None:
        """Return w = 0 with multipliers 0; a mean that pulls at these says nothing from below without the rows."""
        form, column = self.form, self.part
        told = bounded and (column.mean > 0 or column.hard)
        if column.offset is not None or column.start is not None or told:
            return None
        shift = best_bias_alone(column) if form.bias == "free" else 0.0
        intercept = float(form.features.dtype.type(shift))
        value = column.distribution_value(intercept * column.y) if intercept else column.at_zero
        objective = math.inf if column.hard else self.unit * value
        certificate = self.certificate_of(objective, self.unit * column.bound_at_zero, tol)
        coef, held = form.features.to_model(*form.no_coefficients)
        return Solution(
            coef, intercept, held, column.no_multipliers, 0.0, certificate, extras=form.features.attributes()
        )

    def certify(self, point: Any, tol: float) -> Solution:
        """Certify the representer of a point's multipliers."""
        proven = certify(self.form, self.part, point, tol)
        self.latest = point, tol, proven
        return proven[1]

    def certify_best(self, point: Any, tol: float) -> Solution:
        """Certify the better of the representer and the engine's own coefficients."""
        known = self.latest[2] if self.latest is not None and self.latest[:2] == (point, tol) else None
        return certify_best(self.form, self.part, point, tol, known, self.has_dual_coefficients(point, tol))

    def certify_as_is(self, point: Any, tol: float) -> Solution:
        """Certify the engine's own coefficients."""
        return certify_as_is(self.form, self.part, point, tol)

    def fault(self, point: Any) -> str | None:
        """Return why a point cannot be certified: another type, shapes that do not fit, NaN or infinity."""
        if not isinstance(point, Point):
            return f"it yielded {type(point).__name__} as a point, a Point is needed"
        m = self.part.y.shape[0]
        fault = array_fault("beta", point.beta, (len(self.part.terms), m)) or array_fault("sigma", point.sigma, (m,))
        if not fault and point.coef is not None:
            fault = array_fault("coef", point.coef, (self.form.features.width,))
        if not fault and point.alpha is not None:
            fault = array_fault("alpha", point.alpha, (m,))
        if fault:
            return fault
        if not isinstance(point.intercept, (int, float, np.floating)):
            return f"its point has as intercept {type(point.intercept).__name__}, a number is needed"
        return None if math.isfinite(point.intercept) else "its point has NaN or infinity in intercept"

    def examine(self, point: Any) -> None:
        """Raise ValueError once multipliers prove that constraints cannot be met."""
        if self.hard:
            check_separable(self.form, self.part, point.beta)

    def explain(self) -> None:
        """Raise ValueError when a linear program says that constraints cannot be met."""
        check_separable_by_program(self.form, self.part)

    def conclude(self, solution: Solution) -> None:
        """Raise ValueError where constraints are not met, or by no more than rounding, or where no optimum exists."""
        if self.hard:
            check_separated(self.form, self.part, solution)
        elif self.form.ridge == 0 and solution.beta is not None:
            check_unbounded_multipliers(self.form, self.part, solution.beta)


def problems_of(form: Form) -> tuple[Problem, ...]:
    """Return the problems of a form: its columns, all of them as one, its own, or itself when it is one."""
    if type(form) is not MarginForm:  # that is seen at once; a form of a plugin can be two of these
        if isinstance(form, Problem):
            return (form,)
        if isinstance(form, Several):
            return form.problems()
    if form.joint or form.penalty > 0 or form.penalised:
        groups = (form.columns,) if form.joint else tuple((column,) for column in form.columns)
        kind = PenalisedProblem if form.penalised else MarginComposite
        return tuple(kind(form, group) for group in groups)
    return tuple(map(partial(ColumnProblem, form), form.columns))


def as_joint_problem(form: Form) -> Form:
    """Return a form of several columns as one joint problem; other forms as they are."""
    several = isinstance(form, MarginForm) and len(form.columns) > 1
    return replace(form, joint=True) if several else form
