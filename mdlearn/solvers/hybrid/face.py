"""Face step of the hybrid solver: the optimum of its dual over multipliers between their bounds, others as they are.

Coordinate ascent finds out soon which multipliers are between their bounds, and crawls among these where rows are
nearly alike. Their quadratic has the Gram matrix of their rows. From one Cholesky factor a primal active-set method
goes to its optimum within the bounds: a multiplier that meets a bound stays there, and the step changes by a column of
the inverse (Goldfarb and Idnani, "A numerically stable dual method for solving strictly convex quadratic programs",
1983, on such updates).

Beside a variance over CSR rows the multipliers of this go along, near the optimum: those of the face alone lead a
little way, since both push the same few directions. Coefficients come from conjugate gradients on the matrix of the
variance, preconditioned by the same factor. Those of the variance expect all of the step: where bounds cut it, it is
made again without the rows that have met one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from mdlearn._solvers import face_steps
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.numerics import cholesky
from mdlearn.solvers.hybrid.loss_column import LossColumn
from mdlearn.solvers.hybrid.metric import has_metric, price_of_whitened_metric
from mdlearn.solvers.systems.weighted_gram import unweighted_gram

LARGEST_FACE, FACE_PER_COLUMN = 2000, 1.5
"""Multipliers of the largest face, and per column: more rows than columns are not independent."""
FACE_OVERHEAD, LARGE_MATRIX_OPERATION, SMALL_MATRIX_OPERATION = 1e5, 0.04, 10.0
"""What a step costs beside its work on rows and matrices, in operations on entries; time of an operation on a matrix in
that of one on an entry, where it is large, and what is added to it, times the order."""
SMALL_FACE, SMALL_FACE_OPERATIONS = 60, 1 << 19
"""Multipliers of a face over dense rows, and operations of their Gram matrix, up to which one call of plain loops takes
less than a dozen of BLAS."""
MOST_BOUNDS = 30
"""Bounds that one step meets at most: many more say that sweeps have not found the face yet."""
FACE_TRACE = 1e-10
"""What is added to the diagonal of the Gram matrix, relative to its largest entry: rows may be equal."""
VARIED_FACE_GAP, FIRST_VARIED_FACE_GAP = 0.1, 5e-3
"""Relative gap up to which multipliers of a variance go along with a face, after the first step and for it: further off
they meet too many bounds."""
FACE_OF_WIDE_ROWS, FIRST_WIDE_FACE_GAP = 0.25, 0.06
"""Multipliers of a face per column up to which its rows are far from dependent, and the gap for the first step then: on
reuters_moneyfx at C = 10 and 100 fits reach an excess in 0.9 of the time, on drawn rows of 800 columns, with as many
multipliers between their bounds, they would take 1.2 to 1.8 times as long."""
VARIED_FACE_PROXIMITY = 0.3
"""What is added to the diagonal then, in mean distances of margins from the kink per mean multiplier: without it few
rows take all of the step, which ends at once. On reuters_moneyfx at C = 1 and 10 one step takes 1.5 to 2.5 digits."""
VARIED_FACE_PASSES = 10.0
"""Operations of its passes over all rows, per entry of these: as many, and each takes the time of one operation."""
VARIED_FACE_CUT = 0.9
"""Share of such a step that bounds leave at least, or it is made again without the rows that have met them."""
FACE_CHANGE = 0.1
"""Share of the multipliers between their bounds by which their number changes in a sweep that has found the face."""
VARIED_STEPS_BEFORE_METRIC = 3
"""Face steps with a variance, at most, before its metric, where this costs more than one for each digit to come. On
splice_uci at C = 0.01 and 0.1 fits take 0.65 to 1.08 of the time of the metric at gaps of 1e-3 to 1e-7."""
SWEEPS_TO_STEP = 10
"""Sweeps after which a face step with a variance follows an earlier one, whatever it costs: what is late is the primal,
which the pace of the bound does not tell."""
DIGIT_TAKEN = 0.1
"""Share of the gap that a face step with a variance leaves at most for another one to follow the next sweep."""
VARIED_FACE_RESIDUAL, MOST_VARIED_FACE_ITERATIONS = 0.1, 30
"""Share of the slope that its conjugate gradients leave, and their most iterations: 3 to 12 are usual."""


def price_of_face_step(problem: LossColumn) -> Callable[[int], float]:
    """Price of a face step of the hybrid solver in operations on entries, by the number of its multipliers."""
    return partial(_price_of_face, problem, has_metric(problem) or not isinstance(problem.stored, CsrRows))


def price_of_varied_face_step(problem: LossColumn) -> Callable[[int], float]:
    """Price of one that takes multipliers of a variance along, over CSR rows as they are."""
    passes = VARIED_FACE_PASSES * problem.stored.n_entries
    return lambda face: passes + _price_of_face(problem, False, face)


def _price_of_face(problem: LossColumn, dense: bool, face: int) -> float:
    n, per_row = problem.width, problem.stored.n_entries / problem.n_rows
    if not 0 < face <= min(LARGEST_FACE, FACE_PER_COLUMN * n):
        return math.inf
    order = float(face)
    if dense:
        outer = LARGE_MATRIX_OPERATION * order * order * n
    else:
        outer = 0.5 * order * per_row * min(order, per_row)
    passes = 4.0 * order * (n if dense else per_row)
    factor = (LARGE_MATRIX_OPERATION + SMALL_MATRIX_OPERATION / order) * order**3 / 3.0
    return FACE_OVERHEAD + passes + outer + factor


class SweepPace(NamedTuple):
    """Sweeps and their operations so far, and what a digit takes; digits to come, and what a metric costs still."""

    sweeps: int
    operations: float
    price_of_digit: float
    gap: float
    digits: float
    metric: float


class FaceJudge:
    """Says when a face step pays beside the sweeps of a descent.

    Attributes
    ----------
    size : int
        Multipliers between their bounds after the last sweep.
    paid, last_step : float, int
        Operations and sweeps of the descent up to the last step.
    varied_steps : int
        Steps so far that took the multipliers of a variance along: over CSR rows.
    stepped, again : bool
        Whether such a step came after the last sweep, and whether it took a digit.
    """

    def __init__(self, problem: LossColumn) -> None:
        self.problem, self.has_metric = problem, has_metric(problem)
        self.price, self.varied_price = price_of_face_step(problem), price_of_varied_face_step(problem)
        self.varies_along = problem.column.kappa > 0 and isinstance(problem.stored, CsrRows)
        self.size, self.paid, self.last_step, self.varied_steps = 0, 0.0, 0, 0
        self.stepped, self.again = False, False

    def settled(self, between: int) -> bool:
        """Whether multipliers between their bounds, of which there are so many now, have settled."""
        before, self.size = self.size, between
        return abs(between - before) <= FACE_CHANGE * between

    def judge(self, pace: SweepPace) -> tuple[bool, bool]:
        """Whether a step to the optimum of settled multipliers pays, and whether those of a variance go along."""
        if self.near(pace):
            pays = self._varied_step_pays(pace)
            return pays, pays
        if self.varies_along and not self.has_metric:
            return False, False
        price = self.price(self.size)
        if self.has_metric and pace.metric:
            price += 4.0 * self.problem.stored.n_entries + self.size * price_of_whitened_metric(self.problem)
        return price <= min(pace.operations - self.paid, pace.price_of_digit), False

    def near(self, pace: SweepPace) -> bool:
        """Whether a step with a variance may come: near the optimum, and before a metric that costs more."""
        if not self.varies_along or not pace.metric:
            return False
        if self.has_metric:
            dear = max(1.0, pace.digits) * self.varied_price(self.size) > pace.metric
            if self.varied_steps >= VARIED_STEPS_BEFORE_METRIC or (dear and not self.varied_steps):
                return False
        if self.paid:
            return pace.gap <= VARIED_FACE_GAP
        wide = self.size <= FACE_OF_WIDE_ROWS * self.problem.width
        return pace.gap <= (FIRST_WIDE_FACE_GAP if wide else FIRST_VARIED_FACE_GAP)

    def pay(self, operations: float, sweeps: int) -> None:
        """Begin a step after so many operations, its own included, and sweeps."""
        self.paid, self.last_step = operations, sweeps

    def end_varied_step(self, before: float, left: float) -> None:
        """End a step with a variance, which left so much of the gap before: another follows where it took a digit."""
        self.varied_steps, self.stepped, self.again = self.varied_steps + 1, True, left <= DIGIT_TAKEN * before

    def _varied_step_pays(self, pace: SweepPace) -> bool:
        """Whether a step with a variance costs less than what digits to come do, or what came since the last."""
        price = self.varied_price(self.size)
        if math.isinf(price):
            return False
        if not self.paid:
            return price <= min(pace.operations, pace.digits * pace.price_of_digit)
        due = self.again and not self.stepped
        return due or price <= pace.operations - self.paid or pace.sweeps >= self.last_step + SWEEPS_TO_STEP


def step_over_few_dense_rows(problem: LossColumn, records: np.ndarray, w: np.ndarray, n: int) -> bool:
    """Face step over n dense rows by one compiled call; whether it was made. Records and w are those of the descent."""
    rows, small = problem.stored, 0 < n <= SMALL_FACE and n * n * problem.width <= SMALL_FACE_OPERATIONS
    if not (small and isinstance(rows, DenseRows) and rows.suits_blas and rows.X.flags.c_contiguous):
        return False
    room = np.empty((n + 6 + MOST_BOUNDS, n)), np.empty(n + MOST_BOUNDS, dtype=np.int64), np.empty(w.shape[0])
    parts, border = (room[0][:n], room[0][n : n + 6], room[0][n + 6 :]), float(problem.rows.constant)
    return face_steps.step_over_dense(rows.X, records, w, problem.kink, border, FACE_TRACE, *parts, *room[1:])


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


@dataclass(eq=False)
class VariedFacePlace:
    """Place of the iterations for a change d of the coefficients: R d, (A - I) d, and the slope that is left."""

    ahead: np.ndarray
    varied: np.ndarray
    slope: np.ndarray


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
        """Set changes and shift from coefficients w of the multipliers, and what coefficients get of these.

        Where bounds cut the step, multipliers that meet one stay there, and iterations go on without their rows.
        """
        z = self.problem.margins(w)
        slope = self.problem.kink - z[self.face] - self.softness * self.beta
        distance = float(np.abs(self.problem.kink - z[self.face]).sum())
        L = yield from self.factor(VARIED_FACE_PROXIMITY * distance / float(self.beta.sum()))
        if L is None:
            return
        solve = partial(cholesky.cholesky_solve, L)
        pull = self.problem.adjoint(self.problem.column.spread(z) - self.spread)
        ahead, varied = self._varied(self._of_face(solve(slope)))
        yield
        place = VariedFacePlace(ahead, varied, varied - pull)
        yield from self._iterate(place, solve, np.ones_like(slope))
        self.change = self.within_bounds(L, slope - self.margins(pull - place.varied))
        rise, bend = self._follow(place, z, slope, pull)
        reached = self.beta + self.change
        inside = (reached > 0) & (reached < self.caps)
        if not rise >= VARIED_FACE_CUT * bend and not inside.all():
            yield from self._go_on_inside(place, solve, inside, slope, pull)
            rise, bend = self._follow(place, z, slope, pull)
        self.shift *= self.shorten(rise, bend)

    def _go_on_inside(
        self,
        place: VariedFacePlace,
        solve: Callable[[np.ndarray], np.ndarray],
        inside: np.ndarray,
        slope: np.ndarray,
        pull: np.ndarray,
    ) -> Generator[None, None, None]:
        """Go on from a place with the changes of multipliers outside as they are: the rows inside are the face."""
        met = np.flatnonzero(~inside)
        units = np.zeros((slope.shape[0], met.shape[0]))
        units[met, np.arange(met.shape[0])] = 1.0
        columns = solve(units)
        try:
            corner = yield from cholesky.cholesky(columns[met])
        except cholesky.NotPositiveDefinite:
            return

        def solve_inside(x: np.ndarray) -> np.ndarray:
            y = solve(inside * x)
            return y - columns @ cholesky.cholesky_solve(corner, y[met])

        fixed = np.where(inside, 0.0, self.change)
        left = np.where(inside, 0.0, (slope - place.ahead[self.face]) / self.ridge - fixed)
        place.slope = place.slope + self._of_face(left)
        yield from self._iterate(place, solve_inside, inside)
        step = solve_inside(slope - self.margins(pull - place.varied + self._of_face(fixed)))
        self.change = np.where(inside, np.clip(self.beta + step, 0.0, self.caps) - self.beta, fixed)

    def _follow(
        self, place: VariedFacePlace, z: np.ndarray, slope: np.ndarray, pull: np.ndarray
    ) -> tuple[float, float]:
        """Set shift and what coefficients get; return the dual's slope along both changes, and its bend."""
        column = self.problem.column
        self.shift = column.spread(z + place.ahead) - self.spread
        self.moved = self._of_face(self.change) + pull - place.varied
        stiffness = np.divide(1.0 / column.kappa, column.counts, out=np.zeros_like(z), where=column.counts > 0)
        rise = float(slope @ self.change) - float((z + stiffness * self.spread) @ self.shift)
        bend = float((self.softness * self.change) @ self.change) + float((stiffness * self.shift) @ self.shift)
        return rise, bend + float(self.moved @ self.moved)

    def _of_face(self, u: np.ndarray) -> np.ndarray:
        """R_F'u."""
        return self.rows.adjoint(self.y * u)

    def _varied(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R x and (A - I) x."""
        z = self.problem.margins(x)
        return z, -self.problem.adjoint(self.problem.column.spread(z))

    def _iterate(
        self, place: VariedFacePlace, solve: Callable[[np.ndarray], np.ndarray], inside: np.ndarray
    ) -> Generator[None, None, None]:
        """Iterate towards the optimum without bounds over the face inside: A d - R_F'p = pull, R_F d + ridge p = slope.

        L L' = R_F R_F' + ridge, which makes the inverse of I + R_F' R_F / ridge: it preconditions A in the place of I.
        """
        weights = inside / self.ridge
        v = place.slope - self._of_face(solve(self.margins(place.slope)))
        p, left = -v, float(place.slope @ v)
        enough = VARIED_FACE_RESIDUAL**2 * left
        for _ in range(MOST_VARIED_FACE_ITERATIONS):
            if not left > enough:
                return
            z, Kp = self._varied(p)
            yield
            q = p + Kp + self._of_face(weights * z[self.face])
            length = left / float(p @ q)
            place.ahead = place.ahead + length * z
            place.varied, place.slope = place.varied + length * Kp, place.slope + length * q
            v = place.slope - self._of_face(solve(self.margins(place.slope)))
            before, left = left, float(place.slope @ v)
            p = (left / before) * p - v
