"""Problems of regression: rows and kernels as for classes, and targets of all sizes, with tubes of all widths."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from fuzz import problems
from fuzz.edges import at_the_edge

EVERY, FIRST = 10, 3
"""Numbers of problems of regression: they leave those of classes, and what was found there, as they are."""
LARGEST = 150
"""Power of ten that no target may exceed."""


@dataclass(frozen=True, eq=False)
class Regression(problems.Problem):
    """A problem whose y is numbers.

    Attributes
    ----------
    codes : ndarray
        Position of every row's target among `targets`, so that parts and repetitions of rows are those of classes.
    targets : ndarray
        Different numbers, sorted.
    """

    targets: np.ndarray = field(repr=False)

    @property
    def k(self):
        return 1

    @property
    def y(self):
        return self.targets[self.codes]

    @property
    def shift(self):
        return self.y

    def arguments(self):
        """What `fit` is given, but for X, y, engine and limits."""
        given = {"sample_weight": self.weight, "kernel": self.kernel, "bias": self.bias}
        return given | self.kernel_params | self.params

    def mirrored(self):
        """The problem of -y, whose objective at -w is that of this one at w, number by number."""
        return replace(self, targets=-self.targets)

    def __str__(self):
        y = self.y
        return f"{super().__str__()} y from {y.min():.6g} to {y.max():.6g}, {len(np.unique(y))} different"


def is_regression(index):
    """Whether the problem of this number is one of regression."""
    return index % EVERY == FIRST


def draw(seed, index):
    """The problem of this seed and index: of classes, or of regression."""
    if not is_regression(index):
        return problems.draw(seed, index)
    changed = at_the_edge(seed, index, _drawn(seed, index))
    # An edge may have given codes of its own, which name no target.
    return replace(changed, codes=np.minimum(changed.codes, len(changed.targets) - 1))


def numbers(rng, X, traits, happens):
    """Targets of rows, linear in the directions of X that its largest entries do not drown, with noise."""
    m, d = X.shape
    Z = X / np.maximum(abs(X).max(axis=0), 1e-300)
    y = Z @ rng.standard_normal(d) + (0.0 if happens(0.15, "no noise") else problems.log_uniform(rng, -3, 0.5)) * (
        rng.standard_cauchy(m) if happens(0.15, "far targets") else rng.standard_normal(m)
    )
    if happens(0.1, "no relation"):
        y = rng.standard_normal(m)
    if happens(0.1, "whole targets"):
        y = np.round(3 * y)
    if happens(0.08, "two targets"):
        y = np.sign(y)
    if happens(0.08, "constant target"):
        y = np.full(m, y[0])
    if happens(0.4, "scale of targets"):
        y = y * problems.log_uniform(rng, -6, 6)
    if happens(0.15, "offset of targets"):
        y = y + float(rng.choice([-1, 1])) * problems.log_uniform(rng, 0, 6)
    if happens(0.04, "zero targets"):
        y = np.zeros(m)
    if happens(0.03, "huge targets"):
        y = y * 10.0 ** float(rng.choice([-100, -30, 15, 30, 100]))
    return np.clip(y, -(10.0**LARGEST), 10.0**LARGEST)


def tube(rng, y):
    """Half the width: none, the default, some part of what y spans, just all of it, or anything."""
    span = float(np.ptp(y))
    kind = rng.integers(6)
    if kind == 0:
        return {}
    if kind == 1:
        return {"epsilon": 0.0}
    if kind == 2:
        return {"epsilon": float(rng.choice([0.5, 1.0, 1.1])) * float(rng.choice([abs(y).max(), span / 2]))}
    return {"epsilon": problems.number(rng) if kind == 3 else problems.log_uniform(rng, -4, 0) * span}


def _drawn(seed, index):
    rng = np.random.default_rng([seed, index, 5])
    m = int(rng.integers(120, 300)) if rng.random() < 0.03 else int(rng.integers(3, 81))
    X, traits, happens = problems.rows(rng, m, int(rng.integers(1, 13)))
    y = numbers(rng, X, traits, happens)
    X = problems.scaled(rng, X, traits, happens)
    single = happens(0.12, "float32")
    if single:
        X = X.astype(np.float32).astype(float)
    targets, codes = np.unique(y, return_inverse=True)
    weight = problems.weights(rng, codes, 1, traits, happens)
    kernel, kernel_params, X = problems.kernels(rng, X, "svm")
    if single and kernel == "precomputed":
        X = X.astype(np.float32).astype(float)
    bias = None if rng.random() < 0.2 else str(rng.choice(problems.BIASES))
    params = ({} if rng.random() < 0.1 else {"C": problems.number(rng, 0.03)}) | tube(rng, y)
    if rng.random() < 0.3:  # C in the units of y, as a user would choose it
        params["C"] = problems.log_uniform(rng, -2, 2) * (float(np.std(y)) or 1.0)
    kernel_params = problems.approximated(rng, "svr", kernel, kernel_params, params)
    if "n_components" in kernel_params:
        distinct = len(np.unique(X if weight is None else X[np.asarray(weight) > 0], axis=0))
        kernel_params["n_components"] = min(kernel_params["n_components"], distinct)
    return Regression(
        *(seed, index, "svr", X, codes, "codes", weight, None, kernel, kernel_params, params, bias, "none"),
        *(single, "sparse" in traits or "few values" in traits, tuple(traits), targets),
    )
