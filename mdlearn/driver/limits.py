"""When a fit has to stop, whatever its engine has reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mdlearn.forms.progress import State


@dataclass(frozen=True)
class Limits:
    """When to stop: `tol` is the relative gap (`tol_given`: the user's), `deadline` a `time.perf_counter` value.

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

    def ended(self) -> Limits:
        """Those of the fits that follow one that was stopped."""
        return replace(self, deadline=-np.inf)
