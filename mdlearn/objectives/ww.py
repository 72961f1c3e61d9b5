"""WW, the multi-class support vector machine of Weston and Watkins (1999): one joint problem for all classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.kernel_features import Features
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.class_contrasts import ContrastRows, class_contrasts
from mdlearn.data.validation import Data
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.forms.problem import Form
from mdlearn.forms.proof import Solution, Start
from mdlearn.objectives.base import Objective, Parameter, Terms


class WestonWatkins(Objective):
    """Weston and Watkins' SVM, eq. (2.15) of the MDLM paper: every class is to win by 2 against every other.

    ``1/2 sum_k |w_k|^2 + C sum_i sum_(k != y_i) max(0, 2 - (f_(y_i)(x_i) - f_k(x_i)))``

    It is a support vector machine over m (k - 1) rows, x in the block of its own class and -x in the block of another,
    with the threshold 2 and positive labels only. For two classes, w_0 = -w_1 at the optimum: then f is f_1, and the
    problem is the SVM with the same C, at twice its objective. Linear only. A regularized bias adds 1/2 b_k^2 for every
    class; a free one there is for two classes only.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed hinge losses, >= 0.

    References
    ----------
    J. Weston and C. Watkins, "Support vector machines for multi-class pattern recognition", ESANN 1999.
    """

    name: ClassVar[str] = "ww"
    summary: ClassVar[str] = "joint multi-class SVM of Weston and Watkins"
    formula: ClassVar[str] = "1/2 sum_k |w_k|^2 + C sum_i sum_(k != y_i) max(0, 2 - f_(y_i) + f_k)"
    parameters: ClassVar[dict[str, Parameter]] = {"C": Parameter(1.0, "weight of the summed hinge losses")}
    multiclass: ClassVar[tuple[str, ...]] = ("joint",)
    kernels: ClassVar[bool] = False

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        """Two classes: |w_0|^2 = |w_1|^2, and margins are half the difference."""
        return Terms(loss=(HingeTerm(params["C"]),), unit=2.0)

    def form(self, data: Data, features: Features, bias: str, params: dict[str, Any]) -> Form:
        """One column over the contrasts of all classes; a regularized bias is a constant feature of every class."""
        k = data.classes.shape[0]
        if k == 2:
            return super().form(data, features, bias, params)
        if bias == "free":
            raise ValueError(
                f"objective {self.name!r} has no free bias for {k} classes; give bias='regularized' or bias='none'"
            )
        assert isinstance(features, LinearFeatures)
        rows = class_contrasts(features.rows, data.codes, k, bias == "regularized")
        loss = (HingeTerm(params["C"], threshold=2.0),)
        column = Column(np.ones(rows.shape[0]), data.counts[rows.index], 0.0, 0.0, loss)
        return MarginForm(replace(features, rows=rows), (column,), "none")

    def starts_of(self, starts: Sequence[Start], form: Form) -> Sequence[Start]:
        """One start of all classes' coefficients, with the multipliers of the contrasts."""
        rows = form.features.rows
        if not isinstance(rows, ContrastRows) or len(starts) != rows.k:
            return starts
        W = [np.append(one.coef, one.intercept) if rows.constant else one.coef for one in starts]
        beta = np.stack([one.beta[0] for one in starts])[rows.other, rows.index]
        return [Start(np.concatenate(W), 0.0, beta[None], beta)]

    def arranged(self, solution: Solution, form: Form) -> Solution:
        """Coefficients (k, d), intercepts (k,), dual coefficients and multipliers (k, 1, m); those of own classes 0."""
        rows = form.features.rows
        if not isinstance(rows, ContrastRows):
            return solution
        assert solution.coef is not None and solution.alpha is not None
        W, d = solution.coef.reshape(rows.k, -1), rows.base.shape[1]
        beta = np.zeros((rows.k, 1, rows.base.shape[0]))
        beta[rows.other, 0, rows.index] = solution.beta[0]
        return replace(
            solution,
            coef=W[:, :d],
            intercept=W[:, d] if rows.constant else np.zeros(rows.k),
            alpha=rows.per_class(solution.alpha).T[:, None],
            beta=beta,
            norm=np.linalg.norm(W[:, :d], axis=1),
        )
