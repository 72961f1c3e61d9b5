"""Leave-one-out of piecewise quadratic losses by principal pivots: the optimum without a row from that of all rows.

With u_j = y_j f(x_j) and mu_j the multiplier of row j, the optimum of a column is ``u = Q mu``, where every pair
(u_j, mu_j) lies on the falling graph of the row's loss: pieces ``mu = c (p - d u)`` between kinks, and at the kink q of
a hinge a vertical piece ``u = q``. For given pieces the optimum is linear in their numbers: the response matrix L says
how. Without one repetition of row i, the graph of that row and of the few rows that leave their pieces differ; so a
refit is a small system over these rows, S, and one product with the rows L_S:

    y = y0 + L_S' x,    (E + F L_SS) x = r

where y_j is u_j, and mu_j on a vertical piece. The pieces are found by block pivots, or on a path: a force that keeps
the optimum of all rows is taken away step by step (`mdlearn._solvers.loo_paths`). A row without a multiplier, and
without a variance, leaves the optimum as it is. Vertical pieces are ramps, ``u + e mu / c = q`` with a small e, which
makes multipliers unique where more rows are at kinks than there are coefficients; it moves u of
the rows there by 1e-8 at most.

The variance of the margins is one more entry: ``kappa/2 sum c (u - mean)^2`` bends every piece by kappa c, and the sum
``s = sum c_j u_j`` is a row of its own with curvature ``-kappa / m``.
"""

from __future__ import annotations

from collections.abc import Generator
from copy import copy
from dataclasses import dataclass

import numpy as np

from mdlearn._solvers import loo_paths
from mdlearn.forms.column import Column
from mdlearn.forms.proof import Solution

LOO_PIECE_ROUNDING = 1e-8
"""Share of the largest value by which a row may be off its piece."""
LOO_KINK_SOFTNESS = 1e-8
"""Width of the ramp that stands for a kink of a loss of weight 1, which makes multipliers unique."""
LOO_MOST_CHANGED_ROWS = 96
"""Rows whose pieces may change on one path: the small system is of their number."""
LOO_MOST_PIVOTS, LOO_BLOCK_PIVOTS = 200, 10
"""Pivots for the optimum of all rows, and block pivots that may fail to lower the number of rows that are off."""
LOO_SAMPLE = 5
"""Rows whose response is computed once more, by a solution of its own."""
LOO_RESPONSE_ROUNDING, LOO_MULTIPLIER_ROUNDING = 1e-8, 1e-5
"""Shares of the largest response in u, and in multipliers, by which the two may differ.

Where more rows are at kinks than there are coefficients, multipliers have fewer digits, and u has them all.
"""
LOO_NEAR_ROWS = 256
"""Rows nearest to the ends of their pieces, among which paths are followed first."""
LOO_PATHS_AT_ONCE = 64
"""Paths between two looks at the time."""

