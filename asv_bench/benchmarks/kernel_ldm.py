"""LDM with an RBF kernel on ringnorm data, 20 columns."""

import mdlearn

from .references import gram_and_cholesky, paired_ratio
from .workloads import ringnorm


def fit(X, y):
    """C = 1, lambda1 = lambda2 = 1/16, gamma = 1 / (d Var X), the default tolerance."""
    return mdlearn.fit("ldm", X, y, kernel="rbf", C=1.0, lambda1=2**-4, lambda2=2**-4)


class KernelLDM:
    """Time, memory, gap and iterations over the number of rows."""

    params = [200, 500, 1000]
    param_names = ["m"]

    def setup(self, m):
        self.X, self.y = ringnorm(m)

    def time_fit(self, m):
        fit(self.X, self.y)

    def peakmem_fit(self, m):
        fit(self.X, self.y)

    def track_gap(self, m):
        return fit(self.X, self.y).certificate.gap

    track_gap.unit = "relative gap"

    def track_iterations(self, m):
        return fit(self.X, self.y).n_iter

    track_iterations.unit = "iterations"


class KernelLDMAgainstCholesky:
    """A fit in units of "Gram matrix and one Cholesky factorisation" of the same size, same run."""

    params = [500, 1000, 2000]
    param_names = ["m"]

    def setup(self, m):
        self.X, self.y = ringnorm(m)
        self.gamma = 1 / (self.X.shape[1] * self.X.var())

    def track_ratio(self, m):
        return paired_ratio(lambda: fit(self.X, self.y), lambda: gram_and_cholesky(self.X, self.gamma), repeats=5)

    track_ratio.unit = "times Gram matrix and Cholesky"
