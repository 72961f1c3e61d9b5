"""Problems whose loss terms differ from row to row, their objective by its formula, and its optimum.

F(w, b) = 1/2 |w|^2 [+ b^2/2] + v Var(z) - a mean(z) + sum_i c_i sum_t q_ti loss_t(z_i - s_ti)

with sample weights c, weights q and shifts s of single rows. A hinge of power 1 is rounded over a width that falls to
2e-8 here, which adds at most ln 2 times the width and its slope: the optimum is known from below, too.
"""

from __future__ import annotations

import numpy as np
from given_losses import RUBBER, rubber, rubber_bend, rubber_slope
from process_settings import one_blas_thread
from scipy.special import expit

import mdlearn
from mdlearn.extend import HingeTerm, LogisticTerm, Parameter, RowTerms, Setting, Terms, row_values

WIDTHS = tuple(0.2**k for k in range(12))
GAMMA = 0.5


def hinge(side, threshold, power):
    """(value, slope, bend) of a hinge at margins, the kink rounded over `width`; values alone for 0."""

    def of(z, width):
        e = side * (threshold - z)
        if power == 2:
            return np.maximum(e, 0) ** 2, -2 * side * np.maximum(e, 0), 2.0 * (e > 0)
        if width == 0:
            return np.maximum(e, 0), None, None
        p = expit(e / width)
        return width * np.logaddexp(0, e / width), -side * p, p * (1 - p) / width

    return of


def logistic(z, width):
    p = expit(1.5 * (0.8 - z))
    return np.logaddexp(0, 1.5 * (0.8 - z)) / 1.5, -p, 1.5 * p * (1 - p)


def drawn(z, width):
    return rubber(z), rubber_slope(z), rubber_bend(z)


ONE, OVER = HingeTerm(1.3), HingeTerm(0.6, side=-1, threshold=1.5)
LOSSES = {
    "hinge": ((ONE,), (hinge(1, 1, 1),)),
    "two hinges": ((ONE, OVER), (hinge(1, 1, 1), hinge(-1, 1.5, 1))),
    "squared hinge": ((HingeTerm(1.3, power=2),), (hinge(1, 1, 2),)),
    "squared": (
        (HingeTerm(1.3, power=2), HingeTerm(1.3, side=-1, power=2)),
        (hinge(1, 1, 2), hinge(-1, 1, 2)),
    ),
    "both powers": ((ONE, HingeTerm(0.6, side=-1, threshold=1.5, power=2)), (hinge(1, 1, 1), hinge(-1, 1.5, 2))),
    "logistic": ((LogisticTerm(1.3, 1.5, 0.8),), (logistic,)),
    "given": (RUBBER.terms(1.3), (drawn, None)),  # its two sides add up to one loss
}
"""Terms of a loss, and what they are by their formulas, without their weights."""


def as_given(name, value):
    return None if value is None else np.asarray(value)


def objective_of(loss, ridge=1.0):
    """An objective with these terms, whose user gives weights and shifts for every row, of all terms or of each."""

    class RowWise(mdlearn.Objective):
        name = "row_wise"
        parameters = {  # noqa: RUF012
            "v": Parameter(0.0, "weight of the variance"),
            "a": Parameter(0.0, "weight of the mean"),
            "weights": Setting(None, "weights by row", as_given),
            "shifts": Setting(None, "shifts by row", as_given),
        }

        def terms(self, params, total):
            return Terms(params["v"], params["a"], loss, ridge=ridge)

        def row_terms(self, data, params):
            def mine(name):
                given = params[name]
                if given is None or given.ndim == 1:
                    return given if given is None else row_values(data, given, name)
                return np.array([row_values(data, one, name) for one in given])

            return RowTerms(mine("weights"), mine("shifts"))

    return RowWise


