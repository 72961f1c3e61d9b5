"""X' D X by pieces and from step to step, the loss of squared hinges along a line, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mdlearn._solvers import hinges, products
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.common.smooth_losses import SquaredTerms
from mdlearn.solvers.systems.row_and_gram import RowSystem
from mdlearn.solvers.systems.weighted_gram import SYRK, RunningWeightedGram, unweighted_gram


def rows_of(kind, m, d, rng):
    X = rng.standard_normal((m, d))
    if kind == "float32":
        X = X.astype(np.float32)
    if kind in ("sparse", "half full"):
        X[rng.random((m, d)) > (0.1 if kind == "sparse" else 0.5)] = 0.0
        return X, CsrRows(sp.csr_matrix(X))
    given = {"by columns": np.asfortranarray(X), "backwards": X[:, ::-1].copy()[:, ::-1]}
    return np.asarray(X, dtype=np.float64), DenseRows(given.get(kind, X))


def system(rows, y, counts, bias, variance=0.0):
    column = Column(y, counts, variance, 0.0, (HingeTerm(1.0, power=2),))
    made = RowSystem(MarginForm(LinearFeatures(rows), (column,), bias), column)
    for _ in made.setup():
        pass
    return made


def reached(made, D):
    """The matrix after going to the weights D."""
    for _ in made.sum.to(D):
        pass
    return np.tril(made.sum.M)


@pytest.mark.parametrize("variance", [0.0, 3.0])
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("kind", ["dense", "float32", "by columns", "backwards", "sparse", "half full"])
def test_the_sum_follows_its_weights(kind, bias, variance):
    """Fresh, few changes, many changes, all rows gone, weights alike and not: always Q + X'DX."""
    rng = np.random.default_rng(0)
    m, d = 300, 12
    X, rows = rows_of(kind, m, d, rng)
    y, counts = np.where(rng.random(m) > 0.4, 1.0, -1.0), rng.uniform(0.5, 2.0, m)
    made = system(rows, y, counts, bias, variance)
    B = np.hstack([X, np.ones((m, 1))]) if bias != "none" else X
    R = y[:, None] * B
    centred = R - counts @ R / counts.sum()
    Q = np.diag(made.ridge) + 2.0 * variance / counts.sum() * (counts[:, None] * centred).T @ centred
    D = 2.0 * counts
    for step in range(12):
        np.testing.assert_allclose(reached(made, D), np.tril(Q + (D[:, None] * B).T @ B), atol=1e-10)
        D = D.copy()
        some = rng.random(m) < (0.1 if step % 4 else 0.8)
        D[some] = rng.choice([0.0, 1.5], some.sum()) if step < 8 else rng.choice([0.0, 1.0]) * counts[some]
    np.testing.assert_allclose(reached(made, 0.0 * D), np.tril(Q), atol=1e-10)


