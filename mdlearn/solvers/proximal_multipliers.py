"""Solver "pmm": the proximal method of multipliers, for penalties and constraints beside losses with kinks.

Every hinge and every term of the coefficients is replaced by its envelope around the multipliers so far, which is
smooth; coefficients without a ridge are held near where they are.
Newton steps on the coefficients minimise that. Its slopes are the next multipliers, and the next envelopes are closer
(Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex programming", 1976).
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.forms.losses import CURVED
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.forms.penalised.problem import PenalisedPoint, PenalisedProblem
from mdlearn.numerics import memory
from mdlearn.numerics.cholesky import NotPositiveDefinite, cholesky_shifted, cholesky_solve
from mdlearn.numerics.line_search import line_minimum
from mdlearn.solvers.base import Claim, Report, Solver, Steps
from mdlearn.solvers.systems.operations import STEPS_OF_A_FIT
from mdlearn.solvers.systems.weighted_gram import add_weighted_gram, mirror_lower_weighted_gram

FIRST_SPAN, ENVELOPE_SHRINKAGE = 0.3, 0.2
"""Distance that the first envelopes span, in units of a margin of 1, and how much closer the next ones are."""
FAST_FALL = 0.1
"""Fall of the gap at which envelopes stay as close as they are."""
AT_REST_SHARE = 1e-12
"""Rise of the objective above its least so far, relative to it, up to which coefficients are at rest."""
FIRST_HOLD, HOLD_SHRINKAGE = 1e-3, 0.1
"""Share of the second derivatives by which coefficients without a ridge are held, and how much less they are next."""
LEAST_HOLD = 1e-11
NEWTON_STEPS_PER_ENVELOPE = 40
FINE_DERIVATIVE = 1e-3
"""Share of the first derivative that may be left along a step."""
SOLVED_SLOPE, SOLVED_FALL = 1e-13, 1e-16
"""Slope, relative to the sizes of its terms, and promised fall, in units of the value at 0, where Newton steps end."""
STEPS_PER_STEP = 3.0
"""Newton steps of a usual fit, in units of those of other engines."""
STALLED_ENVELOPES = 40
"""Reports in a row without a smaller gap after which rounding is taken to be reached. The 1-norm SVM on breast_cancer
has more than eight of them before its gap falls again."""


class ProximalMultipliers(Solver):
    """Proximal method of multipliers (``solver="pmm"``)."""

    name: ClassVar[str] = "pmm"
    purpose: ClassVar[str] = (
        "penalties and linear constraints on coefficients beside losses of finite weight, hinges too; explicit rows"
    )
    kinds: ClassVar[frozenset[str]] = frozenset({"hinge", "squared"}) | CURVED
    claims_only: ClassVar[str] = "penalised"
    draws: ClassVar[bool] = False
    needs_ridge: ClassVar[bool] = False
    offsets: ClassVar[bool] = True
    by_row: ClassVar[bool] = True

    def refusal(self, form: Any) -> str | None:
        """Return what the form has beside explicit rows, or lacks of a penalty that needs multipliers."""
        if not isinstance(form, MarginForm):
            return "it needs an objective declared by margins; this one brings its own gradient"
        if not form.penalised:
            return "it is for penalties, constraints on coefficients and classes as one problem that others cannot take"
        if not isinstance(form.features, LinearFeatures):
            return "its terms of the coefficients need a weight vector, which only kernel='linear' has"
        strange = sorted(form.kinds - self.kinds)
        return f"it takes no loss of the kind {strange[0]!r}" if strange else None

    def claims(self, form: Any) -> Claim | None:
        """Dense second derivatives of all columns, and their factor."""
        if not isinstance(form, MarginForm) or not form.penalised or self.refusal(form) is not None:
            return None
        d, k = float(form.features.width), len(form.columns)
        step = k * form.features.n_rows * d * d + (k * d) ** 3
        told = "terms of the coefficients beside kinks: multipliers and Newton steps"
        return Claim(STEPS_PER_STEP * STEPS_OF_A_FIT * step, told)

    def check_memory(self, form: MarginForm, at_once: int = 1) -> None:
        """Ask for a few matrices of the size of the coefficients."""
        n = (form.features.width + 1) * (len(form.columns) if form.joint else 1)
        memory.require(at_once * 32.0 * n * n, f"matrices of {n} coefficients", "use fewer columns", at_once)

    def iterate(self, form: Any, part: Any, shared: Any, options: dict[str, Any], rng: np.random.Generator) -> Steps:
        """Yield a report per envelope."""
        yield None
        yield from Envelopes(part).reports()


class ProximalLossEnvelope:
    """Loss of one column in the proximal method of multipliers: its hinges by envelopes around multipliers."""

    def __init__(self, column: Column, centre: np.ndarray) -> None:
        self.column, self.centre = column, centre
        self.curved = np.array([term.kind in CURVED for term in column.terms], dtype=bool)
        caps = column.caps
        boxed = np.isfinite(caps) & (caps > 0)
        self.unit = FIRST_SPAN / float(np.median(caps[boxed])) if boxed.any() else FIRST_SPAN
        self.softness = 0.0 if boxed.any() or not caps.size else float(np.median(column.softness))

    def multipliers(self, z: np.ndarray, width: float) -> np.ndarray:
        """Slopes of the envelopes at scores z, shape (T, m)."""
        c, delta = self.column, self.unit * width
        ahead = delta * self.centre + c.sides[:, None] * (c.kinks - z)
        beta = np.clip(ahead / (delta + c.softness), 0.0, c.caps)
        if self.curved.any():
            beta[self.curved] = c.slopes(z)[self.curved]
        return beta

    def bends(self, z: np.ndarray, beta: np.ndarray, width: float) -> np.ndarray:
        """Second derivatives at scores z with these slopes, shape (m,)."""
        c = self.column
        inside = (beta > 0) & (beta < c.caps)
        found = np.where(inside, 1.0 / (self.unit * width + c.softness), 0.0)
        if self.curved.any():
            found[self.curved] = c.curvatures(z)[self.curved]
        return found.sum(axis=0)


class Envelopes:
    """State of the proximal method of multipliers: coefficients, multipliers, and how close the envelopes are."""

    def __init__(self, problem: PenalisedProblem) -> None:
        self.problem, self.blocks = problem, problem.blocks
        first = problem.first or problem.start()
        self.w, self.s = first.W.ravel().copy(), first.s.copy()
        self.losses = [ProximalLossEnvelope(column, first.beta[j]) for j, column in enumerate(problem.columns)]
        self.width, self.hold = 1.0, FIRST_HOLD
        slope = float(np.abs(problem.affine.adjoint(self._alphas(self.w)[0])).max(initial=0.0))
        # Coefficients of this length give usual rows margins of 1.
        squares = problem.affine.column_squares(np.ones(problem.features.n_rows))
        length = math.sqrt(problem.features.n_rows / max(float(squares.sum()), 1e-300))
        self.units = self.blocks.units(FIRST_SPAN * length, slope or 1.0)
        bends = np.array([1.0 / (loss.unit + loss.softness) + loss.column.kappa for loss in self.losses])
        # Columns of zeros are held, too.
        self.bare = np.where(problem.ridge == 0, np.multiply.outer(squares + 1e-12 * squares.max(), bends).ravel(), 0.0)

    def _alphas(self, w: np.ndarray) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
        """Signed multipliers of the rows, those of the losses, and scores."""
        Z = self.problem.scores(w.reshape(self.problem.shape))
        beta = [loss.multipliers(Z[:, j], self.width) for j, loss in enumerate(self.losses)]
        return self.problem.alphas(np.array(beta), Z), beta, Z

    def reports(self) -> Steps:
        """Yield a report per envelope; end when the gap falls no more."""
        problem, best, last, least, stalled = self.problem, np.inf, np.inf, np.inf, 0
        while stalled < STALLED_ENVELOPES:
            try:
                solved = yield from self._minimise()
            except NotPositiveDefinite:
                return
            _, beta, Z = self._alphas(self.w)
            s = self._penalty_multipliers(self.w)
            point = PenalisedPoint(self.w.reshape(problem.shape).copy(), np.array(beta), s)
            lower = problem.lower(point, Z)
            _, objective = problem.settled(point, lower)
            yield Report.estimated(objective, lower, point)
            gap = problem.gap_of(problem.unit * objective, problem.unit * lower)
            stalled, fallen, risen = 0 if gap < 0.9 * best else stalled + 1, gap < FAST_FALL * last, gap > last
            best, last = min(best, gap), gap
            if solved:
                self.s = s
                for loss, found in zip(self.losses, beta):
                    loss.centre = found
            # Multipliers of close envelopes have the rounding of margins, divided by the width.
            if not solved or (risen and objective <= least + AT_REST_SHARE * abs(least)):
                self.width = min(self.width / ENVELOPE_SHRINKAGE, 1.0)
                self.hold = min(self.hold / HOLD_SHRINKAGE, FIRST_HOLD)
            elif not fallen:
                self.width, self.hold = ENVELOPE_SHRINKAGE * self.width, max(HOLD_SHRINKAGE * self.hold, LEAST_HOLD)
            least = min(least, objective)

    @property
    def hold_weights(self) -> np.ndarray:
        """Weights by which coefficients without a ridge are held."""
        return self.hold * self.bare

    def _penalty_multipliers(self, w: np.ndarray) -> np.ndarray:
        width = self.units * self.width
        return self.blocks.multipliers(self.s + self.blocks.dot(w) / width, width)

    def _second(self, beta: list[np.ndarray], Z: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Second derivative of the envelopes and the ridge, (n, n)."""
        problem, k = self.problem, self.problem.shape[1]
        rows, bias = problem.affine.rows, problem.affine.constant
        width = self.units * self.width
        H = self.blocks.second(self.s + self.blocks.dot(self.w) / width, width)
        for j, loss in enumerate(self.losses):
            column = loss.column
            D = loss.bends(Z[:, j], beta[j], self.width) + column.kappa * column.counts
            M = np.zeros((problem.shape[0], problem.shape[0]))
            yield from add_weighted_gram(rows, bias, D, M)
            mirror_lower_weighted_gram(M)
            if column.kappa > 0:
                mean = problem.affine.adjoint(column.counts * column.y)
                M -= np.multiply.outer(mean, (column.kappa / column.total) * mean)
            H[j::k, j::k] += M
        H[np.diag_indices_from(H)] += problem.ridge
        return H

    def _minimise(self) -> Generator[None, None, bool]:
        """Newton steps on the envelopes around the multipliers, and coefficients without a ridge; say if they ended."""
        problem, anchor = self.problem, self.w.copy()
        alpha, beta, Z = self._alphas(self.w)
        for _ in range(NEWTON_STEPS_PER_ENVELOPE):
            H = yield from self._second(beta, Z)
            H[np.diag_indices_from(H)] += self.hold_weights
            slope, size = self._slope(self.w, anchor, alpha)
            if (np.abs(slope) <= SOLVED_SLOPE * size).all():
                return True
            L = yield from cholesky_shifted(H)
            step = -cholesky_solve(L, slope)
            start = float(slope @ step)
            if not start < 0 or not np.isfinite(step).all():
                return True
            length = line_minimum(start, self._along(step, anchor, start, Z), FINE_DERIVATIVE)
            if not np.isfinite(length):
                return False
            moved = self.w + length * step
            if np.array_equal(moved, self.w):
                return True
            self.w = moved
            alpha, beta, Z = self._alphas(self.w)
            yield
            if -start <= SOLVED_FALL * abs(problem.at_zero):
                return True
        return False

    def _slope(self, w: np.ndarray, anchor: np.ndarray, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slope of what Newton steps minimise, and the size of its terms."""
        pull, s = self.problem.affine.adjoint(alpha).ravel(), self._penalty_multipliers(w)
        parts = self.problem.ridge * w, -pull, self.blocks.adjoint(s), self.hold_weights * (w - anchor)
        size = np.abs(parts[0]) + np.linalg.norm(alpha) * self._lengths + self.blocks.sizes.T @ np.abs(s)
        return np.asarray(sum(parts)), size

    @property
    def _lengths(self) -> np.ndarray:
        problem = self.problem
        own = problem.features.lengths
        own = np.append(own, np.sqrt(problem.features.n_rows)) if problem.affine.constant else own
        return np.repeat(own, problem.shape[1])

    def _along(self, step: np.ndarray, anchor: np.ndarray, start: float, Z: np.ndarray) -> Any:
        """Rise of the slope along a step and second derivative there, for the line search."""
        problem, blocks, width = self.problem, self.blocks, self.units * self.width
        U, V, v = problem.scores(step.reshape(problem.shape)), blocks.dot(step), blocks.dot(self.w)
        first = float(((problem.ridge * self.w) + self.hold_weights * (self.w - anchor)) @ step)
        square = float((problem.ridge + self.hold_weights) @ np.square(step))

        def along(t: float) -> tuple[float, float]:
            slope, bend = first + t * square, square
            for j, loss in enumerate(self.losses):
                column, z, u = loss.column, Z[:, j] + t * U[:, j], U[:, j]
                beta = loss.multipliers(z, self.width)
                slope -= float((column.y * column.alpha(beta, column.spread(z))) @ u)
                D = loss.bends(z, beta, self.width)
                bend += float(D @ np.square(u)) - float(u @ column.spread(u))
            a = self.s + (v + t * V) / width
            s = blocks.multipliers(a, width)
            slope += float(s @ V)
            ahead = blocks.multipliers(a + 1e-7 * V / width, width)
            bend += max(float((ahead - s) @ V), 0.0) / 1e-7
            return slope - start, bend

        return along
