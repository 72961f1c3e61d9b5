"""Penalised problem: columns of a MarginForm with coefficient terms, and losses of any finite weight, hinges included.

::

    minimise  unit * ( ridge/2 |w|^2 + sum over columns (v Var(z) - a mean(z) + losses) + P(w) )

Multipliers beta of the losses and s of the coefficient terms are tangents of both: with g = -X'alpha(beta),

    bound(beta) - P*(s) + min_w [ ridge/2 |w|^2 + <g + K's, w> ]

is a lower bound. Coefficients without a ridge need g + K's = 0: s is moved there, and where it is too long then, all
multipliers are shortened, which mixes the tangent with what losses are nowhere below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.data.features.kernel_rounding import ROUNDINGS_HERE, UNIT
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.affine import AffineRows, affine_coefficients
from mdlearn.forms.base import Problem, array_fault
from mdlearn.forms.certificates.rounding import to_type
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.forms.penalised.blocks import BARE_SLOPE_ROUNDING, CoefficientBlocks
from mdlearn.forms.proof import Certificate, Solution, Start, judge
from mdlearn.numerics.errstate import overflow_errstate
from mdlearn.numerics.lazy_property import kept

STATIONARY_SLOPE = 1e-14
"""Slope of a coefficient without a ridge, relative to the sizes of its sum, at which multipliers stay as they are."""
MOST_FREE_MULTIPLIERS = 2000
"""Multipliers of one column between their bounds up to which a penalised problem solves for them."""
STATIONARY_MOVES = 5
"""Most moves towards such slopes: in each some multipliers meet their bounds."""


@dataclass(frozen=True, eq=False)
class PenalisedPoint:
    """Point of a penalised problem: coefficients, multipliers of the losses and of the coefficient terms."""

    W: np.ndarray  # shape (p, k): with a bias, the last row holds the intercepts
    beta: np.ndarray  # shape (k, T, m)
    s: np.ndarray  # shape (r,)


class PenalisedProblem(Problem):
    """Problem of columns with coefficient terms.

    `form`: with explicit rows; `columns`: all of its columns, or one.
    """

    def __init__(self, form: MarginForm, columns: Sequence[Column]) -> None:
        assert isinstance(form.features, LinearFeatures)
        features, last = form.features, form.bias != "none"
        self.form, self.columns, self.features = form, tuple(columns), features
        self.unit = form.unit * columns[0].unit
        self.affine = AffineRows(features.rows, last)
        self.shape = features.width + last, len(columns)
        weights = np.ones(features.width) if features.ridge is None else features.ridge
        own = [] if not last else [1.0 if form.bias == "regularized" else 0.0]
        self.ridge = np.repeat(form.ridge * np.append(weights, own), self.shape[1])
        self.penalty = np.full(features.width + (form.bias == "regularized"), form.penalty)
        self.at_zero = sum(column.at_zero for column in columns)
        self.first: PenalisedPoint | None = None

    @property
    def part(self) -> PenalisedProblem:
        """Object that engines work on: this one. A reference that is kept would be one in a circle, which holds X."""
        return self

    @kept
    def blocks(self) -> CoefficientBlocks:
        """The coefficient terms."""
        return CoefficientBlocks(self.form.coefficient_terms, self.penalty, self.shape, self.features.width)

    def start(self) -> PenalisedPoint:
        return self.point_at(np.zeros(self.shape))

    def point_at(self, W: np.ndarray) -> PenalisedPoint:
        """Return coefficients with multipliers 0."""
        beta = np.zeros((self.shape[1], *self.columns[0].caps.shape))
        return PenalisedPoint(W, beta, np.zeros(self.blocks.K.shape[0]))

    def begin(self, starts: Sequence[Start]) -> None:
        """Keep coefficients and multipliers of the starts, one for each column."""
        last = self.form.bias != "none"
        W = np.array([np.append(one.coef, one.intercept) if last else one.coef for one in starts]).T
        if W.shape == self.shape:
            pairs, point = list(zip((one.beta for one in starts), self.columns)), self.point_at(W)
            fit = all(beta.shape == column.caps.shape for beta, column in pairs)
            beta = np.array([np.clip(beta, 0.0, column.caps) for beta, column in pairs]) if fit else point.beta
            self.first = PenalisedPoint(W, beta, point.s)

    def starting_point(self) -> PenalisedPoint | None:
        return self.first

    def bounds_at_start(self) -> tuple[float, float]:
        """Return the objective at w = 0, infinite where that is beyond the limits, and what multipliers 0 say."""
        inside = not self.form.coefficient_terms or self.blocks.meets_limits(np.zeros(self.ridge.shape[0]), 0.0)
        return self.at_zero if inside else math.inf, -math.inf if self._pulled else self._floor

    @property
    def _pulled(self) -> bool:
        return any(column.pulled for column in self.columns)

    @property
    def _floor(self) -> float:
        """Value that the losses are nowhere below; -inf where a mean pulls at the margins."""
        return sum(column.bound_at_zero for column in self.columns)

    def scores(self, W: np.ndarray) -> np.ndarray:
        """y f at coefficients, shape (m, k)."""
        F = self.affine.dot(W)
        for j, column in enumerate(self.columns):
            F[:, j] *= column.y
        return F

    def objective(self, W: np.ndarray, Z: np.ndarray | None = None, dtype: Any = np.float64) -> float:
        """Value at coefficients, in units of the form; infinite beyond the limits."""
        Z = self.scores(W) if Z is None else Z
        w = W.ravel()
        if not self.blocks.meets_limits(w, float(np.finfo(dtype).eps)):
            return math.inf
        losses = sum(column.distribution_value(Z[:, j]) for j, column in enumerate(self.columns))
        return losses + 0.5 * float(self.ridge @ np.square(w)) + self.blocks.value(self.blocks.dot(w))

    def settled(self, point: PenalisedPoint, lower: float = -math.inf) -> tuple[np.ndarray, float]:
        """Return coefficients that keep the limits and have zeros where multipliers say so, and the objective.

        Zeros may cost half of what is left to a lower bound.
        """
        dtype = self.features.dtype
        found = self.blocks.settled(point.W.ravel(), point.s), self.blocks.repaired(point.W.ravel().copy())
        held = [to_type(w.reshape(self.shape), dtype).astype(np.float64) for w in found]
        values = [self.objective(W, dtype=dtype) for W in held]
        worth = max(WORTH_OF_ZEROS * abs(values[1]), 0.5 * (values[1] - lower) if lower > -math.inf else 0.0)
        better = 0 if values[0] <= values[1] + worth else 1
        return held[better], values[better]

    def alphas(self, beta: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Signed multipliers of the rows, (m, k), at scores Z: minus the slopes of all but ridge and terms of w."""
        columns = enumerate(self.columns)
        return np.array([column.alpha(beta[j], column.spread(Z[:, j])) for j, column in columns]).T

    def lower(self, point: PenalisedPoint, Z: np.ndarray) -> float:
        """Return the lower bound of multipliers, those of the variance by scores Z; in units of the form.

        -inf where slopes that are to be 0 are more than rounding: no size of these coefficients is known.
        """
        blocks, bare, share = self.blocks, self.ridge == 0, 1.0
        beta, s = self._balanced(point.beta, Z), blocks.feasible(point.s)
        held = bare & (np.asarray(blocks.sizes.sum(axis=0)).ravel() > 0)
        if held.any():
            beta, s = self._stationary(beta, s, Z, bare)
        alphas = self.alphas(beta, Z)
        value = sum(c.bound(beta[j], c.spread(Z[:, j])) for j, c in enumerate(self.columns))
        g = -self.affine.adjoint(alphas).ravel()
        if held.any() and math.isfinite(self._floor) and not self._pulled:
            missing = -(g + blocks.adjoint(s))[held]
            exact = s + np.linalg.lstsq(blocks.K[:, np.flatnonzero(held)].T.toarray(), missing, rcond=None)[0]
            excess = blocks.excess(exact)
            if math.isfinite(excess):
                s, share = exact, min(1.0, 1.0 / excess if excess > 1.0 else 1.0)
        s = share * s
        q = share * g + blocks.adjoint(s)
        if (np.abs(q) > BARE_SLOPE_ROUNDING * self._slope_sizes(alphas, s))[bare].any():
            return -math.inf
        mixed = share * value + ((1.0 - share) * self._floor if share < 1.0 else 0.0)
        conjugate, squares = blocks.conjugate(s), 0.5 * float((q[~bare] ** 2 / self.ridge[~bare]).sum())
        sizes = abs(mixed) + abs(conjugate) + squares + float((beta * np.abs([c.kinks for c in self.columns])).sum())
        lower = mixed - conjugate - squares - ROUNDINGS_HERE * UNIT * sizes
        # What rounding left of such slopes counts as often as coefficients differ from 0.
        return lower - 2.0 * float(np.abs(q[bare]) @ np.abs(point.W.ravel()[bare]))

    def _balanced(self, beta: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Multipliers whose signed sums are 0 where the bias is free."""
        if self.form.bias != "free":
            return beta
        return np.array([balanced_multipliers(c, beta[j], c.spread(Z[:, j])) for j, c in enumerate(self.columns)])

    def _slope_sizes(self, alphas: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Sizes of the sums that slopes of all coefficients are, (p * k,): what rounding is measured by.

        A multiplier that the slopes of some coefficients give has their rounding in those of all that it is of.
        """
        blocks, lengths = self.blocks, self.features.lengths
        if self.form.bias != "none":
            lengths = affine_coefficients(lengths, math.sqrt(self.features.n_rows))
        own = np.multiply.outer(lengths, np.sqrt(np.square(alphas).sum(axis=0))).ravel()
        own = own + blocks.sizes.T @ np.abs(s)
        beside = blocks.sizes > 0
        return np.asarray(own + beside.T @ (beside @ own))

    def _stationary(
        self, beta: np.ndarray, s: np.ndarray, Z: np.ndarray, bare: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Move multipliers that are between their bounds to where coefficients without a ridge have slope 0.

        What rounding of margins left in them would else count as often as their caps are larger than the penalty. Some
        meet their bounds on the way: the next move is one of the others.
        """
        blocks, at = self.blocks, np.flatnonzero(bare)
        for _ in range(STATIONARY_MOVES):
            alphas = self.alphas(beta, Z)
            q = -self.affine.adjoint(alphas).ravel() + blocks.adjoint(s)
            if (np.abs(q[at]) <= STATIONARY_SLOPE * self._slope_sizes(alphas, s)[at]).all():
                break
            moved = self._moved_to_rest(beta, s, q, at)
            if moved is None:
                break
            beta, s = moved
        return self._balanced(beta, Z), s

    def _moved_to_rest(
        self, beta: np.ndarray, s: np.ndarray, q: np.ndarray, at: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Move multipliers that are between their bounds such that slopes q are 0 at some coefficients, within bounds.

        None where there are none of them, or too many.
        """
        blocks, (p, k), own = self.blocks, self.shape, np.flatnonzero(self.blocks.free(s))
        pieces, parts = [blocks.K[own][:, at].T.toarray()], []
        for j, column in enumerate(self.columns):
            terms, rows = np.nonzero((beta[j] > 0) & (beta[j] < column.caps))
            if rows.shape[0] > MOST_FREE_MULTIPLIERS:
                return None
            block = np.zeros((p, k, rows.shape[0]))
            block[:, j] = -(self.affine.block(rows) * (column.sides[terms] * column.y[rows])[:, None]).T
            pieces.append(block.reshape(p * k, -1)[at])
            parts.append((j, terms, rows))
        matrix = np.hstack(pieces)
        if not matrix.shape[1]:
            return None
        move = np.linalg.lstsq(matrix, -q[at], rcond=None)[0]
        beta, s = beta.copy(), s.copy()
        s[own] += move[: own.shape[0]]
        start = own.shape[0]
        for j, terms, rows in parts:
            there = beta[j, terms, rows] + move[start : start + rows.shape[0]]
            beta[j, terms, rows] = np.clip(there, 0.0, self.columns[j].caps[terms, rows])
            start += rows.shape[0]
        return beta, blocks.feasible(s)

    def stored_objective(self, point: PenalisedPoint, objective: float) -> float:
        """Objective as the certificate states it."""
        with overflow_errstate():
            return objective if self.features.dtype == np.float64 else self.settled(point)[1]

    def certify(self, point: PenalisedPoint, tol: float) -> Solution:
        """Certify the coefficients of a point, within their limits, and its multipliers."""
        with overflow_errstate():
            lower = self.lower(point, self.scores(point.W))
            W, objective = self.settled(point, lower)
            certificate = self._judged(objective, lower, tol)
            exact = self.objective(point.W) if self.features.dtype != np.float64 else objective
            at_limit = not self._judged(objective, exact, tol).converged
        d = self.features.width
        coef = np.ascontiguousarray(W[:d].T)
        intercept = W[d].copy() if self.form.bias != "none" else np.zeros(self.shape[1])
        norm = np.sqrt([self.features.squared_norm(w) for w in coef])
        return Solution(coef, intercept, None, point.beta, norm, certificate, at_limit)

    @property
    def modulus(self) -> float:
        return self.unit * self.form.modulus

    def _judged(self, objective: float, lower: float, tol: float) -> Certificate:
        return judge(self.unit * objective, self.unit * lower, self.unit * self.at_zero, False, tol, self.modulus)

    def conclude(self, solution: Solution) -> None:
        """Raise ValueError where the limits contradict each other, by a linear program."""
        if not solution.certificate.objective < math.inf:
            self.blocks.check_consistent()

    def fault(self, point: Any) -> str | None:
        if not isinstance(point, PenalisedPoint):
            return f"it yielded {type(point).__name__} as a point, a PenalisedPoint is needed"
        shapes = (self.shape[1], *self.columns[0].caps.shape), self.blocks.K.shape[:1]
        beta, s = (array_fault(name, getattr(point, name), shape) for name, shape in zip(("beta", "s"), shapes))
        return array_fault("W", point.W, self.shape) or beta or s


WORTH_OF_ZEROS = 1e-12
"""Share of the objective that a penalised problem always gives for coefficients that are exactly 0."""


def balanced_multipliers(column: Column, beta: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """Shorten a penalised problem's multipliers such that their signed sum is 0, as a free bias needs it."""
    over = float(column.alpha(beta, sigma).sum())
    parts = column.sides[:, None] * column.y * beta
    towards = parts * over > 0
    whole = float(np.abs(parts[towards]).sum())
    if not over or whole < abs(over):
        return beta
    return np.where(towards, beta * (1.0 - abs(over) / whole), beta)
