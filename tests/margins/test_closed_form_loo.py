"""Leave-one-out margins in closed form against models that are trained without one row."""

import numpy as np
import pytest
from reference import gram

import mdlearn
from mdlearn.margins import lssvm_loo_margins, uldm_loo_margins

GRID = [1e-6, 1e-4, 1e-2, 1.0]


def sample(m=24, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.where(X[:, 0] + 0.6 * rng.standard_normal(m) > 0.2, 1.0, -1.0)
    return X, y


def uldm(F, y, w, C, lambda0, ridge):
    """Eq. (32) with weights: (C D + lambda0 K) beta = h'."""
    k = y[:, None] * F
    M = w.sum()
    h = w @ k / M
    K = (k - h).T @ (w[:, None] * (k - h)) / M
    return np.linalg.solve(C * np.diag(ridge) + lambda0 * K, h)


def without(w, i):
    w = np.array(w, dtype=float)
    w[i] -= 1
    return w


@pytest.mark.parametrize("columns", ["wide", "narrow"])
@pytest.mark.parametrize("lambda0", [1.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_uldm_against_brute_force(columns, lambda0, weighted):
    X, y = sample()
    rng = np.random.default_rng(1)
    F = np.asarray(gram(X, X, "rbf", 0.4, dtype=np.float64)) if columns == "wide" else X
    F = np.hstack([F, np.ones((24, 1))])
    w = rng.integers(0, 4, 24).astype(float) if weighted else np.ones(24)
    ridge = rng.uniform(0.3, 2.0, F.shape[1]) if weighted else np.ones(F.shape[1])
    told = uldm_loo_margins(F, y, GRID, lambda0, ridge if weighted else None, w if weighted else None)
    assert told.shape == (4, 24)
    for p, C in enumerate(GRID):
        for i in range(24):
            beta = uldm(F, y, without(w, i) if w[i] > 0 else w, C, lambda0, ridge)
            # The brute force itself solves systems of condition 1e7 at the smallest C.
            close = 1e-10 if C >= 1e-4 else 1e-8
            assert told[p, i] == pytest.approx(y[i] * (F[i] @ beta), rel=close, abs=1e-10)


def test_the_factor_of_the_averages_is_seen():
    """With C M in place of C (M - 1) the margins of few rows are far off."""
    X, y = sample(8)
    told = uldm_loo_margins(X, y, 0.1)[0]
    true = [y[i] * (X[i] @ uldm(X, y, without(np.ones(8), i), 0.1, 1.0, np.ones(3))) for i in range(8)]
    wrong = [y[i] * (X[i] @ uldm(X, y, without(np.ones(8), i), 0.1 * 8 / 7, 1.0, np.ones(3))) for i in range(8)]
    np.testing.assert_allclose(told, true, rtol=1e-11)
    assert np.abs(told - wrong).max() > 1e-3


def test_uldm_against_fitted_models():
    X, y = sample(16)
    G = np.asarray(gram(X, X, "rbf", 0.5, dtype=np.float64))
    told = uldm_loo_margins(np.hstack([G, np.ones((16, 1))]), y, [1e-3])[0]
    for i in range(16):
        w = without(np.ones(16), i)
        # All rows make the basis, the one left out too: it is given as columns of a linear kernel.
        model = mdlearn.fit("uldm", G, y, C=1e-3, basis="euclidean", sample_weight=w, tol=1e-13)
        assert told[i] == pytest.approx(model.margins(G[i : i + 1], y[[i]])[0], rel=1e-8)


@pytest.mark.parametrize("C", [1e-12, 1e-9])
def test_a_tiny_C_keeps_its_digits(C):
    """Well conditioned columns that interpolate: 1 - h t is of the size of C, and so are all differences from 1."""
    from decimal import Decimal, localcontext

    rng = np.random.default_rng(3)
    F = np.eye(6) + 0.2 * rng.standard_normal((6, 6))
    y = np.array([1.0, -1, 1, 1, -1, -1])
    told = uldm_loo_margins(F, y, C)[0]
    with localcontext() as context:
        context.prec = 60
        for i in range(6):
            k = [[Decimal(float(y[r] * F[r, j])) for j in range(6)] for r in range(6) if r != i]
            h = [sum(row[j] for row in k) / 5 for j in range(6)]
            A = [[sum((r[a] - h[a]) * (r[b] - h[b]) for r in k) / 5 for b in range(6)] for a in range(6)]
            for a in range(6):
                A[a][a] += Decimal(C)
            beta = eliminate(A, h)
            true = float(sum(Decimal(float(y[i] * F[i, j])) * beta[j] for j in range(6)))
            assert told[i] == pytest.approx(true, rel=1e-9)


def eliminate(A, b):
    n = len(b)
    M = [[*row, value] for row, value in zip(A, b)]
    for i in range(n):
        p = max(range(i, n), key=lambda r: abs(M[r][i]))
        M[i], M[p] = M[p], M[i]
        for r in range(i + 1, n):
            factor = M[r][i] / M[i][i]
            M[r] = [x - factor * z for x, z in zip(M[r], M[i])]
    x = [None] * n
    for i in reversed(range(n)):
        x[i] = (M[i][n] - sum(M[i][j] * x[j] for j in range(i + 1, n))) / M[i][i]
    return x


@pytest.mark.slow
@pytest.mark.parametrize("bias", ["free", "regularized", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_lssvm_against_fitted_models(bias, weighted):
    X, y = sample(18)
    w = np.random.default_rng(2).integers(0, 4, 18).astype(float) if weighted else np.ones(18)
    G = np.asarray(gram(X, X, "rbf", 0.5, dtype=np.float64))
    grid = [0.01, 1.0, 100.0]
    told = lssvm_loo_margins(G, y, grid, bias, w if weighted else None)
    for p, C in enumerate(grid):
        for i in range(18):
            left = without(w, i) if w[i] > 0 else w
            model = mdlearn.fit("lssvm", G, y, kernel="precomputed", C=C, bias=bias, sample_weight=left, tol=1e-12)
            assert told[p, i] == pytest.approx(y[i] * model.decision_function(G[i : i + 1])[0], rel=1e-7, abs=1e-9)


def test_integer_weights_are_repeated_rows():
    X, y = sample(12)
    w = np.random.default_rng(4).integers(1, 4, 12)
    rows = np.repeat(np.arange(12), w)
    F = np.hstack([X, np.ones((12, 1))])
    np.testing.assert_allclose(
        uldm_loo_margins(F, y, GRID, sample_weight=w)[:, np.repeat(np.arange(12), w)],
        uldm_loo_margins(F[rows], y[rows], GRID),
        rtol=1e-9,
    )
    G = X @ X.T
    np.testing.assert_allclose(
        lssvm_loo_margins(G, y, [1.0], sample_weight=w)[:, np.repeat(np.arange(12), w)],
        lssvm_loo_margins(G[np.ix_(rows, rows)], y[rows], 1.0),
        rtol=1e-9,
    )


@pytest.mark.parametrize(
    "change, match",
    [
        ({"C": -1.0}, "negative"),
        ({"C": 0.0, "columns": np.ones((6, 2))}, "independent"),
        ({"lambda0": 0.0}, "lambda0"),
        ({"ridge": [1.0]}, "ridge"),
        ({"sample_weight": [1, 1, 1, 1, 1, 0.5]}, "one repetition"),
        ({"y": [1, 1, 1, 1, 1, 1]}, "two"),
        ({"y": [1, 0]}, "one label per row"),
    ],
)
def test_wrong_input(change, match):
    X = np.random.default_rng(0).standard_normal((6, 2))
    settings = {"columns": X, "y": [0, 1, 0, 1, 0, 1], "C": 1.0} | change
    with pytest.raises(ValueError, match=match):
        uldm_loo_margins(**settings)


@pytest.mark.parametrize(
    "change, match",
    [
        ({"C": 0.0}, "C > 0"),
        ({"bias": "fre"}, "^bias='fre' .*; did you mean 'free'[?]$"),
        ({"G": np.ones((2, 3))}, "sym"),
    ],
)
def test_wrong_input_of_lssvm(change, match):
    with pytest.raises(ValueError, match=match):
        lssvm_loo_margins(**({"G": np.eye(2), "y": [0, 1], "C": 1.0} | change))
