"""Theorem 3: a bound on pseudo-leave-one-out errors, against the dual solved row by row."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mdlearn
from mdlearn import margins


@pytest.fixture
def rng():
    return np.random.default_rng(20)


def dual_terms(G, y, lambda1, lambda2):
    """H and (lambda2 / m) H e as printed in eq. (12); needs a non-singular Gram matrix."""
    m = len(y)
    Q = G + 4 * lambda1 / m**2 * (m * G @ G - np.outer(G @ y, G @ y))
    H = y[:, None] * (G @ np.linalg.solve(Q, G)) * y
    H = (H + H.T) / 2
    return H, lambda2 / m * H.sum(axis=1)


def solve_box(H, linear, upper):
    """Projected Newton for min 1/2 b'Hb + linear'b over 0 <= b <= upper; H positive definite."""
    beta = np.zeros(len(linear))
    value = 0.0
    for _ in range(500):
        slope = H @ beta + linear
        stuck = ((beta <= 0) & (slope > 0)) | ((beta >= upper) & (slope < 0))
        if np.all(np.abs(slope[~stuck]) < 1e-11):
            return beta
        free = np.flatnonzero(~stuck)
        step = np.zeros_like(beta)
        step[free] = -np.linalg.solve(H[np.ix_(free, free)], slope[free])
        length = 1.0
        while length > 1e-12:
            trial = np.clip(beta + length * step, 0, upper)
            trial_value = 0.5 * trial @ H @ trial + linear @ trial
            if trial_value <= value + 1e-4 * slope @ (trial - beta):
                break
            length /= 2
        beta, value = trial, trial_value
    raise AssertionError("the reference solver did not converge")


def pseudo_leave_one_out(H, pull, C):
    """Margin z_i of each row at the optimum of the same dual with beta_i fixed at 0."""
    m = len(pull)
    z = np.empty(m)
    for i in range(m):
        rest = np.delete(np.arange(m), i)
        beta = np.zeros(m)
        beta[rest] = solve_box(H[np.ix_(rest, rest)], pull[rest] - 1, C)
        z[i] = H[i] @ beta + pull[i]
    return z


def random_problem(rng):
    m = int(rng.integers(8, 15))
    X = rng.standard_normal((m, 2))
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(m) > 0, 1.0, -1.0)
    y[:2] = 1, -1
    G = np.exp(-rng.choice([0.3, 3]) * ((X[:, None] - X[None]) ** 2).sum(-1)) + 1e-3 * np.eye(m)
    return G, y, rng.choice([0.3, 1, 10]), rng.choice([0, 0.5, 20]), rng.choice([0, 1, 5])


def test_theorem_3_bounds_the_pseudo_leave_one_out_errors(rng):
    counts, bounds, only_bounded, only_free = [], [], [], []
    for _ in range(40):
        G, y, C, lambda1, lambda2 = random_problem(rng)
        H, pull = dual_terms(G, y, lambda1, lambda2)
        beta = solve_box(H, pull - 1, C)
        diagonal = margins.hessian_diagonal(G, y, lambda1)
        assert_allclose(diagonal, np.diag(H), rtol=1e-7)
        bounds.append(margins.loo_error_bound(beta, diagonal, C) * len(y))
        counts.append(np.sum(pseudo_leave_one_out(H, pull, C) <= 0))
        at_bound = beta > C * (1 - 1e-8)
        only_bounded.append(at_bound.sum())
        only_free.append(np.diag(H).max() * beta[~at_bound].sum())
        assert bounds[-1] == pytest.approx(only_bounded[-1] + only_free[-1], rel=1e-6)
    counts, bounds = np.array(counts), np.array(bounds)
    assert np.all(counts <= bounds + 1e-9)
    # Neither part alone is a bound, and the whole says something: otherwise this test could not fail.
    assert np.any(counts > np.array(only_bounded)) and np.any(counts > np.array(only_free) + 1e-6)
    assert np.any((counts > 0) & (bounds < len(y)))


def test_theorem_3_is_not_about_leave_one_out():
    """Erratum L7: bound 0, no pseudo-leave-one-out error, but every true leave-one-out fit errs."""
    m, lambda2, C = 6, 12.0, 1.0
    rows = 1.05 * np.eye(m) - 0.05
    y = np.ones(m)
    y[3:] = -1
    X = y[:, None] * rows
    H, pull = dual_terms(X @ X.T, y, 0, lambda2)
    beta = solve_box(H, pull - 1, C)
    assert margins.loo_error_bound(beta, margins.hessian_diagonal(X @ X.T, y, 0), C) == 0
    assert np.all(pseudo_leave_one_out(H, pull, C) > 0)
    errors = 0
    for i in range(m):
        rest = np.delete(np.arange(m), i)
        K, pull = dual_terms((X @ X.T)[np.ix_(rest, rest)], y[rest], 0, lambda2)
        multipliers = solve_box(K, pull - 1, C) + lambda2 / (m - 1)
        errors += rows[i] @ (rows[rest].T @ multipliers) <= 0
    assert errors == 6


@pytest.mark.parametrize("lambda1", [0, 0.5, 1e6])
def test_hessian_diagonal_takes_weights_as_repetitions(lambda1, rng):
    X = rng.standard_normal((8, 3))
    y = np.array([1, -1, 1, -1, 1, 1, -1, -1])
    counts = np.array([1, 3, 0, 2, 1, 1, 2, 1])
    many = np.repeat(np.arange(8), counts)
    G = X @ X.T
    weighted = margins.hessian_diagonal(G, y, lambda1, counts)
    # The repeated Gram matrix is singular, and so is G: rank 3 of 8.
    assert_allclose(weighted[many], margins.hessian_diagonal(G[np.ix_(many, many)], y[many], lambda1), rtol=1e-9)
    assert weighted[2] == 0
    m = len(many)
    R = y[many, None] * X[many]
    H = R @ np.linalg.solve(np.eye(3) + 4 * lambda1 / m * (R - R.mean(0)).T @ (R - R.mean(0)), R.T)
    assert_allclose(weighted[many], np.diag(H), rtol=1e-8)


def test_loo_error_bound_takes_weights_as_repetitions():
    beta, counts = np.array([0.0, 2.0, 6.0, 0.3]), np.array([1, 2, 4, 0])
    h = np.array([0.5, 0.25, 0.1, 9.0])
    # Row 2 is free, row 3 at its bound 1.5 * 4; the row of weight 0 with the largest H_ii does not exist.
    beta[3] = 0
    expected = (0.5 * 2 + 4) / 7
    assert margins.loo_error_bound(beta, h, 1.5, counts) == pytest.approx(expected)
    many = np.repeat(np.arange(4), counts)
    assert margins.loo_error_bound(beta[many] / counts[many], h[many], 1.5) == pytest.approx(expected)


def test_loo_error_bound_at_the_ends_of_C():
    assert margins.loo_error_bound([0, 0], [1, 2], 0) == 1
    assert margins.loo_error_bound([0, 0.1], [1, 2], math.inf) == pytest.approx(0.1)
    # An interior point stops just below the bound; the multiplier still counts as bounded.
    assert margins.loo_error_bound([1 - 1e-10, 0], [100, 100], 1) == 0.5


@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_loo_error_bound_of_a_model(bias, rng):
    """The multipliers of a model are those of the dual that Theorem 3 speaks of."""
    X = rng.standard_normal((12, 14))
    y = np.where(X[:, 0] + rng.standard_normal(12) > 0, 1.0, -1.0)
    C, lambda1, lambda2 = 0.08, 0.3, 0.5
    G = X @ X.T + (bias == "regularized")
    H, pull = dual_terms(G, y, lambda1, lambda2)
    beta = solve_box(H, pull - 1, C)
    assert np.any(beta > 0.999 * C) and np.any((beta > 0.01 * C) & (beta < 0.99 * C)), "both parts must occur"
    expected = margins.loo_error_bound(beta, np.diag(H), C)
    model = mdlearn.fit("ldm", X, y, C=C, lambda1=lambda1, lambda2=lambda2, bias=bias, tol=1e-12)
    diagonal = margins.hessian_diagonal(G, y, lambda1)
    assert margins.loo_error_bound(model.duals[0], diagonal, C, tol=1e-4) == pytest.approx(expected, rel=1e-4)
