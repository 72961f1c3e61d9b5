"""Certificates over Gram matrices: claims about one kernel hold together, whoever computed its values, and how."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from draining import drain
from scipy import sparse

import mdlearn
from mdlearn.data.features import kernels
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernel_rounding import kernel_half_roundings
from mdlearn.data.features.kernels import CallableKernel, Kernel
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows import rows as rows_module
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.certificates.primal import primal
from mdlearn.forms.certificates.rounding import _growth_against_rounding, certain_point, rounding_may_show
from mdlearn.forms.losses import HingeTerm, LogisticTerm
from mdlearn.forms.margin import Column, MarginForm

ENGINES = ("newton", "interior", "cd", "direct")
SAME = 1e-8


pytestmark = pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")


def far_column(seed, far=1e6, m=100):
    """A column of noise that tells the labels, and one that is far out and tells nothing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=m)
    return np.c_[x, np.full(m, far)], np.where(x + 0.5 * rng.normal(size=m) > 0, 1.0, -1.0)


def dot(A, B):
    return A @ B.T


def plain_kernels(X):
    """Four ways to say a . b, as (rows, arguments)."""
    return {
        "linear": (X, {"kernel": "linear"}),
        "csr": (sparse.csr_array(X), {"kernel": "linear"}),
        "precomputed": (X @ X.T, {"kernel": "precomputed"}),
        "callable": (X, {"kernel": dot}),
        "poly": (X, {"kernel": "poly", "degree": 1, "gamma": 1.0, "coef0": 0.0}),
    }


def claims(objective, y, ways, **given):
    """(bound, objective, who) of all engines that take the problem."""
    found = []
    for told, (A, kernel) in ways.items():
        for solver in ENGINES:
            try:
                c = mdlearn.fit(objective, A, y, solver=solver, **kernel, **given).certificate
            except ValueError as error:
                assert "cannot take this problem" in str(error), error
                continue
            found.append((c.lower_bound, c.objective, f"{told} {solver} {c!r}"))
    return found


def assert_consistent(found):
    low, least = max(found), min(found, key=lambda one: one[1])
    assert low[0] <= least[1] + SAME * max(abs(low[0]), abs(least[1])), f"{low[2]} against {least[2]}"


def least_squares_optimum(X, y, C, lambda1, bias):
    """The smallest C/2 sum (1 - z)^2 - lambda1 mean z + 1/2 |w|^2, in rational numbers."""
    m, d = X.shape
    R = [[Fraction(float(v)) * int(s) for v in row] + [Fraction(int(s))] * (bias != "none") for row, s in zip(X, y)]
    n = len(R[0])
    held = [1 if j < d or bias == "regularized" else 0 for j in range(n)]
    pull = [sum(row[j] for row in R) * (Fraction(C) + Fraction(lambda1) / m) for j in range(n)]
    M = [[Fraction(C) * sum(r[i] * r[j] for r in R) + (held[i] if i == j else 0) for j in range(n)] for i in range(n)]
    for i in range(n):
        for k in range(i + 1, n):
            by = M[k][i] / M[i][i]
            M[k] = [a - by * b for a, b in zip(M[k], M[i])]
            pull[k] -= by * pull[i]
    w = [Fraction(0)] * n
    for i in reversed(range(n)):
        w[i] = (pull[i] - sum(M[i][j] * w[j] for j in range(i + 1, n))) / M[i][i]
    z = [sum(a * b for a, b in zip(row, w)) for row in R]
    norm = sum(h * v * v for h, v in zip(held, w)) / 2
    return float(norm + Fraction(C) / 2 * sum((1 - v) ** 2 for v in z) - Fraction(lambda1) / m * sum(z))


