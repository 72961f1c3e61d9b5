"""cross_validate against fits made by hand, weights and orders of rows, kinds of X, limits and errors."""

import re
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from reference import gram
from regression_cases import Tube
from sklearn import metrics
from sklearn.model_selection import LeaveOneOut, RepeatedStratifiedKFold, StratifiedKFold

import mdlearn
from mdlearn.selection.study import Study


def sample(m=60, d=4, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    return X, np.array(["b", "a", "c"])[np.digitize(X[:, 0] + 0.5 * rng.standard_normal(m), [0.0, 0.9][: classes - 1])]


@pytest.mark.parametrize("name, classes", [("ldm", 2), ("lssvm", 3), ("uldm", 3), ("mdlm", 3)])
def test_every_fold_is_a_fit_without_its_rows(name, classes):
    X, y = sample(classes=classes)
    splitter = StratifiedKFold(4, shuffle=True, random_state=1)
    found = mdlearn.cross_validate(name, X, y, cv=splitter, scoring="f1_macro", tol=1e-9)
    for j, (train, test) in enumerate(splitter.split(X, y)):
        model = mdlearn.fit(name, X[train], y[train], tol=1e-9)
        np.testing.assert_array_equal(model.predict(X[test]), found.predictions[test])
        np.testing.assert_allclose(found.decision[test], model.decision_function(X[test]), atol=1e-3)
        true = metrics.f1_score(y[test], model.predict(X[test]), average="macro")
        assert found.scores[j] == pytest.approx(true, rel=1e-12)
    assert (found.mean, found.std) == pytest.approx((found.scores.mean(), found.scores.std()))
    assert len(found.certificates) == 4 and all(one.converged for one in found.certificates)
    assert found.scoring == "f1_macro" and found.elapsed > 0


@pytest.mark.parametrize("scoring", ["accuracy", "auc"])
def test_a_weight_is_a_repetition(scoring):
    X, y = sample()
    w = np.random.default_rng(3).integers(0, 4, 60)
    many = np.random.default_rng(4).permutation(np.repeat(np.arange(60), w))
    given = {"kernel": "rbf", "tol": 1e-10, "scoring": scoring}
    one = mdlearn.cross_validate("ldm", X, y, sample_weight=w, **given)
    other = mdlearn.cross_validate("ldm", X[many], y[many], **given)
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-13)
    np.testing.assert_allclose(one.decision[many], other.decision, atol=1e-3)
    assert np.isnan(one.decision[w == 0]).all()
    with pytest.raises(ValueError, match=f"{np.count_nonzero(w == 0)} rows were not"):
        one.predictions  # noqa: B018


def test_the_order_of_rows_does_not_matter():
    X, y = sample()
    order = np.random.default_rng(5).permutation(60)
    one = mdlearn.cross_validate("svm", X, y, tol=1e-10)
    other = mdlearn.cross_validate("svm", X[order], y[order], tol=1e-10)
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-13)
    np.testing.assert_allclose(one.decision[order], other.decision, atol=1e-3)


@pytest.mark.extras
def test_kinds_of_X(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = sample()
    plain = mdlearn.cross_validate("ldm", X, y, tol=1e-10)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    frame = pd.DataFrame(X, columns=list("wxyz"))
    for given in (X.tolist(), sp.csr_matrix(X), sp.csc_array(X), mapped, np.asfortranarray(X), frame):
        found = mdlearn.cross_validate("ldm", given, pd.Series(y), tol=1e-10)
        np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-12)
    seen = []
    mdlearn.cross_validate("ldm", frame, y, scoring=lambda model, X, y: seen.append((model, X)) or 1.0)
    assert all(isinstance(X, pd.DataFrame) and list(model.feature_names_in_) == list("wxyz") for model, X in seen)


@pytest.mark.parametrize("kernel", ["precomputed", "callable"])
def test_kernels_that_are_given(kernel):
    X, y = sample(classes=3)

    def k(A, B):
        return np.asarray(gram(A, B, "rbf", 0.3, dtype=np.float64))

    plain = mdlearn.cross_validate("svm", X, y, kernel="rbf", gamma=0.3, cv=StratifiedKFold(3), tol=1e-10)
    given = (k(X, X), "precomputed") if kernel == "precomputed" else (X, k)
    found = mdlearn.cross_validate("svm", given[0], y, kernel=given[1], cv=StratifiedKFold(3), tol=1e-10)
    np.testing.assert_allclose(found.decision, plain.decision, atol=1e-4)
    np.testing.assert_allclose(found.scores, plain.scores)


