"""Least squares SVM and least squares LDM (Abe, Pattern Recognition Letters 98, 2017): squared loss, closed form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column
from mdlearn.objectives.base import Objective, Parameter, Terms
from mdlearn.objectives.declaration.grids import VARIANCE_RATIOS


def least_squares_loss(weight: float) -> tuple[HingeTerm, ...]:
    """Declare the squared loss ``weight (1 - z)^2`` of LS-SVM: the squared hinge terms of both sides."""
    return (HingeTerm(weight, 1, 1.0, 2), HingeTerm(weight, -1, 1.0, 2))


class LSSVM(Objective):
    """LS-SVM, eq. (8)-(10) of Abe's paper: every margin is drawn to 1.

    ``1/2 |w|^2 + C/2 sum (1 - z)^2``

    Parameters
    ----------
    C : float, default 1
        Weight of half the summed squared loss, >= 0.
    """

    name: ClassVar[str] = "lssvm"
    summary: ClassVar[str] = "least squares support vector machine"
    formula: ClassVar[str] = "1/2 |w|^2 + C/2 sum (1 - z)^2"
    default_bias: ClassVar[str] = "free"
    parameters: ClassVar[dict[str, Parameter]] = {"C": Parameter(1.0, "weight of the summed squared loss")}

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        """Squared loss alone."""
        return Terms(loss=least_squares_loss(0.5 * params["C"]))


class LSLDM(Objective):
    """LS-LDM, eq. (16)-(18) of Abe's paper: LS-SVM with margin mean and variance.

    ``1/2 |w|^2 - lambda1 mean(z) + lambda2/2 Var(z) + C/2 sum (1 - z)^2``

    The roles of lambda1 and lambda2 are Abe's, opposite to those of ``ldm``.

    Parameters
    ----------
    C : float, default 1
        Weight of half the summed squared loss, >= 0.
    lambda1 : float, default 1
        Weight of the margin mean, >= 0.
    lambda2 : float, default 1
        Weight of half the margin variance, >= 0.
    """

    name: ClassVar[str] = "lsldm"
    summary: ClassVar[str] = "least squares large margin distribution machine"
    formula: ClassVar[str] = "1/2 |w|^2 - lambda1 mean(z) + lambda2/2 Var(z) + C/2 sum (1 - z)^2"
    default_bias: ClassVar[str] = "free"
    parameters: ClassVar[dict[str, Parameter]] = {
        "C": Parameter(1.0, "weight of the summed squared loss"),
        "lambda1": Parameter(1.0, "weight of the margin mean"),
        "lambda2": Parameter(1.0, "weight of half the margin variance"),
    }

    def grid(self, total: float) -> Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]:
        """C in 0.1, 1, 10, 100, and lambda2 / (C m) in 0, 2^-10, 2^-8, ..., 1: 28 points.

        lambda1 is left alone: it changes the length of w and b, and no label.
        """
        weights = (self.given["C"],) if "C" in self.given else (0.1, 1.0, 10.0, 100.0)
        if "lambda2" in self.given:
            return {"C": list(weights)} if len(weights) > 1 else super().grid(total)
        points = [{"C": C, "lambda2": r * C * total} for C in weights for r in VARIANCE_RATIOS]
        return points if len(weights) > 1 else [{"lambda2": point["lambda2"]} for point in points]

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        """v = lambda2 / 2, a = lambda1."""
        return Terms(0.5 * params["lambda2"], params["lambda1"], least_squares_loss(0.5 * params["C"]))

    def check_column(self, params: dict[str, Any], column: Column, bias: str) -> None:
        """Without loss and variance, the mean alone drives a free bias to infinity unless the classes balance."""
        if bias == "free" and column.unbounded_in_bias:
            raise ValueError(
                f"with bias='free', C=0 and lambda2=0 the objective is unbounded below: lambda1={params['lambda1']:g} "
                "drives the bias to infinity; raise C or lambda2, or use bias='regularized'"
            )
