"""Narrow rows of the hybrid solver: few dense columns, Newton steps from 0 without a sweep."""

from __future__ import annotations

import platform
import subprocess
import sys
from dataclasses import replace
from itertools import chain, islice

import numpy as np
import pytest
import scipy.sparse as sp
from hybrid_cases import OBJECTIVES, SHARP, entropy, optimum, sample

import mdlearn
from mdlearn._solvers import narrow_logistic
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm, LogisticTerm
from mdlearn.forms.margin import Column
from mdlearn.solvers.hybrid import loss_column, narrow, solver
from mdlearn.solvers.hybrid.loss_column import LossColumn, LossColumnParts
from mdlearn.solvers.hybrid.narrow import NARROW_SAMPLE, NarrowHinges, NarrowLogisticSteps

POWERS = {"hinge": 1, "squared": 2}


def column_of(kind, m, d, variance=0.0, mean=0.0, weight=0.7, seed=0, bias="regularized"):
    """A loss column with weights that differ, one of them 0, and its parts."""
    rng = np.random.default_rng(seed)
    X, counts = rng.standard_normal((m, d)) + 1.0, rng.uniform(0.5, 2.0, m)
    counts[3] = 0.0
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(m) > 1.0, 1.0, -1.0)
    term = LogisticTerm(weight, SHARP) if kind == "logistic" else HingeTerm(weight, power=POWERS[kind])
    column = Column(y, counts, variance, mean, (term,))
    rows = AffineRows(DenseRows(X), True)
    parts = LossColumnParts(rows, (X * X).sum(axis=1), bias, kind != "logistic")
    return LossColumn(column, rows, parts.squares, parts.stored), parts, np.hstack([X, np.ones((m, 1))])


def primal(problem, kind, R, w):
    column = problem.column
    z, c = column.y * (R @ w), column.counts
    mean = c @ z / c.sum()
    short = np.maximum(0.0, 1.0 - z)
    loss = column.terms[0].weight * (short if kind == "hinge" else short**2)
    return 0.5 * w @ w + column.variance * (c @ (z - mean) ** 2 / c.sum()) - column.mean * mean + c @ loss


def dual(problem, kind, R, beta, sigma):
    """Value of multipliers of the loss and of the variance, by the definition."""
    column = problem.column
    c, weight = column.counts, column.terms[0].weight
    sigma = sigma - c * (sigma.sum() / c.sum())
    w = R.T @ (column.y * (beta + sigma + column.mean * c / c.sum()))
    used = c > 0
    value = beta.sum() - 0.5 * w @ w
    if kind == "squared":
        value -= (beta[used] ** 2 / c[used]).sum() / (4.0 * weight)
    else:
        assert (beta >= 0).all() and (beta <= weight * c).all()
    if column.kappa > 0:
        value -= 0.5 * (sigma[used] ** 2 / c[used]).sum() / column.kappa
    return value


def smooth_primal(problem, R, w, bias):
    """Objective of a logistic column at coefficients, by the definition."""
    column, held = problem.column, w[:-1] if bias == "free" else w
    z, c = column.y * (R @ w), column.counts
    loss = column.terms[0].weight * np.logaddexp(0.0, SHARP * (1.0 - z)) / SHARP
    return 0.5 * held @ held - column.mean * (c @ z) / c.sum() + c @ loss


def smooth_dual(problem, R, beta, bias):
    """Value of its multipliers, which have to balance beside a free bias."""
    column = problem.column
    c, caps = column.counts, column.terms[0].weight * column.counts
    assert (beta >= 0).all() and (beta <= caps).all()
    w, used = R.T @ (column.y * (beta + column.mean * c / c.sum())), c > 0
    if bias == "free":
        assert abs(w[-1]) <= 1e-12 * np.abs(beta).sum()
        w = w[:-1]
    p = beta[used] / caps[used]
    return beta.sum() - caps[used] @ (entropy(p) + entropy(1.0 - p)) / SHARP - 0.5 * w @ w


