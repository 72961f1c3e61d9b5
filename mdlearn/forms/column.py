"""Column: one binary problem of a margin form, its signs, counts and loss terms, and what follows from these alone.

Values, multipliers and their bounds here know scores y_i f(x_i) and no features; `mdlearn.forms.margin` has the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields

import numpy as np

from mdlearn.data.rows.rows import read_only_rows
from mdlearn.errors import came
from mdlearn.forms.losses import CURVED, TERM_CLASSES, Term, check_loss_terms
from mdlearn.forms.proof import Start, proven_gap
from mdlearn.forms.row_terms import RowTerms
from mdlearn.numerics.frozen_init import quick_init
from mdlearn.numerics.lazy_property import kept


@quick_init
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
    by_row : RowTerms or None
        Weights and thresholds of the terms in single rows. Here the weights are at most 1, and the terms have the rest.
    total : float
        m: the sum of the counts.
    shares : tuple of (Term, ndarray)
        Terms, each with the factors of its weight in all rows: the counts, times its weights by row.
    shifts : ndarray of shape (T, m), or None
        Numbers that are added to the thresholds in single rows; None: nothing.
    level : bool
        Whether every threshold is the same in all rows.
    kinds : frozenset of str
        Kinds of the terms that have a weight.
    hard : bool
        Whether some term is a constraint (C = inf).
    kappa : float
        Weight of the squared deviations: v Var(z) = kappa/2 sum c_i (z_i - mean)^2, kappa = 2 v / m.
    """

    y: np.ndarray
    counts: np.ndarray
    variance: float
    mean: float
    terms: tuple[Term, ...]
    unit: float = 1.0
    offset: np.ndarray | None = None
    start: Start | None = None
    by_row: RowTerms | None = None
    total: float = field(init=False, repr=False)
    shares: tuple[tuple[Term, np.ndarray], ...] = field(init=False, repr=False)
    shifts: np.ndarray | None = field(init=False, repr=False)
    level: bool = field(init=False, repr=False)
    kinds: frozenset[str] = field(init=False, repr=False)
    hard: bool = field(init=False, repr=False)
    kappa: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not (0 <= self.variance < np.inf and 0 <= self.mean < np.inf):
            raise ValueError(
                f"a problem needs finite weights >= 0 of variance and mean; got {self.variance!r} and {self.mean!r}"
            )
        own, terms, by_row, hard = vars(self), self.terms, self.by_row, False
        if by_row is not None:
            by_row, terms = by_row.of(terms, self.y.shape[0])
        for name in ("y", "counts") if self.offset is None else ("y", "counts", "offset"):
            value = own[name]
            if not isinstance(value, np.ndarray):
                raise TypeError(f"{name} of a Column needs to be an array of floats, one per row; got {came(value)}")
            own[name] = read_only_rows(value)
        kinds: list[str] = []
        for t in terms:
            if type(t) in TERM_CLASSES:
                hard = hard or t.hard
                if t.weight > 0:
                    kinds.append(t.kind)
            else:
                check_loss_terms((t,))  # the check of a foreign form tells of others
        if self.offset is not None and hard:
            raise ValueError("a problem of regression needs a loss of finite weight; lower C")
        weights, shifts = (None, None) if by_row is None else (by_row.weights, by_row.shifts)
        each = (self.counts,) * len(terms) if weights is None else np.multiply(weights, self.counts, order="C")
        total = float(np.add.reduce(self.counts))
        own["total"], own["kappa"] = total, 2.0 * self.variance / total if total > 0 else 0.0
        own["by_row"], own["terms"], own["shares"], own["shifts"] = by_row, terms, tuple(zip(terms, each)), shifts
        own["level"], own["kinds"], own["hard"] = self.offset is None and shifts is None, frozenset(kinds), hard

    @kept
    def sides(self) -> np.ndarray:
        """Sides of the terms, shape (T,)."""
        return read_only_rows(np.array([t.side for t in self.terms], float))

    @kept
    def thresholds(self) -> np.ndarray:
        """Thresholds of the terms, shape (T,)."""
        return read_only_rows(np.array([t.threshold for t in self.terms], float))

    @kept
    def whole(self) -> bool:
        """Whether every row counts."""
        return np.count_nonzero(self.counts) == self.counts.shape[0]

    @kept
    def pull(self) -> np.ndarray:
        """a c_i / m, what the mean term adds to every multiplier; with an offset, what its variance adds as well."""
        pull = self.mean / self.total * self.counts
        return read_only_rows(pull if self.offset is None else pull - self.spread(self.deviations))

    @kept
    def pulled(self) -> bool:
        """Whether that is anything."""
        return (self.mean > 0 or self.offset is not None) and bool(np.count_nonzero(self.pull))

    @kept
    def deviations(self) -> np.ndarray:
        """Offsets less their mean, centred twice: rounding of a large mean would be a multiplier of its own."""
        assert self.offset is not None
        return read_only_rows(self.centre(self.centre(self.offset)))

    @kept
    def quadratic(self) -> bool:
        """Whether the loss is a sum of squared losses: squared terms in pairs of opposite sides, or none."""
        if not self.kinds <= {"squared"}:
            return False
        sides: dict[int, list[tuple[float, float]]] = {1: [], -1: []}
        for t in self.terms:
            if t.weight > 0:
                sides[t.side].append((t.threshold, t.weight))
        return sorted(sides[1]) == sorted(sides[-1])

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
        return self._by_terms("caps")

    @kept
    def steepest(self) -> tuple[float, float]:
        """Largest sums over all rows: of the slopes of all terms but squared ones, of these and a variance's bends.

        The first is infinite where a slope has no bound.
        """
        slopes = bends = 0.0
        for t in self.terms:
            if t.squared:
                bends += t.steepest
            else:
                slopes += t.weight
        if self.by_row is None and self.kinds.isdisjoint(("given", "native")):
            slopes *= self.total
        else:
            slopes = sum([float(cap.sum()) for t, cap in zip(self.terms, self.caps) if not t.squared])
        return slopes, (self.kappa + bends) * self.total

    @kept
    def slope_limits(self) -> tuple[np.ndarray, float]:
        """Limits of the slopes of all terms but squared ones in every row, and of all second derivatives.

        The latter is infinite where a slope has no bound beside it.
        """
        bent, finite = self.softness > 0, np.isfinite(self.caps)
        bend = self.kappa * float(self.counts.max())
        if bent.any():
            bend += float((1.0 / self.softness[bent]).max())
        return self.caps.sum(axis=0, where=finite), bend if (finite | bent).all() else math.inf

    @kept
    def softness(self) -> np.ndarray:
        """delta of every multiplier of hinge terms, shape (T, m)."""
        return self._by_terms("softness")

    def _by_terms(self, method: str) -> np.ndarray:
        """Numbers of all terms in all rows as one array that nobody writes to, shape (T, m)."""
        if len(self.shares) == 1:
            t, own = self.shares[0]
            whole: np.ndarray = getattr(t, method)(own)[None]
        else:
            whole = np.array([getattr(t, method)(own) for t, own in self.shares])
            whole = whole.reshape(len(self.shares), self.y.shape[0])
        whole.setflags(write=False)
        return whole

    @kept
    def table(self) -> np.ndarray | None:
        """Numbers of the terms, shape (T, 6), of given ones their sides alone; None where terms differ by row."""
        if self.hard or not self.level or self.by_row is not None or not self.terms:
            return None
        table = np.array([t.numbers for t in self.terms])
        table.setflags(write=False)
        return table

    @kept
    def kinks(self) -> np.ndarray:
        """Values of y f at which margins reach the thresholds: (T, 1), or (T, m) where they differ from row to row."""
        kinks = self.thresholds[:, None] if self.offset is None else np.add.outer(self.thresholds, self.offset)
        return read_only_rows(kinks if self.shifts is None else kinks + self.shifts)

    def margins_of_terms(self, z: np.ndarray) -> Iterable[np.ndarray]:
        """Margins z as every term has them, less what its threshold is higher by in a row."""
        return (z,) * len(self.terms) if self.shifts is None else z - self.shifts

    @property
    def unbounded_in_bias(self) -> bool:
        """Whether a free bias alone takes the objective down without end: the mean gains more than the loss costs.

        A variance holds margins of both signs, but not residuals nor margins of one sign, which a bias moves all alike.
        """
        if self.mean == 0 or (self.variance > 0 and self.y.min() < self.y.max()):
            return False
        gain, towards = self.mean * abs(self.label_mean), np.sign(self.label_mean)
        cost = float(self.caps[np.multiply.outer(self.sides, towards * self.y) < 0].sum())
        return gain > cost * (1.0 + 1e-12) + 1e-12 * self.mean

    def centre(self, z: np.ndarray) -> np.ndarray:
        """Return z minus its weighted mean."""
        return z - float(self.counts.dot(z)) / self.total

    def spread(self, z: np.ndarray) -> np.ndarray:
        """Multipliers of the variance at scores z = y f: sigma_i = -kappa c_i (z_i - mean); `pull` has an offset's."""
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

    def distribution_value(self, scores: np.ndarray, estimated: bool = False) -> float:
        """v Var(z) - a mean(z) + losses at scores y f: everything but the ridge; `estimated`: as engines need it."""
        z = scores if self.offset is None else scores - self.offset
        value = 0.0
        if self.mean > 0 or self.variance > 0:  # 0 times an overflow is no number
            mean = float(self.counts @ z) / self.total
            value = -self.mean * mean
        if self.variance > 0:
            value += self.variance * (float(self.counts @ np.square(z - mean)) / self.total)
        for i, (t, own) in enumerate(self.shares):
            there = z if self.shifts is None else z - self.shifts[i]
            value += t.estimated_value(there, own) if estimated else t.value(there, own)
        return value

    def slopes(self, scores: np.ndarray) -> np.ndarray:
        """Multipliers of all terms at scores y f, shape (T, m)."""
        z = self.margins(scores)
        found = [t.slopes(there, own) for (t, own), there in zip(self.shares, self.margins_of_terms(z))]
        return np.array(found).reshape(-1, z.shape[0])

    def curvatures(self, scores: np.ndarray) -> np.ndarray:
        """Second derivatives of all terms at scores y f, shape (T, m)."""
        z = self.margins(scores)
        found = [t.curvatures(there, own) for (t, own), there in zip(self.shares, self.margins_of_terms(z))]
        return np.array(found).reshape(-1, z.shape[0])

    def bound(self, beta: np.ndarray, sigma: np.ndarray, estimated: bool = False) -> float:
        """Lower bound of the objective from multipliers within their caps, but for the ridge's share.

        `estimated`: as engines need it, but for some digits.
        """
        value = 0.0
        for (t, own), b in zip(self.shares, beta):
            value += t.estimated_bound(b, own) if estimated else t.bound(b, own)
        if self.shifts is not None:
            value += float(self.sides @ (self.shifts * beta).sum(axis=1))
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
        if self.level and self.by_row is None:
            value = 0.0
            for t in self.terms:
                value += t.value_at_zero(self.total)
            return value
        return self.distribution_value(np.zeros(self.counts.shape))

    @property
    def bound_at_zero(self) -> float:
        """Lower bound of the objective from multipliers 0, without the rows; -inf where a mean pulls at these."""
        return -math.inf if self.mean > 0 else self.highest_bound_at_zero

    @kept
    def highest_bound_at_zero(self) -> float:
        """Number that the bound of multipliers 0 is not above: without the ridge's share, which is below 0."""
        if self.level and CURVED.isdisjoint(self.kinds):  # conjugates of hinge terms are 0 there
            return 0.0
        if self.level and self.by_row is None:  # all rows are one there
            zero, total = np.zeros(1), np.array([self.total])
            return sum([t.bound(zero, total) for t in self.terms])
        return self.bound(np.zeros(self.caps.shape), np.zeros(self.counts.shape))

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

    def take(self, rows: np.ndarray, factor: float = 1.0) -> Column:
        """Return the column of some rows, with `factor` times their counts and without a start."""
        return self._of_rows(rows, self.counts[rows] if factor == 1.0 else factor * self.counts[rows])

    def drawn(self, rows: np.ndarray) -> Column:
        """Return the column of rows that were drawn by their counts: each stands for an equal share of all."""
        return self._of_rows(rows, np.full(rows.shape[0], self.total / rows.shape[0]))

    def _of_rows(self, rows: np.ndarray, counts: np.ndarray) -> Column:
        """Column of some rows with other counts, without a start."""
        offset = None if self.offset is None else self.offset[rows]
        by_row = None if self.by_row is None else self.by_row.take(rows)
        return Column(self.y[rows], counts, self.variance, self.mean, self.terms, self.unit, offset, by_row=by_row)

    def with_start(self, start: Start) -> Column:
        """Return the column with a place to begin, and with all that is known of it so far."""
        column = object.__new__(type(self))
        vars(column).update(vars(self), start=start)
        return column

    def relative_gap(self, objective: float, lower: float) -> float:
        """Relative gap of an engine's own estimates."""
        return proven_gap(objective, lower, self.at_zero, self.hard)

    def margins(self, scores: np.ndarray) -> np.ndarray:
        """z at scores y f."""
        return scores if self.offset is None else scores - self.offset


SIGNLESS = (
    "sides thresholds whole pull pulled caps softness table kinks at_zero highest_bound_at_zero no_multipliers "
    "steepest".split()
)
"""Properties of a column of a classification that do not depend on its signs."""


class _ClassColumn(Column):
    """Column of a margin form for one class against the rest; `codes` are the rows' classes, `positive` its own."""

    codes: np.ndarray
    positive: int

    def __getattr__(self, name: str) -> np.ndarray:
        if name != "y":
            raise AttributeError(f"a column has no attribute {name!r}")
        signs = read_only_rows(np.where(self.codes == self.positive, 1.0, -1.0))
        vars(self)["y"] = signs
        return signs
