"""Matrix-free augmented Lagrangian for sparse rows: proximal steps on the dual, each by semismooth Newton.

Coordinate steps crawl where rows nearly repeat. Here every hinge is replaced by its envelope around the multipliers so
far: a smooth, strongly convex problem in (w, b) whose Newton systems touch only the rows on a slope. Its solution gives
the next multipliers. Systems are solved by conjugate gradients, preconditioned by the rows on a slope (a matrix of
their number) and the diagonal of the rest, at two passes over the rows per iteration.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.forms.certificates.primal import primal
from mdlearn.forms.certificates.representer import FACTORED_COLUMNS
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.numerics import cholesky
from mdlearn.numerics.conjugate_gradients import Map, conjugate_gradients
from mdlearn.numerics.line_search import SLOPE_ROUNDING
from mdlearn.solvers.base import Report, Reports
from mdlearn.solvers.common.augmented_lagrangian import AugmentedLagrangianLoss
from mdlearn.solvers.common.primal_dual import report_of

DIRECT = 3000
"""Rows on a slope up to which the preconditioner factors a matrix of their number."""
ITERATIONS = 500
"""Most iterations of conjugate gradients for one Newton step."""
SOLVED_SYSTEM = 1e-4
"""Share of its first square that the preconditioned residual may have at the end of a Newton step."""
FIRST_WIDTH, FIRST_MARGIN_SPAN = 1e-2, 0.1
"""First width of the envelope: in units of |x|^2, and such that a slope spans that much margin, whichever is wider."""
WIDTH_SHRINKAGE, NARROWEST = 0.3, 1e-6
"""Shrinkage of the width from one proximal step to the next, and its least in units of the narrower first width."""
SOLVED_GRADIENT_SHARE = 0.1
"""Share of the gap that the squared gradient may have when the next proximal step begins."""
COEFFICIENTS_GAP = 1e-4
"""Gap, relative to the objective, from which the coefficients that multipliers stand for are looked at too."""
INTERCEPT_HOLD = 1e-2
"""Weight of (b - its last value)^2 / 2 for a free intercept: a proximal step too, since nothing else may hold it."""
NEWTON_STEPS_PER_PROXIMAL_STEP = 50
"""Most Newton steps for one proximal step."""
STALL_STEPS = 6
"""Proximal steps without a smaller gap after which rounding is taken to be reached."""


class MatrixFreeAugmentedLagrangian(AugmentedLagrangianLoss):
    """Matrix-free multiplier method of a column: element (w, b if there is a bias), margins and multipliers."""

    def __init__(self, form: MarginForm, column: Column, beta: np.ndarray, coef: np.ndarray, intercept: float) -> None:
        assert isinstance(form.features, LinearFeatures)
        self.form, self.rows = form, form.features.rows
        if not primal(form, column, coef, intercept)[0] < column.at_zero:
            coef, intercept = np.zeros_like(coef), 0.0  # sweeps with a free bias can diverge on rows of unequal size
        self.bias = form.bias != "none"
        self.element = np.append(coef, intercept) if self.bias else coef.copy()
        self.ridge, self.anchor = np.ones_like(self.element), np.zeros_like(self.element)
        if form.bias == "free":
            self.ridge[-1], self.anchor[-1] = INTERCEPT_HOLD, intercept
        square = max(float(self.rows.squares().mean()), 1e-300)
        widest = float(column.caps[np.isfinite(column.caps)].max(initial=0.0))
        reach = FIRST_MARGIN_SPAN / widest if widest > 0 else FIRST_WIDTH * square
        super().__init__(column, beta.copy(), max(FIRST_WIDTH * square, reach))
        self.narrowest = NARROWEST * min(square, reach)
        self.passes = 0  # over the rows
        self.z = column.y * self.decision(self.element)
        self.heavy = self._diagonal(column.kappa * column.counts)
        self.heavy += self.ridge

    def decision(self, element: np.ndarray) -> np.ndarray:
        """f on the training rows."""
        self.passes += 1
        return self.rows.dot(element[:-1]) + element[-1] if self.bias else self.rows.dot(element)

    def adjoint(self, v: np.ndarray) -> np.ndarray:
        """Sum of v_i (x_i, 1)."""
        self.passes += 1
        w = self.rows.adjoint(v)
        return np.append(w, v.sum()) if self.bias else w

    def _diagonal(self, weights: np.ndarray) -> np.ndarray:
        """Diagonal of X' diag(weights) X."""
        w = self.rows.column_squares(weights)
        return np.append(w, weights.sum()) if self.bias else w

    def gradient(self, beta: np.ndarray) -> np.ndarray:
        """Gradient of the smoothed objective."""
        c = self.column
        pull = c.y * (c.sides @ beta + c.spread(self.z) + c.pull)
        return self.ridge * (self.element - self.anchor) - self.adjoint(pull)

    def direction(self, beta: np.ndarray, g: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Newton direction."""
        c, D = self.column, self.bends(beta)

        def times(d: np.ndarray) -> np.ndarray:
            f = self.decision(d)
            return self.ridge * d + self.adjoint(D * f - c.y * c.spread(c.y * f))

        precondition = yield from self._preconditioner(np.flatnonzero(D), D)
        return (yield from conjugate_gradients(times, precondition, -g, 0.0, SOLVED_SYSTEM, ITERATIONS))

    def _preconditioner(self, J: np.ndarray, D: np.ndarray) -> Generator[None, None, Map]:
        """Approximate inverse of the Newton matrix: exact in the rows on a slope, diagonal in the variance."""
        heavy = self.heavy
        if J.shape[0] > DIRECT:
            diagonal = heavy + self._diagonal(D)
            return lambda r: r / diagonal
        X = self.rows.take(J)
        last = 1.0 / heavy[-1] if self.bias else 0.0
        inner = heavy[: X.shape[1]]
        G = (X.scaled(1.0 / inner) if (inner != 1.0).any() else X).inner(X) + last
        yield
        G[np.diag_indices(J.shape[0])] += 1.0 / D[J]
        L = yield from cholesky.cholesky_shifted(G)

        def precondition(r: np.ndarray) -> np.ndarray:
            h = r / heavy
            f = X.dot(h[: X.shape[1]])
            if self.bias:
                f += h[-1]
            v = cholesky.cholesky_solve(L, f)
            h[: X.shape[1]] -= X.adjoint(v) / inner
            if self.bias:
                h[-1] -= last * float(v.sum())
            return h

        return precondition

    def length(self, p: np.ndarray, dz: np.ndarray) -> float:
        """Exact minimiser of the smoothed objective along p, with margins dz; 0 where rounding leaves no way down."""
        c, beta = self.column, self.multipliers(self.z)
        pull = c.sides @ beta + c.pull + c.spread(self.z)
        start = float(p @ (self.ridge * (self.element - self.anchor))) - float(dz @ pull)
        bend = float(p @ (self.ridge * p)) - float(dz @ c.spread(dz))
        t = self.step_length(self.z, beta, dz, start, bend, SLOPE_ROUNDING)
        return t if np.isfinite(t) else 0.0

    def run(self) -> Reports:
        """Yield a report per Newton step; ends where proximal steps no longer lower the gap."""
        best, stalled = np.inf, 0
        while stalled < STALL_STEPS:
            lowest, size, same, beta = np.inf, np.inf, False, self.multipliers(self.z)
            for _ in range(NEWTON_STEPS_PER_PROXIMAL_STEP):
                report = self._report(beta)
                yield report
                gap = max(report.objective - report.lower_bound, 0.0)
                lowest = min(lowest, gap)
                g = self.gradient(beta)
                size, last = float(g @ (g / self.ridge)), size
                if (size <= SOLVED_GRADIENT_SHARE * gap and self._agrees(g, report)) or (same and size > 0.5 * last):
                    break
                p = yield from self.direction(beta, g)
                dz = self.column.y * self.decision(p)
                t = self.length(p, dz)
                self.element, self.z = self.element + t * p, self.z + t * dz
                beta, before = self.multipliers(self.z), beta
                same = np.array_equal(self.inside(beta), self.inside(before))
            # While the envelopes are wide, steps are short by themselves.
            stalled = stalled + 1 if lowest >= 0.9 * best and self.width <= self.narrowest else 0
            best = min(best, lowest)
            self.centre = beta
            self.width = max(WIDTH_SHRINKAGE * self.width, self.narrowest)
            if self.form.bias == "free":
                self.anchor[-1] = self.element[-1]

    def _agrees(self, g: np.ndarray, report: Report) -> bool:
        """Whether coefficients that the multipliers stand for are worth the element within a small gap.

        They are the element less `g`. Over many columns they are the answer, and where rows are long, a small `g`
        moves margins by much.
        """
        gap = report.objective - report.lower_bound
        if self.form.features.width <= FACTORED_COLUMNS or gap > COEFFICIENTS_GAP * abs(report.objective):
            return True
        self.passes += 1
        coef, intercept = self._coefficients()
        shift = g[:-1] if self.bias else g
        loss = primal(self.form, self.column, coef - shift, intercept)[0] - report.objective
        return loss <= gap

    def _coefficients(self) -> tuple[np.ndarray, float]:
        return (self.element[:-1], float(self.element[-1])) if self.bias else (self.element, 0.0)

    def _report(self, beta: np.ndarray) -> Report:
        coef, intercept = self._coefficients()
        point = Point(beta, self.column.spread(self.z), coef, intercept)
        return report_of(self.form, self.column, point, self.z)
