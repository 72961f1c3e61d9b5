"""Smooth (logistic) terms in the hybrid solver: Newton's method by second derivatives, else conjugate gradients.

Slopes moved along the model of a step, u - D dz, are multipliers that stand for the point which the full step leads to,
so that the bound takes no pass over the rows. Conjugate gradients are preconditioned by the second derivative of a
sample of the rows; over very many columns by its diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from mdlearn._solvers import logistic
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.numerics import cholesky
from mdlearn.numerics.interruptible import with_heartbeat
from mdlearn.numerics.lazy_property import kept
from mdlearn.solvers.base import Report
from mdlearn.solvers.hybrid.loss_column import OPERATION_ON_MATRIX, LossColumn, LossColumnFactor
from mdlearn.solvers.hybrid.smooth_steps import (
    BALANCED_SUM,
    SmoothStep,
    SmoothStepBlock,
    SmoothStepSystem,
    balanced_multipliers,
    sampled_bends,
    smooth_conjugate_gradient_step,
    smooth_steps_until_crawling,
)
from mdlearn.solvers.systems.weighted_gram import (
    RunningWeightedGram,
    copy_lower_weighted_gram,
    weighted_gram_operations,
)

EXACT_PASSES = 32.0
"""Passes over the rows up to whose operations the exact matrix of second derivatives is made."""
PRECONDITIONER_COLUMNS, FACTOR_PASSES = 1500, 100.0
"""Columns up to which the preconditioner is a matrix, and passes over the rows that its factor may cost."""
PRECONDITIONER_ROWS = 8
"""Rows per column in the preconditioner's sample."""
FULL_STEP = 0.3
"""Share of its first slope that a step of length 1 may leave."""
ROUNDING_OF_LOSS = 1e-13
"""Share of the objective that rounding may make it rise by along a step."""
OTHER_STEP = 0.1
"""Share that another length may leave."""
FLAT_LOSS = 1e-6
"""Share of its largest second derivative that a loss is taken to have at least along a free bias: the steps of one that
bends nowhere near its margins would have no end."""
RESIDUAL_SHARE, EARLY_RESIDUAL_SHARE, LEAST_RESIDUAL_SHARE = 0.3, 0.1, 1e-2
"""Residual of conjugate gradients, as a share of the slope: at most, also where a factor may follow or columns are
even, and at least."""
EVEN_SHARE, LEAST_BENT_COLUMN = 0.1, 2.0
"""Share of a column in the sum of the diagonal of second derivatives up to which columns are even: the ridge alone then
preconditions as well, and what coefficients are made of is known. It is 0.015 to 0.06 on reuters_moneyfx, where fits
take 0.5 to 0.9 of the time, 0.001 on drawn words of even weight, and 0.26 on counts, which take twice the products.
Where the largest second derivative of a column is less than the other number, few iterations are needed anyway."""
GRADIENT_ITERATIONS, FEW_ITERATIONS = 100, 8
"""Most iterations of a step, and below how many columns that were even count as even for the next, without the pass
that tells: at a gap of 1e-2 fits of reuters_moneyfx and four drawn sparse sets take 0.91 to 1.00 of the time."""
STEP_ENERGY, LEAST_STEP_ENERGY = 0.03, 1e-4
"""Share of its first energy that a step by a factor of other second derivatives may leave: at most, and at least; in
between that of the gap in the objective."""
MISSED_FALL = 0.01
"""Share of the objective by which a full step may miss the fall of its model for its multipliers to be tried for a
bound: gaps were 0.6 to 9 times that share. At a gap of 1e-2 fits of a9a, mushroom, reuters_moneyfx and five drawn
sparse sets take 0.92 to 1.00 of the time of a bound each step."""
SHORT_SMOOTH_STEP = 0.3
"""Length of a step below which its factor tells too little of the present second derivatives."""
RENEWAL_STEPS = 3.0
"""Steps like the last one whose iterations cost more than a new factor."""
ITERATION_PASSES, SCALED_ENTRY = 2.0, 8.0
"""Operations of an iteration on every entry, and those of writing an entry of dense rows out for products."""
SCATTERED, SCATTERED_IN_CACHE, CACHED_MATRIX = 2.0, 1.25, 1 << 17
"""Operations that a product counts for which is added to a large matrix, or to one of at most so many entries: 1.2 to
1.4 were measured over 22 to 287 columns."""
BOUND_REPAIRS, REPAIRED_GAP, REPAIRED_FALL, REPAIR_LENGTH = 2, 15.0, 3.0, 1.6
"""Most repairs of cut multipliers after a step, the gap and the last fall of the objective, in tolerances, up to which
they are made: the bound is off, not the place. How many times what is missing a repair adds, for some of it is cut
again. On a9a at C = 10 and 100 they replace a step."""
ROUNDED_COEFFICIENT = 1e-9
"""Difference of a coefficient, as a share of the largest, that the rounding of steps with earlier factors makes."""


