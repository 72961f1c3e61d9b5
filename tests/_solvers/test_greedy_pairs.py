"""Greedy steps of two coordinates: their choice against written formulas, and on rows that are made when asked."""

import numpy as np
import pytest

from mdlearn._solvers import bounded_quadratic as greedy
from mdlearn._solvers.gaussian import GaussianRows
from mdlearn._solvers.known_rows import KnownRows, SelectedRows

SIZES = [1, 2, 15, 16, 17, 127, 128, 129, 144, 300]
"""Around the numbers of rows that loops treat side by side, and of those whose extremes they find together."""


def problem(n, seed=0, d=3):
    """Gaussian kernel values, with a point in the box and its gradient; some rows at either bound."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    H = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    low, high = np.where(rng.random(n) < 0.5, [[-1.0], [0.0]], [[0.0], [1.0]])
    u = np.select([np.arange(n) % 3 == 0, np.arange(n) % 3 == 1], [low, high], 0.5 * (low + high))
    e = rng.normal(size=n)
    return X, H, low, high, u, e


def box(H, low, high, u, e, border=None, omega=0.0, soft=None):
    n = u.shape[0]
    soft, border = np.zeros(n) if soft is None else soft, np.ones(n) if border is None else border
    return greedy.Box(H, border, omega, soft, low, high, u, e, np.empty((4, n)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", SIZES)
def test_a_pair_is_the_steepest_row_and_the_one_that_gains_most_beside_it(n, dtype):
    _, H, low, high, u, e = problem(n, n)
    H = H.astype(dtype)
    before, gradient, soft = u.copy(), e.copy(), np.random.default_rng(n).uniform(0.0, 0.1, n)
    up, down = np.where(u < high, e, -np.inf), np.where(u > low, e, np.inf)
    i = int(up.argmax())
    gap = float(up[i] - down.min())
    curvature = H[i, i] + soft[i] + np.diagonal(H) + soft - 2.0 * H[i].astype(float)
    gain = np.where(down < e[i], (e[i] - down) ** 2 / np.maximum(curvature, 1e-12), 0.0)
    given = box(H, low, high, u, e, soft=soft)
    count = greedy.pairs(given, 1, 0.0)
    if not gap > 0:
        assert count == 0
        return
    j = int(gain.argmax())
    assert count == 1 and set(np.flatnonzero(u != before)) == {i, j}
    assert u[i] - before[i] == pytest.approx(before[j] - u[j]) and u[i] > before[i]
    change = u - before
    np.testing.assert_allclose(e, gradient - H.astype(float) @ change - soft * change, atol=1e-6 if n else 0)
    after = np.where(u < high, e, -np.inf).max() - np.where(u > low, e, np.inf).min()
    assert given.violation == pytest.approx(after, abs=1e-12)


@pytest.mark.parametrize("omega", [0.0, 0.7])
@pytest.mark.parametrize("n", SIZES)
def test_two_coordinates_are_the_best_alone_and_the_best_beside_it(n, omega):
    _, H, low, high, u, e = problem(n, n)
    border, before, gradient = np.random.default_rng(n).normal(size=n), u.copy(), e.copy()
    Q = H + omega * np.outer(border, border)
    length = np.diagonal(Q)

    def inward(v):
        return np.maximum(np.maximum(v * (u < high), -v * (u > low)), 0.0)

    size = inward(e)
    i = int((size**2 / length).argmax())
    beside = inward(e - Q[i] * (e[i] / length[i])) ** 2 / np.maximum(length - Q[i] ** 2 / length[i], 1e-10 * length)
    beside[i] = 0.0
    expected = {i, int(beside.argmax())} if beside.any() else {i}
    given = box(H, low, high, u, e, border, omega)
    if not size.any():
        assert greedy.doubles(given, 1, 0.0) == 0
        return
    assert greedy.doubles(given, 1, 0.0) == 1 and set(np.flatnonzero(u != before)) <= expected
    assert u[i] != before[i]
    np.testing.assert_allclose(e, gradient - Q @ (u - before), atol=1e-12)
    assert given.violation == pytest.approx(inward(e).max(), abs=1e-12)


def known_rows(H, maker=None):
    n = H.shape[0]
    values = np.full((n, n), np.nan)
    return KnownRows(values, np.full(n, -1), np.empty(n, dtype=np.int64), np.diagonal(H).copy(), maker)


@pytest.mark.parametrize("steps", [greedy.pairs, greedy.doubles])
def test_steps_on_rows_that_are_made_when_asked_are_those_on_the_whole_matrix(steps):
    """To the bit, and no row is asked for that no step needs."""
    _, H, low, high, u, e = problem(150)
    other, gradient = u.copy(), e.copy()
    count = steps(box(H, low, high, u, e, omega=0.3), 40, 1e-9)
    known = known_rows(H)
    given = box(known, low, high, other, gradient, omega=0.3)
    taken = 0
    while True:
        known.allow(0)
        taken += steps(given, 40 - taken, 1e-9)
        if known.missing < 0:
            break
        row = np.array([known.missing])
        known.room(1)[:] = H[row]
        known.note(row)
    assert taken == count == 40
    assert np.array_equal(other, u) and np.array_equal(gradient, e)
    assert known.count < 100 and np.isnan(known.values[known.count :]).all()
    assert np.array_equal(known.values[: known.count], H[known.index])


@pytest.mark.parametrize("steps", [greedy.pairs, greedy.doubles])
def test_compiled_loops_make_as_many_rows_as_they_may(steps):
    X, H, low, high, u, e = problem(150)
    other, gradient = u.copy(), e.copy()
    known = known_rows(H, GaussianRows(np.ascontiguousarray(X.T), np.empty(3)))
    given = box(known, low, high, other, gradient)
    made, taken = [], 0
    while True:
        known.allow(7)
        taken += steps(given, 40 - taken, 1e-9)
        made.append(known.count)
        if known.missing < 0:
            break
    assert taken == 40 and (np.diff([0, *made])[:-1] == 7).all()
    assert np.abs(known.values[: known.count] - H[known.index]).max() < 1e-15
    assert known.place[known.index].tolist() == list(range(known.count))
    steps(box(H, low, high, u, e), 40, 1e-9)
    np.testing.assert_allclose(other, u, atol=1e-10)


@pytest.mark.parametrize("steps", [greedy.pairs, greedy.doubles])
def test_steps_between_selected_rows_are_those_on_their_part_of_the_matrix(steps):
    """Only rows that steps ask for are made, in the matrix of all rows and in that of the selected ones."""
    X, H, low, high, u, e = problem(150)
    index = np.arange(149, -1, -3)
    whole = known_rows(H, GaussianRows(np.ascontiguousarray(X.T), np.empty(3)))
    part = H[np.ix_(index, index)]
    known = known_rows(part, SelectedRows(whole, index))
    low, high, u, e = low[index], high[index], u[index], e[index]
    other, gradient = u.copy(), e.copy()
    known.allow(50)
    taken = steps(box(known, low, high, other, gradient, omega=0.3), 10, 1e-9)
    assert taken == steps(box(part, low, high, u, e, omega=0.3), 10, 1e-9) == 10
    np.testing.assert_allclose(other, u, atol=1e-10)
    assert 0 < known.count == whole.count < 50 and set(whole.index) == set(index[known.index])
    np.testing.assert_allclose(known.values[: known.count], part[known.index], atol=1e-15)


def test_selected_rows_are_rows_of_a_matrix_that_makes_them():
    whole = known_rows(np.eye(4), GaussianRows(np.ones((1, 4)), np.empty(1)))
    for wrong in (4, -1):
        with pytest.raises(ValueError, match="out of range"):
            SelectedRows(whole, np.array([0, wrong]))
    with pytest.raises(ValueError, match="known rows to which loops can add"):
        SelectedRows(known_rows(np.eye(4)), np.array([0]))
    with pytest.raises(ValueError, match="a maker of as many entries"):
        known_rows(np.eye(3), SelectedRows(whole, np.array([0, 1])))


def test_known_rows_are_noted_once_and_within_the_matrix():
    known = known_rows(np.eye(4))
    known.note(np.array([2, 0]))
    assert known.index.tolist() == [2, 0] and known.place.tolist() == [1, -1, 0, -1] and not known.compiled
    for wrong in (2, 4, -1):
        with pytest.raises(ValueError, match="out of range, or of a row that is known"):
            known.note(np.array([wrong]))
