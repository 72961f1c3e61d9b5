"""More effort is never worse: a slice of `fuzz_effort`, and what has gone wrong before."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz_effort import EFFORTS, broken, fit, in_blocks, looks, problem, worse
from warm_cases import rows, text

import mdlearn
from mdlearn.forms.margin import Point
from mdlearn.solvers.base import Report
from mdlearn.solvers.interior import Interior


@pytest.mark.parametrize("seed", range(1000, 1006))
def test_random_problems(seed):
    assert [(engine, found[0]) for engine, found in looks(seed) if found] == []


def test_kernel_values_that_rounding_has_eaten():
    name, X, y, given = problem(2024)  # they are of the size of 1e20
    models = [fit(name, X, y, max_iter=n, solver="interior", tol=1e-10, **given) for n in EFFORTS]
    assert None not in models and list(worse(models)) == []


@pytest.mark.parametrize("solver", ["cd", "interior"])
@pytest.mark.parametrize("objective", ["svm", "ldm", "lssvm", "lsvm"])
@pytest.mark.parametrize("seed", [5, 8, 10])
def test_bounds_that_rounding_takes_back_do_not_displace_certain_ones(seed, objective, solver):
    """Multipliers grow from report to report, and so does what a Gram matrix of such entries leaves open."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.standard_normal((40, 2)), np.full(40, 10.0 ** rng.uniform(5, 8))]
    y = np.where(X[:, 0] + rng.standard_normal(40) > 0, 1, -1)
    for bias in ("regularized", "free"):
        given = {"kernel": "precomputed", "solver": solver, "bias": bias, "tol": 1e-10}
        models = [fit(objective, X @ X.T, y, max_iter=n, **given) for n in EFFORTS]
        assert None not in models and list(worse(models)) == []


@pytest.mark.parametrize("seed", range(1000, 1016))
def test_random_problems_over_row_blocks(seed):
    assert [(engine, found[0]) for engine, found in in_blocks(seed) if found] == []


@pytest.mark.parametrize(
    "objective, settings",
    [
        ("uldm", {"solver": "apg"}),
        ("ldm", {"solver": "cd", "C": 100.0, "lambda1": 1000.0}),
        ("ldm", {"solver": "sgd", "C": 100.0}),
        ("ldm", {"solver": "asgd", "C": 100.0}),
        ("ww", {}),
        ("l2lr", {"lam": 1e-5}),
        ("mlr", {"lam": 1e-5}),
        ("mmlr", {"lam": 1e-5}),
        ("mdlm", {"beta": 0.01}),
        ("svm", {"bias": "free", "kernel": "rbf", "solver": "cd"}),
        ("lsvm", {"solver": "smw", "nu": 100.0}),
    ],
    ids=str,
)
@pytest.mark.parametrize("k", [2, 4])
def test_objectives_never_rise_and_bounds_never_fall(objective, settings, k):
    X, y, *_ = rows(m=60, d=5, k=k)
    X = X * 10.0 ** np.arange(-2, 3)
    settings = {"tol": 1e-10, **settings}
    models = [fit(objective, X, y, max_iter=n, **settings) for n in EFFORTS]
    assert None not in models
    assert list(worse(models)) == [] and list(broken(models, None)) == []


class Wandering(Interior):
    """Hands in good points and good bounds, never of the same report, and ends at the worst of all."""

    name = "wandering"

    def iterate(self, form, column, shared, options, rng):
        for report in super().iterate(form, column, shared, options, rng):
            if not isinstance(report, Report):
                yield report
                continue
            point = report.point
            far = Point(point.beta, point.sigma, 1e3 * np.ones(form.features.width), 1e3)
            near = Point(0.0 * point.beta, 0.0 * point.sigma, point.coef, point.intercept)
            yield Report(report.objective, -1e300, near)
            yield Report(1e300, report.lower_bound, far)


