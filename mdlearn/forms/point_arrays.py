"""Whether arrays that an engine hands in can be certified: their type, their shape, and that they are finite."""

from __future__ import annotations

from typing import Any

import numpy as np


def array_fault(name: str, value: Any, shape: tuple[int, ...]) -> str | None:
    """Return what is wrong with an array of a point, as half a sentence; None: nothing."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or value.shape != shape:
        array = isinstance(value, np.ndarray)
        told = f"an array of {value.dtype} and shape {value.shape}" if array else type(value).__name__
        return f"its point has as {name} {told}, floats of shape {shape} are needed"
    return None if np.isfinite(value).all() else f"its point has NaN or infinity in {name}"
