"""asgd and sgd: fits against the transcription and against optima, certificates, restarts."""

from __future__ import annotations

import itertools
import warnings
from typing import ClassVar

import data
import numpy as np
import pytest
from scipy import sparse
from sgd_cases import BAND, HINGE, KINDS, MIXED, SQUARED_HINGE, g, near, points, transcription, with_ones
from watching import watched

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.certificates.dual import feasible_dual
from mdlearn.forms.losses import HingeTerm, LogisticTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.objectives.base import Objective, Parameter, Terms
from mdlearn.plugins.registry import find
from mdlearn.solvers.stochastic import task as sgd_task
from mdlearn.solvers.stochastic.solver import DualBound


class Band(Objective):
    """Squared loss outside a band, with variance and mean."""

    name = "band"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the loss")}

    def terms(self, params, total):
        C = params["C"]
        return Terms(0.3, 0.2, (HingeTerm(C, threshold=0.5, power=2), HingeTerm(C, side=-1, threshold=1.5, power=2)))


class SquaredHinge(Objective):
    """SVM with the squared hinge."""

    name = "squared-hinge"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the loss")}

    def terms(self, params, total):
        return Terms(loss=(HingeTerm(params["C"], power=2),))


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("solver", ["asgd", "sgd"])
@pytest.mark.parametrize("kind", ["dense", "CSR"])
def test_the_last_point_is_the_published_one(kind, solver, bias, monkeypatch):
    """The coefficients are those of the transcription on the same stream, whatever the pieces."""
    engine, seen = watched(find("solver", solver))
    X, y = points(m=80, d=4, seed=10)
    C, lambda1, lambda2, eta0, epochs = 0.5, 1.5, 0.7, 0.07, 3
    i, j = sgd_task.TaskRowPairs(np.ones(80), np.random.default_rng([5, 0]))(80 * epochs)
    w, mean = transcription(
        with_ones(X, bias), y, (HingeTerm(C),), 2 * lambda1, lambda2, np.ones(80), eta0, 80, i, j
    )  # t0 = m is the default
    wanted = mean if solver == "asgd" else w
    for piece in (sgd_task.ENTRIES_PER_CALL, 1 << 9):
        monkeypatch.setattr(sgd_task, "ENTRIES_PER_CALL", piece)
        model = mdlearn.fit(
            "ldm", KINDS[kind](X), y, solver=engine, solver_options={"epochs": epochs, "eta0": eta0}, bias=bias, C=C,
            lambda1=lambda1, lambda2=lambda2, random_state=5,
        )  # fmt: skip
        near(np.append(seen[-1].coef, seen[-1].intercept), wanted)
        near(seen[-1].alpha @ X, seen[-1].coef)
        near(model.dual_coef_ @ X, model.coef_)
        assert model.solver == solver and model.n_iter == epochs == len(model.history)
        held = g(np.append(model.coef_, model.intercept_), with_ones(X, bias), y, np.ones(80), (HingeTerm(C),),
                 2 * lambda1, lambda2)  # fmt: skip
        assert model.certificate.objective == pytest.approx(float(held), rel=1e-12)
        last = g(np.append(seen[-1].coef, seen[-1].intercept), with_ones(X, bias), y, np.ones(80), (HingeTerm(C),),
                 2 * lambda1, lambda2)  # fmt: skip
        assert held <= last * (1 + 1e-12)


def excesses(X, y, epochs, solver="asgd", **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        dense = X.toarray() if sparse.issparse(X) else X
        exact = mdlearn.fit("ldm", dense, y, solver="interior", tol=1e-9, **settings).certificate
    assert exact.gap < 1e-6
    found = []
    for n in epochs:
        c = mdlearn.fit("ldm", X, y, solver=solver, solver_options={"epochs": n}, **settings).certificate
        assert c.lower_bound <= exact.objective * (1 + 1e-9) and c.objective >= exact.lower_bound * (1 - 1e-9)
        found.append((c.objective - exact.objective) / exact.objective)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"C": 1.0, "lambda1": 1.0, "lambda2": 1.0}], ids=["default", "small lambda"])
