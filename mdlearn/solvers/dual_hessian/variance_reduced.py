"""The dual Hessian of a kernel problem with a variance term, exact or bounded from above.

Exact: H = R + omega (R p)(R p)' with R = G (I + kappa P G)^{-1}. No inverse of G or Q is taken, so singular Gram
matrices are welcome. Signs cancel in R, so all classes of a one-vs-rest problem share it.

Where kappa lam_max(P G) is small, G itself is a good upper bound of H: ascent on it never overshoots, a round shrinks
the error by about kappa lam_max, and no factorisation is needed.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas

from mdlearn.data.features.gram import symmetric
from mdlearn.forms.margin import Column
from mdlearn.numerics import cholesky
from mdlearn.solvers.dual_hessian.eigen import Decomposed, decompose

CANCELLING_FROM = 1e4
"""kappa * lam_max(P G) beyond which G - kappa V'V would cancel, and below which (I - inverse) / kappa would."""


DECOMPOSED_PATH_OF_FEW_ROWS, DECOMPOSED_PATH = 3, 20
"""Problems of a path for which one eigendecomposition pays: of few rows, of more."""
FEW_ROWS, DECOMPOSED_ROWS = 500, 4000
"""Rows that are few, and beyond which a decomposition takes too long."""
PRECONDITIONED_BELOW = 0.3
"""kappa * lam_max(P G) up to which G stands in for H."""


