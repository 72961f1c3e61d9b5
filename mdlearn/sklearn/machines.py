"""Classifiers with the hinge loss or its square."""

from __future__ import annotations

from typing import Any, ClassVar

from mdlearn.objectives.base import Objective
from mdlearn.objectives.ldm import LDM
from mdlearn.objectives.lsvm import LSVM
from mdlearn.objectives.svm import SVM
from mdlearn.sklearn.base import KernelClassifier
from mdlearn.sklearn.documents import estimator


@estimator
class LDMClassifier(KernelClassifier):
    """Large margin distribution machine: the hinge loss with margin variance and mean.

    ``1/2 |w|^2 + 2 lambda1 Var(z) - lambda2 mean(z) + C sum max(0, 1 - z)``, z the margins y f(x).

    Parameters
    ----------
    %(own)s
    %(shared)s

    Attributes
    ----------
    %(attributes)s

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


@estimator
class SVMClassifier(KernelClassifier):
    """Support vector machine: the hinge loss.

    ``1/2 |w|^2 + C sum max(0, 1 - z)``, z the margins y f(x).

    Parameters
    ----------
    %(own)s
    %(shared)s

    Attributes
    ----------
    %(attributes)s

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


@estimator
class LSVMClassifier(KernelClassifier):
    """Lagrangian support vector machine: the squared hinge loss.

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
    basis_indices_ : ndarray of intp, or tuple of these
        With `reduced`: the training rows whose kernel columns were used (of each pair of classes).

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
    def basis_indices_(self) -> Any:
        """Training rows whose kernel columns were used; there with `reduced`."""
        return self._fitted.basis_indices_