@pytest.mark.parametrize("name", ["a9a", "svmguide1", "generated"])
def test_excess_falls_as_epochs_grow(name, settings):
    if name == "generated":
        X, y = points(m=2000, d=10, seed=11)
    else:
        X, y = data.load(name)
        X = sparse.csr_matrix(X) if name == "a9a" else X
    few, some, many = excesses(X, y, (5, 20, 80), **settings)
    assert many < some < few < 0.05
    assert many < 0.5 * few


def test_sgd_approaches_the_optimum_too():
    X, y = points(m=1500, d=6, seed=12)
    few, many = excesses(X, y, (2, 200), solver="sgd", C=0.01, lambda1=1.0, lambda2=0.5)
    assert many < 0.2 * few and many < 0.02


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("objective", [Band, SquaredHinge])
def test_other_declared_losses(objective, bias):
    X, y = points(m=400, d=4, seed=13)
    exact = mdlearn.fit(objective, X, y, solver="interior", bias=bias, tol=1e-10).certificate
    found = [
        mdlearn.fit(objective, X, y, solver="asgd", bias=bias, solver_options={"epochs": n}).certificate
        for n in (5, 100)
    ]
    for c in found:
        assert c.lower_bound <= exact.objective * (1 + 1e-10) and c.kind == "duality gap"
    few, many = ((c.objective - exact.objective) / exact.objective for c in found)
    assert -1e-9 <= many < few and many < 2e-3
    assert found[1].gap < 0.05  # multipliers of squared terms follow the margins: the bound is tight here


HYPERS = [(0.0, 0.0, 0.0), (0.0, 3.0, 2.0), (1e-3, 1.0, 1.0), (1.0, 0.0, 0.0), (1.0, 50.0, 10.0), (100.0, 1.0, 0.0)]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("solver", ["asgd", "sgd"])
@pytest.mark.parametrize("hyper", HYPERS, ids=str)
def test_certificates_are_valid(hyper, solver, bias, weighted):
    X, y = points(m=120, d=3, seed=14)
    weight = np.random.default_rng(15).exponential(2.0, 120) if weighted else None
    settings = {"bias": bias, "C": hyper[0], "lambda1": hyper[1], "lambda2": hyper[2], "sample_weight": weight}
    exact = mdlearn.fit("ldm", X, y, solver="interior", tol=1e-9, **settings).certificate
    c = mdlearn.fit("ldm", X, y, solver=solver, **settings).certificate
    scale = max(abs(exact.objective), 1e-12)
    assert c.lower_bound <= exact.objective + 1e-9 * scale
    assert c.objective >= exact.lower_bound - 1e-9 * scale
    at_zero = hyper[0] * (120 if weight is None else weight.sum())
    assert c.objective < at_zero or hyper[0] == 0.0
    assert c.gap == pytest.approx(
        (c.objective - c.lower_bound) / max(abs(c.objective), 0.01 * at_zero, np.finfo(float).tiny), abs=1e-12
    )


def test_the_bound_never_falls_and_is_what_the_certificate_computes():
    X, y = points(m=90, d=4, seed=16)
    rng = np.random.default_rng(17)
    logistic = (LogisticTerm(1.0), HingeTerm(0.5))
    for terms, bias in itertools.product([HINGE, SQUARED_HINGE, BAND, MIXED, logistic], ["none", "regularized"]):
        counts = rng.exponential(1.0, 90)
        column = Column(y.astype(float), counts, 0.7, 0.5, terms)
        form = MarginForm(LinearFeatures(DenseRows(X)), (column,), bias)
        bound, values = DualBound(form, column), []
        for _ in range(6):
            best = bound.best
            assert (best.beta >= 0).all() and (best.beta <= column.caps).all()
            values.append(feasible_dual(form, column, best.beta, best.sigma)[0])
            for _ in bound.improve(2.0 * rng.standard_normal(90)):
                pass
        assert (np.diff(values) >= -1e-10 * abs(values[-1])).all()
        assert values[-1] > values[0]


