"""Symmetric matrices written by blocks of their lower halves."""

import numpy as np
import pytest

from mdlearn._solvers import products


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("width", [1, 7, 20, 64])
@pytest.mark.parametrize("step", [1, 5, 16, 23, 64])
def test_blocks_of_the_lower_half_make_the_whole(step, width, dtype):
    A = np.random.default_rng(step).normal(size=(50, 50)).astype(dtype)
    G = np.full((50, 50), np.nan, dtype=dtype)
    for row in range(0, 50, step):
        stop = min(row + step, 50)
        for column in range(0, stop, width):
            products.write_symmetric(A[row:stop, column : min(column + width, stop)].copy(), G, row, column)
    np.testing.assert_array_equal(G, np.tril(A) + np.tril(A, -1).T)


@pytest.mark.parametrize(("row", "column"), [(0, 1), (5, 6), (8, 0), (5, -1), (-1, 0)])
def test_blocks_that_do_not_end_in_the_lower_half_are_refused(row, column):
    G = np.zeros((10, 10))
    with pytest.raises(ValueError, match="does not end in the lower half"):
        products.write_symmetric(np.ones((3, 3)), G, row, column)
    assert not G.any()
