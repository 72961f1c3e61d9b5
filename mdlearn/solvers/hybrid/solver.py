"""Dual coordinate ascent while it is cheapest, then semismooth Newton steps to the end.

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
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import COPY_BYTES, DenseRows
from mdlearn.forms.certificates.primal import objective_at
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.numerics import memory
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.solvers.base import Offer, Report, Solver, Steps
from mdlearn.solvers.common.warm_start import guesses
from mdlearn.solvers.hybrid.column import OPERATION_ON_MATRIX, LossColumn, SharedParts
from mdlearn.solvers.hybrid.descent import VISIT_OPERATIONS, DualDescent
from mdlearn.solvers.hybrid.semismooth import LARGEST_MATRIX, SemismoothNewton
from mdlearn.solvers.hybrid.smooth import SmoothNewton

VARIANCE_COLUMNS = 2000
"""Columns up to which Newton steps are taken beside a variance term: its matrix is explicit."""
ROWS_PER_COLUMN, SAMPLE = 40, 8
"""Rows per column from which every so many-th row tells where to begin."""
SAMPLE_STEPS, SAMPLE_GAP, HINGE_SAMPLE_GAP = 12, 1e-2, 1e-3
"""Most steps on a sample, and the gap at which they end."""
STEEPNESS, FLAT_STEEPNESS, FLAT = 2.0, 8.0, 2.0
"""Steepness of the first envelopes, per cap: around half the caps, and where caps times |x|^2 are below the last."""
SAMPLED_ROWS = 4
"""Rows per column of the smallest sample that Newton steps begin on."""
DESCENT_STEEPNESS, VARIED_STEEPNESS = 20.0, 5.0
"""Cap times |x|^2 above which coordinate ascent is not worth its sweeps beside a sample; with a variance term."""
ASCENT_VISITS = 30
"""Visits of every row that coordinate ascent is taken to need beside a variance term."""
SMALL_COLUMNS = 40
"""Columns of small problems up to which steps on steep losses are cheaper than sweeps."""
SMALL_STEEPNESS, SMALL_CURVED_STEEPNESS = 5.0, 0.5
"""Cap times |x|^2 above which they are: on hinges over dense rows (time ratios of 0.67 to 0.97 on 15 of 19 sets, up to
1.5 on tic_tac_toe), on squared ones or with a variance (sweeps: 0.69 to 1.09 of the time below, 0.86 to 1.46 above)."""
WEAKER, NEARLY_HARD, WIDE = (1e-3, 1e-2, 0.1), 1e5, 100
"""Shares of the weight of squared hinges whose optima lead to that of all of it, where a margin moves by so much as its
multiplier grows by the weight (`_reach`), and columns from which that is so hard: steps from elsewhere are cut short by
rows that come and go. On four classes of mnist 134 steps instead of 243; with few columns steps are few anyway."""
DESCENT_PASSES = 10.0
"""Passes over the rows that a step on squared hinges may cost before coordinate ascent is the better beginning."""
AT_CAP = 0.02
"""Share of the sample's rows at their cap below which classes are nearly separable, and ascent is the better start."""
SPANNED, MOST_STEEPNESS = 2, 1000.0
"""Rows that slopes span where Newton steps begin, per free row and column, and the steepness at most, per cap."""
STEPS_AHEAD, SOFT_STEPS_AHEAD = 8, 4
"""Newton steps, and passes over the rows, that the end is taken to cost; of squared hinges."""
CHEAP_DIGIT = 0.25
"""Share of that end's cost which a digit may have once coordinate ascent has cost as much."""
EARLY = 0.3
"""Share of it up to which coordinate ascent may go on where bounds rise evenly, as they do at first."""
SWEEPS_BEFORE = 5
"""Sweeps until their rate is judged: by the rises of the bound in the last two and in the two before."""
MOST_SWEEPS, CRAWL_SWEEPS, CRAWL_SHARE = 1000, 20, 0.01
"""Sweeps, where no Newton steps follow, after which they crawl: so many, or the second number that close less than the
share of the gap. On reuters_moneyfx at C = 10 they close 0.2 % of it, from 3e-5 on."""
OVERHEAD_OPERATIONS, SMALL_OVERHEAD_OPERATIONS = 1e5, 3e4
"""What a step costs beside its work on rows and matrices, in operations on entries: the interpreter, or a call."""
HEARTBEAT_OPERATIONS = 1e7
"""Operations of sweeps between two heartbeats."""
OFFERS_PER_REPORT, REPORT_OPERATIONS = 10, 2e6
"""Places from one to the next that is reported whatever its gap: at least so many, of sweeps of so many operations."""
LARGE_WEIGHT, STEEPEST, STEEPEST_ROWS = 1e4, 1e9, 1e12
"""Largest products of a loss's weight with |x|^2 at which gaps are reached: of weights beyond the first, and of others.
"""
STALLED, PROGRESS = 12, 1e-14
"""Places without a smaller objective or a larger bound after which rounding is reached, and what counts as such."""


