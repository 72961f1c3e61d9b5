"""Features of float32 rows: the certified objective is that of what the model predicts."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import mdlearn

EXPANSIONS = {
    "dot projections": ("l3svm", {"n_clusters": 3, "n_landmarks": 2}),
    "rbf projections": ("l3svm", {"n_clusters": 3, "n_landmarks": 3, "projection": "rbf", "sigma": 300.0}),
    "soft clusters": ("l3svm", {"n_clusters": 3, "n_landmarks": 2, "membership": "soft"}),
    "nystroem": ("lssvm", {"kernel": "rbf", "gamma": 0.2, "approximation": "nystroem", "n_components": 6}),
    "landmarks": ("lssvm", {"kernel": "rbf", "gamma": 0.002, "approximation": "landmarks", "n_components": 6}),
}
STORES = {"dense": np.asarray, "csr": sp.csr_matrix}


def sample(m=90, d=5):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((m, d)).astype(np.float32)
    X += 3 * np.sign(X[:, :1])
    return X, np.where(X[:, 2] - X[:, 1] + rng.standard_normal(m) > 0, 1, -1)


def objective_of_predictions(model, X, y, name, C):
    """Sums over decision values; with a large C they are nearly all of the objective."""
    z = y * model.decision_function(X)
    square = float(np.square(model.coef_.astype(float)).sum() + np.square(model.intercept_.astype(float)).sum())
    loss = C / 2 * np.square(1 - z).sum() if name == "lssvm" else C * np.square(np.maximum(0, 1 - z)).mean()
    return square / 2 + loss


@pytest.mark.parametrize("expansion", EXPANSIONS)
@pytest.mark.parametrize("store", STORES)
def test_objective_is_that_of_predictions(store, expansion):
    """Features that were rounded to float32 gave another objective by 1e-9 to 1e-6."""
    name, given = EXPANSIONS[expansion]
    X, y = sample()
    loss = {"loss": "squared_hinge"} if name == "l3svm" else {}
    model = mdlearn.fit(name, STORES[store](X), y, C=1e5, bias="regularized", **given, **loss)
    assert model.intercept_.dtype == np.float32
    assert model.certificate.converged
    found = objective_of_predictions(model, X, y, name, 1e5)
    assert found == pytest.approx(model.certificate.objective, rel=1e-9)
    # Kept in float64, the same rows give the same decision values.
    assert np.allclose(model.decision_function(X.astype(float)), model.decision_function(X), rtol=0, atol=1e-12)


def test_a_joint_problem_over_kernel_columns():
    """The rows of every pair of classes, written out for the compiled loops, were rounded too."""
    X, y = sample()
    codes = np.where(X[:, 2] > 0.5, 2, y > 0).astype(int)
    given = {"kernel": "poly", "gamma": 30.0, "degree": 2, "approximation": "landmarks", "n_components": 6}
    model = mdlearn.fit("ww", X, codes, C=1e3, bias="regularized", **given)
    F = model.decision_function(X)
    short = np.maximum(0, 2 - F[np.arange(len(codes)), codes][:, None] + F)
    short[np.arange(len(codes)), codes] = 0
    square = float(np.square(model.coef_.astype(float)).sum() + np.square(model.intercept_.astype(float)).sum())
    assert square / 2 + 1e3 * short.sum() == pytest.approx(model.certificate.objective, rel=1e-9)


@pytest.mark.parametrize("basis", ["all", "cholesky"])
@pytest.mark.parametrize("seed", range(4))
def test_rounded_coefficients_of_a_basis(seed, basis):
    """Coefficients of basis rows are certified, predictions are made by w: both were rounded, each for itself."""
    rng = np.random.default_rng(seed)
    X = (1e-3 * rng.standard_normal((60, 7))).astype(np.float32)
    X[:, -1] = 2.5e-3
    y = np.where(X[:, 0] > 1e-3 * rng.standard_normal(60), 1, -1)
    model = mdlearn.fit("uldm", X, y, C=1e-9, lambda0=1.5, basis=basis, bias="none")
    a = model.dual_coef_[0].astype(float)
    z, certificate = y * model.decision_function(X), model.certificate
    value = 0.5e-9 * float(a @ a) - z.mean() + 0.75 * z.var()
    left = certificate.objective - certificate.lower_bound
    assert abs(value - certificate.objective) <= 1e-9 * abs(certificate.objective) + left
    assert certificate.gap < 1e-5
