"""ULDM against the printed quadratic (Abe, eq. (24)-(35)), its testable properties, and readings of the misprints."""

import numpy as np
import pytest
import scipy.optimize
from data import FOLDER
from exact import solve_exactly
from reference import gram, scale_gamma

import mdlearn

BASES = ["all", "cholesky", "index", "euclidean"]


def sample(m=40, d=3, seed=0, shift=0.2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d)) + 0.3
    y = np.where(X[:, 0] + 0.6 * rng.standard_normal(m) > shift + 0.3, 1, -1)
    return X, y


def columns(model, X):
    """Basis columns of all rows of X, by the definition."""
    if not hasattr(model, "basis_indices_"):
        return X
    kernel = model.kernel.name
    rest = {} if kernel == "linear" else {"gamma": model.params["gamma"]}
    return np.asarray(gram(X, X[model.basis_indices_], kernel, dtype=np.float64, **rest))


def printed(F, y, bias, weight=None):
    """h and K of (24)-(28), with the constant column of a bias."""
    F = np.hstack([F, np.ones((len(F), 1))]) if bias != "none" else F
    w = np.ones(len(y)) if weight is None else weight
    k = y[:, None] * F
    h = w @ k / w.sum()
    return F, h, (k - h).T @ (w[:, None] * (k - h)) / w.sum()


def ridge_of(n, bias):
    D = np.ones(n)
    if bias == "free":
        D[-1] = 0.0
    return D


def value(beta, D, h, K, C, lambda0):
    return 0.5 * C * beta @ (D * beta) - h @ beta + 0.5 * lambda0 * beta @ K @ beta


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("kernel, basis", [("linear", b) for b in BASES] + [("rbf", b) for b in BASES[:3]])
def test_the_printed_system(kernel, basis, bias):
    X, y = sample()
    given = np.array([3, 1, 30, 7, 25]) if basis == "index" else basis
    for C, lambda0 in ((1e-3, 1.0), (0.1, 3.0), (2.0, 0.0)):
        if lambda0 == 0 and bias == "free":
            continue
        model = mdlearn.fit("uldm", X, y, C=C, lambda0=lambda0, kernel=kernel, basis=given, bias=bias, tol=1e-13)
        F, h, K = printed(columns(model, X), y, bias)
        D = ridge_of(F.shape[1], bias)
        beta = np.linalg.solve(C * np.diag(D) + lambda0 * K, h)
        assert model.solver == "direct" and model.certificate.converged
        np.testing.assert_allclose(model.decision_function(X), F @ beta, atol=1e-8 * np.abs(F @ beta).max())
        assert model.certificate.objective == pytest.approx(-0.5 * h @ beta, rel=1e-10)
        assert model.certificate.objective == pytest.approx(value(beta, D, h, K, C, lambda0), rel=1e-9)


def test_a_generic_minimiser_finds_no_better_point():
    X, y = sample()
    model = mdlearn.fit("uldm", X, y, C=0.01, kernel="rbf", basis=[0, 5, 9, 30], tol=1e-12)
    F = np.hstack([columns(model, X), np.ones((40, 1))])

    def objective(beta):
        z = y * (F @ beta)
        return 0.005 * beta @ beta - z.mean() + 0.5 * z.var()

    best = scipy.optimize.minimize(objective, np.zeros(5), method="BFGS", options={"gtol": 1e-9})
    assert model.certificate.objective == pytest.approx(best.fun, rel=1e-9)
    np.testing.assert_allclose(model.decision_function(X), F @ best.x, atol=1e-4)


# ---------------------------------------------------------------- properties of SPEC section 3


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


# ---------------------------------------------------------------- tiny C, C = 0, cd


