"""MMLR, multi-class modified logistic regression: a smooth version of Weston and Watkins' joint SVM."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, ClassVar

import numpy as np

from mdlearn._solvers import apg
from mdlearn.data.features.kernel_features import Features
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.class_contrasts import class_contrasts
from mdlearn.data.rows.rows import BLOCK_ENTRIES, Selection, steps
from mdlearn.data.validation import Data
from mdlearn.forms.certificates.unboundedness import check_unboundedness
from mdlearn.forms.joint.composite_point import CompositeEvaluation, CompositePoint
from mdlearn.forms.joint.decision_composite import EVERY, Bend, DecisionComposite
from mdlearn.forms.loss_passes import VALUES_PER_CALL
from mdlearn.forms.losses import LogisticTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.forms.problem import Form
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
            check_unboundedness(margins, "lam=0", "give lam > 0")


PAIR_THRESHOLD = 2.0
"""Difference by which a class is to win, as in Weston and Watkins' machine."""
LARGEST_NEWTON_MATRIX = 1500
"""Coefficients up to which Newton steps write their matrix."""
SURE_PAIR_MARGIN = 1e-9
"""Margin, in units of the largest value, that is more than rounding."""


class PairLogistic(DecisionComposite):
    """Joint logistic loss of MMLR over a row's own class and every other, with lam |W|^2: a composite.

    sum_i c_i/m sum_(k != y_i) psi(f_(y_i) - f_k) + lam |W|^2 with psi(t) = ln(1 + exp(-alpha (t - 2))) / alpha.

    `data`: of three or more classes.
    """

    averages = True

    def __init__(self, data: Data, features: LinearFeatures, bias: str, alpha: float, lam: float) -> None:
        k = data.classes.shape[0]
        super().__init__(features, bias, data.counts, k, 2.0 * lam, 0.0)
        self.codes, self.alpha, self.share = data.codes, alpha, data.counts / data.total
        self.nonnegative, self.reach = True, PAIR_THRESHOLD + 40.0 / alpha
        # The Laplacian of a star with k nodes has the largest eigenvalue k.
        self.steepest = 0.25 * alpha * k / data.total
        self.at_zero = (k - 1) * float(np.logaddexp(0.0, PAIR_THRESHOLD * alpha)) / alpha

    def slopes(self, W: np.ndarray, F: np.ndarray, chosen: Selection = EVERY) -> float:
        codes, share = self.codes[chosen], self.share[chosen]
        return sum(apg.pair_slopes(F[i], codes[i], share[i], self.alpha, PAIR_THRESHOLD) for i in _mmlr_value_pieces(F))

    def settle(self, W: np.ndarray) -> CompositeEvaluation:
        """The look at the best intercepts, and at coefficients that add up to 0: only the ridge sees a common shift."""
        return super().settle(W - W.mean(axis=1, keepdims=True))

    def adjoint(self, A: np.ndarray) -> np.ndarray:
        """X'A, with the sums for the intercepts; derivatives add up to 0 over the classes, here without rounding.

        A common shift of all classes changes nothing: what rounding leaves of it, Newton steps would blow up.
        """
        G = super().adjoint(A)
        return G - G.mean(axis=1, keepdims=True)

    def curvatures(self, F: np.ndarray, reach: float) -> np.ndarray:
        """Second derivative of every psi, shape (m, k), or averages; 0 in the row's own class."""
        D = F.copy()
        for i in _mmlr_value_pieces(D):
            apg.pair_bends(D[i], self.codes[i], self.share[i], self.alpha, PAIR_THRESHOLD, reach)
        return D

    def bend(self, W: np.ndarray, F: np.ndarray) -> tuple[Bend, np.ndarray]:
        """Second derivatives along the differences f_y - f_k."""
        return self.bent(self.curvatures(F, 0.0))

    def bent(self, D: np.ndarray) -> tuple[Bend, np.ndarray]:
        """Second derivatives along the differences f_y - f_k, from given `curvatures`."""
        codes, own = self.codes, (np.arange(D.shape[0]), self.codes)

        def apply(V: np.ndarray, U: np.ndarray) -> np.ndarray:
            B: np.ndarray = D * (U - U[own][:, None])
            B[own] = -B.sum(axis=1)
            return B

        mean = D.sum(axis=0) + np.bincount(codes, weights=D.sum(axis=1), minlength=self.shape[1])
        return apply, mean / self.counts.sum()

    def intercept_bends(self, W: np.ndarray, F: np.ndarray) -> np.ndarray:
        D = self.curvatures(F, 0.0)
        between = np.array([np.bincount(self.codes, weights=D_k, minlength=self.shape[1]) for D_k in D.T])
        between = between + between.T
        return np.diag(between.sum(axis=0)) - between

    @property
    def assembles(self) -> bool:  # type: ignore[override]
        """Up to a number of coefficients at which a factorisation costs as much as some products with X."""
        return self.shape[0] * self.shape[1] <= LARGEST_NEWTON_MATRIX

    def assembled(self, D: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Moments of the rows of each class, weighted against every other class: psi sees f_y - f_k alone.

        A common shift of all classes gets the curvature of a typical class: without ridge it would have none.
        """
        p, k = self.shape
        H = np.zeros((k, p, k, p))
        for c in range(k):
            mine = np.flatnonzero(self.codes == c)
            for piece in steps(mine.shape[0], max(1, BLOCK_ENTRIES // p)):
                B = self.affine.block(mine[piece])
                for j in range(k):
                    weights = np.sqrt(D[mine[piece], j])
                    if weights.any():
                        R = weights[:, None] * B
                        M = R.T @ R
                        for one, other, sign in ((c, c, 1.0), (j, j, 1.0), (c, j, -1.0), (j, c, -1.0)):
                            H[one, :, other] += sign * M
                yield None
        diagonal = np.einsum("kpkp->p", H) / k**2
        H[np.arange(k), :, np.arange(k)] += np.diag(self.ridge)
        H[:, np.arange(p), :, np.arange(p)] += diagonal[:, None, None]
        return H.reshape(k * p, k * p)

    def contrasts(self) -> MarginForm:
        """Return this loss as that of margins f_(y_i) - f_k, with m (k - 1) rows; without ridge."""
        rows = class_contrasts(self.rows, self.codes, self.shape[1], self.bias != "none")
        share = self.share[rows.index]
        column = Column(np.ones(rows.shape[0]), share, 0.0, 0.0, (LogisticTerm(1.0, self.alpha, PAIR_THRESHOLD),))
        return MarginForm(LinearFeatures(rows), (column,), "none", 0.0)

    def examine(self, point: CompositePoint) -> None:
        """Raise ValueError when, without a ridge, coefficients win every comparison: longer ones are always better."""
        if self.ridge.any():
            return
        F = self.scores(point.W)
        T = F[np.arange(F.shape[0]), self.codes][:, None] - F
        T[np.arange(F.shape[0]), self.codes] = np.inf
        if float(T.min()) > SURE_PAIR_MARGIN * float(np.abs(F).max()):
            raise ValueError(
                "without a squared norm in the objective there is no optimum on these training rows: every class can "
                "be separated from every other; give lam > 0"
            )

    def multipliers(self, look: CompositeEvaluation) -> np.ndarray:
        """Minus the slope of every psi, (k, 1, m); 0 in the row's own class."""
        assert look.scores is not None
        A = look.scores.copy()
        self.slopes(look.W, A)
        A[np.arange(A.shape[0]), self.codes] = 0.0
        return A.T[:, None]


def _mmlr_value_pieces(F: np.ndarray) -> Iterable[slice]:
    """Row slices of decision values that one compiled call of MMLR's loss takes: a few milliseconds."""
    return steps(F.shape[0], max(1, VALUES_PER_CALL // F.shape[1]))
