"""Locally linear SVMs: coefficients that change smoothly from anchor to anchor."""

from typing import ClassVar

from mdlearn.extend import HingeTerm, Parameter, Setting, Terms, distinct
from mdlearn_baselines.local import OFFSET, Local, LocalMap, optional_count

ANCHORS = 100
"""Default number of anchors, where there are so many distinct rows."""


class LLSVM(Local):
    """LLSVM: a linear function per anchor, mixed by the local coding gamma(x).

    ``lam/2 |W|^2 + mean max(0, 1 - z)``, f(x) = gamma(x)' W x + gamma(x)' b

    gamma_v(x) is proportional to 1 / |x - c_v| over the 8 anchors nearest to x, with sum 1, and 0 for the others. Given
    the anchors f is linear in W and b, so the problem is convex, and certified; the paper approaches the same optimum
    by stochastic gradients.

    Parameters
    ----------
    lam : float, default 1e-3
        Weight of the squared norm, > 0.
    n_anchors : int, default min(100, number of distinct rows)
        Number of anchors, at most the number of distinct rows: mdlearn's weighted k-means.
    n_nearest : int, default 8
        Anchors that a row is coded by; all where there are fewer.
    offset : float, default 1
        b counts as |b|^2 / offset^2 in |W|^2: a constant beside x. A large offset comes close to the formula as
        printed, where b is free. 0: no b.

    Notes
    -----
    Models have `centers_` (K, d), the anchors, and `coef_` (p, K, d + 1): row v of W and, last, b_v. Every row takes
    n_nearest (d + 1) numbers of memory.

    Certain: f, the loss and the norm; 8 neighbours and k-means anchors. Readings: inverse Euclidean distance, not its
    square; an anchor at x itself has all weight; b in the norm (`offset`), because free b_v have no certificate here;
    the default numbers of anchors and of lam. Several classes one against the rest. `bias` other than "none" adds one
    intercept to all b_v.

    References
    ----------
    L. Ladicky and P. H. S. Torr, "Locally linear support vector machines", ICML 2011.
    """

    name: ClassVar = "llsvm"
    summary: ClassVar = "locally linear SVM: linear functions of anchors, mixed by a local coding"
    formula: ClassVar = "lam/2 |W|^2 + mean max(0, 1 - z), f(x) = gamma(x)' (W x + b)"
    parameters: ClassVar = {
        "lam": Parameter(1e-3, "weight of the squared norm", strict=True),
        "n_anchors": Setting(None, "number of anchors, by default min(100, distinct rows)", optional_count),
        "n_nearest": Parameter(8, "anchors that a row is coded by", low=1, integer=True),
        "offset": OFFSET,
    }
    number: ClassVar = "n_anchors"

    def complete(self, params, data):
        """The default number of anchors."""
        if params["n_anchors"] is not None:
            return params
        return {**params, "n_anchors": min(ANCHORS, len(distinct(data.X, data.counts)))}

    def placed(self, centers, params):
        """(x, offset) times gamma_v(x), for the anchors near x."""
        return LocalMap(centers, min(params["n_nearest"], centers.shape[0]), params["offset"])

    def terms(self, params, total):
        """lam times 1/2 |W|^2 + 1/(lam m) sum of the hinge loss."""
        return Terms(loss=(HingeTerm(1.0 / (params["lam"] * total)),), unit=params["lam"])
