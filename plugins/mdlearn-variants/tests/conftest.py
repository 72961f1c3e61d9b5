"""Random small problems, and a general solver for losses with kinks."""

import numpy as np
import pytest
from scipy.optimize import minimize

BIASES = ("none", "regularized", "free")


@pytest.fixture
def program():
    """Return the function that minimises squares, variance and mean of margins with hinges, by slack variables."""
    return minimum_with_slacks


@pytest.fixture
def sample():
    """Return the function that makes a small problem from a seed."""
    return small_problem


def small_problem(seed, m=14, d=3):
    """Return rows, labels -1 and 1, numbers, repetition counts, and the kind of bias."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.where(X[:, 0] + 0.8 * rng.standard_normal(m) > 0, 1, -1)
    y[:2] = 1, -1
    numbers = 1.0 + X @ [1.0, -0.5, 0.0] + 0.7 * rng.standard_normal(m)
    return X, y, numbers, rng.integers(1, 4, m).astype(float), BIASES[seed % 3]


def minimum_with_slacks(A, penalized, counts, hinges, v=0.0, a=0.0, targets=0.0):
    """Return the least 1/2 sum penalized w^2 + v Var(z) - a mean(z) + hinges, with z = A w - targets, and its w.

    Each hinge is (weights of the rows, side, threshold). SLSQP ends a little early on some machines, and is begun again
    where it ended until that gains nothing.
    """
    (m, d), share = A.shape, counts / counts.sum()
    sides = np.concatenate([np.full(m, side) for _, side, _ in hinges])
    weights = np.concatenate([own for own, _, _ in hinges])
    edges = np.concatenate([np.full(m, edge) for _, _, edge in hinges])
    rows = np.vstack([A] * len(hinges))
    shifts = np.tile(np.broadcast_to(targets, m), len(hinges))
    jacobian = np.hstack([sides[:, None] * rows, np.eye(len(sides))])

    def smooth(w):
        z = A @ w - targets
        away = z - share @ z
        value = 0.5 * penalized @ w**2 + v * share @ away**2 - a * share @ z
        return value, penalized * w + A.T @ (2 * v * share * away - a * share)

    def whole(x):
        value, slope = smooth(x[:d])
        return value + weights @ x[d:], np.append(slope, weights)

    def excess(w):
        return sides * (edges - (rows @ w - shifts))

    room = {"type": "ineq", "fun": lambda x: x[d:] - excess(x[:d]), "jac": lambda x: jacobian}
    bounds = [(None, None)] * d + [(0, None)] * len(sides)
    w, least = np.zeros(d), np.inf
    for _ in range(10):
        start = np.append(w, np.maximum(excess(w), 0.0))
        options = {"ftol": 1e-15, "maxiter": 1000}
        found = minimize(whole, start, jac=True, bounds=bounds, constraints=room, method="SLSQP", options=options)
        value = smooth(found.x[:d])[0] + weights @ np.maximum(excess(found.x[:d]), 0.0)
        if value >= least - 1e-12 * abs(least):
            break
        w, least = found.x[:d], value
    return least, w
