"""Newton steps of joint logistic losses with more coefficients than a matrix is worth: products, a preconditioner."""

from __future__ import annotations

import numpy as np
import pytest
from mdlm_paper import sample
from numpy.testing import assert_allclose

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.validation import check_data
from mdlearn.objectives.mmlr import PairLogistic
from mdlearn.solvers.proximal_gradient.averaged_newton import AveragedPreconditioner

BIASES = ["none", "regularized", "free"]


def prepared(X, y, bias, lam):
    data = check_data(X, y, None, None, square=False)
    problem = PairLogistic(data, LinearFeatures(data.X), bias, 5.0, lam)
    for _ in problem.prepare():
        pass
    return problem


def explicit(problem, means):
    """The columns' matrices, one by one."""
    return [mean * problem.moments + np.diag(problem.ridge) for mean in means]


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("lam", [1e-6, 1e-2])
def test_one_decomposition_solves_for_every_column(bias, lam):
    X, y = sample(4, n=60)
    problem = prepared(X * np.array([1.0, 50.0] + [0.01] * (X.shape[1] - 2)), y, bias, lam)
    means = np.array([1e-4, 1.0, 30.0, 2e-2]) * problem.steepest
    solve = AveragedPreconditioner(problem).solve(means)
    R = np.random.default_rng(0).standard_normal(problem.shape)
    expected = np.column_stack([np.linalg.solve(A, r) for A, r in zip(explicit(problem, means), R.T)])
    assert_allclose(solve(R), expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())


def test_columns_that_depend_on_each_other_have_one_solution():
    X, y = sample(3, n=60)
    problem = prepared(np.hstack([X, X[:, :1] + X[:, 1:2]]), y, "free", 0.0)
    means = np.full(3, problem.steepest)
    R = explicit(problem, means)[0] @ np.random.default_rng(0).standard_normal(problem.shape)
    V = AveragedPreconditioner(problem).solve(means)(R)
    assert_allclose(explicit(problem, means)[0] @ V, R, rtol=1e-6, atol=1e-9 * np.abs(R).max())
    assert np.abs(V).max() < 1e3 * np.abs(R).max() / (means[0] * np.linalg.norm(X, axis=0).min() ** 2)


def test_of_many_columns_the_diagonal_is_taken(monkeypatch):
    monkeypatch.setattr("mdlearn.forms.joint.decision_composite.MOMENT_COLUMNS", 3)
    X, y = sample(3, n=60)
    problem = prepared(X, y, "free", 1e-3)
    assert problem.moments is None
    means, R = np.array([0.1, 1.0, 2.0]), np.ones(problem.shape)
    diagonal = np.multiply.outer(problem.squares, means) + problem.ridge[:, None]
    assert_allclose(AveragedPreconditioner(problem).solve(means)(R), 1.0 / diagonal)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize(("alpha", "lam"), [(5.0, 1e-3), (20.0, 1e-4)])
def test_products_and_the_matrix_come_to_the_same_optimum(alpha, lam, bias, monkeypatch):
    X, y = sample(4, n=100)
    matrix = mdlearn.fit("mmlr", X, y, alpha=alpha, lam=lam, bias=bias, tol=1e-10)
    monkeypatch.setattr("mdlearn.objectives.mmlr.LARGEST_NEWTON_MATRIX", 0)
    products = mdlearn.fit("mmlr", X, y, alpha=alpha, lam=lam, bias=bias, tol=1e-10)
    assert matrix.certificate.converged and products.certificate.converged
    assert products.certificate.objective == pytest.approx(matrix.certificate.objective, rel=1e-9)
    assert products.n_iter <= matrix.n_iter + 5


def test_grey_values_of_many_classes():
    """A first step makes all losses next to flat; then slopes of intercepts are rounding, and bend even less."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 40
    faces = rng.integers(0, 256, (40, 300))
    X = np.clip(faces[y] + 40.0 * rng.standard_normal((200, 300)), 0, 255).round()
    model = mdlearn.fit("mmlr", X, y, tol=1e-6, max_iter=60)
    assert model.certificate.converged
