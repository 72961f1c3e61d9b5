"""approximation='nystroem' and 'landmarks': linear problems over kernel values with a few points, never silently."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import mdlearn
from mdlearn.cli import main
from mdlearn.data.features.kernel_approximation import KernelApproximationMap, nystroem_approximation
from mdlearn.numerics import memory

OBJECTIVES = {
    "ldm": {},
    "svm": {"C": 10.0},
    "lsvm": {},
    "uldm": {"multiclass": "ovr"},
    "lssvm": {},
    "lsldm": {},
    "mdlm": {},
    "l2lr": {},
}
OTHERS = ("mdlm", "l2lr", "uldm")
"""Linear, or with a norm of coefficients where the kernel has one of functions."""


def rows(m=300, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 4))
    f = X[:, 0] * X[:, 1] + 0.3 * X[:, 2] + 0.1 * rng.standard_normal(m)
    return X, np.digitize(f, np.quantile(f, np.arange(1, k) / k))


def gaussian(A, B, gamma):
    return np.exp(-gamma * np.square(A[:, None] - B[None]).sum(axis=2))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_problem_over_explicit_features(name):
    """The same as a fit to features that are made here, from the printed formula."""
    X, y = rows()
    given = {"tol": 1e-10, **OBJECTIVES[name]}
    model = mdlearn.fit(name, X, y, kernel="rbf", gamma=0.3, approximation="nystroem", n_components=25, **given)
    Z = model.landmarks_
    values, U = np.linalg.eigh(gaussian(Z, Z, 0.3))
    F = gaussian(X, Z, 0.3) @ U / np.sqrt(values)
    linear = mdlearn.fit(name, F, y, **given)
    one, other = model.certificate.objective, linear.certificate.objective
    assert model.certificate.converged
    assert abs(one - other) <= 1e-8 * abs(other)
    assert np.allclose(model.decision_function(X), linear.decision_function(F), atol=1e-3)
    assert all((X == point).all(axis=1).any() for point in Z)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_landmarks_are_kernel_columns(name):
    X, y = rows()
    given = {"tol": 1e-10, **OBJECTIVES[name]}
    model = mdlearn.fit(name, X, y, kernel="rbf", gamma=0.3, approximation="landmarks", n_components=25, **given)
    linear = mdlearn.fit(name, gaussian(X, model.landmarks_, 0.3), y, **given)
    assert abs(model.certificate.objective - linear.certificate.objective) <= 1e-8 * abs(linear.certificate.objective)
    assert model.approximation == "landmarks" and model.coef_.shape == (1, 25)


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if name not in OTHERS])
def test_all_points_are_the_kernel_itself(name):
    X, y = rows(120)
    given = {"kernel": "rbf", "tol": 1e-10, **OBJECTIVES[name]}
    near = mdlearn.fit(name, X, y, approximation="nystroem", n_components=120, **given)
    exact = mdlearn.fit(name, X, y, **given)
    assert abs(near.certificate.objective - exact.certificate.objective) <= 1e-8 * abs(exact.certificate.objective)
    assert np.allclose(near.decision_function(X), exact.decision_function(X), atol=1e-3)


def test_fewer_points_never_lie_below_the_kernel_and_more_are_nearer():
    """The features span a part of the kernel's space, so that the optimum over them is larger."""
    X, y = rows()
    exact = mdlearn.fit("ldm", X, y, kernel="rbf", tol=1e-9).certificate.objective
    found = [
        mdlearn.fit("ldm", X, y, kernel="rbf", approximation="nystroem", n_components=n, tol=1e-9).certificate.objective
        for n in (10, 40, 160)
    ]
    assert found[0] > found[1] > found[2] >= exact * (1 - 1e-8)


