"""MarginForm: the problem family that every margin-distribution classifier is a point of.

Per column (class or pair)::

    minimise  unit * ( ridge (1/2 |w|^2 [+ 1/2 b^2])  +  v Var(z)  -  a mean(z)  +  sum_i c_i sum_t loss_t(z_i) )

with margins z_i = y_i (w.phi(x_i) + b), and mean and variance weighted by the counts c_i: a weight is a number of
repetitions, in every formula. Regression has y_i = 1 and margins less an offset, the target: z_i is then the residual.
Engines and multipliers know y_i f(x_i) alone; what an offset changes stands in `Column`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np

from mdlearn.data.features.kernel_features import Features
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import read_only_view
from mdlearn.forms.losses import Term
from mdlearn.forms.proof import Start, gap_between
from mdlearn.numerics.lazy_property import kept

BIASES = ("none", "regularized", "free")


@dataclass(frozen=True, eq=False)
class Column:
    """Column of a margin form, one of its binary problems: signs, counts and loss terms.

    Attributes
    ----------
    y : ndarray of shape (m,)
        Signs -1.0 / +1.0.
    counts : ndarray of shape (m,)
        Repetition counts c_i >= 0; 0 leaves a row out.
    variance : float
        v >= 0, the factor of the population variance of the margins.
    mean : float
        a >= 0, the factor of the (maximised) mean margin.
    terms : tuple of HingeTerm, LogisticTerm and GivenTerm
        The declared loss; may be empty.
    unit : float
        Value of the objective for one unit of this problem, times the form's `unit`.
    offset : ndarray of shape (m,), or None
        What margins are less than y_i f(x_i); None: nothing.
    start : Start or None
        Where an engine may begin. The problem is the same without it.
    """

    y: np.ndarray
    counts: np.ndarray
    variance: float
    mean: float
    terms: tuple[Term, ...]
    unit: float = 1.0
    offset: np.ndarray | None = None
    start: Start | None = None

    def __post_init__(self) -> None:
        if not (0 <= self.variance < np.inf and 0 <= self.mean < np.inf):
            raise ValueError(
                f"a problem needs finite weights >= 0 of variance and mean; got {self.variance!r} and {self.mean!r}"
            )
        if self.offset is not None and self.hard:
            raise ValueError("a problem of regression needs a loss of finite weight; lower C")
        for name in ("y", "counts") if self.offset is None else ("y", "counts", "offset"):
            object.__setattr__(self, name, read_only_view(getattr(self, name)))

    @kept
    def total(self) -> float:
        """m: the sum of the counts."""
        return float(self.counts.sum())

    @kept
    def whole(self) -> bool:
        """Whether every row counts."""
        return bool((self.counts > 0).all())

    @kept
    def kappa(self) -> float:
        """Weight of the squared deviations: v Var(z) = kappa/2 sum c_i (z_i - mean)^2, kappa = 2 v / m."""
        return 2.0 * self.variance / self.total

    @kept
    def pull(self) -> np.ndarray:
        """a c_i / m, what the mean term adds to every multiplier; with an offset, what its variance adds as well."""
        pull = self.mean / self.total * self.counts
        return read_only_view(pull if self.offset is None else pull - self.spread(self.deviations))

    @kept
    def pulled(self) -> bool:
        """Whether that is anything."""
        return bool(self.pull.any())

    @kept
    def deviations(self) -> np.ndarray:
        """Offsets less their mean, centred twice: rounding of a large mean would be a multiplier of its own."""
        assert self.offset is not None
        return read_only_view(self.centre(self.centre(self.offset)))

    @kept
    def label_mean(self) -> float:
        """Weighted mean of the signs."""
        # Signs of regression are all 1, which sums of weights in another order need not give.
        return float(self.counts @ self.y) / self.total if self.offset is None else 1.0

    @kept
    def balanced(self) -> bool:
        """Whether the weights of both signs are equal as they are, without rounding of their sums."""
        return math.fsum((self.counts * self.y).tolist()) == 0.0

    @kept
    def caps(self) -> np.ndarray:
        """Upper bounds of the multipliers, shape (T, m)."""
        return read_only_view(
            np.array([t.caps(self.counts) for t in self.terms]).reshape(len(self.terms), self.y.shape[0])
        )

    @kept
    def steepest_slopes(self) -> float:
        """Largest sum of the slopes of all terms but squared ones; infinity where a slope has no bound."""
        return sum(float(cap.sum()) for t, cap in zip(self.terms, self.caps) if t.kind != "squared")

    @kept
    def bends(self) -> float:
        """Sum of the second derivatives of variance and squared terms at most."""
        squared = sum(t.steepest for t in self.terms if t.kind == "squared")
        return (self.kappa + squared) * self.total

    @kept
    def softness(self) -> np.ndarray:
        """delta of every multiplier of hinge terms, shape (T, m)."""
        softness = [t.softness(self.counts) for t in self.terms]
        return read_only_view(np.array(softness).reshape(len(self.terms), self.y.shape[0]))

    @kept
    def sides(self) -> np.ndarray:
        """Sides of the terms, shape (T,)."""
        return read_only_view(np.array([float(t.side) for t in self.terms]))

    @kept
    def thresholds(self) -> np.ndarray:
        """Thresholds of the terms, shape (T,)."""
        return read_only_view(np.array([t.threshold for t in self.terms]))

    @kept
    def kinks(self) -> np.ndarray:
        """Values of y f at which margins reach the thresholds: (T, 1), or (T, m) with an offset."""
        return read_only_view(
            self.thresholds[:, None] if self.offset is None else np.add.outer(self.thresholds, self.offset)
        )

    @kept
    def hard(self) -> bool:
        """True when some term is a constraint (C = inf)."""
        return any(t.hard for t in self.terms)

    @property
    def unbounded_in_bias(self) -> bool:
        """Whether a free bias alone takes the objective down without end: the mean gains more than the loss costs.

        A variance holds margins of both signs, but not residuals, which a bias moves all alike.
        """
        if self.mean == 0 or (self.variance > 0 and self.offset is None):
            return False
        gain, towards = self.mean * abs(self.label_mean), np.sign(self.label_mean)
        cost = float(self.caps[np.multiply.outer(self.sides, towards * self.y) < 0].sum())
        return gain > cost * (1.0 + 1e-12) + 1e-12 * self.mean

    def centre(self, z: np.ndarray) -> np.ndarray:
        """Return z minus its weighted mean."""
        return z - float(self.counts @ z) / self.total

    def spread(self, z: np.ndarray) -> np.ndarray:
        """Multipliers of the variance term at margins z: sigma_i = -kappa c_i (z_i - mean); they sum to 0."""
        if self.kappa == 0:
            return np.zeros(z.shape)
        return -self.kappa * self.counts * self.centre(z)

    def alpha(self, beta: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        """Signed coefficients y (sum_t side_t beta_t + sigma + a c / m) that multipliers stand for."""
        alpha = self.sides @ beta
        if self.kappa > 0:
            alpha += sigma
        if self.pulled:
            alpha += self.pull
        alpha *= self.y
        return alpha

    def distribution_value(self, scores: np.ndarray) -> float:
        """v Var(z) - a mean(z) + losses at scores y f: everything but the ridge."""
        z = self.margins(scores)
        mean = float(self.counts @ z) / self.total
        value = -self.mean * mean
        if self.variance > 0:  # 0 times an overflow is no number
            value += self.variance * (float(self.counts @ np.square(z - mean)) / self.total)
        for t in self.terms:
            value += t.value(z, self.counts)
        return value

    def slopes(self, scores: np.ndarray) -> np.ndarray:
        """Multipliers of all terms at scores y f, shape (T, m)."""
        z = self.margins(scores)
        return np.array([t.slopes(z, self.counts) for t in self.terms]).reshape(-1, z.shape[0])

    def curvatures(self, scores: np.ndarray) -> np.ndarray:
        """Second derivatives of all terms at scores y f, shape (T, m)."""
        z = self.margins(scores)
        return np.array([t.curvatures(z, self.counts) for t in self.terms]).reshape(-1, z.shape[0])

    def bound(self, beta: np.ndarray, sigma: np.ndarray) -> float:
        """Lower bound of the objective from multipliers within their caps, but for the ridge's share."""
        value = 0.0
        for t, b in zip(self.terms, beta):
            value += t.bound(b, self.counts)
        if self.kappa > 0:
            used = slice(None) if self.whole else self.counts > 0
            # Squares of numbers near 1e-292 would be lost.
            value -= 0.5 * float((sigma[used] / self.kappa) @ (sigma[used] / self.counts[used]))
        if self.offset is not None:
            mean = float(self.counts @ self.offset) / self.total
            value += float(self.offset @ (self.sides @ beta)) + self.mean * mean
            value -= 0.5 * float(self.spread(self.deviations) @ self.deviations)
        return value

    @kept
    def at_zero(self) -> float:
        """Value of everything but the ridge at w = 0, b = 0; the scale of the gap when the optimum is near zero."""
        zero = np.zeros_like(self.y)
        if self.offset is None:  # neither mean nor variance
            return float(sum(t.value(zero, self.counts) for t in self.terms))
        return self.distribution_value(zero)

    @kept
    def bound_at_zero(self) -> float:
        """Lower bound of the objective from multipliers 0, without the rows; -inf where a mean pulls at these."""
        return -np.inf if self.mean > 0 else self.bound(np.zeros(self.caps.shape), np.zeros(self.counts.shape))

    @kept
    def no_multipliers(self) -> np.ndarray:
        """Multipliers 0, (T, m): one number that stands for all."""
        return np.broadcast_to(0.0, (len(self.terms), self.counts.shape[0]))

    def against_rest(self, codes: np.ndarray, positives: Iterable[int]) -> list[Column]:
        """Return a column like this one for each class of `positives`; signs are made when they are asked for.

        What does not depend on signs is shared: of thousands of classes every one would else take several arrays of
        the size of the rows, before the first is solved.
        """
        shared = {one.name: getattr(self, one.name) for one in fields(Column) if one.name != "y"}
        shared.update({name: getattr(self, name) for name in SIGNLESS}, codes=codes)
        columns: list[Column] = []
        for positive in positives:
            column = object.__new__(_ClassColumn)
            vars(column).update(shared, positive=positive)
            columns.append(column)
        return columns

    def with_start(self, start: Start) -> Column:
        """Return the column with a place to begin, and with all that is known of it so far."""
        column = object.__new__(type(self))
        vars(column).update(vars(self), start=start)
        return column

    def relative_gap(self, objective: float, lower: float) -> float:
        """Relative gap of an engine's own estimates."""
        return gap_between(objective, lower, self.at_zero, self.hard)

    def margins(self, scores: np.ndarray) -> np.ndarray:
        """z at scores y f."""
        return scores if self.offset is None else scores - self.offset


