"""Dual Hessians of kernel problems as working sets need them: dense blocks of few rows, and exact margins of all rows.

With K the kernel (a constant of the bias included), B B' = P - p p'/m and X = 1/kappa + B'K B, the Hessian of the
multipliers is H = K - K B X^-1 B'K. For any V, X^-1 >= V (V'X V)^-1 V': the leading directions of B'K B make K into an
upper bound of H that is nearly H itself, for the price of some products.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

import numpy as np

import mdlearn._solvers.bounded_quadratic as kernels
from mdlearn.data.features.spaces import KernelFeatures
from mdlearn.data.rows.rows import blank, steps
from mdlearn.forms.margin import Column
from mdlearn.numerics.symmetric_eigenvalues import eigen
from mdlearn.solvers.dual_hessian.variance_reduced import ColumnGram, ExactHessian

Block = Generator[None, None, np.ndarray]
Answer = Generator[None, None, tuple[np.ndarray, np.ndarray]]
LEADING, HOPES, POWERS = (1, 4, 24), (100.0, 20.0, 1.0), 2
"""Directions that are taken out of K, what may be left (in units of REST) for more of them to be worth a try, and
products that find them."""
REST = 0.3
"""kappa times the eigenvalue that is left in, up to which the bound is close enough to H."""
ANSWERS = 30
ROUGH, FIRST_RESIDUAL = 1e-9, 1e-15
"""Relative error of the first answer and of later ones: the bound has the square of it."""
BRIEF = 1000
"""Rows up to which a product with the whole matrix takes no time that Ctrl-C could be late by."""
ENTRIES_PER_PIECE = 1 << 20
"""Entries of a matrix that are gathered or written at once."""


def pieces(H: np.ndarray) -> Iterable[slice]:
    """Rows of a matrix that are written at once: Ctrl-C is seen between them."""
    return steps(H.shape[0], ENTRIES_PER_PIECE // max(1, H.shape[1]))


def gathered(H: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> Block:
    """H[rows][:, columns]."""
    n = columns.shape[0]
    out, rows, columns = np.empty((rows.shape[0], n)), rows.astype(np.int64), columns.astype(np.int64)
    step = max(16, ENTRIES_PER_PIECE // max(n, 1))
    for start in range(0, rows.shape[0], step):
        kernels.gather(H, rows, columns, out, start, min(start + step, rows.shape[0]))
        if start + step < rows.shape[0]:
            yield
    return out


class KnownGram:
    """The rows of a Gram matrix that have a multiplier: no variance and no mean, so that no other row counts."""

    def __init__(self, features: KernelFeatures, constant: float) -> None:
        self.features, self.constant = features, constant
        self.place, self.known = np.full(features.n_rows, -1), 0
        for index, _ in features.known_rows():
            self._note(index)

    settles, dear = 1e-3, 0.25

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
        H, at, first = blank(index.shape[0]), self.place[index], 0
        for known, values in self.features.known_rows():
            mine = np.flatnonzero((at >= first) & (at < first + known.shape[0]))
            part = yield from gathered(values, at[mine] - first, index)
            for rows in pieces(part):
                H[mine[rows]] = part[rows]
            first += known.shape[0]
        if self.constant:
            for rows in pieces(H):
                H[rows] += self.constant
        return H

    def answer(self, q: np.ndarray, Hq: np.ndarray | None = None) -> Answer:
        """(alpha, f) of the signed weights q."""
        yield from self.learn(np.flatnonzero(q))
        return q, self.features.decision(q) + self.constant * float(q.sum())

    def intercept(self, alpha: np.ndarray) -> float:
        """A regularized bias."""
        return self.constant * float(alpha.sum())


def _with_border(hessian: ColumnGram, index: np.ndarray) -> Block:
    """R + omega border border' between some rows."""
    H = yield from gathered(hessian.R, index, index)
    if hessian.omega:
        add_border(H, hessian.border[index], hessian.omega)
    return H


def add_border(H: np.ndarray, border: np.ndarray, omega: float) -> None:
    """Add omega border border' in place."""
    for rows in pieces(H):
        H[rows] += np.multiply.outer(omega * border[rows], border)


