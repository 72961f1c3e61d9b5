"""Descent of the hybrid solver in the metric of a variance term, against dense linear algebra and other engines."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from draining import drain

import mdlearn
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column
from mdlearn.solvers.hybrid import metric
from mdlearn.solvers.hybrid.descent import HybridDescent
from mdlearn.solvers.hybrid.loss_column import LossColumn, LossColumnParts

M, D = 300, 12


def case(kind="csr", bias="regularized", squared=False, mean=0.4, seed=0):
    """Return a column with a variance, whose weights differ, its signed rows, A, and what the mean term pulls with."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((M, D)) < 0.4, rng.standard_normal((M, D)), 0.0)
    X[5] = 0.0
    counts = rng.integers(0, 4, M).astype(float)
    y = np.where(X @ rng.standard_normal(D) + rng.standard_normal(M) > 0, 1.0, -1.0)
    column = Column(y, counts, 3.0, mean, (HingeTerm(0.3, power=2 if squared else 1),))
    rows = AffineRows(CsrRows(sp.csr_matrix(X)) if kind == "csr" else DenseRows(X), bias == "regularized")
    parts = LossColumnParts(rows, (X * X).sum(axis=1), bias, True)
    R = y[:, None] * (np.c_[X, np.ones(M)] if bias == "regularized" else X)
    v = counts @ R / counts.sum()
    A = np.eye(R.shape[1]) + column.kappa * (R - v).T @ (counts[:, None] * (R - v))
    return LossColumn(column, rows, parts.squares, parts.stored), parts, R, A, mean * v


