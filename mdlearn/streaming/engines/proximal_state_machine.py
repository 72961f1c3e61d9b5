"""Proximal Newton steps over row blocks, for smooth losses under an L1 or L2,1 penalty.

A pass gives value, gradient and Hessian of every column. The next step is the minimiser of the quadratic model with
the penalty itself, found in memory; it is halved until the objective falls as the model lets it. The variance, the
ridge and the tangent of the losses make another model, which lies below the objective everywhere: its minimum is the
bound.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from mdlearn.data.row_blocks.source import Sums
from mdlearn.forms.joint.point import lengths
from mdlearn.forms.proof import Certificate, gap_between, judge
from mdlearn.streaming.engines.penalised_quadratic import QuadraticModel, lower_bound, minimised
from mdlearn.streaming.sums.margins import StreamedForm
from mdlearn.streaming.sums.passes import Evaluate, Square

ARMIJO, ROUNDING_OF_VALUES, SHORTEST_STEP = 1e-4, 1e-14, 1e-10
STALL_STEPS = 4
"""Steps without progress after which rounding is taken to be reached."""
TOLERANCE_SHRINKAGE, LEAST_TOLERANCE = 1e-2, 1e-7
"""As for `mdlearn.streaming.engines.newton_state_machine`."""
UNBOUNDED_VALUE = 1e6
"""Value in units of that at w = 0, below which an objective that nothing bounds has no optimum."""
Task = Evaluate | Square


@dataclass(eq=False)
class ProximalState:
    """What lies between two passes, for p columns and q problems.

    Attributes
    ----------
    W, P, best_W : ndarray of shape (p, n)
        Points, steps from them, and the best points.
    square : ndarray of shape (n, n)
        sum_i c_i x'_i x'_i'; NaN before it is known.
    length, value, fall : ndarray of shape (q,)
        Length of the step, objective at W, and what the model says of the whole step; NaN before the first one.
    best, lower, gap, strict : ndarray of shape (q,)
    stalled, done : ndarray of shape (q,), int
    """

    W: np.ndarray
    P: np.ndarray
    best_W: np.ndarray
    square: np.ndarray
    length: np.ndarray
    value: np.ndarray
    fall: np.ndarray
    best: np.ndarray
    lower: np.ndarray
    gap: np.ndarray
    strict: np.ndarray
    stalled: np.ndarray
    done: np.ndarray

    @classmethod
    def first(cls, form: StreamedForm, q: int) -> ProximalState:
        """At w = 0."""
        p, n = len(form.columns), form.size
        known = {name: np.zeros((p, n)) for name in ("W", "P", "best_W")} | {"square": np.full((n, n), math.nan)}
        known |= {name: np.ones(q) for name in ("length", "strict")}
        known |= {name: np.full(q, math.nan) for name in ("value", "fall")}
        known |= {name: np.full(q, math.inf) for name in ("best", "gap")} | {"lower": np.full(q, -math.inf)}
        return cls(**known, **{name: np.zeros(q, dtype=np.int64) for name in ("stalled", "done")})

    def arrays(self) -> dict[str, np.ndarray]:
        """The same as a mapping, for a file."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


