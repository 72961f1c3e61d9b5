"""ML3: scores, the residual against a convex program solved by other means, local minima, and what must not matter."""

import mdlearn_baselines.path as engine
import numpy as np
import pytest
from mdlearn_baselines.latent import scores_of
from mdlearn_baselines.ml3 import ML3
from scipy.optimize import minimize

import mdlearn
from mdlearn.testing import parametrize_with_checks


@parametrize_with_checks(["ml3", ML3(lam=0.05, n_latent=2, p=2.0)])
def test_conformance(objective, check):
    check(objective)


def sample(k=3, m=40, d=2, seed=2):
    """Classes in two clumps each, so that no linear scores will do, and repetition counts, one of them 0."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, m)
    angle = np.pi * (y / k + rng.integers(0, 2, m))
    X = rng.standard_normal((m, d)) * 0.4
    X[:, :2] += 1.5 * np.column_stack([np.cos(angle), np.sin(angle)])
    counts = rng.integers(1, 4, m).astype(float)
    counts[4] = 0.0
    return X, y, counts


def scores(W, X, p):
    """max beta' W_c (x, 1), from the formula for the dual norm; W of shape (k, r, d + 1)."""
    Z = np.einsum("krd,nd->nkr", W, np.column_stack([X, np.ones(len(X))]))
    q = p / (p - 1.0)
    return (np.maximum(Z, 0.0) ** q).sum(axis=2) ** (1.0 / q)


def objective(W, X, y, counts, lam, p):
    """The printed sum."""
    f = scores(W, X, p)
    own = np.arange(len(y)), y
    short = 1.0 + f - f[own][:, None]
    short[own] = 0.0
    return 0.5 * lam * (W**2).sum() + counts @ np.maximum(0.0, short.max(axis=1)) / counts.sum()


def weights(model):
    """W (k, r, d + 1)."""
    return model.coef_[0] if model.classes_.shape[0] == 2 else model.coef_


@pytest.mark.parametrize("p", [1.05, 1.5, 2.0])
def test_scores_are_the_largest_mixtures(p):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((6, 4))
    Z[0] = -np.abs(Z[0])
    f, beta = scores_of(Z, p / (p - 1.0))
    assert (beta >= 0).all() and ((beta**p).sum(axis=1) <= 1 + 1e-12).all()
    assert (beta * Z).sum(axis=1) == pytest.approx(f, abs=1e-12) and f[0] == 0.0 and not beta[0].any()
    for z, best in zip(Z, f):
        trials = np.abs(rng.standard_normal((3000, 4))) ** 3
        trials /= (trials**p).sum(axis=1)[:, None] ** (1.0 / p)
        assert (trials @ z).max() <= best + 1e-12
        assert best <= max(0.0, (trials @ z).max()) + 0.2 * np.abs(z).max()


def test_rounded_scores():
    rng = np.random.default_rng(0)
    Z, q = 0.3 * rng.standard_normal((50, 3)), 3.0
    exact = scores_of(Z, q)[0]
    for eps in (1.0, 0.2, 1e-3):
        f, beta = scores_of(Z, q, eps)
        assert (f <= exact + 1e-12).all() and (f >= exact - eps / 1.5 - 1e-12).all()
        step = rng.standard_normal(Z.shape)
        ahead, behind = (scores_of(Z + sign * 1e-6 * step, q, eps)[0] for sign in (1.0, -1.0))
        assert (ahead - behind) / 2e-6 == pytest.approx((beta * step).sum(axis=1), abs=1e-4)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("p", [1.2, 1.5, 2.0])
def test_objective_and_decision_values(k, p):
    X, y, counts = sample(k)
    model = mdlearn.fit("ml3", X, y, sample_weight=counts, p=p, lam=0.01, n_latent=3, tol=1e-9)
    W, f = weights(model), model.decision_function(X)
    assert W.shape == (k, 3, 3) and model.certificate.converged
    assert model.certificate.vouched_by == "mdlearn_baselines.latent.LatentProblem"
    assert model.certificate.kind == "residual" and model.certificate.lower_bound == -np.inf
    assert all(state.lower_bound == -np.inf for state in model.history)
    value = objective(W, X, y, counts, 0.01, p)
    assert model.certificate.objective == pytest.approx(value, rel=1e-12)
    own = scores(W, X, p)
    assert f == pytest.approx(own if k == 3 else own[:, 1] - own[:, 0], abs=1e-12)
    assert not hasattr(model, "dual_coef_") and not model.intercept_.any()


