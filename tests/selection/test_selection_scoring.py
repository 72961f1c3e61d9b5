"""Scores against scikit-learn's metrics, and what `scoring` may be."""

import sys

import numpy as np
import pytest
from sklearn import metrics

import mdlearn
from mdlearn.model.class_decisions import labels_of_decisions
from mdlearn.model.regression import r2
from mdlearn.selection import metrics as ours
from mdlearn.selection.scoring import scoring_of

RNG = np.random.default_rng(7)
WEIGHTS = RNG.integers(0, 4, 80).astype(float)
WHICH = [None, WEIGHTS, RNG.uniform(0.1, 2.0, 80)]


def drawn(rng, classes):
    names = np.array(["x", "b", "a", "q"])[:classes]
    return rng.choice(names, 80), rng.choice(names, 80)


@pytest.mark.parametrize("weights", WHICH)
@pytest.mark.parametrize("classes", [2, 4])
def test_scores_of_labels_against_scikit_learn(classes, weights, rng):
    y, told = drawn(rng, classes)
    assert ours.accuracy(y, told, weights) == pytest.approx(metrics.accuracy_score(y, told, sample_weight=weights))
    for average, score in (("macro", ours.f1_macro), ("micro", ours.f1_micro)):
        true = metrics.f1_score(y, told, average=average, sample_weight=weights)
        assert score(y, told, weights) == pytest.approx(true, rel=1e-12)


@pytest.mark.parametrize("weights", WHICH)
def test_auc_and_r2_against_scikit_learn(weights, rng):
    y, _ = drawn(rng, 2)
    f = rng.integers(0, 9, 80).astype(float)
    true = metrics.roc_auc_score(y == "x", f, sample_weight=weights)
    assert ours.auc(y == "x", f, weights) == pytest.approx(true, rel=1e-12)
    target = rng.standard_normal(80)
    assert r2(target, f, weights) == pytest.approx(metrics.r2_score(target, f, sample_weight=weights), rel=1e-12)