class Hybrid(Solver):
    """Coordinate descent, then semismooth Newton (``solver="hybrid"``)."""

    name: ClassVar[str] = "hybrid"
    purpose: ClassVar[str] = (
        "one hinge, squared hinge or logistic loss a row, explicit rows; a free bias with logistic losses alone"
    )
    kinds: ClassVar[frozenset[str]] = frozenset({"hinge", "squared", "logistic"})
    draws: ClassVar[bool] = False

    def refusal(self, form: Any) -> str | None:
        """What it takes are explicit rows as arrays, and one term that falls with the margin."""
        general = super().refusal(form)
        if general is not None:
            return general
        features = form.features
        if not isinstance(features, LinearFeatures) or type(features.rows) not in (DenseRows, CsrRows) or form.scaled:
            return "it needs the rows themselves, dense or CSR, under a ridge of ones"
        smooth = "logistic" in form.kinds
        if form.bias == "free" and not smooth:
            return "it cannot keep the equality constraint of bias='free'"
        wide = features.width > VARIANCE_COLUMNS and isinstance(features.rows, DenseRows)
        weight = 0.0
        for one in form.columns:
            if len(one.terms) != 1 or one.terms[0].side < 0 or one.terms[0].weight == 0:
                return "it needs one loss a row, of margins that are too small"
            if smooth and one.kappa > 0:
                return "it takes no variance term beside a logistic loss"
            if wide and one.kappa > 0:
                return f"it takes a variance term over at most {VARIANCE_COLUMNS} dense columns"
            weight = max(weight, one.terms[0].weight)
        steepest = STEEPEST if weight > LARGE_WEIGHT else STEEPEST_ROWS
        if weight * float(features.squares().max(initial=0.0)) > steepest:
            return f"its multipliers lose their digits where C |x|^2 is beyond {steepest:g}"
        return None

    def check_memory(self, form: MarginForm, at_once: int = 1) -> None:
        """Ask for the matrices of a variance term, those of Newton steps, and some numbers a row."""
        m, d = form.features.n_rows, form.features.width
        order = min(m, d + 1, LARGEST_MATRIX)
        copies = 0.0 if form.features.rows.sparse else min(8.0 * m * d, COPY_BYTES)
        size = copies + at_once * (16.0 * order * order + 200.0 * m)
        memory.require(size, f"solver {self.name!r} on {m} rows", memory.FEWER, at_once)

    def prepare(self, form: MarginForm, options: dict[str, Any]) -> Generator[None, None, Any]:
        """Return what columns share: the squared lengths of the rows, and rows without zeros."""
        assert isinstance(form.features, LinearFeatures)
        features = form.features
        rows = AffineRows(features.rows, form.bias != "none")
        return SharedParts(rows, features.squares(), form.bias, "logistic" not in form.kinds)
        yield  # what makes this a generator

    def prepare_next(
        self, form: MarginForm, options: dict[str, Any], before: Any, left: int
    ) -> Generator[None, None, Any]:
        """Return what the form before had, where it serves this one."""
        sweeps = "logistic" not in form.kinds
        if not isinstance(before, SharedParts) or before.bias != form.bias or before.sweeps < sweeps:
            return (yield from self.prepare(form, options))
        return before

    def iterate(
        self, form: MarginForm, column: Column, shared: SharedParts, options: dict[str, Any], rng: np.random.Generator
    ) -> Steps:
        """Offer a place per sweep and Newton step, and report some of them."""
        try:
            problem = LossColumn(column, shared.rows, shared.squares, shared.stored)
            places = OfferedPlaces(problem)
            if column.terms[0].kind == "logistic":
                problem.quadratic = yield from shared.quadratic(column)
                yield from _smooth(problem, places)
                return
            begun = yield from self._through_weaker(problem, shared, places)
            yield from _finish(begun, places)
        except NotPositiveDefinite:
            return

    def _through_weaker(
        self, problem: LossColumn, shared: SharedParts, places: OfferedPlaces
    ) -> Generator[Report | Offer | None, Any, SemismoothNewton]:
        """Where Newton steps begin: for squared hinges that are nearly a hard margin, at optima of weaker ones."""
        levels = [problem.weaker(share) for share in WEAKER] if _nearly_hard(problem) else []
        if not levels:
            return (yield from self._begin(problem, shared, places))
        begun = yield from _unseen(self._begin(levels[0], shared, OfferedPlaces(levels[0])))
        quadratic, sum_of_free = begun.problem.quadratic, begun.sum
        for one in (*levels[1:], problem):
            yield from _some_steps(begun, SAMPLE_GAP)
            one.quadratic = quadratic
            begun = SemismoothNewton(one, begun.w, one.caps, 0.0, begun.alpha)
            begun.sum = sum_of_free
        return begun

    def _begin(
        self, problem: LossColumn, shared: SharedParts, places: OfferedPlaces
    ) -> Generator[Report | Offer | None, Any, SemismoothNewton]:
        """Where Newton steps begin: at a start, at a sample's solution, or where coordinate ascent leaves off."""
        column, begun = problem.column, None
        if (column.start is not None and not _sweeps_alone(problem)) or _steps_first(problem):
            problem.quadratic = yield from shared.quadratic(column)
            if column.start is not None:
                return _started(problem)
            begun = yield from _of_samples(problem) if problem.soft else _of_a_sample(problem)
        if begun is not None:
            return begun
        descent = DualDescent(problem)
        yield from _descend(descent, places)
        if _sweeps_alone(problem):
            raise NotPositiveDefinite(f"beside a variance term steps are for at most {VARIANCE_COLUMNS} columns")
        problem.quadratic = yield from shared.quadratic(column)
        beta, w = descent.beta, descent.element
        alpha = beta if column.kappa == 0 else beta + descent.sigma - column.spread(problem.margins(w))
        steepness = 0.0 if problem.soft else _steepness(problem, w, descent.ascent.n_between)
        return SemismoothNewton(problem, w, beta, steepness, alpha)


