"""Solver "hybrid": dual coordinate ascent while it is cheapest, then semismooth Newton steps to the end.

Coordinate ascent reaches two or three digits in a few sweeps, and crawls afterwards; Newton steps cost the more the
farther they begin. Counted operations say when to change, never a clock: the same bits on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.csr_rows import CsrRows, worth_csr_copy
from mdlearn.data.rows.distinct import EqualRows, equal_rows
from mdlearn.data.rows.rows import COPY_BYTES, DenseRows
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.forms.proof import proven_gap
from mdlearn.numerics import memory
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.numerics.interruptible import with_heartbeat
from mdlearn.numerics.lazy_property import kept
from mdlearn.solvers.base import Claim, Offer, Report, Solver, Steps
from mdlearn.solvers.hybrid import newton_start
from mdlearn.solvers.hybrid.descent import HybridDescent
from mdlearn.solvers.hybrid.loss_column import (
    NARROW_COLUMNS,
    NARROW_ENTRIES,
    SMOOTH_NARROW_COLUMNS,
    VISIT_OPERATIONS,
    LossColumn,
    LossColumnParts,
    suits_narrow_loss_column,
)
from mdlearn.solvers.hybrid.metric import metric_fits
from mdlearn.solvers.hybrid.narrow import (
    ITERATED_COLUMNS,
    ITERATED_ENTRIES,
    NarrowHinges,
    NarrowLogisticSteps,
    NarrowSteps,
    narrow_whitening_pays,
    suits_iterated_steps,
    suits_steps_on_squared_hinges,
    sweeps_beat_narrow_steps,
)
from mdlearn.solvers.hybrid.row_envelopes import LARGEST_MATRIX
from mdlearn.solvers.hybrid.semismooth import SemismoothNewton
from mdlearn.solvers.hybrid.smooth import PRECONDITIONER_COLUMNS, SmoothNewton
from mdlearn.solvers.hybrid.sweeps import VARIANCE_COLUMNS, sweep_until_newton, sweeps_alone
from mdlearn.solvers.hybrid.whitened_column import (
    MOST_WHITENING,
    WHITENED_COLUMNS,
    whitened_column,
    whitening_pays,
)
from mdlearn.solvers.systems.equal_rows import column_of_equal_rows, report_of_all_rows
from mdlearn.solvers.systems.operations import STEPS_OF_A_FIT, is_nearly_hard
from mdlearn.solvers.systems.scatter import COLUMNS_TOGETHER

LARGE_WEIGHT, STEEPEST, STEEPEST_ROWS = 1e4, 1e9, 1e12
"""Largest products of a loss's weight with |x|^2 at which gaps are reached: of weights beyond the first, and of others.
"""
HYBRID_PASSES = 5
"""Passes over the rows of a usual fit: sweeps, and products of Newton steps."""
GRAM_STEP_ROWS = 500
"""Dense rows, fewer than their columns, up to which steps over a Gram matrix cost less than the conjugate gradients of
a logistic loss."""
MANY_COLUMNS = 400
"""Dense columns from which hinges end with about as many rows on a kink."""
LEAST_REPEATED_ENTRIES, MOST_REPEATED_ENTRIES = 1 << 16, 1 << 21
"""Entries of rows from which equal ones are looked for before a fit, and up to which that takes some milliseconds."""
CACHED_COLUMNS, CACHED_ENTRIES, UNCACHED_ENTRY = 5000, 2e6, 4e4
"""Columns and stored entries of CSR rows up to which they are in the cache, and operations of the whole fit for an
entry beyond: plain sweeps are faster there."""
SMOOTH_VECTORS, HINGE_VECTORS = 16, 8
"""Vectors of coefficients at the same time, at most: in steps on logistic losses, and on hinges."""
STALLED, PROGRESS = 12, 1e-14
"""Places without a smaller objective or a larger bound after which rounding is reached, and what counts as such."""
OFFERS_PER_REPORT, REPORT_OPERATIONS = 10, 2e6
"""Places from one to the next that is reported whatever its gap: at least so many, of sweeps of so many operations."""


class HybridOffers:
    """Offers of the points after sweeps (and Newton steps) of the hybrid solver; every so many-th is a report.

    `tol`: relative gap that is asked for; 0 where the problem is one on the way.
    """

    def __init__(
        self,
        problem: LossColumn,
        to_all_rows: Callable[[Callable[[], Report]], Report] | None = None,
        tol: float = 0.0,
    ) -> None:
        self.to_all_rows, self.tol = to_all_rows, tol
        self.problem, self.at_zero, self.hard, self.count = problem, problem.column.at_zero, problem.column.hard, 0

    @kept
    def per_report(self) -> int:
        """Offers to the next report."""
        sweep = 2.0 * self.problem.stored.n_entries + VISIT_OPERATIONS * self.problem.n_rows
        return max(OFFERS_PER_REPORT, math.ceil(REPORT_OPERATIONS / sweep))

    def offered(
        self, objective: float, lower_bound: float, make: Callable[[], Report], due: bool = False
    ) -> Report | Offer:
        """A place with estimates of its objective and bound."""
        self.count += 1
        if self.to_all_rows is not None:
            make = partial(self.to_all_rows, make)
        if due or (self.count >= OFFERS_PER_REPORT and self.count % self.per_report == 0):
            return make()
        return Offer(make, proven_gap(objective, lower_bound, self.at_zero, self.hard))


class Hybrid(Solver):
    """Hybrid solver: coordinate descent, then semismooth Newton (``solver="hybrid"``)."""

    name: ClassVar[str] = "hybrid"
    purpose: ClassVar[str] = (
        "one hinge, squared hinge or logistic loss a row, explicit rows; a free bias with logistic losses alone"
    )
    kinds: ClassVar[frozenset[str]] = frozenset({"hinge", "squared", "logistic"})
    draws: ClassVar[bool] = False
    by_row: ClassVar[bool] = True
    takes_tol: ClassVar[bool] = True

    def refusal(self, form: Any) -> str | None:
        """Refuse all but explicit rows as arrays, with one term that falls with the margin; return why, or None."""
        general = super().refusal(form)
        if general is not None:
            return general
        features = form.features
        plain = isinstance(features, LinearFeatures) and features.ridge is None
        if not plain or type(features.rows) not in (DenseRows, CsrRows):
            return "it needs the rows themselves, dense or CSR, under a ridge of ones"
        smooth = "logistic" in form.kinds
        if form.bias == "free" and not smooth:
            return "it cannot keep the equality constraint of bias='free'"
        weight = 0.0
        for one in form.columns:
            if len(one.terms) != 1 or one.terms[0].side < 0 or one.terms[0].weight == 0:
                return "it needs one loss a row, of margins that are too small"
            if one.shifts is not None:
                return "it reads one threshold for all rows, and these differ from row to row"
            if smooth and one.kappa > 0:
                return "it takes no variance term beside a logistic loss"
            if one.kappa > 0 and features.width > VARIANCE_COLUMNS and isinstance(features.rows, DenseRows):
                return f"it takes a variance term over at most {VARIANCE_COLUMNS} dense columns"
            weight = max(weight, one.terms[0].weight)
        steepest = STEEPEST if weight > LARGE_WEIGHT else STEEPEST_ROWS
        first = form.columns[0]
        if weight * first.total * features.longest_row**2 < 0.5 * steepest:  # no row weighs as much as all
            return None
        if weight * float((first.counts * features.squares()).max(initial=0.0)) > steepest:
            return f"its multipliers lose their digits where C |x|^2 times a row's weight is beyond {steepest:g}"
        return None

    def claims(self, form: Any) -> Claim | None:
        """A few passes over the rows, and what makes them slow: rows on kinks, few rows, entries beyond the cache."""
        if self.refusal(form) is not None:
            return None
        rows = form.features.rows
        (m, d), entries, smooth = rows.shape, float(rows.n_entries), "logistic" in form.kinds
        operations = 2.0 * HYBRID_PASSES * entries
        if rows.sparse:
            if d > CACHED_COLUMNS and entries > CACHED_ENTRIES and not smooth:
                if form.kinds == {"squared"} and is_nearly_hard(form):
                    return None
                operations = UNCACHED_ENTRY * entries
        elif smooth:
            if m <= min(GRAM_STEP_ROWS, d):
                operations = STEPS_OF_A_FIT * (GRAM_STEP_ROWS * entries + m)
        elif MANY_COLUMNS < d <= m and "hinge" in form.kinds and not form.varied:
            if not worth_csr_copy(rows):
                operations = STEPS_OF_A_FIT * (newton_start.ROWS_PER_COLUMN * float(d) ** 3 + m)
        return Claim(operations, "one hinge or logistic loss a row: coordinate descent, then Newton steps")

    def check_memory(self, form: MarginForm, at_once: int = 1) -> None:
        """Ask for the matrices of a variance term, those of Newton steps, and some numbers a row and a column."""
        m, d = form.features.n_rows, form.features.width
        order = min(m, d + 1, LARGEST_MATRIX)
        copies = 0.0 if form.features.rows.sparse else min(8.0 * m * d, COPY_BYTES)
        smooth = "logistic" in form.kinds
        matrices = 2 if not smooth else 4 if d < PRECONDITIONER_COLUMNS else 0  # else the diagonal
        varied = form.varied
        small = d < WHITENED_COLUMNS and m * (d + 1) ** 2 <= len(form.columns) * MOST_WHITENING
        shared = copies if varied and small else 0.0
        own = 16.0 * m * (d + 1) if varied and metric_fits(m, d + 1) else shared  # twice: whitened rows grow
        narrow = 0.0 if d + 1 > NARROW_COLUMNS else 8.0 * min(m * (d + 1), NARROW_ENTRIES)  # the columns of CSR rows
        # Of what is kept column by column for iterations: a second time, in single precision.
        iterated = smooth and ITERATED_COLUMNS <= d + 1 <= SMOOTH_NARROW_COLUMNS
        narrow += 4.0 * min(m * (d + 1), ITERATED_ENTRIES) if iterated else 0.0
        together = 16.0 * m * min(len(form.columns), COLUMNS_TOGETHER) if varied else 0.0
        numbers = 200.0 * m + 8.0 * (SMOOTH_VECTORS if smooth else HINGE_VECTORS) * d
        if len(form.columns) > 1:
            shared += 64.0 * m  # the records of rows that classes begin with
        size = max(copies, narrow) + shared + together + at_once * (8.0 * matrices * order * order + numbers + own)
        memory.require(size, f"solver {self.name!r} on {m} rows", memory.FEWER, at_once)

    def prepare(self, form: MarginForm, options: dict[str, Any]) -> Generator[None, None, Any]:
        """Return what columns share: the squared lengths of the rows, and rows without zeros."""
        return (yield from self.prepare_next(form, options, None, 1))

    def prepare_next(
        self, form: MarginForm, options: dict[str, Any], before: Any, left: int
    ) -> Generator[None, None, Any]:
        """Return what the form before had, where it serves this one; else as `prepare`."""
        sweeps = "logistic" not in form.kinds
        if isinstance(before, LossColumnParts) and before.bias == form.bias and before.sweeps >= sweeps:
            equal = before.equal
            if equal is None or (_may_merge(form) and all(equal.level(one.y) for one in form.columns)):
                return before
        assert isinstance(form.features, LinearFeatures)
        rows, squares, border = form.features.rows, form.features.squares(), form.bias != "none"
        equal = _equal_rows(form)
        if equal is None:
            return LossColumnParts(AffineRows(rows, border), squares, form.bias, sweeps, form.columns)
        some = AffineRows(rows.take(equal.where), border)
        parts = LossColumnParts(some, squares[equal.where], form.bias, sweeps)
        parts.equal = equal
        return parts
        yield  # what makes this a generator

    def iterate(
        self,
        form: MarginForm,
        column: Column,
        shared: LossColumnParts,
        options: dict[str, Any],
        rng: np.random.Generator,
        tol: float = 0.0,
    ) -> Steps:
        """Offer a place per sweep and Newton step, and report some of them."""
        to_all_rows = None
        if shared.equal is not None:
            to_all_rows = partial(report_of_all_rows, column, shared.equal)
            column = column_of_equal_rows(column, shared.equal)
        problem = LossColumn(column, shared.rows, shared.squares, shared.stored, shared.factors, shared)
        places = HybridOffers(problem, to_all_rows, tol)
        narrow = suits_narrow_loss_column(shared.rows, column.terms[0].kind == "logistic")
        narrow = narrow or suits_iterated_steps(problem) or suits_steps_on_squared_hinges(problem)
        if narrow and not (column.kappa > 0 and narrow_whitening_pays(problem, len(form.columns), tol)):
            return _hybrid_newton_steps(_hybrid_narrow_steps(problem, shared, places), places)
        return _hybrid_newton_steps(self._wide(form, problem, shared, places), places)

    def _wide(
        self, form: MarginForm, problem: LossColumn, shared: LossColumnParts, places: HybridOffers
    ) -> Generator[Report | Offer | None, Any, SemismoothNewton | SmoothNewton]:
        """Where Newton steps over rows of many columns begin."""
        if problem.column.terms[0].kind == "logistic":
            problem.quadratic = yield from shared.quadratic(problem.column)
            return (yield from newton_start.logistic_newton_start(problem))
        if whitening_pays(problem, len(form.columns), places.tol):
            problem = yield from whitened_column(problem, shared)
        return (yield from self._through_weaker(problem, shared, places))

    def _through_weaker(
        self, problem: LossColumn, shared: LossColumnParts, places: HybridOffers
    ) -> Generator[Report | Offer | None, Any, SemismoothNewton]:
        """Where Newton steps begin: for squared hinges that are nearly a hard margin, at optima of weaker ones.

        Places on the way are offered: it may be long, and each is worth more than w = 0.
        """
        levels = newton_start.newton_start_losses(problem)
        if not levels:
            return (yield from self._begin(problem, shared, places))
        begun = yield from with_heartbeat(self._begin(levels[0], shared, HybridOffers(levels[0])), None)
        quadratic, sum_of_free = begun.problem.quadratic, begun.sum
        for one in (*levels[1:], problem):
            problem.quadratic = one.quadratic = quadratic
            here = SemismoothNewton(problem, begun.w, np.zeros(problem.n_rows), 0.0, begun.alpha)
            here.iterated = begun.iterated
            yield places.offered(here.objective, here.lower_bound, here.report)
            yield from newton_start.newton_steps_for_start(begun, newton_start.SAMPLE_GAP)
            iterated = begun.iterated
            begun = SemismoothNewton(one, begun.w, np.zeros(one.n_rows), 0.0, begun.alpha)
            begun.sum, begun.factored, begun.iterated = sum_of_free, True, iterated
        return begun

    def _begin(
        self, problem: LossColumn, shared: LossColumnParts, places: HybridOffers
    ) -> Generator[Report | Offer | None, Any, SemismoothNewton]:
        """Where Newton steps begin: at a start, at a sample's solution, or where coordinate ascent leaves off."""
        column, begun = problem.column, None
        if (column.start is not None and not sweeps_alone(problem)) or newton_start.newton_start_beats_sweeps(problem):
            problem.quadratic = yield from shared.quadratic(column)
            if column.start is not None:
                return newton_start.warm_newton_start(problem)
            begun = yield from newton_start.newton_start_from_samples(problem)
        if begun is not None:
            return begun
        descent = HybridDescent(problem, partial(shared.quadratic, column), places.tol)
        yield from sweep_until_newton(descent, places.offered)
        if sweeps_alone(problem):
            raise NotPositiveDefinite(f"beside a variance term steps are for at most {VARIANCE_COLUMNS} columns")
        problem.quadratic = descent.quadratic or (yield from shared.quadratic(column))
        return SemismoothNewton(problem, *newton_start.newton_start_after_sweeps(descent))


