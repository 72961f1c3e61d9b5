"""ULDM's testable properties (SPEC section 3), and the readings of c_scaling."""

import numpy as np
import pytest
from uldm_cases import columns, printed, sample

import mdlearn
from mdlearn.data.features.basis import BasisColumns


@pytest.mark.parametrize("scaling", [None, "max_diag"])
def test_t1_t2_balanced_classes(scaling):
    X, y = sample(60)
    rows = np.r_[np.flatnonzero(y > 0)[:18], np.flatnonzero(y < 0)[:18]]
    X, y = X[rows], y[rows]
    for C in (1e-6, 1e-2, 1.0):
        model = mdlearn.fit("uldm", X, y, C=C, basis="euclidean", c_scaling=scaling, tol=1e-13)
        w, b = model.coef_[0], model.intercept_[0]
        effective = C if scaling is None else C * np.diagonal(printed(X, y, "none")[2]).max()
        # T1 needs the bias in the regulariser: I_{N+1}, not the I_N of (29)-(35).
        assert w @ X.mean(axis=0) / (1 + effective) + b == pytest.approx(0, abs=1e-11)
        assert (y @ X / 36) @ w > 0  # T2
        free = mdlearn.fit("uldm", X, y, C=C, basis="euclidean", c_scaling=scaling, bias="free", tol=1e-13)
        off = free.coef_[0] @ X.mean(axis=0) / (1 + effective) + free.intercept_[0]
        assert C < 1 or abs(off) > 1e-3


def test_t3_one_feature():
    """f(x) = a x + b: with C given b follows from a, and C = 0 puts the boundary where (T3) says."""
    X, y = sample(50, 1, shift=0.5)
    mean, signed, label = X.mean(), (y * X[:, 0]).mean(), y.mean()
    for C in (0.0, 0.01, 0.5):
        model = mdlearn.fit("uldm", X, y, C=C, basis="euclidean", tol=1e-13)
        a, b = model.coef_[0, 0], model.intercept_[0]
        assert b == pytest.approx(-(a * (mean - label * signed) - label) / (1 - label**2 + C), rel=1e-10)
        if C == 0:
            middle = 0.5 * (X[y > 0].mean() + X[y < 0].mean())
            # In units where a = 1 the paper's term is label / (1 - label^2); for any a it is divided by a.
            assert -b / a == pytest.approx(middle - label / (1 - label**2) / a, rel=1e-9)


def test_t4_scaling_of_both_weights():
    X, y = sample()
    one = mdlearn.fit("uldm", X, y, C=1e-3, kernel="rbf", tol=1e-13)
    for s in (0.01, 7.0):
        other = mdlearn.fit("uldm", X, y, C=1e-3 * s, lambda0=s, kernel="rbf", tol=1e-13)
        np.testing.assert_allclose(other.dual_coef_ * s, one.dual_coef_, atol=1e-8 * np.abs(one.dual_coef_).max())


def test_t5_ridge_regression_to_one():
    X, y = sample()
    model = mdlearn.fit("uldm", X, y, C=1e-3, kernel="rbf", tol=1e-13)
    F, h, _ = printed(columns(model, X), y, "regularized")
    k = y[:, None] * F
    t = np.linalg.solve(1e-3 * np.eye(41) + k.T @ k / 40, h)
    np.testing.assert_allclose(model.decision_function(X), F @ t / (1 - h @ t), rtol=1e-7)


def test_a4_the_same_point_of_the_family_as_ldm():
    """LDM(C=0, lambda1=s/4, lambda2=s) is ULDM(C=1/s) but for a factor: Abe's lambda are not those of the LDM paper."""
    X, y = sample()
    for s in (3.0, 1e4):
        ldm = mdlearn.fit("ldm", X, y, C=0, lambda1=s / 4, lambda2=s, bias="regularized", tol=1e-13)
        uldm = mdlearn.fit("uldm", X, y, C=1 / s, basis="euclidean", tol=1e-13)
        np.testing.assert_allclose(uldm.coef_, ldm.coef_, rtol=1e-9)
        assert uldm.certificate.objective * s == pytest.approx(ldm.certificate.objective, rel=1e-11)
        assert uldm.certificate.lower_bound * s == pytest.approx(ldm.certificate.lower_bound, rel=1e-11)


def test_c_scaling_takes_the_variance_of_the_columns():
    X, y = sample()
    settings = {"kernel": "rbf", "gamma": 0.7, "tol": 1e-13}
    scaled = mdlearn.fit("uldm", X, y, C=1e-2, c_scaling="max_diag", **settings)
    _, _, K = printed(columns(scaled, X), y, "regularized")
    largest = np.diagonal(K)[:-1].max()
    # The other reading, k(z, z) = 1, would change nothing; the bias entry, 1 - mean(y)^2, would be the largest.
    assert largest < 0.5 < np.diagonal(K)[-1]
    plain = mdlearn.fit("uldm", X, y, C=1e-2 * largest, **settings)
    np.testing.assert_allclose(scaled.dual_coef_, plain.dual_coef_, rtol=1e-7)
    assert scaled.certificate.objective == pytest.approx(plain.certificate.objective, rel=1e-12)
    assert scaled.params["C"] == 1e-2


def test_c_scaling_of_every_class():
    X, _ = sample(60)
    labels = np.digitize(X[:, 0], [-0.5, 1.2])
    settings = {"kernel": "rbf", "c_scaling": "max_diag", "C": 0.01, "tol": 1e-12}
    model = mdlearn.fit("uldm", X, labels, multiclass="ovr", **settings)
    parts = [mdlearn.fit("uldm", X, np.where(labels == k, 1, -1), **settings) for k in range(3)]
    for k, one in enumerate(parts):
        np.testing.assert_allclose(model.decision_function(X)[:, k], one.decision_function(X), rtol=1e-7, atol=1e-9)
        assert model.certificate.parts[k].objective == pytest.approx(one.certificate.objective, rel=1e-11)


def test_the_largest_variance_of_every_class_comes_from_few_passes(monkeypatch):
    """Each class has the coefficients that it has alone against the rest; squares of columns are added up once."""
    rng = np.random.default_rng(0)
    X, weight = rng.standard_normal((210, 3)) * [1.0, 10.0, 0.1], rng.integers(1, 4, 210).astype(float)
    y = np.arange(210) % 35
    X += rng.standard_normal((35, 3))[y]
    passes, squares = [], BasisColumns.column_squares
    monkeypatch.setattr(BasisColumns, "column_squares", lambda *given: passes.append(1) or squares(*given))
    given = {"c_scaling": "max_diag", "C": 0.01, "basis": "all", "sample_weight": weight, "tol": 1e-10}
    model = mdlearn.fit("uldm", X, y, multiclass="ovr", **given)
    assert len(passes) < 5  # some of the engine, none for each of the 35 classes
    for k in (0, 17, 34):
        alone = mdlearn.fit("uldm", X, y == k, **given)
        np.testing.assert_allclose(model.decision_function(X)[:, k], alone.decision_function(X), rtol=1e-6, atol=1e-8)
