"""partial_fit: the objective that rows in portions stand for, what is kept between calls, what cannot be streamed."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="estimators need scikit-learn")

import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.preprocessing import scale

import mdlearn
import mdlearn.sklearn as ms
from mdlearn._solvers.sgd import Problem, Walk, walk_dense
from mdlearn.solvers.stochastic.portions import portion_row_order

X, y = make_classification(2000, 12, n_informative=6, flip_y=0.1, random_state=0)
X = scale(X)


def streamed(clf, A, b, size=200, passes=1, weight=None, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(passes):
        order = rng.permutation(len(b))
        for start in range(0, len(b), size):
            at = order[start : start + size]
            w = None if weight is None else weight[at]
            clf.partial_fit(A[at], b[at], classes=np.unique(b), sample_weight=w)
    return clf


def ldm_value(clf, A, b, counts):
    """The LDM's objective, eq. (5) of the paper with a regularized bias, written out."""
    p, m = clf.model_.params, counts.sum()
    z = np.where(b == 1, 1, -1) * (A @ clf.coef_[0] + clf.intercept_[0])
    mean = counts @ z / m
    square = clf.coef_[0] @ clf.coef_[0] + clf.intercept_[0] ** 2
    variance = counts @ (z - mean) ** 2 / m
    loss = counts @ np.maximum(0, 1 - z)
    return square / 2 + 2 * p["lambda1"] * variance - p["lambda2"] * mean + p["C"] * loss


# ---------------------------------------------------------------- what is approached


@pytest.mark.parametrize("weighted", [False, True])
def test_passes_approach_the_certified_optimum(weighted):
    """About 1 percent after five passes, as the docstring of partial_fit says; averaged steps come closer."""
    weight = np.arange(2000) % 4 + 0.5 if weighted else np.ones(2000)
    best = ms.LDMClassifier(C=0.01).fit(X, y, sample_weight=weight)
    ends = {}
    for solver in ("asgd", "sgd"):
        for seed in (0, 1):
            clf = ms.LDMClassifier(C=0.01, solver=solver, stream_total=weight.sum(), random_state=seed)
            streamed(clf, X, y, passes=5, weight=weight, seed=seed)
            assert clf.model_.params == pytest.approx(best.model_.params)
            ends[solver, seed] = ldm_value(clf, X, y, weight) / best.certificate_.objective - 1
            assert -1e-10 <= ends[solver, seed] < (0.01 if solver == "asgd" else 0.1)
    assert max(ends["asgd", s] for s in (0, 1)) < min(ends["sgd", s] for s in (0, 1))


def test_new_rows_make_the_objective_longer():
    """Without stream_total, m is the number of rows so far; one pass gets near the optimum of all of them."""
    clf = streamed(ms.LDMClassifier(C=0.01, solver="asgd"), X, y)
    best = ms.LDMClassifier(C=0.01).fit(X, y)
    assert clf.model_.params == best.model_.params
    assert 0 <= ldm_value(clf, X, y, np.ones(2000)) / best.certificate_.objective - 1 < 0.2
    assert clf.n_iter_ == 10


@pytest.mark.parametrize(
    "clf",
    [
        ms.LSVMClassifier(nu=0.01),
        ms.MLRClassifier(lam=0.1, bias="regularized"),
        ms.MDLMClassifier(ridge=0.5, bias="regularized", multiclass="ovr"),
        ms.MarginClassifier("svm", params={"C": 0.01}, bias="none"),
    ],
    ids=lambda clf: clf._task().name if hasattr(clf._task(), "name") else "",
)
@pytest.mark.parametrize("classes", [2, 3])
def test_other_objectives(clf, classes):
    A, b = load_iris(return_X_y=True)
    A, b = (scale(A), b) if classes == 3 else (scale(A)[50:], b[50:])
    exact = clone(clf).fit(A, b)
    near = streamed(clone(clf).set_params(solver="asgd", stream_total=len(b)), A, b, size=50, passes=30)
    f, g = exact.decision_function(A), near.decision_function(A)
    assert g.shape == f.shape and np.abs(f - g).max() < 0.15 * np.abs(f).max()
    assert hasattr(near, "predict_proba") == hasattr(exact, "predict_proba")


