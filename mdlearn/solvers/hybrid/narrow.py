"""Newton steps of the hybrid solver over narrow rows, compiled from beginning to end.

A pass over rows that lie column by column takes a tenth of a nanosecond an entry: less than sweeps do, from any start.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator

import numpy as np

from mdlearn._solvers import narrow_logistic, narrow_newton
from mdlearn.forms.losses import LogisticTerm
from mdlearn.forms.margin import Point
from mdlearn.forms.proof import GAP_SHARE_AT_ZERO
from mdlearn.solvers.base import Report
from mdlearn.solvers.hybrid.loss_column import (
    NARROW_COLUMNS,
    SMOOTH_NARROW_COLUMNS,
    LossColumn,
)
from mdlearn.solvers.hybrid.newton_start import (
    NEARLY_HARD,
    NewtonStartEnvelopes,
    warm_newton_start_envelopes,
)
from mdlearn.solvers.hybrid.row_envelopes import CALL_OPERATIONS, HINGE_LINE, SQUARED_LINE
from mdlearn.solvers.hybrid.semismooth import STEEPNESS_GROWTH_OVER_MANY_ROWS as GROWTH
from mdlearn.solvers.hybrid.smooth import FLAT_LOSS, FULL_STEP, OTHER_STEP, ROUNDING_OF_LOSS
from mdlearn.solvers.hybrid.smooth_steps import BALANCED_SUM, smooth_steps_until_crawling
from mdlearn.solvers.hybrid.whitened_column import CHEAP_WHITENING, whitening_pays, whitening_share
from mdlearn.solvers.systems.narrow_rows import ROOM, NarrowRows

LOGISTIC_NUMBERS_OF_ROWS, LOGISTIC_NUMBERS_OF_COLUMNS = 13, 12
"""Numbers that steps on logistic losses keep of every row and of every column."""
NARROW_SAMPLE, ITERATED_SAMPLE, FAR_FALL = 16, 8, 0.03
"""Rows per column in the first matrices of logistic losses, by steps of a matrix each or by iterations, and share of
the objective that the former are to fall by, and from which on multipliers of the latter are tried for a bound.
Over 2,000 to 8,000 rows fits take 0.6 to 0.9 of the time without; so do 0.1 and 0.01, over other numbers of columns."""
ITERATED_COLUMNS, COLUMNS_PER_ITERATION = 32, 4.7
"""Columns from which steps on logistic losses are made by conjugate gradients with a factor that lasts, and columns
over which the matrix of all rows costs as much as one more iteration. On digits, soybean_large, isolet and ida_splice,
C from 0.01 to 100, gaps of 1e-2 to 1e-7, fits take 0.4 to 0.9 of the time of a matrix each step, on satimage and
waveform5000 0.7 to 1.05. Over 2 to 22 columns (ten sets) they would take 0.7 to 2.6."""
ITERATED_ENTRIES, BENT_COLUMN = 1 << 21, 1.0
"""Entries of dense rows up to which such steps go over so many columns, and the second derivative of an average column
at w = 0, beside a ridge of 1, from which they are worth a factor. On usps, C from 0.01 to 100, and five drawn sets of
80 to 280 columns, fits take 0.4 to 1.1 of the time of iterations by BLAS; 1.2 to 2.6 where columns bend less."""
SINGLE_ENTRIES = 1 << 15
"""Entries from which rows are in single precision for such steps from 0, until the gap is small. On usps, satimage,
waveform5000, digits, ida_splice and soybean_large, C from 0.01 to 100, gaps of 1e-2 to 1e-7, fits take 0.54 to 0.98 of
the time without, on six drawn sets of 45 to 280 columns 0.43 to 0.94. Over fewer columns (seven sets) it is no gain."""
NARROW_SOLVED = 0.4
"""Share of the gap that the squared slope may have when multipliers move on: with half of it ldm, on 26 sets, C from
0.01 to 100, took as many steps to a gap of 1e-2 and 1.03 of them to 1e-4 and 1e-6; with 2.5 times as much many never
end."""
NARROW_SWEEPS_ENTRIES, MORE_NARROW_ENTRIES, NARROW_SWEEPS_COLUMNS = 1 << 15, 1 << 16, 48
"""Entries of narrow rows from which sweeps may come before compiled steps; with a variance, or over rows of few columns
and zeros; and columns from which steps are so dear. With half of those entries fits of satimage, waveform, ida_image
and mushroom_lsvm take 0.9 to 1.5 of the time without sweeps, with more 0.7 to 1.2 (eight sets)."""
NARROW_REACH, NARROW_VARIED_REACH, NARROW_SOFT_REACH, NARROW_LEAST_REACH = 2.0, 0.5, 0.5, 0.05
"""Cap times |x|^2 up to which they do, over rows of many columns or few entries: of hinges, with a variance, of squared
hinges; and over any rows. At C = 0.01 and 0.1, gaps of 1e-2 to 1e-6, fits take 0.3 to 1.0 of the time without on
mushroom_lsvm, digits, ida_splice, credit_g and ann_thyroid; over other rows and beyond, up to 2.6 (ida_twonorm)."""
NARROW_VARIED_TOL = 3e-5
"""Gap from which sweeps beside a variance do so over any rows of many columns: later they crawl, and steps do not. At
C from 0.003 to 0.03, gaps of 1e-2 and 1e-4, fits of twelve drawn sets of 50 to 60 columns take 0.8 of the time without;
at C = 0.01 those of credit_g and ida_splice 0.7 to 0.9, but 0.9 to 1.2 at gaps of 1e-5 and 1e-6."""
SQUARED_COLUMNS, SQUARED_ENTRIES = 150, 1 << 20
"""Columns and entries of dense rows up to which squared hinges take such steps. On twenty drawn sets of 70 to 130
columns, C from 0.01 to 100, gaps of 1e-2 to 1e-5, fits take 0.6 to 0.9 of the time of steps by BLAS (means of a set),
on soybean_large 0.78 to 1.0, but 1.1 to 1.3 at C = 0.01; of 156 columns 0.8, of 191 to 256 1.0 to 1.1."""
SQUARED_REACH, ROUGH_SQUARED_REACH, ROUGH_TOL = 2.0, 8.0, 1e-3
"""Cap times |x|^2 up to which sweeps come first there, and the same for gaps from the last on: without sweeps fits take
1.1 to 2.4 of the time below, and 0.4 to 0.9 beyond."""
FEW_SQUARED_ROWS, FEW_SQUARED_ROWS_REACH = 12, 200.0
"""Rows per column up to which they do so from the other reach on, too: soybean_large, 0.85 of the time at C = 100."""
NARROW_STEPS = 20
"""Most steps from one offer to the next."""


def suits_iterated_steps(problem: LossColumn) -> bool:
    """Whether dense rows of many entries are kept column by column for iterations on a logistic loss."""
    m, n, term = problem.n_rows, problem.width, problem.column.terms[0]
    if problem.small or term.kind != "logistic" or problem.stored.sparse or m * n > ITERATED_ENTRIES:
        return False
    if not ITERATED_COLUMNS <= n <= SMOOTH_NARROW_COLUMNS:
        return False
    assert isinstance(term, LogisticTerm)
    return 0.25 * term.alpha * m * problem.margin_reach() >= BENT_COLUMN * n


def suits_steps_on_squared_hinges(problem: LossColumn) -> bool:
    """Whether dense rows of more columns are kept column by column for steps on squared hinges, no hard margin."""
    m, n = problem.n_rows, problem.width
    if not problem.soft or problem.column.kappa > 0 or problem.stored.sparse:
        return False
    return n <= SQUARED_COLUMNS and m * n <= SQUARED_ENTRIES and problem.margin_reach() <= NEARLY_HARD


def sweeps_beat_narrow_steps(problem: LossColumn, tol: float) -> bool:
    """Whether sweeps come before the hybrid solver's compiled steps over narrow rows, for a gap of `tol`."""
    m, n, varied = problem.n_rows, problem.width, problem.column.kappa > 0
    if problem.column.start is not None or m * n < NARROW_SWEEPS_ENTRIES:
        return False
    reach, many, more = problem.margin_reach(), n >= NARROW_SWEEPS_COLUMNS, m * n >= MORE_NARROW_ENTRIES
    if problem.soft:
        if n > NARROW_COLUMNS:
            least = ROUGH_SQUARED_REACH if tol >= ROUGH_TOL else SQUARED_REACH
            return reach <= least or (m <= FEW_SQUARED_ROWS * n and reach >= FEW_SQUARED_ROWS_REACH)
        return not varied and many and reach <= NARROW_SOFT_REACH
    if varied:
        quick = (more and problem.few_entries) or (many and tol >= NARROW_VARIED_TOL)
        return quick and reach <= NARROW_VARIED_REACH
    quick = many or problem.stored.sparse or problem.few_entries
    return (more and reach <= NARROW_LEAST_REACH) or (reach <= NARROW_REACH and quick)


