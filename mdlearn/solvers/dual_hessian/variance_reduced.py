"""Variance-reduced R = G (I + kappa P G)^{-1}, which dual Hessians of kernel problems with a variance are made of.

No inverse of G or Q is taken, so singular Gram matrices are welcome. Signs cancel in R, so all classes of a one-vs-rest
problem share it.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from mdlearn.data.features.gram import gram_matrix_by_blocks
from mdlearn.forms.margin import Column
from mdlearn.numerics import cholesky
from mdlearn.solvers.dual_hessian.eigen import EigenGram, eigendecompose_gram
from mdlearn.solvers.dual_hessian.hessian import (
    PRECONDITIONED_BELOW,
    ColumnHessian,
    ExactHessian,
    GramMajorantHessian,
    HessianBorder,
    hessian_border,
)

CANCELLING_FROM = 1e4
"""kappa * lam_max(P G) beyond which G - kappa V'V would cancel, and below which (I - inverse) / kappa would."""
DECOMPOSED_PATH_OF_FEW_ROWS, DECOMPOSED_PATH = 3, 20
"""Problems of a path for which one eigendecomposition pays: of few rows, of more."""
FEW_ROWS, DECOMPOSED_ROWS = 500, 4000
"""Rows that are few, and beyond which a decomposition takes too long."""


def variance_reduced_gram(
    G: np.ndarray, constant: float, kappa: float, counts: np.ndarray, small: float = PRECONDITIONED_BELOW
) -> Generator[None, None, np.ndarray | None]:
    """Return the variance-reduced R for the kernel G + constant, or None where G may stand in for it.

    That is the case up to kappa * lam_max(P G) = `small`, and without a variance term. R takes 2 matrices beside G.
    """
    m = G.shape[0]
    root = np.sqrt(counts)
    size = kappa * (yield from _variance_reduced_eigenvalue(G, constant, root)) if kappa > 0 else 0.0
    if size <= small:
        return None
    large = size > CANCELLING_FROM
    B, V = np.empty((m, m)), np.zeros((m, m))
    step = max(32, (1 << 21) // m)
    for i in range(0, m, step):
        rows = slice(i, i + step)
        V[rows] = (G[rows] + constant) * root[rows, None]
        np.multiply(V[rows], kappa * root, out=B[rows])
        yield
    B[np.diag_indices(m)] += 1.0
    yield from cholesky.cholesky(B)
    if large:
        V[:] = 0.0
        V[np.diag_indices(m)] = 1.0
    yield from cholesky.cholesky_lower_solve(B, V)

    def block(rows: slice, cols: slice) -> np.ndarray:
        product = V[:, rows].T @ V[:, cols]
        if not large:
            return (G[rows, cols] + constant) - kappa * product
        product *= -1.0
        product[np.equal.outer(np.arange(rows.start, rows.stop), np.arange(cols.start, cols.stop))] += 1.0
        return product / (kappa * np.multiply.outer(root[rows], root[cols]))

    R = yield from gram_matrix_by_blocks(m, m, block, out=B)
    return R


def _variance_reduced_eigenvalue(G: np.ndarray, constant: float, root: np.ndarray) -> Generator[None, None, float]:
    """Largest eigenvalue of P^(1/2) (G + constant) P^(1/2) for the variance-reduced R, to a few per cent."""
    # Not the ones: on centred rows they can be an eigenvector of the eigenvalue 0.
    v = root * np.random.default_rng(0).uniform(0.5, 1.5, root.shape[0])
    v /= np.linalg.norm(v)
    value = 0.0
    for _ in range(5):
        v = root * v
        v = root * (G @ v + constant * float(v.sum()))
        value = float(np.linalg.norm(v))
        yield
        if value == 0:
            break
        v /= value
    return max(value, float((root * root * (np.diagonal(G) + constant)).max()))


def variance_reduced_key(column: Column) -> tuple[float, bytes]:
    """Key of the variance-reduced R of one Gram matrix: kappa and the counts, on which R depends."""
    return column.kappa, column.counts.tobytes()


@dataclass(frozen=True, eq=False)
class VarianceReducedGram:
    """Gram matrix (None: rows of it, as needed) and variance-reduced R for one key, which one-vs-rest classes share.

    Never written to, because columns may be in work at the same time; a column with another key computes its own R.
    Along a path, `decomposed` is what every R is made of, and `edge` belongs to the R of the first column.
    """

    G: np.ndarray | None
    constant: float
    key: tuple[float, bytes] | None = None
    R: np.ndarray | None = None
    decomposed: EigenGram | None = None
    edge: HessianBorder | None = None

    def next(self, column: Column, left: int) -> Generator[None, None, VarianceReducedGram | None]:
        """Return the Gram matrix with the R of a column, as one of `left` problems; None where that does not pay."""
        assert self.G is not None
        if column.kappa == 0 or variance_reduced_key(column) == self.key:
            return self
        known = self.decomposed
        if known is None or not np.array_equal(known.counts, column.counts):
            m = self.G.shape[0]
            if left < (DECOMPOSED_PATH_OF_FEW_ROWS if m <= FEW_ROWS else DECOMPOSED_PATH) or m > DECOMPOSED_ROWS:
                return None
            known = yield from eigendecompose_gram(self.G, self.constant, column.counts)
            if known is None:
                return None
        R = yield from known.reduced(column.kappa)
        edge = hessian_border(R, column.counts * column.y, column)
        return VarianceReducedGram(self.G, self.constant, variance_reduced_key(column), R, known, edge)

    def reduced(self, column: Column) -> Generator[None, None, np.ndarray | None]:
        """R of a column; None where G may stand in for it."""
        assert self.G is not None
        if variance_reduced_key(column) == self.key:
            return self.R
        return (yield from variance_reduced_gram(self.G, self.constant, column.kappa, column.counts))

    def hessian(self, column: Column) -> Generator[None, None, ColumnHessian]:
        """Return the dual Hessian of a column, exact or bounded."""
        assert self.G is not None
        R = yield from self.reduced(column)
        if R is None:
            return GramMajorantHessian(self.G, self.constant, column)
        return ExactHessian(self.G, R, self.constant, column)
