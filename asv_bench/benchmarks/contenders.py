"""mdlearn and its peers on the same problems: the time of each, and how far above the optimum it ends.

Time alone says nothing: `track_suboptimality` of the same contender and shape stands beside `time_fit`. All solve the
same problem: the rows hold the bias as a column of ones, and the objective is evaluated here, from coefficients alone.
"""

import warnings
from time import process_time

import numpy as np

import mdlearn

from .methods import apg_rows, newton_squared_hinge
from .problems import PARAMS, rows
from .references import gram, interior_point


def _linear_svc(**settings):
    def fit(X, y):
        from sklearn.svm import LinearSVC

        return LinearSVC(fit_intercept=False, max_iter=5000, random_state=0, **settings).fit(X, y).coef_[0]

    return fit


def _ours(objective, **settings):
    return lambda X, y: mdlearn.fit(objective, X, y, bias="none", n_threads=1, **settings).coef_


class _Contest:
    """A problem, its contenders (a function of X and y each), and the value of what they return."""

    param_names = ["contender", "shape"]
    timeout = 300
    timer = process_time

    def setup(self, contender, shape):
        if contender not in self.contenders:
            raise NotImplementedError
        warnings.simplefilter("ignore")
        self.X, self.y = rows(shape)

    def time_fit(self, contender, shape):
        self.contenders[contender](self.X, self.y)

    def track_suboptimality(self, contender, shape):
        """(value - proven lower bound) / value."""
        bound = self.bound(self.X, self.y)
        value = self.value(self.X, self.y, self.contenders[contender](self.X, self.y))
        return (value - bound) / abs(value)

    track_suboptimality.unit = "relative distance to a proven bound"

    def bound(self, X, y):
        """The best lower bound that mdlearn proves."""
        return mdlearn.fit(self.objective, X, y, bias="none", tol=1e-10, **self.weights).certificate.lower_bound


class Hinge(_Contest):
    objective, weights = "svm", {"C": 1.0}
    contenders = {
        "mdlearn": _ours("svm", C=1.0, tol=1e-8),
        "LIBLINEAR": _linear_svc(C=1.0, loss="hinge", tol=1e-4),
        "NumPy interior point": lambda X, y: interior_point(X, y, tol=1e-8)[0],
    }
    params = [list(contenders), ["dense 5000 x 51", "dense 20000 x 51", "dense 2000 x 401"]]

    def value(self, X, y, w):
        w = np.ravel(w)
        return 0.5 * w @ w + np.maximum(0.0, 1.0 - y * (X @ w)).sum()


class HingeSparse(Hinge):
    contenders = {
        "mdlearn": _ours("svm", C=1.0, tol=1e-6),
        "LIBLINEAR": _linear_svc(C=1.0, loss="hinge", tol=3e-4),
    }
    params = [list(contenders), ["sparse 20000 x 50000", "sparse 50000 x 200000"]]


class SquaredHinge(_Contest):
    objective, weights = "lsvm", {"nu": 2.0}
    contenders = {
        "mdlearn": _ours("lsvm", nu=2.0, tol=1e-10),
        "LIBLINEAR, primal": _linear_svc(C=1.0, loss="squared_hinge", dual=False, tol=1e-6),
        "NumPy Newton": lambda X, y: newton_squared_hinge(X, y, tol=1e-10)[0],
    }
    params = [list(contenders), ["dense 20000 x 51", "dense 100000 x 51", "dense 4000 x 501"]]

    def value(self, X, y, w):
        w = np.ravel(w)
        return 0.5 * w @ w + (np.maximum(0.0, 1.0 - y * (X @ w)) ** 2).sum()


def _logistic(solver, tol):
    def fit(X, y):
        from sklearn.linear_model import LogisticRegression

        C = 1.0 / (2.0 * PARAMS["l2lr"]["lam"] * X.shape[0])
        settings = {"C": C, "fit_intercept": False, "tol": tol, "max_iter": 5000, "solver": solver}
        return LogisticRegression(**settings).fit(X, y).coef_[0]

    return fit


class Logistic(_Contest):
    objective, weights = "l2lr", PARAMS["l2lr"]
    contenders = {
        "mdlearn": _ours("l2lr", **PARAMS["l2lr"], tol=1e-8),
        "LogisticRegression, lbfgs": _logistic("lbfgs", 1e-6),
        "LogisticRegression, newton-cholesky": _logistic("newton-cholesky", 1e-6),
    }
    params = [list(contenders), ["dense 20000 x 51", "dense 100000 x 51", "dense 4000 x 401"]]

    def value(self, X, y, w):
        w = np.ravel(w)
        return np.logaddexp(0.0, -y * (X @ w)).mean() + PARAMS["l2lr"]["lam"] * w @ w


def _svc(X, y):
    from sklearn.svm import SVC

    peer = SVC(C=1.0, gamma="scale", tol=1e-4).fit(X, y)
    alpha = np.zeros(y.size)
    alpha[peer.support_] = peer.dual_coef_[0]
    return alpha, peer.intercept_[0]


def _kernel_svm(X, y):
    model = mdlearn.fit("svm", X, y, kernel="rbf", bias="free", tol=1e-6, n_threads=1)
    return model.dual_coef_.ravel(), float(np.ravel(model.intercept_)[0])


class KernelHinge(_Contest):
    contenders = {"mdlearn": _kernel_svm, "LIBSVM": _svc}
    params = [list(contenders), ["kernel 500", "kernel 1000", "kernel 2000"]]

    def value(self, X, y, found):
        alpha, bias = found
        f = gram(X, 1 / (X.shape[1] * X.var())) @ alpha
        return 0.5 * alpha @ f + np.maximum(0.0, 1.0 - y * (f + bias)).sum()

    def bound(self, X, y):
        return mdlearn.fit("svm", X, y, kernel="rbf", bias="free", tol=1e-10).certificate.lower_bound


class Rows(_Contest):
    """L2,1 over several classes; the NumPy user is told the optimum, and stops 1e-6 above it."""

    objective, weights = "mdlm", {"alpha": 5.0, "lambda1": 0.1, "lambda2": 0.0, "beta": 0.01, "ridge": 0.0}
    contenders = {"mdlearn": _ours("mdlm", **weights), "NumPy APG": None}
    params = [list(contenders), ["classes 2000 x 100 x 4", "classes 5000 x 200 x 10"]]

    def setup(self, contender, shape):
        super().setup(contender, shape)
        best = self.bound(self.X, self.y)
        weights = {name: value for name, value in self.weights.items() if name != "ridge"}  # it knows none
        apg = {"NumPy APG": lambda X, y: apg_rows(X, y, best=best, **weights)[0]}
        self.contenders = {**self.contenders, **apg}

    def value(self, X, y, W):
        W = W if W.shape[0] == X.shape[1] else W.T
        Z = np.where(y[:, None] == np.arange(W.shape[1]), 1.0, -1.0) * (X @ W)
        smooth = np.logaddexp(0.0, 5.0 * (1.0 - Z)).mean(axis=0) / 5.0 + 0.1 * Z.var(axis=0)
        return smooth.sum() + 0.01 * np.linalg.norm(W, axis=1).sum()
