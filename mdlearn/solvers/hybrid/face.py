"""Face step of the hybrid solver: the optimum of its dual over multipliers between their bounds, others as they are.

Coordinate ascent finds out soon which multipliers are between their bounds, and crawls among these where rows are
nearly alike. Their quadratic has the Gram matrix of their rows. From one Cholesky factor a primal active-set method
goes to its optimum within the bounds: a multiplier that meets a bound stays there, and the step changes by a column of
the inverse (Goldfarb and Idnani, "A numerically stable dual method for solving strictly convex quadratic programs",
1983, on such updates).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator

import numpy as np

from mdlearn._solvers import face_steps
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.numerics import cholesky
from mdlearn.solvers.hybrid.loss_column import LossColumn
from mdlearn.solvers.hybrid.metric import has_metric
from mdlearn.solvers.systems.weighted_gram import unweighted_gram

LARGEST_FACE, FACE_PER_COLUMN = 2000, 1.5
"""Multipliers of the largest face, and per column: more rows than columns are not independent."""
FACE_OVERHEAD, LARGE_MATRIX_OPERATION, SMALL_MATRIX_OPERATION = 1e5, 0.04, 10.0
"""What a step costs beside its work on rows and matrices, in operations on entries; time of an operation on a matrix in
that of one on an entry, where it is large, and what is added to it, times the order."""
MOST_BOUNDS = 30
"""Bounds that one step meets at most: many more say that sweeps have not found the face yet."""
FACE_TRACE = 1e-10
"""What is added to the diagonal of the Gram matrix, relative to its largest entry: rows may be equal."""


def price_of_face_step(problem: LossColumn) -> Callable[[int], float]:
    """Price of a face step of the hybrid solver in operations on entries, by the number of its multipliers."""
    rows, n = problem.stored, problem.width
    per_row = rows.n_entries / problem.n_rows
    dense = has_metric(problem) or not isinstance(rows, CsrRows)

    def price(face: int) -> float:
        if not 0 < face <= min(LARGEST_FACE, FACE_PER_COLUMN * n):
            return math.inf
        order = float(face)
        if dense:
            outer = LARGE_MATRIX_OPERATION * order * order * n
        else:
            outer = 0.5 * order * per_row * min(order, per_row)
        passes = 4.0 * order * (n if dense else per_row)
        return (
            FACE_OVERHEAD + passes + outer + (LARGE_MATRIX_OPERATION + SMALL_MATRIX_OPERATION / order) * order**3 / 3.0
        )

    return price


class FaceStep:
    """Step of the hybrid solver to the optimum over the multipliers of a face.

    Parameters
    ----------
    problem : LossColumn
    face : ndarray of int64
        Rows whose multipliers are between their bounds.
    beta : ndarray
        Their multipliers.
    rows : AffineRows
        These rows, in the metric of a variance term where there is one.

    Attributes
    ----------
    change : ndarray
        What these multipliers get.
    moved : ndarray
        What the coefficients of these rows get of it.
    """

    def __init__(self, problem: LossColumn, face: np.ndarray, beta: np.ndarray, rows: AffineRows) -> None:
        self.y, self.softness, self.caps = problem.y[face], problem.softness[face], problem.caps[face]
        self.beta, self.rows = beta, rows
        self.change, self.moved = np.zeros_like(beta), np.zeros(problem.width)

    def margins(self, w: np.ndarray) -> np.ndarray:
        """R w of the face."""
        return np.asarray(self.y * self.rows.dot(w))

    def ascend(self, slope: np.ndarray) -> Generator[None, None, None]:
        """Set the change along which the dual rises with such derivatives, and what coefficients get of it."""
        M = yield from unweighted_gram(self.rows.rows)
        M += float(self.rows.constant)
        M *= self.y
        M *= self.y[:, None]
        n = M.shape[0]
        M.flat[:: n + 1] += self.softness + FACE_TRACE * float(np.diagonal(M).max())
        try:
            L = yield from cholesky.cholesky(M)
        except cholesky.NotPositiveDefinite:
            return
        step, reached = cholesky.cholesky_solve(L, slope), self.beta.copy()
        room = np.empty((MOST_BOUNDS, n))
        face_steps.ascend(L, reached, step, self.caps, room, np.empty(MOST_BOUNDS, dtype=np.int64))
        change = reached - self.beta
        moved = self.rows.adjoint(self.y * change)
        rise, bend = float(slope @ change), float(moved @ moved) + float((self.softness * change) @ change)
        # With bounds that other ones would leave again, the end may be beyond the highest place.
        length = min(1.0, rise / bend) if rise > 0 < bend else 0.0
        self.change, self.moved = length * change, length * moved