@pytest.mark.parametrize("bias", ["regularized", "free"])
@pytest.mark.parametrize("mean", [0.0, 2.0])
@pytest.mark.parametrize("m, d, weight", [(61, 4, 0.7), (64, 21, 50.0), (30, 40, 0.7), (900, 5, 0.7), (7001, 3, 9.0)])
def test_every_place_of_logistic_losses_states_its_own_objective_and_bound(bias, mean, m, d, weight):
    """Objective, bound and what coefficients are made of, at all places; the gap closes within 20 of them."""
    problem, parts, R = column_of("logistic", m, d, mean=mean, weight=weight, bias=bias)
    newton = NarrowLogisticSteps(problem, parts.narrow, bias == "free")
    for _ in zip(range(20), newton.steps()):
        report = newton.report()
        w = np.append(report.point.coef, report.point.intercept)
        scale = abs(report.objective)
        assert report.objective == pytest.approx(smooth_primal(problem, R, w, bias), abs=1e-11 * scale)
        if report.lower_bound > -np.inf:
            value = smooth_dual(problem, R, report.point.beta[0], bias)
            assert report.lower_bound == pytest.approx(value, abs=1e-10 * (scale + abs(value)))
        held = slice(None, -1) if bias == "free" else slice(None)
        np.testing.assert_allclose((R.T @ report.point.alpha)[held], w[held], rtol=0, atol=1e-9 * np.abs(w).max())
        if newton.gap <= 1e-10 * scale:
            break
    assert -1e-12 * scale <= newton.gap <= 1e-10 * scale


@pytest.mark.parametrize("bias", ["regularized", "free"])
def test_the_bound_of_a_logistic_step_does_not_lag(bias):
    """Multipliers that a step leads to say more than those at its end, whose gap is half of the squared slope."""
    problem, parts, R = column_of("logistic", 120, 6, weight=5.0, bias=bias)
    newton, column, seen = NarrowLogisticSteps(problem, parts.narrow, bias == "free"), problem.column, 0
    newton.most_steps = 1
    for _ in zip(range(6), newton.steps()):
        point = newton.report().point
        w, held = np.append(point.coef, point.intercept), slice(None, -1) if bias == "free" else slice(None)
        p = 1.0 / (1.0 + np.exp(-SHARP * (1.0 - column.y * (R @ w))))
        slope = -R.T @ (column.y * problem.caps * p)
        slope[held] += w[held]
        if 1e-10 < newton.gap / newton.objective < 1e-2:
            seen += 1
            assert newton.gap < 0.25 * 0.5 * slope @ slope
    assert seen >= 2


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("given", [{}, {"a": 3.0, "C": 0.05}, {"C": 500.0}])
@pytest.mark.parametrize("tol", [1e-2, 1e-9])
def test_logistic_fits_come_to_the_optimum_in_compiled_steps(bias, given, tol, monkeypatch):
    monkeypatch.setattr(solver.newton_start, "logistic_newton_start", None)
    X, y = sample(400, 5)
    model = mdlearn.fit(OBJECTIVES["logistic"], X, y, bias=bias, tol=tol, solver="hybrid", **given)
    best, f = optimum("logistic", X, y, bias, **given)
    assert model.certificate.converged and model.certificate.lower_bound <= best + 1e-12 * abs(best)
    assert best - 1e-11 * abs(best) <= model.certificate.objective <= best + tol * abs(best) * (1 + 1e-6)
    if tol < 1e-8:
        assert model.decision_function(X) == pytest.approx(f, abs=1e-3 * np.abs(f).max())


