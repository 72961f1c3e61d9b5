"""What tables 2 and 3 of the LDM paper try out: methods, and the grids their parameters are chosen from."""

from __future__ import annotations

from typing import Any

from mdlearn import list_objectives
from mdlearn_papers.splitting import mean_distance

REPEATS = 30
FOLDS = 5
C = (10.0, 50.0, 100.0)
WEIGHTS = tuple(2.0**k for k in range(-8, -1))
"""Of lambda1 and lambda2 in the paper."""
WIDTHS = tuple(2.0**k for k in range(-2, 3))
"""Of the RBF kernel, in average distances of two training rows."""
RATIOS = (0.0, *(2.0**k for k in range(-10, 1, 2)))
"""lambda1 in units of C m, in the grid that suits the objective."""
SHARES = (0.0, 0.25, 1.0)
"""lambda2 / lambda1 in the same grid."""
MIXTURES = (0.01, 0.1, 0.5, 0.9)
"""KM-OMD's lam. The paper chooses a C, which KM-OMD does not have."""
RATES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""MDO's a and b; the paper names none."""

SVM, MDO, MAMC, KMOMD, LDM = "SVM", "MDO", "MAMC", "KM-OMD", "LDM"
SCALED = "LDM (scale-aware grid)"
RATED = "MDO (all rates)"
ENDS = "LDM at the ends of its grid"
READINGS = "SVM, other readings"

OBJECTIVES = {SVM: "svm", MDO: "mdo", MAMC: "mamc", KMOMD: "kmomd", LDM: "ldm", SCALED: "ldm"}

Points = list[dict[str, float]]


def methods(kernel: str) -> list[str]:
    """Methods that can be run here: MDO is linear, and the baselines are a plugin."""
    known = list_objectives()
    return [one for one, name in OBJECTIVES.items() if name in known and not (one == MDO and kernel != "linear")]


def gammas(X: Any, quick: bool) -> list[float]:
    """gamma = 1 / (2 width^2) for every width (the paper gives widths, and no formula of the kernel)."""
    unit = mean_distance(X)
    return [0.5 / (share * unit) ** 2 for share in (WIDTHS[1::2] if quick else WIDTHS)]


def grid(method: str, m: int, kernel: str, quick: bool) -> Points:
    """Points of a method without those of the kernel.

    Parameters
    ----------
    method : str
    m : int
        Training rows.
    kernel : str
    quick : bool
    """
    if method == SVM:
        return [{"C": c} for c in C]
    if method == KMOMD:
        return [{"lam": one} for one in MIXTURES]
    if method == LDM:
        few = WEIGHTS[:: 6 if quick else 1]
        return [{"C": c, "lambda1": one, "lambda2": two} for c in C for one in few for two in few]
    if method == RATED:
        return [{"a": rate} for rate in RATES]
    if method == SCALED:
        ratios = RATIOS if kernel == "linear" and not quick else RATIOS[::2]
        return [
            {"C": c, "lambda1": ratio * c * m, "lambda2": share * ratio * c * m}
            for c in C
            for ratio in ratios
            for share in (SHARES if ratio else SHARES[:1])
        ]
    return [{}]


def with_kernel(points: Points, widths: list[float]) -> Points:
    """Every point with every gamma."""
    return [{**point, "gamma": gamma} for gamma in widths for point in points]
