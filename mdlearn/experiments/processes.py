"""Processes that work for a command, and never see the Ctrl-C that is meant for it."""

from __future__ import annotations

import multiprocessing
import signal
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.pool import Pool


def worker_pool(jobs: int) -> Pool:
    """Pool of worker processes begun afresh, because a forked one would inherit BLAS in the middle of something.

    Ctrl-C is held back while they start and ignored then: they never see it, not even while they import.
    """
    start = partial(multiprocessing.get_context("spawn").Pool, jobs, _worker_process_ignores_interrupts)
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        return start()
    resource_tracker.ensure_running()  # its start would let signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _worker_process_ignores_interrupts() -> None:
    """Make a worker process ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
