"""Bounds of the optimum's decision values: it lies between them, they are as narrow as the gap says, or say why not."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from scipy import sparse

import mdlearn
from mdlearn.errors import ConvergenceWarning, UnprovenWarning
from mdlearn.forms.proof import judge

MACHINES = [
    ("svm", {"C": 10.0}),
    ("ldm", {"C": 1.0}),
    ("ldm", {"C": 5.0, "lambda1": 50.0}),
    ("lsvm", {"nu": 3.0}),
    ("lssvm", {"bias": "regularized"}),
]
KERNELS = [{"kernel": "linear"}, {"kernel": "rbf", "gamma": 0.3}, {"kernel": "poly", "degree": 2}]


def rows(m, d, seed, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d)) * np.geomspace(0.2, 5.0, d)
    score = X @ rng.standard_normal((d, classes)) + 2.0 * rng.standard_normal((m, classes))
    return X, score.argmax(axis=1)


def early(name, X, y, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return mdlearn.fit(name, X, y, **settings)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k["kernel"])
@pytest.mark.parametrize("name, params", MACHINES)
def test_the_optimum_lies_between_the_bounds_wherever_a_fit_ends(name, params, kernel):
    """The optimum is that of another engine to 1e-12; some bounds are so narrow that labels are certain."""
    X, y = rows(80, 4, seed=1)
    fresh, _ = rows(200, 4, seed=2)
    settings = {**params, **kernel}
    exact = early(name, X, y, tol=1e-12, solver="auto" if name == "lssvm" else "interior", **settings)
    exact = exact.decision_function(fresh)
    ends = [{"tol": tol} for tol in (0.3, 0.03, 1e-3, 1e-6)]
    certain = []
    for end in [*ends, {"solver": "interior", "max_iter": 3}] if name != "lssvm" else ends:
        model = early(name, X, y, **settings, **end)
        lower, upper = model.decision_bounds(fresh)
        f, slack = model.decision_function(fresh), 1e-6 * np.abs(exact).max()
        assert lower.shape == upper.shape == f.shape and (lower < f).all() and (f < upper).all()
        assert (lower - slack <= exact).all() and (exact <= upper + slack).all()
        labels = model.certified(fresh)
        np.testing.assert_array_equal(labels, (lower >= 0) | (upper < 0))
        np.testing.assert_array_equal(exact[labels] >= 0, f[labels] >= 0)
        certain.append(labels.mean())
    assert certain[3] > 0.98


def test_bounds_are_as_narrow_as_the_gap_says():
    """Coefficients of their own multipliers are sqrt(P - D) away from the optimum, others at most sqrt(2 (P - D))."""
    X, y = rows(300, 3, seed=3)
    for solver in ("cd", "newton", "hybrid", "interior"):
        model = early("lsvm", X, y, tol=1e-3, solver=solver)
        room = model.certificate.objective - model.certificate.lower_bound
        lower, upper = model.decision_bounds(X)
        half = 0.5 * (upper - lower) / np.sqrt((X**2).sum(axis=1) + 1.0)
        assert np.ptp(half) < 1e-9 * half[0] + 1e-12
        assert half[0] <= np.sqrt(2.0 * room) * (1 + 1e-6) + 3e-6 * np.sqrt(model.certificate.objective)
        assert half[0] >= np.sqrt(room) * (1 - 1e-6)


@pytest.mark.parametrize("apart", [0.0, 0.3, 1.0])
def test_the_distance_is_that_of_the_farthest_point(apart):
    """Among points t on a line with |t|^2 / 2 + |t - apart|^2 / 2 <= room, by a grid."""
    room, tiny = 0.7, 1e-300  # a modulus of 1, and no scale of a gap
    t = np.linspace(-3.0, 3.0, 600_001)
    inside = 0.5 * t**2 + 0.5 * (t - apart) ** 2 <= room
    found, unknown = (judge(room, 0.0, tiny, False, 1.0, 1.0, known).distance for known in (apart, None))
    assert found == pytest.approx(np.abs(t[inside]).max(), abs=2e-5)
    assert found <= unknown == pytest.approx(np.sqrt(2.0 * room), rel=1e-9)


@pytest.mark.parametrize("multiclass", ["ovr", "ovo", "fuzzy-min", "fuzzy-avg"])
@pytest.mark.parametrize("kernel", KERNELS[:2], ids=lambda k: k["kernel"])
def test_several_classes(multiclass, kernel):
    X, y = rows(150, 4, seed=4, classes=4)
    fresh, _ = rows(300, 4, seed=5)
    settings = {"multiclass": multiclass, "C": 3.0, **kernel}
    exact = early("svm", X, y, tol=1e-12, **settings)
    for tol in (0.1, 1e-3, 1e-6):
        model = early("svm", X, y, tol=tol, **settings)
        lower, upper = model.decision_bounds(fresh)
        there = exact.decision_function(fresh)
        assert lower.shape == there.shape
        assert (lower <= there + 1e-6).all() and (there - 1e-6 <= upper).all()
        certain = model.certified(fresh)
        assert (model.predict(fresh) == exact.predict(fresh))[certain].all()
    assert certain.mean() > 0.8


def test_one_problem_for_all_classes():
    X, y = rows(200, 3, seed=6, classes=3)
    exact = early("ww", X, y, tol=1e-11, bias="regularized")
    model = early("ww", X, y, tol=1e-2, bias="regularized")
    lower, upper = model.decision_bounds(X)
    there = exact.decision_function(X)
    assert (lower - 1e-6 <= there).all() and (there <= upper + 1e-6).all()


def test_weights_of_the_norm_and_of_the_objective():
    """The optimum of l2lr without a free bias: lam / 2 |w|^2 bends by lam."""
    X, y = rows(200, 3, seed=7)
    for bias in ("none", "regularized"):
        exact = early("l2lr", X, y, lam=0.02, bias=bias, tol=1e-12).decision_function(X)
        for tol in (0.1, 1e-3):
            lower, upper = early("l2lr", X, y, lam=0.02, bias=bias, tol=tol).decision_bounds(X)
            assert (lower <= exact).all() and (exact <= upper).all()


def test_explicit_features_and_sparse_and_float32_rows():
    X, y = rows(400, 4, seed=8)
    cases = [
        (X, {"kernel": "rbf", "gamma": 0.2, "approximation": "nystroem", "n_components": 30}),
        (sparse.csr_matrix(X * (np.abs(X) > 0.5)), {}),
        (sparse.csr_matrix(X * (np.abs(X) > 0.5)), {"kernel": "rbf", "gamma": 0.2}),
        (X.astype(np.float32), {}),
        (X.astype(np.float32), {"kernel": "rbf", "gamma": 0.2}),
    ]
    for A, settings in cases:
        wide = A.astype(np.float64)
        exact = early("svm", wide, y, tol=1e-11, random_state=0, **settings).decision_function(wide)
        lower, upper = early("svm", A, y, tol=1e-4, random_state=0, **settings).decision_bounds(A)
        assert (lower <= exact + 1e-6).all() and (exact <= upper + 1e-6).all() and (upper - lower).max() < 5.0


def test_where_nothing_is_proven_bounds_are_infinite_and_say_why():
    X, y = rows(60, 3, seed=9)
    K = X @ X.T
    for why, model, A in (
        ("free bias", early("svm", X, y, bias="free"), X),
        ("k\\(x, x\\)", early("svm", K, y, kernel="precomputed"), K),
        ("no distance", early("uldm", X, y, bias="none", kernel="rbf"), X),
        ("no lower bound|no distance", early("mdlm", X, y, ridge=0.0, bias="regularized"), X),
    ):
        with pytest.warns(UnprovenWarning, match=why):
            lower, upper = model.decision_bounds(A)
        assert (lower == -np.inf).all() and (upper == np.inf).all()
        with pytest.warns(UnprovenWarning, match=why):
            assert not model.certified(A).any()


def test_a_kernel_that_is_none_for_new_rows_proves_nothing_of_them():
    """x.z - 1/2 is semidefinite over rows whose first column is 1, and has k(x, x) < 0 at 0."""
    X = np.column_stack([np.ones(30), np.random.default_rng(0).standard_normal(30)])
    model = mdlearn.fit("svm", X, X[:, 1] > 0, kernel=lambda A, B: A @ B.T - 0.5, bias="none")
    lower, upper = model.decision_bounds([[0.0, 0.0]])
    assert lower == [-np.inf] and upper == [np.inf] and not model.certified([[0.0, 0.0]]).any()
    assert model.certified(X).mean() > 0.9


def test_regression_has_bounds_and_no_labels():
    rng = np.random.default_rng(10)
    X = rng.standard_normal((100, 3))
    t = X @ np.array([1.0, -2.0, 0.5]) + 0.1 * rng.standard_normal(100)
    exact = early("svr", X, t, tol=1e-11, bias="regularized").decision_function(X)
    model = early("svr", X, t, tol=1e-3, bias="regularized")
    lower, upper = model.decision_bounds(X)
    assert (lower <= exact).all() and (exact <= upper).all()
    with pytest.raises(TypeError, match="no labels"):
        model.certified(X)


def test_copies_and_files_keep_the_bounds(tmp_path):
    X, y = rows(80, 3, seed=11)
    for settings in ({}, {"kernel": "rbf"}):
        model = mdlearn.fit("svm", X, y, **settings)
        bounds = model.decision_bounds(X)
        model.save(tmp_path / "model.npz")
        for other in (copy.deepcopy(model), mdlearn.load(tmp_path / "model.npz")):
            np.testing.assert_array_equal(other.decision_bounds(X), bounds)
