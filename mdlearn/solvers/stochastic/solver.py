"""Solvers "sgd" and "asgd": stochastic gradient descent, Algorithm 2 of the LDM paper (averaged), or not averaged.

What is run on is g / (m C), so that step sizes are a matter of the data's scale; with C = 0 it is g itself. A step
draws two rows independently, with replacement, and with the counts as probabilities; its expectation is the exact
gradient. Step sizes follow Xu (2011), eta_t = eta0 (1 + a eta0 t)^(-3/4) with the modulus a of strong convexity.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.data.validation import check_number
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.solvers.base import Solver, Steps
from mdlearn.solvers.common.primal_dual import report_of
from mdlearn.solvers.stochastic import portions
from mdlearn.solvers.stochastic.portions import DIVERGED_NORM, Descent
from mdlearn.solvers.stochastic.task import StochasticTask, TaskRowPairs, calibrate_task_step

LARGEST_FLOAT = float(np.finfo(float).max)
THRESHOLD_BAND = 0.2
"""Half the width of the band around a threshold in which a guess from given margins lies between 0 and its cap."""
FIRST_LENGTH = 0.125
"""Length tried first of a step towards a guess where the dual value is no quadratic, before there is a last length."""
LENGTH_FACTOR = 4.0
"""Between lengths that are tried one after the other."""
OVERSHOOT = 1.3
"""Factor of the best length where that still gains: early multipliers are forgotten sooner. Gaps of l2lr on six sets
and drawn rows are 0.15 to 1.5 of those with 1, most of them below; 1.6 is no better."""
SHORTEST_LENGTH = 4.0**-8
"""Length below which the best multipliers stay."""
LENGTH_ROWS = 1000
"""Rows on which such a length is chosen, where there are at least twice as many."""
GOLDEN_RATIO = 0.6180339887498949
"""Distance of the places of these rows, as a share of all counts."""
NEAR_LENGTH = 0.1
"""Share of a length by which another one has to differ to be tried on all rows."""


class SGD(Solver):
    """Stochastic gradient descent solver, the last iterate (``solver="sgd"``)."""

    name: ClassVar[str] = "sgd"
    purpose: ClassVar[str] = "any declared loss, linear: stochastic steps, last iterate; bias none or regularized"
    options: ClassVar[dict[str, Any]] = {"epochs": 5, "eta0": None}
    default_max_iter: ClassVar[int] = sys.maxsize
    kinds: ClassVar[frozenset[str]] = frozenset({"hinge", "squared", "logistic", "native"})
    exact: ClassVar[bool] = False
    offsets: ClassVar[bool] = True
    by_row: ClassVar[bool] = True
    takes_blocks: ClassVar[bool] = True
    block_state: ClassVar[type] = Descent

    def refusal(self, form: MarginForm) -> str | None:
        """Explicit rows, a finite loss and a strongly convex objective are needed."""
        if isinstance(form, MarginForm) and "given" in form.kinds:
            return "its compiled steps need the derivative of a given loss as a NativeFunction"
        general = super().refusal(form)
        if general is not None:
            return general
        if not isinstance(form.features, LinearFeatures):
            return "its steps move a weight vector, which only kernel='linear' has"
        if not isinstance(form.features.rows, (DenseRows, CsrRows)):
            return "its steps read single rows, which kernel columns and landmark features do not store"
        if form.features.ridge is not None:
            return "its steps shrink all weights alike, so it needs a plain squared norm"
        if form.bias == "free":
            return "its step sizes need strong convexity, which bias='free' breaks"
        return None

    def check_options(self, given: dict[str, Any]) -> dict[str, Any]:
        """`epochs` >= 1 passes, first step size `eta0` > 0 (None: calibrated), and for asgd `t0` >= 0 (None: m)."""
        options = super().check_options(given)
        options["epochs"] = check_number(options["epochs"], "solver option epochs", low=1, integer=True)
        if options["eta0"] is not None:
            options["eta0"] = check_number(
                options["eta0"], "solver option eta0", low=0.0, high=LARGEST_FLOAT, strict=True
            )
        if options.get("t0") is not None:
            options["t0"] = check_number(options["t0"], "solver option t0", low=0, high=2.0**62, integer=True)
        return options

    def ends_itself(self, options: dict[str, Any]) -> bool:
        """The published end is the last epoch."""
        return True

    def start_of_average(self, n_rows: int, options: dict[str, Any]) -> int:
        """Steps before averaging starts: here, never."""
        return sys.maxsize

    def begin_blocks(
        self, form: MarginForm, column: Column, options: dict[str, Any], n_rows: int, rng: np.random.Generator
    ) -> Descent:
        """Begin at w = 0, with a first step size chosen on the first block unless it is given."""
        return portions.begin_portions(options, form, column, n_rows, self.start_of_average(n_rows, options), rng)

    def over_block(self, state: Descent, form: MarginForm, column: Column, rng: np.random.Generator) -> Descent:
        """Take as many steps as the block has rows."""
        return portions.advance_portion(state, form, column, form.features.n_rows, rng)

    def iterate(
        self, form: MarginForm, column: Column, shared: Any, options: dict[str, Any], rng: np.random.Generator
    ) -> Steps:
        """Yield a report per epoch of as many steps as there are rows; the published end is the last epoch."""
        yield from form.features.rows.written()
        task = StochasticTask(form, column)
        draw = TaskRowPairs(column.counts, rng)
        n = int(np.count_nonzero(column.counts))
        t0 = self.start_of_average(n, options)
        epochs, eta0 = options["epochs"], options["eta0"]
        may_restart = eta0 is None
        if eta0 is None:
            eta0 = yield from calibrate_task_step(task, draw, n, n * epochs)
        track, bound, epoch = task.start(eta0, t0), DualBound(form, column), 0
        while epoch < epochs:
            for start in range(0, n, task.piece):
                task.run(track, *draw(min(task.piece, n - start)))
                yield None
            w, b, alpha = task.split(track.current())
            with np.errstate(over="ignore", invalid="ignore"):
                diverged = not float(w @ w) + b * b < DIVERGED_NORM
            if diverged and not may_restart:
                raise ValueError(
                    f"the steps diverge with eta0={eta0:.3g}; give a smaller solver option eta0, or scale the features"
                )
            if diverged:
                # The calibration's sample missed the rows that matter most.
                eta0, epoch, may_restart = task.safe_step(), 0, False
                track = task.start(eta0, t0)
                continue
            epoch += 1
            z = task.margins(w, b)
            yield None
            yield from bound.improve(z)
            best = bound.best
            yield report_of(form, column, Point(best.beta, best.sigma, w, b, alpha), z)


class ASGD(SGD):
    """Averaged stochastic gradient descent solver, Algorithm 2 of the LDM paper (``solver="asgd"``)."""

    name: ClassVar[str] = "asgd"
    purpose: ClassVar[str] = "any declared loss, linear: Algorithm 2 of the LDM paper; bias none or regularized"
    options: ClassVar[dict[str, Any]] = {"epochs": 5, "eta0": None, "t0": None}

    def start_of_average(self, n_rows: int, options: dict[str, Any]) -> int:
        """`t0`, by default after the first epoch."""
        t0 = options["t0"]
        return n_rows if t0 is None else int(t0)


@dataclass(frozen=True, eq=False)
class DualBoundMultipliers:
    """Multipliers of a dual bound, with what its value needs of them.

    `coef`, `intercept`: the element sum alpha_i phi(x_i), and sum alpha_i where a regularized bias squares that too.
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

    A guess takes every multiplier from the margin of its row: at its cap where the loss is active, at 0 where it is
    not, and for terms with a continuous slope the derivative. A line search between the best multipliers so far and the
    guess (exact where the dual value is a quadratic) never lowers the bound, so that guesses may be crude.
    """

    def __init__(self, form: MarginForm, column: Column) -> None:
        self.form, self.column = form, column
        self.curved = not all(t.parabolic for t in column.terms)
        self.best = self._complete(np.zeros_like(column.caps), np.zeros_like(column.y))
        if self.curved:
            self.sample, self.rows, self.factors = _rows_of_lengths(column)
            self.curved_value = self._curved(column, self.best.beta)
            self.lengths: dict[float, float] = {}  # the last ones, by the width of their guesses

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
            first = self.lengths.get(width, FIRST_LENGTH)
            length = self._length(best.beta, guess.beta - best.beta, slope, curvature, first)
            self.lengths[width] = min(max(length, LENGTH_FACTOR * SHORTEST_LENGTH), 0.5)
            self.best = best.towards(guess, length)
        elif slope > 0.0 and curvature > 0.0:
            self.best = best.towards(guess, min(1.0, slope / curvature))

    def _length(self, beta: np.ndarray, change: np.ndarray, slope: float, curvature: float, first: float) -> float:
        """Return the length of a step where the dual value is no quadratic: chosen on some rows, judged on all.

        `slope` and `curvature` are those of all but the curved conjugates; `first`: length to begin with.
        """
        start = self.curved_value

        def rest(length: float) -> float:
            return length * (slope - 0.5 * curvature * length)

        def whole(length: float) -> float:
            return self._curved(self.column, beta + length * change) + rest(length)

        if self.sample is self.column:
            values = dict([_top_of_concave(whole, start, first)])
        else:
            b, c = self.factors * beta[:, self.rows], self.factors * change[:, self.rows]

            def some(length: float) -> float:
                return self._curved(self.sample, b + length * c) + rest(length)

            origin = self._curved(self.sample, b)
            length, found = _top_of_concave(some, origin, first)
            if length < SHORTEST_LENGTH:
                length, found = first, some(first)
            values = {length: whole(length)}
            # On all rows the value rises by more than on some, or by less; near the optimum that is what counts.
            missed = (values[length] - start - found + origin) / length
            again, _ = _top_of_concave(lambda t: some(t) + missed * t, origin, length)
            if again >= SHORTEST_LENGTH and abs(again - length) > NEAR_LENGTH * length:
                values[again] = whole(again)
        length = max(values, key=lambda t: values[t] if np.isfinite(values[t]) else -np.inf)
        while not values[length] > start:
            length = min(values) / LENGTH_FACTOR
            if length < SHORTEST_LENGTH:
                return 0.0
            values[length] = whole(length)
        self.curved_value = values[length] - rest(length)
        return length

    @staticmethod
    def _curved(column: Column, beta: np.ndarray) -> float:
        """Share of the terms with a curved conjugate in the dual value of a bound, but for what is linear."""
        found = 0.0
        for (t, own), b in zip(column.shares, beta):
            if not t.parabolic:
                found += t.estimated_bound(b, own)
                found -= t.side * t.threshold * float(b.sum()) if t.threshold else 0.0
        return found

    def _guess(self, z: np.ndarray, width: float) -> np.ndarray:
        c = self.column
        excess = c.sides[:, None] * (c.kinks - z)
        share = np.clip(0.5 + 0.5 * excess / width, 0.0, 1.0) if width > 0 else (excess > 0).astype(np.float64)
        soft = c.softness > 0
        squared = np.divide(np.maximum(excess, 0.0), c.softness, out=np.zeros_like(excess), where=soft)
        # Rows without counts have softness and cap 0.
        beta = np.where(soft, np.minimum(squared, c.caps), np.where(np.isinf(c.caps), 0.0, c.caps) * share)
        for (t, own), there, b in zip(c.shares, c.margins_of_terms(c.margins(z)), beta):
            if not t.parabolic:
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


def _rows_of_lengths(column: Column) -> tuple[Column, np.ndarray, np.ndarray]:
    """Return a column of some rows, drawn by their counts, with the rows, and what multipliers of each stand for there.

    The places on the line of all counts are multiples of the golden ratio: even, and in step with no order of the rows.
    Few rows are the column itself.
    """
    used = int(np.count_nonzero(column.counts))
    if used < 2 * LENGTH_ROWS:
        return column, np.arange(column.y.shape[0]), np.ones(column.y.shape[0])
    ends = np.cumsum(column.counts)
    places = np.modf(GOLDEN_RATIO * np.arange(1, LENGTH_ROWS + 1))[0] * ends[-1]
    rows = np.minimum(np.searchsorted(ends, places, side="right"), int(np.flatnonzero(column.counts)[-1]))
    sample = column.drawn(rows)
    return sample, rows, sample.counts / column.counts[rows]


def _top_of_concave(value: Callable[[float], float], start: float, first: float) -> tuple[float, float]:
    """Length up to 1, a little beyond the largest value of a concave function, with the value there.

    `start`: the value at 0; `first`: length to begin with.
    """
    first = min(first, 0.5)
    points = [(0.0, start), (first, value(first))]
    if points[1][1] > start:
        while points[-1][1] > points[-2][1] and points[-1][0] < 1.0:
            length = min(LENGTH_FACTOR * points[-1][0], 1.0)
            points.append((length, value(length)))
        points = points[-3:]
    else:
        while points[1][0] > SHORTEST_LENGTH and not (len(points) > 3 and points[2][1] > points[1][1]):
            length = points[1][0] / LENGTH_FACTOR
            points.insert(1, (length, value(length)))
        points = points[1:4] if len(points) > 3 and points[2][1] > points[1][1] else points[:3]
    top = min(max(OVERSHOOT * _top_of_parabola(points), 0.0), 1.0)
    found = value(top)
    return (top, found) if found > start else max(points, key=itemgetter(1))


def _top_of_parabola(points: list[tuple[float, float]]) -> float:
    """Where the concave parabola through three points is highest, at most the last point; that one where it is none."""
    (a, low), (b, middle), (c, high) = points
    left, right = (middle - low) / (b - a), (high - middle) / (c - b)
    return min(c, 0.5 * (a + b) + 0.5 * (c - a) * left / (left - right)) if left > right else c
