"""Losses declared as sums of hinge terms, from which values, conjugates and boxes follow without further code."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class HingeTerm:
    """One term ``weight * max(0, side * (threshold - z)) ** power`` of a margin loss.

    The hinge loss is ``HingeTerm(C)``; the squared hinge ``HingeTerm(C, power=2)``; the squared loss is the two
    squared terms of sides +1 and -1 at the same threshold; a band has different thresholds on its two sides.

    Attributes
    ----------
    weight : float
        Factor >= 0 per unit of sample weight; infinity makes the term a constraint.
    side : int
        +1 punishes margins below the threshold, -1 margins above it.
    threshold : float
        Margin at which the term vanishes.
    power : int
        1 or 2.
    """

    weight: float
    side: int = 1
    threshold: float = 1.0
    power: int = 1

    def __post_init__(self) -> None:
        if not self.weight >= 0:
            raise ValueError(f"the weight of a hinge term needs to be >= 0; got {self.weight!r}")
        if self.side not in (-1, 1) or self.power not in (1, 2) or not math.isfinite(self.threshold):
            raise ValueError(f"a hinge term needs side +1 or -1, power 1 or 2 and a finite threshold; got {self!r}")

    @property
    def hard(self) -> bool:
        """True when the term is a constraint side * (z - threshold) >= 0."""
        return math.isinf(self.weight)

    def value(self, z: np.ndarray, counts: np.ndarray) -> float:
        """Sum of the term over all rows; a constraint counts 0 (feasibility is the certificate's business)."""
        if self.hard or self.weight == 0:
            return 0.0
        excess = np.maximum(0.0, self.side * (self.threshold - z))
        return self.weight * float(counts @ (excess if self.power == 1 else excess * excess))

    def caps(self, counts: np.ndarray) -> np.ndarray:
        """Upper bounds of the multipliers: weight * counts for power 1, infinity for power 2 (0 where counts are 0)."""
        if self.weight == 0:
            return np.zeros_like(counts)
        if self.power == 1 and not self.hard:
            return self.weight * counts
        return np.where(counts > 0, np.inf, 0.0)

    def softness(self, counts: np.ndarray) -> np.ndarray:
        """delta with conjugate delta * beta^2 / 2: 1 / (2 weight counts) for power 2, else 0."""
        if self.power == 1 or self.hard or self.weight == 0:
            return np.zeros_like(counts)
        return np.divide(0.5 / self.weight, counts, out=np.zeros_like(counts), where=counts > 0)
