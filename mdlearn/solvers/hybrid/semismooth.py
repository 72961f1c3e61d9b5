"""Semismooth Newton of the hybrid solver: a method of multipliers on hinges, finite Newton steps on squared ones.

Every hinge is replaced by its envelope around the multipliers so far, quadratic where these are between their bounds.
Newton's matrix is A + sigma R_F' R_F over the free rows F, or one of the size of F where these are fewer than columns.
Once the slope is small beside the gap, the multipliers move on, and the envelopes become steeper (Li, Sun and Toh,
"A highly efficient semismooth Newton augmented Lagrangian method for solving lasso problems", 2018, on the same idea).
Far rows keep their multipliers: several steps go over the rows next to a kink, then one line search over all.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from mdlearn._solvers import envelopes
from mdlearn.data.rows.affine import AffineRows
from mdlearn.numerics import cholesky
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.numerics.interruptible import with_heartbeat
from mdlearn.numerics.lazy_property import kept
from mdlearn.solvers.base import Report
from mdlearn.solvers.hybrid.loss_column import DPOSV, DSYRK, NO_MATRIX, LossColumn, LossColumnPart
from mdlearn.solvers.systems.weighted_gram import RunningWeightedGram, copy_lower, gram_of_rows

STEEPNESS_GROWTH, STEEPNESS_GROWTH_OVER_MANY_ROWS, MANY_ROWS_PER_COLUMN = 3.0, 5.0, 40
"""Growth of the steepness when multipliers move on: a stage more costs passes over the rows, a longer one factors."""
SOLVED = 0.05
"""Share of the gap that the squared slope may have by then."""
MOST_MOVES = 8
SHORT_STEP, SHORT_STEPS = 0.01, 3
"""Length of a step, and number of them in a row, that tell of envelopes that are too steep: steps zigzag between kinks.
"""
FREE_ROWS_PER_COLUMN = 0.5
"""Free rows per column below which the matrix is one of their size."""
LARGEST_MATRIX = 2001
"""Rows of the largest matrix that is factored: beyond, another engine is the better one."""
NEAR_ROWS, NEAR_ROWS_LEAST, NEAR_SHARE = 4, 64, 0.05
"""Rows next to a kink: so many times the free ones, and some more, or a share of all."""
WORTHWHILE_SHARE = 1 / 3
"""Share of all rows up to which steps over those next to a kink are worth their choice."""
NEAR_STEPS = 20
"""Most Newton steps over such rows."""
SOLVED_NEAR, SOLVED_SOFT = 0.01, 1e-4
"""Squared slope at their end: as a share of the gap; of squared hinges, of what it was at their beginning."""
NEAR_BLOCK_ENTRIES = 1 << 20
"""Entries of rows that are copied to one dense block, for steps in compiled code."""
CALL_OPERATIONS = 3e7
"""Operations of such steps between two heartbeats."""
LOST_ROWS_SHARE = 0.2
"""Share of squared hinges that a step may lead out of, beyond which its multipliers bound nothing."""
HINGE_LINE, SQUARED_LINE = 1e-3, 1e-12
"""Share of a slope along a line that may be left: hinges, whose envelopes will change; squared ones."""


class RowEnvelopes:
    """Envelopes (smoothed hinges) of some rows, and semismooth Newton steps with the rest of the objective linear.

    Attributes
    ----------
    z, u : ndarray of shape (m,)
        Margins and multipliers; `u` belongs to `z` after `look`.
    alpha : ndarray of shape (m,)
        Numbers that w is made of: A w = R'alpha + e. They need not be within the bounds.
    kept : float
        Share of the first ones, or of what other rows pushed with, that is still in it.
    free : ndarray of int64
        Rows between their bounds.
    """

    def __init__(
        self, problem: LossColumn, centre: np.ndarray, steepness: np.ndarray, z: np.ndarray, alpha: np.ndarray
    ) -> None:
        self.problem, self.centre, self.steepness, self.z, self.alpha = problem, centre, steepness, z, alpha
        self.kept = 1.0
        self.u, self.room = np.empty_like(z), np.empty(z.shape[0], dtype=np.int64)
        self.free = self.room[:0]
        self.close = SQUARED_LINE if problem.soft else HINGE_LINE

    @kept
    def sum(self) -> RunningWeightedGram:
        """The matrix of the free rows, kept from step to step."""
        p = self.problem
        return RunningWeightedGram(p.stored, p.rows.constant, np.zeros(p.width), None)

    def evaluate(self) -> None:
        """Multipliers at the present margins."""
        p = self.problem
        n = envelopes.slopes(self.z, self.centre, self.steepness, p.caps, p.kink, self.u, self.room)
        self.free = self.room[:n]

    def direction(self, g: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Newton step against the slope g."""
        p, free = self.problem, self.free
        s = self.steepness[free]
        if not free.shape[0] and p.quadratic.A is None:
            return -g
        if min(free.shape[0], p.width) > LARGEST_MATRIX:
            raise NotPositiveDefinite(f"a matrix of {LARGEST_MATRIX} rows is the largest one")
        if p.quadratic.A is None and free.shape[0] < FREE_ROWS_PER_COLUMN * p.width:
            some = AffineRows(p.stored.take(free), p.rows.constant)
            M = yield from gram_of_rows(some.rows)
            M += float(p.rows.constant)
            M.flat[:: M.shape[0] + 1] += 1.0 / s
            x = yield from cholesky.cholesky_solution(M, some.dot(g))
            return some.adjoint(x) - g
        # In units of the steepest: the sum over free rows stays when all become steeper.
        unit = float(s.max(initial=0.0)) or 1.0
        weights = np.zeros(p.n_rows)
        weights[free] = s / unit
        yield from self.sum.to(weights, p.quadratic.diagonal / unit)
        M = p.quadratic.shifted(1.0 / unit, copy_lower(self.sum.M, np.empty_like(self.sum.M)))
        return (yield from cholesky.cholesky_solution(M, g / -unit))

    def follow(self, dz: np.ndarray, t: float) -> np.ndarray:
        """Go along a Newton step with the change dz of the margins for a length t; return where all of it leads."""
        towards = self.u.copy()
        towards[self.free] -= self.steepness[self.free] * dz[self.free]
        self.alpha = self.alpha + t * (towards - self.alpha)
        self.z, self.kept = self.z + t * dz, (1.0 - t) * self.kept
        return towards

    def length(self, dz: np.ndarray, start: float, bend: float) -> float:
        """Minimiser along a step; `start` is the slope there, `bend` the second derivative of all but the loss."""
        p = self.problem
        return envelopes.minimum(
            self.z, dz, self.centre, self.steepness, p.caps, p.kink, self.u, start, bend, self.close
        )


