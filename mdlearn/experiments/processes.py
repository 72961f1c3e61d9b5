"""Processes that work for a command, and never see the Ctrl-C that is meant for it."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.pool import Pool


def worker_pool(jobs: int) -> Pool:
    """Pool of worker processes begun afresh, because a forked one would inherit BLAS in the middle of something."""
    with _worker_processes_start():
        return multiprocessing.get_context("spawn").Pool(jobs, initializer=_worker_process_ignores_interrupts)


@contextmanager
def _worker_processes_start() -> Iterator[None]:
    """Hold Ctrl-C back while worker processes start: these never see it, not even while they import."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # its start would let signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _worker_process_ignores_interrupts() -> None:
    """Make a worker process ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
