"""How compiled sweeps visit the rows of a sparse problem, one kind of rows each."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.linalg import solve_triangular

import mdlearn._solvers.centred as kernels
from mdlearn.data.features.clustered_rows import BlockRows
from mdlearn.data.features.smoothed_clusters import TiedRows
from mdlearn.data.rows.csr_rows import CsrRows, CsrRowsWithoutColumn
from mdlearn.data.rows.rows import Rows


class Visits(Protocol):
    """Sweeps over rows, and the vector that they keep up to date.

    Attributes
    ----------
    entries : int
        Numbers that one visit of every row touches.
    """

    entries: int

    def sweep(self, problem: kernels.Centred, order: np.ndarray) -> None:
        """Visit the coordinates in `order` once."""

    def kept(self, w: np.ndarray) -> np.ndarray:
        """The vector that sweeps keep, for coefficients w."""

    def coefficients(self, kept: np.ndarray) -> np.ndarray:
        """Coefficients for that vector."""


class CsrVisits:
    """Rows of a CSR matrix; w itself is kept."""

    def __init__(self, rows: CsrRows) -> None:
        self.X = rows.X
        self.blank = rows.place if isinstance(rows, CsrRowsWithoutColumn) else -1
        self.entries = int(self.X.nnz)

    def sweep(self, problem: kernels.Centred, order: np.ndarray) -> None:
        """Visit the coordinates in `order` once."""
        problem.blank = self.blank
        kernels.sweep(self.X.data, self.X.indices, self.X.indptr, problem, order)

    def kept(self, w: np.ndarray) -> np.ndarray:
        """w."""
        return w

    def coefficients(self, kept: np.ndarray) -> np.ndarray:
        """w."""
        return kept


class BlockVisits:
    """Rows of dense blocks; w itself is kept."""

    def __init__(self, rows: BlockRows) -> None:
        layout = rows.layout
        self.F, self.couplings = rows.F, np.zeros((0, 0))
        self.place, self.blocks = (np.ascontiguousarray(of, dtype=np.int64) for of in (layout.place, layout.blocks))
        self.entries = rows.F.size

    def sweep(self, problem: kernels.Centred, order: np.ndarray) -> None:
        """Visit the coordinates in `order` once."""
        kernels.sweep_blocks(self.F, self.place, self.blocks, self.couplings, problem, order)

    def kept(self, w: np.ndarray) -> np.ndarray:
        """w."""
        return w

    def coefficients(self, kept: np.ndarray) -> np.ndarray:
        """w."""
        return kept


class TiedVisits(BlockVisits):
    """Rows of tied blocks. A w is kept: a margin is then one product with a block, an update one with all."""

    def __init__(self, rows: TiedRows) -> None:
        super().__init__(rows)
        self.couplings, self.mix = rows.couplings, rows.mix
        self.entries *= rows.layout.n_blocks

    def kept(self, w: np.ndarray) -> np.ndarray:
        """A w."""
        product: np.ndarray = (self.mix @ w.reshape(self.mix.shape[0], -1)).ravel()
        return product

    def coefficients(self, kept: np.ndarray) -> np.ndarray:
        """A^-1 of what is kept."""
        w: np.ndarray = solve_triangular(self.mix, kept.reshape(self.mix.shape[0], -1))
        return w.ravel()


def visits_of(rows: Rows) -> Visits:
    """The visits of rows that are not written out densely."""
    if isinstance(rows, TiedRows):
        return TiedVisits(rows)
    if isinstance(rows, BlockRows):
        return BlockVisits(rows)
    assert isinstance(rows, CsrRows)
    return CsrVisits(rows)
