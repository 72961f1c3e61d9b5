"""A warm start changes the way and never the end: the same certified optimum, by less work, with the same bits."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from warm_cases import CASES, rows, text

import mdlearn
from mdlearn.solvers.coordinate_descent import centred_rows
from mdlearn.solvers.systems import row_and_gram as systems

TOL = 1e-10


def fit(objective, X, y, **settings):
    """A fit that converges, or ends where rounding allows no better."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        model = mdlearn.fit(objective, X, y, **{"tol": TOL, **settings})
    assert model.certificate.gap <= 10 * settings.get("tol", TOL), model.certificate
    return model


def same(warm, cold, X, within=1e-9):
    """Two intervals that hold the same optimum, and decision values as close as their gaps say."""
    a, b = warm.certificate, cold.certificate
    scale = max(abs(b.objective), 1e-3)
    assert a.lower_bound - b.objective <= within * scale and b.lower_bound - a.objective <= within * scale
    f, g = warm.decision_function(X), cold.decision_function(X)
    assert np.abs(f - g).max() <= 2e-3 * max(1.0, np.abs(g).max())


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_optimum_does_not_depend_on_the_start(name, weighted):
    objective, settings, changes = CASES[name]
    X, y, first, second = rows()
    weights = [{"sample_weight": w} for w in (first, second)] if weighted else [{}, {}]
    start = fit(objective, X, y, **{**settings, **weights[0]})
    for change in changes:
        given = {**settings, **weights[1], **change}
        if weighted and "reduced" in settings:
            with pytest.raises(ValueError, match="basis_indices_"):
                fit(objective, X, y, warm_start=start, **given)
            continue
        warm, cold = fit(objective, X, y, warm_start=start, **given), fit(objective, X, y, **given)
        same(warm, cold, X)
        start = warm


@pytest.mark.slow
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("change", [{"C": 6.0}, {"C": 0.05}, {"lambda1": 4000.0}, {"lambda1": 0.0}], ids=str)
def test_sparse_sweeps(bias, change):
    X, y = text()
    settings = {"C": 1.0, "lambda1": 20.0, "lambda2": 1.0, "bias": bias, "solver": "cd", "tol": 1e-8}
    start = fit("ldm", X, y, **settings)
    given = {**settings, **change}
    same(fit("ldm", X, y, warm_start=start, **given), fit("ldm", X, y, **given), X, 2e-8)


def test_a_column_of_ones_in_sparse_rows():
    X, y = text()
    X = sp.hstack([X, np.ones((X.shape[0], 1))], format="csr")
    settings = {"bias": "none", "solver": "cd", "tol": 1e-8}
    start = fit("svm", X, y, **settings)
    warm, cold = (fit("svm", X, y, C=1.1, warm_start=one, **settings) for one in (start, None))
    same(warm, cold, X, 2e-8)
    assert warm.history[0].gap < 0.2 * cold.history[0].gap


@pytest.mark.parametrize(
    "objective, settings, change",
    [
        ("ldm", {"solver": "cd"}, {"C": 5.0}),
        ("ldm", {"solver": "interior"}, {"C": 5.0}),
        ("svm", {"solver": "cd", "kernel": "rbf", "multiclass": "ovo"}, {"C": 5.0}),
        ("svm", {"solver": "interior", "multiclass": "fuzzy-min"}, {"C": 5.0}),
        ("lsvm", {"reduced": 9, "multiclass": "ovo", "kernel": "rbf", "gamma": 0.5}, {"nu": 3.0}),
        ("mdlm", {"ridge": 0.01, "beta": 0.01}, {"beta": 0.03}),
        ("mmlr", {"lam": 0.1}, {"lam": 0.01}),
        ("ww", {}, {"C": 3.0}),
        ("l3svm", {"n_clusters": 3, "n_landmarks": 4}, {"C": 10.0}),
        ("uldm", {}, {"C": 0.1}),
    ],
)
def test_several_classes(objective, settings, change):
    X, y, *_ = rows(k=3)
    start = fit(objective, X, y, **settings)
    given = {**settings, **change}
    same(fit(objective, X, y, warm_start=start, n_threads=2, **given), fit(objective, X, y, **given), X)


def test_other_types_and_hard_margins():
    X, y, *_ = rows()
    for solver in ("cd", "interior"):
        start = fit("ldm", X, y, solver=solver)
        low = mdlearn.fit("ldm", X.astype(np.float32), y, C=4.0, solver=solver, warm_start=start, tol=1e-5)
        assert low.certificate.converged and low.coef_.dtype == np.float32
        same(fit("ldm", X, y, C=8.0, solver=solver, warm_start=low), fit("ldm", X, y, C=8.0, solver=solver), X)
        wide = np.hstack([X, np.eye(len(y))])
        soft = fit("svm", wide, y, C=3.0, solver=solver)
        hard = {"C": np.inf, "solver": solver}
        same(fit("svm", wide, y, warm_start=soft, **hard), fit("svm", wide, y, **hard), wide)
        after = fit("svm", wide, y, C=2.0, solver=solver, warm_start=fit("svm", wide, y, **hard))
        same(after, fit("svm", wide, y, C=2.0, solver=solver), wide)


