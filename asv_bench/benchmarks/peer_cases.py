"""The cases of the table of peers: for each a fit, what it is measured against, and the precision of both."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter, process_time

import numpy as np
from scipy.linalg import cholesky

import mdlearn
from mdlearn.datasets import ndc

from .methods import apg_rows, newton_squared_hinge, two_passes
from .references import gram_and_cholesky, interior_point
from .workloads import gaussians, noisy_digits, ringnorm, several_classes, words

SMALL_GAP = 1e-8


@dataclass(frozen=True)
class Case:
    """One row of the table.

    Attributes
    ----------
    name, objective, against, goal : str
    prepare : callable
        prepare() returns (ours, reference, precision): two callables, the first returning a Model, and what precision
        the reference reaches, in words. Both check themselves.
    clock : callable
        What is compared: wall time, or the CPU time of the process where both sides use one thread.
    repeats : int
        Pairs of times, or 0: what the command line says.
    """

    name: str
    objective: str
    against: str
    goal: str
    prepare: Callable
    clock: Callable = process_time
    repeats: int = 0


def certified(fit, gap):
    """A fit that has to end with a certified gap."""

    def ours():
        model = fit()
        if not model.certificate.gap <= gap:
            raise RuntimeError(f"mdlearn stopped at the gap {model.certificate.gap:.2g}")
        return model

    return ours


def linear(shape, name, lambda1, gap=SMALL_GAP):
    """A dense linear problem against the NumPy interior point method, both to the same gap."""
    X, y = gaussians(*shape)
    lambda1 = lambda1 * shape[0] if lambda1 < 1 else lambda1
    weights = {"C": 1.0} if name == "svm" else {"C": 1.0, "lambda1": lambda1, "lambda2": 1.0}

    def reference():
        found = interior_point(X, y, tol=gap, **weights)[2]
        if not found <= gap:
            raise RuntimeError(f"the NumPy interior point stopped at the gap {found:.2g}")

    fit = partial(mdlearn.fit, name, X, y, bias="none", tol=gap, **weights)
    return certified(fit, gap), reference, f"gap {gap:g}"


def against_liblinear(data, gap, C=1.0, **weights):
    """SVM, or LDM with weights, against LIBLINEAR's SVM at the largest of some tolerances that takes it to `gap`."""
    from sklearn.svm import LinearSVC

    X, y = data()
    bound = mdlearn.fit("svm", X, y, C=C, bias="none", tol=1e-8).certificate.lower_bound
    far = np.inf
    for tol in (1e-3, 3e-4, 1e-4, 3e-5, 1e-5):
        peer = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=tol, max_iter=1000, random_state=0)
        w = peer.fit(X, y).coef_[0]
        value = 0.5 * w @ w + C * np.maximum(0.0, 1.0 - y * (X @ w)).sum()
        far = (value - bound) / value
        if far <= gap:
            break
    fit = partial(mdlearn.fit, "ldm" if weights else "svm", X, y, C=C, bias="none", tol=gap, **weights)
    return certified(fit, gap), partial(peer.fit, X, y), f"{far:.1e} above the bound"


def squared_hinge(shape):
    """Squared hinge against Newton's method in NumPy."""
    X, y = gaussians(*shape)

    def reference():
        gap = newton_squared_hinge(X, y, tol=1e-10)[2]
        if not gap <= 1e-10:
            raise RuntimeError(f"the NumPy Newton stopped at the gap {gap:.2g}")

    return certified(partial(mdlearn.fit, "lsvm", X, y, nu=2.0, bias="none", tol=1e-10), 1e-10), reference, "gap 1e-10"


def kernel_ldm(m, lambda1):
    """Kernel LDM against its Gram matrix and one Cholesky factorisation."""
    X, y = ringnorm(m)
    gamma = 1 / (X.shape[1] * X.var())
    lambda1 = m * lambda1 if lambda1 < 0.01 else lambda1
    fit = partial(mdlearn.fit, "ldm", X, y, kernel="rbf", C=1.0, lambda1=lambda1, lambda2=2**-4, bias="none")
    return certified(fit, 1e-6), partial(gram_and_cholesky, X, gamma), "exact"


def kernel_svm(m):
    """Kernel SVM against LIBSVM at the largest of some tolerances that takes it to 1e-6, both with a free bias."""
    from sklearn.svm import SVC

    X, y = ringnorm(m)
    fit = partial(mdlearn.fit, "svm", X, y, kernel="rbf", bias="free")
    best = fit(tol=1e-9).certificate.objective
    far = np.inf
    for tol in (1e-3, 1e-4, 1e-5):
        peer = SVC(C=1.0, gamma="scale", tol=tol).fit(X, y)
        alpha, f = np.zeros(m), peer.decision_function(X)
        alpha[peer.support_] = peer.dual_coef_[0]
        value = 0.5 * alpha @ (f - peer.intercept_[0]) + np.maximum(0.0, 1.0 - y * f).sum()
        far = (value - best) / best
        if far <= 1e-6:
            break
    return certified(fit, 1e-6), partial(peer.fit, X, y), f"{far:.1e} above the optimum"


