"""Sweeps of the hybrid solver by dual coordinate ascent, and when they end: where Newton steps are cheaper."""

from __future__ import annotations

import math
from collections.abc import Callable

from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.forms.certificates.primal import primal_objective
from mdlearn.forms.margin import Point
from mdlearn.solvers.base import Offer, Report, Steps
from mdlearn.solvers.hybrid.descent import HybridDescent
from mdlearn.solvers.hybrid.face import LARGE_MATRIX_OPERATION, LARGEST_FACE, SMALL_MATRIX_OPERATION
from mdlearn.solvers.hybrid.loss_column import OPERATION_ON_MATRIX, LossColumn, suits_narrow_loss_column

VARIANCE_COLUMNS = 2000
"""Columns up to which Newton steps are taken beside a variance term: its matrix is explicit."""
STEPS_AHEAD, SOFT_STEPS_AHEAD = 8, 4
"""Newton steps, and passes over the rows, that the end is taken to cost; of squared hinges."""
CHEAP_DIGIT = 0.25
"""Share of that end's cost which a digit may have once coordinate ascent has cost as much."""
EARLY = 0.3
"""Share of it up to which coordinate ascent may go on where bounds rise evenly, as they do at first."""
SWEEPS_BEFORE = 5
"""Sweeps until their rate is judged: by the rises of the bound in the last two and in the two before."""
UNDECIDED_SWEEPS, SMALL_SWEEPS = 3, 2
"""Sweeps in which nothing is decided but whether the gap is reached: the first ones, and over small blocks, where the
interpreter costs as much as a sweep, so many at a time until their rate is judged. On soybean_large fits take 0.86 to 1
of the time of single ones, on digits and ida_splice 0.95 to 1.02."""
ROWS_BEFORE_A_FACE, FAR_GAP, FACE_BUDGET = 4, 0.95, 6.0
"""Rows between their bounds, per column, and relative gap up to which sweeps go on, until they have cost so many times
what Newton steps would: they will find a face, and steps on it end the fit in a third of the time. On 13 cases of real
data 0.6 to 1.05 of the time of 1.5 rows; splice_uci has a gap of 0.96 at C = 10, where it took twice as long."""
MOST_SWEEPS, CRAWL_SWEEPS, CRAWL_SHARE = 1000, 20, 0.01
"""Sweeps, where no Newton steps follow, after which they crawl: so many, or the second number that close less than the
share of the gap. On reuters_moneyfx at C = 10 they close 0.2 % of it, from 3e-5 on."""
OVERHEAD_OPERATIONS, SMALL_OVERHEAD_OPERATIONS = 1e5, 3e4
"""What a step costs beside its work on rows and matrices, in operations on entries: the interpreter, or a call."""
NARROW_ROW_OPERATIONS, NARROW_ENTRY_OPERATIONS = 18.0, 0.8
"""What a compiled step over narrow rows costs for a row, and for an entry, in operations on entries of sweeps: 8 and
0.3 ns on six real sets of 5 to 65 columns."""
USUAL_GRADIENT_ITERATIONS, VECTOR_OPERATIONS = 40, 4.0
"""Iterations that a Newton step by conjugate gradients is taken to need, and operations of one on a coefficient."""
HEARTBEAT_OPERATIONS = 1e7
"""Operations of sweeps between two heartbeats."""


Offered = Callable[[float, float, Callable[[], Report]], "Report | Offer"]
"""(objective, bound, make) -> what to yield for a place with these estimates, whose report `make` makes."""


