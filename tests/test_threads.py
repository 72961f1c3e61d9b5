"""n_threads: same number, same bits; columns side by side; BLAS is left as it was found, whatever happens."""

from __future__ import annotations

import argparse
import ast
import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import threadpoolctl

import mdlearn
from mdlearn.data import memory
from mdlearn.solvers import threads
from mdlearn.solvers.cd import CoordinateDescent
from mdlearn.solvers.interior import Interior
from mdlearn.solvers.threads import GUARD, blas_threads, one_by_one, side_by_side

FOUND = 3
PERMUTATIONS = list(itertools.permutations(range(3)))


def blas():
    """What every loaded BLAS is set to."""
    return [info["num_threads"] for info in threadpoolctl.threadpool_info() if info["user_api"] == "blas"]


@pytest.fixture(autouse=True)
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
    return [thread for thread in threading.enumerate() if thread.name == "mdlearn"]


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


class Watched(Interior):
    """Notes where its parts run and what BLAS is set to there; columns wait for each other when there is a gate."""

    name = "watched"

    def __init__(self, gate=None, fail=()):
        self.gate, self.fail, self.lock = gate, fail, threading.Lock()
        self.prepared, self.seen, self.errstate = None, [], None
        self.begun = self.active = self.most = 0
        self.asked = None

    def check_memory(self, form, at_once=1):
        self.asked = at_once

    def prepare(self, form, options):
        self.prepared = threading.get_ident(), blas()
        return (yield from super().prepare(form, options))

    def iterate(self, form, column, shared, options, rng):
        with self.lock:
            number, self.begun, self.active = self.begun, self.begun + 1, self.active + 1
            self.most = max(self.most, self.active)
        try:
            if self.gate is not None:
                self.gate.wait()
            self.seen.append((threading.get_ident(), blas()))
            self.errstate = np.geterr()
            for report in super().iterate(form, column, shared, options, rng):
                if number in self.fail and report is not None:
                    raise ArithmeticError("this column is spoilt")
                yield report
        finally:
            with self.lock:
                self.active -= 1


def test_columns_are_solved_at_the_same_time():
    X, y = data()
    engine = Watched(threading.Barrier(2, timeout=30))
    mdlearn.fit("ldm", X, y, solver=engine, n_threads=2)
    assert engine.most == engine.asked == 2 and engine.begun == 4
    assert threading.get_ident() not in {ident for ident, _ in engine.seen}
    for n in (None, 1):
        with pytest.raises(threading.BrokenBarrierError):
            mdlearn.fit("ldm", X, y, solver=Watched(threading.Barrier(2, timeout=0.05)), n_threads=n)


@pytest.mark.parametrize(
    "classes, n, at_once, share",
    [(2, None, 1, FOUND), (3, None, 1, FOUND), (2, 2, 1, 2), (3, 1, 1, 1), (3, 2, 2, 1), (3, 4, 3, 1), (3, 6, 3, 2)],
)
def test_threads_are_shared_out(classes, n, at_once, share):
    """BLAS has all threads while there is one thing to do, and what columns leave of them meanwhile."""
    engine, callbacks, made = Watched(), [], []

    def kernel(A, B):
        made.extend(blas())
        return A @ B.T

    def callback(state):
        callbacks.append((threading.get_ident(), *blas()))

    mdlearn.fit("ldm", *data(40, classes=classes), solver=engine, kernel=kernel, callback=callback, n_threads=n)
    assert engine.asked == engine.most == at_once
    assert engine.prepared[0] == threading.get_ident() and set(engine.prepared[1]) == set(made) == {n or FOUND}
    assert {number for _, seen in engine.seen for number in seen} == {share}
    assert set(callbacks) == {(threading.get_ident(), *[share] * len(blas()))}


def test_the_callers_errstate_holds_in_every_column():
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("older NumPy keeps errstate per thread")
    engine = Watched()
    with np.errstate(under="raise", over="print"):
        mdlearn.fit("ldm", *data(40), solver=engine, n_threads=2)
        assert engine.errstate == np.geterr()


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


@pytest.mark.parametrize("at_once", [None, 1, 2, 9])
def test_items_and_results(at_once):
    works, items = [numbers(100 * k, 5) for k in range(7)], []
    pieces = one_by_one(works) if at_once is None else side_by_side(works, at_once, 1)
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

    pieces = side_by_side([work(k) for k in range(5)], 2, 1)
    next(pieces)
    assert len(at_work()) == 2
    pieces.close()
    assert not at_work() and sorted(closed) == sorted(begun) == [0, 1]


