"""Conjugate gradients in a basis of all rows: optima of a linear system solved here, memory, choice of the engine."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import mdlearn
from mdlearn.data.features import basis, kernel_tiles
from mdlearn.data.features.kernels import make_kernel
from mdlearn.data.rows.rows import DenseRows
from mdlearn.extend import Column
from mdlearn.numerics import pivoted_cholesky
from mdlearn.numerics.interruptible import finished
from mdlearn.solvers.newton_cg import solver as newton_cg
from mdlearn.solvers.newton_cg.basis_system import BasisSystem
from mdlearn.solvers.newton_cg.newton_system import NewtonSystem, NewtonSystemKernel

GAMMA = 0.3
RBF, POLY = {"kernel": "rbf", "gamma": GAMMA}, {"kernel": "poly", "gamma": 0.1, "coef0": 1.0}


@pytest.fixture
def few(monkeypatch):
    """A preconditioner that leaves much to conjugate gradients, and a matrix that is never kept."""
    monkeypatch.setattr(pivoted_cholesky, "MOST_PIVOTS", 20)
    monkeypatch.setattr(basis, "COPY_BYTES", 0)


def data(m=250, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.5 * rng.standard_normal(m) > 0, 1.0, -1.0)
    return X, y, rng.integers(1, 4, m).astype(float)


def matrix_of(X, kernel):
    inner = X @ X.T
    if kernel["kernel"] == "poly":
        return (kernel["gamma"] * inner + kernel["coef0"]) ** 3
    square = np.diagonal(inner)
    return np.exp(-kernel["gamma"] * (square[:, None] + square - 2.0 * inner))


def value_of(K, y, counts, C, lambda0, bias, beta, b):
    """C/2 (sum beta^2 / c [+ b^2]) - mean(z) + lambda0/2 Var(z)."""
    z = y * (K @ beta + b)
    mean = float(np.average(z, weights=counts))
    squares = float((beta * beta / counts).sum()) + (b * b if bias == "regularized" else 0.0)
    return 0.5 * C * squares - mean + 0.5 * lambda0 * float(np.average(np.square(z - mean), weights=counts))


def optimum_of(K, y, counts, C, lambda0, bias):
    """Least value, by the linear system of the gradient."""
    m, total = len(y), counts.sum()
    rows = y[:, None] * (K if bias == "none" else np.column_stack([K, np.ones(m)]))
    h = counts @ rows / total
    hessian = lambda0 * ((rows * counts[:, None]).T @ rows / total - np.outer(h, h))
    ridge = np.zeros(len(h))
    ridge[:m] = C / counts
    if bias == "regularized":
        ridge[m] = C
    solution = np.linalg.solve(hessian + np.diag(ridge), h)
    return -0.5 * float(h @ solution)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("kernel", [RBF, POLY], ids=["rbf", "poly"])
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
def test_the_optimum(few, C, kernel, bias):
    X, y, counts = data()
    K = matrix_of(X, kernel)
    model = mdlearn.fit("uldm", X, y, sample_weight=counts, C=C, bias=bias, solver="newton-cg", tol=1e-8, **kernel)
    told, least = model.certificate, optimum_of(K, y, counts, C, 1.0, bias)
    assert told.converged and told.gap <= 1e-8
    assert told.lower_bound <= least + 1e-9 * abs(least)
    assert least <= told.objective + 1e-9 * abs(least)
    value = value_of(K, y, counts, C, 1.0, bias, model.dual_coef_[0], float(model.intercept_[0]))
    assert value == pytest.approx(told.objective, rel=1e-9)


def test_without_a_variance(few):
    X, y, counts = data()
    model = mdlearn.fit("uldm", X, y, sample_weight=counts, lambda0=0.0, C=0.1, solver="newton-cg", **RBF)
    assert model.certificate.converged
    least = optimum_of(matrix_of(X, RBF), y, counts, 0.1, 0.0, "regularized")
    assert model.certificate.objective == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("storage", [sp.csr_matrix, lambda X: X.astype(np.float32), np.asfortranarray])
def test_storages_and_three_classes(few, storage):
    X, y, _ = data()
    y = y + (X[:, 2] > 0.5)
    given = {"C": 0.01, "multiclass": "ovr", **RBF}
    exact = mdlearn.fit("uldm", X.astype(np.float32).astype(float), y, solver="direct", tol=1e-10, **given).certificate
    told = mdlearn.fit("uldm", storage(X), y, solver="newton-cg", tol=1e-5, **given).certificate
    assert told.converged
    assert told.objective == pytest.approx(exact.objective, rel=3e-5)


def test_no_matrix_of_the_size_of_the_rows(few):
    m = 2500
    X, y, _ = data(m)
    mdlearn.fit("uldm", X[:50], y[:50], C=1.0, solver="newton-cg", **RBF)
    tracemalloc.start()
    try:
        model = mdlearn.fit("uldm", X, y, C=1.0, solver="newton-cg", **RBF)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.certificate.converged
    assert peak < 0.4 * 8 * m * m


def test_products_with_forgotten_columns_are_those_of_the_matrix(few):
    X, _, counts = data()
    rows = DenseRows(X)
    columns = basis.BasisColumns(rows, make_kernel("rbf", {"gamma": GAMMA}, rows, counts), np.arange(len(X)))
    K, rng = matrix_of(X, RBF), np.random.default_rng(1)
    assert columns.forgotten
    for w in (rng.standard_normal(len(X)), np.eye(len(X))[3], rng.standard_normal((len(X), 2))):
        for product in (columns.dot, columns.adjoint):
            for _ in range(2):  # once made, once remembered
                np.testing.assert_allclose(product(w), K @ w, atol=1e-11)
    squared = kernel_tiles.SquaredTiles(columns.tiled.tiles(single=False), counts).take(np.arange(5, 90))
    out, v = np.zeros(85), rng.standard_normal(10)
    for _ in squared.add(out, np.arange(10), v):
        pass
    np.testing.assert_allclose(out, (K @ (counts[:, None] * K))[5:90, 5:15] @ v, rtol=1e-10)


def test_bounds_of_lengths_are_bounds(few, monkeypatch):
    """They ask for no kernel values: those of all rows cost as much as a fit."""
    monkeypatch.setattr(basis.BasisColumns, "block", lambda *_: pytest.fail("kernel values were asked for"))
    X, _, counts = data()
    rows = DenseRows(X)
    columns = basis.BasisColumns(rows, make_kernel("poly", {"gamma": 0.2}, rows, counts), np.arange(len(X)))
    features = basis.BasisFeatures(columns, 1.0 / counts, places=np.arange(len(X)))
    K = (0.2 * X @ X.T) ** 3
    assert (features.lengths >= np.linalg.norm(K, axis=0) * (1.0 - 1e-12)).all()
    assert (features.row_lengths >= np.linalg.norm(K, axis=1) * (1.0 - 1e-12)).all()
    assert features.longest_row >= np.linalg.norm(K, axis=1).max() * (1.0 - 1e-12)
    assert features.all_lengths >= np.linalg.norm(K) * (1.0 - 1e-12)
    assert (features.squares_at_most() >= np.square(K) @ counts * (1.0 - 1e-12)).all()


def test_auto_takes_it_unless_the_variance_is_steep(monkeypatch):
    X, y, _ = data(60)
    monkeypatch.setattr(newton_cg, "BASIS_ROWS", 10)
    assert mdlearn.fit("uldm", X, y, C=1e-2, **RBF).solver == "newton-cg"
    assert mdlearn.fit("uldm", X, y, C=1e-8, **RBF).solver == "direct"
    assert mdlearn.fit("uldm", X, y, C=1e-2, basis=np.arange(40), **RBF).solver == "direct"
    with pytest.raises(ValueError, match="a basis of all rows"):
        mdlearn.fit("uldm", X, y, C=1e-2, basis=np.arange(40), solver="newton-cg", **RBF)


def test_the_sentence_of_too_little_memory_names_engines_that_help(monkeypatch):
    X, y, _ = data(1000)
    monkeypatch.setattr("mdlearn.numerics.memory.available_bytes", lambda: 3e7)
    with pytest.raises(mdlearn.InsufficientMemory, match=r"a basis of fewer rows or solver='newton-cg'"):
        mdlearn.fit("uldm", X, y, C=1e-10, solver="direct", **RBF)
    with pytest.raises(mdlearn.InsufficientMemory, match=r"use a basis of fewer rows$"):
        mdlearn.fit("uldm", X, y, basis=np.arange(900), solver="direct", **RBF)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_a_step_solves_its_system(few, bias):
    """step + N (K P K step + constant + b) = -g with N = kappa (P - p p' / m)."""
    X, y, counts = data()
    m, kappa, constant = len(y), 200.0, float(bias == "regularized")
    rows = DenseRows(X)
    columns = basis.BasisColumns(rows, make_kernel("rbf", {"gamma": GAMMA}, rows, counts), np.arange(m))
    features = basis.BasisFeatures(columns, 1.0 / counts, places=np.arange(m))
    tiles = features.columns(single=False)
    kernel = NewtonSystemKernel(
        tiles, features.squares_at_most(), finished(features.partial_factor(20, constant)), constant
    )
    column = Column(y, counts, 0.5 * kappa * counts.sum(), 1.0, ())
    system = BasisSystem(column, kernel, bias == "free")
    finished(system.prepare())
    g, balance = np.random.default_rng(3).standard_normal(m), 0.7
    K, p = matrix_of(X, RBF), counts * y
    N = kappa * (np.diag(counts) - np.outer(p, p) / counts.sum())
    g -= p * float(y @ g) / counts.sum()  # as gradients are
    for share in (1e-4, 1e-7):
        step, b = finished(system.solve(g, balance, share))
        rest = step + N @ (K @ (counts * (K @ step)) + constant * step.sum() + b) + g
        assert np.linalg.norm(rest) <= 100.0 * share * np.linalg.norm(g)
        if bias == "free":
            assert step.sum() == pytest.approx(balance, abs=1e-8)


@pytest.mark.parametrize("C", [1e-4, 1.0])
def test_a_fit_begins_no_farther_than_zero(few, monkeypatch, C):
    """What rounding leaves of the objective of a far start is more than the optimum."""
    own, begun = newton_cg.NewtonCGIterate.begin, []

    def begin(self):
        yield from own(self)
        begun.append(self.objective - self.column.at_zero)

    monkeypatch.setattr(newton_cg.NewtonCGIterate, "begin", begin)
    X, y, _ = data()
    assert mdlearn.fit("uldm", X, y, C=C, solver="newton-cg", **RBF).certificate.converged
    assert len(begun) == 1 and begun[0] <= 0.0


def test_the_complex_system_takes_fewer_passes_than_the_square(few, monkeypatch):
    X, y, _ = data()
    passes, add = [], kernel_tiles.KernelTiles.add
    monkeypatch.setattr(kernel_tiles.KernelTiles, "add", lambda *given: passes.append(1) or add(*given))
    taken = []
    for _ in range(2):
        passes.clear()
        assert mdlearn.fit("uldm", X, y, C=1e-5, solver="newton-cg", **RBF).certificate.converged
        taken.append(len(passes))
        monkeypatch.setattr(newton_cg, "_newton_cg_system", NewtonSystem)
    assert taken[0] < 0.5 * taken[1]


def test_a_tile_of_a_basis_is_timed_once(monkeypatch):
    timed, seconds = [], kernel_tiles.KernelTiles.seconds_of_value
    monkeypatch.setattr(kernel_tiles.KernelTiles, "seconds_of_value", lambda self: timed.append(1) or seconds(self))
    monkeypatch.setattr(basis, "COPY_BYTES", 0)
    X, y, _ = data(1300)
    assert mdlearn.fit("uldm", X, y, C=1e-4, time_limit=1000.0, solver="newton-cg", **RBF).certificate.converged
    assert len(timed) <= 1
