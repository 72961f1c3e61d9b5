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
from mdlearn.data.class_pairs import ClassPairPositions
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
        self,
        features: KernelFeatures,
        classes: ClassPairPositions,
        counts: np.ndarray,
        terms: Sequence[Terms],
        bias: str,
    ) -> None:
        """`classes`: of the pairs; `counts` (shape (m,)): of all rows, class by class; `terms`: of the pairs."""
        self.features, self.bias, self.part = features, bias, self
        sizes = classes.sizes
        # First and second class of each pair, one after the other.
        both = np.array([classes.low, classes.high]).T.ravel()
        lengths, ends = sizes[both], sizes.cumsum()[both]
        self.spans = np.array([ends - lengths, ends], dtype=np.int64).T.reshape(-1, 4)
        rows = np.arange(lengths.sum()) + (ends - lengths.cumsum()).repeat(lengths)
        each = lengths[::2] + lengths[1::2]
        self.starts = np.zeros(each.shape[0] + 1, dtype=np.int64)
        each.cumsum(out=self.starts[1:])
        losses = [one.loss[0].numbers[:3] for one in terms]
        numbers = np.array(losses) if len(set(losses)) > 1 else np.array(losses[:1])
        side, threshold, weight = numbers.T if len(numbers) == 1 else numbers.T.repeat(each, axis=1)
        y = np.array([[-1.0], [1.0]]).repeat(each.shape[0], axis=1).T.ravel().repeat(lengths)
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

    @property
    def stiffness(self) -> float:
        """Largest bound of a multiplier, times the squared length of the longest row."""
        return float((self.high - self.low).max()) * float(self.features.squares().max())

    @kept
    def pairs(self) -> class_pairs.Pairs:
        """Arrays and room of compiled loops; the kernel matrix has to be there."""
        arrays, n = (self.spans, self.starts, self.target, self.low, self.high), self.longest
        kind = float(self.bias == "regularized"), self.bias == "free"
        room = np.empty((n, n)), np.empty((9, n)), np.empty((2, n), dtype=np.int64)
        return class_pairs.Pairs(self.features.matrix(), *arrays, *kind, *room)

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
        u, found = point.u.copy(), np.empty((stop - first, 8))
        class_pairs.values(self.pairs, u, first, found)
        objective, lower, intercept, squares, size, caps, at_zero, nothing = found.T
        # Rounding of kernel values and sums moves no decision value by more than `off`, as `KernelFeatures.most_blur`
        # has it: neither the losses, whose slopes add up to the caps, nor the squared norm by more than these.
        off = self._blur * size
        risen, doubt = off * (caps + 0.5 * size), 0.5 * off * size
        sure = np.maximum(risen, doubt) <= DOUBTFUL_SHARE * lower
        objective, lower, unit = objective + risen, lower - doubt, self.units[first:stop]
        sure &= (objective <= nothing) & (lower > 0.0)
        values = (unit * np.array([objective, lower, at_zero])).T.tolist()
        moduli = unit.tolist() if self.bias != "free" else [0.0] * len(values)
        each = zip(values, moduli, intercept.tolist(), np.sqrt(squares).tolist(), sure.tolist())
        beta, ends = np.abs(u), (self.starts[first : stop + 1] - self.starts[first]).tolist()
        solved = []
        for j, ((value, bound, zero), modulus, b, norm, certain) in enumerate(each):
            certificate = judge(value, bound, zero, False, tol, modulus) if certain else None
            if certificate is not None and certificate.converged:
                own = slice(ends[j], ends[j + 1])
                solution = Solution(None, b, u[own], beta[None, own], norm, certificate)
                solved.append(StackedSolution(first + j, solution, zero))
        return solved

    @kept
    def _blur(self) -> float:
        """Largest error of a decision value by rounding, for coefficients whose sizes add up to 1."""
        return self.features.most_blur(np.ones(1))
