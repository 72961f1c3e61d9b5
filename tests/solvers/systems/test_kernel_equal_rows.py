"""Equal rows of kernel problems: engines solve for groups of them, certificates are those of all rows."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn
from mdlearn.data.rows.distinct import EqualRows
from mdlearn.numerics import memory
from mdlearn.solvers.systems.equal_rows import KernelOnEqualRows

CASES = [("svm", {"C": 0.7}), ("ldm", {"C": 0.7, "lambda1": 5.0, "lambda2": 2.0}), ("lsvm", {"nu": 2.0})]


def repeated(m=900, values=3, classes=2, seed=0):
    """Rows of which 27 differ, and labels that differ in equal rows, too."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, values, (m, 3)).astype(float)
    scores = X @ rng.standard_normal((3, classes)) + rng.standard_normal((m, classes))
    return X, np.argmax(scores, axis=1)


@pytest.fixture
def group_counts(monkeypatch):
    """Number of groups of every column that an engine solves over groups of equal rows."""
    counts, iterate = [], KernelOnEqualRows.iterate

    def counting(self, *given):
        counts.append(self.form.features.n_rows)
        return iterate(self, *given)

    monkeypatch.setattr(KernelOnEqualRows, "iterate", counting)
    return counts


def fitted(name, X, y, **given):
    return mdlearn.fit(name, X, y, kernel="rbf", gamma=0.5, bias="free", tol=1e-9, **given)


@pytest.mark.parametrize(
    ("name", "params", "solver"),
    [
        *((name, params, solver) for name, params in CASES for solver in ("cd", "decomposition")),
        ("lssvm", {}, "direct"),
        ("lssvm", {}, "newton-cg"),
        ("lsldm", {}, "direct"),
        ("lsvm", {"nu": 2.0}, "newton-cg"),
    ],
)
def test_engines_solve_for_groups(name, params, solver, group_counts):
    X, y = repeated()
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    model = fitted(name, X, y, sample_weight=weights, solver=solver, **params)
    groups = np.unique(np.column_stack((X, y))[weights > 0], axis=0).shape[0]
    assert group_counts == [groups]
    assert model.certificate.converged
    # Few rows are no groups: the same problem by weights.
    rows, group = np.unique(np.column_stack((X, y)), axis=0, return_inverse=True)
    alone = fitted(name, rows[:, :-1], rows[:, -1], sample_weight=np.bincount(group.ravel(), weights), **params)
    assert group_counts == [groups]
    assert model.certificate.objective == pytest.approx(alone.certificate.objective, rel=1e-8)
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-3)


def test_hinges_of_a_group_have_one_multiplier_between_the_bounds_at_most(group_counts):
    X, y = repeated()
    model = fitted("svm", X, y, C=0.7)
    assert group_counts
    sizes = np.abs(model.dual_coef_.ravel())
    inside = (sizes > 1e-12) & (sizes < 0.7 - 1e-9)
    groups = np.unique(np.column_stack((X, y)), axis=0, return_inverse=True)[1].ravel()
    assert np.bincount(groups, inside).max() == 1
    assert len(model.support_) < len(y)


def test_numbers_are_shared_out_up_to_caps():
    equal = EqualRows(np.array([0, 1]), np.array([0, 1, 0, 1, 0]))
    caps = np.array([1.0, 2.0, 0.0, 1.0, 3.0])
    np.testing.assert_array_equal(equal.filled(np.array([2.5, 3.0]), caps), [1.0, 2.0, 0.0, 1.0, 1.5])
    np.testing.assert_array_equal(equal.filled(np.zeros(2), caps), np.zeros(5))


@pytest.mark.parametrize("name", ["svm", "ldm"])
def test_points_of_paths_and_classes_share_groups(name, group_counts):
    X, y = repeated(classes=3)
    given = {"kernel": "rbf", "gamma": 0.5, "bias": "free", "tol": 1e-8}
    path = mdlearn.fit_path(name, X, y, {"C": [0.1, 1.0, 10.0]}, **given)
    assert len(group_counts) == 9
    for C, model in zip([0.1, 1.0, 10.0], path):
        assert model.certificate.converged
        alone = mdlearn.fit(name, X, y, C=C, **given)
        assert model.certificate.objective == pytest.approx(alone.certificate.objective, rel=1e-7)


def test_a_start_over_all_rows_is_one_of_groups(group_counts):
    X, y = repeated()
    first = fitted("svm", X, y, C=1.0)
    again, fresh = fitted("svm", X, y, C=2.0, warm_start=first), fitted("svm", X, y, C=2.0)
    assert len(group_counts) == 3
    assert again.certificate.converged
    assert again.certificate.objective == pytest.approx(fresh.certificate.objective, rel=1e-8)


def test_points_of_a_path_share_the_decomposition_of_groups(group_counts):
    X, y = repeated()
    grid = [10.0**k for k in range(-3, 4)]
    path = mdlearn.fit_path("lssvm", X, y, {"C": grid}, kernel="rbf", gamma=0.5, solver="direct", tol=1e-10)
    assert len(group_counts) == len(grid) and len(set(group_counts)) == 1
    for C, model in zip(grid, path):
        alone = mdlearn.fit("lssvm", X, y, kernel="rbf", gamma=0.5, solver="interior", C=C, tol=1e-10)
        assert model.certificate.converged
        assert model.certificate.objective == pytest.approx(alone.certificate.objective, rel=1e-9)
        # Within the square root of the gap in these units, where C is largest.
        np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-5)


@pytest.mark.parametrize(("name", "solver"), [("svm", "cd"), ("ldm", "cd"), ("lssvm", "direct")])
def test_memory_is_asked_for_by_groups(name, solver, group_counts, monkeypatch):
    X, y = repeated(m=3000)
    monkeypatch.setattr(memory, "available_bytes", lambda: 3e7)  # a matrix of all rows: 72 MB
    assert fitted(name, X, y, solver=solver).certificate.converged
    assert len(group_counts) == 1
    X += np.arange(len(X))[:, None] * 1e-3
    with pytest.raises(mdlearn.InsufficientMemory):
        fitted(name, X, y, solver=solver)


def test_a_cache_is_held_against_groups(group_counts):
    X, y = repeated(m=3000)
    assert fitted("svm", X, y, solver="cd", solver_options={"cache": 2.0**24}).certificate.converged
    assert len(group_counts) == 1


def test_the_choice_goes_by_groups(group_counts):
    X, y = repeated(m=20_000)
    model = fitted("svm", X, y)
    assert model.solver == "cd"
    assert len(group_counts) == 1 and group_counts[0] <= 54
    assert model.certificate.converged
