"""Pieces of work side by side in threads, where the work lies in calls that leave the interpreter's lock alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextvars import copy_context
from typing import TypeVar

from mdlearn.numerics.blas_threads import GUARD, blas_threads

Piece = TypeVar("Piece")

SINGLE_THREAD_PIECES = 2e8
"""Multiplications of all pieces up to which one thread serves best: some milliseconds."""


def threads_for_pieces(work: float) -> int | None:
    """Number of threads for pieces of work of a size, in multiplications; None: as many as BLAS is set to."""
    return 1 if work < SINGLE_THREAD_PIECES else None


def work_in_threads(pieces: Iterable[Piece], work: Callable[[Piece], None]) -> None:
    """Call `work` with every piece, in as many threads as BLAS may have here, each with one thread of BLAS.

    The calling thread is one of them. A thread that others slow down takes fewer pieces, where a call of BLAS would
    wait for it. All have ended when this returns, also by an error or by Ctrl-C: only present pieces are finished.
    """
    n, left, lock = GUARD.allowed(), iter(pieces), threading.Lock()
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
            thread.start()
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
