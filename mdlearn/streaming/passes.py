"""Passes of one fit over row blocks: limits, progress, what is told of them, and the file that keeps it."""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Generator, Mapping
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mdlearn.data.row_blocks.source import RowBlocks
from mdlearn.data.row_blocks.summary import Summary
from mdlearn.driver.limits import OUT_OF_TIME, LimitedRun, Limits
from mdlearn.forms.proof import Certificate, State
from mdlearn.numerics.errstate import overflow_errstate
from mdlearn.numerics.interruptible import finished
from mdlearn.output_files import remove_abandoned_drafts, replace_file
from mdlearn.streaming.engines.block_engine import BlockEngine

LATEST_SHARE, LATEST_SECONDS = 0.05, 0.15
"""How far beyond the time limit the last pass may go, as a share of the limit and in seconds."""
HEAD = "head"


class PassesCheckpoint:
    """Checkpoint of the passes of a fit: a file with arrays, and with what they belong to.

    `head`: what a fit has been asked for; only a fit that has been asked for the same goes on from the file.
    Raises ValueError when the file belongs to another fit, or is none of these.
    """

    def __init__(self, path: Any, head: dict[str, Any]) -> None:
        self.path = Path(path)
        self.head: dict[str, Any] = json.loads(json.dumps(head, default=_passes_checkpoint_text))
        self.found: dict[str, np.ndarray] = {}
        if self.path.exists():
            self.found = self._read()
        remove_abandoned_drafts(str(self.path))

    def write(self, arrays: dict[str, np.ndarray]) -> None:
        """Replace the file; it is the old or the new one at any moment."""
        content = {HEAD: np.array(json.dumps(self.head)), **arrays}
        replace_file(str(self.path), partial(np.savez, **content))  # type: ignore[arg-type]

    def _read(self) -> dict[str, np.ndarray]:
        try:
            with open(self.path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
                found = {name: file[name] for name in file.files}
            head = json.loads(str(found.pop(HEAD)))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{self.path} is no checkpoint ({error}); give another file") from None
        for name in {**head, **self.head}:
            if head.get(name) != self.head.get(name):
                raise ValueError(
                    f"the checkpoint {self.path} belongs to another fit: its {name} is {head.get(name)!r}, and not "
                    f"{self.head.get(name)!r}; give another file"
                )
        return found


def _passes_checkpoint_text(value: Any) -> str:
    """Text of a value in a checkpoint of passes: an array by all its bytes, which `repr` leaves out."""
    if isinstance(value, np.ndarray):
        return f"array {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    return repr(value)


class Passes(LimitedRun):
    """Passes of one fit, each begun only where it can end in time with those that certify the answer after it.

    `solver`: name of the engine; `head`: what a checkpoint belongs to; `done`: how many an engine has made; `cost`:
    seconds of the longest pass so far; `complete`: whether the passes that write the form were all made; else nothing
    is known but w = 0.
    """

    def __init__(self, solver: str, limits: Limits, blocks: RowBlocks, head: dict[str, Any]) -> None:
        super().__init__(solver, limits)
        self.solver, self.blocks = solver, blocks
        self.done, self.cost, self.complete = 0, 0.0, True
        self.end = limits.deadline + LATEST_SHARE * (limits.deadline - limits.started) + LATEST_SECONDS
        self.rows: dict[str, np.ndarray] = {}
        self.file = None if blocks.checkpoint is None else PassesCheckpoint(blocks.checkpoint, head)

    def found(self, name: str) -> dict[str, np.ndarray]:
        """Arrays of an earlier run whose names begin with one and a slash, without these; none where there is none."""
        found = {} if self.file is None else self.file.found
        return {key.removeprefix(f"{name}/"): values for key, values in found.items() if key.startswith(f"{name}/")}

    def resume(self) -> dict[str, np.ndarray]:
        """Restore passes and history of an earlier run, and return its engine's state; empty where there is none."""
        state = self.found("state")
        if state and self.file is not None:
            self.done = int(self.file.found["passes"])
            for count, objective, lower, gap, elapsed, problem in self.file.found["history"].tolist():
                self.history.append(State(int(count), objective, lower, gap, elapsed, int(problem)))
        return state

    def keep(self, state: Mapping[str, np.ndarray]) -> None:
        """Write down what an engine has reached."""
        if self.file is None:
            return
        arrays = {f"rows/{name}": values for name, values in self.rows.items()}
        arrays |= {f"state/{name}": values for name, values in state.items()}
        told = [astuple(state)[:6] for state in self.history]  # up to the problem
        self.file.write({**arrays, "passes": np.array(self.done), "history": np.array(told)})

    def finish(self, work: Generator[None, Any, Any]) -> Any:
        """Run work to its end; it is told when the time is up."""

        def stopped() -> bool:
            self.beat()
            return self.limits.late()

        return finished(work, stopped)

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
            return self._until(self.limits.deadline - after * self.cost, work)
        self.stopped = self.stopped or OUT_OF_TIME
        return None

    def _until(self, end: float, work: Generator[None, Any, Any]) -> Any:
        """Result of work, given up between two of its pieces at some time: None."""
        begun = time.perf_counter()
        while True:
            try:
                with overflow_errstate():
                    work.send(None)
            except StopIteration as done:
                self.cost = max(self.cost, time.perf_counter() - begun)
                return done.value
            if time.perf_counter() >= end:
                work.close()
                self.stopped = self.stopped or OUT_OF_TIME
                return None
            self.beat()

    def run(self, engine: BlockEngine, summary: Summary) -> tuple[list[Certificate], np.ndarray]:
        """Certificates of all problems and coefficients of all columns, once they meet `tol` or limits are reached."""
        if (progress := self.progress) is not None:
            progress.problems = len(engine.groups)
        try:
            while True:
                self._advance(engine, summary)
                late = self.stopped == OUT_OF_TIME
                found = self._until(self.end, engine.certified(self.blocks, summary, late)) if self.complete else None
                certificates, W = engine.judged(engine.candidates(summary.dtype) if found is None else found)
                if self.done and not self.history:  # nothing was known before
                    for t, one in enumerate(certificates):
                        self.record(self.state(self.done, one.objective, one.lower_bound, one.gap, t))
                if self.stopped or not engine.reopen(certificates):
                    if progress is not None and all(one.converged for one in certificates):
                        progress.complete()
                    return certificates, W
                # Estimates promised too much.
                for t, i in {state.problem: i for i, state in enumerate(self.history)}.items():
                    state, one = self.history[i], certificates[t]
                    self.history[i] = replace(state, objective=one.objective, lower_bound=one.lower_bound, gap=one.gap)
        finally:
            if progress is not None:
                progress.close()

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
            self._until(self.limits.deadline, engine.take(work, found))
            self.done += 1
            for t, objective, lower, gap in engine.reports(work):
                self.record(self.state(self.done, objective, lower, gap, t))
            self.keep(engine.arrays())
