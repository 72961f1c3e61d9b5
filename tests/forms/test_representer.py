"""Dual coefficients of a given element: how many passes over the rows their search takes."""

from __future__ import annotations

import numpy as np

import mdlearn
from mdlearn.forms.certificates import representer


def test_rows_of_one_cluster_are_searched_as_full_ones(monkeypatch):
    """Squares of their columns say little of Gaussian features: without the matrix 500 steps led nowhere."""
    steps, craig = [], representer._craig_steps_to_representer

    def counted(alpha, rest, scale, enough, maps, most):
        expand, adjoint, metric = maps
        return craig(alpha, rest, scale, enough, (lambda v: steps.append(1) or expand(v), adjoint, metric), most)

    monkeypatch.setattr(representer, "_craig_steps_to_representer", counted)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 6))
    y = np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(1500) > 0, 1, -1)
    model = mdlearn.fit("l3svm", X, y, n_clusters=1, n_landmarks=200, projection="rbf", loss="squared_hinge", tol=1e-6)
    assert model.certificate.converged
    assert 0 < len(steps) <= 60
