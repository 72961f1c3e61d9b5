"""Newton start of the hybrid solver: from 0, at the solutions of samples, of weaker losses, or at a start."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mdlearn.numerics.interruptible import with_heartbeat
from mdlearn.solvers.common.warm_start import start_multipliers
from mdlearn.solvers.hybrid.descent import HybridDescent
from mdlearn.solvers.hybrid.loss_column import STEEPNESS, VISIT_OPERATIONS, LossColumn
from mdlearn.solvers.hybrid.semismooth import SemismoothNewton
from mdlearn.solvers.hybrid.smooth import SmoothNewton
from mdlearn.solvers.hybrid.smooth_steps import evenly_sampled_bends
from mdlearn.solvers.hybrid.sweeps import SOFT_STEPS_AHEAD, STEPS_AHEAD, newton_price_against_sweeps, sweeps_alone

ROWS_PER_COLUMN, SAMPLE = 40, 8
"""Rows per column from which every so many-th row tells where to begin."""
SAMPLE_STEPS, SAMPLE_GAP, HINGE_SAMPLE_GAP, SAMPLE_FALL = 12, 1e-2, 1e-3, 0.05
"""Most steps on a sample, the gaps at which they end, and the share of a smooth loss that the last of them takes off:
less than that is left, and the sample itself is further off. Bounds tell so only some steps later."""
SAMPLED_ROWS, FEW_SAMPLED_ROWS, LEAST_STEP_OF_FEW = (32, 16), 8, 4
"""Rows per column of the smallest sample that Newton steps begin on, the first that are no half of all; else there is
one if every so many-th row is enough. On usps, of 28 rows per column, fits without a sample take 0.8 of the time."""
DESCENT_STEEPNESS, VARIED_STEEPNESS, VARIED_ROWS = 20.0, 5.0, 80
"""Cap times |x|^2 above which coordinate ascent is not worth its sweeps beside a sample; with a variance term, from so
many rows per column on. Below, mushroom (46, C = 1) takes 0.7 of the time of steps from a sample."""
ASCENT_VISITS = 12
"""Visits of every row that coordinate ascent is taken to need beside a variance term where cap times |x|^2 is at most
DESCENT_STEEPNESS; in proportion to it beyond."""
SMALL_COLUMNS = 40
"""Columns of small problems up to which steps on steep losses are cheaper than sweeps."""
SMALL_CURVED_STEEPNESS = 0.5
"""Cap times |x|^2 above which they are, on squared hinges or with a variance (sweeps: 0.69 to 1.09 of the time below,
0.86 to 1.46 above)."""
WEAKER, NEARLY_HARD, WIDE = (1e-3, 1e-2, 0.1), 1e5, 100
"""Shares of the weight of squared hinges whose optima lead to that of all of it, where a margin moves by so much as its
multiplier grows by the weight (`LossColumn.margin_reach`), and columns from which that is so hard: steps from
elsewhere are cut short by rows that come and go. On four classes of mnist 134 steps instead of 243; with few columns
steps are few anyway."""
SOFT_ASCENT_VISITS = 8
"""Visits of every CSR row that squared hinges need where the reach of a margin is at most 1; as its square root beyond.
On a9a, ijcnn1 and mushroom at C = 0.01 and 0.1 fits take 0.5 to 0.9 of the time without such sweeps; over drawn dense
rows 0.7 to 1.7."""
DESCENT_PASSES = 10.0
"""Passes over the rows that a step on squared hinges may cost before coordinate ascent is the better beginning."""
AT_CAP = 0.02
"""Share of the sample's rows at their cap below which classes are nearly separable, and ascent is the better start."""
SWEEPS_ON_SAMPLE, LOSS_APART, LOSS_OF_SWEEPS = 4, 0.01, 2.5
"""Sweeps over the sample, the mean loss at their visits, as a share of that at 0, up to which they tell so, and how
many times more it may be for each sweep still to come. Mushroom from C = 10 on takes 0.4 of the time with hinges,
from C = 1 on 0.3 to 0.7 with squared ones. Its first sweep leaves 0.08 to 0.11, that over a9a 0.5 to 0.98."""
SAMPLED_FACTOR_REACH = 20.0
"""Cap times |x|^2 up to which the first factor over all CSR rows is that of a sample, though an exact one is cheap.
Steps on steeper logistic losses need that soon, and it makes up for cut multipliers: 0.77 to 0.97 of the time on a9a
and mushroom at C = 10 and 100, but 1.1 on a9a at C = 0.01, and over drawn dense rows at any."""
SPANNED, MOST_STEEPNESS = 2, 1000.0
"""Rows that slopes span where Newton steps begin, per free row and column, and the steepness at most, per cap."""


class NewtonStartEnvelopes(NamedTuple):
    """Envelopes that Newton steps of the hybrid solver start with.

    Coefficients, the multipliers that envelopes are around, their steepness, and what the coefficients are made of.
    """

    w: np.ndarray
    centre: np.ndarray
    steepness: float
    alpha: np.ndarray


