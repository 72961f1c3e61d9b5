"""LSVM against its printed primal and dual, and the finite Newton engine on every loss of squared hinges."""

from __future__ import annotations

import itertools
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from reference import gram, scale_gamma
from scipy.optimize import minimize

import mdlearn
from mdlearn.data.features import KernelFeatures, LinearFeatures
from mdlearn.data.kernels import Kernel
from mdlearn.data.rows import DenseRows
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.objectives.base import Parameter, Terms
from mdlearn.plugins.manager import registry
from mdlearn.testing import checks

BIASES = ["none", "regularized", "free"]


class Band(mdlearn.Objective):
    """Squared hinges of both sides at two thresholds, with variance and mean."""

    name = "band"
    summary = "squared band with margin variance and mean"
    formula = "1/2 |w|^2 + v Var(z) - a mean(z) + C sum max(0, 1 - z)^2 + D sum max(0, z - 2)^2"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight below 1"),
        "D": Parameter(0.7, "weight above 2"),
        "v": Parameter(3.0, "weight of the variance"),
        "a": Parameter(0.5, "weight of the mean"),
    }

    def terms(self, params, total):
        low, high = HingeTerm(params["C"], 1, 1.0, 2), HingeTerm(params["D"], -1, 2.0, 2)
        return Terms(params["v"], params["a"], (low, high))