def test_objective_and_bound_may_come_from_two_points():
    X, y, *_ = rows()
    model = mdlearn.fit("svm", X, y, solver=Wandering, tol=1e-8)
    best = mdlearn.fit("svm", X, y, solver="interior", tol=1e-12)
    assert model.certificate.converged and model.certificate.objective <= best.certificate.objective * (1 + 1e-8)
    assert np.allclose(model.dual_coef_ @ X, model.coef_, rtol=0, atol=1e-9 * np.abs(model.coef_).max())


@pytest.mark.parametrize("limit", [{"max_iter": 1}, {"time_limit": 1e-9}, {"callback": lambda state: True}], ids=list)
@pytest.mark.parametrize("solver", ["sgd", "asgd", "cd", "interior"])
def test_an_early_end_is_not_above_w_0_nor_above_the_start(solver, limit):
    X, y, *_ = rows()
    X = X * 1e4
    start = mdlearn.fit("ldm", X, y, solver="interior", tol=1e-4)
    settings = {"solver": solver, "solver_options": {"eta0": 1e-3, "epochs": 2} if "sgd" in solver else None}
    cold, warm = (fit("ldm", X, y, warm_start=one, **settings, **limit) for one in (None, start))
    assert cold is None or cold.certificate.objective <= len(y)
    assert warm is None or warm.certificate.objective <= start.certificate.objective * (1 + 1e-12)


@pytest.mark.parametrize(
    "objective, settings",
    [
        ("svm", {"solver": "cd", "bias": "free", "kernel": "rbf"}),
        ("svm", {"solver": "interior"}),
        ("ldm", {"solver": "cd"}),
        ("ldm", {"solver": "interior", "kernel": "rbf", "gamma": 0.5}),
        ("lsvm", {"solver": "newton"}),
        ("lsvm", {"solver": "smw"}),
        ("l2lr", {"solver": "newton"}),
        ("lssvm", {"solver": "direct"}),
        ("uldm", {"solver": "direct"}),
        ("mdlm", {"ridge": 0.01, "beta": 0.01}),
        ("mdlm", {"ridge": 0.01, "multiclass": "ovo"}),
        ("mmlr", {"lam": 0.1}),
    ],
    ids=str,
)
def test_a_start_that_meets_the_tolerance_is_the_answer(objective, settings):
    X, y, *_ = rows(k=3 if objective in ("mmlr", "mdlm") else 2)
    cold = mdlearn.fit(objective, X, y, tol=1e-7, **settings)
    seen = []
    warm = mdlearn.fit(objective, X, y, tol=1e-6, warm_start=cold, callback=seen.append, **settings)
    parts = len(cold.certificate.parts) or 1
    assert warm.certificate.converged and warm.n_iter == parts == len(seen)
    assert warm.certificate.objective <= cold.certificate.objective + 1e-12 * abs(cold.certificate.objective)
    assert np.array_equal(warm.intercept_, cold.intercept_)


def test_starts_are_not_slower_in_row_visits():
    X, y = text()
    cold = mdlearn.fit("svm", X, y, solver="cd", bias="free", tol=1e-6)
    for C in (1.0, 1.1, 3.0):
        first, again = (
            mdlearn.fit("svm", X, y, C=C, solver="cd", bias="free", warm_start=start) for start in (None, cold)
        )
        visits = [model.history[-1].row_dots or 0 for model in (first, again)]
        assert visits[1] <= 1.1 * visits[0], (C, visits)


def test_the_loop_stops_at_the_first_report_that_meets_tol():
    X, y, *_ = rows()
    for C in (1.0, 1e6):
        for solver in ("interior", "cd"):
            model = mdlearn.fit("svm", X * [1.0, 1e3, 1.0, 1e-3], y > 0, C=C, solver=solver, tol=1e-3)
            gaps = [state.gap for state in model.history]
            assert gaps[-1] == model.certificate.gap <= 1e-3 < min(gaps[:-1], default=np.inf)
