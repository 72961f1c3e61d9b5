"""Seeds: generators of random numbers from several numbers."""

from __future__ import annotations

import numpy as np

from mdlearn.numerics.lazy_property import kept

WORD = 1 << 32
"""Numbers below it need one word of NumPy's seeds."""


class SeededRng:
    """Random generator of seed numbers, made when it is first asked for: that takes as long as much of a small fit."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = numbers

    @kept
    def generator(self) -> np.random.Generator:
        """That of the numbers."""
        return seeded_rng(*self.numbers)


def seeded_rng(*numbers: int) -> np.random.Generator:
    """Random generator ``numpy.random.default_rng(numbers)``: the same stream, made sooner where all are below 2^32."""
    small = max(numbers) < WORD
    return np.random.default_rng(np.array(numbers, dtype=np.uint32) if small else list(numbers))