def newton_start_beats_sweeps(problem: LossColumn) -> bool:
    """Whether the hybrid solver starts better with Newton steps, on samples or from 0, than with sweeps."""
    m, n, varied = problem.n_rows, problem.width, problem.column.kappa > 0
    if sweeps_alone(problem):
        return False
    reach = problem.margin_reach()
    if problem.small and n <= SMALL_COLUMNS and (varied or problem.soft):
        return reach > SMALL_CURVED_STEEPNESS
    if not (problem.soft or varied):
        return m >= ROWS_PER_COLUMN * n and reach > DESCENT_STEEPNESS
    sweep, price = 2.0 * problem.stored.n_entries + VISIT_OPERATIONS * m, newton_price_against_sweeps(problem)
    if problem.soft:
        visits = SOFT_ASCENT_VISITS * math.sqrt(max(1.0, reach))
        if problem.stored.sparse and visits * sweep <= SOFT_STEPS_AHEAD * price(m):
            return False
        return n <= m and price(m) <= DESCENT_PASSES * 2.0 * problem.stored.n_entries
    if m >= VARIED_ROWS * n:
        return reach > VARIED_STEEPNESS
    sweeps = ASCENT_VISITS * max(1.0, reach / DESCENT_STEEPNESS)
    return reach > DESCENT_STEEPNESS and STEPS_AHEAD * price(n) <= sweeps * sweep


def logistic_newton_start(problem: LossColumn) -> Generator[None, None, SmoothNewton]:
    """Newton start of the hybrid solver on a logistic loss: on samples of growing size, then on all rows."""
    ridge = problem.quadratic.times(np.ones(problem.width))
    w, alpha, last = problem.start_coefficients(), problem.start_weights(), 0
    step = _newton_start_sample_step(problem) if problem.column.start is None and not problem.small else 0
    while step > 2:
        sample = problem.sample(step)
        some = SmoothNewton(sample, ridge, w, np.zeros(sample.n_rows))
        yield from newton_steps_for_start(some, SAMPLE_GAP, SAMPLE_FALL)
        alpha = problem.from_sample(alpha, sample, some.alpha, some.kept, step)
        w, last, step = some.w, step, step // SAMPLE
    newton = SmoothNewton(problem, ridge, w, alpha)
    far = problem.stored.sparse and problem.margin_reach() > SAMPLED_FACTOR_REACH
    if last and not (far and newton.exact):
        yield from with_heartbeat(newton.renew(evenly_sampled_bends(newton.bends, last)), None)
    return newton


def newton_start_from_samples(problem: LossColumn) -> Generator[None, None, SemismoothNewton | None]:
    """Newton start of the hybrid solver at the solutions of samples; None where sweeps are the better beginning."""
    return (yield from _newton_start_on_squared_hinges(problem) if problem.soft else _newton_start_on_hinges(problem))


def _newton_start_on_squared_hinges(problem: LossColumn) -> Generator[None, None, SemismoothNewton | None]:
    """Newton start of the hybrid solver on squared hinges, from samples; None where sweeps are better."""
    w, alpha = np.zeros(problem.width), problem.nothing
    step = 1 if problem.small else _newton_start_sample_step(problem)
    while step > 2:
        sample = problem.sample(step)
        if not w.any() and (yield from _newton_start_is_apart(sample)):
            return None
        zeros = np.zeros(sample.n_rows)
        some = SemismoothNewton(sample, w, zeros, 0.0, zeros)
        some.may_iterate = False  # iterations go along with all that coefficients are made of
        yield from newton_steps_for_start(some, SAMPLE_GAP, SAMPLE_FALL)
        alpha = problem.from_sample(alpha, sample, some.alpha, some.kept, step)
        w, step = some.w, step // SAMPLE
    return SemismoothNewton(problem, w, np.zeros(problem.n_rows), 0.0, alpha)


def _newton_start_on_hinges(problem: LossColumn) -> Generator[None, None, SemismoothNewton | None]:
    """Newton start of the hybrid solver on hinges at a sample's solution, or at 0; None where sweeps are better."""
    cap, alpha, varied, n = float(problem.caps.max()), problem.nothing, problem.column.kappa > 0, problem.width
    if varied and (problem.small or problem.n_rows < ROWS_PER_COLUMN * n):
        steepness = problem.steepness_at_zero()
        return SemismoothNewton(problem, np.zeros(n), 0.5 * problem.caps, steepness, alpha)
    sample = problem.sample(SAMPLE)
    if not varied and (yield from _newton_start_is_apart(sample)):
        return None
    some = SemismoothNewton(sample, np.zeros(n), 0.5 * sample.caps, SAMPLE * cap, np.zeros(sample.n_rows))
    yield from newton_steps_for_start(some, HINGE_SAMPLE_GAP)
    if not varied and float(np.mean(some.u >= sample.caps)) <= AT_CAP:
        return None
    alpha = problem.from_sample(alpha, sample, some.alpha, some.kept, SAMPLE)
    between = SAMPLE * int(np.count_nonzero((some.u > 0) & (some.u < sample.caps)))
    return SemismoothNewton(
        problem, some.w, 0.5 * problem.caps, newton_start_steepness(problem, some.w, between), alpha
    )


