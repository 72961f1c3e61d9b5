"""No test changes what the others find, and no import changes the environment."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documents import ROOT

TESTS = Path(__file__).parents[1]
CULPRITS = """
import os
import warnings

import numpy as np
import process_settings
import pytest


def test_environment(): os.environ["LEFT_BEHIND"] = "1"
def test_threads(): [library.set_num_threads(3 - min(library.num_threads, 2)) for library in process_settings.LIBRARIES]
def test_folder(): os.chdir(os.pardir)
def test_errors(): np.seterr(under="raise")
def test_filters(): warnings.simplefilter("ignore")
def test_after(): assert "LEFT_BEHIND" not in os.environ and np.geterr()["under"] == "ignore"


def test_innocent(monkeypatch, tmp_path):
    monkeypatch.setenv("LEFT_BEHIND", "1")
    monkeypatch.chdir(tmp_path)
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("ignore")


@pytest.fixture(scope="module", autouse=True)
def _of_the_module():
    os.environ["OF_THE_MODULE"] = "1"
"""


def run_apart(program, folder, **environment):
    """Run tests in a process of their own, with the settings that all tests have."""
    for name in ("conftest.py", "support/compiled.py", "support/process_settings.py", "fuzz/__init__.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(TESTS / name, folder / name)
    (folder / "test_program.py").write_text(program, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "-p", "no:randomly", "test_program.py"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=200,
    )


@pytest.mark.slow
def test_what_a_test_leaves_changed_fails_it(tmp_path):
    done = run_apart(CULPRITS, tmp_path)
    failed = {line.split("::")[1].split(" ")[0] for line in done.stdout.splitlines() if line.startswith("ERROR ")}
    # The last one bears what the module leaves.
    assert failed == {"test_environment", "test_threads", "test_folder", "test_errors", "test_filters", "test_innocent"}
    assert "7 passed" in done.stdout, done.stdout
    for said in (
        "environment: {'LEFT_BEHIND': None} became {'LEFT_BEHIND': '1'}",
        "NumPy's error state: {'under': 'ignore'} became {'under': 'raise'}",
        "a fixture of a module leaves changed: environment: {'OF_THE_MODULE': None}",
    ):
        assert said in done.stdout


SHARED = """
import process_settings
import pytest

SHARE = [max(1, number // 2) for number in process_settings.BLAS_THREADS]


def threads(): return [library.get_num_threads() for library in process_settings.LIBRARIES]
def test_most(): assert threads() == SHARE
@pytest.mark.threads
def test_about_threads(): assert threads() == process_settings.BLAS_THREADS
def test_others_after(): assert threads() == SHARE
"""


@pytest.mark.slow
def test_workers_share_the_threads_of_blas(tmp_path):
    """As many threads as cores in each of several processes would wait for each other."""
    done = run_apart(SHARED, tmp_path, PYTEST_XDIST_WORKER_COUNT="2")
    assert "3 passed" in done.stdout, done.stdout


# ---------------------------------------------------------------- imports


def programs():
    """Every Python file of the project, and the programs that tests give to other processes."""
    folders = ("mdlearn", "asv_bench", "docs", "tests", "plugins", ".ci")
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in [ROOT / "setup.py", *paths] if not {"build", "_build", "env"} & set(path.parts)]


def at_import(tree):
    """Nodes that run when a module is imported: outside of functions, and not for a program alone."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        program = isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"
        if not program and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))


READING = {"get", "items", "keys", "values", "copy"}


def writes(node):
    """Whether a node changes the environment."""
    if isinstance(node, ast.Subscript):
        return ast.unparse(node.value).endswith("environ") and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner, name = ast.unparse(node.func.value), node.func.attr
        return name in ("putenv", "unsetenv") or (owner.endswith("environ") and name not in READING)
    return isinstance(node, ast.AugAssign) and ast.unparse(node.target).endswith("environ")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("os.environ['A'] = '1'", True),
        ("del environ['A']", True),
        ("os.environ.setdefault('A', '1')", True),
        ("os.environ |= {'A': '1'}", True),
        ("for _ in (1,):\n    os.putenv('A', '1')", True),
        ("A = os.environ['A'], os.environ.get('A')", False),
        ("def f():\n    os.environ['A'] = '1'", False),
        ("if __name__ == '__main__':\n    os.environ['A'] = '1'", False),
    ],
)
def test_what_counts_as_setting_a_variable(line, expected):
    assert any(writes(node) for node in at_import(ast.parse(line))) is expected


@pytest.mark.slow
def test_no_import_sets_an_environment_variable():
    found = programs()
    assert len(found) > 300
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in found
        for node in at_import(ast.parse(path.read_text(encoding="utf-8")))
        if writes(node)
    ]
    assert not wrong


@pytest.mark.slow
def test_importing_everything_leaves_the_environment():
    """The modules of mdlearn and of the benchmarks, in a process of their own."""
    program = """
import importlib, os, pkgutil, sys
import process_settings
before = dict(os.environ)
import mdlearn, benchmarks
for package in (mdlearn, benchmarks):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
import interrupts, peers
changed = {name for name in before.keys() | os.environ.keys() if before.get(name) != os.environ.get(name)}
print(sorted(changed - process_settings.OF_OTHERS))
"""
    pytest.importorskip("sklearn")
    path = os.pathsep.join([str(ROOT / "asv_bench"), str(TESTS / "support"), *sys.path])
    bare = {name: value for name, value in os.environ.items() if not name.endswith("_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**bare, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "[]"
