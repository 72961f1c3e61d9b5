"""Face step of the hybrid solver: the optimum of its dual over multipliers between their bounds, others as they are.

Coordinate ascent finds out soon which multipliers are between their bounds, and crawls among these where rows are
nearly alike. Their quadratic has the Gram matrix of their rows. From one Cholesky factor a primal active-set method
goes to its optimum within the bounds: a multiplier that meets a bound stays there, and the step changes by a column of
the inverse (Goldfarb and Idnani, "A numerically stable dual method for solving strictly convex quadratic programs",
1983, on such updates).

Beside a variance over wide rows the multipliers of this go along, near the optimum: those of the face alone lead a
little way, since both push the same few directions. Coefficients come from conjugate gradients on the matrix of the
variance, preconditioned by the same factor.
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
VARIED_FACE_GAP = 0.1
"""Relative gap up to which multipliers of a variance go along with a face: further off they meet too many bounds."""
VARIED_FACE_PROXIMITY = 0.3
"""What is added to the diagonal then, in mean distances of margins from the kink per mean multiplier: without it few
rows take all of the step, which ends at once. On reuters_moneyfx at C = 1 and 10 one step takes 1.5 to 2.5 digits."""
VARIED_FACE_RESIDUAL, MOST_VARIED_FACE_ITERATIONS = 0.1, 30
"""Share of the slope that its conjugate gradients leave, and their most iterations: 3 to 12 are usual."""


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


def takes_variance_along(problem: LossColumn) -> bool:
    """Whether multipliers of a variance go along with a face step of the hybrid solver: over CSR rows, no metric."""
    return problem.column.kappa > 0 and isinstance(problem.stored, CsrRows) and not has_metric(problem)


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
    ridge : ndarray
        Diagonal beside the Gram matrix of the face in its last factor.
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
        L = yield from self.factor(0.0)
        if L is not None:
            self.change = self.within_bounds(L, slope)
            self.moved = self.rows.adjoint(self.y * self.change)
            bend = float(self.moved @ self.moved) + float((self.softness * self.change) @ self.change)
            self.shorten(float(slope @ self.change), bend)

    def factor(self, more: float) -> Generator[None, None, np.ndarray | None]:
        """Cholesky factor of the Gram matrix of the face, its softness and `more` on the diagonal; None without one."""
        M = yield from unweighted_gram(self.rows.rows)
        M += float(self.rows.constant)
        M *= self.y
        M *= self.y[:, None]
        self.ridge = self.softness + (FACE_TRACE * float(np.diagonal(M).max()) + more)
        M.flat[:: M.shape[0] + 1] += self.ridge
        try:
            return (yield from cholesky.cholesky(M))
        except cholesky.NotPositiveDefinite:
            return None

    def within_bounds(self, L: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Change of the multipliers with such a factor and slope, one bound after the other."""
        step, reached = cholesky.cholesky_solve(L, slope), self.beta.copy()
        room = np.empty((MOST_BOUNDS, self.beta.shape[0]))
        face_steps.ascend(L, reached, step, self.caps, room, np.empty(MOST_BOUNDS, dtype=np.int64))
        return reached - self.beta

    def shorten(self, rise: float, bend: float) -> float:
        """End the step at the highest place: with bounds that others would leave again, that comes before its end."""
        length = min(1.0, rise / bend) if rise > 0 < bend else 0.0
        self.change, self.moved = length * self.change, length * self.moved
        return length


class VariedFaceStep(FaceStep):
    """Step to the optimum over the multipliers of a face and those of a variance term, by rows as they are.

    Attributes
    ----------
    spread, shift : ndarray of shape (m,)
        Multipliers of the variance, and what they get.
    """

    def __init__(
        self, problem: LossColumn, face: np.ndarray, beta: np.ndarray, rows: AffineRows, spread: np.ndarray
    ) -> None:
        super().__init__(problem, face, beta, rows)
        self.problem, self.face, self.spread, self.shift = problem, face, spread, np.zeros_like(spread)

    def ascend_with_variance(self, w: np.ndarray) -> Generator[None, None, None]:
        """Set changes and shift from coefficients w of the multipliers, and what coefficients get of these."""
        problem, column = self.problem, self.problem.column
        z = problem.margins(w)
        slope = problem.kink - z[self.face] - self.softness * self.beta
        total = float(self.beta.sum())
        distance = float(np.abs(problem.kink - z[self.face]).sum())
        L = yield from self.factor(VARIED_FACE_PROXIMITY * distance / total)
        if L is None:
            return
        ahead = yield from self._coefficients(L, slope, problem.adjoint(column.spread(z) - self.spread))
        self.shift = column.spread(z + problem.margins(ahead)) - self.spread
        pushed = problem.adjoint(self.shift)
        self.change = self.within_bounds(L, slope - self.margins(pushed))
        self.moved = self.rows.adjoint(self.y * self.change) + pushed
        stiffness = np.divide(1.0 / column.kappa, column.counts, out=np.zeros_like(z), where=column.counts > 0)
        rise = float(slope @ self.change) - float((z + stiffness * self.spread) @ self.shift)
        bend = float((self.softness * self.change) @ self.change) + float((stiffness * self.shift) @ self.shift)
        bend += float(self.moved @ self.moved)
        length = self.shorten(rise, bend)
        self.shift *= length

    def _coefficients(self, L: np.ndarray, slope: np.ndarray, pull: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Change d of coefficients at the optimum without bounds: A d - R_F'p = pull, R_F d + ridge p = slope.

        L L' = R_F R_F' + ridge, which makes the inverse of I + R_F' R_F / ridge: it preconditions A in the place of I.
        """
        problem, column = self.problem, self.problem.column

        def multiplied(x: np.ndarray) -> np.ndarray:
            of_face = self.rows.adjoint(self.y * (self.margins(x) / self.ridge))
            return np.asarray(x - problem.adjoint(column.spread(problem.margins(x))) + of_face)

        def preconditioned(g: np.ndarray) -> np.ndarray:
            return np.asarray(g - self.rows.adjoint(self.y * cholesky.cholesky_solve(L, self.margins(g))))

        d = self.rows.adjoint(self.y * cholesky.cholesky_solve(L, slope))
        g = -problem.adjoint(column.spread(problem.margins(d))) - pull
        yield
        v = preconditioned(g)
        p, left = -v, float(g @ v)
        enough = VARIED_FACE_RESIDUAL**2 * left
        for _ in range(MOST_VARIED_FACE_ITERATIONS):
            if not left > enough:
                break
            q = multiplied(p)
            yield
            length = left / float(p @ q)
            d, g = d + length * p, g + length * q
            v = preconditioned(g)
            before, left = left, float(g @ v)
            p = (left / before) * p - v
        return d
