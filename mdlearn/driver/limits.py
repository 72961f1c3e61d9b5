"""Limits of a fit: when it has to stop, whatever its engine has reached; what it shows until then and fell short of."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from mdlearn.forms.proof import Certificate, State

OFTEN, SELDOM = 0.5, 2.0
"""Seconds between two plain lines, with something new to tell and without."""
BAR_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}{postfix}"
SMALLEST_GAP = 1e-16
"""Where a bar ends that nothing is asked of (tol=0)."""
OUT_OF_TIME = "time_limit reached"


class Progress:
    """Progress of a driver's fit: iteration and gap; `verbose` 0 is silent, 1 a bar or few lines, 2 a line per report.

    The bar shows how far log10 of the gap has come on its way from the first report to `tol`, the gap at which a
    problem is done, as the mean over all problems. It is tqdm's where that is installed; plain lines elsewhere.
    `title`: what the line begins with; `started`: `time.perf_counter` value from which `beat` tells the time.
    """

    def __init__(self, verbose: int, title: str, started: float, tol: float) -> None:
        self.verbose, self.title, self.started = verbose if sys.stderr is not None else 0, title, started
        self.goal = math.log10(max(tol, SMALLEST_GAP))
        self.starts: dict[int, float] = {}
        self.shares: dict[int, float] = {}
        self.bar: Any = None
        self.opened = False
        self.problems = 1
        self.last = -math.inf

    def show(self, state: Any) -> None:
        """Show one State of the driver."""
        if not self.verbose:
            return
        self._open()
        problem = f"problem {state.problem + 1} of {self.problems}, " if self.problems > 1 else ""
        if self.bar is not None:
            log_gap = math.inf if math.isnan(state.gap) else math.log10(max(state.gap, SMALLEST_GAP))
            self.bar.set_postfix_str(f"{problem}log10 of the gap {log_gap:.1f}, to be {self.goal:.1f}", refresh=False)
            self.bar.update(self._advance(state.problem, log_gap) - self.bar.n)
            return
        now = time.perf_counter()
        if self.verbose > 1 or now - self.last > OFTEN:
            self.last = now
            self._line(
                f"{problem}iteration {state.iteration}, objective {state.objective:.8g}, gap {state.gap:.2e}, "
                f"{state.elapsed:.2f} s"
            )

    def beat(self) -> None:
        """Show that work goes on, between two reports or before the first one."""
        if self.verbose != 1:
            return
        now = time.perf_counter()
        if now - self.last > OFTEN:
            self._open()
            if self.bar is not None:
                self.last = now
                self.bar.refresh()
            elif now - max(self.last, self.started) > SELDOM:
                self.last = now
                self._line(f"at work, {now - self.started:.2f} s")

    def _advance(self, problem: int, log_gap: float) -> float:
        """Percentage of the way of all problems, after a report of one; it never falls."""
        start = self.starts.get(problem, math.inf)
        if start == math.inf:
            start = self.starts[problem] = log_gap
        way = start - self.goal
        share = 0.0 if start == math.inf else 1.0 if way <= 0 else min(max((start - log_gap) / way, 0.0), 1.0)
        self.shares[problem] = max(share, self.shares.get(problem, 0.0))
        return 100.0 * sum(self.shares.values()) / self.problems

    def complete(self) -> None:
        """Fill the bar: every problem has reached its gap, though the last ones may not have reported it."""
        if self.bar is not None:
            self.bar.update(100.0 - self.bar.n)
            self.bar.refresh()

    def close(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.close()

    def _line(self, text: str) -> None:
        print(f"{self.title}: {text}", file=sys.stderr, flush=True)

    def _open(self) -> None:
        if not self.opened:
            self.opened = True
            kind = _progress_bar_class() if self.verbose == 1 else None
            if kind is not None:
                self.bar = kind(
                    desc=self.title, total=100.0, bar_format=BAR_FORMAT, miniters=0, file=sys.stderr, leave=False
                )


def _progress_bar_class() -> Any:
    """Class of the driver's progress bar: for a terminal, for a notebook that can show one, or None."""
    try:
        if sys.stderr.isatty() and _progress_bar_width() > 0:
            from tqdm import tqdm
        elif "ipykernel" in sys.modules and find_spec("ipywidgets") is not None:
            from tqdm.notebook import tqdm
        else:
            return None
    except ImportError:
        return None
    # tqdm's own thread, which redraws bars that nobody updates, would outlive the fit.
    return type("Bar", (tqdm,), {"monitor_interval": 0})


def _progress_bar_width() -> int:
    """Width of the terminal in columns, for the driver's progress bar; 80 where the terminal does not report one."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError, AttributeError):
        return 80


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