def sweep_until_newton(descent: HybridDescent, offered: Offered) -> Steps:
    """Sweep by dual coordinate ascent, until the hybrid solver's Newton steps cost less than one more digit."""
    problem, column, bounds, beat = descent.problem, descent.problem.column, descent.bounds, 0.0
    alone, price_of = sweeps_alone(problem), None
    ahead = SOFT_STEPS_AHEAD if problem.soft else STEPS_AHEAD

    def make() -> Report:
        beta = descent.beta
        if descent.surveyed and column is problem.declared:
            return Report.estimated(descent.objective, descent.lower_bound, Point(beta[None], descent.sigma))
        w, z = descent.element, descent.margins
        value = descent.objective if descent.surveyed else primal_objective(column, z, float(w @ w))[0]
        sigma = descent.sigma if column is problem.declared else problem.declared.spread(z)
        return Report.estimated(value, descent.lower_bound, Point(beta[None], sigma))

    while True:
        undecided = SMALL_SWEEPS if problem.small and len(bounds) < SWEEPS_BEFORE else 1
        yield from descent.sweep(undecided if bounds else UNDECIDED_SWEEPS)
        # Margins at visits can say less than the bound does: then that is how far they are off.
        gap = abs(descent.objective - descent.lower_bound)
        yield offered(descent.lower_bound + gap, descent.lower_bound, make)
        if descent.operations - beat > HEARTBEAT_OPERATIONS:
            beat = descent.operations
            yield None
        if len(bounds) < SWEEPS_BEFORE:
            continue
        price_of = price_of or newton_price_against_sweeps(problem)
        steps, least = ahead * price_of(descent.ascent.n_between), descent.least
        near = not problem.soft and descent.ascent.n_between <= min(LARGEST_FACE, ROWS_BEFORE_A_FACE * problem.width)
        near = near and column.relative_gap(least, bounds[-1]) < FAR_GAP
        if alone or (near and descent.operations <= FACE_BUDGET * steps):
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


def newton_price_against_sweeps(problem: LossColumn) -> Callable[[int], float]:
    """Price at which the hybrid solver's sweeps end: operations of a Newton step and passes, by free rows."""
    factored = price_of_factored_newton_sweeps(problem)
    if not takes_gradient_steps(problem):
        return factored
    return lambda free: min(factored(free), price_of_gradient_steps(problem, free))


def price_of_factored_newton_sweeps(problem: LossColumn) -> Callable[[int], float]:
    """Price of a Newton step of the hybrid solver by a factor, and of passes, in operations on entries of sweeps."""
    rows, n, entries = problem.stored, problem.width, problem.stored.n_entries
    varied, sparse, per_row = problem.column.kappa > 0, isinstance(rows, CsrRows), entries / problem.n_rows
    if suits_narrow_loss_column(problem.rows):
        step = SMALL_OVERHEAD_OPERATIONS + problem.n_rows * (NARROW_ROW_OPERATIONS + NARROW_ENTRY_OPERATIONS * n)
        return lambda free: step
    fixed = (SMALL_OVERHEAD_OPERATIONS if problem.small else OVERHEAD_OPERATIONS) + 4.0 * entries

    def price(free: int) -> float:
        order = n if varied else min(free, n)
        if sparse:
            outer = 0.5 * free * per_row * min(float(free), per_row)
        else:
            outer = OPERATION_ON_MATRIX * float(order) * order * max(free, n)
        return fixed + outer + OPERATION_ON_MATRIX * order**3 / 3.0

    return price


def takes_gradient_steps(problem: LossColumn) -> bool:
    """Whether Newton steps of the hybrid solver may be made by conjugate gradients: squared hinges over CSR rows."""
    return problem.soft and problem.column.kappa == 0 and isinstance(problem.stored, CsrRows)


def price_of_gradient_steps(problem: LossColumn, free: int) -> float:
    """Price of a Newton step of the hybrid solver by conjugate gradients over so many free rows, and of passes."""
    passes = OVERHEAD_OPERATIONS + 4.0 * problem.stored.n_entries
    return passes + USUAL_GRADIENT_ITERATIONS * price_of_iteration(problem, free)


def price_of_iteration(problem: LossColumn, free: int) -> float:
    """Price of an iteration of conjugate gradients over so many free rows."""
    return 4.0 * free * problem.stored.n_entries / problem.n_rows + VECTOR_OPERATIONS * problem.width


def price_of_large_factor(order: int) -> float:
    """Price of a Cholesky factor in operations on entries."""
    return (LARGE_MATRIX_OPERATION + SMALL_MATRIX_OPERATION / order) * order**3 / 3.0 if order else 0.0


def sweeps_alone(problem: LossColumn) -> bool:
    """Whether the hybrid solver's sweeps go on alone: beside a variance, the matrix of Newton steps is too large."""
    return problem.column.kappa > 0 and problem.stored.shape[1] > VARIANCE_COLUMNS
