"""The LSVM fixed point as its paper has it, and fits that end after a number of its iterations."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from reference import gram, scale_gamma

import mdlearn
from mdlearn.forms.losses import HingeTerm
from mdlearn.objectives.base import Parameter, Terms

STEP = {"stop": "step"}


def sample(m=150, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    return X, np.where(X @ rng.standard_normal(d) + 0.8 * rng.standard_normal(m) > 0.3, 1.0, -1.0)


def svml(A, y, nu, itmax, tol=1e-5, sign=-1.0, alpha=None):
    """The published listing, line by line; `sign` is that of the column of ones and of gamma."""
    m, n = A.shape
    alpha = 1.9 / nu if alpha is None else alpha
    e = np.ones(m)
    H = y[:, None] * np.hstack([A, sign * e[:, None]])
    S = H @ np.linalg.inv(np.eye(n + 1) / nu + H.T @ H)
    u = nu * (1 - S @ (H.T @ e))
    old, it = u + 1, 0
    while it < itmax and np.linalg.norm(old - u) > tol:
        z = 1 + np.maximum(((u / nu + H @ (H.T @ u)) - alpha * u) - 1, 0)
        old, u = u, nu * (z - S @ (H.T @ z))
        it += 1
    return it, np.linalg.norm(u - old), A.T @ (y * u), sign * (y * u).sum(), u


def dense(Q, alpha, steps):
    """All iterates u of the fixed point with a dense Q."""
    inverse, e = np.linalg.inv(Q), np.ones(len(Q))
    iterates = [inverse @ e]
    for _ in range(steps):
        u = iterates[-1]
        iterates.append(inverse @ (np.maximum(Q @ u - e - alpha * u, 0) + e))
    return iterates


def after(k, X, y, alpha=None, solver="smw", **settings):
    """The model of the k-th iterate, whatever its gap."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        options = {**STEP, "alpha": alpha}
        return mdlearn.fit("lsvm", X, y, solver=solver, solver_options=options, max_iter=k, **settings)


def quadratic(X, y, nu, kernel="linear", bias="regularized", **kernel_parameters):
    """Q = I/nu + D (K + 1) D, or without the 1 when there is no bias."""
    given = {"gamma": scale_gamma(X), "degree": 3, "coef0": 0.0, **kernel_parameters}
    K = X @ X.T if kernel == "linear" else np.asarray(gram(X, X, kernel, *given.values(), np.float64))
    return np.eye(len(y)) / nu + np.outer(y, y) * (K + (bias == "regularized"))


class Band(mdlearn.Objective):
    """Squared hinges of both sides, at thresholds other than 1."""

    name, summary = "band", "squared band"
    formula = "1/2 |w|^2 + C sum max(0, 0.8 - z)^2 + D sum max(0, z - 1.5)^2 + 0 sum max(0, 3 - z)"
    parameters: ClassVar = {"C": Parameter(0.02, "weight below 0.8"), "D": Parameter(0.05, "weight above 1.5")}

    def terms(self, params, total):
        return Terms(0.0, 0.0, (HingeTerm(params["C"], 1, 0.8, 2), HingeTerm(params["D"], -1, 1.5, 2), HingeTerm(0.0)))
