"""Interior points of boxes that have next to no room."""

from types import SimpleNamespace

import numpy as np
import pytest

from mdlearn.solvers.interior_point.central_path import CentralPath


@pytest.mark.parametrize("cap", [1e-300, 1e-8, 1.0])
def test_places_in_narrow_boxes_are_numbers(cap):
    """Where the complementarity asked for is far larger than a cap, nothing is left between multiplier and cap."""
    z = np.linspace(-2.0, 2.0, 9)
    path = object.__new__(CentralPath)
    path.state = SimpleNamespace(column=SimpleNamespace(caps=np.full((1, 9), cap)), slopes=lambda z: (z - 1.0)[None])
    path.used = np.ones((1, 9), dtype=bool)
    with np.errstate(divide="raise", invalid="raise"):
        for mu in (1e-320, 1e-300, 1e-9, 1.0):
            path.start_at(np.zeros(3), z, mu)
            assert (path.beta >= 0).all() and (path.beta <= cap).all()
            assert np.isfinite(path.s).all() and np.isfinite(path.xi).all()
