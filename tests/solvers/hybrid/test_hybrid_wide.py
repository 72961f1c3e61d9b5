"""The hybrid engine over far more columns than rows: memory is that of the entries and of the rows, not of columns."""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hybrid_cases import LOSSES, OBJECTIVES

import mdlearn
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column
from mdlearn.numerics import memory
from mdlearn.solvers.hybrid import semismooth
from mdlearn.solvers.hybrid.loss_column import LossColumn
from mdlearn.solvers.hybrid.row_envelopes import LARGEST_MATRIX
from mdlearn.solvers.hybrid.smooth import SmoothNewton
from mdlearn.solvers.systems.whitening import LossColumnQuadratic


def wide(m, d, entries, seed=0):
    """CSR rows with a few entries each, and labels of a plane with noise."""
    rng = np.random.default_rng(seed)
    columns = np.sort((d * rng.random((m, entries)) ** 3).astype(np.int64), axis=1)
    X = sp.csr_matrix((rng.random(m * entries), (np.repeat(np.arange(m), entries), columns.ravel())), shape=(m, d))
    f = X @ rng.standard_normal(d)
    return X, np.where(f / f.std() + 0.5 * rng.standard_normal(m) > 0, 1, -1)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_matrix_over_columns(loss):
    """A matrix of 200,000 columns would take 320 GB."""
    X, y = wide(300, 200_000, 20)
    model = mdlearn.fit(OBJECTIVES[loss], X, y, tol=1e-8)
    assert model.certificate.converged
    warm = mdlearn.fit(OBJECTIVES[loss], X, y, C=3.0, tol=1e-8, warm_start=model)
    assert warm.certificate.converged


@pytest.mark.parametrize("bias", ["free", "regularized", "none"])
def test_steps_over_even_columns_know_what_coefficients_are_made_of(bias, monkeypatch):
    """Iterations keep to what rows make: the first place that meets `tol` is the answer, not what multipliers make."""
    X, y = wide(400, 6000, 20)
    X = X[:, 200:]  # those that hardly any row lacks
    seen, report = [], SmoothNewton.report
    monkeypatch.setattr(SmoothNewton, "report", lambda newton: seen.append(newton) or report(newton))
    model = mdlearn.fit("l2lr", X, y, lam=1e-5, bias=bias, tol=1e-6)
    newton = seen[-1]
    made = X.T @ (y * newton.alpha)
    assert not newton.iterated and np.abs(made - newton.w[: X.shape[1]]).max() <= 1e-12 * np.abs(newton.w).max()
    assert model.certificate.converged and np.allclose(X.T @ np.ravel(model.dual_coef_), np.ravel(model.coef_))


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_many_sparse_rows_and_columns_need_no_matrix_of_either(loss, monkeypatch):
    """Sweeps go over entries: a fit that they can make is not refused for matrices that it may not need."""
    X, y = wide(6000, 8000, 10)
    monkeypatch.setattr(memory, "available_bytes", lambda: 2e8)
    assert mdlearn.fit(OBJECTIVES[loss], X, y, C=0.05, solver="cd").certificate.converged
    assert mdlearn.fit(OBJECTIVES[loss], X, y, C=0.05).certificate.converged


@pytest.mark.parametrize("loss", LOSSES)
def test_vectors_of_many_coefficients_are_asked_for(loss, monkeypatch):
    X, y = wide(400, 300_000, 20)
    asked = []
    monkeypatch.setattr(memory, "require", lambda n_bytes, *rest: asked.append(n_bytes))
    fit = partial(mdlearn.fit, OBJECTIVES[loss], solver="hybrid", C=100.0, tol=1e-8)
    fit(X[:20], y[:20])  # what the first fit imports is not its own
    tracemalloc.start()
    try:
        fit(X, y)
        assert tracemalloc.get_traced_memory()[1] < 1.1 * asked[-1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("alpha", [5.0, 20.0])
def test_few_rows_of_one_class_and_a_steep_loss(alpha):
    """A full step takes all margins through their kinks at once, to where no loss bends: it went on to 1e28."""
    X, _ = wide(1500, 2500, 20)
    X = sp.csr_matrix(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1))))
    f = X @ np.random.default_rng(0).standard_normal(2500)
    y = np.where(f > np.quantile(f, 0.95), 1, -1)
    found = mdlearn.fit("mlr", X, y, alpha=alpha, solver="hybrid", tol=1e-8).certificate
    other = mdlearn.fit("mlr", X, y, alpha=alpha, solver="apg", tol=1e-8).certificate
    assert found.converged and other.converged
    assert found.lower_bound <= other.objective * (1 + 1e-12) and other.lower_bound <= found.objective * (1 + 1e-12)


@pytest.mark.parametrize("C", [3.0, 100.0])
def test_steps_on_squared_hinges_need_no_matrix(C):
    """Steps are conjugate gradients where the matrix of the rows, and that of the columns, are beyond the largest one.

    At C = 100 rows with a loss are fewer than columns.
    """
    X, y = wide(7000, 2300, 10)
    start = mdlearn.fit("lsvm", X, y, nu=0.2 * C, tol=1e-4)
    model = mdlearn.fit("lsvm", X, y, nu=2.0 * C, solver="hybrid", tol=1e-6, warm_start=start)
    assert model.certificate.converged and np.count_nonzero(model.dual_coef_) > LARGEST_MATRIX


