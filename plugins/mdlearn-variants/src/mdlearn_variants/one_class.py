"""One class alone: a function that reaches a level on most of the rows."""

from typing import ClassVar

import mdlearn
from mdlearn.extend import HingeTerm, Parameter, Terms

from .distribution import DISTRIBUTION


class OneClassSVM(mdlearn.Objective):
    """One-class SVM with a given level: rows that do not reach it are outliers.

    ``1/2 |w|^2 + C sum max(0, y - f)``, y = 1 for all rows

    As mdlearn has no task for rows without labels, this is a regression: give ``y = np.ones(n)``, the level of each
    row, and take rows with ``predict(X) < 1`` for outliers. Without a bias (the default here) and with the level 1 the
    solution is that of the one-class SVM of the paper, ``1/2 |v|^2 - rho + 1/(nu m) sum max(0, rho - v.phi(x))``, with
    v = rho w: with the multipliers beta of w, rho = 1 / sum(beta) and nu = sum(beta) / (C m).

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0. The larger it is, the fewer rows are outliers (the smaller is nu).

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
    summary = "one-class SVM with a given level (y = 1)"
    formula = "1/2 |w|^2 + C sum max(0, y-f), y = 1"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the summed loss")}
    default_bias = "none"
    task = "regression"

    def terms(self, params, total):
        """Return the hinge of rows below their level."""
        return Terms(loss=(HingeTerm(params["C"], threshold=0.0),))


class OneClassLDM(mdlearn.Objective):
    """One-class LDM with a given level: values of the rows far above it on average, with a small variance.

    ``1/2 |w|^2 + 2 lambda1 Var(f - y) - lambda2 mean(f - y) + C sum max(0, y - f)``, y = 1 for all rows

    As for `one_class_svm`: a regression on ``y = np.ones(n)``, and rows with ``predict(X) < 1`` are outliers.

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
        At fit with bias="free", unless lambda2 is 0: nothing holds a bias that raises the mean.

    Notes
    -----
    A combination of the one-class SVM with mean and variance of the LDM; no paper is claimed for this form of it.

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Large margin distribution machine", KDD 2014.
    """

    name = "one_class_ldm"
    summary = "one-class large margin distribution machine with a given level (y = 1)"
    formula = "1/2 |w|^2 + 2 lambda1 Var(f-y) - lambda2 mean(f-y) + C sum max(0, y-f), y = 1"
    parameters: ClassVar = {**OneClassSVM.parameters, **DISTRIBUTION}
    default_bias = "none"
    task = "regression"

    def terms(self, params, total):
        """Return the hinge of rows below their level, with variance and mean."""
        return Terms(2.0 * params["lambda1"], params["lambda2"], (HingeTerm(params["C"], threshold=0.0),))