def sample(m=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.where(X @ rng.standard_normal(d) + 0.8 * rng.standard_normal(m) > 0.3, 1, -1)
    return X, y


def features_of(X, kernel, weight=None):
    """Explicit features: X itself, or the square root of its Gram matrix."""
    if kernel == "linear":
        return X
    G = np.asarray(gram(X, X, kernel, scale_gamma(X, weight), 3, 0.0, np.float64))
    size, U = np.linalg.eigh(G)
    return U * np.sqrt(np.maximum(size, 0.0))


def minimum(F, y, bias, terms, v=0.0, a=0.0, weight=None):
    """(value, decision values) of the printed formula at the point where scipy finds its gradient to vanish.

    `terms` are (weight, side, threshold). Solutions are checked by the KKT conditions, w = sum of slopes times rows.
    """
    c = np.ones(len(y)) if weight is None else weight
    m = c.sum()
    R = y[:, None] * (F if bias == "none" else np.hstack([F, np.ones((len(y), 1))]))
    ridge = np.ones(R.shape[1])
    if bias == "free":
        ridge[-1] = 0.0

    def parts(u):
        z = R @ u
        mean = c @ z / m
        value = 0.5 * u @ (ridge * u) + v * (c @ (z - mean) ** 2) / m - a * mean
        slope = 2 * v / m * c * (z - mean) - a / m * c
        curve = np.zeros_like(z)
        for weight, side, threshold in terms:
            excess = np.maximum(0.0, side * (threshold - z))
            value += weight * c @ excess**2
            slope -= 2 * weight * side * c * excess
            curve += 2 * weight * c * (excess > 0)
        centred = R - c @ R / m
        hessian = np.diag(ridge) + R.T @ (curve[:, None] * R) + 2 * v / m * centred.T @ (c[:, None] * centred)
        return value, ridge * u + R.T @ slope, hessian

    u = np.zeros(R.shape[1])
    for method in ("trust-exact", "BFGS"):
        options = {"hess": lambda u: parts(u)[2]} if method == "trust-exact" else {}
        u = minimize(lambda u: parts(u)[0], u, jac=lambda u: parts(u)[1], method=method, tol=1e-12, **options).x
    value, gradient, _ = parts(u)
    assert np.abs(gradient).max() <= 1e-6 * (1 + abs(value)), "the reference itself has not converged"
    return value, y * (R @ u)


def printed(model, X, y, kernel, nu, bias, weight=None):
    """(primal, dual) of LSVM as printed, from the decision values and the multipliers u of a model."""
    c = np.ones(len(y)) if weight is None else weight
    alpha, u, b = model.dual_coef_[0], model.duals[0], model.intercept_[0]
    if kernel == "linear":
        f, squares, expanded = X @ model.coef_[0], model.coef_[0] @ model.coef_[0], X.T @ (y * u)
        dual_squares = expanded @ expanded
    else:
        K = np.asarray(gram(X, X, kernel, scale_gamma(X, weight), 3, 0.0, np.float64))
        f, squares, dual_squares = K @ alpha, alpha @ K @ alpha, (y * u) @ K @ (y * u)
    if bias == "regularized":
        squares, dual_squares = squares + b * b, dual_squares + (y @ u) ** 2
    z = y * (f + b)
    primal = 0.5 * squares + 0.5 * nu * c @ np.maximum(0.0, 1 - z) ** 2
    dual = u.sum() - 0.5 * dual_squares - 0.5 * (u[c > 0] ** 2 / (nu * c[c > 0])).sum()
    return primal, dual, z, u


# ---------------------------------------------------------------- LSVM as printed


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("nu", [0.01, 1.0, 50.0])
def test_the_optimum_and_its_dual(kernel, bias, nu):
    X, y = sample()
    model = mdlearn.fit("lsvm", X, y, nu=nu, kernel=kernel, bias=bias, tol=1e-12)
    best, f = minimum(features_of(X, kernel), y, bias, [(0.5 * nu, 1, 1.0)])
    assert model.solver == "newton" and model.certificate.converged and model.certificate.gap <= 1e-12
    assert model.certificate.objective == pytest.approx(best, rel=1e-11)
    np.testing.assert_allclose(model.decision_function(X), f, atol=2e-5 * np.abs(f).max())
    primal, dual, z, u = printed(model, X, y, kernel, nu, bias)
    assert primal == pytest.approx(model.certificate.objective, rel=1e-11)
    assert dual == pytest.approx(primal, rel=1e-11), "the optima of the primal and the dual are equal"
    np.testing.assert_allclose(u, nu * np.maximum(0.0, 1 - z), atol=1e-8 * u.max())
    if bias == "free":
        assert y @ u == pytest.approx(0.0, abs=1e-9 * u.sum())


def test_the_papers_names():
    """w = A'Du, gamma = -e'Du, slack = u / nu, u = Q^-1 e where all of it is positive."""
    X, y = sample()
    model = mdlearn.fit("lsvm", X, y, nu=3.0, tol=1e-12)
    u = model.duals[0]
    np.testing.assert_allclose(model.coef_[0], X.T @ (y * u), atol=1e-12)
    gamma = -model.intercept_[0]
    assert gamma == pytest.approx(-float(y @ u), abs=1e-12)
    np.testing.assert_allclose(np.maximum(0, 1 - y * (X @ model.coef_[0] - gamma)), u / 3.0, atol=1e-12)
    H = y[:, None] * np.hstack([X, -np.ones((60, 1))])
    slope = (np.eye(60) / 3.0 + H @ H.T) @ u - 1
    for step in (0.1, 0.6):  # the fixed point u: Qu - e = ((Qu - e) - alpha u)+
        np.testing.assert_allclose(slope, np.maximum(0, slope - step * u), atol=1e-11)
    # With a small nu every row is active, and the dual is one linear system.
    small = mdlearn.fit("lsvm", X, y, nu=1e-3, tol=1e-12).duals[0]
    assert (small > 0).all()
    np.testing.assert_allclose(small, np.linalg.solve(np.eye(60) / 1e-3 + H @ H.T, np.ones(60)), rtol=1e-11)


def test_nu_is_positive():
    X, y = sample()
    for wrong in (0, 0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"^nu needs to be a (finite )?number > 0; got "):
            mdlearn.fit("lsvm", X, y, nu=wrong)
    assert mdlearn.fit("lsvm", X, y, nu=1e-300).certificate.converged


def test_the_kit_asks_strict_bounds_of_a_parameter():
    class Lenient(Parameter):
        def check(self, name, value):
            return 0.0 if value == 0 else super().check(name, value)

    class Faulty(Band):
        name = "faulty"
        parameters: ClassVar = {**Band.parameters, "C": Lenient(1.0, "weight below 1", strict=True)}

    with pytest.raises(AssertionError, match=r"C=0.0 is accepted"):
        checks.check_bounds(Faulty)


@pytest.mark.parametrize("nu", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_extreme_weights_of_the_loss(kernel, bias, nu):
    X, y = sample(50, 3, seed=4)
    model = mdlearn.fit("lsvm", X, y, nu=nu, kernel=kernel, bias=bias, tol=1e-12)
    primal, dual, _, u = printed(model, X, y, kernel, nu, bias)
    # Weak duality, computed here: no point is better than the dual value. 25 nu is the objective at w = 0.
    scale = max(primal, 0.25 * nu)
    balance = abs(y @ u) if bias == "free" else 0.0
    assert model.certificate.converged and balance <= 1e-9 * u.sum()
    assert (u >= 0).all() and primal - dual <= 1e-9 * scale
    assert model.certificate.objective == pytest.approx(primal, abs=1e-9 * scale)


def steep_problem():
    rng = np.random.default_rng(127)
    X = rng.standard_normal((43, 3)) * 10.0 ** rng.uniform(-3, 3, 3)
    y = np.where(X[:, 0] / np.abs(X[:, 0]).max() + 0.5 * rng.standard_normal(43) > 0, 1, -1)
    return X, y


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_very_steep_losses(kernel, bias):
    """1 - z alone has lost the digits of the multipliers; beyond 1e8 times k(x, x) kernels go to the interior point."""
    X, y = steep_problem()
    settings = {"kernel": kernel, "bias": bias, "nu": 5e9, "tol": 1e-9}
    model = mdlearn.fit("lsvm", X, y, solver="newton", **settings)
    other = mdlearn.fit("lsvm", X, y, solver="interior", **settings)
    auto = mdlearn.fit("lsvm", X, y, **settings)
    assert model.certificate.converged and auto.solver == ("newton" if kernel == "linear" else "interior")
    scale = 1e-9 * max(other.certificate.objective, 0.005 * 5e9 * 43)
    assert abs(model.certificate.objective - other.certificate.objective) <= 2 * scale
    assert auto.certificate.converged


# ---------------------------------------------------------------- the engine


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("v, a", [(0.0, 0.0), (0.0, 2.0), (30.0, 0.0), (1000.0, 5.0)])
def test_variance_mean_and_both_sides(kernel, bias, v, a):
    X, y = sample(70, seed=1)
    weight = np.random.default_rng(2).uniform(0.2, 3.0, 70)
    given = {"C": 4.0, "D": 1.5, "v": v, "a": a}
    model = mdlearn.fit(Band, X, y, bias=bias, kernel=kernel, sample_weight=weight, tol=1e-12, **given)
    assert model.solver == "newton" and model.certificate.gap <= 1e-12
    F = features_of(X, kernel, weight)
    best, _ = minimum(F, y, bias, [(4.0, 1, 1.0), (1.5, -1, 2.0)], v, a, weight)
    assert model.certificate.objective == pytest.approx(best, rel=1e-10)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("objective", ["lsvm", Band])
def test_engines_agree(objective, kernel, bias):
    X, y = sample(80, 5, seed=2)
    settings = {"kernel": kernel, "bias": bias, "tol": 1e-11}
    model = mdlearn.fit(objective, X, y, solver="newton", **settings)
    others = ["interior"] if bias == "free" else ["interior", "cd"]
    for solver in others:
        other = mdlearn.fit(objective, X, y, solver=solver, **settings)
        assert other.solver == solver
        assert model.certificate.objective == pytest.approx(other.certificate.objective, rel=1e-10)


def signed_rows(X, y):
    return y[:, None] * np.hstack([X, np.ones((len(y), 1))])


def full_steps(H, nu, steps=40):
    """Newton's full step from v = 0: (some step raised the objective, a set of active rows came back)."""
    n = H.shape[1]
    v, seen, raised = np.zeros(n), set(), False

    def value(v):
        return 0.5 * v @ v + 0.5 * nu * (np.maximum(0, 1 - H @ v) ** 2).sum()

    for _ in range(steps):
        active = H @ v < 1
        if active.tobytes() in seen:
            return raised, True
        seen.add(active.tobytes())
        stack = np.vstack([np.sqrt(nu) * H[active], np.eye(n)])
        new = np.linalg.lstsq(stack, np.append(np.full(active.sum(), np.sqrt(nu)), np.zeros(n)), rcond=None)[0]
        raised |= value(new) > value(v) * (1 + 1e-9)
        if np.array_equal(H @ new < 1, active):
            return raised, False
        v = new
    return raised, False


def badly_scaled(seed):
    rng = np.random.default_rng(seed)
    m, d = int(rng.integers(4, 12)), int(rng.integers(2, 5))
    X = rng.standard_normal((m, d)) * 10.0 ** rng.uniform(-2, 2, d) * 10.0 ** rng.uniform(-1, 1, (m, 1))
    y = np.where(rng.random(m) < 0.5, 1, -1)
    y[:2] = 1, -1
    return X, y, 10.0 ** rng.uniform(-2, 4)


def test_it_converges_where_the_full_step_cycles():
    cycled = rose = 0
    for seed in range(600):
        X, y, nu = badly_scaled(seed)
        raised, cycle = full_steps(signed_rows(X, y), nu)
        if not (raised or cycle):
            continue
        cycled, rose = cycled + cycle, rose + raised
        model = mdlearn.fit("lsvm", X, y, nu=nu, tol=1e-12, solver="newton")
        values = [state.objective for state in model.history]
        assert model.certificate.gap <= 1e-12 and model.n_iter <= 25, seed
        assert all(b <= a + 1e-12 * abs(a) for a, b in itertools.pairwise(values)), seed
        primal, dual, *_ = printed(model, X, y, "linear", nu, "regularized")
        assert primal - dual <= 1e-9 * max(primal, 0.005 * nu * len(y)), seed
    assert cycled >= 3 and rose >= 10, "the problems no longer show why the line search is needed"


def test_a_step_is_the_minimum_along_its_line():
    """Every iterate is no worse than any point of the line through it and the one before."""
    problems = map(badly_scaled, range(600))
    X, y, nu = next((X, y, nu) for X, y, nu in problems if full_steps(signed_rows(X, y), nu)[1])
    column = Column(y.astype(float), np.ones(len(y)), 0.0, 0.0, (HingeTerm(0.5 * nu, power=2),))
    form = MarginForm(LinearFeatures(DenseRows(X)), (column,), "regularized")
    engine = registry().solvers["newton"]()
    steps = engine.iterate(form, column, None, {}, np.random.default_rng(0))
    points = [np.append(r.point.coef, r.point.intercept) for r in steps if r is not None]
    H = signed_rows(X, y)

    def value(v):
        return 0.5 * v @ v + 0.5 * nu * (np.maximum(0, 1 - H @ v) ** 2).sum()

    assert len(points) > 2
    for a, b in itertools.pairwise(points):
        along = [value(a + t * (b - a)) for t in (0.0, 0.5, 0.9, 1.1, 1.5, 2.0)]
        assert value(b) <= min(along) * (1 + 1e-12)


def test_rows_on_their_threshold_at_the_start():
    """At w = 0 no row is active; the mean sends many past the threshold at once, and the first step must see them."""
    X, y = sample(40, 3, seed=6)

    class Cap(Band):
        name = "cap"

        def terms(self, params, total):
            return Terms(0.0, 20.0, (HingeTerm(5.0, -1, 0.0, 2),))

    for bias in ("none", "regularized"):
        model = mdlearn.fit(Cap, X, y, bias=bias, tol=1e-12, solver="newton")
        best, _ = minimum(X, y, bias, [(5.0, -1, 0.0)], 0.0, 20.0)
        assert model.certificate.objective == pytest.approx(best, rel=1e-11)
        values = [state.objective for state in model.history]
        assert min(values) < 0 and all(b <= a for a, b in itertools.pairwise(values[:3]))
        rows = X if bias == "none" else np.hstack([X, np.ones((40, 1))])
        step = 20.0 / 40 * (y[:, None] * rows).sum(axis=0)
        z = y * (rows @ step)
        # The first step is the minimum along the mean row.
        t = (step @ step) / (step @ step + 10.0 * (np.maximum(z, 0.0) ** 2).sum())
        first = -0.5 * t * (step @ step)
        assert any(value == pytest.approx(first, rel=1e-9) for value in values[1:3])


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
    model = mdlearn.fit("lsvm", X, y, nu=2.0, bias=bias, tol=1e-12)
    best, f = minimum(X, y, bias, [(1.0, 1, 1.0)])
    assert model.solver == "newton" and model.certificate.gap <= 1e-12
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
        model = mdlearn.fit("lsvm", X, y, nu=nu, bias=bias, kernel=kernel, tol=1e-12, solver="newton")
        assert model.certificate.gap <= 1e-12, (seed, nu)
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
    dense = mdlearn.fit("lsvm", X, y, bias=bias, tol=1e-12)
    sparse = mdlearn.fit("lsvm", sp.csr_matrix(X), y, bias=bias, tol=1e-12)
    small = mdlearn.fit("lsvm", X.astype(np.float32), y, bias=bias)
    assert dense.solver == sparse.solver == small.solver == "newton"
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-10)
    assert small.coef_.dtype == np.float32 and small.certificate.converged
    np.testing.assert_allclose(small.coef_, dense.coef_, atol=1e-5)


def test_wide_sparse_rows_go_to_sweeps():
    X = sp.random(2500, 3000, density=0.004, random_state=0, format="csr")
    y = np.where(X @ np.random.default_rng(0).standard_normal(3000) > 0, 1, -1)
    model = mdlearn.fit("lsvm", X, y)
    exact = mdlearn.fit("lsvm", X, y, solver="newton", tol=1e-11)
    assert model.solver == "cd" and model.certificate.converged and exact.certificate.converged
    assert model.certificate.objective == pytest.approx(exact.certificate.objective, rel=2e-6)


def test_one_vs_rest():
    X, _ = sample(90)
    labels = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])
    for kernel in ("linear", "rbf"):
        model = mdlearn.fit("lsvm", X, labels, kernel=kernel, tol=1e-12)
        assert len(model.certificate.parts) == 3
        for k in range(3):
            one = mdlearn.fit("lsvm", X, np.where(labels == k, 1, -1), kernel=kernel, tol=1e-12)
            np.testing.assert_allclose(model.decision_function(X)[:, k], one.decision_function(X), atol=1e-10)
        side = mdlearn.fit("lsvm", X, labels, kernel=kernel, tol=1e-12, n_threads=2)
        np.testing.assert_allclose(side.dual_coef_, model.dual_coef_, atol=1e-10)


