"""The classifier of local linear machines over landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mdlearn.objectives.base import Objective
from mdlearn.objectives.l3svm import L3SVM
from mdlearn.sklearn.base import KernelClassifier
from mdlearn.sklearn.documents import described


@described
@dataclass(eq=False, repr=False, kw_only=True)
class L3SVMClassifier(KernelClassifier):
    """Local linear SVMs in a landmark space, one per cluster.

    ``1/2 |theta|^2 + C/m sum max(0, 1 - z)``, z the margins y f(x), f(x) = theta_k . mu(x) + b for x in cluster k,
    where mu(x) are the projections of x on landmarks. A kernel is one on the landmark space.

    Parameters
    ----------
    C : float, default 100
        Weight of the mean loss, >= 0.
    n_clusters : int, optional
        Number K of clusters; default 10 (fewer where there are fewer distinct rows), or as many as `centers` has.
    n_landmarks : int, optional
        Number L of landmarks; default min(d, number of distinct rows), or as many as `landmarks` has.
    centers : array-like of shape (K, d), optional
        Centres of the clusters; default: found by `clustering`.
    landmarks : array-like of shape (L, d), optional
        Default: found by `landmark_selection`.
    clustering : {"kmeans"} or callable, default "kmeans"
        Weighted k-means, or f(X, K, seed) -> centres.
    landmark_selection : {"random", "pca", "kmeans"} or callable, default "random"
        Distinct rows at random, principal directions, centres of k-means, or f(X, L, seed) -> landmarks.
    projection : {"dot", "rbf"} or callable, default "dot"
        mu(x, l) = x . l or exp(-|x - l|^2 / sigma), or f(A, B) -> array of shape (n, L).
    sigma : float, optional
        Width of "rbf", > 0, in squared units of X; default d.
    loss : {"hinge", "squared_hinge"}, default "hinge"
        The paper's loss, or that of the authors' code.
    smoothness : float, default 0
        rho >= 0, which pulls the coefficients of close clusters together.
    membership : {"hard", "soft"}, default "hard"
        "soft": a row belongs to its 4 nearest clusters.
    n_levels : int, default 1
        Fits one after the other: landmarks of the next are the support vectors of the last.
    n_restarts : int, default 1
        Runs of k-means, of which the best counts.
    %(shared)s

    Attributes
    ----------
    %(attributes)s
    centers_ : ndarray of shape (K, d)
        Centres of the clusters.
    landmarks_ : ndarray of shape (L, d)
        Landmarks.
    folded_coef_ : ndarray of shape (p, K, d)
        Coefficients of x itself in every cluster ("dot" and linear kernel only). `coef_` has shape (p, K, L).

    References
    ----------
    V. Zantedeschi, R. Emonet and M. Sebban, "L3-SVMs: landmarks-based linear local support vector machines", 2017.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mdlearn.sklearn import L3SVMClassifier
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> clf = L3SVMClassifier(n_clusters=8).fit(X, y)
    >>> clf.coef_.shape
    (1, 8, 2)
    """

    C: float = 100.0
    n_clusters: int | None = None
    n_landmarks: int | None = None
    centers: Any = None
    landmarks: Any = None
    clustering: Any = "kmeans"
    landmark_selection: Any = "random"
    projection: Any = "dot"
    sigma: float | None = None
    loss: str = "hinge"
    smoothness: float = 0.0
    membership: str = "hard"
    n_levels: int = 1
    n_restarts: int = 1
    _objective: ClassVar[type[Objective] | None] = L3SVM

    @property
    def centers_(self) -> np.ndarray:
        """Centres of the clusters, shape (K, d)."""
        found: np.ndarray = self._fitted.centers_
        return found

    @property
    def landmarks_(self) -> np.ndarray:
        """Landmarks, shape (L, d)."""
        found: np.ndarray = self._fitted.landmarks_
        return found

    @property
    def folded_coef_(self) -> np.ndarray:
        """Coefficients of x itself in every cluster, shape (p, K, d)."""
        return self._fitted.folded_coef_