class SemismoothNewton(RowEnvelopes):
    """Semismooth Newton method of the hybrid solver: coefficients w, margins, multipliers, objective and bound.

    Parameters
    ----------
    problem : LossColumn
    w : ndarray
        Where to begin.
    centre : ndarray of shape (m,)
        Multipliers that the envelopes are around; of squared hinges nothing.
    steepness : float
        Of rows of weight 1; of squared hinges nothing.
    alpha : ndarray of shape (m,)
        Numbers that w is made of.
    """

    def __init__(
        self, problem: LossColumn, w: np.ndarray, centre: np.ndarray, steepness: float, alpha: np.ndarray
    ) -> None:
        counts = problem.column.counts
        if problem.soft:
            centre = np.zeros(problem.n_rows)
            s = np.divide(1.0, problem.softness, out=np.zeros_like(counts), where=problem.softness > 0)
        else:
            s = steepness * counts
        super().__init__(problem, centre, s, problem.margins(w), alpha)
        self.w, self.block, self.short_steps = w, None, 0
        many = problem.n_rows >= MANY_ROWS_PER_COLUMN * problem.width
        self.growth = STEEPNESS_GROWTH_OVER_MANY_ROWS if many else STEEPNESS_GROWTH
        if problem.small:
            self.block = SemismoothBlock(problem.block())
        self.lower_bound, self.beta = -math.inf, self.u
        self.evaluate()
        self.compute_slope()

    def evaluate(self) -> None:
        """Multipliers and objective at the present place."""
        super().evaluate()
        p, w = self.problem, self.w
        self.Aw = p.quadratic.times(w)
        self.objective = 0.5 * float(w @ self.Aw) + p.loss(self.z) - (0.0 if p.pulled is None else float(p.pulled @ w))

    def compute_slope(self) -> None:
        """Slope at the present place, and the bound of its multipliers: one pass over the rows."""
        p = self.problem
        self.pushed = p.adjoint(self.u)
        if p.pulled is not None:
            self.pushed += p.pulled
        self.slope = self.Aw - self.pushed
        value = p.gain(self.u) - 0.5 * p.quadratic.squared_length(self.pushed)
        # Those of hinges are the centres of the envelopes that follow: their bound, whether better or worse.
        if value > self.lower_bound or not p.soft:
            self.lower_bound, self.beta = value, self.u.copy() if p.soft else self.u

    @property
    def gap(self) -> float:
        """Objective less bound."""
        return self.objective - self.lower_bound

    def steps(self) -> Generator[bool, None, None]:
        """Go on; yield True at every new place, False as a heartbeat. Ends where no step leads on."""
        if self.block is not None:
            while self._stage(self.block):
                yield True
            return
        soft = self.problem.soft
        while True:
            if not soft:
                self._move_on()
            near = self._near()
            if near is None:
                step = yield from with_heartbeat(self.direction(self.slope), False)
                dz = self.problem.margins(step)
            else:
                w, made_of, kept = yield from self._near_steps(near)
                yield False
                step, dz = w - self.w, self.problem.margins(w) - self.z
            bend = float(step @ self.problem.quadratic.times(step))
            t = self.length(dz, float(self.slope @ step), bend)
            if not math.isfinite(t):
                return
            full, self.w = self.w + step, self.w + t * step
            if near is None:
                towards = self.follow(dz, t)
            else:
                self.z, self.alpha = self.z + t * dz, self.alpha + t * (made_of - self.alpha)
                self.kept *= 1.0 - t + t * kept
            self._ease(t)
            yield False
            self.evaluate()
            if soft and self.problem.quadratic.A is None:
                self.raise_bound(towards, full)
                yield True
                # The last place needs no slope, which a full step leaves to the rows that came or went.
                if t == 1.0:
                    self.slope = self.problem.adjoint_of_few(towards - self.u)
                else:
                    self.compute_slope()
                continue
            self.compute_slope()
            yield True

    def report(self) -> Report:
        """Report the coefficients, with the multipliers of the bound."""
        return self.problem.report(self.objective, self.lower_bound, self.beta, self.z, self.w, self.alpha)

    def raise_bound(self, towards: np.ndarray, full: np.ndarray) -> None:
        """Bound of the multipliers that a full step to coefficients `full` leads to, if it loses few squared hinges."""
        p = self.problem
        beta = np.maximum(towards, 0.0)
        if np.count_nonzero(towards - beta) > LOST_ROWS_SHARE * p.n_rows:
            return
        # R' towards is where the step leads: its matrix is that of the present second derivatives.
        made = full - p.adjoint_of_few(towards - beta)
        if p.pulled is not None:
            made -= p.pulled
        value, length = p.largest_bound_along(beta, made)
        if value > self.lower_bound:
            self.lower_bound, self.beta = value, length * beta

    def _move_on(self) -> None:
        """Take the multipliers as centres of steeper envelopes, as often as the slope is small beside the gap."""
        for _ in range(MOST_MOVES):
            if not self.quadratic_slope() <= SOLVED * self.gap:
                return
            self.centre, self.u = self.u, np.empty_like(self.u)
            self.steepness = self.growth * self.steepness
            self.evaluate()
            self.compute_slope()

    def _ease(self, t: float) -> None:
        """Take flatter envelopes around the same multipliers where steps are cut short again and again."""
        self.short_steps = self.short_steps + 1 if t < SHORT_STEP and not self.problem.soft else 0
        if self.short_steps >= SHORT_STEPS:
            self.steepness, self.short_steps = self.steepness / self.growth**2, 0

    def quadratic_slope(self) -> float:
        """1/2 g'A^-1 g: what the smooth problem could still fall by, at most."""
        return 0.5 * self.problem.quadratic.squared_length(self.slope)

    def _near(self) -> np.ndarray | None:
        """Rows next to a kink; None where they are too many for their choice to be worth it."""
        p, m = self.problem, self.problem.n_rows
        n = max(NEAR_ROWS * self.free.shape[0] + NEAR_ROWS_LEAST, int(NEAR_SHARE * m))
        if p.soft or n > WORTHWHILE_SHARE * m:
            return None
        x = self.centre + self.steepness * (p.kink - self.z)
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = np.minimum(np.abs(x), np.abs(x - p.caps)) / self.steepness
        return np.sort(np.argpartition(distance, n)[:n])

    def _near_steps(self, near: np.ndarray) -> Generator[bool, None, tuple[np.ndarray, np.ndarray, float]]:
        """Newton steps with the other rows' multipliers as they are.

        Return coefficients, what these are made of, and the share of what they were made of before.
        """
        p, target = self.problem, SOLVED_NEAR * self.gap
        some = LossColumnPart(p, near)
        inner = RowEnvelopes(some, self.centre[near], self.steepness[near], self.z[near], self.alpha[near])
        if near.shape[0] * p.width <= NEAR_BLOCK_ENTRIES:
            block = SemismoothBlock(some.block())
            w = yield from block.steps(inner, self.w.copy(), self.pushed - self.u[near] @ block.B, target)
        else:
            w = yield from _semismooth_steps(inner, self.w, self.pushed - some.adjoint(self.u[near]), target)
        alpha = self.u + inner.kept * (self.alpha - self.u)
        alpha[near] = inner.alpha
        return w, alpha, inner.kept

    def _stage(self, block: SemismoothBlock) -> bool:
        """Newton steps over all rows, as one piece of compiled code; say whether there were any."""
        p = self.problem
        fixed = np.zeros(self.w.shape) if p.pulled is None else p.pulled
        A, L = p.quadratic.A, p.quadratic.L
        # Places that were offered keep their arrays.
        self.w, self.z, self.u, self.alpha = self.w.copy(), self.z.copy(), self.u.copy(), self.alpha.copy()
        self.centre, self.steepness = self.centre.copy(), self.steepness.copy()
        taken, share, self.objective, gap = envelopes.stage(
            block.B,
            NO_MATRIX if A is None else A,
            NO_MATRIX if L is None else L,
            fixed,
            self.centre,
            self.steepness,
            p.caps,
            p.softness,
            p.kink,
            self.w,
            self.z,
            self.u,
            self.alpha,
            self.room,
            block.room,
            block.most_steps,
            self.gap,
            SOLVED,
            self.growth,
            0 if p.soft else MOST_MOVES,
            SOLVED_SOFT if p.soft else SOLVED_NEAR,
            self.close,
        )
        self.lower_bound, self.beta = self.objective - gap, self.u
        self.kept *= share
        return bool(taken)


