"""Generators from several numbers are NumPy's own, however they are made."""

import numpy as np
import pytest

from mdlearn.numerics import seeds
from mdlearn.numerics.seeds import seeded_rng


@pytest.mark.parametrize("numbers", [(0, 0), (0, 3, 1), (7, 2**32 - 1), (2**32, 1), (2**70, 5, 0)])
def test_the_stream_is_that_of_numpy(numbers):
    assert (
        seeded_rng(*numbers).integers(1 << 63, size=5) == np.random.default_rng(list(numbers)).integers(1 << 63, size=5)
    ).all()


def test_a_deferred_generator_is_made_by_the_first_draw_and_draws_the_same(monkeypatch):
    made = []
    monkeypatch.setattr(seeds, "seeded_rng", lambda *numbers: made.append(numbers) or seeded_rng(*numbers))
    late, soon = seeds.deferred_rng(3, 1), seeded_rng(3, 1)
    assert not made
    assert late.permutation(9).tolist() == soon.permutation(9).tolist() and late.random() == soon.random()
    assert made == [(3, 1)]
