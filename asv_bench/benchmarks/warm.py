"""A path of ten values of one parameter: every fit from the solution of the last, in units of ten fits from w = 0."""

from time import process_time

import numpy as np

import mdlearn

from .references import paired_ratio
from .workloads import gaussians, ringnorm, several_classes, words

PER_DECADE = np.geomspace(0.1, 10.0, 10)
ROWS = {"kernel": 1000, "sparse": 20_000, "dense": 20_000}


def problem(shape):
    """Rows, labels and settings of one shape: 1000 rows with an RBF kernel, or 20000 sparse or dense ones."""
    if shape == "kernel":
        return (*ringnorm(ROWS[shape]), {"kernel": "rbf"})
    if shape == "sparse":
        return (*words(ROWS[shape], 20_000), {})
    return (*gaussians(ROWS[shape], 50), {"bias": "none"})


def grids(m):
    """Settings that stay, and the ten changes: C, and lambda1 from m / 256 to 2 m."""
    return {
        "svm over C": ("svm", {}, [{"C": C} for C in PER_DECADE]),
        "ldm over C": ("ldm", {"lambda1": m / 256, "lambda2": 1.0}, [{"C": C} for C in PER_DECADE]),
        "ldm over lambda1": ("ldm", {"C": 1.0, "lambda2": 1.0}, [{"lambda1": m * 2.0**k} for k in range(-8, 2)]),
    }


def path(objective, X, y, changes, warm, **settings):
    """Fit one value after the other; every one is certified. Return the reports of the engine."""
    model, reports = None, 0
    for change in changes:
        model = mdlearn.fit(objective, X, y, warm_start=model if warm else None, **settings, **change)
        if not model.certificate.converged:
            raise RuntimeError(f"{settings} {change} stopped at the gap {model.certificate.gap:.2g}")
        reports += model.n_iter
    return reports


def ratio(objective, X, y, changes, **settings):
    """CPU time of the path from model to model, in units of that from w = 0."""

    def run(warm):
        return lambda: path(objective, X, y, changes, warm, **settings)

    return paired_ratio(run(True), run(False), repeats=3, clock=process_time)


class WarmPaths:
    """Paths of SVM and LDM by the engine that "auto" takes, and by the other one where it is no folly."""

    params = [["kernel cd", "kernel interior", "sparse cd", "dense interior"], list(grids(1))]
    param_names = ["engine", "path"]
    timeout = 600

    def setup(self, engine, name):
        shape, self.solver = engine.split()
        self.X, self.y, self.settings = problem(shape)
        self.objective, more, self.changes = grids(ROWS[shape])[name]
        self.settings = {**self.settings, **more, "solver": self.solver}

    def track_ratio(self, engine, name):
        return ratio(self.objective, self.X, self.y, self.changes, **self.settings)

    track_ratio.unit = "times the path from w = 0"

    def track_reports(self, engine, name):
        return path(self.objective, self.X, self.y, self.changes, True, **self.settings)

    track_reports.unit = "reports"


class WarmSmoothPaths:
    """Paths of squared hinge, logistic loss and row penalties."""

    params = ["lsvm newton", "lsvm smw", "mlr newton", "mdlm apg", "mmlr apg"]
    param_names = ["engine"]
    timeout = 600

    def setup(self, engine):
        self.objective, self.solver = engine.split()
        name, first, last = {"lsvm": ("nu", 1e-4, 1.0), "mlr": ("lam", 0.1, 1e-5), "mmlr": ("lam", 0.1, 1e-5)}.get(
            self.objective, ("beta", 0.1, 1e-4)
        )
        self.changes = [{name: value} for value in np.geomspace(first, last, 10)]
        many = self.objective in ("mdlm", "mmlr")
        self.X, self.y = several_classes(5000, 200, 5) if many else gaussians(20_000, 50)

    def track_ratio(self, engine):
        return ratio(self.objective, self.X, self.y, self.changes, solver=self.solver)

    track_ratio.unit = "times the path from w = 0"
