"""SVM, the support vector machine: the baseline of every paper; and SVR, the same for numbers."""

from __future__ import annotations

from typing import Any, ClassVar

from mdlearn.forms.losses import HingeTerm
from mdlearn.objectives.base import Objective, Parameter, Terms


class SVM(Objective):
    """Soft-margin SVM with the hinge loss; C = inf is the hard margin.

    ``1/2 |w|^2 + C sum max(0, 1 - z)``

    Parameters
    ----------
    C : float, default 1
        Weight of the summed hinge loss, >= 0; infinity makes every margin at least 1.

    References
    ----------
    C. Cortes and V. Vapnik, "Support-vector networks", Machine Learning 20, 1995; eq. (2) of the LDM paper.
    """

    name: ClassVar[str] = "svm"
    summary: ClassVar[str] = "support vector machine (hinge loss)"
    formula: ClassVar[str] = "1/2 |w|^2 + C sum max(0, 1 - z)"
    parameters: ClassVar[dict[str, Parameter]] = {
        "C": Parameter(1.0, "weight of the summed hinge loss; infinity is the hard margin", finite=False)
    }

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        """Hinge loss alone."""
        return Terms(loss=(HingeTerm(params["C"]),))


class SVR(Objective):
    """Support vector regression with the epsilon-insensitive loss.

    ``1/2 |w|^2 + C sum max(0, |f - y| - epsilon)``

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0 and finite.
    epsilon : float, default 0.1
        Half the width of the tube without loss, in units of y, >= 0.

    References
    ----------
    H. Drucker, C. J. C. Burges, L. Kaufman, A. Smola and V. Vapnik, "Support vector regression machines", NIPS 9, 1996.
    """

    name: ClassVar[str] = "svr"
    summary: ClassVar[str] = "support vector regression (epsilon-insensitive loss)"
    formula: ClassVar[str] = "1/2 |w|^2 + C sum max(0, |f - y| - epsilon)"
    parameters: ClassVar[dict[str, Parameter]] = {
        "C": Parameter(1.0, "weight of the summed epsilon-insensitive loss"),
        "epsilon": Parameter(0.1, "half the width of the tube without loss, in units of y"),
    }
    multiclass: ClassVar[tuple[str, ...]] = ("none",)
    task: ClassVar[Any] = "regression"

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        """Hinges at both sides of the tube; z is the residual f - y."""
        return Terms(loss=tuple(HingeTerm(params["C"], side, -side * params["epsilon"]) for side in (1, -1)))
