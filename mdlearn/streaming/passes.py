"""What all passes over row blocks share: the blocks, the limits, progress, and the file that keeps what is reached."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from typing import Any

import numpy as np

from mdlearn.data.checkpoint import Checkpoint
from mdlearn.data.streams import RowBlocks
from mdlearn.forms.history import State
from mdlearn.forms.proof import Certificate
from mdlearn.solvers.driver import Limits, Shortfall
from mdlearn.solvers.progress import Progress


class Passes:
    """Passes of one fit.

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
    history : list of State
    """

    def __init__(self, solver: str, limits: Limits, blocks: RowBlocks, head: dict[str, Any]) -> None:
        self.solver, self.limits, self.blocks = solver, limits, blocks
        self.progress = Progress(limits.verbose, solver, limits.started)
        self.history: list[State] = []
        self.done, self.stopped = 0, ""
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

    def finish(self, work: Generator[None, None, Any]) -> Any:
        """Run a pass to its end."""
        while True:
            try:
                next(work)
            except StopIteration as done:
                return done.value
            self.progress.beat()

    def in_time(self, work: Generator[None, None, Any]) -> Any:
        """Run a pass, given up between two blocks when the time is up: its result is then None."""
        return self.finish(self._in_time(work))

    def _in_time(self, work: Generator[None, None, Any]) -> Generator[None, None, Any]:
        while time.perf_counter() < self.limits.deadline:
            try:
                next(work)
            except StopIteration as done:
                return done.value
            yield
        self.stopped = "time_limit reached"
        return None

    def tell(self, state: State) -> None:
        """Note a state and show it; the callback may want to stop."""
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


def _part(found: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """Arrays whose names begin with one and a slash, without these."""
    return {key.removeprefix(f"{name}/"): values for key, values in found.items() if key.startswith(f"{name}/")}


def _state(told: list[float]) -> State:
    """A line of the history."""
    iteration, objective, lower, gap, elapsed, problem = told
    return State(int(iteration), objective, lower, gap, elapsed, int(problem))
