"""Coordinate ascent with a variance term: what a visit does, against the dual's formula, and where sweeps end."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hybrid_cases import OBJECTIVES, optimum, sample

import mdlearn
from mdlearn._solvers import dual_descent
from mdlearn.solvers.hybrid import loss_column, newton_start, solver, sweeps

CAPS = {"hinge": (0.7, 0.0), "squared": (np.inf, 0.6)}
M, D, KAPPA, MEAN = 40, 5, 0.3, 0.4


class Descent:
    """An ascent with its arrays: rows of weights that differ, one of them 0."""

    def __init__(self, kind, border, seed=0):
        rng = np.random.default_rng(seed)
        X = np.where(rng.random((M, D)) < 0.6, rng.standard_normal((M, D)), 0.0)
        self.X, self.S, self.border = X, sp.csr_matrix(X), border
        self.y, self.counts = np.where(rng.random(M) < 0.6, 1.0, -1.0), rng.integers(0, 3, M).astype(float)
        cap, soft = CAPS[kind]
        self.caps, self.soft = np.where(self.counts > 0, cap * np.maximum(self.counts, 1), 0.0), np.full(M, soft)
        self.R = self.y[:, None] * np.c_[X, np.full(M, border)]
        self.v = self.counts @ self.R / self.counts.sum()
        self.records = np.zeros((M, 8))
        self.records[:, 0], self.records[:, 2], self.records[:, 3] = self.y, self.caps, soft
        self.records[:, 1] = (self.R**2).sum(axis=1) + soft
        used = self.counts > 0
        self.records[used, 6] = 1.0 / (KAPPA * self.counts[used])
        self.w, order, self.free = np.zeros(D + 1), np.arange(M), np.empty(M, dtype=np.int64)
        self.margins, rate = np.empty(M), 1.0 / (KAPPA * self.counts.sum())
        centre = np.append(self.v[:D], border * self.v[D])
        own = 1.0, border, 7, centre, self.margins, MEAN, rate
        self.ascent = dual_descent.Ascent(self.records, self.w, order, self.free, *own)

    def sweep(self, storage, whole=True):
        stop = M if whole else self.ascent.n_free
        if storage == "dense":
            dual_descent.dense(self.X, self.ascent, whole, 0, stop)
        else:
            S = self.S
            dual_descent.sparse(S.data, S.indices, S.indptr, self.ascent, whole, 0, stop)

    @property
    def beta(self):
        return self.records[:, 4]

    @property
    def s(self):
        return self.records[:, 7]

    def gain(self):
        used = self.counts > 0
        spread = (self.s[used] ** 2 / (2.0 * KAPPA * self.counts[used])).sum()
        return self.beta.sum() - 0.5 * self.soft @ self.beta**2 - spread

    def element(self):
        return self.R.T @ (self.beta + self.s) + (MEAN - self.s.sum()) * self.v

    def value(self):
        return self.gain() - 0.5 * self.element() @ self.element()


@pytest.mark.parametrize("kind", CAPS)
@pytest.mark.parametrize("border", [0.0, 1.0])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("lazy", [0.0, 1e-3, 1e300])
def test_no_sweep_lowers_the_dual_value(kind, border, storage, lazy):
    one = Descent(kind, border)
    one.ascent.lazy = lazy
    before = one.value()
    for turn in range(30):
        one.sweep(storage, whole=turn % 3 < 2)
        after = one.value()
        assert after >= before - 1e-13 * (1 + abs(before))
        np.testing.assert_allclose(one.w + one.ascent.tau * one.v, one.element(), rtol=0, atol=1e-12)
        assert one.ascent.tau == pytest.approx(MEAN - one.s.sum(), abs=1e-12)
        assert one.ascent.along == pytest.approx(one.v @ one.w, abs=1e-12)
        assert (one.beta >= 0).all() and (one.beta <= one.caps).all() and (one.s[one.counts == 0] == 0).all()
        before = after
    one.sweep(storage)
    assert one.ascent.gain == pytest.approx(one.gain(), rel=1e-12)
    assert one.s.any() or lazy > 1.0


def test_sums_at_a_fixed_point_are_the_duality_gap():
    one = Descent("hinge", 1.0)
    for _ in range(3000):
        one.sweep("dense")
    w, total = one.element(), one.counts.sum()
    z = one.R @ w
    spread = 0.5 * KAPPA * one.counts @ (z - one.counts @ z / total) ** 2
    assert one.ascent.loss == pytest.approx(one.caps @ np.maximum(0, 1 - z) + spread, rel=1e-6)
    objective = 0.5 * w @ w - MEAN * (one.v @ w) + one.ascent.loss
    assert one.value() == pytest.approx(objective, rel=1e-6)


@pytest.mark.parametrize("kind", CAPS)
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_a_survey_tells_objective_bound_and_margins(kind, storage):
    """So does the shift that lets all multipliers of the variance sum to 0, and that leaves coefficients."""
    one = Descent(kind, 1.0)
    survey = {"dense": dual_descent.dense_survey, "sparse": dual_descent.sparse_survey}[storage]
    rows = {"dense": (one.X,), "sparse": (one.S.data, one.S.indices, one.S.indptr)}[storage]
    limits = dual_descent.Sweeps(30, 0.25, 2 * M, 0.25, 0.1, 0.0, 1e-3)
    with pytest.raises(ValueError, match="follows a sweep"):
        survey(*rows, one.ascent, 0, M)
    for _ in range(3):
        one.sweep(storage)
        w = one.element()
        dual_descent.sums_of_sweep(one.ascent, limits)
        np.testing.assert_allclose(one.w + MEAN * one.v, w, rtol=0, atol=1e-13)
    before, visits = one.records.copy(), one.ascent.visits
    survey(*rows, one.ascent, 0, 25)
    survey(*rows, one.ascent, 25, M)
    np.testing.assert_array_equal(one.records, before)
    assert one.ascent.visits == visits and one.ascent.tau == MEAN
    objective, bound = dual_descent.sums_of_sweep(one.ascent, limits)
    one.ascent.settle_spread()
    assert not np.array_equal(one.records, before) and abs(one.s.sum()) < 1e-13
    np.testing.assert_allclose(one.element(), w, rtol=0, atol=1e-13)
    z, total = one.R @ w, one.counts.sum()
    np.testing.assert_allclose(one.margins, z, rtol=0, atol=1e-13)
    np.testing.assert_allclose(one.records[:, 5], one.R @ one.v, rtol=0, atol=1e-14)
    ahead = np.maximum(0.0, 1.0 - z)
    loss = ahead @ ahead / (2.0 * one.soft[0]) if kind == "squared" else one.caps @ ahead
    spread = 0.5 * KAPPA * one.counts @ (z - one.counts @ z / total) ** 2
    assert objective == pytest.approx(0.5 * w @ w - MEAN * (one.v @ w) + loss + spread, rel=1e-12)
    assert bound == pytest.approx(one.value(), rel=1e-12)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("near", [0.0, 1e300])
def test_sweeps_near_the_gap_end_with_a_survey(storage, near):
    """Passes over free rows come before it, which leave the bound no lower; far off there is none."""
    one = Descent("hinge", 1.0)
    call = {"dense": dual_descent.dense_sweeps, "sparse": dual_descent.sparse_sweeps}[storage]
    rows = {"dense": (one.X,), "sparse": (one.S.data, one.S.indices, one.S.indptr)}[storage]
    limits = dual_descent.Sweeps(30, 0.25, 2 * M, 0.25, 0.1, 1e-9, 1e-3, None, near, 8, M // 2)
    found = call(*rows, one.ascent, 4, 2, limits)
    assert len(found) == 4 and all(visited == M for _, _, _, visited, _, _ in found)
    assert all((passed > 0) == (k > 1 or near > 0) for k, (_, _, passed, _, _, _) in enumerate(found))
    assert all(surveyed == (M if near else 0) for _, _, _, _, surveyed, _ in found)
    bounds = [bound for _, bound, *_ in found]
    assert bounds == sorted(bounds)
    one.ascent.settle_spread()
    assert bounds[-1] == pytest.approx(one.value(), rel=1e-12)


def test_a_lazy_visit_leaves_the_multiplier_of_the_variance():
    one, lazy = Descent("hinge", 1.0), 1e-4
    for _ in range(50):
        one.sweep("dense")
    one.ascent.lazy = lazy
    before = one.s.copy()
    one.sweep("dense")
    assert (one.s == before).sum() > M // 2


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_passes_go_over_rows_whose_multiplier_of_the_loss_moved(storage):
    """Multipliers of the variance move in most rows: those that have no other one to move are left to sweeps."""
    one = Descent("hinge", 1.0)
    for _ in range(3):
        before, s = one.beta.copy(), one.s.copy()
        one.sweep(storage)
    free = np.flatnonzero((one.beta != before) | ((one.beta > 0) & (one.beta < one.caps)))
    assert sorted(one.free[: one.ascent.n_free]) == free.tolist()
    assert (one.s != s).sum() > free.shape[0]


@pytest.mark.parametrize("loss", ["hinge", "squared"])
@pytest.mark.parametrize("given", [{"v": 5.0}, {"v": 20.0, "a": 3.0, "C": 0.2}, {"v": 300.0, "a": 1.0, "C": 5.0}])
@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_sweeps_alone_come_to_the_optimum(loss, given, bias, storage, monkeypatch):
    for module in (sweeps, newton_start):
        monkeypatch.setattr(module, "STEPS_AHEAD", 1e12)
    monkeypatch.setattr(sweeps, "SOFT_STEPS_AHEAD", 1e12)
    monkeypatch.setattr(newton_start, "SMALL_COLUMNS", 0)
    monkeypatch.setattr(newton_start, "DESCENT_PASSES", 0.0)
    X, y = sample()
    model = mdlearn.fit(OBJECTIVES[loss], storage(X), y, bias=bias, tol=1e-7, solver="hybrid", max_iter=10**4, **given)
    best, _ = optimum(loss, X, y, bias, **given)
    assert model.certificate.converged
    assert best * (1 - 1e-9) <= model.certificate.objective <= best + 1e-7 * abs(best) * (1 + 1e-6)


@pytest.mark.parametrize("tol", [0.1, 1e-3, 1e-5, 1e-9])
@pytest.mark.parametrize("weight", [0.25, 400.0])
def test_many_sparse_columns(tol, weight):
    """Sweeps begin, whatever weight the variance has: a matrix of columns is made only for steps."""
    rng = np.random.default_rng(5)
    X = sp.random(600, 300, 0.05, format="csr", random_state=5)
    y = np.where(X @ rng.standard_normal(300) + 0.2 * rng.standard_normal(600) > 0, 1, 0)
    given = {"C": 0.5, "lambda1": weight, "lambda2": 0.5}
    model = mdlearn.fit("ldm", X, y, solver="hybrid", tol=tol, **given)
    best = mdlearn.fit("ldm", X, y, solver="interior", tol=1e-11, **given).certificate
    found = model.certificate
    assert found.converged and found.lower_bound <= best.objective * (1 + 1e-11)
    assert found.objective >= best.lower_bound * (1 - 1e-11)
    w, alpha = model.coef_[0], model.dual_coef_[0]
    np.testing.assert_allclose(X.T @ alpha, w, rtol=0, atol=1e-10 * np.abs(w).max())


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("lambda1", [0.25, 100.0])
def test_sparse_rows_of_more_columns_than_a_matrix_may_have(C, lambda1, monkeypatch):
    X, y = sample(60, 12, seed=11)
    best = mdlearn.fit("ldm", X, y, solver="interior", tol=1e-11, C=C, lambda1=lambda1).certificate.objective
    monkeypatch.setattr(loss_column, "NARROW_COLUMNS", 0)
    monkeypatch.setattr(solver, "VARIANCE_COLUMNS", 11)
    monkeypatch.setattr(sweeps, "VARIANCE_COLUMNS", 11)
    for start in (None, mdlearn.fit("ldm", sp.csr_matrix(X), y, C=2.0 * C, lambda1=lambda1)):
        model = mdlearn.fit("ldm", sp.csr_matrix(X), y, tol=1e-8, warm_start=start, C=C, lambda1=lambda1)
        assert model.solver == "hybrid" and model.certificate.converged
        assert best * (1 - 1e-11) <= model.certificate.objective <= best * (1 + 2e-8)


@pytest.mark.parametrize(("name", "value"), [("MOST_SWEEPS", 6), ("CRAWL_SHARE", 2.0)])
def test_sweeps_that_crawl_leave_the_rest_to_another_engine(name, value, monkeypatch):
    """They do after so many, and where the last ones closed less than a share of the gap: here, whatever they close."""
    X, y = sample(60, 12, seed=11)
    monkeypatch.setattr(loss_column, "NARROW_COLUMNS", 0)
    monkeypatch.setattr(solver, "VARIANCE_COLUMNS", 11)
    monkeypatch.setattr(sweeps, "VARIANCE_COLUMNS", 11)
    monkeypatch.setattr(sweeps, name, value)
    given = {"C": 1e4, "lambda1": 1.0, "tol": 1e-9}
    model = mdlearn.fit("ldm", sp.csr_matrix(X), y, **given)
    assert model.certificate.converged
    with pytest.warns(mdlearn.ConvergenceWarning):
        alone = mdlearn.fit("ldm", sp.csr_matrix(X), y, solver="hybrid", **given)
    assert alone.certificate.objective >= model.certificate.lower_bound


@pytest.mark.parametrize(("C", "first"), [(1.0, True), (0.002, False)])
def test_newton_steps_come_first_where_sweeps_would_be_many(C, first, monkeypatch):
    """Margins that a multiplier moves by C |x|^2: with 200 at C = 1, sweeps are as many times more as that is large."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 200))
    y = np.where(X[:, :5].sum(axis=1) + 2.0 * rng.standard_normal(2000) > 0, 1, -1)
    swept = []
    sweep = solver.HybridDescent.sweep
    monkeypatch.setattr(solver.HybridDescent, "sweep", lambda self, *n: swept.append(1) or sweep(self, *n))
    # Dense rows are whitened, and need no such steps.
    model = mdlearn.fit("ldm", sp.csr_matrix(X), y, C=C, solver="hybrid", tol=1e-6)
    exact = mdlearn.fit("ldm", X, y, C=C, solver="interior", tol=1e-9)
    assert model.certificate.objective == pytest.approx(exact.certificate.objective, rel=2e-6)
    assert (not swept) == first
