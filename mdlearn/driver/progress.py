"""Progress of a driver's fit on standard error: tqdm where it is installed, plain lines elsewhere."""

from __future__ import annotations

import math
import os
import sys
import time
from importlib.util import find_spec
from typing import Any

OFTEN, SELDOM = 0.5, 2.0
"""Seconds between two plain lines, with something new to tell and without."""
BAR_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}{postfix}"
SMALLEST_GAP = 1e-16
"""Where a bar ends that nothing is asked of (tol=0)."""


class Progress:
    """Progress of a driver's fit: iteration and gap; `verbose` 0 is silent, 1 a bar or few lines, 2 a line per report.

    The bar shows how far log10 of the gap has come on its way from the first report to `tol`, the gap at which a
    problem is done, as the mean over all problems. `title`: what the line begins with; `started`: `time.perf_counter`
    value from which `beat` tells the time.
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
