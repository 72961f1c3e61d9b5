"""Squared hinge with penalties that leave out features, one by one or in groups, and the margin distribution."""

from typing import ClassVar

import numpy as np

import mdlearn
from mdlearn.extend import HingeTerm, Parameter, Setting, Terms

from .distribution import DISTRIBUTION
from .linear_margins import LinearMargins


class ElasticNetSVM(mdlearn.Objective):
    """SVM with the squared hinge loss and an elastic net: coefficients of features that tell little are 0.

    ``1/2 |w|^2 + l1 sum_j |w_j| + C sum max(0, 1 - z)^2``

    Linear only. A regularized intercept is the coefficient of a constant feature, and has its part in both norms. For
    more than two classes, one is told apart from the rest at a time, each with features of its own.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0.
    l1 : float, default 1
        Weight of the absolute values, >= 0.

    Notes
    -----
    Certain: the elastic net beside a loss of margins. Readings: the squared hinge in the place of the paper's hinge,
    which `doubly_regularized_svm` has; weights relative to 1/2 |w|^2, a common factor apart.

    References
    ----------
    L. Wang, J. Zhu and H. Zou, "The doubly regularized support vector machine", Statistica Sinica 16, 2006.
    """

    name = "elastic_net_svm"
    summary = "squared hinge with an elastic net: leaves out features"
    formula = "1/2 |w|^2 + l1 sum_j |w_j| + C sum max(0, 1-z)^2"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight of the summed loss"),
        "l1": Parameter(1.0, "weight of the absolute values"),
    }
    kernels = False

    def terms(self, params, total):
        """Return the squared hinge with a penalty."""
        return Terms(loss=(HingeTerm(params["C"], power=2),), penalty=params["l1"])


class ElasticNetLDM(mdlearn.Objective):
    """LDM with the squared hinge loss and an elastic net.

    ``1/2 |w|^2 + l1 sum_j |w_j| + 2 lambda1 Var(z) - lambda2 mean(z) + C sum max(0, 1 - z)^2``

    Linear only. A regularized intercept is the coefficient of a constant feature, and has its part in both norms.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0.
    l1 : float, default 1
        Weight of the absolute values, >= 0.
    lambda1 : float, default C m / 256
        Weight of twice the margin variance; m is the sum of the sample weights.
    lambda2 : float, default lambda1 / 4
        Weight of the margin mean.

    Notes
    -----
    A combination of `elastic_net_svm` with the LDM's mean and variance. No paper is claimed for the two together.

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Large margin distribution machine", KDD 2014.
    """

    name = "elastic_net_ldm"
    summary = "margin distribution and squared hinge with an elastic net: leaves out features"
    formula = "1/2 |w|^2 + l1 sum_j |w_j| + 2 lambda1 Var(z) - lambda2 mean(z) + C sum max(0, 1-z)^2"
    parameters: ClassVar = {**ElasticNetSVM.parameters, **DISTRIBUTION}
    kernels = False

    def terms(self, params, total):
        """Return the squared hinge with variance, mean and a penalty."""
        loss = (HingeTerm(params["C"], power=2),)
        return Terms(2.0 * params["lambda1"], params["lambda2"], loss, penalty=params["l1"])


def group_numbers(name, value):
    """Return the group of every feature as an array of whole numbers, or None."""
    if value is None:
        return None
    found = np.asarray(value)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise TypeError(f"{name} needs to be a whole number for each feature; got an array of {found.dtype}")
    return found


