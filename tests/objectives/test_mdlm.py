"""MDLM and SMDLM: optimum, conditions of optimality, existence, weights, and what their models say."""

from __future__ import annotations

import numpy as np
import pytest
from mdlm_paper import PAPER, fit_paper, gll, gradient, optimum, sample, signs_of, value
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

import mdlearn
from mdlearn.objectives.mdlm import MDLM

POINTS = [
    {},
    {"beta": 0.05},
    {"ridge": 0.1},
    {"beta": 0.1, "ridge": 0.02},
    {"alpha": 1.0, "lambda1": 0.3, "lambda2": 1.0, "beta": 0.03},
    {"lambda1": 0.0, "lambda2": 0.0, "beta": 0.02},
    {"lambda1": 0.0, "lambda2": 0.02, "beta": 0.03},
]


def tight(X, y, **given):
    return fit_paper(X, y, tol=1e-12, **given)


@pytest.mark.parametrize("bias", ["none", pytest.param("regularized", marks=pytest.mark.slow), "free"])
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("point", POINTS, ids=str)
def test_optimum(point, k, bias):
    X, y = sample(k)
    model = tight(X, y, solver="apg", bias=bias, **point)
    best, f = optimum(X, y, bias, **point)
    assert model.certificate.converged and model.certificate.gap <= 1e-12
    assert model.certificate.objective == pytest.approx(value(model, X, y, **point), rel=1e-12)
    assert model.certificate.objective == pytest.approx(best, rel=1e-8)
    assert model.certificate.lower_bound <= best + 1e-12 * abs(best)
    assert model.decision_function(X) == pytest.approx(f[:, 0] if k == 2 else f, abs=1e-5)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_conditions_of_optimality(ridge, bias):
    """The penalty is over the rows of W (features), as (3.22) has it: over columns these conditions do not hold."""
    X, y = sample(4, n=80, d=8)
    beta = 0.3
    model = tight(X, y, beta=beta, ridge=ridge, bias=bias)
    Z = np.hstack([X, np.ones((80, 1))]) if bias == "regularized" else X
    W = np.vstack([model.coef_.T, model.intercept_]) if bias == "regularized" else model.coef_.T
    b = model.intercept_ if bias == "free" else np.zeros(4)
    G, g = gradient(W, b, Z, signs_of(y), {**PAPER, "ridge": ridge}, np.ones(80))
    length = np.linalg.norm(W, axis=1)
    on = length > 0
    assert on.any() and not on.all() and (np.abs(W[on]) > 0).all()
    assert G[on] == pytest.approx(-beta * W[on] / length[on, None], abs=1e-6)
    assert (np.linalg.norm(G[~on], axis=1) <= beta).all()
    assert bias != "free" or g == pytest.approx(0.0, abs=1e-12)


def test_one_against_rest_has_a_penalty_per_class():
    X, y = sample(3, n=80, d=8)
    model = tight(X, y, beta=0.1, multiclass="ovr")
    assert len(model.certificate.parts) == 3
    for c in range(3):
        one = tight(X, y == c, beta=0.1)
        assert one.coef_[0] == pytest.approx(model.coef_[c], abs=1e-6)
        assert one.certificate.objective == pytest.approx(model.certificate.parts[c].objective, rel=1e-11)
    together = tight(X, y, beta=0.1)
    assert together.certificate.parts == () and together.multiclass == "joint"
    assert not np.allclose(together.coef_, model.coef_, atol=1e-3)


def test_without_penalty_classes_do_not_meet():
    X, y = sample(3)
    together, apart = tight(X, y), tight(X, y, multiclass="ovr")
    assert (together.solver, apart.solver) == ("apg", "newton")
    assert together.coef_ == pytest.approx(apart.coef_, abs=1e-6)
    assert together.certificate.objective == pytest.approx(apart.certificate.objective, rel=1e-11)


def test_pairs_of_classes():
    X, y = sample(3)
    model = tight(X, y, multiclass="ovo", beta=0.05)
    assert model.coef_.shape == (3, 5) and len(model.certificate.parts) == 3
    rows = y != 2
    assert model.coef_[0] == pytest.approx(tight(X[rows], y[rows], beta=0.05).coef_[0], abs=1e-6)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("point", [{}, {"beta": 0.05}, {"beta": 0.05, "ridge": 0.1}], ids=str)
