"""Fits in children: forked (also while other threads fit), spawned, by joblib; what crosses between processes."""

from __future__ import annotations

import os
import pickle
import warnings

import numpy as np
import pytest
from threading_cases import bits, data, run

import mdlearn
from mdlearn.errors import InsufficientMemory

pytestmark = pytest.mark.threads

COMMON = """
import os

# A fork while another thread is inside a BLAS call of several threads stops the child in its next one, mdlearn or not.
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import hashlib, multiprocessing, pickle, sys, threading, time, warnings
import numpy as np
import mdlearn

CASES = [
    ("ldm", {"kernel": "rbf"}), ("ldm", {"n_threads": 2}), ("svm", {"kernel": "rbf", "n_threads": 1}), ("lssvm", {}),
    ("mdlm", {"ridge": 0.1, "n_threads": 3}), ("l3svm", {"n_clusters": 3}), ("lsvm", {"solver": "smw"}),
]


def fitted(k):
    rng = np.random.default_rng(k)
    X = rng.standard_normal((120, 5))
    y = np.argmax(X[:, :3] + rng.standard_normal((120, 3)), axis=1)
    name, given = CASES[k % len(CASES)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mdlearn.fit(name, X, y, random_state=k, **given)


def digest(k):
    model = fitted(k)
    return hashlib.sha256(model._coef.tobytes() if model._coef is not None else model.dual_coef_.tobytes()).hexdigest()


def failing(k):
    raise_from = {"X": np.full((4, 2), np.nan)} if k else {"X": np.zeros((4, 2))}
    return mdlearn.fit("svm", raise_from["X"], [0, 1, 0, 1], C=np.inf)
"""

FORKS = (
    COMMON
    + """
def children(n):
    # os.fork, so that nothing but mdlearn's own care stands between parent and child.
    left = {}
    for k in range(n):
        child = os.fork()
        if not child:
            try:
                signal.alarm(60)
                os._exit(0 if digest(k) == EXPECTED[k] else 3)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(4)
        left[child] = k
    return {k: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child, k in left.items()}


import signal

warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: fork beside threads is what is tried here
EXPECTED = {k: digest(k) for k in range(len(CASES))}
assert set(children(len(CASES)).values()) == {0}, "after a fit"
busy, done = threading.Event(), threading.Event()


def others():
    while not done.is_set():
        fitted(1)
        busy.set()
        fitted(4)


threads = [threading.Thread(target=others) for _ in range(2)]
for thread in threads:
    thread.start()
busy.wait(60)
try:
    for _ in range(3):
        codes = children(len(CASES))
        assert set(codes.values()) == {0}, codes
finally:
    done.set()
    for thread in threads:
        thread.join()


def inside(state):
    # In the middle of a fit that holds the guard of BLAS.
    if state.iteration == 1 and state.problem == 0:
        codes = children(3)
        assert set(codes.values()) == {0}, codes


rng = np.random.default_rng(0)
mdlearn.fit("ldm", rng.standard_normal((60, 4)), np.arange(60) % 3, kernel="rbf", n_threads=2, callback=inside)
print("right")
"""
)

POOLS = (
    COMMON
    + """
if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)
    expected = [digest(k) for k in range(5)]
    for method in sys.argv[1:]:
        if method == "loky":
            from joblib import Parallel, delayed

            # Functions of __main__ and models go to the workers and back by cloudpickle.
            answers = Parallel(n_jobs=2, backend="loky")(delayed(digest)(k) for k in range(5))
            models = Parallel(n_jobs=2, backend="loky")(delayed(fitted)(k) for k in range(2))
        else:
            with multiprocessing.get_context(method).Pool(2) as pool:
                answers, models = pool.map(digest, range(5)), pool.map(fitted, range(2))
                for k in (0, 1):
                    try:
                        pool.apply(failing, (k,))
                    except ValueError as error:
                        assert ("NaN" if k else "separable") in str(error)
                    else:
                        raise AssertionError("no error came across")
        assert answers == expected, method
        for k, model in enumerate(models):
            assert model.certificate == fitted(k).certificate
    print("right")
"""
)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forks_at_any_moment(tmp_path):
    assert run(["-c", FORKS], tmp_path).strip() == "right"


WAITING = """
import os, signal, threading, time, warnings
import numpy as np
import mdlearn
import mdlearn.numerics.blas_threads as guarding
from mdlearn.numerics.blas_threads import GUARD

warnings.simplefilter("ignore")
X = np.random.default_rng(0).standard_normal((30, 2))
inside, out = threading.Event(), []


def setting():
    # A thread that is setting the number of BLAS threads.
    with GUARD.lock:
        inside.set()
        time.sleep(0.3)
        out.append(time.perf_counter())


def fork():
    child = os.fork()
    if not child:
        signal.alarm(60)
        os._exit(0 if mdlearn.fit("svm", X, X[:, 0] > 0, n_threads=1).certificate.converged else 1)
    parted = time.perf_counter()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return parted


patience, guarding.FORK_PATIENCE = guarding.FORK_PATIENCE, 60.0
thread = threading.Thread(target=setting)
thread.start()
inside.wait()
parted = fork()
thread.join()
assert parted >= out[0], "the fork did not wait"
assert GUARD.lock.acquire(timeout=60), "the parent has its lock back"
guarding.FORK_PATIENCE = patience
began = time.perf_counter()
assert fork() - began >= patience, "a handler of a signal may fork in here"
GUARD.lock.release()
print("right")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_waits_for_threads_that_set_the_number_of_blas_threads(tmp_path):
    assert run(["-c", WAITING], tmp_path).strip() == "right"


GUARDED = """
import os, signal, threading, warnings
import numpy, threadpoolctl
from mdlearn.numerics.blas_threads import GUARD, blas_threads

