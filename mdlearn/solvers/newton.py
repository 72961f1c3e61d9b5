"""Newton steps for losses with a continuous slope: squared hinges, logistic terms and given losses.

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

from mdlearn.data.features import LinearFeatures
from mdlearn.forms.certificate import relative_gap
from mdlearn.forms.losses import CURVED
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.forms.unridged import Attainment
from mdlearn.solvers.active import ActiveSet
from mdlearn.solvers.base import Steps
from mdlearn.solvers.factoring import Factoring
from mdlearn.solvers.linalg import NotPositiveDefinite
from mdlearn.solvers.smooth import SmoothTerms
from mdlearn.solvers.squared import SquaredTerms
from mdlearn.solvers.starting import first_element
from mdlearn.solvers.state import Margins, report_of
from mdlearn.solvers.system_choice import common_start, system_of

PATIENCE = 8
"""Steps without progress after which rounding is taken to be reached."""
ADRIFT = 1e-6
"""Share of their largest second derivative with which rows hold an intercept that nothing else holds."""


class Newton(Factoring):
    """Newton's method with a line search on the margins (``solver="newton"``)."""

    name: ClassVar[str] = "newton"
    purpose: ClassVar[str] = (
        "squared hinge, logistic and given losses, explicit rows with moderate d, or a Gram matrix; every bias, "
        "ridge or none"
    )
    default_max_iter: ClassVar[int] = 200
    kinds: ClassVar[frozenset[str]] = frozenset({"squared"}) | CURVED
    needs_ridge: ClassVar[bool] = False
    offsets: ClassVar[bool] = True

    def refusal(self, form: Any) -> str | None:
        """Without a ridge, w is not kept as a combination of rows."""
        general = super().refusal(form)
        if general is None and form.ridge == 0 and not isinstance(form.features, LinearFeatures):
            return "without the squared norm in the objective it needs explicit rows"
        return general

    def prepare(self, form: MarginForm, options: dict[str, Any]) -> Generator[None, None, Any]:
        """Return the Gram matrix, or what columns over rows of blocks begin with."""
        shared = yield from super().prepare(form, options)
        return (yield from common_start(form)) if shared is None else shared

    def iterate(
        self, form: MarginForm, column: Column, shared: Any, options: dict[str, Any], rng: np.random.Generator
    ) -> Steps:
        """Yield a report per Newton step; for squared terms, then those of the active-set finish."""
        squared = all(t.kind == "squared" for t in column.terms)
        loss: SquaredTerms | SmoothTerms = SquaredTerms(column) if squared else SmoothTerms(column)
        system = system_of(form, column, shared, loss.steepest)
        yield from system.setup()
        state = Margins(form, column, system)
        attainment, finish = Attainment(form, column), squared and form.ridge > 0
        element = first_element(state)
        z = state.margins(element)
        beta, sigma, moved = loss.slopes(z), column.spread(z), np.inf
        held, stalled = None, 0
        best, lowest = np.inf, np.inf
        while True:
            report = report_of(form, column, Point(beta, sigma, *state.coefficients(element)), z)
            gap = max(relative_gap(column, report.objective, report.lower_bound), 0.0)
            attainment.examine(z, moved, gap)
            yield report
            stalled = 0 if gap < 0.9 * best or report.objective < lowest else stalled + 1
            best, lowest = min(best, gap), min(lowest, report.objective)
            D = loss.model(z)
            adrift = _adrift(form, column, D)
            # The step from the same model has been made.
            if stalled >= PATIENCE or (held is not None and not adrift and np.array_equal(D, held)):
                break
            held, slopes = D, loss.slopes(z)
            if adrift:
                D = ADRIFT * np.multiply.outer(np.array([t.steepest for t in column.terms]), column.counts)
            try:
                yield from system.factor(D.sum(axis=0))
                step = _step(state, state.residual(element, slopes), D.sum(axis=0))
            except NotPositiveDefinite:
                break
            dz = state.margins(step)
            length = loss.length(z, dz, D, _bend(state, step, dz))
            if not np.isfinite(length):
                break
            element = element + length * step
            beta, sigma = slopes - column.sides[:, None] * (D * dz), column.spread(z + dz)
            z, moved = state.margins(element), length * float(np.abs(dz).max())
            if finish or ((beta < 0) | (beta > column.caps)).any():
                beta, sigma = loss.slopes(z), column.spread(z)
            yield None
        if finish:
            # Refinement with the multipliers as unknowns: with a large weight, 1 - z has lost their digits.
            yield from ActiveSet(state).attempt(element, loss.slopes(z), loss.model(z) > 0)
        attainment.conclude(best)


def _adrift(form: MarginForm, column: Column, D: np.ndarray) -> bool:
    """Whether a mean term moves a free intercept that no row and no variance holds."""
    return form.bias == "free" and column.mean > 0 and column.kappa == 0 and not D.any()


def _step(state: Margins, residual: np.ndarray, D: np.ndarray) -> np.ndarray:
    """Newton step for a gradient, with the last factor; refined once where that holds directions by a trace."""
    system, column = state.system, state.column
    step: np.ndarray = -system.solve(residual)
    if state.form.ridge == 0:
        curve = system.quadratic(step) + system.adjoint(column.y * (D * state.margins(step)))
        step = step - system.solve(residual + curve)
    return step


def _bend(state: Margins, step: np.ndarray, dz: np.ndarray) -> float:
    """Second derivative along a step of everything but the loss."""
    return state.form.norm(*state.coefficients(step)) - float(dz @ state.column.spread(dz))
