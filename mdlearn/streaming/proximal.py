"""Proximal Newton steps over row blocks, pass by pass, until certificates say that they are done."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import numpy as np

from mdlearn.forms.certificates.float32 import to_type
from mdlearn.forms.progress import State
from mdlearn.forms.proof import Certificate, judge
from mdlearn.streaming.engines.proximal_state_machine import BlockProximal, ProximalState
from mdlearn.streaming.first_passes import StreamedProblem
from mdlearn.streaming.newton import MOST_PASSES, require_squares
from mdlearn.streaming.passes import Passes
from mdlearn.streaming.sums.passes import Evaluate, Square


def solve(begun: StreamedProblem, passes: Passes) -> tuple[list[Certificate], np.ndarray]:
    """Certificates of all problems and the coefficients of all columns, as far as limits allow.

    One problem for all classes where the call asks for that, else one for each column.
    """
    form, p = begun.form, len(begun.form.columns)
    if not form.columns[0].column.kappa > 0 and (form.ridge == 0 or form.bias == "free"):
        begun.task.check_blocks("under a penalty, bounds need a margin variance, or a ridge and no free bias")
    require_squares(form)
    groups = [tuple(range(p))] if begun.call.multiclass == "joint" else [(j,) for j in range(p)]
    passes.progress.problems = len(groups)
    found = passes.resume()
    state = ProximalState(**found) if found else ProximalState.first(form, len(groups))
    engine = BlockProximal(form, groups, passes.limits.tol, state)
    try:
        while True:
            _step(engine, begun, passes)
            held = to_type(state.best_W, begun.summary.dtype).astype(np.float64)
            certificates = passes.last(_certified(engine, begun, passes, held)) if passes.complete else None
            if certificates is None:
                certificates = engine.reported()
                exact = np.array_equal(held, state.best_W)
                if not exact or not all(one.objective <= zero for one, zero in zip(certificates, engine.zeros())):
                    held = np.zeros_like(held)
                    values = zip(engine.zeros(), engine.floors())
                    certificates = [judge(zero, floor, zero, False, passes.limits.tol) for zero, floor in values]
            if passes.stopped or not engine.reopen(certificates):
                passes.show_end(certificates)
                return certificates, held
            passes.correct(certificates)
    finally:
        passes.progress.close()


def _certified(
    engine: BlockProximal, begun: StreamedProblem, passes: Passes, W: np.ndarray
) -> Generator[None, Any, list[Certificate]]:
    """Certificates at W, from two passes of their own."""
    at = Evaluate.plain(begun.form, tuple(range(W.shape[0])), W)
    sums = yield from passes.blocks.fold(at, begun.summary)
    square = yield from passes.blocks.fold(Square(begun.form), begun.summary)
    return (yield from engine.certified(W, square["square"], sums))


def _step(engine: BlockProximal, begun: StreamedProblem, passes: Passes) -> None:
    """Passes until every problem is done, or a limit is reached."""
    most, state = passes.limits.max_iter or MOST_PASSES, engine.state
    while (work := engine.work()) is not None:
        if passes.done >= most:
            passes.stopped = f"max_iter = {most} reached"
        if passes.stopped:
            return
        open_ = np.flatnonzero(state.done == 0).tolist()
        sums = passes.in_time(passes.blocks.fold(work, begun.summary), after=2)
        if sums is None:
            return
        passes.step(engine.take(work, sums))
        if isinstance(work, Square):
            continue
        passes.done += 1
        for t in open_:
            values = begun.form.unit * float(state.best[t]), begun.form.unit * float(state.lower[t])
            elapsed = time.perf_counter() - passes.limits.started
            passes.tell(State(passes.done, *values, float(state.gap[t]), elapsed, t))
        passes.keep(state.arrays())
