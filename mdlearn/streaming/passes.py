"""What all passes over row blocks share: the blocks, the limits, progress, and the file that keeps what is reached."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mdlearn.data.row_blocks.checkpoint import Checkpoint
from mdlearn.data.row_blocks.source import RowBlocks
from mdlearn.data.row_blocks.summary import Summary
from mdlearn.driver.driver import Shortfall
from mdlearn.driver.limits import Limits
from mdlearn.driver.progress import Progress
from mdlearn.forms.progress import State
from mdlearn.forms.proof import Certificate
from mdlearn.numerics.errstate import overflowing
from mdlearn.streaming.engines.block_engine import BlockEngine

LATEST_SHARE, LATEST_SECONDS = 0.05, 0.15
"""How far beyond the time limit the last pass may go, as a share of the limit and in seconds."""


OUT_OF_TIME = "time_limit reached"


class Passes:
    """Passes of one fit, each begun only where it can end in time with those that certify the answer after it.

    Parameters
    ----------
    solver : str
        Name of the engine.
    limits : Limits
    blocks : RowBlocks
    head : dict
        What a checkpoint belongs to.

    Attributes
    ----------
    done : int
        How many an engine has made.
    stopped : str
        Why no more are made; empty: more may be.
    cost : float
        Seconds of the longest pass so far.
    complete : bool
        Whether the passes that write the form were all made; else nothing is known but w = 0.
    history : list of State
    """

    def __init__(self, solver: str, limits: Limits, blocks: RowBlocks, head: dict[str, Any]) -> None:
        self.solver, self.limits, self.blocks = solver, limits, blocks
        self.progress = Progress(limits.verbose, solver, limits.started, limits.tol)
        self.history: list[State] = []
        self.done, self.stopped = 0, ""
        self.cost, self.complete = 0.0, True
        allowance = LATEST_SHARE * (limits.deadline - limits.started) + LATEST_SECONDS
        self.end = limits.deadline + allowance
        self.rows: dict[str, np.ndarray] = {}
        self.file = None if blocks.checkpoint is None else Checkpoint(blocks.checkpoint, head)

    def found(self, name: str) -> dict[str, np.ndarray]:
        """Arrays of an earlier run by the first part of their names; none where there is no earlier run."""
        return {} if self.file is None else _part(self.file.found, name)

    def resume(self) -> dict[str, np.ndarray]:
        """What an engine had reached in an earlier run, with its passes and history; nothing where there is none."""
        state = self.found("state")
        if state and self.file is not None:
            self.done = int(self.file.found["passes"])
            self.history = [_state(told) for told in self.file.found["history"].tolist()]
        return state

    def keep(self, state: Mapping[str, np.ndarray]) -> None:
        """Write down what an engine has reached."""
        if self.file is None:
            return
        told = [[s.iteration, s.objective, s.lower_bound, s.gap, s.elapsed, s.problem] for s in self.history]
        arrays = {f"rows/{name}": values for name, values in self.rows.items()}
        arrays |= {f"state/{name}": values for name, values in state.items()}
        self.file.write({**arrays, "passes": np.array(self.done), "history": np.array(told)})

    def finish(self, work: Generator[None, Any, Any]) -> Any:
        """Run work to its end; it is told when the time is up."""
        late = None
        while True:
            try:
                work.send(late)
            except StopIteration as done:
                return done.value
            self.progress.beat()
            late = time.perf_counter() >= self.limits.deadline

    def needed(self, work: Generator[None, Any, Any]) -> Any:
        """Result of a pass without which there is no model."""
        found = self._until(self.end, work)
        if found is None:
            limit = self.limits.deadline - self.limits.started
            raise ValueError(
                f"time_limit={limit:g} ended before the first passes over the row blocks, which find classes and "
                "features; raise it"
            )
        return found

    def in_time(self, work: Generator[None, Any, Any], after: int) -> Any:
        """Result of a pass, or None: it could not end in time with `after` passes more, or the time is up."""
        if not self.stopped and time.perf_counter() + (1 + after) * self.cost < self.limits.deadline:
            found = self._until(self.limits.deadline - after * self.cost, work)
            if found is not None:
                return found
        self.stopped = self.stopped or OUT_OF_TIME
        return None

    def last(self, work: Generator[None, Any, Any]) -> Any:
        """Result of passes that certify; None where time does not suffice."""
        found = self._until(self.end, work)
        if found is None:
            self.stopped = self.stopped or OUT_OF_TIME
        return found

    def step(self, work: Generator[None, Any, None]) -> None:
        """Do what an engine does between two passes, given up when the time is up."""
        if self._until(self.limits.deadline, _marked(work)) is None:
            self.stopped = self.stopped or OUT_OF_TIME

    def _until(self, end: float, work: Generator[None, Any, Any]) -> Any:
        """Result of work, given up between two of its pieces at some time: None."""
        begun = time.perf_counter()
        while True:
            try:
                with overflowing():
                    work.send(None)
            except StopIteration as done:
                self.cost = max(self.cost, time.perf_counter() - begun)
                return done.value
            if time.perf_counter() >= end:
                work.close()
                return None
            self.progress.beat()

    def run(self, engine: BlockEngine, summary: Summary) -> tuple[list[Certificate], np.ndarray]:
        """Certificates of all problems and coefficients of all columns, once they meet `tol` or limits are reached."""
        self.progress.problems = len(engine.groups)
        try:
            while True:
                self._advance(engine, summary)
                late = self.stopped == OUT_OF_TIME
                found = self.last(engine.certified(self.blocks, summary, late)) if self.complete else None
                certificates, W = engine.judged(engine.seen(summary.dtype) if found is None else found)
                if self.done and not self.history:  # nothing was known before
                    for t, one in enumerate(certificates):
                        self._tell(t, one.objective, one.lower_bound, one.gap)
                if self.stopped or not engine.reopen(certificates):
                    if all(one.converged for one in certificates):
                        self.progress.complete()
                    return certificates, W
                # Estimates promised too much.
                for t, i in {state.problem: i for i, state in enumerate(self.history)}.items():
                    state, one = self.history[i], certificates[t]
                    self.history[i] = replace(state, objective=one.objective, lower_bound=one.lower_bound, gap=one.gap)
        finally:
            self.progress.close()

    def _advance(self, engine: BlockEngine, summary: Summary) -> None:
        """Passes until an engine has nothing more to do, or a limit is reached."""
        most = self.limits.max_iter or engine.most_passes
        while (work := engine.work()) is not None:
            if self.done >= most:
                self.stopped = f"max_iter = {most} reached"
            if self.stopped:
                return
            found = self.in_time(engine.over(work, self.blocks, summary), after=engine.reserved)
            if found is None:
                return
            self.step(engine.take(work, found))
            self.done += 1
            for told in engine.reports(work):
                self._tell(*told)
            self.keep(engine.arrays())

    def _tell(self, problem: int, objective: float, lower: float, gap: float) -> None:
        """Note what is reached and show it; the callback may want to stop."""
        state = State(self.done, objective, lower, gap, time.perf_counter() - self.limits.started, problem)
        self.history.append(state)
        self.progress.show(state)
        if self.limits.callback is not None and self.limits.callback(state):
            self.stopped = "stopped by the callback"

    def shortfalls(self, certificates: list[Certificate]) -> list[Shortfall]:
        """Why a gap was not reached, and what to do."""
        gap = max(one.gap for one in certificates)
        if all(one.converged for one in certificates):
            return []
        reason = self.stopped or "rounding allows no better"
        advice = "allow more" if self.stopped else "raise tol or scale the features"
        what = f"solver {self.solver!r} over row blocks"
        return [Shortfall(what, "relative gap", gap, self.limits.tol, reason, advice)]


def _marked(work: Generator[None, Any, None]) -> Generator[None, Any, bool]:
    """The same work with a result."""
    yield from work
    return True


def _part(found: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """Arrays whose names begin with one and a slash, without these."""
    return {key.removeprefix(f"{name}/"): values for key, values in found.items() if key.startswith(f"{name}/")}


def _state(told: list[float]) -> State:
    """A line of the history."""
    iteration, objective, lower, gap, elapsed, problem = told
    return State(int(iteration), objective, lower, gap, elapsed, int(problem))
