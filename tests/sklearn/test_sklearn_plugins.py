"""What plugins bring, inside scikit-learn: objectives, engines and kernels by name."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="estimators need scikit-learn")

from documents import EXAMPLES
from kernel_cases import LAPLACE, sample
from plugin_cases import GOOD, Site
from regression_cases import Tube
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

import mdlearn
import mdlearn.sklearn as ms
from mdlearn.extend import Parameter
from mdlearn.objectives.lsvm import LSVM
from mdlearn.plugins.registry import registry

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


class LagrangianClassifier(ms.MarginClassifier, objective=LSVM):
    """Squared hinges, 100 % of them."""


class TubeRegressor(ms.MarginRegressor, objective=Tube):
    """Regression with a tube."""


class StiffClassifier(ms.MarginClassifier, objective=LSVM):
    """Squared hinges with defaults of their own."""

    nu: float = 7.0
    reduced = (0, 5, 9)


def test_an_estimator_of_one_objective_keeps_defaults_of_its_own_body():
    """They go before the declared ones, in parameters and the docstring, too."""
    assert StiffClassifier().nu == StiffClassifier(C=None).get_params()["nu"] == 7.0
    assert StiffClassifier().reduced == (0, 5, 9) and StiffClassifier().C is None
    assert "nu : float, default 7" in StiffClassifier.__doc__


def test_an_estimator_of_one_objective():
    """Its parameters are those that the objective declares, in searches, copies and the docstring."""
    names = list(inspect.signature(LagrangianClassifier).parameters)
    assert names[:3] == ["nu", "reduced", "C"] and not {"objective", "params"} & set(names)
    assert repr(LagrangianClassifier(C=2.0)) == "LagrangianClassifier(C=2.0)"
    search = GridSearchCV(LagrangianClassifier(kernel="rbf"), {"nu": [1e-6, 1.0]}, cv=3).fit(X, y)
    model = mdlearn.fit("lsvm", X, y, kernel="rbf", nu=1.0, tol=1e-10)
    assert search.best_params_ == {"nu": 1.0}
    np.testing.assert_array_equal(search.decision_function(X), model.decision_function(X))
    copied = pickle.loads(pickle.dumps(LagrangianClassifier(C=3.0).fit(X, y)))
    assert copied.model_.params["nu"] == 3.0
    text = LagrangianClassifier.__doc__
    assert (
        text.startswith("Squared hinges, 100 % of them.\n\nParameters\n") and "\nC : optional\n    Another name" in text
    )
    tube = TubeRegressor(C=2.0).fit(X, X[:, 0])
    assert tube.model_.params["C"] == 2.0 and tube.score(X, X[:, 0]) > 0.9
    assert "\nC : float, default 1\n    " in TubeRegressor.__doc__


def test_estimators_of_one_objective_that_cannot_be():
    with pytest.raises(TypeError, match=r"^objective of Odd needs to be a subclass of mdlearn.Objective; got 'svm'$"):
        type("Odd", (ms.MarginClassifier,), {}, objective="svm")
    clash = type("Clash", (Tube,), {"parameters": {"verbose": Parameter(1.0, "")}})
    with pytest.raises(TypeError, match=r"objective 'tube' declares \['verbose'\], which Odd has for itself"):
        type("Odd", (ms.MarginRegressor,), {}, objective=clash)
    with pytest.raises(ValueError, match="needs an objective of classes; 'tube' is one of regression"):
        type("Odd", (ms.MarginClassifier,), {}, objective=Tube)().fit(X, y)


def test_an_estimator_of_another_task(monkeypatch):
    """Rows without labels: as the model has it, in searches, and under names of its own."""
    names = {"__name__": "example"}
    exec(EXAMPLES["task"], names)
    objective = names["Novelty"]
    own = type("Novel", (ms.MarginEstimator,), {}, objective=objective)
    model = mdlearn.fit(objective, X + 1.0, None, kernel="rbf", C=3.0, tol=1e-10)
    for one in (ms.MarginEstimator(objective, kernel="rbf", params={"C": 3.0}), own(kernel="rbf", C=3.0)):
        one.fit(X + 1.0)
        assert np.array_equal(one.predict(X), model.predict(X)) and one.score(X) == model.score(X)
        assert np.array_equal(one.decision_function(X), model.decision_function(X))
    search = GridSearchCV(own(kernel="rbf"), {"C": [1e-6, 3.0]}, cv=3).fit(X + 1.0)
    assert search.best_params_ == {"C": 3.0}
    for other, told in (("svm", "classification, take MarginClassifier"), (Tube, "regression, take MarginRegressor")):
        with pytest.raises(ValueError, match=rf"is for other tasks; '\w+' is one of {told}$"):
            ms.MarginEstimator(other).fit(X, y)


def test_regression_is_refused():
    with pytest.raises(ValueError, match="needs an objective of classes; 'tube' is one of regression"):
        ms.MarginClassifier(Tube).fit(X, y)
    with pytest.raises(ValueError, match="objective 'nothing' is unknown"):
        ms.MarginClassifier("nothing").fit(X, y)
    assert not hasattr(ms.MarginClassifier("nothing"), "predict_proba")


@pytest.fixture
def spectrum(monkeypatch):
    names = {"__name__": "example"}
    exec(EXAMPLES["strings"], names)
    monkeypatch.setitem(registry().kernels, "spectrum", names["Spectrum"])


WORDS = ["ab" * (1 + i % 4) + "ba" * (i % 3) + "c" * (i % 2) for i in range(40)]
HAS_C = np.array(["c" in word for word in WORDS])


@pytest.mark.parametrize("labels", [HAS_C, np.where(HAS_C, "yes", "no"), np.where(HAS_C, 1, 0) + np.arange(40) % 2])
def test_objects_of_a_kernel_are_a_list(spectrum, labels):
    clf = ms.SVMClassifier(kernel="spectrum", kernel_params={"length": 1}).fit(WORDS, labels)
    model = mdlearn.fit("svm", WORDS, labels, kernel="spectrum", length=1, tol=1e-10)
    assert np.array_equal(clf.decision_function(WORDS), model.decision_function(WORDS))
    assert clf.score(WORDS, labels) == model.score(WORDS, labels) and not hasattr(clf, "n_features_in_")
    assert clf.__sklearn_tags__().input_tags.string and not clf.__sklearn_tags__().input_tags.two_d_array


@pytest.mark.parametrize("given", [WORDS, np.array(WORDS), np.array(WORDS, dtype=object)])
def test_objects_in_searches(spectrum, given):
    grid = {"kernel_params__length": [1, 30]}
    search = GridSearchCV(ms.MarginClassifier("svm", kernel="spectrum"), grid, cv=3).fit(given, HAS_C)
    assert search.best_params_ == {"kernel_params__length": 1} and search.score(given, HAS_C) == 1.0


def test_objects_after_numbers_and_of_regression(spectrum):
    reg = ms.MarginRegressor("svr", kernel="rbf").fit(X, X[:, 0])
    assert reg.n_features_in_ == X.shape[1]
    lengths = np.array([len(word) for word in WORDS], dtype=float)
    reg.set_params(kernel="spectrum").fit(WORDS, lengths)
    assert reg.score(WORDS, lengths) > 0.9 and not hasattr(reg, "n_features_in_")


@pytest.mark.parametrize(
    ("given", "labels", "told"),
    [
        (WORDS, None, "requires y to be passed"),
        (WORDS, HAS_C[1:], "X has 40 rows but y has 39 labels"),
        ("word", HAS_C, "give X as a list of them, not str"),
        (WORDS, np.linspace(0.0, 1.0, 40), "Unknown label type"),
    ],
)
def test_what_is_wrong_with_objects(spectrum, given, labels, told):
    with pytest.raises((TypeError, ValueError), match=told):
        ms.MarginClassifier("svm", kernel="spectrum").fit(given, labels)
