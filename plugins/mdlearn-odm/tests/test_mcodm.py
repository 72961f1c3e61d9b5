"""mcODM: its objective, first-order conditions found without the engine, and what it is for two classes."""

import numpy as np
import pytest
from mdlearn_odm import McODM
from mdlearn_odm.losses import Losses
from scipy.optimize import lsq_linear, minimize

import mdlearn
from mdlearn.testing import parametrize_with_checks

LAM, MU, THETA = 100.0, 0.6, 0.2
GAMMA = 0.05
BIASES = ("none", "regularized", "free")


@parametrize_with_checks(["mcodm", McODM(lam=30.0, mu=0.4, theta=0.3), McODM(mu=0.0), McODM(mu=1.0, theta=0.0)])
def test_conformance(objective, check):
    check(objective)


def test_what_the_package_brings():
    (record,) = mdlearn.list_plugins("mdlearn-odm")
    assert (record.objectives, record.solvers, record.state) == (("mcodm",), ("ccp",), "ok")


def sample(k=3, m=90, d=4):
    """Overlapping classes and repetition counts, some of them 0."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, k, m)
    X = rng.standard_normal((m, d)) + 1.2 * rng.standard_normal((k, d))[y]
    return X, y, rng.integers(0, 4, m).astype(float)


def explicit(X, kernel, bias):
    """Columns whose products are the kernel (rbf or linear), and the weights of their squares."""
    F = X
    if kernel == "rbf":
        lengths, turns = np.linalg.eigh(np.exp(-GAMMA * ((X[:, None] - X[None]) ** 2).sum(axis=2)))
        F = turns * np.sqrt(np.maximum(lengths, 0.0))
    ridge = np.ones(F.shape[1])
    if bias == "none":
        return F, ridge
    return np.column_stack([F, np.ones(len(F))]), np.append(ridge, float(bias == "regularized"))


def margins(S, y):
    """Lead over every other class, infinite in the own one."""
    leads = S[np.arange(len(y)), y][:, None] - S
    leads[np.arange(len(y)), y] = np.inf
    return leads


def objective(W, F, ridge, y, counts, mu=MU):
    """The formula."""
    gamma = margins(F @ W, y).min(axis=1)
    loss = np.maximum(0, 1 - THETA - gamma) ** 2 + mu * np.maximum(0, gamma - 1 - THETA) ** 2
    return 0.5 * (ridge @ W**2).sum() + LAM / (counts.sum() * (1 - THETA) ** 2) * counts @ loss


def fitted(X, y, counts, **given):
    settings = {"lam": LAM, "mu": MU, "theta": THETA, "sample_weight": counts, "tol": 1e-12} | given
    if settings.get("kernel") == "rbf":
        settings["gamma"] = GAMMA
    return mdlearn.fit("mcodm", X, y, **settings)


def weights(model, F):
    """Coefficients (p, k) of the explicit columns: those of a kernel from the decision values' representer."""
    d = F.shape[1] - (model.bias != "none")
    W = model.coef_.T if model.kernel.name == "linear" else F[:, :d].T @ model.dual_coef_.T
    return W if model.bias == "none" else np.vstack([W, model.intercept_])


def slope_left(W, F, ridge, y, counts, mu, tie=1e-6):
    """Length of the shortest subgradient of the convex majoriser: each kink's shares by bounded least squares."""
    c = LAM / (counts.sum() * (1 - THETA) ** 2) * counts
    leads = margins(F @ W, y)
    gamma = leads.min(axis=1)
    fixed, columns = ridge[:, None] * W, []
    for i in np.flatnonzero(c):
        if gamma[i] > 1 + THETA:
            push = 2 * mu * c[i] * (gamma[i] - 1 - THETA) * F[i]
            fixed[:, y[i]] += push
            fixed[:, leads[i].argmin()] -= push
        elif gamma[i] < 1 - THETA:
            pull, tied = 2 * c[i] * (1 - THETA - gamma[i]) * F[i], np.flatnonzero(leads[i] < gamma[i] + tie)
            fixed[:, y[i]] -= pull
            fixed[:, tied[0]] += pull
            for other in tied[1:]:  # a share in [0, 1] of the pull may move to another of the tied classes
                column = np.zeros_like(W)
                column[:, tied[0]], column[:, other] = -pull, pull
                columns.append(column.ravel())
    if not columns:
        return np.linalg.norm(fixed), 0
    found = lsq_linear(np.array(columns).T, -fixed.ravel(), (0.0, 1.0), tol=1e-14)
    return np.sqrt(2 * found.cost), len(columns)


