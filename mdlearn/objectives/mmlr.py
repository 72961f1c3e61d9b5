"""Multi-class modified logistic regression: a smooth version of Weston and Watkins' joint support vector machine."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mdlearn.data.checks import Data
from mdlearn.data.expansion import contrasts
from mdlearn.data.features import Features, LinearFeatures
from mdlearn.data.rows import Selection
from mdlearn.forms.existence import check_existence
from mdlearn.forms.looks import CompositePoint, Look
from mdlearn.forms.losses import LogisticTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.forms.problem import Form
from mdlearn.forms.scores import EVERY, Bend, Scores
from mdlearn.objectives.base import Objective, Parameter, Terms
from mdlearn.objectives.logistic import LAM


class MMLR(Objective):
    """MMLR, eq. (2.16) of the MDLM paper: every class is to win by 2 against every other, softly.

    ``mean_i sum_(k != y_i) ln(1 + exp(-alpha (f_(y_i)(x_i) - f_k(x_i) - 2))) / alpha + lam sum_k |w_k|^2``

    The mean is over the sum of the sample weights; lam has no factor 1/2. As alpha grows the loss tends to the hinge,
    and the classifier to Weston and Watkins' with C = 1 / (2 lam m). For two classes w_0 = -w_1 at the optimum: then f
    is f_1. A regularized bias adds lam b_k^2; free ones are fixed but for a common shift, and add up to 0.

    Parameters
    ----------
    alpha : float, default 5
        Sharpness of the loss, > 0.
    lam : float, default 1e-3
        Weight of the squared norm, >= 0.
    """

    name: ClassVar[str] = "mmlr"
    summary: ClassVar[str] = "joint multi-class logistic regression that tends to Weston and Watkins' SVM"
    formula: ClassVar[str] = "mean sum_(k != y) ln(1 + exp(-alpha (f_y - f_k - 2))) / alpha + lam sum_k |w_k|^2"
    parameters: ClassVar[dict[str, Parameter]] = {
        "alpha": Parameter(5.0, "sharpness of the loss, > 0", strict=True),
        "lam": LAM,
    }
    default_bias: ClassVar[str] = "free"
    multiclass: ClassVar[tuple[str, ...]] = ("joint",)
    kernels: ClassVar[bool] = False
    probabilities: ClassVar[bool] = True

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        """Two classes: f_1 - f_0 = 2 f, |w_0|^2 + |w_1|^2 = 2 |w|^2."""
        unit = 4.0 * params["lam"] or 1.0
        loss = LogisticTerm(2.0 / (total * unit), 2.0 * params["alpha"], 1.0)
        return Terms(loss=(loss,), ridge=float(params["lam"] > 0), unit=unit)

    def form(self, data: Data, features: Features, bias: str, params: dict[str, Any]) -> Form:
        """One margin problem for two classes, else one problem with a gradient of its own."""
        if data.classes.shape[0] == 2:
            return super().form(data, features, bias, params)
        assert isinstance(features, LinearFeatures)
        return PairLogistic(data, features, bias, params["alpha"], params["lam"])

    def check_form(self, form: Form, params: dict[str, Any]) -> None:
        """Without the squared norm there is no optimum on separable rows."""
        if params["lam"] == 0:
            margins = form.contrasts() if isinstance(form, PairLogistic) else form
            check_existence(margins, "lam=0", "give lam > 0")


SURE = 1e-9
"""Margin, in units of the largest value, that is more than rounding."""


class PairLogistic(Scores):
    """sum_i c_i/m sum_(k != y_i) psi(f_(y_i) - f_k) + lam |W|^2 with psi(t) = ln(1 + exp(-alpha (t - 2))) / alpha.

    Parameters
    ----------
    data : Data
        Of three or more classes.
    features : LinearFeatures
    bias : str
    alpha, lam : float
    """

    def __init__(self, data: Data, features: LinearFeatures, bias: str, alpha: float, lam: float) -> None:
        k = data.classes.shape[0]
        super().__init__(features, bias, data.counts, k, 2.0 * lam, 0.0)
        self.codes, self.alpha, self.share = data.codes, alpha, data.counts / data.total
        self.nonnegative, self.reach = True, 2.0 + 40.0 / alpha
        # The Laplacian of a star with k nodes has the largest eigenvalue k.
        self.steepest = 0.25 * alpha * k / data.total
        self.at_zero = (k - 1) * float(np.logaddexp(0.0, 2.0 * alpha)) / alpha

    def slopes(self, W: np.ndarray, F: np.ndarray, chosen: Selection = EVERY) -> float:
        """Return h at decision values F, and put its derivatives in their place; or of some rows."""
        codes, share = self.codes[chosen], self.share[chosen]
        own = np.arange(F.shape[0]), codes
        T = self._exponents(F, codes)
        value = float(share @ np.logaddexp(0.0, T).sum(axis=1)) / self.alpha
        np.multiply(_sigmoid(T), share[:, None], out=F)
        F[own] = -F.sum(axis=1)
        return value

    def settle(self, W: np.ndarray) -> Look:
        """The look at the best intercepts, and at coefficients that add up to 0: only the ridge sees a common shift."""
        return super().settle(W - W.mean(axis=1, keepdims=True))

    def adjoint(self, A: np.ndarray) -> np.ndarray:
        """X'A, with the sums for the intercepts; derivatives add up to 0 over the classes, here without rounding.

        A common shift of all classes changes nothing: what rounding leaves of it, Newton steps would blow up.
        """
        G = super().adjoint(A)
        return G - G.mean(axis=1, keepdims=True)

    def bend(self, W: np.ndarray, F: np.ndarray) -> tuple[Bend, np.ndarray]:
        """Second derivatives along the differences f_y - f_k."""
        codes, own = self.codes, (np.arange(F.shape[0]), self.codes)
        p = _sigmoid(self._exponents(F, codes))
        D = self.alpha * self.share[:, None] * p * (1.0 - p)

        def apply(V: np.ndarray, U: np.ndarray) -> np.ndarray:
            B: np.ndarray = D * (U - U[own][:, None])
            B[own] = -B.sum(axis=1)
            return B

        mean = D.sum(axis=0) + np.bincount(codes, weights=D.sum(axis=1), minlength=self.shape[1])
        return apply, mean / self.counts.sum()

    def _exponents(self, F: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """alpha (2 - f_y + f_k); -inf for the own class."""
        own = np.arange(F.shape[0]), codes
        T = self.alpha * (2.0 - F[own][:, None] + F)
        T[own] = -np.inf
        return T

    def contrasts(self) -> MarginForm:
        """The same loss as that of margins f_(y_i) - f_k, with m (k - 1) rows; without ridge."""
        rows = contrasts(self.rows, self.codes, self.shape[1], self.bias != "none")
        share = self.share[rows.index]
        column = Column(np.ones(rows.shape[0]), share, 0.0, 0.0, (LogisticTerm(1.0, self.alpha, 2.0),))
        return MarginForm(LinearFeatures(rows), (column,), "none", 0.0)

    def examine(self, point: CompositePoint) -> None:
        """Raise ValueError when, without a ridge, coefficients win every comparison: longer ones are always better."""
        if self.ridge.any():
            return
        F = self.scores(point.W)
        T = F[np.arange(F.shape[0]), self.codes][:, None] - F
        T[np.arange(F.shape[0]), self.codes] = np.inf
        if float(T.min()) > SURE * float(np.abs(F).max()):
            raise ValueError(
                "without a squared norm in the objective there is no optimum on these training rows: every class can "
                "be separated from every other; give lam > 0"
            )

    def multipliers(self, look: Look) -> np.ndarray:
        """Minus the slope of every psi, (k, 1, m); 0 in the row's own class."""
        assert look.scores is not None
        return (_sigmoid(self._exponents(look.scores, self.codes)) * self.share[:, None]).T[:, None]


def _sigmoid(T: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-T)) without overflow."""
    small = np.exp(-np.abs(T))
    return np.where(T >= 0, 1.0, small) / (1.0 + small)
