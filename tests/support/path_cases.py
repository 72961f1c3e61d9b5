"""Problems for tests of paths: every objective, kernel, bias and way with several classes, on few rows."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp

import mdlearn

RBF = {"kernel": "rbf", "gamma": 0.7}
LDM = {"C": [0.5, 4.0], "lambda1": [0.0, 3.0, 40.0], "lambda2": [0.0, 1.0]}
FEW = {"C": [0.3, 2.0, 20.0]}
CASES = {
    "ldm": ("ldm", LDM, {}),
    "ldm rbf": ("ldm", LDM, RBF),
    "ldm rbf none": ("ldm", LDM, {**RBF, "bias": "none"}),
    "ldm rbf free": ("ldm", {"C": [0.5, 4.0], "lambda1": [1.0, 30.0]}, {**RBF, "bias": "free"}),
    "ldm cd": ("ldm", LDM, {"solver": "cd"}),
    "ldm interior rbf": ("ldm", FEW, {**RBF, "solver": "interior", "lambda1": 5.0}),
    "ldm gamma": ("ldm", {"gamma": [0.2, 1.0, "scale"], "C": [1.0, 5.0]}, {"kernel": "rbf", "lambda1": 3.0}),
    "svm poly": ("svm", FEW, {"kernel": "poly", "gamma": 1.0, "coef0": 1.0}),
    "svm free": ("svm", FEW, {"bias": "free"}),
    "svm rbf free": ("svm", FEW, {**RBF, "bias": "free"}),
    "svm callable": ("svm", FEW, {"kernel": lambda A, B: A @ B.T + 1.0}),
    "uldm": ("uldm", {"C": [1e-6, 1e-3, 0.1]}, {}),
    "uldm rbf": ("uldm", {"C": [1e-5, 1e-3, 0.1], "lambda0": [1.0, 5.0]}, RBF),
    "uldm cholesky": ("uldm", {"basis": ["all", "cholesky"], "C": [1e-3, 0.1]}, RBF),
    "uldm scaled": ("uldm", {"C": [1e-3, 0.1]}, {**RBF, "c_scaling": "max_diag"}),
    "lssvm": ("lssvm", FEW, {}),
    "lssvm rbf": ("lssvm", FEW, RBF),
    "lsldm": ("lsldm", {"C": [0.1, 10.0], "lambda2": [0.0, 5.0]}, {}),
    "lsvm": ("lsvm", {"nu": [0.1, 1.0, 10.0]}, {}),
    "lsvm rbf": ("lsvm", {"nu": [0.1, 1.0, 10.0]}, RBF),
    "lsvm reduced": ("lsvm", {"nu": [0.1, 1.0], "reduced": [5, 9]}, RBF),
    "lsvm smw": ("lsvm", {"nu": [0.1, 1.0]}, {"solver": "smw"}),
    "mdlm": ("mdlm", {"lambda1": [0.5, 2.0], "lambda2": [0.1, 0.5]}, {"ridge": 0.01}),
    "smdlm": ("mdlm", {"beta": [0.03, 0.01, 0.0]}, {"ridge": 0.01}),
    "l2lr": ("l2lr", {"lam": [1e-3, 1e-2, 0.1]}, {}),
    "mlr": ("mlr", {"lam": [1e-2, 0.1], "alpha": [2.0, 5.0]}, {}),
    "mmlr": ("mmlr", {"lam": [1e-2, 0.1]}, {}),
    "ww": ("ww", FEW, {}),
    "l3svm": ("l3svm", {"C": [1.0, 30.0], "n_clusters": [2, 3]}, {"n_landmarks": 3}),
    "l3svm levels": ("l3svm", {"C": [1.0, 30.0]}, {"n_landmarks": 3, "n_clusters": 2, "n_levels": 2}),
}
SEVERAL = {
    "ldm ovo rbf": ("ldm", FEW, {**RBF, "multiclass": "ovo"}),
    "svm fuzzy": ("svm", FEW, {"multiclass": "fuzzy-avg"}),
    "uldm rbf": CASES["uldm rbf"],
    "ldm rbf": CASES["ldm rbf"],
    "ldm": CASES["ldm"],
    "lssvm rbf": CASES["lssvm rbf"],
    "lsvm": CASES["lsvm"],
    "smdlm": CASES["smdlm"],
    "mdlm ovr": ("mdlm", {"lambda2": [0.1, 0.5]}, {"ridge": 0.01, "multiclass": "ovr"}),
    "mmlr": CASES["mmlr"],
    "ww": CASES["ww"],
    "l3svm": CASES["l3svm"],
}


def rows(m=60, d=4, k=2, seed=0):
    """Overlapping classes, and counts with zeros."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.argmax(X[:, :k] + 1.2 * rng.standard_normal((m, k)), axis=1)
    return X / np.abs(X).max(), y, rng.integers(0, 3, m)


def text(m=2100, d=60, seed=0):
    """CSR rows, more than go through a Gram matrix."""
    rng = np.random.default_rng(seed)
    X = sp.random(m, d, density=0.05, random_state=rng, format="csr")
    X.data = rng.standard_normal(X.nnz)
    return X, np.where(X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(m) > 0, 1, 0)


def path(objective, X, y, grid, **settings):
    """A path whose points converge, or end where rounding allows no better."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        return mdlearn.fit_path(objective, X, y, grid, **settings)


def single(objective, X, y, **settings):
    """A fit of one point, likewise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        return mdlearn.fit(objective, X, y, **settings)