def reduce_gram(
    G: np.ndarray, constant: float, kappa: float, counts: np.ndarray, small: float = PRECONDITIONED_BELOW
) -> Generator[None, None, np.ndarray | None]:
    """Return R for the kernel G + constant (2 matrices of memory beside G), or None where G may stand in for it.

    That is the case up to kappa * lam_max(P G) = `small`, and without a variance term.
    """
    m = G.shape[0]
    root = np.sqrt(counts)
    size = kappa * (yield from _largest(G, constant, root)) if kappa > 0 else 0.0
    if size <= small:
        return None
    large = size > CANCELLING_FROM
    B, V = np.empty((m, m)), np.zeros((m, m))
    step = max(32, (1 << 21) // m)
    for i in range(0, m, step):
        rows = slice(i, i + step)
        V[rows] = (G[rows] + constant) * root[rows, None]
        np.multiply(V[rows], kappa * root, out=B[rows])
        yield
    B[np.diag_indices(m)] += 1.0
    yield from cholesky.cholesky(B)
    if large:
        V[:] = 0.0
        V[np.diag_indices(m)] = 1.0
    yield from cholesky.lower_solve(B, V)

    def block(rows: slice, cols: slice) -> np.ndarray:
        product = V[:, rows].T @ V[:, cols]
        if not large:
            return (G[rows, cols] + constant) - kappa * product
        product *= -1.0
        product[np.equal.outer(np.arange(rows.start, rows.stop), np.arange(cols.start, cols.stop))] += 1.0
        return product / (kappa * np.multiply.outer(root[rows], root[cols]))

    R = yield from symmetric(m, m, block, out=B)
    return R


def _largest(G: np.ndarray, constant: float, root: np.ndarray) -> Generator[None, None, float]:
    """Largest eigenvalue of P^(1/2) (G + constant) P^(1/2), to a few per cent."""
    # Not the ones: on centred rows they can be an eigenvector of the eigenvalue 0.
    v = root * np.random.default_rng(0).uniform(0.5, 1.5, root.shape[0])
    v /= np.linalg.norm(v)
    value = 0.0
    for _ in range(5):
        v = root * v
        v = root * (G @ v + constant * float(v.sum()))
        value = float(np.linalg.norm(v))
        yield
        if value == 0:
            break
        v /= value
    return max(value, float((root * root * (np.diagonal(G) + constant)).max()))


class ColumnGram:
    """Products with the true Gram matrix of one column; base of both Hessians.

    The dual Hessian that sweeps and Newton steps see is R + omega border border', unsigned.
    """

    R: np.ndarray
    border: np.ndarray
    omega: float

    def __init__(self, G: np.ndarray, constant: float, column: Column) -> None:
        self.G, self.constant, self.column = G, constant, column
        self.p = column.counts * column.y

    def gram(self, v: np.ndarray) -> np.ndarray:
        """(G + constant) v."""
        return self.G @ v + self.constant * float(v.sum())

    def hessian(self, v: np.ndarray) -> np.ndarray:
        """(R + omega border border') v."""
        return self.R @ v + self.border * (self.omega * float(self.border @ v))

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

    def representer(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (alpha, f) with alpha + kappa (P - p p'/m) G alpha = q and f = G alpha."""
        raise NotImplementedError


class Edge(NamedTuple):
    """The rank-one part of H beside R, for p = counts * y."""

    p: np.ndarray
    border: np.ndarray
    omega: float


def edge_of(R: np.ndarray, p: np.ndarray, column: Column) -> Edge:
    """Border and its factor for the R of a column."""
    border = R @ p
    weight = column.kappa / column.total
    # 1 - weight p' R p is positive in exact arithmetic; rounding must not turn it round.
    return Edge(p, border, weight / max(1.0 - weight * float(p @ border), 1e-15))


class ExactHessian(ColumnGram):
    """H itself, from R."""

    def __init__(self, G: np.ndarray, R: np.ndarray, constant: float, column: Column, edge: Edge | None = None) -> None:
        super().__init__(G, constant, column)
        self.R = R
        if edge is None or not np.array_equal(edge.p, self.p):
            edge = edge_of(R, self.p, column)
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

    def representer(
        self, q: np.ndarray, enough: float = 1e-15, Hq: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """H gives alpha up to its own rounding; one or two corrections through G itself remove that."""
        alpha = q - self.variance(self.hessian(q) if Hq is None else Hq)
        f = self.gram(alpha)
        size = np.inf
        for _ in range(4):
            residual = q - self.variance(f) - alpha
            error = float(np.abs(residual).max())
            if error <= enough * float(np.abs(q).max()) or error > 0.5 * size:
                break
            size = error
            alpha = alpha + residual - self.variance(self.hessian(residual))
            f = self.gram(alpha)
        return alpha, f


class GramMajorant(ColumnGram):
    """G in the place of H (equal without a variance term, above it else)."""

    def __init__(self, G: np.ndarray, constant: float, column: Column) -> None:
        super().__init__(G, constant, column)
        self.R = G
        self.border = np.ones(G.shape[0])
        self.omega = constant
        self.q = self.alpha = np.zeros(G.shape[0])

    def representer(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Damped Richardson steps from the last answer, to a hundredth of what q moved: rounds go on anyway."""
        if self.column.kappa == 0:
            return q, self.gram(q)
        moved = q - self.q
        alpha = self.alpha + moved
        target = max(0.01 * float(np.abs(moved).max()), 1e-15 * float(np.abs(q).max()))
        f = self.gram(alpha)
        for _ in range(30):
            residual = q - self.variance(f) - alpha
            if float(np.abs(residual).max()) <= target:
                break
            alpha = alpha + residual / (1.0 + 0.5 * PRECONDITIONED_BELOW)
            f = self.gram(alpha)
        self.q, self.alpha = q, alpha
        return alpha, f


def key_of(column: Column) -> tuple[float, bytes]:
    """What R depends on, beside the Gram matrix."""
    return column.kappa, column.counts.tobytes()


class Shared:
    """Gram matrix (None: rows of it, as needed), and R for one key: all classes of a one-vs-rest problem have the same.

    Never written to, because columns may be in work at the same time; a column with another key computes its own R.
    Along a path, `decomposed` is what every R is made of, and `edge` belongs to the R of the first column.
    """

    edge: Edge | None = None

    def __init__(
        self,
        G: np.ndarray | None,
        constant: float,
        key: tuple[float, bytes] | None,
        R: np.ndarray | None,
        decomposed: Decomposed | None = None,
    ) -> None:
        self.G, self.constant, self.key, self.R, self.decomposed = G, constant, key, R, decomposed

    def next(self, column: Column, left: int) -> Generator[None, None, Shared | None]:
        """The same with the R of a column, as one of `left` problems; None where that does not pay."""
        assert self.G is not None
        if column.kappa == 0 or key_of(column) == self.key:
            return self
        known = self.decomposed
        if known is None or not np.array_equal(known.counts, column.counts):
            m = self.G.shape[0]
            if left < (DECOMPOSED_PATH_OF_FEW_ROWS if m <= FEW_ROWS else DECOMPOSED_PATH) or m > DECOMPOSED_ROWS:
                return None
            known = yield from decompose(self.G, self.constant, column.counts)
            if known is None:
                return None
        R = yield from known.reduced(column.kappa)
        shared = Shared(self.G, self.constant, key_of(column), R, known)
        shared.edge = edge_of(R, column.counts * column.y, column)
        return shared

    def reduced(self, column: Column) -> Generator[None, None, np.ndarray | None]:
        """R of a column; None where G may stand in for it."""
        assert self.G is not None
        if key_of(column) == self.key:
            return self.R
        return (yield from reduce_gram(self.G, self.constant, column.kappa, column.counts))

    def hessian(self, column: Column) -> Generator[None, None, ColumnGram]:
        """Return the dual Hessian of a column, exact or bounded."""
        assert self.G is not None
        R = yield from self.reduced(column)
        if R is None:
            return GramMajorant(self.G, self.constant, column)
        return ExactHessian(self.G, R, self.constant, column)
