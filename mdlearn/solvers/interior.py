"""Interior point for declared hinge terms, with a finish on the active set.

Mehrotra's predictor-corrector on the multipliers; each step solves Q + R' D R, a d x d (or m x m) matrix, by
Sherman-Morrison-Woodbury over row blocks. When the gap is small, the set of rows on a kink is guessed and the problem
solved exactly on it: that reaches rounding level where complementarity alone loses digits.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar

import numpy as np

from mdlearn.forms.certificate import relative_gap, value_at_zero
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.active import ActiveSet
from mdlearn.solvers.base import Steps
from mdlearn.solvers.envelope import Envelope
from mdlearn.solvers.factoring import Factoring
from mdlearn.solvers.linalg import NotPositiveDefinite
from mdlearn.solvers.starting import first_guess
from mdlearn.solvers.state import Margins, make_report
from mdlearn.solvers.system_choice import STIFF, system_of

FINISH_BELOW, FINISH_AGAIN = 1e-5, 0.03
"""Gap from which the active set is worth a guess, and the fall that makes another guess worthwhile."""
RUNAWAY = 1e60
"""Multipliers of constraints that cannot be met grow without end; this size proves as much as any larger one."""
PATIENCE = 8
"""Steps without progress after which rounding is taken to be reached."""


class Interior(Factoring):
    """Primal-dual interior point method (``solver="interior"``)."""

    name: ClassVar[str] = "interior"
    purpose: ClassVar[str] = "declared hinge terms, dense rows with moderate d, or a Gram matrix; every bias"
    options: ClassVar[dict[str, Any]] = {}
    default_max_iter: ClassVar[int] = 200
    offsets: ClassVar[bool] = True

    def iterate(
        self, form: MarginForm, column: Column, shared: Any, options: dict[str, Any], rng: np.random.Generator
    ) -> Steps:
        """Yield a report per interior point step, then those of the active-set finish."""
        system = system_of(form, column, shared, float(column.caps.max(initial=0.0)))
        yield from system.setup()
        state = Margins(form, column, system)
        if not column.caps.any():
            yield from _without_loss(state)
            return
        if not column.hard and column.mean == 0 and value_at_zero(column) == 0:
            # Targets within their tube: no loss is below 0, and slacks would fall towards 0 for ever.
            element = np.zeros_like(state.system.adjoint(column.y))
            yield make_report(state, element, np.zeros_like(column.caps), np.zeros_like(column.y))
            return
        begun = first_guess(state)
        if begun is not None:
            yield from Envelope(state, *begun).run()
        path = CentralPath(state)
        finish = ActiveSet(state)
        best, highest, stalled, next_finish = np.inf, -float(np.finfo(float).max), 0, FINISH_BELOW
        while path.alive and stalled < PATIENCE:
            report = make_report(state, path.element, path.beta, path.z)
            yield report
            gap = relative_gap(column, report.objective, report.lower_bound)
            # A constraint not met yet leaves the gap infinite: that is no standstill.
            rising = report.lower_bound > highest + 0.01 * abs(highest)
            stalled = 0 if gap < 0.9 * best or path.falling or rising or np.isinf(gap) else stalled + 1
            highest = max(highest, report.lower_bound)
            best = min(best, gap)
            if best < next_finish:
                next_finish = FINISH_AGAIN * best
                yield from finish.attempt(path.element, path.beta, path.free())
            try:
                yield from path.step()
            except NotPositiveDefinite:
                break
        yield from finish.attempt(path.element, path.beta, path.free())


def _without_loss(state: Margins) -> Steps:
    """C = 0: one linear system, refined twice."""
    m = state.column.y.shape[0]
    yield from state.system.factor(np.zeros(m))
    element = state.system.solve(state.system.adjoint(state.column.y * state.column.pull))
    beta = np.zeros_like(state.column.caps)
    for _ in range(3):
        yield make_report(state, element, beta, state.margins(element))
        element = element - state.system.solve(state.residual(element, beta))


class CentralPath:
    """Iterates of the predictor-corrector: element, multipliers, slacks of both bounds."""

    def __init__(self, state: Margins) -> None:
        self.state = state
        column = state.column
        self.boxed = np.isfinite(column.caps)
        self.used = column.caps > 0
        self.alive = self.falling = True
        self.mu = np.inf
        self.element = np.zeros_like(state.system.adjoint(column.y))
        self.z = np.zeros_like(column.y)
        # Multipliers start inside their box, but no larger than what one row could want on its own.
        scale = state.typical_multiplier * state.typical_kink
        # Refining a solution costs two passes over the rows: only where boxes are so wide that rounding will show.
        self.refinements = 2 if column.caps.max() > STIFF * scale else 0
        self.beta = np.where(self.used, np.where(self.boxed, 0.5 * column.caps, scale), 0.0)
        a = self._slope(self.z) + column.softness * self.beta
        self.s = np.maximum(a, 0.0) + state.typical_kink
        self.xi = np.where(self.boxed, np.maximum(-a, 0.0) + state.typical_kink, 0.0)
        # Kept apart from caps - beta, which would round to 0 close to the cap.
        self.upper = np.where(self.boxed & self.used, column.caps - self.beta, 1.0)

    def _slope(self, z: np.ndarray) -> np.ndarray:
        column = self.state.column
        return column.sides[:, None] * (z - column.kinks)

    def free(self) -> np.ndarray:
        """Rows that look as if they sat on a kink: multiplier closer to the middle of its box than its slack to 0."""
        upper = np.where(self.boxed, self.upper, np.inf)
        scale = np.median(self.beta[self.used]) / self.state.typical_kink + 1e-300
        inside = (self.beta / scale > self.s) & (upper / scale > self.xi)
        return inside & self.used

    def step(self) -> Generator[None, None, None]:
        """One predictor-corrector step; sets `alive` to False when numbers overflow."""
        state, column, system = self.state, self.state.column, self.state.system
        used, boxed = self.used, self.boxed
        beta, s, xi = self.beta, self.s, self.xi
        upper = self.upper
        safe = np.where(used, beta, 1.0)
        sides = column.sides[:, None]
        with np.errstate(over="ignore", divide="ignore"):
            stiffness = s / safe + column.softness + np.where(boxed, xi / upper, 0.0)
            d = np.where(used, 1.0 / stiffness, 0.0)
        if not np.isfinite(d).all():
            self.alive = False
            return
        yield from system.factor(d.sum(axis=0))
        rp = self._slope(self.z) + column.softness * beta + xi - s
        rw = state.residual(self.element, beta)
        count = float(used.sum() + (boxed & used).sum())
        mu = float((beta * s)[used].sum() + (upper * xi)[boxed & used].sum()) / count

        @np.errstate(over="ignore", divide="ignore", invalid="ignore")
        def direction(c1: np.ndarray, c2: np.ndarray) -> tuple[np.ndarray, ...]:
            h = np.where(used, -rp - np.where(boxed, c2 / upper, 0.0) + c1 / safe, 0.0)
            rhs = system.adjoint(column.y * (column.sides @ (d * h))) - rw
            dw = system.solve(rhs)
            db = d * (h - sides * state.margins(dw))
            for _ in range(self.refinements):
                # Both equations of the step are refined: with d large, h - R dw alone has lost db's digits.
                first = system.adjoint(column.y * (column.sides @ db)) - rw - system.quadratic(dw)
                second = np.where(used, h - sides * state.margins(dw) - db * stiffness, 0.0)
                more = system.solve(first + system.adjoint(column.y * (column.sides @ (d * second))))
                dw, db = dw + more, db + d * (second - sides * state.margins(more))
            return dw, db, (c1 - s * db) / safe, np.where(boxed, (c2 + xi * db) / upper, 0.0)

        def length(db: np.ndarray, ds: np.ndarray, dxi: np.ndarray) -> float:
            worst = 0.0
            for value, change in ((safe, db), (s, ds), (upper, np.where(boxed, -db, 0.0)), (xi, dxi)):
                ratio = np.divide(-change, value, out=np.zeros_like(value), where=used & (value > 0))
                worst = max(worst, float(ratio.max()))
            return min(1.0, 1.0 / worst) if worst > 0 else 1.0

        _, db, ds, dxi = direction(-beta * s, -upper * xi)
        step = length(db, ds, dxi)
        both = boxed & used
        aim = float(((beta + step * db) * (s + step * ds))[used].sum())
        aim += float(((upper - step * db) * (xi + step * dxi))[both].sum())
        centring = (aim / count / mu) ** 3 * mu if mu > 0 else 0.0
        dw, db, ds, dxi = direction(centring - beta * s - db * ds, centring - upper * xi + db * dxi)
        if not (np.isfinite(dw).all() and np.isfinite(db).all()):
            self.alive = False
            return
        step = min(1.0, 0.99 * length(db, ds, dxi))
        # Complementarity must fall by itself: the gap may stand still while feasibility is still being reached.
        self.falling, self.mu = mu < 0.7 * self.mu, min(mu, self.mu)
        self.alive = float(np.abs(db).max()) < RUNAWAY
        self.element = self.element + step * dw
        self.z = state.margins(self.element)
        self.beta = np.where(used, beta + step * db, 0.0)
        self.upper = np.where(both, upper - step * db, 1.0)
        self.s, self.xi = s + step * ds, np.where(boxed, xi + step * dxi, 0.0)
        yield
