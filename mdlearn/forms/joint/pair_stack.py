"""Stack of pairs of classes: many small problems over one kernel matrix, solved and certified in one unit of work.

Each pair is a column of a MarginForm of its own, with one hinge per row. Here rows of all classes lie class by class in
one matrix K, and pairs are blocks of it. The certificate of a pair is that of `mdlearn.forms.certificates`: objective
and lower bound of feasible multipliers, from K alone, outside every engine, less what rounding can have added to them.
A pair that this cannot settle has no answer here: it is solved on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mdlearn._solvers import class_pairs
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.forms.base import array_fault
from mdlearn.forms.losses import HingeTerm, Terms
from mdlearn.forms.proof import Solution, judge
from mdlearn.numerics.lazy_property import kept

DOUBTFUL_SHARE = 1e-10
"""Share of objective or bound that rounding may cost at most: other pairs are certified on their own."""


@dataclass(eq=False, slots=True)
class PairPoint:
    """Point of some pairs of a stack, one after the other: signed multipliers u = side y beta of their rows.

    `first`, `stop`: the pairs; `u` (shape (rows,)): of the first one's rows, those of the next one, and so on.
    """

    first: int
    stop: int
    u: np.ndarray


class StackedSolution(NamedTuple):
    """Solution of pair `j` of a stack, certified, and the value at w = 0 that its gap may be relative to."""

    j: int
    solution: Solution
    at_zero: float


def can_stack_pair(terms: Terms) -> bool:
    """Whether the problem of a pair can be part of a stack: a ridge and one hinge of finite weight, nothing else."""
    if terms.variance or terms.mean or terms.penalty or terms.coefficient_terms or terms.ridge != 1:
        return False
    (term,) = terms.loss if len(terms.loss) == 1 else (None,)
    return type(term) is HingeTerm and term.kind == "hinge" and term.weight > 0 and term.side * term.threshold > 0


class PairStack:
    """All pairs of classes of a fit as one form.

    Attributes
    ----------
    features : KernelFeatures
        Of all rows, class by class.
    bias : str
        As for a MarginForm.
    starts : ndarray of shape (p + 1,)
        Where the rows of a pair begin among those of all pairs.
    low, high : ndarray of shape (rows of all pairs,)
        Bounds of the signed multipliers.
    scale : float
        Least size of a threshold.
    part : PairStack
        What an engine gets as its column: the stack itself.
    """

    def __init__(
        self, features: KernelFeatures, sizes: np.ndarray, counts: np.ndarray, terms: Sequence[Terms], bias: str
    ) -> None:
        """`sizes` (shape (k,)): rows of the classes; `counts` (shape (m,)): of their rows; `terms`: of the pairs."""
        self.features, self.bias, self.part = features, bias, self
        ends = sizes.cumsum()
        low, high = np.triu_indices(sizes.shape[0], 1)
        self.spans = np.ascontiguousarray(
            np.stack([ends[low] - sizes[low], ends[low], ends[high] - sizes[high], ends[high]], axis=1), dtype=np.int64
        )
        lengths = np.stack([sizes[low], sizes[high]], axis=1).ravel()
        rows = np.arange(lengths.sum()) + np.repeat(self.spans[:, ::2].ravel() - lengths.cumsum() + lengths, lengths)
        each = lengths[::2] + lengths[1::2]
        self.starts = np.concatenate([[0], each.cumsum()]).astype(np.int64)
        losses = [one.loss[0].numbers[:3] for one in terms]
        numbers = np.array(losses) if len(set(losses)) > 1 else np.array(losses[:1])
        side, threshold, weight = np.repeat(numbers.T, each if len(numbers) > 1 else rows.shape[0], axis=1)
        y = np.repeat(np.where(np.arange(lengths.shape[0]) % 2, 1.0, -1.0), lengths)  # the second class is positive
        self.target, far = y * threshold, y * side * (weight * counts[rows])
        self.low, self.high = np.minimum(far, 0.0), np.maximum(far, 0.0)
        self.scale = float(np.abs(numbers[:, 1]).min())
        self.units = np.array([one.unit for one in terms])

    def __len__(self) -> int:
        return self.spans.shape[0]

    @property
    def longest(self) -> int:
        """Number of rows of the largest pair."""
        return int(np.diff(self.starts).max())

    @kept
    def pairs(self) -> class_pairs.Pairs:
        """Arrays and room of compiled loops; the kernel matrix has to be there."""
        arrays, n = (self.spans, self.starts, self.target, self.low, self.high), self.longest
        kind = float(self.bias == "regularized"), self.bias == "free"
        return class_pairs.Pairs(self.features.matrix(), *arrays, *kind, np.empty((n, n)), np.empty((9, n)))

    def fault(self, point: Any) -> str | None:
        """Return why a point cannot be certified, as `Problem.fault` does."""
        if not isinstance(point, PairPoint) or not 0 <= point.first < point.stop <= len(self):
            return f"it yielded {type(point).__name__} as a point, a PairPoint of some pairs is needed"
        return array_fault("u", point.u, (int(self.starts[point.stop] - self.starts[point.first]),))

    def certified(self, point: PairPoint, tol: float) -> list[StackedSolution]:
        """Certify a point, pair by pair; pairs whose gap is not below `tol`, or that rounding may spoil, are left out.

        So are those whose objective is above that of w = 0, or whose bound is below that of multipliers 0.
        """
        first, stop = point.first, point.stop
        span = slice(self.starts[first], self.starts[stop])
        begins, low, high = self.starts[first:stop] - self.starts[first], self.low[span], self.high[span]
        u = self._feasible(np.minimum(np.maximum(point.u, low), high), begins)
        found = np.empty((stop - first, 4))
        class_pairs.values(self.pairs, u, first, found)
        objective, lower, intercept, squares = found.T
        # What rounding of kernel values and sums can have made of them, as `KernelFeatures.most_blur` bounds it.
        size, caps = np.add.reduceat(np.abs(u), begins), np.add.reduceat(high - low, begins)
        off = self._blur * size
        risen, doubt = off * (caps + 0.5 * size), 0.5 * off * size
        sure = np.maximum(risen, doubt) <= DOUBTFUL_SHARE * np.minimum(objective, lower)
        sides = np.abs(self.target[span]) * (high - low)
        at_zero = np.add.reduceat(sides, begins)
        nothing = at_zero
        if self.bias == "free":  # the best intercept alone is the threshold of the heavier sign
            heavy = np.add.reduceat(np.where(high > 0, sides, 0.0), begins)
            nothing = 2.0 * np.minimum(heavy, at_zero - heavy)
        objective, lower = objective + risen, lower - doubt
        sure &= (objective <= nothing) & (lower > 0)
        units = self.units[first:stop]
        values = zip((units * objective).tolist(), (units * lower).tolist(), (units * at_zero).tolist())
        each = zip(values, intercept.tolist(), np.sqrt(squares).tolist(), begins.tolist(), sure.tolist())
        beta, ends = np.abs(u), (self.starts[first + 1 : stop + 1] - self.starts[first]).tolist()
        solved = []
        for j, ((value, bound, zero), b, norm, begin, certain) in enumerate(each):
            certificate = judge(value, bound, zero, False, tol)
            if certain and certificate.converged:
                own = slice(begin, ends[j])
                solution = Solution(None, b, u[own], beta[None, own], norm, certificate)
                solved.append(StackedSolution(first + j, solution, zero))
        return solved

    @kept
    def _blur(self) -> float:
        """Largest error of a decision value by rounding, for coefficients whose sizes add up to 1."""
        return self.features.most_blur(np.ones(1))

    def _feasible(self, u: np.ndarray, begins: np.ndarray) -> np.ndarray:
        """Multipliers within their bounds that sum to 0 where a free bias asks for it: some shrink in proportion."""
        if self.bias != "free":
            return u
        excess = np.add.reduceat(u, begins)
        each = np.diff(np.append(begins, u.shape[0]))
        heavy = u * np.repeat(excess, each) > 0
        room = np.add.reduceat(np.where(heavy, u, 0.0), begins)
        keep = 1.0 - np.divide(excess, room, out=np.zeros_like(excess), where=room != 0)
        return np.where(heavy, u * np.repeat(np.maximum(keep, 0.0), each), u)
