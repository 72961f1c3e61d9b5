"""X is used where it lies: what compiled loops read, how much memory a fit takes, what a source of rows needs."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from judging import quiet_fit
from layouts import F32, F64, LAYOUTS, mapped, rows, sparse_rows

import mdlearn
from mdlearn._solvers import cd as cd_kernels
from mdlearn._solvers import centred as csr_kernels
from mdlearn._solvers.cd import DenseRows as CompiledRows
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.arrays import check_rows
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows, Rows
from mdlearn.driver.checked_engine import CheckedEngine
from mdlearn.driver.driver import Driver
from mdlearn.driver.limits import Limits
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.plugins.registry import registry
from mdlearn.solvers.stochastic import task as sgd_module

# ---------------------------------------------------------------- what the compiled loops see


def seen(monkeypatch, module, name, calls):
    inner = getattr(module, name)

    def record(*given):
        calls.append(given)
        return inner(*given)

    monkeypatch.setattr(module, name, record)


def same_memory(a, b):
    """Whether two arrays are the same numbers at the same place."""
    return (a.ctypes.data, a.dtype, a.shape, a.strides) == (b.ctypes.data, b.dtype, b.shape, b.strides)


@pytest.mark.parametrize("indices", [np.int32, np.int64])
@pytest.mark.parametrize("kind", [F32, F64])
def test_loops_over_csr_read_the_callers_arrays(kind, indices, monkeypatch):
    A, y = sparse_rows()
    A = A.astype(kind)
    A.indices, A.indptr = A.indices.astype(indices), A.indptr.astype(indices)
    calls = []
    seen(monkeypatch, csr_kernels, "sweep", calls)
    seen(monkeypatch, sgd_module, "walk_csr", calls)
    for solver in ("cd", "asgd"):
        quiet_fit("ldm", A, y, solver=solver, max_iter=2)
        assert calls
        for data, columns, ends, *_ in calls:
            assert all(same_memory(*pair) for pair in ((data, A.data), (columns, A.indices), (ends, A.indptr)))
            assert columns.dtype == indices
        calls.clear()


def test_what_has_to_be_copied_and_what_not():
    X, _ = sparse_rows()
    mixed = X.copy()
    mixed.indices = X.indices.astype(np.int64)
    held = check_rows(mixed).X
    assert same_memory(held.data, mixed.data) and same_memory(held.indices, mixed.indices)
    assert held.indptr.dtype == np.int64 and mixed.data.flags.writeable
    assert mixed.indptr.dtype == np.int32, "the caller's matrix was changed"
    A = X.toarray()
    for layout, copied in (("fortran", False), ("negative strides", False), ("unaligned", True)):
        other = LAYOUTS[layout](A, None)
        kept = check_rows(other).X
        assert kept.flags.aligned and np.shares_memory(kept, other) is not copied


@pytest.mark.parametrize("layout", ["memory map", "negative strides", "every other row and column"])
def test_loops_over_dense_rows_read_the_callers_array(layout, monkeypatch, tmp_path):
    X, y = rows(2100, 4)
    other = LAYOUTS[layout](X, tmp_path)
    calls = []
    seen(monkeypatch, sgd_module, "walk_dense", calls)
    quiet_fit("ldm", other, y, solver="asgd", max_iter=2)
    assert calls and all(np.shares_memory(given[0], other) for given in calls)


@pytest.mark.parametrize("kind", [F32, F64])
@pytest.mark.parametrize("layout", ["C", "fortran", "negative strides", "every other row and column"])
def test_compiled_rows_of_any_type_and_stride(layout, kind):
    """One sweep is exact coordinate ascent, whatever the strides: compared with plain Python."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((30, 7)).astype(kind)
    other = X if layout == "C" else LAYOUTS[layout](X, None)
    other.flags.writeable = False
    y = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    beta, kept, caps = np.zeros((1, 30)), np.zeros(7), np.full((1, 30), 0.3)
    order = np.r_[rng.permutation(30), rng.permutation(30)]
    exact = X.astype(F64)
    problem = cd_kernels.Problem(
        y, np.ones(1), np.ones((1, 30)), caps, np.zeros((1, 30)), np.square(exact).sum(axis=1), np.zeros(30), 0.0, beta,
        np.zeros(1),
    )  # fmt: skip
    compiled = CompiledRows(other, kept)
    assert compiled.n_rows == 30
    cd_kernels.sweep(compiled, problem, order)
    expected, w = np.zeros(30), np.zeros(7)
    for i in order:
        step = np.clip(expected[i] + (1 - y[i] * (exact[i] @ w)) / (exact[i] @ exact[i]), 0, 0.3) - expected[i]
        expected[i] += step
        w += step * y[i] * exact[i]
    np.testing.assert_allclose(beta[0], expected, atol=1e-12)
    np.testing.assert_allclose(kept, w, atol=1e-12)


