"""Leave-one-out by paths from one optimum against independent fits without a row each."""

import contextlib
import warnings

import numpy as np
import pytest
import scipy.sparse

import mdlearn
from mdlearn.selection.leave_one_out import pivots, row_paths, scores


def sample(m=40, d=3, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    place = X[:, 0] + 0.7 * rng.standard_normal(m)
    return X, np.digitize(place, np.linspace(-0.6, 0.6, classes - 1) if classes > 2 else [0.2])


def refitted(name, X, y, w, **params):
    """Decision values of every row of positive weight, each by a fit of its own; NaN for the others."""
    out = []
    for i in range(len(y)):
        left = np.array(w, dtype=float)
        left[i] -= w[i] > 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # 1e-14 is below what rounding allows
            model = mdlearn.fit(name, X, y, sample_weight=left, tol=1e-14, **params)
        out.append(model.decision_function(X[i : i + 1])[0])
    out = np.array(out)
    out[np.asarray(w) == 0] = np.nan
    return out


@pytest.fixture
def no_refits(monkeypatch):
    """Refits are an error: every row has to be followed from the optimum of all."""
    monkeypatch.setattr(scores, "MOST_FITS", 0)


POINTS = {
    "svm": [{"C": 0.1}, {"C": 20.0}],
    "lsvm": [{"nu": 0.3}, {"nu": 30.0}],
    "ldm": [{"C": 2.0}, {"C": 1.0, "lambda1": 8.0, "lambda2": 3.0}, {"C": 0.5, "lambda1": 0.0, "lambda2": 0.2}],
}


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("kernel", [{}, {"kernel": "rbf", "gamma": 0.4}], ids=["linear", "rbf"])
@pytest.mark.parametrize("name, params", [(name, params) for name, points in POINTS.items() for params in points])
def test_values_are_those_of_fits_without_a_row(name, params, kernel, bias, monkeypatch):
    X, y = sample()
    # Without a row at the kink a free intercept is not unique, and a fit has to choose it.
    monkeypatch.setattr(scores, "MOST_FITS", 1 if (name, bias) == ("svm", "free") else 0)
    found = mdlearn.cross_validate(name, X, y, cv="loo", bias=bias, **kernel, **params)
    true = refitted(name, X, y, np.ones(40), bias=bias, **kernel, **params)
    np.testing.assert_allclose(found.decision, true, rtol=0, atol=1e-6)
    assert len(found.certificates) <= scores.MOST_FITS


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("name, params", [("l2lr", {"lam": 0.01}), ("l2lr", {"lam": 1e-4}), ("mlr", {"alpha": 8.0})])
def test_logistic_losses(name, params, bias, no_refits):
    X, y = sample()
    w = np.random.default_rng(1).integers(1, 3, 40)
    found = mdlearn.cross_validate(name, X, y, cv="loo", bias=bias, sample_weight=w, **params)
    true = refitted(name, X, y, w, bias=bias, **params)
    np.testing.assert_allclose(found.decision, true, rtol=0, atol=1e-6)
    assert found.certificates == ()


@pytest.mark.parametrize("kernel", [{}, {"kernel": "rbf", "gamma": 0.4}], ids=["linear", "rbf"])
@pytest.mark.parametrize("name", ["svm", "lsvm", "ldm"])
def test_weights_are_repetitions(name, kernel, no_refits):
    X, y = sample()
    w = np.random.default_rng(1).integers(0, 4, 40)
    found = mdlearn.cross_validate(name, X, y, cv="loo", sample_weight=w, **kernel)
    np.testing.assert_allclose(found.decision, refitted(name, X, y, w, **kernel), rtol=0, atol=1e-6)
    many = np.repeat(np.arange(40), w)
    apart = mdlearn.cross_validate(name, X[many], y[many], cv="loo", **kernel)
    np.testing.assert_allclose(apart.decision, found.decision[many], rtol=0, atol=1e-9)
    assert apart.scores == pytest.approx(found.scores, rel=1e-13)


WAYS = [(name, way) for name in ("svm", "ldm", "l2lr") for way in ("ovr", "ovo", "fuzzy-min")][:-1]


@pytest.mark.parametrize("name, multiclass", WAYS)
def test_several_classes(name, multiclass, no_refits):
    X, y = sample(36, classes=3)
    found = mdlearn.cross_validate(name, X, y, cv="loo", multiclass=multiclass)
    true = refitted(name, X, y, np.ones(36), multiclass=multiclass)
    np.testing.assert_allclose(found.decision, true, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kernel", [{}, {"kernel": "rbf", "gamma": 0.4}], ids=["linear", "rbf"])
@pytest.mark.parametrize("name", ["svr"])
def test_regression(name, kernel, no_refits):
    X, _ = sample()
    t = np.sin(2.0 * X[:, 0]) + 0.3 * np.random.default_rng(2).standard_normal(40)
    found = mdlearn.cross_validate(name, X, t, cv="loo", **kernel)
    np.testing.assert_allclose(found.decision, refitted(name, X, t, np.ones(40), **kernel), rtol=0, atol=1e-6)


def test_a_row_that_turns_the_plane_takes_steps_of_its_own():
    X, y = sample()
    X[3] *= 40.0
    found = mdlearn.cross_validate("l2lr", X, y, cv="loo", lam=1e-5)
    np.testing.assert_allclose(found.decision, refitted("l2lr", X, y, np.ones(40), lam=1e-5), rtol=1e-7, atol=1e-6)
    assert found.certificates == ()


def test_rows_without_a_multiplier_leave_the_optimum_as_it_is():
    X, y = sample()
    model = mdlearn.fit("svm", X, y, tol=1e-12)
    free = np.flatnonzero(model.duals[0] == 0)
    found = mdlearn.cross_validate("svm", X, y, cv="loo")
    assert 5 < free.shape[0] < 35
    np.testing.assert_allclose(found.decision[free], model.decision_function(X[free]), rtol=0, atol=1e-7)


def test_rows_on_a_grid_have_many_optimal_multipliers():
    """More rows are at the kink than there are coefficients, and multipliers are not unique."""
    X = np.array([(a, b) for a in range(6) for b in range(6)], dtype=float)
    y = ((X.sum(axis=1) + (X[:, 0] % 2)) > 5.5).astype(int)
    found = mdlearn.cross_validate("svm", X, y, cv="loo", C=1.0)
    np.testing.assert_allclose(found.decision, refitted("svm", X, y, np.ones(36), C=1.0), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype, order", [(np.float32, "F"), (np.float64, "C")])
def test_rows_that_cannot_be_written(dtype, order, no_refits):
    X, y = sample()
    A = np.array(X, dtype=dtype, order=order)
    A.setflags(write=False)
    found = mdlearn.cross_validate("lsvm", A, y, cv="loo")
    wide = mdlearn.cross_validate("lsvm", A.astype(float), y, cv="loo")
    np.testing.assert_allclose(found.decision, wide.decision, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["svm", "ldm", "lsvm"])
def test_sparse_rows_wider_than_they_are_many(name, no_refits):
    X, y = sample(24, d=60)
    X[np.abs(X) < 1.0] = 0.0
    found = mdlearn.cross_validate(name, scipy.sparse.csr_matrix(X), y, cv="loo", bias="free")
    np.testing.assert_allclose(found.decision, refitted(name, X, y, np.ones(24), bias="free"), rtol=0, atol=1e-6)


def test_a_named_engine_makes_every_fit():
    X, y = sample(15)
    found = mdlearn.cross_validate("svm", X, y, cv="loo", solver="cd", tol=1e-9)
    assert len(found.certificates) == 15 and all(one.converged for one in found.certificates)


def test_a_callback_ends_the_fit_of_all_rows():
    X, y = sample()
    with pytest.warns(mdlearn.ConvergenceWarning, match="callback"):
        found = mdlearn.cross_validate("svm", X, y, cv="loo", callback=lambda state: True)
    assert np.isnan(found.scores).all()


@pytest.mark.parametrize("seconds, scored", [(50.0, True), (200.0, False)])
def test_a_response_that_would_not_end_in_time_is_not_begun(seconds, scored, monkeypatch, clock):
    """One call of LAPACK goes on whatever the time is."""
    monkeypatch.setattr(row_paths, "symmetric_eigen_seconds", lambda order: seconds)
    X, y = sample()
    with contextlib.nullcontext() if scored else pytest.warns(mdlearn.ConvergenceWarning, match="time_limit reached"):
        found = mdlearn.cross_validate("svm", X, y, cv="loo", kernel="rbf", time_limit=100.0)
    assert np.isfinite(found.scores).all() == scored


@pytest.mark.parametrize("kernel", [{}, {"kernel": "rbf", "gamma": 0.4}], ids=["linear", "rbf"])
def test_a_response_without_its_digits_is_not_used(kernel, monkeypatch):
    """Every row is fitted then, and the values are those of the paths."""
    X, y = sample(20)
    found = mdlearn.cross_validate("svm", X, y, cv="loo", tol=1e-12, **kernel)
    kind = pivots.GramPivots if kernel else pivots.LinearPivots
    response = kind.response
    monkeypatch.setattr(kind, "response", lambda self, base: 1.001 * response(self, base))
    fitted = mdlearn.cross_validate("svm", X, y, cv="loo", tol=1e-12, **kernel)
    assert found.certificates == () and len(fitted.certificates) > 5
    np.testing.assert_allclose(fitted.decision, found.decision, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["svm", "ldm"])
def test_rows_far_from_the_ends_of_their_pieces_are_looked_at_last(name, no_refits, monkeypatch):
    """Paths among few rows end at the same optimum, or are followed again among all."""
    X, y = sample()
    found = mdlearn.cross_validate(name, X, y, cv="loo")
    for near in (1, 6, 20):
        monkeypatch.setattr(pivots, "LOO_NEAR_ROWS", near)
        other = mdlearn.cross_validate(name, X, y, cv="loo")
        np.testing.assert_allclose(other.decision, found.decision, rtol=0, atol=1e-9)
