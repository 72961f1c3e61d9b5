"""A fit to row blocks: a first pass that checks and counts, passes of an engine, and a last one that certifies."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mdlearn.data import memory
from mdlearn.data.census import Summary
from mdlearn.data.checkpoint import Checkpoint
from mdlearn.data.sample import Draw, Moments
from mdlearn.data.streams import RowBlocks
from mdlearn.forms.history import State
from mdlearn.forms.proof import Certificate, combine
from mdlearn.forms.rounding import to_type
from mdlearn.forms.streamed import StreamedForm
from mdlearn.forms.streamed_proof import certified
from mdlearn.model.build import model_without_rows
from mdlearn.model.model import Model
from mdlearn.objectives.base import Objective
from mdlearn.plugins.manager import registry
from mdlearn.solvers.block_newton import BlockNewton
from mdlearn.solvers.block_state import State as Steps
from mdlearn.solvers.driver import Shortfall
from mdlearn.solvers.progress import Progress
from mdlearn.stages import Call

MOST_PASSES = 300
OWN = frozenset({"builtins", "numpy", "scipy", "pandas", "polars"})
"""Where the kinds of X are from that no plugin is asked about."""
LEVELS = 12
"""Matrices of a column that are in memory at once: one for each level of the tree of sums."""


def fit_blocks(
    call: Call, params: Mapping[str, Any], blocks: RowBlocks, class_weight: Any
) -> tuple[Model, list[Shortfall]]:
    """The model of a call over row blocks, and what it fell short of."""
    task, _ = call.task(params)
    _refuse(call, task)
    run = Run(call, blocks, _head(call, task, class_weight, blocks))
    summary = run.summary(class_weight)
    if summary.classes.shape[0] > 2 and call.multiclass not in ("ovr", "joint"):
        told = f"not multiclass={call.multiclass!r}; give multiclass='ovr'"
        raise ValueError(f"row blocks of several classes need one score per class, {told}")
    filled = task.resolve(summary.total)
    task.check_blocks(task.needs_all_rows(filled))
    if task.feature_map is not None:
        filled, summary = run.mapped(task, filled, summary)
    form = task.streamed(filled, summary, call.bias)
    memory.require(
        8.0 * LEVELS * len(form.columns) * form.size**2,
        f"sums of {form.size} x {form.size} matrices over row blocks",
        "give fewer columns",
    )
    certificates, held = run.solve(form, summary)
    return _model(call, task, filled, summary, form, run, certificates, held), run.shortfalls(certificates)


def _refuse(call: Call, task: Objective) -> None:
    """ValueError for what takes all rows at once."""
    if call.kernel != "linear":
        raise ValueError(f"row blocks need kernel='linear'; got {call.kernel!r}")
    if task.task != "classification":
        raise ValueError(f"objective {task.name!r} is one of regression, which takes no row blocks; give X and y")
    if call.options:
        raise ValueError(f"row blocks take no solver_options; got {sorted(call.options)}")
    if call.engine is not None and call.engine.name != "newton":
        raise ValueError(f"row blocks need solver='newton' (or 'auto'); got {call.engine.name!r}")


def _head(call: Call, task: Objective, class_weight: Any, blocks: RowBlocks) -> dict[str, Any]:
    """What a checkpoint belongs to."""
    weights = dict(class_weight) if hasattr(class_weight, "items") else class_weight
    asked = {"bias": call.bias, "multiclass": call.multiclass, "tol": call.limits.tol, "held": blocks.held}
    asked["random_state"] = call.seed
    return {"objective": task.name, **task.given, "class_weight": repr(weights), **asked}


def blocks_of(X: Any, y: Any, sample_weight: Any) -> RowBlocks | None:
    """What X, y and weights of a fit are as row blocks; None where they are rows."""
    if y is None and _in_blocks(X):
        if sample_weight is not None:
            raise ValueError("with row blocks a weight is part of its block: give (X, y, weight), not sample_weight")
        return X if isinstance(X, RowBlocks) else RowBlocks(X)
    kind = type(X[0]) if isinstance(X, Sequence) and X else type(X)
    return None if kind.__module__.partition(".")[0] in OWN else registry().blocks_of(X, y, sample_weight)


def _in_blocks(X: Any) -> bool:
    """Whether what is given without y is a source of blocks; a nested list is one of rows."""
    if isinstance(X, RowBlocks) or callable(X):
        return True
    if not isinstance(X, Iterable) or any(hasattr(X, name) for name in ("shape", "__array__", "columns")):
        return False
    return not isinstance(X, Sequence) or not X or isinstance(X[0], tuple)


class Run:
    """Passes of one fit."""

    def __init__(self, call: Call, blocks: RowBlocks, head: dict[str, Any]) -> None:
        self.call, self.blocks, self.limits = call, blocks, call.limits
        self.progress = Progress(call.limits.verbose, "newton", call.limits.started)
        self.history: list[State] = []
        self.passes, self.stopped = 0, ""
        self.file = None if blocks.checkpoint is None else Checkpoint(blocks.checkpoint, head)

    def summary(self, class_weight: Any) -> Summary:
        """What the first pass finds, or found in an earlier run."""
        if self.file is not None and self.file.found:
            self.counted = Summary.read(_part(self.file.found, "rows"))
        else:
            self.counted = self.finish(self.blocks.scan(class_weight))
        return self.counted

    def mapped(self, task: Objective, params: dict[str, Any], summary: Summary) -> tuple[dict[str, Any], Summary]:
        """Complete parameters, and the summary of the features that rows become: from a sample, then by a pass."""
        found = self.finish(self.blocks.fold(Draw.of(self.call.seed, summary), summary))
        data = found["sample"].data(summary)
        params = task.complete(params, data)
        mapping = self.finish(task.place(data, params, np.random.default_rng([self.call.seed, 0, 1])))
        size = 8.0 * summary.classes.shape[0] * mapping.width
        memory.require(size, f"sums of {mapping.width} features", "ask for fewer features")
        there = summary.mapped(mapping, np.zeros((summary.classes.shape[0], mapping.width)))
        sums = self.finish(self.blocks.fold(Moments(summary.classes.shape[0]), there))
        return params, summary.mapped(mapping, sums["moments"])

    def finish(self, work: Generator[None, None, Any]) -> Any:
        """Run a pass to its end."""
        while True:
            try:
                next(work)
            except StopIteration as done:
                return done.value
            self.progress.beat()

    def _in_time(self, work: Generator[None, None, Any]) -> Generator[None, None, Any]:
        """The same pass, given up between two blocks when the time is up: its result is then None."""
        while time.perf_counter() < self.limits.deadline:
            try:
                next(work)
            except StopIteration as done:
                return done.value
            yield
        self.stopped = "time_limit reached"
        return None

    def solve(self, form: StreamedForm, summary: Summary) -> tuple[list[Certificate], np.ndarray]:
        """Certificates of all columns and their coefficients, as far as limits allow."""
        self.progress.problems = len(form.columns)
        if self.file is not None and self.file.found:
            state = Steps.read(_part(self.file.found, "state"))
            self.passes = int(self.file.found["passes"])
            self.history = [_state(told) for told in self.file.found["history"].tolist()]
        else:
            state = Steps.first(form)
        self.engine = BlockNewton(form, self.limits.tol, state, self.blocks.held)
        try:
            while True:
                self._step(form, summary)
                certificates, held = self.certified(form, summary)
                if self.stopped or not self.engine.reopen(certificates):
                    return certificates, held
        finally:
            self.progress.close()

    def _step(self, form: StreamedForm, summary: Summary) -> None:
        """Passes until every column is done, or a limit is reached."""
        most = self.limits.max_iter or MOST_PASSES
        while (work := self.engine.work()) is not None:
            if self.passes >= most:
                self.stopped = f"max_iter = {most} reached"
            if self.stopped:
                return
            sums = self.finish(self._in_time(self.blocks.fold(work, summary)))
            if sums is None:
                return
            self.finish(self.engine.take(work, sums))
            self.passes += 1
            asked_to = self._told(form, work.places)
            self._keep()
            if asked_to:
                self.stopped = "stopped by the callback"

    def _keep(self) -> None:
        """Write down what has been reached."""
        if self.file is None:
            return
        told = [[s.iteration, s.objective, s.lower_bound, s.gap, s.elapsed, s.problem] for s in self.history]
        arrays = {f"rows/{name}": values for name, values in self.counted.arrays().items()}
        arrays |= {f"state/{name}": values for name, values in self.engine.state.arrays().items()}
        self.file.write({**arrays, "passes": np.array(self.passes), "history": np.array(told)})

    def _told(self, form: StreamedForm, places: tuple[int, ...]) -> bool:
        """Tell of a pass; whether the callback wants to stop."""
        state, stop = self.engine.state, False
        for j in places:
            unit, elapsed = form.unit, time.perf_counter() - self.limits.started
            values = unit * float(state.best[j]), unit * float(state.lower[j])
            one = State(self.passes, *values, float(state.gap[j]), elapsed, j)
            self.history.append(one)
            self.progress.show(one)
            stop = stop or (self.limits.callback is not None and bool(self.limits.callback(one)))
        return stop

    def certified(self, form: StreamedForm, summary: Summary) -> tuple[list[Certificate], np.ndarray]:
        """Certificates of all columns at coefficients of the type of the rows."""
        held = to_type(self.engine.state.best_W, summary.dtype).astype(np.float64)
        work = certified(form, self.blocks, summary, held, self.engine.multipliers(), self.limits.tol)
        return self.finish(work), held

    def shortfalls(self, certificates: list[Certificate]) -> list[Shortfall]:
        """Why a gap was not reached, and what to do."""
        gap = max(one.gap for one in certificates)
        if all(one.converged for one in certificates):
            return []
        reason = self.stopped or "rounding allows no better"
        advice = "allow more" if self.stopped else "raise tol or scale the features"
        return [Shortfall("solver 'newton' over row blocks", "relative gap", gap, self.limits.tol, reason, advice)]


def _model(
    call: Call,
    task: Objective,
    params: dict[str, Any],
    summary: Summary,
    form: StreamedForm,
    run: Run,
    parts: list[Certificate],
    W: np.ndarray,
) -> Model:
    """A model of coefficients; nothing is known of single rows."""
    at_zero = sum(form.unit * one.column.unit * one.column.at_zero for one in form.columns)
    W = W if form.bias != "none" else np.hstack([W, np.zeros((W.shape[0], 1))])
    return model_without_rows(
        task.name,
        params,
        (call.bias, call.multiclass, task.probabilities),
        ("newton", "sums over row blocks"),
        (run.passes, run.history),
        combine(parts, at_zero, False, call.limits.tol),
        summary.classes,
        W,
        summary.dtype,
        summary.names,
        summary.mapping,
    )


def _part(found: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """Arrays whose names begin with one and a slash, without these."""
    return {key.removeprefix(f"{name}/"): values for key, values in found.items() if key.startswith(f"{name}/")}


def _state(told: list[float]) -> State:
    """A line of the history."""
    iteration, objective, lower, gap, elapsed, problem = told
    return State(int(iteration), objective, lower, gap, elapsed, int(problem))
