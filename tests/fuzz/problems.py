"""Random problems: a seed and an index give one problem, always the same.

A problem is mathematics: objective, parameters, rows, labels, weights, kernel and bias. How it is solved (engine,
layout of the rows, limits) is no part of it; see `plans`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuzz.edges import COUNTED, at_the_edge

KERNEL_OBJECTIVES = ("ldm", "svm", "lssvm", "lsldm", "lsvm", "uldm", "odm")
PAIRWISE = ("ovo", "fuzzy-min", "fuzzy-avg")
MULTICLASS = {
    **dict.fromkeys(KERNEL_OBJECTIVES, ("ovr", "ovr", "ovo", "fuzzy-min", "fuzzy-avg")),
    **dict.fromkeys(("l2lr", "mlr"), ("ovr", "ovr", "ovo")),
    "rlp": ("ovr", "ovo"),
    "mdlm": ("joint", "joint", "ovr", "ovo"),
    "mmlr": ("joint",),
    "ww": ("joint",),
    "l3svm": ("ovr",),
}
BIASES = ("none", "regularized", "free")

# ---------------------------------------------------------------- kernels as functions


def laplace(A, B):
    """exp(-|a - b|_1)."""
    return np.exp(-np.abs(A[:, None, :] - B[None, :, :]).sum(axis=2))


def rational(A, B):
    """1 / (1 + |a - b|^2)."""
    return 1 / (1 + ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


def inner(A, B):
    """The linear kernel, as a callable."""
    return A @ B.T


def squared(A, B):
    """(a.b + 1)^2."""
    return (A @ B.T + 1) ** 2


CALLABLES = (laplace, rational, inner, squared)


@dataclass(frozen=True, eq=False)
class Problem:
    """One problem.

    Attributes
    ----------
    X : ndarray
        Rows in float64 (all of them float32 numbers where `single`); the Gram matrix for kernel "precomputed".
    codes : ndarray
        Class of every row, 0 ... k - 1.
    weight : ndarray or None
    kernel : str or callable
    kernel_params, params : dict
    """

    seed: int
    index: int
    objective: str
    X: np.ndarray = field(repr=False)
    codes: np.ndarray = field(repr=False)
    labels: str
    weight: np.ndarray | None = field(repr=False)
    class_weight: Any
    kernel: str | Callable
    kernel_params: dict
    params: dict
    bias: str | None
    multiclass: str
    single: bool
    sparse: bool
    traits: tuple

    @property
    def k(self):
        return int(self.codes.max()) + 1

    @property
    def known(self):
        """Class of every row among those that have weight, as a model numbers them."""
        return np.searchsorted(np.unique(self.codes[self.counts > 0]), self.codes)

    @property
    def linear(self):
        return self.kernel == "linear"

    @property
    def y(self):
        return labelled(self.codes, self.labels)

    @property
    def shift(self):
        """What is taken from decision values times signs."""
        return np.zeros(len(self.codes))

    @property
    def counts(self):
        """Sample weight times class weight, by the definition."""
        c = np.ones(len(self.codes)) if self.weight is None else np.asarray(self.weight, dtype=float)
        if self.class_weight is None:
            return c
        if self.class_weight == "balanced":
            sums = np.bincount(self.codes, c, self.k)
            factors = np.array([c.sum() / ((sums > 0).sum() * s) if s > 0 else 0.0 for s in sums])
        else:
            names = labelled(np.arange(self.k), self.labels).tolist()
            factors = np.array([self.class_weight.get(name, 1.0) for name in names])
        return c * factors[self.codes]

    def arguments(self):
        """What `fit` is given, but for X, y, engine and limits."""
        given = {"sample_weight": self.weight, "class_weight": self.class_weight, "kernel": self.kernel}
        given |= {"bias": self.bias, **self.kernel_params, **self.params}
        return given if self.k == 2 else given | {"multiclass": self.multiclass}

    def __str__(self):
        named = self.kernel if isinstance(self.kernel, str) else self.kernel.__name__
        told = {"kernel": named, **self.kernel_params, **self.params, "bias": self.bias}
        told = {key: value.shape if isinstance(value, np.ndarray) else value for key, value in told.items()}
        kind = "float32" if self.single else "float64"
        weights = "none" if self.weight is None else f"{self.weight.dtype} to {self.weight.max():g}"
        return (
            f"{self.objective} m={self.X.shape[0]} d={self.X.shape[1]} k={self.k} {self.multiclass} {kind} "
            f"max|X|={abs(self.X).max():.2g} weights={weights} class_weight={self.class_weight} {told} {self.traits}"
        )


def labelled(codes, kind):
    """Labels of the classes, sorted as their codes are."""
    if kind == "signs" and codes.max() < 2:
        return 2 * codes - 1
    if kind == "text":
        return np.array(list("abcdefghijklmnopqrstuvwxyz"))[codes]
    if kind == "bool" and codes.max() < 2:
        return codes.astype(bool)
    return codes * 1.5 - 2 if kind == "floats" else codes


# ---------------------------------------------------------------- drawing


def log_uniform(rng, low, high):
    return float(10.0 ** rng.uniform(low, high))


def number(rng, zero=0.15):
    """A parameter: mostly near 1, now and then far away, or 0."""
    if rng.random() < zero:
        return 0.0
    return log_uniform(rng, *[(-2, 2), (-2, 2), (-5, 5), (-8, 8)][rng.integers(4)])


def positive(rng):
    return number(rng, zero=0.0)


def parameters(rng, name, m, linear):
    """Hyper-parameters of an objective; those left out take their defaults."""
    if rng.random() < 0.12:
        return {"lambda1": number(rng), "lambda2": number(rng)} if name in ("ldm", "lsldm") else {}
    hard = np.inf if rng.random() < 0.07 else None
    some = {
        "svm": lambda: {"C": hard or number(rng, 0.03)},
        "ldm": lambda: {"C": hard or number(rng, 0.05), "lambda1": number(rng), "lambda2": number(rng)},
        "odm": lambda: {"lam": positive(rng), "mu": number(rng), "theta": float(rng.choice([0.0, 0.1, 0.2, 0.5, 0.9]))},
        "lssvm": lambda: {"C": number(rng, 0.03)},
        "lsldm": lambda: {"C": number(rng, 0.05), "lambda1": number(rng), "lambda2": number(rng)},
        "lsvm": lambda: {"nu": positive(rng)} | ({"reduced": int(rng.integers(1, 5))} if rng.random() < 0.15 else {}),
        "uldm": lambda: _uldm(rng, linear),
        "l2lr": lambda: {"lam": number(rng, 0.05)},
        "mlr": lambda: {"lam": number(rng, 0.05), "alpha": log_uniform(rng, -1, 1.7)},
        "mmlr": lambda: {"lam": number(rng, 0.05), "alpha": log_uniform(rng, -1, 1.7)},
        "mdlm": lambda: _mdlm(rng),
        "ww": lambda: {"C": number(rng, 0.03)},
        "rlp": dict,
        "l3svm": lambda: _l3svm(rng),
    }
    return some[name]()


OBJECTIVES = ("ldm", "ldm", "svm", "odm", "lssvm", "lsldm", "lsvm", "uldm", "l2lr", "mlr", "mmlr", "mdlm", "mdlm", "ww")
OBJECTIVES += ("rlp", "l3svm")


def _uldm(rng, linear):
    given = {"C": positive(rng) if rng.random() < 0.5 else log_uniform(rng, -12, -1), "lambda0": number(rng)}
    if rng.random() < 0.5:
        given["basis"] = str(rng.choice(["all", "cholesky", "euclidean"] if linear else ["all", "cholesky"]))
    if rng.random() < 0.15:
        given["c_scaling"] = "max_diag"
    return given


def _mdlm(rng):
    given = {"alpha": log_uniform(rng, -1, 1.7), "lambda1": number(rng), "lambda2": number(rng, 0.3)}
    if rng.random() < 0.6:
        given["beta"] = number(rng)
    if rng.random() < 0.7:
        given["ridge"] = number(rng)
    return given


def _l3svm(rng):
    given = {"C": positive(rng), "n_clusters": int(rng.integers(1, 5)), "n_landmarks": int(rng.integers(1, 4))}
    given |= {"loss": str(rng.choice(["hinge", "squared_hinge"])), "projection": str(rng.choice(["dot", "dot", "rbf"]))}
    if given["projection"] == "rbf" and rng.random() < 0.5:
        given["sigma"] = positive(rng)
    if rng.random() < 0.25:
        given["smoothness"] = positive(rng)
    if rng.random() < 0.25:
        given["membership"] = "soft"
    return given


def rows(rng, m, d):
    """Rows and the words that made them."""
    X = rng.standard_normal((m, d))
    traits = []

    def happens(share, trait):
        if rng.random() < share:
            traits.append(trait)
            return True
        return False

    if happens(0.1, "heavy tails"):
        X = rng.standard_cauchy((m, d))
    if happens(0.12, "integers"):
        X = np.round(2 * X)
    if happens(0.1, "few values"):
        X = (X > 0.7).astype(float)
    if happens(0.12, "duplicates"):
        X = X[rng.integers(0, max(1, m // 3), m)]
    if happens(0.08, "zero rows"):
        X[rng.random(m) < 0.3] = 0.0
    if happens(0.15, "sparse"):
        X[rng.random((m, d)) < 0.7] = 0.0
    if d > 1 and happens(0.06, "equal columns"):
        X[:, -1] = X[:, 0]
    return X, traits, happens


def scaled(rng, X, traits, happens):
    """The same in other units, and what such tables have besides."""
    d = X.shape[1]
    if happens(0.12, "scales of columns"):
        X = X * 10.0 ** rng.uniform(-8, 8, d)
    if happens(0.1, "far away"):
        X = X + 10.0 ** rng.uniform(0, 4)
    if happens(0.1, "constant column"):
        X[:, -1] = 10.0 ** rng.integers(-6, 7)
    if happens(0.06, "zero column"):
        X[:, 0] = 0.0
    if happens(0.35, "scale"):
        X = X * 10.0 ** rng.uniform(-8, 8)
    return X


def classes(rng, X, k, traits, happens):
    """Codes 0 ... k - 1, each of them at least once."""
    m, d = X.shape
    noise = 0.0 if happens(0.15, "separable") else 1.0
    codes = np.argmax(X @ rng.standard_normal((d, k)) + noise * rng.standard_normal((m, k)), axis=1)
    if happens(0.12, "unequal classes"):
        codes[rng.random(m) < 0.85] = 0
    if happens(0.05, "classes without sense"):
        codes = rng.integers(0, k, m)
    codes[:k] = np.arange(k)
    return codes


def weights(rng, codes, k, traits, happens):
    m = len(codes)
    if happens(0.2, "counts"):
        weight = rng.integers(0, 4, m)
    elif happens(0.1, "fractions"):
        weight = np.where(rng.random(m) < 0.2, 0.0, rng.exponential(1.0, m))
    elif happens(0.06, "wide weights"):
        weight = 10.0 ** rng.uniform(-6, 6, m)
    else:
        return None
    weight[:k] = np.maximum(weight[:k], 1)
    return weight


def gram_of(rng, X, kernel, kernel_params):
    """A matrix as a user would make it, float64."""
    if kernel == "rbf":
        return np.exp(-kernel_params["gamma"] * ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))
    G = X @ X.T
    return G if kernel == "linear" else (kernel_params["gamma"] * G + kernel_params["coef0"]) ** 2


def kernels(rng, X, name):
    """(kernel, its parameters, X): linear for half of the objectives that take any."""
    kinds = ["linear"] * 4 + ["rbf"] * 2 + ["poly", "precomputed", "callable"]
    kind = kinds[rng.integers(len(kinds))] if name in KERNEL_OBJECTIVES else "linear"
    if name == "l3svm" and rng.random() < 0.25:
        kind = "rbf"
    spread = float(np.var(X)) * X.shape[1]
    natural = 1 / spread if spread > 1e-300 else 1.0
    gamma = natural * log_uniform(rng, -1, 1) if rng.random() < 0.8 else log_uniform(rng, -3, 3)
    if kind == "rbf":
        return "rbf", {} if rng.random() < 0.2 else {"gamma": gamma}, X
    if kind == "poly":
        return "poly", {"gamma": gamma, "degree": int(rng.integers(1, 5)), "coef0": float(rng.integers(0, 2))}, X
    if kind == "callable":
        return CALLABLES[rng.integers(len(CALLABLES))], {}, X
    if kind == "precomputed":
        return (
            "precomputed",
            {},
            gram_of(rng, X, str(rng.choice(["linear", "rbf", "poly"])), {"gamma": gamma, "coef0": 1}),
        )
    return "linear", {}, X


def approximated(rng, name, kernel, kernel_params, params):
    """Kernel parameters, now and then those of an approximation."""
    if kernel not in ("rbf", "poly") or name in ("uldm", "l3svm") or "reduced" in params or rng.random() > 0.12:
        return kernel_params
    return {**kernel_params, "approximation": str(rng.choice(["nystroem", "landmarks"])), "n_components": 4}


def draw(seed, index, largest=300, share=0.03):
    """The problem of this seed and index; a share of them has more than 120 rows."""
    return at_the_edge(seed, index, _drawn(seed, index, largest, share))


def _drawn(seed, index, largest, share):
    rng = np.random.default_rng([seed, index])
    name = str(OBJECTIVES[rng.integers(len(OBJECTIVES))])
    k = int(rng.choice([2, 2, 2, 2, 2, 3, 3, 4, 5, 6]))
    m = int(rng.integers(120, largest)) if rng.random() < share else int(rng.integers(max(6, k), 81))
    d = int(rng.integers(1, 13))
    X, traits, happens = rows(rng, m, d)
    codes = classes(rng, X, k, traits, happens)
    X = scaled(rng, X, traits, happens)
    single = happens(0.12, "float32")
    if single:
        X = X.astype(np.float32).astype(float)
    weight = weights(rng, codes, k, traits, happens)
    kernel, kernel_params, X = kernels(rng, X, name)
    if single and kernel == "precomputed":
        X = X.astype(np.float32).astype(float)
    bias = None if rng.random() < 0.2 else str(rng.choice(BIASES[1:] if name == "l3svm" else BIASES))
    params = parameters(rng, name, m, kernel == "linear")
    kernel_params = approximated(np.random.default_rng([seed, index, 3]), name, kernel, kernel_params, params)
    if name == "l3svm" or "n_components" in kernel_params:
        distinct = len(np.unique(X if weight is None else X[np.asarray(weight) > 0], axis=0))
        params, kernel_params = (
            {key: min(v, distinct) if key in COUNTED else v for key, v in given.items()}
            for given in (params, kernel_params)
        )
    labels = str(rng.choice(["codes", "signs", "text", "floats", "bool"]))
    class_weight = None
    if rng.random() < 0.12:
        names = labelled(np.arange(k), labels).tolist()
        class_weight = "balanced" if rng.random() < 0.6 else {names[0]: 3.0}
    multiclass = str(rng.choice(MULTICLASS[name])) if k > 2 else "auto"
    return Problem(
        *(seed, index, name, X, codes, labels, weight, class_weight, kernel, kernel_params, params, bias, multiclass),
        *(single, "sparse" in traits or "few values" in traits, tuple(traits)),
    )
