"""Weighted Gram matrix X' D X over row blocks, and a sum of that kind that follows its weights from step to step."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import NamedTuple

import numpy as np
from scipy.linalg import cython_blas

from mdlearn._solvers import products
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import Rows, steps
from mdlearn.numerics.blas_threads import GUARD
from mdlearn.numerics.pieces_in_threads import work_in_threads

SYRK = cython_blas.__pyx_capi__["dsyrk"]
Work = Generator[None, None, None]
PIECE_ENTRIES = 1 << 18
"""Entries of a piece of dense rows: 2 MB of float64, and long enough for BLAS."""
PANEL_ROWS, SHARED_PANEL_ROWS = 1024, 256
"""Rows of the panels of a large matrix, and of those that threads share: in one thread these take 1.1 times as long."""
DENSE_COLUMN, DENSE_PRODUCT = 15.0, 0.08
"""Cost of a column of a sparse row that is written out, and of one of the products by BLAS then, in units of single
products: those are cheaper up to 30 % of stored entries over 1,500 columns, and for nearly all rows of 20 columns."""
SPARSE_PRODUCTS = 1 << 24
"""Products of one piece of sparse rows: about 20 ms."""
UPDATED_WEIGHTS_SHARE = 0.5
"""Changed weights, in units of those that are used, up to which a sum is brought up to date."""
ALIKE = 1e-15
"""Relative difference of two weights that rounding makes."""
DIAGONAL_FALL = 1e6
"""By how much the diagonal, with what will be added to it, may fall from its highest before a sum is made anew: what
was taken out left rounding. Ten digits of a matrix are plenty for the direction of a step."""


def add_weighted_gram(rows: Rows, bias: bool, D: np.ndarray, M: np.ndarray) -> Work:
    """Add the weighted Gram matrix X' D X = sum_i D_i x_i x_i', weights of one sign, to M's lower triangle.

    `rows` of shape (m, d), with `bias` a last entry 1 beside them; `M` of shape (n, n), n = d or d + 1.
    """
    yield from rows.written()
    if isinstance(rows, CsrRows) and _sparse_gram_is_cheaper(rows):
        yield from _add_sparse_gram(rows, bias, D, M)
        return
    d, chosen = rows.shape[1], np.flatnonzero(D)
    for part in steps(chosen.shape[0], max(64, PIECE_ENTRIES // M.shape[0])):
        piece = chosen[part]
        weights = D[piece]
        whole = piece[-1] - piece[0] + 1 == piece.shape[0]
        B = rows.block(slice(int(piece[0]), int(piece[-1]) + 1) if whole else piece)
        with np.errstate(over="ignore", invalid="ignore"):
            if (weights == weights[0]).all():
                _add_equally_weighted_gram(B, float(weights[0]), M)
            else:
                own, roots = np.empty((piece.shape[0], M.shape[0])), np.sqrt(np.abs(weights))[:, None]
                np.multiply(B, roots, out=own[:, :d])
                own[:, d:] = roots
                _add_dense_gram(own, float(np.sign(weights[0])), M)
        yield


def unweighted_gram(rows: Rows) -> Generator[None, None, np.ndarray]:
    """Inner products X X' of rows, the Gram matrix of their transpose: its lower triangle."""
    M = np.zeros((rows.shape[0], rows.shape[0]))
    if isinstance(rows, CsrRows):
        columns = CsrRows(rows.X.T.tocsr())
        yield from _add_sparse_gram(columns, False, np.ones(columns.shape[0]), M)
    else:
        _add_dense_gram(rows.block(slice(None)).T, 1.0, M)
    return M


def weighted_gram_operations(rows: CsrRows) -> float:
    """Products that `add_weighted_gram` makes of all rows of a CSR matrix."""
    m, d = rows.shape
    if not _sparse_gram_is_cheaper(rows):
        return float(m) * d * d
    return 0.5 * float(np.square(np.diff(rows.X.indptr).astype(np.float64)).sum())


def _sparse_gram_is_cheaper(rows: CsrRows) -> bool:
    """Whether a weighted Gram matrix X' D X is cheaper entry by entry than by dense blocks: rows have few entries."""
    m, d = rows.shape
    return bool((rows.X.nnz / m) ** 2 <= DENSE_COLUMN * d + DENSE_PRODUCT * d * d)


def _add_dense_gram(B: np.ndarray, weight: float, M: np.ndarray) -> None:
    """Add the weighted Gram matrix weight B'B to the lower triangle of M, by panels that threads share."""

    def add(part: slice) -> None:
        products.add_dense(B[:, part], weight, M[part, part], SYRK)
        if part.start:
            M[part, : part.start] += weight * (B[:, part].T @ B[:, : part.start])

    n = M.shape[0]
    if n <= SHARED_PANEL_ROWS:
        add(slice(0, n))
        return
    width = PANEL_ROWS if GUARD.allowed() == 1 else SHARED_PANEL_ROWS
    work_in_threads(list(steps(n, width))[::-1], add)  # the longest first


