"""FISTA with restart, finished by Newton steps on the rows that are not 0.

One gradient is two products with X. The step is 1 / L with L from the largest eigenvalue of the rows' moments; L grows
where two gradients differ by more than it allows, which costs nothing. Gradients give the bound as well (see
`mdlearn.forms.composite`); without a ridge that can need a tangent less steep than the penalty everywhere, which the
first steps find by solving loosely with nine tenths of the penalty.

For fewer rows than columns without a penalty, steps are taken along the axes of the rows. With X' = Q R, Q orthonormal,
W = Q V has the decision values X W = R' V and the norm of V; what W has beside the columns of Q changes no decision
value and only adds to the norm. So the optimum is found in V, whose second derivatives are smaller and, but for rows
that depend on each other, have no directions that only the ridge holds.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.composite import Composite
from mdlearn.forms.joint.composite_point import CompositeEvaluation
from mdlearn.forms.joint.decision_composite import DecisionComposite
from mdlearn.solvers.base import Report, Reports
from mdlearn.solvers.common.orthogonal import OrthogonalFactors
from mdlearn.solvers.proximal_gradient.averaged_newton import averaged_newton_steps
from mdlearn.solvers.proximal_gradient.newton_finish import NewtonFinish

ANCHOR_SHARES = (0.9, 0.98, 0.995)
"""Shares of the penalty with which the anchor is looked for; close to where no optimum is left, only large ones do."""
LESS_STEEP = 0.999
"""Steepness below which a tangent serves; a search goes on until it is half-way to its share."""
LONGEST_LOOSE = 1000
"""Steps of a search."""
FALLEN = 1e3
"""Depth, in units of the objective at W = 0, at which there seems to be no optimum."""
STEADY_SUPPORT_STEPS = 5
"""Steps without a change of the rows that are 0 after which Newton steps are worth a try."""
FORGET = 20
"""Steps between two tries."""
STEEPER = 8.0
"""Factor of L when a step led astray."""
STALL_STEPS = 500
"""Steps without a smaller gap or objective after which rounding is taken to be reached."""
FACTORED_OPERATIONS = 4e9
"""Operations of the factorisation up to which it is worth its price: some tenths of a second."""


@dataclass(eq=False)
class FistaState:
    """State of FISTA: last coefficients, the point between, and the weight t of its momentum."""

    W: np.ndarray
    Q: np.ndarray
    t: float = 1.0
    L: float = 1.0


class Fista:
    """FISTA with gradient restart and a Newton finish.

    `whole`, `problem`: the problem of reports, and that of steps: along other axes, where `axes` has them; `anchor`: a
    tangent less steep than the penalty.
    """

    def __init__(self, problem: Composite) -> None:
        self.whole = self.problem = problem
        self.axes: FistaRowAxes | None = None
        self.anchor: CompositeEvaluation | None = None
        self.last: CompositeEvaluation | None = None
        self.state = FistaState(np.zeros(problem.shape), np.zeros(problem.shape))

    def steps(self) -> Reports:
        """Yield a report per step; end when rounding allows no better point."""
        self.problem, self.axes = yield from fista_along_row_axes(self.whole)
        if self.axes is not None:
            yield from self.whole.prepare()  # for certificates
            self.state = FistaState(np.zeros(self.problem.shape), np.zeros(self.problem.shape))
        yield from self.begin()
        best, gap, since = math.inf, math.inf, 0
        for report in self._descend():
            if report is not None:
                better = report.objective < best - 1e-15 * abs(best) or report.objective - report.lower_bound < gap
                since = 0 if better else since + 1
                best, gap = min(best, report.objective), min(gap, report.objective - report.lower_bound)
            yield report
            if since >= STALL_STEPS:
                return

    def begin(self) -> Reports:
        """Find the step, and where bounds need one, the anchor: by steps with a smaller penalty."""
        problem, state = self.problem, self.state
        yield from problem.prepare()
        state.L = problem.lipschitz() or 1.0  # a linear h bends nowhere, and steps of any length will do
        yield None
        if not problem.needs_anchor:
            self._take_start()
            return
        for share in ANCHOR_SHARES:
            yield from self._loosely(share)
            if self.anchor is not None:
                break
            state.W = np.zeros(problem.shape)
        state.Q, state.t = state.W, 1.0
        self._take_start()

    def _take_start(self) -> None:
        """Go on from the problem's first coefficients, unless W = 0 is better."""
        first = self.problem.first
        if first is not None and self.problem.objective(self.problem.settle(first)) <= self.problem.at_zero:
            self.state.W = self.state.Q = first

    def _loosely(self, share: float) -> Reports:
        """Solve with a share of the penalty until the tangent is half-way less steep; there may be no optimum."""
        problem, left, least = self.problem, LONGEST_LOOSE, LESS_STEEP
        depth = FALLEN * abs(problem.at_zero) or math.inf
        lighter = Fista(problem.lighter(share))
        lighter.state = self.state
        self.state.Q, self.state.t = self.state.W, 1.0
        for report in lighter._descend():
            look = lighter.last
            if report is None or look is None:
                yield None
                continue
            yield self.report(look)
            steep = problem.steepness(look)
            if steep < least:
                self.anchor, least = look, steep
            left -= 1
            if steep <= 0.5 * (1.0 + share) or left == 0 or report.objective < -depth:
                return

    def _descend(self) -> Reports:
        """Steps of FISTA, with Newton steps where the rows that are 0 stay the same for a while."""
        problem, state, finish = self.problem, self.state, NewtonFinish(self.problem)
        if isinstance(problem, DecisionComposite) and problem.averages:
            state.W = state.Q = yield from averaged_newton_steps(problem, state.W, self.report)
        steady, next_try = 0, STEADY_SUPPORT_STEPS
        while True:
            look = problem.settle(state.Q)
            if self._astray(look):
                yield None
                continue
            self._raise(look)
            yield self.report(look)
            before = state.W.any(axis=1)
            self._advance(look)
            steady = steady + 1 if np.array_equal(before, state.W.any(axis=1)) else 0
            next_try -= 1
            if steady >= STEADY_SUPPORT_STEPS and next_try <= 0:
                better = yield from finish.improve(problem.settle(state.W), state.L, self.report)
                if better is None:
                    return
                state.W, state.Q, state.t, next_try = better, better, 1.0, FORGET

    def report(self, look: CompositeEvaluation) -> Report:
        """Objective, bound and point of a look."""
        problem, anchor, self.last = self.problem, self.anchor, look
        W = look.W if self.axes is None else self.axes.back(look.W)
        point = self.whole.point(W, None if anchor is None else anchor.W, look)
        lower, residual = problem.estimate(look, anchor)
        return Report.estimated(problem.objective(look), lower, point, residual)

    def _advance(self, look: CompositeEvaluation) -> None:
        """Take a step from a look at Q (its intercepts settled)."""
        problem, state = self.problem, self.state
        W = problem.prox(look.W - problem.slope(look) / state.L, 1.0 / state.L)
        if float(((W - look.W) * (W - state.W)).sum()) < 0.0:
            state.t = 1.0
        t = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * state.t**2))
        state.Q = W + ((state.t - 1.0) / t) * (W - state.W)
        state.W, state.t = W, t

    def _astray(self, look: CompositeEvaluation) -> bool:
        """Go back where a step led far above W = 0, or to no finite objective: h bends more there than L allows.

        No single L serves a loss that bends ever more; one that two gradients far out tell would be too large for good.
        """
        problem, state, last = self.problem, self.state, self.last
        if last is None or problem.objective(look) <= max(2.0 * abs(problem.at_zero), problem.objective(last)):
            return False
        state.W = state.Q = last.W
        state.t, state.L = 1.0, STEEPER * state.L
        return True

    def _raise(self, look: CompositeEvaluation) -> None:
        """Raise L to what two gradients in a row show, beyond rounding: |dG|^2 <= L dG.dW for a smooth convex f."""
        if self.last is not None:
            change = self.problem.slope(look) - self.problem.slope(self.last)
            along = float((change * (look.W - self.last.W)).sum())
            size = float((change * change).sum())
            noise = 1e-12 * float(np.square(look.gradient).sum())
            if size > noise and along > 0 and size > self.state.L * along * (1.0 + 1e-6):
                self.state.L = size / along
        self.last = look


