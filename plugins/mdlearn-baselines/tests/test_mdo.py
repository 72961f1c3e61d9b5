"""MDO: stationary directions, the bound of the ball, rows on the kink, and what must not change the direction."""

import warnings

import numpy as np
import pytest
from mdlearn_baselines.mdo import MDO
from scipy.optimize import lsq_linear, minimize

import mdlearn
from mdlearn.testing import parametrize_with_checks


@parametrize_with_checks(["mdo", MDO(a=3.0), MDO(a=5.0, b=8.0), MDO(a=8.0, b=5.0)])
def test_conformance(objective, check):
    check(objective)


def sample(noise=0.5, m=60, d=4, seed=1):
    """Two classes on the sides of a plane but for some noise, and repetition counts, one of them 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d)) + 0.2
    y = np.where(X[:, 0] + noise * rng.standard_normal(m) > 0, 1, -1)
    counts = rng.integers(1, 4, m).astype(float)
    counts[3] = 0.0
    return X, y, counts


def rows(X, y, counts, bias):
    """The signed rows of the problem, of length 1 at most; those of weight 0 left out."""
    F = X if bias == "none" else np.column_stack([X, np.ones(len(X))])
    F, y = F[counts > 0], y[counts > 0]
    return y[:, None] * F / np.linalg.norm(F, axis=1).max()


def cost(v, R, counts, a, b):
    """The sum and its gradient, straight from the formula; on the kink the slope of the right side."""
    t = R @ v
    rate = np.where(t >= 0, a, b)
    return counts @ np.exp(-rate * t), -R.T @ (counts * rate * np.exp(-rate * t))


def sharp(X, y, **settings):
    """The end of the engine: a duality gap of 1e-12 alone fixes a direction to its root only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        return mdlearn.fit("mdo", X, y, tol=0.0, **settings)


def direction(model):
    return model.coef_[0] if model.bias == "none" else np.append(model.coef_[0], model.intercept_[0])


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize(("a", "b", "noise"), [(2.0, 2.0, 0.2), (10.0, 10.0, 0.5), (40.0, 40.0, 3.0), (9.0, 4.0, 1.0)])
def test_the_gradient_along_the_sphere_is_0(a, b, noise, bias):
    X, y, counts = sample(noise)
    model = sharp(X, y, sample_weight=counts, a=a, b=b, bias=bias)
    v, used = direction(model), counts[counts > 0]
    value, slope = cost(v, rows(X, y, counts, bias), used, a, b)
    assert np.linalg.norm(v) == pytest.approx(1.0, abs=1e-14)
    assert model.certificate.objective == pytest.approx(value, rel=1e-12)
    assert model.certificate.gap <= 1e-11
    # A duality gap is quadratic in the gradient.
    limit = 1e-11 if model.certificate.kind == "residual" else 1e-6
    assert np.linalg.norm(slope - (slope @ v) * v) <= limit * value


def test_a_gradient_that_points_inwards_proves_a_global_minimum():
    X, y, counts = sample(noise=0.2)
    R, used = rows(X, y, counts, "none"), counts[counts > 0]
    model = mdlearn.fit("mdo", X, y, sample_weight=counts, a=3.0, bias="none", tol=1e-12)
    certificate = model.certificate
    assert certificate.kind == "duality gap" and certificate.gap <= 1e-12
    ball = minimize(
        lambda v: cost(v, R, used, 3.0, 3.0),
        np.zeros(4),
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: 1 - v @ v, "jac": lambda v: -2 * v},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert ball.success and certificate.objective == pytest.approx(ball.fun, rel=1e-8)
    assert direction(model) == pytest.approx(ball.x, abs=1e-5)
    V = np.random.default_rng(0).standard_normal((1000, 4))
    V /= np.linalg.norm(V, axis=1)[:, None]
    assert min(cost(v, R, used, 3.0, 3.0)[0] for v in V) >= certificate.lower_bound


def test_the_bound_holds_however_early_the_fit_ends():
    X, y, counts = sample(noise=0.2)
    for a, b in ((3.0, 3.0), (2.0, 5.0)):
        best = mdlearn.fit("mdo", X, y, sample_weight=counts, a=a, b=b, tol=1e-12).certificate.objective
        for steps in (1, 2, 3):
            with pytest.warns(mdlearn.ConvergenceWarning):
                model = mdlearn.fit("mdo", X, y, sample_weight=counts, a=a, b=b, max_iter=steps, tol=0.0)
            certificate = model.certificate
            assert certificate.kind == "duality gap"
            assert certificate.lower_bound <= best * (1 + 1e-12) <= certificate.objective * (1 + 2e-12)


