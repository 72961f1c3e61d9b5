"""Time of an eigendecomposition (`eigh`), before it is begun: one call of LAPACK, which nothing can end early."""

from __future__ import annotations

import functools
import time

import numpy as np

PROBE = 300
"""Order of the matrix that is decomposed to learn how fast this machine is; it takes some 20 ms."""
LARGE_SHARE = 0.6
"""Seconds per cube of the order of large matrices in units of those of the probe: more of the work is in products."""


def eigh_seconds(order: float) -> float:
    """Seconds that eigenvalues and eigenvectors of a symmetric matrix of some order take, about."""
    return LARGE_SHARE * _eigh_seconds_of_probe() * (order / PROBE) ** 3


@functools.cache
def _eigh_seconds_of_probe() -> float:
    """Seconds that the eigendecomposition of a small random matrix takes here."""
    A = np.random.default_rng(0).standard_normal((PROBE, PROBE))
    times = []
    for _ in range(2):
        begun = time.perf_counter()
        np.linalg.eigh(A + A.T)
        times.append(time.perf_counter() - begun)
    return min(times)