def _unseen(
    work: Generator[Report | Offer | None, Any, SemismoothNewton],
) -> Generator[None, None, SemismoothNewton]:
    """The same work, without its places: they are of another problem."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            found: SemismoothNewton = done.value
            return found
        yield None


def _sweeps_alone(problem: LossColumn) -> bool:
    """Whether the matrix of Newton steps would be too large, which beside a variance term is one of columns."""
    return problem.column.kappa > 0 and problem.stored.shape[1] > VARIANCE_COLUMNS


def _steps_first(problem: LossColumn) -> bool:
    """Whether Newton steps on samples, or from 0, are a better beginning than sweeps."""
    m, n, price = problem.n_rows, problem.width, _newton_price(problem)
    if _sweeps_alone(problem):
        return False
    varied, reach = problem.column.kappa > 0, _reach(problem)
    if problem.small and n <= SMALL_COLUMNS and (varied or problem.soft):
        return reach > SMALL_CURVED_STEEPNESS
    if problem.soft:
        return n <= m and price(m) <= DESCENT_PASSES * 2.0 * problem.stored.n_entries
    if m >= ROWS_PER_COLUMN * n:
        far = reach > (VARIED_STEEPNESS if varied else DESCENT_STEEPNESS)
    else:
        visits = ASCENT_VISITS * (2.0 * problem.stored.n_entries + VISIT_OPERATIONS * m)
        far = varied and reach > VARIED_STEEPNESS and STEPS_AHEAD * price(n) <= visits
    return far or (_few_dense(problem) and reach > SMALL_STEEPNESS)


def _nearly_hard(problem: LossColumn) -> bool:
    """Whether squared hinges are nearly the constraints of a hard margin, in many columns."""
    fresh = problem.soft and problem.column.start is None and not problem.small and problem.width >= WIDE
    return fresh and _reach(problem) > NEARLY_HARD


def _few_dense(problem: LossColumn) -> bool:
    """Whether all rows are one small dense block of few columns."""
    return problem.small and problem.width <= SMALL_COLUMNS and isinstance(problem.stored, DenseRows)


def _reach(problem: LossColumn) -> float:
    """By how much the margin of an average row moves when its multiplier reaches its cap; of squared hinges, 1."""
    column = problem.column
    most = column.terms[0].steepest if problem.soft else float(problem.caps.max())
    return most * float(problem.squares @ column.counts) / column.total


def _of_samples(problem: LossColumn) -> Generator[None, None, SemismoothNewton]:
    """Newton steps on squared hinges of samples of growing size."""
    m, n = problem.n_rows, problem.width
    w, alpha = np.zeros(n), problem.nothing
    step = 1 if problem.small else m // (SAMPLED_ROWS * n)
    while step > 2:
        sample = problem.sample(step)
        some = SemismoothNewton(sample, w, sample.caps, 0.0, np.zeros(sample.n_rows))
        yield from _some_steps(some, SAMPLE_GAP)
        alpha = problem.from_sample(alpha, sample, some.alpha, some.kept, step)
        w, step = some.w, step // SAMPLE
    return SemismoothNewton(problem, w, problem.caps, 0.0, alpha)


def _of_a_sample(problem: LossColumn) -> Generator[None, None, SemismoothNewton | None]:
    """Newton steps from a sample's solution, or from 0 where that is as cheap; None where sweeps are better."""
    cap, alpha, varied, n = float(problem.caps.max()), problem.nothing, problem.column.kappa > 0, problem.width
    if _few_dense(problem) or (varied and (problem.small or problem.n_rows < ROWS_PER_COLUMN * n)):
        steepness = STEEPNESS if _reach(problem) > FLAT else FLAT_STEEPNESS
        return SemismoothNewton(problem, np.zeros(n), 0.5 * problem.caps, steepness * cap, alpha)
    sample = problem.sample(SAMPLE)
    some = SemismoothNewton(sample, np.zeros(n), 0.5 * sample.caps, SAMPLE * cap, np.zeros(sample.n_rows))
    yield from _some_steps(some, HINGE_SAMPLE_GAP)
    if not varied and float(np.mean(some.u >= sample.caps)) <= AT_CAP:
        return None
    alpha = problem.from_sample(alpha, sample, some.alpha, some.kept, SAMPLE)
    between = SAMPLE * int(np.count_nonzero((some.u > 0) & (some.u < sample.caps)))
    return SemismoothNewton(problem, some.w, 0.5 * problem.caps, _steepness(problem, some.w, between), alpha)


