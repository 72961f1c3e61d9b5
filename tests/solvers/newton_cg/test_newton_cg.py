"""Newton steps by conjugate gradients: optima beside factorisations, conditions outside the solver, memory, ends."""

from __future__ import annotations

import tracemalloc
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from pairwise import pairs_first
from regression_cases import Above, Rounded, Tube, sample

import mdlearn
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.forms.losses import HingeTerm, LogisticTerm
from mdlearn.numerics import pivoted_cholesky
from mdlearn.objectives.base import Parameter, Terms
from mdlearn.solvers.decomposition import solver as decomposition
from mdlearn.solvers.newton_cg import solver as newton_cg
from mdlearn.solvers.newton_cg.newton_system import NewtonSystem

BIASES = ["free", "regularized", "none"]
CASES = {
    "lssvm": ("lssvm", {"C": 1.0}),
    "lssvm steep": ("lssvm", {"C": 300.0}),
    "lsldm": ("lsldm", {"C": 2.0, "lambda1": 1.0, "lambda2": 5.0}),
    "lsldm without a loss": ("lsldm", {"C": 0.0, "lambda1": 20.0, "lambda2": 5.0}),
    "lsvm": ("lsvm", {"nu": 1.0}),
    "lsvm steep": ("lsvm", {"nu": 100.0}),
}


class Both(mdlearn.Objective):
    """Logistic below 1, squared above 2, variance and mean."""

    name = "both"
    summary = "logistic loss with a squared one above, variance and mean"
    formula = "1/2 |w|^2 + v Var(z) - a mean(z) + w/m sum [ 1/5 ln(1 + exp(-5 (z - 1))) + (z - 2)_+^2 ]"
    parameters: ClassVar = {
        "w": Parameter(50.0, "weight of the loss"),
        "v": Parameter(0.0, "weight of the variance"),
        "a": Parameter(0.0, "weight of the mean"),
    }

    def terms(self, params, total):
        w = params["w"] / total
        return Terms(params["v"], params["a"], (LogisticTerm(w, 5.0), HingeTerm(w, -1, 2.0, 2)))


@pytest.fixture
def few(monkeypatch):
    """A preconditioner that leaves much to conjugate gradients."""
    monkeypatch.setattr(pivoted_cholesky, "MOST_PIVOTS", 20)


def data(m=300, d=4, seed=0, noise=0.6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d)) + 2.0
    y = np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] - 2.0 + noise * rng.standard_normal(m) > 0, 1, -1)
    return X, y, rng.integers(1, 4, m).astype(float)


KERNELS = {"kernel": "rbf", "gamma": 0.3}, {"kernel": "poly", "gamma": 0.1, "coef0": 1.0}


@pytest.mark.parametrize(*pairs_first(case=[*CASES], kernel=KERNELS, bias=BIASES))
def test_the_optimum(few, case, kernel, bias):
    X, y, counts = data()
    objective, params = CASES[case]
    given = {**params, **kernel, "bias": bias, "sample_weight": counts}
    exact = mdlearn.fit(objective, X, y, tol=1e-8, **given).certificate
    assert exact.converged
    for tol in (1e-2, 1e-8):
        told = mdlearn.fit(objective, X, y, solver="newton-cg", tol=tol, **given).certificate
        assert told.converged and told.gap <= tol
        assert told.lower_bound <= exact.objective + 1e-9 * abs(exact.objective)
        assert told.objective >= exact.lower_bound - 1e-9 * abs(exact.objective)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("v, a", [(0.0, 0.0), (0.0, 2.0), (30.0, 0.0), (1000.0, 5.0)])
def test_losses_whose_curvature_changes(few, v, a, bias):
    X, y, counts = data()
    given = {"v": v, "a": a, "kernel": "rbf", "gamma": 0.3, "bias": bias, "sample_weight": counts}
    exact = mdlearn.fit(Both, X, y, solver="newton", tol=1e-10, **given).certificate
    told = mdlearn.fit(Both, X, y, solver="newton-cg", tol=1e-8, **given).certificate
    assert exact.converged and told.converged
    assert told.lower_bound <= exact.objective + 1e-10 * abs(exact.objective)
    assert told.objective == pytest.approx(exact.objective, rel=2e-8)


