"""Seeded data for the benchmarks: fresh draws, no files.

Every function takes the numbers of rows m and columns d, the share `noise` of labels that are flipped, and a `seed`. It
returns X of shape (m, d) and labels -1 and 1 of shape (m,).
"""

import numpy as np
import scipy.sparse as sp


def ringnorm(m, d=20, noise=0.05, seed=20):
    """Breiman's ringnorm: one Gaussian of twice the spread around a narrower, shifted one."""
    rng = np.random.default_rng([seed, m, d])
    y = rng.choice([-1.0, 1.0], m)
    spread = np.where(y > 0, 2.0, 1.0)
    shift = np.where(y > 0, 0.0, 2.0 / np.sqrt(d))
    X = rng.normal(size=(m, d)) * spread[:, None] + shift[:, None]
    return X, _with_noise(rng, y, noise)


def plane(m, noise=0.3, seed=26):
    """A curved boundary in the plane, with noise: smooth kernels of it have few directions and many bounded rows."""
    rng = np.random.default_rng([seed, m])
    X = rng.standard_normal((m, 2))
    return X, np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] + noise * rng.standard_normal(m) > 0, 1.0, -1.0)


def gaussians(m, d, distance=1.5, noise=0.05, factors=10, seed=21):
    """Two overlapping Gaussians with correlated columns; the last of the d columns is constant 1.

    The constant column makes the bias part of ``w``, so that every linear solver minimises the
    same function without an argument for the bias.

    Parameters
    ----------
    distance : float
        Half the distance between the two centres, in units of the uncorrelated spread.
    factors : int
        Number of shared factors that correlate the columns.
    """
    rng = np.random.default_rng([seed, m, d])
    y = rng.choice([-1.0, 1.0], m)
    direction = rng.normal(size=d - 1)
    direction *= distance / np.linalg.norm(direction)
    loadings = rng.normal(scale=0.3, size=(factors, d - 1))
    X = np.ones((m, d))
    X[:, :-1] = rng.normal(size=(m, d - 1)) + rng.normal(size=(m, factors)) @ loadings + np.outer(y, direction)
    return X, _with_noise(rng, y, noise)


def _with_noise(rng, y, share):
    return np.where(rng.random(y.size) < share, -y, y)


def words(m, d=200_000, per_row=60, noise=0.05, seed=22, constant=False):
    """Text-like CSR rows: columns drawn by a Zipf law, tf-idf-like values, unit rows, labels from a sparse plane.

    Parameters
    ----------
    per_row : int
        Draws per row; repeated columns are merged.
    constant : bool
        Whether a column of ones follows the d others, so that every linear solver has the same bias.
    """
    rng = np.random.default_rng([seed, m, d])
    share = np.cumsum(1.0 / (np.arange(d) + 10.0))
    columns = np.searchsorted(share / share[-1], rng.random(m * per_row)).clip(0, d - 1)
    X = sp.csr_matrix((np.ones(m * per_row), (np.repeat(np.arange(m), per_row), columns)), shape=(m, d))
    X.sum_duplicates()
    rarity = np.log((1 + m) / (1 + np.bincount(X.indices, minlength=d))) + 1
    X.data = (1 + np.log(X.data)) * rarity[X.indices]
    X = sp.csr_matrix(sp.diags(1 / np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())) @ X)
    score = X @ (rng.normal(size=d) * (rng.random(d) < 0.3))
    X = sp.csr_matrix(sp.hstack([X, np.ones((m, 1))])) if constant else X
    return X, _with_noise(rng, np.where(score > np.median(score), 1.0, -1.0), noise)


def clusters(m, d=32, k=100, seed=25):
    """Rows around k uniform centres, each cluster of its own spread and on its centre's side of a random plane; the
    last of the d + 1 columns is constant 1.
    """
    rng = np.random.default_rng([seed, m, d, k])
    centres, member = rng.uniform(-2, 2, (k, d)), rng.integers(0, k, m)
    X = np.ones((m, d + 1))
    X[:, :-1] = centres[member] + rng.normal(size=(m, d)) * rng.uniform(0.3, 1.2, k)[member][:, None]
    return X, np.where(centres[member] @ rng.normal(size=d) > 0, 1.0, -1.0)


def several_classes(m, d, k, informative=30, seed=23):
    """Rows of independent normal columns; classes 0 ... k-1 by random linear scores of the first columns and noise."""
    rng = np.random.default_rng([seed, m, d, k])
    X = rng.normal(size=(m, d))
    W = rng.normal(scale=0.7, size=(informative, k))
    return X, (X[:, :informative] @ W + rng.gumbel(size=(m, k))).argmax(axis=1)


def noisy_digits(m, n_test=5000, seed=24):
    """scikit-learn's digits, split first, then drawn with noise: training rows and labels, test rows and labels."""
    from sklearn.datasets import load_digits

    rng = np.random.default_rng([seed, m])
    X, labels = load_digits(return_X_y=True)
    order = rng.permutation(labels.size)

    def drawn(rows, n):
        chosen = rng.choice(rows, n)
        return X[chosen] / 16.0 + 0.15 * rng.normal(size=(n, X.shape[1])), labels[chosen]

    return *drawn(order[:1300], m), *drawn(order[1300:], n_test)
