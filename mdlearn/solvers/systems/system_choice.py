"""Choice of the linear system that an engine solves: over rows, by blocks, by a stacked QR, or over a Gram matrix."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mdlearn.data.features.clustered_rows import BlockRows
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.systems.block_factor import BlockFactor, BlockSystem, factor_blocks
from mdlearn.solvers.systems.row_and_gram import GramSystem, RowSystem, StackedRowSystem
from mdlearn.solvers.systems.scatter import Scatters

EXPLICIT_COLUMNS = 300
"""Columns up to which explicit rows are used even when there are fewer rows: a d x d matrix rounds less."""
STIFF_LOSS = 1e4
"""Slope (or box width) of a loss, in units of a typical multiplier, beyond which linear systems are ill-conditioned."""
STACKED_LIMIT = 2e7
"""Rows times columns squared up to which such systems are solved by QR."""


def prefers_block_system(form: MarginForm) -> bool:
    """Whether the choice of a linear system is one of blocks: each row in one, connected by nothing but the bias."""
    features = form.features
    if not isinstance(features, LinearFeatures) or features.ridge is not None or form.ridge == 0:
        return False
    rows = features.rows
    if not rows.sparse or not isinstance(rows, BlockRows) or not rows.separate:
        return False
    return rows.width <= max(features.n_rows, EXPLICIT_COLUMNS) and all(column.kappa == 0 for column in form.columns)


def prefers_row_system(form: MarginForm) -> bool:
    """Whether the choice of a linear system is one of the size of the columns, rather than of the rows."""
    features = form.features
    few = features.width <= max(features.n_rows, EXPLICIT_COLUMNS) or prefers_block_system(form)
    # Without a ridge, w need not be a combination of rows.
    return isinstance(features, LinearFeatures) and (few or form.ridge == 0)


def typical_multiplier(form: MarginForm) -> float:
    """Multiplier by which an average row would reach margin 1, a scale for the choice of linear systems."""
    average = float(form.features.squares().mean()) + (form.bias != "none")
    return 1.0 / average if average > 0 else 1.0


def common_first_system_factor(form: MarginForm) -> Generator[None, None, BlockFactor | None]:
    """Choice common to all columns: factor once their first linear system over rows of blocks; else None."""
    if not prefers_block_system(form) or len(form.columns) < 2 or form.kinds != {"squared"}:
        return None
    D = [column.curvatures(np.zeros_like(column.y)).sum(axis=0) for column in form.columns]
    if not all(np.array_equal(D[0], other) for other in D[1:]):
        return None
    assert isinstance(form.features, LinearFeatures) and isinstance(form.features.rows, BlockRows)
    return (yield from factor_blocks(form.features.rows, D[0]))


Shared = np.ndarray | BlockFactor | Scatters | None
"""What columns have in common: a Gram matrix, the factor of their first step over rows of blocks, or sums over rows."""


def choose_system(form: MarginForm, column: Column, shared: Shared, slope: float) -> RowSystem | GramSystem:
    """Choose the linear system, over the Gram matrix or over the rows; `slope` is the largest slope of the loss."""
    if isinstance(shared, np.ndarray):
        return GramSystem(form, column, shared)
    m, d = form.features.n_rows, form.features.width
    if form.ridge > 0 and m * d * d <= STACKED_LIMIT and slope > STIFF_LOSS * typical_multiplier(form):
        return StackedRowSystem(form, column)
    if prefers_block_system(form):
        assert shared is None or isinstance(shared, BlockFactor)
        return BlockSystem(form, column, shared)
    assert shared is None or isinstance(shared, Scatters)
    return RowSystem(form, column, shared)