def test_the_model_says_that_it_is_an_approximation(tmp_path):
    X, y = rows(k=3)
    model = mdlearn.fit("ldm", X, y, kernel="rbf", approximation="nystroem", n_components=30)
    assert model.approximation == "nystroem" and "approximation='nystroem'" in repr(model)
    assert model.params["approximation"] == "nystroem" and model.params["n_components"] == 30
    assert model.kernel.name == "rbf" and model.n_features_in_ == 4
    assert model.coef_.shape[0] == 3 and model.dual_coef_.shape == (3, 300)
    assert mdlearn.fit("ldm", X, y, kernel="rbf").approximation is None
    model.save(tmp_path / "model.npz")
    for again in (mdlearn.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert again.approximation == "nystroem"
        assert np.array_equal(again.decision_function(X), model.decision_function(X))
        assert np.array_equal(again.landmarks_, model.landmarks_)


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_several_classes(multiclass):
    X, y = rows(k=3)
    given = {"kernel": "rbf", "multiclass": multiclass, "tol": 1e-9}
    near = mdlearn.fit("ldm", X, y, approximation="nystroem", n_components=300, **given)
    exact = mdlearn.fit("ldm", X, y, **given)
    assert np.allclose(near.decision_function(X), exact.decision_function(X), atol=1e-3)


def test_weights_are_repetitions():
    X, y = rows(200)
    weights = np.random.default_rng(1).integers(0, 3, 200)
    given = {"kernel": "rbf", "approximation": "nystroem", "n_components": 40, "tol": 1e-10}
    one = mdlearn.fit("ldm", X, y, sample_weight=weights, **given)
    repeated = np.random.default_rng(2).permutation(np.repeat(np.arange(200), weights))
    other = mdlearn.fit("ldm", X[repeated], y[repeated], **given)
    assert np.array_equal(one.landmarks_, other.landmarks_)
    assert abs(one.certificate.objective - other.certificate.objective) <= 1e-9 * one.certificate.objective


@pytest.mark.parametrize("kind", ["float32", "csr", "poly", "callable"])
def test_types_and_kernels(kind):
    X, y = rows()
    given = {"kernel": "rbf", "approximation": "nystroem", "n_components": 30, "tol": 1e-5}
    if kind == "poly":
        given |= {"kernel": "poly", "degree": 2, "coef0": 1.0}
    if kind == "callable":
        given["kernel"] = lambda A, B: gaussian(A, B, 0.25)
    plain = mdlearn.fit("svm", X, y, **given)
    X = X.astype(np.float32) if kind == "float32" else sp.csr_matrix(X) if kind == "csr" else X
    model = mdlearn.fit("svm", X, y, **given)
    assert model.certificate.converged
    assert model.coef_.dtype == (np.float32 if kind == "float32" else np.float64)
    assert np.mean(model.predict(X) == plain.predict(rows()[0])) > 0.99


def test_paths_choose_the_number_of_points():
    X, y = rows()
    grid = {"n_components": [10, 60], "C": [0.1, 10.0]}
    path = mdlearn.fit_path("ldm", X, y, grid, kernel="rbf", approximation="nystroem", tol=1e-9)
    for model in path:
        params = {name: model.params[name] for name in grid}
        alone = mdlearn.fit("ldm", X, y, kernel="rbf", approximation="nystroem", tol=1e-9, **params)
        assert abs(model.certificate.objective - alone.certificate.objective) <= 2e-9 * alone.certificate.objective
        assert np.array_equal(model.landmarks_, alone.landmarks_)
    assert path.decision_function(X).shape == (4, 300)
    assert np.allclose(path.decision_function(X)[3], path[3].decision_function(X))


def test_warm_starts():
    X, y = rows()
    given = {"kernel": "rbf", "approximation": "nystroem", "n_components": 50}
    first = mdlearn.fit("ldm", X, y, **given)
    again = mdlearn.fit("ldm", X, y, warm_start=first, **given)
    assert again.certificate.converged and again.n_iter <= first.n_iter
    with pytest.raises(ValueError, match="needs a model of the same features"):
        mdlearn.fit("ldm", X, y, warm_start=first, **{**given, "n_components": 40})


def test_memory_errors_name_it(monkeypatch):
    X, y = rows(2000)
    monkeypatch.setattr(memory, "available_bytes", lambda: 2e7)
    for name, given in (("ldm", {}), ("ldm", {"solver": "interior"}), ("lsvm", {"solver": "smw"})):
        with pytest.raises(mdlearn.InsufficientMemory, match="approximation='nystroem'"):
            mdlearn.fit(name, X, y, kernel="rbf", **given)
    model = mdlearn.fit("ldm", X, y, kernel="rbf", approximation="nystroem", n_components=20)
    assert model.certificate.converged


@pytest.mark.extras
def test_onnx():
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    X, y = rows()
    model = mdlearn.fit("ldm", X, y, kernel="rbf", approximation="nystroem", n_components=30)
    session = runtime.InferenceSession(model.to_onnx().SerializeToString())
    scores = session.run(["scores"], {"X": X})[0]
    assert np.allclose(np.ravel(scores), model.decision_function(X), atol=1e-9)


def test_estimators_and_the_command_line(tmp_path, capsys):
    sklearn = pytest.importorskip("mdlearn.sklearn")
    X, y = rows()
    asked = {"approximation": "nystroem", "n_components": 30}
    model = sklearn.LDMClassifier(kernel="rbf", kernel_params=asked, tol=1e-6).fit(X, y).model_
    assert model.approximation == "nystroem"
    assert np.array_equal(model.coef_, mdlearn.fit("ldm", X, y, kernel="rbf", **asked).coef_)
    np.savetxt(tmp_path / "rows.csv", np.column_stack([X, y]), delimiter=",")
    given = [f"--param={name}={value}" for name, value in asked.items()]
    out = str(tmp_path / "model.npz")
    assert main(["fit", str(tmp_path / "rows.csv"), "--objective", "ldm", "--kernel", "rbf", *given, "-o", out]) == 0
    assert "nystroem" in capsys.readouterr().out
    assert mdlearn.load(out).landmarks_.shape == (30, 4)


REFUSED = {
    "linear": ({"approximation": "nystroem"}, "needs a kernel of rows, such as kernel='rbf'; got kernel='linear'"),
    "precomputed": ({"kernel": "precomputed", "approximation": "nystroem"}, "got kernel='precomputed'"),
    "unknown": ({"kernel": "rbf", "approximation": "rff"}, "one of nystroem, landmarks; got 'rff'"),
    "alone": ({"kernel": "rbf", "n_components": 5}, "the number of points of an approximation"),
    "none": ({"kernel": "rbf", "approximation": "nystroem", "n_components": 0}, "n_components needs to be an integer"),
    "many": ({"kernel": "rbf", "approximation": "nystroem", "n_components": 500}, "500 but X has 300 distinct rows"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_a_sentence(case):
    given, told = REFUSED[case]
    X, y = rows()
    X = X @ X.T if given.get("kernel") == "precomputed" else X
    with pytest.raises(ValueError, match=told):
        mdlearn.fit("svm", X, y, **given)


def test_objectives_with_features_of_their_own():
    X, y = rows()
    given = {"kernel": "rbf", "approximation": "nystroem"}
    with pytest.raises(ValueError, match="'l3svm' makes features of its own; leave out approximation"):
        mdlearn.fit("l3svm", X, y, **given)
    with pytest.raises(ValueError, match="makes columns of its own"):
        mdlearn.fit("uldm", X, y, basis="all", **given)
    with pytest.raises(TypeError, match="are names of fit's own arguments"):
        type("Bad", (mdlearn.Objective,), {"name": "bad", "parameters": {"n_components": None}})()


def test_a_kernel_that_is_none():
    X, y = rows()
    with pytest.raises(ValueError, match="not positive semidefinite"):
        mdlearn.fit("svm", X, y, kernel=lambda A, B: -(A @ B.T), approximation="nystroem", n_components=20)


@pytest.mark.parametrize("scale", [1.0, 0.05, 0.001])
def test_inner_products_on_the_points_are_kernel_values(scale):
    """Also where the points' kernel matrix has next to no rank."""
    Z, A = scale * rows(150)[0], scale * rows(80, seed=1)[0]
    M = nystroem_approximation(gaussian(Z, Z, 0.3))
    F, G = gaussian(Z, Z, 0.3) @ M, gaussian(A, Z, 0.3) @ M
    assert np.abs(F @ F.T - gaussian(Z, Z, 0.3)).max() < 1e-11
    rest = gaussian(A, A, 0.3) - G @ G.T  # what a projection takes is positive semidefinite, and so is what is left
    assert np.linalg.eigvalsh(rest)[0] > -1e-9
    assert (
        nystroem_approximation(-np.eye(3)) is None
        and nystroem_approximation(np.array([[1.0, 2.0], [2.0, 1.0]])) is None
    )
    assert nystroem_approximation(np.ones((3, 3))).shape == (3, 1)


@pytest.mark.parametrize("how", ["nystroem", "landmarks"])
@pytest.mark.parametrize("name", ["svm", "ldm", "mdlm", "l2lr"])
@pytest.mark.parametrize("solver", ["auto", "sgd"])
def test_features_are_made_until_the_deadline_only(name, how, solver, clock, monkeypatch):
    X, y = rows(6000, k=3)
    blocks, make = [], KernelApproximationMap.features

    def slow(self, A):
        blocks.append(A.shape[0])
        clock.sleep(1.0)
        return make(self, A)

    if solver == "sgd" and name in ("mdlm", "l2lr"):
        name, solver = "svm", "asgd"
    monkeypatch.setattr(KernelApproximationMap, "features", slow)
    monkeypatch.setattr("mdlearn.data.features.feature_map.BLOCK_ENTRIES", 2000)
    given = {"kernel": "rbf", "approximation": how, "n_components": 20, "solver": solver, "time_limit": 3.5}
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit"):
        model = mdlearn.fit(name, X, y, **given)
    assert 3 <= len(blocks) <= 5
    assert not model.coef_.any() and model.coef_.shape == (3, 20)
    assert np.isfinite(model.certificate.objective)
    assert np.isfinite(model.decision_function(X[:5])).all()


@pytest.mark.parametrize("seed", range(12))
def test_predictions_have_the_objective_of_the_certificate(seed):
    """Where columns differ by 1e14 in size, so that all points but one or two lie in the span of the others."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((49, 10)) * 10.0 ** rng.uniform(-6, 7.5, 10)
    y = np.where(rng.random(49) < 0.5, 1.0, -1.0)
    own = {"kernel": "poly", "degree": 1, "coef0": 1.0, "gamma": 0.03}
    C, lambda1, lambda2 = 1.0, 90.0, 1e-4
    settings = {"C": C, "lambda1": lambda1, "lambda2": lambda2, "bias": "none", "tol": 1e-12}
    model = mdlearn.fit("lsldm", X, y, approximation="nystroem", n_components=4, **own, **settings)
    z = y * model.decision_function(X)
    value = 0.5 * (model.coef_**2).sum() - lambda1 * z.mean() + 0.5 * lambda2 * z.var() + 0.5 * C * ((1 - z) ** 2).sum()
    assert value == pytest.approx(model.certificate.objective, rel=1e-11)
