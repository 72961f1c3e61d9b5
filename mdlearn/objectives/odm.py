"""ODM, the Optimal margin Distribution Machine (Zhang and Zhou, IEEE TKDE 32(6), 2020)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from mdlearn.forms.losses import HingeTerm
from mdlearn.objectives.base import Objective, Parameter, Terms


class ODM(Objective):
    """ODM: margins are drawn to 1; what falls outside the band 1 - theta <= z <= 1 + theta is squared.

    ``1/2 |w|^2 + lam/(m (1 - theta)^2) sum [max(0, 1 - theta - z)^2 + mu max(0, z - 1 - theta)^2]``

    Parameters
    ----------
    lam : float, default m
        Weight of the mean loss, >= 0; m is the sum of the sample weights.
    mu : float, default 0.5
        Weight of margins beyond the band, relative to those short of it, >= 0.
    theta : float, default 0.2
        Half the width of the band, in [0, 1).

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Optimal margin distribution machine", IEEE TKDE 32(6), 2020 (arXiv:1604.03348).
    """

    name: ClassVar[str] = "odm"
    summary: ClassVar[str] = "optimal margin distribution machine"
    formula: ClassVar[str] = "1/2 |w|^2 + lam/(m (1-theta)^2) sum [max(0, 1-theta-z)^2 + mu max(0, z-1-theta)^2]"
    parameters: ClassVar[dict[str, Parameter]] = {
        "lam": Parameter(lambda p, m: m, "weight of the mean loss (default m, the sum of the weights)"),
        "mu": Parameter(0.5, "weight of margins beyond the band, relative to those short of it"),
        "theta": Parameter(0.2, "half the width of the band around 1, below 1", high=math.nextafter(1.0, 0.0)),
    }

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        """Squared hinges at both ends of the band; engines sum over rows, so the weight of the mean is over m."""
        theta = params["theta"]
        weight = params["lam"] / (total * (1.0 - theta) ** 2)
        short = HingeTerm(weight, threshold=1.0 - theta, power=2)
        beyond = HingeTerm(weight * params["mu"], side=-1, threshold=1.0 + theta, power=2)
        return Terms(loss=(short, beyond))
