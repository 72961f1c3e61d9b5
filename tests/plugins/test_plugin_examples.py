"""The examples of docs/plugins.md: each runs as it stands, and makes what its formula says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from dataclasses import replace

import numpy as np
import pytest
from documents import EXAMPLES
from scipy.optimize import minimize
from smooth_reference import overlapping

import mdlearn
from mdlearn.solvers.stochastic.solver import SGD
from mdlearn.testing import CHECKS
from mdlearn.testing.reference import reference_form, reference_task

LOSSES = {
    "declared": ("Band", lambda z: np.maximum(0, 0.8 - z) ** 2 + np.maximum(0, z - 1.2) ** 2),
    "given": ("Spring", lambda z: np.sqrt(1 + (z - 1) ** 2) - 1),
    "native": ("SmoothHinge", lambda z: np.where(z < 0.5, 0.75 - z, np.maximum(0, 1 - z) ** 2)),
}


@pytest.fixture
def example(tmp_path, monkeypatch):
    """From the name of an example to what it defines."""

    def run(name):
        monkeypatch.chdir(tmp_path)
        if name == "native":
            source = EXAMPLES["smooth.c"]
            (tmp_path / "smooth.c").write_text(source)
            command = re.match(r"/\* (cc .*) \*/", source).group(1).split()
            compiler = shutil.which("cc") or shutil.which((sysconfig.get_config_var("CC") or "gcc").split()[0])
            if compiler is None:
                pytest.skip("no C compiler")
            subprocess.run([compiler, *command[1:]], check=True)
        space = {}
        exec(compile(EXAMPLES[name], name, "exec"), space)
        return space

    return run


def test_all_are_here():
    assert set(EXAMPLES) == {
        *LOSSES,
        "smooth.c",
        "regression",
        "task",
        "labels",  # tests/objectives/test_label_tasks.py
        "costs",
        "penalties",
        "composite",
        "inner",  # tests/plugins/test_inner_problems.py
        "features",
        "solver",
        "blocks",
        "kernel",
        "strings",  # tests/data/test_object_rows.py
        "command",  # test_plugin_commands.py
        "estimator",
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_ways_to_bring_a_loss(name, example):
    cls, loss = LOSSES[name]
    objective = example(name)[cls]
    for check in CHECKS:
        check(objective)
    X, y = overlapping(60, 3)
    model = mdlearn.fit(objective, X, y, C=0.7, bias="none", tol=1e-10)
    signs = np.where(y == model.classes_[1], 1.0, -1.0)

    def value(w):
        return 0.5 * w @ w + 0.7 * loss(signs * (X @ w)).sum()

    best = minimize(value, np.zeros(3), method="BFGS", options={"gtol": 1e-8}).fun
    assert model.certificate.objective == pytest.approx(value(model.coef_[0]), rel=1e-12)
    assert model.certificate.objective == pytest.approx(best, rel=1e-9)
    form = reference_form(reference_task(objective), X, y, "none", "linear")
    assert (SGD().refusal(form) is None) == (name != "given")


@pytest.mark.slow
def test_numbers_instead_of_classes(example):
    objective = example("regression")["TubeRegression"]
    for check in CHECKS:
        check(objective)
    rng = np.random.default_rng(4)
    X = rng.standard_normal((60, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.standard_normal(60)
    settings = {"C": 0.5, "epsilon": 0.2, "lambda1": 4.0}
    model = mdlearn.fit(objective, X, y, bias="none", tol=1e-12, **settings)

    def value(w):
        z = X @ w - y
        return 0.5 * w @ w + 4.0 * z.var() + 0.5 * np.maximum(0, np.abs(z) - 0.2).sum()

    assert model.certificate.objective == pytest.approx(value(model.coef_[0]), rel=1e-12)
    start = minimize(value, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000})
    assert model.certificate.objective <= start.fun
    assert start.fun == pytest.approx(model.certificate.objective, rel=1e-6)
    assert model.score(X, y) > 0.9


def test_an_estimator(example):
    pytest.importorskip("sklearn", reason="estimators need scikit-learn")
    space = example("estimator")
    X, y = space["X"], space["y"]
    model = mdlearn.fit(space["Wide"], X, y, C=0.5, width=2.0, tol=1e-10)
    estimator = space["WideClassifier"](C=0.5).set_params(width=2.0).fit(X, y)
    assert np.array_equal(estimator.decision_function(X), model.decision_function(X))


@pytest.mark.slow
def test_tasks_of_your_own(example):
    objective = example("task")["Novelty"]
    for check in CHECKS:
        check(objective)
    X = np.random.default_rng(4).standard_normal((60, 3)) + 1.0
    model = mdlearn.fit(objective, X, None, C=0.7, bias="none", tol=1e-12)

    def value(w):
        return 0.5 * w @ w + 0.7 * (np.maximum(0, 1 - X @ w) ** 2).sum()

    best = minimize(value, np.zeros(3), method="BFGS", options={"gtol": 1e-8}).fun
    assert model.certificate.objective == pytest.approx(value(model.coef_[0]), rel=1e-12)
    assert model.certificate.objective == pytest.approx(best, rel=1e-9)
    assert model.predict(np.array([[5.0, 5.0, 5.0], [-5.0, -5.0, -5.0]])).tolist() == [False, True]
    assert 0.0 < model.score(X) < 1.0


@pytest.mark.slow
def test_costs_of_single_rows(example, tmp_path):
    objective = example("costs")["CostSVM"]
    for check in CHECKS:
        check(objective)
    X, y = overlapping(60, 3)
    rng = np.random.default_rng(2)
    costs, shifts = rng.uniform(0, 3, 60), rng.normal(0, 0.4, 60)
    model = mdlearn.fit(objective, X, y, C=0.7, bias="none", costs=costs, shifts=shifts, tol=1e-12)
    signs = np.where(y == model.classes_[1], 1.0, -1.0)

    def value(w):
        return 0.5 * w @ w + 0.7 * costs @ np.maximum(0, 1 + shifts - signs * (X @ w))

    assert model.certificate.objective == pytest.approx(value(model.coef_[0]), rel=1e-12)
    start = minimize(value, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000})
    assert start.fun == pytest.approx(model.certificate.objective, rel=1e-6)
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(mdlearn.load(tmp_path / "model.npz").params["costs"], costs)


@pytest.mark.slow
def test_penalties_and_constraints(example):
    objective = example("penalties")["SmoothSVM"]
    for check in CHECKS:
        check(objective)
    X, y = overlapping(60, 4)
    model = mdlearn.fit(objective, X, y, C=0.7, lam=2.0, bias="none", tol=1e-10)
    signs = np.where(y == model.classes_[1], 1.0, -1.0)

    def value(v):
        w = v * v  # nonnegative
        return 0.5 * w @ w + 2.0 * np.abs(np.diff(w)).sum() + 0.7 * np.maximum(0, 1 - signs * (X @ w)).sum()

    assert (model.coef_ >= 0).all()
    assert model.certificate.objective == pytest.approx(value(np.sqrt(model.coef_[0])), rel=1e-12)
    start = np.sqrt(model.coef_[0]) + 0.05
    for _ in range(3):
        start = minimize(value, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).x
    assert value(start) == pytest.approx(model.certificate.objective, rel=1e-5)
    assert value(start) >= model.certificate.lower_bound


@pytest.mark.parametrize("k", [2, 3])
def test_a_composite(k, example):
    rng = np.random.default_rng(0)
    X, weight = rng.standard_normal((60, 5)), rng.integers(0, 4, 60)
    y = np.argmax(X[:, :k] + rng.standard_normal((60, k)), axis=1)
    objective = example("composite")["ElasticNet"]
    for check in CHECKS if k == 2 else ():
        check(objective)
    model = mdlearn.fit(objective, X, y, lam=0.05, ridge=0.02, sample_weight=weight, tol=1e-12)
    targets = np.eye(3)[y] if k == 3 else 2.0 * y[:, None] - 1.0
    W = model.coef_.T
    G = X.T @ (weight[:, None] * (X @ W - targets)) / weight.sum() + 0.02 * W
    assert model.solver == "apg" and model.certificate.converged and model.certificate.kind == "duality gap"
    assert (W == 0).any() and (W != 0).any()
    np.testing.assert_allclose(G[W != 0], -0.05 * np.sign(W[W != 0]), atol=1e-5)
    assert (np.abs(G[W == 0]) <= 0.05).all()
    square = 0.5 * (weight[:, None] * (X @ W - targets) ** 2).sum() / weight.sum()
    value = square + 0.01 * (W**2).sum() + 0.05 * np.abs(W).sum()
    assert model.certificate.objective == pytest.approx(value, rel=1e-12)
    twice = mdlearn.fit(objective, np.repeat(X, weight, axis=0), np.repeat(y, weight), lam=0.05, ridge=0.02, tol=1e-12)
    np.testing.assert_allclose(twice.coef_, model.coef_, atol=1e-6)
    assert np.array_equal(model.predict(X), (X @ W).argmax(axis=1) if k == 3 else (X @ W[:, 0] >= 0).astype(int))


def tilted(look):
    return replace(look, gradient=look.gradient + 1e-3)


FAULTS = {
    "it gives a value at 0 that is not there": r"^elastic_net: Wrong.at_zero is 9.0, but",
    "it is not convex": "convex is True, but half-way between two points h is .*, above .*, the mean of its values",
    "it declares no convexity": "declares neither convex = True nor a residual",
    "it falls below 0": "nonnegative is True, but at",
    "its least is too high": r"least returns 0.0, but <G, V> \+ ridge \+ penalty is -.*; it is too high",
    "its gradient is wrong": r"entry \(0, 0\) of the gradient is .*, the value changes by",
    "one entry of its gradient is 0": r"entry \(2, 0\) of the gradient is -?0.0, the value changes by",
    "its sizes are those of its gradient": r"sizes\[\d\] is .*, but another order of the rows changes row",
    "it writes neither": r"neither terms\(\) nor form\(\) is written",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_with_a_composite_is_told(fault, example):
    space = example("composite")
    Squares, ElasticNet = space["Squares"], space["ElasticNet"]

    class Wrong(Squares):
        def __init__(self, *given):
            super().__init__(*given)
            if fault == "it gives a value at 0 that is not there":
                self.at_zero = 9.0

            self.convex = fault != "it declares no convexity"

        def at(self, W):
            look = super().at(W)
            if fault == "it is not convex":
                waves = 9.0 * (1.0 - np.cos(W))
                return replace(look, value=look.value + float(waves.sum()), gradient=look.gradient + 9.0 * np.sin(W))
            if fault == "it falls below 0":
                return replace(look, value=look.value - 9.0)
            if fault == "one entry of its gradient is 0":
                return replace(look, gradient=look.gradient * np.array([[1.0], [1.0], [0.0]]))
            if fault == "its sizes are those of its gradient":
                return replace(look, sizes=np.abs(look.gradient[:, 0]))
            return tilted(look) if fault == "its gradient is wrong" else look

        def least(self, G, sizes):
            return 0.0 if fault == "its least is too high" else super().least(G, sizes)

    space["Squares"] = Wrong
    if fault == "it writes neither":
        del ElasticNet.form
    with pytest.raises(AssertionError, match=FAULTS[fault]):
        for check in CHECKS:
            check(ElasticNet)
