"""MDLM, the margin distribution logistic machine (Ding, Huang, Zu and Zhang), and its sparse version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from mdlearn.forms.certificates.unboundedness import check_unboundedness, check_unboundedness_in_bias
from mdlearn.forms.losses import LogisticTerm
from mdlearn.forms.margin import MarginForm
from mdlearn.forms.problem import Form
from mdlearn.objectives.base import Objective, Parameter, Terms


class MDLM(Objective):
    """MDLM, eq. (2.14) and (2.17) of the paper: the generalised logistic loss with margin mean and variance.

    ``sum_k [ mean GLL(z_k) + lambda1 Var(z_k) - lambda2 mean(z_k) ] + beta sum_j |W_j| + ridge/2 |W|^2``

    with GLL(z) = ln(1 + exp(-alpha (z - 1))) / alpha, means over the sum of the sample weights, and W_j the
    coefficients of feature j in all classes: the penalty is L2,1, over features. With two classes there is one column
    of coefficients, and beta > 0 makes it SMDLM, with the L1 norm.

    A regularized bias has its share in penalty and ridge, like any feature; a free one has none. The paper has no
    ridge, without which the objective can be unbounded below, above all where rows have more columns than there are
    rows. The default is the smallest tried whose optimum fits reached on every data set; with ridge=0, fit says
    so where there is none.

    Parameters
    ----------
    alpha : float, default 5
        Sharpness of the loss, > 0. As it grows the loss tends to the hinge.
    lambda1 : float, default 1
        Weight of the margin variance, >= 0.
    lambda2 : float, default 0.125
        Weight of the margin mean, >= 0.
    beta : float, default 0
        Weight of the penalty (L1 for two classes), >= 0.
    ridge : float, default 1e-6
        Weight of half the squared norm, >= 0; 0 in the paper.
    """

    name: ClassVar[str] = "mdlm"
    summary: ClassVar[str] = "margin distribution logistic machine, sparse with beta > 0"
    formula: ClassVar[str] = "mean GLL(z) + lambda1 Var(z) - lambda2 mean(z) + beta sum_j |W_j| + ridge/2 |W|^2"
    parameters: ClassVar[dict[str, Parameter]] = {
        "alpha": Parameter(5.0, "sharpness of the loss, > 0", strict=True),
        "lambda1": Parameter(1.0, "weight of the margin variance"),
        "lambda2": Parameter(0.125, "weight of the margin mean"),
        "beta": Parameter(0.0, "weight of the L2,1 penalty (L1 for two classes)"),
        "ridge": Parameter(1e-6, "weight of half the squared norm, 0 in the paper"),
    }
    default_bias: ClassVar[str] = "free"
    multiclass: ClassVar[tuple[str, ...]] = ("joint", "ovr", "ovo")
    kernels: ClassVar[bool] = False
    probabilities: ClassVar[bool] = True

    def grid(self, total: float) -> Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]:
        """lambda1 and lambda2 in 2^-3, 2^-2, ..., 2^3, as in the paper: 49 points; both are weights of means."""
        open_ones = [name for name in ("lambda1", "lambda2") if name not in self.given]
        return {name: [2.0**k for k in range(-3, 4)] for name in open_ones} or super().grid(total)

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        """v = lambda1, a = lambda2, in units of the ridge where there is one."""
        unit = params["ridge"] or 1.0
        loss = LogisticTerm(1.0 / (total * unit), params["alpha"], 1.0)
        variance, mean, penalty = (params[name] / unit for name in ("lambda1", "lambda2", "beta"))
        return Terms(variance, mean, (loss,), float(params["ridge"] > 0), unit, penalty)

    def check_form(self, form: Form, params: dict[str, Any]) -> None:
        """ValueError where there is no optimum: without a ridge the objective can fall without end."""
        assert isinstance(form, MarginForm)
        told = ", ".join(f"{name}={params[name]:g}" for name in ("lambda1", "lambda2", "beta", "ridge"))
        check_unboundedness_in_bias(
            form, told, "give lambda1 > 0, a smaller lambda2, or bias='regularized' with ridge > 0"
        )
        check_unboundedness(form, told, "give ridge > 0, a larger beta, or lambda2=0 with beta > 0")
