"""State machine of Newton's method over row blocks: one pass for a step of every column, kinks rounded ever less.

A pass gives value, gradient, Hessian and a dual bound at one point of each column. Steps are full ones where they gain
what they promise; else a second pass looks along the line. Kinks are rounded on a half width h, which falls once a
step promises less than what the rounding costs, until only so many rows are within h of a kink as may be held in
memory. These are gathered; all others stay at the bound where they are, and the problem over the gathered rows is
solved exactly. The next pass says what that is worth, and gathers again where rows have changed sides.

What lies between two passes is in `NewtonState`, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.row_blocks.source import RowBlocks
from mdlearn.data.row_blocks.summary import Summary, SummarySums
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.certificates.rounding import to_type
from mdlearn.forms.margin import MarginForm
from mdlearn.forms.row_terms import RowTerms
from mdlearn.numerics.cholesky import NotPositiveDefinite, cholesky_shifted, cholesky_solve
from mdlearn.solvers.common.primal_dual import PrimalDualOnRows
from mdlearn.solvers.interior_point.central_path import CentralPath
from mdlearn.solvers.systems.row_and_gram import RowSystem
from mdlearn.solvers.systems.weighted_gram import RunningWeightedGram
from mdlearn.streaming.engines.block_engine import (
    DONE,
    GATHER,
    LINE,
    STEP,
    BlockStepEngine,
    SourcedState,
    rows_to_gather,
)
from mdlearn.streaming.sums.certificate import (
    Candidate,
    bound_of_sums,
    certificate_candidates,
    dual_bound_of_sums,
    objective_of_sums,
)
from mdlearn.streaming.sums.multipliers import MOVED, ExactMultipliers, MultiplierSource
from mdlearn.streaming.sums.pass_sums import GatherPass, GatherPassRows, LinePass, PointPass, column_pass_sums
from mdlearn.streaming.sums.streamed_form import KINK_REACH, StreamedColumn, StreamedForm, term_rows

MOST_STEPS = 100
COMPLEMENTARITY_END = 1e-13
"""Complementarity, relative to its largest, at which the path ends."""
STALL_STEPS = 12
TRIED_LENGTHS = np.sort(np.concatenate([np.arange(1, 16) / 16.0, 2.0 ** -np.arange(5, 15)]))
ARMIJO, ROUNDING_OF_SLOPES = 1e-4, 1e-14
ROUNDING_COST_SHARE = 0.5
"""Share of what rounding costs below which a promised gain says that the rounding is what is left of the gap."""
BAND_SHRINKAGE = 1.0 / 3.0
"""Smallest factor of h from one round to the next: the steps from one to the next stay few."""
CROWD, SETTLED_KINK_SHARE, CROWDED = 0.8, 1e-3, 0.03
"""Share of the rows near a kink that a smaller h leaves there, from which they sit on it; what a step may then promise,
in units of what rounding costs, for the path to be straight; and the factor of h."""
FRUITLESS = 3
"""Solutions over gathered rows without progress after which no more are gathered."""
STALL_PASSES, SMOOTH = 8, 40
"""Passes without progress after which rounding is taken to be reached; of columns without kinks, where steep squared
hinges make many short steps before the last one meets the optimum."""
SHORTEST_STEP = 1e-16
"""Step, relative to the point, that is rounding."""
PROGRESS_FALL = 1e-3
"""Relative fall of the objective that is progress, whatever the gap does."""
LOOSE_INTERCEPT_SHARE, INTERCEPT_HOLD = 1e-15, 1e-6
"""Shares of the largest second derivatives: below the first rows hold no intercept; then they do with the second."""
LEAST_BAND = 1e-13
"""h at which the rounding of margins of size 1 shows."""
UNBOUNDED_VALUE, VANISHED = 1e9, 1e-9
"""Value in units of that at w = 0, below which an objective without a ridge has no optimum; and of one that is not
negative."""
Task = LinePass | PointPass | GatherPass


def kink_problem(
    form: StreamedForm, j: int, near: GatherPassRows, Q: np.ndarray, fixed: np.ndarray
) -> PrimalDualOnRows:
    """Write the subproblem of a column over rows near a kink; `fixed` is what all others add to the gradient."""
    one = form.columns[j]
    # The mean of all rows is part of `fixed`: that of these alone might outweigh their losses.
    column = replace(one.column, y=near.y, counts=near.counts, mean=0.0)
    if near.by_row is not None:
        column = replace(column, by_row=RowTerms(*near.by_row))
    if one.level is not None:
        column = replace(column, offset=near.labels)
    features = LinearFeatures(DenseRows(near.X[:, : form.width]))
    whole = MarginForm(features, (column,), form.bias, form.ridge)
    system = RowSystem(whole, column)
    system.sum = RunningWeightedGram(features.rows, system.bias, Q, None)  # the variance is that of all rows
    return PrimalDualOnRows(whole, column, system, fixed)


def minimise_kink_problem(
    state: PrimalDualOnRows, element: np.ndarray, width: float
) -> Generator[None, None, tuple[np.ndarray, np.ndarray]]:
    """Solve the subproblem over the rows near a kink, by interior point steps from a given element.

    `element` of shape (n,); `width`: margins are about this far from their optimal ones. Yields None, and
    returns the element and its multipliers, shape (T, N).
    """
    if not state.column.y.shape[0]:
        yield from state.system.factor(np.zeros(0))
        return state.system.solve(state.fixed), np.zeros_like(state.column.caps)
    path = CentralPath(state)
    path.start_at(element, state.margins(element), 0.25 * width * state.column.caps)
    largest = least = path.complementarity()
    found, stalled = (path.element, path.beta), 0
    for _ in range(MOST_STEPS):
        if not path.alive or stalled >= STALL_STEPS or least <= COMPLEMENTARITY_END * largest:
            break
        try:
            yield from path.step()
        except NotPositiveDefinite:
            break
        # It may rise at first, while the gradient does not vanish yet.
        left = path.complementarity()
        stalled = 0 if path.falling or left < 0.9 * least else stalled + 1
        largest, least = max(largest, left), min(least, left)
        if path.alive and left < 10.0 * least:
            found = path.element, path.beta
    return found


@dataclass(eq=False)
class NewtonState(SourcedState):
    """State in the Newton state machine over row blocks, from pass to pass; every column is a problem.

    `h`, `before` (shape (p,)): half width at the end of the step, and at W; `value` is the objective with kinks rounded
    by it.
    """

    h: np.ndarray
    before: np.ndarray
    slope: np.ndarray  # shape (p,): slope at W along P; NaN: the step is taken whatever it gives
    inside: np.ndarray  # shape (p,): margins near a kink when h last fell
    mode: np.ndarray  # shape (p,), int
    plain: np.ndarray  # shape (p,), bool: whether rows are no longer gathered

    @classmethod
    def first(cls, form: StreamedForm) -> NewtonState:
        """At w = 0, with kinks rounded so that all rows are within."""
        p, w = len(form.columns), np.zeros(form.size)
        h = [one.widest_kink for one in form.columns]
        return cls(
            **cls.at_zero(form, p),
            h=np.array(h),
            before=np.array(h),
            slope=np.full(p, math.nan),
            inside=np.full(p, math.inf),
            mode=np.zeros(p, dtype=np.int64),
            plain=np.zeros(p, dtype=bool),
            sources=[MultiplierSource(w, w, width) for width in h],
        )


class BlockNewton(BlockStepEngine):
    """State machine of Newton steps over row blocks: not those of the engine `newton`, over one column without kinks.

    `held`: rows that may be gathered for one column.
    """

    state: NewtonState  # where to begin; it is written to

    def __init__(self, form: StreamedForm, tol: float, state: NewtonState, held: int | None = None) -> None:
        super().__init__(form, [(j,) for j in range(len(form.columns))], tol, state)
        self.R = form.punished
        self.held = rows_to_gather(form, held)

    def work(self) -> Task | None:
        state = self.state
        for mode in (LINE, STEP, GATHER):
            at = np.flatnonzero(state.mode == mode).tolist()
            if not at:
                continue
            places, W, h = tuple(at), state.W[at], state.h[at]
            if mode == LINE:
                return LinePass(self.form, places, W, state.P[at], h, TRIED_LENGTHS)
            if mode == GATHER:
                return GatherPass(self.form, places, W, KINK_REACH * h)
            arrived = W + state.length[at, None] * state.P[at]
            moved = {j: self._moved(j) for j in at if self.form.columns[j].kinked}
            return PointPass(self.form, places, arrived, h, moved)
        return None

    def take(self, work: Task, sums: SummarySums) -> Generator[None, None, None]:
        for i, j in enumerate(work.places):
            mine = column_pass_sums(sums, i)
            if isinstance(work, LinePass):
                self._choose(j, mine)
                continue
            evaluated = isinstance(work, PointPass)
            step = self._arrive(j, work.W[i], mine) if evaluated else self._solve(j, work.W[i], mine, sums[f"near {i}"])
            try:
                yield from step
            except NotPositiveDefinite:  # numbers beyond float64: the best point so far is the answer
                self.state.mode[j] = DONE

    def certified(
        self, blocks: RowBlocks, summary: Summary, late: bool
    ) -> Generator[None, None, list[list[Candidate]]]:
        """The best points, with the multipliers of the best bounds."""
        state = self.state
        points = [state.best_W, state.W + state.length[:, None] * state.P][: 1 + late]
        held = [to_type(W, summary.dtype).astype(np.float64) for W in points]
        return certificate_candidates(self.form, blocks, summary, [(W, tuple(state.sources)) for W in held])

    def candidates(self, dtype: np.dtype[Any]) -> list[list[Candidate]]:
        """The best points and bounds; without a ridge these are estimates."""
        return super().candidates(dtype) if self.form.ridge > 0 else [[] for _ in self.groups]

    def resume(self, t: int, lower: float) -> None:
        """Take steps again."""
        self.state.mode[t], self.state.lower[t] = STEP, lower

    def patience(self, t: int) -> int:
        """More of columns without kinks."""
        return STALL_PASSES if self.form.columns[t].kinked else SMOOTH

    def _moved(self, j: int) -> MultiplierSource:
        """Multipliers at the point before a step, moved along the whole of it."""
        state, before = self.state, float(self.state.before[j])
        return MultiplierSource(state.W[j].copy(), state.P[j].copy(), before, float(state.h[j]) - before)

    def _arrive(self, j: int, w: np.ndarray, sums: dict[str, np.ndarray]) -> Generator[None, None, None]:
        """Judge the point that a step has led to, and plan the next."""
        state, one = self.state, self.form.columns[j]
        column = one.column
        value, rounded = (objective_of_sums(self.form, j, w, sums, loss) for loss in ("value", "rounded"))
        promised = ARMIJO * state.length[j] * state.slope[j] + ROUNDING_OF_SLOPES * abs(state.value[j])
        if state.slope[j] < 0 and state.length[j] == 1.0 and not rounded <= state.value[j] + promised:
            state.mode[j] = LINE
            return
        if not np.isfinite(rounded):
            state.mode[j] = DONE
            return
        self._check_attained(one, value)
        H = sums["hessian"] - (column.kappa * column.total) * np.multiply.outer(one.centre, one.centre)
        H[np.diag_indices_from(H)] += self.R
        if self.form.bias == "free":
            each = zip(column.terms, one.term_masses)
            firm = max((float(mass.sum()) * t.steepest for t, mass in each if t.kind != "hinge"), default=0.0)
            if not H[-1, -1] > LOOSE_INTERCEPT_SHARE * firm:
                H[-1, -1] += INTERCEPT_HOLD * firm or 1.0  # nothing holds the intercept: it moves by little, or stays
        gradient = self.R * w - sums["element"]
        L = yield from cholesky_shifted(H)
        step = -cholesky_solve(L, gradient)
        decline = -float(gradient @ step)
        # What rounding costs: the losses less what their multipliers say of them at these margins.
        cost = float(sums["value"] - sums["bound"] + w @ sums["element"]) + column.kappa * float(sums["second"])
        cost -= column.mean * one.mean_margin(w)
        estimated = self.form.ridge == 0
        lower = value - max(cost, 0.0) - decline if estimated else bound_of_sums(self.form, j, w, sums)[0]
        if one.kinked:
            moved = bound_of_sums(self.form, j, state.W[j] + state.P[j], sums, MOVED)[0]
            if moved > max(lower, state.lower[j]):
                state.lower[j], state.sources[j] = moved, self._moved(j)
        self._note(j, w, value, lower, step)
        state.before[j] = state.h[j]
        state.W[j], state.P[j], state.length[j], state.value[j], state.slope[j] = w, step, 1.0, rounded, -decline
        if state.mode[j] == DONE or not one.kinked:
            return
        inside = float(sums["inside"])
        crowded = inside > CROWD * state.inside[j]
        settled = decline <= (SETTLED_KINK_SHARE if crowded else ROUNDING_COST_SHARE) * cost
        if inside <= self.held and (settled or not w.any()) and not state.plain[j]:
            state.mode[j], state.P[j] = GATHER, 0.0
        elif settled:
            h = state.h[j] * (CROWDED if crowded else max(BAND_SHRINKAGE, 0.7 * self.held / max(inside, 1.0)))
            # Along the path of optima, where rows that stay within h keep their multipliers.
            state.P[j] += cholesky_solve(L, sums["drift"]) * (h - state.h[j])
            state.h[j], state.value[j], state.slope[j], state.inside[j] = h, math.nan, math.nan, inside

    def _check_attained(self, one: StreamedColumn, value: float) -> None:
        """ValueError where an objective without a ridge falls without end, or towards 0 and never gets there."""
        column, least = one.column, one.at_zero
        if self.form.ridge > 0 or not column.terms:
            return
        vanishing = one.level is None and column.kappa == 0 and column.mean == 0  # targets may all be met
        if value < -UNBOUNDED_VALUE * least or (vanishing and value < VANISHED * least):
            raise ValueError(
                "without a squared norm in the objective there is no optimum on these row blocks: it falls along a "
                "direction without end; give the squared norm a positive weight"
            )

    def _solve(
        self, j: int, w: np.ndarray, sums: dict[str, np.ndarray], near: GatherPassRows
    ) -> Generator[None, None, None]:
        """Judge a point, and solve the problem over the rows that are near a kink there."""
        state, one = self.state, self.form.columns[j]
        value = objective_of_sums(self.form, j, w, sums)
        if value < state.best[j]:
            state.best[j], state.best_W[j] = value, w
        if self.ended(j, onward=False):
            state.mode[j] = DONE
            return
        if state.stalled[j] >= FRUITLESS:  # rows on a kink are more than may be held: go on rounding
            state.mode[j], state.plain[j], state.stalled[j], state.length[j] = STEP, True, 0, 0.0
            state.W[j], state.value[j], state.slope[j] = state.best_W[j], math.nan, math.nan
            return
        Q = sums["spread"]
        Q[np.diag_indices_from(Q)] += self.R
        fixed = sums["element"] + one.column.mean * one.centre
        found, beta = yield from minimise_kink_problem(kink_problem(self.form, j, near, Q, fixed), w, float(state.h[j]))
        slope = one.column.sides @ beta
        alpha = near.y * slope
        e = fixed + alpha @ near.X - (Q @ found - self.R * found)
        z = one.margins(near.labels, near.y, near.X @ found)
        each = term_rows(one.column.terms, z, near.counts, near.by_row)
        bound = float(sums["bound"]) + sum(rows.bound(b) for rows, b in zip(each, beta))
        bound += one.bound_by_targets(near.labels, slope) + one.column.mean * (one.level or 0.0)
        part, portions = one.portions(each, beta, near.labels, near.y, bounds=True)
        half, part = sums["half"] + portions @ near.X, sums["part"] + part
        variance = 0.5 * float(found @ (Q @ found) - self.R @ (found * found))
        lower = dual_bound_of_sums(self.form, j, found, bound - variance, part, e, half)[0]
        if lower > state.lower[j]:
            # The multipliers of the variance belong to the new point.
            exact = ExactMultipliers(near.block, near.row, beta)
            state.lower[j] = lower
            state.sources[j] = MultiplierSource(w.copy(), found - w, float(state.h[j]), exact=exact)
        state.W[j] = found
        if self.meets(j):  # the bound alone, of the best point so far
            state.mode[j] = DONE

    def _note(self, j: int, w: np.ndarray, value: float, lower: float, step: np.ndarray) -> None:
        """Keep the best point and the best bound; say when a column is done.

        Without a ridge, where multipliers have a condition to meet, they are those of the full step: moved along the
        second derivatives, slopes meet it. Where kinks are rounded, every pass is progress, whatever the gap is, until
        h is as small as rounding.
        """
        state, estimate, kinked = self.state, self.form.ridge == 0, self.form.columns[j].kinked
        falling = value < (1.0 - PROGRESS_FALL) * state.best[j]
        if value < state.best[j]:
            state.best[j], state.best_W[j] = value, w
        if lower > state.lower[j] or estimate:
            moved = step if estimate else np.zeros_like(w)
            state.lower[j], state.sources[j] = lower, MultiplierSource(w.copy(), moved.copy(), float(state.h[j]))
        if self.ended(j, onward=falling or (kinked and state.h[j] > LEAST_BAND * self.form.columns[j].unit)):
            state.mode[j] = DONE

    def _choose(self, j: int, sums: dict[str, np.ndarray]) -> None:
        """The best length along the line; between two slopes of different signs, where their chord is 0."""
        state, one = self.state, self.form.columns[j]
        w, p = state.W[j], state.P[j]
        cross, square = sums["moments"]
        linear = float(self.R @ (w * p)) + one.column.kappa * cross - one.column.mean * float(one.centre @ p)
        slopes = linear + TRIED_LENGTHS * (float(self.R @ (p * p)) + one.column.kappa * square) + sums["slopes"]
        falling = np.flatnonzero(slopes < 0)
        if not falling.shape[0]:  # too long a step by far: look along a short part of it
            state.P[j] *= TRIED_LENGTHS[0]
            state.slope[j] *= TRIED_LENGTHS[0]
            if not np.abs(state.P[j]).max() > SHORTEST_STEP * np.abs(w).max(initial=0.0):
                state.mode[j] = DONE
            return
        last = int(falling[-1])
        length = float(TRIED_LENGTHS[last])
        if last + 1 < TRIED_LENGTHS.shape[0]:
            length += (TRIED_LENGTHS[last + 1] - length) * slopes[last] / (slopes[last] - slopes[last + 1])
        state.length[j], state.mode[j], state.slope[j], state.value[j] = length, STEP, math.nan, math.nan
