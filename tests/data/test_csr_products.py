"""Compiled products of CSR rows beside SciPy's, for every type, layout and range of rows."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import mdlearn
from mdlearn._solvers import csr as kernels
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.arrays import check_rows
from mdlearn.data.rows.csr_rows import CsrRows, CsrRowsWithoutColumn, csr_copy_of_dense_rows
from mdlearn.data.rows.rows import DenseRows


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
    z, sums = rows.dot_and_adjoint(w, 0.5, v)
    assert np.allclose(z, D @ w + 0.5, rtol=1e-13) and np.allclose(sums, D.T @ (v * (D @ w + 0.5)), rtol=1e-12)
    W, V = rng.standard_normal((A.shape[1], 3)), rng.standard_normal((A.shape[0], 3))
    assert np.allclose(rows.dot(W), D @ W) and np.allclose(rows.adjoint(V), D.T @ V)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_written_into_the_room_for_them_and_nowhere_else(dtype, index):
    A, _ = matrix(dtype, index)
    D, chosen = A.toarray().astype(np.float64), np.array([82, 5, 0, 41, 7, 7])
    without = D.copy()
    without[:, 3] = 0.0
    for rows, dense in ((CsrRows(A), D), (CsrRowsWithoutColumn(A, 3), without), (DenseRows(A.toarray()), D)):
        room = np.full((8, 43), 7.0)
        rows.write(chosen, room[1:7, 2:42])
        np.testing.assert_array_equal(room[1:7, 2:42], dense[chosen])
        room[1:7, 2:42] = 7.0
        assert (room == 7.0).all()
    for wrong in ([83], [-1]):
        with pytest.raises(ValueError, match="out of range"):
            CsrRows(A).write(np.array(wrong), np.empty((1, 40)))


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
    sums[:] = 1.0
    kernels.dot_and_adjoint(*parts, w, 0.5, v, out, sums, first, last)
    assert np.allclose(out[first:last], D[first:last] @ w + 0.5)
    assert (np.delete(out, np.arange(first, last)) == 7.0).all()
    assert np.allclose(sums, 1.0 + D[first:last].T @ (v * out)[first:last])
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


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_indicators_read_no_entries_and_have_the_same_bits(dtype, index):
    A, rng = matrix(dtype, index)
    A.data[:] = 1.0
    rows, read, parts = CsrRows(A), CsrRows(A.copy()), (A.data, A.indices, A.indptr)
    vars(read)["entries_but_ones"] = A.data
    assert rows.entries_but_ones.shape == (0,) and rows.entries_but_ones.dtype == np.int8
    w, v = rng.standard_normal(A.shape[1]), rng.standard_normal(A.shape[0])
    assert np.allclose(rows.dot(w), A.toarray() @ w) and np.allclose(rows.adjoint(v), A.toarray().T @ v)
    assert np.array_equal(rows.dot(w), read.dot(w)) and np.array_equal(rows.adjoint(v), read.adjoint(v))
    for one, other in zip(rows.dot_and_adjoint(w, 0.5, v), read.dot_and_adjoint(w, 0.5, v)):
        assert np.array_equal(one, other)
    with pytest.raises(ValueError, match="none is read"):
        kernels.dot(np.ones(A.nnz, np.int8), *parts[1:], w, np.empty(A.shape[0]), 0, 3)
    with pytest.raises(ValueError, match="indptr does not fit"):
        kernels.dot(rows.entries_but_ones, A.indices[:-1], A.indptr, w, np.empty(A.shape[0]), 0, A.shape[0])


@pytest.mark.parametrize("place", [0, 7, -1])
def test_rows_with_one_entry_other_than_1_keep_their_entries(place, monkeypatch):
    monkeypatch.setattr("mdlearn.data.rows.csr_rows.SPAN_ENTRIES", 64)
    A = matrix()[0]
    A.data[:] = 1.0
    A.data[place] = np.nextafter(1.0, 2.0)
    assert CsrRows(A).entries_but_ones is A.data


@pytest.mark.parametrize("constant", [False, True])
def test_affine_rows_multiply_twice_in_one_pass(constant):
    A, rng = matrix()
    column, v = 4, rng.standard_normal(A.shape[0])
    for one in (CsrRows(A), CsrRowsWithoutColumn(A, place=column), DenseRows(A.toarray())):
        rows = AffineRows(one, constant)
        w = rng.standard_normal(rows.width)
        z, sums = rows.dot_and_adjoint(w, v)
        assert np.allclose(z, rows.dot(w), rtol=1e-13) and np.allclose(sums, rows.adjoint(v * z), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["rows", "columns", "every second", "few in the sample", "no zeros", "zeros"])
def test_a_copy_without_zeros_has_all_other_entries(layout, dtype):
    X = matrix(dtype, m=700, d=50)[0].toarray()
    X[3, 7], X[4, 8] = -0.0, np.nan
    if layout == "columns":
        X = np.asfortranarray(X)
    elif layout == "every second":
        X = np.repeat(X, 2, axis=1)[:, ::2]
    elif layout == "few in the sample":  # which is every second row
        X[1::2] = 1.0
    elif layout in ("no zeros", "zeros"):
        X[:] = layout == "no zeros"
    copy, expected = csr_copy_of_dense_rows(DenseRows(X)).X, sp.csr_matrix(X)
    assert copy.data.dtype == dtype and copy.indices.dtype == copy.indptr.dtype == np.int32
    for part in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(copy, part), getattr(expected, part), equal_nan=part == "data")


def test_a_copy_of_rows_that_the_sample_misjudges_needs_no_room_twice():
    """Each attempt kept the one before it, and doubled room beyond all entries: 29 bytes an entry."""
    X = np.ones((2560, 60))
    X[::10] = 0.0  # the sample
    tracemalloc.start()
    copy = csr_copy_of_dense_rows(DenseRows(X)).X
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert copy.nnz == np.count_nonzero(X)
    assert peak <= 13.0 * X.size


@pytest.mark.parametrize("objective, solver", [("svm", "cd"), ("lsldm", "newton")])
def test_arrays_with_gaps_give_the_same_model(objective, solver):
    A, rng = matrix(m=2500, d=60)
    y = np.where(A @ rng.standard_normal(A.shape[1]) > 0.1, 1, -1)
    gaps = sp.csr_matrix(A.shape)
    gaps.data, gaps.indices, gaps.indptr = (np.repeat(part, 2)[::2] for part in (A.data, A.indices, A.indptr))
    models = [mdlearn.fit(objective, X, y, solver=solver, bias="regularized") for X in (A, gaps)]
    assert np.array_equal(models[0].coef_, models[1].coef_)