@pytest.mark.parametrize("bias", ["regularized", "free"])
def test_logistic_steps_begin_at_a_start(bias):
    """Objective and dual coefficients are those of the start at first; another weight's optimum is near."""
    problem, parts, R = column_of("logistic", 300, 5, mean=2.0, bias=bias)
    newton = NarrowLogisticSteps(problem, parts.narrow, bias == "free")
    for _ in zip(range(9), newton.steps()):
        pass
    start, column = newton.report().point, problem.column
    near = replace(column, terms=(replace(column.terms[0], weight=0.71),), start=start)
    again = NarrowLogisticSteps(LossColumn(near, parts.rows, parts.squares, parts.stored), parts.narrow, bias == "free")
    w, held = np.append(start.coef, start.intercept), slice(None, -1) if bias == "free" else slice(None)
    assert again.objective == pytest.approx(smooth_primal(again.problem, R, w, bias), rel=1e-12)
    for _ in zip(range(3), chain([0], again.steps())):
        point = again.report().point
        w = np.append(point.coef, point.intercept)
        np.testing.assert_allclose((R.T @ point.alpha)[held], w[held], rtol=0, atol=1e-9 * np.abs(w).max())
    assert again.gap <= 1e-10 * abs(again.objective)


@pytest.mark.parametrize("m, stride", [(NARROW_SAMPLE * 8 * 2 - 8, 1), (NARROW_SAMPLE * 8 * 3, 3)])
def test_matrices_of_logistic_losses_come_from_some_rows_at_first(m, stride, monkeypatch):
    """Every so many-th row, where there are many for each column; steps lead to the optimum all the same."""
    strides, made = [], narrow_logistic.NarrowLogistic

    def noted(*given):
        strides.append(given[-2])
        return made(*given)

    monkeypatch.setattr(narrow.narrow_logistic, "NarrowLogistic", noted)
    problem, parts, _ = column_of("logistic", m, 7)
    newton = NarrowLogisticSteps(problem, parts.narrow, False)
    first = newton.gap
    assert strides == [stride]
    assert [1 for _ in zip(range(20), newton.steps())] and newton.gap <= 1e-12 * first


@pytest.mark.parametrize("kind", POWERS)
@pytest.mark.parametrize("variance, mean", [(0.0, 0.0), (0.0, 2.0), (40.0, 3.0)])
@pytest.mark.parametrize("m, d", [(61, 4), (64, 21), (30, 40), (900, 5)])
def test_every_place_states_its_own_objective_and_bound(kind, variance, mean, m, d):
    """Objective, bound and what coefficients are made of, at all places, sampled second derivatives included."""
    problem, parts, R = column_of(kind, m, d, variance, mean)
    newton, column = NarrowHinges(problem, parts.narrow), problem.column
    for _ in zip(range(40), newton.steps()):
        report = newton.report()
        w = np.append(report.point.coef, report.point.intercept)
        scale = abs(report.objective) + abs(report.lower_bound)
        assert report.objective == pytest.approx(primal(problem, kind, R, w), abs=1e-11 * scale)
        value = dual(problem, kind, R, report.point.beta[0], report.point.sigma)
        assert report.lower_bound == pytest.approx(value, abs=1e-10 * scale)
        np.testing.assert_allclose(R.T @ report.point.alpha, w, rtol=0, atol=1e-9 * np.abs(w).max())
        if report.objective - report.lower_bound <= 1e-9 * abs(report.objective):
            break
    assert report.objective - report.lower_bound <= 1e-9 * abs(report.objective)
    assert column.relative_gap(newton.objective, newton.lower_bound) >= -1e-12


def rare_and_heavy(large, weights):
    """Columns of which few rows have entries, and large ones, beside a few of all rows."""
    rng, m, rare = np.random.default_rng(0), 7200, 4
    X = np.zeros((m, rare))
    X[rng.permutation(m)[: 40 * rare], np.arange(40 * rare) % rare] = large
    X = np.hstack([X, rng.standard_normal((m, 3))])
    w = rng.standard_normal(rare + 3) * np.repeat([1.0 / large, 1.0], [rare, 3])
    y = np.where(X @ w + rng.standard_normal(m) > 0, 1.0, -1.0)
    column, rows = Column(y, np.ones(m), 0.0, 0.0, weights), AffineRows(DenseRows(X), True)
    parts = LossColumnParts(rows, (X * X).sum(axis=1), "regularized", isinstance(weights[0], HingeTerm))
    return LossColumn(column, rows, parts.squares, parts.stored), parts.narrow


