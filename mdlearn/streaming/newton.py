"""Newton's method over row blocks, pass by pass, until certificates say that it is done."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mdlearn.data.row_blocks.summary import Summary
from mdlearn.forms.certificates.float32 import to_type
from mdlearn.forms.progress import State
from mdlearn.forms.proof import Certificate, judge
from mdlearn.numerics import memory
from mdlearn.streaming.engines.newton_state_machine import BlockNewton
from mdlearn.streaming.engines.primal_dual import StreamedState as Steps
from mdlearn.streaming.first_passes import StreamedProblem
from mdlearn.streaming.passes import OUT_OF_TIME, Passes
from mdlearn.streaming.sums.certificate import certified
from mdlearn.streaming.sums.margins import StreamedForm

MOST_PASSES = 300
TREE_MATRICES = 12
"""Matrices of a column that are in memory at once: one for each level of the tree of sums."""


def solve(begun: StreamedProblem, passes: Passes) -> tuple[list[Certificate], np.ndarray]:
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
            certificates, held = _judged(engine, begun, passes)
            if passes.stopped or not engine.reopen(certificates):
                passes.show_end(certificates)
                return certificates, held
            passes.correct(certificates)
    finally:
        passes.progress.close()


def require_squares(form: StreamedForm) -> None:
    """InsufficientMemory where matrices of the size of the columns do not fit."""
    memory.require(
        8.0 * TREE_MATRICES * len(form.columns) * form.size**2,
        f"sums of {form.size} x {form.size} matrices over row blocks",
        "give fewer columns, or solver='asgd'",
    )


def _step(engine: BlockNewton, begun: StreamedProblem, passes: Passes) -> None:
    """Passes until every column is done, or a limit is reached."""
    most = passes.limits.max_iter or MOST_PASSES
    while (work := engine.work()) is not None:
        if passes.done >= most:
            passes.stopped = f"max_iter = {most} reached"
        if passes.stopped:
            return
        sums = passes.in_time(passes.blocks.fold(work, begun.summary), after=1)
        if sums is None:
            return
        passes.step(engine.take(work, sums))
        passes.done += 1
        for j in work.places:
            passes.tell(_state(engine.state, j, begun.form.unit, passes))
        passes.keep(engine.state.arrays())


def _judged(engine: BlockNewton, begun: StreamedProblem, passes: Passes) -> tuple[list[Certificate], np.ndarray]:
    """Certificates and coefficients of all columns.

    Where the time is up, the point that the next pass would have looked at is a candidate as well, and without time for
    that, what the passes so far have seen counts.
    """
    form, dtype, p = begun.form, begun.summary.dtype, len(begun.form.columns)
    points = [engine.state.best_W]
    if passes.stopped == OUT_OF_TIME:
        points.append(engine.state.W + engine.state.length[:, None] * engine.state.P)
    held = np.vstack([to_type(W, dtype).astype(np.float64) for W in points])
    found = None
    if passes.complete:
        several = replace(form, columns=form.columns * len(points))
        made = engine.multipliers() * len(points)
        found = passes.last(certified(several, passes.blocks, begun.summary, held, made, passes.limits.tol))
    if found is None:
        return seen_so_far(form, begun.summary, engine.reported(), passes.limits.tol)
    chosen = [min(range(j, len(found), p), key=lambda i: found[i].objective) for j in range(p)]
    values = [(found[i].objective, max(one.lower_bound for one in found[i % p :: p])) for i in chosen]
    return or_zero(form, values, held[chosen], passes.limits.tol)


def seen_so_far(
    form: StreamedForm, summary: Summary, seen: Sequence[tuple[float, float, np.ndarray]], tol: float
) -> tuple[list[Certificate], np.ndarray]:
    """Certificates from (objective, bound, coefficients) of every column as earlier passes have found them."""
    held = np.array([w for _, _, w in seen])
    exact = np.array_equal(to_type(held, summary.dtype), held)
    units = [form.unit * one.column.unit for one in form.columns]
    # The objective of rounded coefficients would take another pass.
    values = [(unit * v if exact else np.inf, unit * lower) for unit, (v, lower, _) in zip(units, seen)]
    return or_zero(form, values, held, tol)


def or_zero(
    form: StreamedForm, values: Sequence[tuple[float, float]], held: np.ndarray, tol: float
) -> tuple[list[Certificate], np.ndarray]:
    """Certificates of (objective, bound) of every column, with w = 0 where that is better, and the coefficients.

    Multipliers 0 are among what the bound may come from, too.
    """
    found, held = [], held.copy()
    for j, (value, lower) in enumerate(values):
        unit = form.unit * form.columns[j].column.unit
        zero = unit * form.columns[j].column.at_zero
        if not value <= zero:
            value, held[j] = zero, 0.0
        found.append(judge(value, max(lower, unit * form.columns[j].floor), zero, False, tol))
    return found, held


def _state(steps: Steps, j: int, unit: float, passes: Passes) -> State:
    """What a pass has reached for a column."""
    values = unit * float(steps.best[j]), unit * float(steps.lower[j])
    return State(passes.done, *values, float(steps.gap[j]), time.perf_counter() - passes.limits.started, j)
