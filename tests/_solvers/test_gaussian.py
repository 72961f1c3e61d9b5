"""Exponentials and Gaussian kernel values of compiled loops, beside numpy's and mathematics."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from mdlearn._solvers import gaussian


@pytest.mark.parametrize("dtype, low", [(np.float32, -86.0), (np.float64, -707.0)])
def test_exponentials_are_right_to_the_last_place(dtype, low):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(low, 0.0, 4000), -(10.0 ** rng.uniform(-30, 1, 4000)), [0.0, -0.0, 1.0, 5.0]])
    x = x.astype(dtype)
    K = x[None].copy()
    gaussian.exponentials(K)
    with localcontext() as context:
        context.prec = 40
        exact = [Decimal(float(v)).exp() for v in x[::16]]
        errors = [abs(Decimal(float(k)) / e - 1) for k, e in zip(K[0, ::16], exact)]
    assert float(max(errors)) <= np.finfo(dtype).eps
    assert np.allclose(K[0], np.exp(x.astype(float)), rtol=2 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponentials_of_the_smallest_are_zero_and_nothing_else_is_made_a_number(dtype):
    K = np.array([[-np.inf, -1e30, np.nan, 0.0]], dtype=dtype)
    gaussian.exponentials(K)
    assert K[0, 0] == 0 and K[0, 1] == 0 and np.isnan(K[0, 2]) and K[0, 3] == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d, m", [(1, 5), (3, 511), (6, 513), (8, 513), (20, 1500)])
def test_values_and_products_of_rows(d, m, dtype):
    rng = np.random.default_rng(d)
    A, B = rng.standard_normal((40, d)).astype(dtype), rng.standard_normal((m, d)).astype(dtype)
    coef, out = rng.standard_normal(m).astype(dtype), rng.standard_normal(40)
    exact = np.exp(-np.square(A[:, None].astype(float) - B[None]).sum(axis=2))
    K = np.empty((40, m), dtype=dtype)
    columns = np.ascontiguousarray(B.T)
    gaussian.block(A, columns, K)
    eps = float(np.finfo(dtype).eps)
    assert np.abs(K - exact).max() <= 4 * (d + 2) * eps
    before = out.copy()
    gaussian.add_products(A, columns, coef, out)
    assert np.abs(out - before - exact @ coef).max() <= 4 * (d + 2) * eps * np.abs(coef).sum()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponentials_have_the_bits_of_single_operations(dtype):
    # Vector instructions that multiply and add at once round differently, and differ from machine to machine.
    x = -np.random.default_rng(1).exponential(10.0, 20011).astype(dtype)
    per_log, big, high, low = (
        (1.4426950408889634, 6755399441055744.0, 0.693147180369123816490, 1.90821492927058770002e-10)
        if dtype == np.float64
        else (1.44269504, 12582912.0, 0.693359375, -2.12194440e-4)
    )
    whole = (x * dtype(per_log) + dtype(big)) - dtype(big)
    r = (x - whole * dtype(high)) - whole * dtype(low)
    terms = [dtype(1.0 / math.factorial(k)) for k in range(14 if dtype == np.float64 else 8)]
    even, odd = terms[-2], terms[-1]
    for k in range(len(terms) - 4, 1, -2):
        even, odd = even * (r * r) + terms[k], odd * (r * r) + terms[k + 1]
    exact = np.ldexp(((even + odd * r) * (r * r) + r) + dtype(1.0), whole.astype(int))
    K = x[None].copy()
    gaussian.exponentials(K)
    assert exact.dtype == dtype and np.array_equal(K[0][x > -87.0], exact[x > -87.0])


@pytest.mark.parametrize("n, m", [(1, 1), (3, 20), (4, 16), (7, 37), (130, 1100)])
def test_both_sides_of_a_tile_of_integers(n, m):
    """Sums of integers that float32 holds are exact."""
    rng = np.random.default_rng(n)
    K = rng.integers(0, 65536 // m, (n, m)).astype(np.uint16)
    left, right = (rng.integers(-3, 4, k).astype(np.float32) for k in (n, m))
    across, down = np.ones(n), np.full(m, 2.0)
    gaussian.add_both_sides(K, left, right, across, down)
    np.testing.assert_array_equal(across, 1.0 + K.astype(float) @ right)
    np.testing.assert_array_equal(down, 2.0 + K.T.astype(float) @ left)
