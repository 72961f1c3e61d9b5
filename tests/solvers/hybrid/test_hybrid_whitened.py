"""Whitened rows of the hybrid solver: the same objective in other coordinates, and fewer sweeps."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from draining import drain
from hybrid_cases import OBJECTIVES, optimum, sample

import mdlearn
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column
from mdlearn.solvers.hybrid import loss_column, solver, whitened_column
from mdlearn.solvers.hybrid.loss_column import LossColumn, LossColumnParts
from mdlearn.solvers.systems.scatter import MeansOfColumns

VARIANCE, MEAN, C = 30.0, 4.0, 0.7


@pytest.fixture(autouse=True)
def _whiten_small_problems(monkeypatch):
    monkeypatch.setattr(whitened_column, "WHITENED_ENTRIES", 0)
    monkeypatch.setattr(loss_column, "NARROW_COLUMNS", 0)


def column_of(m=60, d=4, constant=True, seed=0):
    """A loss column with weights that differ, one of them 0, and its parts."""
    rng = np.random.default_rng(seed)
    X, counts = rng.standard_normal((m, d)) + 2.0, rng.uniform(0.5, 2.0, m)
    counts[3] = 0.0
    column = Column(np.where(X[:, 0] > 2.0, 1.0, -1.0), counts, VARIANCE, MEAN, (HingeTerm(C),))
    rows = AffineRows(DenseRows(X), constant)
    parts = LossColumnParts(rows, (X * X).sum(axis=1), "regularized" if constant else "none", True)
    return LossColumn(column, rows, parts.squares, parts.stored), parts, X


def objective(column, X, w, b):
    z, c = column.y * (X @ w + b), column.counts
    mean = c @ z / c.sum()
    spread = c @ (z - mean) ** 2 / c.sum()
    return 0.5 * (w @ w + b * b) + VARIANCE * spread - MEAN * mean + C * c @ np.maximum(0.0, 1.0 - z)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("operations", [whitened_column.WHITENED_OPERATIONS, 1])
def test_whitened_rows_have_the_same_objective(constant, operations, monkeypatch):
    monkeypatch.setattr(whitened_column, "WHITENED_OPERATIONS", operations)
    problem, parts, X = column_of(constant=constant)
    white = drain(whitened_column.whitened_column(problem, parts))[1]
    np.testing.assert_allclose(white.squares, (white.rows.rows.X**2).sum(axis=1), rtol=1e-14)
    for seed in range(5):
        # Coefficients that are made of the rows; others stand for shorter ones.
        x = white.adjoint(np.random.default_rng(seed).standard_normal(problem.n_rows))
        w, b = white.coefficients(x)
        z = white.margins(x)
        np.testing.assert_allclose(z, problem.y * (X @ w + b), rtol=0, atol=1e-12 * np.abs(z).max())
        value = 0.5 * x @ x - white.pulled @ x + white.loss(z)
        assert value == pytest.approx(objective(problem.column, X, w, b), rel=1e-12)
    assert white.column.kappa == 0 and white.declared is problem.column and problem.column.kappa > 0


def test_classes_of_a_form_get_their_entries_of_whitened_rows_from_one_pass():
    problem, parts, _ = column_of()
    rows, columns = problem.rows, problem.column.against_rest(np.arange(60) % 5, range(5))
    means = MeansOfColumns(rows, columns)

    def whitened(column, parts, means=None):
        shared = None if means is None else SimpleNamespace(means=means, weights=None)
        one = LossColumn(column, rows, parts.squares, parts.stored, parts=shared)
        return drain(whitened_column.whitened_column(one, parts))[1]

    made = set()
    for column in columns:
        together, alone = whitened(column, parts, means), whitened(column, column_of()[1])
        np.testing.assert_allclose(together.rows.rows.X, alone.rows.rows.X, rtol=0, atol=1e-12)
        np.testing.assert_allclose(together.mean_row, alone.mean_row, rtol=0, atol=1e-12)
        made.add(id(parts.whitening.tilts(means.of(column)[0])))
    assert len(made) == 1 and parts.whitening.tilts(means.of(column)[0]).last.shape == (5, 60)


def test_classes_share_the_whitened_rows():
    """What classes differ in, the mean signed row, is one entry more: each has the objective of its own signs."""
    problem, parts, X = column_of()
    first = drain(whitened_column.whitened_column(problem, parts))[1]
    column, shared = problem.column, parts.whitening
    other = Column(np.where(X[:, 1] > 2.5, 1.0, -1.0), column.counts, VARIANCE, MEAN, column.terms)
    second = drain(
        whitened_column.whitened_column(LossColumn(other, problem.rows, problem.squares, problem.stored), parts)
    )[1]
    assert parts.whitening is shared
    np.testing.assert_array_equal(first.rows.rows.X[:, :-1], second.rows.rows.X[:, :-1])
    x = second.adjoint(np.random.default_rng(1).standard_normal(problem.n_rows))
    value = 0.5 * x @ x - second.pulled @ x + second.loss(second.margins(x))
    assert value == pytest.approx(objective(other, X, *second.coefficients(x)), rel=1e-12)
    swapped = column.counts.copy()
    swapped[[0, 8]] = swapped[[8, 0]]  # their sum keeps all of its bits
    for counts, variance in ((column.counts, 2.0 * VARIANCE), (swapped, VARIANCE)):
        parts.whitening = shared
        another = Column(column.y, counts, variance, MEAN, column.terms)
        varied = LossColumn(another, problem.rows, problem.squares, problem.stored)
        drain(whitened_column.whitened_column(varied, parts))
        assert np.abs(parts.whitening.rows - shared.rows).max() > 1e-6


@pytest.mark.parametrize("given", [{"v": 5.0}, {"v": 20.0, "a": 3.0, "C": 0.2}, {"v": 300.0, "a": 1.0, "C": 5.0}])
@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("tol", [1e-2, 1e-8])
def test_fits_on_whitened_rows_come_to_the_optimum(given, bias, tol, monkeypatch):
    """Coefficients are those of the given rows, and what they are made of belongs to these, too."""
    white = []
    found = solver.whitened_column
    monkeypatch.setattr(solver, "whitened_column", lambda *parts: white.append(1) or found(*parts))
    X, y = sample()
    model = mdlearn.fit(OBJECTIVES["hinge"], X, y, bias=bias, tol=tol, solver="hybrid", **given)
    best, _ = optimum("hinge", X, y, bias, **given)
    assert white and model.certificate.converged
    assert best * (1 - 1e-9) <= model.certificate.objective <= best + tol * abs(best) * (1 + 1e-6)
    assert model.certificate.lower_bound <= best + 1e-9 * abs(best)
    w, alpha = model.coef_[0], model.dual_coef_[0]
    np.testing.assert_allclose(X.T @ alpha, w, rtol=0, atol=1e-9 * np.abs(w).max())


def test_sweeps_over_whitened_rows_are_few(monkeypatch):
    """Multipliers of a variance that outweighs the norm need dozens of sweeps each; whitened rows have none."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((2000, 12)) @ rng.standard_normal((12, 12))
    y = np.where(X[:, 0] + rng.standard_normal(2000) > 0, 1, -1)
    swept, sweep = [], solver.HybridDescent.sweep
    monkeypatch.setattr(solver.HybridDescent, "sweep", lambda self, *n: swept.append(1) or sweep(self, *n))
    monkeypatch.setattr(solver.newton_start, "newton_start_beats_sweeps", lambda problem: False)
    counts = []
    for given in ({}, {"solver": "hybrid"}):
        for rows in (X, sp.csr_matrix(X)):
            swept.clear()
            mdlearn.fit("ldm", rows, y, C=0.3, lambda1=300.0, tol=1e-3, **given)
            counts.append(len(swept))
    assert counts[0] <= 8 and counts[0] == counts[2]
    assert counts[0] < counts[1]


