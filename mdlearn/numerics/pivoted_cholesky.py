"""Partial Cholesky factors of a kernel matrix, with pivots drawn at random: few columns tell most of it.

Pivots are drawn in proportion to what is left of the diagonal, a block at a time (Chen, Epperly, Tropp and Webber,
"Randomly pivoted Cholesky", arXiv 2207.06503). Nothing but the diagonal and the columns drawn is ever asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np
from scipy.linalg import blas, lapack

from mdlearn.numerics.symmetric_eigenvalues import symmetric_eigen

PIVOT_BLOCK = 128
"""Pivots drawn at once."""
FACTORED_SHARE = 1e-7
"""Share of the diagonal's sum that counts as factored."""
INDEPENDENT_SHARE = 1e-6
"""Share of the largest entry of a block's diagonal that a further pivot of the block needs."""
SINGLE_PIVOT = 1e-5
"""Share of the diagonal's largest entry that a pivot of columns in single precision needs: below, their rounding is
what is left, and later columns of the factor multiply it."""
EIGEN_ROUNDING = 1e-16
"""Least eigenvalue that a matrix of the partial factor is taken to have, relative to the sum of all."""
UPDATED_ROWS = 1024
"""Rows that are brought up to date between two heartbeats."""
MOST_PIVOTS, FACTOR_ENTRIES = 1000, 4e7
"""Columns of a partial factor at most, and its entries: 320 MB."""
Columns = Callable[[np.ndarray], Generator[None, None, np.ndarray]]


def pivoted_cholesky_columns(m: int, most: float) -> int:
    """Return how many columns a partial factor of a kernel matrix of order m has, with at most so many entries."""
    return min(m, MOST_PIVOTS, max(1, int(min(FACTOR_ENTRIES, most) / m)))


def pivoted_cholesky_of_kernel(
    columns: Columns, diagonal: np.ndarray, rank: int, constant: float
) -> Generator[None, None, np.ndarray]:
    """Return a partial factor of a kernel matrix with a constant added to every entry, by pivots drawn at random.

    Pivots decide how fast solvers lead to an answer, not which one: their draw is the same in every fit.
    """
    L = yield from randomly_pivoted_cholesky(columns, diagonal, rank, np.random.default_rng(0), int(constant > 0))
    if constant:
        L[:, -1] = np.sqrt(constant)
    return L


def pivoted_cholesky_of_square(
    L: np.ndarray, weights: np.ndarray, constant: float
) -> Generator[None, None, np.ndarray]:
    """Return a factor of L L'P L L' for weights P, with a constant added to every entry.

    With L'PL = V diag(v) V' it is L V diag(v)^1/2, whose columns are orthogonal in P.
    """
    S = np.zeros((L.shape[1], L.shape[1]))
    for start in range(0, L.shape[0], UPDATED_ROWS):
        rows = slice(start, start + UPDATED_ROWS)
        part = L[rows] * np.sqrt(weights[rows])[:, None]
        S += part.T @ part
        yield
    values, vectors = symmetric_eigen(S)
    R = vectors * np.sqrt(np.maximum(values, EIGEN_ROUNDING * float(np.trace(S))))
    F = np.full((L.shape[0], L.shape[1] + (constant > 0)), np.sqrt(constant))
    for start in range(0, L.shape[0], UPDATED_ROWS):
        rows = slice(start, start + UPDATED_ROWS)
        F[rows, : L.shape[1]] = L[rows] @ R
        yield
    return F


def randomly_pivoted_cholesky(
    columns: Columns, diagonal: np.ndarray, rank: int, rng: np.random.Generator, spare: int = 0
) -> Generator[None, None, np.ndarray]:
    """Partial pivoted Cholesky factor L (m, r), r <= rank: L L' is near a semidefinite matrix, never above it.

    `columns`: columns(index) is a generator that returns the columns `index` of the matrix, shape (m, n); `diagonal` of
    shape (m,); `spare`: columns of zeros behind those of the factor, for the caller to fill.
    """
    m = diagonal.shape[0]
    most, k = min(rank, m), 0
    L, left = np.zeros((m, most + spare)), diagonal.astype(np.float64)
    whole = float(left.sum())
    while k < most and float(left.sum()) > FACTORED_SHARE * whole:
        n = min(PIVOT_BLOCK, most - k, int(np.count_nonzero(left)))
        drawn = rng.choice(m, n, replace=False, p=left / left.sum())
        C = yield from columns(drawn)
        corner = C[drawn].astype(np.float64) - L[drawn, :k] @ L[drawn, :k].T
        least = SINGLE_PIVOT * float(diagonal.max()) if C.dtype == np.float32 else 0.0
        least = max(INDEPENDENT_SHARE * float(left[drawn].max()), least)
        corner, order, own, _ = lapack.dpstrf(corner, tol=least, lower=0)
        if own == 0:
            break
        order = order[:own] - 1
        corner, pivots = np.asfortranarray(corner[:own, :own]), L[drawn[order], :k]
        for start in range(0, m, UPDATED_ROWS):
            rows = slice(start, start + UPDATED_ROWS)
            part = L[rows, :k] @ pivots.T
            np.subtract(C[rows].take(order, axis=1), part, out=part)
            # In the place and order that rows have: what SciPy's own call copies takes longer than it does.
            blas.dtrsm(1.0, corner, part.T, trans_a=1, overwrite_b=1)
            L[rows, k : k + own] = part
            left[rows] = np.maximum(left[rows] - np.einsum("ij,ij->i", part, part), 0.0)
            yield
        left[drawn] = 0.0
        k += own
    return L[:, : k + spare]
