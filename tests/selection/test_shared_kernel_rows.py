"""Kernel values that the folds of a study share."""

import numpy as np
import pytest

import mdlearn
import mdlearn.data.features.gram as gram
import mdlearn.selection.study as study
from mdlearn._solvers.known_rows import KnownRows
from mdlearn.data.features.gram import GramMemory, StudyGramRows
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.rows.rows import DenseRows

GRID = {"gamma": [0.05, 1.0], "C": [0.5, 5.0]}


@pytest.fixture(autouse=True)
def few_columns(monkeypatch):
    """Folds share rows of few columns, too."""
    monkeypatch.setattr(gram, "LEAST_SHARED_COLUMNS", 1)


def noisy(n=1800, d=5, twins=0):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) + 3.0
    y = np.where(rng.random(n) < 0.1, -1, 1) * np.sign(X[:, 0] - 3.0 + 0.5 * rng.normal(size=n))
    return np.concatenate([X, X[:twins]]), np.concatenate([y, y[:twins]])


def searched(X, y, **given):
    return mdlearn.select("svm", X, y, GRID, kernel="rbf", bias="free", cv=3, refit=False, tol=1e-3, **given)


def certified(found):
    return [(one.objective, one.lower_bound) for one in found.certificates]


@pytest.mark.parametrize("twins", [0, 700])
def test_bits_do_not_depend_on_what_folds_share(monkeypatch, twins):
    X, y = noisy(twins=twins)
    makers = []
    whole = StudyGramRows.maker
    monkeypatch.setattr(
        StudyGramRows, "maker", lambda self, index: makers.append(type(whole(self, index))) or whole(self, index)
    )
    ours = searched(X, y)
    monkeypatch.setattr(study, "SHARED_MATRIX_SHARE", 0.0)
    alone = searched(X, y)
    assert {one.__name__ for one in makers} == {"SelectedRows", "GaussianRows"}
    assert certified(ours) == certified(alone)
    np.testing.assert_array_equal(ours.scores, alone.scores)


@pytest.fixture
def tables(monkeypatch):
    """Numbers of rows of the matrices that folds share, as they are asked for."""
    found, matrix = [], GramMemory.matrix

    def noted(self, name, n):
        found.extend([n] * (name == "study"))
        return matrix(self, name, n)

    monkeypatch.setattr(GramMemory, "matrix", noted)
    return found


def test_folds_compute_a_row_once(tables):
    X, y = noisy()
    found = searched(X, y)
    assert tables == [1800, 1800]  # one for every width
    assert len(found.certificates) == 12 and all(one.converged for one in found.certificates)


def test_certificates_come_fold_by_fold():
    X, y = noisy()
    folds = [(np.arange(1800)[np.arange(1800) % 3 != j], np.arange(1800)[np.arange(1800) % 3 == j]) for j in range(3)]
    found = mdlearn.select("svm", X, y, GRID, kernel="rbf", bias="free", cv=folds, refit=False, tol=1e-3)
    for k, one in enumerate(found.certificates):
        train, _ = folds[k // 4]
        alone = mdlearn.fit("svm", X[train], y[train], kernel="rbf", bias="free", tol=1e-3, **found.points[k % 4])
        assert one.lower_bound <= alone.certificate.objective and alone.certificate.lower_bound <= one.objective


def test_a_small_cache_holds_no_rows_of_all_folds(tables):
    X, y = noisy()
    size = 8.0 * 3 * 1200**2  # what the matrices of a fold may take
    found = searched(X, y, solver="cd", solver_options={"cache": 2.0 * size})
    assert all(one.converged for one in found.certificates) and not tables


def test_rows_are_computed_where_they_are_asked_for():
    X = np.random.default_rng(1).normal(size=(40, 3))
    rows = StudyGramRows(Kernel("rbf", {"gamma": 0.5}), DenseRows(X), GramMemory(), np.inf)
    index = np.arange(3, 33)
    part = KnownRows(np.empty((30, 30)), np.full(30, -1), np.empty(30, dtype=np.int64), np.ones(30), rows.maker(index))
    part.compute(np.array([4, 9, 4]))
    assert part.index.tolist() == [4, 9] and rows.known.index.tolist() == [7, 12]
    direct = np.exp(-0.5 * ((X[7] - X[index]) ** 2).sum(axis=1))
    np.testing.assert_allclose(part.values[0], direct, rtol=1e-13)
    for wrong in ([30], [-1]):
        with pytest.raises(ValueError, match="out of range"):
            part.compute(np.array(wrong))