@pytest.mark.parametrize("scale", [1e-3, 0.3, 30.0])
@pytest.mark.parametrize("kind", ["sorted", "every fifth differs", "weights"])
def test_steps_of_the_bound_are_chosen_on_some_rows_and_gain_on_all(kind, scale):
    """Four fifths of the gain of the best of 400 lengths, but for 1e-4 of the value: steps go a little beyond it."""
    X, y = points(m=5000, d=4, seed=20)
    order = np.argsort(y, kind="stable")
    X, y, rng, bias = X[order], y[order].astype(float), np.random.default_rng(21), "regularized"
    counts = rng.integers(0, 4, 5000).astype(float)
    if kind == "every fifth differs":
        X[::5], y[::5] = 5.0 * X[::5], -y[::5]
    elif kind == "weights":
        counts, bias = np.exp(2.0 * rng.standard_normal(5000)), "none"
    column = Column(y, counts, 0.0, 0.0, (LogisticTerm(1e-3),))
    form = MarginForm(LinearFeatures(DenseRows(X)), (column,), bias)
    bound = DualBound(form, column)
    for _ in range(3):
        before = bound.best
        z = y * (X @ rng.standard_normal(4)) * scale
        guess = bound._guess(z, 0.0)
        for _ in bound._search(z, 0.0):
            pass
        lengths = np.geomspace(1e-5, 1.0, 400)
        line = [before.beta + t * (guess - before.beta) for t in [0.0, *lengths]]
        values = [feasible_dual(form, column, beta, before.sigma)[0] for beta in line]
        found = feasible_dual(form, column, bound.best.beta, bound.best.sigma)[0]
        assert found >= values[0] + 0.8 * (max(values) - values[0]) - 1e-4 * abs(values[0])


def test_more_than_two_classes():
    rng = np.random.default_rng(18)
    X = rng.standard_normal((600, 4))
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + 0.1 * rng.standard_normal((600, 3)), axis=1)]
    model = mdlearn.fit("ldm", X, y, solver="asgd")
    assert model.coef_.shape == (3, 4) and model.score(X, y) > 0.85
    assert len(model.certificate.parts) == 3 and {s.problem for s in model.history} == {0, 1, 2}


@pytest.mark.parametrize("solver", ["asgd", "sgd"])
def test_same_seed_same_bits(solver):
    X, y = points(m=300, d=5, seed=19)
    fits = [mdlearn.fit("ldm", X, y, solver=solver, random_state=seed) for seed in (3, 3, 4, 0, None)]
    bits = [m.coef_.tobytes() + m.intercept_.tobytes() + repr(m.certificate).encode() for m in fits]
    assert bits[0] == bits[1] and bits[3] == bits[4]
    assert len({bits[0], bits[2], bits[3]}) == 3


@pytest.mark.parametrize("factor", [1e-8, 1e-3, 1e3, 1e8])
def test_calibration_follows_the_scale_of_the_data(factor):
    X, y = points(m=500, d=4, seed=20)
    settings = {"C": 1.0 / factor**2, "lambda1": 1.0 / factor**2, "lambda2": 0.0, "bias": "none", "solver": "asgd"}
    c = mdlearn.fit("ldm", factor * X, y, **settings).certificate
    exact = mdlearn.fit("ldm", factor * X, y, **{**settings, "solver": "interior"}).certificate
    assert c.objective < 1.05 * exact.objective


def test_steps_that_diverge_after_calibration_start_again():
    """One row of huge length in a column of its own, which the calibration's sample does not hold."""
    X, y = points(m=4000, d=3, seed=21)
    i, _ = sgd_task.TaskRowPairs(np.ones(4000), np.random.default_rng([0, 0]))(1000)
    strange = int(np.setdiff1d(np.arange(4000), i)[0])
    X[:, 2] = 0.0
    X[strange, 2] = 1e7
    with pytest.raises(ValueError, match=r"diverge with eta0=0\.1; give a smaller solver option eta0"):
        mdlearn.fit(Band, X, y, solver="sgd", solver_options={"eta0": 0.1, "epochs": 20})
    model = mdlearn.fit(Band, X, y, solver="sgd", solver_options={"epochs": 20})
    assert np.isfinite(model.coef_).all() and np.isfinite(model.certificate.gap)
    assert model.n_iter > 20  # the epochs before the restart are in the history too