def _may_merge(form: MarginForm) -> bool:
    """Whether equal rows may be one for the hybrid solver: terms know no rows, and none is too steep for all weight."""
    assert isinstance(form.features, LinearFeatures)
    weight = max(one.terms[0].weight for one in form.columns)
    plain = all(one.by_row is None and one.offset is None for one in form.columns)
    return plain and weight * form.columns[0].total * form.features.longest_row**2 < 0.5 * STEEPEST


def _equal_rows(form: MarginForm) -> EqualRows | None:
    """Groups of rows that are equal in all columns of a form, where these are few enough."""
    searched = LEAST_REPEATED_ENTRIES <= form.features.rows.n_entries <= MOST_REPEATED_ENTRIES
    if not searched or len(form.columns) > COLUMNS_TOGETHER or not _may_merge(form):
        return None
    return equal_rows(form.features.rows, [one.y for one in form.columns])


def _hybrid_narrow_steps(
    problem: LossColumn, shared: LossColumnParts, places: HybridOffers
) -> Generator[Report | Offer | None, Any, NarrowSteps]:
    """Where compiled steps over narrow rows begin: at a start, at 0, or where sweeps leave off."""
    column, begun = problem.column, None
    if column.terms[0].kind == "logistic":
        return NarrowLogisticSteps(problem, shared.narrow, shared.bias == "free")
    if sweeps_beat_narrow_steps(problem, places.tol):
        descent = HybridDescent(problem, partial(shared.quadratic, column), places.tol)
        yield from sweep_until_newton(descent, places.offered)
        begun = newton_start.newton_start_after_sweeps(descent)
    return NarrowHinges(problem, shared.narrow, begun)


def _hybrid_newton_steps(
    begun: Generator[Report | Offer | None, Any, SemismoothNewton | SmoothNewton | NarrowSteps],
    places: HybridOffers,
) -> Steps:
    """Offer the hybrid solver's point where Newton steps begin, and after each; end where they lead on no more."""
    lowest, highest, stalled = math.inf, -math.inf, 0
    try:
        newton = yield from begun
        make, objective, bound = newton.report, newton.objective, newton.lower_bound
        yield places.offered(objective, bound, make)
        for new in newton.steps(places.tol):
            if not new:
                yield None
                continue
            objective, bound = newton.objective, newton.lower_bound
            yield places.offered(objective, bound, make)
            # Bounds fall when multipliers move on, and rise again: the gap alone says nothing.
            level = PROGRESS * abs(objective)
            progress = objective < lowest - level or bound > highest + level
            stalled = 0 if progress else stalled + 1
            lowest, highest = min(lowest, objective), max(highest, bound)
            if stalled >= STALLED:
                break
        yield places.offered(newton.objective, newton.lower_bound, make, due=True)
    except NotPositiveDefinite:
        return
