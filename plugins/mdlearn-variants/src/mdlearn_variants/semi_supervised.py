"""Labels of which some are unknown: rows of unknown labels are drawn to the side that they are nearer to."""

from typing import ClassVar

import numpy as np

import mdlearn
from mdlearn.extend import SEMI_SUPERVISED, Column, MarginForm, Parameter, RowTerms

from .band import BAND, band_terms, mirrored
from .touched import TouchedForm, TouchedProblem

TIED = 1e-12
"""Difference of two prices of a label, relative to the largest one, that rounding makes."""


def shares(prices, counts, positive):
    """Return q in [0, 1] for each row, least prices first, with sum counts q = `positive`; tied rows have the same."""
    order = np.argsort(prices, kind="stable")
    ends = np.cumsum(counts[order])
    last = order[min(int(np.searchsorted(ends, positive)), len(order) - 1)]
    error = TIED * np.abs(prices).max()
    first, tied = prices < prices[last] - error, np.abs(prices - prices[last]) <= error
    part = (positive - counts[first].sum()) / counts[tied].sum()
    return first + min(max(part, 0.0), 1.0) * tied


class UnknownLabelsProblem(TouchedProblem):
    """Semi-supervised ODM of one class against the rest, over decision values f.

    The labels of unknown rows are part of the minimum: with q the share of the label +1 in a row of unknown label, the
    objective is the smallest, over all q of the right sum, of functions that are convex in f. The one of the best q
    touches the objective there.

    Parameters
    ----------
    features : LinearFeatures or KernelFeatures
    y : ndarray of shape (m,)
        Signs; 1 where unknown.
    known : ndarray of shape (m,), bool
    counts : ndarray of shape (m,)
    bias : str
    terms : tuple of HingeTerm
        Loss of a row at its margin.
    unknown : float
        Weight of a row of unknown label, relative to one of known label.
    """

    def __init__(self, features, y, known, counts, bias, terms, unknown):
        self.y, self.known, self.counts, self.terms, self.unknown = y, known, counts, terms, unknown
        weight = float(counts @ np.where(known, 1.0, unknown))
        own = counts[known]
        self.positive = float(own @ (y[known] > 0) / own.sum() * counts[~known].sum())
        super().__init__(features, bias, weight * float(self.losses(np.zeros(1))[0]))

    def losses(self, z):
        """Return the loss of each margin."""
        return sum(t.weight * np.maximum(0.0, t.side * (t.threshold - z)) ** 2 for t in self.terms)

    def margins_at_start(self):
        """Return nothing: the first convex problem leaves out rows of unknown labels."""
        return None

    def labels(self, z):
        """Return the share q of the label +1 in the rows of unknown labels, the best one for their values in z."""
        f = z[~self.known]
        return shares(self.losses(f) - self.losses(-f), self.counts[~self.known], self.positive)

    def convexified(self, z, error=0.0):
        """Return the form of the convex problem that touches the objective at margins z, and what its values lack."""
        straight, turned = self.known.astype(float), np.zeros(len(self.y))
        if z is not None and not self.known.all():
            q = self.labels(z)
            straight[~self.known], turned[~self.known] = self.unknown * q, self.unknown * (1.0 - q)
        pairs = [(t, straight) for t in self.terms] + [(mirrored(t), turned) for t in self.terms]
        pairs = [(term, own) for term, own in pairs if term.weight > 0 and own.any()]
        by_row = RowTerms(weights=np.array([own for _, own in pairs])) if pairs else None
        column = Column(self.y, self.counts, 0.0, 0.0, tuple(term for term, _ in pairs), by_row=by_row)
        return MarginForm(self.features, (column,), self.bias), 0.0

    def look(self, solution):
        """Return the objective of a solution, and its margins (decision values where the label is unknown)."""
        half_norm, f = self.decided(solution)
        z = self.y * f
        value = half_norm + float(self.counts[self.known] @ self.losses(z[self.known]))
        if not self.known.all():
            q, own = self.labels(z), z[~self.known]
            each = q * self.losses(own) + (1.0 - q) * self.losses(-own)
            value += self.unknown * float(self.counts[~self.known] @ each)
        return value, z


class SemiODM(mdlearn.Objective):
    """Semi-supervised ODM: rows of unknown labels are drawn into the band of the label that costs less.

    ``1/2 |w|^2 + C/(1 - theta)^2 [sum_known l(y f) + unknown sum_unknown (q l(f) + (1 - q) l(-f))]``

    with l(z) = max(0, 1 - theta - z)^2 + mu max(0, z - 1 - theta)^2. Labels of unknown rows are found as well: q is 1
    for the rows that the label +1 costs least, 0 for the others, so many that +1 has the share that it has among known
    labels (where a row, or some that cost the same, would be too much, a part of it). y is -1 where unknown (NaN among
    floats).

    This is not convex. The certificate is of kind "residual" and claims a stationary point only: its gap is what the
    convex problem of the best labels could still save. Which one is found is settled by the way: from the machine of
    the known labels, downwards.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0.
    mu : float, default 0.5
        Weight of margins beyond the band, relative to those short of it, >= 0.
    theta : float, default 0.2
        Half the width of the band, in [0, 1).
    unknown : float, default 0.1
        Weight of a row of unknown label, relative to one of known label, >= 0.

    Notes
    -----
    Certain: the problem, labels as part of the minimum with a given share of each. Reading: labels and machine in turn
    where the paper relaxes the labels to a convex problem; labels by parts; one class against the rest for more
    than two.

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Semi-supervised optimal margin distribution machines", IJCAI 2018.
    T. Joachims, "Transductive inference for text classification using support vector machines", ICML 1999.
    """

    name = "semi_odm"
    summary = "optimal margin distribution machine with rows of unknown labels"
    formula = "1/2 |w|^2 + C/(1-theta)^2 [sum_known l(y f) + unknown sum_unknown (q l(f) + (1-q) l(-f))]"
    parameters: ClassVar = {
        **BAND,
        "unknown": Parameter(0.1, "weight of a row of unknown label, relative to one of known label"),
    }
    multiclass = ("ovr",)
    task = SEMI_SUPERVISED

    def form(self, data, features, bias, params):
        """Return one problem for two classes, else one per class against the rest."""
        known, k = data.codes >= 0, len(data.classes)
        own = known, data.counts, bias, band_terms(params), params["unknown"]
        parts = []
        for code in [1] if k == 2 else range(k):
            y = np.where(known & (data.codes != code), -1.0, 1.0)
            parts.append(UnknownLabelsProblem(features, y, *own))
        return TouchedForm(features, bias, parts)
