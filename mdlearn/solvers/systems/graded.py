"""Graded system: the matrix of a linear program's step, whose rows end with weights from 1e10 down to 1e-20."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mdlearn.forms.margin import Column, MarginForm
from mdlearn.numerics import cholesky
from mdlearn.solvers.systems.row_and_gram import UNRIDGED_SHIFT, RowSystem, solve_row_system, stacked_row_triangle
from mdlearn.solvers.systems.weighted_gram import Work

LEAST_SHIFT, SHIFT_GROWTH = 1e-15, 10.0
"""Share of its diagonal that the matrix grows by while it can be factored, and the growth of this share where it cannot
and has too many columns for the other way: directions that hardly any row holds are the way to the optimum."""
ROUNDED_PIVOT = 1e-14
"""Share of the diagonal that a pivot is, of which rounding has made most."""
HEAVY_ROWS_PER_COLUMN = 2
"""Rows of the largest weights, for each column, that are not squared."""
ORTHOGONAL_COLUMNS = 400
"""Columns up to which an orthogonal factorisation of these rows takes a fraction of a second."""


class GradedSystem(RowSystem):
    """Graded system of rows, no ridge: R' D R while it can be factored, then a triangle of R without squares.

    Near the end of a path fewer rows than columns sit on a kink. What holds the other directions is 1e20 times lighter
    and lost in the sum of all; the triangle of a QR factorisation with sorted rows keeps it (Cox and Higham 1998).
    """

    def __init__(self, form: MarginForm, column: Column) -> None:
        super().__init__(form, column)
        # With fewer rows than columns nothing holds some directions at all.
        few = form.features.n_rows < self.size
        self.shift = UNRIDGED_SHIFT if few else LEAST_SHIFT
        self.can_sort, self.sorted = not few and self.size <= ORTHOGONAL_COLUMNS, False

    def factor(self, D: np.ndarray) -> Work:
        """Factor R' D R; from the first time that this loses directions, sort the rows."""
        while not self.sorted:
            if self.shift >= UNRIDGED_SHIFT:
                yield from super().factor(D)
                return
            if (yield from self._by_squares(D)):
                return
        heavy = np.argsort(-D, kind="stable")[: min(HEAVY_ROWS_PER_COLUMN * self.size, D.shape[0] // 2)]
        light = D.copy()
        light[heavy] = 0.0
        base = yield from cholesky.cholesky_shifted((yield from self.matrix(light, UNRIDGED_SHIFT)))
        top = np.sqrt(D[heavy])[:, None] * self.rows(heavy)
        self.triangle, self.pivots = stacked_row_triangle(np.vstack([top, np.tril(base).T]))
        yield

    def _by_squares(self, D: np.ndarray) -> Generator[None, None, bool]:
        """Factor R' D R, and tell whether its pivots are more than rounding."""
        M = yield from self.matrix(D, self.shift)
        diagonal = np.diagonal(M).copy()
        try:
            self.L = yield from cholesky.cholesky(M)
        except cholesky.NotPositiveDefinite:
            self.sorted = self.can_sort
            self.shift = min(SHIFT_GROWTH * self.shift, UNRIDGED_SHIFT)
            return False
        self.sorted = self.can_sort and bool((np.square(np.diagonal(self.L)) < ROUNDED_PIVOT * diagonal).any())
        return not self.sorted

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        if not self.sorted:
            return super().solve(rhs)
        return cholesky.finite_cholesky_solution(solve_row_system(self.triangle, self.pivots, rhs))
