"""LDM and SVM on text-like sparse rows, beside LIBLINEAR as scikit-learn brings it."""

import warnings

import numpy as np

import mdlearn

from .references import paired_ratio
from .workloads import words

ROWS = 50_000
LAMBDAS = {"0": 0.0, "1": 1.0, "m/16": ROWS / 16, "m/4": ROWS / 4, "16 m": 16.0 * ROWS}


class SparseAgainstLiblinear:
    """A certified fit in units of LIBLINEAR's time for the SVM alone, to an objective that is no better, same run.

    LIBLINEAR takes the least of a few tolerances with which it comes within 1e-6 of the proven bound.
    """

    params = [[1.0, 10.0], list(LAMBDAS)]
    param_names = ["C", "lambda1"]
    timeout = 600

    def setup(self, C, lambda1):
        from sklearn.svm import LinearSVC

        warnings.simplefilter("ignore")
        self.X, self.y = words(ROWS)
        bound = mdlearn.fit("svm", self.X, self.y, C=C, bias="none", tol=1e-8).certificate.lower_bound
        for tol in (1e-3, 3e-4, 1e-4, 3e-5, 1e-5):
            self.peer = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=tol, max_iter=1000, random_state=0)
            w = self.peer.fit(self.X, self.y).coef_[0]
            objective = 0.5 * w @ w + C * np.maximum(0.0, 1.0 - self.y * (self.X @ w)).sum()
            if objective - bound <= 1e-6 * objective:
                return

    def track_ratio(self, C, lambda1):
        weights = {"C": C, "lambda1": LAMBDAS[lambda1], "lambda2": 0.0 if lambda1 == "0" else 1.0}

        def ours():
            certificate = mdlearn.fit("ldm", self.X, self.y, bias="none", **weights).certificate
            if not certificate.converged:
                raise RuntimeError(f"mdlearn stopped at the gap {certificate.gap:.2g}")

        return paired_ratio(ours, lambda: self.peer.fit(self.X, self.y))

    track_ratio.unit = "times LIBLINEAR"