def test_elsewhere_the_certificate_is_a_residual_without_a_bound():
    rng = np.random.default_rng(4)
    X, y, one = rng.standard_normal((80, 3)), rng.choice([-1, 1], 80), np.ones(80)
    R = rows(X, y, one, "regularized")
    model = mdlearn.fit("mdo", X, y, a=30.0, tol=1e-10)
    assert model.certificate.kind == "residual" and model.certificate.lower_bound == -np.inf
    assert model.certificate.converged and all(state.lower_bound == -np.inf for state in model.history)
    assert model.certificate.vouched_by == "mdlearn_baselines.sphere.SphereProblem"
    with pytest.warns(mdlearn.ConvergenceWarning, match="first-order residual"):
        early = mdlearn.fit("mdo", X, y, a=30.0, tol=1e-10, max_iter=2)
    v = direction(early)
    value, slope = cost(v, R, one, 30.0, 30.0)
    residual = np.linalg.norm(slope - (slope @ v) * v)
    assert early.certificate.gap == pytest.approx(residual / value, rel=1e-9)
    assert value > model.certificate.objective


@pytest.mark.parametrize(("a", "b", "noise"), [(1.0, 6.0, 0.2), (2.0, 20.0, 0.5), (3.0, 30.0, 0.5)])
def test_rows_on_a_convex_kink(a, b, noise):
    X, y, counts = sample(noise, d=6)
    model = sharp(X, y, sample_weight=counts, a=a, b=b, bias="none")
    v, R, used = direction(model), rows(X, y, counts, "none"), counts[counts > 0]
    t = R @ v
    kink = np.abs(t) < 1e-9
    assert 0 < kink.sum() < 6 and model.certificate.gap <= 1e-11
    # The shortest subgradient along the sphere: rows on the kink may have any slope between -b and -a.
    free = used * ~kink
    rate = np.where(t >= 0, a, b)
    fixed = -R.T @ (free * rate * np.exp(-rate * t))
    along = np.eye(6) - np.outer(v, v)
    found = lsq_linear(along @ R[kink].T * used[kink], -along @ fixed, bounds=(-b, -a), method="bvls")
    value = cost(v, R, used, a, b)[0]
    assert np.sqrt(2 * found.cost) <= 1e-9 * value
    rng = np.random.default_rng(0)
    for size in np.logspace(-6, -2, 200):
        near = v + size * rng.standard_normal(6)
        assert cost(near / np.linalg.norm(near), R, used, a, b)[0] >= value * (1 - 1e-12)


def test_what_must_not_change_the_direction():
    X, y, counts = sample()
    settings = {"sample_weight": counts, "bias": "none", "tol": 1e-12}
    model = mdlearn.fit("mdo", X, y, **settings)
    longer = mdlearn.fit("mdo", 7.0 * X, y, **settings)
    assert longer.coef_ == pytest.approx(model.coef_, abs=1e-9)
    Q = np.linalg.qr(np.random.default_rng(5).standard_normal((4, 4)))[0]
    turned = mdlearn.fit("mdo", X @ Q, y, **settings)
    assert turned.coef_ == pytest.approx(model.coef_ @ Q, abs=1e-9)
    other = mdlearn.fit("mdo", X, -y, **settings)
    assert other.coef_ == pytest.approx(-model.coef_, abs=1e-9)
    heavier = mdlearn.fit("mdo", X, y, **{**settings, "sample_weight": 3.0 * counts})
    assert heavier.coef_ == pytest.approx(model.coef_, abs=1e-9)
    assert heavier.certificate.objective == pytest.approx(3 * model.certificate.objective, rel=1e-12)


@pytest.mark.parametrize("b", [10.0, 25.0])
def test_weights_are_repetitions(b):
    X, y, counts = sample()
    times = counts.astype(int)
    weighted = mdlearn.fit("mdo", X, y, sample_weight=counts, b=b, tol=1e-12)
    repeated = mdlearn.fit("mdo", np.repeat(X, times, axis=0), np.repeat(y, times), b=b, tol=1e-12)
    assert direction(weighted) == pytest.approx(direction(repeated), abs=1e-8)
    assert weighted.certificate.objective == pytest.approx(repeated.certificate.objective, rel=1e-12)