def _semismooth_steps(
    inner: RowEnvelopes, w: np.ndarray, fixed: np.ndarray, target: float
) -> Generator[bool, None, np.ndarray]:
    """Semismooth Newton steps over rows that are too many, or too long, for a `SemismoothBlock`."""
    p = inner.problem
    for _ in range(NEAR_STEPS):
        inner.evaluate()
        g = p.quadratic.times(w) - fixed - p.adjoint(inner.u)
        if float(g @ g) <= target:
            break
        step = yield from with_heartbeat(inner.direction(g), False)
        dz = p.margins(step)
        t = inner.length(dz, float(g @ step), float(step @ p.quadratic.times(step)))
        if not math.isfinite(t):
            break
        w = w + t * step
        inner.follow(dz, t)
        yield False
    return w


class SemismoothBlock:
    """Signed rows as one dense array, with room for semismooth Newton steps over them."""

    def __init__(self, B: np.ndarray) -> None:
        k, n = B.shape
        self.B, self.change = B, np.empty(k)
        M, held, columns = np.empty((n, n)), np.empty((k, n)), np.empty((4, max(n, k)))
        self.room = envelopes.Work(k, n, M, held, columns, self.change, DSYRK, DPOSV)
        operations = k * n * (4.0 + 0.25 * n) + n**3 / 3.0
        self.most_steps = int(min(max(CALL_OPERATIONS / operations, 1.0), float(NEAR_STEPS)))

    def steps(
        self, inner: RowEnvelopes, w: np.ndarray, fixed: np.ndarray, target: float
    ) -> Generator[bool, None, np.ndarray]:
        """Change w and `inner` by Newton steps to a squared slope of `target`; `fixed` is what other rows push with."""
        p, most = inner.problem, self.most_steps
        A = NO_MATRIX if p.quadratic.A is None else p.quadratic.A
        for _ in range(0, NEAR_STEPS, most):
            ended, share = envelopes.newton_steps(
                self.B,
                A,
                fixed,
                inner.centre,
                inner.steepness,
                p.caps,
                p.kink,
                w,
                inner.z,
                inner.u,
                inner.alpha,
                inner.room,
                self.room,
                most,
                target,
                inner.close,
            )
            inner.kept *= share
            if ended:
                break
            if most < NEAR_STEPS:
                yield False
        return w
