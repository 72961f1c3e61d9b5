"""What the tests of squared hinge losses share: an objective, data, and the printed formulas minimised by scipy."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from reference import gram, scale_gamma
from scipy.optimize import minimize

import mdlearn
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.objectives.base import Parameter, Terms

BIASES = ["none", "regularized", "free"]


class Band(mdlearn.Objective):
    """Squared hinges of both sides at two thresholds, with variance and mean."""

    name = "band"
    summary = "squared band with margin variance and mean"
    formula = "1/2 |w|^2 + v Var(z) - a mean(z) + C sum max(0, 1 - z)^2 + D sum max(0, z - 2)^2"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight below 1"),
        "D": Parameter(0.7, "weight above 2"),
        "v": Parameter(3.0, "weight of the variance"),
        "a": Parameter(0.5, "weight of the mean"),
    }

    def terms(self, params, total):
        low, high = HingeTerm(params["C"], 1, 1.0, 2), HingeTerm(params["D"], -1, 2.0, 2)
        return Terms(params["v"], params["a"], (low, high))


def sample(m=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.where(X @ rng.standard_normal(d) + 0.8 * rng.standard_normal(m) > 0.3, 1, -1)
    return X, y


def features_of(X, kernel, weight=None):
    """Explicit features: X itself, or the square root of its Gram matrix."""
    if kernel == "linear":
        return X
    G = np.asarray(gram(X, X, kernel, scale_gamma(X, weight), 3, 0.0, np.float64))
    size, U = np.linalg.eigh(G)
    return U * np.sqrt(np.maximum(size, 0.0))


def minimum(F, y, bias, terms, v=0.0, a=0.0, weight=None):
    """(value, decision values) of the printed formula at the point where scipy finds its gradient to vanish.

    `terms` are (weight, side, threshold). Solutions are checked by the KKT conditions, w = sum of slopes times rows.
    """
    c = np.ones(len(y)) if weight is None else weight
    m = c.sum()
    R = y[:, None] * (F if bias == "none" else np.hstack([F, np.ones((len(y), 1))]))
    ridge = np.ones(R.shape[1])
    if bias == "free":
        ridge[-1] = 0.0

    def parts(u, second=False):
        z = R @ u
        mean = c @ z / m
        value = 0.5 * u @ (ridge * u) + v * (c @ (z - mean) ** 2) / m - a * mean
        slope = 2 * v / m * c * (z - mean) - a / m * c
        curve = np.zeros_like(z)
        for weight, side, threshold in terms:
            excess = np.maximum(0.0, side * (threshold - z))
            value += weight * c @ excess**2
            slope -= 2 * weight * side * c * excess
            curve += 2 * weight * c * (excess > 0)
        gradient = ridge * u + R.T @ slope
        if not second:
            return value, gradient
        centred = R - c @ R / m
        return np.diag(ridge) + R.T @ (curve[:, None] * R) + 2 * v / m * centred.T @ (c[:, None] * centred)

    u = np.zeros(R.shape[1])
    for method in ("trust-exact", "BFGS"):
        options = {"hess": lambda u: parts(u, second=True)} if method == "trust-exact" else {}
        u = minimize(parts, u, jac=True, method=method, tol=1e-12, **options).x
    value, gradient = parts(u)
    assert np.abs(gradient).max() <= 1e-6 * (1 + abs(value)), "the reference itself has not converged"
    return value, y * (R @ u)


def printed(model, X, y, kernel, nu, bias, weight=None):
    """(primal, dual) of LSVM as printed, from the decision values and the multipliers u of a model."""
    c = np.ones(len(y)) if weight is None else weight
    alpha, u, b = model.dual_coef_[0], model.duals[0], model.intercept_[0]
    if kernel == "linear":
        f, squares, expanded = X @ model.coef_[0], model.coef_[0] @ model.coef_[0], X.T @ (y * u)
        dual_squares = expanded @ expanded
    else:
        K = np.asarray(gram(X, X, kernel, scale_gamma(X, weight), 3, 0.0, np.float64))
        f, squares, dual_squares = K @ alpha, alpha @ K @ alpha, (y * u) @ K @ (y * u)
    if bias == "regularized":
        squares, dual_squares = squares + b * b, dual_squares + (y @ u) ** 2
    z = y * (f + b)
    primal = 0.5 * squares + 0.5 * nu * c @ np.maximum(0.0, 1 - z) ** 2
    dual = u.sum() - 0.5 * dual_squares - 0.5 * (u[c > 0] ** 2 / (nu * c[c > 0])).sum()
    return primal, dual, z, u


def form_in_name_only(m, d, kernel):
    """A squared hinge on m rows and d columns that do not exist: enough to ask how much memory an engine needs."""

    class Many(DenseRows):
        def __init__(self):
            super().__init__(np.zeros((1, 1)))
            self.shape = (m, d)

    features = LinearFeatures(Many()) if kernel == "linear" else KernelFeatures(Many(), Kernel("rbf", {"gamma": 1.0}))
    column = Column(np.ones(1), np.ones(1), 0.0, 0.0, (HingeTerm(0.5, power=2),))
    return MarginForm(features, (column,), "none")
