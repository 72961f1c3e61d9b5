"""Logistic losses by their printed formula, minimised by scipy; shared by the tests of l2lr, mlr and smooth losses.

F(w, b) = 1/N sum_i c_i 1/alpha ln(1 + exp(-alpha (z_i - threshold))) + v Var(z) - a mean(z)
          + lam (|w|^2 [+ b^2 for a regularized bias]),   N = sum_i c_i
"""

from __future__ import annotations

import numpy as np
from process_settings import one_blas_thread
from scipy.optimize import minimize
from scipy.special import expit

BIASES = ["none", "regularized", "free"]
LOGISTIC = {"alpha": 1.0, "threshold": 0.0}


def overlapping(m=120, d=4, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    return X, np.where(X[:, 0] - 0.5 * X[:, 1] + noise * rng.standard_normal(m) > 0.2, 1, -1)


def formula(u, X, y, bias, lam, alpha, threshold, v=0.0, a=0.0, weight=None, second=True):
    """(value, gradient, Hessian) at u = (w, b), without `second` the first two; without a bias u = w."""
    c = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    N = c.sum()
    R = y[:, None] * (X if bias == "none" else np.hstack([X, np.ones((len(y), 1))]))
    ridge = np.full(R.shape[1], lam)
    if bias == "free":
        ridge[-1] = 0.0
    z = R @ u
    p, mean = expit(-alpha * (z - threshold)), c @ z / N
    value = c @ np.logaddexp(0, -alpha * (z - threshold)) / (alpha * N) + ridge @ u**2
    value += v * (c @ (z - mean) ** 2) / N - a * mean
    gradient = 2 * ridge * u + R.T @ (c / N * (-p + 2 * v * (z - mean) - a))
    if not second:
        return value, gradient
    centred = R - c @ R / N
    curve = alpha * p * expit(alpha * (z - threshold)) * c / N
    hessian = 2 * np.diag(ridge) + R.T @ (curve[:, None] * R) + 2 * v / N * centred.T @ (c[:, None] * centred)
    return value, gradient, hessian


@one_blas_thread()
def optimum(X, y, bias, **given):
    """(value, w, b) where scipy finds the gradient to vanish."""
    given.update(X=X, y=y, bias=bias)
    u = minimize(
        lambda u: formula(u, second=False, **given),
        np.zeros(X.shape[1] + (bias != "none")),
        jac=True,
        hess=lambda u: formula(u, **given)[2],
        method="trust-exact",
        tol=1e-12,
    ).x
    for _ in range(3):  # values do not tell the last digits
        _, gradient, hessian = formula(u, **given)
        u = u - np.linalg.lstsq(hessian, gradient, rcond=None)[0]
    value, gradient = formula(u, second=False, **given)
    assert np.abs(gradient).max() <= 1e-10 * (1 + np.abs(X).max()), "the reference itself has not converged"
    return (value, u, 0.0) if bias == "none" else (value, u[:-1], u[-1])
