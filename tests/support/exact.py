"""ULDM in 60 decimal digits, for tests of tiny C; it shares no code with mdlearn."""

from decimal import Decimal, localcontext

import numpy as np


def solve_exactly(F, y, C):
    """Return (optimum, decision values) of C/2 |beta|^2 - mean(z) + Var(z)/2 for the columns F."""
    with localcontext() as context:
        context.prec = 60
        m = len(y)
        k = np.vectorize(Decimal, otypes=[object])(np.asarray(F) * np.asarray(y, dtype=float)[:, None])
        h = k.sum(axis=0) / m
        K = (k - h).T @ (k - h) / m
        K[np.diag_indices(len(h))] += Decimal(C)
        beta = eliminate(K, h)
        return float(-(h @ beta) / 2), np.array([float(v) for v in k @ beta]) * y


def eliminate(A, b):
    """Solve by Gaussian elimination with row pivoting."""
    n = len(b)
    M = np.column_stack([A, b])
    for i in range(n):
        p = i + max(range(n - i), key=lambda r: abs(M[i + r, i]))
        M[[i, p]] = M[[p, i]]
        for r in range(i + 1, n):
            M[r] = M[r] - M[i] * (M[r, i] / M[i, i])
    x = np.zeros(n, dtype=object)
    for i in reversed(range(n)):
        x[i] = (M[i, n] - M[i, i + 1 : n] @ x[i + 1 :]) / M[i, i]
    return x