def test_rows_named_by_parameters_are_those_of_the_caller():
    """basis=[...] names rows of X, whatever the fold."""
    X, y = sample()
    train, test = np.arange(20, 60), np.arange(20)
    found = mdlearn.cross_validate("uldm", X, y, kernel="rbf", gamma=0.5, basis=[3, 30, 50, 55], cv=[(train, test)])
    model = mdlearn.fit("uldm", X[train], y[train], kernel="rbf", gamma=0.5, basis=[10, 30, 35])
    np.testing.assert_allclose(found.decision[test], model.decision_function(X[test]), rtol=1e-9)


def test_repeated_and_overlapping_parts():
    X, y = sample()
    found = mdlearn.cross_validate("lssvm", X, y, cv=RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0))
    assert found.scores.shape == (6,) and len(found.folds) == 6 and not np.isnan(found.decision).any()
    # A row that is drawn twice counts twice; scikit-learn allows parts that overlap, and so do we.
    drawn = np.random.default_rng(1).integers(0, 60, 60)
    found = mdlearn.cross_validate("lssvm", X, y, cv=[(drawn, np.arange(60))])
    assert found.scores[0] == pytest.approx(mdlearn.fit("lssvm", X[drawn], y[drawn]).score(X, y))


def test_class_weights_are_those_of_the_training_rows():
    X, y = sample(classes=3)
    w = np.random.default_rng(2).uniform(0.5, 2.0, 60)
    for class_weight in ("balanced", {"a": 3.0, "b": 0.5, "c": 1.0}):
        given = {"class_weight": class_weight, "tol": 1e-10}
        found = mdlearn.cross_validate("ldm", X, y, cv=StratifiedKFold(3), sample_weight=w, **given)
        for j, (train, test) in enumerate(found.folds):
            model = mdlearn.fit("ldm", X[train], y[train], sample_weight=w[train], **given)
            np.testing.assert_allclose(found.decision[test], model.decision_function(X[test]), atol=1e-4)
            assert found.scores[j] == pytest.approx(model.score(X[test], y[test], w[test]))


def test_regression_is_scored_by_r2():
    X, _ = sample()
    y = X[:, 0] - 2 * X[:, 1] + 0.1 * X[:, 2] ** 2
    found = mdlearn.cross_validate(Tube, X, y, cv=3, tol=1e-10)
    for j, (train, test) in enumerate(found.folds):
        model = mdlearn.fit(Tube, X[train], y[train], tol=1e-10)
        assert found.scores[j] == pytest.approx(model.score(X[test], y[test]), rel=1e-4)
    np.testing.assert_array_equal(found.predictions, found.decision)
    alone = mdlearn.cross_validate(Tube, X, y, cv="loo", C=0.0, k=3.0, tol=1e-10)
    left = [mdlearn.fit(Tube, np.delete(X, i, 0), np.delete(y, i), C=0.0, k=3.0, tol=1e-10) for i in range(60)]
    true = [model.predict(X[i : i + 1])[0] for i, model in enumerate(left)]
    np.testing.assert_allclose(alone.decision, true, atol=1e-4)
    assert alone.scores[0] == pytest.approx(metrics.r2_score(y, true), rel=1e-4)


@pytest.mark.slow
def test_scorers_of_scikit_learn():
    X, y = sample()
    w = np.random.default_rng(3).uniform(0.5, 2.0, 60)
    for name, own in (("accuracy", "accuracy"), ("roc_auc", "auc"), ("f1_macro", "f1_macro")):
        for weight in (None, w):
            theirs = mdlearn.cross_validate("ldm", X, y, scoring=metrics.get_scorer(name), sample_weight=weight)
            ours = mdlearn.cross_validate("ldm", X, y, scoring=own, sample_weight=weight)
            np.testing.assert_allclose(theirs.scores, ours.scores, rtol=1e-12)
            np.testing.assert_array_equal(theirs.decision, ours.decision)
    alone = mdlearn.cross_validate("lssvm", X, y, cv=LeaveOneOut(), scoring=metrics.get_scorer("accuracy"))
    assert alone.mean == pytest.approx(mdlearn.cross_validate("lssvm", X, y, cv="loo").mean)


