"""ULDM's quadratic as Abe prints it, eq. (24)-(28)."""

import numpy as np
from reference import gram


def sample(m=40, d=3, seed=0, shift=0.2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d)) + 0.3
    y = np.where(X[:, 0] + 0.6 * rng.standard_normal(m) > shift + 0.3, 1, -1)
    return X, y


def columns(model, X):
    """Basis columns of all rows of X, by the definition."""
    if not hasattr(model, "basis_indices_"):
        return X
    kernel = model.kernel.name
    rest = {} if kernel == "linear" else {"gamma": model.params["gamma"]}
    return np.asarray(gram(X, X[model.basis_indices_], kernel, dtype=np.float64, **rest))


def printed(F, y, bias, weight=None):
    """h and K of (24)-(28), with the constant column of a bias."""
    F = np.hstack([F, np.ones((len(F), 1))]) if bias != "none" else F
    w = np.ones(len(y)) if weight is None else weight
    k = y[:, None] * F
    h = w @ k / w.sum()
    return F, h, (k - h).T @ (w[:, None] * (k - h)) / w.sum()