def test_a_row_that_outweighs_all_others_leaves_nothing_behind():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((100, 5))
    X[7] *= 1e8
    made = system(DenseRows(X), np.ones(100), np.ones(100), "none")
    D = np.ones(100)
    reached(made, D)
    D = D.copy()
    D[7] = 0.0
    np.testing.assert_allclose(reached(made, D), np.tril(np.eye(5) + (D[:, None] * X).T @ X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shifted", [False, True])
def test_the_length_is_the_minimum_along_the_line(shifted):
    """The slope there is 0, for random piecewise quadratics whose rows change sides along the line."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        m = int(rng.integers(1, 40))
        offset = rng.standard_normal(m) if shifted else None
        terms = (HingeTerm(rng.uniform(0.1, 5.0), 1, 1.0, 2), HingeTerm(rng.uniform(0.0, 5.0), -1, 1.5, 2))
        column = Column(np.ones(m), rng.uniform(0.1, 3.0, m), 0.0, 0.0, terms, offset=offset)
        loss, z, bend = SquaredTerms(column), 3.0 * rng.standard_normal(m), rng.uniform(0.01, 1.0)
        D = loss.model(z)
        # The gradient step of a problem with one feature per row and that ridge.
        dz = column.sides @ loss.slopes(z) / (D.sum(axis=0) + bend)
        if not dz.any():
            continue
        square = bend * float(dz @ dz)
        t = loss.length(z, dz, -(square + D.sum(axis=0) @ np.square(dz)), square)
        slope = t * square - float((column.sides @ loss.slopes(z + t * dz)) @ dz)
        assert t > 0 and abs(slope) <= 1e-10 * float((column.sides @ loss.slopes(z)) @ dz), seed


def test_arrays_that_do_not_fit_are_refused():
    B, M = np.ones((4, 3)), np.zeros((3, 3))
    for wrong in ((B[:, ::2], M[:2, :2].copy()), (B, M[:2]), (B, np.zeros((3, 6))[:, ::2])):
        with pytest.raises(ValueError, match="needs"):
            products.add_dense(wrong[0], 1.0, wrong[1], SYRK)
    A = sp.csr_matrix(B)
    for weights, span in ((np.ones(3), (0, 3)), (np.ones(4), (0, 5)), (np.ones(4), (3, 2))):
        with pytest.raises(ValueError, match=r"do not fit|out of bounds"):
            products.add_sparse(A.data, A.indices, A.indptr, weights, M, *span, False, 9)
    z, terms = np.zeros(3), np.ones((3, 1))
    with pytest.raises(ValueError, match="three rows"):
        hinges.along(z, z, z, np.empty(0), np.ones((2, 1)), 1.0)
    for arrays in ((z[:2], z, z, np.empty(0)), (z, z, z[:2], np.empty(0)), (z, z, z, z[:2])):
        with pytest.raises(ValueError, match="length"):
            hinges.along(*arrays, terms, 1.0)


def test_sparse_rows_are_added_in_pieces_of_so_many_products():
    rng = np.random.default_rng(8)
    for bias in (False, True):
        X = rng.standard_normal((60, 9)) * (rng.random((60, 9)) < 0.5)
        X[7], X[8] = 0.0, 1.0  # no entry, and all of them
        A = sp.csr_matrix(X)
        weights, whole = rng.uniform(0.1, 1.0, 60), np.zeros((9 + bias, 9 + bias))
        weights[::4], parts = 0.0, np.zeros_like(whole)
        arrays = A.data, A.indices, A.indptr, weights
        assert products.add_sparse(*arrays, whole, 0, 60, bias, 1 << 40) == 60
        X = np.hstack([X, np.ones((60, int(bias)))])
        np.testing.assert_allclose(whole, np.tril(X.T @ (weights[:, None] * X)), rtol=0, atol=1e-12)
        lengths, start = np.diff(A.indptr), 0
        while start < 60:
            stop = products.add_sparse(*arrays, parts, start, 60, bias, 100)
            counts = np.where(weights != 0, lengths * (lengths + 2) // 2, 0)[start:stop] + 1
            assert counts[:-1].sum() < 100 and (stop == 60 or counts.sum() >= 100)
            start = stop
        assert np.array_equal(parts, whole)


def test_weights_written_into_the_same_array():
    rng = np.random.default_rng(5)
    X, D = rng.standard_normal((40, 3)), np.ones(40)
    kept = RunningWeightedGram(DenseRows(X), False, np.ones(3), None)
    for _ in kept.to(D):
        pass
    D[7] = 3.0
    for _ in kept.to(D):
        pass
    np.testing.assert_allclose(np.tril(kept.M), np.tril(np.eye(3) + X.T @ (D[:, None] * X)), rtol=1e-12)


@pytest.mark.parametrize("ahead, again", [(1.0, False), (0.0, True)])
def test_a_column_that_only_rows_taken_out_had(ahead, again, monkeypatch):
    """Its diagonal falls to 0: made anew where nothing is added to it later, else ten digits are left and will do."""
    rng = np.random.default_rng(8)
    X, D = rng.standard_normal((40, 3)), np.ones(40)
    X[:, 2] = 0.0
    X[5, 2] = 200.0
    kept, made = RunningWeightedGram(DenseRows(X), False, np.zeros(3), None), []
    anew = RunningWeightedGram._anew
    monkeypatch.setattr(RunningWeightedGram, "_anew", lambda self, D: (made.append(1), anew(self, D))[1])
    for _ in kept.to(D, ahead):
        pass
    D[5] = 0.0
    for _ in kept.to(D, ahead):
        pass
    assert len(made) == 1 + again
    np.testing.assert_allclose(np.tril(kept.M), np.tril(X.T @ (D[:, None] * X)), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["dense", "float32", "by columns", "backwards", "sparse", "half full"])
def test_inner_products_of_rows(kind):
    _, rows = rows_of(kind, 30, 50, np.random.default_rng(4))
    work = unweighted_gram(rows)
    try:
        while True:
            next(work)
    except StopIteration as done:
        M = done.value
    full = rows.block(slice(None)) @ rows.block(slice(None)).T
    assert np.abs(np.tril(M - full)).max() < 1e-12 * np.abs(full).max()
