"""After Ctrl-C and time limits: no threads, no limits of BLAS, no false certificates, and the same bits as before."""

from __future__ import annotations

import os
import signal
import sys
import tempfile

import numpy as np
import pytest
from judging import quiet_fit
from threading_cases import at_work, blas, interrupted

import mdlearn
from mdlearn.numerics.blas_threads import blas_threads

RNG = np.random.default_rng(0)


def state():
    """What a fit must leave as it found it."""
    return at_work(), blas(), signal.getsignal(signal.SIGINT), os.listdir(tempfile.gettempdir())


X, Y = RNG.standard_normal((2500, 12)), RNG.integers(0, 4, 2500)
LONG = {"kernel": "rbf", "gamma": 0.02, "C": 1e5, "tol": 1e-13, "time_limit": 60.0}
FITS = {
    "threads": ("ldm", {**LONG, "n_threads": 2}),
    "pairs in threads": ("ldm", {**LONG, "n_threads": 2, "multiclass": "ovo"}),
    "one thread": ("svm", {**LONG, "n_threads": 1}),
    "interior": ("ldm", {**LONG, "n_threads": 3, "solver": "interior"}),
}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="sends signals to a thread")
@pytest.mark.parametrize("name", FITS)
def test_nothing_is_left_behind(name, monkeypatch, tmp_path, rng):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where no other process writes
    objective, given = FITS[name]

    def bits():
        model = mdlearn.fit("ldm", X[:200], Y[:200], kernel="rbf", n_threads=2)
        return model.dual_coef_.tobytes() + model.intercept_.tobytes()

    known = bits()
    before = state()
    for moment in rng.uniform(0.0, 0.6, 4):
        assert interrupted(lambda: quiet_fit(objective, X, Y, **given), moment) < 30.0  # a guard against hanging alone
        assert state() == before
    assert bits() == known


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="sends signals to a thread")
# Ctrl-C between `open` and the first name for the file: its last reference closes it, and Python says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_files_and_predictions(tmp_path, rng):
    """An interrupted save leaves the older file as it was, and no draft."""
    rows = rng.standard_normal((200_000, 8))
    model = quiet_fit("svm", rows, np.arange(200_000) % 2, tol=1.0, max_iter=1)
    path = tmp_path / "model.npz"
    model.save(path)
    known = path.read_bytes()

    def forever(work):
        def again():
            while True:
                work()

        return again

    for work in (lambda: model.save(path), lambda: mdlearn.load(path), lambda: model.predict(rows)):
        for moment in rng.uniform(0.0, 0.1, 3):
            interrupted(forever(work), moment)
            assert os.listdir(tmp_path) == ["model.npz"] and path.read_bytes() == known


def test_the_guard_of_blas_is_left_at_every_call():
    """Ctrl-C at the n-th function call of leaving: the limits are as found once the error has been dealt with."""
    found = blas()
    reached = 0
    for n in range(12):
        calls = []

        def profile(frame, event, _, calls=calls, n=n):
            if event == "call":
                calls.append(frame.f_code.co_name)
                if len(calls) == n + 1:
                    raise KeyboardInterrupt

        try:
            with blas_threads(1):
                assert set(blas()) == {1}
                sys.setprofile(profile)
        except KeyboardInterrupt:
            reached += 1
        finally:
            sys.setprofile(None)
        assert blas() == found, f"interrupted at {calls}"
    assert reached >= 3


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "precomputed"])
@pytest.mark.parametrize("objective", ["svm", "ldm", "lssvm", "lsldm", "lsvm", "uldm"])
def test_a_bound_before_any_kernel_value(objective, kernel, bias):
    """A fit that ends at once has a finite bound, and it is one."""
    rng = np.random.default_rng(2)
    rows, weight = rng.standard_normal((40, 3)), rng.integers(0, 3, 40) + 0.5
    y = rows[:, 0] + 0.5 * rng.standard_normal(40) > 0.2
    A = rows @ rows.T if kernel == "precomputed" else rows
    given = {"kernel": kernel, "bias": bias, "sample_weight": weight}
    early = quiet_fit(objective, A, y, time_limit=0.0, **given).certificate
    whole = mdlearn.fit(objective, A, y, **given).certificate
    slack = 1e-9 * abs(whole.objective)
    assert -np.inf < early.lower_bound <= whole.objective + slack
    assert early.objective >= whole.lower_bound - slack and not early.converged


def test_no_bound_where_nothing_is_known_of_the_kernel(rng):
    rows, y = rng.standard_normal((30, 2)), np.arange(30) % 2
    given = {"kernel": lambda A, B: np.exp(-np.square(A[:, None] - B).sum(axis=-1)), "lambda2": 1.0}
    early = quiet_fit("ldm", rows, y, time_limit=0.0, **given).certificate
    assert early.kind == "none" and early.lower_bound == -np.inf
