"""Q + R' D R for rows that have entries in one block of columns each: an arrow, solved block by block.

Without a variance term only the bias connects the blocks. So a problem of K blocks costs what its blocks cost.
"""

from __future__ import annotations

import numpy as np

from mdlearn.data.features.clustered_rows import BlockRows
from mdlearn.data.rows.rows import COPY_BYTES, Rows
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.numerics import cholesky
from mdlearn.solvers.systems.block_factor import BlockFactor, factored
from mdlearn.solvers.systems.explicit import Map, RowSystem
from mdlearn.solvers.systems.weighted_gram import Work


class BlockSystem(RowSystem):
    """Explicit rows of blocks, each row in one."""

    def __init__(self, form: MarginForm, column: Column, common: BlockFactor | None = None) -> None:
        super().__init__(form, column)
        self.common = common
        assert isinstance(form.features.rows, BlockRows)
        self.blocks: BlockRows = form.features.rows
        self.most_restricted = int(COPY_BYTES / (8.0 * self.blocks.width))

    def setup(self) -> Work:
        """Nothing to prepare: Q is the ridge."""
        yield

    def quadratic(self, element: np.ndarray) -> np.ndarray:
        """Q times an element."""
        return self.ridge * element

    def restrict(self, rows: np.ndarray) -> tuple[Map, Map]:
        """`decision` and `adjoint` of at most `most_restricted` rows."""
        part = self.blocks.take(rows)
        if not self.bias:
            return part.dot, part.adjoint
        return lambda element: part.dot(element[:-1]) + element[-1], lambda v: np.append(part.adjoint(v), v.sum())

    def factor(self, D: np.ndarray) -> Work:
        """Factor the blocks, then eliminate them from the bias; D that all columns begin with was factored before."""
        common = self.common
        if common is not None and np.array_equal(common.weights, D):
            self.made = common
        else:
            self.made = yield from factored(self.blocks, D)
        if self.bias:
            corner = self.ridge[-1] + self.made.left
            # Nothing holds a free intercept without a row on a kink: it stays.
            self.border, self.corner = self.made.border.ravel(), corner if corner > 0 else 1.0

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Solve with the last factor; the border is that of the inverse already."""
        if not self.bias:
            return cholesky.finite(self.made.inverse(rhs))
        b = (rhs[-1] - float(self.border @ rhs[:-1])) / self.corner
        return cholesky.finite(np.append(self.made.inverse(rhs[:-1]) - b * self.border, b))

    @staticmethod
    def bytes_of(rows: Rows) -> float:
        """Bytes that factors take when all rows have a weight."""
        assert isinstance(rows, BlockRows)
        n, L = np.diff(rows.layout.starts).astype(np.float64), float(rows.width)
        return 8.0 * float(np.where(n < L, n * (n + L), L * L).sum())
