"""MarginForm: the problem family that every margin-distribution classifier is a point of.

Per column (class or pair)::

    minimise  unit * ( ridge (1/2 |w|^2 [+ 1/2 b^2])  +  v Var(z)  -  a mean(z)  +  sum_i c_i sum_t loss_t(z_i) )

with margins z_i = y_i (w.phi(x_i) + b), and mean and variance weighted by the counts c_i: a weight is a number of
repetitions, in every formula. Regression has y_i = 1 and margins less an offset, the target: z_i is then the residual.
Engines and multipliers know y_i f(x_i) alone; what an offset changes stands in `mdlearn.forms.column`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np

from mdlearn.data.features.kernel_features import Features
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import read_only_rows
from mdlearn.data.validation import Data
from mdlearn.forms.column import Column
from mdlearn.forms.losses import Terms
from mdlearn.forms.penalised.coefficient_terms import CoefficientTerm
from mdlearn.forms.proof import Start
from mdlearn.forms.row_terms import RowTerms
from mdlearn.numerics.frozen_init import quick_init
from mdlearn.numerics.lazy_property import kept

__all__ = [
    "BIASES",
    "Column",
    "MarginForm",
    "Point",
    "best_bias_alone",
    "best_bias_shift",
    "check_terms_of_unknown_labels",
    "columns_of_classes",
    "started_point",
    "zero_point",
]

BIASES = ("none", "regularized", "free")

NO_KINDS: frozenset[str] = frozenset()
"""Kinds of loss terms of a form that declares none."""
SIGNS_AT_ONCE = 1 << 16
"""Signs of all classes up to which one call makes them: fourteen calls for 562 rows each take three times as long."""
FLAT_SLOPE = 1e-10
"""Slope along a free intercept, as a share of all weights, that is rounding."""
SORTED_KNOTS, SAMPLED_KNOTS = 4096, 100
"""Kinks along a free intercept up to which all are sorted, and about how many tell the middle of more."""


def check_bounded_in_bias(bias: str, columns: Iterable[Column]) -> None:
    """Raise ValueError where a free bias alone takes the objective of a column down without end."""
    if bias == "free" and any(one.unbounded_in_bias for one in columns):
        raise ValueError(
            "with bias='free' the objective is unbounded below: the mean of the margins (or residuals) outweighs the "
            "loss of large ones; lower its weight, raise that of the loss or use bias='regularized'"
        )


@quick_init
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
    coefficient_terms : tuple of NormTerm and LimitTerm
        Other penalties of the coefficients and constraints on them; of every column, or of all if `joint`.
    penalised : bool
        Whether coefficients are coupled by terms whose multipliers a proof needs: `coefficient_terms`, or a penalty or
        classes as one problem beside kinks, targets or terms that differ from row to row.
    varied : bool
        Whether some column has a variance.
    offsets : bool
        Whether margins have an offset (regression).
    by_row : bool
        Whether weights or thresholds of loss terms differ from row to row.
    kinds : frozenset of str
        Kinds of the declared loss terms that have a weight.
    modulus : float
        Strong convexity along all coefficients, and the intercept where there is one, in the length of what the model's
        decision values are inner products with; 0: none is known.
    """

    features: Features
    columns: tuple[Column, ...]
    bias: str
    ridge: float = 1.0
    unit: float = 1.0
    penalty: float = 0.0
    joint: bool = False
    coefficient_terms: tuple[CoefficientTerm, ...] = ()
    penalised: bool = field(init=False, repr=False)
    varied: bool = field(init=False, repr=False)
    offsets: bool = field(init=False, repr=False)
    by_row: bool = field(init=False, repr=False)
    kinds: frozenset[str] = field(init=False, repr=False)
    modulus: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        varied, offsets, by_row, kinds = False, False, False, NO_KINDS
        for column in self.columns:
            offsets, by_row = offsets or column.offset is not None, by_row or column.by_row is not None
            varied, kinds = varied or column.kappa > 0, kinds | column.kinds
        coupled = (self.joint or self.penalty > 0) and (offsets or by_row or "hinge" in kinds)
        penalised = coupled or bool(self.coefficient_terms)
        modulus = 0.0 if self.bias == "free" else self.ridge
        if isinstance(self.features, LinearFeatures):
            if not self.features.by_rows:  # coefficients of basis rows have another length than what they make
                modulus = 0.0
            elif self.features.ridge is not None:
                modulus *= float(self.features.ridge.min())
        vars(self).update(varied=varied, offsets=offsets, by_row=by_row, kinds=kinds)
        vars(self).update(penalised=penalised, modulus=modulus)
        if self.offsets:
            check_bounded_in_bias(self.bias, self.columns)
        if self.ridge not in (0.0, 1.0) or not 0 < self.unit < np.inf or not 0 <= self.penalty < np.inf:
            raise ValueError(
                "a form needs ridge 0 or 1, a finite unit > 0 and a finite penalty >= 0; got "
                f"{self.ridge!r}, {self.unit!r} and {self.penalty!r}"
            )

    @kept
    def no_coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients 0 of columns and of rows, which stand for those of all classes."""
        return np.broadcast_to(0.0, (self.features.width,)), np.broadcast_to(0.0, (self.features.n_rows,))

    @kept
    def quadratic(self) -> bool:
        """Whether the loss of every column is a sum of squared losses: one linear system solves such a form."""
        return self.kinds <= {"squared"} and all(map(attrgetter("quadratic"), self.columns))

    @property
    def scaled(self) -> bool:
        """Whether the squared norm weighs explicit columns unequally."""
        return isinstance(self.features, LinearFeatures) and self.features.ridge is not None

    def norm(self, coef: np.ndarray, intercept: float, f: np.ndarray | None = None) -> float:
        """|w|^2, with b^2 where the bias is regularized; 0 for an objective without a squared norm.

        `f` are the decision values of coef, where they are known.
        """
        if self.ridge == 0:
            return 0.0
        squares = self.features.squared_norm(coef, f)
        return squares + intercept * intercept if self.bias == "regularized" else squares


@dataclass(eq=False, slots=True)
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


def check_terms_of_unknown_labels(terms: Terms, by_row: RowTerms | None) -> None:
    """Raise TypeError where declared terms do not say what becomes of rows of unknown labels, which have no sign.

    Weights by row may say it: z of such a row is f(x), in the terms that it has.
    """
    if by_row is None or by_row.weights is None:
        raise TypeError(
            "rows of unknown labels have no sign; say by weights in row_terms which terms they have, where z is f(x), "
            "or write a form by codes"
        )
    if terms.variance > 0 or terms.mean > 0:
        raise TypeError(
            "rows of unknown labels have no sign, which mean and variance of the margins need; declare neither, or "
            "write a form by codes"
        )


def columns_of_classes(data: Data, terms: Terms, by_row: RowTerms | None = None) -> tuple[Column, ...]:
    """Columns of a margin form with declared terms: one for two classes or for numbers, else one per class."""
    own = data.counts, terms.variance, terms.mean, terms.loss
    if data.partial:
        check_terms_of_unknown_labels(terms, by_row)
        return tuple(Column(signs, *own, by_row=by_row) for signs in data.signs(unknown=1.0))
    first = Column(data.first_signs(), *own, offset=data.targets, by_row=by_row)
    if data.indicators is not None:
        return first, *(Column(signs, *own, by_row=by_row) for signs in data.signs()[1:])
    codes, classes = data.codes, data.classes.shape[0]
    if classes <= 2:
        return (first,)
    rest = first.against_rest(codes, range(1, classes))
    if classes * codes.shape[0] <= SIGNS_AT_ONCE:
        at_once = read_only_rows(np.where(codes == np.arange(1, classes)[:, None], 1.0, -1.0))
        for column, signs in zip(rest, at_once):
            vars(column)["y"] = signs
    return first, *rest


def zero_point(form: MarginForm, column: Column) -> Point:
    """Point w = 0 of a MarginForm's column; with the best intercept of a free bias where hinges alone choose it."""
    m = column.y.shape[0]
    shift = best_bias_alone(column) if form.bias == "free" else 0.0
    return Point(np.zeros((len(column.terms), m)), np.zeros(m), np.zeros(form.features.width), shift)


