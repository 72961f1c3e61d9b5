"""Composites of margins: losses that no sum over rows can say, of decision functions linear in the rows."""

from abc import abstractmethod

import numpy as np

from mdlearn.extend import Composite, CompositeEvaluation

POWER_STEPS = 30
"""Steps of the power method for the largest second derivative."""


class LinearMargins(Composite):
    """A convex function of the margins of every column, with 1/2 |w|^2 of each.

    Columns are the class told apart, or each class against the rest; they share nothing.

    Parameters
    ----------
    data : Data
    features : LinearFeatures
    bias : str
        "none" or "regularized".
    """

    convex = True

    def __init__(self, data, features, bias):
        if bias == "free":
            raise ValueError(
                "a free bias has no square, which the bound rests on; give bias='regularized' or bias='none'"
            )
        self.signs, self.counts = np.array(data.signs()).T, data.counts
        self.share, self.X = data.counts / data.total, features.matrix()
        self.magnitudes, self.constant = abs(self.X), bias == "regularized"
        size = features.width + self.constant
        super().__init__(features, bias, self.signs.shape[1], np.ones(size), np.zeros(size))
        self.at_zero = self.losses(np.zeros(self.signs.shape))[0]

    @abstractmethod
    def losses(self, Z):
        """Return the value of the losses at margins of shape (m, k), and their slopes."""

    @abstractmethod
    def curve(self, Z):
        """Return U -> second derivatives of the losses at margins Z applied to U, both of shape (m, k)."""

    def scores(self, W):
        """Return decision values."""
        d = self.features.width
        return self.X @ W[:d] + (W[d] if self.constant else 0.0)

    def adjoint(self, A, X):
        """Return the sum over rows of A_i (x_i, 1)."""
        found = X.T @ A
        return np.vstack([found, A.sum(axis=0)]) if self.constant else found

    def at(self, W):
        """Return value and gradient of the losses."""
        F = self.scores(W)
        value, slopes = self.losses(self.signs * F)
        sizes = self.adjoint(np.abs(slopes).sum(axis=1, keepdims=True), self.magnitudes)[:, 0]
        return CompositeEvaluation(W, value, self.adjoint(self.signs * slopes, self.X), sizes, F)

    def product(self, look):
        """Return V -> second derivatives of losses and ridge applied to V."""
        curve = self.curve(self.signs * look.scores)
        return lambda V: self.adjoint(self.signs * curve(self.signs * self.scores(V)), self.X) + V

    def lipschitz(self):
        """Return the largest second derivative by the power method, at margins where every loss bends."""
        curve, found = self.curve(np.full(self.signs.shape, -1.0)), 1.0
        V = np.ones(self.shape)
        for _ in range(POWER_STEPS):
            V = self.adjoint(self.signs * curve(self.signs * self.scores(V)), self.X) + V
            found = float(np.linalg.norm(V))
            V = V / found
        return found
