"""How soon Ctrl-C is seen: signals from a process of its own, and sections in which Python never looks."""

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from contextlib import contextmanager

import numpy as np

import mdlearn

SENDER = """
import os, signal, sys, time
for line in sys.stdin:
    time.sleep(float(line))
    sent = time.perf_counter()
    os.kill(os.getppid(), signal.SIGINT)
    print(sent, flush=True)
"""
TICK = 0.004


class Sender:
    """A process that sends SIGINT after some seconds. A thread could not: it waits for the same lock as the fit."""

    def __enter__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", SENDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def delay(self, call, moment):
        """Seconds from the signal, `moment` seconds from now, until `call` is left; None where it ended before."""
        left = None
        try:
            self.process.stdin.write(f"{moment}\n")
            self.process.stdin.flush()
            begun = time.perf_counter()
            call()
            left = time.perf_counter()
            time.sleep(max(0.0, begun + moment - left) + 60.0)
        except KeyboardInterrupt:
            now = time.perf_counter()
        sent = float(self.process.stdout.readline())
        return now - sent if left is None else None


class Health:
    """What an interrupt must leave as it found it, beside the bits of a fit."""

    def __init__(self):
        self.small()  # what a first fit loads and makes is not of interest
        self.before = self.state(), self.small()

    def state(self):
        """Threads, threads of BLAS, the handler of SIGINT, files that are not there for good."""
        from threadpoolctl import threadpool_info

        folders = [tempfile.gettempdir(), *_own_folders()]
        files = sorted(name for folder in folders for name in os.listdir(folder) if "mdlearn" in name)
        blas = [(library["filepath"], library["num_threads"]) for library in threadpool_info()]
        return threading.active_count(), blas, signal.getsignal(signal.SIGINT), files

    def small(self):
        """Bits of small fits."""
        rng = np.random.default_rng(1)
        X = rng.standard_normal((150, 4))
        y = (X[:, 0] > 0.3 * X[:, 1] ** 2).astype(int) + (X[:, 2] > 1)
        return [bits(mdlearn.fit("ldm", X, y, kernel=kernel, n_threads=2)) for kernel in ("linear", "rbf")]

    def faults(self):
        """What is not as it was; threads that still finish what they were doing get a second."""
        until = time.perf_counter() + 1.0
        while threading.active_count() > self.before[0][0] and time.perf_counter() < until:
            time.sleep(0.01)
        names = ("threads", "BLAS", "signal handler", "files")
        found = [name for name, a, b in zip(names, self.before[0], self.state()) if a != b]
        return found + (["bits"] if self.small() != self.before[1] else [])


def _own_folders():
    root = tempfile.gettempdir()
    return [os.path.join(root, name) for name in os.listdir(root) if name.startswith("interrupts-")]


def bits(result):
    """A digest of all numbers of a result."""
    if isinstance(result, mdlearn.Model):
        result = [result.intercept_, result.duals, result._coef, result._alpha]
    total = hashlib.sha256()
    for part in result if isinstance(result, (list, tuple)) else [result]:
        total.update(bits(part).encode() if isinstance(part, tuple) else np.ascontiguousarray(part).tobytes())
    return total.hexdigest()


@contextmanager
def blind(longest):
    """Collect into `longest` the sections in which Python saw no signal: (seconds, CPU seconds, where it went on)."""
    last = [time.perf_counter(), time.thread_time()]

    def look(_, frame):
        now = [time.perf_counter(), time.thread_time()]
        wall, cpu = now[0] - last[0], now[1] - last[1]
        if wall > 5 * TICK:
            stack = traceback.extract_stack(frame)
            ours = [f"{os.path.basename(one.filename)}:{one.lineno}" for one in stack if "mdlearn" in one.filename]
            longest.append((wall, cpu, " < ".join(reversed(ours[-5:]))))
        last[:] = time.perf_counter(), time.thread_time()

    old = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old)
