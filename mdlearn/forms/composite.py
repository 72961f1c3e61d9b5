"""Composite: a problem that brings its own gradient and prox, for what no column of a MarginForm can say.

::

    minimise  unit * ( h(W) + 1/2 sum_j ridge_j |W_j|^2 + sum_j beta_j |W_j| )      over W of shape (p, k)

h is convex and smooth. W_j, the row j of W, holds the coefficients of feature j in all k columns; with a bias, the last
row holds the intercepts. The bound needs nothing but h and its gradient: h lies above each of its tangents, and the
minimum of a tangent, ridge and penalty is known row by row. Where a row without ridge has a tangent steeper than
beta_j, the minimum is -inf; the tangent is then mixed, as little as possible, with one that is less steep everywhere.
That h is convex is for its class to declare: `Composite.convex`. For one that is not there is no bound:
`Composite.residual` says what takes its place.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from mdlearn._solvers.apg import shrink
from mdlearn.data.features.kernel_features import Features
from mdlearn.data.features.kernel_rounding import ROUNDINGS_HERE, UNIT
from mdlearn.errors import is_foreign
from mdlearn.forms.base import Problem, array_fault
from mdlearn.forms.certificates.rounding import to_type
from mdlearn.forms.joint.composite_point import CompositeEvaluation, CompositePoint, point_tangent_at_zero, row_lengths
from mdlearn.forms.joint.visited import VisitedEvaluations
from mdlearn.forms.proof import Certificate, Solution, Start, judge, judge_residual
from mdlearn.numerics.errstate import overflow_errstate

ROUNDING_OF_SLOPES = 1e-13
"""Slope of a row without ridge and penalty, relative to the sum of its terms, that counts as rounding."""
TILTED = 1e-3
"""Share of the objective that a slope which is to be 0 may take from a bound: more is no rounding, and no bound."""
Product = Callable[[np.ndarray], np.ndarray]


class Composite(Problem):
    """Base class of composites: write `at` and `lipschitz`, set `convex` and `at_zero`.

    `product` allows second-order steps. What a plugin declares is checked by use (`VisitedEvaluations`).

    A penalty other than the one above needs `penalty`, `prox` and `least`.

    Parameters
    ----------
    features : LinearFeatures
    bias : str
        "none", "regularized" or "free": whether the last row of W holds intercepts.
    n_columns : int
        k.
    ridge, beta : ndarray of shape (p,)
        Weights >= 0 of the rows of W.
    """

    roundings = ROUNDINGS_HERE * UNIT
    """What sums may lose, relative to their terms, and bounds take off; 0 where the certificate does that itself."""
    convex = False
    """Whether h is convex. Without this declaration no bound is made: its tangents would be none."""
    nonnegative = False
    """Whether h >= 0 everywhere: then 0 is a tangent from below."""
    first: np.ndarray | None = None
    """Coefficients to begin with, (p, k), from another problem's solution."""

    def __init__(self, features: Features, bias: str, n_columns: int, ridge: np.ndarray, beta: np.ndarray) -> None:
        self.features, self.bias, self.ridge, self.beta = features, bias, ridge, beta
        self.shape = ridge.shape[0], n_columns
        self.unit = 1.0
        self.visited = VisitedEvaluations() if is_foreign(self) else None

    @property
    def part(self) -> Composite:
        """Object that engines work on: this one. A reference that is kept would be one in a circle, which holds X."""
        return self

    @property
    def modulus(self) -> float:
        return self.unit * float(self.ridge.min()) if self.features.by_rows else 0.0

    def begin(self, starts: Sequence[Start]) -> None:
        """Keep the coefficients of the starts, one for each of the k columns."""
        last = self.bias != "none"
        W = np.array([np.append(one.coef, one.intercept) if last else one.coef for one in starts]).T
        self.first = W if W.shape == self.shape else None

    def starting_point(self) -> CompositePoint | None:
        return None if self.first is None else CompositePoint(self.first)

    def bounds_at_start(self) -> tuple[float, float]:
        """Return the value at W = 0."""
        return self.at_zero, -math.inf

    @abstractmethod
    def at(self, W: np.ndarray) -> CompositeEvaluation:
        """Return h and its gradient at W.

        Parameters
        ----------
        W : ndarray of shape (p, k)

        Returns
        -------
        CompositeEvaluation
        """

    @abstractmethod
    def lipschitz(self) -> float:
        """Return an estimate of the largest second derivative of h and ridge; engines raise it where it is too low.

        Returns
        -------
        float
        """

    def prepare(self) -> Generator[None, None, None]:
        """Compute what steps and bounds are the better for, in interruptible pieces; here nothing."""
        return
        yield  # what makes this a generator

    def settle(self, W: np.ndarray) -> CompositeEvaluation:
        """Return the look at W after moving rows without ridge and penalty to where their slope vanishes, if it can."""
        return self.at(W)

    def product(self, look: CompositeEvaluation) -> Product | None:
        """Return V -> H V with the second derivative of h and ridge, or None."""
        return None

    def approximation(self, look: CompositeEvaluation, rows: np.ndarray, column: int) -> np.ndarray:
        """Second derivative of h and ridge for some rows of one column, roughly: a matrix, or its diagonal.

        Newton steps use it to precondition; ones will do.
        """
        return np.ones(rows.shape[0])

    def point(self, W: np.ndarray, anchor: np.ndarray | None, look: CompositeEvaluation) -> object:
        """Return what the certificate takes, for coefficients W with the look at them."""
        return CompositePoint(W, anchor)

    def multipliers(self, look: CompositeEvaluation) -> np.ndarray:
        """Return the multipliers that a model shows, shape (k, T, m); none by default."""
        return np.zeros((self.shape[1], 1, self.features.n_rows))

    def penalty(self, W: np.ndarray) -> float:
        """Return the penalty: here sum_j beta_j |W_j|.

        Parameters
        ----------
        W : ndarray of shape (p, k)

        Returns
        -------
        float
        """
        return float(self.beta @ row_lengths(W))

    def prox(self, V: np.ndarray, step: float) -> np.ndarray:
        """Return argmin_W 1/2 |W - V|^2 + step penalty(W): here rows are shortened by step beta_j.

        Parameters
        ----------
        V : ndarray of shape (p, k)
        step : float

        Returns
        -------
        ndarray of shape (p, k)
        """
        W = np.array(V, order="C")
        shrink(W, step * self.beta)
        return W

    def least(self, G: np.ndarray, sizes: np.ndarray) -> float:
        """Return min_V <G, V> + ridge + penalty, from which the lower bound is made.

        Parameters
        ----------
        G : ndarray of shape (p, k)
            A slope.
        sizes : ndarray of shape (p,)
            As in `CompositeEvaluation`.

        Returns
        -------
        float
            -inf where there is no minimum.
        """
        excess, bare = np.maximum(row_lengths(G) - self.beta, 0.0), self.ridge == 0
        if (
            excess[bare] > np.where(self.beta[bare] > 0, 1e-15 * self.beta[bare], ROUNDING_OF_SLOPES * sizes[bare])
        ).any():
            return -math.inf
        # A gradient may be steeper than it was computed.
        excess = np.maximum(row_lengths(G) + self.roundings * sizes - self.beta, 0.0)
        return -0.5 * float((excess[~bare] ** 2 / self.ridge[~bare]).sum())

    def smooth(self, look: CompositeEvaluation) -> float:
        """h and ridge."""
        return look.value + 0.5 * float(self.ridge @ np.square(look.W).sum(axis=1))

    def slope(self, look: CompositeEvaluation) -> np.ndarray:
        """Gradient of h and ridge."""
        return look.gradient + self.ridge[:, None] * look.W

    def objective(self, look: CompositeEvaluation) -> float:
        """Value in units of the form."""
        return self.smooth(look) + self.penalty(look.W)

    def subgradient(self, look: CompositeEvaluation) -> np.ndarray:
        """Shortest subgradient of the whole objective."""
        gradient, size = self.slope(look), row_lengths(look.W)
        inside = size > 0
        R = gradient.copy()
        R[inside] += (self.beta[inside] / size[inside])[:, None] * look.W[inside]
        rest = row_lengths(gradient[~inside])
        R[~inside] *= (np.maximum(rest - self.beta[~inside], 0.0) / np.where(rest > 0, rest, 1.0))[:, None]
        return R

    @property
    def needs_anchor(self) -> bool:
        """Whether a bound needs a tangent less steep than the penalty: rows with a penalty and no ridge."""
        return math.isinf(self.floor) and bool(((self.ridge == 0) & (self.beta > 0)).any())

    @property
    def floor(self) -> float:
        """Lower bound of h everywhere, a tangent of slope 0; -inf where none is known."""
        return 0.0 if self.nonnegative else -math.inf

    def lighter(self, share: float) -> Composite:
        """Return the problem with `share` times its penalty."""
        other = copy(self)
        other.beta = share * self.beta
        return other

    def steepness(self, look: CompositeEvaluation) -> float:
        """Largest |G_j| / beta_j of the rows with a penalty and no ridge; 0 where there is none."""
        bare = (self.ridge == 0) & (self.beta > 0)
        return float((row_lengths(look.gradient[bare]) / self.beta[bare]).max(initial=0.0))

    def bound(self, look: CompositeEvaluation, anchor: CompositeEvaluation | None) -> tuple[float, str]:
        """Return a lower bound in units of the form, and what kind of proof it is.

        Here: the minimum of a tangent, mixed with that of the anchor, or what h is nowhere below.
        """
        G, constant, sizes = look.gradient, point_tangent_at_zero(look), look.sizes
        if anchor is not None and self.steepness(look) > 1.0:
            share = self._share(G, anchor.gradient)
            constant += share * (point_tangent_at_zero(anchor) - constant)
            G = G + share * (anchor.gradient - G)
            sizes = np.maximum(sizes, anchor.sizes)
        elif self.floor > -math.inf and self.steepness(look) > 1.0:
            share = self._share(G, np.zeros_like(G))
            constant, G = (1.0 - share) * constant + share * self.floor, (1.0 - share) * G
        lower = constant + self.least(G, sizes)
        if math.isfinite(lower):
            tilt = self.tilt(G, look)
            lower = lower - tilt if tilt <= TILTED * max(abs(look.value), abs(self.at_zero)) else -math.inf
        if self.floor > -math.inf:
            lower = max(lower, self.floor + self.least(np.zeros_like(G), np.zeros_like(sizes)))
        return lower, "duality gap"

    def tilt(self, G: np.ndarray, look: CompositeEvaluation) -> float:
        """Return what slopes G of rows without ridge and penalty, which are to be 0, may take from a bound.

        They count as often as coefficients of the optimum differ from 0: taken to be as long as those of the look.
        """
        bare = (self.ridge == 0) & (self.beta == 0)
        return float((np.abs(G[bare]) * np.abs(look.W[bare])).sum())

    def _share(self, G: np.ndarray, inner: np.ndarray) -> float:
        """Smallest share of the anchor's gradient that brings every row of the mixture within beta_j."""
        bare = (self.ridge == 0) & (self.beta > 0)
        steep, less, beta = row_lengths(G[bare]), row_lengths(inner[bare]), self.beta[bare]
        over = steep > beta
        share = np.max((steep[over] - beta[over]) / np.maximum(steep[over] - less[over], 1e-300))
        return min(1.0, float(share) * (1.0 + 1e-9) + 1e-15)

    def residual(self, look: CompositeEvaluation) -> float | None:
        """Return None where h is convex; else what first-order conditions leave open, in units of the form.

        The certificate is then that of `mdlearn.extend.judge_residual`, and `bound` is not asked for.

        Parameters
        ----------
        look : CompositeEvaluation

        Returns
        -------
        float or None
        """
        return None

    @property
    def unproven(self) -> str:
        """Why there is neither bound nor residual, where nothing is declared that one could be made of."""
        if self.convex or type(self).residual is not Composite.residual:
            return ""
        return f"{type(self).__name__} declares neither convex = True nor a residual"

    def proven_bound(self, look: CompositeEvaluation, anchor: CompositeEvaluation | None) -> tuple[float, str]:
        """Return `bound` where h is declared convex, that of a plugin held against all that was visited; else none."""
        if not self.convex:
            return -math.inf, "none"
        return self.bound(look, anchor) if self.visited is None else self.visited.bound(self, look, anchor)

    def estimate(self, look: CompositeEvaluation, anchor: CompositeEvaluation | None) -> tuple[float, float | None]:
        """Return lower bound and residual at a look, as engines report them."""
        residual = self.residual(look)
        return (self.proven_bound(look, anchor)[0], None) if residual is None else (-math.inf, residual)

    def start(self) -> CompositePoint:
        return CompositePoint(np.zeros(self.shape))

    def stored_objective(self, point: CompositePoint, objective: float) -> float:
        """Objective of a point as a model of the rows' type holds it: a pass for float32 rows."""
        dtype = self.features.dtype
        if dtype == np.float64 or not math.isfinite(objective):
            return objective
        return self.objective(self.at(to_type(point.W, dtype).astype(np.float64)))

    def untouched(self, tol: float, bounded: bool) -> Solution | None:
        """Return W = 0, with what h is nowhere below as its bound; better ones take passes over the rows."""
        features, (p, k) = self.features, self.shape
        if self.first is not None or (bounded and features.ready):
            return None
        W = np.zeros(self.shape)
        look = CompositeEvaluation(W, self.at_zero, W, np.zeros(p), np.zeros((features.n_rows, k)))
        certificate = judge(self.unit * self.at_zero, self.unit * self.floor, self.unit * self.at_zero, False, tol)
        coef, none = np.zeros((k, features.width)), np.zeros(k)
        return Solution(coef, none, None, self.multipliers(look), none, certificate)

    def certify(self, point: CompositePoint, tol: float) -> Solution:
        """Certify the coefficients of a point, rows without ridge and penalty moved to where they are best."""
        with overflow_errstate():
            look = self.settle(point.W)
            return self._solution(look, look, point.anchor, tol)

    def certify_as_is(self, point: CompositePoint, tol: float) -> Solution:
        with overflow_errstate():
            return self._solution(self.at(point.W), self.settle(point.W), point.anchor, tol)

    def _solution(
        self, look: CompositeEvaluation, proof: CompositeEvaluation, anchor: np.ndarray | None, tol: float
    ) -> Solution:
        dtype = self.features.dtype
        held = look
        if dtype != np.float64:
            held = self.at(to_type(look.W, dtype).astype(np.float64))
        residuals = self.residual(held), self.residual(look)
        if residuals[0] is None or residuals[1] is None:
            if self.visited is not None and self.convex:
                self.visited.probe(self, held, proof)
            lower, kind = self.proven_bound(proof, None if anchor is None else self.settle(anchor))
            certificate = self._bounded(held, lower, kind, tol)
            # What rounding costs, as if the point had been optimal.
            at_limit = not self._bounded(held, self.objective(look), kind, tol).converged
        else:
            certificate = self._stationary(held, residuals[0], tol)
            at_limit = not certificate.converged and self._stationary(look, residuals[1], tol).converged
        d = self.features.width
        # Copies: the engine may go on writing into its W, for the next problem.
        coef = np.array(held.W[:d].T, order="C")
        intercept = held.W[d].copy() if self.bias != "none" else np.zeros(self.shape[1])
        norm = np.sqrt([self.features.squared_norm(w) for w in coef])
        return Solution(coef, intercept, self.combination(held), self.multipliers(held), norm, certificate, at_limit)

    def _bounded(self, look: CompositeEvaluation, lower: float, kind: str, tol: float) -> Certificate:
        values = self.unit * self.objective(look), self.unit * lower
        certificate = judge(*values, self.unit * self.at_zero, False, tol, self.modulus)
        return certificate if certificate.kind == "none" else replace(certificate, kind=kind)

    def _stationary(self, look: CompositeEvaluation, residual: float, tol: float) -> Certificate:
        return judge_residual(self.unit * self.objective(look), self.unit * residual, self.unit * self.at_zero, tol)

    def combination(self, look: CompositeEvaluation) -> np.ndarray | None:
        """Return alpha (k, 1, m) with w_k = sum_i alpha_ki x_i, where coefficients are such combinations."""
        return None

    def fault(self, point: object) -> str | None:
        if not isinstance(point, CompositePoint):
            return f"it yielded {type(point).__name__} as a point, a CompositePoint is needed"
        anchor = None if point.anchor is None else array_fault("anchor", point.anchor, self.shape)
        return array_fault("W", point.W, self.shape) or anchor


def __getattr__(name: str) -> Any:
    if name != "Look":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(
        "Look is CompositeEvaluation now and goes in mdlearn 1.0; import it from mdlearn.extend",
        DeprecationWarning,
        stacklevel=2,
    )
    return CompositeEvaluation
