"""Row envelopes of the hybrid solver: smoothed hinges of some rows, and semismooth Newton steps over them."""

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
from mdlearn.solvers.hybrid.loss_column import DPOSV, DSYRK, LossColumn
from mdlearn.solvers.systems.narrow_rows import NO_MATRIX
from mdlearn.solvers.systems.weighted_gram import RunningWeightedGram, copy_lower_weighted_gram, unweighted_gram

FREE_ROWS_PER_COLUMN = 0.5
"""Free rows per column below which the matrix is one of their size."""
LARGEST_MATRIX = 2001
"""Rows of the largest matrix that is factored: beyond, another engine is the better one."""
NEAR_STEPS = 20
"""Most Newton steps over rows next to a kink."""
CALL_OPERATIONS = 3e7
"""Operations of Newton steps in compiled code between two heartbeats."""
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
    moved : ndarray or None
        Change of their multipliers by the last Newton step, where it was found from these.
    factor : tuple of float and ndarray, or None
        Cholesky factor of the last step's matrix of all columns, and what that matrix is divided by.
    """

    def __init__(
        self, problem: LossColumn, centre: np.ndarray, steepness: np.ndarray, z: np.ndarray, alpha: np.ndarray
    ) -> None:
        self.problem, self.centre, self.steepness, self.z, self.alpha = problem, centre, steepness, z, alpha
        self.kept = 1.0
        self.u, self.room = np.empty_like(z), np.empty(z.shape[0], dtype=np.int64)
        self.free = self.room[:0]
        self.moved: np.ndarray | None = None
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
        s, self.moved = self.steepness[free], None
        if not free.shape[0] and p.quadratic.A is None:
            return -g
        if min(free.shape[0], p.width) > LARGEST_MATRIX:
            raise NotPositiveDefinite(f"a matrix of {LARGEST_MATRIX} rows is the largest one")
        if p.quadratic.A is None and free.shape[0] < FREE_ROWS_PER_COLUMN * p.width:
            some = AffineRows(p.stored.take(free), p.rows.constant)
            M = yield from unweighted_gram(some.rows)
            M += float(p.rows.constant)
            M.flat[:: M.shape[0] + 1] += 1.0 / s
            x = yield from cholesky.cholesky_solution(M, some.dot(g))
            self.moved = p.y[free] * x
            return some.adjoint(x) - g
        # In units of the steepest: the sum over free rows stays when all become steeper.
        unit = float(s.max(initial=0.0)) or 1.0
        weights = np.zeros(p.n_rows)
        weights[free] = s / unit
        yield from self.sum.to(weights, p.quadratic.diagonal / unit)
        M = p.quadratic.shifted(1.0 / unit, copy_lower_weighted_gram(self.sum.M, np.empty_like(self.sum.M)))
        return (yield from cholesky.cholesky_solution(M, g / -unit))

    def follow(self, dz: np.ndarray, t: float) -> np.ndarray:
        """Go along a Newton step with the change dz of the margins for a length t; return where all of it leads."""
        towards = self.u.copy()
        # Steep envelopes would multiply the rounding of margins.
        towards[self.free] += -self.steepness[self.free] * dz[self.free] if self.moved is None else self.moved
        self.alpha = self.alpha + t * (towards - self.alpha)
        self.z, self.kept = self.z + t * dz, (1.0 - t) * self.kept
        return towards

    def length(self, u: np.ndarray, dz: np.ndarray, start: float, bend: float) -> float:
        """Minimiser along a step from multipliers u; `start` is the slope there, `bend` is that of all but the loss."""
        p = self.problem
        return envelopes.minimum(self.z, dz, self.centre, self.steepness, p.caps, p.kink, u, start, bend, self.close)


def row_envelope_steps(
    inner: RowEnvelopes, w: np.ndarray, fixed: np.ndarray, target: float
) -> Generator[bool, None, np.ndarray]:
    """Semismooth Newton steps over rows that are too many, or too long, for a `RowEnvelopeBlock`."""
    p = inner.problem
    for _ in range(NEAR_STEPS):
        inner.evaluate()
        g = p.quadratic.times(w) - fixed - p.adjoint(inner.u)
        if float(g @ g) <= target:
            break
        step = yield from with_heartbeat(inner.direction(g), False)
        dz = p.margins(step)
        t = inner.length(inner.u, dz, float(g @ step), float(step @ p.quadratic.times(step)))
        if not math.isfinite(t):
            break
        w = w + t * step
        inner.follow(dz, t)
        yield False
    return w


class RowEnvelopeBlock:
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
