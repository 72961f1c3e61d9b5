"""Solver "interior": interior point for declared hinge terms, with a finish on the active set.

Mehrotra's predictor-corrector on the multipliers; each step solves Q + R' D R, a d x d (or m x m) matrix, by
Sherman-Morrison-Woodbury over row blocks. When the gap is small, the set of rows on a kink is guessed and the problem
solved exactly on it: that reaches rounding level where complementarity alone loses digits.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.numerics import cholesky
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.solvers.base import Claim, Steps
from mdlearn.solvers.common.active_set import ActiveSet
from mdlearn.solvers.common.augmented_lagrangian import AugmentedLagrangian
from mdlearn.solvers.common.factoring import Factoring
from mdlearn.solvers.common.highs_thread import SMALLEST_COLUMN, STATUS_SOLVED, highs, run_highs_in_thread
from mdlearn.solvers.common.primal_dual import PrimalDual, primal_dual_report
from mdlearn.solvers.common.warm_start import warm_start_newton
from mdlearn.solvers.interior_point.central_path import CentralPath, LinearCentralPath
from mdlearn.solvers.interior_point.sifting import SiftedPath, sifted_path
from mdlearn.solvers.systems.operations import STEPS_OF_A_FIT, step_operations
from mdlearn.solvers.systems.row_and_gram import UNRIDGED_SHIFT, RowSystem, solve_row_system, stacked_row_triangle
from mdlearn.solvers.systems.system_choice import choose_system
from mdlearn.solvers.systems.weighted_gram import Work

ACTIVE_SET_GAP, ACTIVE_SET_GAP_FALL = 1e-5, 0.03
"""Gap from which the active set is worth a guess, and the fall that makes another guess worthwhile."""
FINISH_ANYWAY = 1e-10
"""Gap from which it is, however many rows seem to sit on a kink."""
STALL_STEPS = 8
"""Steps without progress after which rounding is taken to be reached; many steps of a few per cent are progress."""
SHRUNK = 0.8
"""Fall of what is left of the way that is progress, where bounds do not tell."""
PROGRAM_COLUMNS = 1500
"""Columns of a linear program up to which steps by matrices do not take seconds."""
ROUNDED_GAP = 1e-13
"""Gap below which a path that only comes closer to its own end is no progress."""
UNDECIDED_PER_COLUMN, UNDECIDED_LEAST = 2.5, 50
"""Multipliers of the first program, of margins nearest to a kink: so many for each column, and some more."""
MOST_PROGRAMS = 8
"""Programs until the others are decided, or never will be."""
ON_A_KINK = 1e-9
"""Distance of a margin from a kink that is rounding."""
LEAST_SHIFT, SHIFT_GROWTH = 1e-15, 10.0
"""Share of its diagonal that the matrix grows by while it can be factored, and the growth of this share where it cannot
and has too many columns for the other way: directions that hardly any row holds are the way to the optimum."""
ROUNDED_PIVOT = 1e-14
"""Share of the diagonal that a pivot is, of which rounding has made most."""
HEAVY_ROWS_PER_COLUMN = 2
"""Rows of the largest weights, for each column, that are not squared."""
ORTHOGONAL_COLUMNS = 400
"""Columns up to which an orthogonal factorisation of these rows takes a fraction of a second."""


class Interior(Factoring):
    """Primal-dual interior point solver (``solver="interior"``)."""

    name: ClassVar[str] = "interior"
    draws: ClassVar[bool] = False
    purpose: ClassVar[str] = "declared hinge terms, dense rows with moderate d, or a Gram matrix; every bias"
    options: ClassVar[dict[str, Any]] = {}
    default_max_iter: ClassVar[int] = 200
    offsets: ClassVar[bool] = True
    by_row: ClassVar[bool] = True
    needs_ridge: ClassVar[bool] = False

    def refusal(self, form: MarginForm) -> str | None:
        """Without a ridge: a linear program over dense rows, of losses that are nowhere below 0."""
        general = super().refusal(form)
        if general is not None or form.ridge > 0:
            return general
        plain = all(column.kappa == 0 and column.mean == 0 and column.terms for column in form.columns)
        dense = isinstance(form.features, LinearFeatures) and not form.features.rows.sparse
        return None if plain and dense and form.kinds == {"hinge"} else "it needs the squared norm in the objective"

    def claims(self, form: Any) -> Claim | None:
        """Second-order steps, with multipliers of every row beside those of Newton's method."""
        features = form.features
        if self.refusal(form) is not None or (form.ridge == 0 and features.width > PROGRAM_COLUMNS):
            return None
        explicit = isinstance(features, LinearFeatures)
        told = "few columns or rows for their entries" if explicit else "a Gram matrix, nearly a hard margin"
        return Claim(STEPS_OF_A_FIT * (step_operations(form) + features.n_rows), f"{told}: second-order steps")

    def iterate(
        self, form: MarginForm, column: Column, shared: Any, options: dict[str, Any], rng: np.random.Generator
    ) -> Steps:
        """Yield a report per interior point step, then those of the active-set finish."""
        steepest = float(column.caps.max(initial=0.0))
        system = GradedSystem(form, column) if form.ridge == 0 else choose_system(form, column, shared, steepest)
        yield from system.setup()
        state = PrimalDual(form, column, system)
        if not column.caps.any():
            yield from _interior_without_loss(state)
            return
        if not column.hard and column.mean == 0 and column.at_zero == 0:
            # Targets within their tube: no loss is below 0, and slacks would fall towards 0 for ever.
            element = np.zeros(state.system.size)
            yield primal_dual_report(state, element, np.zeros_like(column.caps), np.zeros_like(column.y))
            return
        finish = ActiveSet(state)
        if form.ridge == 0:
            path = LinearCentralPath(state)
            yield from _follow_central_path(state, path, finish)
            yield from crossover(state, path.z)
            return
        begun = warm_start_newton(state)
        if begun is not None:
            yield from AugmentedLagrangian(state, *begun).run()
        short = yield from sifted_path(state)
        if short is not None:
            yield from _follow_central_path(state, short, finish)
        yield from _follow_central_path(state, CentralPath(state), finish)


