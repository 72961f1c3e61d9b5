"""Decomposition: optima beside engines with the whole matrix, conditions outside the solver, memory, starts, ends."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from decomposition_cases import counted_rounds, data, make_small, slow_rounds
from pairwise import pairs_first

import mdlearn
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.rows.rows import DenseRows
from mdlearn.solvers.decomposition import rounds

LOSSES = {"hinge": "svm", "squared": "lsvm"}


@pytest.fixture
def small(monkeypatch):
    """Limits low enough that some hundred rows go through parts and working sets."""
    make_small(monkeypatch)


@pytest.mark.parametrize(*pairs_first(loss=[*LOSSES], C=[0.02, 1.0, 100.0], bias=["free", "regularized", "none"]))
def test_the_optimum(small, loss, C, bias):
    X, y = data(m=400)
    given = {"C": C, "bias": bias, "kernel": "rbf", "gamma": 0.3}
    exact = mdlearn.fit(LOSSES[loss], X, y, solver="interior", tol=1e-9, **given)
    for tol in (1e-2, 1e-7):
        model = mdlearn.fit(LOSSES[loss], X, y, solver="decomposition", tol=tol, **given)
        told = model.certificate
        assert told.converged and told.gap <= tol
        assert told.lower_bound <= exact.certificate.objective * (1 + 1e-12)
        assert told.objective == pytest.approx(exact.certificate.objective, rel=1.1 * tol)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix, lambda X: X.astype(np.float32), np.asfortranarray])
@pytest.mark.parametrize("kernel", [{"kernel": "rbf", "gamma": 0.4}, {"kernel": "poly", "gamma": 0.2, "coef0": 1.0}])
def test_the_certificate_is_that_of_the_whole_matrix(small, kernel, storage):
    """Objective and bound from dual coefficients and the kernel matrix, outside the library."""
    X, y = data(m=500)
    counts = np.random.default_rng(3).integers(1, 4, 500).astype(float)
    rows = storage(X)
    model = mdlearn.fit("svm", rows, y, sample_weight=counts, C=2.0, solver="decomposition", tol=1e-5, **kernel)
    assert model.certificate.converged
    X = np.asarray(rows.todense() if sp.issparse(rows) else rows, dtype=float)
    inner = X @ X.T
    square = np.diagonal(inner)
    if kernel["kernel"] == "rbf":
        G = np.exp(-kernel["gamma"] * (square[:, None] + square - 2.0 * inner))
    else:
        G = (kernel["gamma"] * inner + 1.0) ** 3
    alpha = model.dual_coef_[0].astype(float)
    b = float(model.intercept_[0])
    z = y * (G @ alpha + b)
    value = 0.5 * alpha @ G @ alpha + 0.5 * b * b + 2.0 * counts @ np.maximum(0.0, 1.0 - z)
    beta = y * alpha
    assert beta.min() >= -1e-12 and (beta <= 2.0 * counts * (1 + 1e-6)).all()
    bound = beta.sum() - 0.5 * alpha @ G @ alpha - 0.5 * alpha.sum() ** 2
    rel = 1e-9 if X.dtype == np.float64 and not (sp.issparse(rows) or rows.dtype == np.float32) else 1e-5
    assert value == pytest.approx(model.certificate.objective, rel=rel)
    assert value - bound <= 1.2e-5 * value


def test_classes_share_the_rows(small):
    X, y = data()
    y = y + (X[:, 2] > 2.5)
    model = mdlearn.fit("svm", X, y, C=1.0, kernel="rbf", solver="decomposition", tol=1e-5)
    exact = mdlearn.fit("svm", X, y, C=1.0, kernel="rbf", solver="cd", tol=1e-8)
    assert model.certificate.converged
    assert model.certificate.objective == pytest.approx(exact.certificate.objective, rel=1e-5)
    assert np.mean(model.predict(X) == exact.predict(X)) > 0.99


def test_the_same_seed_gives_the_same_bits(small):
    X, y = data()
    fits = [mdlearn.fit("svm", X, y, kernel="rbf", solver="decomposition", tol=1e-4, random_state=s) for s in (1, 1, 2)]
    assert np.array_equal(fits[0].dual_coef_, fits[1].dual_coef_)
    assert not np.array_equal(fits[0].dual_coef_, fits[2].dual_coef_)


def test_a_start_is_where_it_begins(small, monkeypatch):
    X, y = data()
    first = mdlearn.fit("svm", X, y, C=1.0, kernel="rbf", solver="decomposition", tol=1e-6)
    sizes = counted_rounds(monkeypatch)
    cold = mdlearn.fit("svm", X, y, C=1.2, kernel="rbf", solver="decomposition", tol=1e-6)
    n_cold = len(sizes)
    sizes.clear()
    warm = mdlearn.fit("svm", X, y, C=1.2, kernel="rbf", solver="decomposition", tol=1e-6, warm_start=first)
    assert set(sizes) == {700} and len(sizes) < n_cold
    assert warm.certificate.objective == pytest.approx(cold.certificate.objective, rel=2e-6)


@pytest.mark.parametrize(
    "name, given",
    [
        ("svm", {"kernel": "linear"}),
        ("svm", {"kernel": lambda A, B: A @ B.T}),
        ("svm", {"kernel": "rbf", "C": np.inf}),
    ],
)
def test_what_it_refuses(name, given):
    X, y = data(m=60)
    with pytest.raises(ValueError, match="decomposition"):
        mdlearn.fit(name, X, y, solver="decomposition", **given)


@pytest.mark.slow
def test_many_rows_need_no_matrix(monkeypatch):
    """8,200 rows: their matrix takes 538 MB."""
    X, y = data(m=8200, d=3)
    mdlearn.fit("svm", X[:500], y[:500], kernel="rbf")
    tracemalloc.start()
    model = mdlearn.fit("svm", X, y, C=1.0, kernel="rbf", tol=1e-3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.solver == "decomposition" and model.certificate.converged
    assert peak < 250e6
    assert mdlearn.fit("svm", X[:4000], y[:4000], kernel="rbf", tol=1e-2).solver == "cd"


def test_auto_takes_it_for_one_gentle_squared_hinge():
    """Points of a path share the matrix, few rows have a small one, and steep losses need its digits."""
    X, y = data(m=600)
    assert mdlearn.fit("lsvm", X, y, kernel="rbf").solver == "decomposition"
    assert mdlearn.fit("lsvm", X[:400], y[:400], kernel="rbf").solver == "newton"
    assert mdlearn.fit("lsvm", X, y, C=1e5, kernel="rbf").solver == "newton"
    path = mdlearn.fit_path("lsvm", X, y, {"C": [0.5, 1.0, 2.0]}, kernel="rbf")
    assert {model.solver for model in path} == {"newton"}


def test_a_time_limit_ends_it_with_what_it_has(small, monkeypatch):
    X, y = data(m=3000)
    with monkeypatch.context() as slow:
        slow_rounds(slow)
        with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit"):
            model = mdlearn.fit("svm", X, y, C=100.0, kernel="rbf", solver="decomposition", tol=1e-12, time_limit=0.2)
    told = model.certificate
    assert told.lower_bound <= told.objective <= 3000 * 100.0
    with pytest.warns(mdlearn.ConvergenceWarning, match="max_iter"):
        model = mdlearn.fit("svm", X, y, kernel="rbf", solver="decomposition", tol=1e-10, max_iter=1)
    assert model.certificate.gap < 1.0


def test_a_time_limit_leaves_time_for_the_certificate(small, monkeypatch):
    X, y = data(m=3000)
    given = {"C": 10.0, "kernel": "rbf", "solver": "decomposition", "tol": 1e-8, "time_limit": 1000.0}
    sizes = counted_rounds(monkeypatch)
    assert mdlearn.fit("svm", X, y, **given).certificate.converged
    rounds, sizes[:] = sizes.count(3000), []
    monkeypatch.setattr(KernelFeatures, "_seconds_of_value", 1.0)
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit"):
        model = mdlearn.fit("svm", X, y, **given)
    assert sizes.count(3000) < rounds and model.certificate.gap < 1.0


@pytest.mark.parametrize("shape", [(700, 3), (700, 30)])
def test_seconds_of_decision_values_are_told_by_their_number(shape):
    rows = DenseRows(np.random.default_rng(0).standard_normal(shape))
    features = KernelFeatures(rows, Kernel("rbf", {"gamma": 0.1}))
    some, half, whole = (features.seconds_of_decision(n) for n in (100, 350, 700))
    assert 0 < some < half and half == pytest.approx(3.5 * some) and whole == pytest.approx(half)


def test_a_callback_ends_it(small):
    X, y = data()
    with pytest.warns(mdlearn.ConvergenceWarning):
        model = mdlearn.fit(
            "svm", X, y, kernel="rbf", solver="decomposition", tol=1e-13, callback=lambda state: state.gap < 0.5
        )
    assert model.certificate.gap < 0.5


def test_estimates_are_none_above_zero(small, monkeypatch):
    """A round knows no worse value than that of w = 0 with the best bias: rounds that creep up to it would not end."""
    seen, evaluate = [], rounds.DecompositionRounds.evaluate

    def noted(self):
        evaluate(self)
        seen.append((self.objective, self.column))

    monkeypatch.setattr(rounds.DecompositionRounds, "evaluate", noted)
    X, y = data(noise=4.0)
    y[300:600] = 1
    mdlearn.fit("svm", X, y, C=10.0, kernel="rbf", gamma=2.0, bias="free", solver="decomposition", tol=1e-3)
    for objective, column in seen:
        weights = 10.0 * column.counts
        least = min(weights @ np.maximum(0.0, 1.0 - b * column.y) for b in (-1.0, 1.0))
        assert objective <= least * (1 + 1e-12)


@pytest.mark.parametrize("places", [(0, 1), (10, 30), (50, 51), (108, 109)])
def test_working_sets_have_rows_of_a_rare_class(small, places):
    """At multipliers of 0 all violations are alike; a free bias moves pairs of rows of both classes alone."""
    X, _ = data(m=110)
    y = np.where(np.isin(np.arange(110), places), 1, -1)
    given = {"kernel": "rbf", "gamma": 1.0, "bias": "free", "C": 40.0}
    exact = mdlearn.fit("svm", X, y, solver="interior", tol=1e-9, **given).certificate
    told = mdlearn.fit("svm", X, y, solver="decomposition", tol=1e-6, **given).certificate
    assert told.converged and told.objective == pytest.approx(exact.objective, rel=1e-4)
