"""Progress of a selection over a known number of fits, on standard error: tqdm's bar if installed, else plain lines."""

from __future__ import annotations

import sys
import time
from typing import Any

PAUSE = 0.5
"""Seconds between two lines."""


class ProgressBar:
    """Progress bar of a selection: counts fits and estimates the time that the others will take.

    Parameters
    ----------
    verbose : int
        0 is silent.
    title : str
    total : int
        Number of fits.
    what : str, default "fit"
        What is counted, if not fits.
    """

    def __init__(self, verbose: int, title: str, total: int, what: str = "fit") -> None:
        self.verbose, self.title, self.total, self.what = verbose, title, total, what
        self.done, self.began, self.last = 0, time.monotonic(), time.monotonic()
        self.bar: Any = None
        if verbose == 1 and sys.stderr.isatty():
            try:
                from tqdm import tqdm
            except ImportError:
                return
            self.bar = tqdm(desc=title, total=total, unit=what, file=sys.stderr, leave=False)

    def advance(self, fits: int = 1, note: str = "") -> None:
        """Say that fits are done; `note` is shown beside."""
        self.done += fits
        if self.bar is not None:
            self.bar.set_postfix_str(note, refresh=False)
            self.bar.update(fits)
            return
        now = time.monotonic()
        if self.verbose and (now - self.last > PAUSE or self.done == self.total):
            self.last, passed = now, now - self.began
            left = passed / self.done * (self.total - self.done)
            print(
                f"{self.title}: {self.done} of {self.total} {self.what}s, {note + ', ' if note else ''}{passed:.1f} s, "
                f"about {left:.1f} s left",
                file=sys.stderr,
            )

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.close()
