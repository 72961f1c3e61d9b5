"""The estimator of regression: the model that `fit` makes, R^2, folds without classes, and what it refuses."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="estimators need scikit-learn")

from regression_cases import Tube
from sklearn.base import clone, is_regressor
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import mdlearn
import mdlearn.sklearn as ms

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.standard_normal(60) + 4.0
COUNTS = rng.integers(1, 4, 60)


@pytest.mark.parametrize("objective", ["svr", Tube, Tube(k=2.0)])
def test_it_is_the_model_of_a_fit(objective):
    ours = ms.MarginRegressor(objective, params={"C": 3.0}, kernel="rbf").fit(X, y, sample_weight=COUNTS)
    plain = mdlearn.fit(objective, X, y, C=3.0, kernel="rbf", sample_weight=COUNTS, tol=1e-10)
    np.testing.assert_array_equal(ours.predict(X), plain.predict(X))
    assert ours.certificate_.converged and ours.certificate_.objective == plain.certificate.objective
    assert ours.score(X, y) == pytest.approx(r2_score(y, ours.predict(X))) == pytest.approx(plain.score(X, y))
    np.testing.assert_array_equal(ours.dual_coef_, plain.dual_coef_)
    assert is_regressor(ours) and not hasattr(ours, "classes_") and not hasattr(ours, "decision_function")


def test_weights_are_repetitions():
    each = np.repeat(np.arange(60), COUNTS)
    weighted, repeated = (ms.MarginRegressor(params={"C": 2.0}) for _ in range(2))
    weighted.fit(X, y, sample_weight=COUNTS)
    repeated.fit(X[each], y[each])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-4)


def test_searches_have_r2_and_plain_folds():
    search = GridSearchCV(ms.MarginRegressor(), {"params__C": [1e-4, 10.0], "params__epsilon": [0.1, 30.0]}).fit(X, y)
    assert search.best_params_ == {"params__C": 10.0, "params__epsilon": 0.1} and search.best_score_ > 0.9
    folds = list(KFold(5).split(X))
    theirs = cross_val_score(ms.MarginRegressor(params={"C": 10.0}), X, y)  # scikit-learn's defaults
    ours = mdlearn.cross_validate("svr", X, y, cv=folds, C=10.0, tol=1e-10)
    assert ours.scoring == "r2" and theirs == pytest.approx(ours.scores, abs=1e-5)


def test_a_warm_start_begins_at_the_last_solution():
    clf = ms.MarginRegressor(params={"C": 5.0}, warm_start=True, solver="cd").fit(X, y)
    first = clf.n_iter_
    assert clf.fit(X, y).n_iter_ < first
    assert clone(clf).get_params() == clf.get_params()


def test_what_it_refuses():
    with pytest.raises(ValueError, match="MarginRegressor needs an objective of regression; 'svm' is one of classific"):
        ms.MarginRegressor("svm").fit(X, y)
    with pytest.raises(ValueError, match="no parameter 'lam'"):
        ms.MarginRegressor(Tube, params={"lam": 1.0}).fit(X, y)
    with pytest.raises(TypeError, match="multiclass"):
        ms.MarginRegressor(multiclass="ovr")


def test_parameters_stand_in_the_order_of_the_signature():
    order = list(inspect.signature(ms.MarginRegressor).parameters)
    assert order[:2] == ["objective", "params"] and not {"multiclass", "class_weight", "stream_total"} & set(order)
    places = [ms.MarginRegressor.__doc__.index(f"\n{name} : ") for name in order]
    assert places == sorted(places)
    assert "classes_" not in ms.MarginRegressor.__doc__
