"""The multi-class optimal margin distribution machine."""

from math import nextafter
from typing import ClassVar

import mdlearn
from mdlearn.extend import HingeTerm, Parameter, Terms

from .joint import JointMargins


class McODM(mdlearn.Objective):
    """mcODM: every class is to win against the strongest other one, by a margin that is drawn into a band around 1.

    ``1/2 sum_l |w_l|^2 + lam/(m (1-theta)^2) sum_i [max(0, 1-theta-gamma_i)^2 + mu max(0, gamma_i-1-theta)^2]``

    with gamma_i = f_(y_i)(x_i) - max_(l != y_i) f_l(x_i). A regularized bias adds 1/2 b_l^2 for every class; free ones
    are fixed but for a common shift, and add up to 0.

    For three or more classes and mu > 0 this is not convex: margins beyond the band are costly, and they grow as the
    strongest other class falls. No lower bound is known. The certificate is of kind "residual" and claims a stationary
    point only: its gap is what could still be saved in the convex problem that takes each margin beyond the band
    against the runner-up at the solution (the first of equals), which touches the objective there and lies above it
    elsewhere. The gap is 0 exactly where the solution minimises that problem; if no row beyond the band has two
    runners-up, exactly where no direction has a negative derivative. Other stationary points can have a smaller
    objective. Which one is found is settled by the way: from the solution of the convex problem mu = 0, downwards.

    With mu = 0 the objective is convex, and the certificate is a duality gap. So it is for two classes, where
    w_0 = -w_1: f is f_1, gamma = 2 z, and the problem is `odm` with 2 lam, at half its objective and half its f.

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
    T. Zhang and Z.-H. Zhou, "Multi-class optimal margin distribution machine", ICML 2017.
    """

    name = "mcodm"
    summary = "multi-class optimal margin distribution machine"
    formula = "1/2 sum_l |w_l|^2 + lam/(m (1-theta)^2) sum [max(0, 1-theta-gamma)^2 + mu max(0, gamma-1-theta)^2]"
    parameters: ClassVar = {
        "lam": Parameter(lambda params, m: m, "weight of the mean loss (default m, the sum of the weights)"),
        "mu": Parameter(0.5, "weight of margins beyond the band, relative to those short of it"),
        "theta": Parameter(0.2, "half the width of the band around 1, below 1", high=nextafter(1.0, 0.0)),
    }
    multiclass: ClassVar = ("joint",)

    def terms(self, params, total):
        """Two classes: w_0 = -w_1, so that gamma = 2 z and |w_0|^2 + |w_1|^2 = 2 |w_1|^2."""
        theta = params["theta"]
        weight = 2.0 * params["lam"] / (total * (1.0 - theta) ** 2)
        short = HingeTerm(weight, threshold=0.5 * (1.0 - theta), power=2)
        beyond = HingeTerm(weight * params["mu"], side=-1, threshold=0.5 * (1.0 + theta), power=2)
        return Terms(loss=(short, beyond), unit=2.0)

    def form(self, data, features, bias, params):
        """One margin problem for two classes, else a form of its own."""
        if data.classes.shape[0] == 2:
            return super().form(data, features, bias, params)
        return JointMargins(data, features, bias, params)