SIGNLESS = (
    "total whole kappa pull pulled caps softness sides thresholds kinks hard at_zero bound_at_zero no_multipliers "
    "steepest_slopes bends".split()
)
"""Properties of a column of a classification that do not depend on its signs."""


class _ClassColumn(Column):
    """Column of a margin form for one class against the rest; `codes` are the rows' classes, `positive` its own."""

    codes: np.ndarray
    positive: int

    def __getattr__(self, name: str) -> np.ndarray:
        if name != "y":
            raise AttributeError(f"a column has no attribute {name!r}")
        signs = read_only_view(np.where(self.codes == self.positive, 1.0, -1.0))
        vars(self)["y"] = signs
        return signs


@dataclass(frozen=True, eq=False)
class MarginForm:
    """Margin form, the problem that engines solve: shared features, one Column per class or pair, one kind of bias.

    Attributes
    ----------
    features : LinearFeatures or KernelFeatures
    columns : tuple of Column
    bias : str
        "none", "regularized" (a constant feature 1) or "free".
    ridge : float
        1, or 0 for objectives without a squared norm. Any other weight of the norm is a matter of `unit`.
    unit : float
        Value of the objective for one unit of the form, > 0: what is certified is the form's value times `unit`.
    penalty : float
        beta >= 0, the factor of sum_j |W_j|: the length of the coefficients of one feature, over all columns if
        `joint`, else in each column.
    joint : bool
        Whether the columns are one problem.
    """

    features: Features
    columns: tuple[Column, ...]
    bias: str
    ridge: float = 1.0
    unit: float = 1.0
    penalty: float = 0.0
    joint: bool = False

    def __post_init__(self) -> None:
        if self.bias == "free" and self.offsets and any(one.unbounded_in_bias for one in self.columns):
            raise ValueError(
                "with bias='free' the objective of this regression is unbounded below: the mean of the residuals "
                "outweighs the loss of large ones; lower its weight, raise that of the loss or use bias='regularized'"
            )
        if self.ridge not in (0.0, 1.0) or not 0 < self.unit < np.inf or not 0 <= self.penalty < np.inf:
            raise ValueError(
                "a form needs ridge 0 or 1, a finite unit > 0 and a finite penalty >= 0; got "
                f"{self.ridge!r}, {self.unit!r} and {self.penalty!r}"
            )

    @kept
    def offsets(self) -> bool:
        """Whether margins have an offset (regression)."""
        return any(column.offset is not None for column in self.columns)

    @kept
    def no_coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients 0 of columns and of rows, which stand for those of all classes."""
        return np.broadcast_to(0.0, (self.features.width,)), np.broadcast_to(0.0, (self.features.n_rows,))

    @property
    def scaled(self) -> bool:
        """Whether the squared norm weighs explicit columns unequally."""
        return isinstance(self.features, LinearFeatures) and self.features.ridge is not None

    @kept
    def kinds(self) -> frozenset[str]:
        """Kinds of the declared loss terms that have a weight."""
        return frozenset(t.kind for column in self.columns for t in column.terms if t.weight > 0)

    def norm(self, coef: np.ndarray, intercept: float, f: np.ndarray | None = None) -> float:
        """|w|^2, with b^2 where the bias is regularized; 0 for an objective without a squared norm.

        `f` are the decision values of coef, where they are known.
        """
        if self.ridge == 0:
            return 0.0
        squares = self.features.squared_norm(coef, f)
        return squares + intercept * intercept if self.bias == "regularized" else squares


@dataclass(frozen=True, eq=False)
class Point:
    """Point that an engine hands in for one column of a MarginForm: multipliers, from which all else follows.

    Attributes
    ----------
    beta : ndarray of shape (T, m)
        Multipliers of the hinge terms, within [0, caps].
    sigma : ndarray of shape (m,)
        Multipliers of the variance term; any values are valid after centring, good ones are near -kappa c (z - mean).
    coef : ndarray or None
        A primal point of the engine's own; None means the representer of the multipliers.
    intercept : float
        Belongs to `coef`, and is the intercept of a free bias. Without `coef`, 0 tells nothing of a regularized one.
    alpha : ndarray of shape (m,) or None
        Coefficients of `coef` as a combination of rows, where the engine knows them.
    """

    beta: np.ndarray
    sigma: np.ndarray
    coef: np.ndarray | None = None
    intercept: float = 0.0
    alpha: np.ndarray | None = None


def zero_point(form: MarginForm, column: Column) -> Point:
    """Point w = 0 of a MarginForm's column; with the best intercept of a free bias where hinges alone choose it."""
    m = column.y.shape[0]
    shift = best_bias_shift(column, np.zeros(m)) if form.bias == "free" else 0.0
    return Point(np.zeros((len(column.terms), m)), np.zeros(m), np.zeros(form.features.width), shift)


