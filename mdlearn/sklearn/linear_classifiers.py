"""Linear classifiers for scikit-learn, of logistic losses, with probabilities."""

from __future__ import annotations

from typing import ClassVar

from mdlearn.objectives.base import Objective
from mdlearn.objectives.logistic import L2LR, MLR
from mdlearn.objectives.mdlm import MDLM
from mdlearn.objectives.mmlr import MMLR
from mdlearn.sklearn.base import CertifiedClassifier
from mdlearn.sklearn.documents import documented_estimator


@documented_estimator
class MDLMClassifier(CertifiedClassifier):
    """Linear classifier by the margin distribution logistic machine, sparse with beta > 0.

    ``mean GLL(z) + lambda1 Var(z) - lambda2 mean(z) + beta sum_j |W_j| + ridge/2 |W|^2``, z the margins y f(x), with
    GLL(z) = ln(1 + exp(-alpha (z - 1))) / alpha and W_j the coefficients of feature j in all classes.

    %(sections)s

    References
    ----------
    Y. Ding, C. Huang, D. Zu and Z. Zhang, "Margin distribution logistic machine", eq. (2.14) and (2.17).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import scale
    >>> from mdlearn.sklearn import MDLMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MDLMClassifier(beta=0.1).fit(scale(X), y)
    >>> clf.predict_proba(scale(X)[:1]).shape
    (1, 3)
    """

    alpha: float = 5.0
    lambda1: float = 1.0
    lambda2: float = 0.125
    beta: float = 0.0
    ridge: float = 1e-6
    _objective: ClassVar[type[Objective] | None] = MDLM


@documented_estimator
class L2LRClassifier(CertifiedClassifier):
    """Linear classifier by logistic regression with a squared norm.

    ``mean ln(1 + exp(-z)) + lam |w|^2``, z the margins y f(x).

    %(sections)s

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mdlearn.sklearn import L2LRClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(L2LRClassifier().fit(X, y).score(X, y) > 0.9)
    True
    """

    lam: float = 1e-3
    _objective: ClassVar[type[Objective] | None] = L2LR


@documented_estimator
class MLRClassifier(CertifiedClassifier):
    """Linear classifier by modified logistic regression, whose loss tends to the hinge as alpha grows.

    ``mean 1/alpha ln(1 + exp(-alpha (z - 1))) + lam |w|^2``, z the margins y f(x).

    %(sections)s

    References
    ----------
    J. Zhang, R. Jin, Y. Yang and A. G. Hauptmann, "Modified logistic regression", ICML 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mdlearn.sklearn import MLRClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(MLRClassifier(alpha=2).fit(X, y).score(X, y) > 0.9)
    True
    """

    alpha: float = 5.0
    lam: float = 1e-3
    _objective: ClassVar[type[Objective] | None] = MLR


@documented_estimator
class MMLRClassifier(CertifiedClassifier):
    """Linear classifier by a joint logistic machine of several classes, smooth version of Weston and Watkins' SVM.

    ``mean sum_(k != y) ln(1 + exp(-alpha (f_y - f_k - 2))) / alpha + lam sum_k |w_k|^2``

    %(sections)s

    References
    ----------
    Y. Ding, C. Huang, D. Zu and Z. Zhang, "Margin distribution logistic machine", eq. (2.16).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mdlearn.sklearn import MMLRClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(MMLRClassifier().fit(X, y).score(X, y) > 0.9)
    True
    """

    alpha: float = 5.0
    lam: float = 1e-3
    _objective: ClassVar[type[Objective] | None] = MMLR
