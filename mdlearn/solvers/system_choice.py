"""Which linear system an engine solves: over the rows, block by block, by a stacked QR, or over a Gram matrix."""

from __future__ import annotations

import numpy as np

from mdlearn.data.features import LinearFeatures
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.block_system import BlockSystem
from mdlearn.solvers.systems import GramSystem, RowSystem, StackedSystem

NARROW = 300
"""Columns up to which explicit rows are used even when there are fewer rows: a d x d matrix rounds less."""
STIFF = 1e4
"""Slope (or box width) of a loss, in units of a typical multiplier, beyond which linear systems are ill-conditioned."""
STACKED_LIMIT = 2e7
"""Rows times columns squared up to which such systems are solved by QR."""


def blockwise(form: MarginForm) -> bool:
    """Whether the rows connect few columns with each other, and nothing else does but the bias."""
    features = form.features
    if not isinstance(features, LinearFeatures) or features.ridge is not None or form.ridge == 0:
        return False
    most, coupled = max(features.n_rows, NARROW), features.rows.coupled
    return coupled < features.width and coupled <= most and all(column.kappa == 0 for column in form.columns)


def by_rows(form: MarginForm) -> bool:
    """Whether matrices of the size of the columns are made, rather than of the rows."""
    features = form.features
    few = features.width <= max(features.n_rows, NARROW) or blockwise(form)
    # Without a ridge, w need not be a combination of rows.
    return isinstance(features, LinearFeatures) and (few or form.ridge == 0)


def typical_multiplier(form: MarginForm) -> float:
    """Multiplier with which one average row would reach margin 1 on its own."""
    average = float(form.features.squares().mean()) + (form.bias != "none")
    return 1.0 / average if average > 0 else 1.0


def system_of(form: MarginForm, column: Column, G: np.ndarray | None, slope: float) -> RowSystem | GramSystem:
    """The system to use, with the Gram matrix G or over the rows; `slope` is the largest slope of the loss."""
    if G is not None:
        return GramSystem(form, column, G)
    m, d = form.features.n_rows, form.features.width
    stacked = form.ridge > 0 and m * d * d <= STACKED_LIMIT and slope > STIFF * typical_multiplier(form)
    if not stacked and blockwise(form):
        return BlockSystem(form, column)
    return StackedSystem(form, column) if stacked else RowSystem(form, column)