@pytest.mark.parametrize("name", ["roc_auc", "f1", "balanced_accuracy", "neg_log_loss"])
def test_names_that_need_no_scikit_learn(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.metrics", None)
    scoring = scoring_of(name, "classification")
    assert scoring.name == name and scoring.values is not None and not scoring.borrowed


def test_auc_takes_values_within_rounding_for_equal():
    positive = np.array([True, False, False, True])
    for sign in (1.0, -1.0):
        f = sign * np.array([0.1 + 0.2, 0.3, -1.0, 1.0])  # 0.1 + 0.2 is not 0.3
        assert f[0] != f[1] and ours.auc(positive, f) == (0.875 if sign > 0 else 0.125)
    assert ours.auc(positive, np.array([1e-9, 1e-10, 0.0, 1.0])) == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_equal_rows_of_two_labels_count_one_half(seed):
    rng = np.random.default_rng(seed)
    X = np.tile(rng.integers(0, 3, (91, 5)), (2, 1))[rng.permutation(182)].astype(float)
    y = np.where(X[:, 0] + rng.standard_normal(182) > 1, 1, -1)
    found = mdlearn.cross_validate("lssvm", X, y, cv=3, scoring="auc", kernel="rbf")
    for (_, test), score in zip(found.folds, found.scores):
        _, row = np.unique(X[test], axis=0, return_inverse=True)
        row = row.reshape(-1)
        f = (np.bincount(row, found.decision[test]) / np.bincount(row))[row]
        assert score == pytest.approx(metrics.roc_auc_score(y[test], f), rel=1e-12)


def test_r2_of_equal_targets():
    assert r2(np.ones(3), np.ones(3)) == 1.0
    assert r2(np.ones(3), np.array([1.0, 1.0, 2.0])) == 0.0


@pytest.mark.parametrize("weights", WHICH[:2])
@pytest.mark.parametrize("classes", [2, 4])
def test_named_scores_are_those_of_a_model(classes, weights, rng):
    y, _ = drawn(rng, classes)
    X = rng.standard_normal((80, 3)) + (y == "a")[:, None]
    model = mdlearn.fit("lssvm", X, y)
    f, w = model.decision_function(X), np.ones(80) if weights is None else weights
    np.testing.assert_array_equal(labels_of_decisions(model.classes_, f), model.predict(X))
    told = {name: scoring_of(name, "classification").values(model.classes_, f, y, w) for name in ("accuracy", "auc")}
    assert told["accuracy"] == pytest.approx(model.score(X, y, weights), rel=1e-14)
    columns = np.column_stack([-f, f]) if classes == 2 else f
    each = [metrics.roc_auc_score(y == c, columns[:, j], sample_weight=w) for j, c in enumerate(model.classes_)]
    assert told["auc"] == pytest.approx(np.mean(each), rel=1e-12)


def test_a_weight_is_a_repetition(rng):
    y, told = drawn(rng, 3)
    many = np.repeat(np.arange(80), WEIGHTS.astype(int))
    f = rng.integers(0, 5, 80).astype(float)
    for score, a, b in (
        (ours.accuracy, y, told),
        (ours.f1_macro, y, told),
        (ours.f1_micro, y, told),
        (ours.auc, y == "a", f),
        (r2, f, f[::-1]),
    ):
        assert score(a, b, WEIGHTS) == pytest.approx(score(a[many], b[many]), rel=1e-13)


def test_a_function_of_the_same_name_is_the_callers():
    def auc(model, X, y):
        return 0.5

    own = scoring_of(auc, "classification")
    assert own.name == "auc" and not own.all_classes and scoring_of("auc", "classification").all_classes


def test_defaults_by_task():
    assert scoring_of(None, "classification").name == "accuracy"
    assert scoring_of(None, "regression").name == "r2"


@pytest.mark.parametrize(
    "given, task, weighted, match",
    [
        (
            "acc",
            "classification",
            False,
            "'acc' is unknown for classification; give one of accuracy, balanced",
        ),
        ("accuracy", "regression", False, "unknown for regression; give one of r2"),
        ("r2", "classification", False, "unknown for classification"),
        ("roc_auk", "classification", False, "or a callable; did you mean 'roc_auc'[?]$"),
        ("precison", "classification", False, "or a callable; did you mean 'precision'[?]$"),
        (3, "classification", False, "scoring needs to be one of"),
        (lambda model, X, y: 1.0, "classification", True, "does not take it"),
    ],
)
def test_errors(given, task, weighted, match):
    with pytest.raises((ValueError, TypeError), match=match):
        scoring_of(given, task, weighted)


def test_a_callable_needs_to_return_a_number():
    with pytest.raises(TypeError, match="needs to return a number"):
        scoring_of(lambda model, X, y: "good", "classification").call(None, None, None, None)
    # A function that does not say what it takes is called all the same.
    assert scoring_of(max, "classification", True).function is max


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "name", ["accuracy", "balanced_accuracy", "roc_auc", "f1", "f1_macro", "f1_micro", "neg_log_loss", "precision"]
)
def test_names_are_those_of_scikit_learn(name, weighted):
    """The same held-out rows, models and weights, scored by scikit-learn's own scorer."""
    from sklearn.metrics import get_scorer

    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 3))
    y = np.where(X[:, 0] + rng.standard_normal(60) > 0.3, "yes", "no") == "yes"
    y = y.astype(int)
    weight = {"sample_weight": rng.integers(1, 4, 60)} if weighted else {}
    folds = [(np.arange(0, 40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))]
    mine = mdlearn.cross_validate("l2lr", X, y, cv=folds, scoring=name, **weight).scores
    theirs = []
    for train, test in folds:
        part = {key: value[train] for key, value in weight.items()}
        model = mdlearn.fit("l2lr", X[train], y[train], **part)
        theirs.append(get_scorer(name)(model, X[test], y[test], **{key: value[test] for key, value in weight.items()}))
    np.testing.assert_allclose(mine, theirs, rtol=1e-4)


def test_our_own_names_need_no_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.metrics", None)  # importing it fails
    for name in ("accuracy", "balanced_accuracy", "auc", "roc_auc", "f1", "f1_macro", "f1_micro", "neg_log_loss"):
        assert not scoring_of(name, "classification").borrowed
    with pytest.raises(ValueError, match=r"^scoring 'precision' is unknown for classification; give one of accuracy, "):
        scoring_of("precision", "classification")


def test_scores_that_models_do_not_have_are_refused_before_any_fit():
    X, y = np.random.default_rng(4).standard_normal((12, 2)), np.arange(12) % 3
    with pytest.raises(ValueError, match=r"^scoring='f1' is for two classes and y has 3; give "):
        mdlearn.select("svm", X, y, cv=2, scoring="f1")
    with pytest.raises(ValueError, match=r"^scoring='neg_log_loss' needs probabilities, which models of 'svm' with "):
        mdlearn.cross_validate("svm", X, y, cv=2, scoring="neg_log_loss")
    with pytest.raises(ValueError, match=r"^scoring='neg_brier_score' cannot judge these models: "):
        mdlearn.cross_validate("svm", X, y % 2, cv=2, scoring="neg_brier_score")