class PlainGram(ColumnGram):
    """The Gram matrix itself: there is no variance term."""

    cheap: np.ndarray = np.array(True)
    settles, dear = 1e-3, 0.0

    def __init__(self, G: np.ndarray, constant: float, column: Column) -> None:
        super().__init__(G, constant, column)
        self.R, self.border, self.omega = G, np.ones(G.shape[0]), constant

    def block(self, index: np.ndarray) -> Block:
        """The Hessian between some rows."""
        return (yield from _with_border(self, index))

    def answer(self, q: np.ndarray, Hq: np.ndarray | None = None) -> Answer:
        """(alpha, f) of the signed weights q."""
        if q.shape[0] > BRIEF:
            yield
        return q, self.gram(q)


class SharedGram(ExactHessian):
    """The Hessian of all rows, from an R that several columns may share."""

    cheap: np.ndarray = np.array(True)
    settles, dear = 1e-3, 0.0
    rough = ROUGH

    def block(self, index: np.ndarray) -> Block:
        """The Hessian between some rows."""
        return (yield from _with_border(self, index))

    def answer(self, q: np.ndarray, Hq: np.ndarray | None = None) -> Answer:
        """(alpha, f) of the signed weights q."""
        if q.shape[0] > BRIEF:
            yield
        rough, self.rough = self.rough, FIRST_RESIDUAL
        return self.representer(q, rough, Hq)


class DeflatedGram(PlainGram):
    """K without its leading directions: close to the Hessian where the variance term is not the whole problem."""

    settles, dear = 1e-2, 0.0

    def __init__(self, G: np.ndarray, constant: float, column: Column) -> None:
        super().__init__(G, constant, column)
        self.q = self.alpha = np.zeros(G.shape[0])

    def lead(self) -> Generator[None, None, bool]:
        """Find as many leading directions as it takes; say whether few enough do."""
        for count, hope in zip(LEADING, HOPES):
            rest = yield from self._leading(min(count, self.G.shape[0]))
            if rest <= REST:
                return True
            if rest > hope * REST:
                break
        return False

    def _leading(self, count: int) -> Generator[None, None, float]:
        """Find `count` directions; return kappa times the least eigenvalue among them."""
        column, m = self.column, self.G.shape[0]
        root = np.sqrt(column.counts)
        r = root * column.y / np.sqrt(column.total)
        # By rows: BLAS takes few long rows faster than few long columns.
        W = np.random.default_rng(0).normal(size=(count, m))
        for _ in range(POWERS + 1):
            W -= np.multiply.outer(W @ r, r)
            W = np.ascontiguousarray(np.linalg.qr(W.T)[0].T)
            A = W * root
            KA = np.empty_like(A)
            for part in steps(m, 32 * ENTRIES_PER_PIECE // m):
                KA[:, part] = A @ self.G[:, part]
                yield
            KA += self.constant * A.sum(axis=1)[:, None]
            W = KA * root
        theta, turn = eigen(A @ KA.T)
        self.A, self.KA = (turn.T @ A).T, (turn.T @ KA).T
        self.core = 1.0 / (1.0 / column.kappa + np.maximum(theta, 0.0))
        rest = column.kappa * float(theta[0])
        self.step = 1.0 / (1.0 + 0.5 * max(rest, 0.0))
        whole = np.divide(1.0, theta, out=np.zeros_like(theta), where=theta > 0)
        self.led = (1.0 - self.step) * whole - self.core
        return rest

    def block(self, index: np.ndarray) -> Block:
        """The bound between some rows."""
        H = yield from super().block(index)
        KA = self.KA[index]
        for a in range(0, index.shape[0], 512):
            H[a : a + 512] -= (KA[a : a + 512] * self.core) @ KA.T
            yield
        return H

    def answer(self, q: np.ndarray, Hq: np.ndarray | None = None) -> Answer:
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
            # Along the leading directions the whole step, elsewhere the one that suits what is left there.
            alpha = alpha + self.step * residual + self.A @ (self.led * (self.KA.T @ residual))
            f = self.gram(alpha)
            yield
        self.q, self.alpha = q, alpha
        return alpha, f