# ---------------------------------------------------------------- early ends


@pytest.mark.parametrize("limit", [0.0, 0.2])
def test_time_limit(limit):
    X, y, settings = slow()
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit"):
        model = mdlearn.fit("ldm", X, y, n_threads=2, time_limit=limit, **settings)
    assert len(model.certificate.parts) == 4 and not model.certificate.converged
    assert model.predict(X[:5]).shape == (5,)


def test_max_iter():
    X, y, settings = slow()
    with pytest.warns(mdlearn.ConvergenceWarning, match="max_iter = 2 reached"):
        model = mdlearn.fit("ldm", X[:200], y[:200], n_threads=3, max_iter=2, **settings)
    assert [(s.problem, s.iteration) for s in model.history] == [(k, i) for k in range(4) for i in (1, 2)]


def test_callback_stops_all_columns():
    X, y, settings = slow()
    seen = []

    def stop(state):
        seen.append(state)
        return len(seen) == 5

    with pytest.warns(mdlearn.ConvergenceWarning, match="callback"):
        model = mdlearn.fit("ldm", X, y, n_threads=2, callback=stop, **settings)
    assert len(seen) == 5 and sorted(seen, key=lambda state: state.problem) == model.history
    assert len(model.certificate.parts) == 4 and np.isfinite(model.certificate.objective)


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt, SystemExit, StopIteration])
def test_an_error_in_the_callback(kind):
    X, y, settings = slow()
    raised = kind("enough")

    def fail(state):
        if state.iteration == 2:
            raise raised

    with pytest.raises(kind) as caught:
        mdlearn.fit("ldm", X, y, n_threads=2, callback=fail, **settings)
    assert caught.value is raised
    assert not at_work() and set(blas()) == {FOUND}


@pytest.mark.parametrize("fail", [{0}, {1}, {3}, {0, 1, 2, 3}], ids=str)
def test_an_error_in_a_column(fail):
    with pytest.raises(ArithmeticError, match="spoilt"):
        mdlearn.fit("ldm", *data(), solver=Watched(fail=fail), n_threads=2)
    assert not at_work() and set(blas()) == {FOUND}


@pytest.mark.parametrize("settings", [{}, {"solver": "cd"}, {"kernel": "poly", "degree": 2}], ids=str)
def test_columns_that_cannot_be_separated(settings):
    with pytest.raises(ValueError, match="not separable"):
        mdlearn.fit("svm", *data(), C=np.inf, n_threads=2, **settings)
    assert not at_work() and set(blas()) == {FOUND}


SCRIPT = """
import json, os, random, signal, sys, threading, time, warnings
import numpy as np, scipy.sparse, threadpoolctl
import mdlearn
from mdlearn.solvers.threads import GUARD

warnings.simplefilter("ignore")
case = sys.argv[1]
rng = np.random.default_rng(0)
X, y = rng.standard_normal((1500, 10)), rng.integers(0, 4, 1500)
given = {"n_threads": 2}
if case == "cd":
    given |= {"solver": "cd", "kernel": "rbf", "gamma": 0.02, "C": 1e5, "tol": 1e-13}
elif case == "interior":
    given |= {"solver": "interior", "kernel": "rbf", "tol": 1e-13}
else:
    X = scipy.sparse.random(4000, 300, 0.1, format="csr", random_state=0)
    y, given = rng.integers(0, 4, 4000), given | {"solver": "asgd", "solver_options": {"epochs": 10000}}


def state():
    small = np.random.default_rng(1).standard_normal((60, 3))
    model = mdlearn.fit("ldm", small, np.arange(60) % 3, kernel="rbf", n_threads=2)
    return model.dual_coef_.tobytes().hex()


before, found = state(), threadpoolctl.threadpool_info()
answer = {"delays": [], "left": []}
for delay in [None, *random.Random(0).choices([0.0, 0.003, 0.02, 0.1, 0.25], k=int(sys.argv[2]))]:
    started, sent = threading.Event(), []

    def interrupt():
        started.wait(60)
        time.sleep(0.05 if delay is None else delay * random.random())
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    try:
        if delay is not None:
            started.set()
        mdlearn.fit("ldm", X, y, callback=lambda state: started.set(), **given)
        thread.join()  # a fit that ends before the signal: it comes here
        time.sleep(1)
    except KeyboardInterrupt:
        answer["delays"].append(time.perf_counter() - sent[0])
    answer["left"] += list(GUARD.scopes)
    time.sleep(0.05)  # Ctrl-C can come while a thread is being born, which then ends by itself
    answer["left"] += [thread.name for thread in threading.enumerate() if thread.name == "mdlearn"]
answer["same"] = state() == before and found == threadpoolctl.threadpool_info()
print(json.dumps(answer))
"""


