"""Sweeps of the hybrid solver before its Newton steps: over narrow rows, and over CSR rows of squared hinges."""

from __future__ import annotations

from functools import partial
from itertools import islice

import numpy as np
import pytest
from hybrid_cases import OBJECTIVES, objective
from scipy import sparse

import mdlearn
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column
from mdlearn.numerics.interruptible import finished
from mdlearn.solvers.hybrid import loss_column
from mdlearn.solvers.hybrid.descent import HybridDescent
from mdlearn.solvers.hybrid.loss_column import LossColumn, LossColumnParts
from mdlearn.solvers.hybrid.narrow import NarrowHinges
from mdlearn.solvers.hybrid.newton_start import newton_start_after_sweeps
from mdlearn.solvers.hybrid.semismooth import SemismoothNewton
from mdlearn.solvers.systems.whitening import LossColumnQuadratic


def indicators(m, attributes, levels, seed=0):
    """Rows of one 1 per attribute, and labels that no coefficients tell apart."""
    rng = np.random.default_rng(seed)
    X = np.hstack([np.eye(levels)[rng.integers(0, levels, m)] for _ in range(attributes)])
    f = X @ rng.standard_normal(X.shape[1])
    return X, np.where(f - np.median(f) + rng.standard_normal(m) > 0, 1, -1)


