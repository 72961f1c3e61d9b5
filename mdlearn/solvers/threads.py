"""Threads of a fit: one guard for the number of BLAS threads, and generators that run side by side.

Most BLAS libraries keep that number once per process, so the guard is the one thing that all fits of a process share.
While fits overlap, the smallest number that any of them asked for holds; the last one to end puts back what the first
one found. Other libraries (MKL, OpenMP builds) keep it once per thread: there, the same goes for every thread apart.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

PROCESS = 0
"""Key of what all threads share, beside the identifiers of threads, which are never 0."""
SLICE = 0.01
"""Seconds that a thread works on one generator before it hands back, unless an item comes: handing over has a price."""
PATIENCE = 1.0
"""Seconds that a fork waits for a thread that sets the number of BLAS threads; that takes microseconds."""
ITEM, END, ERROR = "item", "end", "error"


def _set(library: Any, n: int) -> None:
    # From 3.8 on, threadpoolctl ignores all threads but the first to set a shared number. The guard's lock serves that
    # purpose here, and the number has to follow whichever fit ends last.
    free = getattr(library, "clear_controlling_thread", None)
    if free is not None:
        free(force=True)
    library.set_num_threads(n)
    if free is not None:
        free(force=True)


def _elsewhere(library: Any) -> int:
    """The number that another thread sees."""
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(library.get_num_threads()))
    thread.start()
    thread.join()
    return seen[0]


def _per_thread(library: Any) -> bool:
    """Whether a number set here is not seen elsewhere."""
    found, probe = library.get_num_threads(), 2 if _elsewhere(library) == 1 else 1
    try:
        _set(library, probe)
        return _elsewhere(library) != probe
    finally:
        _set(library, found)


@dataclass(eq=False)
class _Scope:
    """Libraries with what they were set to when found, and the requests for them."""

    found: list[tuple[Any, int]]
    requests: dict[object, int] = field(default_factory=dict)

    def apply(self) -> None:
        smallest = min(self.requests.values(), default=None)
        for library, number in self.found:
            _set(library, number if smallest is None else smallest)


class BlasGuard:
    """The requests in force: of the process, and of every thread for the libraries that tell threads apart."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.scopes: dict[int, _Scope] = {}
        self.libraries: list[Any] = []
        self.kinds: dict[str, bool] = {}
        self.forks = 0  # the thread that is forking, while it holds the lock

    def forking(self) -> None:
        """Before a fork: wait until no thread is setting a number.

        BLAS holds a lock of its own meanwhile, and a child that is forked then waits for it forever. Not longer than
        PATIENCE: a signal's handler may fork in the very thread that is setting one.
        """
        if self.lock.acquire(timeout=PATIENCE):
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
        mine = self.scopes[me].requests if me in self.scopes else {}
        for key, scope in list(self.scopes.items()):
            if key == PROCESS:
                scope.requests = {token: n for token, n in scope.requests.items() if token in mine}
            elif key != me:
                del self.scopes[key]

    def enter(self, token: object, n: int) -> None:
        """Add a request of the calling thread."""
        keys = (PROCESS, threading.get_ident())
        with self.lock:
            if PROCESS not in self.scopes:
                self._look()
            for key in keys:
                if key not in self.scopes:
                    mine = [library for library in self.libraries if self.kinds[library.filepath] == (key != PROCESS)]
                    self.scopes[key] = _Scope([(library, library.get_num_threads()) for library in mine])
                self.scopes[key].requests[token] = n
                self.scopes[key].apply()

    def leave(self, token: object) -> None:
        """Take a request of the calling thread back; a second call changes nothing."""
        with self.lock:
            for key in (PROCESS, threading.get_ident()):
                if key in self.scopes:
                    self.scopes[key].requests.pop(token, None)
                    self.scopes[key].apply()
                    if not self.scopes[key].requests:
                        del self.scopes[key]

    def _look(self) -> None:
        """See which libraries are loaded, and of which kind they are."""
        from threadpoolctl import ThreadpoolController

        loaded = ThreadpoolController().select(user_api="blas").lib_controllers
        self.libraries = [library for library in loaded if library.get_num_threads() is not None]
        for library in self.libraries:
            if library.filepath not in self.kinds:
                self.kinds[library.filepath] = _per_thread(library)