def started_point(form: MarginForm, column: Column, start: Start) -> Point:
    """Point of a MarginForm's column at a start, with the multipliers of the variance by its dual coefficients."""
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
    if column.kappa > 0 or column.hard or set(map(attrgetter("kind"), terms)) != {"hinge"}:
        return 0.0
    knots, jumps, slope = [], [], -column.mean * column.label_mean
    for (term, own), kink in zip(column.shares, column.kinks):
        # z_i(shift) = z_i + y_i shift: the hinge is active below (or above) its knot, depending on side * y.
        knots.append(column.y * (kink - z))
        jumps.append(term.weight * own)
        slope -= term.weight * float(own[column.y * term.side > 0].sum())
    at, jump = np.concatenate(knots), np.concatenate(jumps)
    flat = FLAT_SLOPE * float(jump.sum())
    at, jump, slope = _margin_intercept_knots(at, jump, slope, flat)
    order = at.argsort(kind="stable")
    at, slopes = at[order], slope + jump[order].cumsum()
    first = int(slopes.searchsorted(-flat))
    last = int(slopes.searchsorted(flat, side="right"))
    if first >= at.shape[0]:
        return float(at[-1])
    if slope >= -flat:  # the interval has no left end
        return float(at[min(last, at.shape[0] - 1)])
    high = at[min(last, at.shape[0] - 1)]
    return float(0.5 * (at[first] + high)) if last < at.shape[0] else float(at[first])


def best_bias_alone(column: Column) -> float:
    """Free intercept of a MarginForm's column that is best at w = 0: of one hinge, the kink of the heavier sign."""
    if column.kinds == {"hinge"} and len(column.terms) == 1 and column.kappa == 0 and column.mean == 0:
        (term,) = column.terms
        if term.side * term.threshold > 0 and column.level and column.by_row is None and column.total > 0:
            lean = column.label_mean * term.side
            return 0.0 if abs(lean) <= FLAT_SLOPE else math.copysign(term.threshold * term.side, lean)
    return best_bias_shift(column, np.zeros(column.y.shape[0]))


def _margin_intercept_knots(
    at: np.ndarray, jump: np.ndarray, slope: float, flat: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Knots of a MarginForm's free intercept around the one where the slope reaches 0, and the slope before them.

    Half of the knots are left out again and again: sorting them all takes several times as long.
    """
    while at.shape[0] > SORTED_KNOTS:
        below = at <= np.median(at[:: at.shape[0] // SAMPLED_KNOTS])
        there = slope + float(jump[below].sum())
        keep = ~below if there < -flat else below
        if abs(there) <= flat or keep.all() or not keep.any():
            break
        at, jump, slope = at[keep], jump[keep], there if there < -flat else slope
    return at, jump, slope
