"""Compiled products of CSR rows beside SciPy's, for every type, layout and range of rows."""

import numpy as np
import pytest
import scipy.sparse as sp

import mdlearn
from mdlearn._solvers import csr as kernels
from mdlearn.data.rows.arrays import check_rows


def matrix(dtype=np.float64, index=np.int32, m=83, d=40, seed=3):
    rng = np.random.default_rng(seed)
    X = sp.random(m, d, 0.2, format="csr", random_state=rng, data_rvs=rng.standard_normal).tolil()
    X[5] = X[41] = X[m - 1] = 0.0  # rows without an entry, the last one among them
    X = X.tocsr()
    A = sp.csr_matrix(X.shape, dtype=dtype)
    A.data, A.indices, A.indptr = X.data.astype(dtype), X.indices.astype(index), X.indptr.astype(index)
    return A, rng


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_are_those_of_the_dense_matrix(dtype, index):
    A, rng = matrix(dtype, index)
    rows, D = check_rows(A), A.toarray().astype(np.float64)
    assert np.shares_memory(rows.X.data, A.data) and rows.X.indices.dtype == index
    w, v = rng.standard_normal(A.shape[1]), rng.standard_normal(A.shape[0])
    v[::3] = 0.0
    for one, other in ((rows.dot(w), D @ w), (rows.adjoint(v), D.T @ v), (rows.squares(), (D * D).sum(axis=1))):
        assert one.dtype == np.float64 and np.allclose(one, other, rtol=1e-13, atol=1e-13)
    assert np.allclose(rows.squares(2.0 + w * w), (D * D / (2.0 + w * w)).sum(axis=1), rtol=1e-13)
    assert np.allclose(rows.column_squares(v), v @ (D * D), rtol=1e-13, atol=1e-13)
    W, V = rng.standard_normal((A.shape[1], 3)), rng.standard_normal((A.shape[0], 3))
    assert np.allclose(rows.dot(W), D @ W) and np.allclose(rows.adjoint(V), D.T @ V)


@pytest.mark.parametrize("first, last", [(0, 0), (0, 7), (6, 42), (82, 83)])
def test_a_range_touches_no_other_row(first, last):
    A, rng = matrix()
    D, w, v = A.toarray(), rng.standard_normal(A.shape[1]), rng.standard_normal(A.shape[0])
    parts = A.data, A.indices, A.indptr
    out, sums = np.full(A.shape[0], 7.0), np.ones(A.shape[1])
    kernels.dot(*parts, w, out, first, last)
    assert np.allclose(out[first:last], D[first:last] @ w)
    assert (np.delete(out, np.arange(first, last)) == 7.0).all()
    kernels.adjoint(*parts, v, sums, first, last)
    assert np.allclose(sums, 1.0 + D[first:last].T @ v[first:last])
    sums[:] = 1.0
    kernels.column_squares(*parts, v, sums, first, last)
    assert np.allclose(sums, 1.0 + v[first:last] @ D[first:last] ** 2)
    out[:] = 7.0
    kernels.squares(*parts, w * w, out, first, last)
    assert np.allclose(out[first:last], D[first:last] ** 2 @ (w * w))
    assert (np.delete(out, np.arange(first, last)) == 7.0).all()


def test_arrays_that_do_not_fit_are_refused():
    A, _ = matrix()
    parts, out, w = (A.data, A.indices, A.indptr), np.zeros(A.shape[0]), np.zeros(A.shape[1])
    with pytest.raises(ValueError, match="do not fit"):
        kernels.dot(*parts, w, out[1:], 0, 3)
    with pytest.raises(ValueError, match="do not fit"):
        kernels.adjoint(A.data, A.indices[1:], A.indptr, out, w, 0, 3)
    with pytest.raises(ValueError, match="do not fit"):
        kernels.column_squares(*parts, out[1:], w, 0, 3)
    for first, last in ((-1, 3), (4, 3), (0, A.shape[0] + 1)):
        with pytest.raises(ValueError, match="out of bounds"):
            kernels.squares(*parts, w, out, first, last)
    rows = check_rows(A)
    for product, length in ((rows.dot, A.shape[1] - 1), (rows.adjoint, A.shape[0] + 1)):
        with pytest.raises(ValueError, match="numbers is needed"):
            product(np.zeros(length))


@pytest.mark.parametrize("objective, solver", [("svm", "cd"), ("lsldm", "newton")])
def test_arrays_with_gaps_give_the_same_model(objective, solver):
    A, rng = matrix(m=2500, d=60)
    y = np.where(A @ rng.standard_normal(A.shape[1]) > 0.1, 1, -1)
    gaps = sp.csr_matrix(A.shape)
    gaps.data, gaps.indices, gaps.indptr = (np.repeat(part, 2)[::2] for part in (A.data, A.indices, A.indptr))
    models = [mdlearn.fit(objective, X, y, solver=solver, bias="regularized") for X in (A, gaps)]
    assert np.array_equal(models[0].coef_, models[1].coef_)