GUARD = BlasGuard()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=GUARD.forking, after_in_parent=GUARD.parted, after_in_child=GUARD.forked)


@contextmanager
def blas_threads(n: int | None) -> Iterator[None]:
    """Hold BLAS to at most `n` threads, for the calling thread at least; None leaves it alone."""
    if n is None:
        yield
        return
    token = object()
    try:
        GUARD.enter(token, n)
        yield
    finally:
        try:
            GUARD.leave(token)
        except KeyboardInterrupt:
            # Ctrl-C in the middle of it: once more, then let it through.
            GUARD.leave(token)
            raise


def one_by_one(works: Sequence[Generator[Item, None, Result]]) -> Generator[Item, None, list[Result]]:
    """Run generators one after the other; pass their items on and return their results."""
    results = []
    for work in works:
        results.append((yield from work))
    return results


def side_by_side(
    works: Sequence[Generator[Item, None, Result]], at_once: int, share: int
) -> Generator[Item, None, list[Result]]:
    """Run generators in threads, `at_once` of them begun and unfinished at a time, each in one thread at a time.

    BLAS is held to `share` threads in each. Items come in the order in which they are ready; a generator waits until
    its item has been dealt with. The threads have ended when this generator ends, also by an error or by Ctrl-C: only
    what they are doing at that moment is finished. An executor of the standard library would do the same, but Ctrl-C
    can leave its locks held.
    """
    tasks: SimpleQueue[int | None] = SimpleQueue()
    done: SimpleQueue[tuple[int, str, Any]] = SimpleQueue()
    threads = [
        # In a copy of the context, so that the caller's np.errstate holds there too.
        threading.Thread(
            target=copy_context().run, args=(_serve, works, share, tasks, done), name="mdlearn", daemon=True
        )
        for _ in range(at_once)
    ]
    results: list[Any] = [None] * len(works)
    begun, left = min(at_once, len(works)), len(works)
    try:
        for thread in threads:
            thread.start()
        for k in range(begun):
            tasks.put(k)
        while left:
            k, kind, value = done.get()
            if kind == ERROR:
                try:
                    raise value
                finally:
                    del value  # else the error would hold itself, and with it every matrix of the fit
            if kind == ITEM:
                yield value
                tasks.put(k)
                continue
            results[k] = value
            left -= 1
            if begun < len(works):
                tasks.put(begun)
                begun += 1
        return results
    finally:
        tasks.put(None)
        for thread in threads:
            if thread.is_alive():
                thread.join()
        for work in works:
            work.close()


def _serve(
    works: Sequence[Generator[Any, None, Any]],
    share: int,
    tasks: SimpleQueue[int | None],
    done: SimpleQueue[tuple[int, str, Any]],
) -> None:
    """What a thread does: take a generator, advance it, hand back what came, until the task is None."""
    k = tasks.get()
    if k is not None:  # a thread that comes too late leaves BLAS alone
        try:
            with blas_threads(share):
                while k is not None:
                    done.put((k, *_advance(works[k])))
                    k = tasks.get()
        except BaseException as error:
            done.put((-1, ERROR, error))
    tasks.put(None)  # for the next thread


def _advance(work: Generator[Any, None, Any]) -> tuple[str, Any]:
    """Run a generator until it has an item, ends or has had its slice."""
    end = time.perf_counter() + SLICE
    try:
        item = next(work)
        while item is None and time.perf_counter() < end:
            item = next(work)
    except StopIteration as stop:
        return END, stop.value
    return ITEM, item
