"""Margin composite: columns of a MarginForm as one problem, for penalties that couple them, or to take them at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.rows import Selection, steps
from mdlearn.forms.composite import ROUNDING_OF_SLOPES
from mdlearn.forms.joint.composite_point import CompositeEvaluation
from mdlearn.forms.joint.decision_composite import EVERY, FLAT_BIAS_SLOPE, Bend, DecisionComposite
from mdlearn.forms.loss_passes import VALUES_PER_CALL, LossPass
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.numerics.lazy_property import kept

ROUNDING_OF_MOMENTS = 1e-12
"""What sums over many rows may lose, in units of the moments' diagonal."""
LEAST_VARIANCE_SHARE = 1e-8
"""Share of the curvature along the mean row that the variance needs to leave."""
FEW_SIGNS = 0.25
"""Share of the rows up to which there are few sets of signs."""
FARTHEST_MARGIN = 1e100
"""Margin at which slopes are taken for the last ones."""
LOSS_FALLS = "the loss falls by more than the penalty grows; give the penalty a larger weight"


class MarginComposite(DecisionComposite):
    """Joint margin composite: columns of a MarginForm with squared, logistic and given terms and a penalty, as one.

    `form`: with explicit rows; `columns`: some or all of its columns.
    """

    shifts = 40

    def __init__(self, form: MarginForm, columns: Sequence[Column]) -> None:
        assert isinstance(form.features, LinearFeatures)
        counts = [c.counts for c in columns]
        self.alike = all(np.array_equal(c, counts[0]) for c in counts[1:])
        most = counts[0] if self.alike else np.max(counts, axis=0)
        super().__init__(form.features, form.bias, most, len(columns), form.ridge, form.penalty)
        self.form, self.columns, self.unit = form, tuple(columns), form.unit * columns[0].unit
        shape = most.shape[0], len(columns)
        self.each = np.broadcast_to(most[:, None], shape) if self.alike else np.array(counts).T.copy()
        self.kappa = np.array([c.kappa for c in columns])
        self.pull = np.array([c.mean / c.total for c in columns])
        self.totals = np.array([c.total for c in columns])
        self.losses = LossPass(columns)
        self.reach, self.steepest = self.losses.reach, float((self.losses.steepest + self.kappa).max())
        self.at_zero = sum(c.at_zero for c in columns)

    @property
    def floor(self) -> float:
        """The sum of what no loss is below; -inf with a margin mean, which falls without end."""
        return -math.inf if self.pull.any() else float(self.losses.floors @ self.totals)

    @kept
    def signs(self) -> np.ndarray:
        """Signs of all rows and columns, (m, k) int8; made when they are asked for, as w = 0 does not."""
        return np.ascontiguousarray(np.array([c.y for c in self.columns], dtype=np.int8).T)

    @kept
    def means(self) -> np.ndarray:
        """Mean signed row of every column, (p, k): its product with coefficients is the mean margin."""
        return self.adjoint(self.signs * self.each) / self.totals

    def slopes(self, W: np.ndarray, F: np.ndarray, chosen: Selection = EVERY) -> float:
        signs, each, varied = self.signs[chosen], self.each[chosen], bool(self.kappa.any())
        mean = (self.means * W).sum(axis=0) if varied else np.zeros(self.shape[1])
        # What rounding of large margins leaves in their mean would be a slope along all rows alike, and no tangent.
        left = (each * (signs * F - mean)).sum(axis=0) / self.totals if varied and chosen is EVERY else np.zeros(1)
        value = self.losses.slopes(F, signs, each, np.array([self.kappa, self.pull, mean]))
        if left.any():
            F -= signs * (each * (self.kappa * left))
            value -= 0.5 * float((self.kappa * self.totals) @ np.square(left))
        return value

    def partial(self, W: np.ndarray, F: np.ndarray, chosen: np.ndarray, part: AffineRows) -> np.ndarray:
        """Share of some rows, with decision values F, in the gradient of h; the mean margin is that of all rows."""
        signs, each = self.signs[chosen], self.each[chosen]
        pull = self.kappa * (each * (signs * F - (self.means * W).sum(axis=0))).sum(axis=0)
        return super().partial(W, F, chosen, part) - pull * self.means

    def bend(self, W: np.ndarray, F: np.ndarray) -> tuple[Bend, np.ndarray]:
        """Second derivatives of the terms, and those of the variance about the mean."""
        D = F.copy()
        self.losses.bends(D, self.signs, self.each)

        def apply(V: np.ndarray, U: np.ndarray) -> np.ndarray:
            B, mean = np.empty_like(D), (self.means * V).sum(axis=0)
            for part in steps(D.shape[0], VALUES_PER_CALL // D.shape[1]):
                np.multiply(D[part], U[part], out=B[part])
                if self.kappa.any():
                    B[part] += self.kappa * self.each[part] * (U[part] - self.signs[part] * mean)
            return B

        return apply, D.sum(axis=0) / self.totals

    def _balance(self, W: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Move the intercepts, in W and F, as the base class does, and by bisection where Newton steps left a slope.

        With intercepts alone, first over one row per set of signs, which has the weight of all of them.
        """
        few = None if W[:-1].any() else self._gathered()
        if few is not None:
            super(MarginComposite, few)._balance(W, np.repeat(W[-1:], few.signs.shape[0], axis=0))
            F[:] = W[-1]
        A, value, below = super()._balance(W, F)
        return self._enclose(W, F, A) or (A, value, below)

    def _enclose(self, W: np.ndarray, F: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, float, float] | None:
        """Do the same by bisection where Newton steps left a slope; None where they left none.

        Next to large decision values a logistic term is a kink between two floats, and none of them has the slope 0.
        Tangents at both, mixed, have it.
        """
        slope, size = np.abs(A.sum(axis=0)), np.abs(A).sum(axis=0)
        steep = slope > FLAT_BIAS_SLOPE * size
        left = slope.max() > FLAT_BIAS_SLOPE * size.sum() and (slope > ROUNDING_OF_SLOPES * size).any()
        if not left or not np.isfinite(F).all():
            return None
        V, start = W.copy(), W[-1].copy()
        V[-1] = 0.0
        bare = self.scores(V)

        def at(place: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
            V[-1] = np.where(steep, floats_of_integers(place), start)
            B = bare + V[-1]
            value = self.slopes(V, B)
            return B, B.sum(axis=0), value

        farthest = np.abs(start) + 2.0 * (self.reach + np.abs(bare).max(axis=0))
        low, high = ordered_integers(-farthest), ordered_integers(farthest)
        steep &= (at(low)[1] <= 0) & (at(high)[1] > 0)
        while (low + 1 < high)[steep].any():
            middle = (low >> 1) + (high >> 1) + (low & high & 1)
            rises = at(middle)[1] > 0
            low, high = np.where(rises, low, middle), np.where(rises, middle, high)
        if not steep.any():
            return None
        (B, falling, _), (C, rising, _) = at(low), at(high)
        change = np.where(steep, rising - falling, 1.0)
        share = np.where(steep, -falling / change, 0.0)
        nearer = np.where(share <= 0.5, low, high)
        value = at(nearer)[2]
        W[-1], F[:] = V[-1], bare + V[-1]
        lost = np.minimum(share, 1.0 - share) * change * (floats_of_integers(high) - floats_of_integers(low))
        return B + share * (C - B), value, float(lost[steep].sum())

    def _gathered(self) -> MarginComposite | None:
        """Composite of one row per set of signs, the same function of the intercepts; None where the sets are many."""
        packed = np.packbits(self.signs > 0, axis=1)
        sets = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
        _, one, which = np.unique(sets, return_index=True, return_inverse=True)
        if one.shape[0] > FEW_SIGNS * sets.shape[0]:
            return None
        few = copy(self)
        few.__dict__["means"] = self.means  # of all rows
        few.each = np.array([np.bincount(which, c, one.shape[0]) for c in self.each.T]).T.copy()
        few.signs = np.ascontiguousarray(self.signs[one])
        return few

    def intercept_bends(self, W: np.ndarray, F: np.ndarray) -> np.ndarray:
        """Second derivative with respect to the intercepts, (k, k): without a pass through `bend`."""
        D = F.copy()
        self.losses.bends(D, self.signs, self.each)
        return np.diag(D.sum(axis=0) + self.kappa * self.totals * np.maximum(1.0 - self.means[-1] ** 2, 0.0))

    def approximation(self, look: CompositeEvaluation, rows: np.ndarray, column: int) -> np.ndarray:
        """The moments times the mean second derivative, those of the variance about the mean."""
        A = super().approximation(look, rows, column)
        kappa = self.kappa[column]
        if kappa == 0:
            return A
        mean = np.sqrt(self.totals[column]) * self.means[rows, column]
        if self.moments is None:
            return A + kappa * np.maximum(self.squares[rows] - mean**2, 0.0)
        return A + kappa * (self.moments[np.ix_(rows, rows)] - np.multiply.outer(mean, mean))

    @property
    def least_curvature(self) -> MarginCompositeCurvature | None:
        """Lower bound of every column's curvature by variance and ridge; None unless it is known to be positive."""
        # Moments are those of the largest counts of all columns, which would be too large for the others.
        known = self.moments is not None and self.alike
        return self._factored if known and bool((self.kappa > 0).all()) and np.ptp(self.kappa) == 0 else None

    @kept
    def _factored(self) -> MarginCompositeCurvature | None:
        assert self.moments is not None
        kappa = float(self.kappa[0])
        return MarginCompositeCurvature.of(self.moments, kappa, np.sqrt(kappa * self.totals) * self.means, self.ridge)

    @property
    def needs_anchor(self) -> bool:
        """Whether the variance leaves directions without curvature."""
        return super().needs_anchor and self.least_curvature is None

    def bound(self, look: CompositeEvaluation, anchor: CompositeEvaluation | None) -> tuple[float, str]:
        """Or F - 1/2 R' H^-1 R, R a subgradient, if larger: variance and ridge bend the objective by H at least."""
        if not look.value < math.inf:
            return -math.inf, "duality gap"
        tangents = super().bound(look, anchor)
        least = self.least_curvature
        if least is None:
            return tangents
        # Of a gradient that is steeper than it was computed, too.
        off = np.broadcast_to(self.roundings / math.sqrt(self.shape[1]) * look.sizes[:, None], self.shape)
        drops = [max(least.drop(R), 0.0) for R in (self.subgradient(look), off)]
        lower = self.objective(look) - look.below - 0.5 * (math.sqrt(drops[0]) + math.sqrt(drops[1])) ** 2
        return (lower, "residual") if lower > tangents[0] else tangents

    def examine(self, point: Any) -> None:
        """Raise ValueError when, without variance, a point shows a direction that falls without end.

        Far out along coefficients without ridge, every term rises or falls with its last slope, and the objective with
        these, the mean and the penalty.
        """
        D = np.where(self.ridge[:, None] == 0, point.W, 0.0)
        if self.floor > -math.inf or self.kappa.any() or not D.any():
            return
        # Often the intercepts alone have no ridge.
        Z = self.signs * (self.scores(D) if D[: self.rows.shape[1]].any() else D[-1])
        with np.errstate(over="ignore"):
            rise = [-(c.sides @ c.slopes(FARTHEST_MARGIN * np.sign(z))) * z for z, c in zip(Z.T, self.columns)]
            steps = np.array(rise).T - self.each * self.pull * Z
            change, size = float(steps.sum()), float(np.abs(steps).sum())
        penalty = self.penalty(D)
        if change + penalty < -1e-9 * (size + penalty):
            told = "the margin mean outweighs loss and penalty; lower its weight" if self.pull.any() else LOSS_FALLS
            raise ValueError(
                f"the objective is unbounded below on these training rows: {told}, or give variance or squared norm "
                "(of a free bias, too) a positive one"
            )

    def multipliers(self, look: CompositeEvaluation) -> np.ndarray:
        assert look.scores is not None
        columns = self.columns
        first = columns[0]
        if not look.scores.any() and all(_composite_columns_alike(c, first) for c in columns[1:]):
            beta = first.slopes(np.zeros(look.scores.shape[0]))
            return np.broadcast_to(beta, (len(columns), *beta.shape))
        Z = (self.signs * look.scores).T
        return np.array([c.slopes(z) for z, c in zip(Z, columns)])


def _composite_columns_alike(one: Column, other: Column) -> bool:
    """Whether two columns of a joint margin composite differ in their signs alone, which w = 0 does not see."""
    shared = one.terms is other.terms and one.counts is other.counts
    return shared and one.offset is None and other.offset is None


@dataclass(frozen=True, eq=False)
class MarginCompositeCurvature:
    """Least curvature of every column of a margin composite: H_j = A - u_j u_j' with a factor of A = kappa M + ridge.

    `inner`, `shares` (shape (p, k), (k,)): A^-1 u_j, and 1 - u_j'A^-1 u_j less what rounding may have added.
    """

    factor: Any  # of A, as SciPy's `cho_factor` has it
    inner: np.ndarray
    shares: np.ndarray

    @classmethod
    def of(cls, moments: np.ndarray, kappa: float, U: np.ndarray, ridge: np.ndarray) -> MarginCompositeCurvature | None:
        """Factor A; None where A or some H_j has directions without curvature, or nearly so."""
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        A = kappa * moments
        A[np.diag_indices_from(A)] += ridge - ROUNDING_OF_MOMENTS * kappa * np.diagonal(moments)
        try:
            factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return None
        inner = cho_solve(factor, U, check_finite=False)
        shares = 1.0 - (U * inner).sum(axis=0) - ROUNDING_OF_MOMENTS * kappa * (np.diagonal(moments) @ np.square(inner))
        return cls(factor, inner, shares) if float(shares.min()) > LEAST_VARIANCE_SHARE else None

    def drop(self, R: np.ndarray) -> float:
        """sum_j R_j'H_j^-1 R_j."""
        from scipy.linalg import cho_solve

        along = np.square((self.inner * R).sum(axis=0)) / self.shares
        return float((R * cho_solve(self.factor, R, check_finite=False)).sum() + along.sum())


class ColumnMarginComposite(MarginComposite):
    """Margin composite of one column of a MarginForm, no penalty: its points are for that column's certificate."""

    roundings = 0.0

    def __init__(self, form: MarginForm, column: Column) -> None:
        super().__init__(form, (column,))
        if column.start is not None:
            self.begin((column.start,))

    @property
    def least_curvature(self) -> MarginCompositeCurvature | None:
        """None under a ridge: the certificate of a column knows no bound but that of its multipliers."""
        return None if self.form.ridge > 0 else super().least_curvature

    def tilt(self, G: np.ndarray, look: CompositeEvaluation) -> float:
        """Nothing: the certificate balances multipliers."""
        return 0.0

    def point(self, W: np.ndarray, anchor: np.ndarray | None, look: CompositeEvaluation) -> Point:
        """Return multipliers and coefficients."""
        assert look.scores is not None
        (column,) = self.columns
        z, d = column.y * look.scores[:, 0], self.rows.shape[1]
        b = float(W[d, 0]) if self.bias != "none" else 0.0
        return Point(column.slopes(z), column.spread(z), np.ascontiguousarray(W[:d, 0]), b)


def ordered_integers(values: np.ndarray) -> np.ndarray:
    """Integers in the order of the floats, by which a margin composite bisects its intercepts."""
    bits = np.ascontiguousarray(values).view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def floats_of_integers(places: np.ndarray) -> np.ndarray:
    """Floats that ordered integers stand for, of intercepts that a margin composite bisects."""
    return np.where(places < 0, np.iinfo(np.int64).min - places, places).view(np.float64)
