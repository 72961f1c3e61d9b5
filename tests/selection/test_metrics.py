"""Scores against values by hand, and the splits that comparisons are made on."""

import numpy as np
import pytest
import scipy.sparse as sp

from mdlearn.experiments.data_set_files import DataSet, split_data_set
from mdlearn.selection.metrics import accuracy, auc, average_ranks, f1_macro, f1_micro

# ---------------------------------------------------------------- scores, by hand


def test_auc_by_hand():
    y = np.array([True, True, False, False])
    assert auc(y, np.array([3.0, 1.0, 2.0, 0.0])) == 3 / 4
    # Pairs: (2, 2) tied, (2, 0) right, (1, 2) wrong, (1, 0) right.
    assert auc(y, np.array([2.0, 1.0, 2.0, 0.0])) == (0.5 + 1 + 0 + 1) / 4
    assert auc(y, np.zeros(4)) == 0.5
    assert auc(y, np.array([0.0, 1.0, 2.0, 3.0])) == 0.0
    with pytest.raises(ValueError, match="both classes"):
        auc(np.array([True, True]), np.array([1.0, 2.0]))
    rng = np.random.default_rng(0)
    y, f = rng.random(50) < 0.3, rng.integers(0, 8, 50)
    pairs = [1.0 if a > b else 0.5 if a == b else 0.0 for a in f[y] for b in f[~y]]
    assert auc(y, f) == pytest.approx(np.mean(pairs), rel=1e-14)


def test_f1_by_hand():
    y = np.array(["a", "a", "a", "b", "c"])
    told = np.array(["a", "a", "b", "b", "d"])
    # a: TP 2, FN 1; b: TP 1, FP 1; c: never told; d: told, but never there. A class e is in neither.
    assert f1_macro(y, told) == pytest.approx((4 / 5 + 2 / 3 + 0 + 0) / 4, rel=1e-15)
    assert f1_micro(y, told) == accuracy(y, told) == 3 / 5
    assert f1_macro(y, y) == f1_micro(y, y) == 1.0


def test_ranks_by_hand():
    np.testing.assert_array_equal(average_ranks(np.array([0.7, 0.9, 0.7, np.nan, 0.1])), [2.5, 1, 2.5, 5, 4])
    np.testing.assert_array_equal(average_ranks(np.array([np.nan, 0.2, np.nan])), [2.5, 1, 2.5])


# ---------------------------------------------------------------- splits


def test_halves_keep_classes_and_rows_apart():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2, 3], [50, 21, 8, 1])
    data = DataSet(np.arange(80.0)[:, None], rng.permutation(y))
    split = split_data_set(data, seed=0, repeat=0, max_rows=1000)
    assert [int((split.y == k).sum()) for k in range(4)] == [25, 10, 4, 1]
    assert len(split.y) + len(split.y_test) == 80
    # One column of distinct numbers, scaled: back to the rows.
    low, high = 0, 79
    values = np.concatenate([split.X[:, 0], split.X_test[:, 0]])
    assert len(np.unique(np.round(values * (high - low)))) == 80
    again = split_data_set(data, seed=0, repeat=0, max_rows=1000)
    np.testing.assert_array_equal(split.X, again.X)
    assert not np.array_equal(split.X, split_data_set(data, 0, 1, 1000).X)
    assert not np.array_equal(split.X, split_data_set(data, 1, 0, 1000).X)
    few = split_data_set(data, seed=0, repeat=0, max_rows=20)
    assert sorted(np.bincount(np.concatenate([few.y, few.y_test]))) == [1, 2, 5, 12]
    with pytest.raises(ValueError, match="leave none for the test half"):
        split_data_set(DataSet(np.eye(3), np.arange(3)), 0, 0, 1000)


def test_features_are_scaled_on_the_training_half():
    rng = np.random.default_rng(2)
    X = np.column_stack(
        [5 + 3 * rng.standard_normal(40), np.full(40, 7.0), rng.standard_normal(40), np.full(40, np.nan)]
    )
    X[::9, 2] = np.nan
    y = np.arange(40) % 2
    split = split_data_set(DataSet(X, y), 3, 0, 1000)
    np.testing.assert_array_equal(split.X.min(axis=0)[[0, 2]], 0)
    np.testing.assert_allclose(split.X.max(axis=0)[[0, 2]], 1, rtol=1e-14)
    for constant in (1, 3):
        assert not split.X[:, constant].any() and not split.X_test[:, constant].any()
    assert np.isfinite(split.X).all() and np.isfinite(split.X_test).all()
    # Missing values are the mean of the others in the training half.
    filled = split.X[:, 2]
    values, counts = np.unique(filled, return_counts=True)
    repeated = values[counts > 1]
    assert repeated.shape == (1,)
    assert repeated[0] == pytest.approx(filled[filled != repeated[0]].mean(), rel=1e-12)
    A = sp.csr_matrix(np.round(10 * rng.standard_normal((30, 5))) * (rng.random((30, 5)) < 0.5))
    split = split_data_set(DataSet(A, np.arange(30) % 2), 0, 0, 1000)
    assert sp.issparse(split.X) and abs(split.X).max(axis=0).toarray().max() == 1.0
    assert split.X.nnz + split.X_test.nnz == A.nnz