def full(m, d, seed=0):
    """Rows without a zero."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.1, 1.0, (m, d))
    return X, np.where((X - 0.55) @ rng.standard_normal(d) + 0.3 * rng.standard_normal(m) > 0, 1, -1)


@pytest.fixture
def counted(monkeypatch):
    """Rows of every problem that is swept over."""
    rows, sweep = [], HybridDescent.sweep

    def counting(self, *given):
        rows.append(self.problem.n_rows)
        yield from sweep(self, *given)

    monkeypatch.setattr(HybridDescent, "sweep", counting)
    return rows


NARROW_CASES = {
    "few entries": ("hinge", indicators(1600, 6, 5), {"C": 0.05}, True),
    "few entries, variance": ("hinge", indicators(2200, 6, 5), {"C": 0.01, "v": 0.5}, True),
    "few entries, variance, fewer rows": ("hinge", indicators(2000, 6, 5), {"C": 0.01, "v": 0.5}, False),
    "many columns": ("hinge", full(800, 60), {"C": 0.05}, True),
    "many columns, squared": ("squared", full(800, 60), {"C": 0.005}, True),
    "light loss": ("hinge", full(5200, 12), {"C": 0.005}, True),
    "light loss, fewer rows": ("hinge", full(3000, 12), {"C": 0.005}, False),
    "few columns": ("hinge", full(3000, 12), {"C": 0.05}, False),
    "few columns, squared": ("squared", full(3000, 12), {"C": 0.005}, False),
    "variance": ("hinge", full(800, 60), {"C": 0.05, "v": 0.5}, False),
    "heavy loss": ("hinge", indicators(1600, 6, 5), {"C": 1.0}, False),
    "few rows": ("hinge", indicators(400, 6, 5), {"C": 0.05}, False),
}


@pytest.mark.parametrize("name", NARROW_CASES)
def test_sweeps_come_first_where_margins_move_little(name, counted):
    loss, (X, y), given, swept = NARROW_CASES[name]
    model = mdlearn.fit(OBJECTIVES[loss], X, y, **given, solver="hybrid", tol=1e-9)
    assert (len(counted) > 0) == swept
    value = objective(loss, X, y, model.coef_[0], model.intercept_[0], "regularized", **given)
    assert model.certificate.converged
    # Steps go on to the end after sweeps: the bound is a bound, and near.
    assert model.certificate.lower_bound <= value <= model.certificate.lower_bound * (1 + 2e-9)


@pytest.mark.parametrize(("tol", "swept"), [(1e-2, True), (1e-4, True), (1e-5, False)])
def test_sweeps_over_many_columns_beside_a_variance_come_first_for_gaps_that_are_not_small(tol, swept, counted):
    X, y = full(800, 60)
    model = mdlearn.fit(OBJECTIVES["hinge"], X, y, tol=tol, C=0.01, v=0.5, solver="hybrid")
    assert model.certificate.converged and bool(counted) == swept


@pytest.mark.parametrize("swept, C", [(True, 0.005), (False, 5.0)])
def test_squared_hinges_over_csr_rows_begin_with_sweeps_where_margins_move_little(swept, C, counted):
    X, y = indicators(3000, 20, 6)
    model = mdlearn.fit(OBJECTIVES["squared"], sparse.csr_matrix(X), y, C=C, solver="hybrid", tol=1e-9)
    assert (len(counted) > 0) == swept
    value = objective("squared", X, y, model.coef_[0], model.intercept_[0], "regularized", C=C)
    assert model.certificate.converged
    assert model.certificate.lower_bound <= value <= model.certificate.lower_bound * (1 + 2e-9)


@pytest.mark.parametrize("variance", [0.0, 3.0])
@pytest.mark.parametrize("power", [1, 2])
def test_narrow_steps_begin_where_sweeps_ended(power, variance):
    X, y = full(200, 5)
    counts = np.random.default_rng(1).uniform(0.5, 2.0, 200)
    column = Column(y.astype(float), counts, variance, 0.4, (HingeTerm(0.1, power=power),))
    parts = LossColumnParts(AffineRows(DenseRows(X), True), (X * X).sum(axis=1), "regularized", True)
    problem = LossColumn(column, parts.rows, parts.squares, parts.stored)
    descent = HybridDescent(problem, partial(parts.quadratic, column))
    for _ in range(3):
        list(descent.sweep())
    begun = newton_start_after_sweeps(descent)
    narrow = NarrowHinges(problem, parts.narrow, begun)
    R, c = np.hstack([X, np.ones((200, 1))]), counts
    z = y * (R @ descent.element)
    short = np.maximum(0.0, 1.0 - z)
    centred = z - c @ z / c.sum()
    value = 0.5 * descent.element @ descent.element + variance * (c @ centred**2) / c.sum()
    value += -0.4 * (c @ z) / c.sum() + 0.1 * (c @ short**power)
    assert narrow.objective == pytest.approx(value, rel=1e-12)
    # What coefficients are made of is carried along from there: w = R'(alpha) with all parts of the objective in it.
    for _ in islice(narrow.steps(), 2):
        point = narrow.report().point
        np.testing.assert_allclose(
            np.append(point.coef, point.intercept), R.T @ point.alpha, rtol=0, atol=1e-11 * np.abs(R).sum()
        )
    assert narrow.objective <= value


def nearly_hard_start(monkeypatch, sweeps, a=0.0):
    """Where sweeps over squared hinges of large weight leave off, and rows whose multipliers visits leave above 0."""
    monkeypatch.setattr(loss_column, "WHOLE_BLOCK_ENTRIES", 0)
    X, y = indicators(600, 10, 4)
    y = np.where(X @ np.random.default_rng(1).standard_normal(X.shape[1]) > 0, 1.0, -1.0)
    rows, ones = DenseRows(X), np.ones(len(y))
    problem = LossColumn(
        Column(y, ones, 0.0, a, (HingeTerm(1e3, power=2),)), AffineRows(rows, True), X.sum(axis=1), rows
    )
    problem.quadratic = LossColumnQuadratic(None, None, False)
    descent = HybridDescent(problem, problem.own_quadratic)
    for _ in range(sweeps):
        finished(descent.sweep())
    start = newton_start_after_sweeps(descent)
    short = 1.0 - problem.margins(start.w) - descent.beta / 2e3
    return problem, start, np.flatnonzero(descent.beta + short / (X.sum(axis=1) + 1.0 + 1.0 / 2e3) > 0)


@pytest.mark.parametrize("a", [0.0, 3.0])
def test_the_first_step_on_squared_hinges_goes_over_rows_that_visits_leave_multipliers(a, monkeypatch):
    """Its end is the optimum over these, as if all others had no loss; the steps after it go over rows with a loss."""
    problem, start, face = nearly_hard_start(monkeypatch, 6, a)
    newton, seen, direction = SemismoothNewton(problem, *start), [], SemismoothNewton.direction

    def noted(self, g):
        seen.append((self.free.copy(), self.w, self.z))
        step = yield from direction(self, g)
        seen[-1] += (self.w + step,)
        return step

    monkeypatch.setattr(SemismoothNewton, "direction", noted)
    steps, values = newton.steps(), [newton.objective]
    while len(seen) < 2 or len(seen[-1]) < 4:
        values += [newton.objective] if next(steps) else []
    R = problem.block()[face]
    pulled = 0.0 if a == 0 else problem.pulled
    best = np.linalg.solve(np.eye(R.shape[1]) + 2e3 * R.T @ R, 2e3 * R.sum(axis=0) + pulled)
    assert np.array_equal(seen[0][0], face) and not np.array_equal(face, np.flatnonzero(seen[0][2] < 1.0))
    assert seen[0][3] == pytest.approx(best, rel=1e-6, abs=1e-8)
    assert np.array_equal(seen[1][0], np.flatnonzero(seen[1][2] < 1.0)) and values[1] < values[0]


def test_a_first_step_that_leads_up_is_not_taken(monkeypatch):
    """Steps over the rows with a loss come in its place."""
    problem, start, _ = nearly_hard_start(monkeypatch, 6)
    z = problem.margins(start.w)
    far = start._replace(centre=np.where(z > np.quantile(z, 0.98), 1.0, 0.0))  # their margins are to become 1
    plain = start._replace(centre=np.zeros(len(z)))
    ends = []
    for one in (far, plain):
        newton = SemismoothNewton(problem, *one)
        before, steps = newton.objective, newton.steps()
        while not next(steps):
            pass
        assert newton.objective < before
        ends.append(newton.w)
    assert np.array_equal(*ends)


@pytest.mark.parametrize("m, together", [(1000, [3, 2, 1, 1]), (2000, [3, 1, 1, 1, 1])])
def test_sweeps_over_small_blocks_go_together_until_their_rate_is_judged(m, together, monkeypatch):
    """One call of Python for several: over 2,000 rows of 81 columns each is longer than that."""
    asked, sweep = [], HybridDescent.sweep

    def counting(self, at_once=1):
        asked.append(at_once)
        return sweep(self, at_once)

    monkeypatch.setattr(HybridDescent, "sweep", counting)
    X, y = full(m, 80)
    mdlearn.fit("svm", X, y, C=0.003, solver="hybrid", tol=1e-9)
    assert asked[: len(together)] == together


@pytest.mark.parametrize("name, params", [("svm", {"C": 0.02}), ("ldm", {"C": 0.02}), ("lsvm", {"nu": 0.02})])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sweeps_over_indicators_read_no_entries_and_have_the_same_bits(name, params, dtype, monkeypatch):
    X, y = indicators(4000, 20, 8)
    X, seen, kernels = sparse.csr_matrix(X.astype(dtype)), [], HybridDescent._kernels

    def seeing(self, rows):
        seen.append(rows.entries_but_ones.dtype)
        return kernels(self, rows)

    monkeypatch.setattr(HybridDescent, "_kernels", seeing)
    models = [mdlearn.fit(name, X, y, tol=1e-5, solver="hybrid", **params)]
    monkeypatch.setattr(CsrRows, "entries_but_ones", property(lambda rows: rows.X.data))
    models.append(mdlearn.fit(name, X, y, tol=1e-5, solver="hybrid", **params))
    assert {np.dtype(np.int8), np.dtype(dtype)} == set(seen)
    assert np.array_equal(models[0].coef_, models[1].coef_) and models[0].certificate == models[1].certificate
