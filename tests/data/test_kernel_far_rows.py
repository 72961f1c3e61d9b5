"""Gaussian kernels of rows that are very far apart in units of their width: distances are made of differences."""

from __future__ import annotations

import numpy as np
import pytest
from reference import gram
from scipy import sparse

import mdlearn

KINDS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_array,
    "csr float32": lambda X: sparse.csr_array(X.astype(np.float32)),
}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(params=KINDS)
def rows(request, rng):
    """Thirty rows about 1e7 apart, of which the last five come twice; as they are, and in float64."""
    X = 1e7 * rng.standard_normal((30, 3))
    X[-5:] = X[-10:-5]
    given = KINDS[request.param](X)
    return given, np.asarray(given.todense() if sparse.issparse(given) else given, dtype=float)


@pytest.mark.parametrize("gamma", [1e-3, 1e3])
def test_the_gram_matrix_is_that_of_the_formula(rows, rng, gamma):
    """K is 1 between equal rows and 0 elsewhere; the least-squares SVM then has its answer in closed form."""
    given, X = rows
    y = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    K = gram(X, X, "rbf", gamma=gamma).astype(float)
    model = mdlearn.fit("lssvm", given, y, kernel="rbf", gamma=gamma, C=2.0, bias="none", tol=1e-13)
    alpha = np.linalg.solve(K + np.eye(30) / 2.0, y)
    np.testing.assert_allclose(model.dual_coef_[0], alpha, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.decision_function(given), K @ alpha, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_one_kind_against_rows_of_another(rows, kind):
    """Rows that float32 cannot hold are rows of their own there."""
    given, X = rows
    y = np.resize([1.0, -1.0], 30)
    model = mdlearn.fit("svm", given, y, kernel="rbf", gamma=1e3)
    other = KINDS[kind](X)
    dense = other.todense() if sparse.issparse(other) else other
    f = gram(dense, X, "rbf", gamma=1e3).astype(float) @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(other), f, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_scale_of_gamma_is_that_of_the_rows_in_every_layout(dtype):
    """The variance of entries that are far from 0 is no difference of two sums of squares."""
    rng = np.random.default_rng(0)
    X = (3e5 + 10.0 * rng.standard_normal((40, 4))).astype(dtype)
    y = rng.integers(0, 2, 40)
    weight = rng.integers(1, 4, 40).astype(float)
    entries = np.repeat(X.astype(float), weight.astype(int), axis=0)
    right = 1.0 / (4 * entries.var())
    for rows in (X, sparse.csr_matrix(X), sparse.csr_array(X)):
        one = mdlearn.fit("svm", rows, y, kernel="rbf", sample_weight=weight)
        assert one.params["gamma"] == pytest.approx(right, rel=1e-13)
        blocks = [(rows[:25], y[:25], weight[:25]), (rows[25:], y[25:], weight[25:])]
        given = {"kernel": "rbf", "approximation": "nystroem", "n_components": 5}
        assert mdlearn.fit("svm", blocks, None, **given).params["gamma"] == pytest.approx(right, rel=1e-13)
