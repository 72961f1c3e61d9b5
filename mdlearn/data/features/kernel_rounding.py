"""Kernel rounding: what it may have done to values, and whether a matrix of them is semidefinite but for that.

Entries are taken to be off by ``UNIT sqrt(k(x, x) k(z, z)) (h(x) + h(z))``: an inner product that cancels is off by
what its terms lost, so it is their size that counts. The worst case, all roundings of an inner product of d terms and
of a sum over m rows in one direction, does not happen: alpha'E alpha, with the rounding of sums in it, was at most 0.4
UNIT (sum |alpha_i| sqrt(k(x_i, x_i)))^2 for up to 300 rows of up to 200 columns, some of them 1e8 times larger than
others. What does add up is terms that vanish beside larger ones, in all entries alike; these are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from mdlearn.data.features.kernels import FAR_LENGTH, Kernel
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows, Rows

UNIT = 0.5 * float(np.finfo(float).eps)
INDEFINITE_SHARE = 1e-8
"""Negative squared length that no rounding makes, relative to (sum |alpha_i| |phi(x_i)|)^2."""
ROUNDINGS_HERE, GIVEN = 1.5, 4.0
"""Roundings of an entry that is computed here, and of one that somebody else computed."""
VANISHING = 4.0
"""Roundings of a sum up to which the size of a term is lost rather than rounded."""
SOME = 1000
"""Rows whose matrix is factored to see whether it is positive semidefinite."""
WORST = 1e-8
"""Largest deficit of which rounding may be the reason."""


safe_length: Callable[[np.ndarray], float] = blas.dnrm2
"""Euclidean length of a vector, also where squares of entries overflow or are lost."""
safe_sum: Callable[[np.ndarray], float] = blas.dasum
"""Sum of the sizes of a vector's entries."""


def kernel_half_roundings(kernel: Any, rows: Any) -> np.ndarray:
    """Half of the roundings of kernel values: h of every row, shape (m,); for rows of `Kernel.centred_copy`."""
    if kernel.mapping() is not None:
        return kernel_half_roundings(kernel.compared, DenseRows(rows.mu))
    if kernel.name == "precomputed":
        return np.full(rows.shape[0], 0.5 * GIVEN * float(np.finfo(rows.dtype).eps) / (2.0 * UNIT))
    if kernel.name == "rbf":
        squares, lost = _kernel_squares_lost(rows, None if rows.sparse else kernel.centre)
        squares *= kernel.params["gamma"]
        # Beyond FAR, distances are made of differences.
        return 0.5 * ROUNDINGS_HERE + np.where(squares > FAR_LENGTH, 1.0, squares) * (0.5 + lost)
    if kernel.name == "poly":
        # A power has the relative rounding of what is raised, so many times, and that of as many products.
        return kernel.params["degree"] * (0.5 * (ROUNDINGS_HERE + 1.0) + _kernel_squares_lost(rows, None)[1])
    return np.full(rows.shape[0], 0.5 * GIVEN)


def most_kernel_half_roundings(kernel: Kernel, n_columns: int) -> float:
    """Bound of `kernel_half_roundings` of any row, for a kernel without a map: no pass over rows is needed."""
    lost = VANISHING * n_columns
    if kernel.name == "rbf":
        return 0.5 * ROUNDINGS_HERE + max(FAR_LENGTH, 1.0) * (0.5 + lost)
    return kernel.params["degree"] * (0.5 * (ROUNDINGS_HERE + 1.0) + lost) if kernel.name == "poly" else 0.5 * GIVEN


def _kernel_squares_lost(rows: Rows, centre: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Squared length of every row for kernel values, and how much of it rounding loses, in its units."""
    squares, lost = rows.squares(centre=centre), np.zeros(rows.shape[0])
    limit = UNIT * squares
    limit[limit == 0] = 1.0
    for span in rows.spans():
        if isinstance(rows, CsrRows):  # entries that are not stored lose nothing
            ends = rows.X.indptr[span.start : span.stop + 1]
            row = np.repeat(np.arange(ends.shape[0] - 1), np.diff(ends))
            B = np.square(rows.X.data[ends[0] : ends[-1]], dtype=np.float64) / limit[span][row]
            lost[span] = np.bincount(row, np.where(B < VANISHING, B, 0.0), ends.shape[0] - 1)
            continue
        B = rows.block(span)
        B = np.square(B if centre is None else B - centre) / limit[span, None]
        lost[span] = np.where(B < VANISHING, B, 0.0).sum(axis=1)
    return squares, lost


def kernel_matrix_fault(title: str, why: str) -> ValueError:
    """Make the error for a kernel, by its `title`, whose rounding is not the reason for a matrix that is none."""
    return ValueError(
        f"the matrix of {title} is not positive semidefinite ({why}); give a positive semidefinite kernel"
    )


def kernel_rounding_deficit(G: np.ndarray, roundings: np.ndarray, title: str) -> float:
    """Rounding deficit of a kernel matrix G: smallest power of ten d with G + d diag G semidefinite.

    Of many rows, some that are evenly spaced: each principal part of a semidefinite matrix is semidefinite. `roundings`
    are half of those of entries, by row: as much of a deficit counts as none. ValueError where it is above WORST,
    which names the kernel by its `title`.
    """
    m = G.shape[0]
    some = np.linspace(0, m - 1, min(m, SOME)).astype(np.intp)
    A, n = G[np.ix_(some, some)], some.shape[0]
    diagonal = np.diagonal(A)
    largest = float(diagonal.max())
    if largest <= 0 and not A.any():
        return 0.0
    if largest <= 0 or float(diagonal.min()) < -WORST * largest:
        raise kernel_matrix_fault(title, "by far more than rounding")
    root = 1.0 / np.sqrt(np.maximum(diagonal, UNIT * largest))
    A = A * root * root[:, None]
    clean = n * 2.0 * UNIT * float(roundings.max())
    worse = 10.0 ** np.arange(np.ceil(np.log10(clean)) + 1, np.log10(WORST) + 1)
    for delta in (clean, *worse.tolist()):
        A[np.diag_indices(n)] = diagonal * root * root + delta
        if lapack.dpotrf(A, clean=0)[1] == 0:
            return 0.0 if delta == clean else delta
    raise kernel_matrix_fault(title, "by far more than rounding")


def check_squared_length(value: float, sizes: np.ndarray, squares: np.ndarray, blur: np.ndarray, title: str) -> None:
    """Raise ValueError for a negative squared length of sum alpha_i phi(x_i) that no rounding of kernel values makes.

    `sizes`: |alpha_i|; `squares`: |phi(x_i)|^2; `blur`: what rounding may have done to the values of the sum;
    `title`: name of the kernel.
    """
    size = float(sizes @ np.sqrt(np.maximum(squares, 0.0)))
    if value < -max(INDEFINITE_SHARE * size * size, float(sizes @ blur)):
        raise kernel_matrix_fault(title, "it gives some point a negative squared length")
