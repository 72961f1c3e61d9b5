"""The Optimal margin Distribution Machine of two classes."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import mdlearn
from mdlearn.extend import HingeTerm, Parameter, Terms


@dataclass(frozen=True)
class BelowOne(Parameter):
    """A number in [0, 1): the bound itself is refused, in words that say so."""

    high: float = math.nextafter(1.0, 0.0)

    def check(self, name, value):
        """Return the value as a float."""
        if isinstance(value, Real) and not isinstance(value, bool) and not 0.0 <= value < 1.0:
            raise ValueError(f"{name} needs to be a number >= 0 and < 1; got {value!r}")
        return super().check(name, value)


def band(params, total, weight=1.0, middle=1.0):
    """Two squared hinge terms around margins of `middle`; mdlearn sums over rows, so the weight of a mean is over m."""
    theta = params["theta"]
    weight = weight * params["lam"] / (total * (1.0 - theta) ** 2)
    short = HingeTerm(weight, threshold=middle * (1.0 - theta), power=2)
    return short, HingeTerm(weight * params["mu"], side=-1, threshold=middle * (1.0 + theta), power=2)


class ODM(mdlearn.Objective):
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

    name = "odm"
    summary = "optimal margin distribution machine"
    formula = "1/2 |w|^2 + lam/(m (1-theta)^2) sum [max(0, 1-theta-z)^2 + mu max(0, z-1-theta)^2]"
    parameters: ClassVar = {
        "lam": Parameter(lambda params, m: m, "weight of the mean loss (default m, the sum of the weights)"),
        "mu": Parameter(0.5, "weight of margins beyond the band, relative to those short of it"),
        "theta": BelowOne(0.2, "half the width of the band around 1, below 1"),
    }

    def terms(self, params, total):
        """The band of margins z themselves."""
        return Terms(loss=band(params, total))
