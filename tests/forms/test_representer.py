"""Dual coefficients of a given element: how many passes over the rows their search takes."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.certificates import representer
from mdlearn.forms.margin import Column, MarginForm


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


def test_rounding_outside_the_rows_span_does_not_lead_the_steps():
    """Of few rows in more columns: lengths that the rest of the element ruled left 1e-3 of the coefficients."""
    X = np.array([[1.0, -2.0, 1.0, 0.0, 0.0], [2.0, 2.0, 0.0, -2.0, -2.0]])
    given = {"lam": 2.2e-6, "bias": "regularized", "sample_weight": [1.0, 2.0], "tol": 1e-2}
    model = mdlearn.fit("l2lr", X, [0, 1], solver="newton", **given)
    assert np.abs(model.dual_coef_ @ X - model.coef_).max() <= 1e-7 * np.abs(model.coef_).max()
    assert np.abs(model.dual_coef_.sum() - model.intercept_[0]) <= 1e-7 * np.abs(model.coef_).max()


def test_models_have_the_coefficients_that_dual_ones_make():
    """Rounding of steps on heavy rows is no sum over rows: it left 7e-5 of the coefficients that nothing made."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 12))
    heavy = 10.0 ** rng.uniform(-3, 11, 6)
    for solver in ("hybrid", "newton"):
        model = mdlearn.fit("lsvm", X, np.arange(6) % 2, sample_weight=heavy, bias="none", solver=solver, tol=1e-6)
        assert model.certificate.converged
        assert np.abs(model.dual_coef_ @ X - model.coef_).max() <= 1e-9 * np.abs(model.coef_).max()


def test_numbers_whose_sum_is_lost_in_rounding_are_no_beginning():
    """A search that went on from multipliers of a million ended 0.3 % away from coefficients of 6e-5."""
    X = (1e4 * np.random.default_rng(3).standard_normal((10, 30))).astype(np.float32)
    model = mdlearn.fit("svm", X, np.arange(10) % 2, C=1e6, solver="interior", tol=1e-2)
    made = model.dual_coef_.astype(float) @ X.astype(float)
    assert np.abs(made - model.coef_).max() <= 1e-6 * np.abs(model.coef_).max()


@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_fewer_rows_than_columns_make_the_nearest_element(bias):
    """What no sum over rows makes left 6e-4 of margins: some processors' products have it, others' none."""
    rng = np.random.default_rng(3)
    X = 1e4 * rng.standard_normal((10, 30)) * 10.0 ** rng.uniform(-2, 2, (10, 1))
    affine = np.hstack([X, np.full((10, 1), float(bias == "regularized"))])
    element = affine.T @ rng.standard_normal(10)
    outside = np.linalg.svd(affine)[2][-1] * 1e-3 * np.linalg.norm(element)
    coef, intercept = (element + outside)[:30], float((element + outside)[30])
    form = MarginForm(LinearFeatures(DenseRows(X)), (Column(np.ones(10), np.ones(10), 0.0, 0.0, ()),), bias)
    alpha = representer.representer(form, np.full(10, 50.0), coef, intercept, far=True)
    margins, made = affine @ element, affine @ (affine.T @ alpha)
    assert np.abs(made - margins).max() <= 1e-10 * np.abs(margins).max()
