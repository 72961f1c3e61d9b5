"""Bounds from margins: those of Gao & Zhou, of the LDM paper's Theorem 3, and of the L3-SVM's stability."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mdlearn.errors import did_you_mean
from mdlearn.margins.validation import (
    ROUNDING_OF_MARGINS,
    validate_margin_array,
    validate_margin_counts,
    validate_margin_number,
    validate_margin_signs,
    validate_margins,
)

STABILITY_CHANGES = ("replaced", "removed")


def gao_zhou_bound(z: Any, n_hypotheses: float, delta: float, theta: Any = None, sample_weight: Any = None) -> float:
    """Margin-distribution bound of Gao & Zhou on the error of a voting classifier.

    With probability at least ``1 - delta`` over the sample,
    ``P[y f < 0] <= m^-50 + inf_theta { P_S[z < theta] + m^(-2 / (1 - E_S[z]^2 + theta/9)) + 3 sqrt(mu) / m^1.5
    + 7 mu / (3 m) + sqrt(3 mu L / m) }`` over ``0 < theta <= 1``, where
    ``mu = 144 ln(m) ln(2|H|) / theta^2 + ln(2|H| / delta)`` and ``L = P_S[z < theta] P_S[z > 2 theta / 3]``.

    Parameters
    ----------
    z : array-like, shape (n,)
        Margins of the voting classifier on the training sample, all in ``[-1, 1]``.
    n_hypotheses : int
        ``|H|``, the size of the finite base class, at least 1.
    delta : float
        Probability that the bound fails, ``0 < delta < 1``.
    theta : float or array-like, optional
        One value or a grid, in ``(0, 1]``; the best value of the grid is taken. Default: the infimum over
        all of ``(0, 1]``.
    sample_weight : array-like, shape (n,), optional
        Repetition counts, not negative. Default: 1 for every row.

    Returns
    -------
    float
        The bound. It exceeds 1, and then says nothing, unless the sample is very large.

    Raises
    ------
    TypeError, ValueError
        As for `mean`; also if a margin is outside ``[-1, 1]``, if ``m < 5``, or if ``n_hypotheses``,
        ``delta`` or ``theta`` is out of range.

    Notes
    -----
    Theorem 2.1 of Ding, Huang, Zu & Zhang, Margin Distribution Logistic Machine, taken from Gao & Zhou, On the
    doubt about margin explanation of boosting. It holds for convex combinations of base classifiers, not for
    the linear and kernel models of this package.

    The infimum is exact. Where both shares are constant the expression falls in theta: the term
    ``7 mu / (3 m)`` alone falls by more than ``465 ln(m) / m`` per unit of theta, the only rising term, the power
    of m, rises by less than ``0.2 ln(m) / m^1.8``. The first share jumps up just behind each margin, the second
    only jumps down. So the least value is at a positive margin or at 1.
    """
    z, w = validate_margins(z, sample_weight)
    m = float(w.sum())
    if np.abs(z).max() > 1 + ROUNDING_OF_MARGINS:
        raise ValueError(f"margins run from {z.min():g} to {z.max():g}, but the bound needs all in [-1, 1]; normalise")
    if m < 5:
        raise ValueError(f"the bound needs at least 5 rows, repetitions included; there are {m:g}")
    size = n_hypotheses if isinstance(n_hypotheses, int) else validate_margin_number(n_hypotheses, "n_hypotheses")
    if size < 1:
        raise ValueError(f"n_hypotheses={size!r} is not the size of a finite base class; give at least 1")
    delta = validate_margin_number(delta, "delta")
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta!r} is not a probability strictly between 0 and 1")
    z = np.clip(z, -1.0, 1.0)
    if theta is None:
        grid = np.append(np.unique(z[z > 0]), 1.0)
    else:
        grid = validate_margin_array(theta, "theta").reshape(-1)
        if grid.min() <= 0 or grid.max() > 1:
            raise ValueError(f"theta runs from {grid.min():g} to {grid.max():g}, but it must be in (0, 1]")
    log_2h = math.log(2 * size)
    below, above = _margin_shares_of_bound(z, w, grid)
    mu = 144.0 * math.log(m) * log_2h / grid**2 + log_2h - math.log(delta)
    power = m ** (-2.0 / (1.0 - float(w @ z / m) ** 2 + grid / 9.0))
    rest = 3.0 * np.sqrt(mu) / m**1.5 + 7.0 * mu / (3.0 * m) + np.sqrt(3.0 * mu * below * above / m)
    return float((m**-50.0 + below + power + rest).min())


def _margin_shares_of_bound(z: np.ndarray, w: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares of margins in a bound, P_S[z < theta] and P_S[z > 2 theta / 3], both strict, for every theta."""
    order = np.argsort(z, kind="stable")
    z, cumulative = z[order], np.concatenate([[0.0], np.cumsum(w[order])])
    below = cumulative[np.searchsorted(z, theta, side="left")]
    # 3 z > 2 theta rather than z > 2 theta / 3: exact for theta = 1.5 z.
    not_above = cumulative[np.searchsorted(3.0 * z, 2.0 * theta, side="right")]
    return below / cumulative[-1], (cumulative[-1] - not_above) / cumulative[-1]


