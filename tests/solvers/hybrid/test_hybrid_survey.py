"""Surveys of the hybrid engine: the gap and the rows that have a part of it, and starts that a few sweeps decide on."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import mdlearn
from mdlearn._solvers import dual_descent
from mdlearn.solvers.hybrid import descent, newton_start

M, D, KINK = 60, 6, 1.0
CAPS = {"hinge": (0.7, 0.0), "squared": (np.inf, 0.6)}


class Surveyed:
    """An ascent after some sweeps, and its gap by row from the formulas of the loss and its conjugate."""

    def __init__(self, kind, border, dtype=np.float64):
        rng = np.random.default_rng(3)
        X = np.where(rng.random((M, D)) < 0.6, rng.standard_normal((M, D)), 0.0).astype(dtype)
        self.X, self.S, self.y = X, sp.csr_matrix(X), np.where(rng.random(M) < 0.5, 1.0, -1.0)
        self.cap, self.soft = CAPS[kind]
        self.records = np.zeros((M, 8))
        self.records[:, 0], self.records[:, 2], self.records[:, 3] = self.y, self.cap, self.soft
        self.records[:, 1] = (X.astype(float) ** 2).sum(axis=1) + border + self.soft
        self.w, self.free, self.border = np.zeros(D + 1), np.empty(M, dtype=np.int64), border
        self.ascent = self.made()
        for _ in range(2):
            dual_descent.dense(X, self.ascent, True, 0, M)

    def made(self, *variance):
        return dual_descent.Ascent(self.records, self.w, np.arange(M), self.free, KINK, self.border, 5, *variance)

    def survey(self, storage, start, stop):
        if storage == "dense":
            dual_descent.dense_survey(self.X, self.ascent, start, stop)
        else:
            dual_descent.sparse_survey(self.S.data, self.S.indices, self.S.indptr, self.ascent, start, stop)

    def expected(self):
        """Loss, gain and gap of every row."""
        beta, slope = self.records[:, 4], KINK - self.y * (self.X @ self.w[:-1] + self.border * self.w[-1])
        ahead = np.maximum(slope, 0.0)
        loss = ahead**2 / (2.0 * self.soft) if self.soft else self.cap * ahead
        gain = KINK * beta - 0.5 * self.soft * beta**2
        return loss, gain, loss - gain + beta * (KINK - slope)


@pytest.mark.parametrize("kind", CAPS)
@pytest.mark.parametrize("border", [0.0, 1.0])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_survey_moves_nothing_and_tells_gap_and_margin_of_every_row(kind, border, storage, dtype):
    one = Surveyed(kind, border, dtype)
    loss, gain, gap = one.expected()
    z = one.y * (one.X @ one.w[:-1] + border * one.w[-1])
    assert (gap > -1e-12).all() and gap.max() > 1e-3
    one.ascent.lazy = float(np.median(gap[gap > 1e-12]))
    before, w, visits = one.records.copy(), one.w.copy(), one.ascent.visits
    one.survey(storage, 0, 25)
    one.survey(storage, 25, M)
    np.testing.assert_allclose(one.records[:, 5], z, rtol=0, atol=1e-14 * np.abs(z).max())
    before[:, 5] = one.records[:, 5]
    np.testing.assert_array_equal(one.records, before)
    np.testing.assert_array_equal(one.w, w)
    assert one.ascent.visits == visits
    assert one.ascent.loss == pytest.approx(loss.sum(), rel=1e-12)
    assert one.ascent.gain == pytest.approx(gain.sum(), rel=1e-12)
    beta = one.records[:, 4]
    between = (beta > 0) & (beta < one.cap)
    assert one.ascent.n_between == between.sum() and one.ascent.n_capped == (beta == one.cap).sum()
    free = np.flatnonzero(between | (gap > one.ascent.lazy * (1 + 1e-12)))
    np.testing.assert_array_equal(one.free[: one.ascent.n_free], free)


def test_surveys_refuse_rows_out_of_order():
    one = Surveyed("hinge", 1.0)
    with pytest.raises(ValueError, match="out of bounds"):
        one.survey("dense", 0, M + 1)
    one.ascent.lazy = -1.0
    one.survey("sparse", 0, M)
    with pytest.raises(ValueError, match="in their order"):
        one.survey("sparse", 5, M)


def drawn(m, d, noise, fill=1.0, seed=2):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((m, d)) < fill, rng.standard_normal((m, d)), 0.0)
    return X, np.where(X @ rng.standard_normal(d) + noise * rng.standard_normal(m) > 0, 1, -1)


def test_after_surveys_sweeps_know_the_objective_of_their_coefficients(monkeypatch):
    X, y = drawn(2000, 80, 2.0, fill=0.1)
    C, seen, plain = 0.05, [], descent.HybridDescent.sweep

    def summed(self, *given):
        yield from plain(self, *given)
        w = self.element
        hinges = np.maximum(1.0 - y * (X @ w[:-1] + w[-1]), 0.0)
        beta = self.beta
        assert self.lower_bound == pytest.approx(beta.sum() - 0.5 * w @ w, rel=1e-10)
        off = abs(self.objective / (0.5 * w @ w + C * hinges.sum()) - 1.0)
        seen.append((self.surveyed, off))

    monkeypatch.setattr(descent.HybridDescent, "sweep", summed)
    model = mdlearn.fit("svm", X, y, C=C, solver="hybrid", tol=1e-4)
    assert model.certificate.converged
    assert sum(surveyed for surveyed, _ in seen) >= 2
    assert max(off for surveyed, off in seen if surveyed) < 1e-10
    assert max(off for surveyed, off in seen if not surveyed) > 1e-4


def test_beside_a_variance_all_rows_are_visited(monkeypatch):
    """The first sweeps are one call, and each of the last ends with a survey."""
    X, y = drawn(2000, 80, 2.0, fill=0.1)
    seen, plain = [], descent.HybridDescent.sweep

    def noted(self, *given):
        before, visits = self.sweeps, self.ascent.visits
        yield from plain(self, *given)
        seen.append((self.sweeps - before, self.ascent.visits - visits, self.surveyed))

    monkeypatch.setattr(descent.HybridDescent, "sweep", noted)
    assert mdlearn.fit("ldm", X, y, C=0.05, solver="hybrid", tol=1e-4).certificate.converged
    assert seen[0][0] == 3 and len(seen) > 1 and seen[-1][2]
    assert all(visits >= sweeps * 2000 for sweeps, visits, _ in seen)


@pytest.mark.parametrize("name, fill, given", [("svm", 1.0, {"C": 100.0}), ("lsvm", 0.2, {"nu": 200.0})])
@pytest.mark.parametrize("distance, sampled", [(6.0, False), (0.5, True)])
def test_a_sample_of_classes_that_are_apart_is_not_solved(distance, sampled, name, fill, given, monkeypatch):
    """Nor is it swept more than once where that leaves most of the loss."""
    X, y = drawn(6000, 70, 100.0, fill)
    X[:, 0] += distance * y
    taken, plain, swept, sweep = [], newton_start.newton_steps_for_start, [], descent.HybridDescent.sweep

    def steps(newton, *given):
        taken.append(newton)
        return plain(newton, *given)

    def noted(self, *given):
        swept.append(self.problem.n_rows < 6000)
        return sweep(self, *given)

    monkeypatch.setattr(newton_start, "newton_steps_for_start", steps)
    monkeypatch.setattr(descent.HybridDescent, "sweep", noted)
    model = mdlearn.fit(name, X, y, solver="hybrid", tol=1e-2, **given)
    assert model.certificate.converged and bool(taken) == sampled
    assert sum(swept) == (1 if sampled else newton_start.SWEEPS_ON_SAMPLE)


@pytest.mark.parametrize("kind", CAPS)
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("tol", [0.0, 0.5])
@pytest.mark.parametrize("pulled", [False, True])
def test_sweeps_at_once_are_those_made_one_by_one(kind, storage, tol, pulled):
    """But for the last where the gap is reached: a survey then confirms it, and no sweep follows."""
    many, single = Surveyed(kind, 1.0), Surveyed(kind, 1.0)
    pull = 0.3 * (many.y @ np.c_[many.X, np.ones(M)]) / M if pulled else None
    limits = dual_descent.Sweeps(30, 0.25, 2 * M, 0.25, 0.1, tol, 1e-3, pull)
    if pulled:
        many.w += pull
        single.w += pull
    given = {"dense": lambda one: (one.X,), "sparse": lambda one: (one.S.data, one.S.indices, one.S.indptr)}[storage]
    call = {"dense": dual_descent.dense_sweeps, "sparse": dual_descent.sparse_sweeps}[storage]
    found = call(*given(many), many.ascent, 4, 2, limits)
    expected = [call(*given(single), single.ascent, 1, 2 - k, limits)[0] for k in range(len(found))]
    assert found == expected
    np.testing.assert_array_equal(many.records, single.records)
    loss, gain, _ = many.expected()
    half, linear = 0.5 * many.w @ many.w, many.w @ pull if pulled else 0.0
    objective, bound, _, _, surveyed, _ = found[-1]
    assert bound == pytest.approx(gain.sum() - half, rel=1e-12) and not any(one[2] for one in found[:2])
    reached = objective - bound <= tol * max(objective, 1e-3)
    if tol:
        assert reached and len(found) < 4 and surveyed == M
        assert objective == pytest.approx(half - linear + loss.sum(), rel=1e-12)
    else:
        assert not reached and len(found) == 4 and found[2][2] > 0
        assert all((one[3] == M) != (one[4] == M) for one in found)


def test_first_sweeps_with_a_mean_are_one_call(monkeypatch):
    """So are those over whitened rows, which have no variance left."""
    rng = np.random.default_rng(4)
    y = rng.integers(0, 8, 600)
    X = np.eye(8)[y] @ rng.standard_normal((8, 60)) + rng.standard_normal((600, 60))
    seen, plain = [], descent.HybridDescent.sweep

    def noted(self, at_once=1):
        before = self.sweeps
        yield from plain(self, at_once)
        seen.append((self.problem.column.kappa, self.sweeps - before))

    monkeypatch.setattr(descent.HybridDescent, "sweep", noted)
    assert mdlearn.fit("ldm", X, y, C=0.01, solver="hybrid", tol=1e-4).certificate.converged
    assert len(seen) >= 8 and {kappa for kappa, _ in seen} == {0.0} and max(n for _, n in seen) == 3
