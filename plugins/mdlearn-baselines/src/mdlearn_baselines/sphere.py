"""Sums of exponential costs of margins over the unit sphere: the problem and its certificate."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mdlearn.extend import Problem, Several, Solution, judge, judge_residual, to_type


@dataclass(frozen=True)
class Cost:
    """c(t) = exp(-a t) for margins t >= 0, exp(-b t) below.

    It is convex for a <= b. Then its kink at 0 is where minima like to lie, and `width` rounds it: the slope goes from
    -b to -a over [-width, width].
    """

    a: float
    b: float

    def value(self, t, width=0.0):
        """c(t)."""
        c = np.exp(-np.where(t >= 0, self.a, self.b) * t)
        return c + (self.b - self.a) * self._excess(t, width) if width else c

    def slope(self, t, width=0.0):
        """c'(t); on the kink that of t > 0."""
        rate = np.where(t >= 0, self.a, self.b)
        s = -rate * np.exp(-rate * t)
        if width:
            s += (self.b - self.a) * ((t < 0) - np.clip(0.5 - t / (2.0 * width), 0.0, 1.0))
        return s

    def curvature(self, t, width=0.0):
        """c''(t)."""
        rate = np.where(t >= 0, self.a, self.b)
        c = rate**2 * np.exp(-rate * t)
        return c + (self.b - self.a) / (2.0 * width) * (np.abs(t) <= width) if width else c

    def _excess(self, t, width):
        """What rounding adds to max(0, -t)."""
        return np.maximum(width - np.abs(t), 0.0) ** 2 / (4.0 * width)

    def conjugate(self, s):
        """sup_t (s t - c(t)) for slopes s < 0 of a convex cost: -1 at every slope that the kink has."""
        rate = np.where(s > -self.a, self.a, self.b)
        u = np.where((s >= -self.b) & (s <= -self.a), 1.0, -s / rate)
        return u * (np.log(u) - 1.0)


@dataclass(frozen=True, eq=False)
class SpherePoint:
    """A direction v of unit length (its last entry the intercept, if there is one), and slopes of the cost or None.

    Slopes < 0 that are not those at the margins are allowed for a convex cost: they serve as multipliers.
    """

    v: np.ndarray
    slopes: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class View:
    """What is known at a point: margins t, objective, slopes s, and the gradient sum c s y x / R made of them.

    `misfit` is how far slopes and margins are from belonging together: sum c (cost(t) + conjugate(s) - s t).
    """

    margins: np.ndarray
    objective: float
    slopes: np.ndarray
    gradient: np.ndarray
    misfit: float


class SphereProblem(Problem):
    """Minimise sum_i c_i cost(y_i (w.x_i + b) / R) over |(w, b)| = 1, for one pair of classes.

    R is the length of the longest row (x, 1), or x without a bias. On a sphere no such problem is convex. But where the
    cost is and the gradient G at a point v points inwards, v.G <= 0, then the minimum over the ball |v| <= 1 bounds it
    from below, and with the slopes s as multipliers this is at least ::

        - sum_i c_i conjugate(s_i) - |G|

    At a stationary point, G = -|G| v, that is the objective itself: the certificate is then a true duality gap and the
    point a global minimum. Elsewhere it is of kind "residual": the length of G along the sphere.

    Parameters
    ----------
    features : LinearFeatures
    bias : {"none", "regularized"}
    y, counts : ndarray of shape (m,)
    cost : Cost
    """

    engine = "sphere"

    def __init__(self, features, bias, y, counts, cost):
        self.features, self.bias, self.y, self.counts, self.cost = features, bias, y, counts, cost
        self.part, self.unit, self.at_zero = self, 1.0, float(counts.sum())

    @cached_property
    def radius(self):
        """R; 1 where all rows are 0."""
        return math.sqrt(float(self.features.squares().max()) + (self.bias != "none")) or 1.0

    def scores(self, v):
        """y (w.x + b) / R, linear in v."""
        w, b = (v, 0.0) if self.bias == "none" else (v[:-1], v[-1])
        return self.y * (self.features.rows.dot(w) + b) / self.radius

    def adjoint(self, s):
        """sum_i s_i y_i (x_i, 1) / R."""
        signed = s * self.y / self.radius
        G = self.features.rows.adjoint(signed)
        return G if self.bias == "none" else np.append(G, signed.sum())

    def signed(self, chosen):
        """Some rows y (x, 1) / R, dense."""
        rows = self.features.rows.take(chosen).block(slice(None))
        if self.bias != "none":
            rows = np.column_stack([rows, np.ones(rows.shape[0])])
        return rows * (self.y[chosen] / self.radius)[:, None]

    def value(self, t, width=0.0):
        """Sum of the costs of margins."""
        return float(self.counts @ self.cost.value(t, width))

    def view(self, point):
        """Look at a point."""
        t, s, misfit = self.scores(point.v), point.slopes, 0.0
        each = self.cost.value(t)
        if s is None:
            s = self.cost.slope(t)
        else:
            misfit = max(float(self.counts @ (each + self.cost.conjugate(s) - s * t)), 0.0)
        return View(t, float(self.counts @ each), s, self.adjoint(self.counts * s), misfit)

    def left_open(self, v, view):
        """Return (lower bound, None) where the minimum over the ball bounds it, else (-inf, first-order residual)."""
        G = view.gradient
        radial, along = float(G @ v), float(np.linalg.norm(G - (G @ v) * v))
        if self.cost.a <= self.cost.b and radial <= 0:
            # |G| + G.v without cancellation.
            short = along**2 / (math.hypot(radial, along) - radial) if along else 0.0
            return view.objective - short - view.misfit, None
        return -math.inf, along + view.misfit

    def start(self):
        """The direction of the mean signed row."""
        v = self.adjoint(self.counts)
        length = float(np.linalg.norm(v))
        if length == 0:
            v, length = np.ones_like(v), math.sqrt(v.shape[0])
        return SpherePoint(v / length)

    def certify(self, point, tol):
        """Certify a direction as a model of the rows' type holds it."""
        held = to_type(point.v, self.features.dtype).astype(np.float64)
        v = held / np.linalg.norm(held)
        view = self.view(SpherePoint(v, point.slopes))
        certificate = self._judged(v, view, tol)
        at_limit = False
        if not certificate.converged and self.features.dtype != np.float64:
            at_limit = self._judged(point.v, self.view(point), tol).converged
        w, b = (held, 0.0) if self.bias == "none" else (held[:-1], float(held[-1]))
        duals = -self.counts * view.slopes / self.radius
        return Solution(w, b, None, duals[None], float(np.linalg.norm(w)), certificate, at_limit)

    certify_best = certify
    certify_as_is = certify

    def value_of(self, solution):
        """Sum of the costs in the direction of a solution's coefficients."""
        held = np.append(solution.coef, [] if self.bias == "none" else solution.intercept)
        return self.value(self.scores(held / np.linalg.norm(held)))

    def _judged(self, v, view, tol):
        lower, residual = self.left_open(v, view)
        if residual is None:
            return judge(view.objective, lower, self.at_zero, False, tol)
        return judge_residual(view.objective, residual, self.at_zero, tol)

    def examine(self, point):
        """Nothing to examine: a continuous function on a sphere has a minimum."""

    def explain(self):
        """Nothing to explain."""


@dataclass(frozen=True, eq=False)
class SphereForm(Several):
    """Several of these problems over the same rows."""

    features: object
    bias: str
    parts: tuple

    def problems(self):
        """One per class, or one."""
        return self.parts