def test_what_it_refuses():
    X, y = sample()
    for given in ({"C": 1.0}, {"C": np.inf}):
        with pytest.raises(ValueError, match=r"no loss of the kind .(hinge|constraint).*use one of .*interior"):
            mdlearn.fit("svm", X, y, solver="newton", **given)
    with pytest.raises(ValueError, match="no option 'armijo'"):
        mdlearn.fit("lsvm", X, y, solver="newton", solver_options={"armijo": True})


# ---------------------------------------------------------------- interrupts and memory


def test_control_comes_back_while_it_factors():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1500, 900)), np.where(rng.random(1500) < 0.5, 1.0, -1.0)
    column = Column(y, np.ones(1500), 0.0, 0.0, (HingeTerm(0.5, power=2),))
    form = MarginForm(LinearFeatures(DenseRows(X)), (column,), "regularized")
    engine = registry().solvers["newton"]()
    steps = engine.iterate(form, column, None, {}, rng)
    kinds = []
    for report in steps:
        kinds.append(report is not None)
        if sum(kinds) == 3:
            break
    first, second = np.flatnonzero(kinds)[:2]
    assert second - first > 4, "one step hands control back after pieces of work"


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_stopped_early_it_tells_the_truth(kernel):
    X, y = sample(100, seed=3)
    settings = {"nu": 1e3, "kernel": kernel, "tol": 1e-12, "solver": "newton"}
    with pytest.warns(mdlearn.ConvergenceWarning, match="stopped by the callback"):
        model = mdlearn.fit("lsvm", X, y, callback=lambda state: state.iteration == 2, **settings)
    best = mdlearn.fit("lsvm", X, y, **settings).certificate
    primal, *_ = printed(model, X, y, kernel, 1e3, "regularized")
    assert model.certificate.objective == pytest.approx(primal, rel=1e-9) and not model.certificate.converged
    assert model.certificate.lower_bound <= best.objective <= model.certificate.objective

    def interrupt(state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mdlearn.fit("lsvm", X, y, callback=interrupt, **settings)
    again = mdlearn.fit("lsvm", X, y, **settings)
    assert again.certificate == best


@pytest.mark.parametrize("at_once", [1, 4])
@pytest.mark.parametrize("m, d, kernel", [(50, 10**6, "rbf"), (10**6, 50, "rbf"), (10**6, 10**6, "linear")])
def test_memory_is_asked_for(m, d, kernel, at_once):
    class Many(DenseRows):
        shape = (m, d)

        def __init__(self):
            super().__init__(np.zeros((1, 1)))

    features = LinearFeatures(Many()) if kernel == "linear" else KernelFeatures(Many(), Kernel("rbf", {"gamma": 1.0}))
    column = Column(np.ones(1), np.ones(1), 0.0, 0.0, (HingeTerm(0.5, power=2),))
    form, engine = MarginForm(features, (column,), "none"), registry().solvers["newton"]()
    if m == 50:
        engine.check_memory(form, at_once)
    else:
        with pytest.raises(mdlearn.InsufficientMemory, match="use "):
            engine.check_memory(form, at_once)