# ---------------------------------------------------------------- limits, tables, errors


@pytest.mark.extras
def test_a_time_limit_leaves_scores_out():
    X, y = sample()
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit reached after 0 fits"):
        found = mdlearn.cross_validate("ldm", X, y, time_limit=0.0)
    assert np.isnan(found.scores).all() and np.isnan(found.mean) and found.decision is None
    assert len(found.to_frame()) == 5


def test_no_fold_is_begun_after_the_time_limit(monkeypatch):
    begun, without = [], Study.without
    monkeypatch.setattr(Study, "without", lambda self, kept: begun.append(1) or without(self, kept))
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit reached after 0 fits"):
        mdlearn.cross_validate("ldm", *sample(), time_limit=0.0)
    assert not begun


def test_a_callback_sees_every_fit_and_ends_all():
    X, y = sample()
    seen = []
    mdlearn.cross_validate("ldm", X, y, cv=3, callback=lambda state: seen.append(state.iteration))
    assert seen.count(1) == 3
    fits = []

    def second(state):
        fits.extend([0] * (state.iteration == 1))
        return len(fits) == 2

    with pytest.warns(mdlearn.ConvergenceWarning, match="stopped by the callback after 1 fits"):
        found = mdlearn.cross_validate("ldm", X, y, cv=3, callback=second)
    np.testing.assert_array_equal(np.isnan(found.scores), [False, True, True])


def test_fits_that_fall_short_are_told_once():
    X, y = sample()
    with pytest.warns(mdlearn.ConvergenceWarning, match="3 of 3 fits did not reach the gap") as told:
        mdlearn.cross_validate("ldm", X, y, cv=3, solver="interior", max_iter=1, tol=1e-12)
    assert len(told) == 1


def test_progress_is_shown(capsys):
    X, y = sample()
    mdlearn.cross_validate("ldm", X, y, cv=3, verbose=1)
    assert "cross_validate: 3 of 3 fits" in capsys.readouterr().err
    mdlearn.cross_validate("ldm", X, y, cv=3)
    assert capsys.readouterr().err == ""


@pytest.mark.extras
def test_to_frame(monkeypatch):
    X, y = sample()
    found = mdlearn.cross_validate("ldm", X, y)
    table = found.to_frame()
    assert list(table["n_test"]) == [len(test) for _, test in found.folds] and table["converged"].all()
    np.testing.assert_array_equal(table["score"], found.scores)
    assert re.fullmatch(r"CrossValidation\(accuracy=[\d.]+ \+- [\d.]+, 5 scores\)", repr(found))
    left_out = mdlearn.cross_validate("lssvm", X, y, cv="loo")
    assert repr(left_out) == f"CrossValidation(accuracy={left_out.mean:.4g}, 1 score)"
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas"):
        found.to_frame()


def test_ctrl_c_is_seen():
    X, y = sample()

    def press(state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mdlearn.cross_validate("ldm", X, y, callback=press)


@pytest.mark.parametrize(
    "given, match",
    [
        ({"C": -1.0}, "C needs to be"),
        ({"D": 1.0}, "no parameter 'D'"),
        ({"scoring": "auc", "cv": [(range(60), [0])]}, "held-out rows of every class, and fold 0 has none of class"),
        ({"scoring": lambda model, X, y: np.nan}, "NaN in fold 0"),
        ({"sample_weight": np.ones(60), "scoring": lambda model, X, y: 1.0}, "does not take it"),
        ({"random_state": -1}, "random_state"),
        ({"y": np.zeros(60)}, "one class"),
        ({"X": [[1.0, 2.0], [3.0]]}, "not a rectangular array"),
    ],
)
def test_errors(given, match):
    X, y = sample()
    fits = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((ValueError, TypeError), match=match):
            mdlearn.cross_validate("ldm", given.pop("X", X), given.pop("y", y), callback=fits.append, **given)
    assert not fits or "NaN" in match
