"""Equal rows of the hybrid solver: one row each, as heavy as all of them, and multipliers shared among them again."""

from __future__ import annotations

import numpy as np
import pytest
from hybrid_cases import OBJECTIVES

import mdlearn
from mdlearn.data.rows.distinct import equal_rows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.solvers.hybrid import solver
from mdlearn.solvers.hybrid.loss_column import LossColumn


def repeated(m=12000, levels=3, attributes=3, classes=2, noise=0.3, seed=0):
    """Rows of one 1 per attribute, of which few differ, and labels that differ in equal rows, too."""
    rng = np.random.default_rng(seed)
    X = np.hstack([np.eye(levels)[rng.integers(0, levels, m)] for _ in range(attributes)])
    y = np.argmax(X @ rng.standard_normal((X.shape[1], classes)), axis=1)
    turned = rng.random(m) < noise
    y[turned] = rng.integers(0, classes, int(turned.sum()))
    return X, y


@pytest.fixture
def rows_of_problems(monkeypatch):
    """Rows of every problem of the hybrid solver."""
    rows, begin = [], LossColumn.__init__

    def counting(self, column, *given, **named):
        rows.append(column.y.shape[0])
        begin(self, column, *given, **named)

    monkeypatch.setattr(LossColumn, "__init__", counting)
    return rows


def test_groups_are_of_equal_rows_and_labels():
    X, y = repeated(noise=0.5)
    found = equal_rows(DenseRows(X), [y.astype(float)])
    assert found.where.shape[0] == np.unique(np.column_stack((X, y)), axis=0).shape[0] == 54
    np.testing.assert_array_equal(X[found.where][found.group], X)
    np.testing.assert_array_equal(y[found.where][found.group], y)
    np.testing.assert_array_equal(found.sums(np.ones(len(y))), np.bincount(found.group))
    assert found.level(y) and not found.level(np.arange(len(y)))


def test_other_rows_have_no_groups():
    X, y = repeated()
    rng = np.random.default_rng(1)
    assert equal_rows(DenseRows(rng.standard_normal(X.shape)), [y]) is None
    assert equal_rows(DenseRows(X[:500]), [y[:500]]) is None
    assert equal_rows(DenseRows(X), [rng.standard_normal(len(y))]) is None
    # A sample of rows may be of few, all of them not.
    X = np.where(np.arange(len(y))[:, None] % (len(y) // 256), rng.standard_normal(X.shape), X)
    assert equal_rows(DenseRows(X), [y]) is None


def test_rows_whose_products_are_equal_are_not_taken_for_equal(monkeypatch):
    X, y = repeated()
    monkeypatch.setattr(np, "cos", np.ones_like)
    assert equal_rows(DenseRows(X), [y.astype(float)]) is None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", ["hinge", "squared", "logistic"])
def test_fits_are_those_of_all_rows(loss, classes, weighted, rows_of_problems, monkeypatch):
    X, y = repeated(classes=classes)
    weights = np.random.default_rng(2).integers(0, 4, len(y)).astype(float) if weighted else None
    params = {"C": 0.3, "v": 2.0 if loss == "hinge" else 0.0, "a": 0.5 if loss == "hinge" else 0.0}
    given = {"sample_weight": weights, "tol": 1e-7, "solver": "hybrid"}
    merged = mdlearn.fit(OBJECTIVES[loss](), X, y, **given, **params)
    assert 0 < max(rows_of_problems) <= 81
    monkeypatch.setattr(solver, "equal_rows", lambda rows, beside: None)
    whole = mdlearn.fit(OBJECTIVES[loss](), X, y, **given, **params)
    assert max(rows_of_problems) >= 5000
    assert merged.certificate.gap <= 1e-7 and whole.certificate.gap <= 1e-7
    assert merged.certificate.lower_bound <= whole.certificate.objective * (1 + 1e-12)
    assert whole.certificate.lower_bound <= merged.certificate.objective * (1 + 1e-12)


def test_paths_go_on_from_starts_over_equal_rows(rows_of_problems):
    X, y = repeated()
    found = mdlearn.fit_path("ldm", X, y, {"C": [0.1, 0.3, 1.0]}, tol=1e-7, solver="hybrid")
    assert max(rows_of_problems) <= 54
    for model in (found[i] for i in range(len(found))):
        alone = mdlearn.fit("ldm", X, y, C=model.params["C"], tol=1e-7, solver="hybrid")
        assert model.certificate.gap <= 1e-7
        assert alone.certificate.lower_bound <= model.certificate.objective * (1 + 1e-12)


def test_steep_losses_keep_their_rows(rows_of_problems):
    X, y = repeated()
    mdlearn.fit(OBJECTIVES["squared"](), 1e3 * X, y, C=1e3, solver="hybrid", tol=1e-3)
    assert rows_of_problems[0] == len(y)


def test_folds_weigh_the_same_groups_anew(rows_of_problems):
    X, y = repeated()
    mdlearn.cross_validate("ldm", X, y, C=1.0, cv=3, solver="hybrid")
    assert max(rows_of_problems) <= 54
