"""Sums of squares about the mean that classes share, against extended precision, and how often they are made."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from draining import drain

import mdlearn
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column
from mdlearn.solvers.systems import scatter
from mdlearn.solvers.systems.scatter import COLUMNS_TOGETHER, MeansOfColumns, Scatters


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("far", [0.0, 1e6])
@pytest.mark.parametrize("piece", [scatter.PIECE_ENTRIES, 500])
@pytest.mark.parametrize("few", [0, scatter.CENTRED_ENTRIES])
def test_every_class_has_its_own_matrix_from_one_sum(kind, constant, far, piece, few, monkeypatch):
    monkeypatch.setattr(scatter, "PIECE_ENTRIES", piece)
    monkeypatch.setattr(scatter, "CENTRED_ENTRIES", few)
    rng = np.random.default_rng(0)
    m, d = 200, 6
    X = rng.standard_normal((m, d))
    if kind == "sparse":
        X[rng.random((m, d)) > 0.15] = 0.0
    X[:, 0] += far
    counts = rng.uniform(0.5, 2.0, m)
    rows = DenseRows(X) if kind == "dense" else CsrRows(sp.csr_matrix(X))
    shared = Scatters(AffineRows(rows, constant))
    B = np.hstack([X, np.ones((m, 1))]) if constant else X
    c = counts.astype(np.longdouble)
    for share in (0.5, 0.1, 0.0):
        y = np.where(rng.random(m) < share, 1.0, -1.0)
        R = y[:, None] * B.astype(np.longdouble)
        centred = R - c @ R / c.sum()
        exact = ((c[:, None] * centred).T @ centred).astype(float)
        A = drain(shared.centred(Column(y, counts, 1.0, 0.0, (HingeTerm(1.0),))))[1]
        size = np.sqrt(np.multiply.outer(np.diagonal(exact), np.diagonal(exact))) + counts.sum()
        # A column far from 0 keeps the digits of its spread, and the others have nothing of its rounding.
        assert (np.abs(A - exact)[1:, 1:] <= 1e-12 * size[1:, 1:]).all()
        assert np.abs(A - exact)[0, 0] <= 1e-12 * exact[0, 0] + 1e-9 * counts.sum()
    M = np.zeros((B.shape[1], B.shape[1]))
    drain(shared.add(0.5, counts, M))
    np.testing.assert_allclose(np.tril(M), np.tril(0.5 * (counts[:, None] * B).T @ B), rtol=1e-12, atol=1e-9)


def test_dense_rows_are_centred_first_only_where_digits_would_be_lost(monkeypatch):
    """A copy of the rows about their mean costs several times as much as the sum of their squares."""
    centred, sum_about = [], Scatters._sum_about
    monkeypatch.setattr(Scatters, "_sum_about", lambda self, *others: centred.append(1) or sum_about(self, *others))
    monkeypatch.setattr(scatter, "CENTRED_ENTRIES", 100)
    X = np.random.default_rng(2).random((50, 4))
    drain(Scatters(AffineRows(DenseRows(X), True)).of(np.ones(50)))
    assert not centred
    drain(Scatters(AffineRows(DenseRows(X + 100.0), True)).of(np.ones(50)))
    assert centred


@pytest.mark.parametrize(
    ("objective", "solver"), [("lssvm", "direct"), ("lsldm", "direct"), ("lsvm", "newton"), ("ldm", "interior")]
)
def test_classes_share_one_sum_over_the_rows(objective, solver, monkeypatch):
    """The rows are gone over once for all five classes, and each has the optimum that it has alone."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 5, 400)
    X = rng.standard_normal((400, 8)) + np.eye(5, 8)[y]
    sums, add_weighted_gram = [], scatter.add_weighted_gram

    def counted(rows, *others):
        sums.append(rows.shape[0])
        return add_weighted_gram(rows, *others)

    monkeypatch.setattr(scatter, "add_weighted_gram", counted)
    monkeypatch.setattr(scatter, "PIECE_ENTRIES", 1000)
    model = mdlearn.fit(objective, X, y, solver=solver, tol=1e-10, n_threads=1)
    assert sum(sums) == 400 and model.certificate.converged
    for k, part in enumerate(model.certificate.parts):
        one = mdlearn.fit(objective, X, np.where(y == k, 1, -1), solver=solver, tol=1e-10)
        assert part.objective == pytest.approx(one.certificate.objective, rel=1e-9)


