"""What uniform stability promises for the L3-SVM: Zantedeschi, Emonet & Sebban (2017), section 3, corrected."""

from __future__ import annotations

import math
from typing import Any

from mdlearn.margins.validation import number

CHANGES = ("replaced", "removed")


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
    """Largest change of f(x) when one of m rows is removed or replaced.

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
    C, L, largest, m = _sizes(C, n_landmarks, largest, m)
    for name, value, choices in (("change", change, CHANGES), ("bias", bias, ("regularized", "none"))):
        if value not in choices:
            raise ValueError(f"{name} needs to be one of {', '.join(choices)}; got {value!r}")
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
    C, L, largest, m = _sizes(C, n_landmarks, largest, m)
    risk, delta = number(risk, "risk"), number(delta, "delta")
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


def _sizes(C: Any, n_landmarks: Any, largest: Any, m: Any) -> tuple[float, float, float, float]:
    found = []
    for name, value, low in (
        ("C", C, 0.0),
        ("n_landmarks", n_landmarks, 1.0),
        ("largest", largest, 0.0),
        ("m", m, 1.0),
    ):
        found.append(number(value, name))
        if found[-1] < low:
            raise ValueError(f"{name}={value!r} is too small; it must be at least {low:g}")
    return found[0], found[1], found[2], found[3]
