"""Gaussian values from inner products, and sums of them that are never written down, beside definitions."""

import numpy as np
import pytest

from mdlearn._solvers import gaussian_tiles

GAMMA = 0.7
NONE = np.zeros(0)


def tile(n, m, d, dtype, seed=0):
    """Rows of both sides, what loops are given of them, and exact values."""
    rng = np.random.default_rng(seed)
    A, B = ((rng.standard_normal((k, d)) / np.sqrt(d)).astype(dtype) for k in (n, m))
    left, right = ((GAMMA * np.square(side).sum(axis=1)).astype(dtype) for side in (A, B))
    exact = np.exp(-GAMMA * np.square(A[:, None].astype(float) - B[None]).sum(axis=2))
    return A, np.ascontiguousarray(B.T), left, right, exact


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n, m, d", [(30, 50, 6), (1, 1, 1), (5, 600, 40)])
def test_values_from_inner_products(n, m, d, dtype):
    A, B, left, right, exact = tile(n, m, d, dtype)
    K = A @ B
    gaussian_tiles.gaussians(K, left, right, 2.0 * GAMMA)
    assert K.dtype == dtype and np.abs(K - exact).max() <= 4 * (d + 2) * np.finfo(dtype).eps and K.max() <= 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n, m, d", [(1, 1, 1), (3, 5, 2), (4, 16, 4), (7, 300, 9), (18, 255, 23), (9, 1100, 130)])
def test_sums_over_both_sides_of_a_tile(n, m, d, dtype):
    """No error beyond the rounding of values and of sums, and nothing but what is added."""
    A, B, left, right, exact = tile(n, m, d, dtype)
    rng = np.random.default_rng(1)
    above, beside = rng.standard_normal(n).astype(dtype), rng.standard_normal(m).astype(dtype)
    across, down = np.full(n, 2.0), np.full(m, -3.0)
    gaussian_tiles.add_products(A, B, left, right, 2.0 * GAMMA, above, beside, across, down)
    each = 4 * (d + 2) * float(np.finfo(dtype).eps)
    sums = (n + m) * float(np.finfo(dtype).eps)
    assert np.abs(across - 2.0 - exact @ beside).max() <= (each + sums) * np.abs(beside).sum()
    assert np.abs(down + 3.0 - above @ exact).max() <= (each + sums) * np.abs(above).sum()
    alone = np.full(n, 2.0)
    gaussian_tiles.add_products(A, B, left, right, 2.0 * GAMMA, above[:0], beside, alone, NONE)
    np.testing.assert_array_equal(alone, across)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_of_equal_rows_are_at_most_one(dtype):
    A = 9.0 * np.random.default_rng(0).standard_normal((40, 20)).astype(dtype)
    squares = (0.01 * np.square(A).sum(axis=1)).astype(dtype)
    K = A @ A.T
    gaussian_tiles.gaussians(K, squares, squares, 0.02)
    assert K.max() <= 1.0 and np.diagonal(K).min() >= 1.0 - 1e3 * np.finfo(dtype).eps
    across, B = np.zeros(40), np.ascontiguousarray(A[:1].T)
    gaussian_tiles.add_products(
        A[:1], B, squares[:1], squares[:1], 0.02, squares[:0], squares[:1] / squares[0], across[:1], NONE
    )
    assert 1.0 - 1e3 * np.finfo(dtype).eps <= across[0] <= 1.0


@pytest.mark.parametrize("above, down", [(0, 6), (5, 0), (4, 6), (5, 7)])
def test_coefficients_of_rows_come_with_sums_of_columns(above, down):
    A, B, left, right, _ = tile(5, 6, 3, float)
    with pytest.raises(ValueError, match="or neither"):
        gaussian_tiles.add_products(A, B, left, right, 1.0, np.ones(above), np.ones(6), np.zeros(5), np.zeros(down))