def test_weights_are_repetitions(point, k):
    X, y = sample(k)
    counts = np.random.default_rng(2).integers(0, 4, len(y))
    weighted = tight(X, y, sample_weight=counts, **point)
    repeated = tight(np.repeat(X, counts, axis=0), np.repeat(y, counts), **point)
    assert weighted.coef_ == pytest.approx(repeated.coef_, abs=1e-6)
    assert weighted.certificate.objective == pytest.approx(repeated.certificate.objective, rel=1e-11)
    assert weighted.certificate.objective == pytest.approx(value(weighted, X, y, counts, **point), rel=1e-12)


def test_layouts_and_types():
    X, y = sample(3)
    X[np.abs(X) < 0.7] = 0.0
    dense = tight(X, y, beta=0.05)
    assert tight(csr_matrix(X), y, beta=0.05).coef_ == pytest.approx(dense.coef_, abs=1e-9)
    assert np.array_equal(tight(np.asfortranarray(X), y, beta=0.05).coef_ != 0, dense.coef_ != 0)
    for A in (X.astype(np.float32), csr_matrix(X.astype(np.float32))):
        single = fit_paper(A, y, beta=0.05)
        assert single.coef_.dtype == np.float32 and single.certificate.converged
        assert single.certificate.objective == pytest.approx(
            value(single, X.astype(np.float32).astype(float), y, beta=0.05), rel=1e-7
        )
        assert single.coef_ == pytest.approx(dense.coef_, abs=1e-3)


# ---------------------------------------------------------------- existence (M6)


def wide(k=2, n=8, d=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), np.arange(n) % k


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_more_columns_than_rows(k, bias):
    """The SPEC's example: D = 12, N = 8, along t w with Y o X w = e the objective falls without end."""
    X, y = wide(k)
    with pytest.raises(ValueError, match=r"lambda2=0.125, beta=0, ridge=0 the objective is unbounded.*ridge > 0"):
        fit_paper(X, y, bias=bias)
    with pytest.raises(ValueError, match=r"lambda2=0, .*without an optimum"):
        fit_paper(X, y, bias=bias, lambda2=0.0)
    w = np.linalg.lstsq(X, np.where(y == 1, 1.0, -1.0), rcond=None)[0]
    falls = [gll(t, 5.0) - 0.125 * t for t in (1.0, 100.0, 1e4)]
    assert np.ptp(X @ w * np.where(y == 1, 1.0, -1.0)) < 1e-12 and falls[2] < falls[1] < falls[0]
    for held in ({"ridge": 0.01}, {"beta": 1.0}, {"beta": 0.05, "lambda2": 0.0}):
        assert tight(X, y, bias=bias, **held).certificate.converged


@pytest.mark.parametrize("seed", range(3))
def test_the_least_penalty_that_holds(seed):
    """Binary, no bias: bounded if and only if lambda2 <= beta |w|_1 for all w with Y o X w = e: a linear program."""
    X, y = wide(seed=seed)
    R = np.where(y == 1, 1.0, -1.0)[:, None] * X
    shortest = linprog(np.ones(24), A_eq=np.hstack([R, -R]), b_eq=np.ones(8)).fun
    limit = 0.5 / shortest
    with pytest.raises(ValueError, match="unbounded below"):
        fit_paper(X, y, bias="none", lambda2=0.5, beta=0.98 * limit)
    model = fit_paper(X, y, bias="none", lambda2=0.5, beta=1.05 * limit)
    assert model.certificate.converged and model.certificate.kind == "duality gap"


def test_no_variance_and_separable_rows():
    X, y = sample(2)
    X[:, 0] = np.where(y == 1, 1.0, -1.0) * (0.5 + np.abs(X[:, 0]))
    for more in ({"lambda2": 0.1}, {"lambda2": 0.0}):
        with pytest.raises(ValueError, match="lambda1=0"):
            fit_paper(X, y, lambda1=0.0, **more)
    with pytest.raises(ValueError, match="unbounded below"):  # the mean outweighs penalty and loss
        fit_paper(X, y, lambda1=0.0, lambda2=2.0, beta=0.1)
    assert fit_paper(X, y, lambda1=0.0, lambda2=0.1, ridge=0.1).certificate.converged


