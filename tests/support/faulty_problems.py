"""A composite and a problem of a plugin that are right, and what is wrong with others: one thing each."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

import mdlearn
from mdlearn.extend import Composite, CompositeEvaluation, Parameter, Problem, Report, Solution, judge


def sample(m=40, d=3, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    return scale * X, (X[:, 0] + 0.7 * rng.standard_normal(m) > 0).astype(int)


class Net(Composite):
    """mean_i ln(1 + exp(-y_i x_i.w)) + ridge/2 |w|^2 + lam sum |w_j|, without a bias."""

    convex = True
    nonnegative = True

    def __init__(self, data, features, lam, ridge):
        d = features.width
        super().__init__(features, "none", 1, np.full(d, ridge), np.zeros(d))
        y = np.where(data.codes == 1, 1.0, -1.0)[:, None]
        self.A, self.share, self.lam = y * features.rows.block(slice(None)), data.counts[:, None] / data.total, lam
        self.at_zero = float(np.log(2.0))

    def at(self, W):
        Z = self.A @ W
        force = self.share / (1.0 + np.exp(Z))
        sizes = np.abs(self.A).T @ force
        return CompositeEvaluation(W, float((self.share * np.logaddexp(0.0, -Z)).sum()), -self.A.T @ force, sizes[:, 0])

    def lipschitz(self):
        return 0.25 * float(np.linalg.norm(np.sqrt(self.share) * self.A, 2) ** 2 + self.ridge.max())

    def penalty(self, W):
        return self.lam * float(np.abs(W).sum())

    def prox(self, V, step):
        return np.sign(V) * np.maximum(np.abs(V) - step * self.lam, 0.0)

    def least(self, G, sizes):
        return -0.5 * float((np.maximum(np.abs(G) - self.lam, 0.0) ** 2 / self.ridge[:, None]).sum())


class Waves(Net):
    """With a part that is concave in places."""

    def at(self, W):
        look = super().at(W)
        value = look.value + 0.3 * float((1.0 - np.cos(4.0 * W)).sum())
        return replace(look, value=value, gradient=look.gradient + 1.2 * np.sin(4.0 * W))


class LongGradient(Net):
    def at(self, W):
        look = super().at(W)
        return replace(look, gradient=1.2 * look.gradient)


class DeafGradient(Net):
    """Leaves out a coefficient, which therefore never moves."""

    def at(self, W):
        look = super().at(W)
        return replace(look, gradient=look.gradient * np.array([[0.0], [1.0], [1.0]]))


class HighLeast(Net):
    def least(self, G, sizes):
        return 0.9 * super().least(G, sizes)


class HighBound(Net):
    """With a bound of its own, at a value that the fit will fall below."""

    def bound(self, look, anchor):
        return 0.9 * self.objective(look), "duality gap"


class HighZero(Net):
    """Gaps are relative to the value at 0: a large one makes them small."""

    def __init__(self, *given):
        super().__init__(*given)
        self.at_zero = 1e9


class BelowZero(Net):
    """Never below 0, it says."""

    def at(self, W):
        look = super().at(W)
        return replace(look, value=look.value - 3.0)

    def __init__(self, *given):
        super().__init__(*given)
        self.at_zero -= 3.0


COMPOSITE_FAULTS = {
    Waves: "convex is declared True, and h is not convex",
    LongGradient: "at returns a wrong gradient",
    DeafGradient: "at returns a wrong gradient",
    HighLeast: "least is too high: ",
    HighBound: "bound is too high: the bound made with it is ",
    HighZero: "at_zero is 1000000000.0",
    BelowZero: "nonnegative is True",
}


def net_task(kind, **values):
    """Objective of a kind of Net."""

    class Task(mdlearn.Objective):
        name = "net"
        summary = "logistic loss with an elastic net"
        formula = "mean ln(1 + exp(-z)) + ridge/2 |w|^2 + lam sum |w_j|"
        parameters: ClassVar = {"lam": Parameter(0.03, "L1"), "ridge": Parameter(0.1, "L2", strict=True)}
        default_bias = "none"
        multiclass = ("ovo",)
        kernels = False

        def form(self, data, features, bias, params):
            return kind(data, features, params["lam"], params["ridge"])

    return Task(**values) if values else Task


class Ridge(Problem):
    """1/2 |w|^2 + C/2 sum_i c_i (y_i - x_i.w)^2 for two classes, without a bias; a point is w."""

    engine = "ridge-descent"

    def __init__(self, data, features, C):
        self.features, self.bias, self.part, self.unit, self.C = features, "none", self, 1.0, C
        self.X, self.y, self.counts = features.matrix(), np.where(data.codes == 1, 1.0, -1.0), data.counts
        self.at_zero = self.look(np.zeros(features.width))[0]

    def look(self, w):
        R = self.X @ w - self.y
        return 0.5 * w @ w + 0.5 * self.C * self.counts @ R**2, w + self.C * self.X.T @ (self.counts * R)

    def start(self):
        return np.zeros(self.features.width)

    def estimate(self, value, slope):
        return value - 0.5 * slope @ slope

    def proof(self, value, slope, tol):
        return judge(value, value - 0.5 * slope @ slope, self.at_zero, False, tol)

    def certify(self, point, tol):
        w = point.astype(self.features.dtype).astype(float)
        none = np.zeros((1, self.counts.shape[0]))
        return Solution(w, 0.0, None, none, np.sqrt(w @ w), self.proof(*self.look(w), tol))

    def value_of(self, solution):
        return self.look(np.asarray(solution.coef, dtype=float))[0]


class Flatters(Ridge):
    """States less than the objective."""

    def proof(self, value, slope, tol):
        return super().proof(0.5 * value, slope, tol)


class Complains(Ridge):
    """States more than the objective."""

    def proof(self, value, slope, tol):
        return super().proof(2.0 * value, 0.0 * slope, tol)


class Boasts(Ridge):
    """A bound that later points fall below."""

    def estimate(self, value, slope):
        return value

    def proof(self, value, slope, tol):
        return replace(super().proof(value, slope, tol), lower_bound=0.99 * value)


class NoNumber(Ridge):
    def proof(self, value, slope, tol):
        return replace(super().proof(value, slope, tol), lower_bound=float("nan"))


class SmallGap(Ridge):
    """Values that do not make the gap, nor the verdict."""

    def proof(self, value, slope, tol):
        honest = super().proof(value, slope, tol)
        return replace(honest, gap=0.0, converged=True)


class Descent(mdlearn.Solver):
    """Steps along the negative gradient, halved until the objective falls."""

    name = "ridge-descent"
    purpose = "problems of these tests"

    def refusal(self, form):
        return None if hasattr(form, "look") else "another problem"

    def prepare(self, form, options):
        return None
        yield

    def report(self, form, value, slope, w):
        return Report(value, form.estimate(value, slope), w)

    def iterate(self, form, part, shared, options, rng):
        w, step = np.zeros(form.features.width), 1.0
        while True:
            value, slope = form.look(w)
            yield self.report(form, value, slope, w)
            while form.look(w - step * slope)[0] > value - 0.25 * step * slope @ slope:
                step *= 0.5
                if step < 1e-12:
                    return
            w, step = w - step * slope, 2.0 * step


def ridge_task(kind):
    """Objective of a kind of Ridge."""

    class Task(mdlearn.Objective):
        name = "own-ridge"
        summary = "squared loss with a certificate of its own"
        parameters: ClassVar = {"C": Parameter(0.1, "weight of the loss")}
        default_bias = "none"
        multiclass = ("ovo",)
        kernels = False

        def form(self, data, features, bias, params):
            return kind(data, features, params["C"])

    return Task
