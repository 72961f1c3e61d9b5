"""Rounds of a decomposition: a working set, greedy steps on its block, then the decision values of all rows.

Decision values are float64 sums of products of float32 kernel values, so they drift; reports take that away.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from mdlearn.data.features.kernel_tiles import KernelTiles
from mdlearn.data.rows.rows import steps
from mdlearn.forms.certificates.primal import primal_objective
from mdlearn.forms.margin import Column, MarginForm, best_bias_alone, best_bias_shift
from mdlearn.solvers.working_set.block_ascent import BlockAscentDual

LEAST_WORKING_ROWS, MOST_WORKING_ROWS = 2048, 6144
"""Rows of a working set, at least and at most; a first one has the least."""
WHOLE_WORKING_ROWS = 3000
"""Rows up to which all are one working set, whose Hessian is made once. Of 2,310 to 3,000 rows, gap 1e-4, C = 1 and 10,
fits took 0.78 to 0.82 (lsvm) and 0.66 to 1 (ldm) of the time with the least number, 0.69 to 0.93 (svm) of 3,400; from
4,000 on, where parts come first, up to 2.8."""
KEPT_VALUES_ROWS = 8000
"""Rows up to which the values between all are kept beside a variance, where the cache has room for Newton steps on as
many. To a gap of 1e-4, 5,000 and 7,500 rows of ijcnn1, C = 10, took 0.50 and 0.56 of the time with values made anew."""
LARGEST_WORKING_ROWS, BLOCK_SHARE = 12288, 0.61
"""Rows of a working set up to which they become more where rounds lead on no further, and the share of the cache that
their values may take: 600 MB of 1 GB. Of 100,000 rows on a checkerboard 7,905 did not end below a gap of 0.04."""
NEWTON_BYTES = 12.0
"""Bytes that Newton steps take for a pair of rows beside its kernel value: a copy of that, and a factor."""
WORKING_PER_FREE = 1.5
"""Rows of a working set to free ones, at least."""
VIOLATING_SHARE = 0.5
"""Share of a working set that violating rows take, at most, beside free ones. Where tens of thousands violate a little,
the worst 2,048 took 384 rounds for 100,000 noisy rows in three columns; half of a set took 112."""
FEW_MOVED, MANY_MOVED = 1.0 / 16.0, 0.5
"""Shares of a working set that moved, below and above which the next one has half, or twice, as many rows."""
REPLACED_SHARE = 0.5
"""Share of a working set that may be new where the Hessian of the last one is kept for the rest."""
STRIP_ENTRIES = 1 << 20
"""Entries of a working set's Hessian that are replaced between two heartbeats."""
LEFT_VIOLATION = 0.15
"""Share of the worst violation at which steps on a working set end."""
STEPS_PER_ROW = 10
"""Greedy steps per row of a working set, at most."""
NEWTON_STEPS = 4
"""Newton steps of a round, where greedy ones do not get there."""
MOST_TURNS = 4
"""Times that greedy steps on a working set are taken, where rows go over to their other term after each."""


def decomposition_set_bytes(m: int, cache: float, value_bytes: float) -> float:
    """Return the bytes that a working set of a decomposition over m rows may take, with its Newton steps."""
    n = min(m, most_rows_of_rounds(cache, value_bytes))
    return min(cache, (value_bytes + NEWTON_BYTES) * n * n)


def most_rows_of_rounds(cache: float, value_bytes: float) -> int:
    """Return how many rows a working set of a decomposition may have with this many bytes of cache."""
    return int(min(LARGEST_WORKING_ROWS, math.sqrt(BLOCK_SHARE * cache / value_bytes)))


def most_rows_of_whole_rounds(cache: float, value_bytes: float, varied: bool) -> int:
    """Return up to how many rows all are one working set; beside a variance, have the values between all kept."""
    most = min(KEPT_VALUES_ROWS, math.sqrt(cache / (value_bytes + NEWTON_BYTES))) if varied else WHOLE_WORKING_ROWS
    return int(min(most, most_rows_of_rounds(cache, value_bytes)))


