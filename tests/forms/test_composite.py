"""An objective that brings its own gradient: a Composite with value, gradient and L, nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from mdlm_paper import sample

import mdlearn
from mdlearn.forms.composite import Composite
from mdlearn.forms.joint.composite_point import CompositeEvaluation
from mdlearn.objectives.base import Objective, Parameter
from mdlearn.solvers.proximal_gradient.solver import APG


class LeastSquares(Composite):
    """mean |F - E|^2 / 2 with E the indicators of the classes: value, gradient and L, nothing else."""

    convex = True

    def __init__(self, data, features, lam):
        k = data.classes.shape[0]
        super().__init__(features, "none", k, np.zeros(features.width), np.full(features.width, lam))
        self.X, self.E = features.matrix(), np.eye(k)[data.codes]
        self.at_zero, self.nonnegative = 0.5, True

    def at(self, W):
        R = self.X @ W - self.E
        n = R.shape[0]
        return CompositeEvaluation(W, 0.5 * (R**2).sum() / n, self.X.T @ R / n, np.ones(self.shape[0]))

    def lipschitz(self):
        return np.linalg.norm(self.X, 2) ** 2 / self.X.shape[0]


class GroupLasso(Objective):
    name = "group-lasso"
    summary = "least squares on class indicators with L2,1"
    parameters = {"lam": Parameter(0.1, "weight of the penalty")}  # noqa: RUF012
    default_bias = "none"
    multiclass = ("joint",)
    kernels = False

    def form(self, data, features, bias, params):
        return LeastSquares(data, features, params["lam"])


def test_an_objective_with_its_own_gradient():
    X, y = sample(3)
    model = mdlearn.fit(GroupLasso, X, y, lam=0.08, tol=1e-10)
    W, E = model.coef_.T, np.eye(3)[y]
    G, length = X.T @ (X @ W - E) / 60, np.linalg.norm(W, axis=1)
    assert model.solver == "apg" and model.certificate.converged and 0 < (length > 0).sum() < 5
    assert G[length > 0] == pytest.approx(-0.08 * W[length > 0] / length[length > 0, None], abs=1e-5)
    assert (np.linalg.norm(G[length == 0], axis=1) <= 0.08).all()
    objective = 0.5 * ((X @ W - E) ** 2).sum() / 60 + 0.08 * length.sum()
    assert model.certificate.objective == pytest.approx(objective, rel=1e-12)
    assert APG().refusal(object()) is not None


class Clipped(LeastSquares):
    """The same with a penalty whose methods know nothing of the problem."""

    @staticmethod
    def penalty(W):
        return 0.08 * float(np.sqrt(np.square(W).sum(axis=1)).sum())

    @staticmethod
    def prox(V, step):
        length = np.sqrt(np.square(V).sum(axis=1, keepdims=True))
        return V * np.maximum(1.0 - 0.08 * step / np.maximum(length, 1e-300), 0.0)


def test_static_methods_are_methods():
    X, y = sample(3)
    own = {"name": "clipped", "form": lambda self, data, features, *given: Clipped(data, features, 0.08)}
    models = [mdlearn.fit(one, X, y, lam=0.08, tol=1e-10) for one in (GroupLasso, type("Own", (GroupLasso,), own))]
    assert models[1].certificate.objective == pytest.approx(models[0].certificate.objective, rel=1e-9)
