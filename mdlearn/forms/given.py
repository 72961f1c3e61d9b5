"""Losses given as functions of the margin, where no sum of hinge and logistic terms says what is meant.

A loss that both falls and rises becomes two terms, each with the value of its own side: all engines and certificates
know multipliers beta >= 0 of one side. For the bound the conjugate is needed at the multipliers. Where none is given,
the margin with that slope is found instead: there ``f*(s) = s z - f(z)`` exactly, and the tangent at a margin near it
errs to the safe side.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from mdlearn._solvers import hinges
from mdlearn._solvers.native_losses import ConjugateTable
from mdlearn.forms.given_checks import (
    BEND_ROUNDING,
    COMPARED_MARGINS,
    Function,
    SlopeRamp,
    check_conjugate,
    check_given_functions,
    check_given_values,
    find_slope_ramp,
)
from mdlearn.forms.native import CONJUGATE_ROWS, NativeFunction, NativeSums

FAR_MARGINS = np.geomspace(8.5, 1e100, 600)
"""Margins, on either side, at which slopes are noted beside NEAR."""
CHECKED_MARGIN = 1e4
"""Margin up to which a conjugate is checked."""
EPS = float(np.finfo(float).eps)
UNBOUNDED_DEPTH = 1e6
"""Depth, in units of the values at margins of NEAR, from which a loss is taken to fall without end."""
RAMP_SHARE = 0.999
"""Share of the largest slope near 0 below which a ramp has not ended yet."""
SEARCH_STEPS = 60
"""Most steps towards the margin of a slope: halvings alone get there."""


class GivenLoss:
    """A convex loss of the margin with a continuous slope, given as vectorised functions.

    Parameters
    ----------
    value, derivative, second : callable or NativeFunction
        f(t), f'(t) and f''(t) for a float64 array t of any length; the derivative is with respect to the margin and not
        negated. They depend on t alone, leave it as it is, and may be called from several threads. Engines `sgd` and
        `asgd` need a derivative that is a NativeFunction.
    conjugate : callable, optional
        f*(s) = sup_t (s t - f(t)) for an array s of slopes that f has; without it, margins are looked up (slower).

    Raises
    ------
    ValueError, TypeError
        When a function does not return one number per margin, is not finite for margins up to 50, or the functions do
        not belong together; when the loss is not convex, is constant, or has a kink.

    Examples
    --------
    >>> loss = GivenLoss(
    ...     lambda t: np.logaddexp(0.0, -t), lambda t: -expit(-t), lambda t: expit(t) * expit(-t)
    ... )  # doctest: +SKIP
    >>> Terms(loss=loss.terms(C))  # doctest: +SKIP
    """

    def __init__(
        self, value: Function, derivative: Function, second: Function, conjugate: Function | None = None
    ) -> None:
        functions = {"value": value, "derivative": derivative, "second": second, "conjugate": conjugate}
        for name, function in functions.items():
            if not callable(function) and (name != "conjugate" or function is not None):
                raise TypeError(f"{name} of a given loss needs to be a function of an array; got {function!r}")
        self._value, self._derivative, self._second, self._conjugate = value, derivative, second, conjugate
        self.steepest = check_given_functions(value, derivative, second)
        self._tabulate()
        if conjugate is not None:
            t = self.grid[np.abs(self.grid) <= CHECKED_MARGIN]
            check_conjugate(conjugate, t, self.value(t), self.derivative(t))

    @property
    def native(self) -> NativeFunction | None:
        """The derivative, if it is compiled."""
        return self._derivative if isinstance(self._derivative, NativeFunction) else None

    @property
    def compiled_bound(self) -> NativeSums | None:
        """Sums that know the conjugate without a NumPy function, if any."""
        return self.sums if self._conjugate is None or isinstance(self._conjugate, NativeFunction) else None

    def conjugate_table(self, side: int, n_rows: int) -> ConjugateTable | None:
        """Polynomials of one side's conjugate where all functions are compiled, and so many rows make them pay."""
        if self.sums is None or n_rows < CONJUGATE_ROWS:
            return None
        if side not in self._conjugates:
            self._conjugates[side] = self.sums.conjugate_table(self.margins_of, side, self.limits[side])
        return self._conjugates[side]

    def value(self, t: np.ndarray) -> np.ndarray:
        """f(t)."""
        return check_given_values(self._value, "value", t)

    def derivative(self, t: np.ndarray) -> np.ndarray:
        """f'(t); beyond the margins where f is finite, that at the last of them."""
        return check_given_values(self._derivative, "derivative", np.clip(t, *self.domain))

    def second(self, t: np.ndarray) -> np.ndarray:
        """f''(t)."""
        return np.maximum(check_given_values(self._second, "second", np.clip(t, *self.domain)), 0.0)

    def terms(self, weight: float) -> tuple[GivenTerm, ...]:
        """Return the loss as `Terms.loss` takes it.

        Parameters
        ----------
        weight : float
            At least 0, per unit of sample weight.

        Returns
        -------
        tuple of GivenTerm
            One, or two for a loss that falls and rises.
        """
        return tuple(GivenTerm(weight, self, side) for side in (1, -1) if self.limits[side] > 0)

    def margins_of(self, slopes: np.ndarray) -> np.ndarray:
        """Margins with these slopes; where no margin has it, the one with the nearest."""
        return self._invert_slopes(slopes)[0]

    def least(self, slopes: np.ndarray) -> np.ndarray:
        """min_t f(t) - s t for slopes s that f has, minus the conjugate; errors are to the safe side."""
        if self._conjugate is None:
            return self._least(slopes)
        found = -check_given_values(self._conjugate, "conjugate", slopes)
        unknown = ~np.isfinite(found)  # formulas fail at the ends: 0 ln 0
        if unknown.any():
            found[unknown] = self._least(slopes[unknown])
        return found

    def _least(self, slopes: np.ndarray) -> np.ndarray:
        """Lower bound of min_t f(t) - s t for slopes s, from margins that are looked up, without the conjugate."""
        z, low, high = self._invert_slopes(slopes)
        f, miss = self.value(z), self.derivative(z) - slopes
        rounding = 2.0 * EPS * (np.abs(f) + np.abs(slopes * z))
        return f - slopes * z - np.abs(miss) * np.where(miss < 0, high - z, z - low) - rounding

    def _invert_slopes(self, slopes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Margins with given slopes, between bounds on both sides: Newton's method, with halving where it leaves them.

        Returns margins, lower and upper bounds.
        """
        s = np.clip(slopes, self.slopes[0], self.slopes[-1])
        first, last = np.searchsorted(self.slopes, s), np.searchsorted(self.slopes, s, side="right") - 1
        # Between two margins of the table; on one of them, the nearest to 0, where f(z) - s z cancels least.
        below = np.where(first <= last, np.clip(self.zero, first, last), last)
        above = np.where(first <= last, below, first)
        low, high = self.grid[below], self.grid[above]
        rise = self.slopes[above] - self.slopes[below]
        z = low + (high - low) * np.divide(s - self.slopes[below], rise, out=np.zeros_like(s), where=rise > 0)
        todo = np.arange(s.shape[0])
        for _ in range(SEARCH_STEPS):
            t = z[todo]
            miss, bend = self.derivative(t) - s[todo], self.second(t)
            low[todo] = np.where(miss <= 0, t, low[todo])
            high[todo] = np.where(miss >= 0, t, high[todo])
            wide = high[todo] - low[todo] > 2.0 * EPS * np.abs(t)
            still = wide & (np.abs(miss) > 4.0 * EPS * (np.abs(s[todo]) + bend * np.abs(t)))
            todo, t, miss, bend = todo[still], t[still], miss[still], bend[still]
            if todo.shape[0] == 0:
                break
            ahead = t - np.divide(miss, bend, out=np.full_like(t, np.inf), where=bend > np.abs(miss) * 1e-100)
            inside = (ahead > low[todo]) & (ahead < high[todo])
            z[todo] = np.where(inside, ahead, 0.5 * (low[todo] + high[todo]))
        return z, low, high

    def _tabulate(self) -> None:
        """Note slopes at many margins, where the loss is finite, and on which sides of its minimum it has any."""
        grid = np.concatenate([-FAR_MARGINS[::-1], COMPARED_MARGINS, FAR_MARGINS])
        looks = [check_given_values(f, "value", grid) for f in (self._value, self._derivative, self._second)]
        broken = grid[~np.isfinite(looks).all(axis=0)]
        first, last = broken[broken < 0].max(initial=-np.inf), broken[broken > 0].min(initial=np.inf)
        inside = (grid > first) & (grid < last)
        self.grid = grid[inside]
        self.domain = float(self.grid[0]), float(self.grid[-1])
        slopes = looks[1][inside]
        if (np.diff(slopes) < -1e-9 * (np.abs(slopes[1:]) + np.abs(slopes[:-1]))).any():
            raise ValueError("a given loss needs to be convex; its derivative falls somewhere")
        self.slopes, self.zero = np.maximum.accumulate(slopes), int(np.searchsorted(self.grid, 0.0))
        self.limits = {1: max(-float(slopes[0]), 0.0), -1: max(float(slopes[-1]), 0.0)}
        if not any(self.limits.values()):
            raise ValueError("a given loss needs to depend on the margin; its derivative is 0 everywhere")
        self.bottom = float(self.margins_of(np.zeros(1))[0]) if all(self.limits.values()) else None
        self.lowest = float(self.value(np.array([self.bottom]))[0]) if self.bottom is not None else 0.0
        self.sums = self._native_sums()
        self.floor = self._least_value(first, last)
        self._find_bends()
        self._conjugates: dict[int, ConjugateTable] = {}
        self.ramps = {side: self._ramp(side) if cap > 0 else None for side, cap in self.limits.items()}

    def _ramp(self, side: int) -> SlopeRamp | None:
        """Return the ramp that the slope of one side is, if it is one: from 0 at a threshold on, up to a cap."""
        falls = np.maximum(-side * self.derivative(COMPARED_MARGINS), 0.0)
        most = float(falls.max())
        bends = self.second(COMPARED_MARGINS[(falls > 0) & (falls < RAMP_SHARE * most)])
        if bends.size and np.ptp(bends) > BEND_ROUNDING * float(bends.max()):
            return None
        z = float(self.margins_of(np.array([-0.5 * side * most]))[0])
        return find_slope_ramp((self.value, self.derivative, self.second), z, side, self.limits[side], self.grid)

    def _native_sums(self) -> NativeSums | None:
        """Sums in compiled loops, where all functions are compiled; the conjugate need not be."""
        functions = [one for one in (self._value, self._derivative, self._second) if isinstance(one, NativeFunction)]
        if len(functions) < 3:
            return None
        conjugate = self._conjugate if isinstance(self._conjugate, NativeFunction) else None
        near = float(COMPARED_MARGINS[0]), float(COMPARED_MARGINS[-1])
        return NativeSums(functions, conjugate, self.grid, near, self.bottom, self.lowest)

    def _least_value(self, first: float, last: float) -> float:
        """Lower bound of the loss at all margins, -inf for losses that fall without end.

        Between `first` and `last` the loss is finite at all margins of the table.
        """
        size = float(np.abs(self.value(COMPARED_MARGINS)).max())
        if self.bottom is not None:
            floor = float(self.least(np.zeros(1))[0])
        else:
            end, broken = (-1, last) if self.limits[1] > 0 else (0, first)
            beyond = abs(broken - self.grid[end]) if np.isfinite(broken) else 0.0
            floor = float(self.value(self.grid[[end]])[0]) - abs(self.slopes[end]) * beyond
        if floor < -UNBOUNDED_DEPTH * size:
            return -np.inf
        return floor if floor < -4.0 * EPS * size else max(floor, 0.0)  # rounding alone makes no loss negative

    def _find_bends(self) -> None:
        """Note up to which margin slopes have begun to change, at least 8, and how fast they do at most up to there."""
        ends = np.maximum(np.abs(self.grid[1:]), np.abs(self.grid[:-1]))
        with np.errstate(over="ignore"):
            rates = np.diff(self.slopes) / np.diff(self.grid)
        self.reach = float(COMPARED_MARGINS[-1])
        if (rates > 0).any():
            self.reach = max(self.reach, float(ends[rates > 0].min()))
            self.steepest = max(
                self.steepest, float(rates[(ends > COMPARED_MARGINS[-1]) & (ends <= self.reach)].max(initial=0.0))
            )


@dataclass(frozen=True, eq=False)
class GivenTerm:
    """Term of a given loss, one of its sides, made by `GivenLoss.terms`.

    `weight`: factor >= 0, finite, per unit of sample weight; `side`: +1 for margins below the minimum of the loss,
    where it falls; -1 for those above it. `ramp`: numbers of a slope that grows linearly from a threshold on, up to a
    cap, None of any other; `threshold`: where it begins, else 0; `parabolic`: whether it is one, so that the conjugate
    is a parabola within the caps; `squared`: whether it is one without a cap, as that of a squared hinge; `steepest`:
    largest second derivative at margins up to `reach`, per unit of sample weight.
    """

    weight: float
    loss: GivenLoss
    side: int
    hard: ClassVar[bool] = False
    ramp: SlopeRamp | None = field(init=False, repr=False)
    threshold: float = field(init=False, repr=False)
    parabolic: bool = field(init=False, repr=False)
    squared: bool = field(init=False, repr=False)
    steepest: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.weight < np.inf:
            raise ValueError(f"the weight of a given loss needs to be finite and >= 0; got {self.weight!r}")
        ramp = self.loss.ramps[self.side]
        threshold, bend = (0.0, self.loss.steepest) if ramp is None else (ramp.threshold, ramp.bend)
        squared = ramp is not None and ramp.cap == np.inf
        own = {"ramp": ramp, "threshold": threshold, "parabolic": ramp is not None, "squared": squared}
        vars(self).update(own, steepest=self.weight * bend)

    @property
    def kind(self) -> str:
        """ "native" with a compiled derivative, else "given"."""
        return "given" if self.loss.native is None else "native"

    @property
    def numbers(self) -> tuple[float, float, float, float, float, float]:
        """Side, and no numbers of what its functions say."""
        return self.side, 0.0, 0.0, 0.0, 0.0, 0.0

    @property
    def reach(self) -> float:
        """Margin up to which slopes have begun to change, on either side; at least 8."""
        return self.loss.reach

    @property
    def floor(self) -> float:
        """Lower bound of this side of the loss at all margins, without weights; -inf where none is known."""
        return 0.0 if self.side < 0 and self.loss.bottom is not None else self.loss.floor

    def each(self, z: np.ndarray) -> np.ndarray:
        """This side of the loss at every margin, without weights."""
        bottom = self.loss.bottom
        if bottom is None:
            return self.loss.value(z)
        if self.side > 0:
            return self.loss.value(np.minimum(z, bottom))
        return self.loss.value(np.maximum(z, bottom)) - self.loss.lowest

    def value(self, z: np.ndarray, counts: np.ndarray) -> float:
        """Sum of the term over all rows."""
        if self.loss.sums is not None:
            return self.weight * self.loss.sums.losses(z, counts, self.side)
        return self.weight * float(counts @ self.each(z))

    def estimated_value(self, z: np.ndarray, counts: np.ndarray) -> float:
        """Return `value` but for some digits, where that is cheaper: for engines alone."""
        if not self.squared:
            sums = self.loss.sums
            return self.value(z, counts) if sums is None else self.weight * sums.estimated_losses(z, counts, self.side)
        rise = hinges.loss(np.ascontiguousarray(z), counts, self.side, self.threshold, True)
        return 0.5 * self.steepest * rise + self._value_at_threshold(counts)

    def _value_at_threshold(self, counts: np.ndarray) -> float:
        """Sum of this side of the loss at the margin where its ramp begins."""
        lowest = 0.0 if self.ramp is None or (self.side < 0 and self.loss.bottom is not None) else self.ramp.lowest
        return self.weight * lowest * float(counts.sum()) if lowest else 0.0

    def value_at_zero(self, total: float) -> float:
        """Value of the term at margins 0, of rows whose counts add up to `total`."""
        return self.value(np.zeros(1), np.array([total]))

    def caps(self, counts: np.ndarray) -> np.ndarray:
        """Upper bounds of the multipliers: the steepest slope of this side times weight * counts."""
        if self.squared:
            return np.where(self.weight * counts > 0, np.inf, 0.0)
        return self.loss.limits[self.side] * (self.weight * counts)

    def softness(self, counts: np.ndarray) -> np.ndarray:
        """delta with conjugate delta * beta^2 / 2 within the caps, of a ramp; zeros of any other slope."""
        factor = self.steepest * counts if self.parabolic else np.zeros_like(counts)
        return np.divide(1.0, factor, out=np.zeros_like(counts), where=factor > 0)

    def bound(self, beta: np.ndarray, counts: np.ndarray) -> float:
        """Contribution of multipliers within their caps to a lower bound: minus the conjugate."""
        sums = self.loss.compiled_bound
        if sums is not None:
            known = None if sums.conjugate is not None else self.loss.conjugate_table(self.side, beta.shape[0])
            return sums.bound(beta, counts, self.weight, self.side, known)
        factor = self.weight * counts
        used = factor > 0
        least = self.loss.least(-self.side * beta[used] / factor[used])
        return float(factor[used] @ (least if self.side > 0 else least - self.loss.lowest))

    def estimated_bound(self, beta: np.ndarray, counts: np.ndarray) -> float:
        """Return `bound` but for some digits, where that is cheaper: not safe, for engines alone."""
        if self.ramp is not None:
            value = self._value_at_threshold(counts) + self.side * self.threshold * float(beta.sum())
            return value - (
                hinges.squares(np.ascontiguousarray(beta), counts, 0.5 / self.steepest) if self.weight > 0 else 0.0
            )
        known = self.loss.conjugate_table(self.side, beta.shape[0])
        if self.loss.sums is None or (known is None and self.loss.sums.conjugate is not None):
            return self.bound(beta, counts)
        return self.loss.sums.estimate(beta, counts, self.weight, self.side, known)

    def slopes(self, z: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Multipliers at margins z."""
        if self.ramp is not None:
            beta = self.steepest * counts * np.maximum(self.side * (self.threshold - z), 0.0)
            return beta if self.squared else np.minimum(beta, self.caps(counts))
        if self.loss.sums is not None:
            return self.loss.sums.slopes(z, counts, self.weight, self.side, self.loss.limits[self.side])
        return self.weight * counts * np.maximum(-self.side * self.loss.derivative(z), 0.0)

    def curvatures(self, z: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Second derivatives at margins z; at the minimum, that of the loss counts as falling."""
        if self.squared:
            return self.steepest * counts * (self.side * (self.threshold - z) > 0)
        if self.loss.sums is not None:
            return self.loss.sums.curvatures(z, counts, self.weight, self.side)
        slope = self.loss.derivative(z)
        return self.weight * counts * np.where(slope <= 0 if self.side > 0 else slope > 0, self.loss.second(z), 0.0)

    def freedom(self, beta: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Change of the multipliers per unit of margin."""
        if self.squared:
            return self.steepest * counts * (beta > 0)
        factor = self.weight * counts
        slopes = np.divide(-self.side * beta, factor, out=np.zeros_like(beta), where=factor > 0)
        return factor * self.loss.second(self.loss.margins_of(slopes)) * (beta > 0)
