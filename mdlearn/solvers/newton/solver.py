"""Solver "newton": Newton steps for losses with a continuous slope, squared hinges, logistic terms and given losses.

Each step solves Q + R' D R, with D the second derivatives of the loss at the margins so far. Full steps can cycle or
raise the objective; the length is therefore the minimiser along the step: exact for squared terms, where the objective
is a piecewise quadratic, else to a hundredth of its slope. Neither needs a pass over the rows.

Multipliers of logistic terms come from the step's own equation: slopes moved along D meet every condition of the dual,
also those of a free bias and of an objective without a ridge, and stand for the very point that the full step leads to.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.forms.certificates.unboundedness import UnboundednessWatch
from mdlearn.forms.losses import CURVED
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.solvers.base import Claim, Report, Steps
from mdlearn.solvers.common.active_set import ActiveSet
from mdlearn.solvers.common.factoring import Factoring
from mdlearn.solvers.common.primal_dual import PrimalDual, primal_dual_report_without_pass
from mdlearn.solvers.common.smooth_losses import SmoothLosses, SquaredTerms
from mdlearn.solvers.common.warm_start import warm_start_element
from mdlearn.solvers.systems.operations import (
    NARROW_COLUMNS,
    STEPS_OF_A_FIT,
    cheap_step_operations,
    is_nearly_hard,
    kernel_stiffness,
    step_operations,
)
from mdlearn.solvers.systems.system_choice import (
    choose_system,
    common_first_system_factor,
    prefers_block_system,
    prefers_row_system,
)

STALL_STEPS = 8
"""Steps without progress after which rounding is taken to be reached."""
REMADE_MARGINS_GAP = 1e-6
"""Gap below which margins are made from the coefficients: sums of steps lack their last digits.

Through a Gram matrix always: coefficients are long there, and a pass is little beside the factorisation."""
INTERCEPT_HOLD = 1e-6
"""Share of their largest second derivative with which rows hold an intercept that nothing else holds."""

STEEP_LOSS = 1e8
"""Weight of squared terms times k(x, x) beyond which margins from a Gram matrix lack the digits that steps need."""
LOOSE_INTERCEPT_SHARE = 1e-15
"""Share of the largest second derivatives below which rows hold nothing: rounding would carry the intercept away."""


class Newton(Factoring):
    """Newton's method with a line search on the margins (``solver="newton"``)."""

    name: ClassVar[str] = "newton"
    draws: ClassVar[bool] = False
    purpose: ClassVar[str] = (
        "squared hinge, logistic and given losses, explicit rows with moderate d, or a Gram matrix; every bias, "
        "ridge or none"
    )
    default_max_iter: ClassVar[int] = 200
    kinds: ClassVar[frozenset[str]] = frozenset({"squared"}) | CURVED
    needs_ridge: ClassVar[bool] = False
    offsets: ClassVar[bool] = True
    by_row: ClassVar[bool] = True

    def refusal(self, form: Any) -> str | None:
        """Without a ridge, w is not kept as a combination of rows."""
        general = super().refusal(form)
        if general is None and form.ridge == 0 and not isinstance(form.features, LinearFeatures):
            return "without the squared norm in the objective it needs explicit rows"
        return general

    def claims(self, form: Any) -> Claim | None:
        """Second-order steps; none where one system does, nor where squared terms are too steep."""
        if self.refusal(form) is not None or (form.quadratic and not form.by_row):
            return None
        curved = not CURVED.isdisjoint(form.kinds)
        if not curved and _newton_terms_too_steep(form):
            return None
        loss = "logistic or given loss: a few linear systems"
        squared = "squared hinge: a few linear systems over the active rows"
        return Claim(STEPS_OF_A_FIT * step_operations(form), loss if curved else squared)

    def prepare(self, form: MarginForm, options: dict[str, Any]) -> Generator[None, None, Any]:
        """Return the Gram matrix, or what columns over rows of blocks begin with."""
        shared = yield from super().prepare(form, options)
        return (yield from common_first_system_factor(form)) if shared is None else shared

    def iterate(
        self, form: MarginForm, column: Column, shared: Any, options: dict[str, Any], rng: np.random.Generator
    ) -> Steps:
        """Yield a report per Newton step; for squared terms, then those of the active-set finish."""
        squared = all(t.squared for t in column.terms)
        loss: SquaredTerms | SmoothLosses = SquaredTerms(column) if squared else SmoothLosses(column)
        system = choose_system(form, column, shared, loss.steepest)
        yield from system.setup()
        state = PrimalDual(form, column, system)
        attainment, finish = UnboundednessWatch(form, column), squared and form.ridge > 0
        walk = NewtonIterate(state, loss, warm_start_element(state), own=finish)
        held, stalled, moved = None, 0, np.inf
        best, lowest = np.inf, np.inf
        while True:
            report = walk.report()
            gap = max(column.relative_gap(report.objective, report.lower_bound), 0.0)
            attainment.examine(walk.z, moved, gap)
            yield report
            stalled = 0 if gap < 0.9 * best or report.objective < lowest else stalled + 1
            best, lowest = min(best, gap), min(lowest, report.objective)
            D = loss.model(walk.z)
            adrift = _newton_intercept_drifts(form, column, D)
            # The step from the same model has been made.
            if stalled >= STALL_STEPS or (held is not None and not adrift and np.array_equal(D, held)):
                break
            held = D
            if adrift:
                D = INTERCEPT_HOLD * np.multiply.outer(np.array([t.steepest for t in column.terms]), column.counts)
            try:
                yield from system.factor(D.sum(axis=0))
                moved = walk.step(D, anew=gap < REMADE_MARGINS_GAP or stalled > 0 or not prefers_row_system(form))
            except NotPositiveDefinite:
                break
            if not np.isfinite(moved):
                break
            yield None
        if finish:
            # Refinement with the multipliers as unknowns: with a large weight, 1 - z has lost their digits.
            yield from ActiveSet(state).attempt(walk.element, loss.slopes(walk.z), loss.model(walk.z) > 0)
        attainment.conclude(best)