@pytest.mark.parametrize("mu", [0.0, MU, 3.0])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_objective_and_first_order_conditions(kernel, bias, mu):
    X, y, counts = sample(4)
    model = fitted(X, y, counts, kernel=kernel, bias=bias, mu=mu)
    F, ridge = explicit(X, kernel, bias)
    W, certificate = weights(model, F), model.certificate
    assert model.decision_function(X) == pytest.approx(F @ W, abs=1e-9) and model.solver == "ccp"
    value = objective(W, F, ridge, y, counts, mu)
    assert certificate.objective == pytest.approx(value, rel=1e-11) and certificate.converged
    assert certificate.kind == ("duality gap" if mu == 0 else "residual")
    assert np.isinf(certificate.lower_bound) == (mu > 0)
    left, kinks = slope_left(W, F, ridge, y, counts, mu)
    assert left <= 1e-7 * LAM
    beyond = (margins(F @ W, y).min(axis=1) > 1 + THETA) & (counts > 0)
    assert kinks > 0 and beyond.sum() >= 2  # what is not smooth, and what is not convex, have their say
    assert bias != "free" or abs(model.intercept_.sum()) <= 1e-9


@pytest.mark.parametrize("k", [3, 5])
def test_nothing_lower_is_near(k):
    X, y, counts = sample(k, 120, 5)
    model = fitted(X, y, counts)
    F, ridge = explicit(X, "linear", "regularized")
    W, held = weights(model, F), model.certificate.objective
    rng = np.random.default_rng(0)

    def value(v):
        return objective(v.reshape(W.shape), F, ridge, y, counts)

    for size in np.logspace(-8, -1, 40):
        assert value(W.ravel() + size * rng.standard_normal(W.size)) >= held * (1 - 1e-12)
    for _ in range(4):
        start = W.ravel() + 1e-3 * rng.standard_normal(W.size)
        assert minimize(value, start, method="BFGS", options={"maxiter": 60}).fun >= held * (1 - 1e-9)


def test_convex_without_a_price_beyond_the_band():
    X, y, counts = sample()
    model = fitted(X, y, counts, mu=0.0)
    F, ridge = explicit(X, "linear", "regularized")
    certificate, rng = model.certificate, np.random.default_rng(1)
    least = certificate.lower_bound
    assert 0 <= certificate.objective - least <= 1e-12 * certificate.objective
    for size in np.logspace(-6, 1, 60):
        W = weights(model, F) + size * rng.standard_normal((5, 3))
        assert objective(W, F, ridge, y, counts, 0.0) >= least

    def value(v):
        return objective(v.reshape(5, 3), F, ridge, y, counts, 0.0)

    best = min(minimize(value, rng.standard_normal(15), method="BFGS").fun for _ in range(3))
    assert certificate.objective <= best * (1 + 1e-12)
    assert certificate.objective == pytest.approx(best, rel=1e-4)


def test_the_majoriser_touches_and_lies_above():
    rng = np.random.default_rng(0)
    y, counts = rng.integers(0, 4, 50), rng.integers(1, 4, 50).astype(float)
    losses = Losses(y, counts, 4, LAM, MU, THETA)

    def majoriser(S, runner):
        gamma, beyond = margins(S, y).min(axis=1), margins(S, y)[np.arange(50), runner] - 1 - THETA
        return losses.a @ np.maximum(0, 1 - THETA - gamma) ** 2 + losses.b @ np.maximum(0, beyond) ** 2

    for _ in range(20):
        S, T = (2.0 * rng.standard_normal((50, 4)) for _ in range(2))
        runner, multipliers = losses.runners(S), losses.natural(S)
        assert losses.value(S) == pytest.approx(majoriser(S, runner), rel=1e-12)
        assert losses.value(T) <= majoriser(T, runner) * (1 + 1e-12)
        # Slopes of the convex majoriser: a tangent from below.
        tangent = majoriser(S, runner) - (losses.alpha(multipliers) * (T - S)).sum()
        assert tangent <= majoriser(T, runner) + 1e-9
        assert losses.missed(S, multipliers, losses.b) <= 1e-12 * losses.value(S)
        assert losses.missed(T, multipliers, losses.b) == pytest.approx(
            majoriser(T, runner) - tangent, rel=1e-9
        ) or not np.array_equal(runner, losses.runners(T))


