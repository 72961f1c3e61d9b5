"""Bounds of the hybrid engine's steps: those of the multipliers that a full step leads to, and of repaired ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hybrid_cases import SHARP, bound, optimum, sample
from pairwise import pairs_first

from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm, LogisticTerm
from mdlearn.forms.margin import Column
from mdlearn.solvers.hybrid import loss_column, semismooth, smooth
from mdlearn.solvers.hybrid.loss_column import LossColumn
from mdlearn.solvers.systems.whitening import LossColumnQuadratic

C = 20.0


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("a", [0.0, 2.0])
@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_the_bound_of_a_step_is_that_of_where_it_leads(sparse, a, bias, monkeypatch):
    """It is the largest dual value of multiples of max(0, 2 C c (1 - R w)), w the full step's end, on the free rows."""
    X, y = sample(400, 70, seed=3, noise=2.0)
    X[np.abs(X) < 0.5] = 0.0
    monkeypatch.setattr(loss_column, "WHOLE_BLOCK_ENTRIES", 0)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    given = {"bias": bias, "C": C, "a": a, "weight": weight}
    rows = CsrRows(sp.csr_matrix(X)) if sparse else DenseRows(X)
    column = Column(y.astype(float), weight, 0.0, a, (HingeTerm(C, power=2),))
    problem = LossColumn(column, AffineRows(rows, bias == "regularized"), (X * X).sum(axis=1), rows)
    problem.quadratic = LossColumnQuadratic(None, None, False)
    R = y[:, None] * (X if bias == "none" else np.hstack([X, np.ones((len(y), 1))]))
    e, caps = R.T @ (a * weight / weight.sum()), 2.0 * C * weight
    slopes, direction = [], semismooth.RowEnvelopes.direction

    def noted(self, g):
        slopes.append((g, self.w - e - R.T @ (caps * np.maximum(0.0, 1.0 - R @ self.w))))
        return direction(self, g)

    monkeypatch.setattr(semismooth.RowEnvelopes, "direction", noted)
    newton = semismooth.SemismoothNewton(problem, np.zeros(R.shape[1]), problem.caps, 0.0, problem.nothing)
    before, checked = newton.w, 0
    for new in newton.steps():
        if not new or newton.w is before:  # a repaired bound of the same place
            continue
        free = R @ before < 1.0
        curved = R[free].T * caps[free]
        w = np.linalg.solve(np.eye(R.shape[1]) + curved @ R[free], curved.sum(axis=1) + e)
        towards = np.where(free, caps * (1.0 - R @ w), 0.0)
        low, one, two = (bound("squared", X, y, length * np.maximum(towards, 0.0), **given) for length in (0, 1, 2))
        bend = 2.0 * one - low - two
        most = low + (one - low + 0.5 * bend) ** 2 / (2.0 * bend)
        assert newton.lower_bound == pytest.approx(bound("squared", X, y, newton.beta, **given), rel=1e-10)
        if np.count_nonzero(towards < 0) <= semismooth.LOST_ROWS_SHARE * len(y):
            assert newton.lower_bound >= most - 1e-10 * abs(most)
            checked += 1
        before = newton.w
        if newton.gap <= 1e-12 * newton.objective:
            break
    assert checked >= 3
    assert newton.objective == pytest.approx(optimum("squared", X, y, **given)[0], rel=1e-9)
    for slope, own in slopes:
        np.testing.assert_allclose(slope, own, rtol=0, atol=1e-9 * np.abs(slopes[0][1]).max())


