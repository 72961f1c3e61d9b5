"""Squared terms alone: the objective is quadratic while the active rows stay the same, and lines have exact minima."""

from __future__ import annotations

import numpy as np

from mdlearn.forms.margin import Column


class SquaredTerms:
    """The loss of a column whose terms are all squared."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self.curvature = 2.0 * np.multiply.outer(np.array([t.weight for t in column.terms]), column.counts)
        self.steepest = float(self.curvature.max(initial=0.0))

    def _excess(self, z: np.ndarray) -> np.ndarray:
        """How far each margin is on the punished side of each threshold, shape (T, m)."""
        return self.column.sides[:, None] * (self.column.kinks - z)

    def slopes(self, z: np.ndarray) -> np.ndarray:
        """Multipliers at margins z."""
        return self.curvature * np.maximum(self._excess(z), 0.0)

    def model(self, z: np.ndarray) -> np.ndarray:
        """Second derivatives at margins z, shape (T, m); on the threshold itself 0."""
        return self.curvature * (self._excess(z) > 0)

    def length(self, z: np.ndarray, dz: np.ndarray, model: np.ndarray, bend: float) -> float:
        """Minimiser of the objective along a step of that model; `bend` is the second derivative of the rest.

        The derivative is piecewise linear and rises. It begins at -(bend + sum of D dz^2), by the equation that the
        step solves; its slope changes where an excess passes 0.
        """
        excess, rate = self._excess(z), -self.column.sides[:, None] * dz
        bends = self.curvature * rate * rate
        start = -(bend + float((model * rate * rate)[model > 0].sum()))
        at = np.divide(-excess, rate, out=np.full_like(excess, -1.0), where=bends > 0)
        # A row that sits on its threshold is not active yet, but may become so at once.
        crossing = (at > 0) | ((at == 0) & (rate > 0))
        order = np.argsort(at[crossing], kind="stable")
        at = np.append(0.0, at[crossing][order])
        changes = (bends * np.sign(rate))[crossing][order]
        active = bend + float(bends[excess > 0].sum())
        slopes = np.maximum(np.append(0.0, np.cumsum(changes)) + active, bend)
        derivative = start + np.append(0.0, np.cumsum(slopes[:-1] * np.diff(at)))
        last = max(int(np.searchsorted(derivative, 0.0)) - 1, 0)
        return float(at[last] - derivative[last] / slopes[last]) if slopes[last] > 0 else np.inf
