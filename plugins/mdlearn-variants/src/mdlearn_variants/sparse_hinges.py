"""Hinge loss with penalties and constraints of single coefficients: fewer features, neighbours alike, known signs."""

from typing import ClassVar

import mdlearn
from mdlearn.extend import HingeTerm, LimitTerm, NormTerm, Parameter, Terms, first_differences

from .distribution import DISTRIBUTION, check_free_bias


class L1SVM(mdlearn.Objective):
    """1-norm SVM: the hinge loss beside the sum of absolute values, without the squared norm.

    ``sum_j |w_j| + C sum max(0, 1 - z)``

    Linear only; the intercept is free of any penalty. For two classes this is a linear program.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, > 0.

    Notes
    -----
    Certain: the problem, in its form with a weight in the place of a bound of the norm.

    References
    ----------
    J. Zhu, S. Rosset, T. Hastie and R. Tibshirani, "1-norm support vector machines", NIPS 2003.
    """

    name = "l1_svm"
    summary = "hinge loss with absolute values alone: leaves out features"
    formula = "sum_j |w_j| + C sum max(0, 1-z)"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the summed loss", strict=True)}
    default_bias = "free"
    kernels = False

    def terms(self, params, total):
        """Return the hinge with a norm."""
        return Terms(loss=(HingeTerm(params["C"]),), ridge=0.0, coefficient_terms=(NormTerm(1.0),))


class DoublyRegularizedSVM(mdlearn.Objective):
    """SVM with an elastic net: features that tell little are left out, and those that tell the same stay together.

    ``1/2 |w|^2 + l1 sum_j |w_j| + C sum max(0, 1 - z)``

    Linear only. An intercept has no part in the absolute values.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0.
    l1 : float, default 1
        Weight of the absolute values, >= 0.

    Notes
    -----
    Certain: the problem. A reading: weights relative to 1/2 |w|^2, a common factor apart. `elastic_net_svm` is the same
    with the squared hinge.

    References
    ----------
    L. Wang, J. Zhu and H. Zou, "The doubly regularized support vector machine", Statistica Sinica 16, 2006.
    """

    name = "doubly_regularized_svm"
    summary = "hinge loss with an elastic net: leaves out features"
    formula = "1/2 |w|^2 + l1 sum_j |w_j| + C sum max(0, 1-z)"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight of the summed loss"),
        "l1": Parameter(1.0, "weight of the absolute values"),
    }
    kernels = False

    def terms(self, params, total):
        """Return the hinge with a norm beside the square."""
        return Terms(loss=(HingeTerm(params["C"]),), coefficient_terms=(NormTerm(params["l1"]),))


class FusedSVM(mdlearn.Objective):
    """SVM for features in an order: many coefficients are 0, and neighbours are equal.

    ``1/2 |w|^2 + l1 sum_j |w_j| + fused sum_j |w_(j+1) - w_j| + C sum max(0, 1 - z)``

    Linear only. An intercept has no part in either sum.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0.
    l1 : float, default 1
        Weight of the absolute values, >= 0.
    fused : float, default 1
        Weight of the differences of neighbours, >= 0.

    Notes
    -----
    Certain: both sums beside the hinge. Readings: weights in the place of bounds, and 1/2 |w|^2 beside them.

    References
    ----------
    R. Tibshirani, M. Saunders, S. Rosset, J. Zhu and K. Knight, "Sparsity and smoothness via the fused lasso", JRSS B
    67, 2005.
    """

    name = "fused_svm"
    summary = "hinge loss with a fused lasso: neighbouring features have equal coefficients"
    formula = "1/2 |w|^2 + l1 sum_j |w_j| + fused sum_j |w_(j+1) - w_j| + C sum max(0, 1-z)"
    parameters: ClassVar = {
        **DoublyRegularizedSVM.parameters,
        "fused": Parameter(1.0, "weight of the differences of neighbours"),
    }
    kernels = False

    def terms(self, params, total):
        """Return the hinge with two norms beside the square."""
        norms = NormTerm(params["l1"]), NormTerm(params["fused"], matrix=first_differences)
        return Terms(loss=(HingeTerm(params["C"]),), coefficient_terms=norms)


class NonnegativeLDM(mdlearn.Objective):
    """LDM whose coefficients are >= 0: each feature speaks for the second class, or not at all.

    ``1/2 |w|^2 + 2 lambda1 Var(z) - lambda2 mean(z) + C sum max(0, 1 - z), w >= 0``

    Linear only. Give features that speak for the first class with the other sign. Intercepts may have any sign.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0.
    lambda1 : float, default C m / 256
        Weight of twice the margin variance; m is the sum of the sample weights.
    lambda2 : float, default lambda1 / 4
        Weight of the margin mean.

    Notes
    -----
    A combination of the LDM with a constraint. No paper is claimed for the two together.

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Large margin distribution machine", KDD 2014.
    """

    name = "nonnegative_ldm"
    summary = "margin distribution with coefficients >= 0"
    formula = "1/2 |w|^2 + 2 lambda1 Var(z) - lambda2 mean(z) + C sum max(0, 1-z), w >= 0"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the summed loss"), **DISTRIBUTION}
    kernels = False

    def terms(self, params, total):
        """Return the LDM with a constraint of its coefficients."""
        loss = (HingeTerm(params["C"]),)
        return Terms(2.0 * params["lambda1"], params["lambda2"], loss, coefficient_terms=(LimitTerm(lower=0.0),))

    def check_column(self, params, column, bias):
        """Raise ValueError where the mean draws a free bias to infinity."""
        check_free_bias(params, column, bias)
