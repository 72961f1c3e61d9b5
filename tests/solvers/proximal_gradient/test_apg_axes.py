"""Fewer rows than columns: the engine "apg" works along as many axes as there are rows, and says the same."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mdlearn
from mdlearn.forms.joint.decision_composite import DecisionComposite
from mdlearn.solvers.proximal_gradient import fista as apg_fista
from mdlearn.solvers.proximal_gradient.fista import fista_along_row_axes


@pytest.fixture
def pixels():
    """Raw grey values: 40 rows of 300 columns in 5 classes."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 5
    faces = rng.integers(0, 256, (5, 300))
    return np.clip(faces[y] + 60.0 * rng.standard_normal((40, 300)), 0, 255).round(), y


@pytest.fixture
def widths(monkeypatch):
    """Columns of every matrix that Newton steps ask for."""
    seen, own = [], DecisionComposite.approximation

    def noted(self, look, rows, column):
        seen.append(rows.shape[0])
        return own(self, look, rows, column)

    monkeypatch.setattr(DecisionComposite, "approximation", noted)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "objective, bias",
    [("mmlr", "free"), ("mmlr", "regularized"), ("mmlr", "none"), ("mdlm", "regularized"), ("mdlm", "none")]
    + [("l2lr", "free")],
)
def test_the_same_optimum_in_smaller_matrices(pixels, objective, bias, dtype, widths):
    X, y = pixels
    tol = 1e-6 if dtype == np.float64 else 1e-4
    model = mdlearn.fit(objective, X.astype(dtype), y, bias=bias, tol=tol, solver="apg")
    assert model.certificate.converged
    assert max(widths, default=0) <= 41
    if objective == "mmlr":
        assert model.n_iter <= 15  # of 300 columns it takes 34 to 53
    # The rows along a basis of their own, made here, in a fit of its own.
    turned = X @ np.linalg.svd(X, full_matrices=False)[2].T
    other = mdlearn.fit(objective, turned, y, bias=bias, tol=1e-6, solver="apg")
    one, two = model.certificate, other.certificate
    assert two.lower_bound <= one.objective + 1e-12 * abs(two.lower_bound)
    assert one.lower_bound <= two.objective + 1e-12 * abs(one.lower_bound)
    # Coefficients lie in the span of the rows.
    basis = np.linalg.svd(X, full_matrices=False)[2]
    coef = model.coef_.astype(float)
    assert_allclose(coef @ basis.T @ basis, coef, atol=1e-5 * np.abs(coef).max())


def test_a_start_with_parts_that_no_row_sees(pixels):
    X, y = pixels
    model = mdlearn.fit("mmlr", X, y, tol=1e-6)
    again = mdlearn.fit("mmlr", X, y, tol=1e-6, warm_start=model)
    assert again.certificate.converged and again.n_iter <= model.n_iter
    assert again.certificate.objective <= model.certificate.objective * (1 + 1e-6)


@pytest.fixture
def seen(monkeypatch):
    """Problems of fits, with those of their steps."""
    found = []

    def noted(problem):
        other, axes = yield from fista_along_row_axes(problem)
        found.append((problem, other, axes))
        return other, axes

    monkeypatch.setattr(apg_fista, "fista_along_row_axes", noted)
    return found


@pytest.mark.parametrize("objective", ["mmlr", "mdlm"])
def test_values_and_slopes_along_the_axes(pixels, objective, seen):
    mdlearn.fit(objective, *pixels, bias="regularized", tol=1e-3)
    problem, other, axes = seen[0]
    V = 1e-3 * np.random.default_rng(1).standard_normal(other.shape)
    one, same = problem.at(axes.back(V)), other.at(V)
    assert_allclose(other.objective(same), problem.objective(one), rtol=1e-12)
    scale = np.abs(one.gradient).max()
    assert_allclose(axes.back(other.slope(same)), problem.slope(one), atol=1e-12 * scale)
    assert_allclose(axes.along(axes.back(V)), V, atol=1e-15)


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
def test_a_penalty_sees_columns(pixels, seen):
    mdlearn.fit("mdlm", *pixels, beta=1.0, max_iter=3)
    assert seen and all(axes is None and other is problem for problem, other, axes in seen)


def test_more_rows_than_columns(pixels, seen):
    X, y = pixels
    mdlearn.fit("mmlr", X[:, :20] / 255, y, tol=1e-3)
    assert seen and seen[0][2] is None