def _follow_central_path(state: PrimalDual, path: CentralPath | SiftedPath, finish: ActiveSet) -> Steps:
    """Yield reports of solver "interior": one per step until the path ends or stands still, then of the active set."""
    best = mark = least = np.inf
    highest, stalled, next_finish = -float(np.finfo(float).max), 0, ACTIVE_SET_GAP
    while path.alive and stalled < STALL_STEPS:
        report = path.report()
        yield report
        gap = state.column.relative_gap(report.objective, report.lower_bound)
        # A constraint not met yet leaves the gap infinite: that is no standstill.
        rising = report.lower_bound > highest + 0.01 * abs(highest)
        falling = path.falling and gap > ROUNDED_GAP
        shrinking = path.away < SHRUNK * least
        onward = gap < 0.9 * mark or falling or rising or shrinking or np.isinf(gap)
        stalled, mark, least = (0, min(mark, gap), path.away) if onward else (stalled + 1, mark, least)
        highest = max(highest, report.lower_bound)
        best = min(best, gap)
        if best < next_finish:
            free = path.free()
            # More rows than unknowns are not all on a kink, unless rows repeat.
            if best < FINISH_ANYWAY or np.count_nonzero(free.any(axis=0)) <= path.element.shape[0]:
                next_finish = ACTIVE_SET_GAP_FALL * best
                yield from finish.attempt(path.element, path.beta, free)
        try:
            yield from path.step()
        except NotPositiveDefinite:
            break
    yield from finish.attempt(path.element, path.beta, path.free())


def _interior_without_loss(state: PrimalDual) -> Steps:
    """Solve for C = 0, where solver "interior" has nothing to do: one linear system, refined twice."""
    m = state.column.y.shape[0]
    yield from state.system.factor(np.zeros(m))
    beta = np.zeros_like(state.column.caps)
    try:
        element = state.system.solve(state.system.adjoint(state.column.y * state.column.pull))
        for _ in range(3):
            yield primal_dual_report(state, element, beta, state.margins(element))
            element = element - state.system.solve(state.residual(element, beta))
    except NotPositiveDefinite:  # a solution overflowed: the last one, or none, is the answer
        return


