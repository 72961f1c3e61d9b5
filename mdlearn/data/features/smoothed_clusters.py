"""Smoothed clusters: rows of blocks with coefficients tied to each other, the blocks of x mixed by a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.data.features.clustered_rows import BlockRows
from mdlearn.data.rows.rows import BLOCK_ENTRIES, Rows, Selection, steps
from mdlearn.numerics import memory
from mdlearn.numerics.lazy_property import kept


@dataclass(frozen=True, eq=False)
class SmoothedClusterRows(BlockRows):
    """Rows of smoothed clusters: (A' x I) Phi(x) over K blocks of L columns, for rows Phi(x) of few blocks.

    A product with theta' is that of Phi(x) with theta = A theta'. So a regulariser 1/2 tr theta' M theta with
    M = (A A')^-1 is the plain 1/2 |theta'|^2 over these rows. All products are made from those of Phi(x): though
    every row has entries in all blocks, nothing of that size is written out, except by `block` and `matrix`.
    """

    mix: np.ndarray  # shape (K, K): A

    @kept
    def couplings(self) -> np.ndarray:
        """A A', shape (K, K)."""
        return np.ascontiguousarray(self.mix @ self.mix.T)

    @property
    def separate(self) -> bool:
        return False

    def take(self, rows: Selection) -> SmoothedClusterRows:
        """Selected rows, of the same mix; a copy."""
        part = super().take(rows)
        return SmoothedClusterRows(part.F, part.layout, self.mix, model_dtype=self.model_dtype)

    def scaled(self, by: np.ndarray) -> Rows:
        return Rows.scaled(self, by)

    def block(self, rows: Selection) -> np.ndarray:
        plain = super().block(rows)
        mixed: np.ndarray = self.mix.T @ plain.reshape(plain.shape[0], self.layout.n_blocks, self.width)
        return mixed.reshape(plain.shape)

    def matrix(self) -> Any:
        from scipy.sparse import csr_matrix

        m, width = self.shape
        memory.require(24.0 * m * width, f"writing out {m} x {width} tied features", "use smoothness=0")
        return csr_matrix(self.block(slice(None)))

    def dot(self, w: np.ndarray) -> np.ndarray:
        w = np.asarray(w, dtype=np.float64)
        return super().dot((self.mix @ w.reshape(self.layout.n_blocks, -1)).reshape(w.shape))

    def adjoint(self, v: np.ndarray) -> np.ndarray:
        w = super().adjoint(v)
        return (self.mix.T @ w.reshape(self.layout.n_blocks, -1)).reshape(w.shape)

    def column_squares(self, weights: np.ndarray) -> np.ndarray:
        if self.layout.place.shape[1] == 1:
            of = super().column_squares(weights).reshape(self.layout.n_blocks, -1)
            return (np.square(self.mix).T @ of).ravel()
        out = np.zeros(self.shape[1])
        for rows in steps(self.shape[0], BLOCK_ENTRIES // self.shape[1]):
            B = self.block(rows)
            out += weights[rows] @ (B * B)
        return out

    def squares(self, scale: np.ndarray | None = None, centre: np.ndarray | None = None) -> np.ndarray:
        """sum_j x_ij^2 of every row, float64; `scale` and `centre` are not for these rows."""
        assert scale is None and centre is None, "tied rows have a ridge of ones and stay where they are"
        blocks, place = self.layout.blocks, self.layout.place
        out = np.empty(self.shape[0])
        for rows in steps(self.shape[0], BLOCK_ENTRIES // (place.shape[1] * self.width)):
            B = self.F[place[rows]].astype(np.float64, copy=False)
            P = self.couplings[blocks[rows][:, :, None], blocks[rows][:, None, :]]
            out[rows] = np.einsum("iap,iab,ibp->i", B, P, B, optimize=True)
        return out

    def inner(self, others: Rows, centre: np.ndarray | None = None) -> np.ndarray:
        """Inner products with other rows, float64 and dense; of tied rows, with those of the same mix."""
        assert centre is None, "sparse rows stay where they are"
        if not isinstance(others, SmoothedClusterRows):
            return self.dot(others.block(slice(None)).T)
        out = np.zeros((self.shape[0], others.shape[0]))
        mine, theirs = self.layout, others.layout
        for a in range(mine.place.shape[1]):
            left = self.F[mine.place[:, a]].astype(np.float64, copy=False)
            for b in range(theirs.place.shape[1]):
                right = others.F[theirs.place[:, b]].astype(np.float64, copy=False)
                out += self.couplings[np.ix_(mine.blocks[:, a], theirs.blocks[:, b])] * (left @ right.T)
        return out


def cluster_smoothing(centers: np.ndarray, smoothness: float) -> tuple[np.ndarray, np.ndarray]:
    """Mix A of smoothed clusters, for the regulariser 1/2 tr theta' (I + smoothness Laplacian) theta; and similarities.

    `centers` of shape (K, d); `smoothness`: rho >= 0. Returns A = C'^-1, upper triangular, with I + rho Laplacian = C
    C'. Similarities s_kl = exp(-|c_k - c_l|^2 / sigma_c), 0 on the diagonal; sigma_c is the mean squared distance
    between two centres.
    """
    from scipy.linalg import LinAlgError, cholesky, solve_triangular

    K = centers.shape[0]
    shifted = centers - centers.mean(axis=0)
    squares = np.einsum("kj,kj->k", shifted, shifted)
    D = np.maximum(squares[:, None] + squares - 2.0 * (shifted @ shifted.T), 0.0)
    np.fill_diagonal(D, 0.0)
    width = float(D.sum()) / max(1, K * (K - 1))
    S = np.exp(-D / width) if width > 0 else np.ones((K, K))
    np.fill_diagonal(S, 0.0)
    try:
        C = cholesky(np.eye(K) + smoothness * (np.diag(S.sum(axis=1)) - S), lower=True)
    except LinAlgError:
        raise ValueError(f"smoothness={smoothness:g} is so large that rounding hides the clusters; lower it") from None
    return np.ascontiguousarray(solve_triangular(C, np.eye(K), lower=True).T), S
