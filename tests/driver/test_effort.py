"""More effort is never worse: a slice of `fuzz_effort`, and what has gone wrong before."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from fuzz_effort import EFFORTS, broken, fit, looks, problem, worse
from warm_cases import rows, text

import mdlearn
from mdlearn.forms.margin import Point
from mdlearn.forms.proof import State, fit_history, judge, judge_residual
from mdlearn.solvers.base import Report
from mdlearn.solvers.interior_point.solver import Interior
from mdlearn.solvers.newton.solver import Newton


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1006))
def test_random_problems(seed):
    assert [(engine, found[0]) for engine, found in looks(seed) if found] == []


def test_kernel_values_that_rounding_has_eaten():
    name, X, y, given = problem(2024)  # they are of the size of 1e20
    models = [fit(name, X, y, max_iter=n, solver="interior", tol=1e-10, **given) for n in EFFORTS]
    assert None not in models and list(worse(models)) == []


@pytest.mark.parametrize("seed", [1, 11, 25])
def test_bounds_after_stiff_steps_are_those_of_their_multipliers(seed):
    """What the step of a stiff matrix misses is the bound's, if that is told from the step alone."""
    rng = np.random.default_rng(seed)
    X, y = 9e3 * rng.random((7, 8)), rng.integers(0, 2, 7)
    y[:2] = 0, 1
    given = {"kernel": "rbf", "gamma": 4e-9, "C": 1e-11, "lambda0": 4e4, "solver": "newton", "tol": 1e-9}
    models = [fit("uldm", X, y, max_iter=n, bias="regularized", **given) for n in (1, 2, 10)]
    assert None not in models and list(worse(models)) == []


@pytest.mark.slow
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


@pytest.mark.slow
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
    settings = {"solver": solver, "solver_options": {"epochs": 2} if "sgd" in solver else None}
    cold, warm = (fit("ldm", X, y, warm_start=one, **settings, **limit) for one in (None, start))
    assert cold.certificate.objective <= len(y)
    assert warm.certificate.objective <= start.certificate.objective * (1 + 1e-12)


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


@pytest.mark.parametrize("objective, seed", [("svm", 3), ("svm", 11), ("ldm", 2), ("ldm", 4), ("ldm", 6), ("ldm", 8)])
def test_a_tolerance_that_rounding_never_meets_ends_both_fits_alike(objective, seed):
    """Of float32 rows a gap of 1e-8 remains, whatever engines do: they do not go on until chance ends them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2, (76, 5)).astype(np.float32)
    y = X[:, 0] + rng.standard_normal(76) > 0
    cold = fit(objective, X, y, kernel="rbf", solver="cd", tol=0.0)
    warm = fit(objective, X, y, kernel="rbf", solver="cd", tol=0.0, warm_start=cold)
    assert cold.certificate.gap < 1e-7 and cold.n_iter <= 10
    assert warm.n_iter <= 1.1 * cold.n_iter


def test_a_published_end_is_not_above_w_0():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 3)) * [1.0, 1e8, 1e16]
    y = rng.integers(0, 2, 40)
    for C in (1.0, 350.0):
        given = {"kernel": "precomputed", "nu": C, "solver": "smw", "solver_options": {"stop": "step"}}
        model = fit("lsvm", A @ A.T, y, **given)
        assert model.certificate.objective <= 0.5 * C * 40 * (1 + 1e-12)


class Overstating(Newton):
    """Says of multipliers that no correction makes feasible, or a poor one, that their bound is nearer."""

    name = "overstating"

    def iterate(self, form, column, shared, options, rng):
        for report in super().iterate(form, column, shared, options, rng):
            yield report
            if isinstance(report, Report):
                point = replace(report.point, sigma=1e8 * rng.standard_normal(column.y.shape))
                yield Report(report.objective, 0.5 * (report.objective + report.lower_bound), point)


@pytest.mark.parametrize("bias", ["none", "free"])
def test_bounds_without_a_ridge_are_those_of_corrected_multipliers(bias):
    X, y, *_ = rows()
    given = {"ridge": 0.0, "alpha": 3.0, "lambda1": 0.5, "bias": bias, "tol": 0.0}
    for n in (1, 2, 3):
        honest = fit("mdlm", X, y, solver="newton", max_iter=n, **given).certificate
        told = fit("mdlm", X, y, solver=Overstating, max_iter=2 * n, **given).certificate
        assert told.lower_bound >= honest.lower_bound - 1e-12 * abs(honest.lower_bound), n
        assert np.isfinite(told.lower_bound)


def test_far_intercepts_round_the_slopes_they_are_judged_by():
    """Intercepts of 1,600 cancel a column of 1e6: what is left of their slope is rounding, and the bound stays."""
    X = np.zeros((7, 2))
    X[[0, 1, 2, 3, 5]] = [
        [0.0004475034400706978, 318728.5491209954],
        [0.04142043477700613, 1155689.7950373716],
        [-0.024093245311750097, -319713.46193740633],
        [-0.0022237839849787544, -2708549.745975384],
        [-0.030794788635362343, -896113.2810394668],
    ]
    y, weight = [0, 1, 2, 2, 0, 2, 1], [1, 2, 1, 3, 3, 2, 1]
    bounds = [
        fit(
            "mmlr", X, y, max_iter=n, sample_weight=weight, lam=9.311028625053831e-06, alpha=15.422970879931475
        ).certificate.lower_bound
        for n in (2, 20, 30, 50)
    ]
    assert np.isfinite(bounds).all() and all(b >= a - 1e-9 * abs(a) for a, b in pairwise(bounds))


@pytest.mark.slow
@pytest.mark.parametrize("seed, engine", [(5134, "interior"), (5150, "apg")])
def test_problems_that_went_wrong(seed, engine):
    """Doubts of squared losses that were not seen; a free bias, whose bounds only certificates find."""
    assert [found for _, found in looks(seed, (engine,)) if found] == []


@pytest.mark.parametrize(
    "objective, seed, settings",
    [
        ("mdlm", 2, {"lambda1": 1.0}),
        ("mdlm", 3, {"lambda1": 1.0}),
    ],
)
def test_first_order_steps_end_at_the_optimum_wherever_they_began(objective, seed, settings):
    """Slopes near the optimum are small, but the parts that they are made of are not: rounding ends both fits."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 3))
    y = np.where(X[:, 0] + rng.standard_normal(30) > 0, 1, 0)
    for dtype, scale in ((np.float64, rng.uniform(-3, 3, 3)), (np.float32, rng.uniform(-3, 3, 3))):
        A = (X * 10.0**scale).astype(dtype)
        cold, close = (fit(objective, A, y, solver=s, tol=0.0, **settings) for s in ("apg", "newton"))
        for start in (cold, close):
            warm = fit(objective, A, y, solver="apg", tol=0.0, warm_start=start, **settings)
            assert warm.n_iter <= max(30, 1.2 * cold.n_iter), dtype