def test_types_of_rows():
    settings = {"C": 0.01, "solver": "asgd", "random_state": 4}
    double = streamed(ms.LDMClassifier(**settings), X, y)
    single = streamed(ms.LDMClassifier(**settings), X.astype(np.float32), y)
    thin = streamed(ms.LDMClassifier(**settings), sp.csr_matrix(X), y)
    assert single.coef_.dtype == np.float32 and double.coef_.dtype == np.float64
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=0, atol=1e-3)
    np.testing.assert_allclose(thin.coef_, double.coef_, rtol=1e-9)


def test_rows_of_weight_zero_are_absent():
    weight = (np.arange(2000) % 3 > 0).astype(float)
    clf = ms.LDMClassifier(solver="asgd").partial_fit(X, y, [0, 1], weight)
    same = ms.LDMClassifier(solver="asgd").partial_fit(X[weight > 0], y[weight > 0], [0, 1])
    np.testing.assert_array_equal(clf.coef_, same.coef_)
    factors = ms.LDMClassifier(solver="asgd", class_weight={1: 3.0}).partial_fit(X, y, [0, 1])
    given = ms.LDMClassifier(solver="asgd").partial_fit(X, y, [0, 1], np.where(y == 1, 3.0, 1.0))
    np.testing.assert_array_equal(factors.coef_, given.coef_)


# ---------------------------------------------------------------- what is kept


def test_a_pickled_stream_goes_on():
    whole = streamed(ms.LDMClassifier(solver="asgd"), X, y, size=500)
    half = ms.LDMClassifier(solver="asgd")
    order = np.random.default_rng(0).permutation(2000)
    for start in range(0, 2000, 500):
        at = order[start : start + 500]
        half = pickle.loads(pickle.dumps(half)).partial_fit(X[at], y[at], classes=[0, 1] if start == 0 else None)
    np.testing.assert_array_equal(half.coef_, whole.coef_)
    assert half.n_iter_ == 4 and not np.array_equal(
        streamed(ms.LDMClassifier(solver="asgd", random_state=1), X, y, size=500).coef_, whole.coef_
    )


def test_nothing_is_certified(tmp_path):
    clf = streamed(ms.LDMClassifier(solver="asgd"), X, y)
    told = clf.certificate_
    assert told.kind == "none" and told.lower_bound == -np.inf and not told.converged
    assert not hasattr(clf, "dual_coef_") and clf.support_.shape == (0,)
    assert clf.score(X, y) > 0.75 and clf.model_.margins(X, y).shape == (2000,)
    clf.model_.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(mdlearn.load(tmp_path / "model.npz").predict(X), clf.predict(X))


def test_fit_before_and_after():
    clf = streamed(ms.LDMClassifier(C=0.01, solver="asgd", warm_start=True), X, y)
    fresh = ms.LDMClassifier(C=0.01, solver="asgd").fit(X, y)
    np.testing.assert_array_equal(clf.fit(X, y).coef_, fresh.coef_)  # fit forgets the stream
    exact = ms.LDMClassifier(C=0.01).fit(X[:1900], y[:1900])
    more = exact.set_params(solver="asgd").partial_fit(X[1900:], y[1900:])
    best = ms.LDMClassifier(C=0.01).fit(X, y)
    assert more.model_.params == best.model_.params and more.n_iter_ == 1
    # A portion of a twentieth of the rows does not throw the coefficients away.
    assert 0 < ldm_value(more, X, y, np.ones(2000)) / best.certificate_.objective - 1 < 0.02
    with pytest.raises(ValueError, match="cannot go on from this fit"):
        ms.SVMClassifier(kernel="rbf").fit(X, y).set_params(kernel="linear", solver="sgd").partial_fit(X, y)


def test_small_and_one_sided_portions():
    clf = ms.SVMClassifier(solver="asgd", C=0.1, stream_total=300)
    for i in np.random.default_rng(0).permutation(300):
        clf.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
    assert clf.n_iter_ == 300 and clf.score(X[:300], y[:300]) > 0.7
    with pytest.raises(ValueError, match="diverge"):
        ms.SVMClassifier(solver="sgd", solver_options={"eta0": 1e300}).partial_fit(X, y, [0, 1])


