"""Memory that a fit may take, asked before anything large is allocated."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NoReturn

from mdlearn.errors import InsufficientMemory

FEWER = "use fewer rows, kernel='linear', or an approximation of the kernel (approximation='nystroem')"
"""What to do where a matrix over all pairs of rows is too large."""
SMALLER_CACHE = f"{FEWER}, or a smaller solver_options={{'cache': bytes}}"
"""What to do where an engine without a matrix does not fit."""
ROOT = Path("/")
CGROUP_FILES = {
    # Limit, use, and the entry of memory.stat for cached files, which the system gives back.
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""By controller as /proc/self/cgroup names it: version 2 has one hierarchy without a name."""


UNLIMITED_BYTES = 2.0**62
"""Bytes of a control group's limit from which there is none: version 1 writes a number of this size."""
CACHE_BYTES, LEAST_CACHE_BYTES = 1e9, 1e6
"""Bytes of kernel values and factors that an engine without a matrix keeps of a problem: by default, and at least."""
NEGLIGIBLE_BYTES = 1e7
"""Bytes that nobody is asked for: reading what is left takes as long as a fit of that size."""


def available_bytes() -> float:
    """Bytes of memory that this process could still take without swapping; infinity when the system does not say."""
    limits = [bytes_of_address_space(), _bytes_left_by_cgroups()]
    try:
        lines = _system_file("/proc/meminfo").splitlines()
        limits += [float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    except OSError:
        pass
    try:
        limits.append(float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        pass
    return min(limits)


def bytes_of_address_space() -> float:
    """Bytes of memory, as address space, that RLIMIT_AS (``ulimit -v``) leaves; infinity where no limit is known."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return float("inf")
        used = int(_system_file(f"{ROOT}/proc/self/statm").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, AttributeError, OSError, ValueError):
        return float("inf")
    return max(float(limit - used), 0.0)


def _bytes_left_by_cgroups() -> float:
    """Fewest bytes of memory that a control group of this process leaves, version 1 or 2; infinity: no limit."""
    room = float("inf")
    try:
        entries = _system_file(f"{ROOT}/proc/self/cgroup").splitlines()
    except OSError:
        return room
    for entry in entries:
        _, controllers, path = entry.split(":", 2)
        for controller in CGROUP_FILES.keys() & set(controllers.split(",")):
            # A limit holds for all groups below. Within a container the path may be one of the host, and is not there.
            group = path.rstrip("/")
            while True:
                folder = f"{ROOT}/sys/fs/cgroup/{controller}{group}"
                room = min(room, _bytes_left_by_cgroup(folder, *CGROUP_FILES[controller]))
                if not group:
                    break
                group = group.rpartition("/")[0]
    return room


def _bytes_left_by_cgroup(folder: str, limit: str, use: str, cached: str) -> float:
    """Bytes of memory that one control group leaves; infinity without a limit."""
    try:
        most = _system_file(f"{folder}/{limit}").strip()
        if most == "max" or float(most) >= UNLIMITED_BYTES:  # the other files cost as much as a small fit
            return float("inf")
        used, entries = float(_system_file(f"{folder}/{use}")), _system_file(f"{folder}/memory.stat").splitlines()
        free = sum(float(line.split()[1]) for line in entries if line.startswith(f"{cached} "))
        return max(float(most) - used + free, 0.0)
    except (OSError, ValueError):
        return float("inf")


def _system_file(path: str) -> str:
    """Text of a file that the system makes when it is read; by way of pathlib it takes three times as long."""
    with open(path, "rb", buffering=0) as file:
        return file.read().decode()


def require(n_bytes: float, what: str, instead: str, at_once: int = 1) -> None:
    """Raise InsufficientMemory unless `n_bytes` fit in half of the memory that is available.

    Half, because the caller's data, BLAS buffers and other processes need room too. `at_once` is the number of problems
    that `n_bytes` are for.
    """
    if n_bytes <= NEGLIGIBLE_BYTES:
        return
    room = 0.5 * available_bytes()
    if n_bytes > room:
        if at_once > 1:
            what, instead = f"{what}, {at_once} problems at once,", f"{instead}, or n_threads=1"
        raise InsufficientMemory(
            f"{what} needs {n_bytes / 1e9:.3g} GB but only {room / 1e9:.3g} GB (half of the available memory) may be "
            f"used; {instead}"
        )


class memory_error_in_words:
    """Context that turns a MemoryError, which may come without a word, into an InsufficientMemory that says where."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, MemoryError) and not isinstance(error, InsufficientMemory):
            raise_memory_error_in_words(error, self.what)


def raise_memory_error_in_words(error: MemoryError, what: str) -> NoReturn:
    """Raise a MemoryError, which may come without a word, as an InsufficientMemory that says where."""
    if isinstance(error, InsufficientMemory):
        raise error
    found = f" ({error})" if str(error) else ""
    raise InsufficientMemory(
        f"{what} ran out of memory{found}; use fewer rows or columns, float32 rows or n_threads=1, or end other "
        "programs"
    ) from error
