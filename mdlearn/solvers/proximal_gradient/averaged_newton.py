"""Newton steps with averaged second derivatives, for composites without a penalty.

A logistic term is flat far from its threshold, and a step that believes its second derivative there goes much too far.
So averages are taken over the distance that decision values still move, as for the engine `newton`
(`mdlearn.solvers.common.smooth_losses`), and the length of a step is the minimiser along it: passes over decision
values, none over the rows. With few coefficients, second derivatives are one matrix; else conjugate gradients solve by
products, with mean_j M + R in the place of those of column j: M are the moments of the rows, R the ridge, and only the
mean second derivatives mean_j change from step to step, so that one decomposition serves a whole fit.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from mdlearn.forms.joint.composite_point import CompositeEvaluation
from mdlearn.forms.joint.decision_composite import DecisionComposite
from mdlearn.numerics import cholesky
from mdlearn.numerics.conjugate_gradients import Map
from mdlearn.numerics.line_search import FAR_LENGTH, line_minimum, line_secant
from mdlearn.solvers.base import Report
from mdlearn.solvers.common.smooth_losses import TELLING_STEP
from mdlearn.solvers.proximal_gradient.newton_finish import FINEST, FORCING, SINGULAR, newton_finish_direction

FINE_SLOPE = 1e-3
"""Share of the first slope that may be left along a step: evaluations are cheap, and the last step is the answer."""
DIAGONAL_SHARE = 1e-13
"""Share of the diagonal that holds directions without curvature."""
RESOLVED = 1e-5
"""Distance, relative to decision values, below which rounding would show in a difference of slopes."""
STALL_STEPS = 3
"""Steps that lower neither objective nor slope after which no more are taken."""


class AveragedPreconditioner:
    """Preconditioner of Newton steps by averaged second derivatives.

    Solutions with (1 - theta) mean_j / share + theta along axes U with U' (share M + R) U = I, U' R U = diag(theta).
    Where there are too many columns for a matrix, only diagonals are solved with.

    `problem`: after `prepare`.
    """

    def __init__(self, problem: DecisionComposite) -> None:
        ridge, self.axes = problem.ridge, None
        squares, self.share = problem.squares, 1.0
        if ridge.any() and squares.any():
            self.share = float(ridge.sum()) / float(squares.sum())
        if problem.moments is not None:
            self.axes, theta = _preconditioner_axes(self.share * problem.moments, ridge)
        else:
            whole = self.share * squares + ridge
            theta = np.divide(ridge, whole, out=np.zeros_like(ridge), where=whole > 0)
            self.scale = np.divide(1.0, whole, out=np.zeros_like(whole), where=whole > 0)
        # Far from kinks nothing bends a free bias, and a slope that is rounding would move it without end.
        self.theta = np.clip(theta, SINGULAR, 1.0)

    def solve(self, means: np.ndarray) -> Map:
        """Return R -> the solutions, one per column, for mean second derivatives of shape (k,)."""
        bends = np.multiply.outer(1.0 - self.theta, means / self.share) + self.theta[:, None]
        inverse = np.divide(1.0, bends, out=np.zeros_like(bends), where=bends > 0)
        axes = self.axes
        if axes is None:
            return lambda R: self.scale[:, None] * inverse * R
        return lambda R: axes @ (inverse * (axes.T @ R))


def averaged_newton_steps(
    problem: DecisionComposite, W: np.ndarray, report: Callable[[CompositeEvaluation], Report]
) -> Generator[Report | None, None, np.ndarray]:
    """Yield a report per averaged Newton step from W; return where rounding allows no better one."""
    look, reach = problem.settle(W), problem.reach
    lowest, flattest, steepest, stalled = np.inf, np.inf, 0.0, 0
    preconditioner = None if problem.assembles else AveragedPreconditioner(problem)
    while True:
        yield report(look)
        value, slope = problem.objective(look), problem.slope(look)
        steep = float(np.linalg.norm(slope))
        steepest = max(steepest, steep)
        stalled = 0 if value < lowest - 1e-15 * abs(lowest) or steep < 0.5 * flattest else stalled + 1
        lowest, flattest = min(lowest, value), min(flattest, steep)
        assert look.scores is not None
        fine = reach > RESOLVED * (1.0 + float(np.abs(look.scores).max()))
        if stalled >= STALL_STEPS or not steep:
            return look.W
        D = problem.curvatures(look.scores, reach if fine else 0.0)
        if preconditioner is None:
            V = yield from _averaged_direction_by_matrix((yield from problem.assembled(D)), -slope)
        else:
            goal = max(FINEST, min(FORCING, steep / steepest))
            V = yield from _averaged_newton_direction(problem, D, preconditioner, -slope, goal)
        if V is None:
            return look.W
        U = problem.scores(V)
        t = _averaged_length(problem, look, V, U)
        if not 0.0 < t < FAR_LENGTH:
            return look.W
        moved = t * float(np.sqrt(2.0 * np.square(U).mean()))
        reach = moved if t > TELLING_STEP else max(0.25 * reach, min(reach, moved))
        look = problem.settle(look.W + t * V)
        yield None


def _averaged_direction_by_matrix(H: np.ndarray, target: np.ndarray) -> Generator[None, None, np.ndarray | None]:
    """Solve an averaged Newton step by its matrix, with a trace added to its diagonal; target of shape (p, k)."""
    diagonal = np.diagonal(H)
    H[np.diag_indices_from(H)] = np.where(diagonal > 0, (1.0 + DIAGONAL_SHARE) * diagonal, 1.0)
    try:
        L = yield from cholesky.cholesky_shifted(H)
    except cholesky.NotPositiveDefinite:
        return None
    return np.ascontiguousarray(cholesky.cholesky_solve(L, target.T.ravel()).reshape(target.T.shape).T)


def _averaged_newton_direction(
    problem: DecisionComposite, D: np.ndarray, preconditioner: AveragedPreconditioner, target: np.ndarray, goal: float
) -> Generator[None, None, np.ndarray]:
    """Solve an averaged Newton step to a relative residual; every iteration takes two passes over the rows."""
    bend, means = problem.bent(D)

    def times(V: np.ndarray) -> np.ndarray:
        return problem.adjoint(bend(V, problem.scores(V))) + problem.ridge[:, None] * V

    return (yield from newton_finish_direction(times, preconditioner.solve(means), target, goal))


def _averaged_length(problem: DecisionComposite, look: CompositeEvaluation, V: np.ndarray, U: np.ndarray) -> float:
    """Length of an averaged Newton step along V, decision values U, to a thousandth of the slope; inf without end."""
    assert look.scores is not None
    F = look.scores
    first, bend = float(problem.ridge @ (look.W * V).sum(axis=1)), float(problem.ridge @ np.square(V).sum(axis=1))

    def slope(t: float) -> float:
        A = F + t * U
        problem.slopes(look.W + t * V, A)
        return float(np.einsum("ik,ik->", A, U)) + first + t * bend

    start = slope(0.0)
    return line_minimum(start, line_secant(slope, start), FINE_SLOPE)


def _preconditioner_axes(M: np.ndarray, ridge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Axes U of the averaged Newton preconditioner, U' (M + R) U = I, and theta, U' R U = diag(theta)."""
    from scipy.linalg import LinAlgError, solve_triangular
    from scipy.linalg import cholesky as factor

    S = M + np.diag(ridge)
    diagonal = np.diagonal(S)
    scale = np.divide(1.0, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > 0)
    S *= np.multiply.outer(scale, scale)
    whitening = None
    try:
        L = factor(S, lower=True, check_finite=False)
        if float(np.diagonal(L).min()) ** 2 > SINGULAR:
            whitening = solve_triangular(L, np.diag(scale), lower=True, check_finite=False).T
    except LinAlgError:
        pass
    if whitening is None:
        values, vectors = np.linalg.eigh(S)
        held = values > SINGULAR * float(values[-1])
        whitening = scale[:, None] * vectors[:, held] / np.sqrt(values[held])
    theta, turn = np.linalg.eigh(whitening.T @ (ridge[:, None] * whitening))
    return whitening @ turn, theta