# ---------------------------------------------------------------- what cannot be


def test_where_it_exists():
    assert hasattr(ms.LDMClassifier(solver="asgd"), "partial_fit")
    for clf in (ms.LDMClassifier(), ms.LDMClassifier(solver="cd"), ms.LDMClassifier(solver="sgd", kernel="rbf")):
        assert not hasattr(clf, "partial_fit")


@pytest.mark.parametrize(
    ("clf", "told"),
    [
        (ms.LSSVMClassifier(), "bias='free' breaks"),
        (ms.LDMClassifier(multiclass="ovo"), "give multiclass='ovr'"),
        (ms.MDLMClassifier(bias="regularized"), "give multiclass='ovr'"),
        (ms.L3SVMClassifier(n_clusters=2), "makes its features of all rows"),
        (ms.LDMClassifier(class_weight="balanced"), "give partial_fit a mapping"),
        (ms.LDMClassifier(C=np.inf), "constraint"),
        (ms.LDMClassifier(solver_options={"epoch": 1}), "no option 'epoch'"),
        (ms.MarginClassifier(params={"nu": 1.0}), "no parameter 'nu'"),
    ],
    ids=str,
)
def test_errors_of_problems(clf, told):
    A, b = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=told):
        clone(clf).set_params(solver="asgd").partial_fit(A, b, classes=[0, 1, 2])


def test_errors_of_calls():
    clf = ms.LDMClassifier(solver="asgd")
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        clf.partial_fit(X, y)
    with pytest.raises(ValueError, match="at least two classes"):
        clf.partial_fit(X, y, classes=[1])
    clf.partial_fit(X[:50], y[:50], classes=[1, 0])
    before = clf.coef_.copy()
    with pytest.raises(ValueError, match="label 5, which is not in classes"):
        clf.partial_fit(X[:2], [0, 5])
    with pytest.raises(ValueError, match=r"were \[0, 1\] in the first call"):
        clf.partial_fit(X[:2], [0, 1], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="features"):
        clf.partial_fit(X[:50, :5], y[:50])
    with pytest.raises(ValueError, match="zero everywhere"):
        clf.partial_fit(X[:2], y[:2], sample_weight=[0, 0])
    np.testing.assert_array_equal(clf.coef_, before)  # a call that fails leaves everything as it was
    with pytest.raises(ValueError, match="stream_total needs to be"):
        ms.LDMClassifier(solver="asgd", stream_total=0.0).partial_fit(X, y, [0, 1])


# ---------------------------------------------------------------- steps


def test_every_row_is_met_as_often_as_it_counts():
    rng = np.random.default_rng(0)
    assert sorted(portion_row_order(np.full(50, 0.3), 50, rng)) == list(range(50))
    counts = np.array([1.0, 0.0, 2.0, 0.25, 4.75])
    met = np.bincount(portion_row_order(counts, 16, rng), minlength=5)
    assert met.sum() == 16 and (np.abs(met - counts * 2) < 1).all()


def test_a_walk_can_go_on():
    rng = np.random.default_rng(0)
    signs, rows = np.where(y[:60] == 1, 1.0, -1.0), np.ascontiguousarray(X[:60])
    terms = np.array([[1.0], [1.0], [1.0], [0.0], [0.0], [0.0]])
    problem = Problem(signs, np.zeros(60), terms, 0.3, 0.1, 1e-2, 1.0)
    i, j = rng.integers(0, 60, (2, 400))
    u, total = np.zeros(73), np.zeros(73)
    whole = Walk(0.5, 100, u, total)
    walk_dense(rows, problem, whole, i, j)
    v, summed = np.zeros(73), np.zeros(73)
    for at, part in ((0, slice(0, 150)), (150, slice(150, 400))):
        walk = Walk(0.5, 100, v, summed, at)
        walk_dense(rows, problem, walk, i[part], j[part])
        summed += walk.carried * v
        v *= walk.scale
    np.testing.assert_allclose(v, whole.scale * u, rtol=1e-10)
    np.testing.assert_allclose(summed, total + whole.carried * u, rtol=1e-10)
    with pytest.raises(ValueError, match="fewer than 0"):
        Walk(0.5, 100, v, summed, -1)
