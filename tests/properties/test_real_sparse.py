"""Real sets as sparse rows, from no variance term to a dominant one: a proven gap, checked outside the library."""

import data
import numpy as np
import pytest

import mdlearn

SHARES = {"0": 0.0, "m/16": 1 / 16, "m/4": 1 / 4, "16 m": 16.0}


def judge(name, C, lambda1, bias):
    X, labels = data.load_csr(name)
    m = X.shape[0]
    lambda1 = SHARES[lambda1] * m if lambda1 in SHARES else float(lambda1)
    lambda2 = 0.0 if lambda1 == 0 else 1.0
    model = mdlearn.fit("ldm", X, labels, C=C, lambda1=lambda1, lambda2=lambda2, bias=bias)
    certificate = model.certificate
    y = np.where(labels == model.classes_[1], 1.0, -1.0)
    w, b = model.coef_[0], model.intercept_[0]
    z = y * (X @ w + b)
    value = 0.5 * w @ w + 2 * lambda1 * z.var() - lambda2 * z.mean() + C * np.maximum(0, 1 - z).sum()
    value += 0.5 * b**2 if bias == "regularized" else 0.0
    assert certificate.objective == pytest.approx(value, rel=1e-10)
    bound = bound_of(model, X, y, C, lambda1, lambda2, bias)
    scale = max(abs(value), 0.01 * C * m)
    if bound is None or (value - bound) / scale > 1.001e-6:
        # Objective and bound may come from two points; the multipliers are those nearest to what the first one stands
        # for. Another fit's prove the same.
        given = {"C": C, "lambda1": lambda1, "lambda2": lambda2, "bias": bias}
        tight = mdlearn.fit("ldm", X, labels, solver="interior" if X.shape[1] < 500 else "cd", tol=1e-9, **given)
        bound = bound_of(tight, X, y, C, lambda1, lambda2, bias)
        assert certificate.lower_bound <= tight.certificate.objective * (1 + 1e-12)
    assert certificate.converged and (value - bound) / scale <= 1.001e-6


def bound_of(model, X, y, C, lambda1, lambda2, bias):
    m = X.shape[0]
    beta, alpha = model.duals[0], model.dual_coef_[0]
    sigma = y * alpha - beta - lambda2 / m
    u = X.T @ alpha
    bound = beta.sum() - 0.5 * u @ u - (0.5 * alpha.sum() ** 2 if bias == "regularized" else 0.0)
    bound -= sigma @ sigma / (2 * 4 * lambda1 / m) if lambda1 else 0.0
    assert beta.min() >= 0 and beta.max() <= C
    balanced = (
        abs(sigma).max() <= 1e-9 * (C + 1) if lambda1 == 0 else abs(sigma.sum()) <= 1e-6 * abs(sigma).sum() + 1e-12
    )
    if bias == "free":
        assert abs(alpha.sum()) <= 1e-9 * abs(alpha).sum()
    return bound if balanced else None


@pytest.mark.slow
@pytest.mark.parametrize("lambda1", ["0", "1", "m/16", "m/4", "16 m"])
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("bias", ["regularized", "free"])
@pytest.mark.parametrize("name", ["reuters_moneyfx", "mushroom"])
def test_wide_and_narrow(name, bias, C, lambda1):
    judge(name, C, lambda1, bias)


@pytest.mark.slow
@pytest.mark.parametrize("lambda1", ["0", "1", "m/16", "m/4", "16 m"])
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("name", ["a9a", "ijcnn1"])
def test_tall(name, bias, C, lambda1):
    judge(name, C, lambda1, bias)
