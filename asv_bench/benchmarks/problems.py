"""Problems by name.

"dense 2000 x 51", "sparse 4000 x 20000", "kernel 500", "classes 2000 x 50 x 10", "local 4000", "smooth 2000".
"""

import numpy as np

import mdlearn
from mdlearn.extend import HingeTerm, NormTerm, Terms

from .workloads import gaussians, noisy_digits, plane, ringnorm, several_classes, words


class SparseSVM(mdlearn.Objective):
    """Hinge loss, squared norm and absolute values: of the built-in objectives none has a penalty beside hinges."""

    name = "sparse_svm"
    summary = "SVM with an L1 penalty"
    formula = "1/2 |w|^2 + sum_j |w_j| + sum max(0, 1-z)"
    kernels = False

    def terms(self, params, total):
        """Return the hinge with a norm."""
        return Terms(loss=(HingeTerm(1.0),), coefficient_terms=(NormTerm(1.0),))


OWN = {"sparse_svm": SparseSVM}
"""Objectives of the benchmarks."""
PARAMS = {
    "sparse_svm": {},
    "svm": {"C": 1.0},
    "ldm": {"C": 1.0, "lambda1": 1.0, "lambda2": 1.0},
    "lssvm": {"C": 1.0},
    "lsldm": {"C": 1.0, "lambda1": 1.0, "lambda2": 1.0},
    "lsvm": {"nu": 1.0},
    "uldm": {"C": 1e-3},
    "l2lr": {"lam": 1e-4},
    "mdlm": {"lambda1": 0.1, "beta": 0.01},
    "rlp": {},
    "l3svm": {"C": 100.0, "n_clusters": 20, "n_landmarks": 32, "loss": "squared_hinge"},
}
"""What the benchmarks give each objective."""


def sizes(shape):
    """("dense", [2000, 51]) of "dense 2000 x 51"; asv wants parameters that are strings or numbers."""
    kind, _, size = shape.partition(" ")
    return kind, [int(part) for part in size.split(" x ")]


def rows(shape, dtype="float64"):
    """X and y of a named problem."""
    kind, size = sizes(shape)
    if kind == "local":
        X, y = noisy_digits(*size)[:2]
    else:
        kinds = {"dense": gaussians, "sparse": words, "kernel": ringnorm, "smooth": plane, "classes": several_classes}
        X, y = kinds[kind](*size)
    return X.astype(dtype), y


def arguments(objective, shape, solver="auto", **more):
    """Arguments of `mdlearn.fit` beside X and y. The rows of "dense" have a column of ones: no bias is needed."""
    kind, _ = sizes(shape)
    given = {"objective": OWN.get(objective, objective), "solver": solver, **PARAMS[objective]}
    if kind == "kernel":
        given["kernel"] = "rbf"
    elif kind == "smooth":  # a nearly singular Gram matrix
        given |= {"kernel": "rbf", "gamma": 0.05, "C": 1e4}
    elif objective not in ("uldm", "rlp", "l3svm"):
        given["bias"] = "none"
    return {**given, **more}


def fitted(X, y, given):
    """A fit; RuntimeError where an engine that promises a gap ends above it, for its time would be no time."""
    model = mdlearn.fit(X=X, y=y, **given)
    promised = model.solver not in ("sgd", "asgd") and not given.get("solver_options")
    if promised and not model.certificate.converged:
        raise RuntimeError(f"{model.solver} stopped at the gap {model.certificate.gap:.2g}")
    return model


def entries(X):
    """Numbers that X stores."""
    return X.nnz if hasattr(X, "nnz") else np.size(X)
