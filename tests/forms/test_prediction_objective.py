"""The objective is that of what a model computes, or the gap covers the difference: at the end of float64's digits."""

from __future__ import annotations

import numpy as np
import pytest
from printed import LD, ldm, rlp, svm

import mdlearn

pytestmark = pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")


def assert_covered(certificate, value, at_zero):
    """`value` is the objective, but for 1e-9 of its scale and what the gap leaves."""
    scale = max(abs(certificate.objective), abs(certificate.lower_bound), 0.01 * float(at_zero))
    left = certificate.objective - certificate.lower_bound
    assert abs(float(value) - certificate.objective) <= 1e-9 * scale + left, (float(value), certificate)


@pytest.mark.parametrize("seed", [6, 9])
def test_a_float32_matrix_and_a_large_loss(seed):
    """Coefficients that were to be a trace longer, so that margins reach 1 in spite of rounding, were left as short."""
    rng = np.random.default_rng(seed)
    X = np.round(2 * rng.standard_normal((51, 6)))
    G = ((X @ X.T / 60 + 1) ** 2).astype(np.float32)
    y = np.where(X @ rng.standard_normal(6) + 0.5 * rng.standard_normal(51) > 0, 1, -1)
    given = {"C": 6e5, "lambda1": 0.03, "lambda2": 4700.0}
    model = mdlearn.fit("ldm", G, y, kernel="precomputed", bias="regularized", solver="cd", tol=1e-3, **given)
    alpha, b = model.dual_coef_[0].astype(LD), model.intercept_.astype(LD)[0]
    f = G.astype(LD) @ alpha
    for values in (f + b, model.decision_function(G)):
        assert_covered(model.certificate, sum(ldm(y * values, alpha @ f + b * b, np.ones(51), given)), 51 * 6e5)


@pytest.mark.parametrize("seed", [3, 16])
def test_powers_of_far_rows(seed):
    """A power has the relative rounding of what is raised, as often as its degree says."""
    rng = np.random.default_rng(seed)
    X = np.round(2 * rng.standard_normal((50, 10))) + 1.9e3
    y = np.where((X - 1.9e3) @ rng.standard_normal(10) > 0, 1, -1)
    model = mdlearn.fit("svm", X, y, C=7.0, bias="regularized", kernel="poly", degree=6, gamma=0.0075, coef0=0.0)
    G = (LD(0.0075) * (X.astype(LD) @ X.astype(LD).T)) ** 6
    alpha, b = model.dual_coef_[0].astype(LD), model.intercept_.astype(LD)[0]
    f = G @ alpha
    assert_covered(model.certificate, sum(svm(y * (f + b), alpha @ f + b * b, np.ones(50), {"C": LD(7.0)})), 350.0)


@pytest.mark.parametrize("seed", [1, 3, 11])
def test_a_far_column_without_a_ridge(seed):
    """Decision values are differences of numbers near 1e9: neither they nor exact ones are below the bound."""
    rng = np.random.default_rng(seed)
    X = 8.4e5 + 7e-3 * rng.standard_normal((14, 1))
    y = np.where(X[:, 0] - 8.4e5 + 7e-3 * rng.standard_normal(14) > 0, 1, -1)
    model = mdlearn.fit("rlp", X, y, tol=1e-12)
    exact = X.astype(LD) @ model.coef_[0].astype(LD) + model.intercept_.astype(LD)[0]
    for values in (exact, model.decision_function(X)):
        value = rlp(y * values, LD(0), np.ones(14), {})[0]
        assert_covered(model.certificate, value, 1.0)
        assert model.certificate.lower_bound <= value + 1e-9 * float(value)


def test_what_is_certain_is_no_worse_after_a_second_look():
    """Coefficients that looked better as they were computed had a larger objective when rounding was counted."""
    rng = np.random.default_rng(3)
    for _ in range(6):
        X = rng.standard_normal((48, 6)) * 10.0 ** rng.uniform(-8, 0, 6) + 1e4
        X *= 1e3
        y = np.where(X[:, 0] - X[:, 0].mean() + X[:, 0].std() * rng.standard_normal(48) > 0, 1, -1)
        one, more = (mdlearn.fit("rlp", X, y, tol=1e-12, max_iter=n).certificate for n in (1, 5))
        assert more.objective <= one.objective * (1 + 1e-12)
