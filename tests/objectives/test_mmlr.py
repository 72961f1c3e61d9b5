"""MMLR: optimum, weights, two classes, its limit, and rows that can be separated."""

from __future__ import annotations

import numpy as np
import pytest
from mdlm_paper import sample
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.validation import check_data
from mdlearn.objectives.mmlr import PairLogistic


def objective(W, b, X, y, alpha, lam, weights=None, square_bias=False):
    """(2.16) row by row, with the index i that the paper leaves out (M8); lam without 1/2."""
    weights = np.ones(len(y)) if weights is None else weights
    F = X @ W + b
    total = 0.0
    for i, own in enumerate(y):
        others = np.delete(F[i], own)
        total += weights[i] * np.logaddexp(0.0, -alpha * (F[i, own] - others - 2.0)).sum() / alpha
    return total / weights.sum() + lam * ((W**2).sum() + (square_bias * b**2).sum())


def value_and_derivative(W, b, X, y, alpha, lam, square_bias):
    """The same and its gradient by W and b, of all rows at once."""
    F, own = X @ W + b, (np.arange(len(y)), y)
    short = -alpha * (F[own][:, None] - F - 2.0)
    losses, P = np.logaddexp(0.0, short) / alpha, expit(short)
    losses[own] = P[own] = 0.0
    P[own] = -P.sum(axis=1)
    P /= len(y)
    value = losses.sum() / len(y) + lam * ((W**2).sum() + (square_bias * b**2).sum())
    return value, X.T @ P + 2 * lam * W, P.sum(axis=0) + 2 * lam * square_bias * b


def optimum(X, y, alpha, lam, bias):
    d, k = X.shape[1], y.max() + 1

    def parts(v):
        return v[: d * k].reshape(d, k), v[d * k :] if bias != "none" else np.zeros(k)

    def fun(v):
        value, G, g = value_and_derivative(*parts(v), X, y, alpha, lam, bias == "regularized")
        return value, np.append(G, g * (bias != "none"))

    v = np.zeros(d * k + k)
    for _ in range(3):
        v = minimize(fun, v, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 0, "gtol": 1e-12}).x
    W, b = parts(v)
    F = X @ W + b
    return objective(W, b, X, y, alpha, lam, None, bias == "regularized"), F - F.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize(
    ("alpha", "lam"), [(5.0, 1e-3), (1.0, 0.1), pytest.param(20.0, 0.01, marks=pytest.mark.slow), (5.0, 0.0)]
)
@pytest.mark.parametrize("k", [2, 4])
def test_optimum(k, alpha, lam, bias):
    X, y = sample(k, n=100)
    model = mdlearn.fit("mmlr", X, y, alpha=alpha, lam=lam, bias=bias, tol=1e-12)
    best, F = optimum(X, y, alpha, lam, bias)
    assert model.certificate.converged
    assert model.certificate.objective == pytest.approx(best, rel=1e-8)
    assert model.certificate.lower_bound <= best + 1e-12 * abs(best)
    f = model.decision_function(X)
    if k == 2:  # the value of the second class: half of the difference
        assert f == pytest.approx(F[:, 1], abs=1e-5)
        W, b = np.outer(model.coef_[0], [-1.0, 1.0]), model.intercept_[0] * np.array([-1.0, 1.0])
    else:
        assert f - f.mean(axis=1, keepdims=True) == pytest.approx(F, abs=1e-5)
        W, b = model.coef_.T, model.intercept_
    held = objective(W, b, X, y, alpha, lam, None, bias == "regularized")
    assert model.certificate.objective == pytest.approx(held, rel=1e-12)
    if lam > 0:
        assert W.sum(axis=1) == pytest.approx(0.0, abs=1e-9)
    assert model.solver == ("apg" if k > 2 else "hybrid" if lam > 0 else "newton")


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_gradient_and_product(bias):
    X, y = sample(4)
    data = check_data(X, y, None, None, square=False)
    problem = PairLogistic(data, LinearFeatures(data.X), bias, 5.0, 0.1)
    rng = np.random.default_rng(0)
    W, V, h = rng.standard_normal(problem.shape), rng.standard_normal(problem.shape), 1e-5

    def value(W):
        return objective(W[:5], W[5] if bias != "none" else np.zeros(4), X, y, 5.0, 0.1, None, bias == "regularized")

    look = problem.at(W)
    assert problem.objective(look) == pytest.approx(value(W), rel=1e-12)
    assert problem.at_zero == pytest.approx(value(0 * W), rel=1e-12)
    assert (problem.slope(look) * V).sum() == pytest.approx((value(W + h * V) - value(W - h * V)) / (2 * h), rel=1e-7)
    change = problem.slope(problem.at(W + h * V)) - problem.slope(problem.at(W - h * V))
    assert problem.product(look)(V) == pytest.approx(change / (2 * h), abs=1e-5)
    assert problem.lipschitz() >= (problem.product(problem.at(0.1 * W))(V) * V).sum() / (V**2).sum()


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("kind", [np.asarray, csr_matrix, np.float32], ids=["dense", "CSR", "float32"])
def test_the_assembled_second_derivative(kind, bias):
    """Along coefficients whose classes add up to 0 it is the product's; and so it is for the intercepts alone."""
    X, y = sample(4)
    data = check_data(kind(X), y, np.random.default_rng(5).uniform(0.5, 2.0, len(y)), None, square=False)
    problem = PairLogistic(data, LinearFeatures(data.X), bias, 5.0, 0.1)
    rng = np.random.default_rng(0)
    W, V = rng.standard_normal(problem.shape), rng.standard_normal(problem.shape)
    V -= V.mean(axis=1, keepdims=True)
    look = problem.at(W)
    work = problem.assembled(problem.curvatures(look.scores, 0.0))
    while True:
        try:
            next(work)
        except StopIteration as done:
            H = done.value
            break
    want = problem.product(look)(V)
    assert (H @ V.T.ravel()).reshape(V.T.shape).T == pytest.approx(want, rel=1e-11, abs=1e-13)
    assert np.linalg.eigvalsh(H).min() > 0.0, "a common shift has curvature, too"
    if bias == "free":
        bends = H.reshape(4, 6, 4, 6)[:, 5, :, 5]
        shift = np.full((4, 4), bends.sum() / 16)
        assert problem.intercept_bends(W, look.scores) == pytest.approx(bends - shift, abs=1e-13)


