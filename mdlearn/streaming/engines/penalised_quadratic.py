"""Penalised quadratic (L1 or L2,1) in memory: steps of a proximal Newton method, and bounds from below."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from itertools import islice

import numpy as np

from mdlearn.forms.composite import Composite, Product
from mdlearn.forms.joint.composite_point import CompositeEvaluation, CompositePoint, row_lengths
from mdlearn.solvers.proximal_gradient.fista import Fista

ROUNDING_OF_VALUES = 1e-14
"""Relative difference of two objectives that is rounding."""
LIGHTER = 0.9
"""Share of the penalty whose minimiser has a tangent less steep than the whole of it."""
MOST_STEPS = 10_000
"""Steps and heartbeats of one minimisation."""


class PenalisedQuadratic(Composite):
    """Penalised quadratic sum_j [g_j . d_j + 1/2 d_j' H_j d_j] + sum_i beta_i |V_i| of V = W + d, shape (n, k).

    `H` of shape (k, n, n); `G`, `W` of shape (n, k); `beta` of shape (n,); `sizes`: what the terms of G added up to
    without their signs.
    """

    convex = True

    def __init__(
        self, H: np.ndarray, G: np.ndarray, W: np.ndarray, beta: np.ndarray, sizes: np.ndarray | float = 0.0
    ) -> None:
        super().__init__(None, "none", G.shape[1], np.zeros_like(beta), beta)  # type: ignore[arg-type]  # no rows here
        self.H, self.G, self.W, self.first, self.sizes = H, G, W, W, sizes
        self.at_zero = self.objective(self.at(np.zeros_like(W)))

    @property
    def needs_anchor(self) -> bool:
        """Nobody asks for bounds of steps."""
        return False

    def bound(self, look: CompositeEvaluation, anchor: CompositeEvaluation | None) -> tuple[float, str]:
        """None: see `penalised_quadratic_bound`."""
        return -math.inf, "none"

    def at(self, W: np.ndarray) -> CompositeEvaluation:
        """The quadratic and its gradient."""
        D = W - self.W
        HD = self._times(D)
        sizes = row_lengths(self.G) + row_lengths(HD)
        return CompositeEvaluation(W, float((self.G * D).sum()) + 0.5 * float((D * HD).sum()), self.G + HD, sizes)

    def measured(self, W: np.ndarray) -> CompositeEvaluation:
        """The look at W with all that its slopes are made of: products are no part of the sizes at a step."""
        terms = np.column_stack([np.abs(H) @ d for H, d in zip(self.H, np.abs(W - self.W).T, strict=True)])
        return replace(self.at(W), sizes=self.sizes + row_lengths(self.G) + row_lengths(terms))

    def settle(self, W: np.ndarray) -> CompositeEvaluation:
        """Return the look at W after rows without a penalty, a free bias, have moved to where their slope vanishes."""
        look, free = self.at(W), np.flatnonzero(self.beta == 0)
        for i in free:
            bend = self.H[:, i, i]
            W = np.array(W)
            W[i] -= np.divide(look.gradient[i], bend, out=np.zeros_like(bend), where=bend > 0)
            look = self.at(W)
        return look

    def lipschitz(self) -> float:
        """The largest eigenvalue."""
        return max(float(np.linalg.eigvalsh(H)[-1]) for H in self.H)

    def lighter(self, share: float) -> PenalisedQuadratic:
        return PenalisedQuadratic(self.H, self.G, self.W, share * self.beta, self.sizes)

    def product(self, look: CompositeEvaluation) -> Product | None:
        """Times H."""
        return self._times

    def approximation(self, look: CompositeEvaluation, rows: np.ndarray, column: int) -> np.ndarray:
        """A part of H itself."""
        return self.H[column][np.ix_(rows, rows)]

    def scale(self) -> np.ndarray:
        """Factors of the rows of V that make the diagonals of H about 1, shape (n,): steps are then of one length."""
        diagonal = np.mean([np.diagonal(H) for H in self.H], axis=0)
        return np.where(diagonal > 0, 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 1.0)

    def scaled(self, by: np.ndarray) -> PenalisedQuadratic:
        """Return the model in the variable V / by; beta_i becomes by_i beta_i, so that the penalty stays the same."""
        H = self.H * np.multiply.outer(by, by)
        return PenalisedQuadratic(H, by[:, None] * self.G, self.W / by[:, None], by * self.beta)

    def _times(self, V: np.ndarray) -> np.ndarray:
        return np.column_stack([H @ v for H, v in zip(self.H, V.T, strict=True)])


def minimise_penalised_quadratic(model: PenalisedQuadratic) -> Generator[None, None, np.ndarray]:
    """Minimise a penalised quadratic, as far as rounding allows.

    Yields None, and returns V of shape (n, k).
    """
    by = model.scale()
    scaled = model.scaled(by)
    best, found = scaled.objective(scaled.at(scaled.W)), scaled.W
    for report in islice(Fista(scaled).steps(), MOST_STEPS):
        # Later points are the better ones as long as rounding cannot tell their objectives apart.
        if report is not None and report.objective <= best + ROUNDING_OF_VALUES * abs(best):
            assert isinstance(report.point, CompositePoint)
            best, found = min(best, report.objective), report.point.W
        yield None
    return by[:, None] * found


def penalised_quadratic_bound(model: PenalisedQuadratic) -> Generator[None, None, float]:
    """Lower bound of all values of a penalised quadratic.

    At its minimiser V with gradient g, T_i = -g_i shortened to beta_i, and r = g + T::

        model >= h(V) - <g, V> + <r, V> - 1/2 sum_j r_j' H_j^-1 r_j

    since sum_i beta_i |V'_i| >= <T, V'>. Where some H_j is singular, the tangent at V is mixed, as little as possible,
    with one at the minimiser for a lighter penalty, so that no row is steeper than its beta_i; -inf where that fails.
    """
    V = yield from minimise_penalised_quadratic(model)
    look = model.at(V)
    r = model.prox(look.gradient, 1.0)
    value = look.value - float((look.gradient * V).sum())
    spent = 0.0
    for H, own in zip(model.H, r.T, strict=True):
        if own.any():
            values, U = np.linalg.eigh(H)
            if not values[0] > own.shape[0] * np.finfo(float).eps * values[-1]:
                anchor = yield from minimise_penalised_quadratic(model.lighter(LIGHTER))
                return Composite.bound(model, model.measured(V), model.measured(anchor))[0]
            spent += 0.5 * float(((U.T @ own) ** 2 / values).sum())
        yield
    return value + float((r * V).sum()) - spent
