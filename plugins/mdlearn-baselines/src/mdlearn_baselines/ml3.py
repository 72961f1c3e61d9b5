"""ML3: the multi-class latent locally linear SVM (Fornoni, Caputo and Orabona, 2013)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import mdlearn
from mdlearn.extend import BLOCK_ENTRIES, FeatureMap, Parameter, Setting, check_number, choose, distinct, in_time, steps
from mdlearn_baselines.latent import LatentFeatures, LatentProblem, scores_of
from mdlearn_baselines.local import OFFSET, LocalMap, optional_count

LATENT = 5
"""Default number of latent functions, where there are so many distinct rows."""


@dataclass(frozen=True, eq=False)
class LatentMap(FeatureMap):
    """Scores f_c(x) = max beta' W_c (x, offset) over beta >= 0, |beta|_p <= 1: `scores` makes them of W.

    Attributes
    ----------
    d, k, r : int
        Columns, classes, latent functions per class.
    p : float
        1 < p <= 2.
    offset : float
    """

    d: int
    k: int
    r: int
    p: float
    offset: float
    linear: ClassVar = False

    @property
    def q(self) -> float:
        """1/p + 1/q = 1."""
        return self.p / (self.p - 1.0)

    @property
    def columns(self) -> int:
        """d."""
        return self.d

    @property
    def length(self) -> int:
        """Columns of W_c."""
        return self.d + (self.offset > 0)

    @property
    def width(self) -> int:
        """Coefficients of one problem: of one class, or of both where there are two."""
        return self.r * self.length * (2 if self.k == 2 else 1)

    def features(self, A):
        """There are none that coefficients multiply."""
        raise ValueError("scores of latent functions are not linear in their coefficients; ask for scores")

    def flat(self, W):
        """W (D, k, r) as a model keeps it, (k, r D), or (1, 2 r D) for two classes."""
        return np.ascontiguousarray(W.transpose(1, 2, 0)).reshape(-1, self.width)

    def shown(self, coef):
        """(k, r, D), for two classes (1, 2, r, D)."""
        return (
            coef.reshape(coef.shape[0], -1, self.r, self.length)
            if self.k == 2
            else coef.reshape(self.k, self.r, self.length)
        )

    def values(self, A, W):
        """W_c (x, offset) of rows, shape (n, k, r), for W (D, k, r)."""
        flat = W.reshape(W.shape[0], -1)
        Z = A.dot(flat[: self.d])
        if self.offset:
            Z += self.offset * flat[-1]
        return Z.reshape(-1, self.k, self.r)

    def scores(self, A, coef):
        """f_c of new rows, shape (n, k); f_1 - f_0 (n, 1) for two classes."""
        W = coef.astype(np.float64, copy=False).reshape(self.k, self.r, self.length).transpose(2, 0, 1)
        F = np.empty((A.shape[0], self.k))
        for part in steps(A.shape[0], BLOCK_ENTRIES // (self.k * self.r)):
            F[part] = scores_of(self.values(A.take(part), W), self.q)[0]
        return F if self.k > 2 else F[:, 1:] - F[:, :1]

    def encoded(self) -> dict[str, Any]:
        """All attributes."""
        return {"d": self.d, "k": self.k, "r": self.r, "p": self.p, "offset": self.offset}

    @classmethod
    def decoded(cls, values: Mapping[str, Any]):
        """The map of `encoded`."""
        d, k, r = (
            check_number(values[name], name, low=low, integer=True) for name, low in (("d", 1), ("k", 2), ("r", 1))
        )
        p = check_number(values["p"], "p", low=1.0, high=2.0, strict=True)
        return cls(d, k, r, p, check_number(values["offset"], "offset", low=0.0))


class ML3(mdlearn.Objective):
    """ML3: every class takes the best mixture of some linear functions, for each row anew.

    ``lam/2 |W|^2 + mean_i max(0, 1 + f_c(x_i) - f_(y_i)(x_i))``, the largest over the other classes c

    f_c(x) = max beta' W_c x over beta >= 0, |beta|_p <= 1: the length |max(W_c x, 0)|_q with 1/p + 1/q = 1. The smaller
    p, the more one function decides alone. One problem for all classes; of two, the decision value is f_1 - f_0.

    The problem is not convex, because of f_y. The certificate is of kind "residual" and has no lower bound: the gap is
    what a step of the concave-convex procedure (with the present beta of every row's own class) could still save, in
    units of the objective. "converged" means that there is no more to save in this way, and nothing more. Which such
    point it is depends on the start.

    Parameters
    ----------
    lam : float, default 1e-3
        Weight of the squared norm, > 0.
    n_latent : int, default min(5, number of distinct rows)
        Number of linear functions per class, at most the number of distinct rows.
    p : float, default 1.5
        1 < p <= 2.
    offset : float, default 1
        Constant beside x, which makes every linear function's own intercept; it counts in |W|^2. 0: there is none.

    Raises
    ------
    ValueError
        At fit with another bias than "none": a common intercept of scores that are >= 0 has no meaning here.

    Notes
    -----
    Models have `coef_` (k, n_latent, d + 1), or (1, 2, n_latent, d + 1) for two classes, the intercept last (d without
    an offset), and no `dual_coef_`. Every row takes some arrays of k n_latent numbers.

    Certain: f, the loss, p = 1.5, that the paper alternates between beta and W. Readings: the start (beta from the
    distances to k-means centres, mdlearn's own, W from the class means that these code), 1 as the margin, the mean of
    the losses, the offset, the defaults. The steps are Newton's on ever less rounded corners, with beta following W,
    in place of stochastic gradients: only the end counts. Large problems take long to small gaps; there
    a `tol` of 1e-2 or a `time_limit` will do.

    References
    ----------
    M. Fornoni, B. Caputo and F. Orabona, "Multiclass latent locally linear support vector machines", ACML 2013.
    """

    name = "ml3"
    summary = "multi-class latent locally linear SVM"
    formula = "lam/2 |W|^2 + mean max(0, 1 + f_c - f_y), f_c(x) = max beta' W_c x over beta >= 0, |beta|_p <= 1"
    parameters: ClassVar = {
        "lam": Parameter(1e-3, "weight of the squared norm", strict=True),
        "n_latent": Setting(
            None, "number of latent functions per class, by default min(5, distinct rows)", optional_count
        ),
        "p": Parameter(1.5, "length of beta that is bounded, 1 < p <= 2", low=1.0, high=2.0, strict=True),
        "offset": OFFSET,
    }
    default_bias: ClassVar = "none"
    multiclass: ClassVar = ("joint",)
    kernels = False
    feature_map: ClassVar = LatentMap

    def complete(self, params, data):
        """The default number of latent functions."""
        if params["n_latent"] is not None:
            return params
        return {**params, "n_latent": min(LATENT, len(distinct(data.X, data.counts)))}

    def features(self, data, kernel, params, rng):
        """Rows as they are, with the first beta: their local coding by the centres of k-means."""
        points, seed, r = distinct(data.X, data.counts), int(rng.integers(2**31)), params["n_latent"]
        centers = yield from in_time(choose("kmeans", points, r, seed, "n_latent"))
        near, gamma = LocalMap(centers, r, 0.0).members(data.X)
        beta = np.empty((data.X.shape[0], r))
        np.put_along_axis(beta, near, gamma, axis=1)
        beta /= (beta ** params["p"]).sum(axis=1, keepdims=True) ** (1.0 / params["p"])
        place = LatentMap(data.X.shape[1], data.classes.shape[0], r, params["p"], params["offset"])
        return LatentFeatures(data.X, map=place, first=beta)

    def form(self, data, features, bias, params):
        """One problem for all classes."""
        if bias != "none":
            raise ValueError(f"objective 'ml3' has its constant beside x (offset); got bias={bias!r}, give bias='none'")
        return LatentProblem(features, data.codes, data.counts / data.total, params["lam"])
