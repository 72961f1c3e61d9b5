"""A dense quadratic program solver for the tests, in extended precision; see reference.py."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LD = np.longdouble
EXTENDED = np.finfo(LD).eps < 1e-18


@dataclass(frozen=True)
class Optimum:
    """Best point found, with its value and a proven lower bound; `scale` is the denominator of the relative gap."""

    value: float
    bound: float
    w: np.ndarray
    b: float
    beta: np.ndarray
    margins: np.ndarray
    scale: float

    @property
    def gap(self):
        return (self.value - self.bound) / self.scale


def objective(z, squares, weight, C, lambda1, lambda2):
    """g of margins z, with `squares` = |w|^2 [+ b^2]. C = inf asks for z >= 1 and costs nothing then."""
    z, c = np.asarray(z, dtype=LD), np.asarray(weight, dtype=LD)
    mean = (c @ z) / c.sum()
    variance = (c @ (z - mean) ** 2) / c.sum()
    hinge = LD(C) * (c @ np.maximum(0, 1 - z)) if np.isfinite(C) and C > 0 else LD(0)
    return float(LD(squares) / 2 + 2 * LD(lambda1) * variance - LD(lambda2) * mean + hinge)


def relative_scale(value, bound, weight, C):
    """Denominator of the certificate's gap as the contract defines it."""
    tiny = np.finfo(float).tiny
    if np.isinf(C):
        return max(abs(value), abs(bound), tiny)
    return max(abs(value), 0.01 * C * float(np.sum(weight)), tiny)


# ---------------------------------------------------------------- dense algebra in extended precision


def cholesky(A):
    """Lower factor; a pivot lost to rounding is replaced by a huge one, which freezes that unknown for the step."""
    A = A.copy()
    limit = np.finfo(LD).eps * np.abs(np.diagonal(A))
    for j in range(len(A)):
        pivot = A[j, j] if A[j, j] > limit[j] else LD(1e300)
        A[j:, j] /= np.sqrt(pivot)
        A[j, j] = np.sqrt(pivot)
        A[j + 1 :, j + 1 :] -= np.outer(A[j + 1 :, j], A[j + 1 :, j])
    return np.tril(A)


def forward(L, r):
    x = r.copy()
    for j in range(len(L)):
        x[j] /= L[j, j]
        x[j + 1 :] -= x[j] * L[j + 1 :, j]
    return x


def back(L, r):
    x = r.copy()
    for j in range(len(L) - 1, -1, -1):
        x[j] /= L[j, j]
        x[:j] -= x[j] * L[j, :j]
    return x


class Graded:
    """Householder QR with column pivoting and rows sorted by size: least squares with weights decades apart."""

    def __init__(self, A):
        self.rows = np.argsort(-np.abs(A).max(axis=1), kind="stable")
        A = A[self.rows]
        self.columns, self.vectors = np.arange(A.shape[1]), []
        for j in range(min(A.shape)):
            p = j + int(np.argmax((A[j:, j:] ** 2).sum(axis=0)))
            A[:, [j, p]], self.columns[[j, p]] = A[:, [p, j]], self.columns[[p, j]]
            v = A[j:, j].copy()
            v[0] += np.copysign(np.sqrt(v @ v), v[0])
            norm = v @ v
            if norm > 0:
                v /= np.sqrt(norm)
                A[j:, j:] -= 2 * np.outer(v, v @ A[j:, j:])
            self.vectors.append(v)
        self.T = np.triu(A[: A.shape[1]])

    def solve(self, rhs, extra):
        """x minimising |A x - rhs|^2 / 2 - extra'x."""
        r = rhs[self.rows]
        for j, v in enumerate(self.vectors):
            r[j:] -= 2 * v * (v @ r[j:])
        x = np.empty(len(extra), dtype=LD)
        x[self.columns] = back(self.T.T, r[: len(extra)] + forward(self.T.T, extra[self.columns]))
        return x


def row_basis(A, tolerance):
    """Orthonormal rows that span the rows of A (longest remaining row first), and the rows that gave them."""
    basis, picked, left = [], [], A.copy()
    most = np.sqrt((A**2).sum(axis=1).max())
    for _ in range(min(A.shape)):
        lengths = np.sqrt((left**2).sum(axis=1))
        p = int(np.argmax(lengths))
        if lengths[p] <= tolerance * most:
            break
        v = left[p] / lengths[p]
        for e in basis:  # once more against all, since `left` has lost digits
            v = v - (e @ v) * e
        v = v / np.sqrt(v @ v)
        basis.append(v)
        picked.append(p)
        left = left - np.outer(left @ v, v)
    return (np.stack(basis) if basis else np.zeros((0, A.shape[1]), dtype=LD)), picked