def test_a_sample_that_misses_heavy_rows_grows():
    """Steps by its matrix would zigzag."""
    newton = NarrowHinges(*rare_and_heavy(10.0, (HingeTerm(1.0),))).newton
    taken = 0
    while taken < 60 and not newton.objective - newton.bound <= 1e-3 * newton.objective:
        taken += newton.steps(1, 0.0, 0.0)
    assert taken <= 30  # 7; 232 without


def test_logistic_steps_leave_a_sample_that_misses_heavy_rows():
    """Its steps are short."""
    newton = NarrowLogisticSteps(*rare_and_heavy(100.0, (LogisticTerm(100.0),)), False).newton
    taken = 0
    while taken < 60 and not newton.objective - newton.bound <= 1e-3 * newton.objective:
        taken += newton.steps(1, 0.0, 0.0)
    assert taken <= 20  # 4; more than 400 without


def test_the_matrix_keeps_its_digits_beside_a_large_mean():
    problem, _, R = column_of("hinge", 100, 3, 5.0, 1.0)
    X = R[:, :3] + 1e6
    rows = loss_column.NarrowRows(AffineRows(DenseRows(X), True))
    A, L, pulled = rows.quadratic(problem.column)
    column, c = problem.column, problem.column.counts
    S = column.y[:, None] * np.hstack([X, np.ones((100, 1))]).astype(np.longdouble)
    v = c @ S / c.sum()
    exact = np.eye(4) + column.kappa * ((S - v).T * c) @ (S - v)
    np.testing.assert_allclose(A, exact.astype(float), rtol=1e-12)
    np.testing.assert_allclose(np.tril(L) @ np.tril(L).T, A, rtol=1e-12)
    np.testing.assert_allclose(pulled, (column.mean * v).astype(float), rtol=1e-12)


@pytest.mark.parametrize("kind", ["hinge", "logistic"])
def test_columns_that_share_rows_have_numbers_of_their_own(kind):
    """Two columns in turns come to the places of either alone."""
    first, parts, _ = column_of(kind, 200, 5)
    second = LossColumn(replace(first.column, y=-first.y), parts.rows, parts.squares, parts.stored)

    def begun(problem, rows):
        return NarrowLogisticSteps(problem, rows, False) if kind == "logistic" else NarrowHinges(problem, rows)

    alone = [begun(problem, loss_column.NarrowRows(parts.rows)) for problem in (first, second)]
    for newton in alone:
        list(islice(newton.steps(), 4))
    together = [begun(problem, parts.narrow) for problem in (first, second)]
    list(islice(zip(*(newton.steps() for newton in together), strict=False), 4))
    for one, other in zip(alone, together, strict=True):
        for a, b in zip(one.point(), other.point(), strict=True):
            np.testing.assert_array_equal(a, b)