def run(arguments, folder):
    root = str(Path(mdlearn.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to a process of its own")
@pytest.mark.parametrize("case", ["cd", "interior", "asgd csr"])
def test_ctrl_c(case, tmp_path):
    """At any moment: KeyboardInterrupt arrives soon (the limit is ten times the promise), and nothing is left over."""
    answer = json.loads(run(["-c", SCRIPT, case, "6"], tmp_path).splitlines()[-1])
    print(f"{case}: control came back after {1000 * max(answer['delays']):.0f} ms at most")
    assert len(answer["delays"]) == 7 and max(answer["delays"]) < 2.0
    assert not answer["left"] and answer["same"]


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
    yield loaded
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


def test_columns_where_threads_are_told_apart(made_up, monkeypatch):
    """Every thread that solves columns holds BLAS by itself."""
    engine = Watched()
    monkeypatch.setattr(sys.modules[__name__], "blas", lambda: [library.get_num_threads() for library in made_up])
    mdlearn.fit("ldm", *data(40), solver=engine, n_threads=4)
    assert engine.prepared[1] == [4, 4] and {tuple(seen) for _, seen in engine.seen} == {(1, 1)}
    monkeypatch.undo()


@pytest.mark.parametrize("when", range(5))
@pytest.mark.parametrize("kind", ["per process", "per thread"])
def test_ctrl_c_inside_the_guard(kind, when, made_up):
    with blas_threads(2):
        pass
    clock = itertools.count(-when)
    made_up[:] = [Library(kind, clock), Library(kind, clock)]
    with pytest.raises(KeyboardInterrupt) if when < 4 else contextlib.nullcontext(), blas_threads(2):
        pass
    assert [library.get_num_threads() for library in made_up] == [8, 8] and not GUARD.scopes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_while_the_guard_is_at_work(tmp_path):
    script = (
        "import os, signal, warnings\n"
        "from mdlearn.solvers.threads import GUARD, blas_threads\n"
        "warnings.simplefilter('ignore')\n"
        "with GUARD.lock:\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        signal.alarm(20)\n"
        "        with blas_threads(1):\n"
        "            os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert run(["-c", script], tmp_path) == "7\n"


def test_without_a_number_nothing_is_loaded(tmp_path):
    script = (
        "import sys, mdlearn\n"
        "X, y = [[0.0], [1.0], [2.0]], [0, 1, 2]\n"
        "mdlearn.fit('svm', X, y), print('threadpoolctl' in sys.modules)\n"
        "mdlearn.fit('svm', X, y, n_threads=1), print('threadpoolctl' in sys.modules)\n"
    )
    assert run(["-c", script], tmp_path).split() == ["False", "True"]


# ---------------------------------------------------------------- nested and overlapping fits


@pytest.mark.parametrize("inner", [None, 1, 2])
@pytest.mark.parametrize("outer", [None, 1, 2])
@pytest.mark.parametrize("place", ["callback", "kernel"])
@pytest.mark.parametrize("error", [False, True])
def test_a_fit_inside_another(place, outer, inner, error):
    X, y = data(50)
    small, labels = data(30, classes=3, seed=1)
    now = {"callback": lambda n: n and max(1, n // 4), "kernel": lambda n: n}[place](outer)
    calls = []

    def nested():
        calls.append(1)
        if len(calls) > 2:
            return
        assert set(blas()) == {now or FOUND}
        mdlearn.fit("ldm", small, labels, kernel="rbf", n_threads=inner)
        assert set(blas()) == {now or FOUND}
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
        assert set(blas()) == {min(held[: k + 1])}
    rest = set(range(3))
    for k in order:
        go[k].set()
        crowd[k].join()
        rest.remove(k)
        assert set(blas()) == {min((held[i] for i in rest), default=FOUND)}
    for k, end in enumerate(ends):
        assert isinstance(end, LookupError) if k == bad else end.certificate.converged


def test_an_error_before_the_fit_begins():
    for wrong in ({"kernel": "rbf", "gamma": -1.0}, {"solver": "cd", "bias": "free"}, {"sample_weight": [1.0]}):
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

    for k in side_by_side([work()], 1, 1):
        order.append(f"seen {k}")
    assert order == [f"{what} {k}" for k in range(3) for what in ("made", "seen")]