def test_rows_are_whitened_where_the_variance_is_large():
    problem, _, _ = column_of()
    assert whitened_column.whitening_pays(problem)
    column = problem.column
    for v, weight in ((0.0, C), (1e-6, C), (VARIANCE, 1e-6), (1e12, C)):
        other = Column(column.y, column.counts, v, MEAN, (HingeTerm(weight),))
        assert not whitened_column.whitening_pays(LossColumn(other, problem.rows, problem.squares, problem.stored))


def test_rows_far_from_zero_are_not_whitened():
    """The squares of a mean that varies with the sign alone take the digits of what is left of them."""
    problem, _, X = column_of()
    far = X + 200.0
    rows = AffineRows(DenseRows(far), True)
    parts = LossColumnParts(rows, (far * far).sum(axis=1), "regularized", True)
    assert not whitened_column.whitening_pays(LossColumn(problem.column, rows, parts.squares, parts.stored))


def test_more_rows_are_whitened_where_classes_share_them(monkeypatch):
    problem, _, _ = column_of()
    monkeypatch.setattr(whitened_column, "MOST_WHITENING", 300)
    assert not whitened_column.whitening_pays(problem, 4) and whitened_column.whitening_pays(problem, 5)


@pytest.mark.parametrize(
    ("name", "value"), [("WHITENED_COLUMNS", 4), ("COPY_BYTES", 4), ("WHITENED_ENTRIES", 301), ("MOST_WHITENING", 300)]
)
def test_rows_are_not_whitened_where_that_costs_too_much(name, value, monkeypatch):
    problem, _, _ = column_of()
    monkeypatch.setattr(whitened_column, name, value)
    assert not whitened_column.whitening_pays(problem)