@pytest.mark.parametrize("k", [2, 3])
def test_no_small_change_lowers_the_objective(k):
    X, y, counts = sample(k)
    model = mdlearn.fit("ml3", X, y, sample_weight=counts, lam=0.01, n_latent=3, tol=1e-11)
    W, rng = weights(model), np.random.default_rng(0)
    value = objective(W, X, y, counts, 0.01, 1.5)
    for _ in range(300):
        step = rng.standard_normal(W.shape)
        step /= np.linalg.norm(step)
        for size in (1e-5, 1e-3):
            assert objective(W + size * step, X, y, counts, 0.01, 1.5) >= value - 1e-5 * size


def convex_minimum(W, X, y, share, lam):
    """Smallest value of the convex problem that touches the objective at W: SLSQP over W and the losses.

    SLSQP ends a little early on some machines, and is begun again where it ended until that gains nothing.
    """
    k, m = W.shape[0], len(y)
    E, own = np.column_stack([X, np.ones(m)]), (np.arange(m), y)
    Z = np.maximum(np.einsum("krd,nd->nkr", W, E)[own], 0.0)
    beta = Z**2 / np.maximum((Z**3).sum(axis=1), 1e-300)[:, None] ** (2 / 3)

    def parts(v):
        return v[: W.size].reshape(W.shape), v[W.size :]

    def slack(v):
        V, xi = parts(v)
        mine = np.einsum("nr,nrd,nd->n", beta, V[y], E)
        room = xi[:, None] - 1.0 - scores(V, X, 1.5) + mine[:, None]
        room[own] = xi
        return room.ravel()

    def value(v):
        V, xi = parts(v)
        return 0.5 * lam * (V**2).sum() + share @ xi

    def slope(v):
        return np.append(lam * v[: W.size], share)

    start = np.append(0.9 * W.ravel(), np.full(m, 2.0 + k))
    limits = {"type": "ineq", "fun": slack}
    least = np.inf
    for _ in range(20):
        found = minimize(
            value, start, jac=slope, method="SLSQP", constraints=limits, options={"ftol": 1e-12, "maxiter": 300}
        )
        start = found.x
        start[W.size :] = np.maximum(0.0, start[W.size :] - np.minimum(0.0, slack(start).reshape(m, k).min(axis=1)))
        reached = value(start)
        if reached > least - 1e-10:
            break
        least = reached
    return min(least, reached)


@pytest.mark.parametrize("k", [2, 3])
def test_the_residual_is_what_the_convex_problem_could_save(k):
    X, y, counts = sample(k, m=14)
    share = counts / counts.sum()
    model = mdlearn.fit("ml3", X, y, sample_weight=counts, lam=0.05, n_latent=2, tol=1e-10)
    found = convex_minimum(weights(model), X, y, share, 0.05)
    assert found == pytest.approx(model.certificate.objective, abs=1e-6)
    with pytest.warns(mdlearn.ConvergenceWarning, match="first-order residual"):
        early = mdlearn.fit("ml3", X, y, sample_weight=counts, lam=0.05, n_latent=2, tol=1e-10, max_iter=1)
    certificate = early.certificate
    found = convex_minimum(weights(early), X, y, share, 0.05)
    saved = certificate.objective - found
    assert 1e-4 < saved <= certificate.gap * certificate.objective + 1e-7


def test_it_tells_apart_what_no_line_can():
    X, y = mdlearn.datasets.xor(200, random_state=0)
    model = mdlearn.fit("ml3", X, y, n_latent=2, lam=1e-3)
    assert model.score(X, y) > 0.95 > 0.8 > mdlearn.fit("svm", X, y).score(X, y)
    X, y, _ = sample(3, m=90)
    model = mdlearn.fit("ml3", X, y, n_latent=2)
    assert model.score(X, y) > 0.9 > mdlearn.fit("ww", X, y, C=10.0).score(X, y)


def test_with_one_function_p_does_not_matter():
    X, y, counts = sample()
    models = [mdlearn.fit("ml3", X, y, sample_weight=counts, n_latent=1, p=p, lam=0.01, tol=1e-10) for p in (1.3, 2.0)]
    values = [model.certificate.objective for model in models]
    assert values[0] == pytest.approx(values[1], rel=1e-6)


