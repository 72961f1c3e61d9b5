"""Problems for tests of warm starts: settings of one fit, and what the next one changes."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def rows(m=90, d=4, k=2, seed=0):
    """Overlapping classes, counts with zeros, and other counts with other zeros."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.argmax(X[:, :k] + 1.2 * rng.standard_normal((m, k)), axis=1)
    return X / np.abs(X).max(), y, rng.integers(0, 3, m), rng.integers(0, 4, m) + 0.5 * (rng.random(m) < 0.3)


def text(m=2500, d=300, seed=0):
    """CSR rows, enough of them for sweeps that do not go through a Gram matrix."""
    rng = np.random.default_rng(seed)
    X = sp.random(m, d, density=0.03, random_state=rng, format="csr")
    X.data = rng.standard_normal(X.nnz)
    score = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(m)
    return X, np.where(score > 0, 1, 0)


LDM = {"C": 1.0, "lambda1": 3.0, "lambda2": 0.5}
CASES = {
    "ldm cd rows": ("ldm", {"solver": "cd", **LDM}, [{"C": 4.0}, {"lambda1": 50.0}, {"lambda2": 5.0}]),
    "ldm cd rbf": ("ldm", {"solver": "cd", "kernel": "rbf", "gamma": 0.7, **LDM}, [{"C": 4.0}, {"lambda1": 50.0}]),
    "ldm cd rbf free": (
        "ldm",
        {"solver": "cd", "kernel": "rbf", "gamma": 0.7, "bias": "free", **LDM},
        [{"C": 4.0}, {"lambda1": 0.0, "lambda2": 0.0}],
    ),
    "svm cd poly": ("svm", {"solver": "cd", "kernel": "poly", "gamma": 1.0}, [{"C": 0.1}, {"C": 20.0}]),
    "svm interior": ("svm", {"solver": "interior", "bias": "none"}, [{"C": 0.2}, {"C": 30.0}, {"C": 1e6}]),
    "ldm interior": ("ldm", {"solver": "interior", **LDM}, [{"C": 5.0}, {"lambda1": 100.0}, {"C": 0.0}]),
    "ldm interior free": ("ldm", {"solver": "interior", "bias": "free", **LDM}, [{"C": 5.0}, {"lambda1": 0.0}]),
    "svm interior rbf": ("svm", {"solver": "interior", "kernel": "rbf", "gamma": 0.7}, [{"C": 5.0}, {"C": 0.1}]),
    "ldm interior rbf": ("ldm", {"solver": "interior", "kernel": "rbf", "gamma": 0.7, **LDM}, [{"C": 5.0}]),
    "lsvm newton": ("lsvm", {"solver": "newton"}, [{"nu": 20.0}, {"nu": 0.01}]),
    "lsvm newton rbf": ("lsvm", {"solver": "newton", "kernel": "rbf", "gamma": 0.7}, [{"nu": 20.0}]),
    "lsvm interior": ("lsvm", {"solver": "interior"}, [{"nu": 20.0}]),
    "lsvm reduced": ("lsvm", {"solver": "newton", "kernel": "rbf", "gamma": 0.7, "reduced": 9}, [{"nu": 9.0}]),
    "lsvm smw": ("lsvm", {"solver": "smw", "nu": 0.5}, [{"nu": 2.0}, {"nu": 0.1}]),
    "mlr newton": ("mlr", {"solver": "newton", "lam": 0.1}, [{"lam": 0.01}, {"alpha": 2.0}]),
    "l2lr apg": ("l2lr", {"solver": "apg", "lam": 0.1}, [{"lam": 0.01}]),
    "mdlm apg": ("mdlm", {"solver": "apg", "ridge": 0.01}, [{"beta": 0.02}, {"lambda1": 0.1}]),
    "uldm cd": ("uldm", {"solver": "cd", "C": 0.1}, [{"C": 0.5}]),
}