def _steepness(problem: LossColumn, w: np.ndarray, between: int) -> float:
    """Steepness of envelopes around multipliers that are nearly right: their slopes span the rows next to the kink."""
    cap = float(problem.caps.max())
    rows = min(SPANNED * (between + problem.width), problem.n_rows - 1)
    distance = float(np.partition(np.abs(problem.kink - problem.margins(w)), rows)[rows])
    return min(max(0.5 / distance if distance > 0 else math.inf, STEEPNESS), MOST_STEEPNESS) * cap


class OfferedPlaces:
    """Offers of the places that an engine comes through; every so many-th is a report."""

    def __init__(self, problem: LossColumn) -> None:
        sweep = 2.0 * problem.stored.n_entries + VISIT_OPERATIONS * problem.n_rows
        self.column, self.count = problem.column, 0
        self.per_report = max(OFFERS_PER_REPORT, math.ceil(REPORT_OPERATIONS / sweep))

    def offered(
        self, objective: float, lower_bound: float, make: Callable[[], Report], due: bool = False
    ) -> Report | Offer:
        """A place with estimates of its objective and bound."""
        self.count += 1
        if due or self.count % self.per_report == 0:
            return make()
        return Offer(make, self.column.relative_gap(objective, lower_bound))


def _reported(newton: SemismoothNewton | SmoothNewton) -> Report:
    """Report a place: coefficients with their margins, multipliers, and what the coefficients are made of."""
    problem, w = newton.problem, newton.w
    column = problem.column
    sigma, alpha = column.spread(newton.z), newton.made_of
    split = (w[:-1], float(w[-1])) if problem.rows.constant else (w, 0.0)
    duals = None if alpha is None else column.y * (alpha + sigma + column.pull)
    point = Point(newton.beta.copy()[None], sigma, *split, alpha=duals)
    return Report.estimated(newton.objective, newton.lower_bound, point)


