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
from mdlearn.numerics.interruptible import with_heartbeat
from mdlearn.numerics.lazy_property import kept
from mdlearn.solvers.base import Report
from mdlearn.solvers.hybrid.descent import HybridDescent
from mdlearn.solvers.hybrid.loss_column import LossColumn, LossColumnOfChosenRows
from mdlearn.solvers.hybrid.row_envelopes import LARGEST_MATRIX, RowEnvelopeBlock, RowEnvelopes, row_envelope_steps
from mdlearn.solvers.hybrid.smooth_steps import SmoothStep, SmoothStepSystem, smooth_conjugate_gradient_step
from mdlearn.solvers.hybrid.sweeps import (
    price_of_factored_newton_sweeps,
    price_of_gradient_steps,
    price_of_iteration,
    price_of_large_factor,
    takes_gradient_steps,
)
from mdlearn.solvers.systems.narrow_rows import NO_MATRIX

STEEPNESS_GROWTH, STEEPNESS_GROWTH_OVER_MANY_ROWS, MANY_ROWS_PER_COLUMN = 3.0, 5.0, 40
"""Growth of the steepness when multipliers move on: a stage more costs passes over the rows, a longer one factors."""
SOLVED = 0.05
"""Share of the gap that the squared slope may have by then."""
MOST_MOVES = 8
SHORT_STEP, SHORT_STEPS = 0.01, 3
"""Length of a step, and number of them in a row, that tell of envelopes that are too steep: steps zigzag between kinks.
"""
NEAR_ROWS, NEAR_ROWS_LEAST, NEAR_SHARE = 4, 64, 0.05
"""Rows next to a kink: so many times the free ones, and some more, or a share of all."""
WORTHWHILE_SHARE = 1 / 3
"""Share of all rows up to which steps over those next to a kink are worth their choice."""
SOLVED_NEAR, SOLVED_SOFT = 0.01, 1e-4
"""Squared slope at the end of steps over such rows: as a share of the gap; of squared hinges, of what it was at their
beginning."""
NEAR_BLOCK_ENTRIES = 1 << 20
"""Entries of rows that are copied to one dense block, for steps in compiled code."""
LOST_ROWS_SHARE = 0.2
"""Share of squared hinges that a step may lead out of, beyond which its multipliers bound nothing."""
ASCENDED_FALL, ASCENDED_GAP, ASCENTS_AHEAD = 5.0, 50.0, 4.0
"""Last fall of the objective of squared hinges, and the gap, in tolerances, up to which a pass of coordinate ascent
raises the bound: that is off, not the place. Passes at the pace of the last one that are to close the gap for another
one to follow: paces fall. On a9a at C = 10 the first takes the gap from 0.45 to 0.007, for a fourth of a step."""
ROUNDED_MADE_COEFFICIENT, ROUNDED_MADE_PER_TOL = 1e-9, 1e-4
"""Difference between coefficients and what multipliers of steep losses make, as a share of the largest, that rounding
may leave: always, and in units of the tolerance. A search for dual coefficients takes 0.1 s on reuters_moneyfx."""
GRADIENT_RESIDUAL, LAST_GRADIENT_RESIDUAL, MOST_GRADIENT_ITERATIONS = 0.1, 1e-3, 300
"""Share of the slope of squared hinges that conjugate gradients leave, that where only the coefficients of the
multipliers are not yet good enough, and their most iterations in a step."""


