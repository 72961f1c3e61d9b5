"""Models of every objective, kernel, type and way to tell classes apart come back from their files bit by bit."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from persistence_cases import data, gram
from regression_cases import Tube

import mdlearn
from mdlearn.plugins.registry import registry

pytestmark = pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")

OBJECTIVES = registry().objectives
WITH_KERNELS = sorted(name for name, cls in OBJECTIVES.items() if cls.kernels)
TRANSFORMS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "csr": lambda X: sp.csr_matrix(np.where(X > 0.3, X, 0.0)),
    "csr, float32": lambda X: sp.csr_matrix(np.where(X > 0.3, X, 0.0).astype(np.float32)),
}


def comes_back(model, X, path):
    model.save(path)
    again = mdlearn.load(path)
    assert type(again) is type(model)
    f, F = model.decision_function(X), again.decision_function(X)
    assert f.tobytes() == F.tobytes() and f.shape == F.shape
    assert_array_equal(again.predict(X), model.predict(X), strict=True)
    if hasattr(model, "predict_proba"):
        assert_array_equal(again.predict_proba(X), model.predict_proba(X), strict=True)
    for name in ("objective", "params", "bias", "multiclass", "solver", "solver_reason", "n_iter", "n_features_in_"):
        mine, theirs = getattr(model, name), getattr(again, name)
        assert repr(mine) == repr(theirs), name
    assert again.certificate == model.certificate and again.history == model.history
    assert again.extras.keys() == model.extras.keys()
    for name, value in model.extras.items():
        for mine, theirs in zip(*((v if isinstance(v, tuple) else (v,)) for v in (value, again.extras[name]))):
            assert_array_equal(mine, theirs, strict=True)
    first = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == first


def settings(objective):
    return {"n_clusters": 3, "n_landmarks": 3} if objective == "l3svm" else {}


@pytest.mark.parametrize("kind", TRANSFORMS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("objective", sorted(OBJECTIVES))
def test_linear_models(objective, classes, kind, tmp_path):
    X, y = data(classes)
    X = TRANSFORMS[kind](X)
    for way in sorted(set(OBJECTIVES[objective].multiclass)) if classes > 2 and kind == "float64" else ["auto"]:
        comes_back(mdlearn.fit(objective, X, y, multiclass=way, **settings(objective)), X, tmp_path / "m.npz")


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["rbf", "poly", "precomputed"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("objective", WITH_KERNELS)
def test_kernel_models(objective, classes, kernel, tmp_path):
    if objective == "l3svm" and kernel == "precomputed":
        pytest.skip("landmarks need rows")
    X, y = data(classes)
    for kind in TRANSFORMS if kernel != "precomputed" else ["float64", "float32"]:
        rows = TRANSFORMS[kind](gram(X) if kernel == "precomputed" else X)
        comes_back(mdlearn.fit(objective, rows, y, kernel=kernel, **settings(objective)), rows, tmp_path / "m.npz")


@pytest.mark.parametrize("given", [{}, {"kernel": "rbf"}, {"bias": "none", "kernel": "poly"}])
def test_regression(given, tmp_path):
    X, _ = data()
    for transform in TRANSFORMS.values():
        rows = transform(X)
        model = mdlearn.fit(Tube, rows, X[:, 0] + 0.5, **given)
        comes_back(model, rows, tmp_path / "m.npz")
        assert mdlearn.load(tmp_path / "m.npz").score(rows, X[:, 0]) == model.score(rows, X[:, 0])