def hessian_diagonal(G: Any, y: Any, lambda1: float, sample_weight: Any = None) -> np.ndarray:
    """Diagonal of the Hessian ``H`` of the LDM dual, for the bound `loo_error_bound`.

    ``H = K (I + c (m I - e e') K)^-1`` with ``K = Y G Y`` and ``c = 4 lambda1 / m^2`` (weights: ``m P - P e e' P``
    with ``P = diag(sample_weight)``). This equals ``Y G Q^-1 G Y`` of the LDM paper, eq. (12), and exists
    for a singular Gram matrix too.

    Parameters
    ----------
    G : array-like, shape (n, n)
        Symmetric positive semi-definite Gram matrix of the training rows. For the bias "regularized" add 1
        to every entry. The bias "free" is not covered: the paper has no bias.
    y : array-like, shape (n,)
        Two labels; the second in sorted order is the class +1.
    lambda1 : float
        Weight of the margin variance, not negative.
    sample_weight : array-like, shape (n,), optional
        Repetition counts, not negative. Default: 1 for every row.

    Returns
    -------
    ndarray, shape (n,)
        ``H_ii``; 0 for rows of weight 0, which are not part of the problem.

    Raises
    ------
    TypeError, ValueError
        As for `mean`; also if the shapes do not fit, ``G`` is not symmetric, ``y`` has other than two labels,
        or ``lambda1`` is negative.

    Notes
    -----
    Dense; time O(n^3) and memory for about four matrices like ``G``. Meant for a few thousand rows.
    """
    G = validate_margin_array(G, "G")
    if G.ndim != 2 or G.shape[0] != G.shape[1]:
        raise ValueError(f"G has shape {G.shape}, but a square Gram matrix is needed")
    if np.abs(G - G.T).max() > 1e-8 * np.abs(G).max():
        raise ValueError("G is not symmetric; give the Gram matrix of the training rows")
    lambda1 = validate_margin_number(lambda1, "lambda1")
    if lambda1 < 0:
        raise ValueError(f"lambda1={lambda1!r} is negative; it must be at least 0")
    weights = validate_margin_counts(sample_weight, G.shape[0])
    kept = np.flatnonzero(weights > 0)
    signs = validate_margin_signs(y, G, "G", weights)[kept]
    root = np.sqrt(weights[kept])
    # M = P^1/2 K P^1/2. With kappa = 4 lambda1 / m and B = I + kappa M the scaled H is
    # M B^-1 + kappa (M B^-1 p)(M B^-1 p)' / (p' B^-1 p), p = sqrt(weights): the paper's rank-one form with its
    # denominator 1 - c e'Re written as a positive number, so that large kappa loses no digits.
    scale = signs * root
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            scaled_gram = G[np.ix_(kept, kept)] * np.outer(scale, scale)
            kappa = 4.0 * lambda1 / float(root @ root)
            bracket = np.eye(kept.size) + kappa * scaled_gram
            solved = np.linalg.solve(bracket, np.column_stack([scaled_gram, root]))
            pushed = scaled_gram @ solved[:, -1]
            diagonal = np.diagonal(solved) + kappa * pushed**2 / np.float64(root @ solved[:, -1])
    except np.linalg.LinAlgError:
        diagonal = np.full(kept.size, np.nan)
    if not np.isfinite(diagonal).all():
        raise ValueError(f"G times lambda1={lambda1:g} is too large for float64; scale the kernel, or lower lambda1")
    result = np.zeros(G.shape[0])
    result[kept] = diagonal / root**2
    return result


