"""mcODM of three or more classes as one problem, and its certificate."""

import math
from dataclasses import dataclass

import numpy as np

from mdlearn.extend import Problem, Solution, judge, judge_residual, representer

from .losses import Losses, Multipliers


@dataclass(frozen=True, eq=False)
class JointPoint:
    """What an engine hands in.

    Attributes
    ----------
    W : ndarray of shape (width, k)
        Coefficients of the features.
    intercept : ndarray of shape (k,)
    multipliers : Multipliers
    """

    W: np.ndarray
    intercept: np.ndarray
    multipliers: Multipliers


class JointMargins(Problem):
    """1/2 sum_l |w_l|^2 + sum_i [a_i (low - gamma_i)_+^2 + b_i (gamma_i - high)_+^2], with 1/2 |b|^2 if asked for.

    Parameters
    ----------
    data : Data
        Of three or more classes.
    features : LinearFeatures or KernelFeatures
    bias : str
    params : dict
        lam, mu, theta.
    """

    engine = "ccp"

    def __init__(self, data, features, bias, params):
        k = data.classes.shape[0]
        self.features, self.bias, self.part, self.unit = features, bias, self, 1.0
        self.losses = Losses(data.codes, data.counts, k, params["lam"], params["mu"], params["theta"])
        self.k, self.at_zero = k, params["lam"]

    def start(self):
        """Coefficients 0."""
        zeros = np.zeros((self.features.n_rows, self.k))
        return JointPoint(np.zeros((self.features.width, self.k)), np.zeros(self.k), self.losses.natural(zeros))

    def bounds_at_start(self):
        """The value at coefficients 0."""
        return self.at_zero, -math.inf

    def proof(self, residual, objective):
        """Lower bound and residual as certificates and reports take them: a bound only where the problem is convex."""
        return (objective - residual, None) if self.losses.convex else (-math.inf, residual)

    def feasible(self, F, multipliers):
        """Multipliers of the majoriser at decision values F that make a finite bound of it."""
        found = self.losses.against_runners(F, multipliers)
        return self.losses.balanced(found) if self.bias == "free" else found

    def certify(self, point, tol):
        """Certify coefficients as the model will hold them."""
        dtype = self.features.dtype
        W, b = (part.astype(dtype).astype(np.float64) for part in (point.W, point.intercept))
        certificate, alpha, multipliers = self._judged(W, b, point.multipliers, tol)
        at_limit = False
        if dtype != np.float64 and not certificate.converged:
            at_limit = self._judged(point.W, point.intercept, point.multipliers, tol)[0].converged
        return self._solution(W, b, alpha, multipliers, certificate, at_limit)

    certify_best = certify_as_is = certify

    def _judged(self, W, b, multipliers, tol):
        """Certificate of coefficients, with their dual coefficients and multipliers."""
        features, regularized = self.features, self.bias == "regularized"
        F, objective = self._valued(W, b)
        multipliers = self.feasible(F, multipliers)
        alpha, residual = self.losses.alpha(multipliers), math.inf
        if features.ready:
            residual = self.losses.missed(F, multipliers, self.losses.b)
            residual += 0.5 * sum(features.squared_norm(w - features.expand(a)) for w, a in zip(W.T, alpha.T))
            residual += 0.5 * float(np.square(b - alpha.sum(axis=0)).sum()) if regularized else 0.0
        lower, left = self.proof(residual, objective)
        if left is None:
            return judge(objective, lower, self.at_zero, False, tol), alpha, multipliers
        return judge_residual(objective, left, self.at_zero, tol), alpha, multipliers

    def _valued(self, W, b):
        """Decision values and objective of coefficients."""
        features = self.features
        F = (features.decision(W) if W.any() else np.zeros((features.n_rows, self.k))) + b
        objective = self.losses.value(F) + 0.5 * sum(features.squared_norm(w) for w in W.T)
        return F, objective + (0.5 * float(b @ b) if self.bias == "regularized" else 0.0)

    def value_of(self, solution):
        """The objective at a solution's coefficients."""
        W = solution.alpha[:, 0] if solution.coef is None else solution.coef
        return self._valued(W.T, solution.intercept)[1]

    def _solution(self, W, b, alpha, multipliers, certificate, at_limit):
        """Coefficients and multipliers by class; dual coefficients that give the very coefficients."""
        beta = np.zeros((self.k, 2, alpha.shape[0]))
        beta[:, 0] = multipliers.short.T
        beta[multipliers.runner, 1, np.arange(alpha.shape[0])] = multipliers.beyond
        held = [representer(self, a, w, float(c)) for a, w, c in zip(alpha.T, W.T, b)]
        explicit = self.features.to_model(W[:, 0], None)[0] is not None
        coef = np.ascontiguousarray(W.T) if explicit else None
        norms = np.sqrt([self.features.squared_norm(w) for w in W.T])
        return Solution(coef, b, np.array(held)[:, None], beta, norms, certificate, at_limit)

    def examine(self, point):
        """Nothing to examine."""

    def explain(self):
        """Nothing to explain: the objective is finite everywhere."""
