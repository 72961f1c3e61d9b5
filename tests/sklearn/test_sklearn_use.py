"""Estimators inside scikit-learn: what they show, searches, pipelines, calibration, routing, copies."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="estimators need scikit-learn")

import joblib
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import mdlearn
import mdlearn.sklearn as ms

X, y = load_iris(return_X_y=True)
X = scale(X)
X2, y2 = X[50:, :2], y[50:]
CLASSIFIERS = [cls for cls in vars(ms).values() if hasattr(cls, "decision_function")]
NAMED = [cls for cls in CLASSIFIERS if cls._objective is not None]
KERNELS = [cls for cls in NAMED if cls._objective.kernels]


def name_of(cls):
    return cls.__name__


# ---------------------------------------------------------------- what they are and show


@pytest.mark.parametrize("cls", NAMED, ids=name_of)
def test_parameters_are_those_of_the_objective(cls):
    defaults = cls().get_params()
    task = cls._objective
    assert set(task.parameters) <= set(defaults)
    assert ("kernel" in defaults) == task.kernels
    filled = task().resolve(100.0)
    for name in task.parameters:
        if defaults[name] is not None and not (name == "ridge" and task.name == "mdlm"):
            assert defaults[name] == filled[name], name
    fit = inspect.signature(mdlearn.fit).parameters
    for name in set(defaults) & set(fit) - {"tol", "warm_start", "verbose"}:
        assert defaults[name] == fit[name].default, name
    assert not {"tol", "verbose", "warm_start", "bias"} - set(defaults)
    # Every parameter stands in the docstring, in the order of the signature: its own ones first.
    order = list(inspect.signature(cls).parameters)
    own = {*task.parameters, *task.aliases}
    assert sorted(order) == sorted(defaults) and set(order[: len(own)]) == own
    places = [cls.__doc__.index(f"\n{name} : ") for name in order]
    assert places == sorted(places)


@pytest.mark.parametrize("rows", [(X, y), (X2, y2)], ids=["three", "two"])
@pytest.mark.parametrize("cls", NAMED, ids=name_of)
def test_attributes_are_those_of_the_model(cls, rows):
    A, b = rows
    clf = cls().fit(A, b)
    own = {name: getattr(clf, name) for name in cls._objective.parameters if getattr(clf, name) is not None}
    model = mdlearn.fit(cls._objective.name, A, b, tol=1e-10, **own)
    assert clf.model_.objective == cls._objective.name and clf.certificate_.converged
    assert clf.certificate_.objective == model.certificate.objective
    for name in ("classes_", "intercept_", "support_", "n_support_", "coef_"):
        np.testing.assert_array_equal(getattr(clf, name), getattr(model, name))
    assert hasattr(clf, "dual_coef_") == hasattr(model, "dual_coef_")
    k = len(clf.classes_)
    assert clf.n_iter_ == model.n_iter and clf.n_features_in_ == A.shape[1]
    assert clf.decision_function(A).shape == ((A.shape[0],) if k == 2 else (A.shape[0], k))
    np.testing.assert_array_equal(clf.decision_function(A), model.decision_function(A))
    np.testing.assert_array_equal(clf.predict(A), model.predict(A))
    weight = np.arange(len(b)) % 4
    assert clf.score(A, b, sample_weight=weight) == pytest.approx(model.score(A, b, sample_weight=weight))


@pytest.mark.parametrize("way", ["ovr", "ovo", "fuzzy-min", "fuzzy-avg"])
def test_shapes_of_several_classes(way):
    clf = ms.LDMClassifier(multiclass=way).fit(X, y)
    assert clf.decision_function(X).shape == (150, 3) and clf.coef_.shape == (3, 4)
    np.testing.assert_array_equal(clf.classes_[clf.decision_function(X).argmax(axis=1)], clf.predict(X))
    assert clf.score(X, y) > 0.9


def test_probabilities_where_they_are_defined():
    for cls in NAMED:
        assert hasattr(cls(), "predict_proba") == cls._objective.probabilities
    assert hasattr(ms.MarginClassifier("mlr"), "predict_proba") and not hasattr(ms.MarginClassifier(), "predict_proba")
    assert not hasattr(ms.MLRClassifier(multiclass="ovo"), "predict_proba")
    # With two classes there are no pairs.
    assert ms.MLRClassifier(multiclass="ovo").fit(X2, y2).predict_proba(X2).shape == (100, 2)
    P = ms.MDLMClassifier().fit(X, y).predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(P.argmax(axis=1), ms.MDLMClassifier().fit(X, y).predict(X))


def test_what_is_not_there():
    clf = ms.LDMClassifier(kernel="rbf")
    with pytest.raises(NotFittedError):
        clf.predict(X)
    assert not any(hasattr(clf, name) for name in ("coef_", "classes_", "model_", "certificate_", "n_iter_"))
    for name in ("coef_", "certificate_"):
        with pytest.raises(NotFittedError, match="LDMClassifier instance is not fitted yet"):
            getattr(clf, name)
    assert not hasattr(clf, "partial_fit")
    with pytest.raises(AttributeError) as refused:
        clf.partial_fit(X, y)
    assert str(refused.value.__cause__) == "partial_fit needs kernel='linear' and solver='asgd' or 'sgd'"
    clf.fit(X, y)
    assert not hasattr(clf, "coef_") and not hasattr(ms.ULDMClassifier(basis="euclidean").fit(X, y), "basis_indices_")
    assert ms.ULDMClassifier(basis=[3, 70], multiclass="ovr").fit(X, y).basis_indices_.tolist() == [3, 70]
    assert ms.LSVMClassifier(reduced=[3, 70], multiclass="ovr").fit(X, y).basis_indices_.tolist() == [3, 70]
    with pytest.raises(ValueError, match="objective 'ldm' has no parameter 'nu'"):
        ms.MarginClassifier(params={"nu": 1.0}).fit(X, y)
    with pytest.raises(ValueError, match="objective 'ldm' has no parameter 'kernel'"):
        ms.MarginClassifier(params={"kernel": "rbf"}).fit(X, y)
    with pytest.raises(TypeError, match=r"^params needs to be a mapping of names to values; got \['C'\]"):
        ms.MarginClassifier(params=["C"]).fit(X, y)
    with pytest.raises(TypeError, match=r"^kernel_params needs to be a mapping"):
        ms.LDMClassifier(kernel="rbf", kernel_params="gamma").fit(X, y)
    with pytest.raises(ValueError, match="give the kernel itself as kernel="):
        ms.LDMClassifier(kernel_params={"kernel": "rbf"}).fit(X, y)
    with pytest.raises(ValueError, match="lambda1 needs to be"):
        ms.LDMClassifier(lambda1=-1.0).fit(X, y)
    with pytest.raises(ValueError, match="Invalid parameter 'nu'"):
        ms.LDMClassifier().set_params(nu=1.0)
    with pytest.raises(ValueError, match=r"; did you mean 'lambda1'[?]$"):
        ms.LDMClassifier().set_params(lamda1=1.0)


def test_margin_classifier_is_any_objective():
    given = ms.MarginClassifier("ldm", params={"C": 2.0}, kernel="rbf", gamma=0.5).fit(X, y)
    named = ms.LDMClassifier(C=2.0, kernel="rbf", gamma=0.5).fit(X, y)
    np.testing.assert_array_equal(given.decision_function(X), named.decision_function(X))
    for objective in ("ww", "rlp", ms.SVMClassifier._objective, ms.SVMClassifier._objective(C=0.5)):
        assert ms.MarginClassifier(objective).fit(X, y).score(X, y) > 0.9
    copy = clone(given)
    assert copy.params == {"C": 2.0} and copy.params is not given.params
    assert copy.get_params()["params__C"] == 2.0 and "params__C" not in copy.get_params(deep=False)
    copy.set_params(params__C=3.0, params__lambda1=0.0)
    assert copy.params == {"C": 3.0, "lambda1": 0.0} and given.params == {"C": 2.0}
    assert copy.set_params(params={"lambda1": 1.0}, params__C=4.0).params == {"lambda1": 1.0, "C": 4.0}


# ---------------------------------------------------------------- searches and meta-estimators


def test_search_over_kernels_and_their_parameters():
    grid = [
        {"kernel": ["rbf"], "gamma": [0.1, "scale"]},
        {"kernel": ["poly"], "degree": [2, 3], "coef0": [1.0]},
        {"kernel": ["linear"], "C": [0.1]},
    ]
    search = GridSearchCV(ms.SVMClassifier(), grid, cv=3, error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == 5 and search.best_score_ > 0.9
    one = clone(search.best_estimator_).fit(X, y)
    np.testing.assert_array_equal(one.decision_function(X), search.decision_function(X))


def test_search_over_entries_of_mappings():
    clf = ms.MarginClassifier("ldm", solver="asgd", bias="none")
    grid = {"params__C": [1e-6, 1.0], "params__lambda1": [0.0], "solver_options__epochs": [2]}
    grid = {f"marginclassifier__{name}": values for name, values in grid.items()}
    search = GridSearchCV(make_pipeline(StandardScaler(), clf), grid)
    search.fit(X2, y2)
    assert search.best_params_["marginclassifier__params__C"] == 1.0
    best = search.best_estimator_[-1]
    assert best.params == {"C": 1.0, "lambda1": 0.0} and best.solver_options == {"epochs": 2} and best.n_iter_ == 2
    assert clf.params is None


def test_precomputed_kernels_are_cut_in_rows_and_columns():
    K = rbf_kernel(X, gamma=0.3)
    given, made = ms.LDMClassifier(kernel="precomputed"), ms.LDMClassifier(kernel="rbf", gamma=0.3)
    ours = cross_val_predict(given, K, y, cv=3, method="decision_function")
    theirs = cross_val_predict(made, X, y, cv=3, method="decision_function")
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    search = GridSearchCV(given, {"C": [0.1, 10.0]}, cv=3).fit(K, y)
    assert search.best_estimator_.n_features_in_ == 150 and search.predict(K[:7]).shape == (7,)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        given.fit(pytest.importorskip("scipy.sparse").csr_matrix(K), y)
    with pytest.raises(ValueError, match="square"):
        given.fit(K[:20], y[:20])


def test_meta_estimators():
    linear = ms.LDMClassifier()
    folds = cross_val_predict(linear, X, y, cv=3, method="decision_function")
    assert folds.shape == (150, 3)
    calibrated = CalibratedClassifierCV(linear, cv=3).fit(X, y)
    assert calibrated.predict_proba(X).shape == (150, 3) and calibrated.score(X, y) > 0.9
    members = [("l2lr", ms.L2LRClassifier()), ("mlr", ms.MLRClassifier()), ("mdlm", ms.MDLMClassifier())]
    for voting in ("soft", "hard"):
        assert VotingClassifier(members, voting=voting).fit(X, y).score(X, y) > 0.9
    sparse = ms.MDLMClassifier(beta=0.3, tol=1e-8)
    A, b = load_breast_cancer(return_X_y=True)
    kept = SelectFromModel(sparse, threshold=1e-12).fit(scale(A), b).get_support()
    assert 0 < kept.sum() < A.shape[1] and (sparse.fit(scale(A), b).coef_[0] != 0).tolist() == kept.tolist()


def test_copies(tmp_path):
    clf = ms.LDMClassifier(kernel="rbf", class_weight={0: 2.0}).fit(X, y)
    want = clf.decision_function(X)
    for copy in (pickle.loads(pickle.dumps(clf)), clone(clf).fit(X, y)):
        np.testing.assert_array_equal(copy.decision_function(X), want)
    joblib.dump(clf, tmp_path / "clf.joblib")
    mapped = joblib.load(tmp_path / "clf.joblib", mmap_mode="r")
    np.testing.assert_array_equal(mapped.decision_function(X), want)
    clf.model_.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(mdlearn.load(tmp_path / "model.npz").decision_function(X), want)
    scores = joblib.Parallel(n_jobs=2, prefer="threads")(joblib.delayed(cross_val_score)(clf, X, y) for _ in range(2))
    np.testing.assert_array_equal(scores[0], scores[1])


# ---------------------------------------------------------------- weights


def test_class_weight_multiplies_sample_weight():
    weight = np.arange(150) % 3 + 1.0
    factors = {0: 2.0, 1: 0.5, 2: 1.0}
    one = ms.LDMClassifier(class_weight=factors).fit(X, y, sample_weight=weight)
    two = ms.LDMClassifier().fit(X, y, sample_weight=weight * np.array([factors[label] for label in y]))
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), rtol=1e-12)
    balanced = ms.LDMClassifier(class_weight="balanced").fit(X[20:], y[20:])
    counts = np.bincount(y[20:])
    given = ms.LDMClassifier(class_weight={k: 130 / (3 * n) for k, n in enumerate(counts)}).fit(X[20:], y[20:])
    np.testing.assert_allclose(balanced.decision_function(X), given.decision_function(X), rtol=1e-12)


def test_weights_are_routed():
    weight = np.arange(150) % 3
    with sklearn.config_context(enable_metadata_routing=True):
        clf = ms.SVMClassifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(clf, {"C": [0.1, 1.0]}, cv=3).fit(X, y, sample_weight=weight)
        best = search.best_estimator_
    own = ms.SVMClassifier(C=best.C).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(best.coef_, own.coef_)
    assert not np.array_equal(best.coef_, clone(own).fit(X, y).coef_)
