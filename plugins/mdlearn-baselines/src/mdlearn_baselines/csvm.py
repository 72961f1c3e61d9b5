"""Linear machines of clusters: tied to each other (CSVM), or each for itself."""

import math
from typing import ClassVar

from mdlearn.extend import HingeTerm, Parameter, Terms
from mdlearn_baselines.local import OFFSET, Local, LocalMap


class CSVM(Local):
    """CSVM: one linear SVM per cluster, all drawn to a common one.

    ``lam/2 |w|^2 + 1/2 sum_l |w_l - w|^2 + C sum max(0, 1 - z)``, f(x) = w_l . x for x in cluster l

    That is a linear SVM on the features (x / sqrt(lam); x in the block of its cluster), hence convex and certified.
    With a small lam the common w costs little, and all w_l come close to it; a large one leaves an SVM per cluster
    (`ClusterSVM`).

    Parameters
    ----------
    lam : float, default 1
        Weight of the common w, > 0.
    C : float, default 1
        Weight of the summed loss, >= 0.
    n_clusters : int, default 10
        Number of clusters, at most the number of distinct rows: mdlearn's weighted k-means; x belongs to the nearest
        centre.
    offset : float, default 1
        x stands for (x, offset) in the formula: so each cluster has an intercept of its own, drawn to a common one. 0:
        the formula as printed, without intercepts. Appending a constant to X by hand comes to the same.

    Notes
    -----
    Models have `centers_` (K, d) and `coef_` (p, K, d + 1): w_l and, last, the intercept of cluster l.

    Certain: formula and features. Readings: `offset`; k-means from k-means++ seeds; more than two classes one against
    the rest (the paper's machine is binary), over the same clusters. `bias` other than "none" adds one intercept for
    all clusters.

    References
    ----------
    Q. Gu and J. Han, "Clustered support vector machines", AISTATS 2013.
    """

    name: ClassVar = "csvm"
    summary: ClassVar = "clustered SVM: a linear SVM per cluster, all drawn to a common one"
    formula: ClassVar = "lam/2 |w|^2 + 1/2 sum_l |w_l - w|^2 + C sum max(0, 1 - z), f(x) = w_l(x) . x"
    parameters: ClassVar = {
        "lam": Parameter(1.0, "weight of the common w", strict=True),
        "C": Parameter(1.0, "weight of the summed loss"),
        "n_clusters": Parameter(10, "number of clusters", low=1, integer=True),
        "offset": OFFSET,
    }

    def placed(self, centers, params):
        """x in the block of its cluster, and x / sqrt(lam) in a block of all rows."""
        return LocalMap(centers, 1, params["offset"], 1.0 / math.sqrt(params["lam"]))

    def terms(self, params, total):
        """The hinge loss, summed."""
        return Terms(loss=(HingeTerm(params["C"]),))


class ClusterSVM(Local):
    """One linear SVM for each cluster, without any tie.

    ``sum_l 1/2 |w_l|^2 + C sum max(0, 1 - z)``, f(x) = w_l . x for x in cluster l

    The block-diagonal case of CSVM (lam to infinity). One problem with one certificate; each cluster's part of it is
    the SVM of its rows alone.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0.
    n_clusters : int, default 10
        As for CSVM.
    offset : float, default 1
        x stands for (x, offset): each cluster's own intercept, whose square counts as those of its coefficients do. A
        large offset makes it nearly free. 0: none.

    Notes
    -----
    Models have `centers_` (K, d) and `coef_` (p, K, d + 1): w_l and, last, the intercept of cluster l.

    A cluster whose rows are of one class has the shortest (w_l, b_l) that takes their margins to 1, as far as C pays
    for it: with an offset and a large enough C its rows get their class; new rows can lie beyond the plane. Without an
    offset the plane goes through the origin, even where that cuts the cluster. `bias` other than "none" adds one
    intercept for all clusters; they are then no longer apart.

    The baseline has no paper of its own: that intercepts are regularized is a choice, the rest is its name.
    """

    name: ClassVar = "cluster_svm"
    summary: ClassVar = "one linear SVM per cluster"
    formula: ClassVar = "sum_l 1/2 |w_l|^2 + C sum max(0, 1 - z), f(x) = w_l(x) . x"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight of the summed loss"),
        "n_clusters": Parameter(10, "number of clusters", low=1, integer=True),
        "offset": OFFSET,
    }

    def placed(self, centers, params):
        """x in the block of its cluster."""
        return LocalMap(centers, 1, params["offset"])

    def terms(self, params, total):
        """The hinge loss, summed."""
        return Terms(loss=(HingeTerm(params["C"]),))
