"""LDM, the Large margin Distribution Machine (Zhang and Zhou, KDD 2014)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column
from mdlearn.objectives.base import Objective, Parameter, Terms
from mdlearn.objectives.declaration.grids import VARIANCE_RATIOS
from mdlearn.objectives.declaration.relative import declared_number


def _default_ldm_lambda1(params: dict[str, Any], total: float) -> float:
    """Default of LDM's `lambda1`."""
    # The variance term acts only where lambda1 is comparable with C m; C m / 256 never did harm on real sets.
    C = float(params["C"])
    return 0.0 if C == 0 or math.isinf(C) else C * total / 256.0


MEAN_SHARES = (0.0, 0.25, 1.0)
"""lambda2 / lambda1 in the default grid."""


class LDM(Objective):
    """LDM, eq. (5) = (6) = (14) of the paper: the hinge loss with margin variance and mean.

    ``1/2 |w|^2 + 2 lambda1 Var(z) - lambda2 mean(z) + C sum max(0, 1 - z)``

    Parameters
    ----------
    C : float, default 1
        Weight of the summed hinge loss, >= 0; infinity makes every margin at least 1.
    lambda1 : float, default C m / 256 (0 where C is 0 or infinite)
        Weight of the margin variance, in the paper's units (it multiplies 2 Var).
    lambda2 : float, default lambda1 / 4
        Weight of the margin mean.
    """

    name: ClassVar[str] = "ldm"
    summary: ClassVar[str] = "large margin distribution machine"
    formula: ClassVar[str] = "1/2 |w|^2 + 2 lambda1 Var(z) - lambda2 mean(z) + C sum max(0, 1 - z)"
    parameters: ClassVar[dict[str, Parameter]] = {
        "C": Parameter(1.0, "weight of the summed hinge loss; infinity is the hard margin", finite=False),
        "lambda1": Parameter(_default_ldm_lambda1, "weight of twice the margin variance (default C m / 256)"),
        "lambda2": Parameter(lambda p, m: p["lambda1"] / 4.0, "weight of the margin mean (default lambda1 / 4)"),
    }

    def grid(self, total: float) -> Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]:
        """C in 1, 10, 100; lambda1 / (C m) in 0, 2^-10, 2^-8, ..., 1; lambda2 / lambda1 in 0, 1/4, 1: 57 points.

        The variance acts only where lambda1 is comparable with C m, so the weights have to grow with m.
        """
        points: list[dict[str, float]] = []
        for C in (self.given["C"],) if "C" in self.given else (1.0, 10.0, 100.0):
            scale = 0.0 if math.isinf(C) else C * total
            variances = [ratio * scale for ratio in VARIANCE_RATIOS]
            if "lambda1" in self.given:
                variances = [declared_number(self.given["lambda1"], C, total)]
            for lambda1 in variances:
                means = [share * lambda1 for share in MEAN_SHARES]
                for lambda2 in [self.given["lambda2"]] if "lambda2" in self.given else means:
                    point = {"C": C, "lambda1": lambda1, "lambda2": lambda2}
                    point = {name: value for name, value in point.items() if name not in self.given}
                    if point not in points:
                        points.append(point)
        return points if len(points) > 1 else super().grid(total)

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        """v = 2 lambda1, a = lambda2."""
        return Terms(2.0 * params["lambda1"], params["lambda2"], (HingeTerm(params["C"]),))

    def check_column(self, params: dict[str, Any], column: Column, bias: str) -> None:
        """Without variance, a free bias needs lambda2 |n+ - n-| / m <= C min(n+, n-): else b runs to infinity."""
        if bias == "free" and column.unbounded_in_bias:
            positive = float(column.counts[column.y > 0].sum())
            negative = column.total - positive
            raise ValueError(
                f"with bias='free' and lambda1=0 the objective is unbounded below: lambda2={params['lambda2']:g} "
                f"exceeds what C={params['C']:g} allows for {positive:g} positive and {negative:g} negative rows "
                "(lambda2 |n+ - n-| / m <= C min(n+, n-)); lower lambda2, raise C or lambda1, or use bias='regularized'"
            )
