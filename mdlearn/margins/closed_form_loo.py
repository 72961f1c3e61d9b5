"""Closed-form leave-one-out (LOO) margins for quadratic objectives: those of ULDM and of the least squares SVM.

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
from typing import Any

import numpy as np

from mdlearn.errors import did_you_mean
from mdlearn.margins.validation import (
    validate_margin_array,
    validate_margin_counts,
    validate_margin_number,
    validate_margin_signs,
)
from mdlearn.numerics.symmetric_eigenvalues import symmetric_eigen

LOO_BIASES = ("free", "regularized", "none")


def uldm_loo_margins(
    columns: Any, y: Any, C: Any, lambda0: float = 1.0, ridge: Any = None, sample_weight: Any = None
) -> np.ndarray:
    """Leave-one-out margins in closed form: of every row under the ULDM trained without it, for every C of a grid.

    Row i of the result's columns is ``y_i f_i(x_i)``, where f_i minimises
    ``C/2 |beta|^2 - mean(z) + lambda0/2 Var(z)`` over all rows but one repetition of row i. The basis stays what it is,
    also where row i belongs to it.

    Parameters
    ----------
    columns : array-like, shape (n, N)
        Explicit columns of the rows: kernel values k(x_i, z_j) of a basis, or coordinates; with a last column of ones
        for the bias "regularized".
    y : array-like, shape (n,)
        Two labels; the second in sorted order is the class +1.
    C : float or array-like, shape (p,)
        One value or a grid, not negative. Scaled by the caller where the model's C is (``c_scaling``).
    lambda0 : float, default 1
        Weight of half the margin variance, positive.
    ridge : array-like, shape (N,), optional
        Positive weights of the squared coefficients: 1 / w for the kernel column of a row of weight w. Default: ones.
    sample_weight : array-like, shape (n,), optional
        Repetition counts, 0 or at least 1. Default: 1 for every row.

    Returns
    -------
    ndarray, shape (p, n)
        Margins; ``(margins <= 0)`` are the leave-one-out errors. Rows of weight 0 are left out of nothing: theirs are
        the margins of the model of all the others.

    Raises
    ------
    TypeError, ValueError
        As for `mean`; also if the shapes do not fit, ``y`` has other than two labels, a weight is between 0 and 1, the
        weights sum to less than 2, or ``C = 0`` and the columns depend on each other.

    Notes
    -----
    Time O(n N min(n, N)) and O(n N) per value of C.

    ULDM is ridge regression of the margins to 1 but for its scale; so leaving a row out is a rank-one change, and
    averages over one row less stand for another weight. With the singular value decomposition of the rows, everything
    that tends to 0 with C is a sum of positive terms.

    References
    ----------
    S. Abe, Unconstrained large margin distribution machines, Pattern Recognition Letters 98, 2017,
    eq. (34)-(35), for the machine.
    """
    F, signs, w = _loo_problem(columns, "columns", y, sample_weight)
    grid = _checked_loo_grid(C)
    lambda0 = validate_margin_number(lambda0, "lambda0")
    if not lambda0 > 0:
        raise ValueError(f"lambda0={lambda0!r} is not positive; without variance there is nothing to leave out of")
    scale = np.ones(F.shape[1]) if ridge is None else validate_margin_array(ridge, "ridge")
    if scale.shape != (F.shape[1],) or scale.min() <= 0:
        raise ValueError(
            f"ridge has shape {scale.shape}, but {F.shape[1]} positive numbers, one per column, are needed"
        )
    total = float(w.sum())
    if total < 2:
        raise ValueError(f"the weights sum to {total:g}; at least 2 are needed, so that something is left")
    used = w > 0
    A = F / np.sqrt(scale)
    root = np.sqrt(w[used])
    U, S, Vt = np.linalg.svd(A[used] * root[:, None], full_matrices=False)
    rank = int((S > max(A.shape) * np.finfo(float).eps * S[0]).sum()) if S.size else 0
    if grid.min() == 0 and rank < F.shape[1]:
        raise ValueError("C=0 needs columns that are independent of each other; give C > 0")
    known = ClosedFormLooDecomposition(w[used], U, S * S)
    out = np.empty((grid.shape[0], F.shape[0]))
    for p, c in enumerate(grid):
        out[p, used] = known.margins(signs[used], ClosedFormLooQuadratic(total - 1.0, 0.5 * lambda0, 1.0, 0.0, 0.0, c))
        if not used.all():
            short = c / lambda0 * total
            t = Vt.T @ (S / (S * S + short) * (U.T @ (root * signs[used])))
            whole = known.regressed(signs[used], 1.0, short)[2]  # 1 - h t, times the total
            out[p, ~used] = signs[~used] * (A[~used] @ t) * (total / whole) / lambda0
    return out


def lssvm_loo_margins(G: Any, y: Any, C: Any, bias: str = "free", sample_weight: Any = None) -> np.ndarray:
    """Leave-one-out margins in closed form: of rows under the least squares SVM without them, for every C of a grid.

    Parameters
    ----------
    G : array-like, shape (n, n)
        Gram matrix of the rows.
    y : array-like, shape (n,)
        Two labels; the second in sorted order is the class +1.
    C : float or array-like, shape (p,)
        One value or a grid, positive.
    bias : {"free", "regularized", "none"}, default "free"
    sample_weight : array-like, shape (n,), optional
        Repetition counts, 0 or at least 1. Default: 1 for every row.

    Returns
    -------
    ndarray, shape (p, n)
        ``y_i f_i(x_i)``, f_i without one repetition of row i. Rows of weight 0: margins of the model of all others.

    Raises
    ------
    TypeError, ValueError
        As for `mean`; also if the shapes do not fit, ``G`` is not symmetric, ``y`` has other than two labels, a weight
        is between 0 and 1, ``bias`` is unknown, or ``C`` is 0.

    Notes
    -----
    Time O(n^3), and O(n^2) per value of C. With A = G + diag(1 / (C w)), bordered by ones for a free bias, and
    A (alpha; b) = (y; 0), the residual of row i without one of its w_i repetitions is
    ``alpha_i / (C (w_i - 1) + (A^-1)_ii / w_i)``: for w_i = 1 the known block inverse, alpha_i / (A^-1)_ii. Here alpha
    and the diagonal come from eigenvalues, which serve every C.

    References
    ----------
    S. Abe, Unconstrained large margin distribution machines, Pattern Recognition Letters 98, 2017,
    eq. (8)-(10), for the machine.
    """
    K, signs, w = _loo_problem(G, "G", y, sample_weight)
    if K.shape[0] != K.shape[1] or np.abs(K - K.T).max() > 1e-8 * np.abs(K).max():
        raise ValueError(f"G has shape {K.shape}; a symmetric Gram matrix of the rows is needed")
    if bias not in LOO_BIASES:
        hint = did_you_mean(bias, LOO_BIASES)
        raise ValueError(f"bias={bias!r} is unknown; give 'free', 'regularized' or 'none'{hint}")
    grid = _checked_loo_grid(C)
    if grid.min() == 0:
        raise ValueError("C=0 leaves no loss: every margin is 0; give C > 0")
    used = w > 0
    y_used, total = signs[used], float(w.sum())
    known = decompose_gram_for_closed_form_loo(K[np.ix_(used, used)], w[used], bias)
    others = K[~used][:, used] + (bias == "regularized")
    out = np.empty((grid.shape[0], K.shape[0]))
    for p, c in enumerate(grid):
        out[p, used] = known.margins(y_used, ClosedFormLooQuadratic(total - 1.0, 0.0, 0.0, c, c))
        if not used.all():
            residuals = known.regressed(y_used, c)[0]
            alpha, b = c * w[used] * y_used * residuals, 0.0
            if bias == "free":
                b = float(w[used] @ (y_used * (1.0 - residuals) - K[np.ix_(used, used)] @ alpha)) / total
            out[p, ~used] = signs[~used] * (others @ alpha + b)
    return out


def _loo_problem(matrix: Any, name: str, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matrix, signs and weights of two classes for leave-one-out (LOO) margins in closed form, checked."""
    A = validate_margin_array(matrix, name)
    if A.ndim != 2:
        raise ValueError(f"{name} has shape {A.shape}, but a matrix with one row per label is needed")
    w = validate_margin_counts(sample_weight, A.shape[0])
    if ((w > 0) & (w < 1)).any():
        raise ValueError(
            f"sample_weight has the entry {w[(w > 0) & (w < 1)][0]:g}; one repetition is left out, so give 0 or >= 1"
        )
    return A, validate_margin_signs(y, A, name, w), w


