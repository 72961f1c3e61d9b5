"""Steps of a linear program near its end, where some directions are held by rows of weights 1e18 times smaller."""

from types import SimpleNamespace

import numpy as np
import pytest

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.arrays import array_as_rows
from mdlearn.solvers.interior_point import solver as interior_solver
from mdlearn.solvers.interior_point.solver import GradedSystem
from mdlearn.solvers.systems.row_and_gram import RowSystem
from tests.support.draining import drain


def prepared(kind, X):
    features = LinearFeatures(array_as_rows(X))
    system = kind(SimpleNamespace(features=features, bias="none", ridge=0.0), SimpleNamespace(kappa=0.0))
    drain(system.setup())
    return system


def problem():
    """Heavy rows in three directions of eight; a right-hand side in the other five, and the step that solves it."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    heavy, light = rng.standard_normal((4, 3)) @ basis[:3], rng.standard_normal((60, 8)) @ basis
    D = np.append(np.full(4, 1e8), 1e-10 * rng.uniform(0.5, 2.0, 60))
    wanted = rng.standard_normal(5)
    own = light @ basis[3:].T
    step = np.linalg.solve((own.T * D[4:]) @ own, wanted) @ basis[3:]
    order = rng.permutation(64)
    return np.vstack([heavy, light])[order], D[order], wanted @ basis[3:], step


def test_directions_that_light_rows_hold():
    X, D, rhs, step = problem()
    system = prepared(GradedSystem, X)
    drain(system.factor(D))
    assert system.solve(rhs) == pytest.approx(step, rel=1e-4, abs=1e-4 * np.abs(step).max())
    other = prepared(RowSystem, X)
    drain(other.factor(D))
    assert np.abs(other.solve(rhs)).max() < 1e-4 * np.abs(step).max(), "squares have lost these directions"


def test_one_weight_for_all_takes_no_orthogonal_factorisation():
    X = problem()[0]
    system = prepared(GradedSystem, X)
    drain(system.factor(np.full(64, 0.5)))
    assert not system.sorted
    assert system.solve(X.sum(axis=0)) == pytest.approx(np.linalg.solve(0.5 * X.T @ X, X.sum(axis=0)), rel=1e-10)


def test_columns_that_depend_on_each_other_stay_bounded():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 4))
    X = np.column_stack([X, X[:, 0], X[:, 1] + X[:, 2]])
    system, D = prepared(GradedSystem, X), rng.uniform(0.5, 2.0, 40)
    drain(system.factor(D))
    rhs = X.T @ rng.standard_normal(40)
    step = system.solve(rhs)
    assert (X.T * D) @ (X @ step) == pytest.approx(rhs, rel=1e-6)
    assert np.abs(step).max() < 1e3


def test_too_many_columns_for_it_take_a_larger_share_of_the_diagonal(monkeypatch):
    monkeypatch.setattr(interior_solver, "ORTHOGONAL_COLUMNS", 7)
    X, D, rhs, _ = problem()
    system = prepared(GradedSystem, X)
    drain(system.factor(D))
    assert not system.sorted and np.isfinite(system.solve(rhs)).all()