class BlockProximal:
    """The steps between passes.

    Parameters
    ----------
    form : StreamedForm
    groups : sequence of tuple of int
        Columns of every problem: those whose coefficients of a feature are punished together.
    tol : float
    state : ProximalState
        Where to begin; it is written to.
    """

    def __init__(self, form: StreamedForm, groups: Sequence[tuple[int, ...]], tol: float, state: ProximalState) -> None:
        self.form, self.groups, self.tol, self.state = form, groups, tol, state
        self.beta = np.full(form.size, form.penalty)
        if form.bias == "free":
            self.beta[-1] = 0.0

    def work(self) -> Task | None:
        """What the next pass has to do; None: nothing."""
        state = self.state
        if np.isnan(state.square[0, 0]):
            return Square(self.form)
        places = tuple(j for t, group in enumerate(self.groups) if not state.done[t] for j in group)
        if not places:
            return None
        of = np.array([next(t for t, group in enumerate(self.groups) if j in group) for j in places])
        at = list(places)
        return Evaluate.plain(self.form, places, state.W[at] + state.length[of, None] * state.P[at])

    def take(self, work: Task, sums: Sums) -> Generator[None, None, None]:
        """Go on with what a pass found."""
        if isinstance(work, Square):
            self.state.square = sums["square"]
            return
        for t, group in enumerate(self.groups):
            if set(group) <= set(work.places):
                at = [work.places.index(j) for j in group]
                yield from self._arrive(t, work.W[at], {name: values[at] for name, values in sums.items()})

    def _arrive(self, t: int, W: np.ndarray, sums: dict[str, np.ndarray]) -> Generator[None, None, None]:
        """Judge the point that a step has led to, and plan the next."""
        state, group = self.state, list(self.groups[t])
        smooth, G = smooth_part(self.form, group, W, sums)
        rounding = sizes_of(self.form, group, state.square)
        value = smooth + float(self.beta @ lengths(W.T))
        most = state.value[t] + ARMIJO * state.length[t] * state.fall[t] + ROUNDING_OF_VALUES * abs(state.value[t])
        if not (np.isnan(most) or value <= most):
            state.length[t] *= 0.5
            state.done[t] = state.length[t] < SHORTEST_STEP
            return
        zero = sum(self.form.columns[j].column.at_zero for j in group)
        better = value < state.best[t] * (1.0 - 1e-12 * math.copysign(1.0, state.best[t]))
        if value < state.best[t]:
            state.best[t], state.best_W[group] = value, W
        H = np.array([hessian(self.form, j, state.square, sums["hessian"][i]) for i, j in enumerate(group)])
        Q = np.array([hessian(self.form, j, state.square) for j in group])
        bound = yield from lower_bound(QuadraticModel(Q, G, W.T, self.beta, rounding))
        state.lower[t] = max(float(state.lower[t]), smooth + bound)
        if value < -UNBOUNDED_VALUE * abs(zero) and math.isinf(state.lower[t]):
            raise ValueError(
                "there is no optimum on these row blocks: the loss falls by more than the penalty grows; give the "
                "penalty a larger weight"
            )
        gap = gap_between(float(state.best[t]), min(float(state.lower[t]), float(state.best[t])), zero, False)
        state.stalled[t] = 0 if better or gap < 0.9 * state.gap[t] else state.stalled[t] + 1
        state.gap[t] = min(gap, float(state.gap[t]))
        state.done[t] = gap <= self.tol * state.strict[t] or state.stalled[t] >= STALL_STEPS
        if state.done[t]:
            return
        model = QuadraticModel(H, G, W.T, self.beta)
        V = yield from minimised(model)
        state.W[group], state.P[group] = W, V.T - W
        fall = float((G * (V - W.T)).sum()) + float(self.beta @ lengths(V)) - float(self.beta @ lengths(W.T))
        state.length[t], state.value[t], state.fall[t] = 1.0, value, min(fall, 0.0)

    def reopen(self, certificates: list[Certificate]) -> bool:
        """Go on where certificates fall short of estimates; whether there is anything to gain."""
        state, found = self.state, False
        for t, one in enumerate(certificates):
            if one.converged or state.strict[t] < LEAST_TOLERANCE or state.stalled[t] >= STALL_STEPS:
                continue
            found = True
            state.strict[t] *= TOLERANCE_SHRINKAGE
            state.done[t], state.stalled[t], state.gap[t], state.lower[t] = 0, 0, math.inf, -math.inf
            state.length[t], state.value[t], state.fall[t] = 0.0, math.nan, math.nan
            group = list(self.groups[t])
            state.W[group] = state.best_W[group]
        return found

    def zeros(self) -> list[float]:
        """Objectives of all problems at w = 0."""
        return [self.form.unit * sum(self.form.columns[j].column.at_zero for j in group) for group in self.groups]

    def floors(self) -> list[float]:
        """What multipliers 0 say of all problems from below."""
        return [self.form.unit * sum(self.form.columns[j].floor for j in group) for group in self.groups]

    def reported(self) -> list[Certificate]:
        """Certificates of all problems at the best points, from what the passes so far have found."""
        unit, values = self.form.unit, zip(self.state.best, self.state.lower, self.zeros(), self.floors())
        return [
            judge(unit * float(best), max(unit * float(low), floor), zero, False, self.tol)
            for best, low, zero, floor in values
        ]

    def certified(self, W: np.ndarray, square: np.ndarray, sums: Sums) -> Generator[None, None, list[Certificate]]:
        """Certificates of all problems at W of shape (p, n), from sums of passes of their own."""
        found = []
        for group in map(list, self.groups):
            mine = {name: values[group] for name, values in sums.items()}
            smooth, G = smooth_part(self.form, group, W[group], mine)
            Q = np.array([hessian(self.form, j, square) for j in group])
            rounding = sizes_of(self.form, group, square)
            bound = yield from lower_bound(QuadraticModel(Q, G, W[group].T, self.beta, rounding))
            value = smooth + float(self.beta @ lengths(W[group].T))
            zero = sum(self.form.columns[j].column.at_zero for j in group)
            unit = self.form.unit
            found.append(judge(unit * value, unit * (smooth + bound), unit * zero, False, self.tol))
        return found


def smooth_part(
    form: StreamedForm, group: Sequence[int], W: np.ndarray, sums: dict[str, np.ndarray]
) -> tuple[float, np.ndarray]:
    """Value of everything but the penalty, and its gradient of shape (n, k), from sums at W."""
    value, G, R = 0.0, np.empty(W.T.shape), form.punished
    for i, j in enumerate(group):
        one, first = form.columns[j], float(sums["first"][i])
        column, total = one.column, one.column.total
        value += 0.5 * float(R @ (W[i] * W[i])) + float(sums["value"][i])
        value -= column.mean * (float(one.centre @ W[i]) + first / total)
        value += 0.5 * column.kappa * (float(sums["second"][i]) - first * first / total)
        G[:, i] = R * W[i] - sums["element"][i] - column.kappa * first * one.centre
    return value, G


def sizes_of(form: StreamedForm, group: Sequence[int], square: np.ndarray) -> np.ndarray:
    """What the terms of a feature's slope, the variance's left out, add up to without their signs, roughly."""
    mass = 0.0
    for j in group:
        column = form.columns[j].column
        losses = sum(min(term.weight, term.steepest) for term in column.terms)
        mass += column.mean + column.total * losses
    return mass * np.sqrt(np.diagonal(square) / form.columns[0].column.total)


def hessian(form: StreamedForm, j: int, square: np.ndarray, whole: np.ndarray | None = None) -> np.ndarray:
    """Second derivative of variance and ridge of a column, and of its losses where `whole` has them."""
    one = form.columns[j]
    kappa, total = one.column.kappa, one.column.total
    H = np.array(kappa * square if whole is None else whole)
    H -= (kappa * total) * np.multiply.outer(one.centre, one.centre)
    H[np.diag_indices_from(H)] += form.punished
    return H
