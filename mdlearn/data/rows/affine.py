"""Affine rows, with the constant column of a bias behind their own ones, or without."""

from __future__ import annotations

import numpy as np

from mdlearn.data.rows.rows import Rows, Selection


def affine_coefficients(v: np.ndarray, last: np.ndarray | float) -> np.ndarray:
    """Return coefficients of affine rows: v of shape (d,) or (d, k), and behind it the last one, or k of them."""
    out = np.empty((v.shape[0] + 1, *v.shape[1:]))
    out[:-1], out[-1] = v, last
    return out


class AffineRows:
    """Affine rows (x, 1), for coefficients whose last one is the intercept; or rows x alone, without `constant`.

    `width`: number of columns.
    """

    def __init__(self, rows: Rows, constant: bool) -> None:
        self.rows, self.constant, self.width = rows, constant, rows.shape[1] + constant

    def dot(self, W: np.ndarray) -> np.ndarray:
        """Decision values in float64, for W of shape (width,) or (width, k)."""
        return self.rows.dot(W[:-1]) + W[-1] if self.constant else self.rows.dot(W)

    def adjoint(self, V: np.ndarray) -> np.ndarray:
        """Sum of rows times V of shape (m,) or (m, k)."""
        G = self.rows.adjoint(V)
        return affine_coefficients(G, V.sum(axis=0)) if self.constant else G

    def dot_and_adjoint(self, w: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return decision values z for w of shape (width,), and the sum of rows times weights z."""
        if not self.constant:
            return self.rows.dot_and_adjoint(w, 0.0, weights)
        z, sums = self.rows.dot_and_adjoint(w[:-1], float(w[-1]), weights)
        return z, affine_coefficients(sums, float(weights @ z))

    def block(self, rows: Selection) -> np.ndarray:
        """Selected rows, with the constant 1 if any, as a dense float64 array; possibly a view, so never written to."""
        B = self.rows.block(rows)
        return np.hstack([B, np.ones((B.shape[0], 1))]) if self.constant else B

    def column_squares(self, weights: np.ndarray) -> np.ndarray:
        """Weighted sum of the squares of every column."""
        squares = self.rows.column_squares(weights)
        return affine_coefficients(squares, weights.sum()) if self.constant else squares
