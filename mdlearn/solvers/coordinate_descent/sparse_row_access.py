"""Access of compiled sweeps to the rows of a sparse problem, one kind of rows each."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg import solve_triangular

import mdlearn._solvers.centred as kernels
from mdlearn.data.features.clustered_rows import BlockRows
from mdlearn.data.features.smoothed_clusters import SmoothedClusterRows
from mdlearn.data.rows.csr_rows import CsrRows, CsrRowsWithoutColumn
from mdlearn.data.rows.rows import Rows


class SparseRowAccess(ABC):
    """Access of compiled sweeps to sparse rows, and the vector that they keep up to date: here, w itself.

    `entries`: numbers that one visit of every row touches.
    """

    entries: int

    @abstractmethod
    def sweep(self, problem: kernels.Centred, order: np.ndarray) -> None:
        """Visit the coordinates in `order` once."""

    def sweep_vector(self, w: np.ndarray) -> np.ndarray:
        """The vector that sweeps keep, for coefficients w."""
        return w

    def coefficients(self, vector: np.ndarray) -> np.ndarray:
        """Coefficients for that vector."""
        return vector


class CsrRowAccess(SparseRowAccess):
    """Access of sweeps to rows of a CSR matrix."""

    def __init__(self, rows: CsrRows) -> None:
        self.X = rows.X
        self.blank = rows.place if isinstance(rows, CsrRowsWithoutColumn) else -1
        self.entries = int(self.X.nnz)

    def sweep(self, problem: kernels.Centred, order: np.ndarray) -> None:
        problem.blank = self.blank
        kernels.sweep(self.X.data, self.X.indices, self.X.indptr, problem, order)


class BlockRowAccess(SparseRowAccess):
    """Access of sweeps to rows of dense blocks."""

    def __init__(self, rows: BlockRows) -> None:
        layout = rows.layout
        self.F, self.couplings = rows.F, np.zeros((0, 0))
        self.place, self.blocks = (np.ascontiguousarray(of, dtype=np.int64) for of in (layout.place, layout.blocks))
        self.entries = rows.F.size

    def sweep(self, problem: kernels.Centred, order: np.ndarray) -> None:
        kernels.sweep_blocks(self.F, self.place, self.blocks, self.couplings, problem, order)


class TiedRowAccess(BlockRowAccess):
    """Access of sweeps to rows of tied blocks. A w is kept: margins are products with one block, updates with all."""

    def __init__(self, rows: SmoothedClusterRows) -> None:
        super().__init__(rows)
        self.couplings, self.mix = rows.couplings, rows.mix
        self.entries *= rows.layout.n_blocks

    def sweep_vector(self, w: np.ndarray) -> np.ndarray:
        product: np.ndarray = (self.mix @ w.reshape(self.mix.shape[0], -1)).ravel()
        return product

    def coefficients(self, vector: np.ndarray) -> np.ndarray:
        w: np.ndarray = solve_triangular(self.mix, vector.reshape(self.mix.shape[0], -1))
        return w.ravel()


def sparse_row_access(rows: Rows) -> SparseRowAccess:
    """Access of sweeps to rows that are not written out densely."""
    if isinstance(rows, SmoothedClusterRows):
        return TiedRowAccess(rows)
    if isinstance(rows, BlockRows):
        return BlockRowAccess(rows)
    assert isinstance(rows, CsrRows)
    return CsrRowAccess(rows)
