"""Steps of the smooth Newton method: by conjugate gradients with a factor, in compiled code, and until they crawl."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable
from typing import NamedTuple, Protocol

import numpy as np

from mdlearn._solvers import logistic
from mdlearn.numerics import cholesky
from mdlearn.solvers.hybrid.loss_column import DPOSV, DSYRK, LossColumn, LossColumnFactor

CRAWLING_STEPS, CRAWLING_GAP = 100, 0.5
"""Steps that leave more than this share of the gap before them, after which another engine is the better one: between
losses that rise within a rounding of their kink and a long norm each goes a millionth of the way."""
BALANCING_TURNS, BALANCED_SUM = 4, 1e-14
"""Most corrections of multipliers for a free bias, and the share of their sum that may be left."""


class SmoothStepGap(Protocol):
    """Newton's method of the hybrid solver at a place with a gap between objective and bound."""

    @property
    def gap(self) -> float:
        """Objective less bound."""


class SmoothStepBlock:
    """Signed rows as one dense array, with room for a Newton step on smooth (logistic) terms."""

    def __init__(self, B: np.ndarray) -> None:
        k, n = B.shape
        self.B, self.M = B, np.empty((n, n))
        self.room = logistic.Work(self.M, np.empty((k, n)), np.empty((4, max(n, k))), DSYRK, DPOSV)


class SmoothStep(NamedTuple):
    """Step of the smooth Newton method, its change of the margins, and the multipliers that it leads to.

    Where it is `made_of_rows`, R' towards are the coefficients that it leads to. `alpha` are numbers that these are
    made of in any case, where they are known.
    """

    step: np.ndarray
    dz: np.ndarray
    towards: np.ndarray
    iterations: int
    made_of_rows: bool
    alpha: np.ndarray | None


class SmoothStepSystem(NamedTuple):
    """System of a smooth Newton step: (diag(ridge) + R' diag(bends) R) step = -slope, at multipliers u.

    `alpha` are numbers that the coefficients are made of, where iterations are to go along with them: these have to be
    conjugate gradients in the metric of the ridge, but for a free bias.
    """

    problem: LossColumn
    ridge: np.ndarray
    bends: np.ndarray
    u: np.ndarray
    slope: np.ndarray
    alpha: np.ndarray | None


def smooth_conjugate_gradient_step(
    system: SmoothStepSystem, inverse: LossColumnFactor | np.ndarray, residual: float, energy: float, most: int
) -> Generator[None, None, SmoothStep]:
    """Make a smooth Newton step by at most so many iterations, with a factor of other second derivatives or a diagonal.

    They end where the residual, or the energy that is left, is that share of its first value. With a factor F and the
    residual r of p, the step is p + F^-1 r. With slope = diag(ridge) w - R'u it leads to coefficients diag(ridge) (w +
    step) = R'(u - bends R p - F.bends R F^-1 r): what multipliers stand for, without a pass over the rows. The factor
    of the present second derivatives needs no iteration.
    """
    problem, ridge, bends, u, slope, alpha = system
    rows, y = problem.affine_stored, problem.y  # products of second derivatives do without the signs
    factor = inverse if isinstance(inverse, LossColumnFactor) else None

    def solve(b: np.ndarray) -> np.ndarray:
        return b / inverse if factor is None else cholesky.cholesky_solve(factor.L, b)

    p, change, r = np.zeros_like(slope), np.zeros_like(u), -slope
    s = v = solve(r)
    rho = first = float(r @ s)
    # Numbers that residual and direction are made of.
    left = along = np.empty(0) if alpha is None else u - alpha
    enough, used = residual * residual * float(r @ r), 0
    while used < most and rho > energy * first and float(r @ r) > enough:
        q, product = rows.dot_and_adjoint(v, bends)
        product += ridge * v
        bend = float(v @ product)
        if not bend > 0.0:  # or no number
            break
        length = rho / bend
        p += length * v
        change += length * q
        r -= length * product
        s, last = solve(r), rho
        rho = float(r @ s)
        v, used = s + (rho / last) * v, used + 1
        if alpha is not None:
            alpha = alpha + length * along
            left = left - length * (along + y * (bends * q))
            along = left + (rho / last) * along
        yield
    dz = y * change
    towards = u - bends * dz
    if factor is not None:
        q = problem.margins(s)
        p, dz, towards = p + s, dz + q, towards - factor.bends * q
    made = towards if factor is not None else alpha
    return SmoothStep(cholesky.finite_cholesky_solution(p), dz, towards, used, factor is not None, made)


def balanced_multipliers(beta: np.ndarray, caps: np.ndarray, y: np.ndarray, total: float) -> np.ndarray | None:
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


def sampled_bends(problem: LossColumn, bends: np.ndarray, size: int) -> np.ndarray:
    """Second derivatives of about so many rows, weighted to stand for all in a smooth step's factor.

    These are the rows that bend the most, and every so many-th other. Near a separation few rows bend at all; an even
    sample has hardly any of them.
    """
    m = problem.n_rows
    if size >= m:
        return bends.copy()
    weights, most = np.zeros(m), np.argpartition(bends * problem.squares, m - size // 2)[m - size // 2 :]
    weights[most] = bends[most]
    rest = bends.copy()
    rest[most] = 0.0
    some = np.arange(0, m, max(1, 2 * m // size))
    seen = float(rest[some].sum())
    if seen > 0:
        weights[some] += rest[some] * (float(rest.sum()) / seen)
    return weights


def evenly_sampled_bends(bends: np.ndarray, step: int) -> np.ndarray:
    """Second derivatives of every so many-th row that stand for all; not of the rows that a sample began with.

    At the solution of a sample its own rows bend less than others do: it has fitted their noise.
    """
    weights = np.zeros(bends.shape[0])
    weights[step // 2 :: step] = bends[step // 2 :: step]
    seen = float(weights.sum())
    return weights * (float(bends.sum()) / seen) if seen > 0 else weights


def smooth_steps_until_crawling(newton: SmoothStepGap, steps: Iterable[int]) -> Generator[int, None, None]:
    """Yield the numbers of steps of Newton's method on smooth losses, until many have hardly closed its gap."""
    taken, due, before = 0, CRAWLING_STEPS, math.inf
    for new in steps:
        yield new
        taken += new
        if taken >= due:
            if not newton.gap < CRAWLING_GAP * before:
                return
            before, due = newton.gap, taken + CRAWLING_STEPS