def begun(problem, parts, sweeps=2):
    """Return a descent that is in the metric after so many sweeps."""
    descent = HybridDescent(problem, lambda: parts.quadratic(problem.column))
    descent.price_of_metric = np.inf
    for _ in range(sweeps):
        drain(descent.sweep())
    descent.price_of_metric = -np.inf
    drain(descent.sweep())
    assert descent.metric is not None
    return descent


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_margins_after_a_survey_take_no_further_pass(kind, monkeypatch):
    problem, parts, R, *_ = case(kind)
    before = HybridDescent(problem, lambda: parts.quadratic(problem.column))
    before.price_of_metric = np.inf
    drain(before.sweep())
    descent = begun(problem, parts)
    assert descent.surveyed and not before.surveyed
    np.testing.assert_allclose(before.margins, R @ before.element, rtol=0, atol=1e-12)
    monkeypatch.setattr(problem, "margins", None)
    np.testing.assert_allclose(descent.margins, R @ descent.element, rtol=0, atol=1e-12)
    np.testing.assert_allclose(descent.sigma, problem.column.spread(R @ descent.element), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("bias", ["regularized", "none"])
@pytest.mark.parametrize("squared", [False, True])
def test_values_in_the_metric_are_those_of_its_point(kind, bias, squared):
    """Objective, bound and coefficients are those that dense algebra makes of the multipliers, after every round."""
    problem, parts, R, A, e = case(kind, bias, squared)
    descent, caps = begun(problem, parts), problem.caps
    bound = -np.inf
    for _ in range(6):
        beta = descent.beta
        assert ((beta >= 0) & (beta <= caps)).all()
        w = np.linalg.solve(A, R.T @ beta + e)
        assert np.abs(descent.element - w).max() < 1e-10
        assert np.abs(descent.sigma - problem.column.spread(R @ w)).max() < 1e-9
        fall = np.maximum(1.0 - R @ w, 0.0)
        loss = 0.3 * problem.column.counts @ (fall**2 if squared else fall)
        gain = beta.sum() - 0.5 * (problem.softness * beta) @ beta
        assert descent.objective == pytest.approx(0.5 * w @ A @ w - e @ w + loss, rel=1e-10)
        assert descent.lower_bound == pytest.approx(gain - 0.5 * w @ A @ w, rel=1e-10)
        assert descent.lower_bound >= bound - 1e-12
        bound = descent.lower_bound
        drain(descent.sweep())
    assert descent.objective - bound < 1e-6 * abs(bound)


def test_rows_are_whitened_once_and_no_others_than_free_ones():
    problem, parts, R, A, _ = case()
    descent = begun(problem, parts)
    passes = metric.MetricPasses(problem, descent.quadratic, descent.records)
    assert passes.chosen.shape == (0,)
    face = np.array([7, 3, 200])
    rows = passes.rows_of(face)
    assert (
        np.abs(rows @ rows.T - (R @ np.linalg.solve(A, R.T) * np.outer(problem.y, problem.y))[np.ix_(face, face)]).max()
        < 1e-12
    )
    room, whitening = passes.whitened, metric.price_of_whitened_metric(problem)
    assert passes.over(np.array([3, 9])) >= whitening + 4 * problem.width
    assert np.shares_memory(room, passes.whitened[:3])  # a copy would be memory that goes back to the system
    np.testing.assert_allclose(passes.whitened[:3], rows, rtol=0, atol=1e-15)
    assert passes.chosen.tolist() == [7, 3, 200, 9]
    passes.over(np.array([9]))
    assert passes.chosen.tolist() == [7, 3, 200, 9]


def test_the_metric_waits_for_what_it_costs():
    """Sweeps come first until they have cost as much, and go on where a digit is cheaper or the metric too large."""
    problem, parts, *_ = case()
    descent = HybridDescent(problem, lambda: parts.quadratic(problem.column))
    for _ in range(3):
        drain(descent.sweep())
    descent.steady_price = np.inf
    price = descent.ascent.n_free * metric.price_of_whitened_metric(problem)
    for offset, due in ((-1.0, True), (1.0, False)):
        descent.price_of_metric = descent.operations - price + offset
        assert bool(descent._metric_is_due(False)) is due
    descent.price_of_metric = descent.operations - price - 1.0
    digits = -np.log10(abs(descent.objective - descent.lower_bound) / abs(descent.objective))
    assert 0.5 < digits < 16
    surveys = 0.8 * problem.n_rows * (2.0 * descent.entries + 24.0)
    for tol, to_come in ((0.0, 0.6 + 0.25 * digits), (10.0 ** -(digits + 0.8), 0.8), (1e-14, 14.0 - digits)):
        descent.tol = tol
        for share, due in ((1.01, True), (0.99, False)):
            descent.steady_price = share * (descent.operations - 1.0 + surveys) / to_come
            assert bool(descent._metric_is_due(False)) is due
    descent.tol, descent.steady_price = 1.0, 1e30
    assert not descent._metric_is_due(False)
    assert descent._metric_is_due(True)
    assert metric.metric_fits(20000, 124)
    assert not metric.metric_fits(20000, metric.METRIC_COLUMNS + 1)
    assert not metric.metric_fits(200000, 124)


def test_the_pace_is_that_of_the_last_two_sweeps():
    problem, parts, *_ = case()
    descent = HybridDescent(problem, lambda: parts.quadratic(problem.column))
    descent.price_of_metric = np.inf
    bounds, operations = [-np.inf], [0.0]
    for _ in range(6):
        drain(descent.sweep())
        bounds.append(descent.lower_bound)
        operations.append(descent.operations)
    rises = np.diff(bounds)[-3:]
    assert rises[0] > rises[1] > rises[2] > 0
    digits = np.log10(rises[0] / rises[2])
    assert descent.steady_price == pytest.approx((operations[-1] - operations[-3]) / digits)


def test_passes_follow_the_metric_at_once():
    """The rows that sweeps have found are whitened before the first survey."""
    problem, parts, *_ = case()
    assert begun(problem, parts).metric.chosen.shape[0] > 0


@pytest.mark.parametrize("C", [0.01, 0.1])
def test_fits_that_pass_through_the_metric_reach_another_engine(C, monkeypatch):
    """Sparse rows: the same optimum as by the interior point method, and few sweeps."""
    rng = np.random.default_rng(3)
    X = sp.random(4000, 70, 0.15, format="csr", random_state=4)
    X.data[:] = 1.0
    y = np.where(X @ rng.standard_normal(70) + 2.0 * rng.standard_normal(4000) > 0, 1, -1)
    taken, whole = [], metric.MetricPasses.over

    def over(self, free):
        taken.append(free.shape[0])
        return whole(self, free)

    monkeypatch.setattr(metric.MetricPasses, "over", over)
    found = mdlearn.fit("ldm", X, y, C=C, tol=1e-8, solver="hybrid")
    other = mdlearn.fit("ldm", X, y, C=C, tol=1e-8, solver="interior")
    assert found.certificate.converged
    assert found.certificate.objective == pytest.approx(other.certificate.objective, rel=2e-8)
    assert 0 < len(taken) < 20
    assert sum(taken) < 3 * X.shape[0]
