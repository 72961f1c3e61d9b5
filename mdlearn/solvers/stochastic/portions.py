"""Portions of rows for stochastic steps: what lies between two portions, and the steps over one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mdlearn._solvers.sgd import Walk
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.numerics.interruptible import finished
from mdlearn.solvers.stochastic.task import StochasticTask, StochasticTaskTrack, TaskRowPairs, calibrate_task_step

DIVERGED_NORM = 1e200
"""Squared norm beyond which steps have diverged: objective and bound would overflow."""


@dataclass(frozen=True, eq=False)
class Descent:
    """Stochastic descent over portions of rows: the place that it has reached, on one column.

    `w`, `total` (shape (d + 1,)): the iterate and the sum of the iterates after step `t0`; the last entry is the
    intercept's; `t0`, `t`: steps before the average starts, and steps so far.
    """

    w: np.ndarray
    total: np.ndarray
    eta0: float  # first step size
    t0: int
    t: int = 0
    untried: bool = False  # whether the step size was chosen on a sample and has gone over no portion yet

    @property
    def current(self) -> np.ndarray:
        """The average since step t0, before that the iterate."""
        return self.w if self.t <= self.t0 else self.total / (self.t - self.t0)


def begin_portions(
    options: dict[str, Any], form: MarginForm, column: Column, steps: int, t0: int, rng: np.random.Generator
) -> Descent:
    """Begin a descent over portions at w = 0, with a first step size chosen on the first portion unless it is given.

    `steps` is what a pass over the whole stream takes, as far as that is known; the average starts after step `t0`.
    """
    task, n = StochasticTask(form, column), form.features.n_rows
    eta0 = options["eta0"]
    if eta0 is None:
        eta0 = finished(
            calibrate_task_step(task, TaskRowPairs(column.counts, rng), n, max(n, steps) * options["epochs"])
        )
    zeros = np.zeros(form.features.width + 1)
    return Descent(zeros, zeros, eta0, t0, untried=options["eta0"] is None)


def advance_portion(state: Descent, form: MarginForm, column: Column, steps: int, rng: np.random.Generator) -> Descent:
    """Take stochastic steps over a portion of rows.

    A step size whose sample missed the rows that matter most diverges on the first portion: then the portion is gone
    over with one that no row of it makes diverge.

    Raises ValueError when the steps diverge.
    """
    task = StochasticTask(form, column)
    found = _steps_over_portion(state, task, steps, rng)
    if found is None and state.untried:
        state = replace(state, eta0=task.safe_step())
        found = _steps_over_portion(state, task, steps, rng)
    if found is None:
        raise ValueError(
            f"the steps diverge with eta0={state.eta0:.3g}; give a smaller solver option eta0, or scale the features"
        )
    return found


def _steps_over_portion(state: Descent, task: StochasticTask, steps: int, rng: np.random.Generator) -> Descent | None:
    """Take steps over a portion in random order, each with the second row of a random pair; None where they diverge."""
    counts = task.column.counts
    i, (_, j) = portion_row_order(counts, steps, rng), TaskRowPairs(counts, rng)(steps)
    own = np.zeros(counts.shape[0])  # coefficients of rows, which nobody asks for here
    u, total = np.append(state.w, own), np.append(state.total, own)
    track = StochasticTaskTrack(Walk(state.eta0, state.t0, u, total, state.t), u, total)
    for start in range(0, steps, task.piece):
        task.run(track, i[start : start + task.piece], j[start : start + task.piece])
    d, walk = state.w.shape[0], track.walk
    w, summed = walk.scale * u[:d], total[:d] + walk.carried * u[:d]
    with np.errstate(over="ignore", invalid="ignore"):
        diverged = not float(w @ w) < DIVERGED_NORM
    return None if diverged else replace(state, w=w, total=summed, t=int(walk.t), untried=False)


def portion_row_order(counts: np.ndarray, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of a portion in the random order of steps: each as often as its share of the counts says, up to one.

    So a pass over rows of equal counts meets every row once, which independent draws would not.
    """
    ends = np.cumsum(counts)
    places = (np.arange(steps) + rng.random()) * (ends[-1] / steps)
    rows = np.minimum(np.searchsorted(ends, places, side="right"), np.flatnonzero(counts)[-1])
    return rng.permutation(rows).astype(np.int64)
