"""RLP, robust linear programming (Bennett and Mangasarian 1992): the mean hinge loss without a squared norm."""

from __future__ import annotations

from typing import Any, ClassVar

from mdlearn.forms.losses import HingeTerm
from mdlearn.objectives.base import Objective, Parameter, Terms


class RLP(Objective):
    """Robust linear programming, the first formulation of the LSVM slides: a linear program over w and b.

    ``1/m sum max(0, 1 - z)``

    Nothing holds the length of w but the loss. Where several coefficients have the least loss, one of them is
    returned. Linear only. Without a squared norm a regularized bias is a free one.

    References
    ----------
    K. P. Bennett and O. L. Mangasarian, "Robust linear programming discrimination of two linearly inseparable sets",
    Optimization Methods and Software 1, 1992 (there, each class has its own average).
    """

    name: ClassVar[str] = "rlp"
    summary: ClassVar[str] = "robust linear programming (mean hinge loss alone)"
    formula: ClassVar[str] = "1/m sum max(0, 1 - z)"
    parameters: ClassVar[dict[str, Parameter]] = {}
    default_bias: ClassVar[str] = "free"
    kernels: ClassVar[bool] = False

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        """Hinge of weight 1/m, no ridge."""
        return Terms(loss=(HingeTerm(1.0 / total),), ridge=0.0)