def test_averaged_second_derivatives():
    """The mean over a distance is the difference of slopes at its ends; next to the threshold it is the smaller one."""
    X, y = sample(4)
    data = check_data(X, y, None, None, square=False)
    problem = PairLogistic(data, LinearFeatures(data.X), "none", 5.0, 0.1)
    F = 3.0 * np.random.default_rng(0).standard_normal((len(y), 4))
    own = np.arange(len(y)), data.codes
    t = F[own][:, None] - F

    def rise(t):
        return 1.0 / (1.0 + np.exp(5.0 * (t - 2.0)))

    bend = 5.0 * rise(t) * (1.0 - rise(t))
    mean = (rise(t - 0.7) - rise(t + 0.7)) / 1.4
    want, plain = np.maximum(bend, mean) / len(y), bend / len(y)
    want[own] = plain[own] = 0.0
    assert problem.curvatures(F, 0.7) == pytest.approx(want, rel=1e-9, abs=1e-16)
    assert problem.curvatures(F, 0.0) == pytest.approx(plain, rel=1e-9, abs=1e-16)
    assert (mean > bend).any() and (mean < bend).any()


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize(("alpha", "lam"), [(50.0, 1e-3), (200.0, 1e-4), (50.0, 1e-7), (5.0, 1e-8)])
def test_steep_losses_and_small_norms(alpha, lam, bias):
    """Also on rows of very different columns, which matrices see in units of their own."""
    X, y = sample(4, n=100)
    X = X * 10.0 ** np.arange(-2, 3)
    model = mdlearn.fit("mmlr", X, y, alpha=alpha, lam=lam, bias=bias, tol=1e-9)
    assert model.certificate.converged
    W, b = model.coef_.T, model.intercept_
    held = objective(W, b, X, y, alpha, lam, None, bias == "regularized")
    assert model.certificate.objective == pytest.approx(held, rel=1e-11)
    # The bound, from the conditions of the optimum: what the gradient leaves open under the squared norm.
    _, G, g = value_and_derivative(W, b, X, y, alpha, lam, bias == "regularized")
    rest = (G**2).sum() + (g @ g if bias == "regularized" else 0.0)
    assert rest / (4 * lam) <= 1e-8 * held and (bias != "free" or np.abs(g).max() <= 1e-11)


@pytest.mark.parametrize("k", [2, 3])
def test_weights_layouts_and_types(k):
    X, y = sample(k)
    counts = np.random.default_rng(2).integers(0, 4, 60)
    weighted = mdlearn.fit("mmlr", X, y, sample_weight=counts, tol=1e-12)
    repeated = mdlearn.fit("mmlr", np.repeat(X, counts, axis=0), np.repeat(y, counts), tol=1e-12)
    assert weighted.coef_ == pytest.approx(repeated.coef_, abs=1e-6)
    assert weighted.certificate.objective == pytest.approx(repeated.certificate.objective, rel=1e-11)
    sparse = mdlearn.fit("mmlr", csr_matrix(X), y, sample_weight=counts, tol=1e-12)
    assert sparse.coef_ == pytest.approx(weighted.coef_, abs=1e-6)
    single = mdlearn.fit("mmlr", X.astype(np.float32), y, sample_weight=counts)
    assert single.coef_.dtype == np.float32 and single.coef_ == pytest.approx(weighted.coef_, abs=1e-2)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_dual_coefficients(bias):
    X, y = sample(3)
    model = mdlearn.fit("mmlr", X, y, lam=0.05, bias=bias)
    assert model.dual_coef_.shape == (3, 60) and model.duals.shape == (3, 60)
    assert model.dual_coef_ @ X == pytest.approx(model.coef_, abs=1e-12)
    assert (model.duals[y, np.arange(60)] == 0).all() and (model.duals >= 0).all()
    assert model.duals.max() <= 1 / 60


