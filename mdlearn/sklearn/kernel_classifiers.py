"""Kernel classifiers for scikit-learn: hinges, squares and landmarks."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mdlearn.objectives.base import Objective
from mdlearn.objectives.l3svm import L3SVM
from mdlearn.objectives.ldm import LDM
from mdlearn.objectives.leastsquares import LSLDM, LSSVM
from mdlearn.objectives.lsvm import LSVM
from mdlearn.objectives.odm import ODM
from mdlearn.objectives.svm import SVM
from mdlearn.objectives.uldm import ULDM
from mdlearn.sklearn.base import BaseKernelClassifier
from mdlearn.sklearn.documents import documented_estimator


@documented_estimator
class LDMClassifier(BaseKernelClassifier):
    """Kernel classifier by the large margin distribution machine: the hinge loss with margin variance and mean.

    ``1/2 |w|^2 + 2 lambda1 Var(z) - lambda2 mean(z) + C sum max(0, 1 - z)``, z the margins y f(x).

    %(sections)s

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Large margin distribution machine", KDD 2014, eq. (5).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mdlearn.sklearn import LDMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LDMClassifier(kernel="rbf", C=10).fit(X, y)
    >>> bool(clf.certificate_.gap <= 1e-10)
    True
    >>> clf.predict(X[[0, 75, 149]])
    array([0, 1, 2])
    """

    C: float = 1.0
    lambda1: float | None = None
    lambda2: float | None = None
    _objective: ClassVar[type[Objective] | None] = LDM


@documented_estimator
class ODMClassifier(BaseKernelClassifier):
    """Kernel classifier by the optimal margin distribution machine: margins outside a band around 1 are squared.

    ``1/2 |w|^2 + lam/(m (1 - theta)^2) sum [max(0, 1 - theta - z)^2 + mu max(0, z - 1 - theta)^2]``, z the margins
    y f(x), m the sum of the sample weights.

    %(sections)s

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Optimal margin distribution machine", IEEE TKDE 32(6), 2020 (arXiv:1604.03348).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mdlearn.sklearn import ODMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = ODMClassifier(kernel="rbf", theta=0.1).fit(X, y)
    >>> clf.certificate_.converged, bool(clf.score(X, y) > 0.95)
    (True, True)
    """

    lam: float | None = None
    mu: float = 0.5
    theta: float = 0.2
    _objective: ClassVar[type[Objective] | None] = ODM


@documented_estimator
class SVMClassifier(BaseKernelClassifier):
    """Kernel classifier by the support vector machine: the hinge loss.

    ``1/2 |w|^2 + C sum max(0, 1 - z)``, z the margins y f(x).

    %(sections)s

    Examples
    --------
    Three weights of 2 equal three rows given twice.

    >>> import numpy as np
    >>> from mdlearn.sklearn import SVMClassifier
    >>> X, y = np.array([[0.0], [1.0], [2.0], [4.0]]), [0, 0, 1, 1]
    >>> once = SVMClassifier().fit(X, y, sample_weight=[2, 2, 2, 1])
    >>> twice = SVMClassifier().fit(X[[0, 0, 1, 1, 2, 2, 3]], [0, 0, 0, 0, 1, 1, 1])
    >>> bool(np.allclose(once.coef_, twice.coef_))
    True
    """

    C: float = 1.0
    _objective: ClassVar[type[Objective] | None] = SVM


@documented_estimator
class LSVMClassifier(BaseKernelClassifier):
    """Kernel classifier by the Lagrangian support vector machine: the squared hinge loss.

    ``1/2 |w|^2 + nu/2 sum max(0, 1 - z)^2``, z the margins y f(x).

    Parameters
    ----------
    %(own)s
    C : float, optional
        Another name of `nu`; one of the two can be given.
    %(shared)s

    Attributes
    ----------
    %(attributes)s

    References
    ----------
    O. L. Mangasarian and D. R. Musicant, "Lagrangian support vector machines", JMLR 1, 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mdlearn.sklearn import LSVMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = make_pipeline(StandardScaler(), LSVMClassifier(nu=0.1)).fit(X, y)
    >>> bool(clf.score(X, y) > 0.97)
    True
    """

    nu: float | None = None
    reduced: Any = None
    C: float | None = None
    _objective: ClassVar[type[Objective] | None] = LSVM

    @property
    def basis_indices_(self) -> np.ndarray | tuple[np.ndarray, ...]:
        """With `reduced`: the training rows whose kernel columns were used (of each pair of classes)."""
        return self._fitted.basis_indices_


@documented_estimator
class ULDMClassifier(BaseKernelClassifier):
    """Kernel classifier by the unconstrained LDM: margin mean and variance, and the length of coefficients.

    ``C/2 |beta|^2 - mean(z) + lambda0/2 Var(z)``, z the margins y f(x), f(x) = sum_j beta_j k(x, z_j) + b.

    %(sections)s

    References
    ----------
    S. Abe, "Unconstrained large margin distribution machines", Pattern Recognition Letters 98, 2017, eq. (34)-(35).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mdlearn.sklearn import ULDMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = ULDMClassifier(kernel="rbf", basis="cholesky").fit(X, y)
    >>> clf.decision_function(X[:2]).shape
    (2, 3)
    """

    C: float = 1e-4
    lambda0: float = 1.0
    basis: Any = "auto"
    basis_tol: float = 1e-6
    c_scaling: str | None = None
    _objective: ClassVar[type[Objective] | None] = ULDM

    @property
    def basis_indices_(self) -> np.ndarray | tuple[np.ndarray, ...]:
        """Training rows that make the basis (of each pair of classes), unless that is "euclidean"."""
        return self._fitted.basis_indices_


@documented_estimator
class LSSVMClassifier(BaseKernelClassifier):
    """Kernel classifier by the least squares support vector machine: every margin is drawn to 1.

    ``1/2 |w|^2 + C/2 sum (1 - z)^2``, z the margins y f(x).

    %(sections)s

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from mdlearn.sklearn import LSSVMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> search = GridSearchCV(LSSVMClassifier(kernel="rbf"), {"C": [1, 10], "gamma": [0.1, 1.0]}, cv=3).fit(X, y)
    >>> bool(search.best_score_ > 0.9)
    True
    """

    C: float = 1.0
    _objective: ClassVar[type[Objective] | None] = LSSVM


@documented_estimator
class LSLDMClassifier(BaseKernelClassifier):
    """Kernel classifier by the least squares LDM: the squared loss with margin mean and variance.

    ``1/2 |w|^2 - lambda1 mean(z) + lambda2/2 Var(z) + C/2 sum (1 - z)^2``, z the margins y f(x). The roles of lambda1
    and lambda2 are Abe's, opposite to those of `LDMClassifier`.

    %(sections)s

    References
    ----------
    S. Abe, "Unconstrained large margin distribution machines", Pattern Recognition Letters 98, 2017, eq. (16)-(18).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mdlearn.sklearn import LSLDMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> LSLDMClassifier(lambda2=10).fit(X, y).certificate_.converged
    True
    """

    C: float = 1.0
    lambda1: float = 1.0
    lambda2: float = 1.0
    _objective: ClassVar[type[Objective] | None] = LSLDM


@documented_estimator
class L3SVMClassifier(BaseKernelClassifier):
    """Kernel classifier by local linear SVMs in a landmark space, one per cluster.

    ``1/2 |theta|^2 + C/m sum max(0, 1 - z)``, z the margins y f(x), f(x) = theta_k . mu(x) + b for x in cluster k,
    where mu(x) are the projections of x on landmarks. A kernel is one on that space; `coef_` has shape (p, K, L).

    %(sections)s

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
        return self._fitted.centers_

    @property
    def landmarks_(self) -> np.ndarray:
        """Landmarks, shape (L, d)."""
        return self._fitted.landmarks_

    @property
    def folded_coef_(self) -> np.ndarray:
        """Coefficients of x itself in every cluster, shape (p, K, d); with "dot" and a linear kernel only."""
        return self._fitted.folded_coef_