class SemismoothNewton(RowEnvelopes):
    """Semismooth Newton method of the hybrid solver: coefficients w, margins, multipliers, objective and bound.

    Parameters
    ----------
    problem : LossColumn
    w : ndarray
        Where to begin.
    centre : ndarray of shape (m,)
        Multipliers that the envelopes are around; of squared hinges those whose rows the first step goes over, or 0.
    steepness : float
        Of rows of weight 1; of squared hinges nothing.
    alpha : ndarray of shape (m,)
        Numbers that w is made of.

    Attributes
    ----------
    tol : float
        Gap that is asked of the steps; 0 where none is, and before they begin.
    may_iterate, factored, iterated : bool
        Whether steps may be made by conjugate gradients; are made by factors where these are small enough; and whether
        `alpha` is only nearly what the coefficients are made of.
    iterations : int
        Conjugate gradients of the last step that was made by them.
    face : ndarray of int64
        Rows of squared hinges that the next step takes for those with a loss, where these are not yet to be known.
    """

    def __init__(
        self, problem: LossColumn, w: np.ndarray, centre: np.ndarray, steepness: float, alpha: np.ndarray
    ) -> None:
        counts = problem.column.counts
        self.face = np.flatnonzero(centre if problem.soft else ())
        if problem.soft:
            centre = np.zeros(problem.n_rows)
            s = np.divide(1.0, problem.softness, out=np.zeros_like(counts), where=problem.softness > 0)
        else:
            s = steepness * counts
        super().__init__(problem, centre, s, problem.margins(w), alpha)
        self.w, self.block, self.short_steps, self.tol = w, None, 0, 0.0
        self.iterations, self.iterated, self.factored = 0, False, False
        self.may_iterate, self.price_of_factor = takes_gradient_steps(problem), price_of_factored_newton_sweeps(problem)
        many = problem.n_rows >= MANY_ROWS_PER_COLUMN * problem.width
        self.growth = STEEPNESS_GROWTH_OVER_MANY_ROWS if many else STEEPNESS_GROWTH
        if problem.small:
            self.block = RowEnvelopeBlock(problem.block())
        self.lower_bound, self.beta = -math.inf, self.u
        self.evaluate()
        self.compute_slope()

    @kept
    def descent(self) -> HybridDescent:
        """Coordinate ascent from multipliers of squared hinges."""
        return HybridDescent(self.problem, self.problem.own_quadratic)

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

    def steps(self, tol: float = 0.0) -> Generator[bool, None, None]:
        """Go on; yield True at every new place, False as a heartbeat. Ends where no step leads on.

        With a gap `tol` that is asked for, the bound of squared hinges is raised where this may end the fit.
        """
        if self.block is not None:
            while self._stage(self.block):
                yield True
            return
        self.tol, soft = tol, self.problem.soft
        while True:
            if not soft:
                self._move_on()
            near, made, u, slope, over_face = self._near(), None, self.u, self.slope, self.face.shape[0] > 0
            if over_face:
                self._restrict_to_face()
            if near is None and self._iterates():
                made = yield from with_heartbeat(self._gradient_step(), False)
                step, dz = made.step, made.dz
            elif near is None:
                step = yield from with_heartbeat(self.direction(self.slope), False)
                dz = self.problem.margins(step)
            else:
                w, made_of, kept = yield from self._near_steps(near)
                yield False
                step, dz = w - self.w, self.problem.margins(w) - self.z
            bend = float(step @ self.problem.quadratic.times(step))
            t = self.length(u, dz, float(slope @ step), bend)
            if not math.isfinite(t):
                if not over_face:
                    return
                self.evaluate()
                self.slope = slope
                continue
            full, self.w, objective = self.w + step, self.w + t * step, self.objective
            if made is not None:
                towards, alpha = made.towards, made.towards if made.alpha is None else made.alpha
                self.z, self.alpha = self.z + t * dz, self.alpha + t * (alpha - self.alpha)
                self.iterated = made.alpha is None or (self.iterated and t != 1.0)
            elif near is None:
                towards = self.follow(dz, t)
                self.iterated &= t != 1.0
            else:
                self.z, self.alpha = self.z + t * dz, self.alpha + t * (made_of - self.alpha)
                self.kept *= 1.0 - t + t * kept
            self._ease(t)
            yield False
            self.evaluate()
            if soft and self.problem.quadratic.A is None:
                cut = self.raise_bound(towards, full if made is None else None)
                yield True
                if cut is not None and self.gap_in_tolerances(objective, self.objective) <= ASCENDED_FALL:
                    yield from self._ascend(*cut)
                # The last place needs no slope, which a full step leaves to the rows that came or went.
                if t == 1.0 and made is None:
                    self.slope = self.problem.adjoint_of_few(towards - self.u)
                else:
                    self.compute_slope()
                continue
            self.compute_slope()
            yield True

    def _restrict_to_face(self) -> None:
        """Take the quadratic over the rows of the face for the objective, once: its multipliers and its slope.

        Where coordinate ascent leaves off, its multipliers know better than margins next to a kink which rows have a
        loss at the optimum: steps over those of the margins are cut short again and again.
        """
        p, self.free, self.face = self.problem, self.face, self.face[:0]
        self.u = np.zeros(p.n_rows)
        self.u[self.free] = self.steepness[self.free] * (p.kink - self.z[self.free])
        pushed = p.adjoint(self.u) if p.pulled is None else p.adjoint(self.u) + p.pulled
        self.slope = self.Aw - pushed

    def _iterates(self) -> bool:
        """Whether the next step is cheaper by conjugate gradients: not once these took longer than a factor would.

        Nor once so many did not end a step: what they leave of steep losses is no Newton step.
        """
        p, free = self.problem, self.free.shape[0]
        order = min(free, p.width)
        if not self.may_iterate or order > LARGEST_MATRIX:
            return self.may_iterate
        spent = self.iterations * price_of_iteration(p, free)
        self.factored |= self.iterations == MOST_GRADIENT_ITERATIONS or spent > price_of_large_factor(order)
        return not self.factored and price_of_gradient_steps(p, free) < self.price_of_factor(free)

    def _gradient_step(self) -> Generator[None, None, SmoothStep]:
        """Newton step on squared hinges by conjugate gradients over the free rows.

        Fewer rows than columns leave directions in which the ridge is all there is: it alone preconditions, and what
        coefficients are made of goes along. So it does on the other rows, whose weights fall by one share: that of a
        row more, of weight 1 and without a loss. Otherwise the coefficients of the multipliers have to do, which takes
        better steps at the end.
        """
        p, free, n = self.problem, self.free, self.free.shape[0]
        chosen, ridge, few = np.append(free, 0), np.ones(p.width), n < p.width
        some = LossColumnOfChosenRows(p, chosen, stored=True)
        bends, u, alpha = self.steepness[chosen], self.u[chosen], self.alpha[chosen]
        bends[n], u[n], alpha[n] = 0.0, 0.0, 1.0
        system = SmoothStepSystem(some, ridge, bends, u, self.slope, alpha if few else None)
        diagonal = ridge if few else ridge + some.affine_stored.column_squares(bends)
        last = not few and self.gap_in_tolerances(self.objective, self.lower_bound) <= 1.0
        residual = LAST_GRADIENT_RESIDUAL if last else GRADIENT_RESIDUAL
        made = yield from smooth_conjugate_gradient_step(system, diagonal, residual, 0.0, MOST_GRADIENT_ITERATIONS)
        whole: np.ndarray | None = None
        towards, self.iterations = self.u.copy(), made.iterations
        towards[free] = made.towards[:n]
        if made.alpha is not None:
            whole = float(made.alpha[n]) * self.alpha
            whole[free] = made.alpha[:n]
        return made._replace(dz=p.margins(made.step), towards=towards, alpha=whole)

    def report(self) -> Report:
        """Report the coefficients, with the multipliers of the bound."""
        p, w = self.problem, self.w
        if self.may_iterate and p.width > LARGEST_MATRIX and not self.iterated:
            # Steep losses leave rounding between w and what it is made of: a search for that would be long.
            made = p.adjoint(self.alpha) if p.pulled is None else p.adjoint(self.alpha) + p.pulled
            rounded = max(ROUNDED_MADE_COEFFICIENT, ROUNDED_MADE_PER_TOL * self.tol) * float(np.abs(w).max())
            w = made if float(np.abs(made - w).max()) <= rounded else w
        alpha = None if self.iterated else self.alpha
        return p.report(self.objective, self.lower_bound, self.beta, self.z, w, alpha)

    def raise_bound(self, towards: np.ndarray, full: np.ndarray | None) -> tuple[np.ndarray, np.ndarray] | None:
        """Bound of the multipliers that a full step to coefficients `full` leads to, if it loses few squared hinges.

        `full` is None where the step does not make these coefficients of them exactly.
        Return these multipliers, cut to their bounds, and the coefficients that they make.
        """
        p = self.problem
        beta = np.maximum(towards, 0.0)
        if np.count_nonzero(towards - beta) > LOST_ROWS_SHARE * p.n_rows:
            return None
        # R' towards is where the step leads: its matrix is that of the present second derivatives.
        if full is not None:
            made = full - p.adjoint_of_few(towards - beta)
        else:
            made = p.adjoint(beta) if p.pulled is None else p.adjoint(beta) + p.pulled
        self._take_bound(beta, made)
        return beta, made

    def _take_bound(self, beta: np.ndarray, reached: np.ndarray) -> bool:
        """Take multipliers that make the coefficients `reached` for the bound where they say more; say whether."""
        value, length = self.problem.largest_bound_along(beta, reached)
        better = value > self.lower_bound
        if better:
            self.lower_bound, self.beta = value, length * beta
        return better

    def _ascend(self, beta: np.ndarray, made: np.ndarray) -> Generator[bool, None, None]:
        """Raise the bound by coordinate ascent from multipliers of squared hinges that make the coefficients `made`.

        It passes over the rows whose multipliers or losses are not 0.
        """
        if not self.gap_in_tolerances(self.objective, self.lower_bound) <= ASCENDED_GAP:
            return
        descent = self.descent
        descent.begin_at(beta, made, np.flatnonzero((beta > 0) | (self.u > 0)))
        while True:
            before = self.gap
            yield from with_heartbeat(descent.pass_once(), False)
            better = self._take_bound(descent.beta, descent.element)
            far = self.gap_in_tolerances(self.objective, self.lower_bound)
            if better and far <= 1.0:
                yield True
            if far <= 1.0 or not math.log(far) <= ASCENTS_AHEAD * math.log(before / self.gap):
                return

    def gap_in_tolerances(self, objective: float, value: float) -> float:
        """Gap between an objective and another value, in units of the tolerance; infinity for a tolerance of 0."""
        return self.problem.column.relative_gap(objective, value) / self.tol if self.tol > 0 else math.inf

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
        some = LossColumnOfChosenRows(p, near)
        inner = RowEnvelopes(some, self.centre[near], self.steepness[near], self.z[near], self.alpha[near])
        if near.shape[0] * p.width <= NEAR_BLOCK_ENTRIES:
            block = RowEnvelopeBlock(some.block())
            w = yield from block.steps(inner, self.w.copy(), self.pushed - self.u[near] @ block.B, target)
        else:
            w = yield from row_envelope_steps(inner, self.w, self.pushed - some.adjoint(self.u[near]), target)
        alpha = self.u + inner.kept * (self.alpha - self.u)
        alpha[near] = inner.alpha
        return w, alpha, inner.kept

    def _stage(self, block: RowEnvelopeBlock) -> bool:
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
