"""An objective that only engines for any number of terms take: what the rules behind auto say of it is theirs."""

from __future__ import annotations

from typing import ClassVar

import mdlearn
from mdlearn.forms.losses import HingeTerm
from mdlearn.objectives.base import Parameter, Terms


class TwoHinges(mdlearn.Objective):
    """Margins below 1 and above 3 cost."""

    name = "two hinges"
    summary = "hinges on both sides"
    formula = "1/2 |w|^2 + v Var(z) + C sum max(0, 1 - z) + C sum max(0, z - 3)"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of both"), "v": Parameter(0.0, "weight of the variance")}

    def terms(self, params, total):
        low, high = HingeTerm(params["C"], 1, 1.0), HingeTerm(params["C"], -1, 3.0)
        return Terms(params["v"], 0.0, (low, high))
