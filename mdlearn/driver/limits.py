"""Limits of a fit: when it has to stop, whatever its engine has reached; what it tells until then and fell short of."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mdlearn.driver.progress import Progress
from mdlearn.forms.proof import Certificate, State

OUT_OF_TIME = "time_limit reached"


@dataclass(eq=False)
class Limits:
    """Limits of a fit: `tol` is the relative gap (`tol_given`: the user's), `deadline` a `time.perf_counter` value.

    `n_threads` is what columns and BLAS may use together; None: columns one by one, BLAS by the size of the work.
    """

    tol: float
    tol_given: bool
    max_iter: int | None
    started: float
    deadline: float
    callback: Callable[[State], Any] | None
    verbose: int
    n_threads: int | None

    @property
    def over(self) -> bool:
        """Whether the fit is one that nobody has time for: a point of a path after the one that was stopped."""
        return self.deadline == -np.inf

    def late(self) -> bool:
        """Whether the time is up."""
        return time.perf_counter() >= self.deadline

    def too_late_for(self, seconds: Callable[[], float]) -> bool:
        """Whether the time will be up before what takes so many seconds has ended; without a limit nobody asks."""
        return self.deadline < np.inf and time.perf_counter() + seconds() >= self.deadline

    def ended(self) -> Limits:
        """Those of the fits that follow one that was stopped."""
        return replace(self, deadline=-np.inf)


@dataclass(frozen=True)
class LimitShortfall:
    """Limit that ended a fit before it reached its gap: the reason, and what to do.

    `title`: the engine, and where it comes from; `measure`: what the gap is.
    """

    title: str
    measure: str
    gap: float
    tol: float
    reason: str
    advice: str

    @property
    def text(self) -> str:
        """The whole sentence."""
        reached = f"stopped at {self.measure} {self.gap:.2g} instead of {self.tol:.2g}"
        return f"{self.title} {reached} ({self.reason}); {self.advice}"


class LimitedRun:
    """Run of a fit within its limits, with history, progress and callback, over rows in memory or in blocks.

    `solver`: name of the engine; `stopped`: why the whole fit ends early; empty: it may go on; `progress`: None: it is
    silent.
    """

    def __init__(self, solver: str, limits: Limits) -> None:
        self.limits, self.stopped = limits, ""
        self.history: list[State] = []
        self.progress: Progress | None = None
        if limits.verbose:
            self.progress = Progress(limits.verbose, solver, limits.started, limits.tol)

    def beat(self) -> None:
        """Show that work goes on."""
        if self.progress is not None:
            self.progress.beat()

    def late(self) -> bool:
        """Look at the clock, and say whether to stop."""
        if not self.stopped and time.perf_counter() >= self.limits.deadline:
            self.stopped = OUT_OF_TIME
        return bool(self.stopped)

    def state(
        self, count: int, objective: float, lower: float, gap: float, problem: int, row_dots: int | None = None
    ) -> State:
        """Return the state that is reached now, with the seconds since the start."""
        return State(count, objective, lower, gap, time.perf_counter() - self.limits.started, problem, row_dots)

    def record(self, state: State) -> None:
        """Keep and show a state; the callback may want to stop."""
        self.history.append(state)
        if self.progress is not None:
            self.progress.show(state)
        if self.limits.callback is not None and self.limits.callback(state):
            self.stopped = "stopped by the callback"

    def shortfall(
        self, title: str, certificate: Certificate, published: bool, exact: bool, ended: str, advice: str = "allow more"
    ) -> LimitShortfall | None:
        """Say why the gap was not reached, and what to do; a published end that was asked for is no surprise.

        `title`: the engine, and where it comes from; `published`: whether it has come to an end of its own; `exact`:
        whether rows are float64; `ended`, `advice`: what ended the fit, if anything else did, and what to do then.
        """
        if certificate.converged or (published and not self.limits.tol_given):
            return None
        if not ended and published:
            ended, advice = "the method's published end", "raise tol, change solver_options or use solver='auto'"
        elif not ended:
            advice = f"raise tol or {'scale the features' if exact else 'give float64 rows'}"
            ended = "rounding allows no better"
        unbounded = certificate.kind == "residual" and np.isinf(certificate.lower_bound)
        measure = "relative first-order residual" if unbounded else "relative gap"
        gap = certificate.gap
        if gap <= self.limits.tol:  # of all problems together; one of them missed it
            gap = max((part.gap for part in certificate.parts), default=gap)
        return LimitShortfall(title, measure, gap, self.limits.tol, ended, advice)
