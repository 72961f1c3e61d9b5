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
from hybrid_cases import OBJECTIVES, POWERS, column_of, narrow_steps_of, optimum, rare_and_heavy, sample

import mdlearn
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column
from mdlearn.solvers.hybrid import loss_column, narrow, solver
from mdlearn.solvers.hybrid.loss_column import LossColumn, LossColumnParts
from mdlearn.solvers.hybrid.narrow import NarrowHinges, NarrowLogisticSteps
from mdlearn.solvers.systems.narrow_rows import NarrowRows


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


def test_a_sample_that_misses_heavy_rows_grows():
    """Steps by its matrix would zigzag."""
    newton = NarrowHinges(*rare_and_heavy(10.0, (HingeTerm(1.0),))).newton
    taken = 0
    while taken < 60 and not newton.objective - newton.bound <= 1e-3 * newton.objective:
        taken += newton.steps(1, 0.0, 0.0)
    assert taken <= 30  # 7; 232 without


def test_the_matrix_keeps_its_digits_beside_a_large_mean():
    problem, _, R = column_of("hinge", 100, 3, 5.0, 1.0)
    X = R[:, :3] + 1e6
    rows = NarrowRows(AffineRows(DenseRows(X), True))
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
    alone = [narrow_steps_of(problem, NarrowRows(parts.rows)) for problem in (first, second)]
    for newton in alone:
        list(islice(newton.steps(), 4))
    together = [narrow_steps_of(problem, parts.narrow) for problem in (first, second)]
    list(islice(zip(*(newton.steps() for newton in together), strict=False), 4))
    for one, other in zip(alone, together, strict=True):
        for a, b in zip(one.point(), other.point(), strict=True):
            np.testing.assert_array_equal(a, b)