def test_columns_one_after_the_other_have_the_same_block():
    """One entry of a row is a column's own: it takes the place of the last one's, whose rows nobody reads any more."""
    problem, parts, _ = column_of()
    first = drain(whitened_column.whitened_column(problem, parts))[1]
    block = first.rows.rows.X
    second = drain(whitened_column.whitened_column(problem, parts))[1]
    assert not np.shares_memory(second.rows.rows.X, block) and np.array_equal(second.rows.rows.X, block)
    del first
    third = drain(whitened_column.whitened_column(problem, parts))[1]
    assert np.shares_memory(third.rows.rows.X, block)


def test_mean_row_of_whitened_rows_takes_no_pass():
    problem, parts, _ = column_of()
    white = drain(whitened_column.whitened_column(problem, parts))[1]
    mean = white.adjoint(problem.column.counts) / problem.column.total
    assert "mean_row" in vars(white)
    np.testing.assert_allclose(white.mean_row, mean, rtol=0, atol=1e-12 * np.abs(mean).max())


def test_whitening_pays_at_a_smaller_variance_where_classes_share_it(monkeypatch):
    problem, _, _ = column_of()
    column = problem.column
    small = Column(column.y, column.counts, 1e-6, MEAN, column.terms)
    other = LossColumn(small, problem.rows, problem.squares, problem.stored)
    share = whitened_column.whitening_share(other, 1)
    monkeypatch.setattr(whitened_column, "CHEAP_WHITENING", 0.3 * share)
    assert not whitened_column.whitening_pays(other, 3) and whitened_column.whitening_pays(other, 4)


@pytest.mark.parametrize(("classes", "rows", "white"), [(8, 700, True), (2, 700, False), (8, 500, False)])
def test_narrow_rows_are_whitened_where_many_classes_share_them(classes, rows, white, monkeypatch):
    """Compiled steps over narrow rows need a matrix and its factor for each class and stage; sweeps hardly a visit."""
    monkeypatch.undo()  # thresholds as they are
    rng = np.random.default_rng(8)
    y = np.arange(rows) % classes
    X = rng.standard_normal((classes, 52))[y] + rng.standard_normal((rows, 52))
    made, found = [], solver.whitened_column
    monkeypatch.setattr(solver, "whitened_column", lambda *parts: made.append(1) or found(*parts))
    model = mdlearn.fit("ldm", X, y, C=0.1, tol=1e-6, solver="hybrid")
    assert len(made) == (classes if white else 0) and model.certificate.converged


@pytest.mark.parametrize(("variance", "weight", "tol", "white"), [
    (1e-2, 1e-3, 1e-2, False), (1e-2, 1e-3, 1e-6, True), (1e-2, 1e-3, 0.0, True),
    (1e-2, 0.1, 1e-2, True), (VARIANCE, 1e-3, 1e-2, True),
])  # fmt: skip
def test_cheap_whitening_pays_but_where_a_few_sweeps_end_the_fit(variance, weight, tol, white):
    problem, _, _ = column_of()
    column = Column(problem.y, problem.column.counts, variance, 0.0, (HingeTerm(weight),))
    other = LossColumn(column, problem.rows, problem.squares, problem.stored)
    assert whitened_column.whitening_share(other, 100) < whitened_column.CHEAP_WHITENING
    assert whitened_column.whitening_pays(other, 100, tol) == white


@pytest.mark.parametrize(("tol", "white"), [(1e-2, False), (1e-6, True)])
@pytest.mark.parametrize("d", [52, 90])
def test_loose_fits_of_many_classes_at_a_small_weight_whiten_no_rows(d, tol, white, monkeypatch):
    monkeypatch.undo()  # thresholds as they are
    rng = np.random.default_rng(8)
    X, y = rng.random((700, d)), np.arange(700) % 10
    X[np.arange(700), y] += 0.5
    made, found = [], solver.whitened_column
    monkeypatch.setattr(solver, "whitened_column", lambda *parts: made.append(1) or found(*parts))
    model = mdlearn.fit("ldm", X, y, C=0.003, tol=tol, solver="hybrid")
    assert len(made) == (10 if white else 0) and model.certificate.converged