def _newton_terms_too_steep(form: MarginForm) -> bool:
    """Whether solver "newton" lacks digits for squared terms over a kernel, or takes long on sparse rows."""
    if isinstance(form.features, KernelFeatures):
        return kernel_stiffness(form) > STEEP_LOSS
    rows = form.features.rows
    if not rows.sparse or form.features.width <= NARROW_COLUMNS or prefers_block_system(form) or form.ridge == 0:
        return False
    return step_operations(form) > cheap_step_operations(rows) and is_nearly_hard(form)


class NewtonIterate:
    """Iterate of solver "newton": the element with its margins, and multipliers for its bound.

    `beta`, `sigma`: multipliers; `stand_for`: the element that these stand for, the sum of their rows.
    """

    def __init__(self, state: PrimalDual, loss: SquaredTerms | SmoothLosses, element: np.ndarray, own: bool) -> None:
        self.state, self.loss, self.element, self.own = state, loss, element, own
        self.z = state.margins(element) if element.any() else np.zeros_like(state.column.y)
        self._settle()
        self._take_own()

    def report(self) -> Report:
        """Objective and bound of the present point, from what the last step knows: no pass over the rows."""
        return primal_dual_report_without_pass(self.state, self.element, self.z, self.beta, self.sigma, self.stand_for)

    def step(self, D: np.ndarray, anew: bool) -> float:
        """Take the step of the last factor, with the model D; margins are made `anew`, or by what the step adds.

        Return by how much the margin that moved most did; infinite where the step has no minimum, and is not taken.
        """
        state, column, loss = self.state, self.state.column, self.loss
        step = _newton_step(state, self.residual, D.sum(axis=0))
        dz = state.margins(step)
        bend = state.curvature(step, dz)
        # The equation that the step solves says with which slope it begins.
        length = loss.length(self.z, dz, -(bend + float((D.sum(axis=0) * dz) @ dz)), bend)
        if not np.isfinite(length):
            return np.inf
        # The full step's own multipliers: slopes moved along the model.
        self.beta, self.sigma = self.slopes - column.sides[:, None] * (D * dz), column.spread(self.z + dz)
        self.stand_for = self.element + step
        self.element = self.element + length * step
        self.z = state.margins(self.element) if anew else self.z + length * dz
        self._settle()
        if self.own or ((self.beta < 0) | (self.beta > column.caps)).any():
            self._take_own()
        return length * float(np.abs(dz).max())

    def _settle(self) -> None:
        """Slopes at the present margins, and the gradient."""
        self.slopes = self.loss.slopes(self.z)
        self.residual = self.state.residual(self.element, self.slopes)

    def _take_own(self) -> None:
        """Take the slopes of the present margins as multipliers."""
        self.beta, self.sigma = self.slopes, self.state.column.spread(self.z)
        self.stand_for = self.element - self.residual / self.state.system.metric


def _newton_intercept_drifts(form: MarginForm, column: Column, D: np.ndarray) -> bool:
    """Whether something moves a free intercept that no row and no variance holds, in solver "newton".

    A mean term does, and so do logistic terms far from their thresholds: they have a slope there, but do not bend.
    """
    pulled = column.mean > 0 or not all(t.squared for t in column.terms)
    firm = max((t.steepest for t in column.terms), default=0.0) * column.total
    return form.bias == "free" and column.kappa == 0 and pulled and not float(D.sum()) > LOOSE_INTERCEPT_SHARE * firm


def _newton_step(state: PrimalDual, residual: np.ndarray, D: np.ndarray) -> np.ndarray:
    """Newton step of solver "newton" for a gradient, by the last factor; refined where a trace holds directions."""
    system, column = state.system, state.column
    step: np.ndarray = -system.solve(residual)
    if state.form.ridge == 0:
        curve = system.quadratic(step) + system.adjoint(column.y * (D * state.margins(step)))
        step = step - system.solve(residual + curve)
    return step
