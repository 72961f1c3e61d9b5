"""One factorisation for problems without a loss or with the squared loss: their objective is a quadratic."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar

import numpy as np

from mdlearn.data import memory
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.base import Solver, Steps
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


class Direct(Solver):
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

    def check_memory(self, form: MarginForm, at_once: int = 1) -> None:
        """Ask for two matrices of size d (rows) or two of size m (Gram)."""
        m, d = form.features.n_rows, form.features.width + 1
        if by_rows(form):
            memory.require(at_once * (16.0 * d * d + 80.0 * m), f"a system of {d} columns", "use solver='cd'", at_once)
        else:
            size, instead = 8.0 * (1 + at_once) * m * m, "use fewer rows or kernel='linear'"
            memory.require(size, f"a kernel problem with {m} rows", instead, at_once)

    def prepare(self, form: MarginForm, options: dict[str, Any]) -> Generator[None, None, Any]:
        """Return the Gram matrix when the problem is solved through it."""
        if by_rows(form):
            return None
        return (yield from form.features.gram())

    def iterate(
        self, form: MarginForm, column: Column, shared: Any, options: dict[str, Any], rng: np.random.Generator
    ) -> Steps:
        """Yield the solution, then its corrections while they lower the residual."""
        pairs = [t for t in column.terms if t.side > 0 and t.weight > 0]
        D = 2.0 * sum(t.weight for t in pairs) * column.counts
        system = system_of(form, column, shared, float(D.max()))
        yield from system.setup()
        state = Margins(form, column, system)
        yield from system.factor(D)
        element = np.zeros_like(system.adjoint(column.y))
        size = np.inf
        for _ in range(1 + REFINEMENTS):
            residual = state.residual(element, self._multipliers(column, state.margins(element)))
            now = float(np.abs(residual).max())
            if not now < 0.5 * size:
                return
            size = now
            element = element - system.solve(residual)
            z = state.margins(element)
            yield make_report(state, element, self._multipliers(column, z), z)

    @staticmethod
    def _multipliers(column: Column, z: np.ndarray) -> np.ndarray:
        """Slopes of the terms at margins z, shape (T, m)."""
        weights = np.array([t.weight for t in column.terms])
        excess = np.maximum(column.sides[:, None] * (column.thresholds[:, None] - z), 0.0)
        return 2.0 * weights[:, None] * column.counts * excess if weights.size else np.zeros((0, z.shape[0]))
