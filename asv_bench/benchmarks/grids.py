"""Fits of a whole grid by `mdlearn.fit_path`, in units of single fits; ``python -m benchmarks.grids`` prints them."""

from time import process_time

import numpy as np

import mdlearn

from .references import paired_ratio
from .workloads import gaussians, ringnorm, words

FOLDS = 5
HALVES = [2.0**k for k in range(-8, -1)]
RATIOS = [0.0, *(2.0**k for k in range(-10, 1, 2))]
SHARES = [0.0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0]
WEIGHTS = [1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.1]


def folds(m):
    """Training and held-out rows of every fold."""
    return [
        (np.flatnonzero(np.arange(m) % FOLDS != k), np.flatnonzero(np.arange(m) % FOLDS == k)) for k in range(FOLDS)
    ]


def points(kind, m):
    """147 points: the weights of the LDM paper, or weights of the variance in units of C m."""
    if kind == "paper":
        return {"lambda1": HALVES, "lambda2": HALVES, "C": [10.0, 50.0, 100.0]}
    ratios = [(C, r * C * m) for C in (10.0, 50.0, 100.0) for r in RATIOS]
    return [{"C": C, "lambda1": v, "lambda2": s * v} for C, v in ratios for s in SHARES]


def scaled(X):
    """Columns in [0, 1]."""
    low, high = X.min(axis=0), X.max(axis=0)
    return (X - low) / np.where(high > low, high - low, 1.0)


class LDMGrid:
    """LDM with kernel RBF over 147 points in 5 folds of 500 rows, in units of one fit per fold."""

    params = [["paper", "scaled"], ["ringnorm", "gaussians"]]
    param_names = ["grid", "data"]
    timeout = 600

    def setup(self, grid, data):
        X, y = ringnorm(500) if data == "ringnorm" else gaussians(500, 20)
        self.X, self.y, self.grid = scaled(X), y, grid
        self.settings = {"kernel": "rbf", "gamma": 2.0 / X.shape[1]}

    def single(self):
        """One fit per fold, by itself."""
        for train, _ in folds(500):
            mdlearn.fit("ldm", self.X[train], self.y[train], C=10.0, lambda1=0.25, lambda2=0.25, **self.settings)

    def paths(self):
        """Shares of held-out rows labelled right, shape (147,)."""
        right = np.zeros(147)
        for train, test in folds(500):
            found = mdlearn.fit_path(
                "ldm", self.X[train], self.y[train], points(self.grid, len(train)), **self.settings
            )
            if not found.converged.all():
                raise RuntimeError(f"a point stopped at the gap {found.gap.max():.2g}")
            right += found.score(self.X[test], self.y[test]) / FOLDS
        return right

    def track_fits(self, grid, data):
        return paired_ratio(self.paths, self.single, clock=process_time)

    track_fits.unit = "times one fit per fold"

    def track_flips(self, grid, data):
        """Predictions of held-out rows by the first fold that differ from those of fits of each point by itself."""
        train, test = folds(500)[0]
        found = mdlearn.fit_path("ldm", self.X[train], self.y[train], points(grid, len(train)), **self.settings)
        told = found.predict(self.X[test])
        alone = [mdlearn.fit("ldm", self.X[train], self.y[train], **point, **self.settings) for point in found.points]
        return max(int((a != model.predict(self.X[test])).sum()) for a, model in zip(told, alone))

    track_flips.unit = "predictions of one point"


class QuadraticGrids:
    """Grids of ULDM, LS-SVM and LS-LDM on 400 rows, in units of one fit of their middle point."""

    params = ["uldm rbf", "uldm rbf 8 x 11", "lssvm rbf", "lsldm rbf", "uldm linear", "lssvm linear", "lsldm linear"]
    param_names = ["grid"]
    timeout = 600

    def setup(self, name):
        X, self.y = ringnorm(400)
        self.X = scaled(X)
        objective, kernel = name.split()[:2]
        self.settings = {"kernel": "rbf", "gamma": 0.1} if kernel == "rbf" else {}
        grid = {"uldm": {"C": WEIGHTS}, "lssvm": {"C": [0.1, 1, 10, 50, 100, 500, 1000, 2000]}}.get(objective)
        if "11" in name:
            grid["lambda0"] = np.geomspace(0.01, 1000.0, 11)
        self.objective, self.grid = objective, grid

    def path(self):
        return mdlearn.fit_path(self.objective, self.X, self.y, self.grid, **self.settings)

    def track_fits(self, name):
        found = self.path()
        point = found.points[len(found) // 2]
        return paired_ratio(
            self.path, lambda: mdlearn.fit(self.objective, self.X, self.y, **point, **self.settings), clock=process_time
        )

    track_fits.unit = "times one fit"


class LinearGrids:
    """Ten values of C on linear problems: a path in units of ten fits."""

    params = [["svm", "ldm", "lsvm", "lssvm"], ["dense", "sparse"]]
    param_names = ["objective", "rows"]
    timeout = 600

    def setup(self, objective, rows):
        self.X, self.y = gaussians(5000, 50) if rows == "dense" else words(5000, 5000)
        self.grid = {"nu" if objective == "lsvm" else "C": np.geomspace(0.1, 10.0, 10)}
        self.objective = objective
        self.settings = {"lambda1": 5000 / 256, "lambda2": 1.0} if objective == "ldm" else {}

    def path(self):
        return mdlearn.fit_path(self.objective, self.X, self.y, self.grid, **self.settings)

    def singles(self):
        for point in self.path_points:
            mdlearn.fit(self.objective, self.X, self.y, **point, **self.settings)

    @property
    def path_points(self):
        ((name, values),) = self.grid.items()
        return [{name: value} for value in values]

    def track_ratio(self, objective, rows):
        return paired_ratio(self.path, self.singles, clock=process_time)

    track_ratio.unit = "times ten single fits"


def main():
    """Print what the classes track."""
    for cls in (LDMGrid, QuadraticGrids, LinearGrids):
        some = cls.params if isinstance(cls.params[0], list) else [cls.params]
        for given in np.array(np.meshgrid(*some, indexing="ij")).reshape(len(some), -1).T:
            for name in (key for key in dir(cls) if key.startswith("track_")):
                made = cls()
                made.setup(*given)
                track = getattr(made, name)
                print(f"{cls.__name__} {' '.join(given)}: {track(*given):.3g} {track.unit}", flush=True)


if __name__ == "__main__":
    main()
