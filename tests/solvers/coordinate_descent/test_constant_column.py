"""A column of ones in sparse rows: `cd` takes it out as a regularized bias; the answer is that of the rows as given."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from pairwise import pairs_first

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.csr_rows import CsrRows, CsrRowsWithoutColumn
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.solvers.common import constant_column

M, D = 3000, 40


@pytest.fixture(scope="module")
def text():
    """Sparse rows of which none has the last column, and labels."""
    rng = np.random.default_rng(0)
    X = sp.random(M, D, density=0.15, random_state=1, format="csr")
    y = np.where(X @ rng.standard_normal(D) + 0.3 * rng.standard_normal(M) + 0.2 > 0, 1, -1)
    return X, y


def with_column(X, values, place):
    """X with a dense column at a place."""
    return sp.csr_matrix(sp.hstack([X[:, :place], sp.csr_matrix(values[:, None]), X[:, place:]]))


def form_of(X, y, bias="none"):
    column = Column(y.astype(float), np.ones(M), 1.0, 0.5, (HingeTerm(1.0),))
    return MarginForm(LinearFeatures(CsrRows(X)), (column,), bias)


@pytest.mark.parametrize("value", [1.0, -1.0])
@pytest.mark.parametrize("place", [0, 17, D])
def test_the_column_is_found_and_the_rest_is_kept(text, value, place):
    X, y = text
    Z = with_column(X, np.full(M, value), place)
    before = Z.copy()
    found = constant_column.fold_constant_column(form_of(Z, y))
    assert (found.place, found.value, found.form.bias) == (place, value, "regularized")
    rest = found.form.features.rows.matrix()
    assert rest.shape == Z.shape and (with_column(X, np.zeros(M), place) != rest).nnz == 0
    assert (before != Z).nnz == 0
    w = np.arange(D + 1.0)
    point = found.unfolded(Point(np.zeros((1, M)), np.zeros(M), w, 3.0))
    assert point.intercept == 0.0 and point.coef[place] == 3.0 * value and w[place] == place
    # The same decision values.
    w[place] = 0.0
    np.testing.assert_allclose(Z @ point.coef, rest @ w + 3.0)


def test_what_is_no_such_column(text):
    X, y = text
    ones = np.ones(M)
    assert constant_column.fold_constant_column(form_of(X, y)) is None
    assert constant_column.fold_constant_column(form_of(with_column(X, 2 * ones, 3), y)) is None
    for value in (0.0, -1.0, 1.0 + 1e-12):
        other = ones.copy()
        other[M - 2] = value
        assert constant_column.fold_constant_column(form_of(with_column(X, other, 3), y)) is None
    Z = with_column(X, ones, 3)
    for bias in ("regularized", "free"):
        assert constant_column.fold_constant_column(form_of(Z, y, bias)) is None
    scaled = MarginForm(LinearFeatures(CsrRows(Z), np.full(D + 1, 2.0)), form_of(Z, y).columns, "none")
    assert constant_column.fold_constant_column(scaled) is None


def test_rows_without_a_column_are_rows_with_an_empty_one(text):
    X, _ = text
    Z, rng = with_column(X, np.full(M, -1.0), 17), np.random.default_rng(2)
    rows, rest = CsrRowsWithoutColumn(Z, 17), with_column(X, np.zeros(M), 17).toarray()
    before, v, scale = Z.copy(), rng.standard_normal(M), 1.0 + rng.random(D + 1)
    some = np.array([5, 2, 2999])
    for w in (rng.standard_normal(D + 1), rng.standard_normal((D + 1, 2))):
        np.testing.assert_allclose(rows.dot(w), rest @ w)
    np.testing.assert_allclose(rows.adjoint(v), rest.T @ v, atol=1e-12)
    np.testing.assert_allclose(rows.adjoint(np.stack([v, -v], axis=1))[:, 1], -(rest.T @ v), atol=1e-12)
    np.testing.assert_allclose(rows.squares(), (rest**2).sum(axis=1))
    np.testing.assert_allclose(rows.squares(scale), (rest**2) @ (1 / scale))
    np.testing.assert_allclose(rows.column_squares(np.abs(v)), np.abs(v) @ rest**2)
    np.testing.assert_array_equal(rows.block(some), rest[some])
    np.testing.assert_array_equal(rows.take(some).block(slice(None)), rest[some])
    np.testing.assert_allclose(rows.take(some).scaled(scale).matrix().toarray(), rest[some] * scale)
    np.testing.assert_allclose(rows.scaled(scale).matrix().toarray(), rest * scale)
    assert (before != Z).nnz == 0


@pytest.mark.parametrize(
    *pairs_first(
        kind=[np.float64, np.float32],
        index=[np.int32, np.int64],
        weights=[{"lambda1": 0.0}, {"lambda1": 1.0}, {"lambda1": 16.0 * M}, {"C": 0.0, "lambda1": 5.0}],
    )
)
def test_the_same_optimum_as_by_other_engines(text, kind, index, weights):
    X, y = text
    Z = with_column(X, np.ones(M), D).astype(kind)
    Z.indices, Z.indptr = Z.indices.astype(index), Z.indptr.astype(index)
    tol = 1e-9 if kind is np.float64 else 1e-5
    swept = mdlearn.fit("ldm", Z, y, bias="none", solver="cd", tol=tol, **weights)
    other = mdlearn.fit("ldm", Z, y, bias="none", solver="interior", tol=tol, **weights)
    assert swept.certificate.converged and swept.coef_.shape == (1, D + 1) and swept.intercept_[0] == 0.0
    scale = max(abs(other.certificate.objective), 1e-12)
    assert abs(swept.certificate.objective - other.certificate.objective) <= 3 * tol * scale
    assert swept.certificate.lower_bound <= other.certificate.objective + 1e-12 * scale
    alpha = swept.dual_coef_[0].astype(float)
    if kind is np.float64:
        np.testing.assert_allclose(Z.T @ alpha, swept.coef_[0], atol=1e-9 * np.abs(swept.coef_).max())


def test_it_is_the_regularized_bias(text):
    X, y = text
    Z = with_column(X, np.ones(M), D)
    column = mdlearn.fit("svm", Z, y, bias="none", solver="cd", tol=1e-10)
    bias = mdlearn.fit("svm", X, y, bias="regularized", solver="cd", tol=1e-10)
    assert column.certificate.objective == pytest.approx(bias.certificate.objective, rel=1e-9)
    assert column.coef_[0, -1] == pytest.approx(bias.intercept_[0], abs=1e-5)


@pytest.mark.slow
def test_several_classes(text):
    X, _ = text
    Z = with_column(X, np.ones(M), 0)
    y = np.argmax(X[:, :3].toarray() + 0.1 * np.random.default_rng(3).random((M, 3)), axis=1)
    swept = mdlearn.fit("svm", Z, y, bias="none", solver="cd", n_threads=2)
    other = mdlearn.fit("svm", Z, y, bias="none", solver="interior")
    assert swept.certificate.converged
    assert swept.certificate.objective == pytest.approx(other.certificate.objective, rel=5e-6)
