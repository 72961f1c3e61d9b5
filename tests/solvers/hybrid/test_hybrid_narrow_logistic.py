"""Narrow rows of the hybrid solver under logistic losses: Newton steps in compiled code, and their bounds."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
import scipy.sparse as sp
from hybrid_cases import OBJECTIVES, SHARP, column_of, entropy, optimum, rare_and_heavy, sample
from pairwise import pairs_first

import mdlearn
from mdlearn._solvers import narrow_logistic
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.forms.losses import LogisticTerm
from mdlearn.solvers.hybrid import loss_column, narrow, solver
from mdlearn.solvers.hybrid.loss_column import LossColumn, LossColumnParts
from mdlearn.solvers.hybrid.narrow import NARROW_SAMPLE, NarrowLogisticSteps


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
@pytest.mark.parametrize(
    "m, d, weight",
    [(61, 4, 0.7), (64, 21, 50.0), (30, 40, 0.7), (900, 5, 0.7), (7001, 3, 9.0), (300, 33, 0.7), (1200, 35, 50.0)],
)
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
        strides.append(given[-4])
        return made(*given)

    monkeypatch.setattr(narrow.narrow_logistic, "NarrowLogistic", noted)
    problem, parts, _ = column_of("logistic", m, 7)
    newton = NarrowLogisticSteps(problem, parts.narrow, False)
    first = newton.gap
    assert strides == [stride]
    assert [1 for _ in zip(range(20), newton.steps())] and newton.gap <= 1e-12 * first


@pytest.mark.parametrize("d, iterated", [(30, False), (31, True), (60, True)])
def test_a_factor_of_logistic_losses_over_many_columns_lasts(d, iterated, monkeypatch):
    """Steps by iterations need the more of it the more columns there are, and end where those of matrices do."""
    prices, made = [], narrow_logistic.NarrowLogistic

    def noted(*given):
        prices.append(given[-2])
        return made(*given)

    monkeypatch.setattr(narrow.narrow_logistic, "NarrowLogistic", noted)
    problem, parts, _ = column_of("logistic", 700, d, weight=5.0)
    ends = []
    for columns in (narrow.ITERATED_COLUMNS, 1000):
        monkeypatch.setattr(narrow, "ITERATED_COLUMNS", columns)
        newton = NarrowLogisticSteps(problem, parts.narrow, False)
        assert [1 for _ in zip(range(20), newton.steps())]
        ends.append(newton.objective)
    assert (prices[0] > 5.0) == iterated and prices[1] == 0.0
    assert ends[0] == pytest.approx(ends[1], rel=1e-12)


@pytest.mark.parametrize("C, suits", [(1e-4, False), (1.0, True)])
def test_dense_rows_of_many_entries_are_narrow_where_losses_bend(C, suits, monkeypatch):
    """Beside a ridge that rules, steps without any factor are cheaper; and over rows of zeros those over CSR rows."""
    problem, _, _ = column_of("logistic", 400, 40, weight=C)
    monkeypatch.setattr(loss_column, "WHOLE_BLOCK_ENTRIES", 0)
    assert narrow.suits_iterated_steps(problem) == suits
    for name, value in (("ITERATED_COLUMNS", 50), ("ITERATED_ENTRIES", 400 * 40)):
        with monkeypatch.context() as changed:
            changed.setattr(narrow, name, value)
            assert not narrow.suits_iterated_steps(problem)
    problem.stored = CsrRows(sp.csr_matrix(problem.rows.rows.X))
    assert not narrow.suits_iterated_steps(problem)


def test_logistic_steps_leave_a_sample_that_misses_heavy_rows():
    """Its steps are short."""
    newton = NarrowLogisticSteps(*rare_and_heavy(100.0, (LogisticTerm(100.0),)), False).newton
    taken = 0
    while taken < 60 and not newton.objective - newton.bound <= 1e-3 * newton.objective:
        taken += newton.steps(1, 0.0, 0.0)
    assert taken <= 20  # 4; more than 400 without


@pytest.mark.parametrize("name, value", [("SMOOTH_NARROW_COLUMNS", 70), ("WHOLE_BLOCK_ENTRIES", 8519)])
def test_more_columns_are_narrow_for_smooth_losses_over_one_block(name, value, monkeypatch):
    rows = column_of("logistic", 120, 70)[0].rows
    assert loss_column.suits_narrow_loss_column(rows, smooth=True) and not loss_column.suits_narrow_loss_column(rows)
    monkeypatch.setattr(loss_column, name, value)
    assert not loss_column.suits_narrow_loss_column(rows, smooth=True)


@pytest.mark.parametrize(
    *pairs_first(shape=[(60, 130), (400, 90)], C=[0.02, 50.0], bias=["none", "regularized", "free"])
)
def test_logistic_fits_over_small_blocks_of_many_columns_are_compiled_steps(shape, C, bias, monkeypatch):
    m, d = shape
    monkeypatch.setattr(solver.newton_start, "logistic_newton_start", None)
    X, y = sample(m, d)
    model = mdlearn.fit(OBJECTIVES["logistic"], X, y, C=C, bias=bias, tol=1e-9, solver="hybrid")
    best, _ = optimum("logistic", X, y, bias, C=C)
    assert model.certificate.converged and model.certificate.lower_bound <= best + 1e-11 * abs(best)
    assert best - 1e-11 * abs(best) <= model.certificate.objective <= best + 1e-9 * abs(best) * (1 + 1e-6)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("mean, weight", [(0.0, 0.05), (2.0, 9.0)])
def test_places_in_single_precision_are_reported_of_the_rows_themselves(bias, mean, weight, monkeypatch):
    """Objective, bound and what coefficients are made of are those of the rows after steps over rounded ones."""
    monkeypatch.setattr(narrow, "SINGLE_ENTRIES", 1)
    problem, _, R = column_of("logistic", 700, 40, mean=mean, weight=weight, bias=bias)
    rows = AffineRows(problem.rows.rows, bias != "none")
    parts = LossColumnParts(rows, problem.squares, bias, False)
    problem, R = LossColumn(problem.column, rows, problem.squares, rows.rows), R[:, : rows.width]
    held, rounded = slice(None, -1) if bias == "free" else slice(None), 0
    for tol in (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-12):
        newton = NarrowLogisticSteps(problem, parts.narrow, bias == "free")
        while newton.gap > tol * abs(newton.objective) and newton.newton.steps(1, tol, 0.0):
            newton.objective, newton.lower_bound = newton.newton.objective, newton.newton.bound
        estimate, point = newton.objective, newton.report().point
        w = np.append(point.coef, point.intercept)[: rows.width]
        value = smooth_primal(problem, R, w, bias)
        assert newton.objective == pytest.approx(value, rel=1e-12) and estimate == pytest.approx(value, rel=1e-5)
        assert newton.lower_bound == pytest.approx(smooth_dual(problem, R, point.beta[0], bias), rel=1e-11)
        assert newton.gap <= tol * value + 1e-6 * value * (tol > 1e-5)
        rounding = 1e-14 * (np.abs(R).T @ np.abs(point.alpha)).max()
        np.testing.assert_allclose((R.T @ point.alpha)[held], w[held], rtol=0, atol=rounding)
        rounded += estimate != newton.objective
    assert rounded


@pytest.mark.parametrize("bias", ["regularized", "free"])
@pytest.mark.parametrize("spoilt", ["other rows", "zeros", "overflow", "NaN"])
def test_rows_of_single_precision_decide_no_answer(bias, spoilt):
    """Whatever they are, steps over the rows themselves come to the optimum, and no bound is above it."""
    problem, parts, R = column_of("logistic", 900, 40, weight=2.0, bias=bias)
    rows, rng = parts.narrow, np.random.default_rng(0)
    assert rows.single.dtype == np.float32 and rows.single.size >= narrow.SINGLE_ENTRIES
    plain = NarrowLogisticSteps(problem, rows, bias == "free")
    assert [1 for _ in zip(range(20), plain.steps())]
    best = smooth_primal(problem, R, np.append(plain.report().point.coef, plain.report().point.intercept), bias)
    assert plain.gap <= 1e-10 * best
    changes = {"other rows": rng.standard_normal(rows.single.shape), "zeros": 0.0, "overflow": np.inf, "NaN": np.nan}
    rows.single[:] = changes[spoilt]
    for tol in (1e-2, 1e-10):
        newton = NarrowLogisticSteps(problem, rows, bias == "free")
        for _, _ in zip(range(60), newton.steps(tol)):
            if newton.gap <= tol * newton.objective and (newton.report(), newton.gap)[1] <= tol * newton.objective:
                break
        assert best - 1e-10 * best <= newton.objective <= best + tol * best
        assert newton.lower_bound <= best + 1e-10 * best and newton.gap <= tol * best


@pytest.mark.parametrize("offset, scale, C", [(0.0, 1e-30, 1.0), (1e5, 1.0, 1.0), (0.0, 1e25, 1e-45)])
def test_logistic_fits_over_rows_that_single_precision_loses_come_to_the_optimum(offset, scale, C, monkeypatch):
    """Entries that vanish, differ in their last digits alone, or have no square there."""
    monkeypatch.setattr(narrow, "SINGLE_ENTRIES", 1)
    X, y = sample(1000, 40)
    X = X * np.where(np.arange(40) % 2, scale, 1.0) + offset * (np.arange(40) % 3 == 1)
    lam = 0.5 / (C * y.shape[0])
    model = mdlearn.fit("l2lr", X, y, lam=lam, tol=1e-7, solver="hybrid")
    value, told = objective_of_l2lr(X, y, lam, model.coef_.ravel(), float(model.intercept_[0])), model.certificate
    assert told.converged and told.objective == pytest.approx(value, rel=1e-9)
    with monkeypatch.context() as changed:
        changed.setattr(narrow, "SINGLE_ENTRIES", X.size**2)
        plain = mdlearn.fit("l2lr", X, y, lam=lam, tol=1e-7, solver="hybrid").certificate
    assert told.lower_bound <= plain.objective * (1 + 1e-12) and plain.lower_bound <= told.objective * (1 + 1e-12)


def objective_of_l2lr(X, y, lam, w, b):
    """The formula of `l2lr`."""
    return lam * float(w @ w) + np.logaddexp(0.0, -y * (X @ w + b)).mean()


@pytest.mark.parametrize(
    "d, entries, start, single",
    [
        (35, 1, False, True),
        (30, 1, False, False),
        (35, 36 * 704, False, True),
        (35, 36 * 704 + 1, False, False),
        (35, 1, True, False),
    ],
)
def test_rows_are_in_single_precision_where_many_are_iterated_over(d, entries, start, single, monkeypatch):
    """From zero, and over so many columns and entries: a start is not to lose digits."""
    seen, made = [], narrow_logistic.NarrowLogistic

    def noted(*given):
        seen.append(given[-1] is not None)
        return made(*given)

    problem, parts, _ = column_of("logistic", 700, d)
    if start:
        begun = replace(problem.column, start=NarrowLogisticSteps(problem, parts.narrow, False).report().point)
        problem = LossColumn(begun, parts.rows, parts.squares, parts.stored)
    monkeypatch.setattr(narrow, "SINGLE_ENTRIES", entries)
    monkeypatch.setattr(narrow.narrow_logistic, "NarrowLogistic", noted)
    assert NarrowLogisticSteps(problem, parts.narrow, False).gap > 0
    assert seen == [single]
