"""Sifting: the central path over the rows that may still change sides; the others stay at the bound where they are.

A few Newton steps on rounded hinges (`HuberProblem`) tell which rows those are. After every few steps on them all rows
are looked at, and those that a margin has carried over its kink join. So most steps cost what a few thousand rows cost,
and nothing is lost: the last look finds no row on the wrong side.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from mdlearn._solvers import interior as kernel
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import steps
from mdlearn.forms.certificates.dual import feasible_dual
from mdlearn.forms.margin import Point
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.numerics.line_search import ROUGH_SLOPE, line_minimum, parabola_maximum
from mdlearn.solvers.base import Offer, Report
from mdlearn.solvers.common.primal_dual import PrimalDual, PrimalDualOnRows, primal_dual_report, report_of
from mdlearn.solvers.interior_point.central_path import CentralPath

ROWS_PER_CALL = 1 << 18
"""Rows of one call of a compiled pass: about a millisecond per term."""
FIRST_BAND_SHARE = 0.2
"""Share of the rows in the first band."""
BAND_SHRINKAGE = 1.0 / 3.0
"""Largest shrinkage of the band from one round to the next: the steps from one to the next stay few."""
GOOD = 0.3
"""A round ends when a step gains less than this share of what rounding off the kinks is worth."""
MOST_NEWTON_STEPS = 24
FEWEST_BAND_ROWS, PER_COLUMN = 2000, 2.5
"""Rows in the last band: enough that the path over them is no cheaper with less, and that their hessian is definite."""
PAYS = 4
"""All rows over those, from which the detour pays."""
WIDER = 2.0
"""Rows within this many half-widths of the last band are in work."""
SAMPLE_ROWS = 6000
"""Rows of the first guess."""
LOOK = 0.03
"""Fall of the complementarity until all rows are looked at."""
STEPS_BETWEEN_LOOKS = 12
"""Steps without a look."""
MOST_WORKING_SHARE = 0.5
"""Share of all rows in work from which the detour no longer pays."""


@dataclass(frozen=True, eq=False)
class HuberStart:
    """Start by Huber's rounding: an element with its margins, and the band within which rows may still change sides."""

    element: np.ndarray
    z: np.ndarray
    width: float


class HuberProblem:
    """Problem of a Huber start: hinges of `state` are rounded; its terms all have power 1 and finite weights.

    The loss cap * max(0, -a) becomes quadratic for |a| < width, with slope -cap (1/2 - a / (2 width)). So only the rows
    of the band enter a factorisation, and all others have multipliers 0 or cap: the dual point is feasible. The band
    narrows until few rows are left in it. Its minimiser lies close to the point of the central path with
    complementarity cap * width / 4 (the slopes of both multipliers at a = 0 agree).

    Madsen and Nielsen, Finite algorithms for robust linear regression, BIT 30 (1990); Huber, Robust statistics (1981).
    """

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


def sifted_path(state: PrimalDual) -> Generator[Offer | None, None, SiftedPath | None]:
    """Path over sifted rows, begun near the optimum; None for too few rows, or multipliers without upper bounds."""
    column, features = state.column, state.form.features
    enough = max(FEWEST_BAND_ROWS, int(PER_COLUMN * features.width))
    boxed = bool(np.isfinite(column.caps).all()) and not column.softness.any()
    if not isinstance(features, LinearFeatures) or features.n_rows < PAYS * enough or not boxed:
        return None
    if state.form.ridge == 0 or state.system.most_restricted < PAYS * enough:
        return None
    try:
        element = yield from _sifting_guess(state)
        start = yield from HuberProblem(state).minimise(element, enough)
    except NotPositiveDefinite:
        return None
    if start is None:
        return None
    rows = _rows_to_sift(state, start, enough)
    return SiftedPath(state, start, rows) if rows.shape[0] <= _most_sifted_rows(state) else None


def _rows_to_sift(state: PrimalDual, start: HuberStart, enough: int) -> np.ndarray:
    """Rows to sift: those within some widths of a kink, at least `enough`."""
    away = state.distances(start.z)
    return np.flatnonzero(away <= max(WIDER * start.width, float(np.partition(away, enough)[enough])))


def _most_sifted_rows(state: PrimalDual) -> float:
    """Number of rows in work beyond which sifting does not pay."""
    return min(MOST_WORKING_SHARE * state.column.y.shape[0], float(state.system.most_restricted))


def _sifting_guess(state: PrimalDual) -> Generator[None, None, np.ndarray]:
    """Guess where sifting begins: least squares towards the kinks, over some of the rows."""
    column = state.column
    every = max(1, column.y.shape[0] // SAMPLE_ROWS)
    caps = np.zeros_like(column.caps)
    caps[:, ::every] = every * column.caps[:, ::every] / state.typical_kink
    yield from state.system.factor(caps.sum(axis=0))
    towards = (caps * column.kinks).sum(axis=0) + column.pull
    return state.system.solve(state.system.adjoint(column.y * towards))


class SiftedPath:
    """Sifted path: interior point steps over some rows, with the same calls as a `CentralPath` over all of them."""

    away = np.inf

    def __init__(self, state: PrimalDual, start: HuberStart, rows: np.ndarray) -> None:
        self.state, self.alive, self.falling = state, True, True
        self.element, self.z, self.rows = start.element, start.z, rows
        caps = state.column.caps
        self.beta = np.where(state.slopes(start.z) < 0, caps, 0.0)
        self.path = self._over(self.rows, 0.25 * start.width * caps[:, self.rows])

    def _over(self, rows: np.ndarray, mu: float | np.ndarray) -> CentralPath:
        state = self.state
        held = self.beta.copy()
        held[:, rows] = 0.0
        fixed = state.system.adjoint(state.multipliers(held))
        path = CentralPath(PrimalDualOnRows.of(state, rows, fixed))
        path.start_at(self.element, self.z[rows], mu)
        return path

    def report(self) -> Report:
        """Report the present place over all rows."""
        return primal_dual_report(self.state, self.element, self.beta, self.z)

    def free(self) -> np.ndarray:
        """Rows in work that look as if they sat on a kink."""
        free = np.zeros(self.beta.shape, dtype=bool)
        free[:, self.rows] = self.path.free()
        return free

    def step(self) -> Generator[None, None, None]:
        """Take some steps over the rows in work, then look at all rows."""
        path = self.path
        enough = LOOK * path.complementarity()
        for _ in range(STEPS_BETWEEN_LOOKS):
            yield from path.step()
            if not path.alive or path.complementarity() <= enough:
                break
        self.alive, self.falling = path.alive, path.falling
        self.element, self.z = path.element, self.state.margins(path.element)
        self.beta = self.beta.copy()  # the last ones are in a report
        self.beta[:, self.rows] = path.beta
        yield
        self._admit()

    def _admit(self) -> None:
        """Take the rows into work whose margins have left the side of their kink where their multipliers are held."""
        caps, a = self.state.column.caps, self.state.slopes(self.z)
        wrong = np.logical_or.reduce((caps > 0) & np.where(self.beta > 0, a > 0, a < 0), axis=0)
        wrong[self.rows] = False
        if not wrong.any():
            return
        wrong[self.rows] = True
        rows = np.flatnonzero(wrong)
        if rows.shape[0] > _most_sifted_rows(self.state):
            self.alive = False
            return
        path = self._over(rows, self.path.complementarity() / self.path.count)
        path.inherit(self.path, np.searchsorted(rows, self.rows))
        self.rows, self.path = rows, path
