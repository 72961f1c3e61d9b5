"""Eigenvalues of symmetric matrices, whatever the size of their entries."""

from __future__ import annotations

import numpy as np


def eigen(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix of finite numbers.

    LAPACK's divide and conquer (dsyevd) is the quickest, and it can fail where entries are near the smallest numbers
    that there are, as those of a narrow kernel are. Then another algorithm (dsyevr) takes over.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        Only the lower triangle is read.

    Returns
    -------
    values : ndarray of shape (n,)
    vectors : ndarray of shape (n, n)
        A column for every value.
    """
    from scipy.linalg import LinAlgError, eigh

    try:
        values, vectors = eigh(A, check_finite=False, driver="evd")
    except LinAlgError:
        values, vectors = eigh(A, check_finite=False, driver="evr")
    return values, vectors