def test_a_free_bias_and_unequal_classes():
    X, y = sample(2)
    y = np.where(np.arange(60) < 2, 1, 0)
    with pytest.raises(ValueError, match="unbounded below"):
        fit_paper(X, y, lambda1=0.0, lambda2=0.5, beta=0.5, bias="free")
    assert fit_paper(X, y, lambda1=0.0, lambda2=0.5, beta=0.5, bias="regularized").certificate.converged


# ---------------------------------------------------------------- models


def test_declaration():
    assert {name: p.default for name, p in MDLM.parameters.items()} == {**PAPER, "ridge": 1e-6}
    assert MDLM.default_bias == "free" and MDLM.multiclass[0] == "joint"
    X, y = sample(2)
    with pytest.raises(ValueError, match="alpha needs to be"):
        fit_paper(X, y, alpha=0.0)
    with pytest.raises(ValueError, match="kernel='linear'"):
        fit_paper(X, y, kernel="rbf")
    with pytest.raises(ValueError, match="multiclass"):
        fit_paper(X, y, multiclass="fuzzy-min")


def test_probabilities():
    """(2.1) has no alpha and no shift; for more classes the sigmas are divided by their sum."""
    X, y = sample(2)
    model = fit_paper(X, y, beta=0.02)
    assert model.predict_proba(X)[:, 1] == pytest.approx(1.0 / (1.0 + np.exp(-model.decision_function(X))))
    X, y = sample(3)
    model = fit_paper(X, y, beta=0.02)
    sigma = 1.0 / (1.0 + np.exp(-model.decision_function(X)))
    assert model.predict_proba(X) == pytest.approx(sigma / sigma.sum(axis=1, keepdims=True))
    assert np.array_equal(model.predict_proba(X).argmax(axis=1), model.predict(X))


@pytest.mark.parametrize("k", [2, 3])
def test_save_and_load(k, tmp_path):
    X, y = sample(k)
    model = fit_paper(X, y, beta=0.05)
    model.save(tmp_path / "model.npz")
    again = mdlearn.load(tmp_path / "model.npz")
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.certificate == model.certificate and again.multiclass == model.multiclass == "joint"


def test_multipliers():
    """The slopes of the loss, between 0 and the weight of a row in the mean."""
    X, y = sample(3)
    model = tight(X, y, beta=0.05)
    z = signs_of(y) * model.decision_function(X)
    assert model.duals == pytest.approx((1.0 / (1.0 + np.exp(5.0 * (z - 1.0))) / 60).T, abs=1e-12)
    with pytest.raises(AttributeError, match="no combination of rows"):
        _ = model.dual_coef_


@pytest.mark.parametrize("solver", ["auto", "apg"])
@pytest.mark.parametrize("given", [{}, {"beta": 0.5}])
def test_the_mean_drives_a_free_bias_even_with_a_ridge(given, solver):
    """Far out the objective falls with b by lambda2 |n1 - n0| / n - min(n0, n1) / n: nothing else holds b."""
    X, y = sample(2, n=20)[0], np.arange(20) < 4
    with pytest.raises(ValueError, match=r"bias='free' the objective is unbounded below.*lambda1 > 0"):
        fit_paper(X, y, lambda1=0.0, lambda2=0.4, ridge=1.0, bias="free", solver=solver, **given)
    model = fit_paper(X, y, lambda1=0.0, lambda2=0.3, ridge=1.0, bias="free", solver=solver, **given)
    assert model.certificate.converged


@pytest.mark.parametrize("bias", ["free", "regularized", "none"])
@pytest.mark.parametrize("ridge", [1e-6, 1.0])
def test_dual_coefficients_of_many_classes_are_found_together(bias, ridge, monkeypatch):
    from mdlearn.forms.joint.decision_composite import DecisionComposite

    rng = np.random.default_rng(0)
    y = np.arange(600) % 30
    X = rng.standard_normal((600, 8)) + 2.0 * rng.standard_normal((30, 8))[y]
    alone, one = [], DecisionComposite._combined
    monkeypatch.setattr(DecisionComposite, "_combined", lambda self, *given: alone.append(1) or one(self, *given))
    model = mdlearn.fit("mdlm", X, y, ridge=ridge, beta=0.0, bias=bias)
    assert not alone
    f = X @ model.coef_.T
    np.testing.assert_allclose(X @ (model.dual_coef_ @ X).T, f, atol=1e-8 * np.abs(f).max())