def _checked_loo_grid(C: Any) -> np.ndarray:
    """Grid of C for leave-one-out margins in closed form, checked and one-dimensional."""
    grid = validate_margin_array(C, "C").reshape(-1)
    if grid.min() < 0:
        raise ValueError(f"C has a negative entry, {grid.min():g}; it must be at least 0")
    return grid


@dataclass(frozen=True, eq=False)
class ClosedFormLooQuadratic:
    """Weights of a quadratic objective without one repetition of a row, for leave-one-out margins in closed form.

    `variance`, `mean`: v and a.
    """

    total: float  # M'
    variance: float
    mean: float
    steepness: float  # D
    pull: float  # D t
    ridge: float = 1.0  # factor of R; 0 for rows that are independent of each other


@dataclass(frozen=True, eq=False)
class ClosedFormLooDecomposition:
    """Decomposition U S V' for closed-form leave-one-out margins: rows times roots of counts, in units of R."""

    counts: np.ndarray  # shape (m,): positive
    vectors: np.ndarray  # shape (m, r): U
    values: np.ndarray  # shape (r,): S^2
    free: bool = False  # whether there is an intercept outside of the ridge

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

    def margins(self, y: np.ndarray, weights: ClosedFormLooQuadratic) -> np.ndarray:
        """Margin of every row under the problem without one repetition of it, shape (m,)."""
        twice, M = 2.0 * weights.variance, weights.total
        held = twice + weights.steepness * M
        residuals, slacks, whole = self.regressed(y, held / M, weights.ridge)
        G, phi = residuals / slacks, twice / held
        scale = (weights.mean + weights.pull * M) / held
        return scale * (1.0 - G) / (1.0 - phi + phi * (whole - G * residuals) / M)


