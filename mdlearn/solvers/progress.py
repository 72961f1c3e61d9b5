"""Progress on standard error: tqdm where it is installed, plain lines elsewhere."""

from __future__ import annotations

import math
import os
import sys
import time
from importlib.util import find_spec
from typing import Any

OFTEN, SELDOM = 0.5, 2.0
"""Seconds between two plain lines, with something new to tell and without."""


class Progress:
    """Shows iteration and gap; `verbose` 0 is silent, 1 a bar or about two lines a second, 2 a line per report.

    Parameters
    ----------
    verbose : int
    title : str
        What the line begins with.
    started : float
        `time.perf_counter` value from which `beat` tells the time.
    """

    def __init__(self, verbose: int, title: str, started: float) -> None:
        self.verbose, self.title, self.started = verbose if sys.stderr is not None else 0, title, started
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
            self.bar.set_postfix_str(f"{problem}gap {state.gap:.1e}", refresh=False)
            self.bar.update()
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

    def close(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.close()

    def _line(self, text: str) -> None:
        print(f"{self.title}: {text}", file=sys.stderr, flush=True)

    def _open(self) -> None:
        if not self.opened:
            self.opened = True
            kind = _bar() if self.verbose == 1 else None
            if kind is not None:
                self.bar = kind(desc=self.title, unit="it", file=sys.stderr, leave=False)


def _bar() -> Any:
    """The class of the bar: for a terminal, for a notebook that can show one, or None."""
    try:
        if sys.stderr.isatty() and _columns() > 0:
            from tqdm import tqdm
        elif "ipykernel" in sys.modules and find_spec("ipywidgets") is not None:
            from tqdm.notebook import tqdm
        else:
            return None
    except ImportError:
        return None
    # tqdm's own thread, which redraws bars that nobody updates, would outlive the fit.
    return type("Bar", (tqdm,), {"monitor_interval": 0})


def _columns() -> int:
    """Columns of the terminal; where it tells of none, a bar would have no room."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError, AttributeError):
        return 80
