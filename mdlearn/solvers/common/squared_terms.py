"""Squared terms alone: the objective is quadratic while the active rows stay the same, and lines have exact minima."""

from __future__ import annotations

import numpy as np

from mdlearn._solvers import hinges
from mdlearn.forms.losses import table_of_terms
from mdlearn.forms.margin import Column
from mdlearn.numerics.line_search import SLOPE_ROUNDING, line_minimum


class SquaredTerms:
    """Squared terms that make up all of a column's loss."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self.terms = np.ascontiguousarray(table_of_terms(column.terms).T[[1, 0, 3]])
        self.offset = np.empty(0) if column.offset is None else column.offset
        self.steepest = float(self.terms[2].max(initial=0.0)) * float(column.counts.max())

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
            rise, curvature = hinges.along(z, dz, self.column.counts, self.offset, self.terms, t)
            return t * bend + rise, bend + curvature

        return line_minimum(slope, along, SLOPE_ROUNDING)
