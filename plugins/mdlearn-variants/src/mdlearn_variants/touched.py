"""Problems that are not convex, and have convex problems that lie above them and touch them at given values."""

import math
from dataclasses import dataclass, replace

import numpy as np

from mdlearn.extend import Problem, Several, Solution, judge_residual


@dataclass(frozen=True, eq=False)
class TouchedPoint:
    """Solution of a convex problem, the objective there, and what the next convex problem could still save."""

    solution: Solution
    objective: float
    residual: float


class TouchedProblem(Problem):
    """Problem of one class whose residual is what the convex problem that touches it could still save.

    Derived classes write `margins_at_start`, `convexified` and `look`.

    Parameters
    ----------
    features : LinearFeatures or KernelFeatures
    bias : str
    at_zero : float
        Objective at w = 0.
    """

    engine = "cccp"

    def __init__(self, features, bias, at_zero):
        self.features, self.bias, self.part, self.unit, self.at_zero = features, bias, self, 1.0, at_zero

    def decided(self, solution):
        """Return half the squared norm of a solution, with that of a regularized bias, and its decision values."""
        b, alpha = float(solution.intercept), solution.alpha
        w = self.features.from_model(solution.coef, None if alpha is None else alpha.reshape(-1))
        bias = b * b if self.bias == "regularized" else 0.0
        return 0.5 * (self.features.squared_norm(w) + bias), self.features.decision(w) + b

    def start(self):
        """Return w = 0."""
        m = self.features.n_rows
        coef, alpha = self.features.to_model(np.zeros(self.features.width), np.zeros(m))
        nothing = judge_residual(self.at_zero, math.inf, self.at_zero, 1.0)
        return TouchedPoint(Solution(coef, 0.0, alpha, np.zeros((0, m)), 0.0, nothing), self.at_zero, math.inf)

    def certify(self, point, tol):
        """Return the solution with the residual of the objective, and the sum of the multipliers of each row."""
        told = judge_residual(point.objective, point.residual, self.at_zero, tol)
        beta = point.solution.beta.sum(axis=0, keepdims=True)  # how many terms there are differs by class
        return replace(point.solution, beta=beta, certificate=told)

    def value_of(self, solution):
        """Return the objective of a solution."""
        return self.look(solution)[0]


class TouchedForm(Several):
    """Form of one such problem for two classes, else of one per class."""

    def __init__(self, features, bias, parts):
        self.features, self.bias, self.parts = features, bias, tuple(parts)

    def problems(self):
        """Return the problems."""
        return self.parts
