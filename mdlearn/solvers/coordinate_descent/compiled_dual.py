"""Dual of a column that compiled sweeps ascend, on a Gram matrix or on explicit rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator

import numpy as np

import mdlearn._solvers.cd as kernels
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.base import Report

ENTRIES_PER_CALL = 1 << 24
"""Entries that one call of a kernel touches: about 10 ms."""


class CompiledDual(ABC):
    """State of coordinate descent: multipliers beta, a kept vector that sweeps bring up to date, S = border' q.

    `rows`: what sweeps read, with the kept vector; `visit`: entries that count for a visit of a row.
    """

    rows: kernels.GramRows | kernels.DenseRows
    visit: int

    def __init__(
        self, form: MarginForm, column: Column, diagonal: np.ndarray, border: np.ndarray, omega: float, width: int
    ) -> None:
        self.form, self.column = form, column
        self.beta, self.S, self.kept = np.zeros(column.caps.shape), np.zeros(1), np.zeros(width)
        kinks = np.ascontiguousarray(np.broadcast_to(column.kinks, column.caps.shape))
        caps, softness = np.ascontiguousarray(column.caps), np.ascontiguousarray(column.softness)
        self.problem = kernels.Problem(
            column.y, column.sides, kinks, caps, softness, diagonal, border, omega, self.beta, self.S
        )

    def sweep(self, order: np.ndarray) -> Generator[None, None, None]:
        """Visit the coordinates in `order`, in pieces of some milliseconds."""
        step = max(16, ENTRIES_PER_CALL // self.visit)
        for k in range(0, order.shape[0], step):
            kernels.sweep(self.rows, self.problem, order[k : k + step])
            yield

    def weights(self) -> np.ndarray:
        """Signed weights of the linear part."""
        return self.column.y * (self.column.sides @ self.beta + self.column.pull)

    @abstractmethod
    def margins(self) -> np.ndarray:
        """Margins y f of the kept vector."""

    def gradient(self) -> np.ndarray:
        """Gradient of the dual value at the present margins, shape (T, m)."""
        column = self.column
        return column.sides[:, None] * (column.kinks - self.margins()) - column.softness * self.beta

    def movable(self) -> np.ndarray:
        """Coordinates inside their box, or at a bound and drawn inside."""
        low, high = self.beta <= 0, self.beta >= self.column.caps
        g = self.gradient()
        drawn = (g != 0) & ~(((g <= 0) & low) | ((g >= 0) & high))
        return np.flatnonzero(~(low | high) | drawn)

    @abstractmethod
    def newton(self, steps: int) -> Generator[None, None, None]:
        """Solve on the free coordinates in at most so many steps, never lowering the dual value."""

    @abstractmethod
    def report(self) -> Report:
        """Recompute margins exactly and evaluate; the kept vector restarts from them."""
