"""Scores f_c(x) = max beta' W_c x over beta >= 0, |beta|_p <= 1, and the multi-class hinge loss of such scores."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.extend import MappedFeatures, Problem, Solution, judge_residual, to_type


def scores_of(Z, q, eps=0.0):
    """Return f and the beta that make it, for Z = W_c x of shape (..., r): the length |max(Z, 0)|_q, and its gradient.

    With eps, both are rounded at 0, from below: f falls short by at most eps / p.
    """
    P = np.maximum(Z, 0.0)
    largest = P.max(axis=-1)
    scale = np.where(largest > 0, largest, 1.0)
    length = largest * ((P / scale[..., None]) ** q).sum(axis=-1) ** (1.0 / q)
    top = np.maximum(length, eps)
    beta = (P / np.where(top > 0, top, 1.0)[..., None]) ** (q - 1.0)
    if eps:
        length = np.where(length > eps, length - eps * (1.0 - 1.0 / q), eps / q * (length / eps) ** q)
    return length, beta


@dataclass(frozen=True)
class LatentFeatures(MappedFeatures):
    """Rows, the LatentMap that makes scores of them, and what the first coefficients are made of.

    Attributes
    ----------
    first : ndarray of shape (m, r)
        A beta for every row.
    """

    first: Any = None


@dataclass(frozen=True, eq=False)
class LatentPoint:
    """Coefficients W (D, k, r), and multipliers: alpha (m, k), sum 1, that of the own class for no loss; V (m, k, r).

    V_ic is a beta of class c: the one that W makes, or nearly; where W_c x is 0, any will do.
    """

    W: np.ndarray
    alpha: np.ndarray
    V: np.ndarray


class LatentProblem(Problem):
    """lam/2 |W|^2 + sum_i c_i/m max(0, 1 + f_c(x_i) - f_y(x_i)), the largest over c != y_i.

    Convex but for f_y, which lies above beta_i' W_y x_i for any beta_i. With given beta_i, what is left is a convex
    problem that lies above this one, and touches it at W where the beta_i are those that W makes. Multipliers give it
    a lower bound::

        sum_i c_i/m sum_(c != y) alpha_ic - |G|^2 / (2 lam)

    G is the gradient of sum_i c_i/m sum_(c != y) alpha_ic (V_ic' W_c x_i - beta_i' W_y x_i). The residual is what the
    convex problem could still fall from W, which a step of the concave-convex procedure would find, and how far it is
    from touching.

    Parameters
    ----------
    features : LatentFeatures
    codes : ndarray of shape (m,)
    share : ndarray of shape (m,)
        c_i / m.
    lam : float
    """

    engine = "latent"
    bias = "none"

    def __init__(self, features, codes, share, lam):
        self.features, self.codes, self.share, self.lam, self.place = features, codes, share, lam, features.map
        self.part, self.unit, self.at_zero = self, 1.0, 1.0
        self.own = np.arange(codes.shape[0]), codes

    def values_of(self, W):
        """Z (m, k, r): W_c (x, offset)."""
        return self.place.values(self.features.rows, W)

    def adjoint(self, A):
        """sum_i A_ic (x_i, offset)', in the shape of W."""
        flat = A.reshape(A.shape[0], -1)
        G = self.features.rows.adjoint(flat)
        if self.place.offset:
            G = np.vstack([G, self.place.offset * flat.sum(axis=0)])
        return G.reshape(-1, *A.shape[1:])

    def shortfalls(self, f):
        """1 + f_c - f_y, and 0 at the own class: the largest is the loss."""
        T = 1.0 + f - f[self.own][:, None]
        T[self.own] = 0.0
        return T

    def slopes(self, alpha, V):
        """Derivatives by Z of sum_i c_i/m sum_(c != y) alpha_c (V_c' Z_c - V_y' Z_y)."""
        weight = alpha.copy()
        weight[self.own] -= 1.0
        return (self.share[:, None] * weight)[:, :, None] * V

    def ridge(self, W):
        """lam/2 |W|^2."""
        return 0.5 * self.lam * float(np.vdot(W, W))

    def judged(self, point):
        """Return objective and residual of a point."""
        Z, p = self.values_of(point.W), self.place.q / (self.place.q - 1.0)
        alpha, V = np.maximum(point.alpha, 0.0), np.maximum(point.V, 0.0)
        alpha = alpha / alpha.sum(axis=1, keepdims=True)
        V = V / np.maximum(1.0, (V**p).sum(axis=2) ** (1.0 / p))[:, :, None]
        f = scores_of(Z, self.place.q)[0]
        objective = self.ridge(point.W) + float(self.share @ self.shortfalls(f).max(axis=1))
        f[self.own] = (V[self.own] * Z[self.own]).sum(axis=1)
        above = self.ridge(point.W) + float(self.share @ self.shortfalls(f).max(axis=1))
        G = self.adjoint(self.slopes(alpha, V))
        lower = float(self.share @ (1.0 - alpha[self.own])) - float(np.vdot(G, G)) / (2.0 * self.lam)
        return objective, max(above - lower, 0.0) + max(above - objective, 0.0)

    def start(self):
        """Differences of class means, coded by the first beta, so long that own scores have the mean 1."""
        first = self.features.first
        A = np.zeros((first.shape[0], self.place.k, first.shape[1]))
        A[self.own] = self.share[:, None] * first
        W = self.adjoint(A)
        W = W - W.mean(axis=1, keepdims=True)
        f, B = scores_of(self.values_of(W), self.place.q)
        mean = float(self.share @ f[self.own])
        W = W / mean if mean > 0 else W
        alpha = np.zeros(f.shape)
        alpha[self.own] = 1.0
        return LatentPoint(W, alpha, B)

    def certify(self, point, tol):
        """Certify coefficients as a model of the rows' type holds them."""
        dtype = self.features.dtype
        W = to_type(point.W, dtype).astype(np.float64)
        objective, residual = self.judged(LatentPoint(W, point.alpha, point.V))
        certificate = judge_residual(objective, residual, self.at_zero, tol)
        at_limit = False
        if dtype != np.float64 and not certificate.converged:
            at_limit = judge_residual(*self.judged(point), self.at_zero, tol).converged
        used = self.share[:, None] * point.alpha
        used[self.own] = 0.0
        # Two classes have one value f_1 - f_0, and one set of coefficients and multipliers.
        beta = (used if self.place.k > 2 else used.sum(axis=1, keepdims=True)).T[:, None]
        coef = self.place.flat(W)
        norm = np.linalg.norm(coef, axis=1)
        return Solution(coef, np.zeros(coef.shape[0]), None, beta, norm, certificate, at_limit)

    certify_best = certify
    certify_as_is = certify

    def value_of(self, solution):
        """The objective by the scores of a solution's coefficients."""
        W = solution.coef.reshape(self.place.k, self.place.r, -1).transpose(2, 0, 1)
        shortfalls = self.shortfalls(scores_of(self.values_of(W), self.place.q)[0])
        return self.ridge(W) + float(self.share @ shortfalls.max(axis=1))

    def examine(self, point):
        """Nothing to examine: with lam > 0 there is a minimum."""

    def explain(self):
        """Nothing to explain."""


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The objective with its corners rounded over tau: value, gradient and second derivatives at W.

    The largest shortfall becomes tau ln sum exp(. / tau), and lengths are rounded over eps = tau.
    """

    problem: LatentProblem
    W: np.ndarray
    tau: float
    Z: np.ndarray
    lengths: np.ndarray
    beta: np.ndarray
    alpha: np.ndarray
    value: float

    @classmethod
    def at(cls, problem, W, tau, Z=None):
        """Look at W; Z may be known."""
        Z = problem.values_of(W) if Z is None else Z
        f, beta = scores_of(Z, problem.place.q, tau)
        T = problem.shortfalls(f)
        top = T.max(axis=1)
        E = np.exp((T - top[:, None]) / tau)
        total = E.sum(axis=1)
        value = problem.ridge(W) + float(problem.share @ (top + tau * np.log(total)))
        return cls(problem, W, tau, Z, f, beta, E / total[:, None], value)

    def gradient(self):
        """By W."""
        problem = self.problem
        return problem.lam * self.W + problem.adjoint(problem.slopes(self.alpha, self.beta))

    def point(self):
        """For the certificate."""
        return LatentPoint(self.W, self.alpha, self.beta)

    def bend(self, whole):
        """Return P -> second derivatives by Z applied to P (m, k, r), row by row; `whole`: with the concave part."""
        problem, q, own = self.problem, self.problem.place.q, self.problem.own
        # Lengths before rounding.
        length = np.where(self.lengths > self.tau / q, self.lengths + self.tau * (1.0 - 1.0 / q), 0.0)
        top = np.maximum(length, self.tau)[:, :, None]
        diagonal = (q - 1.0) * (np.maximum(self.Z, 0.0) / top) ** (q - 2.0) * (self.Z > 0) / top
        turn = np.where(length > self.tau, (q - 1.0) / np.maximum(length, self.tau), 0.0)
        weight = self.alpha.copy()
        weight[own] = -(1.0 - self.alpha[own]) if whole else 0.0

        def apply(P):
            along = (self.beta * P).sum(axis=2)
            out = weight[:, :, None] * (diagonal * P - (turn * along)[:, :, None] * self.beta)
            lead = along - along[own][:, None]
            by = self.alpha * (lead - (self.alpha * lead).sum(axis=1, keepdims=True)) / self.tau
            by[own] = 0.0
            by[own] = -by.sum(axis=1)
            return problem.share[:, None, None] * (out + by[:, :, None] * self.beta)

        return apply
