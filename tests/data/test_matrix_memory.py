"""Memory that kernel matrices take one after the other."""

import tracemalloc

import numpy as np
import pytest

import mdlearn
from mdlearn.data.features.gram import GramMemory
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.rows.rows import DenseRows
from mdlearn.numerics.interruptible import finished
from mdlearn.solvers.dual_hessian.hessian import SupportHessian


def gaussian_features(X, gamma):
    return KernelFeatures(DenseRows(X), Kernel("rbf", {"gamma": gamma}))


def gaussian_matrix(X, gamma):
    return np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))


@pytest.mark.parametrize("n", [60, 45, 75])
def test_a_matrix_whose_memory_went_to_another_one_computes_its_rows_anew(n):
    rng = np.random.default_rng(0)
    X, alpha, memory = rng.normal(size=(60, 3)), np.zeros(60), GramMemory()
    alpha[:10] = rng.normal(size=10)  # so few that the matrix is not made whole
    first, second = gaussian_features(X, 0.3), gaussian_features(rng.normal(size=(n, 3)), 0.3)
    for features in (first, second):
        features.reuse(memory)
        finished(features.gram_rows(np.arange(5)))
    if n <= 60:
        assert np.shares_memory(memory.numbers["rows"], second.cached_rows().values)
    np.testing.assert_allclose(first.decision(alpha), gaussian_matrix(X, 0.3) @ alpha, atol=1e-12)


def test_a_matrix_whose_memory_went_to_another_one_leaves_that_alone():
    rng = np.random.default_rng(2)
    X, alpha, memory = rng.normal(size=(60, 3)), np.zeros(60), GramMemory()
    alpha[:10] = rng.normal(size=10)
    first, second = gaussian_features(X, 0.3), gaussian_features(X, 2.0)
    for features in (first, second, first):
        if not features.reused:
            features.reuse(memory)
        finished(features.gram_rows(np.arange(5)))
    for features, gamma in ((first, 0.3), (second, 2.0)):
        np.testing.assert_allclose(features.decision(alpha), gaussian_matrix(X, gamma) @ alpha, atol=1e-12)


def test_the_whole_matrix_leaves_no_memory_of_its_rows_beside_it():
    X, memory = np.random.default_rng(3).normal(size=(700, 3)), GramMemory()
    tracemalloc.start()
    try:
        features = gaussian_features(X, 0.3)
        features.reuse(memory)
        finished(features.gram_rows(np.arange(5)))
        features.room(300)
        finished(features.gram())
        assert tracemalloc.get_traced_memory()[0] < 1.2 * 8 * 700**2
    finally:
        tracemalloc.stop()


def test_points_of_several_kernels_on_several_folds_are_those_of_single_fits():
    """Over more than 1,024 rows, of which some are known; coefficients are compared by decision values."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1250, 2))
    y = np.where(np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=1250) > 0, 1, -1)
    rows, rest = np.arange(1100), np.arange(1100, 1250)
    folds = [(rows, rest), (rows + 150, np.arange(150))]
    grid = {"C": [0.5, 5.0], "gamma": [0.5, 2.0]}
    given = {"kernel": "rbf", "bias": "free", "tol": 1e-10}

    def first_value(model, X, y):
        return float(model.decision_function(X)[0])

    found = mdlearn.select("svm", X, y, grid, cv=folds, refit=False, scoring=first_value, **given)
    for i, point in enumerate(found.points):
        for j, (train, test) in enumerate(folds):
            alone = mdlearn.fit("svm", X[train], y[train], **point, **given)
            assert found.scores[i, j] == pytest.approx(alone.decision_function(X[test])[0], abs=1e-4)


def test_blocks_of_a_path_take_the_same_memory_and_those_of_a_single_fit_leave_none_behind():
    rng = np.random.default_rng(2)
    X, memory = rng.normal(size=(60, 3)), GramMemory()
    single, shared = gaussian_features(X, 0.3), gaussian_features(X, 0.3)
    shared.reuse(memory)
    exact, where = gaussian_matrix(X, 0.3), []
    for rows in (np.arange(20), np.arange(10, 35), np.arange(5, 33)):
        block = finished(SupportHessian(shared, 0.5).block(rows))
        np.testing.assert_allclose(block, exact[np.ix_(rows, rows)] + 0.5, atol=1e-12)
        where.append(block.ctypes.data)
        finished(SupportHessian(single, 0.5).block(rows))
    # The second had room for more rows than it needed.
    assert where[2] == where[1] == memory.numbers["between"].ctypes.data
    assert set(single._known.memory.numbers) == {"rows"}