@pytest.mark.parametrize("gamma", [0.002, 0.3, 20.0])
@pytest.mark.parametrize("C", [1e-12, 1e-8])
def test_tiny_C_in_exact_arithmetic(C, gamma):
    X, y = sample(24)
    model = mdlearn.fit("uldm", X, y, C=C, kernel="rbf", gamma=gamma, tol=1e-11)
    G = model.kernel.block(model._rows, model._rows)
    F = np.hstack([G, np.ones((24, 1))])
    best, f = solve_exactly(F, y, C)
    certificate = model.certificate
    assert certificate.converged and certificate.objective == pytest.approx(best, rel=1e-10)
    assert certificate.lower_bound <= best + 1e-10 * abs(best)
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-5 * np.abs(f).max())


def test_no_regulariser():
    X, y = sample()
    for bias in ("none", "regularized", "free"):
        model = mdlearn.fit("uldm", X, y, C=0, bias=bias, tol=1e-12)
        F, h, K = printed(X, y, bias)
        beta = np.linalg.solve(K, h)
        np.testing.assert_allclose(model.decision_function(X), F @ beta, rtol=1e-9, atol=1e-9)
        assert model.certificate.objective == pytest.approx(-0.5 * h @ beta, rel=1e-11)
    model = mdlearn.fit("uldm", X, y, C=0, kernel="rbf", basis=[0, 1, 2], tol=1e-12)
    _, h, K = printed(columns(model, X), y, "regularized")
    assert model.certificate.objective == pytest.approx(-0.5 * h @ np.linalg.solve(K, h), rel=1e-9)
    for singular in ({"basis": "all"}, {"kernel": "rbf"}, {"lambda0": 0.0, "bias": "none"}):
        with pytest.raises(ValueError, match=r"C=0 .* non-singular .*give C > 0"):
            mdlearn.fit("uldm", X, y, C=0, **singular)
    with pytest.raises(ValueError, match="non-singular"):
        mdlearn.fit("uldm", np.hstack([X, X[:, :1]]), y, C=0)


def test_coordinate_descent():
    X, y = sample()
    for kernel in ("linear", "rbf"):
        exact = mdlearn.fit("uldm", X, y, C=0.05, kernel=kernel, tol=1e-12)
        model = mdlearn.fit("uldm", X, y, C=0.05, kernel=kernel, solver="cd", tol=1e-12)
        np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), rtol=1e-5)
        again = mdlearn.fit("uldm", X, y, C=0.05, kernel=kernel, solver="cd", tol=1e-12)
        assert np.array_equal(model.dual_coef_, again.dual_coef_)
    # Errata A8: with a tiny C and a radial kernel sweeps do not get there, and the fit says so.
    with pytest.warns(mdlearn.ConvergenceWarning):
        slow = mdlearn.fit("uldm", X, y, C=1e-9, kernel="rbf", solver="cd", max_iter=20)
    truth = mdlearn.fit("uldm", X, y, C=1e-9, kernel="rbf").certificate
    assert slow.certificate.lower_bound <= truth.objective < slow.certificate.objective


# ---------------------------------------------------------------- several classes, the paper's iris


@pytest.mark.parametrize("how", ["fuzzy-min", "fuzzy-avg"])
def test_fuzzy_pairs(how):
    X, _ = sample(60)
    labels = np.digitize(X[:, 0] + 0.5 * X[:, 1], [-0.5, 0.4, 1.3])
    model = mdlearn.fit("uldm", X, labels, kernel="rbf", C=1e-3, multiclass=how, tol=1e-11)
    D = np.zeros((60, 4, 4))
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    for p, (i, j) in enumerate(pairs):
        rows = np.flatnonzero((labels == i) | (labels == j))
        assert np.array_equal(model.basis_indices_[p], rows)
        F = np.asarray(gram(X, X[rows], "rbf", model.params["gamma"], dtype=np.float64))
        F, y = np.hstack([F, np.ones((60, 1))]), np.where(labels[rows] == i, 1.0, -1.0)
        k = y[:, None] * F[rows]
        h = k.mean(axis=0)
        D[:, i, j] = F @ np.linalg.solve(1e-3 * np.eye(len(h)) + k.T @ k / len(k) - np.outer(h, h), h)
        D[:, j, i] = -D[:, i, j]
    members = np.minimum(1.0, D)
    others = [[j for j in range(4) if j != i] for i in range(4)]
    reduce = np.min if how == "fuzzy-min" else np.mean
    want = np.stack([reduce(members[:, i, others[i]], axis=1) for i in range(4)], axis=1)
    np.testing.assert_allclose(model.decision_function(X), want, atol=1e-6 * np.abs(want).max())
    assert np.array_equal(model.predict(X), want.argmax(axis=1))
    assert mdlearn.fit("uldm", X, labels).multiclass == "fuzzy-min"


