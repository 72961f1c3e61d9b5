"""The L3-SVM written out for tests: block features as one dense matrix, and small problems."""

from __future__ import annotations

import numpy as np


def projected(X, landmarks, projection="dot", sigma=1.0):
    """mu(x) by the definition."""
    if projection == "dot":
        return X @ landmarks.T
    return np.exp(-((X[:, None] - landmarks) ** 2).sum(axis=2) / sigma)


def distances(X, centers):
    """Squared Euclidean distances to the centres."""
    return ((X[:, None] - centers) ** 2).sum(axis=2)


def clusters(X, centers):
    """Nearest centre, ties to the lowest index."""
    return distances(X, centers).argmin(axis=1)


def weighted_blocks(mu, weights):
    """Phi(x): mu(x) times each cluster's weight, block after block."""
    return (weights[:, :, None] * mu[:, None, :]).reshape(len(mu), -1)


def block_features(X, centers, landmarks, **settings):
    """Phi(x) for hard clusters."""
    hard = np.eye(len(centers))[clusters(X, centers)]
    return weighted_blocks(projected(X, landmarks, **settings), hard)


def problem(m=60, d=3, K=4, L=5, seed=0):
    """Rows, labels of a checkerboard with noise, centres and landmarks in general position."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(m) > 0, 1, -1)
    return X, y, rng.standard_normal((K, d)), rng.standard_normal((L, d))
