"""MSVMAv: the mean of the margins, and how far they lie below it."""

from typing import ClassVar

import numpy as np

import mdlearn
from mdlearn.extend import Parameter

from .linear_margins import LinearMargins


class SemiVariance(LinearMargins):
    """v mean((mu - z)_+^2) - a mu with mu = mean(z) in every column.

    Parameters
    ----------
    data : Data
    features : LinearFeatures
    bias : str
    v, a : float
    """

    def __init__(self, data, features, bias, v, a):
        self.v, self.a = v, a
        super().__init__(data, features, bias)

    def losses(self, Z):
        """Return value and slopes at margins: each margin also moves the mean."""
        mean = self.share @ Z
        short = np.maximum(mean - Z, 0.0)
        value = self.v * self.share @ short**2 - self.a * mean
        slopes = 2.0 * self.v * (self.share @ short - short) - self.a
        return float(value.sum()), self.share[:, None] * slopes

    def curve(self, Z):
        """Return U -> second derivatives at margins Z applied to U; margins that are all equal count as below."""
        below = (self.share @ Z > Z) | (Z.max(axis=0) == Z.min(axis=0))

        def apply(U):
            E = below * (self.share @ U - U)
            return 2.0 * self.v * self.share[:, None] * (self.share @ E - E)

        return apply


class MSVMAv(mdlearn.Objective):
    """MSVMAv: a large mean of the margins and a small semi-variance, the mean square of what is below the mean.

    ``1/2 |w|^2 - lambda2 mean(z) + lambda1 mean((mean(z) - z)_+^2)``

    A margin above the mean costs nothing, where the variance of the LDM punishes it as one below. Linear only. For more
    than two classes the objective is the sum of those of each class against the rest, which share nothing.

    Parameters
    ----------
    lambda1 : float, default m
        Weight of the semi-variance, >= 0; m is the sum of the sample weights.
    lambda2 : float, default lambda1
        Weight of the margin mean, >= 0.

    Raises
    ------
    ValueError
        At fit with bias="free".

    Notes
    -----
    Certain: that the mean of the margins and their semi-variance are optimised together. Readings: that 1/2 |w|^2 takes
    the place of a bound on |w|, that both statistics have a weight of their own, the defaults, a regularized bias, one
    class against the rest. With lambda1 = 0 this is w = lambda2 mean(y x). Doubling lambda2 doubles w: it has no
    influence on the predicted classes, and lambda1 alone is to be chosen.

    References
    ----------
    M.-Z. Qian, Z. Ai, T. Zhang and W. Gao, "On the optimization of margin distribution", IJCAI 2022 (arXiv:2204.14118).
    """

    name = "msvmav"
    summary = "margin mean and semi-variance"
    formula = "1/2 |w|^2 - lambda2 mean(z) + lambda1 mean(max(0, mean(z) - z)^2)"
    parameters: ClassVar = {
        "lambda1": Parameter(lambda params, m: m, "weight of the semi-variance (default m, the sum of the weights)"),
        "lambda2": Parameter(lambda params, m: params["lambda1"], "weight of the margin mean (default lambda1)"),
    }
    multiclass: ClassVar = ("joint",)
    kernels = False

    def grid(self, total):
        """Return a grid of lambda1, seven values around its default."""
        return {"lambda1": [total * 10.0**k for k in range(-3, 4)]}

    def form(self, data, features, bias, params):
        """Return a composite of all columns."""
        return SemiVariance(data, features, bias, params["lambda1"], params["lambda2"])
