"""The classifier of local linear machines over landmarks."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mdlearn.objectives.base import Objective
from mdlearn.objectives.l3svm import L3SVM
from mdlearn.sklearn.base import KernelClassifier
from mdlearn.sklearn.documents import estimator


@estimator
class L3SVMClassifier(KernelClassifier):
    """Local linear SVMs in a landmark space, one per cluster.

    ``1/2 |theta|^2 + C/m sum max(0, 1 - z)``, z the margins y f(x), f(x) = theta_k . mu(x) + b for x in cluster k,
    where mu(x) are the projections of x on landmarks. A kernel is one on the landmark space.

    Parameters
    ----------
    %(own)s
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