def crossover(state: PrimalDual, z: np.ndarray) -> Steps:
    """Yield reports of a crossover, one per program: multipliers far from a kink stay, those past their bound join.

    Where a path comes to its end some thousandths above the optimum, it knows nearly all rows. All of them together
    would be several times the price.
    """
    column, system = state.column, state.system
    assert isinstance(system, RowSystem)
    # Rows less their median, where a bias makes up for it: far from the origin they would cost digits.
    centre = np.zeros(system.size)
    if system.bias:
        centre[:-1] = np.median(state.form.features.rows.matrix(), axis=0)
    caps, sides, used = column.caps, column.sides, column.caps > 0
    kinks, unit = np.broadcast_to(column.kinks, caps.shape), float(caps.max())
    slopes = state.slopes(z)
    away = np.where(used, np.abs(slopes), np.inf).ravel()
    few = min(int(UNDECIDED_PER_COLUMN * system.size) + UNDECIDED_LEAST, int(used.sum()) - 1)
    undecided = used & (np.abs(slopes) <= np.partition(away, few)[few])
    beta = np.where(used & (slopes < 0), caps, 0.0)
    for _ in range(MOST_PROGRAMS):
        t, i = np.nonzero(undecided)
        beta[undecided] = 0.0
        rows = (sides[t] * column.y[i])[:, None] * (system.rows(i) - centre)
        sizes = np.abs(rows).max(axis=0)
        sizes[sizes < SMALLEST_COLUMN] = 1.0
        held = system.adjoint(column.y * (sides @ beta))
        rhs = -(held - centre * held[-1]) / (sizes * unit)
        bounds = np.column_stack([np.zeros(t.shape[0]), caps[t, i] / unit])
        if not (np.isfinite(rhs).all() and np.isfinite(rows).all()):
            return
        program = -sides[t] * kinks[t, i], (rows / sizes).T, rhs, bounds
        found = yield from run_highs_in_thread(partial(highs, "highs-ds", *program))
        if found.status != STATUS_SOLVED:
            return
        beta[t, i] = np.clip(unit * found.x, 0.0, caps[t, i])
        element = -found.eqlin.marginals / sizes
        element[-1] -= float(centre @ element)
        z = state.margins(element)
        yield primal_dual_report(state, element, beta, z)
        slopes = state.slopes(z)
        wrong = used & ~undecided & np.where(beta > 0, slopes > ON_A_KINK, slopes < -ON_A_KINK)
        if not wrong.any():
            return
        undecided |= wrong


class GradedSystem(RowSystem):
    """Graded system of rows, no ridge: R' D R while it can be factored, then a triangle of R without squares.

    Near the end of a path fewer rows than columns sit on a kink. What holds the other directions is 1e20 times lighter
    and lost in the sum of all; the triangle of a QR factorisation with sorted rows keeps it (Cox and Higham 1998).
    """

    def __init__(self, form: MarginForm, column: Column) -> None:
        super().__init__(form, column)
        # With fewer rows than columns nothing holds some directions at all.
        few = form.features.n_rows < self.size
        self.shift = UNRIDGED_SHIFT if few else LEAST_SHIFT
        self.can_sort, self.sorted = not few and self.size <= ORTHOGONAL_COLUMNS, False

    def factor(self, D: np.ndarray) -> Work:
        """Factor R' D R; from the first time that this loses directions, sort the rows."""
        while not self.sorted:
            if self.shift >= UNRIDGED_SHIFT:
                yield from super().factor(D)
                return
            if (yield from self._by_squares(D)):
                return
        heavy = np.argsort(-D, kind="stable")[: min(HEAVY_ROWS_PER_COLUMN * self.size, D.shape[0] // 2)]
        light = D.copy()
        light[heavy] = 0.0
        base = yield from cholesky.cholesky_shifted((yield from self.matrix(light, UNRIDGED_SHIFT)))
        top = np.sqrt(D[heavy])[:, None] * self.rows(heavy)
        self.triangle, self.pivots = stacked_row_triangle(np.vstack([top, np.tril(base).T]))
        yield

    def _by_squares(self, D: np.ndarray) -> Generator[None, None, bool]:
        """Factor R' D R, and tell whether its pivots are more than rounding."""
        M = yield from self.matrix(D, self.shift)
        diagonal = np.diagonal(M).copy()
        try:
            self.L = yield from cholesky.cholesky(M)
        except cholesky.NotPositiveDefinite:
            self.sorted = self.can_sort
            self.shift = min(SHIFT_GROWTH * self.shift, UNRIDGED_SHIFT)
            return False
        self.sorted = self.can_sort and bool((np.square(np.diagonal(self.L)) < ROUNDED_PIVOT * diagonal).any())
        return not self.sorted

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        if not self.sorted:
            return super().solve(rhs)
        return cholesky.finite_cholesky_solution(solve_row_system(self.triangle, self.pivots, rhs))
