"""Newton steps with averaged second derivatives, for composites without a penalty.

A logistic term is flat far from its threshold, and a step that believes its second derivative there goes much too far.
So averages are taken over the distance that decision values still move, as for the engine `newton`
(`mdlearn.solvers.common.smooth_losses`), and the length of a step is the minimiser along it: passes over decision
values, none over the rows. With few coefficients, second derivatives are one matrix; else conjugate gradients solve by
products.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from mdlearn.forms.joint.decision_values import DecisionComposite
from mdlearn.forms.joint.point import CompositeEvaluation
from mdlearn.numerics.line_search import FAR_LENGTH, minimum, secant
from mdlearn.solvers.base import Report
from mdlearn.solvers.common.smooth_losses import LINE_SEARCH_SLOPE, TELLING_STEP
from mdlearn.solvers.proximal_gradient.newton_steps import FINEST, FORCING, conjugate
from mdlearn.solvers.proximal_gradient.preconditioner import Preconditioner

FIRST_SHIFT, RAISE, SHIFT_RAISES = 1e-13, 1e3, 4
"""Share of the diagonal that holds directions without curvature, and how often it may grow by which factor."""
RESOLVED = 1e-5
"""Distance, relative to decision values, below which rounding would show in a difference of slopes."""
STALL_STEPS = 3
"""Steps that lower neither objective nor slope after which no more are taken."""


def descend(
    problem: DecisionComposite, W: np.ndarray, report: Callable[[CompositeEvaluation], Report]
) -> Generator[Report | None, None, np.ndarray]:
    """Yield a report per step from W; return where rounding allows no better one."""
    look, reach = problem.settle(W), problem.reach
    lowest, flattest, steepest, stalled = np.inf, np.inf, 0.0, 0
    preconditioner = None if problem.assembles else Preconditioner(problem)
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
            V = _solved((yield from problem.assembled(D)), -slope)
        else:
            goal = max(FINEST, min(FORCING, steep / steepest))
            V = yield from _by_products(problem, D, preconditioner, -slope, goal)
        if V is None:
            return look.W
        U = problem.scores(V)
        t = _length(problem, look, V, U)
        if not 0.0 < t < FAR_LENGTH:
            return look.W
        moved = t * float(np.sqrt(2.0 * np.square(U).mean()))
        reach = moved if t > TELLING_STEP else max(0.25 * reach, min(reach, moved))
        look = problem.settle(look.W + t * V)
        yield None


def _solved(H: np.ndarray, target: np.ndarray) -> np.ndarray | None:
    """Solve with a positive semidefinite matrix, in units of its diagonal; the target has shape (p, k)."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    diagonal = np.diagonal(H)
    scale = np.divide(1.0, np.sqrt(np.abs(diagonal)), out=np.zeros_like(diagonal), where=diagonal > 0)
    H *= scale[:, None]
    H *= scale
    share = FIRST_SHIFT
    for _ in range(SHIFT_RAISES):
        H[np.diag_indices_from(H)] = 1.0 + share
        try:
            factor = cho_factor(H, lower=True, check_finite=False)
        except LinAlgError:
            share *= RAISE
            continue
        found = scale * cho_solve(factor, scale * target.T.ravel(), check_finite=False)
        return np.ascontiguousarray(found.reshape(target.T.shape).T)
    return None


def _by_products(
    problem: DecisionComposite, D: np.ndarray, preconditioner: Preconditioner, target: np.ndarray, goal: float
) -> Generator[None, None, np.ndarray]:
    """Solve to a relative residual; every iteration takes two passes over the rows."""
    bend, means = problem.bent(D)

    def times(V: np.ndarray) -> np.ndarray:
        return problem.adjoint(bend(V, problem.scores(V))) + problem.ridge[:, None] * V

    return (yield from conjugate(times, preconditioner.solve(means), target, goal))


def _length(problem: DecisionComposite, look: CompositeEvaluation, V: np.ndarray, U: np.ndarray) -> float:
    """Minimiser along V, with decision values U, to a hundredth of the slope; inf without end."""
    assert look.scores is not None
    F = look.scores
    first, bend = float(problem.ridge @ (look.W * V).sum(axis=1)), float(problem.ridge @ np.square(V).sum(axis=1))

    def slope(t: float) -> float:
        A = F + t * U
        problem.slopes(look.W + t * V, A)
        return float(np.einsum("ik,ik->", A, U)) + first + t * bend

    start = slope(0.0)
    return minimum(start, secant(slope, start), LINE_SEARCH_SLOPE)
