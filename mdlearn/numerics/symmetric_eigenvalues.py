"""Eigenvalues of symmetric matrices, whatever the size of their entries, and the time that they take."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import numpy as np

PROBE = 300
"""Order of the matrix that is decomposed to learn how fast this machine is; it takes some 20 ms."""
LARGE_SHARE = 0.6
"""Seconds per cube of the order of large matrices in units of those of the probe: more of the work is in products."""


def symmetric_eigen(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix of finite numbers.

    LAPACK's divide and conquer (dsyevd) is the quickest, and it can fail where entries are near the smallest numbers
    that there are, as those of a narrow kernel are. Then another algorithm (dsyevr) takes over.

    Only the lower triangle of A is read. Vectors are columns, one for every value.
    """
    from scipy.linalg import LinAlgError, eigh

    try:
        values, vectors = eigh(A, check_finite=False, driver="evd")
    except LinAlgError:
        values, vectors = eigh(A, check_finite=False, driver="evr")
    return values, vectors


def largest_eigenvalue(times: Callable[[np.ndarray], np.ndarray], n: int) -> float:
    """Largest eigenvalue of a positive semidefinite matrix, from above if Lanczos is right about its own error."""
    v = np.random.default_rng(0).standard_normal(n)
    V, diagonal, off = [v / np.linalg.norm(v)], list[float](), list[float]()
    top = error = 0.0
    for _ in range(min(n, 30)):
        w = times(V[-1])
        diagonal.append(float(V[-1] @ w))
        for _ in range(2):
            for u in V:
                w = w - float(u @ w) * u
        size = float(np.linalg.norm(w))
        if not np.isfinite(size + diagonal[-1]):
            raise OverflowError("second derivatives beyond float64")
        values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1))
        top, error = float(values[-1]), size * abs(float(vectors[-1, -1]))
        if error <= 1e-2 * top:
            break
        off.append(size)
        V.append(w / size)
    return (top + error) * (1.0 + 1e-10)


def symmetric_eigen_seconds(order: float) -> float:
    """Seconds that eigenvalues and eigenvectors of a symmetric matrix of some order take, about.

    They are asked for before it is begun: it is one call of LAPACK, which nothing can end early.
    """
    return LARGE_SHARE * _symmetric_eigen_probe_seconds() * (order / PROBE) ** 3


@functools.cache
def _symmetric_eigen_probe_seconds() -> float:
    """Seconds that the eigendecomposition of a small random matrix takes here."""
    A = np.random.default_rng(0).standard_normal((PROBE, PROBE))
    times = []
    for _ in range(2):
        begun = time.perf_counter()
        np.linalg.eigh(A + A.T)
        times.append(time.perf_counter() - begun)
    return min(times)