def _descend(descent: DualDescent, places: OfferedPlaces) -> Steps:
    """Sweeps, until Newton steps would be cheaper than one more digit."""
    problem, column, bounds, beat = descent.problem, descent.problem.column, [], 0.0
    least, alone, price_of = math.inf, _sweeps_alone(problem), _newton_price(problem)
    ahead = SOFT_STEPS_AHEAD if problem.soft else STEPS_AHEAD

    def make() -> Report:
        w, beta = descent.element, descent.beta
        z = problem.margins(w)
        value = objective_at(column, z, float(w @ w))[0]
        return Report.estimated(value, descent.lower_bound, Point(beta[None], descent.sigma))

    while True:
        yield from descent.sweep()
        # Margins at visits can say less than the bound does: then that is how far they are off.
        gap = abs(descent.objective - descent.lower_bound)
        yield places.offered(descent.lower_bound + gap, descent.lower_bound, make)
        if descent.operations - beat > HEARTBEAT_OPERATIONS:
            beat = descent.operations
            yield None
        bounds.append(descent.lower_bound)
        steps = ahead * price_of(descent.ascent.n_between)
        least = min(least, descent.objective)
        if len(bounds) < SWEEPS_BEFORE:
            continue
        if alone:
            if len(bounds) >= MOST_SWEEPS:
                return
            left = least - bounds[-1]
            if len(bounds) > CRAWL_SWEEPS and bounds[-1] - bounds[-1 - CRAWL_SWEEPS] < CRAWL_SHARE * left:
                return
            continue
        # Rises of the bound, which never falls: objectives at the margins of visits jump.
        now, before = bounds[-1] - bounds[-3], bounds[-3] - bounds[-5]
        price = descent.operations / len(bounds)
        # At first bounds rise evenly. Steps on squared hinges may begin anywhere: not where that pace is hopeless.
        hopeless = problem.soft and 2.0 * price * (least - bounds[-1]) > now * steps
        if descent.operations < EARLY * steps and not hopeless:
            continue
        rate = 0.5 * math.log(before / now) if before > now > 0 else 0.0 if now > 0 else math.inf
        # One more digit at that rate; once as much is spent as the end costs, it has to be cheap.
        enough = steps if descent.operations <= steps else CHEAP_DIGIT * steps
        if rate * enough < math.log(10.0) * price:
            return


