"""LDM and SVM with a linear kernel on dense rows: overlapping Gaussians, the last column constant."""

import mdlearn

from .references import interior_point, paired_ratio
from .workloads import gaussians

WEIGHTS = {"svm": {"C": 1.0}, "ldm": {"C": 1.0, "lambda1": 2**-4, "lambda2": 2**-4}}


def shape(text):
    """(rows, columns) of "rows x columns"; asv wants parameters that are strings or numbers."""
    m, d = text.split(" x ")
    return int(m), int(d)


class LinearLDM:
    """Time, memory, gap and iterations over the shape of the data."""

    params = ["1000 x 11", "20000 x 51", "100000 x 21", "4000 x 501"]
    param_names = ["shape"]

    def setup(self, text):
        self.X, self.y = gaussians(*shape(text))

    def fit(self):
        return mdlearn.fit("ldm", self.X, self.y, bias="none", **WEIGHTS["ldm"])

    def time_fit(self, text):
        self.fit()

    def peakmem_fit(self, text):
        self.fit()

    def track_gap(self, text):
        return self.fit().certificate.gap

    track_gap.unit = "relative gap"

    def track_iterations(self, text):
        return self.fit().n_iter

    track_iterations.unit = "iterations"


class LinearAgainstInteriorPoint:
    """A fit in units of a plain NumPy interior point method; same data, both to a gap of 1e-8, same run."""

    params = [["svm", "ldm"], ["20000 x 51", "100000 x 51"]]
    param_names = ["objective", "shape"]

    def setup(self, objective, text):
        self.X, self.y = gaussians(*shape(text))

    def track_ratio(self, objective, text):
        weights = WEIGHTS[objective]

        def ours():
            model = mdlearn.fit(objective, self.X, self.y, bias="none", tol=1e-8, **weights)
            if not model.certificate.gap <= 1e-8:
                raise RuntimeError(f"mdlearn stopped at the gap {model.certificate.gap:.2g}")

        def reference():
            gap = interior_point(self.X, self.y, tol=1e-8, **weights)[2]
            if not gap <= 1e-8:
                raise RuntimeError(f"the NumPy interior point stopped at the gap {gap:.2g}")

        return paired_ratio(ours, reference)

    track_ratio.unit = "times NumPy interior point"
