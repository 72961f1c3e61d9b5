"""The printed objectives of SPEC as plain sums over rows, in extended precision: no code of the library takes part.

Every function gets margins z = y f(x), the squared norm (that of the intercept with it where the bias is regularized),
weights c and the parameters, and returns terms; their sum is the objective, the sum of their sizes what rounding is
measured by.
"""

from __future__ import annotations

import numpy as np

LD = np.longdouble


def mean(z, c):
    return c @ z / c.sum()


def var(z, c):
    return c @ (z - mean(z, c)) ** 2 / c.sum()


def hinge(z):
    return np.maximum(0, 1 - z)


def softly(t, alpha):
    return np.logaddexp(LD(0), -alpha * t) / alpha


def limited(C, each):
    """C times a sum; a hard margin's constraints cost nothing where they hold."""
    if np.isinf(C):
        return LD(0) if each <= 1e-7 else LD(np.inf)
    return C * each


def ldm(z, square, c, p):
    return [square / 2, 2 * p["lambda1"] * var(z, c), -p["lambda2"] * mean(z, c), limited(p["C"], c @ hinge(z))]


def odm(z, square, c, p):
    low, high = 1 - p["theta"], 1 + p["theta"]
    loss = mean(np.maximum(0, low - z) ** 2, c) + p["mu"] * mean(np.maximum(0, z - high) ** 2, c)
    return [square / 2, p["lam"] / low**2 * loss]


def svm(z, square, c, p):
    return [square / 2, limited(p["C"], c @ hinge(z))]


def lssvm(z, square, c, p):
    return [square / 2, p["C"] / 2 * (c @ (1 - z) ** 2)]


def lsldm(z, square, c, p):
    return [*lssvm(z, square, c, p), -p["lambda1"] * mean(z, c), p["lambda2"] / 2 * var(z, c)]


def lsvm(z, square, c, p):
    return [square / 2, p["nu"] / 2 * (c @ hinge(z) ** 2)]


def uldm(z, square, c, p):
    return [p["C"] * square / 2, -mean(z, c), p["lambda0"] / 2 * var(z, c)]


def mdlm(z, square, c, p):
    """Without the penalty, which is not a function of z and |w|."""
    loss = mean(softly(z - 1, p["alpha"]), c)
    return [loss, p["lambda1"] * var(z, c), -p["lambda2"] * mean(z, c), p["ridge"] / 2 * square]


def l2lr(z, square, c, p):
    return [mean(softly(z, LD(1)), c), p["lam"] * square]


def mlr(z, square, c, p):
    return [mean(softly(z - 1, p["alpha"]), c), p["lam"] * square]


def rlp(z, square, c, p):
    return [mean(hinge(z), c)]


def svr(z, square, c, p):
    """Here z is f - y."""
    return [square / 2, p["C"] * (c @ np.maximum(0, abs(z) - p["epsilon"]))]


FORMULAS = {f.__name__: f for f in (ldm, odm, svm, lssvm, lsldm, lsvm, uldm, mdlm, l2lr, mlr, rlp)}


def penalty(W, b, bias, p):
    """beta sum_j |W_j|, over features; a regularized bias is one."""
    W = np.vstack([W.T, b]) if bias == "regularized" else W.T
    return p.get("beta", 0.0) * np.sqrt((W**2).sum(axis=1)).sum()


def signs(y, k):
    """-1/+1 of each problem, shape (p, m)."""
    return np.array([np.where(y == c, 1.0, -1.0) for c in ([1] if k == 2 else range(k))])


def value(name, F, S, squares, W, b, c, bias, params):
    """(objective, size): decision values F (p, m), signs S (p, m), |w|^2 (p,), coefficients W (p, d) for a penalty."""
    given = {key: LD(v) for key, v in params.items() if isinstance(v, (int, float))}
    total = size = LD(0)
    for f, s, square, own in zip(F, S, squares, b):
        whole = square + (own * own if bias == "regularized" else 0)
        terms = FORMULAS[name](s * f, whole, c, given)
        total, size = total + sum(terms), size + sum(abs(term) for term in terms)
    extra = penalty(W, b, bias, given) if W is not None else LD(0)
    return total + extra, size + extra


def ww(F, y, square, c, p):
    """Weston and Watkins, decision values (k, m); every class but a row's own."""
    own = F[y, np.arange(len(y))]
    short = np.maximum(0, 2 - own + F)
    short[y, np.arange(len(y))] = 0
    return square / 2 + p["C"] * (short @ c).sum()


def mmlr(F, y, square, c, p):
    own = F[y, np.arange(len(y))]
    each = softly(own - F - 2, p["alpha"])
    each[y, np.arange(len(y))] = 0
    return (each @ c).sum() / c.sum() + p["lam"] * square
