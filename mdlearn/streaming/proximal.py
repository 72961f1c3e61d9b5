"""Proximal Newton steps over row blocks, pass by pass, until certificates say that they are done."""

from __future__ import annotations

import time

import numpy as np

from mdlearn.forms.history import State
from mdlearn.forms.proof import Certificate
from mdlearn.forms.rounding import to_type
from mdlearn.forms.streamed_passes import Evaluate, Square
from mdlearn.solvers.block_proximal import BlockProximal, ProximalState
from mdlearn.streaming.beginning import Begun
from mdlearn.streaming.newton import MOST_PASSES, require_squares
from mdlearn.streaming.passes import Passes


def solve(begun: Begun, passes: Passes) -> tuple[list[Certificate], np.ndarray]:
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
            at = Evaluate.plain(form, tuple(range(p)), held)
            sums = passes.finish(passes.blocks.fold(at, begun.summary))
            square = passes.finish(passes.blocks.fold(Square(form), begun.summary))["square"]
            certificates = passes.finish(engine.certified(held, square, sums))
            if passes.stopped or not engine.reopen(certificates):
                return certificates, held
    finally:
        passes.progress.close()


def _step(engine: BlockProximal, begun: Begun, passes: Passes) -> None:
    """Passes until every problem is done, or a limit is reached."""
    most, state = passes.limits.max_iter or MOST_PASSES, engine.state
    while (work := engine.work()) is not None:
        if passes.done >= most:
            passes.stopped = f"max_iter = {most} reached"
        if passes.stopped:
            return
        open_ = np.flatnonzero(state.done == 0).tolist()
        sums = passes.in_time(passes.blocks.fold(work, begun.summary))
        if sums is None:
            return
        passes.finish(engine.take(work, sums))
        if isinstance(work, Square):
            continue
        passes.done += 1
        for t in open_:
            values = begun.form.unit * float(state.best[t]), begun.form.unit * float(state.lower[t])
            elapsed = time.perf_counter() - passes.limits.started
            passes.tell(State(passes.done, *values, float(state.gap[t]), elapsed, t))
        passes.keep(state.arrays())
