"""Linear problems on dense rows: hinge, squared hinge, and one factorisation."""

from functools import partial

import numpy as np
from scipy.linalg import cholesky

import mdlearn

from .contest import Case, Contest, Rival, certified, reaching
from .methods import newton_squared_hinge
from .references import interior_point
from .workloads import gaussians

W1, W2 = (100_000, 51), (20_000, 1001, 2.5)
"""Rows, columns, and half the distance of the two centres where it is not the usual one."""
GAP, SQUARED_GAP = 1e-8, 1e-10


def hinge(shape, lambda1=None, tolerances=()):
    """SVM, or LDM with lambda1, against an interior point method; and LinearSVC at the first tolerance that is enough.

    Parameters
    ----------
    shape : tuple
        As W1.
    tolerances : sequence of float
        LinearSVC takes the first one that brings it within 1e-7 of the bound, else the last; none: it is left out.
    """
    X, y = gaussians(*shape)
    weights = {"C": 1.0} if lambda1 is None else {"C": 1.0, "lambda1": lambda1, "lambda2": 1.0}
    name = "svm" if lambda1 is None else "ldm"
    newest = partial(interior_point, X, y, tol=GAP, **weights)
    floor = partial(np.matmul, X, np.ones(X.shape[1]))
    told = reaching(newest, lambda found: found[2], "the NumPy interior point", GAP)
    rivals = [Rival("numpy", "interior point", newest, told, 0.5, ran=True), Rival("floor", "one pass", floor)]
    if tolerances:
        bound = mdlearn.fit(name, X, y, bias="none", tol=GAP, **weights).certificate.lower_bound
        rivals.append(linear_svc(X, y, bound, 1e-7, tolerances, 0.05, max_iter=20_000))
    fit = partial(mdlearn.fit, name, X, y, bias="none", tol=GAP, **weights)
    return Contest(certified(fit, GAP), rivals)


def linear_svc(X, y, bound, enough, tolerances, goal, C=1.0, max_iter=1000):
    """LIBLINEAR's hinge loss at the first tolerance that brings it within `enough` of a proven bound, else the last."""
    from sklearn.svm import LinearSVC

    far = np.inf
    for tol in tolerances:
        peer = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=tol, max_iter=max_iter, random_state=0)
        w = peer.fit(X, y).coef_[0]
        value = 0.5 * w @ w + C * np.maximum(0.0, 1.0 - y * (X @ w)).sum()
        far = (value - bound) / value
        if far <= enough:
            break
    return Rival("package", "LinearSVC", partial(peer.fit, X, y), f"{far:.0e}", goal, True)


def squared_hinge(shape, tol):
    """Squared hinge against Newton's method in NumPy, and LinearSVC's primal method at a given tolerance."""
    from sklearn.svm import LinearSVC

    X, y = gaussians(*shape)
    newton = partial(newton_squared_hinge, X, y, tol=SQUARED_GAP)
    told = reaching(newton, lambda found: found[2], "the NumPy Newton", SQUARED_GAP)
    best = newton()[1]
    peer = LinearSVC(C=1.0, loss="squared_hinge", dual=False, fit_intercept=False, tol=tol, max_iter=1000)
    w = peer.fit(X, y).coef_[0]
    far = (0.5 * w @ w + (np.maximum(0.0, 1.0 - y * (X @ w)) ** 2).sum() - best) / best
    fit = partial(mdlearn.fit, "lsvm", X, y, nu=2.0, bias="none", tol=SQUARED_GAP)
    rivals = (
        Rival("package", "LinearSVC, primal", partial(peer.fit, X, y), f"{far:.0e}", ran=True),
        Rival("numpy", "Newton", newton, told, 1.0, ran=True),
        Rival("floor", "X'X", partial(np.matmul, X.T, X)),
    )
    return Contest(certified(fit, SQUARED_GAP), rivals)


def one_factorisation(m, d):
    """ULDM against the Cholesky factorisation of its matrix, the matrix made as well."""
    X, y = gaussians(m, d)

    def reference():
        A = X.T @ X
        A[np.diag_indices_from(A)] += 1.0
        return cholesky(A, lower=True, overwrite_a=True)

    fit = partial(mdlearn.fit, "uldm", X, y)
    return Contest(certified(fit, 1e-6), [Rival("floor", "X'X + Cholesky", reference, "", 1.2)])


CASES = (
    Case("W1", "svm", partial(hinge, W1, tolerances=(1e-5,))),
    Case("W1", "ldm, lambda1 = 0", partial(hinge, W1, 0.0)),
    Case("W1", "ldm, lambda1 = 1", partial(hinge, W1, 1.0)),
    Case("W1", "ldm, lambda1 = m/4", partial(hinge, W1, W1[0] / 4)),
    Case("W2", "svm", partial(hinge, W2)),
    Case("W2", "ldm, lambda1 = 1", partial(hinge, W2, 1.0)),
    Case("W2", "ldm, lambda1 = m/4", partial(hinge, W2, W2[0] / 4)),
    Case("W1", "squared hinge", partial(squared_hinge, W1, 1e-6)),
    Case("W2", "squared hinge", partial(squared_hinge, W2, 1e-6)),
    Case("ULDM", "uldm, 20000 x 1000", partial(one_factorisation, 20_000, 1000)),
)
