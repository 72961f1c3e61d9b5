"""What mdlearn is measured against, in plain NumPy, and the paired ratio of two times."""

from statistics import median
from time import perf_counter

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular


def in_turn(calls, seconds, turns, clock=perf_counter):
    """Seconds of several calls made in turn; every other turn goes through them backwards.

    Parameters
    ----------
    calls : sequence of callable
        Called without arguments. The first takes part in every turn.
    seconds : float
        After that much time a call takes part no more; turns end with the first call, or with the last other one.
    turns : int
        Turns at most.
    clock : callable
        ``perf_counter`` for wall time, ``process_time`` for the CPU time of all threads of the process.

    Returns
    -------
    times : list of list of float
        For every call; the i-th entries are of the same turn.
    """
    times = [[] for _ in calls]
    for turn in range(turns):
        out = [sum(spent) >= seconds for spent in times]
        if turn and (out[0] or (len(out) > 1 and all(out[1:]))):
            break
        for k in range(len(calls))[:: 1 if turn % 2 == 0 else -1]:
            if k == 0 or not out[k]:
                start = clock()
                calls[k]()
                times[k].append(clock() - start)
    return times


def paired_times(ours, reference, repeats, clock=perf_counter):
    """Seconds of two calls made in turn, after one unmeasured call of each.

    Parameters
    ----------
    ours, reference : callable
        Called without arguments.
    repeats : int
        Number of pairs.
    clock : callable
        See `in_turn`.

    Returns
    -------
    own, others : list of float
        Times of each side, `repeats` of them.
    """
    ours()
    reference()
    return in_turn((ours, reference), float("inf"), repeats, clock)


def paired_ratio(ours, reference, repeats=3, clock=perf_counter):
    """Median of the ratios of `paired_times`: time of `ours` divided by the time of `reference`."""
    return median(a / b for a, b in zip(*paired_times(ours, reference, repeats, clock)))


def gram(X, gamma, Z=None):
    """RBF kernel matrix of the rows of `X` with those of `Z`, by default with themselves."""
    Z = X if Z is None else Z
    G = X @ Z.T
    G *= -2.0
    G += np.einsum("ij,ij->i", X, X)[:, None]
    G += np.einsum("ij,ij->i", Z, Z)
    np.maximum(G, 0.0, out=G)
    G *= -gamma
    return np.exp(G, out=G)


def gram_and_cholesky(X, gamma):
    """RBF Gram matrix of `X` and one Cholesky factorisation of the matrix plus identity.

    Any exact kernel method that uses second-order information pays at least this.
    """
    G = gram(X, gamma)
    G[np.diag_indices_from(G)] += 1.0
    return cholesky(G, lower=True, overwrite_a=True, check_finite=False)


def interior_point(X, y, C=1.0, lambda1=0.0, lambda2=0.0, tol=1e-8, max_iter=100):
    """Linear LDM (SVM for ``lambda1 = lambda2 = 0``) without a bias, by an interior point method.

    Minimises ``1/2 |w|^2 + 2 lambda1 Var(z) - lambda2 mean(z) + C sum_i max(0, 1 - z_i)`` with
    ``z_i = y_i x_i . w``. The variance is whitened away; the box-constrained dual is solved by
    Mehrotra's predictor-corrector steps, each with one d x d system (Sherman-Morrison-Woodbury).

    Parameters
    ----------
    X : ndarray of shape (m, d)
    y : ndarray of shape (m,)
        Labels -1 and 1.
    C, lambda1, lambda2 : float
        Weights of hinge, variance and mean.
    tol : float
        Relative duality gap at which to stop.
    max_iter : int
        Largest number of steps.

    Returns
    -------
    w : ndarray of shape (d,)
    objective : float
    gap : float
        Relative duality gap of `w`.

    References
    ----------
    Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optim. 2 (1992).
    Ferris and Munson, Interior-point methods for massive support vector machines, SIAM J. Optim. 13 (2002).
    """
    m, d = X.shape
    R = y[:, None] * X
    mean = R.mean(axis=0)
    root = None
    if lambda1 > 0:
        Q = np.eye(d) + 4 * lambda1 / m * (R.T @ R - m * np.outer(mean, mean))
        root = cholesky(Q, lower=True)
        R = solve_triangular(root, R.T, lower=True).T
        mean = solve_triangular(root, mean, lower=True)
    p = lambda2 * mean

    beta = np.full(m, C / 2)  # 0 < beta < C, with multipliers s and t of the two bounds
    gradient = R @ (p + beta @ R) - 1
    floor = max(1.0, np.abs(gradient).mean())
    s = np.maximum(gradient, 0) + floor
    t = np.maximum(-gradient, 0) + floor
    for _ in range(max_iter):
        rest = C - beta
        w = p + beta @ R
        z = R @ w
        objective = w @ w / 2 - p @ w + C * np.maximum(1 - z, 0).sum()
        gap = (objective - beta.sum() + w @ w / 2) / abs(objective)
        if gap <= tol:
            break
        residual = z - 1 - s + t
        weight = 1 / (s / beta + t / rest)
        S = np.sqrt(weight)[:, None] * R
        factor = cho_factor(np.eye(d) + S.T @ S)

        # Predictor: straight for complementarity zero. Its success sets the target of the corrector.
        change = _solve(R, weight, factor, t - s - residual)
        ds = -s - s / beta * change
        dt = -t + t / rest * change
        length = min(_longest(beta, change), _longest(rest, -change), _longest(s, ds), _longest(t, dt))
        now = beta @ s + rest @ t
        after = (beta + length * change) @ (s + length * ds) + (rest - length * change) @ (t + length * dt)
        target = now / (2 * m) * (after / now) ** 3
        a = target - beta * s - change * ds
        b = target - rest * t + change * dt
        change = _solve(R, weight, factor, a / beta - b / rest - residual)
        ds = (a - s * change) / beta
        dt = (b + t * change) / rest
        length = 0.995 * min(_longest(beta, change), _longest(rest, -change), _longest(s, ds), _longest(t, dt))
        beta, s, t = beta + length * change, s + length * ds, t + length * dt
    return w if root is None else solve_triangular(root, w, lower=True, trans="T"), objective, gap


def _solve(R, weight, factor, rhs):
    """Solve ``(diag(1 / weight) + R R') x = rhs`` with the factor of ``I + R' diag(weight) R``."""
    rhs = weight * rhs
    return rhs - weight * (R @ cho_solve(factor, rhs @ R))


def _longest(x, change):
    """Longest step, at most 1, that keeps ``x + step * change`` non-negative."""
    return 1 / max(1.0, -(change / x).min())
