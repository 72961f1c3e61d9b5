"""Smooth (logistic) terms in the hybrid solver: Newton's method by second derivatives, else conjugate gradients.

Slopes moved along the model of a step, u - D dz, are multipliers that stand for the point which the full step leads to,
so that the bound takes no pass over the rows. Conjugate gradients are preconditioned by the second derivative of a
sample of the rows; over very many columns by its diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from functools import partial

import numpy as np

from mdlearn._solvers import logistic
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.numerics import cholesky
from mdlearn.numerics.conjugate_gradients import Map, conjugate_gradients
from mdlearn.numerics.interruptible import with_heartbeat
from mdlearn.numerics.lazy_property import kept
from mdlearn.solvers.hybrid.loss_column import DPOSV, DSYRK, OPERATION_ON_MATRIX, LossColumn
from mdlearn.solvers.systems.weighted_gram import RunningWeightedGram, copy_lower, weighted_gram_operations

EXACT_PASSES = 64.0
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
RESIDUAL_SHARE, LEAST_RESIDUAL_SHARE = 0.1, 1e-3
"""Residual of conjugate gradients, as a share of the slope: at most, and at least."""
GRADIENT_ITERATIONS, FEW_ITERATIONS, DEAR_ITERATIONS = 100, 25, 12
"""Most iterations; with a diagonal where a matrix is to be had; those from which a better preconditioner is made."""
ITERATION_PASSES, SCATTERED = 2.0, 2.0
"""Operations of an iteration on every entry, and those that a product counts for that is added to a large matrix."""
CRAWLING_STEPS, CRAWLING_GAP = 100, 0.5
"""Steps that leave more than this share of the gap before them, after which another engine is the better one: between
losses that rise within a rounding of their kink and a long norm each goes a millionth of the way."""
DEAR_MATRIX = 16.0
"""Operations of the matrix of second derivatives, in passes over the rows, from which a factor serves several steps."""
SAMPLE_FACTOR_STEPS, SAMPLE_FACTOR_ITERATIONS = 2, 3
"""Steps by conjugate gradients with the factor of a sample before the matrix of all rows, and iterations of each."""
KEPT_FACTOR_GAP = 0.5
"""Share of the gap that a step with an earlier factor may leave for another such step."""
ROUNDED_COEFFICIENT = 1e-9
"""Difference of a coefficient, as a share of the largest, that such steps' rounding makes."""
BALANCING_TURNS, BALANCED_SUM = 4, 1e-14
"""Most corrections of multipliers for a free bias, and the share of their sum that may be left."""


