"""The problem of a ramp loss with margin distribution for one column, and the convex problems that touch it."""

import math

import numpy as np

from mdlearn.extend import Column, HingeTerm, MarginForm, RowTerms

from .touched import TouchedProblem


class RampProblem(TouchedProblem):
    """1/2 |w|^2 + v Var(z) - a mean(z) + C sum_i c_i min(1 - s, max(0, 1 - z_i)) for one class.

    The loss is a hinge at 1 less a hinge at s. The second is concave: its tangent at given margins z makes a convex
    problem that lies above this one and touches it there. Rows with z < s then pay max(1, z) - s, the others their
    hinge. The residual is the objective less a proven lower bound of that convex problem: what a step of the
    concave-convex procedure could still save.

    Parameters
    ----------
    features : LinearFeatures or KernelFeatures
    y, counts : ndarray of shape (m,)
    bias : str
    C, s, variance, mean : float
    """

    def __init__(self, features, y, counts, bias, C, s, variance, mean):
        self.y, self.counts, self.C, self.s, self.variance, self.mean = y, counts, C, s, variance, mean
        self.share = counts / counts.sum()
        super().__init__(features, bias, C * min(1.0, 1.0 - s) * float(counts.sum()))

    def margins_at_start(self):
        """Return margins of which none is below s: the first convex problem has the hinge loss."""
        return np.full(self.y.shape, math.inf)

    def convexified(self, z, error=0.0):
        """Return the form of the convex problem that touches the objective at margins z, and what its values lack.

        Margins less than `error` below s count as s: where a class is predicted for all rows, many margins are s but
        for rounding, which must not say where the way goes.
        """
        below = z < self.s - error
        terms, weights = (HingeTerm(self.C), HingeTerm(self.C, side=-1)), np.array([~below, below], dtype=float)
        kept = [t for t in (0, 1) if weights[t].any()]
        by_row = RowTerms(weights=weights[kept])
        own = self.variance, self.mean, tuple(terms[t] for t in kept)
        column = Column(self.y, self.counts, *own, by_row=by_row)
        lacking = self.C * (1.0 - self.s) * float(self.counts[below].sum())
        return MarginForm(self.features, (column,), self.bias), lacking

    def look(self, solution):
        """Return the ramp objective of a solution, and its margins."""
        half_norm, f = self.decided(solution)
        z = self.y * f
        ramp = float(self.counts @ np.minimum(1.0 - self.s, np.maximum(0.0, 1.0 - z)))
        mean = float(self.share @ z)
        spread = self.variance * float(self.share @ (z - mean) ** 2) - self.mean * mean
        return half_norm + spread + self.C * ramp, z
