"""The linear system of a Newton step over a kernel, and the partial factor behind its preconditioner."""

from __future__ import annotations

import numpy as np
import pytest
from draining import drain
from process_settings import one_blas_thread

from mdlearn.data.features.kernel_tiles import make_kernel_tiles
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.margin import Column
from mdlearn.numerics.pivoted_cholesky import randomly_pivoted_cholesky
from mdlearn.solvers.newton_cg.newton_system import NewtonSystem, NewtonSystemKernel


def problem(seed, m=60, variance=0.0, constant=0.0, rank=15):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 3))
    tiles = make_kernel_tiles(Kernel("rbf", {"gamma": 0.5}), DenseRows(X), False)
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))

    def columns(index):
        return (yield from tiles.across(index))

    L = drain(randomly_pivoted_cholesky(columns, np.ones(m), rank, rng))[1]
    if constant:
        L = np.column_stack([L, np.ones(m)])
    y, c = np.where(rng.random(m) > 0.4, 1.0, -1.0), rng.integers(1, 4, m).astype(float)
    return K + constant, NewtonSystemKernel(tiles, np.ones(m), L, constant), Column(y, c, variance, 0.0, ()), rng


@pytest.mark.parametrize("constant", [0.0, 1.0])
@pytest.mark.parametrize("variance", [0.0, 40.0])
@pytest.mark.parametrize("free", [False, True])
def test_a_step_solves_its_equation(free, variance, constant):
    """Against the dense system, with rows that curve much, slightly and not at all."""
    for seed in range(5):
        K, shared, column, rng = problem(seed, variance=variance, constant=constant)
        m = K.shape[0]
        D = rng.choice([0.0, 1e-4, 0.5, 30.0], m)
        g, balance = rng.standard_normal(m), 0.7
        system = NewtonSystem(column, shared, free, D)
        drain(system.prepare())
        step, b = drain(system.solve(g, balance, 1e-12))[1]
        p = column.counts * column.y
        N = np.diag(D + column.kappa * column.counts) - column.kappa / column.total * np.outer(p, p)
        left = step + N @ (K @ step + b) + g
        assert np.abs(left).max() <= 1e-7 * np.abs(g).max(), seed
        if free:
            assert step.sum() == pytest.approx(balance, abs=1e-9)
        else:
            assert b == 0.0


def test_a_variance_alone_moves_no_constant():
    """Without a loss N has no inverse: y is what it maps to 0. Gradients of a fit have nothing along it."""
    K, shared, column, rng = problem(0, variance=40.0)
    g = rng.standard_normal(60)
    g -= column.y * (column.y @ g) / 60.0
    system = NewtonSystem(column, shared, False, np.zeros(60))
    drain(system.prepare())
    step, _ = drain(system.solve(g, 0.0, 1e-12))[1]
    p = column.counts * column.y
    N = np.diag(column.kappa * column.counts) - column.kappa / column.total * np.outer(p, p)
    assert np.abs(step + N @ (K @ step) + g).max() <= 1e-6 * np.abs(g).max()


def test_a_partial_factor_stays_below_its_matrix():
    for seed in range(5):
        K, shared, _, _ = problem(seed, rank=25)
        L = shared.factor
        assert L.shape[1] == 25
        left = K - L @ L.T
        assert np.linalg.eigvalsh(left).min() >= -1e-12
        # A quarter of the columns holds more than half of the trace; all of them hold all.
        assert np.trace(left) <= 0.5 * np.trace(K)
        assert np.abs(K - problem(seed, rank=60)[1].factor @ problem(seed, rank=60)[1].factor.T).max() <= 1e-4


def test_a_matrix_of_few_dimensions_is_factored_as_a_whole():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 4))
    A[40:] = 0.0

    def columns(index):
        yield
        return A @ A[index].T

    L = drain(randomly_pivoted_cholesky(columns, np.square(A).sum(axis=1), 20, rng))[1]
    assert L.shape[1] == 4
    assert L @ L.T == pytest.approx(A @ A.T, abs=1e-10)


def test_a_partial_factor_of_single_precision_stays_below_its_matrix_but_for_rounding():
    """Pivots of what rounding left would let later columns multiply it."""
    X = np.random.default_rng(0).uniform(0.0, 4.0, (1000, 2))
    K = np.exp(-4.0 * np.square(X[:, None] - X[None]).sum(axis=2))
    single = K.astype(np.float32)

    def columns(index):
        yield
        return single[:, index]

    L = drain(randomly_pivoted_cholesky(columns, np.ones(1000), 600, np.random.default_rng(0)))[1]
    with one_blas_thread():
        left = np.linalg.eigvalsh(K - L @ L.T)
    assert left[0] >= -1e-3 and left[-1] <= 1e-2
