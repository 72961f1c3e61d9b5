"""Kernel matrices that nobody keeps: blocks and products are those of the matrix, to the type that they are made in."""

from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

import mdlearn
from mdlearn.data.features import kernel_tiles, kernels
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernels import make_kernel
from mdlearn.data.rows.arrays import array_as_rows
from mdlearn.extend import Parameter
from mdlearn.numerics.interruptible import finished

KINDS = {
    "few columns": (3, {"gamma": 0.7}, "DifferenceTiles", "DifferenceTiles"),
    "many columns": (30, {"gamma": 0.05}, "GaussianTiles", "GaussianTiles"),
    "long rows": (140, {"gamma": 0.01}, "GaussianTiles", "ExactTiles"),
    "far rows": (30, {"gamma": 50.0}, "ExactTiles", "ExactTiles"),
    "far rows of few columns": (3, {"gamma": 5000.0}, "ExactTiles", "DifferenceTiles"),
    "poly": (6, {"gamma": 0.3, "degree": 3, "coef0": 1.0}, "ExactTiles", "ExactTiles"),
}


def features_of(kind, storage=np.asarray, m=700):
    d, params, *_ = KINDS[kind]
    X = np.random.default_rng(d).standard_normal((m, d)) + 3.0
    rows = array_as_rows(storage(X), "X")
    kernel = make_kernel("poly" if kind == "poly" else "rbf", params, rows, np.ones(m))
    return KernelFeatures(rows, kernel), X


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_and_products_are_those_of_the_matrix(kind, single, storage, monkeypatch):
    monkeypatch.setattr(kernel_tiles, "TILE_LENGTH", 130)
    features, _ = features_of(kind, storage)
    G = finished(features_of(kind, storage)[0].gram())
    columns = features.columns(single)
    eps = 2e-5 if columns.dtype == np.float32 else 1e-12
    rng = np.random.default_rng(0)
    some = np.sort(rng.choice(700, 300, replace=False))
    room = np.empty(300 * 300 + 5, dtype=columns.dtype)
    H = finished(columns.block(some, room))
    size = np.sqrt(np.outer(np.diagonal(G), np.diagonal(G)))
    assert np.abs(H - G[np.ix_(some, some)]).max() <= eps * size.max()
    coef, out = rng.standard_normal(300), rng.standard_normal(700)
    before = out.copy()
    finished(columns.add(out, some, coef))
    assert np.abs(out - before - G[:, some] @ coef).max() <= eps * size.max() * np.abs(coef).sum()
    part = columns.take(some)
    whole = np.zeros(300)
    finished(part.add(whole, np.arange(300), coef))
    assert np.abs(whole - G[np.ix_(some, some)] @ coef).max() <= eps * size.max() * np.abs(coef).sum()


@pytest.mark.parametrize("kind", KINDS)
def test_what_values_are_made_of(kind):
    features, _ = features_of(kind)
    single, double = features.columns(single=True), features.columns(single=False)
    assert (type(single).__name__, type(double).__name__) == KINDS[kind][2:] and double.dtype == np.float64


@pytest.mark.parametrize("kind", KINDS)
def test_decision_values_without_a_matrix(kind):
    """Those of a point near the last one need the columns of its changes alone; they are the same."""
    features, _ = features_of(kind)
    G = finished(features_of(kind)[0].gram())
    rng = np.random.default_rng(1)
    alpha = rng.standard_normal(700) * (rng.random(700) < 0.4)
    scale = np.abs(G).max() * np.abs(alpha).sum()
    assert not features.ready
    assert np.abs(features.decision(alpha) - G @ alpha).max() <= 1e-14 * scale
    assert features.ready
    near = alpha.copy()
    near[:20] += 0.1
    assert np.abs(features.decision(near) - G @ near).max() <= 2e-14 * scale


class Overlap(mdlearn.KernelFunction):
    """exp(-|a - b|_1 / width)."""

    name = "overlap"
    summary = "exp(-|a - b|_1 / width)"
    parameters: ClassVar = {"width": Parameter(1.0, "length over which it falls", strict=True)}

    def values(self, params, A, B):
        return laplace(A, B, params["width"])


