"""Dual Hessians of kernel problems as working sets need them: dense blocks of few rows, and exact margins of all rows.

With K the kernel (a constant of the bias included), B B' = P - p p'/m and X = 1/kappa + B'K B, the Hessian of the
multipliers is H = K - K B X^-1 B'K. For any V, X^-1 >= V (V'X V)^-1 V': the leading directions of B'K B make K into an
upper bound of H that is nearly H itself, for the price of some products.

Exact: H = R + omega (R p)(R p)' with R = G (I + kappa P G)^{-1}, which `variance_reduced` makes. Where kappa times the
largest eigenvalue of P G is small, G itself is a good upper bound of H: ascent on it never overshoots, a round shrinks
the error by about that product, and no factorisation is needed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas

import mdlearn._solvers.bounded_quadratic as kernels
from mdlearn._solvers.known_rows import KnownRows, SelectedRows
from mdlearn.data.features.gram import gram_product
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.rows.rows import steps
from mdlearn.forms.margin import Column
from mdlearn.numerics.interruptible import finished
from mdlearn.numerics.symmetric_eigenvalues import symmetric_eigen

Block = Generator[None, None, np.ndarray]
Answer = Generator[None, None, tuple[np.ndarray, np.ndarray]]
LEADING, HOPES, POWERS = (1, 4, 24), (100.0, 20.0, 1.0), 2
"""Directions that are taken out of K, what may be left (in units of REST) for more of them to be worth a try, and
products that find them."""
REST = 0.3
"""kappa times the eigenvalue that is left in, up to which the bound is close enough to H."""
PRECONDITIONED_BELOW = 0.3
"""kappa * lam_max(P G) up to which G stands in for H."""
MOST_CORRECTIONS, MOST_MAJORANT_CORRECTIONS = 4, 30
"""Corrections of an answer, of H itself and of an upper bound."""
ROUGH, FIRST_RESIDUAL = 1e-9, 1e-15
"""Relative error of the first answer and of later ones: the bound has the square of it."""
BRIEF = 1000
"""Rows up to which a product with the whole matrix takes no time that Ctrl-C could be late by."""
ENTRIES_PER_PIECE = 1 << 20
"""Entries of a matrix that are gathered or written at once."""


def hessian_row_pieces(H: np.ndarray) -> Iterable[slice]:
    """Slices of a Hessian's rows that are written at once: Ctrl-C is seen between them."""
    return steps(H.shape[0], ENTRIES_PER_PIECE // max(1, H.shape[1]))


def hessian_block(H: np.ndarray, rows: np.ndarray, columns: np.ndarray, out: np.ndarray | None = None) -> Block:
    """Block of a Hessian between some rows and columns, gathered in interruptible pieces: `out`, if given."""
    n = columns.shape[0]
    out = np.empty((rows.shape[0], n), dtype=H.dtype) if out is None else out
    rows, columns = rows.astype(np.int64), columns.astype(np.int64)
    step = max(16, ENTRIES_PER_PIECE // max(n, 1))
    for start in range(0, rows.shape[0], step):
        kernels.gather(H, rows, columns, out, start, min(start + step, rows.shape[0]))
        if start + step < rows.shape[0]:
            yield
    return out


class SupportHessian:
    """Dual Hessian from the Gram matrix's rows that have a multiplier: no variance and no mean, so no other counts."""

    settles, dear = 0.1, 0.25

    def __init__(self, features: KernelFeatures, constant: float) -> None:
        self.features, self.constant = features, constant

    @property
    def cached(self) -> KnownRows:
        """Rows of the Gram matrix that are known."""
        return self.features.cached_rows()

    def between(self, rows: np.ndarray) -> KnownRows:
        """Gram matrix between some rows, gathered from the rows of the whole one that loops ask for."""
        known, n = self.cached, rows.shape[0]
        place, maker = np.full(n, -1, dtype=np.int64), SelectedRows(known, rows.astype(np.int64))
        diagonal = self.features.squares()[rows]
        return KnownRows(self.features.room(n), place, np.empty(n, dtype=np.int64), diagonal, maker)

    @property
    def cheap(self) -> np.ndarray:
        """Rows that are known."""
        known: np.ndarray = self.cached.place >= 0
        return known

    def learn(self, rows: np.ndarray) -> Generator[None, None, None]:
        """Compute the kernel values of some rows."""
        new = rows[self.cached.place[rows] < 0]
        if new.shape[0]:
            yield from self.features.gram_rows(new)

    def block(self, index: np.ndarray) -> Block:
        """The Hessian between some rows."""
        yield from self.learn(index)
        # Of a path's points, blocks take the memory of the rows between steps; a single fit leaves none of it behind.
        room = self.features.room(index.shape[0]) if self.features.reused else None
        H = yield from hessian_block(self.cached.values, self.cached.place[index], index, room)
        if self.constant:
            for rows in hessian_row_pieces(H):
                H[rows] += self.constant
        return H

    def hessian(self, v: np.ndarray) -> np.ndarray:
        """Product of the Hessian with a vector."""
        return self.features.decision(v) + self.constant * float(v.sum())

    def pulled(self, pull: np.ndarray) -> np.ndarray:
        """Product of the Hessian with what nothing pulls by."""
        return np.zeros_like(pull)

    def answer(self, q: np.ndarray, Hq: np.ndarray | None = None) -> Answer:
        """(alpha, f) of the signed weights q."""
        yield from self.learn(np.flatnonzero(q))
        return q, self.hessian(q) if Hq is None else Hq

    def intercept(self, alpha: np.ndarray) -> float:
        """A regularized bias."""
        return self.constant * float(alpha.sum())


def add_dual_hessian_border(H: np.ndarray, border: np.ndarray, omega: float) -> None:
    """Add the rank-one part omega border border' to a block of a Hessian, in place."""
    for rows in hessian_row_pieces(H):
        H[rows] += np.multiply.outer(omega * border[rows], border)


class ColumnHessian:
    """Base class of the dual Hessians of one column, with products with its true Gram matrix.

    The dual Hessian that sweeps and Newton steps see is R + omega border border', unsigned.
    """

    R: np.ndarray
    border: np.ndarray
    omega: float
    cheap: np.ndarray = np.array(True)
    settles, dear = 1e-3, 0.0

    def __init__(self, G: np.ndarray, constant: float, column: Column) -> None:
        self.G, self.constant, self.column = G, constant, column
        self.p = column.counts * column.y

    def gram(self, v: np.ndarray) -> np.ndarray:
        """(G + constant) v."""
        return gram_product(self.G, v) + self.constant * float(v.sum())

    def hessian(self, v: np.ndarray) -> np.ndarray:
        """(R + omega border border') v."""
        return gram_product(self.R, v) + self.border * (self.omega * float(self.border @ v))

    def diagonal(self) -> np.ndarray:
        """Diagonal of the Hessian."""
        return np.maximum(np.diagonal(self.R) + self.omega * self.border**2, 0.0)

    def pulled(self, pull: np.ndarray) -> np.ndarray:
        """Product of the Hessian with what mean and offsets pull by."""
        return self.hessian(pull) if pull.any() else np.zeros_like(pull)

    def variance(self, f: np.ndarray) -> np.ndarray:
        """kappa (P - p p' / m) f: what the variance term takes from the coefficients."""
        return self.column.kappa * (self.column.counts * f - self.p * (float(self.p @ f) / self.column.total))

    def intercept(self, alpha: np.ndarray) -> float:
        """A regularized bias."""
        return self.constant * float(alpha.sum())

    def block(self, index: np.ndarray) -> Block:
        """The Hessian (or an upper bound) between some rows."""
        H = yield from hessian_block(self.R, index, index)
        if self.omega:
            add_dual_hessian_border(H, self.border[index], self.omega)
        return H

    def answer(self, q: np.ndarray, Hq: np.ndarray | None = None) -> Answer:
        """(alpha, f) of the signed weights q: alpha + kappa (P - p p'/m) f = q and f = G alpha."""
        raise NotImplementedError

    def representer(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (alpha, f) of the signed weights q as `answer` does, but at once."""
        alpha, f = finished(self.answer(q))
        return alpha, f

    def correction(self, residual: np.ndarray) -> np.ndarray:
        """Correction of alpha for a residual of its equation."""
        return residual - self.variance(self.hessian(residual))

    def corrected(self, q: np.ndarray, alpha: np.ndarray, enough: float, most: int, growth: float) -> Answer:
        """(alpha, f), corrected through G itself until `enough` is left, or `growth` times what was left before."""
        f, last = self.gram(alpha), np.inf
        for _ in range(most):
            residual = q - self.variance(f) - alpha
            size = float(np.abs(residual).max())
            if size <= enough or size > growth * last:
                break
            last = size
            alpha = alpha + self.correction(residual)
            if q.shape[0] > BRIEF:
                yield
            f = self.gram(alpha)
        return alpha, f


class HessianBorder(NamedTuple):
    """Rank-one part of the dual Hessian beside R, for p = counts * y."""

    p: np.ndarray
    border: np.ndarray
    omega: float


def hessian_border(R: np.ndarray, p: np.ndarray, column: Column) -> HessianBorder:
    """Rank-one border of the dual Hessian, and its factor, for the R of a column."""
    border = R @ p
    weight = column.kappa / column.total
    # 1 - weight p' R p is positive in exact arithmetic; rounding must not turn it round.
    return HessianBorder(p, border, weight / max(1.0 - weight * float(p @ border), 1e-15))


class ExactHessian(ColumnHessian):
    """Dual Hessian itself, from an R that several columns may share."""

    rough = ROUGH

    def __init__(
        self, G: np.ndarray, R: np.ndarray, constant: float, column: Column, edge: HessianBorder | None = None
    ) -> None:
        super().__init__(G, constant, column)
        self.R = R
        if edge is None or not np.array_equal(edge.p, self.p):
            edge = hessian_border(R, self.p, column)
        self.border, self.omega = edge.border, edge.omega

    def hessian(self, v: np.ndarray) -> np.ndarray:
        """(R + omega border border') v, from half of R: products are as fast as memory."""
        product: np.ndarray = blas.dsymv(1.0, self.R.T, v, lower=1)
        return product + self.border * (self.omega * float(self.border @ v))

    def pulled(self, pull: np.ndarray) -> np.ndarray:
        """Product of the Hessian with what mean and offsets pull by; the mean's part is along the border."""
        column = self.column
        if column.offset is not None:
            return super().pulled(pull)
        along = column.mean / column.total * (1.0 + self.omega * float(self.border @ self.p))
        return along * self.border

    def answer(self, q: np.ndarray, Hq: np.ndarray | None = None) -> Answer:
        """H gives alpha up to its own rounding; one or two corrections through G itself remove that."""
        if q.shape[0] > BRIEF:
            yield
        rough, self.rough = self.rough, FIRST_RESIDUAL
        alpha = q - self.variance(self.hessian(q) if Hq is None else Hq)
        return (yield from self.corrected(q, alpha, rough * float(np.abs(q).max()), MOST_CORRECTIONS, 0.5))

    def representer(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(alpha, f) of the signed weights q, at once and none of them a rough one."""
        self.rough = FIRST_RESIDUAL
        return super().representer(q)


class GramMajorantHessian(ColumnHessian):
    """Gram matrix as dual Hessian (equal without a variance term, above it else)."""

    near = 0.01
    """What an answer may be off by, in units of what q moved: rounds go on anyway."""

    def __init__(self, G: np.ndarray, constant: float, column: Column) -> None:
        super().__init__(G, constant, column)
        self.R, self.border, self.omega = G, np.ones(G.shape[0]), constant
        self.q = self.alpha = np.zeros(G.shape[0])

    def correction(self, residual: np.ndarray) -> np.ndarray:
        """Damped Richardson step."""
        return residual / (1.0 + 0.5 * PRECONDITIONED_BELOW)

    def answer(self, q: np.ndarray, Hq: np.ndarray | None = None) -> Answer:
        """(alpha, f) of the signed weights q: corrections from the last answer."""
        if q.shape[0] > BRIEF:
            yield
        if self.column.kappa == 0:
            return q, self.gram(q) if Hq is None else Hq
        moved = q - self.q
        enough = max(self.near * float(np.abs(moved).max()), 1e-15 * float(np.abs(q).max()))
        found = yield from self.corrected(q, self.alpha + moved, enough, MOST_MAJORANT_CORRECTIONS, 2.0)
        self.q, self.alpha = q, found[0]
        return found


class DeflatedHessian(GramMajorantHessian):
    """Dual Hessian by a Gram matrix less its leading directions: close if the variance is not the whole problem.

    What the leading directions do not account for in an answer falls by REST with each correction.
    """

    settles, near = 1e-2, 1e-6

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
        theta, turn = symmetric_eigen(A @ KA.T)
        self.A, self.KA = (turn.T @ A).T, (turn.T @ KA).T
        self.core = 1.0 / (1.0 / column.kappa + np.maximum(theta, 0.0))
        rest = column.kappa * float(theta[0])
        self.step = 1.0 / (1.0 + 0.5 * max(rest, 0.0))
        whole = np.divide(1.0, theta, out=np.zeros_like(theta), where=theta > 0)
        self.led = (1.0 - self.step) * whole - self.core
        return rest

    def block(self, index: np.ndarray) -> Block:
        H = yield from super().block(index)
        KA = self.KA[index]
        for a in range(0, index.shape[0], 512):
            H[a : a + 512] -= (KA[a : a + 512] * self.core) @ KA.T
            yield
        return H

    def correction(self, residual: np.ndarray) -> np.ndarray:
        """Along the leading directions the whole step, elsewhere the one that suits what is left there."""
        return self.step * residual + self.A @ (self.led * (self.KA.T @ residual))
