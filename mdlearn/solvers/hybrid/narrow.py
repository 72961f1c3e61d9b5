"""Newton steps of the hybrid solver over narrow rows, compiled from beginning to end.

A pass over rows that lie column by column takes a tenth of a nanosecond an entry: less than sweeps do, from any start.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mdlearn._solvers import narrow_newton
from mdlearn.forms.margin import Point
from mdlearn.solvers.base import Report
from mdlearn.solvers.hybrid.loss_column import LossColumn
from mdlearn.solvers.hybrid.narrow_rows import ROOM, NarrowRows
from mdlearn.solvers.hybrid.newton_start import FLAT, FLAT_STEEPNESS, STEEPNESS, margin_reach
from mdlearn.solvers.hybrid.semismooth import CALL_OPERATIONS, HINGE_LINE, SQUARED_LINE
from mdlearn.solvers.hybrid.semismooth import STEEPNESS_GROWTH_OVER_MANY_ROWS as GROWTH

NUMBERS_OF_ROWS, NUMBERS_OF_COLUMNS = 15, 11
"""Numbers that steps keep of every row, and of every column."""
NARROW_SOLVED = 0.2
"""Share of the gap that the squared slope may have when multipliers move on. Passes are cheap: 10 sets, svm and ldm, C
from 0.01 to 10 took 0.93 of the time with a fourth of it at a gap of 1e-4, and the same at 1e-2."""
NARROW_STEPS, WORTH_OFFER = 20, 0.5
"""Most steps from one offer to the next, and the share of the gap at which there is one before."""


class NarrowHinges:
    """Newton steps of the hybrid solver on a loss column over narrow rows, from 0."""

    def __init__(self, problem: LossColumn, rows: NarrowRows) -> None:
        self.problem, column, (n, m) = problem, problem.column, rows.T.shape
        A, L, self.pulled = rows.quadratic(column)
        if column.kappa == 0:
            self.pulled = problem.pulled
        soft, caps, free = problem.soft, problem.caps, np.empty(m, dtype=np.int64)
        table, vectors = np.empty((NUMBERS_OF_ROWS, m)), np.empty((NUMBERS_OF_COLUMNS, n + ROOM))
        self.newton = narrow_newton.NarrowNewton(
            rows.T,
            column.y,
            caps,
            problem.softness,
            problem.nothing,
            A,
            L,
            self.pulled,
            table,
            vectors,
            np.zeros((n, n + ROOM)),
            rows.room(),
            free,
            problem.kink,
            soft,
            GROWTH,
            NARROW_SOLVED,
            SQUARED_LINE if soft else HINGE_LINE,
        )
        steepness = 0.0
        if not soft:
            steepness = (STEEPNESS if margin_reach(problem) > FLAT else FLAT_STEEPNESS) * float(caps.max())
        self.newton.begin(None, caps, 0.5, column.counts, steepness)
        self.most_steps = int(min(max(CALL_OPERATIONS / (m * n * (4.0 + 0.25 * n)), 1.0), NARROW_STEPS))

    @property
    def objective(self) -> float:
        """Objective at the coefficients."""
        return self.newton.objective

    @property
    def lower_bound(self) -> float:
        """Bound of the best multipliers so far."""
        return self.newton.bound

    def steps(self) -> Generator[bool, None, None]:
        """Go on; yield True at every new place. Ends where no step leads on."""
        while self.newton.steps(self.most_steps, WORTH_OFFER):
            yield True

    def report(self) -> Report:
        """Report the coefficients, with the best multipliers so far."""
        problem, column, m = self.problem, self.problem.column, self.problem.n_rows
        varied = m if column.kappa > 0 else 0
        w, beta, alpha, z, dual = (np.empty(size) for size in (problem.width, m, m, varied, varied))
        self.newton.point(w, beta, alpha, z, dual)
        # Multipliers of the variance: those of the coefficients that the best ones of the loss stand for.
        sigma = column.spread(dual if varied else beta)
        if varied:
            alpha += column.spread(z)
        if column.mean > 0:
            alpha += column.pull
        alpha *= column.y
        point = Point(beta[None], sigma, *problem.coefficients(w), alpha=alpha)
        return Report.estimated(self.objective, self.lower_bound, point)
