"""Constraints that a caller puts on linear coefficients: optima of another solver, feasible points, clear refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import mdlearn

M, D = 40, 4
OBJECTIVES = {
    "svm": ({"C": 0.7}, lambda z: 0.7 * np.maximum(0.0, 1.0 - z).sum()),
    "lsvm": ({"nu": 0.9}, lambda z: 0.45 * np.square(np.maximum(0.0, 1.0 - z)).sum()),
    "ldm": (
        {"C": 0.3, "lambda1": 2.0, "lambda2": 1.0},
        lambda z: 2.0 * 2.0 * z.var() - z.mean() + 0.3 * np.maximum(0.0, 1.0 - z).sum(),
    ),
}


def rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((M, D))
    return X, np.where(X @ np.array([1.0, -1.0, 0.6, 0.0]) + rng.standard_normal(M) > 0, 1.0, -1.0)


def cases(X):
    """Constraints as a fit gets them, with the matrix and limits of A w <= b that they are."""
    eye, group = np.eye(D), X[:, 0] + X[:, 2] > 0
    difference = X[group].mean(axis=0) - X[~group].mean(axis=0)
    A = np.random.default_rng(1).standard_normal((3, D))
    return {
        "bounds": ({"bounds": (-0.2, 0.3)}, np.vstack([eye, -eye]), np.repeat([0.3, 0.2], D)),
        "bounds by column": (
            {"bounds": [(0.1, None), (None, None), (None, 0.2), (-0.1, 0.1)]},
            np.vstack([-eye[0], eye[2], eye[3], -eye[3]]),
            np.array([-0.1, 0.2, 0.1, 0.1]),
        ),
        "nonnegative": ({"nonnegative": [1, -1]}, -eye[[1, 3]], np.zeros(2)),
        "monotone": ({"monotone": {0: -1, 1: 1}}, np.vstack([eye[0], -eye[1]]), np.zeros(2)),
        "fairness": ({"fairness": (group, 0.05)}, np.vstack([difference, -difference]), np.full(2, 0.05)),
        "A_ub": ({"A_ub": A, "b_ub": [-0.1, 0.2, 0.0]}, A, np.array([-0.1, 0.2, 0.0])),
        "several": (
            {"nonnegative": True, "fairness": (group, 0.1), "bounds": (None, 0.4)},
            np.vstack([-eye, eye, difference, -difference]),
            np.concatenate([np.zeros(D), np.full(D, 0.4), np.full(2, 0.1)]),
        ),
    }


def reference(name, X, y, A, b):
    """Least objective, of the problem with a slack for every hinge, by SLSQP; none of its numbers is the fit's."""
    loss = OBJECTIVES[name][1]
    Z = np.column_stack([X, np.ones(M)])
    n = D + 1

    def smooth(v):
        z = y * (Z @ v[:n])
        plain = 0.5 * v[:n] @ v[:n]
        if name == "lsvm":
            return plain + 0.45 * np.square(v[n:]).sum()
        extra = 4.0 * z.var() - z.mean() if name == "ldm" else 0.0
        return plain + extra + OBJECTIVES[name][0]["C"] * v[n:].sum()

    wide = np.zeros((A.shape[0], n + M))
    wide[:, :D] = -A
    hinges = np.column_stack([y[:, None] * Z, np.eye(M)])
    slacks = np.column_stack([np.zeros((M, n)), np.eye(M)])
    G, h = np.vstack([wide, hinges, slacks]), np.concatenate([-b, np.ones(M), np.zeros(M)])
    start = np.concatenate([np.zeros(n), np.ones(M)])
    limits = {"type": "ineq", "fun": lambda v: G @ v - h, "jac": lambda v: G}
    found = minimize(smooth, start, constraints=[limits], method="SLSQP", options={"maxiter": 2000, "ftol": 1e-14})
    v = found.x[:n]
    return 0.5 * v @ v + loss(y * (Z @ v)), float((A @ v[:D] - b).max())


