"""Descent of the hybrid solver: dual sweeps in compiled code, and what tells that Newton steps would be cheaper."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import numpy as np

from mdlearn._solvers import dual_descent as kernels
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows, Rows
from mdlearn.forms.proof import GAP_SHARE_AT_ZERO
from mdlearn.solvers.hybrid.face import FaceJudge, FaceStep, SweepPace, VariedFaceStep, step_over_few_dense_rows
from mdlearn.solvers.hybrid.loss_column import VISIT_OPERATIONS, LossColumn
from mdlearn.solvers.hybrid.metric import LAZY_SHARE, MetricPasses, price_of_metric, price_of_whitened_metric
from mdlearn.solvers.systems.whitening import LossColumnQuadratic

MOST_PASSES, PASSES_SHARE, VISITS_PER_ROW = 30, 0.25, 2
"""Passes over the free rows between two sweeps: until their part of the gap has fallen to a share, and at most."""
PASSES = 5
"""Such passes where one takes so long that it goes by pieces, and after a face step, which leaves them little."""
PASS_PRICE = 1.5
"""What a visit of a pass counts: it gains less than one of a sweep."""
FIRST_SWEEPS = 2
SURVEY_PRICE, SURVEYED = 0.4, 0.25
"""What a survey costs a row, in that of a visit, and the share of free rows up to which it follows their passes, in the
place of a sweep: the next passes are over the rows that it finds. On a9a, reuters_moneyfx and usps at C = 0.01 and 0.1
fits take 0.76 to 0.9 of the time of sweeps, on splice_uci 0.95 to 1."""
VISIT_ENTRIES = 1 << 23
"""Entries, visits included, between two heartbeats."""
ORDER_SEED = 0x9E3779B97F4A7C15
"""Of the order of visits: any order serves, the same one every time."""
DIGITS_TO_COME, MORE_PER_DIGIT = 0.6, 0.25
"""Digits that are taken to be wanted beyond a place, whose price a metric must not exceed, and more of them for each
that is there: 0.85 to 1 of the time of one digit on a9a and mushroom at C = 0.01 and 0.1, gaps of 1e-4 to 1e-6."""
METRIC_SURVEYS = 2
"""Surveys that a metric is taken to need until it has brought what it is for."""
NEAR_TOL, SETTLED_GAP, SETTLING_PASSES, SETTLING_VISITS = 3.0, 0.05, 16, 0.5
"""Gaps that are asked for, and relative gap, up to which passes over the free rows follow a sweep beside a variance
(far off another sweep gains as much); passes, and visits of them per row. They leave 0.15 to 0.5 of the primal's error:
on reuters_moneyfx, splice_uci, a9a and mushroom, C from 0.01 to 1, fits reach an excess in 0.85 to 1.02 of the time.
Half as many passes leave 0.7 to 4 times the excess at gaps of 1e-2 to 1e-4, in the geometric mean 1.2."""


Quadratics = Callable[[], Generator[None, None, LossColumnQuadratic]]
"""What makes the quadratic part of a column, once it is needed."""


class HybridDescent:
    """Dual coordinate descent of the hybrid solver: multipliers of a column, and the coefficients that they stand for.

    These are u + tau v, v the mean signed row.

    Attributes
    ----------
    objective, lower_bound : float
        Estimates, from the margins at the visits of the last sweep; those of the coefficients after a survey.
    surveyed : bool
        Whether a survey came last, or a measurement of all margins beside a variance.
    measured : ndarray of shape (m,)
        Margins of the last such measurement.
    operations : float
        Operations so far.
    faces : FaceJudge
        When steps over a face pay.
    bounds, least : list of float, float
        The bound after every sweep, and the smallest objective.
    rise, price_of_digit, steady_price : float
        Rise of the bound in the last sweep, and operations that a digit takes at the pace of the rises: of the last
        sweep, and of the last two.
    quadratic : LossColumnQuadratic or None
        That of a variance term, once it is made.
    metric : MetricPasses or None
        Passes in its metric, once these have begun.
    tol : float
        Gap that is asked for, 0 where none is known.
    """

    def __init__(self, problem: LossColumn, make_quadratic: Quadratics, tol: float = 0.0) -> None:
        self.problem, self.make_quadratic, self.tol = problem, make_quadratic, tol
        self.quadratic: LossColumnQuadratic | None = None
        rows, m, d = problem.stored, problem.n_rows, problem.stored.shape[1]
        self.records = problem.records_of_rows()
        self.w = np.zeros(d + 1)
        self.u = self.w[: problem.width]
        self.varied, self.measured = problem.column.kappa > 0, np.empty(0)
        if not self.varied and problem.pulled is not None:
            self.u[:] = problem.pulled
        self.order, self.free = np.arange(m), np.empty(m, dtype=np.int64)
        self.metric: MetricPasses | None = None
        self.price_of_metric = price_of_metric(problem)
        self.entries = rows.n_entries / m
        self.piece = max(16, int(VISIT_ENTRIES / (self.entries + VISIT_OPERATIONS)))
        self.sweeps, self.operations = 0, 0.0
        self.rise, self.price_of_digit, self.steady_price = 0.0, math.inf, math.inf
        self.rate, self.spent = 0.0, 0.0
        self.surveyed = False
        self.faces = FaceJudge(problem)
        self.objective, self.lower_bound = math.inf, -math.inf
        self.bounds: list[float] = []
        self.least = math.inf
        visits, scale = min(VISITS_PER_ROW * m, self.piece), GAP_SHARE_AT_ZERO * abs(problem.column.at_zero)
        self.limits = kernels.Sweeps(
            MOST_PASSES,
            PASSES_SHARE,
            visits,
            SURVEYED,
            LAZY_SHARE,
            tol,
            scale,
            problem.pulled,
            min(NEAR_TOL * tol, SETTLED_GAP),
            SETTLING_PASSES,
            min(int(SETTLING_VISITS * m), self.piece),
        )
        self._begin_ascent(self._vary() if self.varied else ())

    def _begin_ascent(self, variance: tuple[Any, ...]) -> None:
        """Begin visits, passes and surveys of the rows as they are, with what is known of a variance term."""
        problem, border = self.problem, float(self.problem.rows.constant)
        places = self.order, self.free
        self.ascent = kernels.Ascent(self.records, self.w, *places, problem.kink, border, ORDER_SEED, *variance)
        self.visit, self.passes, self.survey, self.sweeps_at_once = self._kernels(problem.stored)

    def _vary(self) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Tell the records of a variance term; return mean signed row, room for margins, and its weights."""
        column, width = self.problem.column, self.w.shape[0]
        used = True if column.whole else column.counts > 0
        np.divide(1.0 / column.kappa, column.counts, out=self.records[:, 6], where=used)
        self.measured, centre = np.empty(self.problem.n_rows), np.zeros(width)
        centre[: self.problem.width] = self.problem.mean_row
        return centre, self.measured, column.mean, 1.0 / (column.kappa * column.total)

    def _kernels(
        self, rows: Rows
    ) -> tuple[
        Callable[[bool, int, int], None],
        Callable[[int, float, int], None],
        Callable[[int, int], None],
        Callable[[int, int, kernels.Sweeps], list[tuple[float, float, int, int, int, int]]],
    ]:
        if isinstance(rows, CsrRows):
            A = rows.entries_but_ones, rows.X.indices, rows.X.indptr, self.ascent
            of_csr = kernels.sparse, kernels.sparse_passes, kernels.sparse_survey, kernels.sparse_sweeps
            return partial(of_csr[0], *A), partial(of_csr[1], *A), partial(of_csr[2], *A), partial(of_csr[3], *A)
        assert isinstance(rows, DenseRows)
        B = rows.X, self.ascent
        of_dense = kernels.dense, kernels.dense_passes, kernels.dense_survey, kernels.dense_sweeps
        return partial(of_dense[0], *B), partial(of_dense[1], *B), partial(of_dense[2], *B), partial(of_dense[3], *B)

    @property
    def beta(self) -> np.ndarray:
        """Multipliers, copied."""
        return self.records[:, 4].copy()

    @property
    def sigma(self) -> np.ndarray:
        """Multipliers of the variance; copied."""
        if self.metric is not None:
            return self.problem.column.spread(self.margins)
        if self.varied:
            self.ascent.settle_spread()
        return self.records[:, 7].copy()

    @property
    def margins(self) -> np.ndarray:
        """Margins of all rows at `element`: those of the survey or measurement, where one came last."""
        if not self.surveyed:
            return self.problem.margins(self.element)
        return (self.measured if self.varied and self.metric is None else self.records[:, 5]).copy()

    @property
    def element(self) -> np.ndarray:
        """Coefficients that the multipliers stand for, the intercept last; copied."""
        if self.metric is not None:
            return self.metric.coefficients()
        u = self.u
        return u + self.ascent.tau * self.problem.mean_row if self.varied else u.copy()

    def sweep(self, at_once: int = 1) -> Generator[None, None, None]:
        """Passes over free rows, then all rows once: visits of them, or a survey where few are free.

        Of the first sweeps some may go `at_once`, where these are short. Beside a variance one that comes near to `tol`
        is followed by passes and exact margins.

        A step over a settled face comes first, where a digit costs more. Beside a variance it is in its metric, and so
        are passes, with surveys: once sweeps have cost as much as its matrix, where the digits to come cost more.
        """
        m, begun, bound, self.surveyed = self.problem.n_rows, self.operations, self.lower_bound, False
        free, faces = self.ascent.n_free, self.faces
        settled = faces.settled(self.ascent.n_between) and self.sweeps > FIRST_SWEEPS
        stepped, along = faces.judge(self._pace()) if settled else (False, False)
        if along:
            yield from self._varied_face_step()
            self._judge(begun, bound)
            return
        due = self._metric_is_due(stepped)
        if due:
            yield from self._begin_metric()
        if stepped:
            yield from self._face_step(faces.price(faces.size))
        stepped, faces.stepped = stepped or faces.stepped, False
        if self.metric is None and m <= self.piece:
            self.limits.most = PASSES if stepped else MOST_PASSES
            self._sweep_at_once(at_once if at_once * VISITS_PER_ROW * m <= self.piece else 1, begun)
            return
        # Where a metric begins with a step over its face, the next survey says first what that has left.
        inner = 0 if due and stepped else (yield from self._pass_over_free(free, stepped))
        self.surveyed = self.metric is not None or (not self.varied and inner > 0 and free <= SURVEYED * m)
        if self.metric is not None:
            self.u[:] = self.metric.coefficients()
        yield from self._go(self.survey if self.surveyed else partial(self.visit, True), m)
        price = PASS_PRICE * inner + (SURVEY_PRICE if self.surveyed else 1.0) * m
        self.operations += price * (2.0 * self.entries + VISIT_OPERATIONS)
        self._sum_up()
        if self.metric is None and self.varied and self._relative_gap() <= min(NEAR_TOL * self.tol, SETTLED_GAP):
            yield from self._settle()
        self._judge(begun, bound)

    def _sweep_at_once(self, n: int, begun: float) -> None:
        """Sweep n times, or until a survey says that the gap is reached; the first began at such operations."""
        between, per_row = self.faces.size, 2.0 * self.entries + VISIT_OPERATIONS
        for objective, bound, passed, visited, surveyed, free in self.sweeps_at_once(
            n, FIRST_SWEEPS - self.sweeps, self.limits
        ):
            before, self.faces.size, between = self.lower_bound, between, free
            self.objective, self.lower_bound, self.surveyed = objective, bound, surveyed > 0
            self.operations += (PASS_PRICE * passed + visited + SURVEY_PRICE * surveyed) * per_row
            self._judge(begun, before)
            begun = self.operations

    def _judge(self, begun: float, bound: float) -> None:
        """Pace of the bound since the last sweep, which began at such operations and bound."""
        self.sweeps += 1
        self.bounds.append(self.lower_bound)
        self.least = min(self.least, self.objective)
        rise, earlier = self.lower_bound - bound, self.rise
        rate = math.log(earlier / rise) if earlier > rise > 0 else 0.0
        spent, both = self.operations - begun, rate + self.rate
        self.price_of_digit = spent * math.log(10.0) / rate if rate > 0 else math.inf
        self.steady_price = (spent + self.spent) * math.log(10.0) / both if both > 0 else math.inf
        self.rise, self.rate, self.spent = rise, rate, spent

    def visited(self, z: np.ndarray) -> np.ndarray:
        """Multipliers that visits at margins z would leave, each alone; of squared hinges."""
        problem, beta = self.problem, self.beta
        return np.maximum(beta + (problem.kink - z - problem.softness * beta) / self.records[:, 1], 0.0)

    def begin_at(self, beta: np.ndarray, element: np.ndarray, rows: np.ndarray) -> None:
        """Take multipliers that stand for `element`, and rows as the free ones; there is no variance term."""
        self.records[:, 4], self.u[:] = beta, element
        self.ascent.choose(rows)

    def pass_once(self) -> Generator[None, None, None]:
        """Pass once over the rows that are free."""
        return self._go(partial(self.visit, False), self.ascent.n_free)

    def _pass_over_free(self, free: int, stepped: bool) -> Generator[None, None, int]:
        """Pass over the free rows; return how many visits of rows as they are there were."""
        if self.sweeps < FIRST_SWEEPS or not free:
            return 0
        if self.metric is not None:
            self.operations += self.metric.over(self.free[:free])
            return 0
        m, before = self.problem.n_rows, self.ascent.visits
        if free <= self.piece:
            self.passes(PASSES if stepped else MOST_PASSES, PASSES_SHARE, min(VISITS_PER_ROW * m, self.piece))
        else:
            for _ in range(PASSES):
                yield from self.pass_once()
        return self.ascent.visits - before

    def _metric_is_due(self, face_pays: bool) -> bool:
        """Whether sweeps have cost as much as a metric would and digits to come cost more, or a face step pays."""
        if self.metric is not None or self.sweeps < FIRST_SWEEPS or self.faces.stepped or not self.faces.has_metric:
            return False
        price = self.price_of_metric + self.ascent.n_free * price_of_whitened_metric(self.problem)
        sweep = self.problem.n_rows * (2.0 * self.entries + VISIT_OPERATIONS)
        surveys = METRIC_SURVEYS * SURVEY_PRICE * sweep
        cheap = price <= self.operations and price + surveys <= self._digits_to_come() * self.steady_price
        return face_pays or cheap

    def _digits_to_come(self) -> float:
        """Digits by which the gap is to fall still: those that are taken to be wanted where no tolerance is known."""
        gap = self._relative_gap()
        if self.tol > 0:
            return math.log10(max(gap, self.tol) / self.tol)
        return DIGITS_TO_COME - MORE_PER_DIGIT * math.log10(max(gap, sys.float_info.epsilon))

    def _relative_gap(self) -> float:
        """Relative gap: margins at visits can say less than the bound does, and that is how far they are off then."""
        far = abs(self.objective - self.lower_bound)
        return self.problem.column.relative_gap(self.lower_bound + far, self.lower_bound)

    def _begin_metric(self) -> Generator[None, None, None]:
        """Go on with the coefficients of the multipliers of the loss, and the best ones of the variance."""
        lazy = self.ascent.lazy
        self.quadratic = yield from self.make_quadratic()
        self.metric = MetricPasses(self.problem, self.quadratic, self.records)
        self.operations += self.price_of_metric
        self._begin_ascent(())
        self.ascent.lazy = lazy

    def _pace(self) -> SweepPace:
        """Price of a digit now, by which face steps are judged."""
        gap, digits = self._relative_gap(), self._digits_to_come()
        metric = 0.0 if self.metric is not None else self.price_of_metric
        return SweepPace(self.sweeps, self.operations, self.price_of_digit, gap, digits, metric)

    def _face_step(self, price: float) -> Generator[None, None, None]:
        """Go to the optimum over the multipliers that are between their bounds."""
        problem, beta, metric = self.problem, self.records[:, 4], self.metric
        self.operations += price
        self.faces.pay(self.operations, self.sweeps)
        if not self.varied and step_over_few_dense_rows(problem, self.records, self.w, self.faces.size):
            return
        face = np.flatnonzero((beta > 0) & (beta < problem.caps))
        if not face.shape[0]:
            return
        if metric is None:
            rows, w, u = AffineRows(problem.stored.take(face), problem.rows.constant), self.element, self.u
        else:
            rows, w, u = AffineRows(DenseRows(metric.rows_of(face)), False), metric.x, metric.x
        step = FaceStep(problem, face, beta[face], rows)
        yield from step.ascend(problem.kink - step.margins(w) - problem.softness[face] * step.beta)
        beta[face] = np.clip(step.beta + step.change, 0.0, step.caps)
        u += step.moved
        if metric is None and self.varied:
            self.ascent.along += float(self.records[face, 5] @ step.change)

    def _varied_face_step(self) -> Generator[None, None, None]:
        """Go to the optimum over the multipliers between their bounds and those of the variance, and survey the rows.

        The next sweep is followed by another step where this one has taken a digit.
        """
        problem, ascent, faces, beta, s = self.problem, self.ascent, self.faces, self.records[:, 4], self.records[:, 7]
        far = abs(self.objective - self.lower_bound)
        face = np.flatnonzero((beta > 0) & (beta < problem.caps))
        ascent.settle_spread()
        if face.shape[0]:
            rows = AffineRows(problem.stored.take(face), problem.rows.constant)
            step = VariedFaceStep(problem, face, beta[face], rows, s.copy())
            yield from step.ascend_with_variance(self.element)
            beta[face] = np.clip(step.beta + step.change, 0.0, step.caps)
            s += step.shift
            self.u += step.moved
        self.operations += faces.varied_price(faces.size)  # finite, or no step would pay
        faces.pay(self.operations, self.sweeps)
        ascent.settle_spread()
        yield from self._measure()
        slope = problem.kink - self.measured
        faces.end_varied_step(far, self.objective - self.lower_bound)
        ascent.choose(np.flatnonzero(((beta > 0) & (beta < problem.caps)) | ((slope > 0) != (beta > 0))))

    def _settle(self) -> Generator[None, None, None]:
        """Pass over the free rows of many, whose margins a sweep leaves off the kink, and survey where that leads."""
        ascent, before = self.ascent, self.ascent.visits
        if ascent.n_free <= self.piece:
            self.passes(SETTLING_PASSES, 0.0, min(int(SETTLING_VISITS * self.problem.n_rows), self.piece))
        else:
            yield from self.pass_once()
        self._sum_up()
        yield from self._measure()
        price = PASS_PRICE * (ascent.visits - before) + SURVEY_PRICE * self.problem.n_rows
        self.operations += price * (2.0 * self.entries + VISIT_OPERATIONS)

    def _measure(self) -> Generator[None, None, None]:
        """Survey all rows: objective, bound and margins at the coefficients of the multipliers, beside a variance."""
        yield from self._go(self.survey, self.problem.n_rows)
        self.surveyed = True
        self._sum_up()

    def _sum_up(self) -> None:
        """Objective and bound after a sweep or survey, at its margins."""
        if self.metric is None:
            self.objective, self.lower_bound = kernels.sums_of_sweep(self.ascent, self.limits)
            return
        self.objective, self.lower_bound = self.metric.sums_of_survey(self.ascent, self.u)

    def _go(self, over: Callable[[int, int], None], n: int) -> Generator[None, None, None]:
        if n <= self.piece:
            over(0, n)
            return
        for start in range(0, n, self.piece):
            over(start, min(start + self.piece, n))
            yield