warnings.simplefilter("ignore")


def blas():
    return {info["num_threads"] for info in threadpoolctl.threadpool_info() if info["user_api"] == "blas"}


threadpoolctl.threadpool_limits(3, user_api="blas")
begun, go = threading.Event(), threading.Event()


def other():
    with blas_threads(1):
        begun.set()
        go.wait(60)


thread = threading.Thread(target=other)
thread.start()
begun.wait(60)
with blas_threads(4):
    child = os.fork()
    if not child:
        signal.alarm(60)
        with blas_threads(2):
            right = blas() == {2}
        right = right and blas() == {4}
    else:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if not child:
    os._exit(0 if right and blas() == {3} and not GUARD.scopes else 3)
go.set()
thread.join()
print(code, blas(), GUARD.scopes)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_requests_of_threads_that_a_child_does_not_have(tmp_path):
    """The child goes by the requests of its own thread, and leaves BLAS as the parent's first fit found it."""
    assert run(["-c", GUARDED], tmp_path).strip() == "0 {3} {}"


LOADING = """
import os, signal, threading, warnings
import mdlearn
from mdlearn.plugins import registry

warnings.simplefilter("ignore")
begun, go, made = threading.Event(), threading.Event(), registry.Registry


def slowly():
    begun.set()
    go.wait(60)
    return made()


registry.Registry = slowly
thread = threading.Thread(target=mdlearn.list_solvers)
thread.start()
begun.wait(60)
child = os.fork()
if not child:
    signal.alarm(60)
    registry.Registry = made
    os._exit(0 if "cd" in mdlearn.list_solvers() else 3)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
go.set()
thread.join()
print(code, "cd" in mdlearn.list_solvers())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_while_another_thread_loads_plugins(tmp_path):
    assert run(["-c", LOADING], tmp_path).strip() == "0 True"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver", "loky"])
def test_pools(method, tmp_path):
    if method in ("fork", "forkserver") and not hasattr(os, "fork"):
        pytest.skip("there is no fork here")
    if method == "loky":
        pytest.importorskip("joblib")
    (tmp_path / "pools.py").write_text(POOLS)
    assert run([str(tmp_path / "pools.py"), method], tmp_path).strip() == "right"


MODELS = [
    ("ldm", {}),
    ("ldm", {"kernel": "rbf"}),
    ("svm", {"kernel": "poly", "degree": 2, "multiclass": "ovo"}),
    ("uldm", {"kernel": "rbf"}),
    ("mdlm", {"ridge": 0.1}),
    ("l3svm", {"n_clusters": 2, "projection": "rbf"}),
    ("lsvm", {"reduced": 5, "kernel": "rbf"}),
]


@pytest.mark.parametrize("name, given", MODELS, ids=str)
def test_models_can_be_pickled(name, given):
    X, y = data(classes=3)
    model = mdlearn.fit(name, X, y, **given)
    for protocol in (2, pickle.HIGHEST_PROTOCOL):
        other = pickle.loads(pickle.dumps(model, protocol))
        assert other.decision_function(X).tobytes() == model.decision_function(X).tobytes()
        assert other.certificate == model.certificate and other.params.keys() == model.params.keys()
        again = [mdlearn.fit(name, X, y, warm_start=one, **given) for one in (model, other)]
        assert bits(again[0]) == bits(again[1])


def test_errors_and_warnings_can_be_pickled():
    for wrong in ({"C": -1.0}, {"solver": "x"}, {"multiclass": 3}, {"sample_weight": [1.0]}, {"gamma": 1.0}):
        with pytest.raises((ValueError, TypeError)) as caught:
            mdlearn.fit("ldm", *data(), **wrong)
        other = pickle.loads(pickle.dumps(caught.value))
        assert type(other) is type(caught.value) and str(other) == str(caught.value)
    for kind in (InsufficientMemory, mdlearn.ConvergenceWarning):
        other = pickle.loads(pickle.dumps(kind("one sentence")))
        assert type(other) is kind and str(other) == "one sentence"


def test_states_of_a_callback_can_be_kept_and_sent():
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        model = mdlearn.fit("ldm", *data(), solver="cd", callback=seen.append)
    assert pickle.loads(pickle.dumps(seen)) == seen and len(seen) == model.n_iter
    assert np.isfinite([state.elapsed for state in seen]).all()
