"""The hybrid engine on rows as they come: types, layouts, files, odd shapes, scales."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hybrid_cases import LOSSES, OBJECTIVES, optimum, sample
from layouts import LAYOUTS, MATRICES, rows, sparse_rows

import mdlearn
from mdlearn.data.rows.rows import DenseRows
from mdlearn.solvers.hybrid import loss_column


def fit(loss, X, y, **given):
    return mdlearn.fit(OBJECTIVES[loss], X, y, **{"solver": "hybrid", **given})


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "layout", ["fortran", "every other row and column", "negative strides", "memory map", "unaligned"]
)
def test_layouts(loss, dtype, layout, tmp_path):
    X, y = rows(200, 6)
    X = X.astype(dtype)
    tol = 1e-5 if dtype == np.float32 else 1e-8
    plain = fit(loss, X, y, tol=tol)
    given = LAYOUTS[layout](X, tmp_path)
    model = fit(loss, given, y, tol=tol)
    assert model.certificate.converged and model.coef_.dtype == dtype
    assert model.certificate.objective == pytest.approx(plain.certificate.objective, rel=2 * tol)


@pytest.mark.parametrize("loss", LOSSES)
def test_dense_rows_that_are_mostly_zeros_are_passed_over_without_them(loss, monkeypatch):
    """No product with one vector, those of the certificate included, goes over the zeros; the values are the same."""
    X, y = sparse_rows(300, 80)
    X, y, passes = X.toarray().astype(np.float64), 2.0 * y - 1.0, []
    monkeypatch.setattr(loss_column, "WHOLE_BLOCK_ENTRIES", 0)
    for name in ("dot", "adjoint", "column_squares"):
        own = getattr(DenseRows, name)
        monkeypatch.setattr(DenseRows, name, lambda self, *a, own=own: passes.append(1) or own(self, *a))
    model = fit(loss, X, y, bias="regularized", tol=1e-9)
    assert model.certificate.converged and not passes
    value, f = optimum(loss, X, y, "regularized")
    assert model.certificate.lower_bound <= value * (1 + 1e-9)
    assert model.certificate.objective == pytest.approx(value, rel=2e-9)
    assert model.decision_function(X) == pytest.approx(f, abs=1e-3)


def test_wide_logistic_losses_ask_for_no_matrix(monkeypatch):
    """Over many columns the diagonal preconditions: there is no matrix to have memory for."""
    rng = np.random.default_rng(0)
    X = sp.random(3000, 2500, 0.01, format="csr", random_state=rng)
    y = np.where(X @ rng.standard_normal(2500) > 0, 1.0, -1.0)
    monkeypatch.setattr("mdlearn.numerics.memory.available_bytes", lambda: 4e7)
    assert fit("logistic", X, y, tol=1e-5).certificate.converged


@pytest.mark.parametrize("loss", LOSSES)
def test_read_only_rows(loss):
    X, y = rows(200, 6)
    plain = fit(loss, X, y, tol=1e-5)
    X.flags.writeable = False
    model = fit(loss, X, y, tol=1e-5)
    assert np.array_equal(model.coef_, plain.coef_)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("matrix", ["int64", "read-only", "read-only int64", "memory map", "csc", "dense"])
def test_csr(loss, matrix, tmp_path):
    X, y = sparse_rows(600, 20)
    X = X.astype(np.float64)
    plain = fit(loss, X, y, tol=1e-9)
    model = fit(loss, MATRICES[matrix](X, tmp_path), y, tol=1e-9)
    assert model.certificate.converged
    assert model.certificate.objective == pytest.approx(plain.certificate.objective, rel=2e-9)
    if matrix != "dense":
        assert np.array_equal(model.coef_, plain.coef_), "the same entries, the same bits"


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("case", ["zeros", "duplicates", "one column", "few rows", "two rows", "separable", "scales"])
def test_odd_shapes(loss, case):
    X, y = sample(30, 4, seed=5)
    if case == "zeros":
        X[3:9] = 0.0
    elif case == "duplicates":
        X, y = np.vstack([X, X, X[:5]]), np.concatenate([y, y, -y[:5]])
    elif case == "one column":
        X = X[:, :1]
    elif case == "few rows":
        X, y = sample(12, 50, seed=5)
    elif case == "two rows":
        X, y = np.array([[1.0, 2.0], [0.5, -1.0]]), np.array([1, -1])
    elif case == "separable":
        y = np.where(X[:, 0] > 0, 1, -1)
    else:
        X = X * np.array([1e-3, 1.0, 30.0, 1e-1])
    for bias in ("none", "regularized"):
        for A in (X, sp.csr_matrix(X)):
            model = fit(loss, A, y, bias=bias, tol=1e-10)
            best, f = optimum(loss, X, y, bias)
            assert model.certificate.converged
            assert model.certificate.objective == pytest.approx(best, rel=1e-9, abs=1e-14)
            assert model.certificate.lower_bound <= best + 1e-12 * max(1.0, abs(best))
            np.testing.assert_allclose(model.decision_function(A), f, atol=2e-3 * np.abs(f).max() + 1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_without_any_entry(loss):
    y = np.where(np.arange(20) % 2, 1, -1)
    for X in (np.zeros((20, 3)), sp.csr_matrix((20, 3))):
        for bias in ("none", "regularized"):
            model = fit(loss, X, y, bias=bias)
            assert model.certificate.converged and (model.coef_ == 0).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_random_scales_sizes_and_weights(loss):
    for seed in range(25):
        rng = np.random.default_rng(seed)
        m, d, C = int(rng.integers(4, 120)), int(rng.integers(1, 25)), 10.0 ** rng.uniform(-4, 4)
        X = rng.standard_normal((m, d)) * 10.0 ** rng.uniform(-2, 2, d)
        noise = rng.choice([0.0, 0.5]) * rng.standard_normal(m)
        y = np.where(X[:, 0] / np.abs(X[:, 0]).max() + noise > 0, 1, -1)
        y[:2] = 1, -1
        weight = rng.exponential(1.0, m)
        bias = str(rng.choice(["none", "regularized"]))
        other = mdlearn.fit(
            OBJECTIVES[loss], X, y, C=C, sample_weight=weight, bias=bias, tol=1e-9,
            solver="newton" if loss == "logistic" else "interior",
        )  # fmt: skip
        model = fit(loss, X, y, C=C, sample_weight=weight, bias=bias, tol=1e-8)
        assert model.certificate.converged, (seed, m, d, C, bias)
        top = max(model.certificate.objective, 0.01 * C * weight.sum())
        assert abs(model.certificate.objective - other.certificate.objective) <= 2e-8 * top, (seed, m, d, C, bias)
        assert model.certificate.lower_bound <= other.certificate.objective + 1e-12 * top, (seed, m, d, C, bias)
