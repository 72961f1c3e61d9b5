"""Basis system: the linear system of a variance alone, in a basis of all rows whose coefficients have a ridge.

Inner products of rows are K P K, for the kernel matrix K and the counts P. With x = (kappa P)^-1/2 step, tau^2 =
1 / kappa, A = P^1/2 K P^1/2, g~ = (kappa P)^-1/2 g, the unit vector u = (P / m)^1/2 y and rho = (kappa P)^1/2 1, a step
solves::

    (I + A^2 / tau^2) x = -g~ + lambda u - mu rho,      u'x = -u'g~,

where mu is constant * rho'x of a regularized bias, or the step of a free one, for which rho'x = balance. The matrix is
the square of one of far smaller condition, and its inverse a part of that of a complex one::

    (I + A^2 / tau^2)^-1 v = tau Im (A - i tau)^-1 v

A - i tau is symmetric, not Hermitian: conjugate gradients without conjugation (van der Vorst and Melissen, IEEE Trans.
Magnetics 26, 1990) take one product with K per step, real and imaginary parts in one pass over its tiles. On 2,500 rows
of a9a, tau = 0.5, 25 passes did what 526 do on the square.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mdlearn.data.features.kernel_tiles import SquaredTiles
from mdlearn.data.rows.rows import steps
from mdlearn.forms.margin import Column
from mdlearn.solvers.newton_cg.newton_system import ROWS_PER_PRODUCT, NewtonSystemKernel

SHARE_OF_SHARE, MOST_COMPLEX_STEPS = 1e-3, 100
"""Share of a complex residual that is left, beside what a step may leave; steps of one solution at most."""


class BasisSystem:
    """Basis system of a column without a loss, whose counts are those of the basis.

    Parameters
    ----------
    column : Column
    kernel : NewtonSystemKernel
    free : bool
        Whether the bias is free.
    """

    def __init__(self, column: Column, kernel: NewtonSystemKernel, free: bool) -> None:
        assert isinstance(kernel.tiles, SquaredTiles)
        self.tiles, self.constant, self.free = kernel.tiles.tiles, kernel.constant, free
        self.factor = kernel.factor[:, : kernel.factor.shape[1] - (kernel.constant > 0)]
        self.counts, self.tau = np.sqrt(column.counts), 1.0 / np.sqrt(column.kappa)
        self.u, self.rho = self.counts * column.y / np.sqrt(column.total), self.counts / self.tau
        self.known: tuple[float, np.ndarray] | None = None

    def prepare(self) -> Generator[None, None, None]:
        """Find the eigenvalues of the factored part of A: its vectors are the columns of the factor."""
        squares = np.zeros(self.factor.shape[1])
        for rows in steps(self.factor.shape[0], ROWS_PER_PRODUCT):
            squares += np.square(self.factor[rows] * self.counts[rows, None]).sum(axis=0)
            yield
        values = np.sqrt(squares)
        self.shares = (1.0 / squares * (values / (values - 1j * self.tau)))[:, None]
        yield

    def _preconditioned(self, V: np.ndarray) -> np.ndarray:
        """(B - i tau)^-1 V for the part B of A that is factored."""
        weights = self.counts[:, None]
        inner = _complex_basis_vectors(self.factor.T @ (weights * _real_basis_vectors(V)))
        return (V - _complex_basis_vectors(weights * (self.factor @ _real_basis_vectors(self.shares * inner)))) * (
            1j / self.tau
        )

    def _times(self, V: np.ndarray) -> Generator[None, None, np.ndarray]:
        """(A - i tau) V."""
        parts = _real_basis_vectors(V)
        out, weights = np.zeros_like(parts), self.counts[:, None]
        yield from self.tiles.add(out, np.arange(V.shape[0]), weights * parts)
        return _complex_basis_vectors(weights * out) - (1j * self.tau) * V

    def _inverse(self, V: np.ndarray, share: float) -> Generator[None, None, np.ndarray]:
        """(I + A^2 / tau^2)^-1 V, up to a share of the complex residuals."""
        X, R = np.zeros(V.shape, dtype=complex), V.astype(complex)
        least = share * np.linalg.norm(R, axis=0)
        P, before = R, np.ones(V.shape[1], dtype=complex)
        for k in range(MOST_COMPLEX_STEPS):
            if (np.linalg.norm(R, axis=0) <= least).all():
                break
            Z = self._preconditioned(R)
            rho = (R * Z).sum(axis=0)
            P = Z + (rho / before) * P if k else Z
            Q = yield from self._times(P)
            bend = (P * Q).sum(axis=0)
            length = np.divide(rho, bend, out=np.zeros_like(rho), where=bend != 0)
            X, R, before = X + length * P, R - length * Q, np.where(rho != 0, rho, 1.0)
            yield
        found: np.ndarray = self.tau * X.imag
        return found

    def solve(self, g: np.ndarray, balance: float, share: float) -> Generator[None, None, tuple[np.ndarray, float]]:
        """Return the step and that of a free intercept, to about `share` of the first residual."""
        scaled = g * self.tau / self.counts
        share *= SHARE_OF_SHARE
        sides = np.stack([self.u, self.rho], axis=1) if self.free or self.constant else self.u[:, None]
        if self.known is None or self.known[0] > share:
            found = yield from self._inverse(np.column_stack([sides, -scaled]), share)
            self.known = share, found[:, :-1]
            x = found[:, -1]
        else:
            x = (yield from self._inverse(-scaled[:, None], share))[:, 0]
        towards = self.known[1]
        # Conditions on x + towards @ (lambda, -mu).
        lacks, matrix = np.array([-float(self.u @ scaled), balance])[: sides.shape[1]] - sides.T @ x, sides.T @ towards
        if self.constant:
            matrix[1, 1] += 1.0 / self.constant
            lacks[1] -= balance
        moves = np.linalg.solve(matrix, lacks)
        x = x + towards @ moves
        return x * self.counts / self.tau, -float(moves[1]) if self.free else 0.0


def _real_basis_vectors(V: np.ndarray) -> np.ndarray:
    """Real and imaginary parts of complex vectors of a basis system, side by side."""
    return np.ascontiguousarray(V).view(np.float64)


def _complex_basis_vectors(V: np.ndarray) -> np.ndarray:
    """Complex vectors of a basis system from their parts."""
    return np.ascontiguousarray(V).view(np.complex128)