def test_starts_are_not_slower_in_row_visits():
    X, y = text()
    cold = mdlearn.fit("svm", X, y, solver="cd", bias="free", tol=1e-6)
    for C in (1.0, 1.1, 3.0):
        first, again = (
            mdlearn.fit("svm", X, y, C=C, solver="cd", bias="free", warm_start=start) for start in (None, cold)
        )
        visits = [model.history[-1].row_dots or 0 for model in (first, again)]
        assert visits[1] <= 1.1 * visits[0], (C, visits)


def test_what_a_later_look_refutes_is_no_part_of_the_history():
    """The third report was taken for the last, and certified: it was not, and the loop went on."""
    values = [(5.0, 0.0), (2.0, 0.5), (1.5, 0.9), (1.6, 0.8), (1.4, 0.85)]
    states = [State(i + 1, p, d, p - d, 0.0, 0) for i, (p, d) in enumerate(values)]
    told = judge(1.3, 1.29, 0.0, False, 0.1)
    found = fit_history(states, [told], [(0.0, False)])
    assert [(one.objective, one.lower_bound) for one in found] == [
        (5.0, 0.0),
        (2.0, 0.5),
        (1.6, 0.8),
        (1.6, 0.8),
        (1.3, 1.29),
    ]
    assert found[-1].gap == told.gap and all(one.gap > told.tol for one in found[:-1])


def test_a_history_without_bounds_keeps_its_own_gaps():
    states = [State(i + 1, 1.0, -np.inf, gap, 0.0, 0) for i, gap in enumerate((0.5, 0.1, 0.01))]
    found = fit_history(states, [judge_residual(1.0, 0.01, 0.0, 1e-6)], [(0.0, False)])
    assert [one.gap for one in found] == [0.5, 0.1, pytest.approx(0.01)]


def test_the_loop_stops_at_the_first_report_that_meets_tol():
    X, y, *_ = rows()
    for C in (1.0, 1e6):
        for solver in ("interior", "cd"):
            model = mdlearn.fit("svm", X * [1.0, 1e3, 1.0, 1e-3], y > 0, C=C, solver=solver, tol=1e-3)
            gaps = [state.gap for state in model.history]
            assert gaps[-1] == model.certificate.gap <= 1e-3 < min(gaps[:-1], default=np.inf)


