"""asgd and sgd: the published end, limits, options and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from sgd_cases import HINGE, points

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.stochastic import solver as sgd

# ---------------------------------------------------------------- ends


def test_the_published_end_is_a_normal_end():
    """No warning without tol; all epochs run even when the gap asked for is reached at once."""
    X, y = points(m=200, seed=22)
    model = mdlearn.fit("ldm", X, y, solver="asgd")  # warnings are errors here
    assert model.n_iter == 5 and model.certificate.tol == 1e-6 and not model.certificate.converged
    for tol in (1e-6, 1e-9):
        with pytest.warns(mdlearn.ConvergenceWarning, match="'asgd' stopped at relative gap .*published end"):
            given = mdlearn.fit("ldm", X, y, solver="asgd", tol=tol)
        assert given.n_iter == 5
        np.testing.assert_array_equal(given.coef_, model.coef_)
    loose = mdlearn.fit("ldm", X, y, solver="asgd", tol=1e6)
    assert loose.n_iter == 5 and loose.certificate.converged
    np.testing.assert_array_equal(loose.coef_, model.coef_)


@pytest.mark.parametrize("tol", [None, 1e-6])
def test_max_iter_counts_epochs(tol):
    X, y = points(m=200, seed=23)
    given = {} if tol is None else {"tol": tol}
    with pytest.warns(mdlearn.ConvergenceWarning, match="max_iter = 2 reached"):
        cut = mdlearn.fit("ldm", X, y, solver="asgd", max_iter=2, solver_options={"eta0": 0.1}, **given)
    assert cut.n_iter == 2
    short = mdlearn.fit("ldm", X, y, solver="asgd", solver_options={"eta0": 0.1, "epochs": 2})
    np.testing.assert_array_equal(cut.coef_, short.coef_)


@pytest.mark.parametrize("max_iter", [5, 6])
def test_max_iter_at_the_published_end_is_no_early_stop(max_iter):
    X, y = points(m=200, seed=24)
    assert mdlearn.fit("ldm", X, y, solver="asgd", max_iter=max_iter).n_iter == 5


def test_callback_stops_after_an_epoch():
    X, y = points(m=200, seed=25)
    seen = []

    def stop(state):
        seen.append(state)
        return state.iteration == 3

    with pytest.warns(mdlearn.ConvergenceWarning, match="stopped by the callback"):
        model = mdlearn.fit("ldm", X, y, solver="asgd", callback=stop)
    assert [s.iteration for s in seen] == [1, 2, 3] and model.n_iter == 3
    assert seen[-1].objective == pytest.approx(model.certificate.objective, rel=1e-12)
    assert all(s.lower_bound <= s.objective and s.gap >= 0 for s in seen)


def test_time_limit(clock):
    X, y = points(m=2000, d=50, seed=26)
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit reached"):
        slow = {"callback": lambda state: clock.sleep(0.1), "time_limit": 0.25, "solver_options": {"epochs": 10**9}}
        model = mdlearn.fit("ldm", X, y, solver="asgd", **slow)
    assert model.n_iter == len(model.history) == 3 and np.isfinite(model.certificate.gap)
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit reached"):
        model = mdlearn.fit("ldm", X, y, solver="asgd", time_limit=0.0)
    assert model.n_iter == 0 and model.certificate.objective <= 2000.0  # the value at w = 0


# ---------------------------------------------------------------- options and refusals


BAD_OPTIONS = {
    "epochs 0": ({"epochs": 0}, ValueError, "solver option epochs needs to be an integer >= 1; got 0"),
    "epochs 2.5": ({"epochs": 2.5}, TypeError, "solver option epochs needs to be an integer >= 1; got 2.5"),
    "epochs None": ({"epochs": None}, TypeError, "solver option epochs needs to be an integer"),
    "eta0 0": ({"eta0": 0.0}, ValueError, "solver option eta0 needs to be a number > 0 and finite; got 0.0"),
    "eta0 inf": ({"eta0": float("inf")}, ValueError, "solver option eta0 needs to be a number > 0 and finite"),
    "eta0 nan": ({"eta0": float("nan")}, ValueError, "solver option eta0 needs to be a number > 0 and finite"),
    "eta0 word": ({"eta0": "auto"}, TypeError, "solver option eta0 needs to be a number > 0 and finite; got 'auto'"),
    "t0 -1": ({"t0": -1}, ValueError, "solver option t0 needs to be an integer >= 0"),
    "t0 0.5": ({"t0": 0.5}, TypeError, "solver option t0 needs to be an integer >= 0"),
    "unknown": ({"averaging": 1}, ValueError, "no option 'averaging'; valid solver_options: epochs, eta0, t0"),
}


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_bad_options(name):
    given, kind, message = BAD_OPTIONS[name]
    X, y = points()
    with pytest.raises(kind, match=message) as caught:
        mdlearn.fit("ldm", X, y, solver="asgd", solver_options=given)
    assert "\n" not in str(caught.value) and str(caught.value).count(". ") == 0


def test_sgd_has_no_average_to_start():
    X, y = points()
    with pytest.raises(ValueError, match="no option 't0'; valid solver_options: epochs, eta0"):
        mdlearn.fit("ldm", X, y, solver="sgd", solver_options={"t0": 3})


REFUSALS = {
    "kernel": ({"kernel": "rbf"}, "only kernel='linear' has"),
    "precomputed": ({"kernel": lambda A, B: A @ B.T}, "only kernel='linear' has"),
    "free bias": ({"bias": "free"}, "strong convexity, which bias='free' breaks"),
    "hard margin": ({"C": float("inf")}, "no loss of the kind 'constraint'"),
}


@pytest.mark.parametrize("solver", ["asgd", "sgd"])
@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name, solver):
    settings, reason = REFUSALS[name]
    X, y = points()
    with pytest.raises(ValueError, match=f"solver '{solver}' cannot take this problem: .*{reason}; use one of "):
        mdlearn.fit("ldm", X, y, solver=solver, **settings)


def test_a_ridge_per_column_is_refused():
    X, y = points()
    column = Column(y.astype(float), np.ones(60), 0.0, 0.0, HINGE)
    form = MarginForm(LinearFeatures(DenseRows(X), np.arange(1.0, 5.0)), (column,), "none")
    assert "plain squared norm" in sgd.SGD().refusal(form)
