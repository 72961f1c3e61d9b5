"""Leave-one-out in closed form for quadratic objectives of margins.

The objective is ``1/2 theta' R theta + v Var(z) - a mean(z) + D/2 sum_i c_i (z_i - t)^2`` over margins
``z_i = theta.r_i`` of counts c_i: ULDM, the least squares SVM and the least squares LDM are such. Let M' be the total
count without one repetition of row i, and g = 2v/M' + D, the same for every i. Up to a rank-one term the problem
without it is ridge regression of the margins to 1, with the loss weighted by g,

    H = R + g sum_j c_j r_j r_j' - g r_i r_i' - (2v/M'^2) s's',        s' = sum_j c_j r_j - r_i,

so two rank-one formulas give theta = rho H^-1 s', rho = a/M' + D t, from what ridge regression on all rows leaves over:
with e_i its residuals, l_i = g r_i'(R + g sum c r r')^-1 r_i, E = sum_j c_j e_j and G_i = e_i / (1 - l_i),

    z_i = (a + D t M') / (2v + D M') * (1 - G_i) / (1 - phi + phi (E - G_i e_i) / M'),     phi = 2v / (2v + D M').

phi = 1 is ULDM (Abe, ICPRAM 2017, eq. 34-35), phi = 0 the LS-SVM, for which it is the known block inverse. One
decomposition of the rows gives e and l for every weight and for every class; everything that tends to 0 with R is a sum
of terms of one sign. A free bias is taken out by centring.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mdlearn.numerics.symmetric_eigenvalues import eigen


@dataclass(frozen=True, eq=False)
class Quadratic:
    """Weights of an objective at the total count without one repetition.

    Attributes
    ----------
    total : float
        M'.
    variance, mean : float
        v and a.
    steepness : float
        D.
    pull : float
        D t.
    ridge : float
        Factor of R; 0 for rows that are independent of each other.
    """

    total: float
    variance: float
    mean: float
    steepness: float
    pull: float
    ridge: float = 1.0


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Rows of a problem, times the roots of their counts, in units of R, centred for a free bias: U S V'.

    Attributes
    ----------
    counts : ndarray of shape (m,)
        Positive.
    vectors : ndarray of shape (m, r)
        U.
    values : ndarray of shape (r,)
        S^2.
    free : bool
        Whether there is an intercept outside of the ridge.
    """

    counts: np.ndarray
    vectors: np.ndarray
    values: np.ndarray
    free: bool = False

    def regressed(self, y: np.ndarray, weight: float, ridge: float = 1.0) -> tuple[np.ndarray, np.ndarray, float]:
        """Ridge regression of the margins to 1: residuals e, slacks 1 - l and E, for signs y and a loss weight g."""
        c, U, root = self.counts, self.vectors, np.sqrt(self.counts)
        left = ridge / (ridge + weight * self.values) if ridge > 0 else np.zeros_like(self.values)
        target = root * y
        if self.free:
            target = target - root * (float(root @ target) / float(c.sum()))
        along = U.T @ target
        beyond, outside = np.zeros_like(root), np.zeros_like(root)
        if U.shape[1] < root.shape[0] - self.free:  # else nothing is outside the span of the rows, not even rounding
            beyond = target - U @ along
            outside = np.maximum(1.0 - np.square(U).sum(axis=1) - (c / c.sum() if self.free else 0.0), 0.0)
        residuals = y * (beyond + U @ (left * along)) / root
        slacks = (c - 1.0 + outside + np.square(U) @ left) / c
        return residuals, slacks, float(beyond @ beyond + along @ (left * along))

    def margins(self, y: np.ndarray, weights: Quadratic) -> np.ndarray:
        """Margin of every row under the problem without one repetition of it, shape (m,)."""
        twice, M = 2.0 * weights.variance, weights.total
        held = twice + weights.steepness * M
        residuals, slacks, whole = self.regressed(y, held / M, weights.ridge)
        G, phi = residuals / slacks, twice / held
        scale = (weights.mean + weights.pull * M) / held
        margins: np.ndarray = scale * (1.0 - G) / (1.0 - phi + phi * (whole - G * residuals) / M)
        return margins


def of_rows(A: np.ndarray, counts: np.ndarray, bias: str) -> Decomposition:
    """Decompose explicit rows of shape (m, n + 1), whose last column is for the bias; A is overwritten.

    O(m n min(m, n)); small values are exact.
    """
    root = np.sqrt(counts)
    if bias == "none":
        A = A[:, :-1]
    A *= root[:, None]
    if bias == "regularized":
        A[:, -1] = root
    elif bias == "free":
        # A direction of its own, the largest: the others are orthogonal to it, also those of value 0.
        mean, size = root / np.sqrt(counts.sum()), float(np.linalg.norm(A[:, :-1])) or 1.0
        A[:, :-1] -= np.multiply.outer(mean, mean @ A[:, :-1])
        A[:, -1] = 2.0 * size * mean
    U, S, _ = np.linalg.svd(A, full_matrices=False)
    first = int(bias == "free")
    return Decomposition(counts, U[:, first:], np.square(S[first:]), bias == "free")


def of_gram(G: np.ndarray, counts: np.ndarray, bias: str) -> Decomposition:
    """Decompose a Gram matrix of shape (m, m): O(m^3)."""
    root = np.sqrt(counts)
    K = (G + 1.0 if bias == "regularized" else G) * np.multiply.outer(root, root)
    if bias == "free":
        mean, size = root / np.sqrt(counts.sum()), float(np.trace(K)) or 1.0
        along = K @ mean
        along -= 0.5 * float(along @ mean) * mean
        K -= np.multiply.outer(mean, along) + np.multiply.outer(along, mean)
        K += np.multiply.outer(mean, 2.0 * size * mean)
    values, U = eigen(K)
    last = len(values) - int(bias == "free")
    return Decomposition(counts, U[:, :last], np.maximum(values[:last], 0.0), bias == "free")
