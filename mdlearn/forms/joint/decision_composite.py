"""Composites of decision values: h(W) is a sum over rows i of convex functions of the k values f_i = W'(x_i, 1).

Subclasses say what the function of one row is; products with X, free intercepts and second derivatives follow.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Generator
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.rows import Rows, Selection
from mdlearn.forms.certificates.representer import nearest_representers, representer
from mdlearn.forms.certificates.rounding import to_type
from mdlearn.forms.composite import ROUNDING_OF_SLOPES, Composite, Product
from mdlearn.forms.joint.composite_point import CompositeEvaluation, row_lengths
from mdlearn.forms.joint.visited import VisitedEvaluations
from mdlearn.numerics.lazy_property import kept
from mdlearn.numerics.symmetric_eigenvalues import largest_eigenvalue

MOMENT_COLUMNS = 1500
"""Columns up to which the second moments of the rows are worth a matrix."""
LEAST_DAMPING, DAMPING_RAISES = 1e-6, 12
"""Least share of the largest second derivative that such a step is damped with, and how often the share may grow."""
LESS = 0.9
"""Share of the slope that a Newton step on a free bias may leave."""
FLAT_BIAS_SLOPE = 2e-14
"""Slope of a free bias, relative to the sum of its terms, that counts as none."""
ROUNDING_SHARE = float(np.finfo(float).eps) / ROUNDING_OF_SLOPES
"""What rounding leaves of a slope, in units of what counts as rounding."""
LONG_PASS_ENTRIES = 1e7
"""Entries of rows from which passes for every column apart take longer than what they could still give is worth."""
EVERY = slice(None)
Bend = Callable[[np.ndarray, np.ndarray], np.ndarray]


class DecisionComposite(Composite):
    """Base class of joint composites of decision values: write the abstract methods, set `steepest` and `at_zero`.

    `counts` (shape (m,)): repetitions of the rows, the largest of all columns; `reach`: largest decision value next to
    which something happens: a threshold, and some widths of a logistic term.
    """

    convex = True
    moments: np.ndarray | None = None  # made by `prepare`
    steepest: float  # largest second derivative of one row's function, per unit of count
    reach = 1.0
    shifts = 100
    """Most Newton steps on a free bias."""
    averages = False
    """Whether `curvatures`, `bent` and `assembled` are there."""
    assembles = False
    """Whether the matrix of `assembled` is worth its price."""

    def __init__(
        self, features: LinearFeatures, bias: str, counts: np.ndarray, n_columns: int, ridge: float, penalty: float
    ) -> None:
        weights = np.ones(features.width) if features.ridge is None else features.ridge
        last = [] if bias == "none" else [1.0 if bias == "regularized" else 0.0]
        beta = np.append(np.full(features.width, penalty), penalty * np.array(last))
        super().__init__(features, bias, n_columns, ridge * np.append(weights, last), beta)
        self.rows, self.counts, self.weights = features.rows, counts, weights
        self.affine = AffineRows(features.rows, bias != "none")

    def over(self, rows: Rows) -> DecisionComposite:
        """Return this function of decision values for other rows, with the same ridge for all their columns.

        `rows` (shape (m, n)): with n at most the number of columns now, which all have one ridge.
        """
        other, d, n = copy(self), self.rows.shape[1], rows.shape[1]
        for name in vars(self):
            if isinstance(getattr(type(self), name, None), kept):  # of the rows now
                del other.__dict__[name]
        keep = np.append(np.arange(n), np.arange(d, self.shape[0]))
        other.ridge, other.beta, other.weights = self.ridge[keep], self.beta[keep], self.weights[:n]
        other.features, other.rows, other.shape = LinearFeatures(rows), rows, (keep.shape[0], self.shape[1])
        other.affine = AffineRows(rows, self.affine.constant)
        other.moments = other.first = None
        other.visited = None if self.visited is None else VisitedEvaluations()
        return other

    @abstractmethod
    def slopes(self, W: np.ndarray, F: np.ndarray, chosen: Selection = EVERY) -> float:
        """Return h at decision values F of coefficients W, and put its derivatives in their place; or of some rows."""

    @abstractmethod
    def bend(self, W: np.ndarray, F: np.ndarray) -> tuple[Bend, np.ndarray]:
        """Return (V, X V) -> B with H V = X'B, and the mean second derivative per column and unit of count."""

    @abstractmethod
    def intercept_bends(self, W: np.ndarray, F: np.ndarray) -> np.ndarray:
        """Return the second derivative with respect to the intercepts, (k, k)."""

    def curvatures(self, F: np.ndarray, reach: float) -> np.ndarray:
        """Second derivatives at decision values F, or averages over `reach` to either side where these are larger."""
        raise NotImplementedError

    def bent(self, D: np.ndarray) -> tuple[Bend, np.ndarray]:
        """Return what `bend` does, for given `curvatures`."""
        raise NotImplementedError

    def assembled(self, D: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Make the second derivative of h and ridge from `curvatures`, (k p, k p), column after column of W."""
        raise NotImplementedError

    def scores(self, W: np.ndarray) -> np.ndarray:
        """X W, with the intercepts."""
        return self.affine.dot(W)

    def adjoint(self, A: np.ndarray) -> np.ndarray:
        """X'A, with the sums for the intercepts."""
        return self.affine.adjoint(A)

    def at(self, W: np.ndarray) -> CompositeEvaluation:
        """Return h and its gradient at W: two passes over the rows."""
        F = self.scores(W)
        A = F.copy()
        return self._evaluated(W, F, A, self.slopes(W, A))

    def settle(self, W: np.ndarray) -> CompositeEvaluation:
        """Return h and its gradient at W with the best intercepts, where these are free."""
        if self.bias != "free":
            return self.at(W)
        W, F = W.copy(), self.scores(W)
        return self._evaluated(W, F, *self._balance(W, F))

    def _evaluated(
        self, W: np.ndarray, F: np.ndarray, A: np.ndarray, value: float, below: float = 0.0
    ) -> CompositeEvaluation:
        sizes = self._sizes * float(np.sqrt(np.einsum("ik,ik->", A, A)))
        # Sums over columns are rounded in decision values as those over rows are in the gradient.
        below += self.roundings * float(sizes @ row_lengths(W))
        if self.bias == "free":
            # Far intercepts cancel in decision values, whose rounding then shows in the slopes.
            values = float(np.sqrt(np.einsum("ik,ik->", F, F))) + 2.0 * np.linalg.norm(W[-1]) * np.sqrt(F.shape[0])
            bare = (self.ridge == 0) & (self.beta == 0)
            sizes[bare] += self._sizes[bare] * ROUNDING_SHARE * self.steepest * float(self.counts.max()) * float(values)
        return CompositeEvaluation(W, value, self.adjoint(A), sizes, F, below)

    @kept
    def _sizes(self) -> np.ndarray:
        """Length of every column; times that of the slopes, a bound of the terms of a gradient (Cauchy-Schwarz)."""
        found = self.features.lengths
        return found if self.bias == "none" else np.append(found, math.sqrt(self.rows.shape[0]))

    def tilt(self, G: np.ndarray, look: CompositeEvaluation) -> float:
        """Return what slopes G of rows without ridge and penalty, which are to be 0, may take from a bound.

        Free intercepts of the optimum are no farther from 0 than decision values without them.
        """
        if self.bias != "free" or look.scores is None:
            return super().tilt(G, look)
        F, W = look.scores, look.W.copy()
        W[-1] = np.abs(W[-1]) + 2.0 * (self.reach + np.maximum(F.max(axis=0), -F.min(axis=0)))
        return super().tilt(G, replace(look, W=W))

    def _balance(self, W: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Move the intercepts, in W and F, to where their slope is rounding; return derivatives, h,
        `CompositeEvaluation.below`.

        Newton steps. Far from the thresholds there is next to no second derivative, and such a step would go astray:
        a share of the largest one is added, as much as it takes for h to fall. All of it always does.
        """
        A = F.copy()
        value = self.slopes(W, A)
        most, share = self.steepest * float(self.counts.sum()), 0.0
        for _ in range(self.shifts):
            slope = A.sum(axis=0)
            if not np.isfinite(F).all() or np.abs(slope).max() <= FLAT_BIAS_SLOPE * float(np.abs(A).sum()):
                break
            longest = 2.0 * (self.reach + float(np.abs(F).max()))
            bends = self.intercept_bends(W, F)
            for _ in range(DAMPING_RAISES):
                step = np.linalg.lstsq(bends + share * most * np.eye(slope.shape[0]), -slope, rcond=None)[0]
                step *= min(1.0, longest / max(float(np.abs(step).max()), 1e-300))
                V, moved = W.copy(), F + step
                V[-1] += step
                B = moved.copy()
                found = self.slopes(V, B)
                flat = float(np.linalg.norm(B.sum(axis=0))) <= LESS * float(np.linalg.norm(slope))
                fallen = step.any() and found <= value + 1e-4 * float(slope @ step)
                if fallen or (flat and found <= value + 1e-13 * abs(value)):
                    break
                share = max(LEAST_DAMPING, 8.0 * share)
            else:
                break
            W[-1], F[:], A, value = V[-1], moved, B, found
            share = 0.125 * share if share > LEAST_DAMPING else 0.0
        return A, value, 0.0

    def product(self, look: CompositeEvaluation) -> Product:
        """Return V -> H V; each costs two passes over the rows."""
        assert look.scores is not None
        bend, _ = self.bend(look.W, look.scores)
        return lambda V: self.adjoint(bend(V, self.scores(V))) + self.ridge[:, None] * V

    def sampled(self, W: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Gradient of h and ridge estimated from some rows; its mean over all choices is the gradient."""
        part = AffineRows(self.rows.take(chosen), self.affine.constant)
        G = self.partial(W, part.dot(W), chosen, part) * (self.rows.shape[0] / chosen.shape[0])
        return G + self.ridge[:, None] * W

    def partial(self, W: np.ndarray, F: np.ndarray, chosen: np.ndarray, part: AffineRows) -> np.ndarray:
        """Share of some rows, with decision values F, in the gradient of h."""
        self.slopes(W, F, chosen)
        return part.adjoint(F)

    def prepare(self) -> Generator[None, None, None]:
        """Compute the moments sum_i c_i (x_i, 1)(x_i, 1)' by row blocks, for rows that are not too long."""
        p = self.shape[0]
        if p > MOMENT_COLUMNS or self.moments is not None:
            return
        M = np.zeros((p, p))
        for span in self.rows.spans():
            B = self.affine.block(span) * np.sqrt(self.counts[span, None])
            M += B.T @ B
            yield
        self.moments = M

    @kept
    def squares(self) -> np.ndarray:
        """Diagonal of the moments."""
        if self.moments is not None:
            return np.diagonal(self.moments).copy()
        return self.affine.column_squares(self.counts)

    def lipschitz(self) -> float:
        """`steepest` times the largest eigenvalue of the moments, and the ridge."""
        M = self.moments
        if M is not None:
            return self.steepest * largest_eigenvalue(lambda v: M @ v, self.shape[0]) + float(self.ridge.max())

        def times(v: np.ndarray) -> np.ndarray:
            product: np.ndarray = DecisionComposite.adjoint(self, self.counts[:, None] * self.scores(v[:, None]))[:, 0]
            return product

        return self.steepest * largest_eigenvalue(times, self.shape[0]) + float(self.ridge.max())

    def approximation(self, look: CompositeEvaluation, rows: np.ndarray, column: int) -> np.ndarray:
        """The moments times the mean second derivative, or their diagonal."""
        assert look.scores is not None
        mean = float(self.bend(look.W, look.scores)[1][column])
        if self.moments is None:
            return mean * self.squares[rows] + self.ridge[rows]
        A: np.ndarray = self.moments[np.ix_(rows, rows)]
        A *= mean
        A[np.diag_indices_from(A)] += self.ridge[rows]
        return A

    def combination(self, look: CompositeEvaluation) -> np.ndarray | None:
        """alpha_k = -slopes / ridge, corrected to give the very coefficients; None with a penalty or without ridge."""
        d = self.rows.shape[1]
        if self.beta.any() or not self.ridge[:d].all():
            return None
        last = look.W if self.bias == "regularized" else look.W[:d]
        if not last.any():
            return np.zeros((self.shape[1], 1, self.features.n_rows))
        A = self.scores(look.W)
        self.slopes(look.W, A)
        A /= -float(self.ridge[0] / self.weights[0])
        W, b = look.W[:d], look.W[d] if self.bias != "none" else np.zeros(self.shape[1])
        assert isinstance(self.features, LinearFeatures)
        products = self.moments if (self.counts == 1).all() else None
        best, misses, most = A.T, np.full(self.shape[1], np.inf), np.zeros(self.shape[1])
        for start in (A, np.zeros_like(A)):  # for all columns at once, where that will do
            near = nearest_representers(self.features, self.bias == "regularized", start, W, b, products)
            if near is None:
                break
            own, most = self._missed(near, W)
            best, misses = np.where((own < misses)[:, None], near.T, best), np.minimum(own, misses)
            if (misses <= most).all() or self.features.n_rows * d > LONG_PASS_ENTRIES:
                return best[:, None]
        return np.array(
            [
                [near if good else self._combined(a, w, float(c))]
                for near, good, a, w, c in zip(best, misses <= most, A.T, W.T, b)
            ]
        )

    def _missed(self, alpha: np.ndarray, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Largest errors of decision values from dual coefficients as models keep them, and the errors allowed."""
        features, dtype = self.features, self.features.dtype
        kept = to_type(alpha, dtype).astype(np.float64)
        misses = np.abs(features.decision(coef - features.expand(kept))).max(axis=0)
        allowed = float(np.finfo(dtype).eps) ** (2.0 / 3.0)
        return misses, allowed * np.abs(features.decision(coef)).max(axis=0)

    def _combined(self, alpha: np.ndarray, coef: np.ndarray, intercept: float) -> np.ndarray:
        """Dual coefficients of given ones, near `alpha`; the shortest where these lose too many digits in the sum.

        With a small ridge alpha is long, and nearly all of it cancels: more than the rows' type may hold.
        """
        like: Any = self  # it has the features and the bias of a form
        nothing, found = np.zeros_like(alpha), []
        for start in (alpha, nothing):
            near = representer(like, start, coef, intercept)
            for _ in range(2):
                (miss,), (most,) = self._missed(near[:, None], coef[:, None])
                if miss <= most:
                    return near
                found.append((float(miss), near))
                # What is left, as a problem of its own: it is told from rounding by its own size.
                rest = coef - self.features.expand(near), intercept - float(near.sum())
                near = near + representer(like, nothing, *rest)
        return min(found, key=lambda one: one[0])[1]
