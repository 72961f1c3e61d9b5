"""Blocks of a penalised problem: its coefficient terms over all coefficients at once, with their multipliers.

Coefficients W of shape (p, k) are one vector w here, feature by feature; K has a row for each of its numbers that some
term reads. A multiplier s of v = K w stands for the tangent <s, v> - P*(s) of the terms P.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from mdlearn.forms.penalised.coefficient_terms import CoefficientTerm, NormTerm, coefficient_term_matrix

LIMIT_ROUNDINGS = 16.0
"""Roundings, of the type of the rows, by which a sum may miss its limit, relative to the sizes of its terms."""
ZERO_MULTIPLIER = 1.0 - 1e-7
"""Share of a norm's weight up to which a multiplier says that its group is 0."""
REPAIRS = 20
"""Rounds in which coefficients are moved within their limits."""
MOST_LIMITS = 1000
"""Limits up to which the shortest move to within all of them is looked for."""
EPSILON = float(np.finfo(np.float64).eps)
MET_LIMIT = 1e-7
"""Distance from a limit, relative to the sizes of the terms of a sum, at which it is met."""
BARE_SLOPE_ROUNDING = 1e-11
"""Slope of coefficients without ridge, relative to its terms without signs, that counts as rounding of 0."""

DENSE_SHARE = 0.1
"""Share of the entries of bent rows that are not 0 from which products of them are those of dense rows."""
INFEASIBLE_PROGRAM = 2
"""Status of SciPy's `linprog` for limits of a penalised problem that contradict each other."""