@pytest.mark.parametrize(
    ("kind", "lam", "scales", "close"),
    [(float, 1e-4, np.logspace(-3, 3, 12), 1e-6), (float, 1e-6, 300.0, 1e-9), (np.float32, 1e-5, 30.0, 1e-5)],
    ids=["columns of all sizes", "long ones", "float32"],
)
def test_dual_coefficients_that_nearly_cancel(kind, lam, scales, close):
    """-slope / ridge is long where the ridge is small; what is left of the sum is still f, at new points, too."""
    X, y = sample(3, n=100, d=12)
    X = (X * scales).astype(kind)
    model = mdlearn.fit("mmlr", X, y, lam=lam, bias="free")
    assert model.certificate.converged and model.dual_coef_.dtype == kind
    new = np.random.default_rng(5).standard_normal((30, 12)) * scales
    f = new @ model.coef_.T.astype(float)
    sums = new @ (X.T.astype(float) @ model.dual_coef_.T.astype(float))
    assert np.abs(sums - f).max() <= close * np.abs(f).max()


@pytest.mark.parametrize("k", [2, 3])
def test_it_tends_to_weston_and_watkins(k):
    """With C = 1 / (2 lam m) both differ by (k - 1) ln 2 / alpha at most, everywhere, hence also at their optima."""
    X, y = sample(k)
    lam = 0.05
    ww = mdlearn.fit("ww", X, y, C=1.0 / (2 * lam * 60), bias="none", tol=1e-12)
    least, last = 2 * lam * ww.certificate.objective, np.inf
    for alpha in (10.0, 100.0, 1000.0):
        model = mdlearn.fit("mmlr", X, y, alpha=alpha, lam=lam, bias="none", tol=1e-10)
        excess = model.certificate.objective - least
        assert -1e-9 <= excess <= (k - 1) * np.log(2.0) / alpha
        away = np.abs(model.coef_ - ww.coef_).max()
        assert away < last
        last = away
    assert last < 0.02


@pytest.mark.parametrize("k", [2, 3])
def test_without_norm_on_separable_rows(k):
    rng = np.random.default_rng(0)
    y = np.arange(40) % k
    X = rng.standard_normal((40, 3)) + 20.0 * np.eye(3)[y]
    with pytest.raises(ValueError, match="lam"):
        mdlearn.fit("mmlr", X, y, lam=0.0)
    assert mdlearn.fit("mmlr", X, y, lam=1e-6).certificate.converged


@pytest.mark.slow
def test_a_point_that_wins_everywhere_is_found_while_iterating():
    """Where the linear program would be too large."""
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 3
    X = rng.standard_normal((3000, 40))
    X[:, :3] += 20.0 * np.eye(3)[y]
    with pytest.raises(ValueError, match="give lam > 0"):
        mdlearn.fit("mmlr", X, y, lam=0.0)


def test_models(tmp_path):
    X, y = sample(3)
    model = mdlearn.fit("mmlr", X, np.array(["a", "b", "c"])[y])
    assert model.multiclass == "joint" and model.bias == "free"
    assert model.intercept_.sum() == pytest.approx(0.0, abs=1e-9)
    f = model.decision_function(X)
    sigma = 1.0 / (1.0 + np.exp(-f))
    assert model.predict_proba(X) == pytest.approx(sigma / sigma.sum(axis=1, keepdims=True))
    model.save(tmp_path / "model.npz")
    again = mdlearn.load(tmp_path / "model.npz")
    assert np.array_equal(again.decision_function(X), f) and np.array_equal(again.duals, model.duals)
    with pytest.raises(ValueError, match="multiclass"):
        mdlearn.fit("mmlr", X, y, multiclass="ovr")


def test_dual_coefficients_over_many_rows_end_with_the_steps_for_all_classes(monkeypatch):
    """With 60,000 rows of 784 columns, those for each class apart took a minute after the time limit."""
    from mdlearn.forms.joint import decision_composite

    X, y = sample(3, n=200, d=12)
    X = X * np.logspace(-3, 3, 12)
    asked, one = [], decision_composite.DecisionComposite._combined
    form = decision_composite.DecisionComposite
    monkeypatch.setattr(form, "_combined", lambda self, *given: asked.append(1) or one(self, *given))
    monkeypatch.setattr(form, "_missed", lambda self, a, W: (np.ones(W.shape[1]), np.zeros(W.shape[1])))
    mdlearn.fit("mmlr", X, y, lam=1e-4, bias="free")
    assert asked, "few rows"
    asked.clear()
    monkeypatch.setattr(decision_composite, "LONG_PASS_ENTRIES", 1000.0)
    model = mdlearn.fit("mmlr", X, y, lam=1e-4, bias="free")
    f = X @ model.coef_.T
    assert not asked
    np.testing.assert_allclose(X @ (X.T @ model.dual_coef_.T), f, atol=1e-5 * np.abs(f).max())
