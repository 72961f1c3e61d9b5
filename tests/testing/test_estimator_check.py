"""`mdlearn.testing.check_estimator`: holds for an estimator of an objective, and finds one mistake in each clause."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="estimators need scikit-learn")

import mdlearn.sklearn as ms
from mdlearn.objectives.svm import SVM
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


class Frozen(Mine):
    def __init__(self, C=1.0):
        super().__init__("svm", params={"C": C})
        self.C = C


class OfSVM(ms.MarginClassifier, objective=SVM):
    """An SVM."""


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [Mine("svm"), OfSVM(), ms.SVMClassifier()])
def test_it_holds_for_an_estimator_of_an_objective(estimator):
    check_estimator(estimator)


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


def test_params_that_only_init_reads_are_told():
    estimators.estimator_takes_params_set_later(OfSVM())
    with pytest.raises(AssertionError, match=r"^set_params\(C=0.5\) makes another model than C given at first; let"):
        estimators.estimator_takes_params_set_later(Frozen())


def test_the_sentence_names_estimator_and_clause():
    with pytest.raises(AssertionError, match=r"^estimator 'Talkative': estimator_keeps_scikit_learns_conventions does"):
        check_estimator(Talkative("svm"))
