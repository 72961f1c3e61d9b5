"""Sample problems, engines and the state of BLAS, for the tests of n_threads."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import threadpoolctl

import mdlearn
from mdlearn.numerics.blas_threads import GUARD
from mdlearn.solvers.interior_point.solver import Interior

FOUND = 3
PERMUTATIONS = list(itertools.permutations(range(3)))


def blas():
    """What every loaded BLAS is set to."""
    return [info["num_threads"] for info in threadpoolctl.threadpool_info() if info["user_api"] == "blas"]


def threads_here():
    """What every loaded BLAS is set to, and how many threads pieces of work may have."""
    return (*sorted(set(blas())), GUARD.allowed())


@pytest.fixture
def many_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(64), raising=False)


@pytest.fixture
def left_as_found():
    """Every test here begins with a number of BLAS threads that no fit asks for, and has to end with it."""
    if not blas():
        pytest.skip("threadpoolctl knows no BLAS here")
    with threadpoolctl.threadpool_limits(FOUND, user_api="blas"):
        assert set(blas()) == {FOUND}
        yield
        assert set(blas()) == {FOUND} and not GUARD.scopes
        assert not at_work()


def at_work():
    """Threads that a fit has started and not ended."""
    return [thread for thread in threading.enumerate() if thread.name == "mdlearn" and thread.is_alive()]


def data(m=90, d=4, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    return X, np.argmax(X @ rng.standard_normal((d, classes)) + rng.standard_normal((m, classes)), axis=1)


def sparse_data():
    X, y = data(2100, 12)
    X[np.abs(X) < 0.7] = 0.0
    return scipy.sparse.csr_matrix(X), y


def slow():
    """Nothing that an engine solves in less than seconds, at this tolerance."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((900, 10)), rng.integers(0, 4, 900)
    return X, y, {"kernel": "rbf", "gamma": 0.02, "C": 1e5, "lambda1": 1.0, "tol": 1e-13, "solver": "cd"}


def bits(model):
    """Everything numerical that a model holds, and the course of the fit."""
    arrays = [model.dual_coef_, model.intercept_, model.duals]
    course = [(s.problem, s.iteration, s.objective, s.lower_bound, s.gap) for s in model.history]
    return b"".join(np.ascontiguousarray(a).tobytes() for a in arrays), repr(model.certificate.parts), course


class Watched(Interior):
    """Notes where its parts run and with how many threads; columns wait for each other when there is a gate."""

    name = "watched"

    def __init__(self, gate=None, fail=()):
        self.gate, self.fail, self.lock = gate, fail, threading.Lock()
        self.prepared, self.seen, self.errstate = None, [], None
        self.begun = self.active = self.most = 0
        self.asked = None

    def check_memory(self, form, at_once=1):
        self.asked = at_once

    def prepare(self, form, options):
        self.prepared = threading.get_ident(), threads_here()
        return (yield from super().prepare(form, options))

    def iterate(self, form, column, shared, options, rng):
        with self.lock:
            number, self.begun, self.active = self.begun, self.begun + 1, self.active + 1
            self.most = max(self.most, self.active)
        try:
            if self.gate is not None:
                self.gate.wait()
            self.seen.append((threading.get_ident(), threads_here()))
            self.errstate = np.geterr()
            for report in super().iterate(form, column, shared, options, rng):
                if number in self.fail and report is not None:
                    raise LookupError("this column is spoilt")
                yield report
        finally:
            with self.lock:
                self.active -= 1


def run(arguments, folder):
    root = str(Path(mdlearn.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


class Late(RuntimeError):
    """The signal came when there was nothing left to interrupt."""


def interrupted(call, moment):
    """Call until SIGINT comes after `moment` seconds; return the processor time from the signal to control.

    The collector is off meanwhile. It calls Python that other packages have given it, Ctrl-C is raised in the first
    Python that runs after a long pass, and what is raised in there is printed and dropped.
    """
    sent, go, over = [], threading.Event(), threading.Event()

    def send():
        go.wait()
        if not over.wait(moment):
            sent.append(time.process_time())
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    sender = threading.Thread(target=send)
    sender.start()
    gc.disable()
    try:
        go.set()  # from here on the signal may come, also while the thread is still being told
        call()
        over.set()
        sender.join()
    except KeyboardInterrupt:
        delay = time.process_time() - sent[0]
        sender.join()
        return delay
    finally:
        gc.enable()
    raise Late
