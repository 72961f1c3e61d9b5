"""Work in units of other work of the same run: figures that mean the same on every machine."""

import warnings

import mdlearn

from .peer_dense import linear_svc
from .problems import PARAMS, rows
from .references import gram_and_cholesky, interior_point, paired_ratio
from .workloads import ringnorm, words

TEXT_ROWS = 50_000
LAMBDAS = {"0": 0.0, "1": 1.0, "m/16": TEXT_ROWS / 16, "m/4": TEXT_ROWS / 4, "16 m": 16.0 * TEXT_ROWS}


def certified(objective, X, y, **given):
    """A fit; RuntimeError when it misses its tolerance."""
    model = mdlearn.fit(objective, X, y, **given)
    if not model.certificate.converged:
        raise RuntimeError(f"mdlearn stopped at the gap {model.certificate.gap:.2g}")
    return model


class KernelLDMAgainstCholesky:
    """A fit in units of "Gram matrix and one Cholesky factorisation" of the same size."""

    params = [500, 1000, 2000]
    param_names = ["m"]

    def setup(self, m):
        self.X, self.y = ringnorm(m)
        self.gamma = 1 / (self.X.shape[1] * self.X.var())

    def track_ratio(self, m):
        def ours():
            certified("ldm", self.X, self.y, kernel="rbf", C=1.0, lambda1=2**-4, lambda2=2**-4)

        return paired_ratio(ours, lambda: gram_and_cholesky(self.X, self.gamma), repeats=5)

    track_ratio.unit = "times Gram matrix and Cholesky"


class LinearAgainstInteriorPoint:
    """A fit in units of a plain NumPy interior point method, both to a gap of 1e-8."""

    params = [["svm", "ldm"], ["dense 20000 x 51", "dense 100000 x 51"]]
    param_names = ["objective", "shape"]
    timeout = 300

    def setup(self, objective, shape):
        self.X, self.y = rows(shape)

    def track_ratio(self, objective, shape):
        weights = PARAMS[objective]

        def reference():
            gap = interior_point(self.X, self.y, tol=1e-8, **weights)[2]
            if not gap <= 1e-8:
                raise RuntimeError(f"the NumPy interior point stopped at the gap {gap:.2g}")

        return paired_ratio(lambda: certified(objective, self.X, self.y, bias="none", tol=1e-8, **weights), reference)

    track_ratio.unit = "times NumPy interior point"


class SparseAgainstLiblinear:
    """A certified fit in units of LIBLINEAR's time for the SVM alone, at the first of some tolerances that takes it
    within 1e-6 of the proven bound.
    """

    params = [[1.0, 10.0], list(LAMBDAS)]
    param_names = ["C", "lambda1"]
    timeout = 600

    def setup(self, C, lambda1):
        warnings.simplefilter("ignore")
        self.X, self.y = words(TEXT_ROWS)
        bound = certified("svm", self.X, self.y, C=C, bias="none", tol=1e-8).certificate.lower_bound
        self.peer = linear_svc(self.X, self.y, bound, 1e-6, (1e-3, 3e-4, 1e-4, 3e-5, 1e-5), None, C)

    def track_ratio(self, C, lambda1):
        weights = {"C": C, "lambda1": LAMBDAS[lambda1], "lambda2": 0.0 if lambda1 == "0" else 1.0}
        return paired_ratio(lambda: certified("ldm", self.X, self.y, bias="none", **weights), self.peer.call)

    track_ratio.unit = "times LIBLINEAR"


class BoundsOfDecisions:
    """Proven bounds of decision values in units of the decision values alone, of the training rows."""

    params = ["dense 20000 x 51", "kernel 2000", "sparse 50000 x 20000"]
    param_names = ["shape"]

    def setup(self, shape):
        self.X, y = ringnorm(2000) if shape.startswith("kernel") else rows(shape)
        kernel = "rbf" if shape.startswith("kernel") else "linear"
        self.model = certified("svm", self.X, y, kernel=kernel, tol=1e-3)

    def track_ratio(self, shape):
        model, X = self.model, self.X
        return paired_ratio(lambda: model.decision_bounds(X), lambda: model.decision_function(X), repeats=15)

    track_ratio.unit = "times the decision values"
