"""Classes in an order: one function and thresholds between the classes, by reduction to two classes."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

import mdlearn
from mdlearn.extend import Column, DenseRows, HingeTerm, MarginForm, Model, Parameter, Task, Terms

from .distribution import DISTRIBUTION, check_free_bias


class OrdinalModel(Model):
    """Model of classes in an order: a row's class is the number of thresholds that f reaches.

    Attributes
    ----------
    thresholds_ : ndarray of shape (k - 1,)
        Thresholds between the k classes, in their order.
    """

    task: ClassVar[str] = "ordinal"
    measure: ClassVar[str] = "-mean distance"

    def places(self, f):
        """Return the number of each row's class, from 0 on, for decision values f."""
        return (f[:, None] >= self.thresholds_).sum(axis=1)

    def predictions(self, f):
        """Return the label of every row."""
        return self.classes_[self.places(f)]

    def score(self, X, y, sample_weight=None):
        """Return minus the (weighted) mean number of places by which `predict` misses the class."""
        f = self.decision_function(X)
        return -float(np.average(np.abs(self.places(f) - self._codes(y, len(f))), weights=sample_weight))

    def margins(self, X, y, normalized=False, per_class=False):
        """Return the distance of f to the nearest threshold of the row's class, negative on its wrong side."""
        f = self.decision_function(X)
        sides = np.where(self._codes(y, len(f))[:, None] > np.arange(len(self.thresholds_)), 1.0, -1.0)
        found = (sides * (f[:, None] - self.thresholds_)).min(axis=1)
        return found / (self._norms[0] or 1.0) if normalized else found


ORDINAL = Task("labels", OrdinalModel)
"""Task of labels whose sorting is their order."""


@dataclass(frozen=True, eq=False)
class PlaceRows(DenseRows):
    """Rows of X once for each of some places between classes, with a column for each place's threshold."""

    places: int = 1


class OrdinalSVM(mdlearn.Objective):
    """Ordinal SVM: each row is to be on its side of all thresholds, by a margin of 1 (reduction to two classes).

    ``1/2 |w|^2 + 1/2 |t|^2 + C sum_i sum_j max(0, 1 - s_ij (f(x_i) - t_j))``

    j goes over the k - 1 places between the classes in their sorted order, and s_ij = 1 where the class of row i is
    above place j, else -1. The sum over j is at least the number of places by which a row is missed.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0.

    Notes
    -----
    Certain: the reduction with the cost of absolute differences, thresholds in the squared norm, and that some optimum
    has ascending ones. A bias (none by default) is part of f and moves all thresholds alike. Rows are written out once
    per place; fits with a warm start, and points of a path, begin at 0.

    References
    ----------
    L. Li and H.-T. Lin, "Ordinal regression by extended binary classification", NIPS 19, 2006.
    """

    name = "ordinal_svm"
    summary = "SVM of classes in an order: one function, and thresholds between the classes"
    formula = "1/2 |w|^2 + 1/2 |t|^2 + C sum_ij max(0, 1 - s_ij (f_i - t_j))"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the summed loss")}
    default_bias = "none"
    kernels = False
    needs_rows = True
    task = ORDINAL

    def place_terms(self, params):
        """Return the hinge loss of one place between two classes."""
        return Terms(loss=(HingeTerm(params["C"]),))

    def form(self, data, features, bias, params):
        """Write the problem of two classes over rows that stand there once per place."""
        terms, X = self.place_terms(params), features.rows.block(slice(None))
        (m, d), places = X.shape, len(data.classes) - 1
        wide = np.zeros((places, m, d + places), features.rows.dtype)
        wide[:, :, :d] = X
        for j in range(places):
            wide[j, :, d + j] = -1.0
        rows = PlaceRows(wide.reshape(places * m, d + places), places=places)
        signs = np.where(data.codes > np.arange(places)[:, None], 1.0, -1.0).ravel()
        column = Column(signs, np.tile(data.counts, places), terms.variance, terms.mean, terms.loss)
        self.check_column(params, column, bias)
        return MarginForm(replace(features, rows=rows), (column,), bias)

    def starts_of(self, starts, form):
        """Return no starts: those of other fits lack the thresholds."""
        return []

    def arranged(self, solution, form):
        """Return the solution by row of X, with the thresholds as an attribute of the model."""
        places, d = form.features.rows.places, form.features.width - form.features.rows.places
        return replace(
            solution,
            coef=solution.coef[:d],
            alpha=solution.alpha.reshape(places, -1).sum(axis=0),
            beta=solution.beta.reshape(places, -1),
            norm=float(np.linalg.norm(solution.coef[:d])),
            extras={"thresholds_": solution.coef[d:]},
        )


class OrdinalLDM(OrdinalSVM):
    """Ordinal LDM: `ordinal_svm` with mean and variance of the margins at all places.

    ``1/2 |w|^2 + 1/2 |t|^2 + 2 lambda1 Var(z) - lambda2 mean(z) + C sum_ij max(0, 1 - z_ij)``

    z_ij = s_ij (f(x_i) - t_j) for all rows i and places j.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0.
    lambda1 : float, default C m / 256
        Weight of twice the variance; m is the sum of the sample weights.
    lambda2 : float, default lambda1 / 4
        Weight of the mean.

    Notes
    -----
    A combination of the reduction with mean and variance of the LDM; no paper is claimed for this form of it. With a
    variance, thresholds need not ascend where few rows stand between them: `predict` counts those that f reaches.

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Large margin distribution machine", KDD 2014.
    """

    name = "ordinal_ldm"
    summary = "large margin distribution machine of classes in an order"
    formula = "1/2 |w|^2 + 1/2 |t|^2 + 2 lambda1 Var(z) - lambda2 mean(z) + C sum_ij max(0, 1-z_ij)"
    parameters: ClassVar = {**OrdinalSVM.parameters, **DISTRIBUTION}

    def place_terms(self, params):
        """Return the LDM of one place between two classes."""
        return Terms(2.0 * params["lambda1"], params["lambda2"], (HingeTerm(params["C"]),))

    def check_column(self, params, column, bias):
        """Refuse a free bias that runs to infinity."""
        check_free_bias(params, column, bias)
