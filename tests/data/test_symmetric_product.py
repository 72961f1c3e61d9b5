"""Products of symmetric matrices with vectors that are zero in most places."""

import numpy as np
import pytest

from mdlearn.data.features.gram import GATHERED_ENTRIES, gram_product, sum_of_gram_rows


@pytest.mark.parametrize("shape", [(), (1,), (3,)])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.19, 0.21, 1.0])
@pytest.mark.parametrize("m", [1, 7, 300])
def test_products_are_those_of_all_entries(m, share, shape):
    """With one vector, and with the coefficients of several classes at once."""
    rng = np.random.default_rng(m)
    G = rng.normal(size=(m, m))
    G += G.T
    v = np.zeros((m, *shape))
    v[rng.permutation(m)[: int(share * m)]] = rng.normal(size=(int(share * m), *shape))
    exact = np.einsum("ij,j...->i...", G, v)  # loops of its own, without BLAS
    np.testing.assert_allclose(gram_product(G, v), exact, rtol=0, atol=1e-12 * m)


def test_rows_without_an_entry_are_not_read():
    G, v = np.full((20, 20), np.nan), np.zeros(20)
    G[3], v[3] = np.arange(20.0), 2.0
    assert np.array_equal(gram_product(G, v), 2.0 * np.arange(20.0))


def test_rows_are_gathered_by_pieces():
    """So many columns that a piece is one row, and weights of rows in an order of their own."""
    n = GATHERED_ENTRIES + 1
    G = np.arange(3.0)[:, None] + np.zeros(n)
    assert np.array_equal(sum_of_gram_rows(G, np.array([2, 1]), np.array([10.0, 1.0])), np.full(n, 21.0))
