"""Reports, ends and refusals of the LSVM fixed point."""

from __future__ import annotations

import numpy as np
import pytest
from newton_reference import form_in_name_only
from smw_paper import Band, sample, svml

import mdlearn
from mdlearn._solvers import smw as compiled
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.fixed_point import SMW


def test_every_iteration_is_reported_and_told_truly():
    X, y = sample(seed=13)
    best = mdlearn.fit("lsvm", X, y, nu=0.1, solver="newton", tol=1e-12).certificate.objective
    seen = []
    model = mdlearn.fit("lsvm", X, y, nu=0.1, solver="smw", tol=1e-10, callback=seen.append)
    assert model.n_iter == len(seen) > 50 and model.certificate.converged
    for k in (1, 5, 17, 40):  # the printed objective at the iterate of the published code
        *_, w, gamma, _ = svml(X, y, 0.1, k, 0.0)
        loss = np.maximum(1 - y * (X @ w - gamma), 0)
        assert seen[k - 1].objective == pytest.approx(0.5 * (w @ w + gamma**2) + 0.05 * loss @ loss, rel=1e-11)
    assert all(state.lower_bound <= best * (1 + 1e-12) <= state.objective * (1 + 2e-12) for state in seen)


def test_rounding_ends_it_by_itself():
    X, y = sample(seed=14)
    with pytest.warns(mdlearn.ConvergenceWarning, match="rounding allows no better"):
        model = mdlearn.fit("lsvm", X, y, nu=0.05, solver="smw", tol=0.0)
    assert model.n_iter < 2000 and model.certificate.gap < 1e-13


@pytest.mark.parametrize("stop", ["gap", "step"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_limits_and_interrupts(kernel, stop):
    X, y = sample(seed=15)
    given = {"nu": 200.0, "kernel": kernel, "solver": "smw", "solver_options": {"stop": stop}, "tol": 1e-13}
    best = mdlearn.fit("lsvm", X, y, nu=200.0, kernel=kernel, solver="newton", tol=1e-12).certificate
    early = [
        ({"callback": lambda state: state.iteration == 7}, "stopped by the callback", 7),
        ({"max_iter": 9}, "max_iter = 9 reached", 9),
        ({"time_limit": 0.0}, "time_limit reached", 0),
    ]
    for limit, told, count in early:
        with pytest.warns(mdlearn.ConvergenceWarning, match=told):
            model = mdlearn.fit("lsvm", X, y, **given, **limit)
        assert model.n_iter == count
        assert model.certificate.lower_bound <= best.objective <= model.certificate.objective * (1 + 1e-12)

    def interrupt(state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mdlearn.fit("lsvm", X, y, **given, callback=interrupt)


def test_control_comes_back_within_an_iteration():
    X, y = sample(1000, 3, seed=16)
    form = MarginForm(
        LinearFeatures(DenseRows(X)), (Column(y, np.ones(1000), 0.0, 0.0, (HingeTerm(0.5, power=2),)),), "none"
    )
    steps = SMW().iterate(form, form.columns[0], None, SMW().check_options({}), np.random.default_rng(0))
    kinds = [report is not None for report, _ in zip(steps, range(60), strict=False)]
    reports = np.flatnonzero(kinds)
    assert len(reports) > 5 and np.diff(reports).min() >= 3


@pytest.mark.parametrize(
    "objective, settings, told",
    [
        ("svm", {}, "no loss of the kind 'hinge'"),
        ("ldm", {"C": 1.0, "lambda1": 1.0}, "hinge"),
        ("lsvm", {"bias": "free"}, "regularized bias or none"),
        ("lsldm", {"bias": "none"}, "variance or mean"),
        ("lsldm", {"bias": "none", "lambda2": 0.0}, "variance or mean"),
        (Band, {"C": 0.0, "D": 0.0}, "needs a loss"),
        ("svm", {"C": np.inf}, "constraint"),
    ],
)
def test_refusals(objective, settings, told):
    X, y = sample()
    with pytest.raises(ValueError, match=f"solver 'smw' cannot take this problem: .*{told}.*; use one of"):
        mdlearn.fit(objective, X, y, solver="smw", **settings)


@pytest.mark.parametrize(
    "options, told",
    [
        ({"alpha": 0.0}, "solver option alpha needs to be a number > 0"),
        ({"alpha": -1.0}, "solver option alpha"),
        ({"alpha": np.nan}, "solver option alpha"),
        ({"alpha": "small"}, "solver option alpha"),
        ({"stop": "never"}, "solver option stop needs to be 'gap' or 'step'; got 'never'"),
        ({"stop": "steps"}, "got 'steps'; did you mean 'step'[?]$"),
        ({"itmax": 5}, "no option 'itmax'; valid solver_options: alpha, stop"),
    ],
)
def test_options(options, told):
    X, y = sample()
    with pytest.raises((ValueError, TypeError), match=told):
        mdlearn.fit("lsvm", X, y, solver="smw", solver_options=options)


@pytest.mark.parametrize("m, d, kernel", [(10**6, 50, "rbf"), (10**6, 10**6, "linear")])
def test_memory_is_asked_for(m, d, kernel):
    with pytest.raises(mdlearn.InsufficientMemory, match="use "):
        SMW().check_memory(form_in_name_only(m, d, kernel))


def test_kernels_refuse_arrays_that_do_not_fit():
    y, counts, terms = np.ones(3), np.ones(3), np.ones((3, 1))
    right, wrong = np.zeros((1, 3)), np.zeros((1, 2))
    for z, u, f in ((wrong, right, y), (right, wrong, y), (right, right, y[:2])):
        with pytest.raises(ValueError, match="length"):
            compiled.advance(y, counts, terms, 1.0, z, u, f.copy())
    for u, beta, alpha in ((wrong, right, y), (right, wrong, y), (right, right, y[:2])):
        with pytest.raises(ValueError, match="length"):
            compiled.multipliers(y, counts, terms, u, beta, alpha.copy())
    with pytest.raises(ValueError, match="three rows"):
        compiled.advance(y, counts, np.ones((2, 1)), 1.0, right, right.copy(), y.copy())


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_bounds_say_something_however_far_the_optimum_is(kernel):
    """Multipliers thousands of times too long are scaled: the bound is never below 0, that of no multipliers at all."""
    X, y = sample(seed=17)
    seen = []
    with pytest.warns(mdlearn.ConvergenceWarning, match="max_iter"):
        model = mdlearn.fit("lsvm", X, y, nu=1e6, kernel=kernel, solver="smw", max_iter=30, callback=seen.append)
    assert all(0 <= state.lower_bound <= state.objective for state in seen)
    u = model.duals[0]
    if kernel == "linear":
        curvature = u @ u / 1e6 + np.sum((X.T @ (y * u)) ** 2) + (y @ u) ** 2
        assert u.sum() == pytest.approx(curvature, rel=1e-6), "no multiple of u has a better bound"
