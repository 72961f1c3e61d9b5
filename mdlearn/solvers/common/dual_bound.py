"""Dual bound for engines that hold only a primal point: multipliers guessed from margins, then improved.

A guess takes every multiplier from the margin of its row: at its cap where the loss is active, at 0 where it is not,
and for terms with a continuous slope the derivative. A line search between the best multipliers so far and the guess
(exact where the dual value is a quadratic) never lowers the bound, so that guesses may be crude.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from mdlearn.forms.losses import CURVED
from mdlearn.forms.margin import Column, MarginForm

THRESHOLD_BAND = 0.2
"""Half the width of the band around a threshold in which a guess from given margins lies between 0 and its cap."""

STEP_LENGTHS = tuple(2.0**-k for k in range(7, -1, -1))
"""Lengths tried towards a guess where the dual value is no quadratic, the shortest first: most guesses are crude."""


@dataclass(frozen=True, eq=False)
class DualBoundMultipliers:
    """Multipliers of a dual bound, with what its value needs of them.

    Attributes
    ----------
    beta, sigma : ndarray of shape (T, m), (m,)
    coef, intercept : ndarray, float
        The element sum alpha_i phi(x_i), and sum alpha_i where a regularized bias squares that too.
    """

    beta: np.ndarray
    sigma: np.ndarray
    coef: np.ndarray
    intercept: float

    def towards(self, other: DualBoundMultipliers, step: float) -> DualBoundMultipliers:
        """Return self + step (other - self); within the box for steps in [0, 1]."""
        rest = 1.0 - step
        return DualBoundMultipliers(
            rest * self.beta + step * other.beta,
            rest * self.sigma + step * other.sigma,
            rest * self.coef + step * other.coef,
            rest * self.intercept + step * other.intercept,
        )


class DualBound:
    """Dual bound by the best multipliers so far, for biases none and regularized and finite losses.

    Attributes
    ----------
    best : Multipliers
    """

    def __init__(self, form: MarginForm, column: Column) -> None:
        self.form, self.column = form, column
        self.curved = any(t.kind in CURVED for t in column.terms)
        self.best = self._complete(np.zeros_like(column.caps), np.zeros_like(column.y))
        self.curved_value = self._curved(self.best.beta) if self.curved else 0.0

    def improve(self, z: np.ndarray) -> Generator[None, None, None]:
        """Guess from margins z, then from those of the best multipliers' own element: three passes over the rows."""
        yield from self._search(z, THRESHOLD_BAND)
        own = self.column.y * (self.form.features.decision(self.best.coef) + self.best.intercept)
        yield
        yield from self._search(own, 0.0)

    def _search(self, z: np.ndarray, width: float) -> Generator[None, None, None]:
        guess = self._complete(self._guess(z, width), self.column.spread(z))
        yield
        best = self.best
        crossed, held = self._inner(best, guess), self._inner(best, best)
        slope = self._linear(guess) - self._linear(best) - crossed + held
        curvature = self._inner(guess, guess) - 2.0 * crossed + held
        if self.curved:
            self.best = best.towards(guess, self._length(best, guess, slope, curvature))
        elif slope > 0.0 and curvature > 0.0:
            self.best = best.towards(guess, min(1.0, slope / curvature))

    def _length(self, best: DualBoundMultipliers, guess: DualBoundMultipliers, slope: float, curvature: float) -> float:
        """Best of some lengths where the dual value is no quadratic; `slope` and `curvature` are those of the rest."""

        length, most, curved = 0.0, self.curved_value, self.curved_value
        for longer in STEP_LENGTHS:
            found = self._curved(best.beta + longer * (guess.beta - best.beta))
            now = slope * longer - 0.5 * curvature * longer * longer + found
            if not now > most:  # concave along the line: this is beyond the maximum
                break
            length, most, curved = longer, now, found
        self.curved_value = curved
        return length

    def _curved(self, beta: np.ndarray) -> float:
        """Share of the terms with a curved conjugate in the dual value of a bound, but for what is linear."""
        found = 0.0
        for (t, own), b in zip(self.column.shares, beta):
            if t.kind in CURVED:
                found += t.estimated_bound(b, own) - t.side * t.threshold * float(b.sum())
        return found

    def _guess(self, z: np.ndarray, width: float) -> np.ndarray:
        c = self.column
        excess = c.sides[:, None] * (c.kinks - z)
        share = np.clip(0.5 + 0.5 * excess / width, 0.0, 1.0) if width > 0 else (excess > 0).astype(np.float64)
        soft = c.softness > 0
        squared = np.divide(np.maximum(excess, 0.0), c.softness, out=np.zeros_like(excess), where=soft)
        # A squared term has no cap; rows without counts have softness and cap 0.
        beta = np.where(soft, squared, np.where(np.isinf(c.caps), 0.0, c.caps) * share)
        for (t, own), there, b in zip(c.shares, c.margins_of_terms(c.margins(z)), beta):
            if t.kind in CURVED:
                b[:] = t.slopes(there, own)
        return beta

    def _complete(self, beta: np.ndarray, sigma: np.ndarray) -> DualBoundMultipliers:
        c = self.column
        alpha = c.y * (c.sides @ beta + sigma + c.pull)
        intercept = float(alpha.sum()) if self.form.bias == "regularized" else 0.0
        return DualBoundMultipliers(beta, sigma, self.form.features.expand(alpha), intercept)

    def _linear(self, p: DualBoundMultipliers) -> float:
        return float((self.column.sides[:, None] * self.column.kinks * p.beta).sum())

    def _inner(self, p: DualBoundMultipliers, q: DualBoundMultipliers) -> float:
        c = self.column
        total = float((c.softness * p.beta * q.beta).sum()) + float(p.coef @ q.coef) + p.intercept * q.intercept
        if c.kappa > 0:
            used = c.counts > 0
            total += float((p.sigma[used] * q.sigma[used] / c.counts[used]).sum()) / c.kappa
        return total
