"""Block ascent over working sets: greedy steps on a small block of the Hessian, then all margins.

Coordinates are signed multipliers u = side y beta, alpha = u + y pull less what the variance takes. A working set holds
what is free, what violates its conditions and what is near to doing so. Without a variance term other rows need no
column of the kernel: those of the support are all that is ever computed.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

import mdlearn._solvers.bounded_quadratic as kernels
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.numerics import cholesky
from mdlearn.solvers.dual_hessian.hessian import BRIEF, hessian_block

ENTRIES_PER_CALL = 1 << 23
"""Entries that one call of a kernel touches: about 10 ms."""
BUDGET, GREEDY_STEPS_GROWTH, GREEDY_STEPS_PER_ROW = 4, 5, 100
"""Greedy steps per row of a working set, after which a Newton step is tried; how many times as many after every such
step, and the most: on a nearly singular block Newton steps gain little."""
NEWTON, FIXES, STEP_HALVINGS = 8, 3, 30
"""Newton steps of a round, systems of one while rows leave their boxes, and halvings of one that does not gain."""
DOUBLE_SHIFT, SINGLE_SHIFT = 1e-13, 1e-5
"""What is added to a diagonal, relative to its largest entry: beyond what rounding to either type takes from it."""


def suits_block_ascent(form: MarginForm, column: Column) -> bool:
    """Whether block ascent takes a column: one term of finite weight; a free bias asks for the sum of u at most."""
    if len(column.terms) != 1 or column.hard or not column.whole or column.terms[0].weight == 0:
        return False
    return form.bias != "free" or column.kappa > 0 or not column.pull.any()


class BlockAscentDual:
    """Dual of a column in signed multipliers u, for block ascent: with steps on blocks of its Hessian.

    Of two terms of opposite sides whose kinks do not cross, a row has a multiplier of one at most. Its box, softness
    and target are those of one term, until its multiplier is 0 and the other term's kink is the nearer one.
    """

    def __init__(self, form: MarginForm, column: Column) -> None:
        self.form, self.column, m = form, column, column.y.shape[0]
        self.signs, self.low, self.high, self.soft, self.target = _block_ascent_box(column, 0)
        self.beyond = _block_ascent_box(column, 1) if len(column.terms) > 1 else None
        self.pull = column.y * column.pull
        self.paired = form.bias == "free" and column.kappa == 0
        kinks = column.kinks[0]  # mostly one number for all rows
        size = float(np.abs(kinks).sum()) / kinks.shape[0] if kinks.shape[0] > 1 else abs(float(kinks[0]))
        self.scale = max(size, 1e-300)
        self.u = np.zeros(m)

    def beta(self) -> np.ndarray:
        """Multipliers, shape (T, m)."""
        column = self.column
        return np.minimum(np.maximum(np.multiply.outer(column.sides, column.y * self.u), 0.0), column.caps)

    def turn(self, e: np.ndarray, rows: np.ndarray | slice = slice(None), middle: float = 0.0) -> bool:
        """Let rows of multiplier 0 go over to their other term where its kink is nearer; whether some do.

        The kinks are where the gradient e of these rows, which is kept up to date, is `middle`.
        """
        if self.beyond is None:
            return False
        apart = self.beyond[-1][rows] - self.target[rows]
        turned = (self.u[rows] == 0) & (self.signs[rows] * (2.0 * (e - middle) + apart) < 0)
        e[turned] += apart[turned]
        self._exchange(np.arange(self.u.shape[0])[rows][turned])
        return bool(turned.any())

    def face(self, u: np.ndarray) -> None:
        """Let rows have the term that multipliers u, about to be taken over, belong to."""
        if self.beyond is not None:
            self._exchange(np.flatnonzero(u * self.signs < 0))

    def _exchange(self, rows: np.ndarray) -> None:
        """Give some rows the sign, box, softness and target of their other term."""
        assert self.beyond is not None
        for own, other in zip((self.signs, self.low, self.high, self.soft, self.target), self.beyond):
            own[rows], other[rows] = other[rows], own[rows]

    def climb(
        self,
        H: np.ndarray,
        rows: np.ndarray | slice,
        e: np.ndarray,
        enough: float,
        border: np.ndarray,
        omega: float,
        budget: int = BUDGET,
    ) -> Generator[None, None, float]:
        """Greedy steps on some rows, whose gradient e is kept up to date, until `enough`; the violation left."""
        u, n = self.u[rows].copy(), H.shape[0]
        box = kernels.Box(H, border, omega, self.soft[rows], self.low[rows], self.high[rows], u, e, np.empty((4, n)))
        steps = kernels.pairs if self.paired else kernels.doubles
        most, left = max(64, ENTRIES_PER_CALL // n), budget * n
        while left > 0:
            count = steps(box, min(most, left), enough)
            left -= count
            ends = box.violation <= enough or count == 0
            if n > BRIEF or not ends:
                yield
            if ends:
                break
        self.u[rows] = u
        return float(box.violation)

    def gradient(self, product: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Gradient of the dual at u, with H (u + pull)."""
        return np.asarray(self.target - product - self.soft * u)

    def shift(self, e: np.ndarray) -> float:
        """Free bias: that of the free rows, else the one at which the largest violation is least."""
        if not self.paired:
            return 0.0
        free = (self.u > self.low) & (self.u < self.high)
        if free.any():  # a row far on the wrong side, not yet in any working set, must not move it
            found = e[free]
            low, high = (found.shape[0] - 1) // 2, found.shape[0] // 2
            found.partition((low, high))
            return 0.5 * float(found[low] + found[high])
        up, down = self.ends(e)
        if not up.shape[0] and not down.shape[0]:  # all boxes are empty: weights below the smallest number
            return 0.0
        top = float(up.max()) if up.shape[0] else float(down.min())
        return 0.5 * (top + (float(down.min()) if down.shape[0] else top))

    def ends(self, e: np.ndarray, rows: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """Gradients e of those among some rows whose multipliers may rise, and of those that may fall.

        A multiplier of 0 may do both where the loss has two terms, with a gradient of its own for either.
        """
        u = self.u[rows]
        up, down = e[u < self.high[rows]], e[u > self.low[rows]]
        if self.beyond is None:
            return up, down
        at_zero, (_, low, high, _, target) = u == 0, self.beyond
        other = e + target[rows] - self.target[rows]
        return np.append(up, other[at_zero & (high[rows] > 0)]), np.append(down, other[at_zero & (low[rows] < 0)])

    def balance(self) -> None:
        """Make the sum of u 0 where it has to be, by less of what there is too much of."""
        excess = float(self.u.sum()) if self.paired else 0.0
        heavy = self.u * excess > 0
        if heavy.any():
            self.u[heavy] *= 1.0 - excess / float(self.u[heavy].sum())

    def free(self, u: np.ndarray) -> int:
        """Number of rows inside their boxes."""
        return int(np.count_nonzero((u > self.low) & (u < self.high)))

    def violation(self, e: np.ndarray) -> np.ndarray:
        """Violation of every row: the size of its gradient where that points inside the box, else 0."""
        return np.maximum(e * (self.u < self.high), -e * (self.u > self.low))

    def newton(self, H: np.ndarray, rows: np.ndarray, g: np.ndarray) -> Generator[None, None, None]:
        """Solve on the free rows of a working set, leaving behind those at a bound."""
        u, low, high = self.u[rows], self.low[rows], self.high[rows]
        free, to = (u > low) & (u < high), u.copy()
        gradient, first = g.copy(), np.zeros_like(u)
        for fix in range(FIXES):
            i = np.flatnonzero(free)
            if i.shape[0] == 0:
                return
            A = (yield from hessian_block(H, i, i)).astype(np.float64, copy=False)
            shift = DOUBLE_SHIFT if H.dtype == np.float64 else SINGLE_SHIFT
            A[np.diag_indices(i.shape[0])] += self.soft[rows][i] + shift * float(np.diagonal(A).max())
            yield
            try:
                L = yield from cholesky.cholesky(A)
            except cholesky.NotPositiveDefinite:
                return
            p = cholesky.cholesky_solve(L, gradient[i])
            if self.paired:
                v = cholesky.cholesky_solve(L, np.ones(i.shape[0]))
                p -= v * ((float(p.sum()) + float((to - u).sum())) / float(v.sum()))
            if fix == 0:
                first[i] = p
            new = to[i] + p
            outside = (new < low[i]) | (new > high[i])
            to[i] = np.clip(new, low[i], high[i])
            move = to - u
            gradient = g - _block_ascent_product(H, move) - self.soft[rows] * move
            yield
            if not outside.any():
                break
            free[i[outside]] = False
        move, size = to - u, float(np.abs(to).sum())
        gain = 0.5 * float(move @ (g + gradient))
        if not gain > 0 or (self.paired and abs(float(move.sum())) > 1e-12 * size):
            yield from self.shorter(H, rows, g, first)
            return
        self.u[rows], g[:] = to, gradient

    def shorter(
        self, H: np.ndarray, rows: np.ndarray, g: np.ndarray, direction: np.ndarray
    ) -> Generator[None, None, None]:
        """Go along a direction, clipped to the boxes, until the dual gains; to the first bound where a sum is kept."""
        u, low, high, soft = self.u[rows], self.low[rows], self.high[rows], self.soft[rows]
        length, tries = 1.0, STEP_HALVINGS
        if self.paired:
            room = np.where(direction > 0, high - u, np.where(direction < 0, low - u, 0.0))
            moving = direction != 0
            length, tries = float(min(1.0, (room[moving] / direction[moving]).min(initial=1.0))), 1
        for _ in range(tries):
            to = np.clip(u + length * direction, low, high)
            move = to - u
            gradient = g - _block_ascent_product(H, move) - soft * move
            yield
            if float(move @ (g + gradient)) > 0:
                self.u[rows], g[:] = to, gradient
                return
            length *= 0.5


def _block_ascent_box(column: Column, t: int) -> tuple[np.ndarray, ...]:
    """Return signs of the signed multipliers of a column's term, their box (low, high), softness and target."""
    signs = column.y * column.sides[t]
    far = signs * column.caps[t]
    soft = column.softness[t].copy()
    return signs, np.minimum(far, 0.0), np.maximum(far, 0.0), soft, column.y * column.kinks[t]


def _block_ascent_product(H: np.ndarray, move: np.ndarray) -> np.ndarray:
    """Product in block ascent of a working set's block with a vector, in the block's type: of another, it is copied."""
    return np.asarray(H @ move.astype(H.dtype, copy=False), dtype=np.float64)
