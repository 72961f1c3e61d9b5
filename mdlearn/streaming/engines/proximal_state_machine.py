"""State machine of proximal Newton steps over row blocks, for losses of finite weight beside terms of the coefficients.

A pass gives value, gradient and Hessian of every column. The next step is the minimiser of the quadratic model with
the terms of the coefficients themselves, found in memory; it is halved until the objective falls as the model lets it.
The tangents of the losses, the variance and the ridge make another model, which lies below the objective everywhere:
its minimum is the bound.

Hinges are rounded off on a half width h, which falls once a step promises less than what the rounding costs. Where no
more rows are near a kink than may be held in memory, a pass gathers them: their hinges become terms of the model, all
other rows stay on their side, and the model is minimised exactly.
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
from mdlearn.streaming.engines.block_engine import DONE, GATHER, STEP, BlockStepEngine, SourcedState, rows_to_gather
from mdlearn.streaming.engines.penalised_model import (
    PenalisedModel,
    QuadraticSpectrum,
    blocks_of_rows,
    minimise_penalised_model,
    stacked_columns,
)
from mdlearn.streaming.sums.certificate import Candidate, loss_tangent_of_sums, objective_of_sums, tangent_of_sums
from mdlearn.streaming.sums.multipliers import MOVED, ExactMultipliers, MultiplierSource
from mdlearn.streaming.sums.pass_sums import GatherPass, GatherPassRows, PointPass, column_pass_sums
from mdlearn.streaming.sums.streamed_form import KINK_REACH, StreamedForm

FLOAT64_UNIT = float(np.finfo(np.float64).eps)
ROUNDING_OF_VALUES = 1e-14
"""Relative difference of two objectives that is rounding."""
ARMIJO, SHORTEST_STEP = 1e-4, 1e-10
STALL_STEPS, KINKED_STALL_STEPS = 4, 8
"""Steps without progress after which rounding is taken to be reached; of columns with kinks."""
UNBOUNDED_VALUE = 1e6
"""Value in units of that at w = 0, below which an objective that nothing bounds has no optimum."""
PROXIMAL_COST_SHARE, KINK_SHRINKAGE = 0.5, 0.2
"""Share of what rounding costs below which a promised gain says that h has to fall, and its factor then."""
PROXIMAL_LEAST_BAND = 1e-13
"""h at which the rounding of margins of size 1 shows."""

FRUITLESS_GATHERS = 3
"""Solutions over gathered rows without progress after which kinks are rounded again, on a smaller h."""


@dataclass(eq=False)
class ProximalState(SourcedState):
    """State in the proximal state machine, from pass to pass; `value` is the objective with kinks rounded by `h`."""

    square: np.ndarray  # shape (n, n): sum_i c_i x'_i x'_i; NaN before it is known
    fall: np.ndarray  # shape (q,): what the model says of the whole step; NaN before the first one
    mode: np.ndarray  # shape (q,), int: what a problem needs next
    h: np.ndarray  # shape (q,): half width of rounded kinks
    s: np.ndarray  # shape (q, r): multipliers of the coefficient terms
    sourced_s: np.ndarray  # shape (q, r): those of the best bounds, beside `sources`
    tried: np.ndarray  # shape (q,): h when rows were gathered last

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
            mode=np.zeros(q, dtype=np.int64),
            h=h,
            s=np.zeros((q, blocks.K.shape[0])),
            sourced_s=np.zeros((q, blocks.K.shape[0])),
            tried=np.full(q, math.inf),
            sources=[MultiplierSource(w, np.zeros_like(w), float(h.max())) for w in found["W"]],
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

    def __init__(
        self,
        form: StreamedForm,
        groups: Sequence[tuple[int, ...]],
        tol: float,
        state: ProximalState,
        held: int | None = None,
    ) -> None:
        super().__init__(form, groups, tol, state)
        self.held = rows_to_gather(form, held)
        self.blocks: CoefficientBlocks = form.coefficient_blocks(len(groups[0]))
        self.blocks.check_consistent()
        self.spectra: dict[tuple[int, bool], QuadraticSpectrum] = {}

    def work(self) -> PointPass | GatherPass | None:
        """Evaluate all problems that take a step; then gather rows of others. The first pass finds the square too."""
        state = self.state
        for mode in (STEP, GATHER):
            todo = np.flatnonzero(state.mode == mode).tolist()
            if not todo:
                continue
            places = tuple(j for t in todo for j in self.groups[t])
            length, h = (np.repeat(one[todo], [len(self.groups[t]) for t in todo]) for one in (state.length, state.h))
            W, P = state.W[list(places)], state.P[list(places)]
            if mode == GATHER:
                return GatherPass(self.form, places, W, KINK_REACH * h)
            # Only multipliers that have moved by the whole step meet the conditions of coefficients without a ridge.
            first = bool(np.isnan(state.square[0, 0]))
            moved = (
                {}
                if first or self.form.ridge > 0
                else {
                    j: MultiplierSource(state.W[j].copy(), state.P[j].copy(), float(h[i])) for i, j in enumerate(places)
                }
            )
            return PointPass(self.form, places, W + length[:, None] * P, h, moved, squared=first)
        return None

    def take(self, work: PointPass | GatherPass, sums: SummarySums) -> Generator[None, None, None]:
        self.state.square = sums.pop("square", self.state.square)
        for t, group in enumerate(self.groups):
            if set(group) <= set(work.places):
                at = [work.places.index(j) for j in group]
                mine = [column_pass_sums(sums, i) for i in at]
                gathered = isinstance(work, GatherPass)
                near = [sums[f"near {i}"] for i in at] if gathered else []
                try:
                    yield from self._solve(t, work.W[at], mine, near) if gathered else self._arrive(t, work.W[at], mine)
                except NotPositiveDefinite:  # numbers beyond float64: the best point so far is the answer
                    self.state.mode[t] = DONE

    def _arrive(self, t: int, W: np.ndarray, sums: Sequence[Mapping[str, np.ndarray]]) -> Generator[None, None, None]:
        """Judge the point that a step has led to, and plan the next."""
        state, group = self.state, list(self.groups[t])
        here = self._at(t, W, sums)
        if MOVED + "bound" in sums[0]:
            sources = [MultiplierSource(state.W[j].copy(), state.P[j].copy(), float(state.h[t])) for j in group]
            self._note_bound(t, sources, [state.s[t]], sums, MOVED)
        most = state.value[t] + ARMIJO * state.length[t] * state.fall[t] + ROUNDING_OF_VALUES * abs(state.value[t])
        if not (np.isnan(most) or here.rounded <= most):
            state.length[t] *= 0.5
            state.mode[t] = DONE if state.length[t] < SHORTEST_STEP else STEP
            return
        better = here.value < state.best[t] * (1.0 - 1e-12 * math.copysign(1.0, state.best[t]))
        if here.value < state.best[t]:
            state.best[t], state.best_W[group] = here.value, W
        H = stacked_columns([self._hessian(j, state.square, one["hessian"]) for j, one in zip(group, sums)])
        model = PenalisedModel(self.blocks, here.smooth, here.G, H, W.T.ravel(), self._scale(t))
        v, s = yield from minimise_penalised_model(model, state.s[t])
        fall = min(model.at(v) - here.rounded, 0.0)
        sources = [MultiplierSource(w, np.zeros_like(w), float(state.h[t])) for w in W]
        self._note_bound(t, sources, [s, state.s[t]], sums)
        if here.value < -UNBOUNDED_VALUE * abs(self.zero(t)[0]) and math.isinf(state.lower[t]):
            raise ValueError(
                "there is no optimum on these row blocks: the loss falls by more than the penalty grows; give the "
                "penalty a larger weight"
            )
        kinked = self._kinked(t)
        smallest = PROXIMAL_LEAST_BAND * max(self.form.columns[j].unit for j in group)
        if self.ended(t, onward=better or (kinked and state.h[t] > smallest)):
            state.mode[t] = DONE
            return
        state.length[t], state.value[t], state.fall[t], state.s[t] = 1.0, here.rounded, fall, s
        settled = kinked and (-fall <= PROXIMAL_COST_SHARE * here.cost or not W.any())
        if settled and max(float(one["inside"]) for one in sums) <= self.held and self._gathers(t):
            state.mode[t], state.tried[t], state.W[group], state.P[group] = GATHER, state.h[t], W, 0.0
            return
        if settled:
            h = KINK_SHRINKAGE * state.h[t]
            ahead = replace(model, G=model.G - (h - state.h[t]) * here.drift)
            v, state.s[t] = yield from minimise_penalised_model(ahead, s)
            state.h[t], state.value[t], state.fall[t] = h, math.nan, math.nan
        state.W[group], state.P[group] = W, v.reshape(W.T.shape).T - W

    def _gathers(self, t: int) -> bool:
        """Whether rows near a kink may be gathered: all losses are hinges, and h has fallen since the last time."""
        terms = [term for j in self.groups[t] for term in self.form.columns[j].column.terms]
        return all(term.kind == "hinge" for term in terms) and bool(self.state.h[t] < self.state.tried[t])

    def _solve(
        self, t: int, W: np.ndarray, sums: Sequence[Mapping[str, np.ndarray]], near: Sequence[GatherPassRows]
    ) -> Generator[None, None, None]:
        """Judge a point, and solve the problem over the rows that are near a kink there, the others on their side."""
        state, group, form = self.state, list(self.groups[t]), self.form
        w, k = W.T.ravel(), len(near)
        terms = self.blocks.value(self.blocks.dot(w)) if self.blocks.meets_limits(w, FLOAT64_UNIT) else math.inf
        value = terms + sum(objective_of_sums(form, j, x, mine) for j, x, mine in zip(group, W, sums))
        if value < state.best[t]:
            state.best[t], state.best_W[group] = value, W
        if self.ended(t, onward=False):
            state.mode[t] = DONE
            return
        if state.stalled[t] >= FRUITLESS_GATHERS:  # too many rows change sides: go on rounding
            state.mode[t], state.stalled[t], state.length[t] = STEP, 0, 0.0
            state.h[t] *= KINK_SHRINKAGE
            state.W[group], state.value[t], state.fall[t] = state.best_W[group], math.nan, math.nan
            return
        blocks, first, G, Q, base = self.blocks, [state.s[t]], np.empty(W.T.shape), [], 0.0
        for i, (j, mine, rows) in enumerate(zip(group, sums, near)):
            one = form.columns[j]
            Q.append(np.array(mine["spread"]))
            Q[i][np.diag_indices_from(Q[i])] += form.punished
            fixed = mine["element"] + one.column.mean * one.centre
            G[:, i] = Q[i] @ W[i] - fixed
            base += float(mine["bound"]) + one.column.mean * (one.level or 0.0) + 0.5 * float(W[i] @ (G[:, i] - fixed))
            blocks, s = blocks_of_rows(blocks, one, rows, W[i], float(state.h[t]), i, k)
            first.append(s)
        model = PenalisedModel(blocks, base, G.ravel(), stacked_columns(Q), w, self._scale(t))
        v, s = yield from minimise_penalised_model(model, np.concatenate(first))
        floor = -math.inf if form.columns[0].column.mean > 0 else self.zero(t)[1]
        lower, s = self._spectrum(t, False).bound(blocks, base, model.G, w, s, floor)
        state.s[t] = s[: state.s.shape[1]]
        if lower > state.lower[t]:
            start = state.s.shape[1]
            state.lower[t], state.sourced_s[t] = lower, state.s[t]
            for i, (j, rows) in enumerate(zip(group, near)):
                count = len(form.columns[j].column.terms), rows.y.shape[0]
                own = s[start : start + count[0] * count[1]].reshape(count)
                start += own.size
                exact = ExactMultipliers(rows.block, rows.row, -form.columns[j].column.sides[:, None] * own)
                step = v.reshape(W.T.shape).T[i] - W[i]
                state.sources[j] = MultiplierSource(W[i].copy(), step, float(state.h[t]), exact=exact)
        state.W[group] = v.reshape(W.T.shape).T
        if self.meets(t):  # the bound alone, of the best point so far
            state.mode[t] = DONE

    def _note_bound(
        self,
        t: int,
        sources: Sequence[MultiplierSource],
        multipliers: Sequence[np.ndarray],
        sums: Sequence[Mapping[str, np.ndarray]],
        which: str = "",
    ) -> None:
        """Keep the best bound, and where its multipliers are from."""
        state, W = self.state, np.array([one.W + one.P for one in sources])
        lower, s = self._bound(t, self._spectrum(t, self.form.sided(self.groups[t][0])), W, multipliers, sums, which)
        if lower > state.lower[t]:
            state.lower[t], state.sourced_s[t] = lower, s
            for j, one in zip(self.groups[t], sources):
                state.sources[j] = one

    def resume(self, t: int, lower: float) -> None:
        """Begin anew at the best point."""
        state, group = self.state, list(self.groups[t])
        state.mode[t], state.lower[t] = STEP, lower
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
        places, sources = tuple(range(W.shape[0])), dict(enumerate(state.sources))
        widths = np.array([one.h for one in state.sources])
        sums = yield from blocks.fold(PointPass(form, places, W, widths, sources, squared=True), summary, proof=True)
        square = sums.pop("square")
        for t, group in enumerate(map(list, self.groups)):
            mine = [column_pass_sums(sums, j) for j in group]
            value = self._at(t, W[group], mine, float(np.finfo(summary.dtype).eps)).value
            spectrum = self._new_spectrum(t, square, self.form.sided(self.groups[t][0]))
            s = [state.sourced_s[t], state.s[t]]
            moved = np.array([state.sources[j].W + state.sources[j].P for j in group])
            lower = max(
                self._bound(t, spectrum, moved, s, mine, MOVED)[0],
                self._bound(t, spectrum, W[group], s, mine)[0],
            )
            # Coefficients that rounding to float32 brought beyond a limit may lie below what holds within it.
            beyond = not self.blocks.meets_limits(W[group].T.ravel(), FLOAT64_UNIT)
            found.append([(value, min(lower, value) if beyond else lower, W[group])])
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
        found = [spectrum.bound(self.blocks, value, G, W.T.ravel(), s, floor) for s in multipliers]
        return max(found, key=lambda one: one[0])

    def _spectrum(self, t: int, balanced: bool) -> QuadraticSpectrum:
        """Spectrum of a problem; `balanced`: whether multipliers of rows that meet a condition hold a free bias."""
        if (t, balanced) not in self.spectra:
            self.spectra[t, balanced] = self._new_spectrum(t, self.state.square, balanced)
        return self.spectra[t, balanced]

    def _new_spectrum(self, t: int, square: np.ndarray, balanced: bool) -> QuadraticSpectrum:
        columns, total = [self.form.columns[j] for j in self.groups[t]], self.form.columns[0].column.total
        masses = []
        for one in columns:
            each = zip(one.column.terms, one.term_masses)
            masses.append(
                one.column.mean + sum(float(own.sum()) * min(term.weight, term.steepest) for term, own in each)
            )
        sizes = np.multiply.outer(np.sqrt(np.diagonal(square) / total), masses).ravel()
        return QuadraticSpectrum([self._hessian(j, square) for j in self.groups[t]], sizes, balanced)

    def _hessian(self, j: int, square: np.ndarray, whole: np.ndarray | None = None) -> np.ndarray:
        """Hessian of variance and ridge of a column, and of its losses where `whole` has them."""
        one = self.form.columns[j]
        kappa, total = one.column.kappa, one.column.total
        H = np.array(kappa * square if whole is None else whole)
        H -= (kappa * total) * np.multiply.outer(one.centre, one.centre)
        H[np.diag_indices_from(H)] += self.form.punished
        return H

    def _scale(self, t: int) -> np.ndarray:
        """Second derivatives of coefficients without a ridge, shape (n k,), if all rows were on a kink or bent most."""
        columns, found, loose = [self.form.columns[j] for j in self.groups[t]], [], self.form.punished == 0
        for one in columns:
            each = zip(one.column.terms, one.term_masses)
            bend = sum(
                float(mass.sum()) * (term.weight / self.state.h[t] if term.kind == "hinge" else term.steepest)
                for term, mass in each
            )
            found.append(np.diagonal(self.state.square) * (one.column.kappa + bend / one.column.total) * loose)
        return np.array(found).T.ravel()
