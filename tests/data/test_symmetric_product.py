"""Products of symmetric matrices with vectors that are zero in most places."""

import numpy as np
import pytest

from mdlearn.data.features.gram import ADDED_ENTRIES, GATHERED_ENTRIES, gram_product, sum_of_gram_rows


@pytest.mark.parametrize("shape", [(), (1,), (3,)])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.19, 0.21, 0.79, 0.81, 1.0])
@pytest.mark.parametrize("m", [1, 7, 300])
@pytest.mark.parametrize("order", ["C", "F", "part"])
def test_products_are_those_of_all_entries(m, share, shape, order):
    """With one vector, and with the coefficients of several classes at once."""
    rng = np.random.default_rng(m)
    G = rng.normal(size=(m, m))
    G += G.T
    G = np.pad(G, ((0, 0), (0, 3)))[:, :m] if order == "part" else np.array(G, order=order)
    v = np.zeros((m, *shape))
    v[rng.permutation(m)[: int(share * m)]] = rng.normal(size=(int(share * m), *shape))
    exact = np.einsum("ij,j...->i...", G, v)  # loops of its own, without BLAS
    np.testing.assert_allclose(gram_product(G, v), exact, rtol=0, atol=1e-12 * m)


def test_rows_without_an_entry_are_not_read():
    G, v = np.full((20, 20), np.nan), np.zeros(20)
    G[3], v[3] = np.arange(20.0), 2.0
    assert np.array_equal(gram_product(G, v), 2.0 * np.arange(20.0))


@pytest.mark.parametrize("k", [1, 4, 6])
def test_most_rows_may_have_an_entry_where_one_has_none(k):
    G, v = np.full((8, 8), np.nan), np.zeros(8)
    G[:k] = np.arange(8.0)
    v[:k] = 2.0
    assert np.array_equal(gram_product(G, v), 2.0 * k * np.arange(8.0))


@pytest.mark.parametrize("n", [GATHERED_ENTRIES + 1, ADDED_ENTRIES + 1])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_rows_are_read_by_pieces(n, shape):
    """So many columns that a piece is one row, and weights of rows in an order of their own."""
    G = np.arange(3.0)[:, None] + np.zeros(n)
    weights = np.array([10.0, 1.0]).reshape(2, *shape)
    assert np.array_equal(sum_of_gram_rows(G, np.array([2, 1]), weights), np.full((n, *shape), 21.0))