def loo_error_bound(beta: Any, h_diag: Any, C: float, sample_weight: Any = None, *, tol: float = 1e-8) -> float:
    """Bound of the LDM paper's Theorem 3 on the pseudo-leave-one-out error.

    ``(h sum_{I1} beta_i + |I2|) / m`` with ``I1 = {0 < beta_i < C}``, ``I2 = {beta_i = C}``, ``h = max_i H_ii``.

    Parameters
    ----------
    beta : array-like, shape (n,)
        Optimal multipliers of the LDM dual, ``0 <= beta_i <= C w_i``; ``model.duals[0]`` of a binary
        model with bias "none" or "regularized".
    h_diag : array-like, shape (n,)
        Diagonal of the dual's Hessian; see `hessian_diagonal`.
    C : float
        Weight of the hinge loss, not negative; ``inf`` for the hard margin.
    sample_weight : array-like, shape (n,), optional
        Repetition counts of the fit, not negative. Default: 1 for every row. A row at its bound counts
        ``w_i`` times; a row inside its box counts as ``w_i`` rows that share ``beta_i`` equally.
    tol : float, default 1e-8
        A multiplier within ``tol * C w_i`` of its bound is taken to be at it.

    Returns
    -------
    float
        An upper bound on the share of rows with ``z_i^(i) <= 0``. It may exceed 1.

    Raises
    ------
    TypeError, ValueError
        As for `mean`; also if the lengths differ, if ``C`` or an entry of ``h_diag`` is negative, or if a
        multiplier leaves its box.

    Notes
    -----
    Zhang & Zhou, Large Margin Distribution Machine, Theorem 3, in the form that is true. Here ``z_i^(i)`` is the
    margin of row i at the minimiser of the *same* dual with ``beta_i`` fixed at 0: ``H`` and ``(lambda2/m) H e``
    still contain row i. The paper says leave-one-out and expected risk; for ``lambda1 > 0`` or ``lambda2 > 0``
    that is false in general (there are 6 rows with bound 0 and 6 true leave-one-out errors).
    """
    beta = validate_margin_array(beta, "beta")
    if beta.ndim != 1:
        raise ValueError(f"beta has shape {beta.shape}, but one multiplier per row, shape (n,), is needed")
    h = validate_margin_array(h_diag, "h_diag")
    if h.shape != beta.shape:
        raise ValueError(f"h_diag has shape {h.shape}, but beta has {beta.size} entries; give one number per row")
    tol = validate_margin_number(tol, "tol")
    if not 0 <= tol < 1:
        raise ValueError(f"tol={tol!r} is not in [0, 1)")
    C = math.inf if C == math.inf else validate_margin_number(C, "C")
    if C < 0:
        raise ValueError(f"C={C!r} is negative; it must be at least 0, or inf")
    w = validate_margin_counts(sample_weight, beta.size)
    kept = w > 0
    beta, h, w = beta[kept], h[kept], w[kept]
    if h.min() < 0:
        raise ValueError(f"h_diag has a negative entry, {h.min():g}; the diagonal of H is never negative")
    upper = C * w
    slack = tol * np.where(np.isinf(upper), beta.max(), upper)
    if np.any(beta < -slack) or np.any(beta > upper + slack):
        raise ValueError(f"beta runs from {beta.min():g} to {beta.max():g} and leaves its box [0, C * sample_weight]")
    at_bound = beta >= upper * (1.0 - tol)
    inside = ~at_bound & (beta > 0)
    return float((h.max() * beta[inside].sum() + w[at_bound].sum()) / w.sum())