@pytest.mark.slow
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("far", [1e6, 1e8])
def test_a_far_column_is_in_the_gap(bias, far):
    """Entries of 1e12 and more have lost what tells the labels: no claim may be surer than that."""
    for seed in range(2):
        X, y = far_column(seed, far)
        found = claims("lsldm", y, plain_kernels(X), C=4, lambda1=1, lambda2=0, bias=bias, time_limit=2)
        assert_consistent(found)
        optimum = least_squares_optimum(X, y, 4, 1, bias)
        for low, objective, who in found:
            assert low <= optimum * (1 + SAME) and optimum <= objective * (1 + SAME), (optimum, who)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["svm", "ldm", "lsvm", "lssvm"])
def test_columns_of_any_scale(objective):
    """Sixteen orders of magnitude between columns, as rows and as matrices."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((30, 3)) * 10.0 ** rng.uniform(-8, 8, 3)
        y = np.where(X @ (rng.standard_normal(3) / X.std(axis=0)) + 0.5 * rng.standard_normal(30) > 0, 1, 0)
        found = claims(objective, y, plain_kernels(X), bias="regularized", time_limit=1)
        assert_consistent(found)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_values_computed_by_others(kernel):
    """The library's kernel, a function, and a matrix, over rows far from the origin."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 4)) + 1e4
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(40) > 1e4, 1, 0)
    if kernel == "rbf":
        given = {"kernel": "rbf", "gamma": 0.3}

        def values(A, B):
            return np.exp(-0.3 * ((A[:, None] - B[None]) ** 2).sum(axis=2))
    else:
        given = {"kernel": "poly", "gamma": 1e-8, "degree": 2, "coef0": 1.0}

        def values(A, B):
            return (1e-8 * (A @ B.T) + 1.0) ** 2

    ways = {
        "ours": (X, given),
        "function": (X, {"kernel": values}),
        "matrix": (values(X, X), {"kernel": "precomputed"}),
    }
    for objective in ("svm", "lssvm", "ldm"):
        assert_consistent(claims(objective, y, ways, C=100.0, bias="none"))


@pytest.mark.parametrize("objective", ["svm", "ldm", "lssvm", "lsvm"])
def test_ordinary_kernels_keep_their_digits(objective):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(200) > 0, 1, 0)
    c = mdlearn.fit(objective, X, y, kernel="rbf", tol=2e-12).certificate
    assert c.converged and c.gap <= 2e-12


@pytest.mark.parametrize("least", [-1e-3, -1e-6])
@pytest.mark.parametrize("m", [60, 1500])
def test_a_matrix_that_is_not_semidefinite_is_refused(least, m):
    """Also where the part that is negative is one direction among many."""
    rng = np.random.default_rng(1)
    Q = np.linalg.qr(rng.standard_normal((m, m if m < 100 else 100)))[0]
    values = np.append(np.linspace(0.1, 1.0, Q.shape[1] - 1), least * (1 if m < 100 else 15))
    K = (Q * values) @ Q.T
    y = np.where(rng.standard_normal(m) > 0, 1, 0)
    K = (K + K.T) / 2

    def values(A, B):
        return K[np.ix_(A[:, 0].astype(int), B[:, 0].astype(int))]

    with pytest.raises(ValueError, match="the matrix of kernel 'precomputed' is not positive semidefinite"):
        mdlearn.fit("svm", K, y, kernel="precomputed")
    with pytest.raises(ValueError, match="the matrix of the callable kernel is not positive semidefinite"):
        mdlearn.fit("svm", np.arange(m)[:, None], y, kernel=values)


def test_a_small_deficit_is_in_the_gap():
    """What rounding of a matrix that went through many hands may leave: an answer, and a gap that says so.

    The optima of the nearest matrices without a deficit, 1/2 y'(K + I / C)^-1 y, lie between bound and objective.
    """
    rng = np.random.default_rng(1)
    Q = np.linalg.qr(rng.standard_normal((60, 60)))[0]
    values = np.append(np.linspace(0.0, 1.0, 59), -3e-10)
    K = (Q * values) @ Q.T
    y = np.where(rng.standard_normal(60) > 0, 1, 0)
    c = mdlearn.fit("lssvm", (K + K.T) / 2, y, kernel="precomputed", C=1e4, bias="none", tol=1e-12).certificate
    assert not c.converged and 1e-12 < c.gap < 1e-4
    for semidefinite in (np.maximum(values, 0.0), values + 3e-10):
        optimum = 0.5 * (np.square(Q.T @ (2.0 * y - 1.0)) / (semidefinite + 1e-4)).sum()
        assert c.lower_bound < optimum < c.objective


