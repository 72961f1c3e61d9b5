"""One factorisation for problems without a loss or with the squared loss: their objective is a quadratic."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.base import Steps
from mdlearn.solvers.factoring import Factoring
from mdlearn.solvers.orthogonal import solve_stacked, worthwhile
from mdlearn.solvers.smooth import slopes
from mdlearn.solvers.state import Margins, make_report
from mdlearn.solvers.systems import by_rows, system_of

REFINEMENTS = 4
"""Most corrections of the solution by its own residual."""


def quadratic(column: Column) -> bool:
    """Whether the declared loss is a sum of squared losses: squared terms in pairs of opposite sides."""
    terms = [t for t in column.terms if t.weight > 0]
    low = sorted((t.threshold, t.weight) for t in terms if t.side > 0)
    high = sorted((t.threshold, t.weight) for t in terms if t.side < 0)
    return low == high and all(t.kind == "squared" for t in terms)


class Direct(Factoring):
    """Solve the linear system of a quadratic objective (``solver="direct"``)."""

    name: ClassVar[str] = "direct"
    kinds: ClassVar[frozenset[str]] = frozenset({"squared"})
    needs_ridge: ClassVar[bool] = False
    purpose: ClassVar[str] = "no loss or squared loss: one factorisation; dense rows with moderate d, or a Gram matrix"

    def refusal(self, form: MarginForm) -> str | None:
        """Anything but a quadratic objective has kinks."""
        general = super().refusal(form)
        if general is None and not all(map(quadratic, form.columns)):
            return "its one linear system knows no kinks (squared loss only)"
        return general

    def iterate(
        self, form: MarginForm, column: Column, shared: Any, options: dict[str, Any], rng: np.random.Generator
    ) -> Steps:
        """Yield the solution, then its corrections while they lower the residual."""
        if by_rows(form) and worthwhile(form, column):
            yield from solve_stacked(form, column)
            return
        pairs = [t for t in column.terms if t.side > 0 and t.weight > 0]
        D = 2.0 * sum(t.weight for t in pairs) * column.counts
        system = system_of(form, column, shared, float(D.max()))
        yield from system.setup()
        state = Margins(form, column, system)
        yield from system.factor(D)
        element = np.zeros_like(system.adjoint(column.y))
        size = np.inf
        for _ in range(1 + REFINEMENTS):
            residual = state.residual(element, slopes(column, state.margins(element)))
            now = float(np.abs(residual).max())
            if not now < 0.5 * size:
                return
            size = now
            element = element - system.solve(residual)
            z = state.margins(element)
            yield make_report(state, element, slopes(column, z), z)