@pytest.mark.parametrize("rows, errors", [(25, 3), (10, 5)])
@pytest.mark.parametrize("basis", ["euclidean", "all"])
def test_iris_of_the_paper(rows, errors, basis):
    path = FOLDER / "iris.npz"
    if not path.exists():
        pytest.skip(f"real data not found: {path} (set MDLEARN_SHARED)")
    with np.load(path, allow_pickle=False) as file:
        X, y = file["X"][:, 2:], file["y"]
    second, third = X[y == 1], X[y == 2]
    train = np.vstack([second[:25], third[:rows]])
    model = mdlearn.fit("uldm", train, np.repeat([2, 3], [25, rows]), C=1e-6, basis=basis)
    predicted = model.predict(np.vstack([second[25:], third[25:]]))
    assert (predicted != np.repeat([2, 3], 25)).sum() == errors


def test_defaults():
    X, y = sample()
    model = mdlearn.fit("uldm", X, y)
    assert (model.bias, model.params["C"], model.params["lambda0"]) == ("regularized", 1e-4, 1.0)
    assert not hasattr(model, "basis_indices_")  # euclidean: fewer columns than distinct rows
    assert np.array_equal(mdlearn.fit("uldm", X[:3], [1, -1, 1]).basis_indices_, [0, 1, 2])
    assert np.array_equal(mdlearn.fit("uldm", X[[0, 1, 2, 0, 1, 2]], [1, -1, 1] * 2).basis_indices_, np.arange(6))
    assert np.array_equal(mdlearn.fit("uldm", X, y, kernel="rbf").basis_indices_, np.arange(40))
    assert gamma_is_scale(mdlearn.fit("uldm", X, y, kernel="rbf"), X)


def gamma_is_scale(model, X):
    return model.params["gamma"] == pytest.approx(scale_gamma(X))


def test_wrong_values():
    X, y = sample()
    for bad, match in [
        ({"C": -1.0}, "C"),
        ({"C": np.inf}, "C"),
        ({"C": 1e-200}, "at least 1e-30"),
        ({"lambda0": np.nan}, "lambda0"),
        ({"basis_tol": 2.0}, "basis_tol"),
        ({"basis": "some"}, "basis"),
        ({"c_scaling": "trace"}, "c_scaling"),
        ({"lambda0": 0.0, "bias": "free"}, "unbounded"),
        ({"basis": "euclidean", "kernel": "rbf"}, "kernel='linear'"),
    ]:
        with pytest.raises(ValueError, match=match):
            mdlearn.fit("uldm", X, y, **bad)
    with pytest.raises(ValueError, match="varies"):
        mdlearn.fit("uldm", np.zeros((4, 1)), [0, 1, 0, 1], c_scaling="max_diag", basis="euclidean")


def test_pairs_of_which_some_have_more_columns_than_rows(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [30, 3, 3])
    X = rng.standard_normal((36, 8)) + y[:, None]
    model = mdlearn.fit("uldm", X, y, C=0.1)
    # Basis "auto": the pair of the two small classes has 6 rows, fewer than columns.
    assert [len(rows) for rows in model.basis_indices_] == [0, 0, 6]
    model.save(tmp_path / "m.npz")
    np.testing.assert_array_equal(mdlearn.load(tmp_path / "m.npz").predict(X), model.predict(X))
