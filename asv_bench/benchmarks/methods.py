"""What a skilled NumPy user writes for smooth losses: Newton's method, the LSVM fixed point, accelerated gradients."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit


def newton_squared_hinge(X, y, C=1.0, tol=1e-10, max_iter=50):
    """Minimise ``1/2 |w|^2 + C sum_i max(0, 1 - y_i x_i . w)^2`` by Newton steps with halving.

    Parameters
    ----------
    X : ndarray of shape (m, d)
    y : ndarray of shape (m,)
        Labels -1 and 1.
    tol : float
        Relative bound ``|gradient|^2 / 2`` of what is left, in units of the objective: the ridge is 1.

    Returns
    -------
    w : ndarray of shape (d,)
    objective, gap : float
    """
    w = np.zeros(X.shape[1])
    f = X @ w

    def value(w, f):
        return 0.5 * w @ w + C * (np.maximum(0.0, 1.0 - y * f) ** 2).sum()

    now = value(w, f)
    for _ in range(max_iter):
        short = np.flatnonzero(y * f < 1.0)
        A = X[short]
        gradient = w - 2.0 * C * A.T @ (y[short] - f[short])
        gap = 0.5 * gradient @ gradient / now
        if gap <= tol:
            break
        H = 2.0 * C * A.T @ A
        H[np.diag_indices_from(H)] += 1.0
        step = -cho_solve(cho_factor(H, overwrite_a=True), gradient)
        along, length = X @ step, 1.0
        while value(w + length * step, f + length * along) > now + 1e-4 * length * (gradient @ step) and length > 1e-10:
            length /= 2.0
        w, f = w + length * step, f + length * along
        now = value(w, f)
    return w, now, gap


def two_passes(X, y, repeats):
    """The floor of the LSVM fixed point: one d x d matrix, then two products with the rows per iteration."""
    X.T @ X
    v = np.zeros(X.shape[1])
    for _ in range(repeats):
        v = X.T @ (y * (X @ v) - 1.0)
    return v


def apg_rows(X, codes, beta, alpha=5.0, lambda1=0.0, lambda2=0.0, best=None, tol=1e-6, max_iter=5000):
    """Minimise the MDLM objective with an L2,1 penalty by FISTA with restart, in plain NumPy.

    ``sum_k [mean GLL(z_k) + lambda1 Var(z_k) - lambda2 mean(z_k)] + beta sum_j |W_j|``, without a bias

    Parameters
    ----------
    X : ndarray of shape (m, d)
    codes : ndarray of shape (m,)
        Classes 0 ... k-1.
    best : float
        A proven lower bound of the optimum: this user knows when to stop.
    tol : float
        Relative difference to `best` at which to stop.

    Returns
    -------
    W : ndarray of shape (d, k)
    objective : float
    """
    m = X.shape[0]
    Y = np.where(codes[:, None] == np.arange(codes.max() + 1), 1.0, -1.0)
    means = X.T @ Y / m
    W = V = np.zeros((X.shape[1], Y.shape[1]))
    # The largest eigenvalue by a few products: alpha / 4 is the steepest slope of the loss.
    v = np.ones(X.shape[1])
    for _ in range(20):
        v = X.T @ (X @ (v / np.linalg.norm(v)))
    step = 1.0 / (1.05 * (alpha / 4.0 + 2.0 * lambda1) * np.linalg.norm(v) / m)

    def smooth(W):
        Z = Y * (X @ W)
        centred = Z - (means * W).sum(axis=0)
        value = np.logaddexp(0.0, alpha * (1.0 - Z)).sum() / (alpha * m)
        value += lambda1 * (centred**2).sum() / m - lambda2 * (means * W).sum()
        slope = (-expit(alpha * (1.0 - Z)) + 2.0 * lambda1 * centred - lambda2) / m
        return value, X.T @ (Y * slope)

    t, last = 1.0, np.inf
    for _ in range(max_iter):
        _, G = smooth(V)
        U = V - step * G
        lengths = np.linalg.norm(U, axis=1)
        U *= np.maximum(0.0, 1.0 - step * beta / np.maximum(lengths, 1e-300))[:, None]
        value = smooth(U)[0] + beta * np.linalg.norm(U, axis=1).sum()
        if value - best <= tol * abs(value):
            return U, value
        if value > last:
            t, V = 1.0, W
            last = np.inf
            continue
        t_next = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        V = U + (t - 1.0) / t_next * (U - W)
        W, t, last = U, t_next, value
    return W, value
