"""Dual Hessians of kernel problems as working sets need them: dense blocks of few rows, and exact margins of all rows.

With K the kernel (a constant of the bias included), B B' = P - p p'/m and X = 1/kappa + B'K B, the Hessian of the
multipliers is H = K - K B X^-1 B'K. For any V, X^-1 >= V (V'X V)^-1 V': the leading directions of B'K B make K into an
upper bound of H that is nearly H itself, for the price of some products.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from scipy.linalg import blas

import mdlearn._solvers.greedy as kernels
from mdlearn.data.features import KernelFeatures
from mdlearn.forms.margin import Column
from mdlearn.solvers import linalg
from mdlearn.solvers.reduced import ColumnGram, ExactHessian

Block = Generator[None, None, np.ndarray]
Answer = Generator[None, None, tuple[np.ndarray, np.ndarray]]
LEADING, POWERS = 8, 3
"""Directions that are taken out of K, and products that find them."""
REST = 0.3
"""kappa times the eigenvalue that is left in, up to which the bound is close enough to H."""
ANSWERS = 30
PIECE = 1 << 22


def gathered(H: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> Block:
    """H[rows][:, columns]."""
    n = columns.shape[0]
    out, rows, columns = np.empty((rows.shape[0], n)), rows.astype(np.int64), columns.astype(np.int64)
    step = max(16, PIECE // max(n, 1))
    for start in range(0, rows.shape[0], step):
        kernels.gather(H, rows, columns, out, start, min(start + step, rows.shape[0]))
        yield
    return out


class KnownGram:
    """The rows of a Gram matrix that have a multiplier: no variance and no mean, so that no other row counts."""

    def __init__(self, features: KernelFeatures, constant: float) -> None:
        self.features, self.constant = features, constant
        self.place, self.known = np.full(features.n_rows, -1), 0
        for index, _ in features.known_rows():
            self._note(index)

    settles = 1e-3

    @property
    def cheap(self) -> np.ndarray:
        """Rows that are known."""
        known: np.ndarray = self.place >= 0
        return known

    def learn(self, rows: np.ndarray) -> Generator[None, None, None]:
        """Compute the kernel values of some rows."""
        new = rows[self.place[rows] < 0]
        if new.shape[0]:
            yield from self.features.gram_rows(new)
            self._note(new)

    def _note(self, index: np.ndarray) -> None:
        self.place[index] = np.arange(self.known, self.known + index.shape[0])
        self.known += index.shape[0]

    def block(self, index: np.ndarray) -> Block:
        """The Hessian between some rows."""
        yield from self.learn(index)
        H, at, first = np.empty((index.shape[0],) * 2), self.place[index], 0
        for known, values in self.features.known_rows():
            mine = np.flatnonzero((at >= first) & (at < first + known.shape[0]))
            H[mine] = yield from gathered(values, at[mine] - first, index)
            first += known.shape[0]
        H += self.constant
        return H

    def answer(self, q: np.ndarray) -> Answer:
        """(alpha, f) of the signed weights q."""
        yield from self.learn(np.flatnonzero(q))
        return q, self.features.decision(q) + self.constant * float(q.sum())


class PlainGram(ColumnGram):
    """The Gram matrix itself: there is no variance term."""

    cheap: np.ndarray = np.array(True)
    settles = 1e-3

    def __init__(self, G: np.ndarray, constant: float, column: Column) -> None:
        super().__init__(G, constant, column)
        self.R, self.border, self.omega = G, np.ones(G.shape[0]), constant

    def block(self, index: np.ndarray) -> Block:
        """The Hessian between some rows."""
        H = yield from gathered(self.R, index, index)
        if self.omega:
            H += np.multiply.outer(self.omega * self.border[index], self.border[index])
        return H

    def answer(self, q: np.ndarray) -> Answer:
        """(alpha, f) of the signed weights q."""
        yield
        return q, self.gram(q)


class SharedGram(ExactHessian):
    """The Hessian of all rows, from an R that several columns may share."""

    cheap: np.ndarray = np.array(True)
    settles = 1e-3
    block = PlainGram.block

    def answer(self, q: np.ndarray) -> Answer:
        """(alpha, f) of the signed weights q."""
        yield
        return self.representer(q)


class DeflatedGram(PlainGram):
    """K without its leading directions: close to the Hessian where the variance term is not the whole problem."""

    settles = 1e-2

    def __init__(self, G: np.ndarray, constant: float, column: Column) -> None:
        super().__init__(G, constant, column)
        self.q = self.alpha = np.zeros(G.shape[0])

    def lead(self) -> Generator[None, None, float]:
        """Find the leading directions; return kappa times the least eigenvalue among them."""
        column, m = self.column, self.G.shape[0]
        root = np.sqrt(column.counts)
        r = root * column.y / np.sqrt(column.total)
        W = np.random.default_rng(0).normal(size=(m, min(LEADING, m)))
        for power in range(POWERS + 1):
            W -= np.multiply.outer(r, r @ W)
            W = np.linalg.qr(W)[0]
            self.A = root[:, None] * W
            self.KA = self.G @ self.A + self.constant * self.A.sum(axis=0)
            yield
            if power < POWERS:
                W = root[:, None] * self.KA
        theta, turn = np.linalg.eigh(self.A.T @ self.KA)
        self.A, self.KA = self.A @ turn, self.KA @ turn
        self.core = 1.0 / (1.0 / column.kappa + np.maximum(theta, 0.0))
        return column.kappa * float(theta[0])

    def block(self, index: np.ndarray) -> Block:
        """The bound between some rows."""
        H = yield from super().block(index)
        KA = self.KA[index]
        for a in range(0, index.shape[0], 512):
            H[a : a + 512] -= (KA[a : a + 512] * self.core) @ KA.T
            yield
        return H

    def answer(self, q: np.ndarray) -> Answer:
        """Corrections from the last answer: what the leading directions do not account for falls by REST each time."""
        moved = q - self.q
        alpha, last = self.alpha + moved, np.inf
        target = max(1e-6 * float(np.abs(moved).max()), 1e-15 * float(np.abs(q).max()))
        f = self.gram(alpha)
        for _ in range(ANSWERS):
            residual = q - self.variance(f) - alpha
            size = float(np.abs(residual).max())
            if size <= target or size > 2.0 * last:
                break
            last = size
            alpha = alpha + residual - self.A @ (self.core * (self.KA.T @ residual))
            f = self.gram(alpha)
            yield
        self.q, self.alpha = q, alpha
        return alpha, f


class FactoredGram(PlainGram):
    """One Cholesky factor of 1 + kappa P^(1/2) K P^(1/2), the rows of a working set last.

    The last corner of the factor then inverts the last corner of the inverse, which is all that blocks of H are made
    of; other rows cost triangular solutions.
    """

    def __init__(self, G: np.ndarray, constant: float, column: Column) -> None:
        super().__init__(G, constant, column)
        self.root = np.sqrt(column.counts)

    def factor(self, last: np.ndarray) -> Generator[None, None, None]:
        """Factor with the rows `last` at the end."""
        m, kappa = self.G.shape[0], self.column.kappa
        first = np.ones(m, dtype=bool)
        first[last] = False
        self.order = np.append(np.flatnonzero(first), last)
        L = yield from gathered(self.G, self.order, self.order)
        root, step = self.root[self.order], max(32, PIECE // m)
        for a in range(0, m, step):
            rows = L[a : a + step]
            if self.constant:
                rows += self.constant
            rows *= (kappa * root[a : a + step])[:, None]
            rows *= root
            yield
        L[np.diag_indices(m)] += 1.0
        self.L = yield from linalg.cholesky(L)
        self.border = self._reduced(self.p)
        weight = kappa / self.column.total
        self.omega = weight / max(1.0 - weight * float(self.p @ self.border), 1e-15)
        self.index, n = last, last.shape[0]
        inverse = np.zeros((n, n))
        inverse[np.diag_indices(n)] = 1.0
        corner = np.ascontiguousarray(self.L[m - n :, m - n :])
        yield from linalg.lower_inverse(corner, inverse)
        self.H = yield from self._corner(inverse, self.root[last])
        self.place = np.full(m, -1)
        self.place[last] = np.arange(n)
        self.cheap = self.place >= 0

    def _corner(self, V: np.ndarray, root: np.ndarray) -> Block:
        """(1 - V'V) / (kappa root root') of a lower triangle V."""
        n = V.shape[0]
        H = np.empty((n, n))
        for a in range(0, n, 256):
            b = min(a + 256, n)
            # Rows of V above a column's own are 0 there.
            H[a:b, :b] = V[a:, a:b].T @ V[a:, :b]
            H[:a, a:b] = H[a:b, :a].T
            yield
        H[np.diag_indices(n)] -= 1.0
        H /= (-self.column.kappa * root)[:, None]
        H /= root
        return H

    def _reduced(self, v: np.ndarray) -> np.ndarray:
        """R v = P^-1/2 (1 - (1 + kappa P^1/2 K P^1/2)^-1) P^-1/2 v / kappa."""
        x = v / self.root
        y = np.empty_like(x)
        y[self.order] = linalg.solve(self.L, x[self.order])
        return (x - y) / (self.column.kappa * self.root)

    def block(self, index: np.ndarray) -> Block:
        """The Hessian between some rows."""
        new = index[self.place[index] < 0]
        if new.shape[0]:
            yield from self._extend(new)
        at = self.place[index]
        H = yield from gathered(self.H, at, at)
        H += np.multiply.outer(self.omega * self.border[index], self.border[index])
        return H

    def _extend(self, new: np.ndarray) -> Generator[None, None, None]:
        m, old, n = self.G.shape[0], self.index.shape[0], new.shape[0]
        at = np.empty(m, dtype=np.intp)
        at[self.order] = np.arange(m)
        index = np.append(self.index, new)
        H = np.empty((old + n, old + n))
        H[:old, :old] = self.H
        for a in range(0, n, 32):
            rows = new[a : a + 32]
            E = np.zeros((m, rows.shape[0]), order="F")
            E[at[rows], np.arange(rows.shape[0])] = 1.0
            E = blas.dtrsm(1.0, self.L.T, E, lower=0, trans_a=1, overwrite_b=1)
            yield
            E = blas.dtrsm(1.0, self.L.T, E, lower=0, overwrite_b=1)
            E[at[rows], np.arange(rows.shape[0])] -= 1.0
            part = -E[at[index]] / np.multiply.outer(self.column.kappa * self.root[index], self.root[rows])
            H[:, old + a : old + a + rows.shape[0]] = part
            H[old + a : old + a + rows.shape[0]] = part.T
            yield
        self.index, self.H = index, H
        self.place[new] = np.arange(old, old + n)
        self.cheap = self.place >= 0

    def hessian(self, v: np.ndarray) -> np.ndarray:
        """(R + omega border border') v."""
        return self._reduced(v) + self.border * (self.omega * float(self.border @ v))

    def answer(self, q: np.ndarray) -> Answer:
        """(alpha, f) of the signed weights q, corrected through G itself."""
        alpha = q - self.variance(self.hessian(q))
        yield
        f, size = self.gram(alpha), np.inf
        for _ in range(4):
            residual = q - self.variance(f) - alpha
            error = float(np.abs(residual).max())
            if error <= 1e-12 * float(np.abs(q).max()) or error > 0.5 * size:
                break
            size = error
            alpha = alpha + residual - self.variance(self.hessian(residual))
            yield
            f = self.gram(alpha)
        return alpha, f
