"""Ctrl-C, time_limit, max_iter and callbacks: the fit stops, tells the truth, and leaves nothing broken behind."""

from __future__ import annotations

import functools
import itertools
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from judging import recomputed, true_optimum

import mdlearn

SCRIPT = """
import json, os, signal, sys, threading, time
import numpy as np
import mdlearn


def data(rng, m, d):
    y = np.where(rng.random(m) < 0.5, 1, -1)
    return rng.standard_normal((m, d)) + 0.1 * y[:, None], y


def bits():
    rows = np.random.default_rng(1).standard_normal((150, 4))
    labels = np.where(rows[:, 0] > 0.3 * rows[:, 1] ** 2, 1, 0)
    models = [mdlearn.fit("ldm", rows, labels, kernel=kernel) for kernel in ("linear", "rbf")]
    return [model.decision_function(rows).tobytes().hex() for model in models]


def problem(case):
    rng = np.random.default_rng(0)
    if case == "kernel":  # coordinate descent on a hopeless cost, interrupted while it sweeps
        hopeless = {"C": 1e7, "lambda1": 0.0, "lambda2": 0.0, "tol": 1e-13, "solver": "cd"}
        return *data(rng, 2500, 10), {"kernel": "rbf", "gamma": 0.02, **hopeless}
    if case == "gram":  # interrupted inside the Gram matrix or its factor, before the first report
        return *data(rng, 7000, 30), {"kernel": "rbf", "C": 1.0, "lambda1": 1.0}
    if case == "kernel-free":
        return *data(rng, 1500, 10), {"kernel": "rbf", "gamma": 0.02, "C": 1e4, "bias": "free", "tol": 1e-13}
    if case == "linear-cd":
        X, y = data(rng, 20000, 60)
        X *= 10.0 ** rng.uniform(-3, 3, 60)
        return X, y, {"C": 1e7, "lambda1": 0.0, "lambda2": 0.0, "tol": 1e-13, "solver": "cd"}
    if case == "linear-interior":
        return *data(rng, 30000, 200), {"C": 10.0, "tol": 1e-13, "solver": "interior"}
    X, _ = data(rng, 2500, 10)
    return X, rng.integers(0, 4, 2500), {"kernel": "rbf", "gamma": 0.02, "C": 1e5, "tol": 1e-13}


def interrupted(case, before):
    X, y, given = problem(case)
    started, sent = threading.Event(), []

    def interrupt():
        started.wait(60)
        time.sleep(0.3 if case == "gram" else 0.05)
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    if case == "gram":
        started.set()
    ended = False
    try:
        mdlearn.fit("ldm", X, y, callback=lambda state: started.set(), **given)
        ended = True
        time.sleep(60.0)  # the signal is not to end another case
    except KeyboardInterrupt:
        delay = time.process_time() - sent[0]
    return {"case": case, "arrived": not ended, "delay": delay, "same": bits() == before}


before = bits()
for case in sys.argv[1:]:
    print(json.dumps(interrupted(case, before)), flush=True)
"""

CASES = ["kernel", "gram", "kernel-free", "linear-cd", "linear-interior", "multiclass"]


