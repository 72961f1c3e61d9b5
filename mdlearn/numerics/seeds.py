"""Seeds: generators of random numbers from several numbers."""

from __future__ import annotations

import numpy as np

WORD = 1 << 32
"""Numbers below it need one word of NumPy's seeds."""


def seeded_rng(*numbers: int) -> np.random.Generator:
    """Random generator ``numpy.random.default_rng(numbers)``: the same stream, made sooner where all are below 2^32."""
    small = max(numbers) < WORD
    return np.random.default_rng(np.array(numbers, dtype=np.uint32) if small else list(numbers))