class GroupedMargins(LinearMargins):
    """Squared hinge of margins, with mean and variance, and a length for each group of coefficients.

    Parameters
    ----------
    data : Data
    features : LinearFeatures
    bias : str
    params : dict
        C, group, groups, lambda1, lambda2.
    """

    def __init__(self, data, features, bias, params):
        d, groups = features.width, params["groups"]
        if groups is None:
            groups = np.arange(d)
        if groups.shape != (d,):
            raise ValueError(f"groups needs a number for each of the {d} features; got {groups.shape[0]}")
        names, self.group = np.unique(groups, return_inverse=True)
        self.weights = params["group"] * np.sqrt(np.bincount(self.group, minlength=names.shape[0]))
        self.C, self.v, self.a = params["C"], 2.0 * params["lambda1"], params["lambda2"]
        super().__init__(data, features, bias)

    def losses(self, Z):
        """Return value and slopes at margins."""
        short, mean = np.maximum(1.0 - Z, 0.0), self.share @ Z
        away = Z - mean
        value = self.C * self.counts @ short**2 + self.v * self.share @ away**2 - self.a * mean
        slopes = -2.0 * self.C * self.counts[:, None] * short
        return float(value.sum()), slopes + self.share[:, None] * (2.0 * self.v * away - self.a)

    def curve(self, Z):
        """Return U -> second derivatives at margins Z applied to U."""
        bend = 2.0 * self.C * self.counts[:, None] * (Z < 1.0)
        return lambda U: bend * U + 2.0 * self.v * self.share[:, None] * (U - self.share @ U)

    def lengths(self, W):
        """Return the length of every group in every column, and of none for an intercept: (groups, k)."""
        found = np.zeros((self.weights.shape[0], W.shape[1]))
        np.add.at(found, self.group, W[: self.group.shape[0]] ** 2)
        return np.sqrt(found)

    def penalty(self, W):
        """Return the weighted sum of lengths."""
        return float((self.weights @ self.lengths(W)).sum())

    def prox(self, V, step):
        """Return V with every group shortened."""
        W, lengths = V.copy(), self.lengths(V)
        left = np.maximum(lengths - step * self.weights[:, None], 0.0) / np.where(lengths > 0, lengths, 1.0)
        W[: self.group.shape[0]] *= left[self.group]
        return W

    def least(self, G, sizes):
        """Return the least value of a linear function with squares and lengths: group by group."""
        excess = np.maximum(self.lengths(G) - self.weights[:, None], 0.0)
        return -0.5 * float((excess**2).sum() + np.square(G[self.group.shape[0] :]).sum())

    def product(self, look):
        """Return V -> second derivatives applied to V along the groups that are there; others stay at 0."""
        plain, d, W = super().product(look), self.group.shape[0], look.W[: self.group.shape[0]]
        lengths = self.lengths(look.W)
        there, held = (lengths > 0)[self.group], np.where(lengths > 0, lengths, 1.0)
        bend = self.weights[:, None] / held

        def apply(V):
            inner = V.copy()
            inner[:d] *= there
            out = plain(inner)
            along = np.zeros(lengths.shape)
            np.add.at(along, self.group, W * inner[:d])
            out[:d] += bend[self.group] * (inner[:d] - (along / held**2)[self.group] * W)
            out[:d] = np.where(there, out[:d], V[:d])
            return out

        return apply

    def subgradient(self, look):
        """Return the shortest subgradient of the whole objective."""
        R, d = self.slope(look), self.group.shape[0]
        lengths = self.lengths(look.W)
        R[:d] += (self.weights[:, None] / np.where(lengths > 0, lengths, np.inf))[self.group] * look.W[:d]
        rest = self.lengths(R)
        kept = np.where(lengths > 0, 1.0, np.maximum(rest - self.weights[:, None], 0.0) / np.where(rest > 0, rest, 1.0))
        R[:d] *= kept[self.group]
        return R


class GroupLassoSVM(mdlearn.Objective):
    """SVM with the squared hinge loss and a group lasso: groups of features that tell little are left out whole.

    ``1/2 |w|^2 + group sum_g sqrt(size_g) |w_g| + C sum max(0, 1 - z)^2``

    Linear only. A regularized intercept is in |w|^2 and in no group. For more than two classes the objective is the sum
    of those of each class against the rest, which share nothing: each has groups of its own.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0.
    group : float, default 1
        Weight of the lengths, >= 0.
    groups : array-like of shape (d,), optional
        The group of each feature, whole numbers. None: each is its own; without a bias
        this is `elastic_net_svm`.

    Raises
    ------
    ValueError
        At fit with bias="free", or when there is not a number for each feature.

    Notes
    -----
    Certain: the penalty, square roots of the sizes included. Readings: the squared hinge as its loss, and 1/2 |w|^2
    beside it, which the bound of the certificate rests on.

    References
    ----------
    M. Yuan and Y. Lin, "Model selection and estimation in regression with grouped variables", JRSS B 68, 2006.
    """

    name = "group_lasso_svm"
    summary = "squared hinge with a group lasso: leaves out groups of features"
    formula = "1/2 |w|^2 + group sum_g sqrt(size_g) |w_g| + C sum max(0, 1-z)^2"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight of the summed loss"),
        "group": Parameter(1.0, "weight of the lengths of groups"),
        "groups": Setting(None, "the group of each feature, whole numbers; None: each its own", group_numbers),
    }
    multiclass: ClassVar = ("joint",)
    kernels = False

    def form(self, data, features, bias, params):
        """Return a composite of all columns."""
        return GroupedMargins(data, features, bias, {"lambda1": 0.0, "lambda2": 0.0, **params})


class GroupLassoLDM(GroupLassoSVM):
    """LDM with the squared hinge loss and a group lasso.

    ``1/2 |w|^2 + group sum_g sqrt(size_g) |w_g| + 2 lambda1 Var(z) - lambda2 mean(z) + C sum max(0, 1 - z)^2``

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0.
    group : float, default 1
        Weight of the lengths, >= 0.
    groups : array-like of shape (d,), optional
        The group of each feature, whole numbers. None: each is its own; without a bias
        this is `elastic_net_ldm`.
    lambda1 : float, default C m / 256
        Weight of twice the margin variance; m is the sum of the sample weights.
    lambda2 : float, default lambda1 / 4
        Weight of the margin mean.

    Raises
    ------
    ValueError
        At fit with bias="free", or when there is not a number for each feature.

    Notes
    -----
    A combination of `group_lasso_svm` with the LDM's mean and variance. No paper is claimed for the two together.

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Large margin distribution machine", KDD 2014.
    M. Yuan and Y. Lin, "Model selection and estimation in regression with grouped variables", JRSS B 68, 2006.
    """

    name = "group_lasso_ldm"
    summary = "margin distribution and squared hinge with a group lasso: leaves out groups of features"
    formula = "1/2 |w|^2 + group sum_g sqrt(size_g) |w_g| + 2 lambda1 Var(z) - lambda2 mean(z) + C sum max(0, 1-z)^2"
    parameters: ClassVar = {**GroupLassoSVM.parameters, **DISTRIBUTION}
