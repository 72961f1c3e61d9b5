"""Prediction, attributes, files and errors of L3-SVM models."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from l3 import block_features, clusters, problem

import mdlearn
from mdlearn.data.features import landmark_map
from mdlearn.errors import InsufficientMemory


def fit(X, y, **settings):
    return mdlearn.fit("l3svm", X, y, **{"n_clusters": 4, **settings})


def test_folded_coefficients_predict_what_landmarks_do(monkeypatch):
    X, y, _, _ = problem(m=80, d=6, L=3)
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.5, 0.5])
    model = fit(X, y, n_landmarks=5)
    f = model.decision_function(X)
    k = clusters(X, model.centers_)
    assert np.allclose(model.folded_coef_, model.coef_ @ model.landmarks_, atol=1e-14)
    folded = np.einsum("ckd,id->ick", model.folded_coef_, X)[np.arange(80), :, k] + model.intercept_
    unfolded = np.array([model.coef_[:, k[i]] @ (model.landmarks_ @ X[i]) for i in range(80)]) + model.intercept_
    assert np.allclose(f, folded, atol=1e-12) and np.allclose(f, unfolded, atol=1e-12)
    monkeypatch.setattr(landmark_map, "COPY_BYTES", 0.0)
    assert np.allclose(fit(X, y, n_landmarks=5).decision_function(X), f, atol=1e-12)


def test_parameters_are_complete_and_attributes_have_their_shapes():
    X, y, centers, landmarks = problem(d=7, K=4, L=5)
    model = fit(X, y)
    wanted = {"C": 100.0, "n_clusters": 4, "n_landmarks": 7, "sigma": 7.0, "loss": "hinge", "smoothness": 0.0}
    wanted |= {"projection": "dot", "membership": "hard", "n_levels": 1, "clustering": "kmeans"}
    assert wanted.items() <= model.params.items() and model.params["landmark_selection"] == "random"
    assert model.coef_.shape == (1, 4, 7) and model.dual_coef_.shape == (1, 60)
    assert model.centers_.shape == (4, 7) and model.landmarks_.shape == (7, 7)
    assert mdlearn.fit("l3svm", X, y).params["n_clusters"] == 10
    assert fit(X[:5], [0, 1, 0, 1, 0]).params["n_landmarks"] == 5
    given = mdlearn.fit("l3svm", X, y, centers=centers, landmarks=landmarks)
    assert (given.params["n_clusters"], given.params["n_landmarks"]) == (4, 5)
    assert np.array_equal(given.centers_, centers) and np.array_equal(given.landmarks_, landmarks)
    rbf = fit(X, y, projection="rbf")
    with pytest.raises(AttributeError, match="dot projections"):
        _ = rbf.folded_coef_
    with pytest.raises(AttributeError, match="coef_ exists for the linear kernel only"):
        _ = fit(X, y, kernel="rbf").coef_
    with pytest.raises(AttributeError, match="no attribute 'centers_'"):
        _ = mdlearn.fit("svm", X, y).centers_


CASES = [
    {},
    {"projection": "rbf", "sigma": 3.0},
    {"kernel": "rbf"},
    {"kernel": "poly", "smoothness": 0.5},
    {"smoothness": 2.0, "membership": "soft"},
    {"n_levels": 2, "loss": "squared_hinge"},
    {"landmark_selection": "pca", "n_landmarks": 2},
    {"landmark_selection": "kmeans"},
]


@pytest.mark.parametrize("settings", CASES, ids=str)
@pytest.mark.parametrize("store", ["float64", "float32", "csr"])
def test_models_come_back_from_files(store, settings, tmp_path):
    X, y, _, _ = problem(m=70)
    X = sp.csr_matrix(X) if store == "csr" else X.astype(store)
    model = fit(X, y, **settings)
    model.save(tmp_path / "model.npz")
    back = mdlearn.load(tmp_path / "model.npz")
    assert np.array_equal(back.decision_function(X), model.decision_function(X))
    for name in ("centers_", "landmarks_", "dual_coef_", *(() if "kernel" in settings else ("coef_",))):
        found = getattr(back, name)
        assert np.array_equal(found, getattr(model, name)) and found.dtype == getattr(model, name).dtype
    assert {k: v for k, v in back.params.items() if v is not None} == {
        k: v for k, v in model.params.items() if v is not None
    }


def by_first_column(X, n, seed):
    order = np.argsort(X[:, 0])
    return X[order[np.linspace(0, len(order) - 1, n).astype(int)]]


def shifted_dot(A, B):
    return A @ B.T + 1.0


CALLABLES = {"clustering": by_first_column, "landmark_selection": by_first_column, "projection": shifted_dot}


@pytest.mark.parametrize("name", CALLABLES)
def test_callables_are_used_and_cannot_be_saved(name, tmp_path):
    X, y, _, _ = problem()
    model = fit(X, y, tol=1e-10, **{name: CALLABLES[name]})
    chosen = by_first_column(np.array(sorted(X.tolist())), 4 if name == "clustering" else 3, 0)
    if name == "clustering":
        assert np.array_equal(model.centers_, chosen)
    elif name == "landmark_selection":
        assert np.array_equal(model.landmarks_, chosen)
    else:
        Phi = block_features(X, model.centers_, model.landmarks_)
        Phi += np.repeat(np.eye(4)[clusters(X, model.centers_)], 3, axis=1)
        assert np.allclose(model.decision_function(X), Phi @ model.coef_.ravel() + model.intercept_, atol=1e-12)
    with pytest.raises(ValueError, match=f"a callable {name} cannot be saved"):
        model.save(tmp_path / "model.npz")


@pytest.mark.parametrize("solver", ["auto", "cd"])
def test_float32_and_sparse_rows_fit_like_dense_float64(solver):
    X, y, centers, landmarks = problem(m=120)
    X = X.astype(np.float32).astype(float)
    settings = {"centers": centers, "landmarks": landmarks, "solver": solver, "n_clusters": 4}
    dense = fit(X, y, **settings)
    sparse, single = fit(sp.csr_matrix(X), y, **settings), fit(X.astype(np.float32), y, **settings)
    assert sparse.certificate.objective == pytest.approx(dense.certificate.objective, rel=1e-6)
    assert single.certificate.objective == pytest.approx(dense.certificate.objective, rel=1e-5)
    assert single.coef_.dtype == single.folded_coef_.dtype == single.intercept_.dtype == np.float32
    assert np.allclose(sparse.decision_function(X), dense.decision_function(sp.csr_matrix(X)), atol=1e-2)


ERRORS = [
    ({"n_clusters": 61}, ValueError, "n_clusters is 61 but X has 60 distinct rows"),
    ({"n_landmarks": 61}, ValueError, "n_landmarks is 61 but X has 60 distinct rows"),
    ({"n_landmarks": 0}, ValueError, "n_landmarks needs to be an integer >= 1; got 0"),
    ({"n_clusters": 2.5}, TypeError, "n_clusters needs to be an integer >= 1; got 2.5"),
    ({"n_landmarks": 4, "landmark_selection": "pca"}, ValueError, "has 3 directions"),
    ({"landmark_selection": "best"}, ValueError, "landmark_selection needs to be one of random, pca, kmeans"),
    ({"centers": np.zeros((4, 2))}, ValueError, "centers has 2 columns but X has 3"),
    ({"centers": np.zeros((3, 3))}, ValueError, "n_clusters is 4 but centers has 3 rows"),
    ({"landmarks": np.full((2, 3), np.nan)}, ValueError, "landmarks contains NaN"),
    ({"sigma": 0.0}, ValueError, "sigma needs to be a number > 0"),
    ({"loss": "square"}, ValueError, "loss needs to be one of hinge, squared_hinge"),
    ({"membership": "fuzzy"}, ValueError, "membership needs to be one of hard, soft"),
    ({"smoothness": -1.0}, ValueError, "smoothness"),
    ({"C": -1.0}, ValueError, "C needs to be"),
    ({"C": np.inf}, ValueError, "C needs to be a finite number"),
    ({"C": 0.0, "n_levels": 2}, ValueError, "level 1 has no support vectors"),
    ({"clustering": lambda X, n, seed: X[:2]}, ValueError, "returned shape"),
]


@pytest.mark.parametrize(("settings", "kind", "message"), ERRORS, ids=[e[2] for e in ERRORS])
def test_errors_say_what_is_needed(settings, kind, message):
    X, y, _, _ = problem()
    with pytest.raises(kind, match=message):
        fit(X, y, **settings)


def test_a_precomputed_kernel_and_a_lack_of_memory_are_refused(monkeypatch):
    X, y, _, _ = problem()
    with pytest.raises(ValueError, match="'l3svm' needs rows"):
        fit(X @ X.T, y, kernel="precomputed")
    monkeypatch.setattr("mdlearn.numerics.memory.NEGLIGIBLE_BYTES", 0.0)
    monkeypatch.setattr("mdlearn.numerics.memory.available_bytes", lambda: 5000.0)
    with pytest.raises(InsufficientMemory):
        fit(X, y)