@pytest.mark.parametrize("case", cases(rows()[0]))
@pytest.mark.parametrize("name", OBJECTIVES)
def test_optima_are_those_of_another_solver(name, case):
    X, y = rows()
    settings, A, b = cases(X)[case]
    least, missed = reference(name, X, y, A, b)
    model = mdlearn.fit(name, X, y, tol=1e-10, **OBJECTIVES[name][0], **settings)
    w = model.coef_[0]
    assert (A @ w - b).max() <= 1e-9 and model.certificate.converged
    z = y * model.decision_function(X)
    value = 0.5 * (w @ w + model.intercept_[0] ** 2) + OBJECTIVES[name][1](z)
    assert model.certificate.objective == pytest.approx(value, rel=1e-10)
    assert missed <= 1e-7  # of the reference
    assert value <= least + 1e-8 * abs(least) + 10.0 * max(missed, 0.0) * abs(least)
    assert model.certificate.lower_bound <= least + 1e-8 * abs(least) + 10.0 * max(missed, 0.0) * abs(least)


def test_groups_have_means_by_weight_and_weights_are_repetitions():
    X, y = rows(2)
    group, weight = X[:, 1] > 0, np.random.default_rng(3).integers(0, 3, M)
    model = mdlearn.fit("svm", X, y, sample_weight=weight, fairness=(group, 0.02), tol=1e-9)
    f = model.decision_function(X)
    means = [np.average(f[own], weights=weight[own]) for own in (group, ~group)]
    assert abs(means[0] - means[1]) <= 0.02 + 1e-9
    again = np.repeat(np.arange(M), weight)
    other = mdlearn.fit("svm", X[again], y[again], fairness=(group[again], 0.02), tol=1e-9)
    np.testing.assert_allclose(other.coef_, model.coef_, atol=1e-5)


def test_regression_and_names_of_columns():
    pandas = pytest.importorskip("pandas")
    X, _ = rows(4)
    t = X @ np.array([1.0, -1.0, 0.5, 0.0])
    frame = pandas.DataFrame(X, columns=["age", "rent", "size", "noise"])
    model = mdlearn.fit("svr", frame, t, monotone={"rent": 1, "age": 1}, nonnegative=["noise"])
    assert model.coef_[0, 1] == 0.0 and model.coef_[0, 0] > 0.5 and model.coef_[0, 3] >= 0.0
    with pytest.raises(ValueError, match=r"names the column 'agee'.*did you mean 'age'"):
        mdlearn.fit("svr", frame, t, nonnegative=["agee"])


def test_bounds_of_decision_values_are_those_of_the_constrained_optimum():
    X, y = rows(5)
    exact = mdlearn.fit("svm", X, y, nonnegative=True, tol=1e-11).decision_function(X)
    lower, upper = mdlearn.fit("svm", X, y, nonnegative=True, tol=1e-3).decision_bounds(X)
    assert (lower <= exact).all() and (exact <= upper).all()


def test_groups_of_equal_means_are_no_constraint():
    """Their difference is rounding, which no equation is made of."""
    half = np.random.default_rng(0).standard_normal(50)
    X = np.column_stack([np.full(100, 0.1), np.tile(half, 2)])
    X[50:] = X[50:][::-1]
    y, group = np.where(X[:, 1] > 0, 1, -1), np.repeat([0, 1], 50)
    free = mdlearn.fit("svm", X, y, bias="none")
    fair = mdlearn.fit("svm", X, y, bias="none", fairness=(group, 0.0))
    assert fair.certificate.objective == pytest.approx(free.certificate.objective, rel=1e-5)


def test_one_column_and_a_move_of_rounding():
    X, y = [[1.3], [0.2], [1.4], [0.2]], [-1, 1, -1, 1]
    model = mdlearn.fit("svm", X, y, fairness=([0, 0, 1, 1], 0.0), bounds=(-1, 1))
    assert abs(model.coef_[0, 0]) <= 1e-12 and model.certificate.converged