COUNTED_FAULTS = """
import resource
import numpy as np, mdlearn
rng = np.random.default_rng(0)
X = rng.uniform(0.0, 1.0, ({m}, {d}))
y = np.where((X - 0.5) @ rng.standard_normal({d}) + 0.3 * rng.standard_normal({m}) > 0, 1, -1)
faults = []
for _ in range(9):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    mdlearn.fit({objective!r}, X, y, solver="hybrid", tol=1e-3)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(sorted(faults)[4])
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="an allocator of its own rules")
@pytest.mark.parametrize("objective", ["svm", "ldm"])
@pytest.mark.parametrize("m, d", [(8124, 22), (20000, 5)])
def test_fits_one_after_the_other_keep_their_memory(objective, m, d):
    """A fit does not return to the system what the next one asks for."""
    code = COUNTED_FAULTS.format(m=m, d=d, objective=objective)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    # The pages of numbers that steps keep of every row alone are about 240 and 590.
    assert int(done.stdout) < m * 8 * 8 / 4096


@pytest.mark.parametrize("order, kind", [("C", np.float64), ("F", np.float64), ("C", np.float32)])
@pytest.mark.parametrize("m", [8, 13, 67])
def test_rows_lie_column_by_column(order, kind, m):
    X = np.random.default_rng(0).standard_normal((2 * m, 6))[::2].astype(kind, order=order)
    T = loss_column.NarrowRows(AffineRows(DenseRows(X), True)).T
    assert T.shape[1] % 8 == 0
    np.testing.assert_array_equal(T[:, :m], np.vstack([X.T, np.ones(m)]))
    assert not T[:, m:].any()


@pytest.mark.parametrize("loss", ["hinge", "squared"])
@pytest.mark.parametrize("given", [{"v": 0.0}, {"v": 20.0, "a": 3.0, "C": 0.2}, {"v": 300.0, "a": 1.0, "C": 5.0}])
@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("tol", [1e-2, 1e-9])
def test_fits_come_to_the_optimum_without_a_sweep(loss, given, bias, tol, monkeypatch):
    monkeypatch.setattr(solver, "HybridDescent", None)
    X, y = sample()
    model = mdlearn.fit(OBJECTIVES[loss], X, y, bias=bias, tol=tol, solver="hybrid", **given)
    best, _ = optimum(loss, X, y, bias, **given)
    assert model.certificate.converged
    assert best * (1 - 1e-9) <= model.certificate.objective <= best + tol * abs(best) * (1 + 1e-6)


@pytest.mark.parametrize("name, value", [("NARROW_COLUMNS", 4), ("NARROW_ENTRIES", 304)])
def test_rows_are_narrow_up_to_a_size(name, value, monkeypatch):
    problem, _, _ = column_of("hinge", 61, 4)
    assert loss_column.suits_narrow_loss_column(problem.rows)
    monkeypatch.setattr(loss_column, name, value)
    assert not loss_column.suits_narrow_loss_column(problem.rows)


@pytest.mark.parametrize("name, value", [("SMOOTH_NARROW_COLUMNS", 70), ("WHOLE_BLOCK_ENTRIES", 8519)])
def test_more_columns_are_narrow_for_smooth_losses_over_one_block(name, value, monkeypatch):
    rows = column_of("logistic", 120, 70)[0].rows
    assert loss_column.suits_narrow_loss_column(rows, smooth=True) and not loss_column.suits_narrow_loss_column(rows)
    monkeypatch.setattr(loss_column, name, value)
    assert not loss_column.suits_narrow_loss_column(rows, smooth=True)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("C", [0.02, 50.0])
@pytest.mark.parametrize("m, d", [(60, 130), (400, 90)])
def test_logistic_fits_over_small_blocks_of_many_columns_are_compiled_steps(bias, C, m, d, monkeypatch):
    monkeypatch.setattr(solver.newton_start, "logistic_newton_start", None)
    X, y = sample(m, d)
    model = mdlearn.fit(OBJECTIVES["logistic"], X, y, C=C, bias=bias, tol=1e-9, solver="hybrid")
    best, _ = optimum("logistic", X, y, bias, C=C)
    assert model.certificate.converged and model.certificate.lower_bound <= best + 1e-11 * abs(best)
    assert best - 1e-11 * abs(best) <= model.certificate.objective <= best + 1e-9 * abs(best) * (1 + 1e-6)


@pytest.mark.parametrize("kind, index", [(np.float64, np.int32), (np.float32, np.int64)])
def test_columns_of_csr_rows_are_those_of_dense_ones(kind, index):
    X = sp.random(61, 5, 0.4, random_state=0).toarray().astype(kind)
    A = sp.csr_matrix(X)
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    sparse, dense = AffineRows(CsrRows(A), True), AffineRows(DenseRows(X), True)
    assert loss_column.suits_narrow_loss_column(sparse)
    assert not loss_column.suits_narrow_loss_column(AffineRows(CsrRows(sp.csr_matrix(np.eye(5))), True))
    np.testing.assert_array_equal(loss_column.NarrowRows(sparse).T, loss_column.NarrowRows(dense).T)


@pytest.mark.parametrize("loss", OBJECTIVES)
def test_narrow_csr_rows_of_many_entries_take_compiled_steps(loss, monkeypatch):
    monkeypatch.setattr(solver, "HybridDescent", None)
    monkeypatch.setattr(solver, "SemismoothNewton", None)
    for name in ("SemismoothNewton", "SmoothNewton"):
        monkeypatch.setattr(solver.newton_start, name, None)
    X, y = sample()
    best, _ = optimum(loss, X, y, "regularized")
    model = mdlearn.fit(OBJECTIVES[loss], sp.csr_matrix(X), y, bias="regularized", tol=1e-9, solver="hybrid", C=1.0)
    assert model.certificate.converged
    assert model.certificate.objective == pytest.approx(best, rel=2e-9)


@pytest.mark.parametrize("kind", POWERS)
@pytest.mark.parametrize("variance, mean", [(0.0, 2.0), (40.0, 3.0)])
def test_steps_on_hinges_begin_at_a_start(kind, variance, mean):
    """The place before the first step is the start, near the optimum of a weight that hardly differs."""
    problem, parts, R = column_of(kind, 200, 5, variance, mean)
    newton, column = NarrowHinges(problem, parts.narrow), problem.column
    for _ in zip(range(30), newton.steps()):
        pass
    near = replace(column, terms=(replace(column.terms[0], weight=0.7007),), start=newton.report().point)
    again = NarrowHinges(LossColumn(near, parts.rows, parts.squares, parts.stored), parts.narrow)
    assert again.gap <= 0.1 * abs(again.objective)
    for taken in chain([0], again.steps()):
        report = again.report()
        w = np.append(report.point.coef, report.point.intercept)
        if not taken:
            np.testing.assert_array_equal(w[:-1], near.start.coef)
        assert report.objective == pytest.approx(primal(again.problem, kind, R, w), rel=1e-11)
        value = dual(again.problem, kind, R, report.point.beta[0], report.point.sigma)
        assert report.lower_bound == pytest.approx(value, abs=1e-10 * (abs(value) + report.objective))
        np.testing.assert_allclose(R.T @ report.point.alpha, w, rtol=0, atol=1e-9 * np.abs(w).max())
        if report.objective - report.lower_bound <= 1e-9 * abs(report.objective):
            break
    assert report.objective - report.lower_bound <= 1e-9 * abs(report.objective)


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_a_path_over_narrow_rows_is_compiled_steps_alone(loss, monkeypatch):
    monkeypatch.setattr(solver, "SemismoothNewton", None)
    monkeypatch.setattr(solver.newton_start, "warm_newton_start", None)
    X, y = sample()
    grid = {"C": [0.1, 1.0, 10.0]}
    path = mdlearn.fit_path(OBJECTIVES[loss], X, y, grid, bias="regularized", tol=1e-9, solver="hybrid")
    for C, model in zip(grid["C"], path):
        best, _ = optimum(loss, X, y, "regularized", C=C)
        assert model.certificate.objective == pytest.approx(best, rel=2e-9)


def test_a_start_is_not_begun_from_zero():
    X, y = sample()
    first = mdlearn.fit("svm", X, y, tol=1e-10, solver="hybrid")
    again = mdlearn.fit("svm", X, y, tol=1e-9, solver="hybrid", warm_start=first)
    assert len(again.history) == 1 and again.certificate.converged


@pytest.mark.parametrize("kind", ["hinge", "squared", "logistic"])
def test_steps_go_on_until_the_gap_meets_tol(kind):
    problem, parts, _ = column_of(kind, 300, 8, weight=5.0)
    if kind == "logistic":
        newton = NarrowLogisticSteps(problem, parts.narrow, False, tol=1e-3)
    else:
        newton = NarrowHinges(problem, parts.narrow, tol=1e-3)
    gap = problem.column.relative_gap
    assert gap(newton.objective, newton.lower_bound) > 1e-2
    next(newton.steps())
    assert gap(newton.objective, newton.lower_bound) <= 1e-3
    # Steps on squared hinges find all free rows at once.
    assert kind == "squared" or gap(newton.objective, newton.lower_bound) > 1e-9
