"""MDLM and MMLR from their formulas, slow and plain, for tests."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

import mdlearn

PAPER = {"alpha": 5.0, "lambda1": 1.0, "lambda2": 0.125, "beta": 0.0, "ridge": 0.0}


def signs_of(y):
    """(N, k) signs; one column for two classes."""
    classes = np.unique(y)
    Y = np.where(y[:, None] == classes, 1.0, -1.0)
    return Y[:, 1:] if len(classes) == 2 else Y


def sample(k=3, n=60, d=5, seed=0):
    """Overlapping classes of which only some features tell."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    W = rng.standard_normal((d, k))
    W[d // 2 :] = 0.0
    return X, (X @ W + rng.gumbel(size=(n, k))).argmax(axis=1)


def gll(z, alpha):
    """(1/alpha) ln(1 + exp(-alpha (z - 1)))."""
    return np.logaddexp(0.0, -alpha * (z - 1.0)) / alpha


def smooth(W, b, X, Y, p, weights):
    """Everything but the penalty in (2.17), for W (d, k) and intercepts b (k,)."""
    N = weights.sum()
    z = Y * (X @ W + b)
    mean = weights @ z / N
    value = (weights @ gll(z, p["alpha"]) / N).sum() - p["lambda2"] * mean.sum()
    return value + p["lambda1"] * (weights @ (z - mean) ** 2 / N).sum() + 0.5 * p["ridge"] * (W**2).sum()


def gradient(W, b, X, Y, p, weights):
    """SPEC: X'(Y o A), and the sums for the intercepts."""
    N = weights.sum()
    z = Y * (X @ W + b)
    sigma = 1.0 / (1.0 + np.exp(p["alpha"] * (z - 1.0)))
    A = weights[:, None] * (-sigma + 2.0 * p["lambda1"] * (z - weights @ z / N) - p["lambda2"]) / N
    return X.T @ (Y * A) + p["ridge"] * W, (Y * A).sum(axis=0)


def value(model, X, y, weights=None, **given):
    """The full objective of a model's coefficients; a regularized bias is one more feature."""
    p = {**PAPER, **given}
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    W, b = model.coef_.T.astype(float), model.intercept_.astype(float)
    total = smooth(W, b, X, signs_of(y), p, weights) + p["beta"] * np.linalg.norm(W, axis=1).sum()
    if model.bias == "regularized":
        total += p["beta"] * np.linalg.norm(b) + 0.5 * p["ridge"] * float(b @ b)
    return total


def optimum(X, y, bias, **given):
    """Objective and decision values at the optimum, by quasi-Newton steps on a smooth problem.

    |W_j| = min over W_j = a_j V_j of (a_j^2 + |V_j|^2) / 2: smooth in (a, V), and with no worse minimum of its own.
    """
    p, Y = {**PAPER, **given}, signs_of(y)
    n, k = Y.shape
    Z = np.hstack([X, np.ones((n, 1))]) if bias == "regularized" else X
    d, beta, ones = Z.shape[1], p["beta"], np.ones(n)

    def unpack(v):
        b = v[:k] if bias == "free" else np.zeros(k)
        V, a = v[k : k + d * k].reshape(d, k), v[k + d * k :]
        return b, V, a

    def fun(v):
        b, V, a = unpack(v)
        W = a[:, None] * V if beta > 0 else V
        G, g = gradient(W, b, Z, Y, p, ones)
        f = smooth(W, b, Z, Y, p, ones)
        if beta == 0:
            return f, np.concatenate([g * (bias == "free"), G.ravel(), 0 * a])
        f += 0.5 * beta * ((a**2).sum() + (V**2).sum())
        return f, np.concatenate(
            [g * (bias == "free"), (a[:, None] * G + beta * V).ravel(), (G * V).sum(axis=1) + beta * a]
        )

    start = np.random.default_rng(1).standard_normal(k + d * k + d)
    for _ in range(3):  # its memory of the curvature is made anew
        found = minimize(fun, start, jac=True, method="L-BFGS-B", options={"maxiter": 20000, "ftol": 0, "gtol": 1e-13})
        start = found.x
    b, V, a = unpack(found.x)
    W = a[:, None] * V if beta > 0 else V
    return found.fun, Z @ W + b


def algorithm1(X, Y, p, l0, sigma, cap, n_iter):
    """Algorithm 1 with the corrections of SPEC section 8 (M2-M5); l never passes the cap."""
    ones = np.ones(len(X))

    def f(W):
        return smooth(W, 0.0, X, Y, p, ones)

    W = before = np.zeros((X.shape[1], Y.shape[1]))
    mu, l, found = 1.0, l0, []
    for i in range(1, n_iter + 1):
        new = 2.0 / (i + 3)
        a = (1.0 - mu) * new / mu
        mu, Q = new, W + a * (W - before)
        G = gradient(Q, 0.0, X, Y, p, ones)[0]
        while True:
            V = Q - G / l
            T = np.zeros_like(V)
            for j in range(V.shape[0]):
                length = np.linalg.norm(V[j])
                if length > 0:
                    T[j] = max(0.0, 1.0 - p["beta"] / (l * length)) * V[j]
            if l >= cap or f(T) <= f(Q) + ((T - Q) * G).sum() + 0.5 * l * ((T - Q) ** 2).sum():
                break
            l = min(sigma * l, cap)
        before, W = W, T
        found.append(f(W) + p["beta"] * np.linalg.norm(W, axis=1).sum())
    return W, found


def fit_paper(*data, **given):
    """A fit of mdlm without the library's default ridge."""
    return mdlearn.fit("mdlm", *data, **{"ridge": 0.0, **given})
