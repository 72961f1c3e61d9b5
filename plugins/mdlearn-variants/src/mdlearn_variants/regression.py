"""Regression with the variance of the residuals beside three losses: with a tube, of a quantile, and of Huber."""

from typing import ClassVar

import numpy as np

import mdlearn
from mdlearn.extend import GivenLoss, HingeTerm, Parameter, Terms

VARIANCE = {"lambda1": Parameter(1.0, "weight of twice the variance of the residuals")}
"""Declared weight of the residuals' variance, in the units of `ldm`."""


class TubeVariance(mdlearn.Objective):
    """Support vector regression with the variance of the residuals r = f - y.

    ``1/2 |w|^2 + 2 lambda1 Var(r) + C sum max(0, |r| - epsilon)``

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0.
    epsilon : float, default 0.1
        Half the width of the tube without loss, in units of y, >= 0.
    lambda1 : float, default 1
        Weight of twice the variance, >= 0. With ``lambda1=0`` this is support vector regression.

    Notes
    -----
    Certain: the loss. That the variance of the residuals takes the place of the margins' is a reading of the LDM for
    numbers; no paper is claimed for it.

    References
    ----------
    A. J. Smola and B. Schoelkopf, "A tutorial on support vector regression", Statistics and Computing 14, 2004.
    """

    name = "tube_variance"
    summary = "support vector regression with the variance of the residuals"
    formula = "1/2 |w|^2 + 2 lambda1 Var(r) + C sum max(0, |r| - epsilon), r = f-y"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight of the summed loss"),
        "epsilon": Parameter(0.1, "half the width of the tube, in units of y"),
        **VARIANCE,
    }
    task = "regression"

    def terms(self, params, total):
        """Return the two sides of the tube."""
        loss = tuple(HingeTerm(params["C"], side, -side * params["epsilon"]) for side in (1, -1))
        return Terms(variance=2.0 * params["lambda1"], loss=loss)


class QuantileVariance(mdlearn.Objective):
    """Quantile regression with the variance of the residuals r = f - y.

    ``1/2 |w|^2 + 2 lambda1 Var(r) + C sum [tau max(0, -r) + (1 - tau) max(0, r)]``

    With a free bias, at most a share tau of the rows lies below f and at most 1 - tau above, whatever the variance's
    weight: a bias moves all residuals alike.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0.
    tau : float, default 0.5
        The quantile, from 0 to 1; 0.5 is the median.
    lambda1 : float, default 0
        Weight of twice the variance, >= 0.

    Notes
    -----
    Certain: the problem without variance. The variance is an addition; no paper is claimed for it.

    References
    ----------
    I. Takeuchi, Q. V. Le, T. D. Sears and A. J. Smola, "Nonparametric quantile estimation", JMLR 7, 2006.
    """

    name = "quantile_variance"
    summary = "quantile regression with the variance of the residuals"
    formula = "1/2 |w|^2 + 2 lambda1 Var(r) + C sum [tau max(0,-r) + (1-tau) max(0,r)], r = f-y"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight of the summed loss"),
        "tau": Parameter(0.5, "the quantile, from 0 to 1", high=1.0),
        "lambda1": Parameter(0.0, "weight of twice the variance of the residuals"),
    }
    task = "regression"

    def terms(self, params, total):
        """Return the two sides of the quantile."""
        tau, C = params["tau"], params["C"]
        loss = HingeTerm(tau * C, 1, 0.0), HingeTerm((1.0 - tau) * C, -1, 0.0)
        return Terms(variance=2.0 * params["lambda1"], loss=loss)


def huber(delta):
    """Return Huber's loss, quadratic up to delta and linear beyond."""
    return GivenLoss(
        value=lambda r: np.where(np.abs(r) <= delta, 0.5 * r * r, delta * (np.abs(r) - 0.5 * delta)),
        derivative=lambda r: np.clip(r, -delta, delta),
        second=lambda r: (np.abs(r) <= delta).astype(float),
        conjugate=lambda s: 0.5 * s * s,
    )


class HuberVariance(mdlearn.Objective):
    """Huber's regression with the variance of the residuals r = f - y.

    ``1/2 |w|^2 + 2 lambda1 Var(r) + C sum h(r)``, h(r) = r^2 / 2 for |r| <= delta, else delta (|r| - delta / 2)

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0.
    delta : float, default 1
        Residual from which the loss is linear, in units of y, > 0.
    lambda1 : float, default 0
        Weight of twice the variance, >= 0. It gives outliers back some of the weight that the loss takes from them.

    Notes
    -----
    Certain: the loss. The variance is an addition; no paper is claimed for it.

    References
    ----------
    P. J. Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35, 1964.
    """

    name = "huber_variance"
    summary = "Huber's regression with the variance of the residuals"
    formula = "1/2 |w|^2 + 2 lambda1 Var(r) + C sum (r^2/2 or delta (|r| - delta/2)), r = f-y"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight of the summed loss"),
        "delta": Parameter(1.0, "residual from which the loss is linear, in units of y", strict=True),
        "lambda1": Parameter(0.0, "weight of twice the variance of the residuals"),
    }
    task = "regression"

    def terms(self, params, total):
        """Return the given loss."""
        return Terms(variance=2.0 * params["lambda1"], loss=huber(params["delta"]).terms(params["C"]))
