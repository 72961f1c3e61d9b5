"""Losses with a continuous slope as Newton steps read them: slopes, models for steps, and the line search."""

from __future__ import annotations

import numpy as np

from mdlearn._solvers import hinges
from mdlearn.forms.margin import Column
from mdlearn.numerics.line_search import SLOPE_ROUNDING, line_minimum

LINE_SEARCH_SLOPE = 0.01
"""Share of the first derivative along a line that may be left at the point taken."""
TELLING_STEP = 0.3
"""Step length from which a step says how far margins will still move."""


class SmoothLosses:
    """Smooth losses of a column: all terms have a continuous slope.

    The second derivative of a logistic term is nearly 0 for margins far from its threshold, and a Newton step that
    believes it takes them much too far. So the model takes the average of the second derivative over the distance that
    margins still move, where that is larger: far rows are held, and at the end the model is the second derivative.
    """

    def __init__(self, column: Column) -> None:
        self.column = column
        self.reach = float(np.abs(column.kinks).max(initial=1.0))
        self.steepest = max((t.steepest * float(column.counts.max()) for t in column.terms), default=0.0)

    def slopes(self, z: np.ndarray) -> np.ndarray:
        """Multipliers at margins z."""
        return self.column.slopes(z)

    def model(self, z: np.ndarray) -> np.ndarray:
        """Second derivatives for a step from margins z, shape (T, m)."""
        D = self.column.curvatures(z)
        # Below this distance rounding would show in the difference.
        if self.reach > 1e-5 * (1.0 + float(np.abs(z).max())):
            change = self.column.sides[:, None] * (self.slopes(z - self.reach) - self.slopes(z + self.reach))
            D = np.maximum(D, change / (2.0 * self.reach))
        return D

    def length(self, z: np.ndarray, dz: np.ndarray, slope: float, bend: float) -> float:
        """Length that takes the derivative along a step from `slope` to a hundredth; `bend` is that of the rest."""
        column, first = self.column, self.slopes(z)

        def along(t: float) -> tuple[float, float]:
            there = z + t * dz
            rise = float((column.sides @ (first - self.slopes(there))) @ dz)
            return t * bend + rise, bend + float((column.curvatures(there).sum(axis=0) * dz) @ dz)

        t = line_minimum(slope, along, LINE_SEARCH_SLOPE)
        if np.isfinite(t):
            moved = t * float(np.sqrt(column.counts @ np.square(dz) / column.total))
            self.reach = moved if t > TELLING_STEP else max(0.25 * self.reach, min(self.reach, moved))
        return t


class SquaredTerms:
    """Squared terms that make up all of a column's loss, which is quadratic while the active rows stay the same."""

    def __init__(self, column: Column) -> None:
        self.column = column
        terms = np.array([(t.threshold, t.side, t.steepest) for t in column.terms]).reshape(-1, 3).T.copy()
        offset = np.empty(0) if column.offset is None else column.offset
        self.steepest = float(terms[2].max(initial=0.0)) * float(column.counts.max())
        self.passes = [(column.counts, offset, terms)]
        if column.by_row is not None:  # a pass for each term, with weights and thresholds of its own
            kinks = np.broadcast_to(column.kinks - column.thresholds[:, None], column.caps.shape)
            self.passes = [
                (own, np.ascontiguousarray(more), np.ascontiguousarray(terms[:, [i]]))
                for i, ((_, own), more) in enumerate(zip(column.shares, kinks))
            ]

    def slopes(self, z: np.ndarray) -> np.ndarray:
        """Multipliers at margins z."""
        return self.column.slopes(z)

    def model(self, z: np.ndarray) -> np.ndarray:
        """Second derivatives at margins z, shape (T, m); on the threshold itself 0."""
        return self.column.curvatures(z)

    def length(self, z: np.ndarray, dz: np.ndarray, slope: float, bend: float) -> float:
        """Minimiser of the objective along a step that begins with a slope; `bend`: second derivative of the rest."""
        z, dz = np.ascontiguousarray(z), np.ascontiguousarray(dz)

        def along(t: float) -> tuple[float, float]:
            total, curvature = t * bend, bend
            for counts, offset, terms in self.passes:
                rise, bent = hinges.along(z, dz, counts, offset, terms, t)
                total, curvature = total + rise, curvature + bent
            return total, curvature

        return line_minimum(slope, along, SLOPE_ROUNDING)
