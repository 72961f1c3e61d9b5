"""Whether `n_threads` is kept, measured with BLAS free to take every core.

`track_cpu_over_wall` is the CPU time of the process in units of wall time: at most n with n threads, on a machine that
has them to spare. `track_elsewhere` is the share of that CPU time that other threads than the caller's have used. With
one thread it is 0, however busy the machine: anything else comes from a part that works outside the guard. Only the
linear program runs in a thread of its own by design.

`Busy.track_two_over_one` is the time of a product by two threads of BLAS in units of that by one, while other processes
keep every core busy; `BusyFits.track_two_over_one` the CPU time of a fit that may have two in units of that with one.
"""

import os
import subprocess
import sys
import warnings
from contextlib import nullcontext
from time import perf_counter, process_time, thread_time

import numpy as np

import mdlearn
from mdlearn.numerics.blas_threads import blas_threads

from .problems import arguments, fitted, rows

WORKS = {
    "interior, dense": ("svm", "interior", "dense 20000 x 201"),
    "interior, kernel": ("ldm", "interior", "kernel 800"),
    "cd, kernel": ("ldm", "cd", "kernel 1500"),
    "cd, dense": ("ldm", "cd", "dense 2500 x 101"),
    "cd, sparse": ("ldm", "cd", "sparse 20000 x 50000"),
    "newton, dense": ("lsvm", "newton", "dense 50000 x 201"),
    "newton, logistic": ("l2lr", "newton", "dense 50000 x 101"),
    "direct, dense": ("lsldm", "direct", "dense 20000 x 501"),
    "direct, kernel": ("lssvm", "direct", "kernel 2000"),
    "decomposition, kernel": ("ldm", "decomposition", "kernel 2500"),
    "smw, dense": ("lsvm", "smw", "dense 200000 x 51"),
    "apg, classes": ("mdlm", "apg", "classes 10000 x 200 x 10"),
    "linprog, dense": ("rlp", "linprog", "dense 2000 x 31"),
    "sgd, dense": ("svm", "sgd", "dense 100000 x 51"),
    "asgd, dense": ("ldm", "asgd", "dense 100000 x 51"),
    "one against the rest": ("svm", "interior", "classes 10000 x 50 x 6"),
    "local": ("l3svm", "auto", "local 10000"),
    "predict, kernel": ("svm", "cd", "kernel 1500"),
    "predict, local": ("l3svm", "auto", "local 10000"),
}
"""Objective, engine and problem."""
LEAST = 0.3
"""Seconds of wall time to measure over, at least."""
CLOCKS = (perf_counter, process_time, thread_time)


def used(call, seconds=LEAST):
    """Wall time, CPU time of the process and CPU time of the calling thread, over as many calls as take the given time.

    One call, unmeasured, comes first: threads of BLAS that were at work before go on waiting busily for a moment.
    """
    call()
    starts = [clock() for clock in CLOCKS]
    while perf_counter() - starts[0] < seconds:
        call()
    return [clock() - start for clock, start in zip(CLOCKS, starts)]


def work(name, n_threads):
    """What to measure, and the guard to hold around it: a prediction has no argument for threads."""
    objective, engine, shape = WORKS[name]
    X, y = rows(shape)
    options = {"solver_options": {"stop": "step"}, "nu": 1e-5} if engine == "smw" else {}
    given = arguments(objective, shape, engine, n_threads=n_threads, **options)
    if not name.startswith("predict"):
        return (lambda: fitted(X, y, given)), nullcontext()
    model = mdlearn.fit(X=X, y=y, **given)
    return (lambda: model.decision_function(X)), blas_threads(n_threads)


class Threads:
    """CPU time over wall time, and CPU time of other threads."""

    params = [list(WORKS), [1, 2]]
    param_names = ["work", "n_threads"]
    timeout = 300

    def setup(self, name, n_threads):
        warnings.simplefilter("ignore")
        self.call, self.guard = work(name, n_threads)

    def track_cpu_over_wall(self, name, n_threads):
        with self.guard:
            wall, process, _ = used(self.call)
        return process / wall

    track_cpu_over_wall.unit = "CPU time in units of wall time"

    def track_elsewhere(self, name, n_threads):
        with self.guard:
            _, process, own = used(self.call)
        return 1.0 - own / process

    track_elsewhere.unit = "share of CPU time"


class BusyCores:
    """Base of what is measured beside other processes, one a core."""

    timeout = 300

    def setup(self, *parameters):
        busy = [sys.executable, "-c", "while True: pass"]
        self.others = [subprocess.Popen(busy) for _ in range(os.cpu_count() or 1)]

    def teardown(self, *parameters):
        for one in self.others:
            one.kill()
            one.wait()


class Busy(BusyCores):
    """One product beside other processes."""

    params = ["2000 x 100", "8000 x 200", "20000 x 300", "5000 x 1000", "10000 x 1000"]
    param_names = ["shape"]

    def setup(self, shape):
        rows, columns = map(int, shape.split(" x "))
        self.A = np.random.default_rng(0).standard_normal((rows, columns))
        super().setup(shape)

    def track_two_over_one(self, shape):
        walls = []
        for n in (1, 2):
            with blas_threads(n):
                self.A.T @ self.A
                calls, begun = 0, perf_counter()
                while perf_counter() < begun + LEAST:
                    self.A.T @ self.A
                    calls += 1
                walls.append((perf_counter() - begun) / calls)
        return walls[1] / walls[0]

    track_two_over_one.unit = "time with one thread"


class BusyFits(BusyCores):
    """Fits beside other processes."""

    params = ["direct, kernel", "decomposition, kernel", "direct, dense"]
    param_names = ["work"]

    def setup(self, name):
        warnings.simplefilter("ignore")
        self.calls = [work(name, n_threads)[0] for n_threads in (1, 2)]
        super().setup(name)

    def track_two_over_one(self, name):
        one, two = (used(call)[1] for call in self.calls)
        return two / one

    track_two_over_one.unit = "CPU time with one thread"
