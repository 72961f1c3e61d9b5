"""Generators that run side by side in threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, TypeVar

from mdlearn.numerics.blas_threads import blas_threads

Item = TypeVar("Item")
Result = TypeVar("Result")

SLICE = 0.01
"""Seconds that a thread works on one generator before it hands back, unless an item comes: handing over has a price."""
ITEM, END, ERROR = "item", "end", "error"


def never_enough_in_threads() -> bool:
    """Default of `enough` for generators in threads: all are run, whatever comes."""
    return False


def run_in_threads(
    works: Sequence[Generator[Item, None, Result]],
    at_once: int,
    share: int,
    enough: Callable[[], bool] = never_enough_in_threads,
) -> Generator[Item, None, list[Result | None]]:
    """Run generators in threads, `at_once` of them begun and unfinished at a time, each in one thread at a time.

    BLAS is held to `share` threads in each. Items come in the order in which they are ready; a generator waits until
    its item has been dealt with. The threads have ended when this generator ends, also by an error or by Ctrl-C: only
    what they are doing at that moment is finished. Generators whose turn comes when there is `enough` are not begun:
    their result is None. An executor of the standard library would do the same, but Ctrl-C can leave its locks held.
    """
    tasks: SimpleQueue[int | None] = SimpleQueue()
    done: SimpleQueue[tuple[int, str, Any]] = SimpleQueue()
    threads = [
        # In a copy of the context, so that the caller's np.errstate holds there too.
        threading.Thread(
            target=copy_context().run, args=(_serve_in_thread, works, share, tasks, done), name="mdlearn", daemon=True
        )
        for _ in range(at_once)
    ]
    results: list[Any] = [None] * len(works)
    if enough():
        return results
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
            if enough():
                left -= len(works) - begun
                works = works[:begun]
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


def _serve_in_thread(
    works: Sequence[Generator[Any, None, Any]],
    share: int,
    tasks: SimpleQueue[int | None],
    done: SimpleQueue[tuple[int, str, Any]],
) -> None:
    """Serve in a thread: take a generator, advance it, hand back what came, until the task is None."""
    k = tasks.get()
    if k is not None:  # a thread that comes too late leaves BLAS alone
        try:
            with blas_threads(share):
                while k is not None:
                    done.put((k, *_advance_generator_in_thread(works[k])))
                    k = tasks.get()
        except BaseException as error:
            done.put((-1, ERROR, error))
    tasks.put(None)  # for the next thread


def _advance_generator_in_thread(work: Generator[Any, None, Any]) -> tuple[str, Any]:
    """Run a generator in its thread until it has an item, ends or has had its slice."""
    end = time.perf_counter() + SLICE
    try:
        item = next(work)
        while item is None and time.perf_counter() < end:
            item = next(work)
    except StopIteration as stop:
        return END, stop.value
    return ITEM, item
