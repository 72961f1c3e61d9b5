"""Pinball loss of margins: rows beyond the margin 1 pay as well, less than those short of it."""

from typing import ClassVar

import mdlearn
from mdlearn.extend import HingeTerm, Parameter, Terms

from .distribution import DISTRIBUTION, check_free_bias


def pinball(params):
    """Return the two hinge terms at the margin 1."""
    return HingeTerm(params["C"]), HingeTerm(params["tau"] * params["C"], side=-1)


class PinballSVM(mdlearn.Objective):
    """SVM with the pinball loss, which looks at a quantile of the margins in the place of the shortest ones.

    ``1/2 |w|^2 + C sum L(1 - z)``, L(u) = u for u >= 0 and -tau u for u < 0

    Rows beyond the margin 1 hold it as well as those short of it, so noise around the boundary moves it less than under
    the hinge loss, which is ``tau=0``.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0.
    tau : float, default 0.5
        Slope beyond the margin 1, relative to the slope short of it, from 0 to 1.

    Notes
    -----
    Certain: the loss and the problem. Readings: the default of tau; the bias, which is regularized unless bias="free"
    is given, as in the paper; one class against the rest for more than two.

    References
    ----------
    X. Huang, L. Shi and J. A. K. Suykens, "Support vector machine classifier with pinball loss", IEEE TPAMI 36, 2014.
    """

    name = "pinball_svm"
    summary = "SVM with the pinball loss: a quantile of the margins"
    formula = "1/2 |w|^2 + C sum [max(0, 1-z) + tau max(0, z-1)]"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight of the summed loss"),
        "tau": Parameter(0.5, "slope beyond the margin 1, relative to that short of it", high=1.0),
    }

    def terms(self, params, total):
        """Return hinges of both sides."""
        return Terms(loss=pinball(params))


class PinballLDM(mdlearn.Objective):
    """LDM with the pinball loss: mean and variance of the margins, and a quantile of them.

    ``1/2 |w|^2 + 2 lambda1 Var(z) - lambda2 mean(z) + C sum L(1 - z)``, L(u) = u for u >= 0 and -tau u for u < 0

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0.
    tau : float, default 0.5
        Slope beyond the margin 1, relative to the slope short of it, from 0 to 1. With ``tau=0`` this is `ldm`.
    lambda1 : float, default C m / 256
        Weight of twice the margin variance; m is the sum of the sample weights.
    lambda2 : float, default lambda1 / 4
        Weight of the margin mean.

    Notes
    -----
    A combination: the loss is that of `pinball_svm`, the rest the LDM's. No paper is claimed for the two together.

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Large margin distribution machine", KDD 2014.
    X. Huang, L. Shi and J. A. K. Suykens, "Support vector machine classifier with pinball loss", IEEE TPAMI 36, 2014.
    """

    name = "pinball_ldm"
    summary = "large margin distribution machine with the pinball loss"
    formula = "1/2 |w|^2 + 2 lambda1 Var(z) - lambda2 mean(z) + C sum [max(0, 1-z) + tau max(0, z-1)]"
    parameters: ClassVar = {**PinballSVM.parameters, **DISTRIBUTION}

    def terms(self, params, total):
        """Return hinges of both sides with variance and mean."""
        return Terms(2.0 * params["lambda1"], params["lambda2"], pinball(params))

    def check_column(self, params, column, bias):
        """Refuse a free bias that runs to infinity."""
        check_free_bias(params, column, bias)