def counted(monkeypatch, owner, name, work):
    """Total of work(arguments) over all calls of a method since the last look."""
    total, method = [0.0], getattr(owner, name)

    def counting(self, *given):
        total[0] += work(self, *given)
        return method(self, *given)

    monkeypatch.setattr(owner, name, counting)
    return total


def path(objective, X, y, grid, warm, **settings):
    model, steps = None, 0
    for change in grid:
        model = mdlearn.fit(objective, X, y, warm_start=model if warm else None, **settings, **change)
        assert model.certificate.converged
        steps += model.n_iter
    return steps


@pytest.mark.slow
def test_fewer_row_visits_on_a_path_of_sparse_problems(monkeypatch):
    X, y = text()
    visits = counted(monkeypatch, centred_rows.CentredDual, "sweep", lambda self, at, rng: len(at))
    for objective, grid in (("svm", "C"), ("ldm", "C"), ("ldm", "lambda1")):
        values = [{grid: (20.0 if grid == "lambda1" else 0.2) * 1.2**k} for k in range(4)]
        spent = []
        for warm in (True, False):
            visits[0] = 0.0
            path(objective, X, y, values, warm, solver="cd")
            spent.append(visits[0])
        assert spent[0] < spent[1], (objective, grid, spent)


def test_fewer_rows_in_linear_systems_on_a_path_of_dense_problems(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1500, 6))
    y = X @ rng.standard_normal(6) + 2.0 * rng.standard_normal(1500) > 0
    used = counted(monkeypatch, systems.RowSystem, "factor", lambda self, D: np.count_nonzero(D))
    for objective, grid in (("svm", "C"), ("ldm", "C"), ("ldm", "lambda1")):
        values = [{grid: (100.0 if grid == "lambda1" else 0.1) * 2.0**k} for k in range(5)]
        spent = []
        for warm in (True, False):
            used[0] = 0.0
            path(objective, X, y, values, warm, solver="interior")
            spent.append(used[0])
        assert spent[0] < 0.5 * spent[1], (objective, grid, spent)


@pytest.mark.parametrize(
    "objective, solver, grid",
    [
        ("lsvm", "newton", [{"nu": 0.1 * 2.0**k} for k in range(12)]),
        ("lsvm", "smw", [{"nu": 0.1 * 2.0**k} for k in range(6)]),
        ("mlr", "newton", [{"lam": 0.1 * 0.5**k} for k in range(6)]),
        ("mdlm", "apg", [{"beta": 0.05 * 0.7**k} for k in range(6)]),
    ],
)
def test_fewer_steps_on_a_path(objective, solver, grid):
    X, y, *_ = rows(m=400, d=8)
    assert path(objective, X, y, grid, True, solver=solver) < path(objective, X, y, grid, False, solver=solver)


BAD = ["newton lsvm", "smw lsvm", "interior svm", "apg l2lr"]


@pytest.mark.parametrize("name", BAD)
def test_a_start_worse_than_nothing_is_dropped(name):
    solver, objective = name.split()
    X, y, *_ = rows()
    model = fit(objective, X, y, solver=solver)
    bad = replace(model, _coef=-1e3 * model._coef, _alpha=-1e3 * model._alpha, duals=0.0 * model.duals)
    cold, warm = (fit(objective, X, y, solver=solver, warm_start=start) for start in (None, bad))
    assert np.array_equal(cold.coef_, warm.coef_) and cold.n_iter == warm.n_iter


@pytest.mark.parametrize("objective, settings", [("lssvm", {"solver": "direct"}), ("ldm", {"solver": "asgd"})])
def test_engines_that_begin_as_ever(objective, settings):
    X, y, *_ = rows()
    models = [mdlearn.fit(objective, X, y, **settings)]
    models.append(mdlearn.fit(objective, X, y, warm_start=mdlearn.fit(objective, X, y, C=7.0), **settings))
    assert np.array_equal(models[0].coef_, models[1].coef_)


