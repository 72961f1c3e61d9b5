"""n_threads=None: one thread for small work, as many as BLAS is set to for pieces of large work, by shapes alone."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
import scipy.sparse
import threadpoolctl
from threading_cases import FOUND, blas, data, left_as_found, many_cores, threads_here

import mdlearn
from mdlearn.numerics import blas_threads as guard
from mdlearn.stages import Call, checked_limits

pytestmark = [pytest.mark.threads, pytest.mark.usefixtures(left_as_found.__name__)]

X, Y = data(120, 4, 3)


def estimator(_):
    machines = pytest.importorskip("mdlearn.sklearn")
    machines.LDMClassifier(kernel=lambda A, B: (seen.append(threads_here()), A @ B.T)[1]).fit(X, Y)


seen: list[tuple[int, ...]] = []
CALLS = {
    "fit": lambda told: mdlearn.fit("ldm", X, Y, callback=told),
    "fit, csr": lambda told: mdlearn.fit("svm", scipy.sparse.csr_matrix(X), Y, callback=told),
    "fit, pairs": lambda told: mdlearn.fit("uldm", X, Y, callback=told),
    "fit, joint": lambda told: mdlearn.fit("ww", X, Y, callback=told),
    "fit, rbf": lambda told: mdlearn.fit("ldm", X, Y, kernel="rbf", callback=told),
    "fit_path": lambda told: mdlearn.fit_path("ldm", X, Y, {"C": [0.1, 1.0]}, callback=told),
    "cross_validate": lambda told: mdlearn.cross_validate("ldm", X, Y, cv=3, callback=told),
    "select": lambda told: mdlearn.select("ldm", X, Y, {"C": [0.1, 1.0]}, cv=3, callback=told),
    "row blocks": lambda told: mdlearn.fit("ldm", [(X[:60], Y[:60]), (X[60:], Y[60:])], None, callback=told),
    "row blocks, asgd": lambda told: mdlearn.fit("svm", [(X, Y)], None, solver="asgd", callback=told),
    "estimator": estimator,
}


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.usefixtures(many_cores.__name__)
def test_threads_by_the_size_of_the_work(call, large, monkeypatch):
    if large:
        monkeypatch.setattr(guard, "SINGLE_THREAD_WORK", 1.0)
    seen.clear()
    CALLS[call](lambda state: seen.append(threads_here()))
    assert set(seen) == {(1, FOUND if large else 1)}


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("kernel", ["linear", "callable"])
def test_predictions(kernel, large, monkeypatch):
    seen.clear()

    def values(A, B):
        seen.extend(blas())
        return A @ B.T

    model = mdlearn.fit("svm", X, Y, kernel=values if kernel == "callable" else "linear")
    path = mdlearn.fit_path("svm", X, Y, {"C": [0.1, 1.0]}, kernel=values if kernel == "callable" else "linear")
    if large:
        monkeypatch.setattr(guard, "SINGLE_THREAD_WORK", 1.0)
    seen.clear()
    if kernel == "linear":
        rows = type(model._check(X))
        dot = rows.dot
        monkeypatch.setattr(rows, "dot", lambda *given: (seen.extend(blas()), dot(*given))[1])
    for one in (model, path):
        one.decision_function(X)
    assert set(seen) == {FOUND if large else 1}


@pytest.mark.parametrize(
    "shape, settings, large",
    [
        ((1000, 1500), {}, False),
        ((2000, 1500), {}, True),
        ((1500, 2000), {}, True),
        ((200_000, 20), {}, False),
        ((100, 10_000), {}, False),
        ((1500, 5), {"kernel": "rbf"}, False),
        ((1600, 5), {"kernel": "rbf"}, True),
        ((2100, 5), {"kernel": "rbf", "multiclass": "ovo"}, False),  # 700 rows of every class
        ((1500, 900), {}, False),
        ((1500, 900), {"objective": "ww", "multiclass": "joint"}, False),  # products are those of the rows themselves
        ((1500, 2000), {"objective": "ww", "multiclass": "joint"}, True),
    ],
)
@pytest.mark.usefixtures(many_cores.__name__)
def test_shapes_decide(shape, settings, large):
    settings = {"objective": "ldm", "kernel": "linear", "multiclass": "auto", **settings}
    limits = checked_limits(time.perf_counter(), 1e-6, None, None, None, 0, None)
    objective, kernel, multiclass = (settings[name] for name in ("objective", "kernel", "multiclass"))
    call = Call.of(objective, kernel, "auto", None, None, multiclass, limits, 0)
    rows = np.broadcast_to(np.arange(shape[1], dtype=float), shape)
    assert call.read(rows, np.arange(shape[0]) % 3, None, None).n_threads == (FOUND if large else 1)


@pytest.mark.parametrize("load", [0.0, 50.0])
@pytest.mark.parametrize("cores", [1, 64])
def test_the_load_decides_nothing(load, cores, monkeypatch):
    told = {"getloadavg": (load,) * 3, "cpu_count": cores, "sched_getaffinity": set(range(cores))}
    for name, value in told.items():
        monkeypatch.setattr(os, name, lambda *_, value=value: value, raising=False)
    assert [guard.threads_for_product(m, 1500) for m in (1000, 2000)] == [1, min(cores, FOUND)]


def test_libraries_are_listed_once(monkeypatch):
    """Not in every fit: that takes as long as a small one does."""
    listed, make = [], threadpoolctl.ThreadpoolController.__init__
    mdlearn.fit("svm", X, Y).predict(X)  # whatever is imported late is there now
    monkeypatch.setattr(threadpoolctl.ThreadpoolController, "__init__", lambda self: (listed.append(1), make(self))[1])
    for _ in range(5):
        mdlearn.fit("svm", X, Y).predict(X)
    assert len(listed) <= 1
    monkeypatch.setattr(guard.GUARD, "n_modules", 0)
    mdlearn.fit("svm", X, Y)
    assert 1 <= len(listed) <= 2


def test_the_default_has_the_bits_of_one_thread():
    for settings in ({}, {"kernel": "rbf"}, {"multiclass": "ovo"}):
        default, one = (mdlearn.fit("ldm", X, Y, n_threads=n, **settings) for n in (None, 1))
        assert default.dual_coef_.tobytes() == one.dual_coef_.tobytes()
