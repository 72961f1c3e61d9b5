"""Squared terms alone: the objective is quadratic while the active rows stay the same, and lines have exact minima."""

from __future__ import annotations

import numpy as np

from mdlearn._solvers import hinges
from mdlearn.forms.losses import loss_term_table
from mdlearn.forms.margin import Column
from mdlearn.numerics.line_search import SLOPE_ROUNDING, line_minimum


class SquaredTerms:
    """Squared terms that make up all of a column's loss."""

    def __init__(self, column: Column) -> None:
        self.column = column
        terms = np.ascontiguousarray(loss_term_table(column.terms).T[[1, 0, 3]])
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
