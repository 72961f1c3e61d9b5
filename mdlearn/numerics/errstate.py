"""Error state (`errstate`) of NumPy for numbers that overflow, where a certificate tells of them anyway."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def overflow_errstate() -> np.errstate:
    """NumPy error state without warnings of overflows; a caller who asked for more than a warning gets it."""
    now = np.geterr()
    return np.errstate(
        over="ignore" if now["over"] == "warn" else now["over"],
        invalid="ignore" if now["invalid"] == "warn" else now["invalid"],
    )


def in_errstate_of_caller(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs in the NumPy error state of now, whatever holds where it is called."""
    found = np.geterr()

    def called(*given: Any) -> Any:
        with np.errstate(**found):
            return call(*given)

    return called
