"""Newton steps on a face of a quadratic with bounds, against the formulas written out."""

import numpy as np
import pytest

from mdlearn._solvers import bounded_quadratic as faces


def quadratic(seed=0, m=30, soft=0.0):
    """A positive definite quadratic with bounds of either sign, and a point with rows at both bounds and between."""
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(m, m + 3))
    R, border, omega = B @ B.T / m, rng.normal(size=m), 0.7
    high = rng.uniform(0.2, 1.0, m)
    low = -rng.uniform(0.0, 1.0, m)
    u = np.select([np.arange(m) % 3 == 0, np.arange(m) % 3 == 1], [low, high], 0.5 * (low + high))
    linear, soft = 3.0 * rng.normal(size=m), soft * rng.uniform(0.5, 1.0, m)
    Q = R + omega * np.outer(border, border) + np.diag(soft)
    e = linear - Q @ u
    face = faces.Face(R, border, omega, soft, low, high, u, e, np.empty(m, dtype=np.int64), np.empty((2, m)))
    return face, R, border, omega, soft, low, high, u, e, linear, Q


def moving(low, high, u, e):
    """Rows inside their boxes, and rows at a bound with a gradient that points inside."""
    free = (u > low) & (u < high)
    return free, ~free & (((u < high) & (e > 0)) | ((u > low) & (e < 0)))


def solved(face):
    n = faces.rows(face)
    A, sides = np.empty((n, n)), np.empty((2, n))
    faces.system(face, A, sides, 0.0)
    A = np.tril(A) + np.tril(A, -1).T
    return A, sides, np.linalg.solve(A, sides.T).T.copy()


@pytest.mark.parametrize("soft", [0.0, 2.0])
def test_the_system_is_that_of_the_rows_that_move(soft):
    face, R, border, _, delta, low, high, u, e, *_ = quadratic(soft=soft)
    free, entering = moving(low, high, u, e)
    A, sides, _ = solved(face)
    i = np.flatnonzero(free | entering)
    assert (face.free, face.entering) == (free.sum(), entering.sum()) and entering.any() and not (free | entering).all()
    assert face.worst == np.abs(e[i][((e > 0) & (u < high) | (e < 0) & (u > low))[i]]).max()
    np.testing.assert_array_equal(A, R[np.ix_(i, i)] + np.diag(delta[i]))
    np.testing.assert_array_equal(sides, [e[i], border[i]])
    faces.system(face, A, sides, 0.5)
    largest = R[i, i].max()
    np.testing.assert_allclose(np.diagonal(A), R[i, i] + delta[i] + 0.5 * largest, rtol=1e-15)


@pytest.mark.parametrize("seed", range(6))
def test_a_step_ends_where_the_value_is_highest_along_it(seed):
    face, _, _, _, _, low, high, u, e, linear, Q = quadratic(seed, soft=seed % 2)
    before, gradient = u.copy(), e.copy()
    free, entering = moving(low, high, u, e)
    i = np.flatnonzero(free | entering)
    whole = np.zeros_like(u)
    whole[i] = np.linalg.solve(Q[np.ix_(i, i)], gradient[i])  # with the border, unlike the system
    move = np.clip(before + whole, low, high) - before
    most = min(1.0, float(move @ gradient) / float(move @ Q @ move))
    _, _, both = solved(face)
    assert faces.step(face, both)
    np.testing.assert_allclose(u, before + most * move, atol=1e-12)
    np.testing.assert_allclose(e, linear - Q @ u, atol=1e-12)
    assert (u >= low).all() and (u <= high).all()


def test_without_bounds_in_the_way_one_step_is_the_answer():
    face, _, _, _, _, low, high, u, e, linear, Q = quadratic()
    low[:], high[:], u[:] = -1e3, 1e3, 0.0
    e[:] = linear
    _, _, both = solved(face)
    assert faces.step(face, both)
    np.testing.assert_allclose(u, np.linalg.solve(Q, linear), rtol=1e-9)
    faces.rows(face)
    assert face.worst < 1e-10


def test_a_direction_that_loses_is_not_taken():
    face, *_, u, e, _, _ = quadratic()
    _, _, both = solved(face)
    before, gradient = u.copy(), e.copy()
    both[0] *= -1.0
    both[1] = 0.0
    assert not faces.step(face, both)
    np.testing.assert_array_equal(u, before)
    np.testing.assert_array_equal(e, gradient)


def test_shapes_are_checked():
    face, R, border, omega, soft, low, high, u, e, *_ = quadratic()
    index, work, short = np.empty(30, dtype=np.int64), np.empty((2, 30)), np.zeros(29)
    for wrong in (
        (R[:29], border, omega, soft, low, high, u, e, index, work),
        (R, short, omega, soft, low, high, u, e, index, work),
        (R, border, omega, short, low, high, u, e, index, work),
        (R, border, omega, soft, low, high, short, e, index, work),
        (R, border, omega, soft, low, high, u, e, index[:29], work),
        (R, border, omega, soft, low, high, u, e, index, work[:1]),
    ):
        with pytest.raises(ValueError, match="a quadratic need"):
            faces.Face(*wrong)
    n = faces.rows(face)
    with pytest.raises(ValueError, match="row per row that moves"):
        faces.system(face, np.empty((n, n + 1)), np.empty((2, n)), 0.0)
    with pytest.raises(ValueError, match="entry per row that moves"):
        faces.step(face, np.empty((2, n + 1)))