def dual_value(model, F, ridge, y, c, mu):
    """The dual of the convex majoriser at the model's multipliers, by the formula; a free intercept is a condition."""
    short, beyond = model.duals[:, 0].T, model.duals[:, 1].T
    assert (model.duals >= 0).all() and not short[np.arange(len(y)), y].any()
    alpha = beyond - short
    alpha[np.arange(len(y)), y] += short.sum(axis=1) - beyond.sum(axis=1)
    W = F.T @ alpha
    assert np.abs(W[ridge == 0]).max(initial=0.0) <= 1e-9 * np.abs(alpha).sum()
    value = (1 - THETA) * short.sum() - (1 + THETA) * beyond.sum() - 0.5 * (ridge @ W**2).sum()
    used = c > 0
    value -= (short.sum(axis=1)[used] ** 2 / (4 * c[used])).sum()
    return value - ((beyond.sum(axis=1)[used] ** 2 / (4 * mu * c[used])).sum() if mu else 0.0)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("mu", [0.0, MU])
@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
def test_what_is_left_open_is_no_less_than_what_can_be_saved(bias, mu):
    """Wherever a fit ends: no coefficients make the convex majoriser smaller than the certificate allows."""
    X, y, counts = sample(4)
    F, ridge = explicit(X, "linear", bias)
    c = LAM / (counts.sum() * (1 - THETA) ** 2) * counts
    final = weights(fitted(X, y, counts, bias=bias, mu=mu), F)
    rng = np.random.default_rng(0)
    for max_iter in (1, 2, 3, 4, 6):
        model = fitted(X, y, counts, bias=bias, mu=mu, max_iter=max_iter)
        W, certificate = weights(model, F), model.certificate
        runner = margins(F @ W, y).argmin(axis=1)
        scale = max(certificate.objective, 0.01 * LAM)
        least = certificate.objective - certificate.gap * scale
        if mu == 0:
            assert least == pytest.approx(certificate.lower_bound, rel=1e-9, abs=1e-9)

        def majoriser(V, runner=runner):
            leads = margins(F @ V, y)
            short = np.maximum(0, 1 - THETA - leads.min(axis=1))
            beyond = np.maximum(0, leads[np.arange(len(y)), runner] - 1 - THETA)
            return 0.5 * (ridge @ V**2).sum() + c @ (short**2 + mu * beyond**2)

        assert majoriser(W) == pytest.approx(certificate.objective, rel=1e-11)
        assert dual_value(model, F, ridge, y, c, mu) == pytest.approx(least, rel=1e-9, abs=1e-9 * scale)
        others = [W + t * (final - W) + 0.02 * t * rng.standard_normal(W.shape) for t in np.linspace(0.0, 1.2, 30)]
        assert min(majoriser(V) for V in others) >= least - 1e-9 * scale


def test_free_intercepts_balance_the_multipliers():
    rng = np.random.default_rng(0)
    y, counts = rng.integers(0, 4, 50), rng.integers(1, 4, 50).astype(float)
    losses = Losses(y, counts, 4, LAM, MU, THETA)
    for _ in range(5):
        found = losses.natural(2.0 * rng.standard_normal((50, 4)))
        found.short[y == 1] *= rng.integers(0, 2)  # also where a class has no pulls to raise
        balanced = losses.balanced(found)
        sums = losses.alpha(balanced).sum(axis=0)
        assert np.abs(sums).max() <= 1e-12 * found.short.sum()
        assert (balanced.short >= found.short - 1e-15).all() and not balanced.short[np.arange(50), y].any()


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_two_classes_are_odm_with_twice_lam(kernel, bias):
    X, y, counts = sample(2)
    ours = fitted(X, y, counts, kernel=kernel, bias=bias)
    settings = {"sample_weight": counts, "kernel": kernel, "bias": bias, "tol": 1e-13}
    settings |= {"gamma": GAMMA} if kernel == "rbf" else {}
    theirs = mdlearn.fit("odm", X, y, lam=2 * LAM, mu=MU, theta=THETA, **settings)
    assert ours.certificate.kind == theirs.certificate.kind == "duality gap"
    assert ours.certificate.objective == pytest.approx(0.5 * theirs.certificate.objective, rel=1e-11)
    assert ours.decision_function(X) == pytest.approx(0.5 * theirs.decision_function(X), abs=1e-7)
    F, ridge = explicit(X, kernel, bias)
    # Both classes at once, by the formula of several classes.
    w = weights(ours, F)
    assert objective(np.hstack([-w, w]), F, ridge, y, counts) == pytest.approx(ours.certificate.objective, rel=1e-11)
    rng = np.random.default_rng(0)
    for size in np.logspace(-6, 0, 30):
        pair = np.hstack([-w, w]) + size * rng.standard_normal((F.shape[1], 2))
        assert objective(pair, F, ridge, y, counts) >= ours.certificate.lower_bound
