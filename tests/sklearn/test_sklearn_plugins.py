"""What plugins bring, inside scikit-learn: objectives, engines and kernels by name."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="estimators need scikit-learn")

from kernel_cases import LAPLACE, sample
from plugin_cases import GOOD, Site
from regression_cases import Tube
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

import mdlearn
import mdlearn.sklearn as ms

X, y = sample()


@pytest.fixture
def site(tmp_path, monkeypatch):
    return Site(tmp_path, monkeypatch)


@pytest.mark.slow
def test_an_objective_and_an_engine_of_a_plugin(site):
    site.add("good-plugin", GOOD)
    clf = ms.MarginClassifier("mean_hinge", solver="renamed")
    check_estimator(clf, on_skip=None)
    search = GridSearchCV(clf, {"params__c": [1e-3, 5.0]}, cv=3).fit(X, y)
    model = mdlearn.fit("mean_hinge", X, y, tol=1e-10, c=5.0)
    assert search.best_params_ == {"params__c": 5.0} and search.best_estimator_.model_.solver == "renamed"
    np.testing.assert_allclose(search.decision_function(X), model.decision_function(X), atol=1e-4)


def test_a_kernel_of_a_plugin(site):
    site.add("laplace-kernel", LAPLACE)
    grid = {"kernel": ["laplace"], "kernel_params__width": [0.5, 2.0]}
    search = GridSearchCV(ms.LDMClassifier(), grid, cv=3).fit(X, y)
    width = search.best_params_["kernel_params__width"]
    assert search.best_estimator_.kernel_params == {"width": width}
    model = mdlearn.fit("ldm", X, y, kernel="laplace", width=width, tol=1e-10)
    np.testing.assert_array_equal(search.decision_function(X), model.decision_function(X))
    with pytest.raises(ValueError, match="no parameter 'breadth'"):
        ms.LDMClassifier(kernel="laplace", kernel_params={"breadth": 1.0}).fit(X, y)


def test_regression_is_refused():
    with pytest.raises(ValueError, match="needs an objective of classes; 'tube' is one of regression"):
        ms.MarginClassifier(Tube).fit(X, y)
    with pytest.raises(ValueError, match="objective 'nothing' is unknown"):
        ms.MarginClassifier("nothing").fit(X, y)
    assert not hasattr(ms.MarginClassifier("nothing"), "predict_proba")