def _add_equally_weighted_gram(B: np.ndarray, weight: float, M: np.ndarray) -> None:
    """Add the weighted Gram matrix weight B'B of equally weighted rows; a bias without a column of ones."""
    d = B.shape[1]
    _add_dense_gram(B, weight, M[:d, :d])
    if M.shape[0] > d:
        M[d, :d] += weight * (np.ones(B.shape[0]) @ B)
        M[d, d] += weight * B.shape[0]


def _add_sparse_gram(rows: CsrRows, bias: bool, D: np.ndarray, M: np.ndarray) -> Work:
    """Add the weighted Gram matrix X' D X of sparse rows to the lower triangle of M, entry by entry."""
    A, start, m = rows.X, 0, rows.shape[0]
    while start < m:
        start = products.add_sparse(A.data, A.indices, A.indptr, D, M, start, m, bias, SPARSE_PRODUCTS)
        yield


def copy_lower_weighted_gram(A: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Copy the lower triangle of a weighted Gram matrix, in pieces between which Ctrl-C is seen."""
    for rows in steps(A.shape[0], 256):
        out[rows, : rows.stop] = A[rows, : rows.stop]
    return out


def mirror_lower_weighted_gram(M: np.ndarray) -> None:
    """Copy the lower triangle of a weighted Gram matrix to the upper one."""
    step = 256
    for start in range(0, M.shape[0], step):
        rows = slice(start, start + step)
        M[:start, rows] = M[rows, :start].T
        corner = M[rows, rows]
        np.copyto(corner, corner.T, where=~np.tri(corner.shape[0], dtype=bool))


class KnownWeightedGram(NamedTuple):
    """Weights c of rows whose weighted Gram matrix sum_i c_i x_i x_i' is known, and what adds a multiple of it."""

    counts: np.ndarray
    add: Callable[[float, np.ndarray, np.ndarray], Work]

    def multiple(self, D: np.ndarray) -> float:
        """The number by which D is a multiple of the counts; 0 where it is none."""
        factor = float(D.max() / self.counts.max())
        return factor if (np.abs(D - factor * self.counts) <= ALIKE * D).all() else 0.0


class RunningWeightedGram:
    """Weighted Gram matrix Q + sum_i D_i x_i x_i' in the lower triangle, kept for the next weights.

    Where few weights change (rows that come and go from the active set of squared hinges), only these are added or
    taken out again. Where D is a multiple of the weights of a sum that is known, that one is taken.

    `Q` is of shape (n, n), or (n,) for a diagonal, the sum `M` of shape (n, n).
    """

    def __init__(self, rows: Rows, bias: bool, Q: np.ndarray, known: KnownWeightedGram | None) -> None:
        self.rows, self.bias, self.Q, self.known = rows, bias, Q, known
        self.M = np.empty((Q.shape[0], Q.shape[0]))
        self.D: np.ndarray | None = None

    def to(self, D: np.ndarray, ahead: np.ndarray | float = 0.0) -> Work:
        """Go to other weights >= 0; `ahead` is what a solution will add to the diagonal."""
        last, self.D = self.D, None  # an interrupted change leaves nothing to go on from
        change = None if last is None else D - last
        if change is None or np.count_nonzero(change) > UPDATED_WEIGHTS_SHARE * np.count_nonzero(D):
            yield from self._anew(D)
        else:
            yield from add_weighted_gram(self.rows, self.bias, np.maximum(change, 0.0), self.M)
            np.maximum(self.highest, np.diagonal(self.M), out=self.highest)
            yield from add_weighted_gram(self.rows, self.bias, np.minimum(change, 0.0), self.M)
            if not (DIAGONAL_FALL * (np.diagonal(self.M) + ahead) >= self.highest).all():
                yield from self._anew(D)
        self.D = D.copy()  # the caller may write the next weights into the same array

    def _anew(self, D: np.ndarray) -> Work:
        if self.Q.ndim == 1:
            self.M.fill(0.0)
            np.fill_diagonal(self.M, self.Q)
        else:
            copy_lower_weighted_gram(self.Q, self.M)
        factor = 0.0 if self.known is None else self.known.multiple(D)
        if self.known is not None and factor > 0:
            yield from self.known.add(factor, self.known.counts, self.M)
        else:
            yield from add_weighted_gram(self.rows, self.bias, D, self.M)
        self.highest = np.diagonal(self.M).copy()