def test_float32_coefficients_stay_within_their_bounds():
    X, y = rows(6)
    model = mdlearn.fit("svm", X.astype(np.float32), y, bounds=(-0.3, 0.3))
    assert model.coef_.dtype == np.float32 and (np.abs(model.coef_.astype(np.float64)) <= 0.3).all()


@pytest.mark.parametrize(
    "settings, match",
    [
        ({"kernel": "rbf", "nonnegative": True}, "linear coefficients"),
        ({"nonnegative": [4]}, "column of nonnegative"),
        ({"nonnegative": "age"}, "list of columns"),
        ({"nonnegative": ["age"]}, "'age', which X does not have"),
        ({"monotone": [1]}, "mapping of columns"),
        ({"monotone": {0: 2}}, "1 \\(f rises\\) or -1"),
        ({"monotone": {0: 1}, "bounds": (None, -1.0)}, "contradict"),
        ({"bounds": (0.0, 1.0, 2.0)}, "one pair"),
        ({"bounds": (1.0, 0.0)}, "lower <= upper"),
        ({"bounds": (np.inf, None)}, "finite coefficients"),
        ({"bounds": (None, -np.inf)}, "finite coefficients"),
        ({"bounds": (0, 10**400)}, "numbers, or None"),
        ({"A_ub": 1j * np.eye(D), "b_ub": np.ones(D)}, "A_ub needs real numbers"),
        ({"A_ub": [["a"] * D], "b_ub": [1.0]}, "A_ub needs real numbers"),
        ({"A_ub": [[1.0], [1.0, 2.0]], "b_ub": [1.0, 1.0]}, "A_ub needs real numbers"),
        ({"A_ub": np.eye(D), "b_ub": np.ones((D, 1))}, "b_ub needs real numbers"),
        ({"monotone": {0: np.ones(2)}}, "1 .f rises. or -1"),
        ({"fairness": (np.array(["a", None] * (M // 2), dtype=object), 0.1)}, "values of one kind"),
        ({"fairness": (np.where(np.arange(M) % 2, np.nan, 1.0), 0.1)}, "two values"),
        ({"bounds": ("a", 0.0)}, "numbers, or None"),
        ({"A_ub": np.eye(D)}, "belong together"),
        ({"A_ub": np.eye(3), "b_ub": np.ones(3)}, "one per feature"),
        ({"fairness": 0.1}, "pair"),
        ({"fairness": (np.ones(M), 0.1)}, "two values"),
        ({"fairness": (np.ones(3), 0.1)}, "one value for each"),
        ({"fairness": (np.arange(M) % 2, -1.0)}, "epsilon"),
    ],
    ids=str,
)
def test_what_constraints_cannot_be_is_said(settings, match):
    X, y = rows()
    with pytest.raises((ValueError, TypeError), match=match):
        mdlearn.fit("svm", X, y, **settings)


def test_other_problems_are_refused():
    X, y = rows()
    three = np.arange(M) % 3
    for multiclass in ("ovr", "ovo"):
        with pytest.raises(ValueError, match="two classes or a regression"):
            mdlearn.fit("svm", X, three, nonnegative=True, multiclass=multiclass)
    with pytest.raises(ValueError, match="two classes or a regression"):
        mdlearn.fit("ww", X, three, nonnegative=True)
    with pytest.raises(ValueError, match="declared losses"):
        mdlearn.fit("l3svm", X, y, nonnegative=True)
    with pytest.raises(ValueError, match="row blocks take no constraints"):
        mdlearn.fit("svm", lambda: iter([(X, y)]), None, nonnegative=True)
    with pytest.raises(ValueError, match="cannot take"):
        mdlearn.fit("svm", X, y, nonnegative=True, solver="cd")
