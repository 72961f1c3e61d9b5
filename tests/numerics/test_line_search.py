"""Minima of convex objectives along a line, and the top of a parabola."""

import numpy as np
import pytest

from mdlearn.numerics.line_search import line_minimum, line_secant, parabola_maximum


@pytest.mark.parametrize("place", [1e-6, 0.3, 1.0, 7.0, 1e5])
def test_a_slope_without_second_derivatives(place):
    looks = []

    def slope(t):
        looks.append(t)
        return float(np.arctan(3.0 * (t / place - 1.0)))

    start = slope(0.0)
    t = line_minimum(start, line_secant(slope, start), 1e-10)
    assert t == pytest.approx(place, rel=1e-9)
    assert len(looks) < 50


def test_a_piecewise_quadratic_is_solved_exactly():
    kinks = np.array([0.2, 0.5, 0.9])

    def along(t):
        return t + float(np.maximum(t - kinks, 0.0).sum()), 1.0 + np.count_nonzero(t > kinks)

    t = line_minimum(-1.0, along, 1e-15)
    assert along(t)[0] == pytest.approx(1.0, abs=1e-15)


def test_no_minimum_along_a_line():
    assert line_minimum(0.0, lambda t: (t, 1.0), 1e-3) == np.inf
    assert line_minimum(-1.0, line_secant(lambda t: -1.0, -1.0), 1e-3) == np.inf


@pytest.mark.parametrize("top, expected", [(0.3, 0.3), (-1.0, 0.0), (2.0, 1.0)])
def test_the_top_of_a_parabola(top, expected):
    assert parabola_maximum(lambda t: -((t - top) ** 2)) == pytest.approx(expected)
    assert parabola_maximum(lambda t: np.sign(top) * t) == float(top > 0)
