"""One eigendecomposition of a Gram matrix, from which the dual Hessian of every weight of the variance follows.

With P^1/2 (G + constant) P^1/2 = U diag(v) U', R = P^-1/2 U diag(v / (1 + kappa v)) U' P^-1/2: one product per kappa,
and nothing cancels however large kappa is. A path asks for it once; a single problem has cheaper ways.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from mdlearn.data.features.gram import gram_matrix_by_blocks
from mdlearn.numerics.symmetric_eigenvalues import symmetric_eigen

ROUNDING_OF_EIGENVALUES = 1e-10
"""Eigenvalue below 0, relative to the largest, that rounding makes."""
WHOLE_PRODUCT_ROWS = 1000
"""Rows up to which R is one product of a few milliseconds."""


@dataclass(frozen=True, eq=False)
class EigenGram:
    """Eigenvalues and eigenvectors for dual Hessians: of the Gram matrix P^1/2 (G + constant) P^1/2, for counts P."""

    counts: np.ndarray  # shape (m,)
    values: np.ndarray  # shape (m,): at least 0
    vectors: np.ndarray  # shape (m, m): P^-1/2 U

    def reduced(self, kappa: float) -> Generator[None, None, np.ndarray]:
        """R for one weight of the variance."""
        V = self.vectors * np.sqrt(self.values / (1.0 + kappa * self.values))
        m = V.shape[0]
        if m <= WHOLE_PRODUCT_ROWS:
            yield
            return V @ V.T
        return (yield from gram_matrix_by_blocks(m, m, lambda rows, columns: V[rows] @ V[columns].T))


def eigendecompose_gram(G: np.ndarray, constant: float, counts: np.ndarray) -> Generator[None, None, EigenGram | None]:
    """Eigendecomposition for dual Hessians: Gram matrix plus a constant; None: clearly indefinite, or a count is 0."""
    if not (counts > 0).all():
        return None
    root = np.sqrt(counts)
    A = (G + constant) * root
    A *= root[:, None]
    yield
    values, vectors = symmetric_eigen(A)
    yield
    if values[0] < -ROUNDING_OF_EIGENVALUES * values[-1]:
        return None
    return EigenGram(counts, np.maximum(values, 0.0), vectors / root[:, None])
