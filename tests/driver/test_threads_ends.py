"""n_threads and early ends: limits, callbacks, errors, Ctrl-C."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from threading_cases import (
    FOUND,
    Watched,
    at_work,
    blas,
    data,
    left_as_found,
    run,
    slow,
)

import mdlearn

pytestmark = [pytest.mark.threads, pytest.mark.usefixtures(left_as_found.__name__)]


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


@pytest.mark.slow
def test_callback_stops_all_columns():
    X, y, settings = slow()
    seen = []

    def stop(state):
        seen.append(state)
        return len(seen) == 5

    with pytest.warns(mdlearn.ConvergenceWarning, match="callback"):
        model = mdlearn.fit("ldm", X, y, n_threads=2, callback=stop, **settings)
    told = sorted(seen, key=lambda state: state.problem)
    assert [(s.problem, s.iteration) for s in told] == [(s.problem, s.iteration) for s in model.history] and len(
        told
    ) == 5
    parts = model.certificate.parts
    for k, (state, entry) in enumerate(zip(told, model.history, strict=True)):
        if k + 1 < len(told) and told[k + 1].problem == state.problem:
            assert entry.objective == pytest.approx(state.objective)
        else:  # a column in another thread may get further before it learns of the end; its certificate counts
            assert entry.objective == parts[state.problem].objective <= state.objective * (1 + 1e-6)
    assert len(model.certificate.parts) == 4 and np.isfinite(model.certificate.objective)


@pytest.mark.slow
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
    with pytest.raises(LookupError, match="spoilt"):
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
from mdlearn.numerics.blas_threads import GUARD

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
        sent.append(time.process_time())
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
        answer["delays"].append(time.process_time() - sent[0])
    # Ctrl-C can come while a thread is being born, which then ends by itself: soon, but on a busy machine.
    for _ in range(40):
        time.sleep(0.05)
        left = [*GUARD.scopes, *(thread.name for thread in threading.enumerate() if thread.name == "mdlearn")]
        if not left:
            break
    answer["left"] += left
answer["same"] = state() == before and found == threadpoolctl.threadpool_info()
print(json.dumps(answer))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to a process of its own")
@pytest.mark.parametrize("case", ["cd", "interior", "asgd csr"])
def test_ctrl_c(case, tmp_path):
    """At any moment: KeyboardInterrupt arrives soon (in processor time of all threads), and nothing is left over."""
    answer = json.loads(run(["-c", SCRIPT, case, "6"], tmp_path).splitlines()[-1])
    assert len(answer["delays"]) == 7 and max(answer["delays"]) < 5.0
    assert not answer["left"] and answer["same"]