def test_what_is_improved_as_computed_is_the_answer_only_if_it_is_better_for_certain():
    """Rounding of a Gram matrix at C of 4e7 costs an intercept that is nearer to the optimum more than it gains."""
    X, place = np.zeros((30, 5)), {2: 0, 12: 0, 18: 0, 21: 0, 28: 3, 10: 4, 19: 4}
    X[list(place), list(place.values())] = 1.0
    y = [letter == "b" for letter in "abbabbbaabbaaaabaaabaaabbbaaab"]
    weight = [55.16, 3.949, 0.7418, 145.7, 10.62, 0.002178, 46.53, 118200, 0.4355, 195000, 0.003119, 0.0003105, 130800]
    weight += [15880, 354.5, 0.0121, 47.3, 0.9492, 4.261e-05, 0.1342, 4.016e-06, 62.91, 45600, 9.575e-06, 807500]
    weight += [5.126e-06, 59120, 2.507e-05, 414.9, 0.01309]
    given = {"sample_weight": weight, "kernel": laplace, "C": 4.16e7, "bias": "free", "solver": "interior", "tol": 1e-9}
    found = [fit("svm", X, y, max_iter=n, **given).certificate for n in (5, 20, 50)]
    for less, more in pairwise(found):
        assert more.objective <= less.objective * (1 + 1e-9) and more.lower_bound >= less.lower_bound * (1 - 1e-9)


def laplace(A, B):
    """exp(-|a - b|_1)."""
    return np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2))


def words(k, dtype=np.float64, seed=0):
    """CSR rows with few entries each, of sizes up to 1000; k classes."""
    rng = np.random.default_rng(seed)
    X = sp.random(400, 300, density=0.05, random_state=rng, format="csr")
    X.data = 10.0 ** rng.uniform(0, 3, X.nnz)
    y = np.argmax(X @ rng.standard_normal((300, k)) + 100.0 * rng.standard_normal((400, k)), axis=1)
    return X.astype(dtype), y


@pytest.mark.parametrize(
    "objective", ["ww", "l2lr", "mlr", pytest.param("mmlr", marks=pytest.mark.slow), "svm", "lsvm"]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_text_of_several_classes_gets_better_with_more_reports(objective, dtype):
    X, y = words(4, dtype)
    models = [fit(objective, X, y, max_iter=n, tol=1e-12) for n in (1, 5, 20, 60)]
    zero = fit(objective, X.astype(np.float64), y, time_limit=0.0).certificate.objective
    values = [model.certificate.objective for model in models]
    bounds = [model.certificate.lower_bound for model in models]
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise([zero, *values]))
    assert all(after >= before - 1e-9 * abs(before) for before, after in pairwise(bounds) if np.isfinite(before))


@pytest.mark.parametrize(
    "objective, seed, settings",
    [
        ("uldm", 416, {"solver": "apg", "C": 315.0, "lambda0": 0.1786}),
        ("ldm", 6, {"solver": "cd", "C": 5700.0, "lambda1": 0.2, "lambda2": 3.8}),
        ("ww", 15, {"C": 70.0}),
    ],
)
def test_an_engine_whose_own_points_get_worse_keeps_the_best(objective, seed, settings):
    """Points of ww go from 7,307 to 13,040 with the second report, those of cd from 157,369 to 752,987."""
    if objective == "ww":
        X, y = words(4, np.float32, seed)
    else:
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 3)) * 10.0 ** rng.uniform(-3, 5, 3)
        y = X[:, 0] / np.abs(X[:, 0]).max() + 0.3 * rng.standard_normal(40) > 0
    found = [fit(objective, X, y, max_iter=n, tol=1e-10, **settings).certificate for n in (1, 2, 3, 4, 10, 20)]
    for less, more in pairwise(found):
        assert more.objective <= less.objective + 1e-9 * abs(less.objective)
        assert more.lower_bound >= less.lower_bound - 1e-9 * abs(less.lower_bound)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_precomputed_matrix_is_not_left_above_w_0(scale):
    X, y, *_ = rows()
    A = scale * np.c_[X, 1e6 * np.ones(len(y))]
    for objective in ("svm", "ldm", "lsvm"):
        for solver in ("auto", "cd", "interior"):
            model = fit(objective, A @ A.T, y, kernel="precomputed", solver=solver, max_iter=20)
            assert model is None or model.certificate.objective <= len(y) * (1 + 1e-9), (objective, solver)


def test_l3svm_with_the_squared_hinge_is_not_above_w_0():
    """Features of tails so heavy that projections differ by 1e9."""
    rng = np.random.default_rng(0)
    X = rng.standard_cauchy((150, 4)) ** 3
    y = rng.integers(0, 2, 150)
    for solver in ("auto", "newton", "interior", "cd"):
        model = fit("l3svm", X, y, loss="squared_hinge", solver=solver, max_iter=30)
        zero = fit("l3svm", X, y, loss="squared_hinge", time_limit=0.0).certificate.objective
        assert model is None or model.certificate.objective <= zero * (1 + 1e-9), solver


def test_a_bound_where_squares_of_multipliers_are_too_small_for_a_number():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), rng.integers(0, 2, 40)
    given = {"kernel": "rbf", "gamma": 0.1, "C": 1e-300, "bias": "free"}
    early, best = fit("lssvm", X, y, solver="newton", max_iter=1, **given), fit("lssvm", X, y, solver="direct", **given)
    assert 0.0 < early.certificate.lower_bound <= best.certificate.objective * (1 + 1e-12)
