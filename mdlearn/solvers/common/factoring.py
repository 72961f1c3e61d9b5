"""Factoring of a matrix of the size of the columns, or of the Gram matrix, for every column: what engines share."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from mdlearn.data.features.basis import BasisFeatures
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.affine import AffineRows
from mdlearn.forms.losses import CURVED
from mdlearn.forms.margin import MarginForm
from mdlearn.numerics import memory
from mdlearn.solvers.base import Solver
from mdlearn.solvers.systems.block_factor import BlockSystem
from mdlearn.solvers.systems.scatter import Scatters
from mdlearn.solvers.systems.system_choice import prefers_block_system, prefers_row_system


class Factoring(Solver):
    """Base class of engines that share the factoring of a `RowSystem` or `GramSystem`."""

    def check_memory(self, form: MarginForm, at_once: int = 1) -> None:
        """Ask for three matrices of size d per column (rows), or for the Gram matrix and two of its size per column.

        What columns have in common comes on top: the scatter of the rows, and the values of a basis.
        """
        m, d = form.features.n_rows, form.features.width + 1
        sweeps = form.ridge > 0 and CURVED.isdisjoint(form.kinds)
        if prefers_row_system(form):
            square = BlockSystem.bytes_of(form.features.rows) if prefers_block_system(form) else 24.0 * d * d
            common = 8.0 * d * d if len(form.columns) > 1 or form.varied else 0.0
            if isinstance(form.features, BasisFeatures):
                common += form.features.rows.kept_bytes
            size, what = common + at_once * (square + 160.0 * m), f"solver {self.name!r} on {d} columns"
            instead = "use solver='cd'" if sweeps else "use fewer columns"
            if isinstance(form.features, BasisFeatures):
                instead = "use a basis of fewer rows" + (" or solver='newton-cg'" if form.features.by_products else "")
            memory.require(size, what, instead, at_once)
        else:
            size, what = (8.0 + 16.0 * at_once) * m * m, f"a Gram matrix of {m} rows"
            instead = memory.FEWER
            if isinstance(form.features, LinearFeatures):
                instead = "use solver='cd'" if sweeps else "use fewer rows"
            memory.require(size, what, instead, at_once)

    def prepare(self, form: MarginForm, options: dict[str, Any]) -> Generator[None, None, Any]:
        """Return the Gram matrix, where that is factored, or sums over rows that several columns have in common."""
        features = form.features
        if isinstance(features, LinearFeatures):
            yield from features.computed()
        if prefers_row_system(form):
            assert isinstance(features, LinearFeatures)
            several = len(form.columns) > 1 and not prefers_block_system(form)
            return Scatters(AffineRows(features.rows, form.bias != "none")) if several else None
        return (yield from form.features.gram())