def stability(
    C: float,
    n_landmarks: int,
    largest: float,
    m: float,
    *,
    change: str = "replaced",
    bias: str = "regularized",
    printed: bool = False,
) -> float:
    """Stability in a bound: largest change of f(x) when one of m rows is removed or replaced.

    ``C kappa^2 / m`` for a row removed, ``2 C kappa^2 / m`` for one replaced, with ``kappa^2 = L largest^2`` (+ 1 for a
    regularized bias), a bound of |Phi(x)|^2.

    Parameters
    ----------
    C : float
        Weight of the mean hinge loss, at least 0.
    n_landmarks : int
        L, at least 1.
    largest : float
        Bound of |mu(x, l)| over all rows and landmarks, at least 0: R^2 for dot projections where |x| <= R (landmarks
        are rows), 1 for RBF.
    m : float
        Number of rows, repetitions included, at least 1.
    change : {"replaced", "removed"}, default "replaced"
    bias : {"regularized", "none"}, default "regularized"
        A free bias is not covered.
    printed : bool, default False
        The paper's values instead: ``C L M^2 / m`` for a row replaced and half of it for one removed,
        ``M = max(largest, 1)``. They are no bounds; see Notes.

    Returns
    -------
    float

    Raises
    ------
    TypeError, ValueError
        If an argument is no number or out of range.

    Notes
    -----
    For F = 1/2 |theta|^2 + C times the mean loss, strong convexity gives |theta - theta'|^2 <= (C/m) |f - f'|; the
    paper has half of that. Counterexample to the printed value: one row, one landmark, mu = 1, no bias, C = 1/2.
    Removing the row changes f from 1/2 to 0, and the printed bound is 1/4. The paper leaves out the constant feature
    of the bias, and calls the input radius c as well, which is the weight C of the loss.
    """
    C, L, largest, m = _checked_stability_sizes(C, n_landmarks, largest, m)
    for name, value, choices in (("change", change, STABILITY_CHANGES), ("bias", bias, ("regularized", "none"))):
        if value not in choices:
            hint = did_you_mean(value, choices)
            raise ValueError(f"{name} needs to be one of {', '.join(choices)}; got {value!r}{hint}")
    times = 1.0 if change == "removed" else 2.0
    if printed:
        return times * 0.5 * C * L * max(largest, 1.0) ** 2 / m
    return times * C * (L * largest**2 + float(bias == "regularized")) / m


def stability_bound(
    risk: float, C: float, n_landmarks: int, largest: float, m: float, delta: float, *, printed: bool = False
) -> float:
    """Bound of the expected hinge loss of an L3-SVM with a regularized bias, with probability at least 1 - delta.

    ``risk + 2 C kappa^2 / m + (4 C kappa^2 + 1 + sqrt(2 C) kappa) sqrt(ln(1/delta) / (2 m))`` with
    ``kappa^2 = L largest^2 + 1``.

    Parameters
    ----------
    risk : float
        Mean hinge loss on the training rows, at least 0.
    C, n_landmarks, largest, m : float
        As for `stability`.
    delta : float
        Probability that the bound fails, ``0 < delta < 1``.
    printed : bool, default False
        The paper's corollary instead, ``risk + C L M^2 / m + (2 C L M^2 / m + 1 + 2 C sqrt(L) M) sqrt(ln(1/delta) /
        (2 m))`` with ``M = max(largest, 1)``.

    Returns
    -------
    float

    Raises
    ------
    TypeError, ValueError
        As for `stability`; also if ``risk`` is negative or ``delta`` is outside ``(0, 1)``.

    Notes
    -----
    Beside what `stability` corrects: four times the stability times m is ``4 C kappa^2`` without a further m, and the
    optimum has |theta| <= sqrt(2 C), not 2 C, so that its loss is at most ``1 + sqrt(2 C) kappa``.
    """
    C, L, largest, m = _checked_stability_sizes(C, n_landmarks, largest, m)
    risk, delta = validate_margin_number(risk, "risk"), validate_margin_number(delta, "delta")
    if risk < 0:
        raise ValueError(f"risk={risk!r} is negative, but a mean hinge loss is at least 0")
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta!r} is not a probability strictly between 0 and 1")
    deviation = math.sqrt(-math.log(delta) / (2.0 * m))
    moved = stability(C, n_landmarks, largest, m, printed=printed)
    if printed:
        loss = 1.0 + 2.0 * C * math.sqrt(L) * max(largest, 1.0)
        return risk + moved + (2.0 * moved + loss) * deviation
    loss = 1.0 + math.sqrt(2.0 * C * (L * largest**2 + 1.0))
    return risk + moved + (2.0 * m * moved + loss) * deviation


def _checked_stability_sizes(C: Any, n_landmarks: Any, largest: Any, m: Any) -> tuple[float, float, float, float]:
    """Sizes C, n_landmarks, largest and m in the stability bound, checked against their least values."""
    found, least = [], {"C": 0.0, "n_landmarks": 1.0, "largest": 0.0, "m": 1.0}
    for (name, low), value in zip(least.items(), (C, n_landmarks, largest, m)):
        found.append(validate_margin_number(value, name))
        if found[-1] < low:
            raise ValueError(f"{name}={value!r} is too small; it must be at least {low:g}")
    return found[0], found[1], found[2], found[3]
