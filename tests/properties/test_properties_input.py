"""For any rows in any type and layout: nothing is written into them, and what a model holds does not depend on it."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from layouts import LAYOUTS, MATRICES
from properties import KERNELS, attempt, examples, problems, samples

import mdlearn

NAMES = ["ldm", "svm", "lssvm", "lsldm", "lsvm", "mdlm", "mlr"]
KINDS = ("float64", "float64", "float32", "int32", "uint8", "bool", "float16")
SAME_BITS = ("memory map", "list", "other byte order", "unaligned", "read-only", "int64", "int64 indices only")
"""What is read as it lies, or copied to what the plain rows are."""


def frozen(sample):
    """Read-only arrays of the sample: writing raises."""
    X, weight = sample.X.copy(), None if sample.weight is None else sample.weight.copy()
    for array in (X, weight):
        if array is not None:
            array.flags.writeable = False
    return replace(sample, X=X, weight=weight)


def same(a, b, X, bits):
    """Two models of the same rows: bit by bit, or one optimum."""
    if a is None or b is None:
        assert a is None and b is None
        return
    one, two = a.certificate, b.certificate
    if bits:
        assert a.intercept_.tobytes() == b.intercept_.tobytes() and a.duals.tobytes() == b.duals.tobytes()
        assert (one.objective, one.lower_bound) == (two.objective, two.lower_bound)
        return
    assert a.intercept_.dtype == b.intercept_.dtype
    scale = (1e-9 if a.intercept_.dtype == np.float64 else 1e-5) * max(abs(one.objective), abs(two.objective)) + 1e-30
    assert one.lower_bound <= two.objective + scale and two.lower_bound <= one.objective + scale


def size_of(model, X):
    """What decision values are sums of, for their rounding."""
    if model.kernel.name == "linear":
        return float((np.abs(X) @ np.abs(model.coef_.T)).max() + np.abs(model.intercept_).max())
    p, largest = model.kernel.params, float((X * X).sum(axis=1).max())
    largest = 1.0 if model.kernel.name == "rbf" else (p["gamma"] * largest + p["coef0"]) ** p["degree"]
    return largest * float(np.abs(model.dual_coef_).sum()) + float(np.abs(model.intercept_).max())


@pytest.mark.slow
@examples(80)
@given(
    samples(classes=(2, 3), scales=(1.0,), kinds=KINDS),
    problems(NAMES),
    st.sampled_from(sorted({*LAYOUTS} - {"matrix"})),
)
def test_dense_layouts(sample, problem, layout):
    name, settings = problem
    assume(sample.X.dtype.kind == "f" or layout != "list" or sample.X.dtype == np.int32)
    plain = attempt(name, frozen(sample), **settings)
    kind = np.float32 if sample.X.dtype == np.float32 and layout != "list" else np.float64
    with tempfile.TemporaryDirectory() as folder:
        given_ = LAYOUTS[layout](sample.X, Path(folder))
        before = np.array(given_, copy=True)
        other = attempt(name, replace(sample, X=given_), **settings)
        assert np.array_equal(np.asarray(given_), before), "fit wrote into X"
        if plain is not None and other is not None:
            assert other.intercept_.dtype == kind
        if plain is None or plain.intercept_.dtype == kind:
            same(plain, other, sample.X, layout in SAME_BITS)


@examples(60)
@given(samples(classes=(2, 3), scales=(1.0,), kinds=("float64", "float32", "int32")), problems(NAMES), st.booleans(),
       st.sampled_from(sorted(MATRICES)), st.integers(0, 99))  # fmt: skip
def test_sparse_layouts(sample, problem, cd, layout, seed):
    name, settings = problem
    if cd and name in ("ldm", "svm"):
        settings["solver"] = "cd"
    A = sp.csr_matrix(np.where(np.random.default_rng(seed).random(sample.X.shape) < 0.5, sample.X, 0))
    assume(not (A.dtype.kind == "i" and layout == "other byte order") and (A.nnz or layout != "memory map"))
    plain = attempt(name, replace(sample, X=A), **settings)
    with tempfile.TemporaryDirectory() as folder:
        other = attempt(name, replace(sample, X=MATRICES[layout](A, Path(folder))), **settings)
        same(plain, other, A, layout in SAME_BITS)


@pytest.mark.slow
@examples(60)
@given(samples(classes=(2, 3), scales=(1.0,)), problems(NAMES), KERNELS, st.integers(0, 99))
def test_matrices_that_are_not_canonical(sample, problem, kernel, seed):
    """Unsorted indices, entries given twice, stored zeros: the matrix is what their sums say."""
    name, settings = problem
    if name in ("ldm", "svm", "lssvm", "lsldm", "lsvm") and kernel.get("gamma") != "scale":
        settings.update(kernel)
    rng = np.random.default_rng(seed)
    X = np.where(rng.random(sample.X.shape) < 0.5, np.round(8 * sample.X), 0.0)
    i, j = np.nonzero((X != 0) | (rng.random(X.shape) < 0.1))
    parts = [(i, j, X[i, j] - 1), (i, j, np.ones(len(i)))]
    rows, columns, values = (np.concatenate(p) for p in zip(*parts))
    order = np.argsort(rows + 0.5 * rng.random(len(rows)))
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
    A = sp.csr_matrix((values[order], columns[order], ends), shape=X.shape)
    for part in (A.data, A.indices, A.indptr):
        part.flags.writeable = False
    given_ = A.data.copy(), A.indices.copy(), A.indptr.copy()
    odd, plain = (
        attempt(name, replace(sample, X=A), **settings),
        attempt(name, replace(sample, X=sp.csr_matrix(X)), **settings),
    )
    assert all(np.array_equal(a, b) for a, b in zip(given_, (A.data, A.indices, A.indptr))), "fit wrote into X"
    same(plain, odd, X, False)
    if odd is not None:
        assert np.abs(odd.decision_function(A) - odd.decision_function(X)).max() <= 1e-12 * size_of(odd, X)


@pytest.mark.slow
@examples(60)
@given(samples(classes=(2, 4)), problems(NAMES), KERNELS)
def test_predictions_agree_with_each_other(sample, problem, kernel):
    """predict, decision_function, margins, score, and the same of a file."""
    name, settings = problem
    if name in ("ldm", "svm", "lssvm", "lsldm", "lsvm") and kernel.get("gamma") != "scale":
        settings.update(kernel)
    model = attempt(name, frozen(sample), **settings)
    assume(model is not None)
    X, y = sample.X, sample.y
    f, labels = model.decision_function(X), model.predict(X)
    assert np.isfinite(f).all()
    if f.ndim == 1:
        np.testing.assert_array_equal(labels, np.where(f >= 0, 1, 0))
        np.testing.assert_array_equal(model.margins(X, y), np.where(y == 1, f, -f))
    else:
        np.testing.assert_array_equal(labels, f.argmax(axis=1))
        z = model.margins(X, y)
        assert (labels[z > 0] == y[z > 0]).all() and (labels[z < 0] != y[z < 0]).all()
    assert abs(model.score(X, y) - np.mean(labels == y)) < 1e-12
    one_by_one = np.array([model.decision_function(X[i : i + 1])[0] for i in range(len(X))])
    assert np.abs(one_by_one - f).max() <= 1e-12 * size_of(model, X)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.npz")
        assert mdlearn.load(Path(folder) / "model.npz").decision_function(X).tobytes() == f.tobytes()
