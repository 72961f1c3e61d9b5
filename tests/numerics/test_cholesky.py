"""Cholesky factors in place and their solutions, for one vector and for several."""

import numpy as np
import pytest

from mdlearn.numerics.cholesky import NotPositiveDefinite, cholesky, cholesky_shifted, cholesky_solve
from mdlearn.numerics.interruptible import finished


def positive_definite(n: int) -> np.ndarray:
    X = np.random.default_rng(n).standard_normal((n, n + 3))
    return X @ X.T + np.eye(n)


@pytest.mark.parametrize("n", [1, 3, 64, 65, 300, 800])
def test_factors_are_made_in_place_and_solve(n):
    A = positive_definite(n)
    part = np.full((n + 2, n + 2), 7.0)
    part[1:-1, 1:-1] = A
    for M in (A.copy(), part[1:-1, 1:-1]):
        L = finished(cholesky(M))
        assert L is M
        assert np.array_equal(np.triu(L, 1), np.triu(A, 1)), "the upper triangle stays"
        np.testing.assert_allclose(np.tril(L) @ np.tril(L).T, A, rtol=0, atol=1e-12 * np.abs(A).max())
        B = np.random.default_rng(0).standard_normal((n, 2))
        for b in (B, B[:, 0], B[:, 0].copy()):
            given = b.copy()
            x = cholesky_solve(L, b)
            assert x.shape == b.shape and np.array_equal(b, given)
            np.testing.assert_allclose(A @ x, b, rtol=0, atol=1e-10)
    assert (part[[0, -1]] == 7.0).all() and (part[:, [0, -1]] == 7.0).all()


@pytest.mark.parametrize("n", [4, 100, 900])
def test_a_matrix_that_is_not_positive_definite_is_made_anew_with_a_trace(n):
    X = np.random.default_rng(n).standard_normal((n, n - n // 4))
    A = X @ X.T
    with pytest.raises(NotPositiveDefinite, match=f"of {n}"):
        finished(cholesky(A.copy()))
    L = np.tril(finished(cholesky_shifted(A.copy())))
    np.testing.assert_allclose(L @ L.T, A, rtol=0, atol=1e-6 * np.abs(A).max())