@pytest.mark.parametrize(
    *pairs_first(
        lambda loss, bias, a, sparse: loss == "squared" and bias == "free",  # which squared hinges have not here
        loss=["squared", "logistic"],
        bias=["none", "regularized", "free"],
        a=[0.0, 2.0],
        sparse=[False, True],
    )
)
def test_bound_of_multipliers_that_were_cut_is_raised(loss, bias, a, sparse, monkeypatch):
    """Other rows make up for cut multipliers: the gap falls to less than half without a step."""
    X, y = sample(2000, 40, seed=3, noise=1.0)
    X[np.abs(X) < 0.5] = 0.0
    monkeypatch.setattr(loss_column, "WHOLE_BLOCK_ENTRIES", 0)
    monkeypatch.setattr(smooth, "REPAIRED_GAP", math.inf)  # at every place
    monkeypatch.setattr(smooth, "REPAIRED_FALL", math.inf)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    given = {"bias": bias, "C": 50.0, "a": a, "weight": weight}
    rows = CsrRows(sp.csr_matrix(X)) if sparse else DenseRows(X)
    term = HingeTerm(50.0, power=2) if loss == "squared" else LogisticTerm(50.0, alpha=SHARP)
    column = Column(y.astype(float), weight, 0.0, a, (term,))
    problem = LossColumn(column, AffineRows(rows, bias != "none"), (X * X).sum(axis=1), rows)
    problem.quadratic = LossColumnQuadratic(None, None, bias == "free")
    w, ridge = np.zeros(problem.width), np.ones(problem.width)
    if loss == "squared":
        newton = semismooth.SemismoothNewton(problem, w, problem.caps, 0.0, problem.nothing)
        monkeypatch.setattr(semismooth, "ASCENDED_GAP", math.inf)
    else:
        ridge[-1] = float(bias != "free")
        newton = smooth.SmoothNewton(problem, ridge, w, problem.nothing)
    value = optimum(loss, X, y, **given)[0]
    before, gap, shares = newton.w, newton.gap, []
    for new in newton.steps(tol=1.0):  # no step makes the objective fall by more
        if not new:
            continue
        if newton.w is before:
            shares.append(newton.gap / gap)
        assert newton.lower_bound <= value + 1e-9 * abs(value)
        if bias != "free" and newton.lower_bound > -math.inf:
            own = bound(loss, X, y, newton.beta, **given)
            assert newton.lower_bound == pytest.approx(own, rel=1e-9, abs=1e-9 * abs(value))
        before, gap = newton.w, newton.gap
        if gap <= 1e-10 * newton.objective:
            break
    assert newton.objective == pytest.approx(value, rel=1e-9)
    assert shares and min(shares) < 0.5
    assert loss == "squared" or max(shares[::2]) < 0.5  # after a step with an earlier factor, too


@pytest.mark.parametrize("C, first", [(1e-4, True), (1.0, False), (50.0, False)])
def test_no_bound_is_tried_that_is_far_off(C, first, monkeypatch):
    """Of multipliers that get none the gap is large; those of a step over losses that hardly bend get one at once."""
    X, y = sample(2000, 40, seed=3, noise=1.0)
    X[np.abs(X) < 0.5] = 0.0
    monkeypatch.setattr(loss_column, "WHOLE_BLOCK_ENTRIES", 0)
    rows, ridge = CsrRows(sp.csr_matrix(X)), np.ones(X.shape[1])
    column = Column(y.astype(float), np.ones(len(y)), 0.0, 0.0, (LogisticTerm(C, alpha=SHARP),))
    problem = LossColumn(column, AffineRows(rows, False), (X * X).sum(axis=1), rows)
    problem.quadratic = LossColumnQuadratic(None, None, False)
    newton, tried, seen = smooth.SmoothNewton(problem, ridge, np.zeros(X.shape[1]), problem.nothing), [], []
    one, made = newton._raise_bound, newton._full_step
    monkeypatch.setattr(newton, "_raise_bound", lambda *given: (tried.append(given[0]), one(*given)))
    monkeypatch.setattr(newton, "_full_step", lambda *given: (seen.append(made(*given)), seen[-1])[1])
    value, untried = optimum("logistic", X, y, "none", C=C)[0], 0
    for new in newton.steps(tol=1e-6):
        if new and not any(one is seen[-1][2] for one in tried):
            beta = np.clip(seen[-1][2], 0.0, problem.caps)
            assert newton.objective - bound("logistic", X, y, beta, "none", C=C) > 2e-3 * abs(value)
            untried += 1
        if new and newton.gap <= 1e-6 * newton.objective:
            break
    assert newton.gap <= 1e-6 * value and (untried == 0) == first
