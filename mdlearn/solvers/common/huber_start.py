"""Huber start near the optimum: Newton's method on hinges that are rounded off over a band around their kinks.

The loss cap * max(0, -a) becomes quadratic for |a| < width, with slope -cap (1/2 - a / (2 width)). So only the rows of
the band enter a factorisation, and all others have multipliers 0 or cap: the dual point is feasible. The band narrows
until few rows are left in it. Its minimiser lies close to the point of the central path with complementarity
cap * width / 4 (the slopes of both multipliers at a = 0 agree).

Madsen and Nielsen, Finite algorithms for robust linear regression, BIT 30 (1990); Huber, Robust statistics (1981).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from mdlearn._solvers import interior as kernel
from mdlearn.data.rows.rows import steps
from mdlearn.forms.certificates.dual import feasible_dual
from mdlearn.forms.margin import Point
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.numerics.line_search import ROUGH_SLOPE, line_minimum, parabola_maximum
from mdlearn.solvers.base import Offer, Report
from mdlearn.solvers.common.primal_dual import PrimalDual, report_of

ROWS_PER_CALL = 1 << 18
"""Rows of one call of a compiled pass: about a millisecond per term."""
FIRST_BAND_SHARE = 0.2
"""Share of the rows in the first band."""
BAND_SHRINKAGE = 1.0 / 3.0
"""Largest shrinkage of the band from one round to the next: the steps from one to the next stay few."""
GOOD = 0.3
"""A round ends when a step gains less than this share of what rounding off the kinks is worth."""
MOST_NEWTON_STEPS = 24


@dataclass(frozen=True, eq=False)
class HuberStart:
    """Start by Huber's rounding: an element with its margins, and the band within which rows may still change sides."""

    element: np.ndarray
    z: np.ndarray
    width: float


class HuberProblem:
    """Problem of a Huber start: hinges of `state` are rounded; its terms all have power 1 and finite weights."""

    def __init__(self, state: PrimalDual) -> None:
        self.state = state
        column = state.column
        self.sides, self.caps = column.sides, column.caps
        self.kinks = np.broadcast_to(column.kinks, column.caps.shape)
        self.beta, self.force, self.weight = (
            np.empty_like(column.caps),
            np.empty_like(column.y),
            np.empty_like(column.y),
        )

    def minimise(self, element: np.ndarray, enough: int) -> Generator[Offer | None, None, HuberStart | None]:
        """Go down in ever narrower bands until one with at most `enough` rows is reached; None where that fails."""
        z = self.state.margins(element)
        width = float(np.quantile(self.state.distances(z), FIRST_BAND_SHARE))
        for _ in range(MOST_NEWTON_STEPS):
            if not (width > 0 and np.isfinite(width)):
                return None
            inside = self._round_off(z, width)
            try:
                element, z, gain = yield from self._step(element, z, width)
            except NotPositiveDefinite:
                return None
            yield self._offer(element, z, width)
            # What the band costs: a quarter of cap * width at its middle, half of that on average.
            worth = 0.25 * width * width * float(self.weight.sum())
            if gain <= GOOD * worth or not inside:
                if inside <= enough:
                    return HuberStart(element, z, width)
                width *= max(BAND_SHRINKAGE, enough / inside)
        return None

    def _offer(self, element: np.ndarray, z: np.ndarray, width: float) -> Offer:
        """The point between two steps."""
        return Offer(lambda: self._report(element, z, width))

    def _report(self, element: np.ndarray, z: np.ndarray, width: float) -> Report:
        """A point with the slopes of the rounded hinges as multipliers.

        The first ones are much too large together. Along their shares the bound is a parabola.
        """
        self._round_off(z, width)
        form, column, sigma = self.state.form, self.state.column, self.state.column.spread(z)
        share = parabola_maximum(lambda t: feasible_dual(form, column, t * self.beta, t * sigma).lower)
        point = Point(share * self.beta, share * sigma, *self.state.coefficients(element))
        return report_of(form, column, point, z)

    def _round_off(self, z: np.ndarray, width: float) -> int:
        return sum(
            kernel.smoothed(
                self.kinks, self.sides, self.caps, z, width, self.beta, self.force, self.weight, rows.start, rows.stop
            )
            for rows in steps(z.shape[0], ROWS_PER_CALL)
        )

    def _step(
        self, element: np.ndarray, z: np.ndarray, width: float
    ) -> Generator[None, None, tuple[np.ndarray, np.ndarray, float]]:
        """One Newton step with the best length; also what the full step promises to gain."""
        state, system = self.state, self.state.system
        yield from system.factor(self.weight)
        gradient = state.residual(element, self.beta)
        yield
        p = system.solve(-gradient)
        change = state.margins(p)
        yield
        # Along the line: a quadratic part, and sums over the rows.
        start, second = float(gradient @ p), float(p @ system.quadratic(p))
        at_zero = float(self.force @ change)

        def along(t: float) -> tuple[float, float]:
            rise, bend = at_zero + t * second, second
            for rows in steps(z.shape[0], ROWS_PER_CALL):
                more = kernel.along(self.kinks, self.sides, self.caps, z, change, t, width, rows.start, rows.stop)
                rise, bend = rise + more[0], bend + more[1]
            return rise, bend

        length = line_minimum(start, along, ROUGH_SLOPE)
        if not np.isfinite(length):
            raise NotPositiveDefinite("no way down")
        return element + length * p, z + length * change, -0.5 * start