class SmoothBlock:
    """Signed rows as one dense array, with room for a Newton step on smooth (logistic) terms."""

    def __init__(self, B: np.ndarray) -> None:
        k, n = B.shape
        self.B, self.M = B, np.empty((n, n))
        self.room = logistic.Work(self.M, np.empty((k, n)), np.empty((4, max(n, k))), DSYRK, DPOSV)


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
    factor : ndarray of shape (n, n) or None
        Cholesky factor of second derivatives: those of a sample first, then the last that were factored.
    """

    def __init__(
        self,
        problem: LossColumn,
        ridge: np.ndarray,
        w: np.ndarray,
        alpha: np.ndarray,
        factor: np.ndarray | None = None,
    ) -> None:
        self.problem, self.ridge, self.w, self.alpha, self.kept = problem, ridge, w, alpha, 1.0
        self.sharpness = float(problem.column.terms[0].alpha)  # type: ignore[union-attr]
        self.free = bool(problem.rows.constant and ridge[-1] == 0)
        self.least_bend = FLAT_LOSS * self.sharpness * float(problem.caps.sum())
        self.z = problem.margins(w)
        self.u, self.bends = np.empty_like(self.z), np.empty_like(self.z)
        self.beta, self.lower_bound = self.u, -math.inf
        d = problem.width
        factoring = OPERATION_ON_MATRIX * float(d) ** 3 / 3.0
        self.factorable = d <= PRECONDITIONER_COLUMNS and factoring <= FACTOR_PASSES * problem.stored.n_entries
        self.first, self.exact = 0.0, self._cheap(factoring)
        self.dear = self._operations() > DEAR_MATRIX * problem.stored.n_entries
        self.factor, self.factored_bends, self.reusable, self.renewed = factor, self.bends, False, False
        self.inverse: Map | None = None if factor is None else partial(cholesky.cholesky_solve, factor)
        self.by_sample = SAMPLE_FACTOR_STEPS if self.exact and self.dear and factor is not None else 0
        self.used, self.factored, self.iterated = 0, factor is not None, False
        self.block = None
        if problem.small:
            self.block = SmoothBlock(problem.block())
        self.evaluate()
        if self.exact and self.dear and not w.any():
            self._take_shared_factor()

    @kept
    def sum(self) -> RunningWeightedGram:
        """The matrix of second derivatives."""
        return RunningWeightedGram(self.problem.stored, self.problem.rows.constant, self.ridge, None)

    def _operations(self) -> float:
        """Operations on entries that the matrix of second derivatives takes, without its factor."""
        rows, (m, d) = self.problem.stored, self.problem.stored.shape
        outer = OPERATION_ON_MATRIX * float(m) * d * d
        return min(outer, SCATTERED * weighted_gram_operations(rows)) if isinstance(rows, CsrRows) else outer

    def _cheap(self, factoring: float) -> bool:
        """Whether the matrix of second derivatives costs no more than the iterations that take its place."""
        (m, d), most = self.problem.stored.shape, EXACT_PASSES * self.problem.stored.n_entries
        if not self.factorable:
            return self._operations() + factoring <= most
        # The preconditioner is factored, too, and made of some of the rows.
        return self._operations() * (1.0 - min(1.0, PRECONDITIONER_ROWS * d / m)) <= most

    def evaluate(self) -> None:
        """Multipliers, second derivatives and objective at the present margins."""
        p = self.problem
        self.loss = logistic.slopes(self.z, p.caps, self.sharpness, p.kink, self.u, self.bends)
        self.objective = 0.5 * float((self.ridge * self.w) @ self.w) + self.loss
        if p.pulled is not None:
            self.objective -= float(p.pulled @ self.w)

    @property
    def made_of(self) -> np.ndarray | None:
        """Numbers that w is made of; None where conjugate gradients leave that open."""
        return None if self.iterated else self.alpha

    def coefficients(self) -> np.ndarray:
        """Coefficients w; steps with earlier factors add up to rounding, which what w is made of does not have."""
        if not self.dear or self.iterated:
            return self.w
        p, w = self.problem, self.w
        made = p.adjoint(self.alpha)
        if p.pulled is not None:
            made += p.pulled
        made = np.where(self.ridge > 0, made, w)
        return made if np.abs(made - w).max() <= ROUNDED_COEFFICIENT * np.abs(w).max() else w

    @property
    def gap(self) -> float:
        """Objective less bound."""
        return self.objective - self.lower_bound

    def steps(self) -> Generator[bool, None, None]:
        """Go on; yield True at every new place, False as a heartbeat. Ends where steps lead on no more, or crawl."""
        taken, before = 0, math.inf
        for new in self._all_steps():
            yield new
            taken += new
            if new and taken % CRAWLING_STEPS == 0:
                if not self.gap < CRAWLING_GAP * before:
                    return
                before = self.gap

    def _all_steps(self) -> Generator[bool, None, None]:
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
            step, bends = yield from self._direction(slope)
            dz = p.margins(step)
            yield False
            gap = self.gap
            step, dz = self._bound(step, dz, bends)
            start, bend = float(slope @ step), float((self.ridge * step) @ step)
            z, w, before, objective = self.z, self.w, self.u, self.objective
            towards = before - (self.bends if bends is None else bends) * dz
            self.z, self.w, self.u = z + dz, w + step, np.empty_like(before)
            self.evaluate()
            t = 1.0
            left = start + bend + float((before - self.u) @ dz)
            # A small slope alone may be that of the other side: margins that go through all kinks at once.
            risen = not self.objective <= objective + ROUNDING_OF_LOSS * abs(objective)
            if risen or not abs(left) <= FULL_STEP * abs(start):
                t = logistic.minimum(z, dz, p.caps, self.sharpness, p.kink, before, start, bend, OTHER_STEP)
                if not math.isfinite(t):
                    self.z, self.w = z, w
                    self.evaluate()
                    if self.reusable and not self.renewed:
                        self.reusable = False
                        continue
                    return
                self.z, self.w = z + t * dz, w + t * step
                self.evaluate()
            self.alpha, self.kept = self.alpha + t * (towards - self.alpha), (1.0 - t) * self.kept
            self.iterated = bends is None or (self.iterated and t != 1.0)
            self.reusable &= t == 1.0 if self.renewed else math.isfinite(self.gap) and self.gap <= KEPT_FACTOR_GAP * gap
            self.renewed = False
            yield True

    def _block_step(self, block: SmoothBlock) -> bool:
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
        self.factor = block.M
        self.loss, self.objective = loss, 0.5 * float((self.ridge * self.w) @ self.w) - float(fixed @ self.w) + loss
        if lower > self.lower_bound:
            self.lower_bound, self.beta = lower, beta
        return True

    def _bound(self, step: np.ndarray, dz: np.ndarray, exact: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Try a full step's multipliers for a better bound; return the step and its margins with the best intercept.

        `exact` are the second derivatives by which the step stands for its multipliers, if there are such.
        """
        p, y, bends = self.problem, self.problem.column.y, self.bends if exact is None else exact
        beta = self.u - bends * dz
        bend = float(bends.sum())
        if self.free and bend > self.least_bend:
            miss = (float(y @ beta) + p.mean_pull) / bend
            step[-1] += miss
            dz = dz + miss * y
            beta = self.u - bends * dz
        self._raise_bound(beta, None if exact is None else self.w + step)
        return step, dz

    def _raise_bound(self, beta: np.ndarray, stand_for: np.ndarray | None) -> None:
        """Take multipliers, once they are within their bounds, where they say more; `stand_for` is what they make."""
        p, free = self.problem, self.free
        if stand_for is None or (beta < 0).any() or (beta > p.caps).any():
            beta = np.minimum(np.maximum(beta, 0.0), p.caps)
            balanced = _balanced_multipliers(beta, p.caps, p.column.y, -p.mean_pull) if free else beta
            if balanced is None:
                return
            beta, stand_for = balanced, p.adjoint(balanced)
            stand_for = stand_for if p.pulled is None else stand_for + p.pulled
        if free:
            stand_for[-1] = 0.0
        value = p.gain(beta) - 0.5 * float(stand_for @ stand_for)
        if value > self.lower_bound:
            self.lower_bound, self.beta = value, beta

    def _direction(self, slope: np.ndarray) -> Generator[bool, None, tuple[np.ndarray, np.ndarray | None]]:
        """Newton step against a slope, with the second derivatives that it is exact for; None: nearly the present ones.

        Steps with the factor of an earlier one take no matrix, and are exact for its second derivatives.
        """
        lacking = max(self.least_bend - float(self.bends.sum()), 0.0) if self.free else 0.0
        if self.exact and not self.by_sample:
            if self.reusable and self.factor is not None:
                return cholesky.finite_solution(cholesky.cholesky_solve(self.factor, -slope)), self.factored_bends
            for _ in self.sum.to(self.bends):
                yield False
            M = copy_lower(self.sum.M, np.empty_like(self.sum.M))
            M[-1, -1] += lacking
            if not self.dear:
                return (yield from with_heartbeat(cholesky.cholesky_solution(M, -slope), False)), self.bends
            self.factor = yield from with_heartbeat(cholesky.cholesky(M), False)
            self.factored_bends, self.reusable, self.renewed = self.bends.copy(), True, True
            if not self.w.any():
                self.problem.factors[self.problem.n_rows] = self.factor, self.factored_bends
                self.sum.D = None  # as for the columns that take the factor: the next matrix is the same, to the bit
            return cholesky.finite_solution(cholesky.cholesky_solve(self.factor, -slope)), self.factored_bends
        p, bends, ridge = self.problem, self.bends, self.ridge.copy()
        ridge[-1] += lacking

        used = 0

        def times(v: np.ndarray) -> np.ndarray:
            nonlocal used
            used += 1
            return ridge * v + p.affine_stored.adjoint(bends * p.affine_stored.dot(v))

        if self.inverse is None or self.used > DEAR_ITERATIONS:
            self.inverse = yield from self._preconditioner()
        most = GRADIENT_ITERATIONS if self.factored or not self.factorable else FEW_ITERATIONS
        if self.by_sample:
            self.by_sample, most = self.by_sample - 1, SAMPLE_FACTOR_ITERATIONS
        size = float(np.linalg.norm(slope))
        self.first = max(self.first, size)
        residual = min(RESIDUAL_SHARE, max(LEAST_RESIDUAL_SHARE, math.sqrt(size / self.first)))
        work = conjugate_gradients(times, self.inverse, -slope, residual, 0.0, most)
        step = yield from with_heartbeat(work, False)
        self.used = used
        # Where so many iterations are needed, the matrix is cheaper from now on.
        dearer = self._operations() < ITERATION_PASSES * used * p.stored.n_entries
        self.exact |= self.factored and dearer
        return step, None

    def _take_shared_factor(self) -> None:
        """Take another column's factor at w = 0: whatever the signs of the rows, second derivatives are the same."""
        factor, bends = self.problem.factors.get(self.problem.n_rows, (None, self.bends))
        if factor is not None and np.array_equal(bends, self.bends):
            self.factor, self.factored_bends, self.reusable, self.renewed = factor, bends, True, True

    def _sampled(self, size: int) -> np.ndarray:
        """Weights of about so many rows that stand for all: the rows that bend the most, and every so many-th other.

        Near a separation few rows bend at all; an even sample has hardly any of them.
        """
        bends, m = self.bends, self.problem.n_rows
        if size >= m:
            return bends
        weights, most = np.zeros(m), np.argpartition(bends * self.problem.squares, m - size // 2)[m - size // 2 :]
        weights[most] = bends[most]
        rest = bends.copy()
        rest[most] = 0.0
        some = np.arange(0, m, max(1, 2 * m // size))
        seen = float(rest[some].sum())
        if seen > 0:
            weights[some] += rest[some] * (float(rest.sum()) / seen)
        return weights

    def _preconditioner(self) -> Generator[bool, None, Map]:
        """An approximate inverse of the second derivatives: of those of a sample of the rows, or of the diagonal."""
        p, n = self.problem, self.w.shape[0]
        if not self.factorable or not self.used > DEAR_ITERATIONS:
            diagonal = self.ridge + p.affine_stored.column_squares(self.bends)
            if self.free:
                diagonal[-1] = max(diagonal[-1], self.least_bend)
            return lambda v: v / diagonal
        self.factored = True
        for _ in self.sum.to(self._sampled(PRECONDITIONER_ROWS * n)):
            yield False
        L = yield from with_heartbeat(cholesky.cholesky(copy_lower(self.sum.M, np.empty_like(self.sum.M))), False)
        self.factor = L
        return partial(cholesky.cholesky_solve, L)


def _balanced_multipliers(beta: np.ndarray, caps: np.ndarray, y: np.ndarray, total: float) -> np.ndarray | None:
    """Multipliers of smooth terms in the hybrid solver with signed sum `total`, within bounds; None if none near."""
    for _ in range(BALANCING_TURNS):
        excess = float(y @ beta) - total
        if abs(excess) <= BALANCED_SUM * float(beta.sum()):
            return beta
        room = np.minimum(beta, caps - beta)
        space = float(room.sum())
        share = excess / space if space > 0 else math.inf
        if not abs(share) < 1.0:
            return None
        beta = beta - share * (y * room)
    return beta