def decompose_rows_for_closed_form_loo(A: np.ndarray, counts: np.ndarray, bias: str) -> ClosedFormLooDecomposition:
    """Decompose rows (m, n + 1), bias last, for closed-form leave-one-out margins; A is overwritten.

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
    return ClosedFormLooDecomposition(counts, U[:, first:], np.square(S[first:]), bias == "free")


def decompose_gram_for_closed_form_loo(G: np.ndarray, counts: np.ndarray, bias: str) -> ClosedFormLooDecomposition:
    """Decompose a Gram matrix of shape (m, m) for closed-form leave-one-out margins: O(m^3)."""
    root = np.sqrt(counts)
    K = (G + 1.0 if bias == "regularized" else G) * np.multiply.outer(root, root)
    if bias == "free":
        mean, size = root / np.sqrt(counts.sum()), float(np.trace(K)) or 1.0
        along = K @ mean
        along -= 0.5 * float(along @ mean) * mean
        K -= np.multiply.outer(mean, along) + np.multiply.outer(along, mean)
        K += np.multiply.outer(mean, 2.0 * size * mean)
    values, U = symmetric_eigen(K)
    last = len(values) - int(bias == "free")
    return ClosedFormLooDecomposition(counts, U[:, :last], np.maximum(values[:last], 0.0), bias == "free")
