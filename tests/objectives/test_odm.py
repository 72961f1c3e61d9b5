"""ODM: every promise of an objective, the optimum found by other means, and its neighbours in the family."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import mdlearn
from mdlearn.objectives.odm import ODM
from mdlearn.testing import parametrize_with_checks

LAM, MU, THETA = 30.0, 0.4, 0.3


@parametrize_with_checks([ODM(lam=LAM, mu=MU, theta=THETA), ODM(mu=0.0), ODM(mu=1.0, theta=0.0)])
def test_conformance(objective, check):
    check(objective)


def sample():
    """Overlapping classes and repetition counts, one of them 0."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 4)) + 0.5
    y = np.where(X[:, 0] - 0.5 + 0.8 * rng.standard_normal(60) > 0, 1, -1)
    counts = rng.integers(0, 4, 60).astype(float)
    return X, y, counts


def odm(w, F, y, counts, penalized, lam=LAM, mu=MU, theta=THETA):
    """Value and gradient at w, straight from the formula; `penalized` marks the entries of w in 1/2 |w|^2."""
    z = y * (F @ w)
    short, beyond = np.maximum(0, 1 - theta - z), np.maximum(0, z - 1 - theta)
    scale = lam / (counts.sum() * (1 - theta) ** 2)
    value = 0.5 * penalized @ w**2 + scale * counts @ (short**2 + mu * beyond**2)
    return value, penalized * w + 2 * scale * F.T @ (counts * y * (mu * beyond - short))


def optimum(F, y, counts, penalized):
    """L-BFGS to find the rows outside the band, then the exact minimiser of the quadratic that they make."""
    start = np.zeros(F.shape[1])
    options = {"maxiter": 10000, "maxfun": 100000, "ftol": 1e-15, "gtol": 1e-9}
    w = minimize(odm, start, (F, y, counts, penalized), jac=True, method="L-BFGS-B", options=options).x
    scale = 2 * LAM / (counts.sum() * (1 - THETA) ** 2)
    for _ in range(20):
        z = y * (F @ w)
        weight = scale * counts * np.where(z < 1 - THETA, 1.0, np.where(z > 1 + THETA, MU, 0.0))
        target = y * np.where(z < 1 - THETA, 1 - THETA, 1 + THETA)
        w = np.linalg.solve(np.diag(penalized) + F.T @ (weight[:, None] * F), F.T @ (weight * target))
    value, slope = odm(w, F, y, counts, penalized)
    assert np.abs(slope).max() < 1e-9 * max(1, value)
    return w, value


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_optimum(bias, kernel):
    X, y, counts = sample()
    F = X
    if kernel == "rbf":
        G = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
        # Columns whose inner products are the kernel.
        lengths, turns = np.linalg.eigh(G)
        F = turns * np.sqrt(np.maximum(lengths, 0))
    d = F.shape[1]
    if bias != "none":
        F = np.column_stack([F, np.ones(len(F))])
    penalized = np.ones(F.shape[1])
    penalized[d:] = 1.0 if bias == "regularized" else 0.0
    w, value = optimum(F, y, counts, penalized)
    settings = {"gamma": 0.5} if kernel == "rbf" else {}
    model = mdlearn.fit(
        ODM, X, y, sample_weight=counts, lam=LAM, mu=MU, theta=THETA, kernel=kernel, bias=bias, tol=1e-13, **settings
    )
    certificate = model.certificate
    assert certificate.objective == pytest.approx(value, rel=1e-10)
    assert certificate.lower_bound <= value * (1 + 1e-12) and certificate.kind == "duality gap"
    assert model.decision_function(X) == pytest.approx(F @ w, abs=1e-6)


def test_the_band_of_width_0_is_the_squared_loss():
    X, y, counts = sample()
    total = counts.sum()
    for mu, name, factor in ((1.0, "lssvm", "C"), (0.0, "lsvm", "nu")):
        settings = {"sample_weight": counts, "bias": "regularized", "tol": 1e-13}
        ours = mdlearn.fit("odm", X, y, lam=LAM, mu=mu, theta=0.0, **settings)
        same = mdlearn.fit(name, X, y, **{factor: 2 * LAM / total}, **settings)
        assert ours.certificate.objective == pytest.approx(same.certificate.objective, rel=1e-11)
        assert ours.decision_function(X) == pytest.approx(same.decision_function(X), abs=1e-7)


def test_files_of_a_plugins_class_of_this_name_load(tmp_path):
    class OfAPlugin(ODM):
        """Stands for the class of mdlearn-odm 0.1: same name, same parameters."""

    X, y, counts = sample()
    model = mdlearn.fit(OfAPlugin, X, y, sample_weight=counts, lam=LAM, theta=THETA, kernel="rbf")
    model.save(tmp_path / "odm.npz")
    again = mdlearn.load(tmp_path / "odm.npz")
    assert again.objective == "odm" and again.params == model.params
    assert model.params.items() >= {"lam": LAM, "mu": 0.5, "theta": THETA}.items()
    for other in (again, mdlearn.fit("odm", X, y, sample_weight=counts, lam=LAM, theta=THETA, kernel="rbf")):
        assert np.array_equal(other.decision_function(X), model.decision_function(X))
        assert other.certificate == model.certificate


def test_a_stricter_price_narrows_the_distribution_of_margins():
    X, y, _ = sample()
    mild, strict = (mdlearn.fit("odm", X, y, lam=1e4, mu=mu, theta=0.1).margins(X, y) for mu in (0.01, 1.0))
    assert strict.std() < mild.std()


def test_defaults_and_bounds():
    X, y, counts = sample()
    model = mdlearn.fit("odm", X, y, sample_weight=counts)
    assert model.params == {"lam": counts.sum(), "mu": 0.5, "theta": 0.2} and model.bias == "regularized"
    for value in (1.0, 1, np.float32(1.0), -0.1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"theta needs to be a number >= 0 and < 1; got"):
            mdlearn.fit("odm", X, y, theta=value)
    for name in ("lam", "mu"):
        with pytest.raises(ValueError, match=f"{name} needs to be .* >= 0"):
            mdlearn.fit("odm", X, y, **{name: -1.0})
    with pytest.raises(TypeError, match="theta"):
        mdlearn.fit("odm", X, y, theta=True)
    for theta in (0.0, 0.999):
        assert mdlearn.fit("odm", X, y, theta=theta).certificate.converged
    assert not mdlearn.fit("odm", X, y, lam=0.0, bias="none").coef_.any()
