"""The benchmarks: what they measure is what they say. No time is asserted anywhere."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import mdlearn

FOLDER = Path(__file__).parents[2] / "asv_bench"
pytestmark = [
    pytest.mark.skipif(not FOLDER.is_dir(), reason="installed without the benchmarks"),
    pytest.mark.usefixtures("bench"),
]


def module(name):
    pytest.importorskip("sklearn")
    return importlib.import_module(f"benchmarks.{name}")


def linear():
    return module("contest"), module("peer_dense")


# ---------------------------------------------------------------- asv


@pytest.mark.parametrize("name", sorted(path.stem for path in (FOLDER / "benchmarks").glob("[a-z]*.py")))
def test_every_class_has_parameters_and_a_unit(name):
    found = [c for _, c in inspect.getmembers(module(name), inspect.isclass) if c.__module__ == f"benchmarks.{name}"]
    for cls in found:
        tracked = [f for key, f in inspect.getmembers(cls, inspect.isfunction) if key.startswith("track_")]
        assert all(f.unit for f in tracked), cls
        if hasattr(cls, "params"):
            number = len(cls.params) if isinstance(cls.params[0], list) else 1
            assert number == len(cls.param_names), cls


def test_workloads_are_defined_for_the_reader():
    """The page's table of workloads is that of the cases, and every name in a row of figures is in it."""
    page = (FOLDER.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    workloads = module("peer_cases").WORKLOADS
    assert dict(re.findall(r"^\| (\w+) \| ([^|]+) \|$", page, re.MULTILINE)).items() >= workloads.items()
    assert {row.workload for row in module("peer_cases").CASES} <= workloads.keys()
    for name in re.findall(r"\bW\d\w?\b", page):  # a beginning of names is enough for the program
        assert any(one.startswith(name) for one in workloads), name


def benchmarks(name):
    return [
        c for key, c in vars(module(name)).items() if isinstance(c, type) and key[0] != "_" and hasattr(c, "params")
    ]


SMALL = {
    "dense": "dense 60 x 4",
    "sparse": "sparse 2100 x 30",
    "kernel": "kernel 50",
    "smooth": "smooth 60",
    "classes": "classes 90 x 40 x 3",
}


def small(shape):
    return SMALL.get(shape.partition(" ")[0], "local 2000")


@pytest.mark.slow
def test_every_engine_on_something_small(process):
    """Each class of engines: a fit that promises a gap reaches it, and rows are visited where that is told."""
    seen = set()
    for cls in benchmarks("engines"):
        if cls.__name__ == "Memory":
            continue
        for objective in cls.params[0]:
            given = objective, small(cls.params[1][0]), cls.params[2][-1]
            one = cls()
            one.setup(*given)
            assert one.X.dtype == np.dtype(given[2]) and one.fit().solver == (
                cls.engine if cls.engine != "auto" else "newton"
            )
            assert 0.0 <= one.track_gap(*given) <= (1.0 if cls.engine in ("sgd", "asgd", "smw") else 1e-6)
            assert one.track_iterations(*given) >= 1
            if hasattr(one, "track_row_dots"):
                assert one.track_row_dots(*given) >= 1.0
            seen.add(cls.engine)
    assert seen - {"auto"} == set(mdlearn.list_solvers())


def test_visits_are_counted_and_the_loops_put_back():
    counting = module("counting")
    X, y = module("workloads").gaussians(300, 5)
    task = importlib.import_module("mdlearn.solvers.stochastic.task")
    before = task.walk_dense
    with counting.visits() as count:
        mdlearn.fit("svm", X, y, solver="sgd", bias="none", solver_options={"epochs": 4, "eta0": 0.01})
    assert count.rows == 4 * 300 and task.walk_dense is before


def test_contenders_end_near_the_optimum(process):
    """The values are of one and the same objective: nobody is below the bound, and none is far above it."""
    for cls in benchmarks("contenders"):
        shape = {"kernel": "kernel 80"}.get(cls.params[1][0].partition(" ")[0], small(cls.params[1][0]))
        for name in cls.params[0]:
            one = cls()
            one.setup(name, shape)
            assert -1e-9 <= one.track_suboptimality(name, shape) <= 1e-3, (cls, name)


def test_exponents():
    scaling = module("scaling")
    sizes = np.array([10.0, 20.0, 40.0, 80.0])
    assert scaling.exponent(sizes, 3.0 * sizes**1.5) == pytest.approx(1.5)
    clock = iter([0.0, 5.0, 10.0, 12.0])
    assert scaling.least(lambda: None, 2, lambda: next(clock)) == 2.0
    for objective, _, problems in scaling.LAWS.values():
        assert len(problems) >= 4 and len({str(problem) for _, problem in problems}) == len(problems)
        assert objective in mdlearn.list_objectives()


def test_memory_beyond_the_rows():
    """A fit that is known to take a Gram matrix takes at least that."""
    memory = module("memory")
    try:
        memory.largest_resident()
    except NotImplementedError:
        pytest.skip("the system does not tell")
    X, y = module("workloads").ringnorm(1500)
    given = {"objective": "lssvm", "kernel": "rbf", "n_threads": 1}
    share, extra = memory.extra_share(X, y, given)
    assert extra >= 0.9 * 8 * 1500**2 and share == pytest.approx(extra / X.nbytes)


# ---------------------------------------------------------------- threads

SCRIPT = """
import contextlib, json, os, sys, warnings
sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore")
import numpy as np
import benchmarks.threads as threads
from mdlearn.numerics.blas_threads import blas_threads

def slept():
    # How often each other thread has gone back to sleep.
    counts = {}
    for task in os.listdir("/proc/self/task"):
        gone = contextlib.suppress(FileNotFoundError, ProcessLookupError)
        with gone, open(f"/proc/self/task/{task}/status") as lines:
            if int(task) != os.getpid():
                counts[task] = next(int(line.split()[1]) for line in lines if line.startswith("voluntary"))
    return counts

def woken(call, enough):
    # How often others did during a call: the first of three of which that is enough, or the last, for one that was at
    # work before waits busily for a moment.
    for _ in range(3):
        before = slept()
        call()
        seen = sum(n - before.get(task, 0) for task, n in slept().items())
        if enough(seen):
            break
    return seen

threads.WORKS.update({name: (*work[:2], work[2].replace("0000 x", "000 x").replace("local 10000", "local 2000"))
                      for name, work in threads.WORKS.items()})
answer = {}
for name in threads.WORKS:
    with blas_threads(1):  # while data are drawn
        call, guard = threads.work(name, 1)
    with guard:
        call()
        answer[name] = woken(call, lambda seen: not seen)
A = np.random.default_rng(0).random((700, 700))

def free():
    A @ A
    threads.used(lambda: None, 0.3)  # until the others sleep again

print(json.dumps([answer, woken(free, bool)]))
"""


@pytest.mark.slow
@pytest.mark.threads
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the system does not tell what threads do")
def test_one_thread_is_one_thread():
    """With BLAS free to take two, no other thread wakes up during a fit; HiGHS has a thread of its own."""
    pytest.importorskip("sklearn")
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    root = str(Path(mdlearn.__file__).parents[1])
    environment["PYTHONPATH"] = os.pathsep.join([root, environment.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", SCRIPT, str(FOLDER)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    answer, outside = json.loads(done.stdout.splitlines()[-1])
    answer.pop("linprog, dense")
    assert {name: times for name, times in answer.items() if times} == {}
    assert outside or len(os.sched_getaffinity(0)) == 1, "outside of the guard they do"


# ---------------------------------------------------------------- peers


def test_turns():
    """Each call is timed by the clock, the first as often as any; those over their time sit out."""
    references = module("references")
    now, order = [0.0], []

    def call(name, cost):
        def run():
            order.append(name)
            now[0] += cost

        return run

    times = references.in_turn([call("a", 1.0), call("b", 5.0), call("c", 2.0)], 6.0, 9, lambda: now[0])
    assert times == [[1.0, 1.0, 1.0], [5.0, 5.0], [2.0, 2.0, 2.0]]
    assert "".join(order) == "abc" + "cba" + "ac"
    assert references.in_turn([call("a", 1.0)], 100.0, 3, lambda: now[0]) == [[1.0] * 3]


def test_lines_of_a_contest():
    contest, dense = linear()
    case = contest.Case("W", "svm", lambda: dense.hinge((300, 5), tolerances=(1e-3, 1e-6)))
    lines = case.prepare().lines()
    assert [line.goal for line in lines] == [0.5, 0.05]
    assert "**interior point" in lines[0].cells["numpy"] and "**LinearSVC" in lines[1].cells["package"]
    assert all(line.ratio > 0 and line.met is (line.ratio <= line.goal) for line in lines)
    assert float(lines[0].gap) <= 1e-8
    lost = contest.Line({}, "", "", 0.1, 0.5, held=False)
    assert lost.met is False and contest.Line({}, "", "", None, None).met is None


def test_a_missed_precision_is_no_figure():
    contest, _ = linear()
    model = types.SimpleNamespace(certificate=types.SimpleNamespace(gap=1e-3))
    with pytest.raises(RuntimeError, match="mdlearn stopped at the gap"):
        contest.certified(lambda: model, 1e-6)()
    with pytest.raises(RuntimeError, match="the rival stopped"):
        contest.reaching(lambda: 0.5, lambda found: found, "the rival", 1e-8)


@pytest.mark.slow
def test_all_families_on_something_small():
    for make in (
        lambda: module("peer_dense").squared_hinge((200, 6), 1e-6),
        lambda: module("peer_dense").one_factorisation(200, 6),
        lambda: module("peer_kernel").svm(80),
        lambda: module("peer_kernel").ldm(80, 0.01),
        lambda: module("peer_kernel").predict(80, 20),
        lambda: module("peer_many").newton(500),
        lambda: module("peer_many").fixed_point(500),
        lambda: module("peer_many").sparse_rows(200, 40, 3),
        lambda: module("peer_sparse").EqualEpochs(2500, 300, 1.0),
        lambda: module("peer_sparse").hinge(2500, 0.3),
    ):
        lines = make().lines()
        assert lines and all(line.ratio > 0 for line in lines)


def test_the_table_is_put_between_its_markers(tmp_path, monkeypatch, capsys):
    contest, dense = linear()
    peers = importlib.import_module("peers")

    def spoilt():
        raise RuntimeError("mdlearn stopped at the gap 1")

    cases = (
        contest.Case("A1", "uldm", lambda: dense.one_factorisation(100, 4)),
        contest.Case("A2", "svm", spoilt),
        contest.Case("B", "never", spoilt),
    )
    monkeypatch.setattr(peers, "CASES", cases)
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- peers -->\nold\n<!-- end of peers -->\nbelow\n")
    assert peers.main(["A", "--write", str(page)]) == 0 and peers.main(["A2", "--strict"]) == 1
    printed = capsys.readouterr().out
    text = page.read_text()
    assert (
        text.startswith(f"above\n<!-- peers -->\n`python asv_bench/peers.py A --write {page.as_posix()}`, ")
        and "old" not in text
    )
    assert text.endswith("<!-- end of peers -->\nbelow\n")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert [row.count(" | ") for row in rows] == [len(peers.TITLES) - 1] * 3 and "never" not in text
    assert rows[2].endswith("| no |") and "stopped at the gap" in rows[2] and all(row in printed for row in rows)
    for wrong in (
        "nothing",
        "<!-- end of peers --> <!-- peers -->",
        "<!-- peers --> <!-- peers --> <!-- end of peers -->",
    ):
        with pytest.raises(ValueError, match="needs one"):
            peers.replaced(wrong, "")


# ---------------------------------------------------------------- defaults on raw columns


def test_a_study_of_defaults_reads_files_as_they_are(tmp_path):
    """Rows with missing values are left out, labels may be words, and what raises is told in the table."""
    defaults = importlib.import_module("defaults")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * [1.0, 1e4, 1e-3]
    y = np.where(X[:, 0] > 0, "yes", "no")
    X[3, 1] = np.nan
    np.savez(tmp_path / "words.npz", X=X, y=y)
    told = defaults.fit_one("svm", tmp_path / "words.npz", 15.0, 1e-6)
    assert (
        dict(zip(defaults.TITLES, told)).items() >= {"rows": 39, "columns": 3, "classes": 2, "end": "converged"}.items()
    )
    X[np.arange(40), np.arange(40) % 3] = np.nan
    as_users_call = defaults.fit_one("svm", tmp_path / "words.npz", 15.0, 1e-6, wall_counts=True)
    assert as_users_call[:8] == told[:8]
    filled = defaults.complete(X, y)[0]
    assert filled.shape == (40, 3) and np.isfinite(filled).all()
    np.savez(tmp_path / "one.npz", X=np.ones((30, 2)), y=np.ones(30))
    assert defaults.fit_one("svm", tmp_path / "one.npz", 15.0, 1e-6)[-1].startswith("ValueError")
