"""Steps on pairs of classes over one kernel matrix, and values of these, against sums that NumPy makes pair by pair."""

from __future__ import annotations

import numpy as np
import pytest

from mdlearn._solvers import class_pairs

SIZES = np.array([7, 1, 12, 4])


def stack(seed: int = 0, C: float = 2.0) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[np.ndarray], np.ndarray]:
    """Kernel matrix by classes; spans and starts of pairs; rows of each; signs; the first class is negative."""
    rng = np.random.default_rng(seed)
    ends = SIZES.cumsum()
    X = rng.normal(size=(ends[-1], 3)) + np.repeat(rng.normal(size=(4, 3)), SIZES, axis=0)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    low, high = np.triu_indices(4, 1)
    spans = np.stack([ends[low] - SIZES[low], ends[low], ends[high] - SIZES[high], ends[high]], axis=1)
    rows = [np.r_[a:b, c:d] for a, b, c, d in spans]
    starts = np.concatenate([[0], np.cumsum([len(own) for own in rows])])
    y = np.concatenate([np.repeat([-1.0, 1.0], [b - a, d - c]) for a, b, c, d in spans])
    return K, spans, starts, rows, y


def room(n=19):
    return np.full((n, n), np.nan), np.full((9, n), np.nan), np.full((2, n), 7)


def made(K, spans, starts, y, C, constant, paired):
    caps = C * np.linspace(0.5, 1.5, y.shape[0])
    low, high = np.minimum(y * caps, 0.0), np.maximum(y * caps, 0.0)
    return class_pairs.Pairs(K, spans, starts, y, low, high, constant, paired, *room()), caps


def plain_values(K, u, y, caps, constant, paired):
    """Objective at the best intercept, bound and intercept of one pair, by trying all kinks."""
    f = (K + constant) @ u
    kinks = y - f if paired else np.zeros(1)
    losses = [float(caps @ np.maximum(0.0, 1.0 - y * (f + b))) for b in kinks]
    return 0.5 * u @ f + min(losses), u @ y - 0.5 * u @ f, f


@pytest.mark.parametrize("constant, paired", [(0.0, True), (1.0, False), (0.0, False)])
def test_values_are_sums_over_each_pair(constant, paired):
    K, spans, starts, rows, y = stack()
    pairs, caps = made(K, spans, starts, y, 2.0, constant, paired)
    u = y * caps * np.random.default_rng(1).uniform(0.0, 1.0, y.shape[0])
    u[::3] = 0.0
    before = u.copy()
    before[::4] *= 10.0  # beyond its bound, or 0
    u[::4] = np.where(u[::4] == 0, 0.0, y[::4] * np.minimum(caps[::4], np.abs(before[::4])))
    if paired:  # those of the heavier sign shrink in proportion
        for own in map(slice, starts[:-1], starts[1:]):
            heavy = u[own] * u[own].sum() > 0
            u[own] *= np.where(heavy, 1.0 - u[own].sum() / u[own][heavy].sum(), 1.0)
    first, out, given = 2, np.empty((3, 8)), before[starts[2] : starts[5]].copy()
    class_pairs.values(pairs, given, first, out)
    np.testing.assert_allclose(given, u[starts[2] : starts[5]], rtol=1e-13, atol=0.0)
    for j, found in zip(range(2, 5), out):
        own = slice(starts[j], starts[j + 1])
        G = K[np.ix_(rows[j], rows[j])]
        objective, lower, f = plain_values(G, u[own], y[own], caps[own], constant, paired)
        assert found[0] == pytest.approx(objective, rel=1e-12)
        assert found[1] == pytest.approx(lower, rel=1e-12)
        assert found[3] == pytest.approx(u[own] @ G @ u[own], rel=1e-12)
        near = np.abs(u[own]).sum(), caps[own].sum(), caps[own].sum()
        least = min(caps[own] @ np.maximum(0.0, 1.0 - y[own] * b) for b in ((-1.0, 1.0) if paired else (0.0,)))
        np.testing.assert_allclose(found[4:], [*near, least], rtol=1e-12)
        b = found[2] if paired else 0.0
        loss = float(caps[own] @ np.maximum(0.0, 1.0 - y[own] * (f + b)))
        assert 0.5 * u[own] @ f + loss == pytest.approx(objective, rel=1e-12)
        if not paired:
            assert found[2] == pytest.approx(constant * u[own].sum(), abs=1e-12)


def test_an_intercept_among_many_is_the_one_in_the_middle():
    """Of one row of each class with multipliers 0 and equal weights every intercept between both is best."""
    K, spans, starts = np.eye(2), np.array([[0, 1, 1, 2]]), np.array([0, 2])
    y, out = np.array([-1.0, 1.0]), np.empty((1, 8))
    pairs = class_pairs.Pairs(K, spans, starts, y, np.array([-1.0, 0.0]), np.array([0.0, 1.0]), 0.0, True, *room(2))
    class_pairs.values(pairs, np.zeros(2), 0, out)
    assert out[0].tolist() == [2.0, 0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0]


@pytest.mark.parametrize("constant, paired", [(0.0, True), (1.0, False), (0.0, False)])
@pytest.mark.parametrize("C", [0.1, 2.0, 50.0])
def test_steps_lead_every_pair_to_the_gap(C, constant, paired):
    K, spans, starts, rows, y = stack(3)
    pairs, caps = made(K, spans, starts, y, C, constant, paired)
    u, levels, tol = np.full(y.shape[0], np.nan), 2.0 ** -np.arange(0.0, 20.0), 1e-4
    assert class_pairs.ascend(pairs, u, levels, tol, 0, 1 << 40) == len(rows)
    assert (u * y >= 0).all() and (u * y <= caps).all()
    for j, own in enumerate(map(slice, starts[:-1], starts[1:])):
        G = K[np.ix_(rows[j], rows[j])]
        objective, lower, _ = plain_values(G, u[own], y[own], caps[own], constant, paired)
        assert -1e-12 <= objective - lower <= 1.001 * tol * max(objective, 0.01 * caps[own].sum())
        assert not paired or abs(u[own].sum()) <= 1e-12 * np.abs(u[own]).sum()


def test_calls_end_after_so_many_entries_and_begin_where_they_are_told():
    K, spans, starts, rows, y = stack(4)
    pairs, _ = made(K, spans, starts, y, 2.0, 0.0, True)
    levels, once, u = np.array([1e-3]), np.zeros(y.shape[0]), np.zeros(y.shape[0])
    class_pairs.ascend(pairs, once, levels, 1e-6, 0, 1 << 40)
    for j in range(len(rows)):
        assert class_pairs.ascend(pairs, u, levels, 1e-6, j, 1) == j + 1
        np.testing.assert_array_equal(u[: starts[j + 1]], once[: starts[j + 1]])
        assert not u[starts[j + 1] :].any()


@pytest.mark.parametrize("column, value", [(0, -1), (1, 0), (2, 0), (3, 99)])
def test_rows_beyond_the_matrix_are_refused(column, value):
    K, spans, starts, _, y = stack()
    spans[0, column] = value
    with pytest.raises(ValueError, match="out of range"):
        class_pairs.Pairs(K, spans, starts, y, y, y, 0.0, True, *room())
