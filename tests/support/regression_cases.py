"""Objectives of regression for the tests: every kind of term, with variance and mean of the residuals z = f(x) - y."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

import mdlearn
from mdlearn.forms.given import GivenLoss
from mdlearn.forms.losses import HingeTerm, LogisticTerm
from mdlearn.objectives.base import Parameter, Terms


class Tube(mdlearn.Objective):
    """Epsilon-insensitive loss, squared loss, variance and mean of the residuals."""

    name = "tube"
    summary = "for tests"
    formula = "see the class"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight of the tube"),
        "k": Parameter(0.0, "weight of the squares"),
        "v": Parameter(0.0, "weight of the variance"),
        "a": Parameter(0.0, "weight of the mean"),
        "epsilon": Parameter(0.2, "half the width of the tube"),
    }
    task = "regression"

    def terms(self, params, total):
        C, k, tube = params["C"], params["k"], params["epsilon"]
        loss = tuple(HingeTerm(C, side, -side * tube) for side in (1, -1))
        loss += tuple(HingeTerm(k, side, 0.0, power=2) for side in (1, -1))
        return Terms(variance=params["v"], mean=params["a"], loss=tuple(t for t in loss if t.weight > 0))


class Rounded(mdlearn.Objective):
    """sqrt(1 + (f - y)^2) - 1, as NumPy functions; with variance."""

    name = "rounded"
    summary = "for tests"
    formula = "see the class"
    parameters: ClassVar = {"C": Parameter(2.0, "weight of the loss"), "v": Parameter(0.0, "weight of the variance")}
    task = "regression"

    def terms(self, params, total):
        loss = GivenLoss(
            lambda t: np.sqrt(1 + t * t) - 1, lambda t: t / np.sqrt(1 + t * t), lambda t: (1 + t * t) ** -1.5
        )
        return Terms(variance=params["v"], loss=loss.terms(params["C"]))


class Above(mdlearn.Objective):
    """A logistic term that punishes residuals below 1, and squares that hold them."""

    name = "above"
    summary = "for tests"
    formula = "see the class"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the loss")}
    task = "regression"

    def terms(self, params, total):
        squares = tuple(HingeTerm(0.1 * params["C"], side, 0.0, power=2) for side in (1, -1))
        return Terms(loss=(LogisticTerm(params["C"]), *squares))


def sample(m=50, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = 2.0 + X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(m)
    return X, y, rng.integers(0, 4, m).astype(float)
