"""How much memory a fit may take, asked before anything large is allocated."""

from __future__ import annotations

import os

from mdlearn.errors import InsufficientMemory

FEWER = "use fewer rows, kernel='linear', or an approximation of the kernel (approximation='nystroem')"
"""What to do where a matrix over all pairs of rows is too large."""


def available_bytes() -> float:
    """Bytes that this process could still take without swapping; infinity when the system does not tell."""
    limits = []
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            limits += [float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    except OSError:
        pass
    try:
        limits.append(float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        pass
    return min(limits, default=float("inf"))


def require(n_bytes: float, what: str, instead: str, at_once: int = 1) -> None:
    """Raise InsufficientMemory unless `n_bytes` fit in half of what is available.

    Half, because the caller's data, BLAS buffers and other processes need room too. `at_once` is the number of problems
    that `n_bytes` are for.
    """
    room = 0.5 * available_bytes()
    if n_bytes > room:
        if at_once > 1:
            what, instead = f"{what}, {at_once} problems at once,", f"{instead}, or n_threads=1"
        raise InsufficientMemory(
            f"{what} needs {n_bytes / 1e9:.3g} GB but only {room / 1e9:.3g} GB (half of the available memory) may be "
            f"used; {instead}"
        )
