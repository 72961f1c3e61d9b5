"""The number of threads that BLAS uses, one while a fit runs and put back afterwards, and those of pieces of work.

Where other processes are at work, a call of BLAS with two threads waits for the slower one, at full speed: products
take 5 to 200 times as long. So large works are made of pieces, each with one thread of BLAS, which threads share
(`mdlearn.numerics.pieces_in_threads`).

Most BLAS libraries keep that number once per process, so the guard is the one thing that all fits of a process share.
While fits overlap, the smallest number that any of them asked for holds; the last one to end puts back what the first
one found. Other libraries (MKL, OpenMP builds) keep it once per thread: there, the same goes for every thread apart.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

PROCESS = 0
"""Key of what all threads share, beside the identifiers of threads, which are never 0."""
FORK_PATIENCE = 1.0
"""Seconds that a fork waits for a thread that sets the number of BLAS threads; that takes microseconds."""


SINGLE_THREAD_WORK = 4e9
"""Multiplications of the largest product or factorisation up to which one thread serves best: about 0.2 s of it."""


def blas_threads_for(work: float) -> int | None:
    """Number of BLAS threads for work of a size, in multiplications; None: as many as BLAS is set to.

    It depends on shapes alone, never on the load of the machine: the same call gives the same bits.
    """
    return 1 if work < SINGLE_THREAD_WORK else None


def threads_for_product(rows: int, columns: int) -> int:
    """Number of threads for pieces of the smaller of A A' and A'A, of an A of these rows and columns."""
    return 1 if float(rows) * columns * min(rows, columns) < SINGLE_THREAD_WORK else GUARD.allowed()


def _cores_to_run_on() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Library(Protocol):
    """BLAS library with its number of threads."""

    filepath: str

    def get_num_threads(self) -> int:
        """Return the number that it is set to."""

    def set_num_threads(self, n: int) -> object:
        """Set the number, whichever thread set it before."""


class _OpenBlas:
    """OpenBLAS by its own functions: those of threadpoolctl take ten times as long, in every fit."""

    def __init__(self, filepath: str, get: Callable[[], int], put: Callable[[int], object]) -> None:
        self.filepath, self.get_num_threads, self.set_num_threads = filepath, get, put


class _OtherBlas:
    """BLAS library by the functions of threadpoolctl."""

    def __init__(self, library: Any) -> None:
        self.library, self.filepath, self.get_num_threads = library, library.filepath, library.get_num_threads
        # From 3.8 on, threadpoolctl ignores all threads but the first to set a shared number. The guard's lock serves
        # that purpose here, and the number has to follow whichever fit ends last.
        self.free = getattr(library, "clear_controlling_thread", None)

    def set_num_threads(self, n: int) -> None:
        """Set the number, unless it is set: asking takes a tenth of what setting does."""
        if self.get_num_threads() == n:
            return
        if self.free is not None:
            self.free(force=True)
        self.library.set_num_threads(n)
        if self.free is not None:
            self.free(force=True)


def _blas_by_own_functions(library: Any) -> _OpenBlas | None:
    """Return a BLAS library of threadpoolctl by its own functions: OpenBLAS on threads of its own; else None.

    That is known to have one number for the process.
    """
    if (getattr(library, "internal_api", ""), getattr(library, "threading_layer", "")) == ("openblas", "pthreads"):
        for name in library.check_symbols:
            get, put = (getattr(library.dynlib, one, None) for one in (name, name.replace("_get_", "_set_")))
            if get is not None and put is not None:
                return _OpenBlas(library.filepath, get, put)
    return None


def _threads_seen_elsewhere(library: _Library) -> int:
    """Number of BLAS threads that another thread sees."""
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(library.get_num_threads()))
    thread.start()
    thread.join()
    return seen[0]


def _blas_threads_are_per_thread(library: _Library) -> bool:
    """Whether a number of BLAS threads that is set here is not seen in another thread.

    OpenBLAS on threads of its own is known. A trial would start them: they wait for work at full speed for a while.
    """
    if isinstance(library, _OpenBlas):
        return False
    found, probe = library.get_num_threads(), 2 if _threads_seen_elsewhere(library) == 1 else 1
    try:
        library.set_num_threads(probe)
        return _threads_seen_elsewhere(library) != probe
    finally:
        library.set_num_threads(found)


Token = tuple[int, object]
"""A request of a thread, by its identifier."""


class _BlasScope:
    """BLAS libraries with the number of threads that they were found with, and the requests for them.

    `pieces`: of requests that leave threads to pieces of work, how many these may have together.
    """

    def __init__(self, libraries: list[_Library]) -> None:
        self.libraries, self.found = libraries, [library.get_num_threads() for library in libraries]
        self.requests: dict[Token, int] = {}
        self.pieces: dict[Token, int] = {}
        self.changed = False

    def apply(self) -> None:
        smallest = min(self.requests.values()) if self.requests else None
        # Asking takes as long as much of a small fit: not where nothing was changed, and nothing is to be.
        if not self.changed and (smallest is None or self.found.count(smallest) == len(self.found)):
            return
        self.changed = True
        for library, number in zip(self.libraries, self.found):
            library.set_num_threads(number if smallest is None else smallest)


class BlasGuard:
    """Guard of the numbers of BLAS threads: requests of the process, and of threads where libraries tell them apart."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.scopes: dict[int, _BlasScope] = {}
        self.libraries: list[_Library] = []
        self.shared: list[_Library] = []  # those with one number for all threads
        self.per_thread: list[_Library] = []
        self.n_modules = 0  # imported when the libraries were listed
        self.kinds: dict[str, bool] = {}
        self.forks = 0  # the thread that is forking, while it holds the lock

    def forking(self) -> None:
        """Before a fork: wait until no thread is setting a number.

        BLAS holds a lock of its own meanwhile, and a child that is forked then waits for it forever. Not longer than
        FORK_PATIENCE: a signal's handler may fork in the very thread that is setting one.
        """
        if self.lock.acquire(timeout=FORK_PATIENCE):
            self.forks = threading.get_ident()

    def parted(self) -> None:
        """In the parent, after a fork."""
        if self.forks == threading.get_ident():
            self.forks = 0
            self.lock.release()

    def forked(self) -> None:
        """In a forked child: the other threads are gone, with the lock that one may have held and with their requests.

        What BLAS was set to when found is kept; the child's next request, or its end, sets the number anew.
        """
        self.lock, self.forks = threading.Lock(), 0
        me = threading.get_ident()
        for key, scope in list(self.scopes.items()):
            if key == PROCESS:
                scope.requests = {token: n for token, n in scope.requests.items() if token[0] == me}
                scope.pieces = {token: n for token, n in scope.pieces.items() if token[0] == me}
            elif key != me:
                del self.scopes[key]

    def enter(self, token: Token, n: int, pieces: int | None = None) -> None:
        """Add a request of the calling thread; `pieces`: threads that its pieces of work may have, other than `n`."""
        with self.lock:
            if PROCESS not in self.scopes and len(sys.modules) != self.n_modules:
                self._list_libraries()
            for key, mine in ((PROCESS, self.shared), (token[0], self.per_thread)):
                scope = self.scopes.get(key)
                if scope is None:
                    if not mine and key != PROCESS:
                        continue
                    scope = self.scopes[key] = _BlasScope(mine)
                scope.requests[token] = n
                if pieces is not None:
                    scope.pieces[token] = pieces
                scope.apply()

    def leave(self, token: Token) -> None:
        """Take a request of the calling thread back; a second call changes nothing."""
        with self.lock:
            for key in (PROCESS, token[0]):
                scope = self.scopes.get(key)
                if scope is not None:
                    scope.requests.pop(token, None)
                    scope.pieces.pop(token, None)
                    scope.apply()
                    if not scope.requests:
                        del self.scopes[key]

    def found(self) -> int:
        """The number that BLAS was set to before any request now in force, at most that of cores to run on."""
        with self.lock:
            if PROCESS in self.scopes:
                numbers = self.scopes[PROCESS].found
            else:
                if len(sys.modules) != self.n_modules:
                    self._list_libraries()
                numbers = [library.get_num_threads() for library in self.libraries]
        return max(1, min(max(numbers, default=1), _cores_to_run_on()))

    def allowed(self) -> int:
        """The number of threads for pieces of work: that which was found, or what requests in force allow."""
        found, cores = self.found(), _cores_to_run_on()
        with self.lock:
            scope = self.scopes.get(PROCESS)
            if scope is None:
                return found
            asked = (scope.pieces.get(token, min(n, found)) for token, n in scope.requests.items())
            return min(cores, min(asked, default=found))

    def _list_libraries(self) -> None:
        """List the loaded libraries and find their kinds, after modules were imported.

        Listing takes a millisecond, as long as a small fit. It calls back from C, where a KeyboardInterrupt would be
        swallowed: another thread does it, as signals come to the main thread alone.
        """
        from threadpoolctl import ThreadpoolController

        n_modules = len(sys.modules)
        with ThreadPoolExecutor(1) as other:
            loaded = other.submit(ThreadpoolController).result().select(user_api="blas").lib_controllers
        known = [library for library in loaded if library.get_num_threads() is not None]
        self.libraries = [_blas_by_own_functions(library) or _OtherBlas(library) for library in known]
        for library in self.libraries:
            if library.filepath not in self.kinds:
                self.kinds[library.filepath] = _blas_threads_are_per_thread(library)
        self.shared = [library for library in self.libraries if not self.kinds[library.filepath]]
        self.per_thread = [library for library in self.libraries if self.kinds[library.filepath]]
        self.n_modules = n_modules


GUARD = BlasGuard()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=GUARD.forking, after_in_parent=GUARD.parted, after_in_child=GUARD.forked)


@contextmanager
def blas_threads(n: int | None, pieces: int | None = None) -> Iterator[None]:
    """Hold BLAS to at most `n` threads, for the calling thread at least; None leaves it alone.

    `pieces`: threads that pieces of work may have meanwhile (`GUARD.allowed`), where these are not `n`.
    """
    if n is None:
        yield
        return
    token = threading.get_ident(), object()
    try:
        GUARD.enter(token, n, pieces)
        yield
    finally:
        try:
            GUARD.leave(token)
        except KeyboardInterrupt:
            # Ctrl-C in the middle of it: once more, then let it through.
            GUARD.leave(token)
            raise
