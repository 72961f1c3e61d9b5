"""Constant column of ones in sparse rows, taken out as the bias that it is.

Every row has it, so the dual Hessian has one eigenvalue of the size of m, and single coordinates fight it. A
regularized bias is the same thing, and sweeps know how to move that. Users of LIBLINEAR write their bias so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.csr_rows import CsrRows, CsrRowsWithoutColumn
from mdlearn.forms.margin import MarginForm, Point
from mdlearn.forms.proof import Start

LOOKED_AT = 20
"""Rows in which a column has to be 1 before all rows are searched for it."""


@dataclass(frozen=True, eq=False)
class FoldedConstantColumn:
    """Form without its constant column, a column of ones.

    `form`: the same problem; the column is empty, and the bias is regularized; `place`: the column; `value`: 1, or -1
    for a column of minus ones.
    """

    form: MarginForm
    place: int
    value: float

    def unfolded(self, point: Point) -> Point:
        """A point of the form as one of the given form, where the intercept is a coefficient."""
        if point.coef is None:
            return replace(point, intercept=0.0)
        coef = point.coef.copy()
        coef[self.place] = self.value * point.intercept
        return replace(point, coef=coef, intercept=0.0)

    def start_of(self, start: Start) -> Start:
        """A start of the given form as one of this form."""
        coef = start.coef.copy()
        intercept, coef[self.place] = self.value * float(coef[self.place]), 0.0
        return replace(start, coef=coef, intercept=intercept)


def fold_constant_column(form: MarginForm) -> FoldedConstantColumn | None:
    """Take a constant column of ones out of a form; None where there is none."""
    features = form.features
    if form.bias != "none" or not isinstance(features, LinearFeatures) or features.ridge is not None:
        return None
    rows = features.rows
    if not isinstance(rows, CsrRows):
        return None
    X, m = rows.X, rows.shape[0]
    for place, value in sorted(_constant_column_candidates(X)):
        at = np.flatnonzero(X.indices == place)
        if at.shape[0] != m or (X.data[at] != value).any():
            continue
        if (at < X.indptr[:-1]).any() or (at >= X.indptr[1:]).any():  # not one in each row
            continue
        inner = replace(form, features=LinearFeatures(CsrRowsWithoutColumn(X, int(place))), bias="regularized")
        return FoldedConstantColumn(inner, int(place), float(value))
    return None


def _constant_column_candidates(X: Any) -> set[tuple[int, float]]:
    """Columns that are 1 (or -1) in all of some rows: all others are no constant column."""
    found: set[tuple[int, float]] | None = None
    for row in np.unique(np.linspace(0, X.shape[0] - 1, LOOKED_AT).astype(int)):
        span = slice(X.indptr[row], X.indptr[row + 1])
        entries = zip(X.indices[span].tolist(), X.data[span].tolist())
        ones = {(place, value) for place, value in entries if abs(value) == 1.0}
        found = ones if found is None else found & ones
        if not found:
            return set()
    return found or set()