class NormBlocks:
    """Norm blocks of a penalised problem: weights times lengths of groups of v; `typical` is a usual multiplier."""

    def __init__(self, weights: np.ndarray, labels: np.ndarray) -> None:
        self.weights, self.labels = weights, labels
        self.typical = float(weights.mean()) if weights.shape[0] else 0.0

    def lengths(self, v: np.ndarray) -> np.ndarray:
        """Length of every group."""
        return np.sqrt(np.bincount(self.labels, np.square(v), self.weights.shape[0]))

    def value(self, v: np.ndarray) -> float:
        """Sum of the weighted lengths."""
        return float(self.weights @ self.lengths(v))

    def multipliers(self, a: np.ndarray, width: np.ndarray) -> np.ndarray:
        """Multipliers of the envelope of this width, where a = multipliers so far + v / width."""
        return self.feasible(a)

    def feasible(self, s: np.ndarray) -> np.ndarray:
        """Multipliers shortened to those that have a tangent."""
        size = self.lengths(s)
        return s * np.minimum(1.0, self.weights / np.maximum(size, 1e-300))[self.labels]

    def conjugate(self, s: np.ndarray) -> float:
        """P*(s): 0."""
        return 0.0

    def excess(self, s: np.ndarray) -> float:
        """Factor by which multipliers are longer than they may be; at most 1 where they are not."""
        size = self.lengths(s)
        return float(np.max(size / np.maximum(self.weights, 1e-300), initial=0.0, where=size > 0))

    def bends(self, a: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivative of the multipliers by a: diag(first) - M M', M has the column of its group in `second`."""
        size = self.lengths(a)
        ratio = np.where(size > self.weights, self.weights / np.maximum(size, 1e-300), 1.0)
        outside = np.where(size > self.weights, np.sqrt(ratio) / np.maximum(size, 1e-300), 0.0)
        return ratio[self.labels], a * outside[self.labels]

    def free(self, s: np.ndarray) -> np.ndarray:
        """Multipliers that may move either way: those of groups that are 0."""
        return (self.lengths(s) < ZERO_MULTIPLIER * self.weights)[self.labels]


class LimitBlocks:
    """Limit blocks of a penalised problem: lower <= v <= upper."""

    typical = 0.0

    def __init__(self, lower: np.ndarray, upper: np.ndarray) -> None:
        self.lower, self.upper, self.labels = lower, upper, np.arange(lower.shape[0])

    def value(self, v: np.ndarray) -> float:
        """0: whether limits are kept is asked elsewhere."""
        return 0.0

    def multipliers(self, a: np.ndarray, width: np.ndarray) -> np.ndarray:
        """Multipliers of the envelope of this width, where a = multipliers so far + v / width."""
        return a - np.clip(a, self.lower / width, self.upper / width)

    def feasible(self, s: np.ndarray) -> np.ndarray:
        """Multipliers without those of limits that are infinite."""
        return np.where((s > 0) & np.isinf(self.upper) | (s < 0) & np.isinf(self.lower), 0.0, s)

    def conjugate(self, s: np.ndarray) -> float:
        """P*(s)."""
        up, down = s > 0, s < 0
        return float(self.upper[up] @ s[up]) + float(self.lower[down] @ s[down])

    def excess(self, s: np.ndarray) -> float:
        """Infinite where some multiplier has no tangent, which none of its multiples has either; else 0."""
        return 0.0 if np.array_equal(self.feasible(s), s) else np.inf

    def free(self, s: np.ndarray) -> np.ndarray:
        """Multipliers that may move either way: those of limits that are met."""
        return (s != 0) | (self.lower == self.upper)

    def bends(self, a: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivative of the multipliers by a: a diagonal of ones where a limit holds."""
        outside = (a < self.lower / width) | (a > self.upper / width) | (self.lower == self.upper)
        return outside.astype(float), np.zeros(a.shape)


Block = NormBlocks | LimitBlocks


def penalised_block(term: CoefficientTerm, n: int, k: int) -> Block:
    """Return the block of a coefficient term over n rows of K and k columns."""
    if isinstance(term, NormTerm):
        labels = term.labels(n)
        count = int(labels.max(initial=-1)) + 1
        return NormBlocks(term.weights(count), np.repeat(labels, k))
    lower, upper = term.sides(n)
    return LimitBlocks(np.repeat(lower, k), np.repeat(upper, k))


class CoefficientBlocks:
    """Coefficient terms of a penalised problem, stacked: P(w) = sum of the blocks of K w.

    `K` (shape (r, n)): n = p k; `blocks`: rows of K, what they are in, and whether K w are the coefficients as they
    are.
    """

    def __init__(self, terms: Sequence[CoefficientTerm], penalty: np.ndarray, shape: tuple[int, int], d: int) -> None:
        from scipy.sparse import csr_matrix, hstack, identity, kron, vstack

        (p, k), pieces, start = shape, [], 0
        self.blocks: list[tuple[slice, Any, bool]] = []
        given = [(term, d) for term in terms]
        if penalty.any():
            given.insert(0, (NormTerm(penalty), penalty.shape[0]))
        for term, width in given:
            matrix = coefficient_term_matrix(term, width)
            n = matrix.shape[0]
            block = penalised_block(term, n, k)
            matrix = hstack([matrix, csr_matrix((n, p - width))], format="csr") if width < p else matrix
            pieces.append(kron(matrix, identity(k), format="csr"))
            self.blocks.append((slice(start, start + n * k), block, term.matrix is None))
            start += n * k
        self.K = vstack(pieces, format="csr") if pieces else csr_matrix((0, p * k))
        self.sizes = abs(self.K)

    def extended(self, K: np.ndarray, block: Any) -> CoefficientBlocks:
        """Return these terms and one more, a block of rows K of all coefficients."""
        from scipy.sparse import csr_matrix, vstack

        whole, start = copy(self), self.K.shape[0]
        whole.K = vstack([self.K, csr_matrix(K)], format="csr")
        whole.blocks, whole.sizes = [*self.blocks, (slice(start, start + K.shape[0]), block, False)], abs(whole.K)
        return whole

    def dot(self, w: np.ndarray) -> np.ndarray:
        """K w."""
        return np.asarray(self.K @ w)

    def adjoint(self, s: np.ndarray) -> np.ndarray:
        """K's."""
        return np.asarray(self.K.T @ s)

    def units(self, length: float, slope: float) -> np.ndarray:
        """Widths at which envelopes of all K w span what coefficients of a length do, beside losses of a slope."""
        found = np.empty(self.K.shape[0])
        for span, block, _ in self.blocks:
            rows = np.sqrt(self.K[span].multiply(self.K[span]).sum() / max(span.stop - span.start, 1))
            found[span] = length * (rows or 1.0) / (block.typical or slope)
        return found

    def multipliers(self, a: np.ndarray, width: np.ndarray) -> np.ndarray:
        """Multipliers of the envelopes of these widths, where a = multipliers so far + K w / width."""
        return self._stacked(lambda block, span: block.multipliers(a[span], width[span]))

    def feasible(self, s: np.ndarray) -> np.ndarray:
        """Multipliers changed to such that have a tangent."""
        return self._stacked(lambda block, span: block.feasible(s[span]))

    def free(self, s: np.ndarray) -> np.ndarray:
        """Multipliers that may move either way."""
        return self._stacked(lambda block, span: block.free(s[span])).astype(bool, copy=False)

    def _stacked(self, part: Callable[[Block, slice], np.ndarray]) -> np.ndarray:
        return np.concatenate([np.empty(0), *(part(block, span) for span, block, _ in self.blocks)])

    def second(self, a: np.ndarray, width: np.ndarray) -> np.ndarray:
        """Second derivative of the envelopes by w, (n, n)."""
        from scipy.sparse import csr_matrix

        diagonal, along, labels = np.empty(a.shape), np.empty(a.shape), np.empty(a.shape, dtype=np.int64)
        for span, block, _ in self.blocks:
            diagonal[span], along[span] = block.bends(a[span], width[span])
            labels[span] = block.labels + span.start
        bent, own = np.flatnonzero(diagonal), np.flatnonzero(along)
        B = self.K[bent].multiply(np.sqrt(diagonal / width)[bent, None]).tocsr()
        M = self.K[own].T @ csr_matrix(
            ((along / np.sqrt(width))[own], (np.arange(own.shape[0]), labels[own])), shape=(own.shape[0], a.shape[0])
        )
        if B.nnz > DENSE_SHARE * B.shape[0] * B.shape[1]:
            B = B.toarray()
            return np.asarray(B.T @ B - (M @ M.T).toarray())
        return np.asarray((B.T @ B - M @ M.T).toarray())

    def bend(self, a: np.ndarray, width: np.ndarray, direction: np.ndarray) -> float:
        """Second derivative of the envelopes along a direction of a = multipliers so far + K w / width."""
        total = 0.0
        for span, block, _ in self.blocks:
            diagonal, along = block.bends(a[span], width[span])
            root = np.sqrt(width[span]) * direction[span]
            total += float(diagonal @ np.square(root)) - float(np.square(np.bincount(block.labels, along * root)).sum())
        return total

    def spans(self, inverses: np.ndarray) -> np.ndarray:
        """Widths of envelopes that bend as much as a quadratic of a diagonal does, whose inverses are given."""
        found = np.asarray(self.K.multiply(self.K) @ inverses).ravel()
        for span, block, _ in self.blocks:
            each = np.zeros(int(block.labels.max(initial=-1)) + 1)
            np.maximum.at(each, block.labels, found[span])
            found[span] = each[block.labels]
        return np.where(found > 0, found, 1.0)

    def value(self, v: np.ndarray) -> float:
        """Sum of the norms at v = K w."""
        return sum(block.value(v[span]) for span, block, _ in self.blocks)

    def conjugate(self, s: np.ndarray) -> float:
        """P*(s) of feasible multipliers."""
        return sum(block.conjugate(s[span]) for span, block, _ in self.blocks)

    def excess(self, s: np.ndarray) -> float:
        """Factor by which multipliers are too long."""
        return max((block.excess(s[span]) for span, block, _ in self.blocks), default=0.0)

    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits of every number of K w, infinite ones for norms."""
        lower = np.full(self.K.shape[0], -np.inf)
        upper = -lower
        for span, block, _ in self.blocks:
            if isinstance(block, LimitBlocks):
                lower[span], upper[span] = block.lower, block.upper
        return lower, upper

    def check_consistent(self) -> None:
        """Raise ValueError where the limits contradict each other, by a linear program."""
        from scipy.optimize import linprog
        from scipy.sparse import vstack

        lower, upper = self.limits()
        low, high = np.isfinite(lower), np.isfinite(upper)
        A, b = vstack([self.K[high], -self.K[low]]), np.append(upper[high], -lower[low])
        if linprog(np.zeros(self.K.shape[1]), A_ub=A, b_ub=b, bounds=(None, None)).status == INFEASIBLE_PROGRAM:
            raise ValueError("the constraints on the coefficients contradict each other; widen their limits")

    def meets_limits(self, w: np.ndarray, unit: float) -> bool:
        """Whether w meets the limits but for rounding of K w, in roundings of a type whose unit is given."""
        v, (lower, upper) = self.dot(w), self.limits()
        nearest = np.clip(v, lower, upper)
        allowed = LIMIT_ROUNDINGS * unit * (self.sizes @ np.abs(w) + np.abs(nearest))
        return bool((np.abs(v - nearest) <= allowed).all())

    def settled(self, w: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Coefficients that multipliers say to be 0, or at a limit, are set there; and all within the limits."""
        w = w.copy()
        for span, block, own in self.blocks:
            if own:
                part, mine = w[: span.stop - span.start], s[span]
                if isinstance(block, NormBlocks):
                    part[block.free(mine)] = 0.0
                else:
                    part[mine > 0], part[mine < 0] = block.upper[mine > 0], block.lower[mine < 0]
        return self.repaired(w)

    def repaired(self, w: np.ndarray) -> np.ndarray:
        """Coefficients within the limits: bounds by clipping, others by least squares over the limits that are met."""
        lower, upper = self.limits()
        for _ in range(REPAIRS):
            w = self._clipped(w)
            v = self.dot(w)
            if np.array_equal(v, np.clip(v, lower, upper)):
                return w
            near = MET_LIMIT * (self.sizes @ np.abs(w))
            met = np.flatnonzero((v < lower + near) | (v > upper - near))
            goal = np.where(v - lower < upper - v, lower, upper)[met]
            w = w - np.linalg.lstsq(self.K[met].toarray(), v[met] - goal, rcond=None)[0]
        w = self._clipped(w)
        for _ in range(2):
            if not self.meets_limits(w, EPSILON):
                w = self._clipped(w + self._least_move(w))
        return w

    def _clipped(self, w: np.ndarray) -> np.ndarray:
        """Coefficients within the bounds of each of them: beyond one of 0, no rounding is small."""
        w = w.copy()
        for span, block, own in self.blocks:
            if own and isinstance(block, LimitBlocks):
                part = w[: span.stop - span.start]
                np.clip(part, block.lower, block.upper, out=part)
        return w

    def _least_move(self, w: np.ndarray) -> np.ndarray:
        """Return the shortest move to within the limits (Lawson & Hanson, 1974, ch. 23), where that is no long work."""
        from scipy.optimize import nnls

        v, (lower, upper) = self.dot(w), self.limits()
        low, high = np.isfinite(lower), np.isfinite(upper)
        ahead = np.append(lower[low] - v[low], v[high] - upper[high])
        unit = float(ahead.max(initial=0.0))
        if ahead.shape[0] > MOST_LIMITS or not 0 < unit < np.inf:
            return np.zeros(w.shape)
        G = np.vstack([self.K[low].toarray(), -self.K[high].toarray(), np.zeros((0, w.shape[0]))])
        goal = np.append(np.zeros(w.shape[0]), 1.0)
        try:
            with np.errstate(over="ignore", divide="ignore"):
                E = np.vstack([G.T, ahead / unit])
            if not np.isfinite(E).all():  # a unit of rounding
                return np.zeros(w.shape)
            rest = E @ nnls(E, goal)[0] - goal
        except RuntimeError:  # too many steps
            return np.zeros(w.shape)
        return -unit * rest[:-1] / rest[-1] if rest[-1] < 0 else np.zeros(w.shape)
