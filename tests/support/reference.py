"""An independent solver of the printed LDM and SVM objectives, for tests only; it shares no code with mdlearn.

    g(w, b) = 1/2 |w|^2 [+ 1/2 b^2]  +  2 lambda1 Var(z)  -  lambda2 mean(z)  +  C sum_i c_i (1 - z_i)_+

with weights c_i as repetition counts: mean and Var divide by sum(c). It is a dense primal-dual interior point on the
quadratic program in (w, b, xi), in extended precision where the platform has it, so that data scales and values of C
far apart do no harm. Every answer carries a lower bound from weak duality, computed from box-feasible multipliers: it
proves itself.
"""

from __future__ import annotations

import numpy as np
from reference_qp import LD, Program, objective

# ---------------------------------------------------------------- kernels and features


def scale_gamma(X, weight=None):
    """1 / (d Var X): population variance of all entries, rows counted by weight."""
    X = np.asarray(X, dtype=float)
    c = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    total = c.sum() * X.shape[1]
    mean = (c @ X).sum() / total
    return 1.0 / (X.shape[1] * (c @ (X - mean) ** 2).sum() / total)


def gram(A, B, kernel="linear", gamma=1.0, degree=3, coef0=0.0, dtype=LD):
    """Kernel matrix by the definition, rows of A against rows of B."""
    A, B = np.asarray(A, dtype=dtype), np.asarray(B, dtype=dtype)
    if kernel == "rbf":
        return np.exp(-dtype(gamma) * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))
    inner = A @ B.T
    return inner if kernel == "linear" else (dtype(gamma) * inner + dtype(coef0)) ** degree


def factor(G):
    """F with F F' = G by Cholesky with diagonal pivoting, stopped where only rounding is left."""
    G = np.asarray(G, dtype=LD)
    left = np.diagonal(G).copy()
    floor = 4 * np.finfo(LD).eps * max(left.max(), LD(0)) * len(G)
    columns = []
    for _ in range(len(G)):
        p = int(np.argmax(left))
        if left[p] <= floor:
            break
        column = G[:, p].copy()
        for other in columns:
            column -= other[p] * other
        column /= np.sqrt(left[p])
        columns.append(column)
        left = left - column**2
    return np.stack(columns, axis=1) if columns else np.zeros((len(G), 1), dtype=LD)


# ---------------------------------------------------------------- the printed objective


def linear_objective(X, y, w, b, weight, C, lambda1, lambda2, bias):
    """g at explicit coefficients."""
    X, y, w, b = (np.asarray(v, dtype=LD) for v in (X, y, w, b))
    z = y * (X @ w + b)
    return objective(z, w @ w + (b * b if bias == "regularized" else 0), weight, C, lambda1, lambda2)


def kernel_objective(G, y, alpha, b, weight, C, lambda1, lambda2, bias):
    """g at f = G alpha + b, |w|^2 = alpha' G alpha."""
    G, y, alpha, b = (np.asarray(v, dtype=LD) for v in (G, y, alpha, b))
    f = G @ alpha
    return objective(y * (f + b), alpha @ f + (b * b if bias == "regularized" else 0), weight, C, lambda1, lambda2)


def bias_interval(f, y, weight, C, lambda2=0.0):
    """All minimisers [low, high] over b of -lambda2 mean(y b) + C sum c (1 - y (f + b))_+, for lambda1 = 0.

    Slopes are compared with a small relative tolerance, since multipliers at a bound are known to rounding only.
    """
    f, y, c = (np.asarray(v, dtype=float) for v in (f, y, weight))
    knots = y - f  # where y (f + b) = 1
    candidates = np.sort(knots)

    def cost(b):
        return -lambda2 * (c @ (y * b)) / c.sum() + C * (c @ np.maximum(0, 1 - y * (f + b)))

    values = np.array([cost(b) for b in candidates])
    best = values <= values.min() + 1e-9 * max(1e-300, C * c.sum())
    return candidates[best].min(), candidates[best].max()


def optimum(features, y, *, C, lambda1=0.0, lambda2=0.0, bias="none", weight=None):
    """Solve the printed problem for explicit features; labels are -1/+1, rows of weight 0 are dropped."""
    y = np.asarray(y, dtype=float)
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    keep = weight > 0
    program = Program(np.asarray(features)[keep], y[keep], weight[keep], C, lambda1, lambda2, bias)
    return program.solve()


def kernel_optimum(G, y, **settings):
    """The same for a Gram matrix, through its factor."""
    return optimum(factor(G), y, **settings)


# ---------------------------------------------------------------- lower bound from a model's multipliers, for large m


def dual_value(beta, y, weight, lambda1, lambda2, bias, *, X=None, G=None):
    """Lower bound of g that box-feasible multipliers prove, in float64 and by another route than `Program.dual`.

    For given multipliers the Lagrangian is an unconstrained quadratic in (w, b): a p x p solve for explicit rows X, an
    m x m solve for a Gram matrix G (no inverse of G: it may be singular). Where its minimum needs sum_i y_i push_i = 0
    (free bias without variance), multipliers of the heavier side shrink in proportion first.
    """
    beta, y, c = (np.asarray(v, dtype=float) for v in (beta, y, weight))
    m = c.sum()
    push = beta + lambda2 * c / m
    if bias == "free" and lambda1 == 0 and (excess := y @ push) != 0:
        heavy = y * excess > 0
        beta = np.where(heavy, beta * (1 - abs(excess) / max(beta[heavy].sum(), 1e-300)), beta)
        if beta.min() < 0:
            return -np.inf
        push = beta + lambda2 * c / m
    if X is not None:
        R = y[:, None] * np.asarray(X, dtype=float)
        if bias != "none":
            R = np.hstack([R, y[:, None]])
        D = np.ones(R.shape[1])
        D[-1] = 0.0 if bias == "free" else 1.0
        centred = R - c @ R / m
        H = np.diag(D) + (4 * lambda1 / m) * centred.T @ (c[:, None] * centred)
        g = R.T @ push
        if bias == "free" and lambda1 == 0:
            H, g = H[:-1, :-1], g[:-1]
        return float(beta.sum() - g @ np.linalg.solve(H, g) / 2)
    K = y[:, None] * np.asarray(G, dtype=float) * y
    if bias == "regularized":
        K = K + np.outer(y, y)
    S = (4 * lambda1 / m) * (np.diag(c) - np.outer(c, c) / m)
    A = np.eye(len(y)) + S @ K
    if bias != "free" or lambda1 == 0:
        return float(beta.sum() - push @ (K @ np.linalg.solve(A, push)) / 2)
    # x solves a = (I + S K) x + S y b with y'x = 0; then z = K x + y b.
    system = np.block([[A, (S @ y)[:, None]], [y[None, :], np.zeros((1, 1))]])
    x = np.linalg.solve(system, np.append(push, 0.0))
    return float(beta.sum() - push @ (K @ x[:-1] + y * x[-1]) / 2)