@functools.cache
def answers():
    """Case -> what one process says of it, which is interrupted in one fit after the other."""
    root = str(Path(mdlearn.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, *CASES]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return {answer["case"]: answer for answer in map(json.loads, done.stdout.splitlines())}


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to a process of its own")
@pytest.mark.parametrize("case", CASES)
def test_ctrl_c(case):
    """KeyboardInterrupt arrives soon and later fits give the same bits.

    What counts is processor time, whatever else the machine does, and the limit here is far above the promise.
    """
    answer = answers()[case]
    assert answer["arrived"], "the fit ended before the signal: it is too short for this test"
    assert answer["delay"] < 5.0
    assert answer["same"], "a fit after the interrupt differs from one before it"


@functools.cache
def slow_problem(kind):
    """(X, y, settings, reference's answer) of something no engine finishes in its first two reports."""
    rng = np.random.default_rng(3)
    m = 300 if kind == "linear" else 100
    y = np.where(rng.random(m) < 0.5, 1, -1)
    X = rng.standard_normal((m, 6)) + 0.3 * y[:, None]
    settings = {"bias": "regularized", "C": 30.0, "lambda1": 0.5, "lambda2": 0.1}
    if kind != "linear":
        settings |= {"kernel": "rbf", "gamma": 0.02, "C": 1000.0}
    return X, y, settings, true_optimum(X, y, settings)


def honest(model, X, y, settings, answer, tol):
    """The certificate of an unfinished model, checked outside the library."""
    c = model.certificate
    held, rounding = recomputed(model, X, y, settings)
    slack = 1e-9 * abs(answer.value) + rounding
    assert abs(c.objective - held) <= slack
    assert c.lower_bound <= answer.value + slack
    assert held >= answer.value - slack
    if np.isfinite(c.lower_bound):
        scale = max(abs(c.objective), 0.01 * settings["C"] * len(y))
        assert c.gap == pytest.approx((c.objective - c.lower_bound) / scale, rel=1e-9)
    else:
        assert c.kind == "none" and c.gap == np.inf
    assert c.tol == tol and not c.converged and c.gap > tol
    assert model.predict(X).shape == (len(y),)
    assert np.isfinite(model.decision_function(X)).all()


PROBLEMS = [("linear", "cd"), ("linear", "interior"), ("rbf", "cd"), ("rbf", "auto")]


def stopped(X, y, settings, **limits):
    """A model from a fit that has to warn, and the warning's text."""
    with pytest.warns(mdlearn.ConvergenceWarning) as caught:
        model = mdlearn.fit("ldm", X, y, **settings, **limits)
    messages = [str(w.message) for w in caught if issubclass(w.category, mdlearn.ConvergenceWarning)]
    assert len(messages) == 1
    return model, messages[0]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "solver"), PROBLEMS)
def test_max_iter(kind, solver):
    X, y, settings, answer = slow_problem(kind)
    found = []
    for max_iter in (1, 2):
        model, message = stopped(X, y, settings, solver=solver, max_iter=max_iter, tol=1e-12)
        honest(model, X, y, settings, answer, 1e-12)
        assert model.n_iter <= max_iter and "max_iter" in message and "gap" in message
        found.append(model.certificate)
    # A gap is relative to an objective that may fall faster than the bound rises.
    assert found[1].objective <= found[0].objective and found[1].lower_bound >= found[0].lower_bound


@pytest.mark.parametrize(("kind", "solver"), PROBLEMS)
def test_a_tiny_time_limit_still_returns_a_model(kind, solver):
    X, y, settings, answer = slow_problem(kind)
    for limit in (1e-9, 0.0):
        model, message = stopped(X, y, settings, solver=solver, time_limit=limit, tol=1e-12)
        honest(model, X, y, settings, answer, 1e-12)
        assert "time_limit" in message and "gap" in message


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("more", [{}, {"bias": "free"}, {"C": np.inf}], ids=["defaults", "free", "hard margin"])
def test_a_tiny_time_limit_of_any_problem(more, kernel, classes):
    rng = np.random.default_rng(4)
    y = np.arange(90) % classes
    X = rng.uniform(-1, 1, (90, 3)) + 3.0 * np.eye(3)[y]  # separable, one against the rest too
    settings = {"kernel": kernel, **more}
    model, _ = stopped(X, y, settings, time_limit=1e-9, tol=1e-12)
    assert model.predict(X).shape == (90,) and model.intercept_.shape == ((1,) if classes == 2 else (3,))
    assert not model.certificate.converged
    assert not np.isnan(model.certificate.gap)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0.02, 0.1, 0.3])
def test_time_limit_of_a_long_fit(limit):
    rng = np.random.default_rng(5)
    y = np.where(rng.random(1200) < 0.5, 1, -1)
    X = rng.standard_normal((1200, 10)) + 0.1 * y[:, None]
    settings = {"kernel": "rbf", "gamma": 0.02, "C": 1e6, "bias": "none", "lambda1": 0.0, "lambda2": 0.0}
    model, message = stopped(X, y, settings, solver="cd", time_limit=limit, tol=1e-12)
    held, rounding = recomputed(model, X, y, settings)
    c = model.certificate
    assert abs(c.objective - held) <= 1e-9 * abs(held) + rounding
    assert c.lower_bound <= c.objective and "time_limit" in message


