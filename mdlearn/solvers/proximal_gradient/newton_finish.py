"""Newton finish of the accelerated proximal gradient: steps on the rows of W that are not 0, where F is smooth."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from mdlearn.forms.composite import Composite
from mdlearn.forms.joint.composite_point import CompositeEvaluation, row_lengths
from mdlearn.numerics.conjugate_gradients import Map, conjugate_gradients
from mdlearn.solvers.base import Report

FORCING, FINEST = 0.01, 1e-8
"""Relative residuals of the first linear systems and of the last."""
PRODUCTS = 100
"""Most products with the second derivative per step."""
STALL_STEPS = 4
"""Steps that leave the slope as it is, after which no more are taken."""
LAST_STEP_SLOPE = 1e-4
"""Share of its parts that a slope is when the next step is the last, or nearly so."""
ROUNDING_OF_SLOPES = 1e-12
"""Share of its parts that a slope is when rounding is taken to be reached."""
SINGULAR = 1e-11
"""Pivot or eigenvalue, in units of the diagonal, below which columns are taken to depend on each other."""


class NewtonFinish:
    """Newton finish of the proximal gradient; a proximal step before each Newton step says which rows are 0."""

    def __init__(self, problem: Composite) -> None:
        self.problem, self.largest = problem, 0.0

    def improve(
        self, look: CompositeEvaluation, L: float, report: Callable[[CompositeEvaluation], Report]
    ) -> Generator[Report | None, None, np.ndarray | None]:
        """Yield reports of Newton steps; return where first-order steps go on, or None at the end of rounding."""
        problem = self.problem
        if not self.largest:
            # Wherever steps began: a start near the optimum has small slopes alone, of parts that are as large.
            self._size(problem.at(np.zeros(problem.shape)))
            yield None
        best, stalled, told = np.inf, 0, True
        while True:
            residual, size = self._residual(look), self._size(look)
            stalled = 0 if residual < 0.5 * best else stalled + 1
            best = min(best, residual)
            found = None
            if stalled < STALL_STEPS:
                step = yield from self._direction(look)
                found = None if step is None else (yield from self._along(look, step, L))
            if found is None:
                # Rounding, or a model that does not hold here.
                if not told:
                    yield report(look)
                return None if residual <= ROUNDING_OF_SLOPES * size else look.W
            # Rows change sides by a proximal step only.
            W = problem.prox(found.W - problem.slope(found) / L, 1.0 / L)
            same = np.array_equal(W.any(axis=1), found.W.any(axis=1))
            look = found if same else problem.settle(W)
            # Close to the end the next step costs little and takes decision values to their last digits.
            told = not told or self._residual(look) > LAST_STEP_SLOPE * size
            if told:
                yield report(look)

    def _size(self, look: CompositeEvaluation) -> float:
        """Update and return the largest size of a subgradient's parts so far; it tells rounding from slope."""
        self.largest = max(self.largest, float(np.linalg.norm(look.gradient) + np.linalg.norm(self.problem.beta)))
        return self.largest

    def _residual(self, look: CompositeEvaluation) -> float:
        """Length of the shortest subgradient."""
        return float(np.linalg.norm(self.problem.subgradient(look)))

    def _direction(self, look: CompositeEvaluation) -> Generator[None, None, np.ndarray | None]:
        """Newton step of the rows that are not 0, by preconditioned conjugate gradients; None where there is none."""
        problem = self.problem
        product = problem.product(look)
        size = row_lengths(look.W)
        free = (size > 0) | (problem.beta == 0)
        if product is None or not free.any():
            return None
        rows = np.flatnonzero(free)
        over = np.where(size[rows] > 0, problem.beta[rows] / np.where(size[rows] > 0, size[rows], 1.0), 0.0)
        unit = look.W[rows] / np.where(size[rows] > 0, size[rows], 1.0)[:, None]
        solve = yield from self._preconditioner(look, rows, over)

        def times(V: np.ndarray) -> np.ndarray:
            full = np.zeros(problem.shape)
            full[rows] = V
            along = np.einsum("jk,jk->j", unit, V)[:, None] * unit
            result: np.ndarray = product(full)[rows] + over[:, None] * (V - along)
            return result

        target = -problem.subgradient(look)[rows]
        slope = float(np.linalg.norm(target))
        if slope == 0:
            return None
        goal = max(FINEST, min(FORCING, slope / max(self._size(look), slope)))
        step = np.zeros(problem.shape)
        step[rows] = yield from newton_finish_direction(times, solve, target, goal)
        return step

    def _preconditioner(
        self, look: CompositeEvaluation, rows: np.ndarray, over: np.ndarray
    ) -> Generator[None, None, Map]:
        """Solve by column with the problem's own approximation, the penalty's part added."""
        solves: list[Map] = []
        for j in range(self.problem.shape[1]):
            A = self.problem.approximation(look, rows, j)
            if A.ndim == 2:
                A[np.diag_indices_from(A)] += over
                solves.append(_finish_preconditioner(A))
            else:
                solves.append(_diagonal_finish_preconditioner(np.where(A + over > 0, A + over, 1.0)))
            yield None
        return lambda R: np.column_stack([solve(r) for solve, r in zip(solves, R.T)])

    def _along(
        self, look: CompositeEvaluation, step: np.ndarray, L: float
    ) -> Generator[None, None, CompositeEvaluation | None]:
        """Halve the step until the objective falls as a descent direction lets it; None where it does not.

        The end is a step as short as that of the first-order method: where losses are straight lines up to a kink, the
        kink may be that close, and the second derivative knows nothing of it.
        """
        problem = self.problem
        value, residual = problem.objective(look), self._residual(look)
        expected = float((problem.subgradient(look) * step).sum())
        if not expected < 0:
            return None
        length, least = 1.0, min(0.5, residual / (L * float(np.linalg.norm(step))))
        while length > least:
            trial = look.W + length * step
            # A row that would pass through 0 stops there: beyond, the model does not hold.
            trial[(np.einsum("jk,jk->j", trial, look.W) <= 0) & (problem.beta > 0)] = 0.0
            found = problem.settle(trial)
            yield None
            new = problem.objective(found)
            if new <= value + 1e-4 * length * expected:
                return found
            # Near the end the objective is all rounding, but the slope is not.
            if new <= value + 1e-14 * abs(value) and self._residual(found) < 0.9 * residual:
                return found
            length *= 0.5
        return None