@pytest.mark.parametrize("a", [0.0, 2.0])
@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_conjugate_gradients_on_squared_hinges_know_what_coefficients_are_made_of(a, bias, monkeypatch):
    """Over fewer rows than columns w = R'alpha + e at every place, begun at weights of rows without a loss, too."""
    X, y = wide(900, 9000, 20)
    monkeypatch.setattr(semismooth, "price_of_large_factor", lambda order: np.inf)
    monkeypatch.setattr(semismooth, "price_of_factored_newton_sweeps", lambda problem: lambda free: np.inf)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    column = Column(y.astype(float), weight, 0.0, a, (HingeTerm(20.0, power=2),))
    rows = CsrRows(X)
    problem = LossColumn(column, AffineRows(rows, bias == "regularized"), np.ravel(X.multiply(X).sum(axis=1)), rows)
    problem.quadratic = LossColumnQuadratic(None, None, False)
    alpha = np.random.default_rng(2).uniform(0.0, 1.0, len(y))
    w = problem.adjoint(alpha) + (0.0 if problem.pulled is None else problem.pulled)
    newton, places = semismooth.SemismoothNewton(problem, w, problem.caps, 0.0, alpha), 0
    for new in newton.steps():
        if new:
            made = problem.adjoint(newton.alpha) + (0.0 if problem.pulled is None else problem.pulled)
            assert newton.iterations and np.abs(made - newton.w).max() <= 1e-9 * np.abs(newton.w).max()
            pushed = problem.adjoint(newton.beta) + (0.0 if problem.pulled is None else problem.pulled)
            value = problem.gain(newton.beta) - 0.5 * float(pushed @ pushed)
            assert newton.lower_bound == pytest.approx(value, rel=1e-10)
            places += 1
        if newton.gap <= 1e-8 * newton.objective or places > 60:
            break
    assert newton.gap <= 1e-8 * newton.objective


def test_steps_are_made_by_factors_once_conjugate_gradients_do_not_end_one(monkeypatch):
    """Of a steep loss that falls by a thousandth a step otherwise: the price of the steps that were cut off was low."""
    X, y = wide(900, 9000, 20)
    monkeypatch.setattr(semismooth, "MOST_GRADIENT_ITERATIONS", 3)
    monkeypatch.setattr(semismooth, "price_of_gradient_steps", lambda problem, free: 0.0)
    column, rows = Column(y.astype(float), np.ones(len(y)), 0.0, 0.0, (HingeTerm(1e4, power=2),)), CsrRows(X)
    problem = LossColumn(column, AffineRows(rows, False), np.ravel(X.multiply(X).sum(axis=1)), rows)
    problem.quadratic = LossColumnQuadratic(None, None, False)
    newton = semismooth.SemismoothNewton(problem, np.zeros(X.shape[1]), problem.caps, 0.0, np.zeros(len(y)))
    places = sum(1 for new in zip(newton.steps(), range(40)) if new[0])
    assert newton.factored and places > 1 and newton.gap <= 1e-8 * newton.objective


def test_coefficients_of_steep_losses_are_what_multipliers_make():
    """Those of a step by the inner products of rows come from these, not from margins that the loss multiplies."""
    X, y = wide(900, 9000, 20)
    column, rows = Column(y.astype(float), np.ones(len(y)), 0.0, 0.0, (HingeTerm(1e4, power=2),)), CsrRows(X)
    problem = LossColumn(column, AffineRows(rows, False), np.ravel(X.multiply(X).sum(axis=1)), rows)
    problem.quadratic = LossColumnQuadratic(None, None, False)
    newton = semismooth.SemismoothNewton(problem, np.zeros(X.shape[1]), problem.caps, 0.0, np.zeros(len(y)))
    newton.may_iterate = False
    for _, new in zip(range(40), newton.steps()):
        made = problem.adjoint(newton.alpha)
        assert not new or np.abs(made - newton.w).max() <= 1e-8 * np.abs(newton.w).max()
    assert newton.gap <= 1e-8 * newton.objective


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_columns_that_were_even_are_not_asked_for_at_every_step(bias, monkeypatch):
    """The ridge preconditions as the second derivatives of even columns would, which then take a pass once."""
    X = sp.random(700, 1600, 0.02, "csr", random_state=2)
    y = np.where(np.random.default_rng(2).standard_normal(1600) @ X.T > 0, 1, -1)
    asked, used, one, made = [], [], AffineRows.column_squares, SmoothNewton._diagonal

    def noted(self):
        diagonal, even = made(self)
        squares = np.hstack([X.toarray() ** 2, np.ones((700, 1))])[:, : diagonal.shape[0]]
        own = self.ridge + squares.T @ self.bends
        used.append(even)
        np.testing.assert_allclose(diagonal, np.minimum(own, 1.0) if even else own, rtol=1e-12)
        return diagonal, even

    monkeypatch.setattr(AffineRows, "column_squares", lambda *given: (asked.append(1), one(*given))[1])
    monkeypatch.setattr(SmoothNewton, "_diagonal", noted)
    model = mdlearn.fit(OBJECTIVES["logistic"], X, y, C=3.0, bias=bias, tol=1e-8, solver="hybrid")
    assert model.certificate.converged and len(used) >= 3 and all(used)
    assert len(asked) < len(used)