@pytest.mark.parametrize(
    "objective, params",
    [(Tube, {"C": 0.0, "k": 5.0, "v": 2.0, "a": 0.1}), (Rounded, {"v": 1.0}), (Above, {"C": 20.0})],
)
def test_targets_of_regression(few, objective, params):
    X, y, counts = sample(m=200)
    given = {**params, "kernel": "rbf", "gamma": 0.3, "sample_weight": counts}
    exact = mdlearn.fit(objective, X, y, solver="newton", tol=1e-10, **given).certificate
    told = mdlearn.fit(objective, X, y, solver="newton-cg", tol=1e-8, **given).certificate
    assert told.converged and told.objective == pytest.approx(exact.objective, rel=2e-8)
    assert told.lower_bound <= exact.objective + 1e-10 * abs(exact.objective)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix, lambda X: X.astype(np.float32), np.asfortranarray])
def test_the_certificate_is_that_of_the_whole_matrix(few, storage):
    """Objective and bound from dual coefficients and the kernel matrix, outside the library."""
    X, y, counts = data()
    rows = storage(X)
    model = mdlearn.fit(
        "lsvm", rows, y, sample_weight=counts, nu=2.0, kernel="rbf", gamma=0.4, solver="newton-cg", tol=1e-6
    )
    assert model.certificate.converged
    X = np.asarray(rows.todense() if sp.issparse(rows) else rows, dtype=float)
    inner = X @ X.T
    square = np.diagonal(inner)
    G = np.exp(-0.4 * (square[:, None] + square - 2.0 * inner))
    alpha, b = model.dual_coef_[0].astype(float), float(model.intercept_[0])
    z = y * (G @ alpha + b)
    value = 0.5 * alpha @ G @ alpha + 0.5 * b * b + 1.0 * counts @ np.maximum(0.0, 1.0 - z) ** 2
    beta = y * alpha
    assert beta.min() >= -1e-12
    bound = beta.sum() - 0.5 * alpha @ G @ alpha - 0.5 * alpha.sum() ** 2 - 0.25 * (beta**2 / counts).sum()
    rel = 1e-9 if rows.dtype == np.float64 and not sp.issparse(rows) else 1e-5
    assert value == pytest.approx(model.certificate.objective, rel=rel)
    assert value - bound <= 1.2e-5 * value


def test_weights_are_repetitions(few):
    X, y, counts = data(m=120)
    again = np.repeat(np.arange(120), counts.astype(int))
    given = {"kernel": "rbf", "gamma": 0.3, "solver": "newton-cg", "tol": 1e-9}
    for objective in ("lsldm", "lsvm"):
        weighted = mdlearn.fit(objective, X, y, sample_weight=counts, **given)
        repeated = mdlearn.fit(objective, X[again], y[again], **given)
        assert weighted.certificate.objective == pytest.approx(repeated.certificate.objective, rel=2e-9)
        assert weighted.decision_function(X) == pytest.approx(repeated.decision_function(X), abs=1e-3)


def test_the_same_bits_and_no_seed(few):
    X, y, _ = data()
    fits = [mdlearn.fit("lssvm", X, y, kernel="rbf", solver="newton-cg", tol=1e-4, random_state=s) for s in (1, 1, 2)]
    assert np.array_equal(fits[0].dual_coef_, fits[1].dual_coef_)
    assert np.array_equal(fits[0].dual_coef_, fits[2].dual_coef_)


def test_a_start_is_where_it_begins(few, monkeypatch):
    X, y, _ = data()
    given = {"kernel": "rbf", "gamma": 0.3, "solver": "newton-cg", "tol": 1e-9}
    first = mdlearn.fit("lsvm", X, y, nu=1.0, **given)
    products, times = [], NewtonSystem._times

    def counted(self, d):
        products.append(d.shape[0])
        return times(self, d)

    monkeypatch.setattr(NewtonSystem, "_times", counted)
    cold = mdlearn.fit("lsvm", X, y, nu=1.02, **given)
    n_cold = len(products)
    products.clear()
    warm = mdlearn.fit("lsvm", X, y, nu=1.02, warm_start=first, **given)
    assert len(products) < n_cold
    assert warm.certificate.objective == pytest.approx(cold.certificate.objective, rel=2e-9)


@pytest.mark.parametrize(
    "name, given",
    [
        ("ldm", {"kernel": "rbf"}),
        ("svm", {"kernel": "rbf"}),
        ("lssvm", {"kernel": "linear"}),
        ("lssvm", {"kernel": lambda A, B: A @ B.T}),
    ],
)
def test_what_it_refuses(name, given):
    X, y, _ = data(m=60)
    with pytest.raises(ValueError, match="newton-cg"):
        mdlearn.fit(name, X, y, solver="newton-cg", **given)


