"""SVM, the support vector machine: the baseline of every paper."""

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
