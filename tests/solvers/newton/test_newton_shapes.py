"""The newton engine on squared hinges: weights, odd shapes, scales, types, several classes, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from newton_reference import BIASES, Band, minimum, printed, sample

import mdlearn
from mdlearn.objectives.base import Terms


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("objective", ["lsvm", Band])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_weights_are_repetitions(kernel, objective, bias):
    X, y = sample(40)
    weight = np.random.default_rng(1).integers(0, 4, 40).astype(float)
    rows = np.repeat(np.arange(40), weight.astype(int))
    settings = {"kernel": kernel, "bias": bias, "tol": 1e-12, "solver": "newton"}
    a = mdlearn.fit(objective, X, y, sample_weight=weight, **settings)
    b = mdlearn.fit(objective, X[rows], y[rows], **settings)
    assert a.certificate.objective == pytest.approx(b.certificate.objective, rel=1e-12)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-8)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("case", ["duplicates", "few rows", "a row of zeros", "separable", "one row each"])
def test_odd_shapes(case, bias):
    X, y = sample(30, 4, seed=5)
    if case == "duplicates":
        X, y = np.vstack([X, X, X[:5]]), np.concatenate([y, y, -y[:5]])
    elif case == "few rows":
        X, y = sample(12, 400, seed=5)
    elif case == "a row of zeros":
        X[3] = 0.0
    elif case == "separable":
        y = np.where(X[:, 0] > 0, 1, -1)
    else:
        X, y = np.array([[1.0, 2.0], [0.5, -1.0]]), np.array([1, -1])
    model = mdlearn.fit("lsvm", X, y, nu=2.0, bias=bias, tol=1e-12, solver="newton")
    best, f = minimum(X, y, bias, [(1.0, 1, 1.0)])
    assert model.certificate.gap <= 1e-12
    assert model.certificate.objective == pytest.approx(best, rel=1e-10)
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-4)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_random_scales_sizes_and_weights(kernel, bias):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        m, d, nu = int(rng.integers(5, 80)), int(rng.integers(2, 20)), 10.0 ** rng.uniform(-4, 8)
        X = rng.standard_normal((m, d)) * 10.0 ** rng.uniform(-3, 3, d)
        noise = rng.choice([0.0, 0.5]) * rng.standard_normal(m)
        y = np.where(X[:, 0] / np.abs(X[:, 0]).max() + noise > 0, 1, -1)
        y[:2] = 1, -1
        tol = 1e-12 if kernel == "linear" else 1e-8  # what rounding of the kernel leaves open at the largest nu
        model = mdlearn.fit("lsvm", X, y, nu=nu, bias=bias, kernel=kernel, tol=tol, solver="newton")
        assert model.certificate.gap <= tol, (seed, nu)
        primal, dual, _, u = printed(model, X, y, kernel, nu, bias)
        scale = max(primal, 0.005 * nu * m)
        if kernel == "linear":  # rounding of G alpha itself is too coarse for the largest nu
            assert primal - dual <= 1e-8 * scale and (bias != "free" or abs(y @ u) <= 1e-9 * u.sum()), (seed, nu)


def test_no_terms_at_all():
    class Bare(Band):
        name = "bare"

        def terms(self, params, total):
            return Terms(3.0, 2.0)

    X, y = sample()
    model = mdlearn.fit(Bare, X, y, solver="newton", tol=1e-12)
    assert model.certificate.objective == pytest.approx(minimum(X, y, "regularized", [], 3.0, 2.0)[0], rel=1e-11)


def test_no_loss_is_one_step():
    X, y = sample()
    model = mdlearn.fit(Band, X, y, C=0.0, D=0.0, a=2.0, solver="newton", tol=1e-12)
    best, _ = minimum(X, y, "regularized", [], 3.0, 2.0)
    assert model.certificate.objective == pytest.approx(best, rel=1e-11)


@pytest.mark.parametrize("bias", BIASES)
def test_csr_and_float32(bias):
    X, y = sample(300, 8)
    X[np.abs(X) < 0.8] = 0.0
    X = X.astype(np.float32).astype(np.float64)
    dense = mdlearn.fit("lsvm", X, y, bias=bias, tol=1e-12, solver="newton")
    sparse = mdlearn.fit("lsvm", sp.csr_matrix(X), y, bias=bias, tol=1e-12, solver="newton")
    small = mdlearn.fit("lsvm", X.astype(np.float32), y, bias=bias, solver="newton")
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-10)
    assert small.coef_.dtype == np.float32 and small.certificate.converged
    np.testing.assert_allclose(small.coef_, dense.coef_, atol=1e-5)


@pytest.mark.slow
def test_wide_sparse_rows_go_to_sweeps_first():
    X = sp.random(2500, 3000, density=0.004, random_state=0, format="csr")
    y = np.where(X @ np.random.default_rng(0).standard_normal(3000) > 0, 1, -1)
    model = mdlearn.fit("lsvm", X, y)
    exact = mdlearn.fit("lsvm", X, y, solver="newton", tol=1e-11)
    assert model.solver == "hybrid" and model.certificate.converged and exact.certificate.converged
    assert model.certificate.objective == pytest.approx(exact.certificate.objective, rel=2e-6)


def test_one_vs_rest():
    X, _ = sample(90)
    labels = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])
    for kernel in ("linear", "rbf"):
        settings = {"kernel": kernel, "tol": 1e-12, "solver": "newton"}
        model = mdlearn.fit("lsvm", X, labels, **settings)
        assert len(model.certificate.parts) == 3
        for k in range(3):
            one = mdlearn.fit("lsvm", X, np.where(labels == k, 1, -1), **settings)
            np.testing.assert_allclose(model.decision_function(X)[:, k], one.decision_function(X), atol=1e-10)
        side = mdlearn.fit("lsvm", X, labels, n_threads=2, **settings)
        np.testing.assert_allclose(side.dual_coef_, model.dual_coef_, atol=1e-10)


def test_what_it_refuses():
    X, y = sample()
    for given in ({"C": 1.0}, {"C": np.inf}):
        with pytest.raises(ValueError, match=r"no loss of the kind .(hinge|constraint).*use one of .*interior"):
            mdlearn.fit("svm", X, y, solver="newton", **given)
    with pytest.raises(ValueError, match="no option 'armijo'"):
        mdlearn.fit("lsvm", X, y, solver="newton", solver_options={"armijo": True})