def sample(m=24, d=3, seed=0):
    """Rows, labels, repetition counts with a 0 among them, weights by row with a 0, and shifts."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.where(X[:, 0] + 0.8 * rng.standard_normal(m) > 0.1, 1, 0)
    counts, weights, shifts = rng.integers(1, 4, m), rng.uniform(0.05, 4.0, m), 0.6 * rng.standard_normal(m)
    counts[5], weights[[2, 7]] = 0, 0.0
    return X, y, counts, weights, shifts


class Formula:
    """The objective over features F with |w|^2 = w'Mw, for signs y and sample weights c."""

    def __init__(self, loss, F, M, y, c, bias, v=0.0, a=0.0, weights=None, shifts=None):
        terms, self.functions = LOSSES[loss]
        shape = len(terms), len(y)
        q = np.broadcast_to(1.0 if weights is None else weights, shape)
        self.shifts = np.broadcast_to(0.0 if shifts is None else shifts, shape)
        self.factors = [t.weight * c * own for t, own in zip(terms, q)]
        self.R = y[:, None] * (F if bias == "none" else np.hstack([F, np.ones((len(y), 1))]))
        self.Q = np.zeros((self.R.shape[1],) * 2)
        self.Q[: len(M), : len(M)] = M
        if bias == "regularized":
            self.Q[-1, -1] = 1.0
        self.c, self.v, self.a = c, v, a

    def at(self, u, width, second=True):
        """(value, gradient, Hessian) at u = (w, b), kinks rounded over `width`; without `second` the gradient."""
        c, N, z = self.c, self.c.sum(), self.R @ u
        mean = c @ z / N
        value = u @ self.Q @ u / 2 + self.v * (c @ (z - mean) ** 2) / N - self.a * mean
        slope, bend = c / N * (2 * self.v * (z - mean) - self.a), np.zeros(len(z))
        for function, factor, shift in zip(self.functions, self.factors, self.shifts):
            if function is not None:
                f, df, ddf = function(z - shift, width)
                value, slope, bend = value + factor @ f, slope + factor * df, bend + factor * ddf
        gradient = self.Q @ u + self.R.T @ slope
        if not second:
            return gradient
        centred = self.R - c @ self.R / N
        hessian = self.Q + self.R.T @ (bend[:, None] * self.R) + 2 * self.v / N * centred.T @ (c[:, None] * centred)
        return value, gradient, hessian

    def value(self, u):
        """The objective itself."""
        c, z = self.c, self.R @ u
        mean = c @ z / c.sum()
        value = u @ self.Q @ u / 2 + self.v * (c @ (z - mean) ** 2) / c.sum() - self.a * mean
        parts = zip(self.functions, self.factors, self.shifts)
        return value + sum(factor @ f(z - shift, 0)[0] for f, factor, shift in parts if f is not None)

    @one_blas_thread()
    def optimum(self):
        """Bounds of the optimum from below and above, by damped Newton steps over ever narrower kinks."""
        u = np.zeros(self.R.shape[1])
        for width in WIDTHS:
            for _ in range(100):
                value, gradient, hessian = self.at(u, width)
                step = -np.linalg.solve(hessian + 1e-14 * np.diag(hessian).max() * np.eye(len(u)), gradient)
                if -gradient @ step <= 1e-11 * (1 + abs(value)):
                    break
                low, high = 0.0, 1.0
                while self.at(u + high * step, width, second=False) @ step < 0:
                    low, high = high, 2 * high
                for _ in range(40):  # values would not tell the last digits, slopes do
                    middle = 0.5 * (low + high)
                    falls = self.at(u + middle * step, width, second=False) @ step < 0
                    low, high = (middle, high) if falls else (low, middle)
                u = u + high * step
        assert -gradient @ step <= 1e-9 * (1 + abs(value)), "the reference itself has not converged"
        lost = sum(f.sum() for f, own in zip(self.factors, self.functions) if own is not None)
        return value - width * np.log(2) * lost, self.value(u)


def gram(X):
    """exp(-GAMMA |x - x'|^2), from the definition."""
    return np.exp(-GAMMA * np.square(X[:, None] - X[None]).sum(axis=2))
