"""Leave-one-out (LOO) values by paths: one optimum of all rows, from which every row is followed to its own.

Parameters and weights are those of one row less, which is the same problem for every row but for the row itself: the
optimum of all rows in that problem is solved once, to the last digit. Equal rows are one.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.validation import Data
from mdlearn.driver.choice import chosen_driver
from mdlearn.driver.driver import DriverOutcome
from mdlearn.driver.limits import Limits
from mdlearn.form_making import FormMaker, PathCache
from mdlearn.forms.column import Column
from mdlearn.forms.margin import MarginForm
from mdlearn.forms.proof import Solution
from mdlearn.numerics import memory
from mdlearn.numerics.interruptible import finished
from mdlearn.numerics.symmetric_eigenvalues import symmetric_eigen_seconds
from mdlearn.objectives.base import Objective, overrides_objective_base
from mdlearn.objectives.declaration.parameters_and_terms import resolve_declared_parameters
from mdlearn.plugins.registry import find, registry
from mdlearn.selection.folds import FoldUnits
from mdlearn.selection.leave_one_out.closed_form import NoTimeForLooError, ask_loo_refits, paired_loo_scores
from mdlearn.selection.leave_one_out.newton import logistic_values_left_out
from mdlearn.selection.leave_one_out.pivots import (
    GramPivots,
    LinearPivots,
    LossPieces,
    settled_pieces,
    values_left_out,
)
from mdlearn.selection.study import Study
from mdlearn.stages import CheckedCall

LOO_MOST_ROWS = 4096
"""Rows up to which the response of all rows to all rows is made: 134 MB."""
LOO_MOST_COLUMNS = 512
"""Columns up to which logistic losses have a Hessian of their own."""
LOO_BASE_TOL = 1e-10
"""Gap of the optimum of all rows, from which its pieces are read."""


def followed_form(form: Any) -> bool:
    """Whether leave-one-out (LOO) can follow rows from one optimum: a squared norm, and losses that it knows."""
    if not isinstance(form, MarginForm) or form.joint or form.penalty > 0 or form.coefficient_terms or form.by_row:
        return False
    if form.ridge != 1 or form.scaled:
        return False
    if form.kinds == {"logistic"}:
        plain = isinstance(form.features, LinearFeatures) and form.features.width <= LOO_MOST_COLUMNS
        return plain and not (form.varied or form.offsets)
    return bool(form.kinds) and form.kinds <= {"hinge", "squared"} and not (form.varied and form.offsets)


class LooValuesByPaths:
    """Leave-one-out (LOO) values of the points of one kernel by paths; `stopped` says why they ended early."""

    def __init__(self, study: Study, kernel: Kernel, units: FoldUnits) -> None:
        self.study, self.kernel, self.units, self.stopped = study, kernel, units, ""

    def values(self, task: Objective) -> np.ndarray | None:
        """Decision values (m,) or (m, k) of all rows, NaN where a path does not end; None where there are no paths."""
        call = self.study.call
        if call.engine is not None or call.options or self.study.class_weight is not None:
            return None
        if overrides_objective_base(task, "form", "problem", "complete", "row_terms", "arranged"):
            return None
        setting, place = self._merged()
        params = resolve_declared_parameters(task, setting.data.total - 1.0, setting.data)
        if task.own_features(params) or setting.data.X.shape[0] > LOO_MOST_ROWS:
            return None
        pieces: list[np.ndarray] = []
        for j in range(len(setting.pieces)):
            found = self._piece(setting.pieces[j], task, params)
            if found is None or self.stopped:
                return None
            pieces.append(found)
        if setting.pairs is None:
            values = pieces[0][:, 0] if pieces[0].shape[1] == 1 else pieces[0]
        else:
            fitted = setting.solve(task, params, self.kernel, PathCache(), self._limits())
            self.stopped = fitted.outcome.stopped
            values = paired_loo_scores(self.study, setting, fitted, pieces)
        return values[place]

    def _merged(self) -> tuple[CheckedCall, np.ndarray]:
        """Return the call with one row for all that are equal, and the place of every row among these."""
        study, units = self.study, self.units
        rows = study.data.rows
        if units.weights.shape[0] == rows.shape[0]:
            return study.setting, np.arange(rows.shape[0])
        leader = np.unique(units.of, return_index=True)[1]
        weights = np.zeros(study.data.n_given)
        weights[rows[leader]] = units.weights
        place = np.empty(leader.shape[0], dtype=np.intp)
        place[np.argsort(leader)] = np.arange(leader.shape[0])
        return study.without(weights), place[units.of]

    def _piece(self, piece: Data, task: Objective, params: dict[str, Any]) -> np.ndarray | None:
        """Values of the rows of one problem, shape (m, columns)."""
        call, total = self.study.call, piece.total
        less = replace(piece, counts=piece.counts * ((total - 1.0) / total))
        own = task, params, self.kernel, call.bias, call.multiclass, call.seed
        form = finished(
            FormMaker(less, None, *own, PathCache(), call.constraints, ask_loo_refits).make(0), self._check_time
        )
        if not followed_form(form):
            return None
        m = piece.counts.shape[0]
        memory.require(32.0 * m * m, f"leave-one-out with {m} x {m} numbers", "give cv=5")
        columns = tuple(_column_of_all_rows(one, piece.counts) for one in form.columns)
        form = replace(form, columns=columns)
        outcome = self._solved(form)
        self.stopped = outcome.stopped
        if self.stopped:
            return None
        if isinstance(form.features, KernelFeatures) or form.features.width >= m:
            self._check_time(symmetric_eigen_seconds(m))
        values: np.ndarray = finished(_followed(form, outcome.solutions), self._check_time)
        return values

    def _check_time(self, seconds: float = 0.0) -> None:
        """Raise where work of some seconds would go on after the time limit."""
        if self.study.call.limits.too_late_for(lambda: seconds):
            raise NoTimeForLooError

    def _solved(self, form: MarginForm) -> DriverOutcome:
        """Solve the problem of all rows."""
        call = self.study.call
        named = call.engine, call.options, form, registry().solvers, partial(find, "solver")
        return chosen_driver(*named, self._limits(), call.seed)[0].run(form)

    def _limits(self) -> Limits:
        """Limits of fits whose optimum is read to the last digit."""
        limits = self.study.call.limits
        return replace(limits, tol=min(limits.tol, LOO_BASE_TOL), tol_given=True)


def _column_of_all_rows(column: Column, counts: np.ndarray) -> Column:
    """Column of all rows whose weights are those of one row less: also of the variance and the mean."""
    total = float(np.add.reduce(counts))
    grown = total / (total - 1.0)
    weights = column.variance * grown, column.mean * grown
    return Column(column.y, counts, *weights, column.terms, column.unit, column.offset)


def _followed(form: MarginForm, solutions: list[Solution]) -> Generator[None, None, np.ndarray]:
    """Values of all rows, each without one repetition of it, from the optima of all rows: shape (m, columns)."""
    features, found = form.features, []
    for column, solution in zip(form.columns, solutions):
        yield
        given = solution.alpha if solution.coef is None else solution.coef
        assert given is not None
        if column.kinds == {"logistic"}:
            assert isinstance(features, LinearFeatures)
            start = np.append(given, solution.intercept) if form.bias != "none" else given
            rows = _rows_with_constant(features, form.bias)
            u = yield from logistic_values_left_out(column, rows, form.bias == "free", start)
            found.append(column.y * u)
            continue
        u = column.y * (features.decision(given) + solution.intercept)
        pieces = LossPieces.of(column)
        pivots: LinearPivots | GramPivots
        if isinstance(features, LinearFeatures) and features.width < features.n_rows:
            pivots = LinearPivots(column.y[:, None] * _rows_with_constant(features, form.bias), form.bias == "free")
        else:
            G = yield from features.gram()
            pivots = GramPivots(np.asarray(G, dtype=np.float64), column.y, form.bias)
        base = settled_pieces(pieces, pieces.at(column, solution, u), pivots)
        if base is None:
            found.append(np.full(column.y.shape[0], np.nan))
            continue
        found.append(column.y * (yield from values_left_out(base, pivots)))
    return np.column_stack(found)


def _rows_with_constant(features: LinearFeatures, bias: str) -> np.ndarray:
    """Rows as an array, with a constant where there is an intercept."""
    A = np.empty((features.n_rows, features.width + (bias != "none")))
    for span in features.rows.spans():
        A[span, : features.width] = features.rows.block(span)
    A[:, features.width :] = 1.0
    return A
