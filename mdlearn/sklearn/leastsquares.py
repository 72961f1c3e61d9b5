"""Classifiers without a loss, or with the squared one: Abe's unconstrained and least squares machines."""

from __future__ import annotations

from typing import Any, ClassVar

from mdlearn.objectives.base import Objective
from mdlearn.objectives.leastsquares import LSLDM, LSSVM
from mdlearn.objectives.uldm import ULDM
from mdlearn.sklearn.base import KernelClassifier
from mdlearn.sklearn.documents import estimator


@estimator
class ULDMClassifier(KernelClassifier):
    """Unconstrained large margin distribution machine: margin mean and variance, and the length of coefficients.

    ``C/2 |beta|^2 - mean(z) + lambda0/2 Var(z)``, z the margins y f(x), f(x) = sum_j beta_j k(x, z_j) + b.

    Parameters
    ----------
    %(own)s
    %(shared)s

    Attributes
    ----------
    %(attributes)s
    basis_indices_ : ndarray of intp, or tuple of these
        Training rows that make the basis (of each pair of classes), unless that is "euclidean".

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
    def basis_indices_(self) -> Any:
        """Training rows that make the basis; not with "euclidean"."""
        return self._fitted.basis_indices_


@estimator
class LSSVMClassifier(KernelClassifier):
    """Least squares support vector machine: every margin is drawn to 1.

    ``1/2 |w|^2 + C/2 sum (1 - z)^2``, z the margins y f(x).

    Parameters
    ----------
    %(own)s
    %(shared)s

    Attributes
    ----------
    %(attributes)s

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


@estimator
class LSLDMClassifier(KernelClassifier):
    """Least squares large margin distribution machine: the squared loss with margin mean and variance.

    ``1/2 |w|^2 - lambda1 mean(z) + lambda2/2 Var(z) + C/2 sum (1 - z)^2``, z the margins y f(x). The roles of lambda1
    and lambda2 are Abe's, opposite to those of `LDMClassifier`.

    Parameters
    ----------
    %(own)s
    %(shared)s

    Attributes
    ----------
    %(attributes)s

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