def test_no_warning_when_the_limits_are_wide_enough():
    X, y, settings, _ = slow_problem("linear")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = mdlearn.fit("ldm", X, y, time_limit=3600.0, max_iter=10**9, callback=lambda state: None, **settings)
    assert model.certificate.converged


# ---------------------------------------------------------------- callback and history


@pytest.mark.parametrize(("kind", "solver"), PROBLEMS)
def test_history_and_callback(kind, solver):
    X, y, settings, answer = slow_problem(kind)
    seen = []
    model = mdlearn.fit("ldm", X, y, solver=solver, tol=1e-9, callback=seen.append, **settings)
    assert len(seen) > 1 and len(model.history) >= len(seen)
    slack = 1e-9 * abs(answer.value)
    for records in (seen, model.history):
        assert all(a.elapsed <= b.elapsed for a, b in itertools.pairwise(records))
        assert all(a.iteration < b.iteration for a, b in itertools.pairwise(records))
        for state in records:
            assert state.problem == 0 and state.elapsed >= 0 and state.iteration >= 0
            assert state.objective >= answer.value - slack
            assert state.lower_bound <= answer.value + slack
            assert not np.isnan(state.gap) and state.gap >= 0
            if np.isfinite(state.lower_bound) and np.isfinite(state.objective):
                scale = max(abs(state.objective), 0.01 * settings["C"] * len(y))
                assert state.gap == pytest.approx((state.objective - state.lower_bound) / scale, rel=1e-9, abs=1e-15)
    assert model.history[-1].gap <= 1e-9
    assert model.certificate.gap <= 1e-9


@pytest.mark.parametrize("answer_of", [True, np.True_], ids=["True", "numpy"])
@pytest.mark.parametrize(("kind", "solver"), PROBLEMS)
def test_callback_stops_the_fit(kind, solver, answer_of):
    X, y, settings, answer = slow_problem(kind)
    seen = []

    def stop(state):
        seen.append(state)
        return answer_of if len(seen) == 2 else None

    model, message = stopped(X, y, settings, solver=solver, callback=stop, tol=1e-12)
    assert len(seen) == 2, "called again after it asked to stop"
    honest(model, X, y, settings, answer, 1e-12)
    assert "callback" in message and "gap" in message
    # Estimates know nothing of what rounding did to a kernel; the certificate does.
    assert model.certificate.gap <= seen[-1].gap * (1 + 1e-6), "the model is worse than what the callback was shown"


@pytest.mark.parametrize("falsy", [None, False, 0, np.False_])
def test_other_answers_do_not_stop_the_fit(falsy):
    X, y, settings, _ = slow_problem("linear")
    model = mdlearn.fit("ldm", X, y, callback=lambda state: falsy, **settings)
    assert model.certificate.converged


def test_callback_stops_all_classes():
    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((150, 4)), rng.integers(0, 3, 150)
    seen = []

    def stop(state):
        seen.append(state)
        return True

    model, _ = stopped(X, y, {"C": 10.0}, callback=stop, tol=1e-12)
    assert len(seen) == 1
    assert model.decision_function(X).shape == (150, 3) and len(model.certificate.parts) == 3
    assert np.isfinite(model.certificate.objective)


def test_problem_numbers_of_several_classes():
    rng = np.random.default_rng(7)
    X, y = rng.standard_normal((120, 4)), rng.integers(0, 3, 120)
    model = mdlearn.fit("ldm", X, y, tol=1e-9)
    assert sorted({state.problem for state in model.history}) == [0, 1, 2]
    assert all(a.elapsed <= b.elapsed for a, b in itertools.pairwise(model.history))


def test_a_callback_cannot_change_the_result():
    """Interfering with what it is shown is not a way into the engine."""
    X, y, settings, _ = slow_problem("rbf")

    def meddle(state):
        for name in ("objective", "gap", "iteration"):
            try:
                setattr(state, name, -1.0)
            except (AttributeError, TypeError):
                pass

    plain = mdlearn.fit("ldm", X, y, **settings)
    meddled = mdlearn.fit("ldm", X, y, callback=meddle, **settings)
    assert plain.dual_coef_.tobytes() == meddled.dual_coef_.tobytes()
    assert plain.certificate == meddled.certificate
