"""State machine of proximal Newton steps over row blocks, for losses of finite weight beside terms of the coefficients.

A pass gives value, gradient and Hessian of every column. The next step is the minimiser of the quadratic model with
the terms of the coefficients themselves, found in memory; it is halved until the objective falls as the model lets it.
Hinges are rounded off on a half width h, which falls once a step promises less than what the rounding costs. The
tangents of the losses, the variance and the ridge make another model, which lies below the objective everywhere: its
minimum is the bound.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mdlearn.data.row_blocks.source import RowBlocks
from mdlearn.data.row_blocks.summary import Summary, SummarySums
from mdlearn.forms.certificates.rounding import to_type
from mdlearn.forms.penalised.blocks import CoefficientBlocks
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.streaming.engines.block_engine import BlockEngineState, BlockStepEngine
from mdlearn.streaming.engines.penalised_model import (
    PenalisedModel,
    QuadraticSpectrum,
    minimise_penalised_model,
    stacked_columns,
)
from mdlearn.streaming.sums.certificate import Candidate, loss_tangent_of_sums, objective_of_sums, tangent_of_sums
from mdlearn.streaming.sums.multipliers import MOVED, MultiplierSource
from mdlearn.streaming.sums.pass_sums import PointPass, column_pass_sums
from mdlearn.streaming.sums.streamed_form import StreamedForm

FLOAT64_UNIT = float(np.finfo(np.float64).eps)
ROUNDING_OF_VALUES = 1e-14
"""Relative difference of two objectives that is rounding."""
ARMIJO, SHORTEST_STEP = 1e-4, 1e-10
STALL_STEPS, KINKED_STALL_STEPS = 4, 8
"""Steps without progress after which rounding is taken to be reached; of columns with kinks."""
UNBOUNDED_VALUE = 1e6
"""Value in units of that at w = 0, below which an objective that nothing bounds has no optimum."""
PROXIMAL_COST_SHARE, KINK_SHRINKAGE = 0.5, 0.1
"""Share of what rounding costs below which a promised gain says that h has to fall, and its factor then."""
PROXIMAL_LEAST_BAND = 1e-13
"""h at which the rounding of margins of size 1 shows."""


@dataclass(eq=False)
class ProximalState(BlockEngineState):
    """State in the proximal state machine, from pass to pass; `value` is the objective with kinks rounded by `h`."""

    square: np.ndarray  # shape (n, n): sum_i c_i x'_i x'_i; NaN before it is known
    fall: np.ndarray  # shape (q,): what the model says of the whole step; NaN before the first one
    done: np.ndarray  # shape (q,), int
    h: np.ndarray  # shape (q,): half width of rounded kinks
    s: np.ndarray  # shape (q, r): multipliers of the coefficient terms
    lower_W: np.ndarray  # shape (p, n): where the multipliers of the best bounds are from: slopes there,
    lower_P: np.ndarray  # shape (p, n): moved along the second derivatives by this
    lower_h: np.ndarray  # shape (q,)
    lower_s: np.ndarray  # shape (q, r)

    @classmethod
    def first(cls, form: StreamedForm, groups: Sequence[tuple[int, ...]]) -> ProximalState:
        """At w = 0, or where the limits are kept, with kinks rounded so that all rows are within."""
        q, found = len(groups), cls.at_zero(form, len(groups))
        h = np.array([max(form.columns[j].widest_kink for j in group) for group in groups])
        blocks = form.coefficient_blocks(len(groups[0]))
        for name in ("W", "best_W"):
            for group in map(list, groups):
                found[name][group] = blocks.repaired(found[name][group].T.ravel()).reshape(form.size, -1).T
        return cls(
            **found,
            square=np.full((form.size, form.size), math.nan),
            fall=np.full(q, math.nan),
            done=np.zeros(q, dtype=np.int64),
            h=h,
            s=np.zeros((q, blocks.K.shape[0])),
            lower_W=found["W"].copy(),
            lower_P=found["P"].copy(),
            lower_h=h.copy(),
            lower_s=np.zeros((q, blocks.K.shape[0])),
        )


@dataclass(frozen=True, eq=False)
class ProximalEvaluation:
    """Problem of a proximal engine at a point, from the sums of a pass."""

    value: float  # objective, infinite beyond the limits
    rounded: float  # with rounded kinks
    smooth: float  # that without the coefficient terms
    G: np.ndarray  # shape (n k,): its gradient
    cost: float  # what rounding of kinks costs
    drift: np.ndarray  # shape (n k,): change of the gradient per unit of h


class BlockProximal(BlockStepEngine):
    """State machine of proximal Newton steps between passes over row blocks.

    `groups`: columns of every problem: those whose coefficients of a feature are punished together.
    """

    state: ProximalState  # where to begin; it is written to

    def __init__(self, form: StreamedForm, groups: Sequence[tuple[int, ...]], tol: float, state: ProximalState) -> None:
        super().__init__(form, groups, tol, state)
        self.blocks: CoefficientBlocks = form.coefficient_blocks(len(groups[0]))
        self.blocks.check_consistent()
        self.spectra: dict[int, QuadraticSpectrum] = {}

    def work(self) -> PointPass | None:
        """Evaluate all problems that are not done; the first pass finds the variance's matrix as well."""
        state, todo = self.state, [t for t in range(len(self.groups)) if not self.state.done[t]]
        if not todo:
            return None
        places = tuple(j for t in todo for j in self.groups[t])
        each = np.concatenate([np.full(len(self.groups[t]), state.length[t]) for t in todo])
        W = state.W[list(places)] + each[:, None] * state.P[list(places)]
        h = np.concatenate([np.full(len(self.groups[t]), state.h[t]) for t in todo])
        # Only multipliers that have moved by the whole step meet the conditions of coefficients without a ridge.
        moved = {j: MultiplierSource(state.W[j], state.P[j], float(h[i])) for i, j in enumerate(places)}
        sources = moved if self.form.ridge == 0 and not np.isnan(state.square[0, 0]) else {}
        return PointPass(self.form, places, W, h, sources, squared=bool(np.isnan(state.square[0, 0])))

    def take(self, work: PointPass, sums: SummarySums) -> Generator[None, None, None]:
        self.state.square = sums.pop("square", self.state.square)
        for t, group in enumerate(self.groups):
            if set(group) <= set(work.places):
                at = [work.places.index(j) for j in group]
                try:
                    yield from self._arrive(t, work.W[at], [column_pass_sums(sums, i) for i in at])
                except NotPositiveDefinite:  # numbers beyond float64: the best point so far is the answer
                    self.state.done[t] = 1

    def _arrive(self, t: int, W: np.ndarray, sums: Sequence[Mapping[str, np.ndarray]]) -> Generator[None, None, None]:
        """Judge the point that a step has led to, and plan the next."""
        state, group = self.state, list(self.groups[t])
        here = self._at(t, W, sums)
        if MOVED + "bound" in sums[0]:
            self._note_bound(t, state.W[group], state.P[group], [state.s[t]], sums, MOVED)
        most = state.value[t] + ARMIJO * state.length[t] * state.fall[t] + ROUNDING_OF_VALUES * abs(state.value[t])
        if not (np.isnan(most) or here.rounded <= most):
            state.length[t] *= 0.5
            state.done[t] = state.length[t] < SHORTEST_STEP
            return
        better = here.value < state.best[t] * (1.0 - 1e-12 * math.copysign(1.0, state.best[t]))
        if here.value < state.best[t]:
            state.best[t], state.best_W[group] = here.value, W
        H = stacked_columns([self._hessian(j, state.square, one["hessian"]) for j, one in zip(group, sums)])
        model = PenalisedModel(self.blocks, here.smooth, here.G, H, W.T.ravel(), self._scale(t))
        v, s = yield from minimise_penalised_model(model, state.s[t])
        fall = min(model.at(v) - here.rounded, 0.0)
        self._note_bound(t, W, np.zeros_like(W), [s, state.s[t]], sums)
        if here.value < -UNBOUNDED_VALUE * abs(self.zero(t)[0]) and math.isinf(state.lower[t]):
            raise ValueError(
                "there is no optimum on these row blocks: the loss falls by more than the penalty grows; give the "
                "penalty a larger weight"
            )
        kinked = self._kinked(t)
        smallest = PROXIMAL_LEAST_BAND * max(self.form.columns[j].unit for j in group)
        state.done[t] = self.ended(t, onward=better or (kinked and state.h[t] > smallest))
        if state.done[t]:
            return
        state.length[t], state.value[t], state.fall[t] = 1.0, here.rounded, fall
        if kinked and -fall <= PROXIMAL_COST_SHARE * here.cost:
            h = KINK_SHRINKAGE * state.h[t]
            ahead = replace(model, G=model.G - (h - state.h[t]) * here.drift)
            v, s = yield from minimise_penalised_model(ahead, s)
            state.h[t], state.value[t], state.fall[t] = h, math.nan, math.nan
        state.W[group], state.P[group], state.s[t] = W, v.reshape(W.T.shape).T - W, s

    def _note_bound(
        self,
        t: int,
        W: np.ndarray,
        P: np.ndarray,
        multipliers: Sequence[np.ndarray],
        sums: Sequence[Mapping[str, np.ndarray]],
        which: str = "",
    ) -> None:
        """Keep the best bound, and where its multipliers are from."""
        state, group = self.state, list(self.groups[t])
        if t not in self.spectra:
            self.spectra[t] = self._spectrum(t, state.square)
        lower, s = self._bound(t, self.spectra[t], W + P, multipliers, sums, which)
        if lower > state.lower[t]:
            state.lower[t], state.lower_h[t], state.lower_s[t] = lower, state.h[t], s
            state.lower_W[group], state.lower_P[group] = W, P

    def resume(self, t: int, lower: float) -> None:
        """Begin anew at the best point."""
        state, group = self.state, list(self.groups[t])
        state.done[t], state.lower[t] = 0, lower
        state.length[t], state.value[t], state.fall[t] = 0.0, math.nan, math.nan
        state.W[group] = state.best_W[group]

    def patience(self, t: int) -> int:
        """More with kinks."""
        return KINKED_STALL_STEPS if self._kinked(t) else STALL_STEPS

    def fallback(self, t: int) -> Candidate:
        """Return w = 0, or where the limits exclude it, coefficients within them of no known value."""
        value, lower, W = self.zero(t)
        if self.blocks.meets_limits(np.zeros(W.size), 0.0):
            return value, lower, W
        return math.inf, lower, self.blocks.repaired(np.zeros(W.size)).reshape(W.T.shape).T

    def certified(
        self, blocks: RowBlocks, summary: Summary, late: bool
    ) -> Generator[None, None, list[list[Candidate]]]:
        """The best points, with the multipliers of the best bounds."""
        state, form, found = self.state, self.form, []
        W = state.best_W.copy()
        for group in map(list, self.groups):
            W[group] = self._within(W[group], summary.dtype)
        places = tuple(range(W.shape[0]))
        widths = np.empty(len(places))
        for t, group in enumerate(map(list, self.groups)):
            widths[group] = state.lower_h[t]
        sources = {j: MultiplierSource(state.lower_W[j], state.lower_P[j], widths[j]) for j in places}
        sums = yield from blocks.fold(PointPass(form, places, W, widths, sources, squared=True), summary, proof=True)
        square = sums.pop("square")
        for t, group in enumerate(map(list, self.groups)):
            mine = [column_pass_sums(sums, j) for j in group]
            value = self._at(t, W[group], mine, float(np.finfo(summary.dtype).eps)).value
            spectrum, s = self._spectrum(t, square), [state.lower_s[t], state.s[t]]
            lower = max(
                self._bound(t, spectrum, (state.lower_W + state.lower_P)[group], s, mine, MOVED)[0],
                self._bound(t, spectrum, W[group], s, mine)[0],
            )
            found.append([(value, lower, W[group])])
        return found

    def candidates(self, dtype: np.dtype[Any]) -> list[list[Candidate]]:
        """Return the best points; bounds that a condition of the multipliers holds are estimates."""
        return [[(value, lower, self._within(W, dtype))] for ((value, lower, W),) in super().candidates(dtype)]

    def _within(self, W: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
        """Coefficients of a problem as a model of a type has them, within their limits but for its rounding."""
        return to_type(self.blocks.repaired(W.T.ravel()).reshape(W.T.shape).T, dtype).astype(np.float64)

    def _kinked(self, t: int) -> bool:
        return any(self.form.columns[j].kinked for j in self.groups[t])

    def _at(
        self, t: int, W: np.ndarray, sums: Sequence[Mapping[str, np.ndarray]], unit: float = FLOAT64_UNIT
    ) -> ProximalEvaluation:
        """Evaluate a problem from sums at W, within the limits in roundings of a type whose unit is given."""
        form, w = self.form, W.T.ravel()
        terms = self.blocks.value(self.blocks.dot(w)) if self.blocks.meets_limits(w, unit) else math.inf
        value, smooth, below = 0.0, 0.0, 0.0
        G, drift = np.empty(W.T.shape), np.empty(W.T.shape)
        for i, (j, mine) in enumerate(zip(self.groups[t], sums)):
            one = form.columns[j]
            value += objective_of_sums(form, j, W[i], mine)
            smooth += objective_of_sums(form, j, W[i], mine, "rounded")
            below += loss_tangent_of_sums(form, j, W[i], mine)
            G[:, i] = form.punished * W[i] - mine["element"] - one.column.kappa * float(mine["first"]) * one.centre
            drift[:, i] = mine["drift"]
        cost = sum(float(mine["value"]) for mine in sums) - below
        return ProximalEvaluation(value + terms, smooth + terms, smooth, G.ravel(), max(cost, 0.0), drift.ravel())

    def _bound(
        self,
        t: int,
        spectrum: QuadraticSpectrum,
        W: np.ndarray,
        multipliers: Sequence[np.ndarray],
        sums: Sequence[Mapping[str, np.ndarray]],
        which: str = "",
    ) -> tuple[float, np.ndarray]:
        """Largest lower bound of multipliers of the terms beside those of the losses at W, and which these are."""
        each = [tangent_of_sums(self.form, j, w, mine, which) for j, w, mine in zip(self.groups[t], W, sums)]
        value, G = sum(one[0] for one in each), np.array([one[1] for one in each]).T.ravel()
        floor = -math.inf if self.form.columns[0].column.mean > 0 else self.zero(t)[1]
        found = [(spectrum.bound(self.blocks, value, G, W.T.ravel(), s, floor), s) for s in multipliers]
        return max(found, key=lambda one: one[0])

    def _spectrum(self, t: int, square: np.ndarray) -> QuadraticSpectrum:
        columns, total = [self.form.columns[j] for j in self.groups[t]], self.form.columns[0].column.total
        masses = []
        for one in columns:
            each = zip(one.column.terms, one.term_masses)
            masses.append(
                one.column.mean + sum(float(own.sum()) * min(term.weight, term.steepest) for term, own in each)
            )
        sizes = np.multiply.outer(np.sqrt(np.diagonal(square) / total), masses).ravel()
        return QuadraticSpectrum(
            [self._hessian(j, square) for j in self.groups[t]], sizes, self.form.sided(self.groups[t][0])
        )

    def _hessian(self, j: int, square: np.ndarray, whole: np.ndarray | None = None) -> np.ndarray:
        """Hessian of variance and ridge of a column, and of its losses where `whole` has them."""
        one = self.form.columns[j]
        kappa, total = one.column.kappa, one.column.total
        H = np.array(kappa * square if whole is None else whole)
        H -= (kappa * total) * np.multiply.outer(one.centre, one.centre)
        H[np.diag_indices_from(H)] += self.form.punished
        return H

    def _scale(self, t: int) -> np.ndarray:
        """Second derivatives of the coefficients, shape (n k,), if all rows were on a kink or were bent most."""
        columns, found = [self.form.columns[j] for j in self.groups[t]], []
        for one in columns:
            each = zip(one.column.terms, one.term_masses)
            bend = sum(
                float(mass.sum()) * (term.weight / self.state.h[t] if term.kind == "hinge" else term.steepest)
                for term, mass in each
            )
            found.append(np.diagonal(self.state.square) * (one.column.kappa + bend / one.column.total))
        return np.array(found).T.ravel()
