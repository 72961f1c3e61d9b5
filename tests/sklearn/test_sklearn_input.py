"""What estimators take: frames, seeds, limits, starts; landmarks as a transformer; imports."""

from __future__ import annotations

import doctest
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="estimators need scikit-learn")

import scipy.sparse as sp
import sklearn.exceptions
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale

import mdlearn
import mdlearn.sklearn as ms

X, y = load_iris(return_X_y=True)
X = scale(X)
NAMES = ["a", "b", "c", "d"]


# ---------------------------------------------------------------- frames and types


@pytest.mark.extras
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_and_set_output(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({name: X[:, j] for j, name in enumerate(NAMES)})
    clf = ms.LDMClassifier().fit(frame, frames.Series(y))
    if not hasattr(clf, "feature_names_in_") and library == "polars":
        pytest.skip("this scikit-learn does not know the frames of this polars")
    assert clf.feature_names_in_.tolist() == NAMES == clf.model_.feature_names_in_.tolist()
    np.testing.assert_array_equal(clf.predict(frame), clf.model_.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame[["b", "a", "c", "d"]])
    features = ms.LandmarkTransformer(n_landmarks=3, n_clusters=2).set_output(transform=library)
    made = features.fit_transform(frame)
    assert isinstance(made, frames.DataFrame)
    assert list(made.columns) == [f"landmarktransformer{j}" for j in range(6)]
    assert list(features.get_feature_names_out()) == list(made.columns)


def test_types_are_kept():
    single = ms.LDMClassifier().fit(X.astype(np.float32), y)
    assert single.certificate_.tol == 1e-6 and single.certificate_.converged  # what float32 allows
    with pytest.warns(ms.EstimatorConvergenceWarning, match="rounding allows no better"):
        ms.LDMClassifier(tol=1e-12).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == single.intercept_.dtype == np.float32
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    np.testing.assert_allclose(
        ms.LDMClassifier().fit(wide, y).coef_, ms.LDMClassifier().fit(X, y).coef_, rtol=0, atol=1e-4
    )
    labels = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    clf = ms.SVMClassifier().fit(X, labels)
    assert clf.predict(X[:2]).tolist() == ["setosa", "setosa"]


# ---------------------------------------------------------------- seeds


def drawn(state):
    return ms.L3SVMClassifier(n_clusters=3, n_landmarks=3, random_state=state).fit(X, y).landmarks_


def test_random_states():
    np.testing.assert_array_equal(drawn(None), drawn(0))
    assert not np.array_equal(drawn(1), drawn(0))
    np.testing.assert_array_equal(drawn(np.random.RandomState(3)), drawn(np.random.RandomState(3)))
    one = np.random.RandomState(3)
    assert not np.array_equal(drawn(one), drawn(one))  # the next number of the same generator
    np.random.seed(7)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    for state in (None, 5, np.random.RandomState(3)):
        drawn(state)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    first, second = drawn(np.random), drawn(np.random)
    assert not np.array_equal(first, second)
    np.random.seed(7)  # noqa: NPY002
    np.testing.assert_array_equal(drawn(np.random), first)


# ---------------------------------------------------------------- limits, warnings, starts


def test_the_warning_is_of_both_kinds():
    clf = ms.SVMClassifier(kernel="rbf", max_iter=1)
    for kind in (mdlearn.ConvergenceWarning, sklearn.exceptions.ConvergenceWarning, ms.EstimatorConvergenceWarning):
        with pytest.warns(kind, match="instead of 1e-10"):
            clf.fit(X, y)
    assert not clf.certificate_.converged and clf.certificate_.gap > 1e-10
    with pytest.warns(sklearn.exceptions.ConvergenceWarning, match="time_limit"):
        ms.SVMClassifier(time_limit=0).fit(X, y)


def test_a_published_end_warns_only_when_a_precision_was_asked_for():
    assert not ms.LDMClassifier(solver="asgd").fit(X, y).certificate_.converged
    with pytest.warns(ms.EstimatorConvergenceWarning, match="published end"):
        ms.LDMClassifier(solver="asgd", tol=1e-9).fit(X, y)


def test_callback_and_n_threads():
    seen = []
    one = ms.LDMClassifier(kernel="rbf", callback=seen.append, n_threads=2).fit(X, y)
    assert len(seen) == one.n_iter_ == len(one.model_.history)
    with pytest.warns(ms.EstimatorConvergenceWarning, match="callback"):
        ms.LDMClassifier(callback=lambda state: True).fit(X, y)


def test_warm_start():
    clf = ms.MDLMClassifier(beta=0.05, ridge=0.1, warm_start=True).fit(X, y)
    first = clf.n_iter_
    clf.fit(X, y)
    assert clf.n_iter_ < first and clf.certificate_.converged
    clf.set_params(beta=0.06).fit(X, y)
    cold = ms.MDLMClassifier(beta=0.06, ridge=0.1).fit(X, y)
    np.testing.assert_allclose(clf.decision_function(X), cold.decision_function(X), atol=1e-4)
    with pytest.raises(ValueError, match="warm_start needs a model of the same kind"):
        clf.fit(X[:100], y[:100])


# ---------------------------------------------------------------- landmarks


@pytest.mark.parametrize("membership", ["hard", "soft"])
@pytest.mark.parametrize("projection", ["dot", "rbf"])
def test_landmarks_and_a_linear_machine_are_an_l3svm(projection, membership):
    settings = {"n_clusters": 4, "n_landmarks": 3, "projection": projection, "membership": membership}
    settings |= {"random_state": 5, "landmark_selection": "kmeans"}
    weight = np.arange(150) % 3
    local = ms.L3SVMClassifier(C=50.0, **settings).fit(X, y, sample_weight=weight)
    features = ms.LandmarkTransformer(**settings).fit(X, sample_weight=weight)
    np.testing.assert_array_equal(features.landmarks_, local.landmarks_)
    np.testing.assert_array_equal(features.centers_, local.centers_)
    F = features.transform(X)
    assert F.shape == (150, 12) and features.get_feature_names_out().shape == (12,)
    # The L3-SVM averages its loss.
    plain = ms.SVMClassifier(C=50.0 / weight.sum()).fit(F, y, sample_weight=weight)
    np.testing.assert_allclose(plain.decision_function(F), local.decision_function(X), atol=1e-4)
    thin = (
        ms.LandmarkTransformer(**settings, sparse_output=True).fit(X, sample_weight=weight).transform(sp.csr_matrix(X))
    )
    assert sp.issparse(thin)
    np.testing.assert_allclose(thin.toarray(), F, atol=1e-12)


def test_landmarks_are_projections():
    given = ms.LandmarkTransformer(landmarks=X[:5], projection="rbf", sigma=2.0).fit(X)
    want = np.exp(-np.square(X[:, None] - X[None, :5]).sum(axis=2) / 2.0)
    np.testing.assert_allclose(given.transform(X), want, rtol=1e-12)
    np.testing.assert_allclose(ms.LandmarkTransformer(landmarks=X[:5]).fit(X).transform(X), X @ X[:5].T, atol=1e-13)
    assert given.transform(X.astype(np.float32)).dtype == np.float32
    soft = ms.LandmarkTransformer(n_clusters=3, membership="soft", landmarks=[[1.0, 0, 0, 0]]).fit_transform(X)
    np.testing.assert_allclose(soft.sum(axis=1), X[:, 0], atol=1e-13)
    with pytest.raises(ValueError, match="minimum of 200 is required"):
        ms.LandmarkTransformer(n_landmarks=200).fit(X)
    assert make_pipeline(ms.LandmarkTransformer(), ms.LDMClassifier()).fit(X, y).score(X, y) > 0.9


# ---------------------------------------------------------------- docstrings and imports


@pytest.mark.parametrize("cls", [getattr(ms, name) for name in ms.__all__ if not name.endswith("Warning")])
def test_examples(cls):
    examples = [one for one in doctest.DocTestFinder(recurse=False).find(cls, cls.__name__) if one.examples]
    assert len(examples) == 1 and "%(" not in cls.__doc__
    runner = doctest.DocTestRunner()
    assert runner.run(examples[0]).failed == 0


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


@pytest.mark.slow
def test_scikit_learn_is_loaded_when_asked_for():
    code = (
        "import sys, mdlearn; assert 'sklearn' not in sys.modules; "
        "mdlearn.fit('svm', [[0.0], [1.0]], [0, 1]); assert 'sklearn' not in sys.modules; "
        "print(mdlearn.sklearn.LDMClassifier().fit([[0.0], [1.0]], [0, 1]).predict([[3.0]]))"
    )
    done = run(code)
    assert done.stdout.strip() == "[1]", done.stderr


def test_without_scikit_learn():
    done = run("import sys; sys.modules['sklearn'] = None; import mdlearn; mdlearn.fit; mdlearn.sklearn")
    assert done.returncode == 1
    told = done.stderr.strip().splitlines()[-1]
    assert told == "ImportError: mdlearn.sklearn needs scikit-learn >= 1.6; pip install 'mdlearn[sklearn]'"
