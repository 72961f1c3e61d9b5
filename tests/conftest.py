"""Test options. The helper modules in support/ (reference, data, cases) are imported by their plain names."""

import gc
import importlib.util
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "support"))
# The package tests/fuzz by its name. The folder of tests itself stays off the path, where sklearn/ or data/ would be
# namespace packages in the place of what is not installed.
_fuzz = importlib.util.spec_from_file_location("fuzz", HERE / "fuzz" / "__init__.py")
sys.modules["fuzz"] = importlib.util.module_from_spec(_fuzz)
_fuzz.loader.exec_module(sys.modules["fuzz"])

from compiled import REBUILD, out_of_date  # noqa: E402
from process_settings import BLAS_THREADS, FILTERS, WORKERS, Settings, blas_threads, one_blas_thread  # noqa: E402

# The reference of many tests: thousands of small products, over which threads of BLAS wait more than they work.
scipy.optimize.minimize = one_blas_thread()(scipy.optimize.minimize)

# A shell starts jobs in the background with Ctrl-C ignored, and so do all their children: the tests of Ctrl-C need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart():
    """An editable install does not compile again on its own: say so before tests judge the code of yesterday."""
    package = importlib.util.find_spec("mdlearn")
    names = out_of_date(Path(package.origin).parent / "_solvers") if package and package.origin else []
    if names:
        pytest.exit(f"{', '.join(names)} in mdlearn/_solvers changed since compiled; run: {REBUILD}", returncode=4)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Leave the collector off while twelve thousand tests are made, and out of what it looks through what they are.

    It would look through a million objects again and again, of which hardly one goes: once takes a second. Tests that
    collect do so at once.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def workers_share_the_cores():
    """Give each of several workers its share of BLAS's threads: more than there are cores wait for each other."""
    with blas_threads([max(1, number // WORKERS) for number in BLAS_THREADS]):
        yield


@pytest.fixture
def blas_threads_of_a_user():
    """Give BLAS the threads that it has in a process of its own."""
    with blas_threads(BLAS_THREADS):
        yield


@pytest.fixture(autouse=True)
def settings_are_left_alone(request):
    """Fail a test that leaves a setting of the process changed, and put it back for those that follow."""
    if WORKERS > 1 and request.node.get_closest_marker("threads"):
        request.getfixturevalue("blas_threads_of_a_user")
    before = Settings()
    yield
    changed = before.put_back()
    if changed:
        pytest.fail("the test leaves changed: " + "; ".join(changed), pytrace=False)


@pytest.fixture(scope="session", autouse=True)
def settings_are_left_alone_by_fixtures_of_modules(workers_share_the_cores):
    """The same for what fixtures of a wider scope leave, which are up before a test's and go after it."""
    before = Settings()
    yield
    changed = before.put_back(but=[FILTERS])  # which pytest sets for each test anew
    if changed:
        pytest.fail("a fixture of a module leaves changed: " + "; ".join(changed), pytrace=False)


@pytest.fixture
def rng():
    """Random numbers that are the same whichever tests have run before."""
    return np.random.default_rng(0)


class Clock:
    """Time that passes when a test says so."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        """Let time pass."""
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    """A clock in place of `time.perf_counter`, which time limits go by: the same answer on a busy machine."""
    from mdlearn.numerics.symmetric_eigenvalues import symmetric_eigen_seconds

    symmetric_eigen_seconds(1)  # how fast this machine is is measured once, by a clock that runs
    found = Clock()
    monkeypatch.setattr(time, "perf_counter", found)
    return found