def narrow_whitening_pays(problem: LossColumn, sharing: int, tol: float) -> bool:
    """Whether sweeps over whitened rows cost less than compiled steps over narrow ones, for a gap of `tol`."""
    n = problem.width
    if n < NARROW_SWEEPS_COLUMNS or problem.n_rows * n < NARROW_SWEEPS_ENTRIES:
        return False
    return whitening_share(problem, sharing) <= CHEAP_WHITENING and whitening_pays(problem, sharing, tol)


class NarrowSteps(ABC):
    """Newton steps of the hybrid solver on a loss column over narrow rows, in compiled code.

    Attributes
    ----------
    objective, lower_bound : float
        Objective at the coefficients, and bound of the best multipliers so far.
    """

    newton: narrow_newton.NarrowNewton | narrow_logistic.NarrowLogistic

    def __init__(self, problem: LossColumn) -> None:
        self.problem, n, m = problem, problem.width, problem.n_rows
        self.most_steps = int(min(max(CALL_OPERATIONS / (m * n * (4.0 + 0.25 * n)), 1.0), NARROW_STEPS))

    @property
    def gap(self) -> float:
        """Objective less bound."""
        return self.objective - self.lower_bound

    def steps(self, tol: float = 0.0) -> Generator[int, None, None]:
        """Go on, and yield numbers of steps: as many as a heartbeat may take, or to a gap that meets `tol`.

        Ends where none leads on.
        """
        newton, least = self.newton, GAP_SHARE_AT_ZERO * abs(self.problem.column.at_zero)
        while taken := newton.steps(self.most_steps, tol, least):
            self.objective, self.lower_bound = newton.objective, newton.bound
            yield taken

    @abstractmethod
    def point(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Coefficients, the best multipliers of loss and variance so far, and what the coefficients are made of."""

    def report(self) -> Report:
        """Report the coefficients, with the best multipliers so far."""
        problem, column = self.problem, self.problem.column
        w, beta, sigma, alpha = self.point()
        if column.mean > 0:
            alpha += column.pull
        alpha *= column.y
        point = Point(beta[None], sigma, *problem.coefficients(w), alpha=alpha)
        return Report.estimated(self.objective, self.lower_bound, point)


class NarrowLogisticSteps(NarrowSteps):
    """Newton steps of the hybrid solver on logistic losses over narrow rows, from a start or from 0."""

    newton: narrow_logistic.NarrowLogistic

    def __init__(self, problem: LossColumn, rows: NarrowRows, free: bool) -> None:
        super().__init__(problem)
        column, (n, m) = problem.column, rows.T.shape
        sharpness = float(column.terms[0].alpha)  # type: ignore[union-attr]
        fresh, iterated = column.start is None, n >= ITERATED_COLUMNS
        self.newton = narrow_logistic.NarrowLogistic(
            rows.T,
            column.y,
            problem.caps,
            problem.start_weights(),
            problem.pulled,
            rows.table()[:LOGISTIC_NUMBERS_OF_ROWS],
            np.empty((LOGISTIC_NUMBERS_OF_COLUMNS, n + ROOM)),
            np.zeros((n, n + ROOM)),
            rows.room(),
            sharpness,
            problem.kink,
            free,
            FLAT_LOSS * sharpness * float(problem.caps.sum()) if free else 0.0,
            FULL_STEP,
            OTHER_STEP,
            ROUNDING_OF_LOSS,
            BALANCED_SUM,
            max(m // ((ITERATED_SAMPLE if iterated else NARROW_SAMPLE) * n), 1) if fresh or iterated else 1,
            FAR_FALL,
            n / COLUMNS_PER_ITERATION if iterated else 0.0,
            rows.single if fresh and iterated and n * m >= SINGLE_ENTRIES else None,
        )
        self.newton.begin(problem.start_coefficients())
        if fresh and rows.first_factor is not None:
            self.newton.share_first_factor(rows.first_factor)
        self.objective, self.lower_bound = self.newton.objective, self.newton.bound

    def steps(self, tol: float = 0.0) -> Generator[int, None, None]:
        """Go on, until steps crawl."""
        return smooth_steps_until_crawling(self, super().steps(tol))

    def point(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Coefficients, multipliers, zeros, and what the coefficients are made of."""
        m = self.problem.n_rows
        w, beta, alpha = np.empty(self.problem.width), np.empty(m), np.empty(m)
        self.newton.refine()
        self.objective, self.lower_bound = self.newton.objective, self.newton.bound
        self.newton.point(w, beta, alpha)
        return w, beta, np.zeros(m), alpha


class NarrowHinges(NarrowSteps):
    """Newton steps of the hybrid solver on hinges, or squared ones, over narrow rows, from a start or from 0."""

    newton: narrow_newton.NarrowNewton

    def __init__(self, problem: LossColumn, rows: NarrowRows, begun: NewtonStartEnvelopes | None = None) -> None:
        super().__init__(problem)
        column = problem.column
        A, L, self.pulled = rows.quadratic(column)
        if column.kappa == 0:
            self.pulled = problem.pulled
        soft, caps = problem.soft, problem.caps
        self.newton = narrow_newton.NarrowNewton(
            rows.T,
            column.y,
            caps,
            problem.softness,
            problem.start_weights() if begun is None else begun.alpha,
            A,
            L,
            self.pulled,
            rows.table(),
            rows.space(),
            problem.kink,
            soft,
            GROWTH,
            NARROW_SOLVED,
            SQUARED_LINE if soft else HINGE_LINE,
        )
        w, centre, steepness = None, caps, 0.0
        if begun is not None:
            w, centre, steepness, _ = begun
        elif column.start is not None:
            w, centre, steepness = warm_newton_start_envelopes(problem)
        elif not soft:
            steepness = problem.steepness_at_zero()
        self.newton.begin(w, centre, 0.5 if w is None else 1.0, column.counts, steepness)
        if soft and w is None and column.kappa == 0 and rows.first_factor is not None:
            self.newton.share_first_factor(rows.first_factor)
        self.objective, self.lower_bound = self.newton.objective, self.newton.bound

    def point(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Coefficients, multipliers, and what the coefficients are made of."""
        column, m = self.problem.column, self.problem.n_rows
        w, beta, alpha, sigma = np.empty(self.problem.width), np.empty(m), np.empty(m), np.empty(m)
        self.newton.point(w, beta, alpha, sigma, column.counts, column.kappa)
        return w, beta, sigma, alpha
