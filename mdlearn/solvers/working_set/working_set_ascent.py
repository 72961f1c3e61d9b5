"""Ascent over working sets of a kernel problem: rounds on blocks of a Hessian, after steps on whole rows."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Protocol

import numpy as np

import mdlearn._solvers.bounded_quadratic as kernels
from mdlearn.forms.certificates.primal import primal_objective
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.solvers.base import Report, Steps
from mdlearn.solvers.dual_hessian.hessian import Answer, Block, ColumnHessian, SupportHessian
from mdlearn.solvers.working_set.block_ascent import (
    BUDGET,
    ENTRIES_PER_CALL,
    GREEDY_STEPS_GROWTH,
    GREEDY_STEPS_PER_ROW,
    NEWTON,
    BlockAscentDual,
)

MADE_PER_CALL = 1 << 20
"""Kernel values that one call of a kernel computes: 2 to 10 ms."""
ROWS_AT_ONCE = 24
"""Rows of a Gram matrix that are computed at once where that costs much less than one by one."""
FIRST_VIOLATION, WHOLE_VIOLATION = 0.1, 1e-3
"""Violation, in units of margins, at which the first steps over all rows end, and those on a whole matrix without a
variance: there further steps cost less than a round on a block."""
GREEDY_ROWS, GREEDY_TOL, GREEDY_SHARES = 512, 1e-4, (0.5, 0.1, 0.02)
"""Rows up to which, and gap from which, steps on a whole matrix go on until they meet the gap, and the violations that
they end at, in units of that gap: a round on a block costs more."""
LAST_VIOLATION, FURTHER_STEPS = 1e-3, 0.5
"""Violation at which further ones end that know their rows, and how many there are to the first ones, at most."""
NEAR_KINK_DISTANCE, NEAR_ROWS_SHARE = 0.5, 0.5
"""Distance of margins from their kinks, and share of the rows, up to which steps leave out the others."""
MANY_NEW_ROWS_SHARE = 0.05
"""Share of the rows beyond which those that need new columns of the Hessian are many."""
LEAST_KINK_DISTANCE, FIRST_KINK_DISTANCE = 0.15, 0.01
"""Most and least distance of margins from their kinks at which rows at a bound belong to the working set."""
MOST_ROUNDS, STALL_ROUNDS = 60, 4
"""Most rounds, and rounds without progress after which sweeps take over."""
ONWARD, RISE = 0.8, 0.02
"""What progress leaves of the gap, or adds to the lower bound."""


class BlockAscentHessian(Protocol):
    """Interface that block ascent needs of a Hessian: see `mdlearn.solvers.dual_hessian.hessian`."""

    settles: float
    """What a block that is solved leaves of the violations."""
    dear: float
    """Violation, relative to the worst, from which rows enter that are not `cheap`, where they are many."""

    @property
    def cheap(self) -> np.ndarray:
        """Rows whose part of a block costs little more than a copy."""

    def block(self, index: np.ndarray) -> Block:
        """The Hessian (or an upper bound) between some rows."""

    def answer(self, q: np.ndarray, Hq: np.ndarray | None = None) -> Answer:
        """(alpha, f) of signed weights q; f with the bias it knows. `Hq` is their product, where it is known."""

    def intercept(self, alpha: np.ndarray) -> float:
        """The bias in f of the last answer: one that is regularized, or that a variance holds."""


class WorkingSetAscent(BlockAscentDual):
    """Block ascent over working sets of a kernel problem, in rounds on a Hessian."""

    def __init__(self, form: MarginForm, column: Column, hessian: BlockAscentHessian) -> None:
        super().__init__(form, column)
        self.hessian, self.b = hessian, 0.0
        self.known: np.ndarray | None = None  # the gradient at u, where it begins with one
        self.levels: list[float] = []  # violations, in units of margins, that steps over all rows are to end at
        self.further = 0  # steps over all rows that cost less than a round on a block

    def over_all(
        self, R: np.ndarray, border: np.ndarray, omega: float, tol: float = 0.0
    ) -> Generator[None, None, None]:
        """First steps from u = 0 on the whole matrix, its rows read where they lie; further ones for gap `tol`."""
        e = self.target.copy()
        if self.column.pulled:
            e -= R @ self.pull + border * (omega * float(border @ self.pull))
        if self.column.kappa > 0:
            yield from self.climb(R, slice(None), e, FIRST_VIOLATION * self.scale, border, omega)
            return
        self.levels = [WHOLE_VIOLATION]
        if e.shape[0] <= GREEDY_ROWS and tol >= GREEDY_TOL:
            finer = [share * tol for share in GREEDY_SHARES if share * tol < WHOLE_VIOLATION]
            self.levels = finer if len(finer) == len(GREEDY_SHARES) else [WHOLE_VIOLATION, *finer]
        yield from self.to_next_level(R, border, omega, e)

    def to_next_level(
        self, R: np.ndarray, border: np.ndarray, omega: float, e: np.ndarray
    ) -> Generator[None, None, None]:
        """Steps on the whole matrix, where the gradient is e, to the next violation that they are to end at."""
        enough = self.levels.pop(0) * self.scale
        if (yield from self.climb(R, slice(None), e, enough, border, omega)) > enough:
            self.levels.clear()
        self.known = e

    def over_rows(
        self, gram: SupportHessian, e: np.ndarray, level: float = FIRST_VIOLATION, left: int = 0
    ) -> Generator[None, None, None]:
        """Greedy steps from u with gradient e on a matrix of which a row is computed when a step needs it.

        Where rows far from their kinks are many, the others have a matrix of their own, gathered as it is asked for.
        `left`: number of steps, by default what rows of a working set have.
        """
        known, rows = gram.cached, np.arange(self.u.shape[0])
        if self.u.any() and known.compiled:
            centred, free = e - self.shift(e), (self.u > self.low) & (self.u < self.high)
            near = free | (self.violation(centred) > 0) | (np.abs(centred) < NEAR_KINK_DISTANCE * self.scale)
            if 0 < np.count_nonzero(near) < NEAR_ROWS_SHARE * near.shape[0]:
                rows = np.flatnonzero(near)
                known = gram.between(rows)
        n, part = rows.shape[0], e[rows]
        u, border, work = self.u[rows], np.ones(n), np.empty((4, n))
        box = kernels.Box(known, border, gram.constant, self.soft[rows], self.low[rows], self.high[rows], u, part, work)
        steps = kernels.pairs if self.paired else kernels.doubles
        most, enough, left = max(64, ENTRIES_PER_CALL // n), level * self.scale, left or BUDGET * n
        first, self.further = left, 0
        while left > 0:
            known.allow(max(1, MADE_PER_CALL // self.u.shape[0]))
            count = steps(box, min(most, left), enough)
            left -= count
            if known.missing >= 0 and not known.compiled:
                yield from gram.learn(self._wanted(known.missing, part, known.place < 0))
            elif known.missing < 0 and (box.violation <= enough or count == 0):
                # Where that took few steps, rounds on a block cost more than some further ones.
                self.further = int(FURTHER_STEPS * (first - left)) if level > LAST_VIOLATION and count else 0
                break
            else:
                yield
        self.u[rows] = u
        self.known = part if n == self.u.shape[0] else None

    def _wanted(self, row: int, e: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Rows to compute where steps need one: new ones from both ends of the gradient, too."""
        half = min(ROWS_AT_ONCE // 2, int(np.count_nonzero(new)))
        up, down = np.where((self.u < self.high) & new, -e, np.inf), np.where((self.u > self.low) & new, e, np.inf)
        ends = [np.argpartition(side, half - 1)[:half] for side in (up, down)]
        found = np.unique(np.concatenate([[row], *ends]))
        return found[new[found]]

    def run(self) -> Steps:
        """Yield a report per round; end where rounds no longer help."""
        least, highest, mark, stalled = np.inf, -np.inf, np.inf, 0
        for _ in range(MOST_ROUNDS):
            self.settle()
            product = None if self.known is None else self.target - self.known - self.soft * self.u
            self.known = None
            alpha, f = yield from self.hessian.answer(self.u + self.pull, product)
            e = self.target - f - self.soft * self.u
            shift = self.shift(e)
            e -= shift
            self.b = shift if self.paired else self.hessian.intercept(alpha)
            report = self.report(alpha, f)
            yield report
            rising = report.lower_bound > highest + RISE * abs(highest)
            least, highest = min(least, report.objective), max(highest, report.lower_bound)
            gap = self.column.relative_gap(least, highest)
            stalled, mark = (0, min(mark, gap)) if gap < ONWARD * mark or rising else (stalled + 1, mark)
            if stalled >= STALL_ROUNDS:
                return
            if self.further and isinstance(self.hessian, SupportHessian):
                yield from self.over_rows(self.hessian, e + shift, LAST_VIOLATION, self.further)
            elif self.levels and isinstance(self.hessian, ColumnHessian):
                H = self.hessian
                yield from self.to_next_level(H.R, H.border, H.omega, e + shift)
            else:
                yield from self.improve(e)

    def settle(self) -> None:
        """Take from the sum of u what rounding left there: a large bias would multiply it."""
        if self.paired:
            room = np.minimum(self.u - self.low, self.high - self.u)
            i = int(room.argmax())
            self.u[i] -= min(max(math.fsum(self.u[self.u != 0].tolist()), -room[i]), room[i])

    def report(self, alpha: np.ndarray, f: np.ndarray) -> Report:
        """Objective and bound as they follow from alpha and f: what they are exactly, the certificate finds out."""
        column, beta = self.column, self.beta()
        sigma = column.y * alpha - (column.sides @ beta + column.pull)
        squares = max(float(alpha @ f), 0.0)
        value = primal_objective(column, column.y * (f + (self.b if self.paired else 0.0)), squares)[0]
        lower = column.bound(beta, sigma) - 0.5 * squares
        return Report.estimated(value, lower, Point(beta, sigma, self.form.features.expand(alpha), self.b))

    def improve(self, e: np.ndarray, only: np.ndarray | None = None) -> Generator[None, None, None]:
        """Choose a working set at the gradient e, `only` among some rows, and solve on it."""
        violation = self.violation(e)
        worst = float(violation.max())
        near = float(np.clip(2.0 * worst, FIRST_KINK_DISTANCE * self.scale, LEAST_KINK_DISTANCE * self.scale))
        free, cheap = (self.u > self.low) & (self.u < self.high), self.hessian.cheap
        new = (violation > 0) & ~cheap
        many = np.count_nonzero(new) > MANY_NEW_ROWS_SHARE * new.shape[0]
        if many:
            # Most of them stop violating once the worst are settled.
            new &= violation > self.hessian.dear * worst
        wanted = free | ((violation > 0) | (np.abs(e) < near)) & cheap | new
        rows = np.flatnonzero(wanted if only is None else wanted & only)
        if rows.shape[0] == 0:
            return
        H = yield from self.hessian.block(rows)
        g, zeros = e[rows].copy(), np.zeros(rows.shape[0])
        # What the block leaves out need not be solved further than it changes things.
        enough = max(self.hessian.settles * worst, 1e-14 * self.scale)
        left, budget = (yield from self.climb(H, rows, g, enough, zeros, 0.0)), BUDGET
        for _ in range(NEWTON):
            if left <= enough:
                return
            yield from self.newton(H, rows, g)
            budget = min(GREEDY_STEPS_GROWTH * budget, GREEDY_STEPS_PER_ROW)
            left = yield from self.climb(H, rows, g, enough, zeros, 0.0, budget)
