"""n_threads: same number, same bits; columns and generators side by side."""

from __future__ import annotations

import ast
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from threading_cases import FOUND, Watched, at_work, bits, data, left_as_found, many_cores, sparse_data, threads_here

import mdlearn
from mdlearn.driver.generator_threads import run_in_threads
from mdlearn.numerics import memory
from mdlearn.solvers.coordinate_descent.solver import CoordinateDescent
from mdlearn.solvers.interior_point.solver import Interior

pytestmark = [pytest.mark.threads, pytest.mark.usefixtures(left_as_found.__name__)]


# ---------------------------------------------------------------- results

CASES = {
    "cd rbf": (data, {"solver": "cd", "kernel": "rbf"}),
    "cd rbf, exact Hessian": (data, {"solver": "cd", "kernel": "rbf", "lambda1": 100.0}),
    "cd linear": (data, {"solver": "cd"}),
    "cd csr": (sparse_data, {"solver": "cd", "tol": 1e-4}),
    "interior": (data, {"solver": "interior"}),
    "interior rbf": (data, {"solver": "interior", "kernel": "rbf", "bias": "free"}),
    "asgd": (data, {"solver": "asgd"}),
    "asgd csr": (sparse_data, {"solver": "asgd"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_same_number_same_bits(case):
    make, settings = CASES[case]
    X, y = make()
    models = {}
    for n in (1, 2):
        models[n] = mdlearn.fit("ldm", X, y, n_threads=n, random_state=5, **settings)
        again = mdlearn.fit("ldm", X, y, n_threads=n, random_state=5, **settings)
        assert bits(again) == bits(models[n])
    for one, two in zip(models[1].certificate.parts, models[2].certificate.parts):
        slack = 1e-9 * abs(one.objective)
        assert one.lower_bound <= two.objective + slack and two.lower_bound <= one.objective + slack
        assert one.converged == two.converged
    history = [(state.problem, state.iteration) for state in models[2].history]
    assert history == sorted(history) and {problem for problem, _ in history} == {0, 1, 2, 3}


def test_a_fit_with_one_thread_is_not_disturbed_by_others():
    """BLAS never gets more than the smallest number asked for, so that one thread stays one thread."""
    X, y = data(300, 10)
    settings = {"kernel": "rbf", "n_threads": 1}
    alone, together = bits(mdlearn.fit("ldm", X, y, **settings)), []

    def work(n):
        model = mdlearn.fit("ldm", X, y, **{**settings, "n_threads": n})
        if n == 1:
            together.append(bits(model))

    crowd = [threading.Thread(target=work, args=(n,)) for n in (1, 2, 1, 3)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    assert together == [alone, alone]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2", True, 10**6, np.nan])
def test_what_is_no_number_of_threads(wrong):
    with pytest.raises((TypeError, ValueError), match=r"n_threads needs to be an integer >= 1 and <= 1024; got "):
        mdlearn.fit("svm", *data(), n_threads=wrong)


# ---------------------------------------------------------------- columns side by side


def test_columns_are_solved_at_the_same_time():
    X, y = data()
    engine = Watched(threading.Barrier(2, timeout=60))
    mdlearn.fit("ldm", X, y, solver=engine, n_threads=2)
    assert engine.most == engine.asked == 2 and engine.begun == 4
    assert threading.get_ident() not in {ident for ident, _ in engine.seen}
    for n in (None, 1):
        with pytest.raises(threading.BrokenBarrierError):
            mdlearn.fit("ldm", X, y, solver=Watched(threading.Barrier(2, timeout=0.05)), n_threads=n)


@pytest.mark.parametrize(
    "classes, n, at_once, share",
    [(2, None, 1, 1), (3, None, 1, 1), (2, 2, 1, 2), (3, 1, 1, 1), (3, 2, 2, 1), (3, 4, 3, 1), (3, 6, 3, 2)],
)
@pytest.mark.usefixtures(many_cores.__name__)
def test_threads_are_shared_out(classes, n, at_once, share):
    """Pieces have all threads while there is one thing to do, and then what columns leave; BLAS has one."""
    engine, callbacks, made = Watched(), [], []

    def kernel(A, B):
        made.append(threads_here())
        return A @ B.T

    def callback(state):
        callbacks.append((threading.get_ident(), threads_here()))

    mdlearn.fit("ldm", *data(40, classes=classes), solver=engine, kernel=kernel, callback=callback, n_threads=n)
    assert engine.asked == engine.most == at_once
    assert engine.prepared == (threading.get_ident(), (1, n or 1)) and set(made) == {(1, n or 1)}
    assert {seen for _, seen in engine.seen} == {(1, share)}
    assert set(callbacks) == {(threading.get_ident(), (1, share))}


@pytest.mark.parametrize("cores", [1, 2, 8])
def test_many_entries_are_shared_out_where_nobody_says(cores, monkeypatch):
    """By as many threads as BLAS has and cores there are, each with one of BLAS: the bits are those of one thread."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(cores), raising=False)
    X, y = data(60)
    alone = mdlearn.fit("ldm", X, y, solver=Watched(), n_threads=1)
    for least, expected in ((4 * X.size + 1, 1), (4 * X.size, min(cores, FOUND))):
        monkeypatch.setattr("mdlearn.driver.driver.PARALLEL_ENTRIES", least)
        engine = Watched()
        model = mdlearn.fit("ldm", X, y, solver=engine)
        assert engine.asked == engine.most == expected
        assert {seen for _, seen in engine.seen} == {(1, 1)}
        assert bits(model) == bits(alone)


def test_large_pairs_are_shared_out_where_nobody_says(monkeypatch):
    """As classes are, each pair a form of its own: the bits are those of one thread."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(2), raising=False)
    monkeypatch.setattr("mdlearn.driver.driver.PARALLEL_ENTRIES", 1)
    X, y = data(60)
    alone, engine = mdlearn.fit("ldm", X, y, multiclass="ovo", solver=Watched(), n_threads=1), Watched()
    model = mdlearn.fit("ldm", X, y, multiclass="ovo", solver=engine)
    assert engine.most == min(2, FOUND)
    assert bits(model) == bits(alone)


def test_problems_that_fit_in_memory_one_by_one_only(monkeypatch):
    class Large(Watched):
        def check_memory(self, form, at_once=1):
            super().check_memory(form, at_once)
            if at_once > 1:
                raise mdlearn.InsufficientMemory("too large")

    monkeypatch.setattr("mdlearn.driver.driver.PARALLEL_ENTRIES", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(4), raising=False)
    engine = Large()
    mdlearn.fit("ldm", *data(60), solver=engine)
    assert engine.most == 1


def test_the_callers_errstate_holds_in_every_column():
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("older NumPy keeps errstate per thread")
    engine = Watched()
    with np.errstate(under="raise", over="print"):
        mdlearn.fit("ldm", *data(40), solver=engine, n_threads=2)
        # But for the warnings of overflows, which the certificate tells of.
        assert engine.errstate == {**np.geterr(), "invalid": "ignore"}


@pytest.mark.parametrize("engine", [CoordinateDescent, Interior])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_memory_of_columns_at_the_same_time(engine, kernel, monkeypatch):
    X, y = data(2100, 4) if kernel == "linear" else data(60)
    asked = []
    monkeypatch.setattr(memory, "require", lambda n_bytes, *rest: asked.append(n_bytes))
    for n in (None, 1, 4):
        mdlearn.fit("ldm", X, y, kernel=kernel, solver=engine, n_threads=n, tol=1e-2)
    (same, alone, together), largest = asked, 4 * asked[1]
    assert same == alone < together <= largest
    monkeypatch.undo()
    monkeypatch.setattr(memory, "NEGLIGIBLE_BYTES", 0.0)
    monkeypatch.setattr(memory, "available_bytes", lambda: alone + together)
    with pytest.raises(mdlearn.InsufficientMemory, match=r"4 problems at once.*n_threads=1"):
        mdlearn.fit("ldm", X, y, kernel=kernel, solver=engine, n_threads=4, tol=1e-2)
    mdlearn.fit("ldm", X, y, kernel=kernel, solver=engine, n_threads=1, tol=1e-2)


def test_no_errstate_is_held_across_a_yield():
    """The piece after a yield may run in another thread, and another column's piece in this one."""
    sources = sorted(Path(mdlearn.__file__).parent.rglob("*.py"))
    held = 0
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            given = []
            if isinstance(node, ast.With):
                given = [item.context_expr for item in node.items]
            elif isinstance(node, ast.FunctionDef):
                given = node.decorator_list
            if any("errstate" in ast.unparse(expression) for expression in given):
                held += 1
                inside = [n for statement in node.body for n in ast.walk(statement)]
                assert not any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in inside), f"{path}:{node.lineno}"
    assert held > 2


# ---------------------------------------------------------------- generators in threads


def numbers(start, n):
    for k in range(n):
        yield None
        yield start + k
    return start


@pytest.mark.parametrize("at_once", [1, 2, 9])
def test_items_and_results(at_once):
    works, items = [numbers(100 * k, 5) for k in range(7)], []
    pieces = run_in_threads(works, at_once, 1)
    while True:
        try:
            items.append(next(pieces))
        except StopIteration as done:
            assert done.value == [100 * k for k in range(7)]
            break
    items = [item for item in items if item is not None]
    assert sorted(items) == [100 * k + i for k in range(7) for i in range(5)]
    for k in range(7):
        assert [item for item in items if item // 100 == k] == [100 * k + i for i in range(5)]


def test_leaving_early_closes_everything():
    closed, begun = [], []

    def work(k):
        begun.append(k)
        try:
            while True:
                yield k
        finally:
            closed.append(k)

    pieces = run_in_threads([work(k) for k in range(5)], 2, 1)
    next(pieces)
    assert len(at_work()) == 2
    pieces.close()
    assert not at_work() and sorted(closed) == sorted(begun) == [0, 1]
