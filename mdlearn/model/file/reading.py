"""What a decoder takes from a model file: arrays by name and shape, and fields of the header by type."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdlearn.model.file.archive import Unreadable


class Arrays:
    """The arrays of a file, taken out one by one; what is left in the end does not belong there."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.left = dict(arrays)

    def take(self, name: str, kind: str, *shape: int | None) -> np.ndarray:
        """Return an array in native byte order; `kind` is a dtype kind, None stands for any length."""
        array = self.left.pop(name, None)
        if array is None:
            raise Unreadable(f"it lacks the array {name!r}")
        fits = len(array.shape) == len(shape) and all(w is None or n == w for n, w in zip(array.shape, shape))
        if array.dtype.kind != kind or not fits or (kind == "f" and array.dtype.itemsize not in (4, 8)):
            raise Unreadable(f"its array {name!r} has dtype {array.dtype} and shape {array.shape}")
        if kind == "f" and not np.isfinite(array).all():
            raise Unreadable(f"its array {name!r} holds NaN or infinity")
        return array.astype(array.dtype.newbyteorder("="), copy=False)

    def take_any(self, name: str) -> np.ndarray:
        """Return an array of numbers or booleans of any shape."""
        array = self.left.get(name)
        if array is None:
            raise Unreadable(f"it lacks the array {name!r}")
        if array.dtype.kind not in "biuf":
            raise Unreadable(f"its array {name!r} has dtype {array.dtype}")
        del self.left[name]
        return array.astype(array.dtype.newbyteorder("="), copy=False)


def typed(header: dict[str, Any], name: str, types: tuple[type, ...]) -> Any:
    """A field of the header, which needs to have one of these types."""
    if name not in header:
        raise Unreadable(f"its header lacks {name!r}")
    return check_type(header[name], types, name)


def check_type(value: Any, types: tuple[type, ...], name: str) -> Any:
    """A value, which needs to have one of these types; `name` is what errors call it."""
    # In Python, True is an int.
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise Unreadable(f"its header gives {name!r} as {value!r}")
    return value


def among(value: Any, choices: tuple[str, ...]) -> Any:
    """A value, which needs to be one of these."""
    if value not in choices:
        raise Unreadable(f"its header says {value!r} where one of {', '.join(choices)} is needed")
    return value