class FistaRowAxes:
    """Axes that the rows span: coefficients of a problem, and the same along these; intercepts stay.

    `Q` (shape (d, n)): orthonormal.
    """

    def __init__(self, Q: np.ndarray) -> None:
        self.Q = Q

    def along(self, W: np.ndarray) -> np.ndarray:
        """Return V, for W of shape (p, k)."""
        return np.vstack([self.Q.T @ W[: self.Q.shape[0]], W[self.Q.shape[0] :]])

    def back(self, V: np.ndarray) -> np.ndarray:
        """Return W, for V as of `along`."""
        return np.vstack([self.Q @ V[: self.Q.shape[1]], V[self.Q.shape[1] :]])


def fista_along_row_axes(problem: Composite) -> Generator[None, None, tuple[Composite, FistaRowAxes | None]]:
    """Write a problem along the axes that its rows span, where there are fewer rows than columns; else as it is."""
    if not isinstance(problem, DecisionComposite):
        return problem, None
    m, d = problem.rows.shape
    ridge = problem.ridge[:d]
    if (
        m >= d
        or 4.0 * m * m * d > FACTORED_OPERATIONS
        or problem.beta.any()
        or not ridge[0] > 0
        or (ridge != ridge[0]).any()
    ):
        return problem, None
    columns = np.empty((d, m), order="F")
    for span in problem.rows.spans():
        columns[:, span] = problem.rows.block(span).T
        yield
    reflections = yield from OrthogonalFactors.of(columns)
    Q = reflections.apply(np.eye(m))
    yield
    other = problem.over(DenseRows(np.ascontiguousarray(np.triu(reflections.R).T)))
    if problem.first is not None:
        other.first = FistaRowAxes(Q).along(problem.first)
    return other, FistaRowAxes(Q)