def _finish_preconditioner(A: np.ndarray) -> Map:
    """Preconditioner r -> v, A v = r, of the Newton finish, for a semidefinite A in units of its diagonal.

    Where columns depend on each other, v has nothing of the directions that A does not hold: conjugate gradients would
    follow the rounding in them without end.
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    diagonal = np.diagonal(A)
    scale = np.divide(1.0, np.sqrt(np.abs(diagonal)), out=np.zeros_like(diagonal), where=diagonal > 0)
    A = scale[:, None] * A * scale
    try:
        factor = cho_factor(A, lower=True, check_finite=False)
        if float(np.diagonal(factor[0]).min()) ** 2 > SINGULAR:
            return lambda r: scale * cho_solve(factor, scale * r, check_finite=False)
    except LinAlgError:
        pass
    try:
        values, vectors = np.linalg.eigh(A)
    except LinAlgError:
        return _diagonal_finish_preconditioner(np.where(diagonal > 0, diagonal, 1.0))
    held = values > SINGULAR * float(values[-1])
    vectors, inverse = vectors[:, held], 1.0 / values[held]
    return lambda r: scale * (vectors @ (inverse * (vectors.T @ (scale * r))))


def _diagonal_finish_preconditioner(by: np.ndarray) -> Map:
    """Preconditioner r -> r / by of the Newton finish."""
    return lambda r: r / by


def newton_finish_direction(
    times: Map, solve: Map, target: np.ndarray, goal: float
) -> Generator[None, None, np.ndarray]:
    """Solve for a direction of the Newton finish by conjugate gradients, to a relative residual."""
    # The residual may be all rounding that the solutions leave out: then its product with them alone becomes small.
    return (yield from conjugate_gradients(times, solve, target, goal, (0.01 * goal) ** 2, PRODUCTS))