@dataclass(frozen=True, eq=False)
class DecompositionKernel:
    """Kernel of a decomposition, shared by all columns."""

    tiles: KernelTiles
    constant: float  # what the bias adds to every kernel value
    factor: np.ndarray | None  # partial factor of the matrix with the constant, shape (m, r), beside a variance
    cache: float  # bytes that a working set's block and Newton steps may take
    whole_rows: int  # rows up to which all are one working set, or have the values between all kept

    def take(self, rows: np.ndarray) -> DecompositionKernel:
        """Return the kernel over some rows."""
        factor = None if self.factor is None else self.factor[rows]
        return replace(
            self, tiles=self.tiles.take(rows), factor=factor, whole_rows=min(self.whole_rows, WHOLE_WORKING_ROWS)
        )


class DecompositionRounds(BlockAscentDual):
    """Rounds of a decomposition: multipliers u of one column, and the decision values that they stand for.

    `form`, `column`: a column of the form, or a part of its rows, which `kernel` has as well; `f` (shape (m,)):
    decision values without the bias; `objective`, `lower_bound`: estimates, as true as these.
    """

    def __init__(self, form: MarginForm, column: Column, kernel: DecompositionKernel, rng: np.random.Generator) -> None:
        super().__init__(form, column)
        self.columns, self.constant, self.cache, self.rng = kernel.tiles, kernel.constant, kernel.cache, rng
        self.f = np.zeros(column.y.shape[0])
        self.value_bytes = float(np.dtype(self.columns.dtype).itemsize)
        self.limit = most_rows_of_rounds(self.cache, self.value_bytes)
        m = self.f.shape[0]
        self.whole = m <= min(kernel.whole_rows, self.limit)
        self.size = self.least = m if self.whole else min(LEAST_WORKING_ROWS, self.limit)
        self.most = self.eager = m if self.whole else min(MOST_WORKING_ROWS, self.limit)
        self.predicted: np.ndarray | None = None  # gradient that others foretell, for a first round
        self.objective, self.lower_bound, self.b = np.inf, -np.inf, 0.0
        at_zero = np.zeros_like(self.f)
        if self.paired:
            at_zero = column.y * best_bias_alone(column)
        self.objective_at_zero = primal_objective(column, at_zero, 0.0)[0]
        self.e = self.target.copy()
        self.room = np.empty(0)
        self.within, self.H = np.empty(0, dtype=np.intp), self.room  # the last working set, and its Hessian

    def prepare(self) -> Generator[None, None, None]:
        """Make what rounds need; here, nothing."""
        yield from ()

    @property
    def gap(self) -> float:
        """Relative gap of the estimates."""
        return self.column.relative_gap(self.objective, self.lower_bound)

    def add(self, rows: np.ndarray, change: np.ndarray) -> Generator[None, None, None]:
        """Add what changes of some multipliers make of the decision values of all rows."""
        yield from self.columns.add(self.f, rows, change)

    def block(self, rows: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Hessian between the rows of a working set."""
        H = yield from self.columns.block(rows, self._room(rows.shape[0]).reshape(-1))
        H += self.constant
        return H

    def _room(self, n: int) -> np.ndarray:
        """Memory of a working set's Hessian of order n: new memory costs as much as what is written into it."""
        if self.room.shape[0] < n * n:
            self.room = np.empty(n * n, dtype=self.columns.dtype)
        return self.room[: n * n].reshape(n, n)

    def strip(self, rows: np.ndarray, others: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Hessian between some rows and others."""
        H = yield from self.columns.between(rows, others)
        H += self.constant
        return H

    def hessian(self, rows: np.ndarray) -> Generator[None, None, tuple[np.ndarray, np.ndarray]]:
        """Return a working set in the order of its Hessian, and that; what it shares with the last one is known."""
        last, H, n = self.within, self.H, rows.shape[0]
        stay, enter = np.zeros((2, self.u.shape[0]), dtype=bool)
        stay[rows] = enter[rows] = True
        enter[last] = False
        new = np.flatnonzero(enter)
        if last.shape[0] != n or new.shape[0] > REPLACED_SHARE * n:
            self.within = last[:0]  # until the new one is there: a block may share its memory
            self.H = yield from self.block(rows)
            self.within = rows
        elif new.shape[0]:
            places, self.within = np.flatnonzero(~stay[last]), last[:0]
            rows = last.copy()
            rows[places] = new
            strip = yield from self.strip(new, rows)
            H[places] = strip
            for part in steps(n, STRIP_ENTRIES // new.shape[0]):
                H[part, places] = strip[:, part].T
                yield
            self.within = rows
        return self.within, self.H

    def set_multipliers(self, u: np.ndarray) -> Generator[None, None, None]:
        """Go on from multipliers u, less what their sum is not to be, with the decision values that these make."""
        self.face(u)
        self.u, self.f = u, np.zeros_like(self.f)
        self.balance()
        own = np.flatnonzero(self.u)
        yield from self.add(own, self.u[own])
        self.evaluate()

    def settle(self, u: np.ndarray, predicted: np.ndarray) -> Generator[None, None, None]:
        """Go on from multipliers u that were made for a gradient, which tells the rows of the first working set."""
        yield from self.set_multipliers(u)
        self.predicted = predicted

    def coefficients(self) -> np.ndarray:
        """Dual coefficients that the multipliers stand for."""
        return self.u.copy()

    def variance_multipliers(self) -> np.ndarray:
        """Multipliers of the variance; here there is none."""
        return np.zeros_like(self.u)

    def refine(self, coefficients: np.ndarray, exact: np.ndarray) -> None:
        """Take over exact decision values, without the bias, of the present coefficients."""
        self.f[:] = exact
        self.evaluate()

    def intercept(self, product: np.ndarray) -> float:
        """Bias beside a product of the kernel matrix with the coefficients."""
        return self.b

    def values_over(self, whole: DecompositionRounds, inside: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Return decision values of the multipliers for the rows of a larger part, of which these are `inside`."""
        f, own = np.zeros_like(whole.f), self.u != 0
        yield from whole.columns.add(f, inside[own], self.u[own])
        return f

    def measure(self, tol: float) -> Generator[None, None, bool]:
        """Find the gap exactly, where that is due for one of `tol`; whether the present one may be believed."""
        yield from ()
        return True

    def correct(self) -> Generator[None, None, bool]:
        """Take from the decision values what the last exact ones say that they lack; whether the gap is exact then.

        Here `refine` has done it.
        """
        yield from ()
        return False

    def evaluate(self) -> None:
        """Gradient, bias, objective and bound at the present decision values."""
        column, beta, total = self.column, self.beta(), float(self.u.sum())
        self.e = self.target - self.f - self.soft * self.u
        if self.paired:
            self.b = self.shift(self.e)
        else:
            self.b = self.constant * total
        self.e -= self.b
        self.turn(self.e, middle=self._middle(self.e))
        squares = max(float(self.u @ self.f), 0.0) + self.constant * total * total
        z = column.y * (self.f + self.b)
        if self.paired:
            z += column.y * best_bias_shift(column, z)
        self.objective = min(primal_objective(column, z, squares)[0], self.objective_at_zero)
        self.lower_bound = column.bound(beta, np.zeros_like(self.u)) - 0.5 * squares

    def climb_once(self) -> Generator[None, None, bool]:
        """One round; False where nothing moves."""
        violation = self.violation(self.e - self._middle(self.e))
        rows, H = yield from self.hessian(self.chosen(violation))
        worst = float(violation[rows].max())
        g, old = self.e[rows].copy(), self.u[rows].copy()
        enough = LEFT_VIOLATION * worst
        left = yield from self._climb_turning(H, rows, g, enough)
        for _ in range(NEWTON_STEPS):
            if left <= enough or not self._newton_fits(rows):
                break
            yield from self.newton(H, rows, g)
            left = yield from self._climb_turning(H, rows, g, enough)
        change = self.u[rows] - old
        moved = change != 0
        yield from self.add(rows[moved], change[moved])
        self.evaluate()
        self.predicted = None
        share = np.count_nonzero(moved) / rows.shape[0]
        by = 0.5 if share < FEW_MOVED else 2.0 if share > MANY_MOVED else 1.0
        self.size = int(np.clip(by * self.size, self.least, self.eager))
        return bool(moved.any())

    def _climb_turning(
        self, H: np.ndarray, rows: np.ndarray, g: np.ndarray, enough: float
    ) -> Generator[None, None, float]:
        """Greedy steps on a working set, and further ones where rows go over to their other term; violation left."""
        none, left = np.zeros(rows.shape[0]), 0.0
        for _ in range(MOST_TURNS):
            left = yield from self.climb(H, rows, g, enough, none, 0.0, STEPS_PER_ROW)
            if not self.turn(g, rows, self._middle(g, rows)):
                break
        return left

    def _newton_fits(self, rows: np.ndarray) -> bool:
        """Whether the cache has room for Newton steps on the free rows of a working set."""
        free = np.count_nonzero((self.u[rows] > self.low[rows]) & (self.u[rows] < self.high[rows]))
        return self.value_bytes * rows.shape[0] ** 2 + NEWTON_BYTES * free**2 <= self.cache

    def grow(self) -> Generator[None, None, bool]:
        """Let working sets become twice as large; False where that is no way on."""
        yield
        if self.most >= min(self.u.shape[0], self.limit):
            return False
        self.most = min(2 * self.most, self.limit)
        self.size = self.eager = self.most
        return True

    def _middle(self, e: np.ndarray, rows: np.ndarray | slice = slice(None)) -> float:
        """Gradient at which violations of both directions are the same: for a free bias, else all may want one."""
        if not self.paired:
            return 0.0
        up, down = self.ends(e, rows)
        return 0.5 * (float(up.max()) + float(down.min())) if up.shape[0] and down.shape[0] else 0.0

    def set_rows(self, free: int) -> int:
        """Rows of the next working set beside so many free ones."""
        return int(np.clip(WORKING_PER_FREE * free, self.size, self.most))

    def chosen(self, violation: np.ndarray) -> np.ndarray:
        """Draw the working set: free rows, some that violate, and those nearest to their kinks."""
        m = violation.shape[0]
        first = (self.u > self.low) & (self.u < self.high)
        n = min(m, self.set_rows(int(np.count_nonzero(first))))
        if n == m:
            return np.arange(m)
        if self.predicted is not None:
            score = -np.abs(self.predicted)
        else:
            # Smooth kernels move all values at once. A set of the worst rows alone says nothing of the many that
            # violate a little, and one of violating rows alone has nothing that could move the other way.
            wrong = np.flatnonzero(violation > 0)
            n_wrong = int(VIOLATING_SHARE * n)
            if wrong.shape[0] > n_wrong:
                draw = np.sqrt(violation[wrong]) * self.rng.random(wrong.shape[0])
                wrong = wrong[np.argpartition(draw, wrong.shape[0] - n_wrong)[wrong.shape[0] - n_wrong :]]
            first[wrong] = True
            score = -np.abs(self.e - self._middle(self.e))
            score[first] = 1.0 + violation[first]
        if self.paired:  # rows that all want one direction cannot move, and a rare class is easily left out
            for pull in (np.where(self.u < self.high, self.e, -np.inf), np.where(self.u > self.low, -self.e, -np.inf)):
                score[np.argmax(pull)] = np.inf
        return np.sort(np.argpartition(score, m - n)[m - n :])