def laplace(A, B, width=1.0):
    return np.exp(-np.abs(A[:, None, :] - B[None, :, :]).sum(axis=2) / width)


@pytest.mark.parametrize("kernel", [laplace, Overlap], ids=["function", "plugin"])
def test_decision_values_of_kernels_that_are_functions(kernel):
    X, alpha = np.random.default_rng(2).standard_normal((700, 3)), np.zeros(700)
    alpha[:90] = 1.0
    rows = array_as_rows(X, "X")
    features = KernelFeatures(rows, make_kernel(kernel, {}, rows, np.ones(700)))
    np.testing.assert_allclose(features.decision(alpha), laplace(X, X) @ alpha, rtol=1e-12)


def test_a_start_that_a_time_limit_ends_is_certified_by_its_own_kernel():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1300, 3))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(1300) > 0, 1, -1)
    start = mdlearn.fit("svm", X, y, kernel=laplace, bias="none")
    with pytest.warns(mdlearn.ConvergenceWarning):
        model = mdlearn.fit("svm", X, y, kernel=laplace, bias="none", C=2.0, warm_start=start, time_limit=1e-9)
    alpha = model.dual_coef_.ravel()
    f = laplace(X, X) @ alpha
    value = 0.5 * alpha @ f + 2.0 * np.maximum(0.0, 1.0 - y * f).sum()
    assert value < 0.5 * 2.0 * 1300
    assert model.certificate.objective == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_a_start_over_a_landmark_space_that_a_time_limit_ends(kernel):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1300, 3))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(1300) > 0, 1, -1)
    given = {"kernel": kernel, "gamma": 0.3, "centers": X[:4], "landmarks": X[4:9]}
    start = mdlearn.fit("l3svm", X, y, tol=0.5, **given)
    with pytest.warns(mdlearn.ConvergenceWarning):
        model = mdlearn.fit("l3svm", X, y, warm_start=start, time_limit=1e-9, **given)
    assert model.certificate.objective == pytest.approx(start.certificate.objective, rel=1e-9)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_squared_lengths_of_rows_are_made_once(storage, monkeypatch):
    monkeypatch.setattr(kernel_tiles, "TILE_LENGTH", 50)
    own, made = kernels.Kernel.squares, []
    monkeypatch.setattr(kernels.Kernel, "squares", lambda *given: made.append(own(*given)) or made[-1])
    X = storage(np.random.default_rng(0).standard_normal((230, 12)) + 3.0)
    rows = array_as_rows(X, "X")
    kernel = make_kernel("rbf", {"gamma": 0.3}, rows, np.ones(230))
    tiles, out, coef = kernel_tiles.make_kernel_tiles(kernel, rows, single=False), np.zeros(230), np.ones(230)
    finished(tiles.add(out, np.arange(230), coef))
    assert [len(one) for one in made] == [230]
    A = rows.block(slice(None))
    G = np.exp(-0.3 * np.square(A[:, None] - A).sum(axis=2))
    np.testing.assert_allclose(out, G.sum(axis=1), rtol=1e-12)


def test_nearly_dense_sparse_rows_are_written_out(monkeypatch):
    for density, written in ((0.5, True), (0.02, False)):
        X = sp.random(300, 40, density=density, format="csr", random_state=0)
        rows = array_as_rows(X, "X")
        kernel = make_kernel("rbf", {"gamma": 0.3}, rows, np.ones(300))
        assert kernel.centred_copy(rows)[1].sparse != written
        features, dense = KernelFeatures(rows, kernel), KernelFeatures(array_as_rows(X.toarray(), "X"), kernel)
        np.testing.assert_allclose(finished(features.gram()), finished(dense.gram()), atol=1e-14)
    monkeypatch.setattr(kernels, "COPY_BYTES", 1000)
    rows = array_as_rows(sp.csr_matrix(np.ones((300, 40))), "X")
    assert kernel.centred_copy(rows)[1] is rows