class SmoothNewton:
    """Newton's method of the hybrid solver on a smooth column: coefficients w, margins, objective, bound.

    Parameters
    ----------
    problem : LossColumn
    ridge : ndarray of shape (n,)
        Weights of the squared norm: 0 for a free bias.
    w : ndarray of shape (n,)
    alpha : ndarray of shape (m,)
        Numbers that w is made of, nearly where conjugate gradients were: w = R'alpha + e.
    kept : float
        Share of the first ones that is still in it.
    factor : LossColumnFactor or None
        Of the last second derivatives that were factored.
    of_all : bool
        Whether those were of all rows, not of a sample.
    even : bool
        Whether columns were even for the last step, which took few iterations.
    """

    def __init__(self, problem: LossColumn, ridge: np.ndarray, w: np.ndarray, alpha: np.ndarray) -> None:
        self.problem, self.ridge, self.w, self.alpha, self.kept = problem, ridge, w, alpha, 1.0
        self.sharpness = float(problem.column.terms[0].alpha)  # type: ignore[union-attr]
        self.free = bool(problem.rows.constant and ridge[-1] == 0)
        self.least_bend = FLAT_LOSS * self.sharpness * float(problem.caps.sum())
        self.z = problem.margins(w)
        self.u, self.bends = np.empty_like(self.z), np.empty_like(self.z)
        self.beta, self.lower_bound = self.u, -math.inf
        self.cut: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        d = problem.width
        factoring = OPERATION_ON_MATRIX * float(d) ** 3 / 3.0
        self.factorable = d <= PRECONDITIONER_COLUMNS and factoring <= FACTOR_PASSES * problem.stored.n_entries
        self.first, self.factoring, self.exact = 0.0, factoring, self._cheap(factoring)
        self.factor: LossColumnFactor | None = None
        self.fresh, self.worn, self.of_all, self.even = False, False, False, False
        self.iterated = bool(w.any() and not alpha.any())
        self.block = SmoothStepBlock(problem.block()) if problem.small else None
        self.evaluate()
        if not w.any():
            self._take_shared_factor()

    @kept
    def sum(self) -> RunningWeightedGram:
        """The matrix of second derivatives."""
        return RunningWeightedGram(self.problem.stored, self.problem.rows.constant, self.ridge, None)

    @kept
    def operations(self) -> float:
        """Operations on entries that the matrix of second derivatives takes, without its factor."""
        rows, (m, d) = self.problem.stored, self.problem.stored.shape
        outer = (SCALED_ENTRY + OPERATION_ON_MATRIX * d) * float(m) * d
        scattered = SCATTERED if d * d > CACHED_MATRIX else SCATTERED_IN_CACHE
        return min(outer, scattered * weighted_gram_operations(rows)) if isinstance(rows, CsrRows) else outer

    def _cheap(self, factoring: float) -> bool:
        """Whether the matrix of second derivatives costs no more than the iterations that take its place."""
        (m, d), most = self.problem.stored.shape, EXACT_PASSES * self.problem.stored.n_entries
        if not self.factorable:
            return self.operations + factoring <= most
        # The preconditioner is factored, too, and made of some of the rows.
        return self.operations * (1.0 - min(1.0, PRECONDITIONER_ROWS * d / m)) <= most

    def evaluate(self) -> None:
        """Multipliers, second derivatives and objective at the present margins."""
        p = self.problem
        self.loss = logistic.slopes(self.z, p.caps, self.sharpness, p.kink, self.u, self.bends)
        self.objective = 0.5 * float((self.ridge * self.w) @ self.w) + self.loss
        if p.pulled is not None:
            self.objective -= float(p.pulled @ self.w)

    def report(self) -> Report:
        """Report the coefficients, with the multipliers of the bound."""
        # Conjugate gradients leave open what w is made of.
        alpha = None if self.iterated else self.alpha
        return self.problem.report(self.objective, self.lower_bound, self.beta, self.z, self.coefficients(), alpha)

    def coefficients(self) -> np.ndarray:
        """Coefficients w; steps with earlier factors add up to rounding, which what w is made of does not have."""
        if self.iterated or not self.w.any():
            return self.w
        p, w, made = self.problem, self.w, self.problem.adjoint(self.alpha)
        if p.pulled is not None:
            made += p.pulled
        made = np.where(self.ridge > 0, made, w)
        return made if np.abs(made - w).max() <= ROUNDED_COEFFICIENT * np.abs(w).max() else w

    @property
    def gap(self) -> float:
        """Objective less bound."""
        return self.objective - self.lower_bound

    def steps(self, tol: float = 0.0) -> Generator[int, None, None]:
        """Yield True at a new place or bound, False as a heartbeat; end where steps lead on no more, or crawl.

        With a gap `tol` that is asked for, the bound is raised where this may end the fit.
        """
        return smooth_steps_until_crawling(self, self._all_steps(tol))

    def _all_steps(self, tol: float) -> Generator[bool, None, None]:
        p = self.problem
        while True:
            if self.block is not None:
                if not self._block_step(self.block):
                    return
                yield True
                continue
            slope = self.ridge * self.w - p.adjoint(self.u)
            if p.pulled is not None:
                slope -= p.pulled
            yield False
            made = yield from self._direction(slope)
            yield False
            step, dz, towards = self._full_step(made)
            start, bend = float(slope @ step), float((self.ridge * step) @ step)
            z, w, before, objective = self.z, self.w, self.u, self.objective
            self.z, self.w, self.u = z + dz, w + step, np.empty_like(before)
            self.evaluate()
            self.cut = None
            if abs(self.objective - objective - 0.5 * start) <= max(MISSED_FALL, tol) * abs(objective):
                self._raise_bound(towards, self.w.copy() if made.made_of_rows else None, made.made_of_rows)
            t, left = 1.0, start + bend + float((before - self.u) @ dz)
            # A small slope alone may be that of the other side: margins that go through all kinks at once.
            risen = not self.objective <= objective + ROUNDING_OF_LOSS * abs(objective)
            if risen or not abs(left) <= FULL_STEP * abs(start):
                t = logistic.minimum(z, dz, p.caps, self.sharpness, p.kink, before, start, bend, OTHER_STEP)
                if not math.isfinite(t):
                    self.z, self.w = z, w
                    self.evaluate()
                    if self.factor is not None and not self.fresh:
                        self.exact = self.worn = True
                        continue
                    return
                self.z, self.w = z + t * dz, w + t * step
                self.evaluate()
            of = towards if made.alpha is None else made.alpha
            self.alpha = self.alpha + t * (of - self.alpha)
            if made.made_of_rows or made.alpha is None:
                self.kept *= 1.0 - t
            self.iterated = made.alpha is None or (self.iterated and t != 1.0)
            self.fresh, self.worn = False, self.worn or (self.factorable and t < SHORT_SMOOTH_STEP)
            yield True
            fall = objective - self.objective
            for _ in range(BOUND_REPAIRS if fall <= REPAIRED_FALL * tol * abs(objective) else 0):
                if p.column.relative_gap(self.objective, self.lower_bound) <= REPAIRED_GAP * tol:
                    if self._repair_bound():
                        yield True

    def _block_step(self, block: SmoothStepBlock) -> bool:
        """A step over rows in one dense block; say whether there was one."""
        p = self.problem
        fixed = np.zeros_like(self.w) if p.pulled is None else p.pulled
        # Places that were offered keep their arrays; a step that leads to no numbers leaves all as it was.
        before = self.w, self.z, self.u, self.bends, self.alpha
        self.w, self.z, self.u, self.bends = self.w.copy(), self.z.copy(), self.u.copy(), self.bends.copy()
        self.alpha, beta = self.alpha.copy(), np.empty_like(self.u)
        loss, lower = logistic.newton_step(
            block.B,
            self.ridge,
            fixed,
            p.caps,
            self.sharpness,
            p.kink,
            self.w,
            self.z,
            self.u,
            self.bends,
            self.alpha,
            beta,
            block.room,
            self.loss,
            ROUNDING_OF_LOSS * abs(self.loss),
            self.least_bend if self.free else 0.0,
            FULL_STEP,
            OTHER_STEP,
            BALANCED_SUM,
        )
        if not (math.isfinite(loss) and np.isfinite(self.w).all()):
            self.w, self.z, self.u, self.bends, self.alpha = before
            self.factor = None
            return False
        self.factor = LossColumnFactor(block.M, before[3])
        self.loss, self.objective = loss, 0.5 * float((self.ridge * self.w) @ self.w) - float(fixed @ self.w) + loss
        if lower > self.lower_bound:
            self.lower_bound, self.beta = lower, beta
        return True

    def _full_step(self, made: SmoothStep) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Step, its margins and the multipliers that it leads to, at the best intercept."""
        y, (step, dz, towards) = self.problem.column.y, made[:3]
        bend = float(self.bends.sum())
        if self.free and not made.made_of_rows and bend > self.least_bend:
            miss = (float(y @ towards) + self.problem.mean_pull) / bend
            step[-1] += miss
            dz, towards = dz + miss * y, towards - self.bends * (miss * y)
        return step, dz, towards

    def _raise_bound(self, towards: np.ndarray, aim: np.ndarray | None, made: bool) -> None:
        """Take multipliers, once they are within their bounds, where they say more.

        They should make the coefficients `aim`, and do where these are `made`; what is missing is kept for a repair.
        """
        p, free, stand_for, self.cut = self.problem, self.free, aim, None
        beta = np.minimum(np.maximum(towards, 0.0), p.caps)
        inside = np.array_equal(beta, towards)
        if free:
            balanced = balanced_multipliers(beta, p.caps, p.column.y, -p.mean_pull)
            if balanced is None:
                return
            inside = inside and float(np.abs(balanced - beta).max()) <= ROUNDED_COEFFICIENT * float(beta.max())
            beta = balanced
        if stand_for is None or not (inside and made):
            stand_for = p.adjoint(beta)
            if p.pulled is not None:
                stand_for += p.pulled
        if free:
            stand_for[-1] = 0.0
        if aim is not None and not (inside and made):
            self.cut = beta, aim, stand_for
        value = p.gain(beta) - 0.5 * float(stand_for @ stand_for)
        if value > self.lower_bound:
            self.lower_bound, self.beta = value, beta

    def _repair_bound(self) -> bool:
        """Bound of multipliers that were cut, once other rows make up for these; say whether it is better."""
        if self.cut is None or self.factor is None or not self.of_all:
            return False
        (beta, aim, reached), before = self.cut, self.lower_bound
        missing = aim - reached
        if self.free:
            missing[-1] = 0.0
        change = self.problem.margins(cholesky.cholesky_solve(self.factor.L, missing))
        self._raise_bound(beta + REPAIR_LENGTH * self.factor.bends * change, aim, False)
        return self.lower_bound > before

    def _direction(self, slope: np.ndarray) -> Generator[bool, None, SmoothStep]:
        """Newton step against a slope: by a factor, which lasts while its iterations are cheap, or by the diagonal."""
        p, bends, ridge = self.problem, self.bends, self._step_ridge()
        if self.factorable and (self.worn or (self.factor is None and self.exact)):
            yield from self.renew()
        pass_price = ITERATION_PASSES * p.stored.n_entries  # of an iteration
        price = self.operations * (1.0 if self.exact else min(1.0, PRECONDITIONER_ROWS * p.width / p.n_rows))
        price += self.factoring
        even = False
        if self.factor is not None:
            most = 0 if self.fresh else min(GRADIENT_ITERATIONS, 1 + int(price / pass_price))
            share = self.gap / abs(self.objective) if math.isfinite(self.gap) else 1.0
            energy = min(STEP_ENERGY, max(LEAST_STEP_ENERGY, share))
            system = SmoothStepSystem(p, ridge, bends, self.u, slope, None)
            work = smooth_conjugate_gradient_step(system, self.factor, 0.0, energy, most)
        else:
            size = float(np.linalg.norm(slope))
            self.first = max(self.first, size)
            diagonal, even = self._diagonal()
            most_left = EARLY_RESIDUAL_SHARE if self.factorable or even else RESIDUAL_SHARE
            residual = min(most_left, max(LEAST_RESIDUAL_SHARE, math.sqrt(size / self.first)))
            system = SmoothStepSystem(p, ridge, bends, self.u, slope, self.alpha if even else None)
            work = smooth_conjugate_gradient_step(system, diagonal, residual, 0.0, GRADIENT_ITERATIONS)
        made = yield from with_heartbeat(work, False)
        self.even = even and made.iterations < FEW_ITERATIONS
        spent = RENEWAL_STEPS * made.iterations * pass_price
        self.worn = self.factorable and spent > price
        self.exact |= self.worn and self.operations < spent
        return made

    def _step_ridge(self) -> np.ndarray:
        """The ridge of a step: a free bias has one where no loss bends."""
        ridge = self.ridge.copy()
        if self.free:
            ridge[-1] = max(self.least_bend - float(self.bends.sum()), 0.0)
        return ridge

    def renew(self, sampled: np.ndarray | None = None) -> Generator[bool, None, None]:
        """Factor the present second derivatives, or those of a sample of the rows; `sampled` has its own."""
        exact, chosen = self.exact and sampled is None, sampled
        if chosen is None:
            size = self.problem.n_rows if exact else PRECONDITIONER_ROWS * self.w.shape[0]
            chosen = sampled_bends(self.problem, self.bends, size)
        for _ in self.sum.to(chosen):
            yield False
        M = copy_lower_weighted_gram(self.sum.M, np.empty_like(self.sum.M))
        M[-1, -1] += self._step_ridge()[-1] - self.ridge[-1]
        self.factor = LossColumnFactor((yield from with_heartbeat(cholesky.cholesky(M), False)), chosen)
        self.fresh, self.worn, self.of_all = exact, False, exact
        if exact and not self.w.any():
            self.problem.factors[self.problem.n_rows] = self.factor
            self.sum.D = None  # as for the columns that take the factor: the next matrix is the same, to the bit

    def _take_shared_factor(self) -> None:
        """Take another column's factor at w = 0: whatever the signs of the rows, second derivatives are the same."""
        factor = self.problem.factors.get(self.problem.n_rows)
        if factor is not None and np.array_equal(factor.bends, self.bends):
            self.factor, self.fresh, self.of_all = factor, True, True

    def _diagonal(self) -> tuple[np.ndarray, bool]:
        """Preconditioner without a factor: the diagonal of the second derivatives, or the ridge; say whether the ridge.

        Steps by the ridge, beside which a free bias may have any weight, are made of rows.
        """
        if self.even and not self.iterated:
            diagonal = np.minimum(self.ridge, 1.0)
            if self.free:
                diagonal[-1] = min(max(float(self.bends.sum()), self.least_bend), 1.0)
            return diagonal, True
        bent = self.problem.affine_stored.column_squares(self.bends)
        diagonal, own = self.ridge + bent, bent[: self.problem.stored.shape[1]]
        if self.free:
            diagonal[-1] = max(diagonal[-1], self.least_bend)
        largest = float(own.max(initial=0.0))
        even = not self.iterated and LEAST_BENT_COLUMN <= largest <= EVEN_SHARE * float(own.sum())
        return np.minimum(diagonal, 1.0) if even else diagonal, even