def test_a_small_rate_gives_the_direction_of_mamc():
    X, y, counts = sample()
    for bias in ("none", "regularized"):
        ours, mean = (
            direction(mdlearn.fit(name, X, y, sample_weight=counts, bias=bias, tol=1e-12, **given))
            for name, given in (("mdo", {"a": 1e-6}), ("mamc", {}))
        )
        assert ours == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)


def test_the_cost_never_rises():
    X, y, counts = sample(noise=2.0)
    model = mdlearn.fit("mdo", X, y, sample_weight=counts, a=60.0, tol=1e-12)
    values = [state.objective for state in model.history]
    assert len(values) > 3 and (np.diff(values) <= 1e-12 * values[-1]).all()


def test_three_classes_are_three_problems():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = np.array([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]])[y] + rng.standard_normal((60, 2))
    model = mdlearn.fit("mdo", X, y, tol=1e-10)
    assert model.multiclass == "ovr" and len(model.certificate.parts) == 3 and model.score(X, y) > 0.8
    alone = mdlearn.fit("mdo", X, y == 1, tol=1e-10)
    assert model.decision_function(X)[:, 1] == pytest.approx(alone.decision_function(X), abs=1e-7)
    pairs = mdlearn.fit("mdo", X, y, multiclass="ovo")
    assert pairs.certificate.converged and pairs.score(X, y) > 0.8


def test_types_and_files(tmp_path):
    from scipy.sparse import csr_matrix

    X, y, counts = sample()
    for b in (10.0, 30.0):
        model = mdlearn.fit("mdo", X, y, sample_weight=counts, b=b, tol=1e-10)
        sparse = mdlearn.fit("mdo", csr_matrix(X), y, sample_weight=counts, b=b, tol=1e-10)
        assert direction(sparse) == pytest.approx(direction(model), abs=1e-7)
        single = mdlearn.fit("mdo", X.astype(np.float32), y, sample_weight=counts, b=b, tol=1e-4)
        assert single.coef_.dtype == np.float32 and direction(single) == pytest.approx(direction(model), abs=1e-3)
        assert single.certificate.converged
    model.save(tmp_path / "model.npz")
    again = mdlearn.load(tmp_path / "model.npz")
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert again.certificate == model.certificate


def test_degenerate_rows():
    for bias in ("none", "regularized"):
        model = mdlearn.fit("mdo", np.zeros((4, 2)), [0, 1, 0, 1], bias=bias, b=20.0)
        assert np.linalg.norm(direction(model)) == pytest.approx(1.0)
    one = mdlearn.fit("mdo", [[1.0], [2.0], [-1.0]], [1, 1, 0], bias="none")
    assert one.coef_ == [[1.0]] and one.certificate.converged
    X, y, _ = sample()
    both = mdlearn.fit("mdo", np.vstack([X[:9], X[:9]]), np.append(y[:9], -y[:9]), a=2.0, b=9.0)
    assert both.certificate.converged


def test_arguments():
    X, y, _ = sample()
    with pytest.raises(ValueError, match=r"'mdo' has no free bias: .* give bias='regularized'"):
        mdlearn.fit("mdo", X, y, bias="free")
    with pytest.raises(ValueError, match="'mdo' is linear"):
        mdlearn.fit("mdo", X, y, kernel="rbf")
    with pytest.raises(ValueError, match=r"solver 'newton' cannot take this problem: .* use one of sphere"):
        mdlearn.fit("mdo", X, y, solver="newton")
    with pytest.raises(ValueError, match="solver 'sphere' cannot take this problem"):
        mdlearn.fit("svm", X, y, solver="sphere")
    for name in ("a", "b"):
        for value in (0.0, -1.0, 501.0):
            with pytest.raises(ValueError, match=f"{name} needs to be"):
                mdlearn.fit("mdo", X, y, **{name: value})
    assert mdlearn.fit("mdo", X, y, a=3.0).params == {"a": 3.0, "b": 3.0}
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit"):
        stopped = mdlearn.fit("mdo", X, y, time_limit=0.0)
    assert np.linalg.norm(direction(stopped)) == pytest.approx(1.0)
