"""`mdlearn.testing.check_estimator`: holds for an estimator of an objective, and finds one mistake in each clause."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="estimators need scikit-learn")

import mdlearn.sklearn as ms
from mdlearn.testing import check_estimator, estimators


class Mine(ms.MarginClassifier):
    """An estimator as a plugin would make one."""


class Talkative(Mine):
    def fit(self, X, y, sample_weight=None):
        self.tol = 1e-3  # scikit-learn: fit leaves parameters as they are
        return super().fit(X, y, sample_weight)


class Bare(Mine):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        del self.model_
        return self


class Turned(Mine):
    def decision_function(self, X):
        return -super().decision_function(X)


class Last(Mine):
    def predict(self, X):
        return np.full(len(X), self.classes_[-1])


class Deaf(Mine):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y)


class Moody(Mine):
    drawn = iter(range(1, 1000))

    def decision_function(self, X):
        return super().decision_function(X) * (1.0 + 1e-13 * next(self.drawn))


@pytest.mark.slow
def test_it_holds_for_an_estimator_of_an_objective():
    check_estimator(Mine("svm"))


@pytest.mark.parametrize(
    ("cls", "clause", "told"),
    [
        (Talkative, estimators.estimator_keeps_scikit_learns_conventions, "tol"),
        (Bare, estimators.estimator_predicts_what_its_model_does, "fit leaves no model_"),
        (Turned, estimators.estimator_predicts_what_its_model_does, "decision_function differs"),
        (Last, estimators.estimator_predicts_what_its_model_does, "predict differs"),
        (Deaf, estimators.estimator_counts_rows_by_their_weights, "hand sample_weight to mdlearn.fit"),
        (Moody, estimators.estimator_repeats_itself, "other decision values"),
    ],
)
def test_every_clause_can_fail(cls, clause, told):
    if clause is not estimators.estimator_keeps_scikit_learns_conventions:
        clause(Mine("svm"))
    with pytest.raises(AssertionError, match=told):
        clause(cls("svm"))


def test_the_sentence_names_estimator_and_clause():
    with pytest.raises(AssertionError, match=r"^estimator 'Talkative': estimator_keeps_scikit_learns_conventions does"):
        check_estimator(Talkative("svm"))