@pytest.mark.parametrize("solver", ["cd", "interior"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_same_start_gives_the_same_bits(solver, kernel, tmp_path):
    X, y, *_ = rows(k=3)
    start = mdlearn.fit("svm", X, y, solver=solver, kernel=kernel)
    start.save(tmp_path / "start.npz")
    found = [
        mdlearn.fit("svm", X, y, C=3.0, solver=solver, kernel=kernel, warm_start=one, n_threads=n)
        for one, n in ((start, 1), (start, 1), (mdlearn.load(tmp_path / "start.npz"), 1))
    ]
    assert all(np.array_equal(found[0].dual_coef_, one.dual_coef_) for one in found[1:])


def test_a_start_is_not_written_to():
    X, y, *_ = rows()
    for solver in ("cd", "interior"):
        start = mdlearn.fit("ldm", X, y, solver=solver)
        before = [a.copy() for a in (start.coef_, start.dual_coef_, start.duals, start.intercept_)]
        mdlearn.fit("ldm", X, y, C=9.0, solver=solver, warm_start=start)
        after = (start.coef_, start.dual_coef_, start.duals, start.intercept_)
        assert all(np.array_equal(a, b) for a, b in zip(before, after))


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("solver", ["cd", "interior", "asgd", "sgd"])
def test_weston_and_watkins_is_never_worse_than_its_start(solver, bias):
    X, y, weight, _ = rows(m=40, k=4)
    start = fit("ww", X, y, C=2.0, bias=bias, sample_weight=weight)
    settings = {"C": 2.0, "bias": bias, "sample_weight": weight, "solver": solver, "warm_start": start}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        warm = mdlearn.fit("ww", X, y, tol=1e-13, max_iter=1, **settings)
    assert warm.certificate.objective <= start.certificate.objective * (1 + 1e-12)
    assert warm.certificate.lower_bound >= start.certificate.lower_bound - 1e-12 * start.certificate.objective


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "solver, C, gamma",
    [
        *[("interior", C, gamma) for C in (np.inf, 1e8) for gamma in (1e-4, 1e-2)],
        *[("cd", C, gamma) for C, gamma in ((1e8, 1e-4), (1e8, 1e-2), (np.inf, 1e-2))],
    ],
)
def test_what_is_certified_of_coefficients_is_certified_of_them_again(seed, gamma, C, solver):
    """A trace that makes up for rounding is not asked for once more, of the very point that has it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 2))
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, 1, -1)
    given = {"kernel": "rbf", "gamma": gamma, "C": C, "solver": solver, "bias": "none"}
    for tol in (1e-6, 0.0):
        cold = mdlearn.fit("svm", X, y, tol=tol, **given)
        warm = mdlearn.fit("svm", X, y, tol=tol, warm_start=cold, max_iter=1, **given)
        assert np.isfinite(cold.certificate.objective)
        assert warm.certificate.objective <= cold.certificate.objective * (1 + 1e-12)


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("kind", ["precomputed", "function", "poly", "rbf"])
def test_a_limit_that_ends_before_the_gram_matrix(kind, bias):
    """Squares of rows were those of the polynomial kernel, and a given matrix was multiplied by itself."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 3))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(90) > 0, 1, -1)
    kernel = {"function": lambda A, B: A @ B.T}.get(kind, kind)
    A = X @ X.T if kind == "precomputed" else X
    whole = mdlearn.fit("svm", A, y, kernel=kernel, bias=bias)
    ended = mdlearn.fit("svm", A, y, kernel=kernel, bias=bias, warm_start=whole, time_limit=1e-9)
    assert ended.certificate.objective == pytest.approx(whole.certificate.objective, rel=1e-9)
    assert ended.certificate.lower_bound <= whole.certificate.objective


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(3))
def test_what_is_said_of_a_point_does_not_depend_on_the_gram_matrix_being_there(seed):
    """Sums in another order told another objective: decision values here are small differences of large products."""
    rng = np.random.default_rng(seed)
    X = 1e5 * rng.standard_normal((60, 4))
    y = np.where(X[:, 0] + 1e5 * rng.standard_normal(60) > 0, 1, -1)
    # One tol: a share of it may be added to an objective for rounding that took no pass over the rows.
    given = {"kernel": lambda A, B: (A @ B.T + 1.0) ** 2, "bias": "none", "tol": 1e-12}
    whole = mdlearn.fit("lssvm", X, y, **given)
    ended = mdlearn.fit("lssvm", X, y, time_limit=1e-9, warm_start=whole, **given)
    assert np.array_equal(ended.dual_coef_, whole.dual_coef_)
    assert ended.certificate.objective == whole.certificate.objective


@pytest.mark.parametrize("seed", range(3))
def test_a_start_that_tells_nothing_costs_no_steps(seed):
    rng = np.random.default_rng(seed)
    X = 1e3 * rng.standard_normal((40, 8))
    y = np.where(X[:, 0] + 1e3 * rng.standard_normal(40) > 0, 1, -1)
    start = mdlearn.fit("svm", X, y, C=1e-12)
    cold, warm = (mdlearn.fit("svm", X, y, C=1e4, solver="interior", warm_start=one) for one in (None, start))
    assert warm.certificate.converged and warm.n_iter <= 1.1 * cold.n_iter


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["cd", "interior"])
def test_a_start_at_the_end_of_rounding_is_left_as_it_is(solver):
    X, y, *_ = rows()
    cold = mdlearn.fit("svm", X, y, solver=solver, tol=0.0)
    warm = mdlearn.fit("svm", X, y, solver=solver, tol=0.0, warm_start=cold)
    assert cold.certificate.gap < 1e-13 and warm.n_iter == 1
    # The value is recomputed: its last digit depends on the processor's products.
    assert warm.certificate.gap <= cold.certificate.gap + 1e-15 and np.array_equal(warm.coef_, cold.coef_)