def longest(now, dbeta, ds, dxi, finite):
    """Longest step <= 1 that keeps every slack and multiplier non-negative."""
    _, beta, s, xi, eta = now
    pairs = [(beta, dbeta), (s, ds)] + ([(xi, dxi), (eta, -dbeta)] if finite else [])
    ratio = max(float((-d / v).max()) for v, d in pairs)
    return min(1.0, 1.0 / ratio) if ratio > 0 else 1.0


# ---------------------------------------------------------------- the quadratic program


class Program:
    """min 1/2 u'Hu - q'u + sum caps_i (1 - R_i u)_+ over u = (w[, b]); infinite caps are constraints R_i u >= 1."""

    def __init__(self, features, y, weight, C, lambda1, lambda2, bias):
        phi = np.asarray(features, dtype=LD)
        # w lies in the span of the rows; other directions would only lose digits in the Newton matrix.
        self.frame = row_basis(phi, 1e-17 if EXTENDED else 1e-14)[0]
        if len(self.frame) == 0:
            self.frame = np.eye(1, phi.shape[1], dtype=LD)
        phi = phi @ self.frame.T
        self.y, self.c = np.asarray(y, dtype=LD), np.asarray(weight, dtype=LD)
        self.settings, self.bias, self.width = (C, lambda1, lambda2), bias, phi.shape[1]
        if bias != "none":
            phi = np.hstack([phi, np.ones((len(phi), 1), dtype=LD)])
        m = self.c.sum()
        self.R = self.y[:, None] * phi
        mean = self.c @ self.R / m
        centred = self.R - mean
        self.ridge = np.ones(phi.shape[1], dtype=LD)
        if bias == "free":
            self.ridge[-1] = 0
        self.H = np.diag(self.ridge) + (4 * LD(lambda1) / m) * (centred.T @ (self.c[:, None] * centred))
        self.q = LD(lambda2) * mean
        self.hard = np.isinf(C)
        self.caps = np.full(len(y), LD(np.inf)) if self.hard else LD(C) * self.c
        # Without variance a free bias has no curvature at all: the dual then needs the equality constraint.
        self.flat = bias == "free" and lambda1 == 0
        free = self.H[:-1, :-1] if self.flat else self.H
        self.L = cholesky(free)

    def primal(self, u):
        """The printed formula; a hard margin is reached by scaling u, which is what the contract states."""
        z = self.R @ u
        if self.hard:
            if z.min() <= 0:
                return np.inf, u
            if z.min() < 1:
                u = u / z.min()
                z = self.R @ u
        return objective(z, (self.ridge * u) @ u, self.c, *self.settings), u

    def dual(self, beta):
        """Lower bound by weak duality from any multipliers; they are moved into the feasible set first."""
        beta = np.clip(beta, 0, self.caps)
        g = self.q + self.R.T @ beta
        if self.flat:
            excess = g[-1]
            heavy = (self.y * excess > 0) & (beta > 0)
            total = beta[heavy].sum()
            if excess != 0 and total < abs(excess):
                return -np.inf, beta
            if excess != 0:
                beta = np.where(heavy, beta * (1 - abs(excess) / total), beta)
            g = (self.q + self.R.T @ beta)[:-1]
        t = forward(self.L, g)
        return float(beta.sum() - t @ t / 2), beta

    def polished(self, u, beta):
        """Multipliers nearer to H u = q + R' beta: on degenerate faces the Newton steps lose their last digits.

        The rest is spread over independent rows strictly inside their box, the roomiest first.
        """
        room = np.minimum(beta, self.caps - beta)
        rows = self.R * np.where(room > 1e-9 * (beta.max() if self.hard else self.caps), room, 0)[:, None]
        Q, picked = row_basis(rows, 1e-9)
        if not picked:
            return beta
        T = Q @ rows[picked].T  # upper triangular
        beta = beta.copy()
        for _ in range(3):
            share = back(np.tril(T.T), Q @ (self.H @ u - self.q - self.R.T @ beta))
            beta[picked] += room[picked] * share
        return np.clip(beta, 0, self.caps)

    def solve(self, iterations=200):
        """Mehrotra's predictor-corrector; keeps the best primal and the best dual point seen."""
        R, caps, finite = self.R, self.caps, not self.hard
        n = len(R)
        if finite and not np.any(caps > 0):
            return self._without_hinge()
        u = np.zeros(R.shape[1], dtype=LD)
        start = LD(1) if self.hard else np.minimum(caps / 2, 1)
        beta = np.broadcast_to(np.asarray(start, dtype=LD), (n,)).copy()
        s = np.ones(n, dtype=LD)
        xi, eta = (np.ones(n, dtype=LD), caps - beta) if finite else (np.zeros(n, dtype=LD), np.ones(n, dtype=LD))
        best_u, best_beta = (np.inf, u), (-np.inf, beta)
        stall = 0
        for _ in range(iterations):
            value, point = self.primal(u)
            bound, multipliers = max(self.dual(beta), self.dual(self.polished(u, beta)), key=lambda pair: pair[0])
            better = value < best_u[0] or bound > best_beta[0]
            if value < best_u[0]:
                best_u = (value, point)
            if bound > best_beta[0]:
                best_beta = (bound, multipliers)
            scale = relative_scale(best_u[0], best_beta[0], self.c, self.settings[0])
            stall = 0 if better else stall + 1
            if (np.isfinite(scale) and best_u[0] - best_beta[0] <= 1e-15 * scale) or stall > 40:
                break
            now = (u, beta, s, xi, eta)
            newton = self._newton(now)
            count = 2 * n if finite else n
            mu = (s @ beta + (xi @ eta if finite else 0)) / count
            _, db, ds, dxi = self._step(newton, now, LD(0), LD(0))
            a = longest(now, db, ds, dxi, finite)
            after = (s + a * ds) @ (beta + a * db) + ((xi + a * dxi) @ (eta - a * db) if finite else 0)
            target = mu * (after / count / mu) ** 3
            du, db, ds, dxi = self._step(newton, now, target - ds * db, target + dxi * db)
            a = LD(longest(now, db, ds, dxi, finite)) * LD(0.995)
            u, beta, s = u + a * du, beta + a * db, s + a * ds
            if finite:
                xi, eta = xi + a * dxi, eta - a * db
            if not np.all(np.isfinite(u)):
                break
        return self._answer(best_u, best_beta)

    def _newton(self, now):
        """(t, factor of H + R' diag(1/t) R, dual residual); multipliers follow as dbeta = (k - R du) / t."""
        u, beta, s, xi, eta = now
        t = s / beta + xi / eta  # hard margin: xi stays 0
        ridge = np.pad(self.L.T, (0, len(u) - len(self.L)))[: len(self.L)]
        factors = Graded(np.vstack([self.R / np.sqrt(t)[:, None], ridge]))
        return t, factors, self.H @ u - self.q - self.R.T @ beta

    def _step(self, newton, now, mu_s, mu_x):
        """Newton step towards s beta = mu_s and xi eta = mu_x, second-order corrections included in both."""
        (t, factors, rd), (u, beta, s, xi, eta), width = newton, now, len(self.L)
        slack = np.zeros_like(s) if self.hard else mu_x / eta - xi
        k = mu_s / beta + 1 - self.R @ u - xi - slack
        unseen = np.zeros_like(u)
        if self.flat:  # the row of the bias has no part in L
            unseen[-1] = -rd[-1]
        du = factors.solve(np.append(k / np.sqrt(t), -forward(self.L, rd[:width])), unseen)
        dbeta = (k - self.R @ du) / t
        return du, dbeta, mu_s / beta - s - s / beta * dbeta, slack + xi / eta * dbeta

    def _without_hinge(self):
        u = np.zeros(self.R.shape[1], dtype=LD)
        width = len(self.L)
        u[:width] = back(self.L, forward(self.L, self.q[:width]))
        beta = np.zeros(len(self.R), dtype=LD)
        value, u = self.primal(u)
        return self._answer((value, u), self.dual(beta))

    def _answer(self, best_u, best_beta):
        (value, u), (bound, beta) = best_u, best_beta
        b = 0.0 if self.bias == "none" else float(u[-1])
        scale = relative_scale(value, bound, self.c, self.settings[0])
        return Optimum(value, bound, u[: self.width] @ self.frame, b, beta, self.R @ u, scale)
