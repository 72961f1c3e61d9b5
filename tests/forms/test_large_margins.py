"""Tangents at margins of 1e13 whose differences are of size 1: a wrong mean of them would be a slope of its own."""

from fractions import Fraction

import numpy as np
import pytest

import mdlearn

ROWS = np.array(
    [
        [-5720.84997, 0.393336742, -20660.0118, 1092.47367, 27403.5661],
        [32716.7452, -10.1187987, 1997.94822, 486.964802, -10908.103],
        [4406.25792, 9.11260373, -414.987774, 1203.58521, -145398.267],
    ]
)


def exact_value(w, X, y, lambda1, lambda2, beta, ridge):
    """The objective without its loss, which is below 1, in rational numbers."""
    coef = [Fraction(float(v)) for v in w]
    z = [s * sum(Fraction(float(x)) * v for x, v in zip(row, coef)) for row, s in zip(X, y.astype(int).tolist())]
    mean = sum(z) / len(z)
    value = Fraction(lambda1) * sum((one - mean) ** 2 for one in z) / len(z) - Fraction(lambda2) * mean
    value += Fraction(beta) * sum(abs(v) for v in coef) + Fraction(ridge) / 2 * sum(v * v for v in coef)
    return float(value)


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize("times", [(2, 2, 3), (1, 1, 1), (5, 1, 7)])
def test_bounds_hold_where_margins_are_huge(times):
    X = np.repeat(ROWS, times, axis=0)
    y = np.repeat([-1.0, -1.0, 1.0], times)
    weights = {"lambda1": 0.06594409813, "lambda2": 0.05155156554, "beta": 0.09648025616, "ridge": 1e-6}
    values, bounds = [], []
    for n, repeated in [(20, True), (60, True), (200, True), (400, True), (400, False)]:
        rows = (X, y) if repeated else (ROWS, np.array([-1.0, -1.0, 1.0]))
        counts = None if repeated else np.array(times)
        how = {"alpha": 0.6157, "bias": "none", "solver": "apg", "max_iter": n, "tol": 1e-9}
        model = mdlearn.fit("mdlm", *rows, sample_weight=counts, **how, **weights)
        values.append(exact_value(model.coef_[0], X, y, **weights))
        bounds.append(model.certificate.lower_bound)
    least = min(values)
    assert least < -1e9
    assert max(bounds) <= least + 1e-12 * abs(least)
