"""Work that goes in pieces, so that Ctrl-C is seen between them, gives what one call would have given."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import mdlearn.data.labels
import mdlearn.data.rows.arrays
import mdlearn.data.rows.csr_rows
import mdlearn.data.rows.rows
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.labels import check_labels
from mdlearn.data.rows.arrays import copied_by_rows, zeros_by_rows
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.distinct import distinct
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.certificates.representer import representer
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.numerics import cholesky

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Pieces of a few entries, so that small arrays need many."""
    monkeypatch.setattr(mdlearn.data.labels, "SORTED_LABELS", 5)
    monkeypatch.setattr(mdlearn.data.rows.arrays, "CONVERTED_ENTRIES", 7)
    for module in (mdlearn.data.rows.rows, mdlearn.data.rows.arrays, mdlearn.data.rows.csr_rows):
        monkeypatch.setattr(module, "BLOCK_ENTRIES", 16)


LABELS = [
    RNG.integers(-3, 4, 101),
    RNG.choice([0.5, -0.0, 0.0, 7.25], 101),
    RNG.choice(["b", "a", "longer"], 101),
    RNG.choice([True, False], 101),
    np.array(["x", "yy"], dtype=object)[RNG.integers(0, 2, 101)],
]


@pytest.mark.parametrize("y", LABELS, ids=[str(y.dtype) + y.dtype.kind for y in LABELS])
def test_labels(y):
    classes, codes = check_labels(y, len(y))
    wanted, places = np.unique(y.astype(str) if y.dtype.kind == "O" else y, return_inverse=True)
    assert classes.tolist() == wanted.tolist() and np.array_equal(codes, places)
    assert codes.dtype == np.intp


def test_no_labels():
    classes, codes = check_labels([], 0)
    assert classes.shape == codes.shape == (0,)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_rows(dtype, order, rng):
    X = np.asarray(rng.standard_normal((40, 3)), dtype=dtype, order=order)
    rows = rng.integers(0, 40, 57)
    taken = DenseRows(X).take(rows)
    assert taken.dtype == dtype and np.array_equal(taken.X, X[rows])
    assert np.array_equal(copied_by_rows(X[5:, 1:]), X[5:, 1:])
    assert np.array_equal(zeros_by_rows(9), np.zeros((9, 9))) and zeros_by_rows(0).shape == (0, 0)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["int64", "uint8", ">f4", "bool", "float16"])
def test_other_types_are_converted_in_their_layout(dtype, order, rng):
    X = np.asarray(rng.integers(0, 2, (41, 5)), dtype=dtype, order=order)
    made = mdlearn.data.rows.arrays.check_rows(X).X
    assert made.dtype == (np.float32 if dtype == ">f4" else np.float64)
    assert np.array_equal(made, X) and made.flags.f_contiguous == (order == "F")


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_sparse_rows(kind, rng):
    X = sp.random(60, 9, 0.3, format="csr", random_state=1)
    X.indices, X.indptr = X.indices.astype(kind), X.indptr.astype(kind)
    rows = rng.integers(0, 60, 80)
    taken = CsrRows(X).take(rows).X
    assert (taken != X[rows]).nnz == 0 and taken.shape == (80, 9)
    assert taken.indices.dtype == taken.indptr.dtype == kind


@pytest.mark.parametrize("kind", [sp.coo_matrix, sp.coo_array, sp.csc_matrix, sp.csc_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_formats(kind, dtype, rng):
    """Duplicates are summed, indices sorted, whatever the format."""
    places = rng.integers(0, 40, 300), rng.integers(0, 9, 300)
    values = rng.integers(-4, 5, 300).astype(dtype)
    X = kind((values, places), shape=(40, 9))
    wanted = np.zeros((40, 9))
    np.add.at(wanted, places, values)
    made = mdlearn.data.rows.arrays.check_rows(X).X
    assert made.format == "csr" and made.dtype == dtype and np.array_equal(made.toarray(), wanted)
    assert all((np.diff(made.indices[a:b]) > 0).all() for a, b in zip(made.indptr, made.indptr[1:]))


def test_unsorted_csr():
    data, indices, ends = np.arange(1.0, 61.0), np.tile([3, 0, 3, 1], 15), np.arange(0, 61, 4)
    X = sp.csr_matrix((data, indices, ends), shape=(15, 4))
    wanted = X.toarray()
    made = mdlearn.data.rows.arrays.check_rows(X).X
    assert np.array_equal(made.toarray(), wanted) and made.nnz == 45
    assert np.array_equal(X.indices, indices), "the caller's matrix was changed"


@pytest.mark.parametrize("levels", [2, 50])
def test_distinct_rows(levels, rng):
    X = rng.integers(-levels, levels, (400, 3)).astype(float)
    counts = rng.integers(0, 3, 400).astype(float)
    found = distinct(DenseRows(X), counts)
    wanted, place = np.unique(X[counts > 0], axis=0, return_inverse=True)
    assert np.array_equal(X[found.where], wanted)
    assert np.array_equal(found.counts, np.bincount(place.ravel(), weights=counts[counts > 0]))


@pytest.mark.parametrize("shape", [(700,), (700, 3)])
def test_solutions_by_panels(shape, monkeypatch, rng):
    monkeypatch.setattr(cholesky, "PANEL_SOLVE_ROWS", 600)
    B = rng.standard_normal((700, 700))
    A = B @ B.T + 700.0 * np.eye(700)
    L = A.copy()
    for _ in cholesky.cholesky(L):
        pass
    b = rng.standard_normal(shape)
    assert np.abs(A @ cholesky.cholesky_solve(L, b) - b).max() < 1e-12


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("spread", [0.0, 6.0])
def test_nearest_dual_coefficients(bias, spread, rng):
    """They stand for the coefficients, also where columns differ by orders of magnitude, and none are nearer."""
    m, d = 80, 12
    X = rng.standard_normal((m, d)) @ (np.eye(d) + 0.9) * 10.0 ** rng.uniform(-spread, spread, d)
    y = np.where(rng.random(m) < 0.5, 1.0, -1.0)
    form = MarginForm(LinearFeatures(DenseRows(X)), (Column(y, np.ones(m), 0.0, 0.0, (HingeTerm(1.0),)),), bias)
    start, wanted = rng.standard_normal(m), rng.standard_normal(m)
    rows = np.column_stack([X, np.ones(m)]) if bias == "regularized" else X
    target = rows.T @ wanted
    alpha = representer(form, start, target[:d], float(wanted.sum()))
    sizes = np.abs(rows).T @ np.abs(alpha)
    assert (np.abs(rows.T @ alpha - target) <= 1e-10 * sizes).all()
    scaled = rows / np.linalg.norm(rows, axis=0)
    nearest = start + scaled @ np.linalg.lstsq(scaled.T @ scaled, scaled.T @ (wanted - start), rcond=None)[0]
    assert np.linalg.norm(alpha - start) <= np.linalg.norm(nearest - start) * (1 + 1e-6)
