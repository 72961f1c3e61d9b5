"""The Lagrangian support vector machine (Mangasarian and Musicant, JMLR 2001): squared hinge, regularized bias."""

from __future__ import annotations

from typing import Any, ClassVar

from mdlearn.forms.losses import HingeTerm
from mdlearn.objectives.base import Objective, Parameter, Terms


class LSVM(Objective):
    """LSVM: the squared hinge loss; with its regularized bias the optimum is unique.

    ``1/2 |w|^2 + nu/2 sum max(0, 1 - z)^2``

    The paper's gamma is ``-intercept_``, its dual variables u = nu max(0, 1 - z) are the multipliers in ``duals``.

    Parameters
    ----------
    nu : float, default 1
        Weight of the summed squared hinge loss, > 0.
    """

    name: ClassVar[str] = "lsvm"
    summary: ClassVar[str] = "Lagrangian support vector machine (squared hinge loss)"
    formula: ClassVar[str] = "1/2 |w|^2 + nu/2 sum max(0, 1 - z)^2"
    parameters: ClassVar[dict[str, Parameter]] = {
        "nu": Parameter(1.0, "weight of half the summed squared hinge loss, > 0", strict=True)
    }

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        """Squared hinge alone."""
        return Terms(loss=(HingeTerm(0.5 * params["nu"], power=2),))