LossNumbers = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class LossPieces:
    """Pieces of the loss of every row: T kinks q (T, m), lines mu = p - d u between them (T + 1, m), per count.

    Piece 2r is line r, and 2k + 1 the vertical one at kink k. `jumps` says which kinks have one.
    """

    counts: np.ndarray
    kinks: np.ndarray
    jumps: np.ndarray
    heights: np.ndarray  # p
    bends: np.ndarray  # d
    kappa: float
    softness: float

    @property
    def numbers(self) -> LossNumbers:
        """Numbers that compiled loops read: with kinks, the ends of the lines below them and starts of those above."""
        T, heights, bends = self.kinks.shape[0], self.heights, self.bends
        soft = np.where(self.jumps, self.softness, 0.0)[:, None]
        ends = (self.kinks - soft * heights[:T]) / (1.0 - soft * bends[:T])
        starts = (self.kinks - soft * heights[1:]) / (1.0 - soft * bends[1:])
        return self.counts, self.kinks, ends, starts, self.jumps.view(np.uint8), heights, bends

    @classmethod
    def of(cls, column: Column) -> LossPieces:
        """Pieces of a column whose terms are hinges and squared hinges, the same in all rows."""
        m = column.y.shape[0]
        terms = sorted((t for t in column.terms if t.weight > 0), key=lambda t: t.threshold)
        kinks = np.array([t.threshold for t in terms])[:, None] + (0.0 if column.offset is None else column.offset)
        heights = np.full((len(terms) + 1, m), column.mean / column.total)
        bends = np.full((len(terms) + 1, m), column.kappa)
        for k, t in enumerate(terms):
            active = slice(0, k + 1) if t.side > 0 else slice(k + 1, None)
            if t.squared:
                heights[active] += 2.0 * t.weight * kinks[k]
                bends[active] += 2.0 * t.weight
            else:
                heights[active] += t.side * t.weight
        jumps = np.array([not t.squared for t in terms], dtype=bool)
        kinks = np.array(np.broadcast_to(kinks, (len(terms), m)))
        softness = LOO_KINK_SOFTNESS / (1.0 + sum(t.weight for t in terms) + column.kappa)
        return cls(column.counts, kinks, jumps, heights, bends, column.kappa, softness)

    def at(self, column: Column, solution: Solution, u: np.ndarray) -> np.ndarray:
        """Pieces of all rows at a solution near the optimum, shape (m,)."""
        order = sorted((t.threshold, k) for k, t in enumerate(column.terms) if t.weight > 0)
        beta, found = np.atleast_2d(solution.beta), np.zeros(u.shape[0], dtype=np.intp)
        for place, (_, k) in enumerate(order):
            if not self.jumps[place]:
                found += 2 * (u > self.kinks[place])
                continue
            cap, near = column.caps[k], 1e-7 * column.caps[k]
            low, high = beta[k] <= near, beta[k] >= cap - near
            below = high if column.terms[k].side > 0 else low
            found += np.where(low | high, np.where(below, 0, 2), 1)
        return found

    def taken(self, order: np.ndarray) -> LossPieces:
        """Pieces of the rows in another order."""
        c = self.counts[order]
        q, p, d = (one.take(order, axis=1) for one in (self.kinks, self.heights, self.bends))
        return LossPieces(c, q, self.jumps, p, d, self.kappa, self.softness)

    def limits(self, piece: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest value of u on lines, of mu on vertical pieces, shape (m,)."""
        counts, kinks, ends, starts, _, heights, bends = self.numbers
        T, at, rows = kinks.shape[0], piece >> 1, np.arange(piece.shape[0])
        low, high = np.full(rows.shape[0], -np.inf), np.full(rows.shape[0], np.inf)
        up = (piece & 1) == 1
        some = ~up & (at > 0)
        low[some] = starts[at[some] - 1, rows[some]]
        some = ~up & (at < T)
        high[some] = ends[at[some], rows[some]]
        first, after, c = (at[up], rows[up]), (at[up] + 1, rows[up]), counts[up]
        high[up] = c * (heights[first] - bends[first] * ends[first])
        low[up] = c * (heights[after] - bends[after] * starts[first])
        return low, high

    def moved(self, piece: int, above: bool) -> int:
        """Piece next to one whose row is above its limit, or below it."""
        if piece & 1:
            return piece - 1 if above else piece + 1
        kink = (piece >> 1) - (0 if above else 1)
        if self.jumps[kink]:
            return 2 * kink + 1
        return piece + 2 if above else piece - 2


class PivotBase:
    """Pieces of all rows, and the numbers of their laws: mu + d u = given on lines, u + e mu = given elsewhere.

    With a variance there is one row more, the sum of the margins.
    """

    def __init__(self, pieces: LossPieces, piece: np.ndarray) -> None:
        self.pieces, self.piece, m = pieces, piece, piece.shape[0]
        n = m + (pieces.kappa > 0)
        self.vertical = np.zeros(n, dtype=bool)
        self.vertical[:m] = (piece & 1) == 1
        self.given, self.bend = np.zeros(n), np.zeros(n)
        up, at, rows = self.vertical[:m], piece >> 1, np.arange(m)
        line = at, rows
        self.given[:m] = np.where(up, pieces.kinks[np.minimum(at, pieces.kinks.shape[0] - 1), rows], 0.0)
        self.given[:m] += np.where(up, 0.0, pieces.counts * pieces.heights[line])
        self.bend[:m] = np.where(up, pieces.softness / pieces.counts, pieces.counts * pieces.bends[line])
        if n > m:
            self.bend[m] = -pieces.kappa / float(pieces.counts.sum())

    def with_sum(self, A: np.ndarray) -> np.ndarray:
        """Rows, with a variance that of the sum of the margins beside them."""
        return A if self.pieces.kappa == 0 else np.vstack([A, self.pieces.counts @ A])


class LinearPivots:
    """Optima for given pieces over rows A = y x of shape (m, n), the constant last; `free` leaves that out of |w|."""

    def __init__(self, A: np.ndarray, free: bool) -> None:
        self.A, self.free = A, free

    def taken(self, order: np.ndarray) -> LinearPivots:
        """Rows in another order."""
        return LinearPivots(self.A[order], self.free)

    def _system(self, base: PivotBase) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Matrix for coefficients and multipliers of vertical rows; all rows, those on lines, the vertical ones."""
        Z, n = base.with_sum(self.A), self.A.shape[1]
        V, lines = np.flatnonzero(base.vertical), np.flatnonzero(~base.vertical)
        K = np.zeros((n + V.shape[0],) * 2)
        K[:n, :n] = np.eye(n)
        K[n - 1, n - 1] = 0.0 if self.free else 1.0
        bent = lines[base.bend[lines] != 0.0]
        K[:n, :n] += Z[bent].T @ (base.bend[bent, None] * Z[bent])
        K[:n, n:], K[n:, :n] = Z[V].T, Z[V]
        K[n:, n:] = -np.diag(base.bend[V])
        return K, Z, lines, V

    def answers(self, base: PivotBase, given: np.ndarray) -> np.ndarray:
        """Values u of rows on lines, mu of vertical ones, for several inputs (k, rows)."""
        K, Z, lines, V = self._system(base)
        n = Z.shape[1]
        found = np.linalg.solve(K, np.hstack([given[:, lines] @ Z[lines], given[:, V]]).T).T
        y = found[:, :n] @ Z.T
        y[:, V] = -found[:, n:]
        return np.asarray(y)

    def response(self, base: PivotBase) -> np.ndarray:
        """Answers to an input of 1 at one row, that of the first axis."""
        K, Z, _, V = self._system(base)
        n = Z.shape[1]
        inverse = np.linalg.inv(K)
        own = Z.copy()
        own[V] = 0.0
        L = (own @ inverse[:n, :n]) @ own.T
        if V.shape[0]:
            across = own @ inverse[:n, n:]
            L[:, V] = -across
            L[V] = across.T
            L[np.ix_(V, V)] = -inverse[n:, n:]
        return L


class GramPivots:
    """Optima for given pieces over a Gram matrix."""

    def taken(self, order: np.ndarray) -> GramPivots:
        """Rows in another order."""
        other = copy(self)
        other.Q, other.border = self.Q[np.ix_(order, order)], self.border[order]
        return other

    def __init__(self, G: np.ndarray, y: np.ndarray, bias: str) -> None:
        self.Q = (G + 1.0 if bias == "regularized" else G) * np.multiply.outer(y, y)
        self.free = bias == "free"
        self.border = y[:, None] if bias == "free" else np.empty((y.shape[0], 0))

    def _system(self, base: PivotBase) -> tuple[np.ndarray, ...]:
        """Matrix for multipliers of rows that move, and the intercept; the other rows."""
        Q = base.with_sum(self.Q)
        Q = base.with_sum(np.ascontiguousarray(Q.T)) if base.pieces.kappa > 0 else Q
        moving = np.flatnonzero(base.vertical | (base.bend != 0.0))
        up, size = base.vertical[moving], moving.shape[0]
        unit = np.where(up, 1.0, 1.0 / base.bend[moving])
        R = np.hstack([Q[:, moving], base.with_sum(self.border)])
        K = np.zeros((R.shape[1],) * 2)
        K[:size] = R[moving]
        K[size:, :size] = R[moving, size:].T
        K[:size, :size][np.diag_indices(size)] += np.where(up, base.bend[moving], unit)
        return K, Q, R, moving, unit

    def answers(self, base: PivotBase, given: np.ndarray) -> np.ndarray:
        """Values u of rows on lines, mu of vertical ones, for several inputs (k, rows)."""
        K, Q, R, moving, unit = self._system(base)
        size, fixed = moving.shape[0], given.copy()
        fixed[:, moving] = 0.0
        some = np.flatnonzero(fixed.any(axis=0))
        right = -(fixed[:, some] @ R[some])
        right[:, :size] += unit * given[:, moving]
        found = np.linalg.solve(K, right.T).T
        y = found @ R.T + fixed[:, some] @ Q[some]
        up = base.vertical[moving]
        y[:, moving[up]] = found[:, :size][:, up]
        return np.asarray(y)

    def response(self, base: PivotBase) -> np.ndarray:
        """Answers to an input of 1 at one row, that of the first axis."""
        K, Q, R, moving, unit = self._system(base)
        size, m = moving.shape[0], Q.shape[0]
        still = np.setdiff1d(np.arange(m), moving)
        soft = np.where(base.vertical[moving], base.bend[moving], unit)
        inverse = np.linalg.inv(K)
        across = R[still] @ inverse
        L = np.empty((m, m))
        # R is K less its diagonal `soft` where rows move, so that products with it are none.
        L[np.ix_(moving, moving)] = unit[:, None] * (np.eye(size) - inverse[:size, :size] * soft)
        L[np.ix_(moving, still)] = unit[:, None] * across[:, :size].T
        L[np.ix_(still, moving)] = across[:, :size] * soft
        L[np.ix_(still, still)] = Q[np.ix_(still, still)] - across @ R[still].T
        up = base.vertical[moving]
        L[np.ix_(moving, moving[up])] = unit[:, None] * inverse[:size, :size][:, up]
        L[np.ix_(still, moving[up])] = -across[:, :size][:, up]
        return L


Pivots = LinearPivots | GramPivots


def settled_pieces(pieces: LossPieces, piece: np.ndarray, pivots: Pivots) -> PivotBase | None:
    """Pieces of the optimum from some near it; None where pivots do not find it: blocks first, then single ones."""
    least, left, piece = piece.shape[0] + 1, LOO_BLOCK_PIVOTS, piece.copy()
    m = piece.shape[0]
    for _ in range(LOO_MOST_PIVOTS):
        base = PivotBase(pieces, piece)
        try:
            y = pivots.answers(base, base.given[None])[0, :m]
        except np.linalg.LinAlgError:
            return None
        low, high = pieces.limits(piece)
        room = LOO_PIECE_ROUNDING * max(float(np.abs(y).max()), 1e-3)
        off = np.flatnonzero((y < low - room) | (y > high + room))
        if not off.shape[0]:
            return base
        if off.shape[0] < least:
            least, left = off.shape[0], LOO_BLOCK_PIVOTS
        left -= 1
        for j in off if left > 0 else off[-1:]:
            piece[j] = pieces.moved(int(piece[j]), bool(y[j] > high[j]))
    return None


def values_left_out(base: PivotBase, pivots: Pivots) -> Generator[None, None, np.ndarray]:
    """Values u of all rows, each without one repetition of it; NaN where a path does not end. Interruptible."""
    order = _order_by_room(base, pivots)
    base, pivots = PivotBase(base.pieces.taken(order), base.piece[order]), pivots.taken(order)
    ordered = yield from _ordered_values_left_out(base, pivots)
    values = np.empty(order.shape[0])
    values[order] = ordered
    return values


def _order_by_room(base: PivotBase, pivots: Pivots) -> np.ndarray:
    """Rows in the order of their distance to the ends of their pieces: at first those on vertical ones."""
    m = base.piece.shape[0]
    y, (low, high) = pivots.answers(base, base.given[None])[0, :m], base.pieces.limits(base.piece)
    room = np.minimum(y - low, high - y)
    return np.argsort(np.where(base.vertical[:m], -1.0, room), kind="stable")


def _ordered_values_left_out(base: PivotBase, pivots: Pivots) -> Generator[None, None, np.ndarray]:
    """Values u of all rows, each without one repetition of it, as above, of rows in the order of their room."""
    pieces, m = base.pieces, base.piece.shape[0]
    sample = np.linspace(0, m - 1, LOO_SAMPLE).astype(np.intp)
    y, *columns = pivots.answers(base, np.vstack([base.given, np.eye(base.given.shape[0])[sample]]))
    u = np.where(base.vertical[:m], base.given[:m] - base.bend[:m] * y[:m], y[:m])
    inside = pivots.free and pieces.kappa == 0 and bool(pieces.jumps.all())
    low, high = pieces.limits(base.piece)
    if inside and not _some_inside(y[:m], base.vertical[:m], low, high):
        return np.full(m, np.nan)
    free = ~base.vertical[:m] & (base.given[:m] == 0.0) & (base.bend[:m] == 0.0)
    rows = np.flatnonzero(~free) if pieces.kappa == 0 else np.arange(m)
    if not rows.shape[0]:
        return u
    yield
    L = pivots.response(base)
    if not _same_answers(L[sample], np.array(columns), base.vertical):
        u[rows] = np.nan  # the response has lost its digits
        return u
    room = LOO_PIECE_ROUNDING * max(float(np.abs(y[:m]).max()), 1e-3)
    numbers = pieces.numbers
    n, most = L.shape[0], LOO_MOST_CHANGED_ROWS
    room_for_paths = (
        np.empty((2, most), dtype=np.intp),
        np.empty(m, dtype=np.intp),
        np.empty((2, most)),
        np.empty((3, n)),
        np.empty((most, most)),
    )
    scalars = pieces.kappa, pieces.softness, float(pieces.counts.sum())
    optimum = L, base.piece, base.given, base.bend, y, low, high
    for first in range(0, rows.shape[0], LOO_PATHS_AT_ONCE):
        yield
        some = rows[first : first + LOO_PATHS_AT_ONCE]
        found = np.empty(some.shape[0])
        loo_paths.follow_loo_paths(
            *numbers, *scalars, *optimum, some, LOO_NEAR_ROWS, room, inside, *room_for_paths, found
        )
        u[some] = found
    return u


def _some_inside(mu: np.ndarray, vertical: np.ndarray, low: np.ndarray, high: np.ndarray) -> bool:
    """Whether some multiplier is between the ends of a kink: else an intercept outside of |w| may not be unique."""
    own, low, high = mu[vertical], low[vertical], high[vertical]
    near = 1e-6 * (high - low)
    return bool(((own > low + near) & (own < high - near)).any())


def _same_answers(some: np.ndarray, other: np.ndarray, vertical: np.ndarray) -> bool:
    """Whether answers to several inputs are the same but for rounding: u on lines, multipliers elsewhere."""
    for which, share in ((~vertical, LOO_RESPONSE_ROUNDING), (vertical, LOO_MULTIPLIER_ROUNDING)):
        size = np.abs(other[:, which]).max(initial=0.0)
        if not np.abs(some[:, which] - other[:, which]).max(initial=0.0) <= share * max(size, 1.0):
            return False
    return True