def lsvm(m, solver):
    """LSVM on many rows: Newton against Newton, the fixed point against two bare passes per iteration."""
    X, y = ndc(m, 32, random_state=0)[:2]
    X = np.hstack([X, np.ones((m, 1))])
    nu = 1.0 / m
    if solver == "newton":
        ours = certified(partial(mdlearn.fit, "lsvm", X, y, nu=nu, bias="none", solver="newton"), 1e-6)
        return ours, partial(newton_squared_hinge, X, y, C=nu / 2, tol=1e-6), "gap 1e-6"
    fit = partial(mdlearn.fit, "lsvm", X, y, nu=nu, bias="none", solver="smw", solver_options={"stop": "step"})
    return fit, partial(two_passes, X, y, fit().n_iter), "as many iterations"


def sparse_rows(m, d, k):
    """L2,1 over ten classes against accelerated gradients in NumPy, which know the optimum."""
    X, codes = several_classes(m, d, k)
    weights = {"alpha": 5.0, "lambda1": 0.1, "lambda2": 0.0, "beta": 0.01}
    fit = partial(mdlearn.fit, "mdlm", X, codes, bias="none", **weights)
    bound = fit(tol=1e-9).certificate.lower_bound

    def reference():
        _, value = apg_rows(X, codes, best=bound, tol=1e-6, **weights)
        if not value - bound <= 1e-6 * value:
            raise RuntimeError(f"the NumPy gradients stopped at {(value - bound) / value:.2g} above the bound")

    return certified(fit, 1e-6), reference, "1e-6 above the bound"


def local(m):
    """L3-SVM on noisy digits against k-means with as many clusters."""
    from sklearn.cluster import KMeans

    X, codes, X_test, test = noisy_digits(m)
    fit = partial(mdlearn.fit, "l3svm", X, codes, n_clusters=100, n_landmarks=64, loss="squared_hinge", C=100.0)
    share = fit().score(X_test, test)
    peer = KMeans(100, n_init=1, random_state=0)
    return certified(fit, 1e-6), partial(peer.fit, X), f"test accuracy {share:.3f}"


def one_factorisation(m, d):
    """ULDM against the Cholesky factorisation of its matrix, the matrix made as well."""
    X, y = gaussians(m, d)

    def reference():
        A = X.T @ X
        A[np.diag_indices_from(A)] += 1.0
        cholesky(A, lower=True, overwrite_a=True)

    return certified(partial(mdlearn.fit, "uldm", X, y), 1e-6), reference, "matrix and factor"


W1, W2, W3 = (100_000, 51), (20_000, 1001), 100_000
TEXT = partial(words, W3)
NUMPY, LIBLINEAR, FLOOR = "NumPy interior point", "LIBLINEAR (LinearSVC)", "Gram matrix + Cholesky"
CASES = (
    Case("W1", "svm", NUMPY, "0.5", partial(linear, W1, "svm", 0.0)),
    Case("W1", "ldm, lambda1 = 1", NUMPY, "", partial(linear, W1, "ldm", 1.0)),
    Case("W1", "ldm, lambda1 = m/4", NUMPY, "", partial(linear, W1, "ldm", 0.25)),
    Case("W1", "svm", LIBLINEAR, "0.05", partial(against_liblinear, partial(gaussians, *W1), 1e-7), repeats=1),
    Case("W1", "squared hinge", "NumPy Newton", "1", partial(squared_hinge, W1)),
    Case("W2", "svm", NUMPY, "0.5", partial(linear, W2, "svm", 0.0), repeats=1),
    Case("W2", "squared hinge", "NumPy Newton", "1", partial(squared_hinge, W2)),
    Case("W3", "svm", LIBLINEAR, "0.3", partial(against_liblinear, TEXT, 1e-6)),
    Case("W3", "ldm, lambda1 = 1", LIBLINEAR, "0.5", partial(against_liblinear, TEXT, 1e-6, lambda1=1.0, lambda2=1.0)),
    Case("W3", "ldm, lambda1 = m/4", LIBLINEAR, "0.5",
         partial(against_liblinear, TEXT, 1e-6, lambda1=W3 / 4, lambda2=1.0)),
    Case("W3", "svm, C = 10", LIBLINEAR, "0.3", partial(against_liblinear, TEXT, 1e-6, C=10.0), repeats=1),
    Case("W4a", "svm", "LIBSVM (SVC)", "1", partial(kernel_svm, 2000)),
    Case("W4a", "ldm, lambda1 = 1/16", FLOOR, "2.5", partial(kernel_ldm, 2000, 2**-4)),
    Case("W4a", "ldm, lambda1 = 1", FLOOR, "2.5", partial(kernel_ldm, 2000, 1.0)),
    Case("W4b", "svm", "LIBSVM (SVC)", "1", partial(kernel_svm, 5000)),
    Case("W4b", "ldm, lambda1 = 1/16", FLOOR, "2.5", partial(kernel_ldm, 5000, 2**-4)),
    Case("W5", "lsvm", "NumPy Newton", "0.7", partial(lsvm, 1_000_000, "newton")),
    Case("W5", "lsvm, fixed point", "two passes per iteration", "1", partial(lsvm, 1_000_000, "smw")),
    Case("W6", "mdlm, beta = 0.01", "NumPy APG", "0.7", partial(sparse_rows, 10_000, 500, 10)),
    Case("W7", "l3svm, dot, K = 100", "k-means (scikit-learn)", "1.5", partial(local, 20_000), clock=perf_counter),
    Case("ULDM", "uldm, 20000 x 1000", "X'X + Cholesky", "1.2", partial(one_factorisation, 20_000, 1000)),
)  # fmt: skip
