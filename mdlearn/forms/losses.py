"""Losses declared as sums of terms, from which values, conjugates and boxes follow without further code.

Every term is a convex function of ``side * z`` that falls; its multiplier beta is minus that slope, 0 <= beta <= cap.
Engines ask for the `kind` of a term, never for its class. Compiled loops read the `numbers` of declared ones::

    side, threshold, jump, rise, height, sharpness

With e = side (threshold - z), beta is jump + rise e for e > 0, or height / (1 + exp(-sharpness e)) for every e.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mdlearn._solvers import hinges, logistic
from mdlearn.forms.given import GivenTerm
from mdlearn.forms.penalised.coefficient_terms import CoefficientTerm
from mdlearn.forms.proof import ZeroProof
from mdlearn.numerics.frozen_init import quick_init


@quick_init
@dataclass(frozen=True)
class HingeTerm:
    """Hinge loss, one term ``weight * max(0, side * (threshold - z)) ** power``.

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
    hard : bool
        Whether the term is a constraint side * (z - threshold) >= 0.
    kind : str
        "constraint", "hinge" (a kink) or "squared" (a continuous slope).
    squared : bool
        Whether the slope grows linearly from the threshold on, without end.
    parabolic : bool
        Whether the conjugate is a parabola or a line within the caps.
    """

    weight: float
    side: int = 1
    threshold: float = 1.0
    power: int = 1
    hard: bool = field(init=False, repr=False, compare=False)
    kind: str = field(init=False, repr=False, compare=False)
    squared: bool = field(init=False, repr=False, compare=False)
    parabolic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.weight >= 0:
            raise ValueError(f"the weight of a hinge term needs to be >= 0; got {self.weight!r}")
        if self.side not in (-1, 1) or self.power not in (1, 2) or not math.isfinite(self.threshold):
            raise ValueError(f"a hinge term needs side +1 or -1, power 1 or 2 and a finite threshold; got {self!r}")
        hard = math.isinf(self.weight)
        kind = "constraint" if hard else "hinge" if self.power == 1 else "squared"
        vars(self).update(hard=hard, kind=kind, squared=kind == "squared")

    @property
    def numbers(self) -> tuple[float, float, float, float, float, float]:
        """Side, threshold, jump, rise, and 0 for what logistic terms have."""
        jump, rise = (self.weight, 0.0) if self.power == 1 else (0.0, 2.0 * self.weight)
        return self.side, self.threshold, jump, rise, 0.0, 0.0

    @property
    def steepest(self) -> float:
        """Largest second derivative of a squared term, per unit of sample weight."""
        return 2.0 * self.weight

    def value(self, z: np.ndarray, counts: np.ndarray) -> float:
        """Sum of the term over all rows; a constraint counts 0 (feasibility is the certificate's business)."""
        if self.hard or self.weight == 0:
            return 0.0
        z, squared = np.ascontiguousarray(z), self.power == 2
        return self.weight * hinges.loss(z, counts, self.side, self.threshold, squared)

    estimated_value = value  # engines have no cheaper one

    def value_at_zero(self, total: float) -> float:
        """Value of the term at margins 0, of rows whose counts add up to `total`."""
        excess = max(0.0, self.side * self.threshold)
        return 0.0 if self.hard else self.weight * (total * excess**self.power)

    def each(self, z: np.ndarray) -> np.ndarray:
        """The term at every margin, without weights."""
        excess = np.maximum(0.0, self.side * (self.threshold - z))
        return excess if self.power == 1 else excess * excess

    def caps(self, counts: np.ndarray) -> np.ndarray:
        """Upper bounds of the multipliers: weight * counts for power 1, infinity for power 2 (0 where counts are 0)."""
        if self.weight == 0:
            return np.zeros(counts.shape)
        if self.power == 1 and not self.hard:
            return self.weight * counts
        if np.count_nonzero(counts) == counts.size:
            return np.full(counts.shape, np.inf)
        return np.where(counts > 0, np.inf, 0.0)

    def softness(self, counts: np.ndarray) -> np.ndarray:
        """delta with conjugate delta * beta^2 / 2: 1 / (2 weight counts) for power 2, else 0."""
        if self.power == 1 or self.hard or self.weight == 0:
            return np.zeros(counts.shape)
        if np.count_nonzero(counts) == counts.size:
            return (0.5 / self.weight) / counts
        return np.divide(0.5 / self.weight, counts, out=np.zeros(counts.shape), where=counts > 0)

    def bound(self, beta: np.ndarray, counts: np.ndarray) -> float:
        """Contribution of multipliers within their caps to a lower bound: minus the conjugate."""
        linear = self.side * self.threshold * float(beta.sum())
        if self.power == 1 or self.hard or self.weight == 0:
            return linear
        return linear - hinges.squares(np.ascontiguousarray(beta), counts, 0.25 / self.weight)

    estimated_bound = bound  # engines have no cheaper one

    def slopes(self, z: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Multipliers at margins z, of a squared term."""
        return 2.0 * self.weight * counts * np.maximum(self.side * (self.threshold - z), 0.0)

    def curvatures(self, z: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Second derivatives at margins z, of a squared term; on the threshold itself 0."""
        return 2.0 * self.weight * counts * (self.side * (self.threshold - z) > 0)

    def freedom(self, beta: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Change of the multipliers per unit of margin; on a kink, the distance to their nearest finite bound."""
        if self.kind == "squared":
            return 2.0 * self.weight * counts * (beta > 0)
        return np.minimum(beta, np.where(np.isinf(self.caps(counts)), beta, self.caps(counts) - beta))


@quick_init
@dataclass(frozen=True)
class LogisticTerm:
    """The generalised logistic loss ``weight / alpha * ln(1 + exp(-alpha (z - threshold)))``.

    alpha = 1 and threshold 0 is logistic regression. The larger alpha, the closer to the hinge at the threshold: the
    difference is at most ln 2 / alpha.

    Attributes
    ----------
    weight : float
        Factor >= 0, finite, per unit of sample weight.
    alpha : float
        Sharpness > 0.
    threshold : float
        Margin at which the slope is half of its largest.
    """

    weight: float
    alpha: float = 1.0
    threshold: float = 1.0
    kind: ClassVar[str] = "logistic"
    side: ClassVar[int] = 1
    hard: ClassVar[bool] = False
    parabolic: ClassVar[bool] = False
    squared: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (0 <= self.weight < math.inf and 0 < self.alpha < math.inf and math.isfinite(self.threshold)):
            raise ValueError(f"a logistic term needs weight >= 0, alpha > 0 and a threshold, all finite; got {self!r}")

    @property
    def numbers(self) -> tuple[float, float, float, float, float, float]:
        """Side, threshold, 0 for what hinges have, height and sharpness."""
        return self.side, self.threshold, 0.0, 0.0, self.weight, self.alpha

    @property
    def steepest(self) -> float:
        """Largest second derivative, per unit of sample weight."""
        return 0.25 * self.alpha * self.weight

    def value(self, z: np.ndarray, counts: np.ndarray) -> float:
        """Sum of the term over all rows."""
        return self.weight * logistic.loss(np.ascontiguousarray(z), counts, self.alpha, self.threshold)

    estimated_value = value  # engines have no cheaper one

    def value_at_zero(self, total: float) -> float:
        """Value of the term at margins 0, of rows whose counts add up to `total`."""
        t = self.alpha * self.threshold
        return self.weight * (total * (max(t, 0.0) + math.log1p(math.exp(-abs(t))))) / self.alpha

    def each(self, z: np.ndarray) -> np.ndarray:
        """The term at every margin, without weights."""
        return np.logaddexp(0.0, self.alpha * (self.threshold - z)) / self.alpha

    def caps(self, counts: np.ndarray) -> np.ndarray:
        """Upper bounds of the multipliers: weight * counts."""
        return self.weight * counts

    def softness(self, counts: np.ndarray) -> np.ndarray:
        """Zeros: the conjugate is no parabola, and engines that rely on one do not take this kind."""
        return np.zeros(counts.shape)

    def bound(self, beta: np.ndarray, counts: np.ndarray) -> float:
        """Contribution of multipliers within their caps to a lower bound: minus the conjugate, an entropy."""
        entropy = logistic.entropy(np.ascontiguousarray(beta), self.caps(counts))
        return (self.threshold * float(beta.sum()) if self.threshold else 0.0) - entropy / self.alpha

    estimated_bound = bound  # engines have no cheaper one

    def slopes(self, z: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Multipliers at margins z."""
        return self.caps(counts) * _sigmoid(self.alpha * (self.threshold - z))

    def curvatures(self, z: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Second derivatives at margins z."""
        p = _sigmoid(self.alpha * (self.threshold - z))
        return self.alpha * self.caps(counts) * p * _sigmoid(self.alpha * (z - self.threshold))

    def freedom(self, beta: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Change of the multipliers per unit of margin."""
        caps = self.caps(counts)
        p = np.divide(beta, caps, out=np.zeros_like(beta), where=caps > 0)
        return self.alpha * caps * p * (1.0 - p)


Term = HingeTerm | LogisticTerm | GivenTerm
TERM_CLASSES = (HingeTerm, LogisticTerm, GivenTerm)
CURVED = frozenset({"logistic", "given", "native"})
"""Kinds with a continuous slope whose conjugate is no parabola."""


def loss_term_table(terms: Iterable[Term]) -> np.ndarray:
    """Table of the `numbers` of loss terms, shape (T, 6); given ones, which bring functions instead, are left out."""
    numbers: list[tuple[float, ...]] = []
    for t in terms:
        if not isinstance(t, GivenTerm):
            numbers.append(t.numbers)
    return np.array(numbers).reshape(-1, 6)


def growth_to_thresholds(terms: Iterable[Term], least: float, slack: float) -> float:
    """Factor by which the smallest margin of a point reaches thresholds of hinges, as all do then; else 1."""
    factor = 1.0
    for term in terms:
        if term.side > 0 and term.threshold > 0 and term.weight > 0:
            if not 1.0 - slack < least / term.threshold < 1.0:
                return 1.0
            factor = max(factor, term.threshold / least)
    return factor


def check_loss_terms(terms: Any) -> None:
    """Check that loss terms are of no class derived from the three: compiled engines read numbers, not methods.

    TypeError for a derived class: what it changes, some engines and certificates would not know.
    """
    for one in terms if isinstance(terms, tuple) else ():
        if isinstance(one, TERM_CLASSES) and type(one) not in TERM_CLASSES:
            raise TypeError(
                "a loss needs to be a tuple of HingeTerm, LogisticTerm or what GivenLoss.terms returns, and of no "
                f"derived class; got {type(one).__name__}"
            )


@quick_init
@dataclass(frozen=True)
class Terms:
    """Losses of one binary problem, declared as terms: v Var(z) - a mean(z) + the sum of loss terms.

    Attributes
    ----------
    variance : float
        v >= 0.
    mean : float
        a >= 0.
    loss : tuple of HingeTerm, LogisticTerm and GivenTerm (see `mdlearn.extend.GivenLoss.terms`)
        Summed over rows, each row counted by its weight. A list becomes a tuple.
    ridge : float
        1, or 0 for an objective without 1/2 |w|^2.
    unit : float
        Factor > 0 of the whole objective: other weights of 1/2 |w|^2 are written as unit * (1/2 |w|^2 + rest / unit).
    penalty : float
        Factor of the sum over features of the length of their coefficients (L1 for one column, else L2,1).
    coefficient_terms : tuple of NormTerm and LimitTerm of `mdlearn.extend`
        Other penalties of the coefficients, and linear constraints on them. A list becomes a tuple.
    """

    variance: float = 0.0
    mean: float = 0.0
    loss: tuple[Term, ...] = ()
    ridge: float = 1.0
    unit: float = 1.0
    penalty: float = 0.0
    coefficient_terms: tuple[CoefficientTerm, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.loss, list):
            object.__setattr__(self, "loss", tuple(self.loss))
        if isinstance(self.coefficient_terms, list):
            object.__setattr__(self, "coefficient_terms", tuple(self.coefficient_terms))
        check_loss_terms(self.loss)

    def at_zero(self, total: float) -> ZeroProof:
        """Return what is known at w = 0 of a problem of classification, without its rows.

        Parameters
        ----------
        total : float
            Weight of its rows.

        Returns
        -------
        ZeroProof
        """
        zero, counts = np.zeros(1), np.array([total])  # there all rows are one
        value = self.unit * float(sum(one.value(zero, counts) for one in self.loss))
        lower = -np.inf if self.mean > 0 else self.unit * float(sum(one.bound(zero, counts) for one in self.loss))
        return ZeroProof(value, lower, any(one.hard for one in self.loss))


def _sigmoid(t: np.ndarray) -> np.ndarray:
    """Sigmoid 1 / (1 + exp(-t)) of the logistic loss, without overflow."""
    small = np.exp(-np.abs(t))
    return np.where(t >= 0, 1.0, small) / (1.0 + small)
