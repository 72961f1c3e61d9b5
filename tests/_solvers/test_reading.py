"""Two labels in one pass, against NumPy's sorting; what is no pair of finite numbers is left to others.

Squared lengths of rows, against exact sums.
"""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from mdlearn._solvers import csr, reading
from mdlearn.data.labels import check_labels
from mdlearn.data.rows.arrays import check_rows
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows

DTYPES = ("?", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64", ">i4", ">f8")


@pytest.mark.parametrize("given", [[5, 3, 3, 5, 3], [0, 0, 1], [-2.0, 7.5], [2**53, 2**53 + 1, 2**53]])
@pytest.mark.parametrize("step", [1, 2])
def test_two_labels_are_those_of_sorting(given, step):
    labels = np.repeat(given, step)[::step]
    codes = np.full(len(labels), -1, dtype=np.intp)
    found = reading.two_labels(labels, codes)
    classes, expected = np.unique(labels, return_inverse=True)
    assert found == tuple(classes.tolist()) and codes.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "given", [[1.0, 1.0], [1, 2, 3], [3, 1, 3, 2], [np.nan, 1.0], [1.0, np.nan, 1.0], [np.inf, 0.0], [0.0, -np.inf]]
)
def test_other_labels_are_not_told(given):
    assert reading.two_labels(np.array(given), np.zeros(len(given), dtype=np.intp)) is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 3])
def test_labels_of_every_type_are_those_of_sorting(dtype, n):
    """Classes keep their type, also where the pass goes over another one."""
    labels = np.array([1, 0, 1, n - 1, 0, 1]).astype(dtype)
    classes, codes = check_labels(labels, 6)
    expected, places = np.unique(labels, return_inverse=True)
    assert classes.dtype == expected.dtype and codes.dtype == np.intp
    assert classes.tolist() == expected.tolist() and codes.tolist() == places.tolist()


def test_labels_beyond_the_wider_type_keep_their_order():
    labels = np.array([2**64 - 1, 1, 1], dtype=np.uint64)
    classes, codes = check_labels(labels, 3)
    assert classes.tolist() == [1, 2**64 - 1] and codes.tolist() == [1, 0, 0]


@pytest.mark.parametrize("d", [1, 3, 8, 9, 100])
def test_squared_lengths_of_rows_are_those_of_exact_sums(d):
    X = np.random.default_rng(d).standard_normal((7, d)) * 10.0 ** np.arange(-3, 4)[:, None]
    exact = np.array([float(sum(Fraction(x) ** 2 for x in row)) for row in X.tolist()])
    found = np.full(7, np.nan)
    assert reading.row_squares(X, found) == pytest.approx(exact.sum(), rel=1e-14)
    assert (np.abs(found - exact) <= 2e-16 * d * exact).all()
    for given in (X, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        assert (np.abs(DenseRows(given).squares() - exact) <= 2e-16 * d * exact).all()
    single = X.astype(np.float32)
    assert (DenseRows(single).squares() == DenseRows(single.astype(np.float64)).squares()).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 2e140, 1e200])
def test_the_check_of_small_rows_keeps_their_squared_lengths(wrong, monkeypatch):
    X = np.random.default_rng(0).standard_normal((20, 3))
    rows = check_rows(X)
    with monkeypatch.context() as patched:
        patched.setattr(reading, "row_squares", None)  # no second pass
        found = rows.squares()
    assert (found == DenseRows(X).squares()).all() and not found.flags.writeable
    X[7, 1] = wrong
    with pytest.raises(ValueError, match="row 7, column 1"):
        check_rows(X)


@pytest.mark.parametrize("wrong", [np.nan, -np.inf, 2e140, 1e200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_check_of_csr_rows_keeps_their_squared_lengths(wrong, dtype, monkeypatch):
    X = np.random.default_rng(0).standard_normal((20, 9)).astype(dtype)
    X[X < 0.3] = 0.0
    X[3] = 0.0
    given = sp.csr_matrix(X)
    rows = check_rows(given)
    with monkeypatch.context() as patched:
        patched.setattr(csr, "row_squares", None)  # no second pass
        found = rows.squares()
    np.testing.assert_allclose(found, DenseRows(X.astype(float)).squares(), rtol=1e-15)
    assert (CsrRows(given).squares() == found).all()
    found[:] = 0.0
    assert rows.squares().any(), "that was a copy"
    if dtype is np.float64 or not np.isfinite(wrong):
        given[7, 1] = wrong
        with pytest.raises(ValueError, match="row 7, column 1"):
            check_rows(given)


def test_the_check_of_a_large_array_keeps_squared_lengths_of_its_parts(monkeypatch):
    X = np.random.default_rng(0).standard_normal((1200, 500))
    rows = check_rows(X)
    with monkeypatch.context() as patched:
        patched.setattr(reading, "row_squares", None)
        np.testing.assert_allclose(rows.squares(), np.square(X).sum(axis=1), rtol=1e-13)
    X[1100, 7] = np.nan
    with pytest.raises(ValueError, match="row 1100, column 7"):
        check_rows(X)
