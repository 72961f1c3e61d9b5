"""Pieces of work side by side in threads, where the work lies in calls that leave the interpreter's lock alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Sequence, Sized
from contextvars import copy_context
from typing import Any, TypeVar

from mdlearn.numerics import memory
from mdlearn.numerics.blas_threads import GUARD, blas_threads

Piece = TypeVar("Piece")

SINGLE_THREAD_PIECES = 2e8
"""Multiplications of all pieces up to which one thread serves best: some milliseconds."""
ROOM_PER_THREAD = float(1 << 28)
"""Bytes of address space (``ulimit -v``) that are left for each thread beside the first: its stack and a buffer of each
BLAS take tens of MB, where BLAS ends the process if it gets none, and the rest is for arrays of the fit."""
OPERATIONS_PER_BEAT = float(1 << 30)
"""Floating-point operations of pieces between two heartbeats, in each of the threads that share them: 10 to 20 ms."""


def threads_for_pieces(work: float) -> int | None:
    """Number of threads for pieces of work of a size, in multiplications; None: as many as BLAS is set to."""
    return 1 if work < SINGLE_THREAD_PIECES else None


def over_pieces(
    pieces: Iterable[Piece],
    work: Callable[[Piece], Any],
    size: Callable[[Piece], float],
    use: Callable[[Piece, Any], object] | None = None,
    in_threads: bool = True,
) -> Generator[None, None, None]:
    """Work on pieces, those between two heartbeats side by side; use what comes of them in their order.

    So sums have the same bits in any number of threads.

    Parameters
    ----------
    pieces, work : as for `work_in_threads`
    size : of a piece, in floating-point operations
    use : called with a piece and its result, in the calling thread
    in_threads : whether several pieces may be worked on at the same time
    """
    most, batch, done = OPERATIONS_PER_BEAT * (GUARD.allowed() if in_threads else 1), list[Piece](), 0.0
    for piece in pieces:
        batch.append(piece)
        done += size(piece)
        if done >= most:
            _work_at_once(batch, work, use, in_threads)
            batch, done = [], 0.0
            yield
    _work_at_once(batch, work, use, in_threads and done >= SINGLE_THREAD_PIECES)


def _work_at_once(
    batch: Sequence[Piece],
    work: Callable[[Piece], Any],
    use: Callable[[Piece, Any], object] | None,
    in_threads: bool,
) -> None:
    if not in_threads or len(batch) < 2:
        results = [work(piece) for piece in batch]
    else:
        results = [None] * len(batch)

        def fill(k: int) -> None:
            results[k] = work(batch[k])

        work_in_threads(range(len(batch)), fill)
    if use is not None:
        for piece, result in zip(batch, results):
            use(piece, result)


def work_in_threads(pieces: Iterable[Piece], work: Callable[[Piece], None]) -> None:
    """Call `work` with every piece, in as many threads as pieces may have here, each with one thread of BLAS.

    The calling thread is one of them. A thread that others slow down takes fewer pieces, where a call of BLAS would
    wait for it. All have ended when this returns, also by an error or by Ctrl-C: only present pieces are finished.
    """
    n, left, lock = GUARD.allowed(), iter(pieces), threading.Lock()
    if isinstance(pieces, Sized):
        n = min(n, len(pieces))
    if n > 1:
        n = int(min(n, 1 + memory.bytes_of_address_space() // ROOM_PER_THREAD))
    errors: list[BaseException] = []

    def serve() -> None:
        with blas_threads(1):
            while not errors:
                with lock:
                    piece = next(left, None)
                if piece is None:
                    return
                work(piece)

    def serve_in_thread() -> None:
        try:
            serve()
        except BaseException as error:
            errors.append(error)

    # In a copy of the context, so that the caller's np.errstate holds there too.
    others = [
        threading.Thread(target=copy_context().run, args=(serve_in_thread,), name="mdlearn", daemon=True)
        for _ in range(n - 1)
    ]
    try:
        for thread in others:
            try:
                thread.start()
            except RuntimeError:  # the system has no room for one more: those that are there do the work
                break
        serve()
    except BaseException as error:
        errors.append(error)
        raise
    finally:
        for thread in others:
            if thread.is_alive():
                thread.join()
    if errors:
        raise errors[0]
