"""Kernel values that are kept: products beside the matrix, what a fit makes and keeps, ends where rounding misleads."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn
from mdlearn.data.features import kernel_tiles
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.rows.rows import DenseRows
from mdlearn.numerics import pivoted_cholesky
from mdlearn.numerics.interruptible import finished
from mdlearn.solvers.newton_cg import solver as newton_cg
from mdlearn.solvers.newton_cg.newton_system import NewtonSystemKernel
from mdlearn.solvers.newton_cg.stored_tiles import ROUNDED_UNITS, StoredTiles, stored_tile_bytes

RBF = {"kernel": "rbf", "gamma": 0.3, "solver": "newton-cg"}


def data(m, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    return X, np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.5 * rng.standard_normal(m) > 0, 1.0, -1.0)


def gaussian_matrix(X, gamma):
    return np.exp(-gamma * np.square(X[:, None] - X).sum(axis=2))


def optimum_of_squares(K, y, C):
    """Least 1/2 a'Ka + C/2 |1 - y (Ka + b)|^2, from (K + I / C) a + b = y and sum a = 0."""
    m = len(y)
    system = np.zeros((m + 1, m + 1))
    system[:m, :m], system[:m, m], system[m, :m] = K + np.eye(m) / C, 1.0, 1.0
    solution = np.linalg.solve(system, np.append(y, 0.0))
    a = solution[:m]
    return 0.5 * a @ K @ a + 0.5 * C * np.square(a / C).sum()


@pytest.mark.parametrize("share", [0.0, 0.65, 1.0])
@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("d", [3, 12])
def test_products_are_those_of_the_matrix(d, rounded, share):
    m, gamma = 1100, 0.2
    X, _ = data(m, d)
    source = kernel_tiles.make_kernel_tiles(Kernel("rbf", {"gamma": gamma}), DenseRows(X), True)
    tiles, K = StoredTiles(source, share * stored_tile_bytes(m, rounded), rounded), gaussian_matrix(X, gamma)
    finished(tiles.fill())
    assert sum(own.nbytes for *_, own in tiles.held) <= share * stored_tile_bytes(m, rounded)
    assert len(tiles.held) == {0.0: 0, 0.65: 2, 1.0: 6}[share]
    rng = np.random.default_rng(1)
    for v in (rng.standard_normal(m), rng.standard_normal((m, 3))):
        out = np.ones(v.shape)
        finished(tiles.add(out, np.arange(m), v))
        most = np.abs(v).sum(axis=0).max() * ((0.5 / ROUNDED_UNITS if rounded else 0.0) + 2e-6)
        assert np.abs(out - 1.0 - K @ v).max() <= most
    out, some = np.zeros(m), np.arange(7, 40)
    finished(tiles.add(out, some, v[some, 0]))
    assert out == pytest.approx(K[:, some] @ v[some, 0], abs=1e-4)


def test_values_of_equal_rows_fit_into_16_bits():
    """Rows so long that exponents of equal rows, 0, are off by 1e-5."""
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((300, 12))
    X = 9.9 * directions / np.linalg.norm(directions, axis=1)[:, None]
    tiles = StoredTiles(kernel_tiles.make_kernel_tiles(Kernel("rbf", {"gamma": 1.0}), DenseRows(X), True), 1e9, True)
    finished(tiles.fill())
    assert np.abs(tiles.held[0][2] / ROUNDED_UNITS - gaussian_matrix(X, 1.0)).max() <= 1e-4


@pytest.mark.parametrize("objective, steep", [("lssvm", 100.0), ("uldm", 1e-4)])
def test_values_are_made_once_and_within_the_cache(monkeypatch, objective, steep):
    X, y = data(1200)
    made, stored, values, cache = [], [], kernel_tiles.DifferenceTiles._values, 3e6
    products = kernel_tiles.DifferenceTiles._product

    def counted(self, rows, side):
        made.append(self.dtype)
        return values(self, rows, side)

    class Noted(StoredTiles):
        def __init__(self, *given):
            super().__init__(*given)
            stored.append(self)

    monkeypatch.setattr(kernel_tiles.DifferenceTiles, "_values", counted)
    monkeypatch.setattr(
        kernel_tiles.DifferenceTiles, "_product", lambda *given: made.append(np.float32) or products(*given)
    )
    monkeypatch.setattr(newton_cg, "StoredTiles", Noted)
    monkeypatch.setattr("mdlearn.data.features.basis.COPY_BYTES", 0)
    monkeypatch.setattr(pivoted_cholesky, "MOST_PIVOTS", 50)
    assert mdlearn.fit("lssvm", X, y, C=1e-2, **RBF).certificate.converged
    assert not stored  # few products with values of few columns
    monkeypatch.setattr(newton_cg, "storing_pays", lambda *given: True)
    single = []
    for C in (1.0, steep):
        made.clear()
        assert mdlearn.fit(objective, X, y, C=C, **RBF).certificate.converged
        single.append(made.count(np.float32))
    assert single[0] == single[1]  # the steep one takes far more products
    for C, room in ((1.0, cache), (steep, 1.2e6)):
        stored.clear()
        told = mdlearn.fit(objective, X, y, C=C, **{**RBF, "solver_options": {"cache": room}}).certificate
        assert told.converged
        assert sum(own.nbytes for *_, own in stored[0].held) + 8.0 * 50 * 1200 <= room
        assert len(stored[0].held) == (6 if room == cache else 1)


@pytest.mark.parametrize("C, limit", [(10.0, 0.5), (1e4, np.inf)])
def test_rounding_costs_no_digits(monkeypatch, C, limit):
    """Far beyond what it is meant for, rounding misleads: then values are made anew."""
    gone, exact = [], NewtonSystemKernel.without_rounding
    monkeypatch.setattr(NewtonSystemKernel, "without_rounding", lambda self: gone.append(1) or exact(self))
    monkeypatch.setattr(newton_cg, "ROUNDED_CURVATURE", limit)
    monkeypatch.setattr(newton_cg, "storing_pays", lambda *given: True)
    X, y = data(600)
    told = mdlearn.fit("lssvm", X, y, C=C, tol=1e-8, **RBF).certificate
    least = optimum_of_squares(gaussian_matrix(X, 0.3), y, C)
    assert told.converged and told.gap <= 1e-8
    assert told.lower_bound <= least * (1.0 + 1e-9) and told.objective >= least * (1.0 - 1e-9)
    assert len(gone) == (1 if C == 1e4 else 0)