def started_point(form: MarginForm, column: Column) -> Point | None:
    """Point of a MarginForm's column at its start, with the multipliers of the variance by its dual coefficients."""
    start = column.start
    if start is None:
        return None
    fits = start.beta.shape == column.caps.shape
    beta = start.beta if fits else np.zeros(column.caps.shape)
    sigma = np.zeros_like(column.y)
    if column.kappa > 0:
        if start.alpha is not None and fits:
            sigma = column.y * start.alpha - column.sides @ beta - column.pull
        else:
            sigma = column.spread(column.y * (form.features.decision(start.coef) + start.intercept))
    return Point(beta, sigma, start.coef, start.intercept, start.alpha)


def best_bias_shift(column: Column, z: np.ndarray) -> float:
    """Shift of a MarginForm column's free intercept that minimises the objective at fixed w; midpoint of an interval.

    Only problems without variance and with hinges of power 1 can leave an interval; elsewhere the engine's
    intercept is unique and the shift is 0.
    """
    terms = column.terms
    if column.kappa > 0 or column.hard or not terms or any(t.kind != "hinge" for t in terms):
        return 0.0
    knots, jumps, slope = [], [], -column.mean * column.label_mean
    for term, kink in zip(terms, column.kinks):
        # z_i(shift) = z_i + y_i shift: the hinge is active below (or above) its knot, depending on side * y.
        knots.append(column.y * (kink - z))
        jumps.append(term.weight * column.counts)
        slope -= term.weight * float(column.counts[column.y * term.side > 0].sum())
    at, jump = np.concatenate(knots), np.concatenate(jumps)
    order = np.argsort(at, kind="stable")
    at, slopes = at[order], slope + np.cumsum(jump[order])
    flat = 1e-10 * float(jump.sum())
    first = int(np.searchsorted(slopes, -flat))
    last = int(np.searchsorted(slopes, flat, side="right"))
    if first >= at.shape[0]:
        return float(at[-1])
    if slope >= -flat:  # the interval has no left end
        return float(at[min(last, at.shape[0] - 1)])
    high = at[min(last, at.shape[0] - 1)]
    return float(0.5 * (at[first] + high)) if last < at.shape[0] else float(at[first])
