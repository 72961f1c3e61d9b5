"""NumPy's warnings of numbers that overflow, where a certificate tells of them anyway."""

from __future__ import annotations

import numpy as np


def overflowing() -> np.errstate:
    """A context without the warnings of overflows; a caller who asked for more than a warning gets it."""
    now = np.geterr()
    return np.errstate(
        over="ignore" if now["over"] == "warn" else now["over"],
        invalid="ignore" if now["invalid"] == "warn" else now["invalid"],
    )