@pytest.mark.parametrize("kernel", ["poly", "rbf"])
def test_what_forming_the_matrix_lost_is_in_the_doubt(kernel):
    """Forty equal columns, each of them nothing beside a large one, are lost alike in all entries."""
    far, times = 2.0**27, 40
    x = np.random.default_rng(0).uniform(0.3, 0.9, 30) * np.resize([1.0, -1.0], 30)
    rows = DenseRows(np.c_[np.full(30, far), np.repeat(x[:, None], times, axis=1)])
    if kernel == "poly":
        features = KernelFeatures(rows, Kernel("poly", {"gamma": 1.0, "degree": 1, "coef0": 0.0}))
        told, rest = far * far, times * np.outer(x, x)
    else:
        features = KernelFeatures(rows, Kernel("rbf", {"gamma": far**-2}))
        told, rest = 1.0, np.expm1(-times * (x[:, None] - x) ** 2 / far**2)
    _, G = drain(features.gram())
    off = np.abs((G - told - rest) @ x)
    assert off.any() and (off <= features.blur(x)).all()


@pytest.mark.parametrize("kernel", ["precomputed", "single", "callable"])
def test_a_rounding_of_every_value_that_others_computed_is_in_the_doubt(kernel, rng):
    """Whole numbers, and the same a rounding larger or smaller, all the way that moves decision values most."""
    A, dtype = rng.integers(-3, 4, (30, 5)).astype(float), np.float32 if kernel == "single" else np.float64
    K, coef = A @ A.T, rng.standard_normal(30)
    G = (K * (1.0 + np.finfo(dtype).eps * np.sign(K * np.outer(coef, coef)))).astype(dtype)
    if kernel == "callable":
        values = CallableKernel("callable", {}, lambda a, b: G[np.ix_(a[:, 0].astype(int), b[:, 0].astype(int))])
        features = KernelFeatures(DenseRows(np.arange(30.0)[:, None]), values)
    else:
        features = KernelFeatures(DenseRows(G), Kernel("precomputed", {}))
    drain(features.gram())
    off = np.abs((G - K) @ coef)
    assert off.any() and (off <= features.blur(coef)).all()


def test_a_constraint_missed_at_zero_is_no_division():
    column = Column(np.array([1.0, -1.0]), np.ones(2), 0.0, 0.0, (HingeTerm(np.inf),))
    with np.errstate(all="raise"):
        assert _growth_against_rounding(column, np.array([0.0, 2.0]), np.zeros(2)) == np.inf
        assert _growth_against_rounding(column, np.array([0.5, 2.0]), np.zeros(2)) == 2.0