COUNTED_FAULTS = """
import resource
import numpy as np, mdlearn
rng = np.random.default_rng(0)
X = rng.uniform(0.0, 1.0, ({m}, {d}))
y = np.argmax((X - 0.5) @ rng.standard_normal(({d}, {k})) + 0.3 * rng.standard_normal(({m}, {k})), axis=1)
faults = []
for _ in range(9):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    mdlearn.fit({objective!r}, X, y, solver="hybrid", tol=1e-3)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(sorted(faults)[4])
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="an allocator of its own rules")
@pytest.mark.parametrize(
    "objective, m, d, k",
    [
        ("svm", 20000, 5, 2),
        ("ldm", 8124, 22, 2),
        ("lsvm", 562, 84, 15),
        pytest.param("svm", 8124, 22, 2, marks=pytest.mark.slow),
        pytest.param("ldm", 20000, 5, 2, marks=pytest.mark.slow),
    ],
)
def test_fits_one_after_the_other_keep_their_memory(objective, m, d, k):
    """A fit does not return to the system what the next one asks for."""
    code = COUNTED_FAULTS.format(m=m, d=d, k=k, objective=objective)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    # The pages of numbers that steps keep of every row alone are about 240 and 590.
    assert int(done.stdout) < m * 8 * 8 / 4096


@pytest.mark.parametrize("order, kind", [("C", np.float64), ("F", np.float64), ("C", np.float32)])
@pytest.mark.parametrize("m", [8, 13, 67])
def test_rows_lie_column_by_column(order, kind, m):
    X = np.random.default_rng(0).standard_normal((2 * m, 6))[::2].astype(kind, order=order)
    T = NarrowRows(AffineRows(DenseRows(X), True)).T
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


@pytest.mark.parametrize("kind, index", [(np.float64, np.int32), (np.float32, np.int64)])
def test_columns_of_csr_rows_are_those_of_dense_ones(kind, index):
    X = sp.random(61, 5, 0.4, random_state=0).toarray().astype(kind)
    A = sp.csr_matrix(X)
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    sparse, dense = AffineRows(CsrRows(A), True), AffineRows(DenseRows(X), True)
    assert loss_column.suits_narrow_loss_column(sparse)
    assert not loss_column.suits_narrow_loss_column(AffineRows(CsrRows(sp.csr_matrix(np.eye(5))), True))
    np.testing.assert_array_equal(NarrowRows(sparse).T, NarrowRows(dense).T)


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


def test_dense_rows_of_more_columns_take_compiled_steps_on_squared_hinges(monkeypatch):
    for name, module in (("SemismoothNewton", solver), ("SemismoothNewton", solver.newton_start)):
        monkeypatch.setattr(module, name, None)
    X, y = sample(400, 90)
    for C in (1e-3, 1.0, 100.0):
        model = mdlearn.fit("lsvm", X, y, tol=1e-9, solver="hybrid", nu=C)
        other = mdlearn.fit("lsvm", X, y, tol=1e-9, solver="newton", nu=C)
        assert model.certificate.converged
        assert model.certificate.objective == pytest.approx(other.certificate.objective, rel=2e-9)


def test_which_rows_of_more_columns_take_compiled_steps_on_squared_hinges(monkeypatch):
    problem, _, _ = column_of("squared", 200, 90)
    suits = narrow.suits_steps_on_squared_hinges
    assert suits(problem)
    assert not suits(column_of("hinge", 200, 90)[0]) and not suits(column_of("squared", 200, 90, 5.0)[0])
    for name, value in (("SQUARED_COLUMNS", 90), ("SQUARED_ENTRIES", 200 * 91 - 1), ("NEARLY_HARD", 100.0)):
        with monkeypatch.context() as changed:
            changed.setattr(narrow, name, value)
            assert not suits(problem)
    problem.stored = CsrRows(sp.csr_matrix(problem.rows.rows.X))
    assert not suits(problem)


@pytest.mark.parametrize(
    "m, reach, tol, sweeps",
    [(2000, 1.0, 0.0, True), (2000, 4.0, 1e-5, False), (2000, 4.0, 1e-2, True), (2000, 40.0, 1e-2, False)]
    + [(600, 40.0, 1e-5, False), (600, 400.0, 1e-5, True), (2000, 400.0, 1e-5, False)],
)
def test_sweeps_over_more_columns_come_before_steps_on_flat_losses_or_few_rows(m, reach, tol, sweeps):
    weight = 0.5 * reach / column_of("squared", m, 90, weight=0.5)[0].margin_reach()
    problem, _, _ = column_of("squared", m, 90, weight=weight)
    assert problem.margin_reach() == pytest.approx(reach)
    assert narrow.sweeps_beat_narrow_steps(problem, tol) == sweeps


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
        newton = NarrowLogisticSteps(problem, parts.narrow, False)
    else:
        newton = NarrowHinges(problem, parts.narrow)
    gap = problem.column.relative_gap
    assert gap(newton.objective, newton.lower_bound) > 1e-2
    next(newton.steps(tol=1e-3))
    assert gap(newton.objective, newton.lower_bound) <= 1e-3
    # Steps on squared hinges find all free rows at once.
    assert kind == "squared" or gap(newton.objective, newton.lower_bound) > 1e-9


def steps_to(problem, parts, tol):
    """Number of steps on hinges from 0 to such a gap."""
    newton, taken = NarrowHinges(problem, parts.narrow), 0
    newton.most_steps = 1
    for n in newton.steps(tol=tol):
        taken += n
        if problem.column.relative_gap(newton.objective, newton.lower_bound) <= tol:
            break
    return taken


def test_first_envelopes_are_steep_where_margins_move_little(monkeypatch):
    """Flat ones take more steps, where few rows are of one class."""
    cap, most, steps = 0.002, loss_column.STEEPEST_AT_ZERO, np.zeros(2)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0.0, 1.0, (4000, 20))
        f = X @ rng.standard_normal(20)
        y = np.where((f - f.mean()) / f.std() + 0.3 * rng.standard_normal(4000) > 2.0, 1.0, -1.0)
        column = Column(y, np.ones(4000), 0.12, 0.0, (HingeTerm(cap),))
        parts = LossColumnParts(AffineRows(DenseRows(X), True), (X**2).sum(axis=1), "regularized", True)
        problem = LossColumn(column, parts.rows, parts.squares, parts.stored, parts=parts)
        reach = problem.margin_reach()
        for k, largest in enumerate((most, loss_column.FLAT_STEEPNESS)):
            monkeypatch.setattr(loss_column, "STEEPEST_AT_ZERO", largest)
            assert problem.steepness_at_zero() == pytest.approx(largest * cap)
            steps[k] += steps_to(problem, parts, 1e-5)
        monkeypatch.setattr(loss_column, "STEEPEST_AT_ZERO", 1e9)
        assert problem.steepness_at_zero() == pytest.approx(loss_column.REACHED_STEEPNESS / reach * cap)
    assert steps[0] < steps[1]
