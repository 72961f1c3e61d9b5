"""Regularised logistic regression, and the logistic loss that tends to the hinge (baselines of the MDLM paper)."""

from __future__ import annotations

from typing import Any, ClassVar

from mdlearn.forms.losses import LogisticTerm
from mdlearn.objectives.base import Objective, Parameter, Terms

LAM = Parameter(1e-3, "weight of |w|^2 (no 1/2); 0 leaves it out")


def averaged_logistic_loss(lam: float, total: float, alpha: float, threshold: float) -> Terms:
    """Logistic loss ``(1/m) sum c_i loss(z_i) + lam |w|^2``: the unit is 2 lam, or 1 without a squared norm."""
    unit = 2.0 * lam if lam > 0 else 1.0
    loss = LogisticTerm(1.0 / (total * unit), alpha, threshold)
    return Terms(loss=(loss,), ridge=float(lam > 0), unit=unit)


class L2LR(Objective):
    """L2LR: logistic regression with a squared norm.

    ``mean ln(1 + exp(-z)) + lam |w|^2``

    The mean is over the sum of the sample weights. With ``lam=0`` this is plain logistic regression, eq. (2.2) of the
    MDLM paper, which has no optimum on rows that can be separated: they are refused.

    Parameters
    ----------
    lam : float, default 1e-3
        Weight of the squared norm, >= 0, without the usual factor 1/2.
    """

    name: ClassVar[str] = "l2lr"
    summary: ClassVar[str] = "logistic regression with a squared norm"
    formula: ClassVar[str] = "mean ln(1 + exp(-z)) + lam |w|^2"
    parameters: ClassVar[dict[str, Parameter]] = {"lam": LAM}
    default_bias: ClassVar[str] = "free"
    multiclass: ClassVar[tuple[str, ...]] = ("ovr", "ovo")
    kernels: ClassVar[bool] = False
    probabilities: ClassVar[bool] = True

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        """Logistic loss at threshold 0."""
        return averaged_logistic_loss(params["lam"], total, 1.0, 0.0)


class MLR(Objective):
    """MLR, modified logistic regression (Zhang, Jin, Yang and Hauptmann, ICML 2003).

    ``mean 1/alpha ln(1 + exp(-alpha (z - 1))) + lam |w|^2``

    As alpha grows the loss tends to the hinge (it is larger by ln 2 / alpha at most), and the classifier to the SVM
    with C = 1 / (2 lam m).

    Parameters
    ----------
    alpha : float, default 5
        Sharpness of the loss, > 0.
    lam : float, default 1e-3
        Weight of the squared norm, >= 0, without the usual factor 1/2.
    """

    name: ClassVar[str] = "mlr"
    summary: ClassVar[str] = "modified logistic regression: a smooth hinge loss"
    formula: ClassVar[str] = "mean 1/alpha ln(1 + exp(-alpha (z - 1))) + lam |w|^2"
    parameters: ClassVar[dict[str, Parameter]] = {
        "alpha": Parameter(5.0, "sharpness of the loss, > 0", strict=True),
        "lam": LAM,
    }
    default_bias: ClassVar[str] = "free"
    multiclass: ClassVar[tuple[str, ...]] = ("ovr", "ovo")
    kernels: ClassVar[bool] = False
    probabilities: ClassVar[bool] = True

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        """Logistic loss at threshold 1."""
        return averaged_logistic_loss(params["lam"], total, params["alpha"], 1.0)