# ---------------------------------------------------------------- memory


def peak_bytes(call):
    """Most bytes that Python and NumPy held at a time; what was there before does not count."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """A read-only memory map of float32, 60 MB; a copy of it in float32 would be as large, in float64 twice that."""
    m, d = 25_000, 600
    rng = np.random.default_rng(9)
    X = rng.standard_normal((m, d), dtype=np.float32)
    y = np.where(X[:, 0] + rng.standard_normal(m) > 0, 1, 0)
    quiet_fit("ldm", X[:99], y[:99])  # imports
    return mapped(X, tmp_path_factory.mktemp("big")), y


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "solver", "share"),
    [("ldm", "interior", 0.7), ("svm", "interior", 0.7), ("ldm", "asgd", 0.2), ("svm", "cd", 0.2)],
)
def test_no_engine_makes_a_second_x(objective, solver, share, big):
    X, y = big
    assert peak_bytes(lambda: np.asarray(X, dtype=F64)) >= 2 * X.nbytes and peak_bytes(X.copy) >= X.nbytes
    settings = {"solver_options": {"epochs": 1}} if solver == "asgd" else {"max_iter": 2}
    models = []
    # A block is 8 MB, and the interior point holds four at a time.
    assert (
        peak_bytes(lambda: models.append(quiet_fit(objective, X, y, solver=solver, C=1e-3, **settings)))
        <= share * X.nbytes
    )
    assert peak_bytes(lambda: models[0].margins(X, y)) <= 0.2 * X.nbytes


def test_dropping_rows_at_an_end_copies_nothing(big):
    X, y = big
    weight = np.ones(len(y))
    weight[:2000] = weight[-3000:] = 0.0
    settings = {"solver": "asgd", "solver_options": {"epochs": 1}, "sample_weight": weight}
    assert peak_bytes(lambda: quiet_fit("ldm", X, y, **settings)) <= 0.2 * X.nbytes


def test_rows_that_only_a_copy_would_drop_need_room(big, monkeypatch):
    X, y = big
    weight = (np.arange(len(y)) % 2).astype(float)
    monkeypatch.setattr("mdlearn.numerics.memory.available_bytes", lambda: 40e6)
    with pytest.raises(mdlearn.InsufficientMemory, match=r"rows of positive weight.*give X without"):
        mdlearn.fit("ldm", X, y, sample_weight=weight)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["fortran", "negative strides"])
def test_other_layouts_are_not_copied_either(layout, big):
    X, y = big
    other = np.asfortranarray(X) if layout == "fortran" else X[::-1, ::-1]
    for solver, share in (("interior", 0.7), ("asgd", 0.2)):
        settings = {"solver_options": {"epochs": 1}} if solver == "asgd" else {"max_iter": 1}
        peak = peak_bytes(lambda: quiet_fit("ldm", other, y, solver=solver, C=1e-3, **settings))  # noqa: B023
        assert peak <= share * X.nbytes


@pytest.mark.slow
@pytest.mark.parametrize("kind", [F32, F64])
@pytest.mark.parametrize("solver", ["cd", "asgd"])
def test_no_second_csr_matrix(solver, kind):
    rng = np.random.default_rng(10)
    m, d, each = 30_000, 5000, 200
    columns = (np.arange(each) * (d // each) + rng.integers(0, d // each, (m, each))).ravel()
    A = sp.csr_matrix((rng.standard_normal(m * each).astype(kind), columns, np.arange(0, m * each + 1, each)), (m, d))
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    y = np.where(A @ rng.standard_normal(d) > 0, 1, 0)
    assert A.has_canonical_format
    size = A.data.nbytes + A.indices.nbytes
    settings = {"solver_options": {"epochs": 1}} if solver == "asgd" else {"max_iter": 2}
    models = []
    peak = peak_bytes(lambda: models.append(quiet_fit("ldm", A, y, solver=solver, **settings)))
    assert peak <= 0.55 * size
    assert peak_bytes(lambda: models[0].predict(A)) <= 0.55 * size


@pytest.mark.slow
def test_very_long_rows_in_a_kernel_come_in_ranges_of_columns():
    rng = np.random.default_rng(11)
    X = rng.standard_normal((64, 400_000), dtype=np.float32)
    single = DenseRows(X)
    centre = rng.standard_normal(400_000)
    shifted = X.astype(F64) - centre
    for given, exact in ((None, X.astype(F64)), (centre, shifted)):
        held = []
        assert peak_bytes(lambda: held.append(single.inner(single, given))) <= 0.5 * X.nbytes  # noqa: B023
        np.testing.assert_allclose(held[0], exact @ exact.T, rtol=1e-12, atol=1e-8)
        np.testing.assert_allclose(single.squares(centre=given), np.square(exact).sum(axis=1), rtol=1e-12)


# ---------------------------------------------------------------- the protocol


class Pieces(Rows):
    """Rows that no array holds: blocks are computed when asked for."""

    largest = 0

    def __init__(self, X):
        self.hidden = X

    @property
    def shape(self):
        return self.hidden.shape

    @property
    def dtype(self):
        return F32

    def block(self, rows):
        part = self.hidden[rows].astype(F64)
        type(self).largest = max(self.largest, part.shape[0])
        return part

    def take(self, rows):
        return DenseRows(self.hidden[rows])

    def matrix(self):
        raise AssertionError("no function of the user's takes part")

    def inner(self, others, centre=None):
        raise AssertionError("no kernel takes part")


def test_another_source_of_rows_needs_blocks_only():
    X, y = rows(30_000, 50, 12)
    column = Column(np.where(y == 1, 1.0, -1.0), np.ones(30_000), 0.5, 0.1, (HingeTerm(0.01),))
    limits = Limits(1e-8, True, None, 0.0, np.inf, None, 0, None)
    engine = registry().solvers["interior"]()
    found = []
    for source in (Pieces(X), DenseRows(X)):
        form = MarginForm(LinearFeatures(source), (column,), "regularized")
        found.append(Driver(CheckedEngine(engine), {}, limits, 0).run(form).solutions[0])
    assert found[0].certificate.converged and 0 < Pieces.largest < 30_000
    np.testing.assert_array_equal(found[0].coef, found[1].coef)


@pytest.mark.parametrize("kind", [F32, F64])
def test_products_of_rows(kind, monkeypatch):
    rng = np.random.default_rng(13)
    filled = np.where(rng.random((700, 300)) < 0.2, rng.standard_normal((700, 300)), 0.0)
    filled[13] = 0.0
    A = sp.csr_matrix(filled.astype(kind))
    X, w, v = A.toarray().astype(F64), rng.standard_normal((300, 3)), rng.standard_normal(700)
    for module in ("rows", "csr_rows"):
        monkeypatch.setattr(f"mdlearn.data.rows.{module}.BLOCK_ENTRIES", 1000)
    monkeypatch.setattr("mdlearn.data.rows.rows.SPAN_ENTRIES", 2000)
    scale = rng.random(300) + 0.5
    for source in (DenseRows(A.toarray()), CsrRows(sp.csr_matrix(A)), DenseRows(A.toarray()[:, ::-1][:, ::-1])):
        spans = list(source.spans())
        assert len(spans) > 20 and np.array_equal(np.concatenate([np.arange(700)[s] for s in spans]), np.arange(700))
        np.testing.assert_allclose(source.dot(w), X @ w, atol=1e-11)
        np.testing.assert_allclose(source.dot(w[:, 0]), X @ w[:, 0], atol=1e-11)
        np.testing.assert_allclose(source.adjoint(v), X.T @ v, atol=1e-11)
        np.testing.assert_allclose(source.squares(), np.square(X).sum(axis=1), atol=1e-11)
        np.testing.assert_allclose(source.squares(scale), np.square(X) @ (1 / scale), atol=1e-11)
        np.testing.assert_array_equal(source.block(np.array([5, 3, 13])), X[[5, 3, 13]])
        assert np.isfinite(source.largest()) and source.dtype == kind and source.shape == (700, 300)
        for other in (DenseRows(A[:50].toarray()), CsrRows(sp.csr_matrix(A[:50]))):
            np.testing.assert_allclose(source.inner(other), X @ X[:50].T, atol=1e-11)
