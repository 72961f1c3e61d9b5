"""Convex problems that an engine of a plugin has solved as steps of its own: the ramp loss by CCCP."""

from __future__ import annotations

import itertools
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from documents import EXAMPLES
from scipy.optimize import lsq_linear

import mdlearn
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.extend import Column, HingeTerm, LinearFeatures, MarginForm, solve_inner

DOCUMENT = {}
exec(compile(EXAMPLES["inner"], "inner", "exec"), DOCUMENT)
Ramp, Cccp = DOCUMENT["Ramp"], DOCUMENT["Cccp"]


def sample(m=120, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(m) > 0, 1, -1)
    y[rng.random(m) < 0.15] *= -1
    return X, y


def ramp(X, y, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        return mdlearn.fit(Ramp, X, y, solver=Cccp, **{"tol": 1e-8, **given})


def slope_left(model, X, y, counts, C, s):
    """Shortest subgradient of the ramp objective at the model's coefficients, over that of the norm alone."""
    w, b = model.coef_.ravel(), float(model.intercept_[0])
    z = y * (X @ w + b)
    force = np.where((z < 1) & (z >= s), C * counts, 0.0)
    kink = np.abs(z - 1) < 1e-6
    force[kink] = 0.0
    A = np.column_stack([X, np.ones(len(y))]) * y[:, None]
    rest = np.append(w, b) - A.T @ force
    if kink.any():
        found = lsq_linear(A[kink].T, rest, bounds=(0.0, C * counts[kink]), tol=1e-14)
        rest = rest - A[kink].T @ found.x
    return np.linalg.norm(rest) / np.linalg.norm(np.append(w, b))


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("inner", ["auto", "cd", "interior"])
def test_a_stationary_point_of_the_ramp(C, inner):
    X, y = sample()
    counts = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    model = ramp(X, y, C=C, s=-0.3, sample_weight=counts, solver_options={"inner": inner})
    assert model.certificate.kind == "residual" and model.certificate.gap <= 1e-8
    assert slope_left(model, X, y, counts, C, -0.3) < 1e-5
    w, b = model.coef_.ravel(), float(model.intercept_[0])
    loss = counts @ np.minimum(1.3, np.maximum(0.0, 1.0 - y * (X @ w + b)))
    assert model.certificate.objective == pytest.approx(0.5 * (w @ w + b * b) + C * loss, rel=1e-12)


def test_the_objective_falls_and_ends_below_the_hinge():
    X, y = sample(m=400, seed=3)
    model = ramp(X, y, C=1.0, s=0.0)
    values = [state.objective for state in model.history]
    assert len(values) > 2 and all(b <= a + 1e-9 for a, b in itertools.pairwise(values))
    # s so low that no margin is below: the hinge loss itself, whose optimum is proven.
    hinge = mdlearn.fit("svm", X, y, C=1.0, tol=1e-9)
    flat = ramp(X, y, C=1.0, s=-50.0)
    assert flat.certificate.objective == pytest.approx(hinge.certificate.objective, rel=1e-8)
    assert values[-1] < hinge.certificate.objective


def test_classes_whose_last_problems_have_other_terms():
    X, y = sample(m=200)
    y = np.where(X[:, 1] > 1.0, 2, y)  # hardly any margin of this class lies below s
    model = ramp(X, y, C=1.0, s=-1.5)
    below = [model.decision_function(X)[:, j] * np.where(y == c, 1, -1) < -1.5 for j, c in enumerate(model.classes_)]
    assert len({bool(one.any()) for one in below}) == 2 and model.certificate.gap <= 1e-8


def test_kernels_share_their_matrix(monkeypatch):
    made, plain = [], KernelFeatures.__init__
    monkeypatch.setattr(KernelFeatures, "__init__", lambda self, *a, **k: made.append(1) or plain(self, *a, **k))
    X, y = sample()
    model = ramp(X, y, C=5.0, s=0.0, kernel="rbf", gamma=0.5)
    assert len(made) == 1 and len(model.history) > 1 and model.certificate.gap <= 1e-8


def svm_form(X, y, C=1.0):
    features = LinearFeatures(mdlearn.extend.check_rows(X))
    return MarginForm(features, (Column(y.astype(float), np.ones(len(y)), 0.0, 0.0, (HingeTerm(C),)),), "regularized")


def solved(work):
    """Heartbeats and the solution of an inner problem, without any outer fit."""
    beats = 0
    while True:
        try:
            assert next(work) is None
        except StopIteration as done:
            return beats, done.value
        beats += 1


@pytest.mark.parametrize("solver", ["auto", "cd", "interior", "hybrid"])
def test_the_inner_optimum_is_that_of_a_fit(solver):
    X, y = sample()
    _, found = solved(solve_inner(svm_form(X, y), tol=1e-9, solver=solver))
    known = mdlearn.fit("svm", X, y, C=1.0, tol=1e-10).certificate
    assert found.certificate.converged and found.certificate.gap <= 1e-9
    assert known.lower_bound <= found.certificate.objective * (1 + 1e-12)
    assert found.certificate.objective <= known.objective * (1 + 2e-9)


def test_a_start_is_taken():
    X, y = sample(m=3000, d=30)
    form = svm_form(X, y)
    cold, found = solved(solve_inner(form, tol=1e-9, solver="cd"))
    warm, again = solved(solve_inner(form, tol=1e-9, solver="cd", start=found))
    assert again.certificate.converged and warm < cold


@pytest.mark.parametrize(
    ("solver", "kernel"),
    [("cd", False), ("hybrid", False), ("interior", False), ("cd", True), ("interior", True), ("decomposition", True)],
)
def test_a_start_of_other_terms_does_no_harm(solver, kernel):
    X, y = sample()
    form = svm_form(X, y)
    if kernel:
        rbf = mdlearn.fit("svm", X, y, kernel="rbf", gamma=0.5).kernel
        form = replace(form, features=KernelFeatures(form.features.rows, rbf))
    column = form.columns[0]
    two = replace(column, terms=(HingeTerm(1.0), HingeTerm(0.5, side=-1, threshold=0.9)))
    _, other = solved(solve_inner(replace(form, columns=(two,)), tol=1e-9))
    _, cold = solved(solve_inner(form, tol=1e-9, solver=solver))
    _, warm = solved(solve_inner(form, tol=1e-9, solver=solver, start=other))
    assert other.certificate.converged and warm.certificate.converged and cold.certificate.converged
    assert warm.certificate.objective == pytest.approx(cold.certificate.objective, rel=3e-9)
    assert warm.certificate.objective < other.certificate.objective
    with pytest.raises(ValueError, match=r"^start is the solution of a problem over other features; give one over"):
        solved(solve_inner(svm_form(X[:50, :2], y[:50]), start=other))


def test_limits_of_the_fit_end_inner_work(clock):
    X, y = sample()
    beats = []

    class Slow(mdlearn.Solver):
        """Never ends."""

        name, purpose, draws, by_row = "slow", "never ends", False, True

        def iterate(self, form, column, shared, options, rng):
            for _ in range(10_000):
                beats.append(1)
                clock.sleep(1.0)
                yield None

    model = ramp(X, y, C=1.0, s=0.0, time_limit=20.0, solver_options={"inner": Slow})
    assert len(beats) <= 22 and not model.certificate.converged


def test_a_callback_ends_inner_work():
    X, y = sample(m=400, seed=3)
    seen = []
    model = ramp(X, y, C=1.0, s=0.0, callback=lambda state: seen.append(state.iteration) or len(seen) == 2)
    assert seen == [1, 2] and len(model.history) == 2


def test_what_cannot_be_solved_is_a_sentence():
    X, y = sample()
    form = svm_form(X, y)
    with pytest.raises(ValueError, match=r"^solver 'direct' cannot take this problem: .*; use one of "):
        solved(solve_inner(form, solver="direct"))
    with pytest.raises(ValueError, match=r"^solve_inner takes a form of one problem; got one of 2, give one column"):
        solved(solve_inner(MarginForm(form.features, form.columns * 2, "regularized")))
    with pytest.raises(ValueError, match=r"^tol "):
        solved(solve_inner(form, tol=-1.0))
    with pytest.raises(ValueError, match="no option 'inner_step'"):
        solved(solve_inner(form, solver="cd", solver_options={"inner_step": 1}))


def test_inner_work_that_is_given_up_is_closed():
    X, y = sample()
    ended = []

    class Ends(mdlearn.Solver):
        """Says when it is closed."""

        name, purpose, draws = "ends", "says when it is closed", False

        def iterate(self, form, column, shared, options, rng):
            try:
                while True:
                    yield None
            finally:
                ended.append(time.perf_counter())

    work = solve_inner(svm_form(X, y), solver=Ends)
    next(work)
    next(work)
    assert not ended
    work.close()
    assert len(ended) == 1


def test_the_ramp_is_no_form_of_other_engines():
    X, y = sample()
    with pytest.raises(ValueError, match="cannot take this problem"):
        mdlearn.fit(Ramp, X, y, solver="cd")
