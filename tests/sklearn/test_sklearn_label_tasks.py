"""The classifier of any objective with labels of which some are unknown, and with several labels a row."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="estimators need scikit-learn")

from sklearn.base import clone
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import mdlearn
import mdlearn.sklearn as ms
from mdlearn.extend import MULTI_LABEL, SEMI_SUPERVISED, Column, HingeTerm, MarginForm, Parameter, RowTerms, Terms

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
LABELS = (X @ rng.standard_normal((3, 2)) + 0.3 * rng.standard_normal((60, 2)) > 0).astype(int)
PARTLY = np.where(np.arange(60) % 3 == 0, -1, LABELS[:, 0])


class ManyLabels(mdlearn.Objective):
    """1/2 |w|^2 + C sum max(0, 1 - z)^2 of each label."""

    name = "many_labels"
    summary = "squared hinges of several labels"
    formula = "sum_k 1/2 |w_k|^2 + C sum max(0, 1-z_k)^2"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the loss")}
    task = MULTI_LABEL

    def terms(self, params, total):
        return Terms(loss=(HingeTerm(params["C"], power=2),))


class KnownRows(ManyLabels):
    """The same of known labels alone."""

    name = "known_rows"
    task = SEMI_SUPERVISED
    multiclass = ("ovr",)

    def form(self, data, features, bias, params):
        by_row, k = RowTerms(weights=(data.codes >= 0).astype(float)), len(data.classes)
        own = 0.0, 0.0, self.terms(params, data.total).loss
        signs = [np.where(data.codes == code, 1.0, -1.0) for code in ([1] if k == 2 else range(k))]
        return MarginForm(features, tuple(Column(y, data.counts, *own, by_row=by_row) for y in signs), bias)


def test_several_labels_in_scikit_learn():
    clf = ms.MarginClassifier(ManyLabels, params={"C": 2.0}, kernel="rbf").fit(X, LABELS)
    model = mdlearn.fit(ManyLabels, X, LABELS, C=2.0, kernel="rbf", tol=1e-10)
    np.testing.assert_array_equal(clf.predict(X), model.predict(X))
    np.testing.assert_array_equal(clf.decision_function(X), model.decision_function(X))
    assert clf.decision_function(X).shape == (60, 2) and clf.classes_.tolist() == [0, 1]
    assert clf.score(X, LABELS) == accuracy_score(LABELS, clf.predict(X)) and get_tags(clf).classifier_tags.multi_label
    scores = cross_val_score(clf, X, LABELS, cv=KFold(3), scoring="f1_macro")
    for (train, test), score in zip(KFold(3).split(X), scores):
        told = clone(clf).fit(X[train], LABELS[train]).predict(X[test])
        assert score == f1_score(LABELS[test], told, average="macro")
    search = GridSearchCV(ms.MarginClassifier(ManyLabels), {"params__C": [1e-5, 1.0]}, cv=3).fit(X, LABELS)
    assert search.best_params_ == {"params__C": 1.0}
    with pytest.raises(ValueError, match=r"y has the shape \(60,\); give a matrix of 0 and 1"):
        clone(clf).fit(X, LABELS[:, 0])


def test_scikit_learns_checks_of_several_labels():
    results = check_estimator(ms.MarginClassifier(ManyLabels), on_skip=None, on_fail=None)
    own = {one["check_name"]: one["status"] for one in results if "multilabel" in one["check_name"]}
    assert own == {  # the others fit labels of one class each
        "check_classifiers_multilabel_representation_invariance": "passed",
        "check_classifiers_multilabel_output_format_predict": "passed",
        "check_classifiers_multilabel_output_format_predict_proba": "skipped",
        "check_classifiers_multilabel_output_format_decision_function": "passed",
    }


@pytest.mark.slow
def test_scikit_learns_checks_of_unknown_labels():
    told = {"check_classifiers_classes": "-1 is the label of a class there"}
    check_estimator(ms.MarginClassifier(KnownRows), on_skip=None, expected_failed_checks=told)


def test_unknown_labels_in_scikit_learn():
    for y in (PARTLY, np.where(PARTLY < 0, np.nan, PARTLY)):
        clf = ms.MarginClassifier(KnownRows).fit(X, y)
        known = PARTLY >= 0
        assert clf.classes_.tolist() == [0, 1] and set(clf.predict(X)) == {0, 1} and clf.certificate_.converged
        assert clf.score(X, y) == (clf.predict(X) == PARTLY)[known].mean()
        plain = ms.LSVMClassifier(nu=2.0).fit(X[known], PARTLY[known])
        np.testing.assert_allclose(clf.decision_function(X), plain.decision_function(X), atol=1e-4)
    for y, error in ((None, "requires y to be passed"), (PARTLY + 0.5 * X[:, 0], "Unknown label type")):
        with pytest.raises(ValueError, match=error):
            ms.MarginClassifier(KnownRows).fit(X, y)


def test_other_tasks_are_refused():
    assert not get_tags(ms.MarginClassifier("nothing")).classifier_tags.multi_label
    with pytest.raises(ValueError, match="needs an objective of classes; 'svr' is one of regression"):
        ms.MarginClassifier("svr").fit(X, LABELS[:, 0])
