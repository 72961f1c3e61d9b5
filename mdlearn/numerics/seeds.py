"""Seeds: generators of random numbers from several numbers."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from mdlearn.numerics.lazy_property import kept

WORD = 1 << 32
"""Numbers below it need one word of NumPy's seeds."""


def seeded_rng(*numbers: int) -> np.random.Generator:
    """Random generator ``numpy.random.default_rng(numbers)``: the same stream, made sooner where all are below 2^32."""
    small = max(numbers) < WORD
    return np.random.default_rng(np.array(numbers, dtype=np.uint32) if small else list(numbers))


def deferred_rng(*numbers: int) -> np.random.Generator:
    """Random generator `seeded_rng` that is made when something is drawn: that takes as long as much of a small fit."""
    return cast(np.random.Generator, _DeferredRng(*numbers))


class _DeferredRng:
    """Random generator of seeds, made at first use."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = numbers

    @kept
    def _rng(self) -> np.random.Generator:
        return seeded_rng(*self._numbers)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rng, name)
