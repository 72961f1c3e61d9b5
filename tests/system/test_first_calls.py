"""First calls from many threads: no import waits for a thread that waits for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from documents import PROJECT
from plugin_cases import offering

import mdlearn

pytestmark = pytest.mark.threads

HANG = 60
"""Seconds after which a process is taken to hang; it needs about one."""


def run(script, *arguments, plugins=None):
    """What a process of its own prints; a hang is an error that shows where every thread waits."""
    path = [str(Path(mdlearn.__file__).parents[1]), *([str(plugins)] if plugins else [])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "MDLEARN_DISABLE_PLUGINS": ""}
    watch = f"import faulthandler; faulthandler.dump_traceback_later({HANG}, exit=True)\n"
    done = subprocess.run(
        [sys.executable, "-c", watch + script, *arguments], env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


TWO_SIDES = """
import importlib, sys, threading, time
from importlib.machinery import PathFinder
import mdlearn

package, name = sys.argv[1:]
errors = []


def enter():
    try:
        getattr(mdlearn, name)
    except BaseException as error:
        errors.append(error)


def pause(spec):
    # Called when this thread holds the lock of the package: another one comes from the side of a module.
    other.start()
    time.sleep(0.5)


class Finder:
    def find_spec(self, asked, path=None, target=None):
        if asked == package:
            spec = PathFinder.find_spec(asked, path, target)
            spec.loader.create_module = pause
            return spec


other = threading.Thread(target=enter)
sys.meta_path.insert(0, Finder())
importlib.import_module(package)
other.join()
print(errors)
"""


@pytest.mark.slow
@pytest.mark.parametrize("package, name", [("mdlearn.selection", "select"), ("mdlearn.margins", "list_solvers")])
def test_a_package_and_its_modules_from_two_threads(package, name):
    assert run(TWO_SIDES, package, name) == "[]\n"


ASKS = """
import threading
import mdlearn

shared = __import__("shared")
if threading.current_thread() is not threading.main_thread():
    shared.inside.set()  # this thread holds the lock of this module ...
    assert shared.loading.wait(60)
    shared.names.extend(mdlearn.list_objectives())  # ... and asks for the registry
"""

LOADS = """
import shared

shared.loading.set()  # the main thread is making the registry ...
assert shared.inside.wait(60)  # ... and asks for that module next
"""

BOTH = """
import threading
import mdlearn, shared

other = threading.Thread(target=lambda: __import__("b_plugin"))
other.start()
assert shared.inside.wait(60)
names = mdlearn.list_objectives()
other.join()
assert "svm" in names and "svm" in shared.names
print("done")
"""


def test_the_registry_and_a_plugin_from_two_threads(tmp_path):
    """One thread imports a plugin that asks for the registry, another makes the registry and imports that plugin."""
    (tmp_path / "shared.py").write_text(
        "import threading\ninside, loading, names = threading.Event(), threading.Event(), []\n"
    )
    for module, code in (("a_plugin", LOADS), ("b_plugin", ASKS)):
        (tmp_path / f"{module}.py").write_text(code + offering(module))
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[mdlearn]\nmain = {module}\n")
    assert run(BOTH, plugins=tmp_path) == "done\n"


LIBRARIES = """
import threading
import numpy
from mdlearn.numerics.blas_threads import BlasGuard

stop = threading.Event()


def look():
    while not stop.is_set():
        BlasGuard()._list_libraries()


threads = [threading.Thread(target=look) for _ in range(2)]
for thread in threads:
    thread.start()
import scipy.linalg, scipy.optimize, scipy.sparse, scipy.spatial  # compiled modules by the dozen
stop.set()
for thread in threads:
    thread.join()
print("done")
"""


def test_libraries_are_listed_while_others_are_loaded():
    """The loader's lock and Python's: hangs in most runs with threadpoolctl before 3.8."""
    assert run(LIBRARIES) == "done\n"


def test_no_version_that_hangs_is_installed_with_mdlearn():
    asked = next(one for one in PROJECT["dependencies"] if one.startswith("threadpoolctl"))
    assert tuple(map(int, asked.removeprefix("threadpoolctl>=").split("."))) >= (3, 8)


EIGHT = """
import sys, threading
import numpy as np
import mdlearn

sys.setswitchinterval(1e-5)
X, y = np.random.default_rng(0).standard_normal((40, 3)), np.arange(40) % 3
calls = [
    lambda: mdlearn.fit("ldm", X, y),
    lambda: mdlearn.fit("svm", X, y, kernel="rbf", n_threads=2),
    lambda: mdlearn.fit_path("ldm", X, y, {"C": [1.0, 2.0]}),
    lambda: mdlearn.select("ldm", X, y, {"C": [1.0, 2.0]}),
    lambda: mdlearn.list_objectives(),
    lambda: mdlearn.margins.minimum(np.ones(3)),
    lambda: mdlearn.list_plugins(),
    lambda: mdlearn.datasets.xor(40),
]
start, errors = threading.Barrier(8), []


def call(work):
    start.wait()
    try:
        work()
    except BaseException as error:
        errors.append(repr(error))


threads = [threading.Thread(target=call, args=(work,)) for work in calls]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(errors)
"""


@pytest.mark.slow
def test_eight_threads_with_calls_of_their_own():
    assert run(EIGHT) == "[]\n"