def test_sums_of_other_weights_are_made_once_for_each():
    """Of a column's matrix, and of the multiple that a squared loss adds to it."""
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((50, 3)), np.where(np.arange(50) % 2, 1.0, -1.0)
    shared = Scatters(AffineRows(DenseRows(X), False))
    for counts in (np.ones(50), np.repeat([0.0, 2.0], 25)):
        drain(shared.centred(Column(y, counts, 1.0, 0.0, (HingeTerm(1.0),))))
        M = np.zeros((3, 3))
        assert not list(shared.add(1.0, counts, M))  # no piece of rows is gone over
        np.testing.assert_allclose(np.tril(M), np.tril((counts[:, None] * X).T @ X), atol=1e-12)


def test_rows_far_from_the_origin_are_multiplied_once(monkeypatch):
    """Where the sum of the rows as they are would lose digits, it is not made before the one about the mean."""
    sums, add_weighted_gram = [], scatter.add_weighted_gram

    def counted(rows, *others):
        sums.append(rows.shape[0])
        return add_weighted_gram(rows, *others)

    monkeypatch.setattr(scatter, "add_weighted_gram", counted)
    monkeypatch.setattr(scatter, "CENTRED_ENTRIES", 10)
    monkeypatch.setattr(scatter, "PIECE_ENTRIES", 1000)
    X = np.random.default_rng(3).standard_normal((400, 8))
    for shift in (0.0, 1e4):
        sums.clear()
        shared = Scatters(AffineRows(DenseRows(X + shift), False))
        drain(shared.of(np.ones(400)))
        assert sum(sums) == 400
        np.testing.assert_allclose(shared.scatter.about, 400 * np.cov(X, rowvar=False, ddof=0), rtol=1e-7, atol=1e-7)


def classes_of(k, counts=None, m=50):
    """Rows, and a column for each of k classes with a few rows each."""
    rng = np.random.default_rng(k)
    X, codes = rng.standard_normal((m, 3)) + 1.0, np.arange(m) % k
    first = Column(np.ones(m), rng.uniform(0.5, 2.0, m) if counts is None else counts, 2.0, 1.0, (HingeTerm(1.0),))
    return X, first.against_rest(codes, range(k))


@pytest.mark.parametrize("constant", [False, True])
def test_one_product_serves_the_means_of_several_columns(constant):
    k = COLUMNS_TOGETHER + 3
    X, columns = classes_of(k)
    rows = Counted(AffineRows(DenseRows(X), constant))
    means = MeansOfColumns(rows, columns)
    R = np.c_[X, np.ones(X.shape[0])] if constant else X
    for column in columns:
        found, place = means.of(column)
        expected = R.T @ (column.y * column.counts) / column.total
        np.testing.assert_allclose(found.means[place], expected, rtol=0, atol=1e-14)
        assert found.columns[place] is column
    assert rows.passes == 2


def test_means_of_columns_that_weigh_rows_otherwise_are_their_own():
    X, columns = classes_of(4)
    other = classes_of(4, np.arange(1.0, 51.0))[1][0]
    for known in (columns, [*columns, other]):
        found, place = MeansOfColumns(AffineRows(DenseRows(X), False), known).of(other)
        assert place == 0 and len(found.columns) == 1
        np.testing.assert_allclose(found.means[0], X.T @ (other.y * other.counts) / other.total, rtol=1e-13)


class Counted:
    """Affine rows that count products."""

    def __init__(self, rows):
        self.rows, self.passes = rows, 0

    def adjoint(self, V):
        self.passes += 1
        return self.rows.adjoint(V)
