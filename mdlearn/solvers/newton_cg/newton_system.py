"""Newton system: the linear system of a Newton step over a kernel matrix that is there as products alone.

With second derivatives T - kappa p p' / m of loss and variance, T diagonal and p_i = c_i y_i, a step s of representer
coefficients and b of a free intercept solves::

    s + N (K s + 1 b) = -g,     N = T - kappa p p' / m = H H',     H = T^(1/2) (I - theta u u')

where 1's = balance is the condition of a free bias. Rows on which N acts too little to divide by it, or not at all,
take s = -g there; the others s = H d with (I + H'K H) d + H'1 b = -H^-1 g - H'K s0, by conjugate gradients within the
condition, preconditioned by I + H'L L'H with a partial Cholesky factor L of K.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mdlearn.data.features.kernel_tiles import KernelTiles, SquaredTiles
from mdlearn.data.rows.rows import steps
from mdlearn.forms.margin import Column

SLIGHT_CURVATURE = 1e-2
"""T_i k(x_i, x_i) up to which a row's step is its gradient and what follows from it."""
LEAST_CURVATURE = 1e-10
"""Share of a row's own curvature of the variance that its loss is taken to have at least: N then has an inverse."""
MOST_PRODUCTS = 300
"""Products of one solution at most."""
ROWS_PER_PRODUCT = 2048
"""Rows of the factor whose outer products are added between two heartbeats."""


@dataclass(frozen=True, eq=False)
class NewtonSystemKernel:
    """Kernel matrix of the Newton systems of all columns: single-precision products, diagonal, partial factor.

    Attributes
    ----------
    tiles : KernelTiles or SquaredTiles
    diagonal : ndarray of shape (m,)
        Or upper bounds of it.
    factor : ndarray of shape (m, r)
        Of the matrix with the constant.
    constant : float
        Added to every entry: 1 for a regularized bias, else 0.
    unrounded : KernelTiles, SquaredTiles or None
        Of values that are not kept, where those of `tiles` are rounded further.
    """

    tiles: KernelTiles | SquaredTiles
    diagonal: np.ndarray
    factor: np.ndarray
    constant: float
    unrounded: KernelTiles | SquaredTiles | None = None

    def without_rounding(self) -> NewtonSystemKernel:
        """Return the same with values that are not rounded further than single precision."""
        assert self.unrounded is not None
        return replace(self, tiles=self.unrounded, unrounded=None)


