"""scikit-learn's callbacks (from 1.9 on): what they see of a fit, and what happens where there are none."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="estimators need scikit-learn")

from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mdlearn.sklearn as ms

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")

X, y = load_iris(return_X_y=True)
X2, y2 = X[50:], y[50:]


class Seen:
    """A callback that writes down what it is told, and may stop the fit."""

    def __init__(self, stop_at=None):
        self.events, self.stop_at, self.reports = [], stop_at, 0

    def setup(self, estimator, context):
        self.events.append(("setup", context.task_name, context.max_subtasks))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.events.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.events.append(("end", context.task_name, context.task_id))
        self.reports += context.task_name == "report"
        self.last = (X, y, metadata, fitted_estimator)
        return self.reports == self.stop_at

    def of(self, event, name):
        return [one for one in self.events if one[:2] == (event, name)]


def test_every_report_is_a_task():
    seen = Seen()
    clf = ms.LDMClassifier().set_callbacks(seen).fit(X2, y2, sample_weight=np.full(100, 2.0))
    assert seen.events[0] == ("setup", "fit", None) and seen.events[1] == ("begin", "fit", 0)
    assert seen.events[-2:] == [("end", "fit", 0), ("teardown", "fit")]
    reports = clf.n_iter_
    assert [one[2] for one in seen.of("begin", "report")] == [one[2] for one in seen.of("end", "report")]
    assert [one[2] for one in seen.of("end", "report")] == list(range(reports))
    given_X, given_y, metadata, fitted = seen.last
    np.testing.assert_array_equal(given_X, X2)
    assert given_y.shape == (100,) and set(metadata["sample_weight"]) == {2.0}
    np.testing.assert_array_equal(fitted.predict(X2), clf.predict(X2))


@pytest.mark.parametrize("n_threads", [None, 2])
def test_several_problems(n_threads):
    seen = Seen()
    clf = ms.LDMClassifier(n_threads=n_threads).set_callbacks(seen).fit(X, y)
    assert seen.events[0] == ("setup", "fit", 3)
    assert sorted(one[2] for one in seen.of("begin", "problem")) == [0, 1, 2]
    assert sorted(one[2] for one in seen.of("end", "problem")) == [0, 1, 2]
    assert len(seen.of("end", "report")) == clf.n_iter_
    plain = ms.LDMClassifier().fit(X, y)
    np.testing.assert_array_equal(plain.coef_, clf.coef_)


def test_a_callback_can_stop_a_fit():
    seen = Seen(stop_at=2)
    clf = ms.LDMClassifier(solver="interior").set_callbacks(seen)
    with pytest.warns(ms.EstimatorConvergenceWarning, match="stopped by the callback"):
        clf.fit(X2, y2)
    assert clf.n_iter_ == 2 and seen.events[-1] == ("teardown", "fit")
    both = []
    clf = ms.LDMClassifier(callback=both.append).set_callbacks(Seen()).fit(X2, y2)
    assert len(both) == clf.n_iter_


def test_teardown_after_an_error():
    seen = Seen()
    with pytest.raises(ValueError, match="lambda1"):
        ms.LDMClassifier(lambda1=-1.0).set_callbacks(seen).fit(X2, y2)
    assert seen.events[-1] == ("teardown", "fit")


def test_copies_of_estimators_with_callbacks():
    clf = ms.LDMClassifier().set_callbacks(Seen()).fit(X2, y2)
    assert pickle.loads(pickle.dumps(clf)).fit(X2, y2).n_iter_ == clf.n_iter_
    assert clone(clf).fit(X2, y2).n_iter_ == clf.n_iter_
    assert not any(name.startswith("_callback") for name in vars(clf))


def test_scores_of_the_fitted_estimator():
    monitor = callback.ScoringMonitor(scoring="accuracy")
    clf = ms.LDMClassifier().set_callbacks(monitor).fit(X, y)
    (entry,) = monitor.get_logs().data
    assert entry["accuracy"] == clf.score(X, y) and entry["task_name"] == "fit"


@pytest.mark.extras
def test_progress_bars(capsys):
    pytest.importorskip("rich", reason="scikit-learn's ProgressBar needs rich")
    for estimator, told in (
        (ms.LDMClassifier(), ["LDMClassifier - fit", "LDMClassifier - problem #2"]),
        (ms.MDLMClassifier(), ["MDLMClassifier - fit"]),
        (make_pipeline(StandardScaler(), ms.LDMClassifier()), ["Pipeline - fit", "LDMClassifier - fit"]),
        (GridSearchCV(ms.SVMClassifier(), {"C": [0.1, 1.0]}, cv=2), ["GridSearchCV - fit", "SVMClassifier - fit"]),
    ):
        estimator.set_callbacks(callback.ProgressBar()).fit(X, y)
        shown = capsys.readouterr().out
        assert all(line in shown for line in told) and "100%" in shown, shown


def test_nobody_listens():
    clf = ms.LDMClassifier().fit(X2, y2)
    assert hasattr(clf, "set_callbacks") and not hasattr(clf, "_skl_callbacks")
    with pytest.raises(TypeError, match="FitCallback"):
        clf.set_callbacks(print)
