"""Factors of rows of blocks against the matrix that they stand for, written out."""

from __future__ import annotations

import numpy as np
import pytest
from draining import drain

from mdlearn.data.features.clustered_rows import BlockRows, Layout
from mdlearn.solvers.systems import block_factor as module
from mdlearn.solvers.systems.block_factor import factor_blocks


def rows_of(sizes, L, dtype=np.float64, seed=0):
    """Rows of one block each, in mixed order, and the same as a dense matrix."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))[:, None]
    rows = BlockRows(rng.standard_normal((labels.shape[0], L)).astype(dtype), Layout.of(labels, len(sizes)))
    return rows, rows.block(slice(None))


def judge(rows, X, D, tolerance):
    M = np.eye(X.shape[1]) + (X.T * D) @ X
    made = drain(factor_blocks(rows, D))[1]
    rng = np.random.default_rng(1)
    for rhs in (rng.standard_normal(X.shape[1]), X.T @ rng.standard_normal(X.shape[0])):
        x = made.inverse(rhs)
        assert np.abs(M @ x - rhs).max() <= tolerance * np.abs(M).sum(axis=1).max() * np.abs(x).max()
    border = np.linalg.solve(M, X.T @ D)
    assert np.abs(made.border.ravel() - border).max() <= tolerance * max(1.0, np.abs(border).max())
    left = D.sum() - D @ X @ border
    assert made.left == pytest.approx(left, rel=1e-6, abs=1e-9 * D.sum())


SIZES = {
    "few rows": [3, 0, 1, 5, 2],
    "many rows": [40, 12, 30],
    "both": [3, 90, 0, 70, 8, 7, 9, 1],
    "one block": [25],
    "none": [0, 0, 4],
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("few", [module.COMPILED_BLOCK_ROWS, 2, 0])
@pytest.mark.parametrize("sizes", SIZES)
def test_every_way_of_a_block_is_the_inverse_of_the_matrix(sizes, few, dtype, monkeypatch):
    monkeypatch.setattr(module, "COMPILED_BLOCK_ROWS", few)
    rows, X = rows_of(SIZES[sizes], 8, dtype)
    D = np.random.default_rng(2).random(X.shape[0]) * 3.0
    judge(rows, X, D, 1e-13)
    D[::2] = 0.0
    judge(rows, X, D, 1e-13)
    judge(rows, X, np.zeros_like(D), 1e-13)


@pytest.mark.parametrize("weight", [1e-12, 1e6, 1e12])
def test_weights_of_any_size_leave_a_small_residual(weight):
    rows, X = rows_of([3, 9, 30, 0, 7], 8)
    D = weight * np.random.default_rng(0).random(X.shape[0])
    made = drain(factor_blocks(rows, D))[1]
    M = np.eye(X.shape[1]) + (X.T * D) @ X
    rhs = X.T @ np.random.default_rng(1).standard_normal(X.shape[0])
    x = made.inverse(rhs)
    assert np.isfinite(x).all()
    # What Woodbury's difference loses grows with the weights.
    assert np.abs(M @ x - rhs).max() <= (1e-9 + 1e-16 * weight) * np.abs(rhs).max()


def test_rows_that_repeat_and_overflow_do_not_break_the_small_factors():
    F = np.ones((6, 4))
    rows = BlockRows(F, Layout.of(np.array([[0]] * 3 + [[1]] * 3), 2))
    made = drain(factor_blocks(rows, np.full(6, 1e200)))[1]
    assert np.isfinite(made.inverse(np.ones(8))).all()
    judge(rows, rows.block(slice(None)), np.full(6, 1e8), 1e-7)


def test_work_is_done_in_pieces(monkeypatch):
    rows, X = rows_of([3] * 50, 8)
    D = np.ones(X.shape[0])
    whole = drain(factor_blocks(rows, D))
    monkeypatch.setattr(module, "LOOPS", 500)
    parts = drain(factor_blocks(rows, D))
    assert len(whole[0]) == 1 and len(parts[0]) == 10
    rhs = np.arange(X.shape[1], dtype=float)
    assert np.array_equal(parts[1].inverse(rhs), whole[1].inverse(rhs))