LOSSES = {
    "hinge": (HingeTerm(1e3),),
    "squared hinge": (HingeTerm(1e3, power=2),),
    "squared": (HingeTerm(10.0, power=2), HingeTerm(10.0, side=-1, power=2)),
    "logistic": (LogisticTerm(1e3),),
    "constraint": (HingeTerm(np.inf),),
    "none": (),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_doubts_of_an_objective_are_seen_without_a_pass_over_the_rows(kernel, loss):
    """And what is said of a point is said of it again."""
    rng, seen = np.random.default_rng(0), 0
    for trial in range(200):
        X = rng.standard_normal((12, 3)) * 10.0 ** rng.uniform(-4, 4, 3)
        rows = DenseRows(X)
        features = LinearFeatures(rows) if kernel == "linear" else KernelFeatures(rows, Kernel("rbf", {"gamma": 1e-10}))
        if kernel == "rbf":
            list(features.gram())
        y = np.where(rng.random(12) < 0.5, 1.0, -1.0)
        column = Column(y, np.ones(12), *(10.0 ** rng.uniform(-3, 3, 2)), LOSSES[loss])
        form = MarginForm(features, (column,), str(rng.choice(["none", "regularized"])))
        coef = 10.0 ** rng.uniform(-3, 8) * rng.standard_normal(features.width)
        if kernel == "rbf":  # values are near 1: sums cancel
            coef -= coef.mean()
        value, _, factor = primal(form, column, coef, 0.5)
        if not np.isfinite(value):
            continue
        told = certain_point(form, column, value, factor * coef, factor * 0.5)
        if told.objective > value + 1e-9 * abs(value):
            seen += 1
            assert rounding_may_show(form, column, value, factor * coef, factor * 0.5), trial
        if np.isfinite(told.objective):
            value = primal(form, column, told.coef, told.intercept)[0]
            again = certain_point(form, column, value, told.coef, told.intercept)
            assert again.objective <= told.objective + 1e-14 * abs(told.objective)
    assert seen > 0 or kernel == "linear" or loss == "constraint"


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 7, 12, 31, 200])
@pytest.mark.parametrize("shape", [(6,), (5, 40), (0, 3)])
def test_powers_are_off_by_a_rounding_per_degree(degree, shape, monkeypatch):
    """Against exact fractions, piece by piece."""
    monkeypatch.setattr(kernels, "POWER_ENTRIES", 64)
    rng = np.random.default_rng(degree)
    x = rng.uniform(0.3, 1.3, shape) * rng.choice([-1.0, 1.0], shape)
    powers = kernels.raised_to_degree(x.copy(), degree)
    for base, power in zip(x.ravel().tolist(), powers.ravel().tolist()):
        exact = Fraction(base) ** degree
        assert abs(Fraction(power) - exact) <= degree * Fraction(2) ** -53 * abs(exact)


def test_polynomial_values_are_those_of_exact_fractions():
    rng = np.random.default_rng(0)
    A, B, params = rng.standard_normal((7, 3)), rng.standard_normal((5, 3)), {"gamma": 0.5, "degree": 5, "coef0": 1.0}
    kernel, left, right = Kernel("poly", params), DenseRows(A), DenseRows(B)
    off = np.add.outer(kernel_half_roundings(kernel, left), kernel_half_roundings(kernel, right))
    off *= 2.0**-53 * np.sqrt(np.outer(kernel.diagonal(left), kernel.diagonal(right)))
    K = kernel.block(left, right)
    for i, a in enumerate(A.tolist()):
        for j, b in enumerate(B.tolist()):
            exact = (Fraction(1, 2) * sum(Fraction(s) * Fraction(t) for s, t in zip(a, b)) + 1) ** 5
            assert abs(Fraction(float(K[i, j])) - exact) <= Fraction(float(off[i, j]))


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_roundings_of_sparse_rows_are_those_of_dense_ones(name, monkeypatch):
    """Without writing them out: they may have tens of thousands of columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 40)) * 10.0 ** rng.integers(-9, 9, (60, 40)) * (rng.random((60, 40)) < 0.3)
    X[7] = 0.0
    kernel = Kernel(name, {"gamma": 0.1, **({"degree": 3, "coef0": 1.0} if name == "poly" else {})})
    dense = kernel_half_roundings(kernel, DenseRows(X))
    monkeypatch.setattr(CsrRows, "block", lambda *_: pytest.fail("rows are written out"))
    monkeypatch.setattr(rows_module, "SPAN_ENTRIES", 300)
    np.testing.assert_allclose(kernel_half_roundings(kernel, CsrRows(sparse.csr_array(X))), dense, rtol=1e-13)
    assert len(set(dense.tolist())) > 30
