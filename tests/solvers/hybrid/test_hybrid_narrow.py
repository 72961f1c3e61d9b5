"""Narrow rows of the hybrid solver: few dense columns, Newton steps from 0 without a sweep."""

from __future__ import annotations

import numpy as np
import pytest
from hybrid_cases import OBJECTIVES, optimum, sample

import mdlearn
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column
from mdlearn.solvers.hybrid import narrow_rows, solver
from mdlearn.solvers.hybrid.loss_column import ColumnParts, LossColumn
from mdlearn.solvers.hybrid.narrow import NarrowHinges

POWERS = {"hinge": 1, "squared": 2}


def column_of(kind, m, d, variance=0.0, mean=0.0, weight=0.7, seed=0):
    """A loss column with weights that differ, one of them 0, and its parts."""
    rng = np.random.default_rng(seed)
    X, counts = rng.standard_normal((m, d)) + 1.0, rng.uniform(0.5, 2.0, m)
    counts[3] = 0.0
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(m) > 1.0, 1.0, -1.0)
    column = Column(y, counts, variance, mean, (HingeTerm(weight, power=POWERS[kind]),))
    rows = AffineRows(DenseRows(X), True)
    parts = ColumnParts(rows, (X * X).sum(axis=1), "regularized", True)
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
    """Columns of which few rows have entries, and large ones: steps of a sample without them would zigzag."""
    rng, m, rare = np.random.default_rng(0), 7200, 4
    X = np.zeros((m, rare))
    X[rng.permutation(m)[: 40 * rare], np.arange(40 * rare) % rare] = 10.0
    X = np.hstack([X, rng.standard_normal((m, 3))])
    w = rng.standard_normal(rare + 3) * np.repeat([0.1, 1.0], [rare, 3])
    y = np.where(X @ w + rng.standard_normal(m) > 0, 1.0, -1.0)
    column, rows = Column(y, np.ones(m), 0.0, 0.0, (HingeTerm(1.0),)), AffineRows(DenseRows(X), True)
    parts = ColumnParts(rows, (X * X).sum(axis=1), "regularized", True)
    newton = NarrowHinges(LossColumn(column, rows, parts.squares, parts.stored), parts.narrow).newton
    taken = 0
    while taken < 60 and not newton.objective - newton.bound <= 1e-3 * newton.objective:
        taken += newton.steps(1, 0.5)
    assert taken <= 30  # 7; 232 without


def test_the_matrix_keeps_its_digits_beside_a_large_mean():
    problem, _, R = column_of("hinge", 100, 3, 5.0, 1.0)
    X = R[:, :3] + 1e6
    rows = narrow_rows.NarrowRows(AffineRows(DenseRows(X), True))
    A, L, pulled = rows.quadratic(problem.column)
    column, c = problem.column, problem.column.counts
    S = column.y[:, None] * np.hstack([X, np.ones((100, 1))]).astype(np.longdouble)
    v = c @ S / c.sum()
    exact = np.eye(4) + column.kappa * ((S - v).T * c) @ (S - v)
    np.testing.assert_allclose(A, exact.astype(float), rtol=1e-12)
    np.testing.assert_allclose(np.tril(L) @ np.tril(L).T, A, rtol=1e-12)
    np.testing.assert_allclose(pulled, (column.mean * v).astype(float), rtol=1e-12)


@pytest.mark.parametrize("order, kind", [("C", np.float64), ("F", np.float64), ("C", np.float32)])
@pytest.mark.parametrize("m", [8, 13, 67])
def test_rows_lie_column_by_column(order, kind, m):
    X = np.random.default_rng(0).standard_normal((2 * m, 6))[::2].astype(kind, order=order)
    T = narrow_rows.NarrowRows(AffineRows(DenseRows(X), True)).T
    assert T.shape[1] % 8 == 0
    np.testing.assert_array_equal(T[:, :m], np.vstack([X.T, np.ones(m)]))
    assert not T[:, m:].any()


@pytest.mark.parametrize("loss", ["hinge", "squared"])
@pytest.mark.parametrize("given", [{"v": 0.0}, {"v": 20.0, "a": 3.0, "C": 0.2}, {"v": 300.0, "a": 1.0, "C": 5.0}])
@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("tol", [1e-2, 1e-9])
def test_fits_come_to_the_optimum_without_a_sweep(loss, given, bias, tol, monkeypatch):
    monkeypatch.setattr(solver, "DualDescent", None)
    X, y = sample()
    model = mdlearn.fit(OBJECTIVES[loss], X, y, bias=bias, tol=tol, solver="hybrid", **given)
    best, _ = optimum(loss, X, y, bias, **given)
    assert model.certificate.converged
    assert best * (1 - 1e-9) <= model.certificate.objective <= best + tol * abs(best) * (1 + 1e-6)


@pytest.mark.parametrize("name, value", [("NARROW_COLUMNS", 4), ("NARROW_ENTRIES", 304)])
def test_rows_are_narrow_up_to_a_size(name, value, monkeypatch):
    problem, _, _ = column_of("hinge", 61, 4)
    assert narrow_rows.are_narrow(problem.rows)
    monkeypatch.setattr(narrow_rows, name, value)
    assert not narrow_rows.are_narrow(problem.rows)


def test_a_start_is_not_begun_from_zero():
    X, y = sample()
    first = mdlearn.fit("svm", X, y, tol=1e-10, solver="hybrid")
    again = mdlearn.fit("svm", X, y, tol=1e-9, solver="hybrid", warm_start=first)
    assert len(again.history) == 1 and again.certificate.converged
