"""A path gives what single fits give: certified at every point, in the order of the grid, with the same bits twice."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from path_cases import CASES, SEVERAL, path, rows, single, text

import mdlearn

TOL = 1e-6


def agree(found, objective, X, y, settings, within=2e-6):
    """Every point is certified, and its objective is within the bounds of a single fit."""
    assert found.converged.all(), found.certificates
    for point, model in zip(found.points, found):
        one = single(objective, X, y, **point, **settings)
        a, b = model.certificate, one.certificate
        scale = max(abs(b.objective), 1e-3)
        assert a.lower_bound - b.objective <= within * scale and b.lower_bound - a.objective <= within * scale
        assert model.params.keys() == one.params.keys() and a.tol == b.tol
        for name, value in point.items():
            assert value == "scale" or model.params[name] == value


@pytest.mark.parametrize("name", CASES)
def test_every_point_is_certified_and_as_good_as_a_single_fit(name):
    objective, grid, settings = CASES[name]
    X, y, _ = rows()
    found = path(objective, X, y, grid, **settings)
    assert len(found) == len(found.points) == int(np.prod([len(values) for values in grid.values()]))
    agree(found, objective, X, y, settings)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEVERAL)
def test_several_classes(name):
    objective, grid, settings = SEVERAL[name]
    X, y, counts = rows(k=3, m=70)
    agree(path(objective, X, y, grid, **settings), objective, X, y, settings)
    weighted = {**settings, "sample_weight": counts, "n_threads": 2}
    agree(path(objective, X, y, grid, **weighted), objective, X, y, weighted)


@pytest.mark.parametrize(
    "objective, grid",
    [("ldm", {"C": [0.5, 2.0], "lambda1": [0.0, 200.0]}), ("lssvm", {"C": [0.1, 1.0]}), ("lsvm", {"nu": [0.1, 1.0]})],
)
def test_many_sparse_rows(objective, grid):
    X, y = text()
    settings = {"solver": "cd", "bias": "regularized"}
    agree(path(objective, X, y, grid, **settings), objective, X, y, settings)


@pytest.mark.parametrize("name", ["ldm rbf", "ldm", "svm free", "uldm rbf", "lssvm rbf", "lsvm", "mlr", "l3svm", "ww"])
def test_decision_values_of_tight_fits(name):
    objective, grid, settings = CASES[name]
    X, y, _ = rows()
    found = path(objective, X, y, grid, tol=1e-12, **settings)
    assert found.gap.max() <= 1e-10
    for point, f in zip(found.points, found.decision_function(X)):
        g = single(objective, X, y, tol=1e-12, **point, **settings).decision_function(X)
        assert np.abs(f - g).max() <= 2e-5 * max(1.0, np.abs(g).max())


@pytest.mark.parametrize("name", ["ldm rbf", "ldm", "uldm rbf", "lssvm", "lsvm rbf", "mdlm", "svm poly"])
def test_weights_are_repetitions(name):
    objective, grid, settings = CASES[name]
    X, y, counts = rows()
    counts[:2] = 1  # both classes
    weighted = path(objective, X, y, grid, tol=1e-11, sample_weight=counts, **settings)
    index = np.repeat(np.arange(len(y)), counts)
    repeated = path(objective, X[index], y[index], grid, tol=1e-11, **settings)
    scale = np.maximum(np.abs(repeated.objective), 1e-3)
    assert (np.abs(weighted.objective - repeated.objective) <= 1e-8 * scale).all()
    F, G = weighted.decision_function(X), repeated.decision_function(X)
    assert np.abs(F - G).max() <= 1e-4 * np.abs(G).max()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ldm rbf", "ldm", "svm rbf free", "uldm rbf", "l3svm"])
@pytest.mark.parametrize("n_threads", [None, 2])
def test_the_same_bits_twice(name, n_threads):
    objective, grid, settings = CASES[name]
    X, y, _ = rows(k=3)
    a, b = (path(objective, X, y, grid, n_threads=n_threads, **settings) for _ in range(2))
    assert np.array_equal(a.objective, b.objective) and np.array_equal(a.gap, b.gap)
    assert np.array_equal(a.decision_function(X), b.decision_function(X))
    for one, other in zip(a, b):
        assert np.array_equal(one.duals, other.duals) and np.array_equal(one.intercept_, other.intercept_)


@pytest.mark.parametrize("kind", ["csr", "float32", "fortran", "read-only", "precomputed"])
def test_kinds_of_rows(kind):
    X, y, _ = rows()
    settings = {"kernel": "rbf", "gamma": 0.7}
    given = X
    if kind == "csr":
        given = sp.csr_matrix(X)
    elif kind == "float32":
        given = X.astype(np.float32)
    elif kind == "fortran":
        given = np.asfortranarray(X)
    elif kind == "read-only":
        given = X.copy()
        given.flags.writeable = False
    else:
        given, settings = np.exp(-0.7 * ((X[:, None] - X[None]) ** 2).sum(axis=2)), {"kernel": "precomputed"}
    grid = {"C": [0.5, 5.0], "lambda1": [0.0, 10.0]}
    found = path("ldm", given, y, grid, tol=1e-5, **settings)
    known = path("ldm", X, y, grid, tol=1e-5, kernel="rbf", gamma=0.7)
    assert found.converged.all()
    assert np.allclose(found.objective, known.objective, rtol=3e-5)
    assert found[0].dual_coef_.dtype == (np.float32 if kind == "float32" else np.float64)
    agree(found, "ldm", given, y, {"tol": 1e-5, **settings}, within=3e-5)


@pytest.mark.parametrize("name", ["ldm rbf", "ldm", "uldm rbf", "uldm cholesky", "svm callable", "l3svm", "ldm gamma"])
@pytest.mark.parametrize("k", [2, 3])
def test_all_models_at_once(name, k):
    objective, grid, settings = CASES[name]
    X, y, _ = rows(k=k)
    labels = np.array(["a", "b", "c"])[y]
    found = path(objective, X, labels, grid, **settings)
    new = rows(m=23, k=k, seed=5)[0]
    F = found.decision_function(new)
    assert F.shape == ((len(found), 23) if k == 2 else (len(found), 23, k))
    for model, f, told, share in zip(found, F, found.predict(new), found.score(X, labels)):
        g = model.decision_function(new)
        assert np.abs(f - g).max() <= 1e-12 * max(1.0, np.abs(g).max())
        assert np.array_equal(told, model.predict(new)) and share == pytest.approx(model.score(X, labels))


def test_models_do_not_depend_on_rows_that_the_caller_changes():
    X, y, _ = rows()
    given = X.copy()
    found = path("ldm", given, y, {"C": [1.0, 5.0]}, kernel="rbf")
    known = found.decision_function(X)
    given[:] = 7.0
    assert np.array_equal(found.decision_function(X), known)
    assert np.allclose(found[1].decision_function(X), known[1], rtol=1e-12)
    assert found[1].support_.shape[0] == np.count_nonzero(found[1].dual_coef_)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_model_of_a_path_is_that_of_a_fit(kernel, tmp_path):
    X, y, counts = rows(k=3)
    settings = {"kernel": kernel, "sample_weight": counts, "class_weight": "balanced"}
    found, one = path("ldm", X, y, {"C": [1.0]}, **settings), mdlearn.fit("ldm", X, y, C=1.0, **settings)
    for name in ("classes_", "support_", "n_support_", "duals", "intercept_", "dual_coef_"):
        assert np.array_equal(getattr(found[0], name), getattr(one, name)), name
    found[0].save(tmp_path / "one.npz")
    assert np.array_equal(mdlearn.load(tmp_path / "one.npz").predict(X), one.predict(X))