@pytest.mark.slow
def test_many_rows_need_no_matrix():
    """8,200 rows: their matrix takes 538 MB."""
    X, y, _ = data(m=8200, d=3)
    mdlearn.fit("lssvm", X[:500], y[:500], kernel="rbf", solver="newton-cg")
    tracemalloc.start()
    model = mdlearn.fit("lssvm", X, y, kernel="rbf", tol=1e-3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.solver == "newton-cg" and model.certificate.converged
    assert peak < 250e6


def test_auto_takes_it_for_many_rows(monkeypatch):
    X, y, _ = data()
    chosen = [mdlearn.fit(name, X, y, kernel="rbf").solver for name in ("lssvm", "lsldm", "lsvm")]
    assert chosen == ["direct", "direct", "newton"]
    monkeypatch.setattr(newton_cg, "MATRIX_ROWS", 250)
    monkeypatch.setattr(decomposition, "SQUARED_ROWS", 250)
    chosen = [mdlearn.fit(name, X, y, kernel="rbf").solver for name in ("lssvm", "lsldm", "lsvm")]
    assert chosen == ["newton-cg", "newton-cg", "decomposition"]
    # Conjugate gradients crawl on steep losses.
    assert mdlearn.fit("lssvm", X, y, kernel="rbf", C=1e6).solver == "direct"


def test_limits_end_it_with_what_it_has(few):
    X, y, _ = data(m=1000)
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit"):
        model = mdlearn.fit("lssvm", X, y, C=1e5, kernel="rbf", solver="newton-cg", tol=1e-12, time_limit=0.05)
    told = model.certificate
    assert told.lower_bound <= told.objective <= 1000 * 1e5
    with pytest.warns(mdlearn.ConvergenceWarning):
        model = mdlearn.fit(
            "lsvm", X, y, nu=10.0, kernel="rbf", solver="newton-cg", tol=1e-13, callback=lambda state: state.gap < 0.5
        )
    assert model.certificate.gap < 0.5


def test_a_time_limit_leaves_time_for_the_certificate(few, monkeypatch):
    X, y, _ = data(m=1000)
    given = {"C": 10.0, "kernel": "rbf", "gamma": 0.3, "solver": "newton-cg", "tol": 1e-10}
    whole = mdlearn.fit("lsvm", X, y, time_limit=1000.0, **given)
    monkeypatch.setattr(KernelFeatures, "_seconds_of_value", 1.0)
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit"):
        model = mdlearn.fit("lsvm", X, y, time_limit=1000.0, **given)
    assert whole.certificate.converged and whole.certificate.gap < model.certificate.gap <= 1.0


def test_exact_margins_do_not_begin_anew(few, monkeypatch):
    """What is lacking once margins are exact takes fewer products than the first solution, but for rounded values."""
    monkeypatch.setattr(newton_cg, "ROUNDED_CURVATURE", 0.0)
    X, y, _ = data(m=400)
    products, solutions, times, solve = [], [], NewtonSystem._times, NewtonSystem.solve
    monkeypatch.setattr(NewtonSystem, "_times", lambda *given: products.append(1) or times(*given))
    monkeypatch.setattr(NewtonSystem, "solve", lambda *given: solutions.append(len(products)) or solve(*given))
    model = mdlearn.fit("lssvm", X, y, C=300.0, kernel="rbf", gamma=0.3, solver="newton-cg", tol=1e-6)
    assert model.certificate.converged and len(solutions) > 1
    assert len(products) < 1.6 * solutions[1]


def test_multipliers_stand_for_coefficients_on_both_sides_of_a_kink(monkeypatch):
    """A row whose coefficient and margin disagree about its side has a multiplier of the other term."""
    missing, multipliers = [], newton_cg.NewtonCGIterate._multipliers

    def noted(self, spread):
        found = multipliers(self, spread)
        missing.append(np.abs(found[2]).max() / np.abs(self.x).max() if self.x.any() else 0.0)
        return found

    monkeypatch.setattr(newton_cg.NewtonCGIterate, "_multipliers", noted)
    monkeypatch.setattr(pivoted_cholesky, "MOST_PIVOTS", 20)
    X, y, _ = data(600)
    assert mdlearn.fit(
        "lssvm", X, y, C=100.0, tol=1e-8, kernel="rbf", gamma=0.3, solver="newton-cg"
    ).certificate.converged
    assert len(missing) > 3 and max(missing) <= 1e-12


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("case", [c for c in CASES if c != "lsldm without a loss"])  # whose optimum is 0
def test_equal_rows_of_opposite_labels(case, bias):
    """No margin says what their multipliers are: coefficients that cancel made no step, and no bound."""
    objective, params = CASES[case]
    X, y = [[0.5], [0.5]], [0, 1]
    found = mdlearn.fit(objective, X, y, kernel="rbf", gamma=1.0, bias=bias, solver="newton-cg", **params).certificate
    assert found.converged and found.objective == pytest.approx(found.lower_bound, rel=1e-6)
