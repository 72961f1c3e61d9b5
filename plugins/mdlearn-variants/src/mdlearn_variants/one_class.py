"""One class alone: a function that reaches a level on most of the rows."""

from typing import ClassVar

import numpy as np

import mdlearn
from mdlearn.extend import HingeTerm, Model, Parameter, Task, Terms

from .distribution import DISTRIBUTION

NEAR = 1e-6
"""Distance below the level within which a row still counts as inside: solutions put many rows exactly there."""


class OneClassModel(Model):
    """Model of one class: rows with f >= 1 are inside, the others are outliers."""

    task: ClassVar[str] = "one-class"
    measure: ClassVar[str] = "share of rows inside"

    def predictions(self, f):
        """Return 1 for rows inside, -1 for outliers, as scikit-learn's detectors do."""
        return np.where(f >= 1.0 - NEAR, 1, -1)

    def score(self, X, y=None, sample_weight=None):
        """Return the (weighted) share of rows inside; y has nothing to say."""
        return float(np.average(self.predict(X) == 1, weights=sample_weight))

    def margins(self, X, y=None, normalized=False, per_class=False):
        """Return f - 1 of shape (n,), by how much rows are inside; over |w| if normalized."""
        away = self.decision_function(X) - 1.0
        return away / (self._norms[0] or 1.0) if normalized else away


ONE_CLASS = Task("none", OneClassModel)
"""Task of rows without labels, of which outliers are found."""


def refuse_free_bias(bias):
    """Raise ValueError for a free bias, which makes every row an inner one without looking at any."""
    if bias == "free":
        raise ValueError(
            "one class needs bias='none' or 'regularized': a free bias alone reaches the level on all rows"
        )


class OneClassSVM(mdlearn.Objective):
    """One-class SVM with a given level: rows that do not reach it are outliers.

    ``1/2 |w|^2 + C sum max(0, 1 - f)``

    y is None (or ones); `predict` returns 1 for rows with f >= 1, and -1 for outliers. Without a bias (the default
    here) the solution is that of the one-class SVM of the paper,
    ``1/2 |v|^2 - rho + 1/(nu m) sum max(0, rho - v.phi(x))``, with v = rho w: with the multipliers beta of w,
    rho = 1 / sum(beta) and nu = sum(beta) / (C m).

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0. The larger it is, the fewer rows are outliers (the smaller is nu).

    Raises
    ------
    ValueError
        At fit with bias="free", which alone reaches the level on all rows.

    Notes
    -----
    Certain: that both problems have the same path of solutions, which follows from v = rho w; for every C there is the
    nu above. Reading: C in the place of nu.

    References
    ----------
    B. Schoelkopf, J. C. Platt, J. Shawe-Taylor, A. J. Smola and R. C. Williamson, "Estimating the support of a
    high-dimensional distribution", Neural Computation 13(7), 2001.
    """

    name = "one_class_svm"
    summary = "one-class SVM with the level 1"
    formula = "1/2 |w|^2 + C sum max(0, 1-f)"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the summed loss")}
    default_bias = "none"
    task = ONE_CLASS

    def terms(self, params, total):
        """Return the hinge of rows below their level."""
        return Terms(loss=(HingeTerm(params["C"]),))

    def check_column(self, params, column, bias):
        """Refuse a free bias."""
        refuse_free_bias(bias)


class OneClassLDM(mdlearn.Objective):
    """One-class LDM with a given level: values of the rows far above it on average, with a small variance.

    ``1/2 |w|^2 + 2 lambda1 Var(f) - lambda2 mean(f) + C sum max(0, 1 - f)``

    As for `one_class_svm`: y is None, and `predict` returns -1 for rows with f < 1.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0.
    lambda1 : float, default C m / 256
        Weight of twice the variance; m is the sum of the sample weights.
    lambda2 : float, default lambda1 / 4
        Weight of the mean.

    Raises
    ------
    ValueError
        At fit with bias="free", as for `one_class_svm`.

    Notes
    -----
    A combination of the one-class SVM with mean and variance of the LDM; no paper is claimed for this form of it.

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Large margin distribution machine", KDD 2014.
    """

    name = "one_class_ldm"
    summary = "one-class large margin distribution machine with the level 1"
    formula = "1/2 |w|^2 + 2 lambda1 Var(f) - lambda2 mean(f) + C sum max(0, 1-f)"
    parameters: ClassVar = {**OneClassSVM.parameters, **DISTRIBUTION}
    default_bias = "none"
    task = ONE_CLASS

    def terms(self, params, total):
        """Return the hinge of rows below their level, with variance and mean."""
        return Terms(2.0 * params["lambda1"], params["lambda2"], (HingeTerm(params["C"]),))

    def check_column(self, params, column, bias):
        """Refuse a free bias."""
        refuse_free_bias(bias)
