"""Newton's method over row blocks, pass by pass, until certificates say that it is done."""

from __future__ import annotations

import time

import numpy as np

from mdlearn.data import memory
from mdlearn.forms.history import State
from mdlearn.forms.proof import Certificate
from mdlearn.forms.rounding import to_type
from mdlearn.forms.streamed import StreamedForm
from mdlearn.forms.streamed_proof import certified
from mdlearn.solvers.block_newton import BlockNewton
from mdlearn.solvers.block_state import State as Steps
from mdlearn.streaming.beginning import Begun
from mdlearn.streaming.passes import Passes

MOST_PASSES = 300
LEVELS = 12
"""Matrices of a column that are in memory at once: one for each level of the tree of sums."""


def solve(begun: Begun, passes: Passes) -> tuple[list[Certificate], np.ndarray]:
    """Certificates of all columns and their coefficients, as far as limits allow.

    Raises
    ------
    InsufficientMemory
        When matrices of the size of the columns do not fit.
    """
    form = begun.form
    require_squares(form)
    passes.progress.problems = len(form.columns)
    found = passes.resume()
    engine = BlockNewton(form, passes.limits.tol, Steps.read(found) if found else Steps.first(form), passes.blocks.held)
    try:
        while True:
            _step(engine, begun, passes)
            held = to_type(engine.state.best_W, begun.summary.dtype).astype(np.float64)
            work = certified(form, passes.blocks, begun.summary, held, engine.multipliers(), passes.limits.tol)
            certificates = passes.finish(work)
            if passes.stopped or not engine.reopen(certificates):
                return certificates, held
    finally:
        passes.progress.close()


def require_squares(form: StreamedForm) -> None:
    """InsufficientMemory where matrices of the size of the columns do not fit."""
    memory.require(
        8.0 * LEVELS * len(form.columns) * form.size**2,
        f"sums of {form.size} x {form.size} matrices over row blocks",
        "give fewer columns, or solver='asgd'",
    )


def _step(engine: BlockNewton, begun: Begun, passes: Passes) -> None:
    """Passes until every column is done, or a limit is reached."""
    most = passes.limits.max_iter or MOST_PASSES
    while (work := engine.work()) is not None:
        if passes.done >= most:
            passes.stopped = f"max_iter = {most} reached"
        if passes.stopped:
            return
        sums = passes.in_time(passes.blocks.fold(work, begun.summary))
        if sums is None:
            return
        passes.finish(engine.take(work, sums))
        passes.done += 1
        for j in work.places:
            passes.tell(_state(engine.state, j, begun.form.unit, passes))
        passes.keep(engine.state.arrays())


def _state(steps: Steps, j: int, unit: float, passes: Passes) -> State:
    """What a pass has reached for a column."""
    values = unit * float(steps.best[j]), unit * float(steps.lower[j])
    return State(passes.done, *values, float(steps.gap[j]), time.perf_counter() - passes.limits.started, j)
