"""State machine of proximal Newton steps over row blocks, for smooth losses under an L1 or L2,1 penalty.

A pass gives value, gradient and Hessian of every column. The next step is the minimiser of the quadratic model with
the penalty itself, found in memory; it is halved until the objective falls as the model lets it. The variance, the
ridge and the tangent of the losses make another model, which lies below the objective everywhere: its minimum is the
bound.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mdlearn.data.row_blocks.source import RowBlocks
from mdlearn.data.row_blocks.summary import Summary, SummarySums
from mdlearn.forms.certificates.rounding import to_type
from mdlearn.forms.joint.composite_point import row_lengths
from mdlearn.streaming.engines.block_engine import BlockEngineState, BlockStepEngine
from mdlearn.streaming.engines.penalised_quadratic import (
    PenalisedQuadratic,
    minimise_penalised_quadratic,
    penalised_quadratic_bound,
)
from mdlearn.streaming.sums.certificate import Candidate, objective_of_sums
from mdlearn.streaming.sums.pass_sums import PointPass, column_pass_sums
from mdlearn.streaming.sums.streamed_form import StreamedForm

ARMIJO, ROUNDING_OF_VALUES, SHORTEST_STEP = 1e-4, 1e-14, 1e-10
STALL_STEPS = 4
"""Steps without progress after which rounding is taken to be reached."""
UNBOUNDED_VALUE = 1e6
"""Value in units of that at w = 0, below which an objective that nothing bounds has no optimum."""


@dataclass(eq=False)
class ProximalState(BlockEngineState):
    """State in the proximal state machine, from pass to pass."""

    square: np.ndarray  # shape (n, n): sum_i c_i x'_i x'_i'; NaN before it is known
    fall: np.ndarray  # shape (q,): what the model says of the whole step; NaN before the first one
    done: np.ndarray  # shape (q,), int

    @classmethod
    def first(cls, form: StreamedForm, q: int) -> ProximalState:
        """At w = 0."""
        square, done = np.full((form.size, form.size), math.nan), np.zeros(q, dtype=np.int64)
        return cls(**cls.at_zero(form, q), square=square, fall=np.full(q, math.nan), done=done)


class BlockProximal(BlockStepEngine):
    """State machine of proximal Newton steps between passes over row blocks.

    `groups`: columns of every problem: those whose coefficients of a feature are punished together.
    """

    state: ProximalState  # where to begin; it is written to

    def __init__(self, form: StreamedForm, groups: Sequence[tuple[int, ...]], tol: float, state: ProximalState) -> None:
        super().__init__(form, groups, tol, state)
        self.beta = np.full(form.size, form.penalty)
        if form.bias == "free":
            self.beta[-1] = 0.0

    def work(self) -> PointPass | None:
        """Evaluate all problems that are not done; the first pass finds the variance's matrix as well."""
        state, todo = self.state, [t for t in range(len(self.groups)) if not self.state.done[t]]
        if not todo:
            return None
        places = tuple(j for t in todo for j in self.groups[t])
        each = np.concatenate([np.full(len(self.groups[t]), state.length[t]) for t in todo])
        W = state.W[list(places)] + each[:, None] * state.P[list(places)]
        return PointPass(self.form, places, W, np.ones(len(places)), squared=bool(np.isnan(state.square[0, 0])))

    def take(self, work: PointPass, sums: SummarySums) -> Generator[None, None, None]:
        self.state.square = sums.pop("square", self.state.square)
        for t, group in enumerate(self.groups):
            if set(group) <= set(work.places):
                at = [work.places.index(j) for j in group]
                yield from self._arrive(t, work.W[at], [column_pass_sums(sums, i) for i in at])

    def _arrive(self, t: int, W: np.ndarray, sums: Sequence[Mapping[str, np.ndarray]]) -> Generator[None, None, None]:
        """Judge the point that a step has led to, and plan the next."""
        state, group = self.state, list(self.groups[t])
        value, smooth, G = self._at(t, W, sums)
        most = state.value[t] + ARMIJO * state.length[t] * state.fall[t] + ROUNDING_OF_VALUES * abs(state.value[t])
        if not (np.isnan(most) or value <= most):
            state.length[t] *= 0.5
            state.done[t] = state.length[t] < SHORTEST_STEP
            return
        better = value < state.best[t] * (1.0 - 1e-12 * math.copysign(1.0, state.best[t]))
        if value < state.best[t]:
            state.best[t], state.best_W[group] = value, W
        bound = yield from self._bound(t, W, G, state.square)
        state.lower[t] = max(float(state.lower[t]), smooth + bound)
        if value < -UNBOUNDED_VALUE * abs(self.zero(t)[0]) and math.isinf(state.lower[t]):
            raise ValueError(
                "there is no optimum on these row blocks: the loss falls by more than the penalty grows; give the "
                "penalty a larger weight"
            )
        state.done[t] = self.ended(t, onward=better)
        if state.done[t]:
            return
        H = np.array([self._hessian(j, state.square, one["hessian"]) for j, one in zip(group, sums)])
        V = yield from minimise_penalised_quadratic(PenalisedQuadratic(H, G, W.T, self.beta))
        state.W[group], state.P[group] = W, V.T - W
        fall = float((G * (V - W.T)).sum()) + float(self.beta @ row_lengths(V)) - float(self.beta @ row_lengths(W.T))
        state.length[t], state.value[t], state.fall[t] = 1.0, value, min(fall, 0.0)

    def resume(self, t: int, lower: float) -> None:
        """Begin anew at the best point."""
        state, group = self.state, list(self.groups[t])
        state.done[t], state.lower[t] = 0, lower
        state.length[t], state.value[t], state.fall[t] = 0.0, math.nan, math.nan
        state.W[group] = state.best_W[group]

    def patience(self, t: int) -> int:
        """Passes without progress after which rounding is taken to be reached; the same number for every problem."""
        return STALL_STEPS

    def certified(
        self, blocks: RowBlocks, summary: Summary, late: bool
    ) -> Generator[None, None, list[list[Candidate]]]:
        """The best points, with the bounds of models there, or with better ones of earlier passes."""
        W, found = to_type(self.state.best_W, summary.dtype).astype(np.float64), []
        places = tuple(range(W.shape[0]))
        sums = yield from blocks.fold(PointPass(self.form, places, W, np.ones(len(places)), squared=True), summary)
        square = sums.pop("square")
        for t, group in enumerate(map(list, self.groups)):
            value, smooth, G = self._at(t, W[group], [column_pass_sums(sums, j) for j in group])
            bound = yield from self._bound(t, W[group], G, square)
            found.append([(value, max(float(self.state.lower[t]), smooth + bound), W[group])])
        return found

    def _at(self, t: int, W: np.ndarray, sums: Sequence[Mapping[str, np.ndarray]]) -> tuple[float, float, np.ndarray]:
        """Objective, what it is without the penalty, and the gradient of that, of shape (n, k), from sums at W."""
        smooth, G = 0.0, np.empty(W.T.shape)
        for i, (j, mine) in enumerate(zip(self.groups[t], sums)):
            one = self.form.columns[j]
            smooth += objective_of_sums(self.form, j, W[i], mine)
            G[:, i] = self.form.punished * W[i] - mine["element"] - one.column.kappa * mine["first"] * one.centre
        return smooth + float(self.beta @ row_lengths(W.T)), smooth, G

    def _bound(self, t: int, W: np.ndarray, G: np.ndarray, square: np.ndarray) -> Generator[None, None, float]:
        """Lower bound of the objective, less its smooth part at W."""
        Q = np.array([self._hessian(j, square) for j in self.groups[t]])
        return penalised_quadratic_bound(PenalisedQuadratic(Q, G, W.T, self.beta, self._slope_sizes(t, square)))

    def _hessian(self, j: int, square: np.ndarray, whole: np.ndarray | None = None) -> np.ndarray:
        """Hessian of variance and ridge of a column, and of its losses where `whole` has them."""
        one = self.form.columns[j]
        kappa, total = one.column.kappa, one.column.total
        H = np.array(kappa * square if whole is None else whole)
        H -= (kappa * total) * np.multiply.outer(one.centre, one.centre)
        H[np.diag_indices_from(H)] += self.form.punished
        return H

    def _slope_sizes(self, t: int, square: np.ndarray) -> np.ndarray:
        """Rough sizes of slopes, shape (n,): sums of their absolute terms, those of the variance left out."""
        columns = [self.form.columns[j].column for j in self.groups[t]]
        losses = [sum(min(term.weight, term.steepest) for term in column.terms) for column in columns]
        mass = sum(column.mean + column.total * steepest for column, steepest in zip(columns, losses))
        return np.asarray(mass * np.sqrt(np.diagonal(square) / columns[0].total))
