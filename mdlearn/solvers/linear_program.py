"""Linear program of hinge losses without a squared norm, solved by HiGHS through SciPy.

The dual is solved, because it is the smaller one: with alpha_i = y_i (sum_t side_t beta_ti + a c_i / m),

    maximise  sum_ti side_t kink_ti beta_ti   subject to  sum_i alpha_i (x_i, 1) = 0,  0 <= beta <= caps

has one equation per column of X (and one for a bias) and only bounds beside these. The multipliers of the equations
are w and b.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.kernel_features import Features
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.numerics import memory
from mdlearn.solvers.base import Claim, Solver, Steps
from mdlearn.solvers.common.highs_thread import INFEASIBLE, SMALLEST_COLUMN, STATUS_SOLVED, highs, run_highs_in_thread
from mdlearn.solvers.common.primal_dual import report_of
from mdlearn.solvers.systems.operations import STEPS_OF_A_FIT

METHODS = ("highs-ipm", "highs-ds")
"""Interior point with crossover to a vertex; the simplex method where that fails."""
PROGRAM_ENTRIES = 2e5
"""Entries of the rows at which HiGHS takes as long as second-order steps on dense matrices; its time per entry grows
with their number."""


class LinearProgram(Solver):
    """Solver of the dual linear program by HiGHS (``solver="linprog"``)."""

    name: ClassVar[str] = "linprog"
    purpose: ClassVar[str] = "hinge terms without the squared norm: a linear program (HiGHS); explicit rows, every bias"
    kinds: ClassVar[frozenset[str]] = frozenset({"hinge"})
    claims_only: ClassVar[str] = "no ridge"
    draws: ClassVar[bool] = False
    needs_ridge: ClassVar[bool] = False
    offsets: ClassVar[bool] = True
    by_row: ClassVar[bool] = True

    def refusal(self, form: Any) -> str | None:
        """Return what the form has that a linear program has not."""
        general = super().refusal(form)
        if general is not None:
            return general
        if form.ridge != 0:
            return "its linear program has no squared norm"
        if not isinstance(form.features, LinearFeatures):
            return "its linear program needs explicit rows (kernel='linear')"
        if form.varied:
            return "its linear program has no margin variance"
        return "its linear program needs a loss" if not form.kinds else None

    def claims(self, form: Any) -> Claim | None:
        """Steps of an interior point whose cost per entry grows with the entries."""
        if self.refusal(form) is not None:
            return None
        features, entries = form.features, float(form.features.n_entries)
        step = entries * min(features.n_rows, features.width) + features.n_rows
        return Claim(
            STEPS_OF_A_FIT * step * entries / PROGRAM_ENTRIES, "hinge without the squared norm: a linear program"
        )

    def check_memory(self, form: MarginForm, at_once: int = 1) -> None:
        """Ask for the matrix of the program, which HiGHS copies and factors."""
        entries = max(len(column.terms) for column in form.columns) * _program_matrix_entries(form.features)
        memory.require(at_once * 60.0 * entries, f"a linear program of {entries} entries", "use fewer rows", at_once)

    def iterate(
        self, form: MarginForm, column: Column, shared: Any, options: dict[str, Any], rng: np.random.Generator
    ) -> Steps:
        """Yield one report: a vertex of the program."""
        program = yield from DualLinearProgram.of(form, column)
        for method in METHODS:
            found = yield from run_highs_in_thread(partial(program.call, method))
            # Multipliers of 0 are feasible where there is no mean: then HiGHS has lost its digits.
            if found.status == INFEASIBLE and column.pull.any():
                raise ValueError(
                    "without a squared norm the objective is unbounded below: the weight of the margin mean exceeds "
                    "what the loss can hold; lower it"
                )
            if found.status == STATUS_SOLVED:
                beta, element = program.solution(found)
                coef, intercept = element[: form.features.width], 0.0
                if form.bias != "none":
                    intercept = float(element[-1] - program.centre @ coef)
                z = column.y * (form.features.decision(coef) + intercept)
                yield report_of(form, column, Point(beta, np.zeros_like(column.y), coef, intercept), z)
                return


@dataclass(frozen=True, eq=False)
class DualLinearProgram:
    """Dual linear program in units in which boxes and equations have entries of at most 1.

    `A` (shape (d, T m), or (d + 1, T m) with a bias): equations, each divided by its entry of `sizes`; `unit`: that of
    the multipliers; `centre` (shape (d,)): median, taken from all rows: with a bias, that of dense rows far from the
    origin would cost digits.
    """

    column: Column
    A: Any
    rhs: np.ndarray
    sizes: np.ndarray
    unit: float
    centre: np.ndarray

    @classmethod
    def of(cls, form: MarginForm, column: Column) -> Generator[None, None, DualLinearProgram]:
        """Write the program, in interruptible pieces."""
        from scipy.sparse import csr_matrix, diags, hstack, vstack

        rows, bias, pieces = form.features.rows, form.bias != "none", []
        centre = np.zeros(rows.shape[1])
        if bias and not rows.sparse:
            # Unlike a mean, it is no rounding away from a constant column, and near most rows whatever others are.
            centre = np.median(rows.matrix(), axis=0)
        for span in rows.spans():
            X = rows.take(span).matrix()
            X = csr_matrix(X - centre if centre.any() else X)
            X = hstack([X, np.ones((X.shape[0], 1))], format="csr") if bias else X
            pieces.append(diags(column.y[span]).tocsr() @ X)
            yield
        whole = vstack(pieces, format="csr")
        sizes = abs(whole).max(axis=0).toarray().ravel()
        sizes[sizes < SMALLEST_COLUMN] = 1.0
        unit = float(column.caps.max())
        rhs = -(whole.T @ column.pull) / (sizes * unit)
        one = (whole @ diags(1.0 / sizes)).T.tocsc()
        A = hstack([side * one for side in column.sides], format="csc")
        return cls(column, A, rhs, sizes, unit, centre)

    def call(self, method: str, seconds: float) -> Any:
        """Run HiGHS for so many seconds at most."""
        column = self.column
        cost = -np.broadcast_to(column.sides[:, None] * column.kinks, column.caps.shape).ravel()
        bounds = np.column_stack([np.zeros(column.caps.size), column.caps.ravel() / self.unit])
        return highs(method, cost, self.A, self.rhs, bounds, seconds)

    def solution(self, found: Any) -> tuple[np.ndarray, np.ndarray]:
        """Multipliers of the loss, shape (T, m), and w (with b)."""
        beta = np.clip(self.unit * found.x.reshape(self.column.caps.shape), 0.0, self.column.caps)
        return beta, -found.eqlin.marginals / self.sizes


def _program_matrix_entries(features: Features) -> int:
    """Number of entries that the linear program takes from the rows: of sparse ones, those that are stored."""
    rows = features.rows
    return int(rows.matrix().nnz) if rows.sparse else features.n_rows * features.width
