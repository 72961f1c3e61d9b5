"""Dual Hessian by one Cholesky factor, ordered for a working set: of a variance term that rules."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from scipy.linalg import blas

from mdlearn.data.rows.arrays import copied_by_rows, zeros_by_rows
from mdlearn.forms.margin import Column
from mdlearn.numerics import cholesky
from mdlearn.solvers.dual_hessian.hessian import (
    ENTRIES_PER_PIECE,
    MOST_CORRECTIONS,
    Answer,
    Block,
    ColumnHessian,
    add_dual_hessian_border,
    hessian_block,
    hessian_row_pieces,
)


class CholeskyOrderedHessian(ColumnHessian):
    """Dual Hessian from one Cholesky factor of 1 + kappa P^(1/2) K P^(1/2), the rows of a working set last.

    The last corner of the factor then inverts the last corner of the inverse, which is all that blocks of H are made
    of; other rows cost triangular solutions.
    """

    def __init__(self, G: np.ndarray, constant: float, column: Column) -> None:
        super().__init__(G, constant, column)
        self.root = np.sqrt(column.counts)

    def factor(self, last: np.ndarray) -> Generator[None, None, None]:
        """Factor with the rows `last` at the end."""
        m, kappa = self.G.shape[0], self.column.kappa
        first = np.ones(m, dtype=bool)
        first[last] = False
        self.order = np.append(np.flatnonzero(first), last)
        L = yield from hessian_block(self.G, self.order, self.order)
        root, step = self.root[self.order], max(32, ENTRIES_PER_PIECE // m)
        for a in range(0, m, step):
            rows = L[a : a + step]
            if self.constant:
                rows += self.constant
            rows *= (kappa * root[a : a + step])[:, None]
            rows *= root
            yield
        L[np.diag_indices(m)] += 1.0
        self.L = yield from cholesky.cholesky(L)
        self.border = self._reduced(self.p)
        weight = kappa / self.column.total
        self.omega = weight / max(1.0 - weight * float(self.p @ self.border), 1e-15)
        self.index, n = last, last.shape[0]
        inverse = zeros_by_rows(n)
        inverse[np.diag_indices(n)] = 1.0
        corner = copied_by_rows(self.L[m - n :, m - n :])
        yield from cholesky.cholesky_lower_inverse(corner, inverse)
        self.H = yield from self._corner(inverse, self.root[last])
        self.place = np.full(m, -1)
        self.place[last] = np.arange(n)
        self.cheap = self.place >= 0

    def _corner(self, V: np.ndarray, root: np.ndarray) -> Block:
        """(1 - V'V) / (kappa root root') of a lower triangle V."""
        n = V.shape[0]
        H = np.empty((n, n))
        for a in range(0, n, 256):
            b = min(a + 256, n)
            # Rows of V above a column's own are 0 there.
            H[a:b, :b] = V[a:, a:b].T @ V[a:, :b]
            H[:a, a:b] = H[a:b, :a].T
            yield
        H[np.diag_indices(n)] -= 1.0
        for rows in hessian_row_pieces(H):
            H[rows] /= (-self.column.kappa * root[rows])[:, None]
            H[rows] /= root
        return H

    def _reduced(self, v: np.ndarray) -> np.ndarray:
        """R v = P^-1/2 (1 - (1 + kappa P^1/2 K P^1/2)^-1) P^-1/2 v / kappa."""
        x = v / self.root
        y = np.empty_like(x)
        y[self.order] = cholesky.cholesky_solve(self.L, x[self.order])
        return (x - y) / (self.column.kappa * self.root)

    def block(self, index: np.ndarray) -> Block:
        new = index[self.place[index] < 0]
        if new.shape[0]:
            yield from self._extend(new)
        at = self.place[index]
        H = yield from hessian_block(self.H, at, at)
        add_dual_hessian_border(H, self.border[index], self.omega)
        return H

    def _extend(self, new: np.ndarray) -> Generator[None, None, None]:
        m, old, n = self.G.shape[0], self.index.shape[0], new.shape[0]
        at = np.empty(m, dtype=np.intp)
        at[self.order] = np.arange(m)
        index = np.append(self.index, new)
        H = np.empty((old + n, old + n))
        H[:old, :old] = self.H
        for a in range(0, n, 32):
            rows = new[a : a + 32]
            E = np.zeros((m, rows.shape[0]), order="F")
            E[at[rows], np.arange(rows.shape[0])] = 1.0
            E = blas.dtrsm(1.0, self.L.T, E, lower=0, trans_a=1, overwrite_b=1)
            yield
            E = blas.dtrsm(1.0, self.L.T, E, lower=0, overwrite_b=1)
            E[at[rows], np.arange(rows.shape[0])] -= 1.0
            part = -E[at[index]] / np.multiply.outer(self.column.kappa * self.root[index], self.root[rows])
            H[:, old + a : old + a + rows.shape[0]] = part
            H[old + a : old + a + rows.shape[0]] = part.T
            yield
        self.index, self.H = index, H
        self.place[new] = np.arange(old, old + n)
        self.cheap = self.place >= 0

    def hessian(self, v: np.ndarray) -> np.ndarray:
        return self._reduced(v) + self.border * (self.omega * float(self.border @ v))

    def answer(self, q: np.ndarray, Hq: np.ndarray | None = None) -> Answer:
        """(alpha, f) of the signed weights q, corrected through G itself."""
        alpha = q - self.variance(self.hessian(q))
        yield
        return (yield from self.corrected(q, alpha, 1e-12 * float(np.abs(q).max()), MOST_CORRECTIONS, 0.5))
