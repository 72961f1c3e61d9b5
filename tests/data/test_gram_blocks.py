"""Blocks of a Gram matrix: values by the definition, and nothing of a row made twice."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows, gathered_rows
from mdlearn.numerics.interruptible import finished

ROWS = 300
"""More than two blocks."""


def rows_of(kind):
    X = np.random.default_rng(3).standard_normal((ROWS, 5))
    if kind == "csr":
        X[np.abs(X) < 1.5] = 0.0
        return X, CsrRows(sp.csr_matrix(X))
    return X, DenseRows(X.astype(np.float32) if kind == "float32" else X)


@pytest.mark.parametrize("kind", ["dense", "float32", "csr"])
@pytest.mark.parametrize("centre", [None, np.full(5, 0.3)])
def test_squared_lengths_are_made_once_for_the_whole_matrix(kind, centre, monkeypatch):
    X, rows = rows_of(kind)
    features, made = KernelFeatures(rows, Kernel("rbf", {"gamma": 0.4}, None, centre)), []

    def counted(squares):
        def count(self, *given, **named):
            made.append(self.shape[0])
            return squares(self, *given, **named)

        return count

    for one in (CsrRows, DenseRows):
        monkeypatch.setattr(one, "squares", counted(one.squares))
    G = finished(features.gram())
    assert sum(made) == ROWS
    exact = (X.astype(np.float32) if kind == "float32" else X).astype(np.longdouble)
    distances = np.square(exact[:, None] - exact[None]).sum(axis=2)
    np.testing.assert_allclose(G, np.exp(-0.4 * distances).astype(float), rtol=0, atol=1e-14)
    assert np.array_equal(G, G.T)


def test_rows_in_c_order_are_gathered_by_one_copy():
    A = np.random.default_rng(0).standard_normal((2000, 300))
    places = np.arange(1999, -1, -2)
    tracemalloc.start()
    try:
        found = gathered_rows(A, places)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert np.array_equal(found, A[1::2][::-1])
    assert peak < 1.5 * found.nbytes
    assert np.array_equal(gathered_rows(np.asfortranarray(A), places), found)
    with pytest.raises(IndexError):
        gathered_rows(A, np.array([0, 2000]))


def test_answers_that_are_remembered_are_of_the_same_shape():
    """Decision values of one column are kept; those of several, or of one as a matrix, are others."""
    features = KernelFeatures(
        DenseRows(np.random.default_rng(0).standard_normal((30, 3))), Kernel("rbf", {"gamma": 0.5})
    )
    one = np.random.default_rng(1).standard_normal(30)
    f = features.decision(one)
    for several in (one[:, None], np.column_stack([one, 2.0 * one])):
        found = features.decision(several)
        assert found.shape == several.shape and np.allclose(found[:, 0], f)
    assert np.array_equal(features.decision(one), f)