@pytest.mark.parametrize("k", [2, 3])
def test_weights_are_repetitions(k):
    X, y, counts = sample(k)
    times = counts.astype(int)
    settings = {"lam": 0.01, "n_latent": 3, "tol": 1e-10}
    weighted = mdlearn.fit("ml3", X, y, sample_weight=counts, **settings)
    repeated = mdlearn.fit("ml3", np.repeat(X, times, axis=0), np.repeat(y, times), **settings)
    assert weighted.certificate.objective == pytest.approx(repeated.certificate.objective, rel=1e-9)
    assert weighted.decision_function(X) == pytest.approx(repeated.decision_function(X), abs=1e-6)
    total = weighted.duals.sum()
    assert total == pytest.approx(repeated.duals.sum(), abs=1e-6) and 0 < total < 1


def test_names_of_classes_do_not_matter():
    X, y, counts = sample(3)
    model = mdlearn.fit("ml3", X, y, sample_weight=counts, lam=0.01, n_latent=3, tol=1e-10)
    other = mdlearn.fit("ml3", X, 2 - y, sample_weight=counts, lam=0.01, n_latent=3, tol=1e-10)
    assert other.decision_function(X)[:, ::-1] == pytest.approx(model.decision_function(X), abs=1e-6)


def test_conjugate_gradients_come_to_the_same_end(monkeypatch):
    X, y, counts = sample(2)
    settings = {"sample_weight": counts, "lam": 0.05, "n_latent": 2, "tol": 1e-8}
    model = mdlearn.fit("ml3", X, y, **settings)
    monkeypatch.setattr(engine, "DENSE_WIDTH", 0)
    other = mdlearn.fit("ml3", X, y, **settings)
    assert other.certificate.converged
    assert other.certificate.objective == pytest.approx(model.certificate.objective, rel=1e-5)


def test_types_and_files(tmp_path):
    from scipy.sparse import csr_matrix

    for k in (2, 3):
        X, y, counts = sample(k, d=3)
        settings = {"sample_weight": counts, "lam": 0.01, "n_latent": 2}
        model = mdlearn.fit("ml3", X, y, tol=1e-9, **settings)
        sparse = mdlearn.fit("ml3", csr_matrix(X), y, tol=1e-9, **settings)
        assert sparse.decision_function(X) == pytest.approx(model.decision_function(X), abs=1e-5)
        assert sparse.decision_function(csr_matrix(X)) == pytest.approx(sparse.decision_function(X), abs=1e-12)
        single = mdlearn.fit("ml3", X.astype(np.float32), y, tol=1e-4, **settings)
        assert single.coef_.dtype == np.float32 and single.certificate.converged
        assert single.certificate.objective == pytest.approx(model.certificate.objective, rel=1e-3)
        model.save(tmp_path / "model.npz")
        again = mdlearn.load(tmp_path / "model.npz")
        assert np.array_equal(again.decision_function(X), model.decision_function(X))
        assert np.array_equal(again.coef_, model.coef_) and again.certificate == model.certificate


def test_arguments():
    X, y, _ = sample()
    for bias in ("free", "regularized"):
        with pytest.raises(ValueError, match=f"'ml3' has its constant beside x .offset.; got bias='{bias}'"):
            mdlearn.fit("ml3", X, y, bias=bias)
    for name, values in {"lam": (0.0, -1.0), "p": (1.0, 2.5), "n_latent": (0, 41), "offset": (-1.0,)}.items():
        for value in values:
            with pytest.raises(ValueError, match=name):
                mdlearn.fit("ml3", X, y, **{name: value})
    with pytest.raises(ValueError, match=r"solver 'apg' cannot take this problem: .* use one of latent"):
        mdlearn.fit("ml3", X, y, solver="apg")
    model = mdlearn.fit("ml3", X, y, offset=0.0, lam=0.1)
    assert model.coef_.shape == (3, 5, 2) and model.params["n_latent"] == 5
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit"):
        stopped = mdlearn.fit("ml3", X, y, time_limit=0.0)
    assert not stopped.certificate.converged and np.isfinite(stopped.decision_function(X)).all()


def test_values_that_would_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr("mdlearn.numerics.memory.available_bytes", lambda: 10000.0)
    monkeypatch.setattr("mdlearn.numerics.memory.NEGLIGIBLE_BYTES", 0.0)
    X, y, _ = sample()
    with pytest.raises(mdlearn.InsufficientMemory, match="values of 15 latent functions of 40 rows"):
        mdlearn.fit("ml3", X, y)
