"""The guard of BLAS: whatever happens, BLAS is left as it was found."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import threading_cases
import threadpoolctl
from threading_cases import (
    FOUND,
    PERMUTATIONS,
    Watched,
    at_work,
    bits,
    blas,
    data,
    left_as_found,
    many_cores,
    run,
    threads_here,
)

import mdlearn
from mdlearn.driver import generator_threads as threads
from mdlearn.driver.generator_threads import run_in_threads
from mdlearn.numerics.blas_threads import GUARD, blas_threads

pytestmark = [pytest.mark.threads, pytest.mark.usefixtures(left_as_found.__name__)]


# ---------------------------------------------------------------- the guard


@pytest.mark.parametrize("order", PERMUTATIONS, ids=str)
def test_guards_that_end_in_any_order(order):
    asked = [5, 2, 4]
    guards = [blas_threads(n) for n in asked]
    for k, guard in enumerate(guards):
        guard.__enter__()
        assert set(blas()) == {min(asked[: k + 1])}
    rest = set(range(3))
    for k in order:
        guards[k].__exit__(None, None, None)
        rest.remove(k)
        assert set(blas()) == {min((asked[i] for i in rest), default=FOUND)}


def test_a_guard_without_a_number_and_after_an_error():
    with blas_threads(None):
        assert set(blas()) == {FOUND} and not GUARD.scopes
    with pytest.raises(KeyError), blas_threads(2), blas_threads(5), blas_threads(None):
        assert set(blas()) == {2}
        raise KeyError


def test_openblas_is_set_by_its_own_functions(monkeypatch):
    """Those of threadpoolctl take as long as much of a small fit."""
    loaded = threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers
    known = [(one.internal_api, getattr(one, "threading_layer", "")) for one in loaded]
    if set(known) != {("openblas", "pthreads")}:
        pytest.skip("another BLAS, or OpenBLAS on other threads")
    with blas_threads(2):
        monkeypatch.setattr(threadpoolctl.OpenBLASController, "set_num_threads", None)
        with blas_threads(1):
            assert {one.get_num_threads() for one in loaded} == {1}
        assert {one.get_num_threads() for one in loaded} == {2}
        monkeypatch.undo()
    assert {one.get_num_threads() for one in loaded} == {FOUND}


class Library:
    """A BLAS with one number for the process or one per thread; during the n-th setting Ctrl-C comes."""

    def __init__(self, kind, clock=()):
        self.filepath, self.clock = f"made up: {kind}", iter(clock)
        self.store = threading.local() if kind == "per thread" else argparse.Namespace()

    def get_num_threads(self):
        return getattr(self.store, "number", 8)

    def set_num_threads(self, n):
        if next(self.clock, None) == 0:
            raise KeyboardInterrupt
        self.store.number = n


@pytest.fixture
def made_up(monkeypatch):
    """Two libraries that the guard takes for all that are loaded: one per kind."""
    loaded = [Library("per process"), Library("per thread")]
    controller = argparse.Namespace(select=lambda user_api: argparse.Namespace(lib_controllers=loaded))
    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", lambda: controller)
    GUARD.n_modules = 0  # libraries are listed anew
    yield loaded
    GUARD.n_modules = 0
    for library in loaded:
        GUARD.kinds.pop(library.filepath, None)


def test_the_guard_finds_out_what_a_library_keeps(made_up):
    with blas_threads(3):
        assert [library.get_num_threads() for library in made_up] == [3, 3]
        assert [GUARD.kinds[library.filepath] for library in made_up] == [False, True]
    assert [library.get_num_threads() for library in made_up] == [8, 8]


@pytest.mark.parametrize("order", PERMUTATIONS, ids=str)
def test_guards_of_several_threads(order, made_up):
    """Where a library tells threads apart, each thread has its own request and gets back its own number."""
    shared, apart = made_up
    asked, own = [5, 2, 4], [8, 7, 6]
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(ThreadPoolExecutor(1)) for _ in asked]
        guards = [blas_threads(n) for n in asked]

        def do(k, call, *arguments):
            return workers[k].submit(call, *arguments).result(60)

        for k in range(3):
            do(k, apart.set_num_threads, own[k])
        for k in range(3):
            do(k, guards[k].__enter__)
            assert do(k, apart.get_num_threads) == asked[k]
            assert shared.get_num_threads() == min(asked[: k + 1])
        rest = set(range(3))
        for k in order:
            do(k, guards[k].__exit__, None, None, None)
            rest.remove(k)
            assert shared.get_num_threads() == min((asked[i] for i in rest), default=8)
            assert [do(i, apart.get_num_threads) for i in range(3)] == [
                asked[i] if i in rest else own[i] for i in range(3)
            ]
    assert apart.get_num_threads() == 8


@pytest.mark.usefixtures(many_cores.__name__)
def test_columns_where_threads_are_told_apart(made_up, monkeypatch):
    """Every thread that solves columns holds BLAS by itself."""
    engine = Watched()
    monkeypatch.setattr(threading_cases, "blas", lambda: [library.get_num_threads() for library in made_up])
    mdlearn.fit("ldm", *data(40), solver=engine, n_threads=4)
    assert engine.prepared[1] == (1, 4) and {seen for _, seen in engine.seen} == {(1, 1)}
    monkeypatch.undo()


@pytest.mark.parametrize("when", range(5))
@pytest.mark.parametrize("kind", ["per process", "per thread"])
def test_ctrl_c_inside_the_guard(kind, when, made_up):
    with blas_threads(2):
        pass
    clock = itertools.count(-when)
    made_up[:] = [Library(kind, clock), Library(kind, clock)]
    GUARD.n_modules = 0
    with pytest.raises(KeyboardInterrupt) if when < 4 else contextlib.nullcontext(), blas_threads(2):
        pass
    assert [library.get_num_threads() for library in made_up] == [8, 8] and not GUARD.scopes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_libraries_are_listed_where_no_signal_comes(monkeypatch):
    """Signals come to the main thread: in a callback from C, Python swallows what their handlers raise."""
    where, plain = [], threadpoolctl.ThreadpoolController._load_libraries

    def listed(self):
        where.append(threading.current_thread())
        return plain(self)

    monkeypatch.setattr(threadpoolctl.ThreadpoolController, "_load_libraries", listed)
    monkeypatch.setattr(GUARD, "n_modules", -1)
    with blas_threads(1):
        assert len(where) == 1
    assert where[0] is not threading.main_thread() and not where[0].is_alive()


@pytest.mark.slow
def test_a_fork_while_the_guard_is_at_work(tmp_path):
    script = (
        "import os, signal, warnings\n"
        "from mdlearn.numerics.blas_threads import GUARD, blas_threads\n"
        "warnings.simplefilter('ignore')\n"
        "with GUARD.lock:\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        signal.alarm(60)\n"
        "        with blas_threads(1):\n"
        "            os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert run(["-c", script], tmp_path) == "7\n"


# ---------------------------------------------------------------- nested and overlapping fits


@pytest.mark.usefixtures(many_cores.__name__)
@pytest.mark.slow
@pytest.mark.parametrize("inner", [None, 1, 2])
@pytest.mark.parametrize("outer", [None, 1, 2])
@pytest.mark.parametrize("place", ["callback", "kernel"])
@pytest.mark.parametrize("error", [False, True])
def test_a_fit_inside_another(place, outer, inner, error):
    X, y = data(50)
    small, labels = data(30, classes=3, seed=1)
    calls = []

    def nested():
        calls.append(1)
        if len(calls) > 2:
            return
        now = threads_here()
        mdlearn.fit("ldm", small, labels, kernel="rbf", n_threads=inner)
        assert threads_here() == now == (1, {"callback": max(1, (outer or 1) // 4), "kernel": outer or 1}[place])
        if error:
            raise LookupError("from inside")

    def kernel(A, B):
        if place == "kernel":
            nested()
        return A @ B.T

    settings = {"solver": "interior", "n_threads": outer}
    with pytest.raises(LookupError) if error else contextlib.nullcontext():
        model = mdlearn.fit(
            "ldm", X, y, kernel=kernel, callback=lambda state: nested() if place == "callback" else None, **settings
        )
    assert calls and set(blas()) == {FOUND} and not at_work()
    if outer == 1 and not error:
        assert bits(model) == bits(mdlearn.fit("ldm", X, y, kernel=lambda A, B: A @ B.T, **settings))


@pytest.mark.usefixtures(many_cores.__name__)
@pytest.mark.slow
@pytest.mark.parametrize("order", PERMUTATIONS, ids=str)
@pytest.mark.parametrize("bad", [None, 0, 2])
def test_fits_that_overlap(order, bad):
    """Three fits begin in turn and end in any order, one of them by an error."""
    asked, classes = [4, 2, 3], [2, 4, 2]
    held = [4, 1, 3]  # the second solves two of its four problems at a time
    begun, go, ends = [threading.Event() for _ in asked], [threading.Event() for _ in asked], [None] * 3

    def work(k):
        def wait(state):
            begun[k].set()
            assert go[k].wait(60)
            if k == bad:
                raise LookupError("enough")

        try:
            ends[k] = mdlearn.fit("ldm", *data(40, classes=classes[k]), n_threads=asked[k], callback=wait)
        except LookupError as raised:
            ends[k] = raised

    crowd = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for k, thread in enumerate(crowd):
        thread.start()
        assert begun[k].wait(60)
        assert threads_here() == (1, min(held[: k + 1]))
    rest = set(range(3))
    for k in order:
        go[k].set()
        crowd[k].join()
        rest.remove(k)
        assert threads_here() == ((1, min(held[i] for i in rest)) if rest else (FOUND, FOUND))
    for k, end in enumerate(ends):
        assert isinstance(end, LookupError) if k == bad else end.certificate.converged


def test_an_error_before_the_fit_begins():
    for wrong in ({"kernel": "rbf", "gamma": -1.0}, {"solver": "linprog"}, {"sample_weight": [1.0]}):
        with pytest.raises(ValueError):
            mdlearn.fit("ldm", *data(), n_threads=2, **wrong)
        assert set(blas()) == {FOUND}


def test_slices_end_with_an_item():
    """A thread hands back at every item, whatever time is left of its slice."""
    assert threads.SLICE < 0.1, "Ctrl-C waits for it"
    order = []

    def work():
        for k in range(3):
            order.append(f"made {k}")
            yield k

    for k in run_in_threads([work()], 1, 1):
        order.append(f"seen {k}")
    assert order == [f"{what} {k}" for k in range(3) for what in ("made", "seen")]
