"""LS-SVM and LS-LDM against the printed linear system, and the engine that solves quadratic objectives."""

import numpy as np
import pytest
import scipy.sparse as sp
from reference import gram, scale_gamma

import mdlearn

KERNELS = ["linear", "rbf", "poly"]


def sample(m=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.where(X @ rng.standard_normal(d) + 0.7 * rng.standard_normal(m) > 0.3, 1, -1)
    return X, y


def kernel_matrix(X, kernel, weight=None):
    if kernel == "linear":
        return X @ X.T
    return np.asarray(gram(X, X, kernel, scale_gamma(X, weight), 3, 0.0, np.float64))


def printed_system(G, y, C, lambda1, lambda2, bias):
    """w = sum a_i y_i phi(x_i), z = K a + b y, a = (lambda1/m) e - (lambda2/m) (z - mean z) + C (e - z), y'a = 0."""
    m = len(y)
    K = np.multiply.outer(y, y) * (G + (1.0 if bias == "regularized" else 0.0))
    B = lambda2 / m * (np.eye(m) - np.full((m, m), 1.0 / m)) + C * np.eye(m)
    right = np.full(m, lambda1 / m + C)
    if bias != "free":
        a = np.linalg.solve(np.eye(m) + B @ K, right)
        return y * a, float(y @ a) if bias == "regularized" else 0.0
    whole = np.block([[np.eye(m) + B @ K, (B @ y)[:, None]], [y[None, :], np.zeros((1, 1))]])
    solution = np.linalg.solve(whole, np.append(right, 0.0))
    return y * solution[:m], solution[m]


def value(f, squares, y, weight, C, lambda1, lambda2):
    z, m = y * f, weight.sum()
    mean = weight @ z / m
    variance = weight @ (z - mean) ** 2 / m
    return 0.5 * squares - lambda1 * mean + 0.5 * lambda2 * variance + 0.5 * C * weight @ (1 - z) ** 2


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["lssvm", "lsldm"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_printed_linear_system(name, kernel, bias, C):
    X, y = sample()
    extra = {"lambda1": 3.0, "lambda2": 40.0} if name == "lsldm" else {}
    tol = 1e-11 if kernel == "poly" else 1e-12  # rounding of powers is in the gap
    model = mdlearn.fit(name, X, y, C=C, kernel=kernel, bias=bias, tol=tol, **extra)
    G = kernel_matrix(X, kernel)
    alpha, b = printed_system(G, y, C, extra.get("lambda1", 0.0), extra.get("lambda2", 0.0), bias)
    f = G @ alpha + b
    assert model.solver == "direct" and model.certificate.converged
    np.testing.assert_allclose(model.decision_function(X), f, rtol=0, atol=1e-8 * np.abs(f).max())
    squares = alpha @ G @ alpha + (b * b if bias == "regularized" else 0.0)
    best = value(f, squares, y, np.ones(60), C, extra.get("lambda1", 0.0), extra.get("lambda2", 0.0))
    assert model.certificate.objective == pytest.approx(best, rel=1e-11)
    assert model.intercept_[0] == pytest.approx(b, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("solver", ["direct", "interior", "cd"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_engines_agree(solver, kernel):
    X, y = sample(80)
    settings = {"C": 2.0, "lambda1": 1.0, "lambda2": 30.0, "bias": "regularized", "kernel": kernel}
    model = mdlearn.fit("lsldm", X, y, solver=solver, tol=1e-10, **settings)
    G = kernel_matrix(X, kernel)
    alpha, b = printed_system(G, y, 2.0, 1.0, 30.0, "regularized")
    best = value(G @ alpha + b, alpha @ G @ alpha + b * b, y, np.ones(80), 2.0, 1.0, 30.0)
    assert model.solver == solver and model.certificate.objective == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_weights_are_repetitions(kernel, bias):
    X, y = sample(40)
    weight = np.random.default_rng(1).integers(0, 4, 40).astype(float)
    rows = np.repeat(np.arange(40), weight.astype(int))
    settings = {"kernel": kernel, "bias": bias, "tol": 1e-12, "lambda2": 20.0}
    a = mdlearn.fit("lsldm", X, y, sample_weight=weight, **settings)
    b = mdlearn.fit("lsldm", X[rows], y[rows], **settings)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-10)
    assert a.certificate.objective == pytest.approx(b.certificate.objective, rel=1e-12)


def test_it_is_ridge_regression_on_the_labels():
    from sklearn.linear_model import Ridge

    X, y = sample(200, 6)
    model = mdlearn.fit("lssvm", X, y, C=4.0)
    ridge = Ridge(alpha=1 / 4.0).fit(X, y)
    np.testing.assert_allclose(model.coef_[0], ridge.coef_, atol=1e-10)
    assert model.intercept_[0] == pytest.approx(ridge.intercept_, abs=1e-10)


@pytest.mark.parametrize("C", [1e-10, 1e-6, 1e6, 1e10])
def test_extreme_weights_of_the_loss(C):
    rng = np.random.default_rng(3)
    X, y = sample(50, 5)
    X = X * 10.0 ** rng.integers(-3, 4, 5)
    model = mdlearn.fit("lssvm", X, y, C=C, bias="none", tol=1e-9)
    # The same problem as least squares, by orthogonal transformations.
    stack = np.vstack([np.sqrt(C) * X, np.eye(5)])
    w = np.linalg.lstsq(stack, np.append(np.sqrt(C) * y, np.zeros(5)), rcond=None)[0]
    best = 0.5 * w @ w + 0.5 * C * ((1 - y * (X @ w)) ** 2).sum()
    assert model.certificate.converged and model.certificate.objective == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("form", [sp.csr_matrix, np.asfortranarray, lambda X: X.astype(np.float32)])
def test_forms_of_the_rows(form):
    X, y = sample(300, 8)
    X = X.astype(np.float32).astype(float)
    same = mdlearn.fit("lsldm", form(X), y)
    assert same.solver == "direct"
    np.testing.assert_allclose(same.coef_, mdlearn.fit("lsldm", X, y).coef_, atol=1e-6)


@pytest.mark.slow
def test_wide_sparse_rows_go_to_sweeps():
    X = sp.random(2500, 3000, density=0.004, random_state=0, format="csr")
    y = np.where(X @ np.random.default_rng(0).standard_normal(3000) > 0, 1, -1)
    for bias in ("regularized", "free"):
        model = mdlearn.fit("lssvm", X, y, bias=bias)
        exact = mdlearn.fit("lssvm", X.toarray(), y, bias=bias, solver="direct")
        assert model.solver == "cd" and model.certificate.converged
        assert model.certificate.objective == pytest.approx(exact.certificate.objective, rel=2e-6)


def test_one_vs_rest():
    X, _ = sample(90)
    labels = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])
    model = mdlearn.fit("lssvm", X, labels, kernel="rbf")
    for k in range(3):
        one = mdlearn.fit("lssvm", X, np.where(labels == k, 1, -1), kernel="rbf")
        np.testing.assert_allclose(model.decision_function(X)[:, k], one.decision_function(X), atol=1e-10)


def test_direct_refuses_kinks_and_takes_no_loss():
    X, y = sample()
    with pytest.raises(ValueError, match=r"no loss of the kind .hinge.*use one of .*interior"):
        mdlearn.fit("svm", X, y, solver="direct")
    model = mdlearn.fit("ldm", X, y, C=0, lambda1=5.0, lambda2=2.0)
    assert model.solver == "direct" and model.certificate.converged
    # C = 0: (I + (4 lambda1 / m) centred' centred) w = lambda2 mean row, the bias as a column.
    R = y[:, None] * np.hstack([X, np.ones((60, 1))])
    centred = R - R.mean(axis=0)
    w = np.linalg.solve(np.eye(5) + 4 * 5.0 / 60 * centred.T @ centred, 2.0 * R.mean(axis=0))
    np.testing.assert_allclose(np.append(model.coef_[0], model.intercept_[0]), w, atol=1e-12)


def test_what_nothing_holds_is_an_error():
    X, y = sample()
    y[:40] = 1
    with pytest.raises(ValueError, match="unbounded below"):
        mdlearn.fit("lsldm", X, y, C=0, lambda2=0)
    assert mdlearn.fit("lsldm", X, y, C=0).certificate.converged
    assert mdlearn.fit("lssvm", X, y, C=0).certificate.objective == 0.0


@pytest.mark.parametrize(
    "name, bad", [("lssvm", {"C": -1.0}), ("lsldm", {"lambda2": np.nan}), ("lssvm", {"C": np.inf})]
)
def test_wrong_values(name, bad):
    X, y = sample()
    with pytest.raises(ValueError, match=next(iter(bad))):
        mdlearn.fit(name, X, y, **bad)


def test_steep_losses_of_a_kernel_have_a_bound():
    """C k(x, x) = 1e11: slopes at rounded margins prove nothing, the solution's own coefficients do."""
    X, y = sample(m=15)
    G = np.asarray(gram(X, X, "poly", 100.0, 2, 0.0, np.float64))
    for name, weights in (("lssvm", (0.0, 0.0)), ("lsldm", (1e4, 1e3))):
        extra = dict(zip(("lambda1", "lambda2"), weights)) if name == "lsldm" else {}
        # Rounding of such a matrix alone leaves a gap of 3e-5.
        model = mdlearn.fit(name, G, y, C=1e5, kernel="precomputed", bias="none", tol=1e-4, **extra)
        alpha = model.dual_coef_[0].astype(np.longdouble)
        f, certificate = G @ alpha, model.certificate
        held = value(f, alpha @ f, y, np.ones(15), 1e5, *weights)
        assert model.solver == "direct" and certificate.converged
        assert certificate.lower_bound <= held <= certificate.objective <= held * (1 + 1e-4)


@pytest.mark.parametrize("name", ["lssvm", "lsldm"])
def test_an_indefinite_kernel_is_an_error(name):
    with pytest.raises(ValueError, match="the matrix of kernel 'precomputed' is not positive semidefinite"):
        mdlearn.fit(name, -np.eye(4), [0, 1, 0, 1], kernel="precomputed", bias="none", C=10.0)
