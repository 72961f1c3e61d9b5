"""Solver "cd": dual coordinate descent, Algorithm 1 of the LDM paper on a Gram matrix, and on explicit, whitened rows.

A round is a few sweeps in random order, then Newton on the free coordinates, then margins recomputed exactly. Sweeps
alone converge on every problem; Newton removes the long tail once the right rows are at their bounds.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.class_contrasts import ContrastRows
from mdlearn.data.rows.rows import COPY_BYTES
from mdlearn.data.validation import check_number
from mdlearn.errors import InsufficientMemory
from mdlearn.forms.joint.pair_stack import PairStack
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.numerics import memory
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.solvers.base import Claim, Report, Solver, Steps
from mdlearn.solvers.common.active_set import ActiveSet
from mdlearn.solvers.common.constant_column import FoldedConstantColumn, fold_constant_column
from mdlearn.solvers.common.matrix_free_augmented_lagrangian import MatrixFreeAugmentedLagrangian
from mdlearn.solvers.common.primal_dual import PrimalDual
from mdlearn.solvers.common.warm_start import warm_start_ascent
from mdlearn.solvers.coordinate_descent.centred_rows import CentredDual
from mdlearn.solvers.coordinate_descent.compiled_dual import FINISH_WIDTH, GramDual, RowDual
from mdlearn.solvers.coordinate_descent.gauss_seidel import gauss_seidel_descent, suits_gauss_seidel
from mdlearn.solvers.dual_hessian.variance_reduced import (
    VarianceReducedGram,
    variance_reduced_gram,
    variance_reduced_key,
)
from mdlearn.solvers.systems.operations import (
    NARROW_COLUMNS,
    STEPS_OF_A_FIT,
    STIFF_BOX,
    cheap_step_operations,
    is_nearly_hard,
    kernel_stiffness,
    second_order_operations,
    step_operations,
)
from mdlearn.solvers.systems.row_and_gram import RowSystem
from mdlearn.solvers.systems.system_choice import prefers_block_system
from mdlearn.solvers.working_set.initialise import (
    can_initialise_without_gram,
    can_initialise_working_sets,
    initialise_working_sets,
)
from mdlearn.solvers.working_set.stacked_pairs import ascend_stacked_pairs, suits_stacked_pairs

SWEEPS_BEFORE_NEWTON, SWEEPS_PER_ROUND = 5, 10
NEWTON_STEPS_PER_ROUND = 6
"""Most Newton steps of a round; the first rounds take fewer, while the wrong rows are still free."""
GRAM_ROWS = 2000
"""Rows up to which explicit rows go through their Gram matrix: Newton on the free set is then always affordable."""
DENSE_ENTRY = 5000.0
"""Operations of all sweeps over an entry of dense rows, per second-order step that they replace: columns (or rows) up
to which these are cheaper."""
ROW_VISIT = 2.0
"""Operations of all sweeps over a row beside those on its entries, per second-order step."""
CONTRAST_OPERATIONS = 1e8
"""Operations of a second-order step from which sweeps over contrasts of classes are cheaper: they crawl there."""
RUNAWAY_GROWTH = 1e16
"""Growth of the objective over the least so far that only a Gram matrix lost in rounding explains."""
ROUNDED_GAP = 1e-8
"""Gap below which rounding has ended the rounds; above, they crawl on columns of very different scale."""
STALL_ROUNDS = 20
"""Rounds without progress after which rounding is taken to be reached."""
BIAS_CYCLE_ROUNDS = 5
"""Rounds in which the gap is not halved after which a free bias is taken to go round in circles."""
SPARSE_ROWS, GRAM_MATRIX, COEFFICIENTS, DENSE_ROWS = "sparse rows", "Gram matrix", "coefficients", "dense rows"
"""What coordinate descent goes over."""


class CoordinateDescent(Solver):
    """Dual coordinate descent with random permutations (``solver="cd"``)."""

    name: ClassVar[str] = "cd"
    purpose: ClassVar[str] = (
        "declared hinge terms: every kernel, dense rows, sparse rows in O(nnz); a free bias not on many dense rows"
    )
    options: ClassVar[dict[str, Any]] = {"shrinking": True, "cache": math.inf}
    offsets: ClassVar[bool] = True
    by_row: ClassVar[bool] = True
    merges_equal_rows: ClassVar[bool] = True
    takes_tol: ClassVar[bool] = True

    def refusal(self, form: MarginForm) -> str | None:
        """A free bias couples all coordinates by an equality; sparse sweeps take that, but no constraint or ridge.

        Sweeps over a Gram matrix take it too; where it makes them go round in circles, another engine follows
        (`mdlearn.solvers.auto.FOLLOWERS`).
        """
        general = super().refusal(form)
        if general is not None:
            return general
        way = _way_of_descent(form)
        if way != SPARSE_ROWS:
            held = form.bias != "free" or way != DENSE_ROWS
            return None if held else "it cannot keep the equality constraint of bias='free'"
        if any(column.hard for column in form.columns):
            return "its sweeps over sparse rows need a finite C"
        if form.offsets:
            return "its sweeps over sparse rows know no targets of regression"
        return "its sweeps over sparse rows need a ridge of ones" if form.scaled else None

    def claims(self, form: Any) -> Claim | None:
        """Sweeps, in units of the second-order steps that they replace; none where they crawl."""
        if self.refusal(form) is not None or (not form.kinds and _way_of_descent(form) == COEFFICIENTS):
            return None
        features = form.features
        if not isinstance(features, LinearFeatures):
            if "hinge" not in form.kinds or kernel_stiffness(form) > STIFF_BOX:
                return None
            # Rows at their bounds are left out of the systems.
            told = "kernel: one Gram matrix, cheap sweeps"
            return Claim(0.5 * STEPS_OF_A_FIT * step_operations(form), told)
        rows, told = features.rows, "sparse rows with many columns: O(nnz) per update"
        blocks = rows.sparse and prefers_block_system(form)
        if not rows.sparse:
            if form.bias == "free":
                return None
            step = DENSE_ENTRY * rows.n_entries
            told = "explicit rows with many columns: matrices of that size cost too much"
        elif isinstance(rows, ContrastRows):
            step, told = CONTRAST_OPERATIONS, "large joint problem of several classes: O(nnz) per update"
        elif (rows.coupled if blocks else features.width) <= NARROW_COLUMNS or is_nearly_hard(form):
            return None
        elif blocks:
            step = (DENSE_ENTRY if form.kinds <= {"squared"} else NARROW_COLUMNS) * rows.n_entries
        else:
            step = cheap_step_operations(rows)
        return Claim(second_order_operations(form) * (step + ROW_VISIT * features.n_rows), told)

    def reaches(self, form: MarginForm) -> bool:
        """Sweeps over the coefficients of a quadratic take forever where the ridge is small."""
        return _way_of_descent(form) != COEFFICIENTS

    def takes_stack(self, stack: PairStack, options: dict[str, Any], tol: float) -> bool:
        """Small pairs over a kernel matrix that the option `cache` has room for."""
        return suits_stacked_pairs(stack, tol) and 8.0 * stack.features.n_rows**2 <= options["cache"]

    def check_memory(self, form: MarginForm, at_once: int = 1) -> None:
        """Ask for a Gram matrix, what stands beside it and a matrix per column; or for whitened copies of the rows."""
        m, width, way = form.features.n_rows, form.features.width, _way_of_descent(form)
        if way == COEFFICIENTS:
            size, what = at_once * 8.0 * (width + 1) ** 2, f"a matrix of {width} columns"
            memory.require(size, what, "use a smaller basis", at_once)
        elif way == GRAM_MATRIX:
            matrices = _descent_gram_matrices(form, at_once)
            memory.require(
                8.0 * matrices * m * m,
                f"a kernel problem with {m} rows ({matrices} matrices of {m} x {m})",
                memory.FEWER,
                at_once,
            )
        elif way == DENSE_ROWS and form.varied:
            if 8.0 * m * width > COPY_BYTES:
                raise InsufficientMemory(
                    f"a whitened copy of {m} x {width} values needs {8e-9 * m * width:.3g} GB but may take "
                    f"{1e-9 * COPY_BYTES:.3g} GB; use solver='interior'"
                )
            size, what = at_once * (16.0 * width**2 + 8.0 * m * width), f"whitening {width} columns"
            memory.require(size, what, "use solver='interior' or lambda1=0", at_once)

    def require_memory(self, form: MarginForm, options: dict[str, Any], at_once: int) -> None:
        """Ask for matrices over the rows of a kernel within the option `cache` alone."""
        m = form.features.n_rows
        by_gram = _way_of_descent(form) == GRAM_MATRIX
        size = 8.0 * _descent_gram_matrices(form, at_once) * m * m if by_gram else 0.0
        if size > options["cache"]:
            raise ValueError(
                f"solver option cache={options['cache']:g} is too small for the matrices of {m} rows; they need "
                f"{math.ceil(size)} bytes, solver='decomposition' needs none"
            )
        super().require_memory(form, options, at_once)

    def check_options(self, given: dict[str, Any]) -> dict[str, Any]:
        """`shrinking`: whether inner sweeps visit only rows that can still move; `cache`: bytes of Gram matrices."""
        options = super().check_options(given)
        options["cache"] = check_number(options["cache"], "solver option cache", low=memory.LEAST_CACHE_BYTES)
        if not isinstance(options["shrinking"], (bool, np.bool_)):
            raise TypeError(f"solver option shrinking needs to be True or False; got {options['shrinking']!r}")
        return options

    def prepare(self, form: MarginForm, options: dict[str, Any]) -> Generator[None, None, Any]:
        """Return the Gram matrix and the reduced one of the first column; of sparse rows, the form to sweep over."""
        if isinstance(form, PairStack):
            return (yield from form.features.gram())
        way = _way_of_descent(form)
        if way != GRAM_MATRIX:
            assert isinstance(form.features, LinearFeatures)
            if way == SPARSE_ROWS:
                yield from form.features.rows.written()
            elif way == COEFFICIENTS:
                yield from form.features.computed()
            return fold_constant_column(form) if way == SPARSE_ROWS else None
        constant, first = float(form.bias == "regularized"), form.columns[0]
        if can_initialise_without_gram(form):
            return VarianceReducedGram(None, constant)
        G = yield from form.features.gram()
        if len(form.columns) == 1 and can_initialise_working_sets(form, first):
            return VarianceReducedGram(G, constant)
        try:
            R = yield from variance_reduced_gram(G, constant, first.kappa, first.counts)
        except NotPositiveDefinite:
            return VarianceReducedGram(G, constant)
        return VarianceReducedGram(G, constant, variance_reduced_key(first), R)

    def prepare_next(
        self, form: MarginForm, options: dict[str, Any], before: Any, left: int
    ) -> Generator[None, None, Any]:
        """Return the Gram matrix of before, with an R that costs one product."""
        alone = before is None and left == 1
        if alone or _way_of_descent(form) != GRAM_MATRIX or can_initialise_without_gram(form):
            return (yield from self.prepare(form, options))
        if not isinstance(before, VarianceReducedGram) or before.G is None:
            before = VarianceReducedGram((yield from form.features.gram()), float(form.bias == "regularized"))
        found = yield from before.next(form.columns[0], left)
        return (yield from self.prepare(form, options)) if found is None else found

    def iterate(
        self,
        form: MarginForm,
        column: Column,
        shared: Any,
        options: dict[str, Any],
        rng: np.random.Generator,
        tol: float = 0.0,
    ) -> Steps:
        """Yield a report per round; return whether second-order steps over all rows would get further."""
        if isinstance(form, PairStack):
            return (yield from ascend_stacked_pairs(form, tol))
        way = _way_of_descent(form)
        if way == COEFFICIENTS:
            return (yield from gauss_seidel_descent(form, column, rng))
        if way == SPARSE_ROWS:
            return (yield from _descend_on_sparse_rows(form, column, shared, rng))
        dual: GramDual | RowDual
        if shared is not None:
            work = None
            if shared.G is None and not can_initialise_without_gram(form):
                shared = VarianceReducedGram((yield from form.features.gram()), shared.constant)
            if can_initialise_working_sets(form, column):
                work = yield from initialise_working_sets(form, column, shared, rng, tol)
            if work is not None:
                yield from work.run()
            if shared.G is None:
                shared = VarianceReducedGram((yield from form.features.gram()), shared.constant)
            try:
                hessian = yield from shared.hessian(column)
            except NotPositiveDefinite:  # a kernel of so large values that a variance's 1 is lost beside them
                return True
            dual = GramDual(form, column, hessian)
            if work is not None:
                dual.begin(work.beta(), work.b)
        else:
            dual = yield from RowDual.start(form, column)
        known = None if shared is not None and work is not None else warm_start_ascent(dual)
        if known is not None:
            yield known
        movable = np.flatnonzero(column.caps.ravel() > 0)
        inner = SWEEPS_PER_ROUND if options["shrinking"] else 0
        best, highest, least, stalled, sweeps, rounds = np.inf, -np.inf, np.inf, 0, SWEEPS_BEFORE_NEWTON, 0
        # Sweeps have little to add where working sets were given up.
        free = form.bias == "free" or (shared is not None and work is not None)
        crawls = shared is not None and len(column.terms) > 1  # where the kinks of a row are near
        if known is not None:
            sweeps, rounds = 1, 2
        while stalled < (BIAS_CYCLE_ROUNDS if free else STALL_ROUNDS):
            for _ in range(sweeps):
                yield from dual.sweep(rng.permutation(movable))
            active = dual.movable()
            for _ in range(inner):
                yield from dual.sweep(rng.permutation(active))
            yield from dual.newton(min(rounds, NEWTON_STEPS_PER_ROUND))
            report = dual.report()
            yield report
            if not movable.shape[0]:
                return free  # no multiplier answers a move of the bias
            least = min(least, abs(report.objective))
            if report.objective > RUNAWAY_GROWTH * least:
                return True
            gap = column.relative_gap(report.objective, report.lower_bound)
            # Without a free bias sweeps never lower the dual value: as long as it rises, the gap will follow, some day.
            rising = not (free or crawls) and report.lower_bound > highest + 1e-10 * abs(highest)
            stalled = 0 if rising or gap < (0.5 if free else 0.99) * best else stalled + 1
            best, highest, sweeps = min(best, gap), max(highest, report.lower_bound), 1
            rounds += 1
        explicit = isinstance(form.features, LinearFeatures)
        if not free and explicit and form.features.width <= FINISH_WIDTH:
            yield from _finish_coordinate_descent(form, column, report.point)
        return free or best > ROUNDED_GAP


def _descend_on_sparse_rows(
    form: MarginForm, column: Column, other: FoldedConstantColumn | None, rng: np.random.Generator
) -> Steps:
    """Sweep of the coordinate descent solver over sparse rows; a missing loss becomes one that weighs nothing."""
    known = len(column.terms)
    if not known:
        column = replace(column, terms=(HingeTerm(0.0),))
    if other is not None:
        start = None if column.start is None else other.start_of(column.start)
        form, column = other.form, replace(column, start=start)
    first = CentredDual(form, column)

    def unfolded_report(report: Report | None, row_dots: int) -> Report | None:
        if report is None:
            return None
        point = replace(report.point, beta=report.point.beta[:known])
        return replace(report, point=point if other is None else other.unfolded(point), row_dots=row_dots)

    for report in first.run(rng):
        yield unfolded_report(report, first.visited)
    second = MatrixFreeAugmentedLagrangian(form, column, first.beta, first.coef(), first.intercept())
    for report in second.run():
        yield unfolded_report(report, first.visited + second.passes * column.y.shape[0])


def _finish_coordinate_descent(form: MarginForm, column: Column, point: Point) -> Steps:
    """Finish of the coordinate descent solver by rows on the active set: where sweeps crawl, that is often known."""
    system = RowSystem(form, column)
    yield from system.setup()
    assert point.coef is not None
    element = np.append(point.coef, point.intercept) if system.bias else point.coef
    free = (point.beta > 0) & (point.beta < column.caps)
    yield from ActiveSet(PrimalDual(form, column, system)).attempt(element, point.beta, free)


def _way_of_descent(form: MarginForm) -> str:
    """Return what the coordinate descent solver goes over.

    Centred sparse rows where they are so many that a Gram matrix costs more; the Gram matrix of kernels, and of few
    explicit rows; the coefficients where there is no loss, and so no dual to ascend; else whitened dense rows.
    """
    features = form.features
    explicit = isinstance(features, LinearFeatures)
    if explicit and features.rows.sparse and features.n_rows > GRAM_ROWS:
        return SPARSE_ROWS
    by_gram = not explicit or features.n_rows <= max(GRAM_ROWS, features.width)
    if not form.kinds and (by_gram or form.bias != "free") and suits_gauss_seidel(form):
        return COEFFICIENTS
    return GRAM_MATRIX if by_gram else DENSE_ROWS


def _descent_gram_matrices(form: MarginForm, at_once: int) -> int:
    """Return how many matrices of the Gram matrix's size the coordinate descent solver takes at most."""
    # R (and one more while it is made) is shared; a column with another key, or a bias in R, has its own. The matrix of
    # a face is over multipliers: every term of a row has one.
    alike = not form.varied or len({variance_reduced_key(column) for column in form.columns}) == 1
    held = form.bias == "free" and form.varied
    face = max([len(column.terms) for column in form.columns]) ** 2
    return 2 + (face if alike and not held else face + 1) * at_once