def _newton_price(problem: LossColumn) -> Callable[[int], float]:
    """Operations of a Newton step and of two passes, by the number of its free rows."""
    rows, n, entries = problem.stored, problem.width, problem.stored.n_entries
    varied, sparse, per_row = problem.column.kappa > 0, isinstance(rows, CsrRows), entries / problem.n_rows
    fixed = (SMALL_OVERHEAD_OPERATIONS if problem.small else OVERHEAD_OPERATIONS) + 4.0 * entries

    def price(free: int) -> float:
        order = n if varied else min(free, n)
        if sparse:
            outer = 0.5 * free * per_row * min(float(free), per_row)
        else:
            outer = OPERATION_ON_MATRIX * float(order) * order * max(free, n)
        return fixed + outer + OPERATION_ON_MATRIX * order**3 / 3.0

    return price


def _started(problem: LossColumn) -> SemismoothNewton:
    """Newton steps from a start."""
    column, start = problem.column, problem.column.start
    assert start is not None
    w = _element(problem)
    _, guess = guesses(column, start, problem.margins(w))
    if problem.soft:
        return SemismoothNewton(problem, w, guess[0], 0.0, _made_of(problem))
    between = int(np.count_nonzero((guess[0] > 0) & (guess[0] < problem.caps)))
    return SemismoothNewton(problem, w, guess[0], _steepness(problem, w, between), _made_of(problem))


def _made_of(problem: LossColumn) -> np.ndarray:
    """Numbers that the coefficients of a start are made of; those of 0 where nobody knows them."""
    column, start = problem.column, problem.column.start
    if start is None or start.alpha is None:
        return problem.nothing
    made: np.ndarray = column.y * start.alpha - column.pull
    return made - column.spread(problem.margins(_element(problem))) if column.kappa > 0 else made


def _element(problem: LossColumn) -> np.ndarray:
    """Coefficients of a start with its intercept; zeros without one."""
    start = problem.column.start
    if start is None:
        return np.zeros(problem.width)
    return np.append(start.coef, start.intercept) if problem.rows.constant else start.coef.copy()


def _some_steps(newton: SemismoothNewton | SmoothNewton, gap: float) -> Generator[None, None, None]:
    """At most SAMPLE_STEPS steps, to a relative gap."""
    taken = 0
    for new in newton.steps():
        taken += new
        if taken >= SAMPLE_STEPS or (new and newton.gap <= gap * abs(newton.objective)):
            return
        yield None


def _smooth(problem: LossColumn, places: OfferedPlaces) -> Steps:
    """Newton steps on samples of growing size, then on all rows."""
    ridge = problem.quadratic.times(np.ones(problem.width))
    w, alpha = _element(problem), _made_of(problem)
    afresh = problem.column.start is None and not problem.small
    step = problem.n_rows // (SAMPLED_ROWS * w.shape[0]) if afresh else 0
    while step > 2:
        sample = problem.sample(step)
        some = SmoothNewton(sample, ridge, w, np.zeros(sample.n_rows))
        yield from _some_steps(some, SAMPLE_GAP)
        alpha = problem.from_sample(alpha, sample, some.alpha, some.kept, step)
        w, step = some.w, step // SAMPLE
    yield from _finish(SmoothNewton(problem, ridge, w, alpha), places)


def _finish(newton: SemismoothNewton | SmoothNewton, places: OfferedPlaces) -> Steps:
    """Offer every place; end where steps lead on no more."""
    lowest, highest, stalled = math.inf, -math.inf, 0
    make = partial(_reported, newton)
    yield places.offered(newton.objective, newton.lower_bound, make)
    for new in newton.steps():
        if not new:
            yield None
            continue
        yield places.offered(newton.objective, newton.lower_bound, make)
        # Bounds fall when multipliers move on, and rise again: the gap alone says nothing.
        level = PROGRESS * abs(newton.objective)
        progress = newton.objective < lowest - level or newton.lower_bound > highest + level
        stalled = 0 if progress else stalled + 1
        lowest, highest = min(lowest, newton.objective), max(highest, newton.lower_bound)
        if stalled >= STALLED:
            break
    yield places.offered(newton.objective, newton.lower_bound, make, due=True)