def _newton_start_is_apart(sample: LossColumn) -> Generator[None, None, bool]:
    """Whether sweeps over a sample soon leave hardly a loss, so that a Newton start is not worth its solution."""
    descent = HybridDescent(sample, sample.own_quadratic)
    most = LOSS_APART * LOSS_OF_SWEEPS**SWEEPS_ON_SAMPLE * sample.column.at_zero
    for _ in range(SWEEPS_ON_SAMPLE):
        yield from descent.sweep()
        most /= LOSS_OF_SWEEPS
        if descent.ascent.loss > most:
            return False
    return True


def warm_newton_start(problem: LossColumn) -> SemismoothNewton:
    """Newton start of the hybrid solver at the solution that a column starts with."""
    return SemismoothNewton(problem, *warm_newton_start_envelopes(problem), problem.start_weights())


def warm_newton_start_envelopes(problem: LossColumn) -> tuple[np.ndarray, np.ndarray, float]:
    """Coefficients, centres and steepness of the first envelopes of a Newton start at a column's start."""
    column, start = problem.column, problem.column.start
    assert start is not None
    w = problem.start_coefficients()
    _, (centre,) = start_multipliers(column, start, problem.margins(w))
    if problem.soft:
        return w, centre, 0.0
    between = int(np.count_nonzero((centre > 0) & (centre < problem.caps)))
    return w, centre, newton_start_steepness(problem, w, between)


def newton_steps_for_start(
    newton: SemismoothNewton | SmoothNewton, gap: float, fall: float = -math.inf
) -> Generator[None, None, None]:
    """Make steps towards a Newton start, until they close the gap, or the objective falls by a small share of it."""
    taken, before = 0, newton.objective
    for new in newton.steps():
        taken += new
        size, fell = abs(newton.objective), before - newton.objective
        if taken >= SAMPLE_STEPS or (new and (newton.gap <= gap * size or fell <= fall * size)):
            return
        before = newton.objective
        yield None


def newton_start_steepness(problem: LossColumn, w: np.ndarray, between: int) -> float:
    """Steepness of the first envelopes of a Newton start: their slopes span the rows next to the kink."""
    cap = float(problem.caps.max())
    rows = min(SPANNED * (between + problem.width), problem.n_rows - 1)
    distance = float(np.partition(np.abs(problem.kink - problem.margins(w)), rows)[rows])
    return min(max(0.5 / distance if distance > 0 else math.inf, STEEPNESS), MOST_STEEPNESS) * cap


def newton_start_after_sweeps(descent: HybridDescent) -> NewtonStartEnvelopes:
    """Envelopes of a Newton start where coordinate ascent leaves off."""
    problem, beta, w = descent.problem, descent.beta, descent.element
    alpha = beta
    if problem.column.kappa > 0:
        alpha = beta + descent.sigma - problem.column.spread(descent.margins)
    if problem.soft:
        return NewtonStartEnvelopes(w, descent.visited(descent.margins), 0.0, alpha)
    return NewtonStartEnvelopes(w, beta, newton_steepness_after_sweeps(problem, w, beta), alpha)


def newton_steepness_after_sweeps(problem: LossColumn, w: np.ndarray, beta: np.ndarray) -> float:
    """Steepness of a Newton start where coordinate ascent leaves off: slopes move multipliers by their size at most.

    Where margins are at the kink already, but multipliers are not yet right, steeper ones forget what these know.
    """
    free = (beta > 0) & (beta < problem.caps)
    steepness = newton_start_steepness(problem, w, int(np.count_nonzero(free)))
    distance = float(np.abs(problem.kink - problem.margins(w)[free]).sum())
    if distance > 0:
        steepness = min(steepness, float(beta[free].sum()) / distance)
    return steepness


def _newton_start_sample_step(problem: LossColumn) -> int:
    """Step from row to row of the first sample of a Newton start; up to 2 there is none."""
    for rows in SAMPLED_ROWS:
        step = problem.n_rows // (rows * problem.width)
        if step > 2:
            return step
    few = problem.n_rows // (FEW_SAMPLED_ROWS * problem.width)
    return few if few >= LEAST_STEP_OF_FEW else 1


def newton_start_losses(problem: LossColumn) -> list[LossColumn]:
    """Squared hinges of smaller weight for a Newton start, where they are nearly a hard margin in many columns."""
    column = problem.column
    fresh = problem.soft and column.start is None and not problem.small and problem.width >= WIDE
    if not fresh or problem.margin_reach() <= NEARLY_HARD:
        return []
    (term,) = column.terms
    levels = [replace(column, terms=(replace(term, weight=share * term.weight),), start=None) for share in WEAKER]
    return [LossColumn(one, problem.rows, problem.squares, problem.stored) for one in levels]
