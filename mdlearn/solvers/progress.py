"""Progress on standard error: tqdm where it is installed, plain lines elsewhere."""

from __future__ import annotations

import math
import sys
import time
from typing import Any


class Progress:
    """Shows iteration and gap; `verbose` 0 is silent, 1 a bar or about two lines a second, 2 a line per report."""

    def __init__(self, verbose: int, title: str) -> None:
        self.verbose, self.title = verbose, title
        self.bar: Any = None
        self.last = -math.inf
        if verbose == 1 and sys.stderr.isatty():
            try:
                from tqdm import tqdm
            except ImportError:
                return
            self.bar = tqdm(desc=title, unit="it", file=sys.stderr, leave=False)

    def show(self, state: Any) -> None:
        """Show one State of the driver."""
        if not self.verbose:
            return
        if self.bar is not None:
            self.bar.set_postfix_str(f"problem {state.problem}, gap {state.gap:.1e}", refresh=False)
            self.bar.update()
            return
        now = time.monotonic()
        if self.verbose > 1 or now - self.last > 0.5:
            self.last = now
            print(
                f"{self.title}: problem {state.problem}, iteration {state.iteration}, objective {state.objective:.8g}, "
                f"gap {state.gap:.2e}, {state.elapsed:.2f} s",
                file=sys.stderr,
            )

    def close(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.close()
