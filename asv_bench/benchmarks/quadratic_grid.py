"""ULDM over the weights of its paper: one eigendecomposition per data set and kernel width, against single fits."""

from dataclasses import replace
from time import process_time
from unittest.mock import patch

import numpy as np

import mdlearn
from mdlearn.data.features.basis import basis_features
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.validation import check_data
from mdlearn.forms.certificates.certified_solution import certify
from mdlearn.objectives.uldm import ULDM
from mdlearn.solvers.quadratic import spectrum

from .references import paired_ratio
from .workloads import ringnorm

WEIGHTS = [1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.1]
WIDTHS = [0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 15.0, 20.0, 50.0, 100.0, 200.0]
FOLDS = 5


def finish(work):
    """The value of a generator that yields heartbeats."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            return done.value


class QuadraticGrid:
    """The grid of the paper, 8 weights and 11 widths in 5 folds, or one width of it."""

    params = [200, 800]
    param_names = ["rows"]
    timeout = 600

    def setup(self, m):
        self.X, self.y = ringnorm(m)

    def along(self, X, y, width, certified):
        """Coefficients for all weights of one width."""
        data = check_data(X, y, None, None, square=False)
        kernel = Kernel("rbf", {"gamma": width / X.shape[1]})
        features = basis_features(data, kernel, np.arange(X.shape[0]), shared=True)
        finish(features.computed())
        form = ULDM().form(data, features, "regularized", ULDM().resolve(data.total))
        column = form.columns[0]
        columns = [replace(column, variance=0.5 / C, mean=1.0 / C) for C in WEIGHTS]
        decomposed = finish(spectrum.spectrum_of(form, columns))
        if certified:
            return [certify(form, one, decomposed.point(form, one), 1e-6)[1] for one in columns]
        return [decomposed.coefficients(one) for one in columns]

    def grid(self):
        for fold in range(FOLDS):
            keep = [i for i in range(len(self.y)) if i % FOLDS != fold]
            for width in WIDTHS:
                self.along(self.X[keep], self.y[keep], width, certified=False)

    def time_grid(self, m):
        self.grid()

    def track_decompositions(self, m):
        with (
            patch.object(spectrum, "symmetric_eigen", wraps=spectrum.symmetric_eigen) as values,
            patch.object(spectrum, "svd", wraps=spectrum.svd) as sizes,
        ):
            self.grid()
        return values.call_count + sizes.call_count

    track_decompositions.unit = "decompositions"

    def track_ratio(self, m):
        """Eight certified weights of one width in units of eight fits."""

        def single():
            for C in WEIGHTS:
                mdlearn.fit("uldm", self.X, self.y, kernel="rbf", gamma=1.0 / self.X.shape[1], basis="all", C=C)

        return paired_ratio(lambda: self.along(self.X, self.y, 1.0, certified=True), single, clock=process_time)

    track_ratio.unit = "times eight fits"
