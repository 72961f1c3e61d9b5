"""Bounds from the curvature that the variance gives every column, at random points and for columns of any counts."""

from __future__ import annotations

import numpy as np
import pytest
from mdlm_paper import sample, signs_of
from scipy.optimize import minimize

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.validation import check_data
from mdlearn.forms.joint.margin_composite import MarginComposite, MarginCompositeCurvature
from mdlearn.forms.losses import LogisticTerm
from mdlearn.forms.margin import Column, MarginForm


def problem_of(X, y, counts, variances, bias="none", penalty=0.0):
    data = check_data(X, y, None, None, square=False)
    terms = (LogisticTerm(0.1, 5.0, 1.0),)
    columns = tuple(Column(s, c, v, 0.2, terms) for s, c, v in zip(signs_of(y).T, counts, variances))
    problem = MarginComposite(
        MarginForm(LinearFeatures(data.X), columns, bias, 0.0, penalty=penalty, joint=True), columns
    )
    for _ in problem.prepare():
        pass
    return problem


def least(problem, penalty=0.0):
    """Minimum of the objective by quasi-Newton steps, from the columns' own values."""
    rows, shape = problem.rows.block(slice(None)), problem.shape

    def value(w):
        f = rows @ w.reshape(shape)
        return sum(c.distribution_value(c.y * f[:, j]) for j, c in enumerate(problem.columns))

    w = np.zeros(np.prod(shape))
    for _ in range(3):
        w = minimize(value, w, method="BFGS", options={"gtol": 1e-10}).x
    return value(w), w.reshape(shape)


@pytest.mark.parametrize("same", [True, False], ids=["the same counts", "other counts in every column"])
@pytest.mark.parametrize("variances", [(0.5, 0.5, 0.5), (0.5, 2.0, 9.0)], ids=["one variance", "three"])
def test_no_bound_is_above_the_optimum(same, variances):
    """Moments of the largest counts of all columns would bend the others by too much."""
    X, y = sample(3, n=60, d=4)
    rng = np.random.default_rng(0)
    counts = [rng.uniform(0.1, 5.0, 60)] * 3 if same else list(rng.uniform(0.1, 5.0, (3, 60)))
    problem = problem_of(X, y, counts, variances)
    assert (problem.least_curvature is not None) == (same and len(set(variances)) == 1)
    best, W = least(problem)
    for far in 10.0 ** np.arange(-6.0, 2.0):
        look = problem.at(W + far * rng.standard_normal(W.shape))
        lower = problem.bound(look, None)[0]
        assert lower <= best + 1e-9 * abs(best)
        if problem.least_curvature is not None:
            assert lower >= problem.objective(look) - 1e3 * far * (1.0 + far), "close points have close bounds"


def test_the_curvature_is_that_of_the_variance():
    X, y = sample(3, n=60, d=4)
    counts = np.random.default_rng(0).uniform(0.1, 5.0, 60)
    problem = problem_of(X, y, [counts] * 3, (0.5,) * 3, "free")
    R, F = np.random.default_rng(1).standard_normal((5, 3)), np.column_stack([X, np.ones(60)])
    want = 0.0
    for j, s in enumerate(signs_of(y).T):
        Z = s[:, None] * F
        Z = Z - counts @ Z / counts.sum()
        H = 2 * 0.5 / counts.sum() * Z.T @ (counts[:, None] * Z)
        want += R[:, j] @ np.linalg.solve(H, R[:, j])
    assert problem.least_curvature.drop(R) == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("noise", [0.0, 1e-9, 1e-6, 1e-3])
def test_signs_that_the_rows_explain(noise):
    """The variance of margins that can all be equal bends nothing: a bound needs another proof, or none is told."""
    y = np.random.default_rng(0).permutation(np.repeat([0, 1], 20))
    X = np.column_stack([2.0 * y - 1.0, np.random.default_rng(1).standard_normal((40, 2))])
    X[:, 0] += noise * np.random.default_rng(2).standard_normal(40)
    problem = problem_of(X, y, [np.ones(40)], (0.5,))
    if noise < 1e-5:
        assert problem.least_curvature is None
        return
    Z = signs_of(y)[:, :1] * X
    Z = Z - Z.mean(axis=0)
    R = np.array([[1.0], [0.0], [0.0]])
    want = R[:, 0] @ np.linalg.solve(Z.T @ Z / 40, R[:, 0])
    found = problem.least_curvature.drop(R)
    assert want * (1 - 1e-9) <= found <= want * 1.01, "rounding is on the safe side"


def test_what_cannot_be_factored():
    M = np.diag([1.0, 0.0])
    assert MarginCompositeCurvature.of(M, 1.0, np.zeros((2, 1)), np.zeros(2)) is None
    assert MarginCompositeCurvature.of(M, 1.0, np.zeros((2, 1)), np.ones(2)) is not None