class NewtonSystem:
    """Newton system: linear system of a step for one model of the loss, solved by conjugate gradients.

    Parameters
    ----------
    column : Column
    kernel : NewtonSystemKernel
    free : bool
        Whether the bias is free.
    D : ndarray of shape (m,)
        Second derivatives of the loss.
    """

    def __init__(self, column: Column, kernel: NewtonSystemKernel, free: bool, D: np.ndarray) -> None:
        self.kernel, self.free = kernel, free
        variance = column.kappa * column.counts
        D = np.maximum(D, LEAST_CURVATURE * variance)
        T = D + variance
        self.used = np.flatnonzero(T)
        T = T[self.used]
        self.root = np.sqrt(T)
        self.slight = T * kernel.diagonal[self.used] <= SLIGHT_CURVATURE
        self.u, self.theta, self.left = np.zeros_like(T), 0.0, 1.0
        if column.kappa > 0:
            counts = column.counts[self.used]
            self.u = np.sqrt(column.kappa / column.total) * (counts * column.y[self.used]) / self.root
            # 1 - u'u, as a sum of positive terms.
            rest = float((counts * D[self.used]) @ (1.0 / T)) / column.total
            self.left = float(np.sqrt(rest))
            self.theta = (1.0 - self.left) / max(float(self.u @ self.u), 1e-300)
        self.along = self._down(np.ones_like(T))

    def prepare(self) -> Generator[None, None, None]:
        """Factor the preconditioner, I + H'L L'H."""
        used, L = self.used, self.kernel.factor
        self.tiles = self.kernel.tiles if used.shape[0] == self.kernel.tiles.n_rows else self.kernel.tiles.take(used)
        S, towards = np.eye(L.shape[1]), np.zeros(L.shape[1])
        for rows in steps(used.shape[0], ROWS_PER_PRODUCT):
            towards += (self.u[rows] * self.root[rows]) @ L[used[rows]]
            yield
        for rows in steps(used.shape[0], ROWS_PER_PRODUCT):
            part = L[used[rows]] * self.root[rows, None]
            part -= np.multiply.outer(self.theta * self.u[rows], towards)
            S += part.T @ part
            yield
        self.S = cho_factor(S, overwrite_a=True, check_finite=False)
        yield

    def _up(self, d: np.ndarray) -> np.ndarray:
        """H d."""
        return self.root * (d - (self.theta * float(self.u @ d)) * self.u)

    def _down(self, v: np.ndarray) -> np.ndarray:
        """H'v."""
        d = self.root * v
        return d - (self.theta * float(self.u @ d)) * self.u

    def _inverse(self, v: np.ndarray) -> np.ndarray:
        """H^-1 v."""
        d = v / self.root
        return d + (self.theta / self.left * float(self.u @ d)) * self.u

    def _preconditioned(self, r: np.ndarray) -> np.ndarray:
        """The preconditioner's inverse times r."""
        v, L = np.zeros(self.kernel.factor.shape[0]), self.kernel.factor
        v[self.used] = self._up(r)
        return r - self._down((L @ cho_solve(self.S, L.T @ v, check_finite=False))[self.used])

    def _times(self, d: np.ndarray) -> Generator[None, None, np.ndarray]:
        """(I + H'K H) d."""
        v, out = self._up(d), np.zeros_like(d)
        yield from self.tiles.add(out, np.arange(d.shape[0]), v)
        return d + self._down(out + self.kernel.constant * float(v.sum()))

    def solve(self, g: np.ndarray, balance: float, share: float) -> Generator[None, None, tuple[np.ndarray, float]]:
        """Return the step and that of a free intercept, to `share` of the first residual."""
        used, step = self.used, -g
        step[used[~self.slight]] = 0.0
        if used.shape[0] == 0:
            return step, 0.0
        own = np.where(self.slight, 0.0, g[used])
        r = -self._inverse(own)
        apart = np.flatnonzero(step)
        if apart.shape[0]:
            f = np.zeros(g.shape[0])
            yield from self.kernel.tiles.add(f, apart, step[apart])
            r -= self._down(f[used] + self.kernel.constant * float(step.sum()))
        d, b = yield from self._conjugate_gradients(r, balance - float(step.sum()), share)
        step[used] += self._up(d)
        return step, b

    def _conjugate_gradients(
        self, r: np.ndarray, balance: float, share: float
    ) -> Generator[None, None, tuple[np.ndarray, float]]:
        """d with (I + H'K H) d + along b = r, and along'd = balance for a free intercept b."""
        along, d, b, hold = self.along, np.zeros_like(r), 0.0, 0.0
        if self.free:
            towards = self._preconditioned(along)
            hold = float(along @ towards)
        free = hold > 0.0
        if free and balance != 0.0:
            d = (balance / hold) * towards
            r = r - (yield from self._times(d))
        least, p, rho = 0.0, r, 0.0
        for k in range(MOST_PRODUCTS + 1):
            if free:  # the intercept's share of the residual, apart: its rounding would leave the condition
                moved = float(towards @ r) / hold
                b, r = b + moved, r - moved * along
            size = float(np.linalg.norm(r))
            least = share * size if k == 0 else least
            z = self._preconditioned(r)
            rho, before = float(r @ z), rho
            if not size > least or not rho > 0.0 or k == MOST_PRODUCTS:
                break
            p = z + (rho / before) * p if k else z
            h = yield from self._times(p)
            bend = float(p @ h)
            if not bend > 0.0:  # rounding of single precision
                break
            d, r = d + (rho / bend) * p, r - (rho / bend) * h
        if free:
            d = d + ((balance - float(along @ d)) / hold) * towards
        return d, b
