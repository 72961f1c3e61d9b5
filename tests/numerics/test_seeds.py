"""Generators from several numbers are NumPy's own, however they are made."""

import numpy as np
import pytest

from mdlearn.numerics.seeds import seeded_rng


@pytest.mark.parametrize("numbers", [(0, 0), (0, 3, 1), (7, 2**32 - 1), (2**32, 1), (2**70, 5, 0)])
def test_the_stream_is_that_of_numpy(numbers):
    assert (
        seeded_rng(*numbers).integers(1 << 63, size=5) == np.random.default_rng(list(numbers)).integers(1 << 63, size=5)
    ).all()
