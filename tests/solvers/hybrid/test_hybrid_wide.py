"""The hybrid engine over far more columns than rows: memory is that of the entries and of the rows, not of columns."""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hybrid_cases import LOSSES, OBJECTIVES

import mdlearn
from mdlearn.numerics import memory
from mdlearn.solvers.hybrid.smooth import SmoothNewton


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
