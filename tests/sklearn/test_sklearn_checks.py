"""scikit-learn's own checks of every estimator, with no expected failure."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

pytest.importorskip("sklearn", reason="estimators need scikit-learn")

from documents import EXAMPLES
from regression_cases import Tube
from sklearn.utils.estimator_checks import parametrize_with_checks

import mdlearn.sklearn as ms

# A module that pickle finds: what is checked is copied by it.
sys.modules["novelty_example"] = novelty_example = ModuleType("novelty_example")
exec(EXAMPLES["task"], vars(novelty_example))
ESTIMATORS = [
    ms.LDMClassifier(),
    ms.ODMClassifier(),
    ms.SVMClassifier(),
    ms.ULDMClassifier(),
    ms.LSSVMClassifier(),
    ms.LSLDMClassifier(),
    ms.LSVMClassifier(),
    ms.MDLMClassifier(),
    ms.L2LRClassifier(),
    ms.MLRClassifier(),
    ms.MMLRClassifier(),
    ms.L3SVMClassifier(),
    ms.MarginClassifier(),
    ms.MarginRegressor(),
    ms.MarginEstimator(novelty_example.Novelty),
    ms.LandmarkTransformer(),
    # Other ways through the code than the defaults'.
    ms.LDMClassifier(kernel="rbf"),
    ms.ULDMClassifier(kernel="rbf", basis="cholesky"),
    ms.LDMClassifier(multiclass="ovo", bias="free"),
    ms.MDLMClassifier(beta=0.01, ridge=0.1),
    ms.MarginClassifier("ww"),
    ms.MarginRegressor(Tube, params={"C": 2.0, "k": 0.5, "v": 1.0}, kernel="rbf", bias="free"),
    ms.LandmarkTransformer(n_clusters=3, n_landmarks=3, projection="rbf", sparse_output=True),
]


def test_every_estimator_is_checked():
    assert {type(one).__name__ for one in ESTIMATORS} == {n for n in ms.__all__ if not n.endswith("Warning")}


@pytest.mark.slow
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
