"""Leave-one-out margins in closed form: of ULDM, whose basis stays as it is, and of the least squares SVM.

One decomposition serves a whole grid of C.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mdlearn.margins.checks import counts, number, real


def uldm_loo_margins(
    columns: Any, y: Any, C: Any, lambda0: float = 1.0, ridge: Any = None, sample_weight: Any = None
) -> np.ndarray:
    """Margins of every row under the ULDM that was trained without it, for every C of a grid.

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

    ULDM is ridge regression of the margins to 1 but for its scale: with S = sum_i k_i k_i' / M over signed rows k_i,
    h their mean and t = (C I + S)^-1 h', beta = t / (1 - h t). So leaving a row out is a rank-one change. The factor
    C (M - 1) stands for averages over one row less. With the singular value decomposition of the signed rows,
    everything that tends to 0 with C is a sum of positive terms.

    References
    ----------
    S. Abe, Unconstrained large margin distribution machines, Pattern Recognition Letters 98, 2017,
    eq. (34)-(35), for the machine.
    """
    F, signs, w = _problem(columns, "columns", y, sample_weight)
    grid = _grid(C)
    lambda0 = number(lambda0, "lambda0")
    if not lambda0 > 0:
        raise ValueError(f"lambda0={lambda0!r} is not positive; without variance there is nothing to leave out of")
    scale = np.ones(F.shape[1]) if ridge is None else real(ridge, "ridge")
    if scale.shape != (F.shape[1],) or scale.min() <= 0:
        raise ValueError(
            f"ridge has shape {scale.shape}, but {F.shape[1]} positive numbers, one per column, are needed"
        )
    total = float(w.sum())
    if total < 2:
        raise ValueError(f"the weights sum to {total:g}; at least 2 are needed, so that something is left")
    used = w > 0
    root = np.sqrt(w[used])
    B = (signs / np.sqrt(np.where(used, w, 1.0)))[:, None] * F / np.sqrt(scale)
    U, S, Vt = np.linalg.svd(B[used] * root[:, None] ** 2, full_matrices=False)
    rank = int((S > max(B.shape) * np.finfo(float).eps * S[0]).sum()) if S.size else 0
    if grid.min() == 0 and rank < F.shape[1]:
        raise ValueError("C=0 needs columns that are independent of each other; give C > 0")
    # Parts of the target, the root of the weights, inside and outside the span of the columns.
    along = U.T @ root
    beyond, outside = np.zeros_like(root), np.zeros_like(root)
    if S.shape[0] < root.shape[0]:  # else there is nothing outside, not even rounding
        beyond, outside = root - U @ along, np.maximum(1.0 - np.square(U).sum(axis=1), 0.0)
    out = np.empty((grid.shape[0], F.shape[0]))
    for p, c in enumerate(grid / lambda0 * (total - 1.0)):
        left = c / (c + S * S) if c > 0 else np.zeros_like(S)
        missing = (beyond + U @ (left * along)) / root  # 1 - m_i
        slack = (root * root - 1.0 + outside + np.square(U) @ left) / (root * root)  # 1 - l_i
        whole = float(beyond @ beyond + along @ (left * along))
        g = missing / slack
        out[p, used] = (1.0 - g) * (total - 1.0) / (whole - g * missing) / lambda0
        if not used.all():
            t = Vt.T @ (S / (S * S + grid[p] / lambda0 * total) * along)
            short = grid[p] / lambda0 * total
            ht = 1.0 - float(beyond @ beyond + along @ (short / (short + S * S) * along)) / total
            out[p, ~used] = (signs[:, None] * F / np.sqrt(scale))[~used] @ t / (1.0 - ht) / lambda0
    return out


def lssvm_loo_margins(G: Any, y: Any, C: Any, bias: str = "free", sample_weight: Any = None) -> np.ndarray:
    """Margins of every row under the least squares SVM that was trained without it, for every C of a grid.

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
    ``alpha_i / (C (w_i - 1) + (A^-1)_ii / w_i)``: for w_i = 1 the known block inverse, alpha_i / (A^-1)_ii.

    References
    ----------
    S. Abe, Unconstrained large margin distribution machines, Pattern Recognition Letters 98, 2017,
    eq. (8)-(10), for the machine.
    """
    K, signs, w = _problem(G, "G", y, sample_weight)
    if K.shape[0] != K.shape[1] or np.abs(K - K.T).max() > 1e-8 * np.abs(K).max():
        raise ValueError(f"G has shape {K.shape}; a symmetric Gram matrix of the rows is needed")
    if bias not in ("free", "regularized", "none"):
        raise ValueError(f"bias={bias!r} is unknown; give 'free', 'regularized' or 'none'")
    grid = _grid(C)
    if grid.min() == 0:
        raise ValueError("C=0 leaves no loss: every margin is 0; give C > 0")
    used = w > 0
    if bias == "regularized":
        K = K + 1.0
    root, y_used = np.sqrt(w[used]), signs[used]
    values, V = np.linalg.eigh(K[np.ix_(used, used)] * np.outer(root, root))
    values, Q = np.maximum(values, 0.0), V * root[:, None]
    target, ones = Q.T @ y_used, Q.sum(axis=0)
    out = np.empty((grid.shape[0], K.shape[0]))
    for p, c in enumerate(grid):
        inverse = 1.0 / (values + 1.0 / c)
        diagonal, b = np.square(Q) @ inverse, 0.0
        if bias == "free":
            column, hold = Q @ (inverse * ones), float(ones @ (inverse * ones))
            b = float(ones @ (inverse * target)) / hold
            diagonal = diagonal - column * column / hold
        alpha = Q @ (inverse * (target - b * ones))
        out[p, used] = 1.0 - y_used * alpha / (c * (root * root - 1.0) + diagonal / (root * root))
        out[p, ~used] = signs[~used] * (K[np.ix_(~used, used)] @ alpha + b)
    return out


def _problem(matrix: Any, name: str, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Checked matrix, signs and weights of a problem of two classes."""
    A = real(matrix, name)
    if A.ndim != 2:
        raise ValueError(f"{name} has shape {A.shape}, but a matrix with one row per label is needed")
    labels = np.asarray(y)
    if labels.shape != (A.shape[0],):
        raise ValueError(f"y has shape {labels.shape}, but {name} has {A.shape[0]} rows; give one label per row")
    w = counts(sample_weight, A.shape[0])
    if ((w > 0) & (w < 1)).any():
        raise ValueError(
            f"sample_weight has the entry {w[(w > 0) & (w < 1)][0]:g}; one repetition is left out, so give 0 or >= 1"
        )
    classes = np.unique(labels[w > 0])
    if classes.size != 2:
        raise ValueError(f"y has {classes.size} distinct labels of positive weight, but exactly two are needed")
    return A, np.where(labels == classes[1], 1.0, -1.0), w


def _grid(C: Any) -> np.ndarray:
    grid = real(C, "C").reshape(-1)
    if grid.min() < 0:
        raise ValueError(f"C has a negative entry, {grid.min():g}; it must be at least 0")
    return grid
