"""Direct solver of quadratic objectives: one factorisation for problems without a loss or with the squared loss."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernel_rounding import kernel_matrix_fault
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.solvers.base import Claim, Steps
from mdlearn.solvers.common.factoring import Factoring
from mdlearn.solvers.common.orthogonal import orthogonal_is_worthwhile, solve_by_orthogonal_factors
from mdlearn.solvers.common.primal_dual import PrimalDual, primal_dual_report, primal_dual_report_without_pass
from mdlearn.solvers.quadratic.decompositions import Decompositions
from mdlearn.solvers.quadratic.spectrum import spectrum_steepness
from mdlearn.solvers.systems.operations import step_operations
from mdlearn.solvers.systems.row_and_gram import RowSystem
from mdlearn.solvers.systems.system_choice import choose_system, prefers_row_system

MOST_REFINEMENTS = 4
"""Most corrections of the solution by its own residual."""
DECOMPOSED_PATH = 4
"""Problems of a path for which one decomposition pays."""
ROUNDING_OF_SUMS = 1e-15
"""Share of the multipliers' sizes within which their sum is 0 but for rounding."""
BLURRED_GAP = 1e-7
"""Gap above which slopes at rounded margins are taken to lack digits."""


def quadratic_solver_multipliers(column: Column, alpha: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Multipliers of the direct solver of a quadratic, from representer coefficients (and a bias behind them).

    Slopes at margins z lack digits where the loss is steep, weight * k(x, x) beyond 1e10 or so. What alpha says more
    than they is divided among the pairs of terms by their steepness; of a pair, one multiplier stays 0.
    """
    beta, D = column.slopes(z), spectrum_steepness(column)
    extra = column.y * alpha[: z.shape[0]] - column.spread(z) - column.pull - column.sides @ beta
    used = D.sum(axis=0) > 0
    ordered = sorted((t.side, t.threshold, t.weight, i) for i, t in enumerate(column.terms) if t.weight > 0)
    low, high = ([i for side, *_, i in ordered if side == one] for one in (1, -1))
    for s, t in zip(low, high):
        share = np.divide(D[s], D.sum(axis=0), out=np.zeros_like(z), where=used)
        net = beta[s] - beta[t] + share * extra
        beta[s], beta[t] = np.maximum(net, 0.0), np.maximum(-net, 0.0)
    return beta


class Direct(Factoring):
    """Solver of quadratic objectives by their linear system (``solver="direct"``)."""

    name: ClassVar[str] = "direct"
    draws: ClassVar[bool] = False
    kinds: ClassVar[frozenset[str]] = frozenset({"squared"})
    claims_only: ClassVar[str] = "quadratic"
    needs_ridge: ClassVar[bool] = False
    offsets: ClassVar[bool] = True
    merges_equal_rows: ClassVar[bool] = True
    purpose: ClassVar[str] = "no loss or squared loss: one factorisation; dense rows with moderate d, or a Gram matrix"

    def refusal(self, form: MarginForm) -> str | None:
        """Anything but a quadratic objective has kinks."""
        general = super().refusal(form)
        if general is None and not form.quadratic:
            return "its one linear system knows no kinks (squared loss only)"
        return general

    def claims(self, form: Any) -> Claim | None:
        """One second-order step."""
        if self.refusal(form) is not None:
            return None
        return Claim(step_operations(form), "no loss or squared loss: one linear system")

    def prepare_next(
        self, form: MarginForm, options: dict[str, Any], before: Any, left: int
    ) -> Generator[None, None, Any]:
        """Decompose once what several forms have in common."""
        shared = yield from self.prepare(form, options)
        if not isinstance(before, Decompositions) and left < DECOMPOSED_PATH:
            return shared
        return (yield from (before or Decompositions()).extended(form, shared))

    def iterate(
        self, form: MarginForm, column: Column, shared: Any, options: dict[str, Any], rng: np.random.Generator
    ) -> Steps:
        """Yield the solution, then its corrections while they lower the residual."""
        if isinstance(shared, Decompositions):
            report = shared.report(form, column)
            yield None
            if report is not None:  # where rounding makes it a poor one, a factorisation follows
                yield report
            shared = shared.shared
        D = spectrum_steepness(column).sum(axis=0)
        system = choose_system(form, column, shared, float(D.max()))
        yield from system.setup()
        yield from self._solved(PrimalDual(form, column, system), D)
        # Where rounding leaves a gap, the rows themselves are factored instead of sums of their squares.
        if isinstance(system, RowSystem) and orthogonal_is_worthwhile(system):
            yield from solve_by_orthogonal_factors(system)

    def _solved(self, state: PrimalDual, D: np.ndarray) -> Steps:
        """Yield the solution of the system of sums of squares, then its corrections while they lower the residual."""
        form, column, system = state.form, state.column, state.system
        try:
            yield from system.factor(D)
        except NotPositiveDefinite:
            if not prefers_row_system(form):
                title = form.features.kernel.title if isinstance(form.features, KernelFeatures) else "all rows"
                raise kernel_matrix_fault(title, "a factorisation met a negative pivot") from None
            return
        element, z = np.zeros(system.size), np.zeros_like(column.y)
        beta = column.slopes(z)
        residual = state.residual(element, beta)
        if form.bias == "free" and abs(residual[-1]) <= ROUNDING_OF_SUMS * float(np.abs(state.multipliers(beta)).sum()):
            residual[-1] = 0.0  # nothing but rounding would move an intercept that the loss hardly holds
        size = np.inf
        for _ in range(1 + MOST_REFINEMENTS):
            now = float(np.abs(residual).max())
            if not now < 0.5 * size:
                return
            size = now
            try:
                element = element - system.solve(residual)
                if form.ridge == 0:  # the factor holds directions by a trace
                    element = element - system.solve(state.residual(element, column.slopes(state.margins(element))))
            except NotPositiveDefinite:  # the solution overflowed
                return
            z = state.margins(element)
            beta = column.slopes(z)
            residual = state.residual(element, beta)
            stand_for = element - residual / system.metric
            report = primal_dual_report_without_pass(state, element, z, beta, column.spread(z), stand_for)
            if (
                not prefers_row_system(form)
                and not column.relative_gap(report.objective, report.lower_bound) <= BLURRED_GAP
            ):
                own = primal_dual_report(state, element, quadratic_solver_multipliers(column, element, z), z)
                report = max(report, own, key=lambda one: one.lower_bound)
            yield report
