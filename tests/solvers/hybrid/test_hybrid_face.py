"""Face steps of the hybrid solver: the optimum over the multipliers between bounds, and what sweeps keep of it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from draining import drain
from hybrid_cases import Hinge

import mdlearn
from mdlearn._solvers import face_steps
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column
from mdlearn.solvers.hybrid import face, newton_start, solver
from mdlearn.solvers.hybrid.descent import HybridDescent
from mdlearn.solvers.hybrid.loss_column import LossColumn, LossColumnParts

M, D = 40, 60


def wide(m, d, entries):
    """CSR rows with a few entries each, and labels of a plane with noise."""
    rng = np.random.default_rng(0)
    columns = np.sort((d * rng.random((m, entries)) ** 3).astype(np.int64), axis=1)
    X = sp.csr_matrix((rng.random(m * entries), (np.repeat(np.arange(m), entries), columns.ravel())), shape=(m, d))
    f = X @ rng.standard_normal(d)
    return X, np.where(f / f.std() + 0.5 * rng.standard_normal(m) > 0, 1, -1)


def problem_of(kind="dense", variance=0.0, mean=0.0, C=0.6, seed=0):
    """A loss column with fewer rows than columns, whose weights differ, and its rows."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((M, D)) < 0.3, rng.standard_normal((M, D)), 0.0)
    counts = rng.integers(1, 4, M).astype(float)
    column = Column(np.where(rng.random(M) < 0.5, 1.0, -1.0), counts, variance, mean, (HingeTerm(C),))
    rows = AffineRows(CsrRows(sp.csr_matrix(X)) if kind == "csr" else DenseRows(X), True)
    parts = LossColumnParts(rows, (X * X).sum(axis=1), "regularized", True)
    return LossColumn(column, rows, parts.squares, parts.stored), parts, column.y[:, None] * np.c_[X, np.ones(M)]


def descent_of(problem, parts):
    return HybridDescent(problem, lambda: parts.quadratic(problem.column))


def matrix_of(problem, R):
    column, c = problem.column, problem.column.counts
    v = c @ R / c.sum()
    return np.eye(R.shape[1]) + column.kappa * (R - v).T @ (c[:, None] * (R - v)), v


def dual_value(problem, R, beta):
    A, v = matrix_of(problem, R)
    pushed = R.T @ beta + problem.column.mean * v
    return beta.sum() - 0.5 * pushed @ np.linalg.solve(A, pushed)


@pytest.mark.parametrize("mean", [0.0, 0.5])
@pytest.mark.parametrize(("C", "alike"), [(0.6, False), (1e6, False), (0.02, False), (0.6, True)])
def test_a_step_over_few_dense_rows_is_that_over_many(C, alike, mean, monkeypatch):
    """Bounds are met at the smaller C; equal rows have a factor by the trace alone."""
    problem, parts, R = problem_of("dense", 0.0, mean, C)
    if alike:
        problem.stored.X.flags.writeable = True
        problem.stored.X[4] = problem.stored.X[3]
    chosen = np.arange(3, 17)
    start = np.random.default_rng(5).uniform(0.1, 0.9, chosen.shape[0]) * min(C, 0.05) * problem.column.counts[chosen]
    found = []
    for n in (chosen.shape[0], 0):  # no rows: the step that BLAS makes
        made = descent_of(problem, parts)
        made.records[chosen, 4], made.records[20, 4] = start, problem.caps[20]
        made.u[:] = R.T @ made.beta + (0.0 if problem.pulled is None else problem.pulled)
        made.faces.size = n
        with monkeypatch.context() as patched:
            patched.setattr(face if n else face_steps, "FaceStep" if n else "step_over_dense", None)
            drain(made._face_step(1.0))
        found.append((made.beta, made.u.copy()))
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=1e-6 if alike else 1e-9, atol=1e-12)
    assert (found[0][0][chosen] != start).any() and found[0][0][20] == problem.caps[20]


def test_a_face_of_another_size_is_left_to_others():
    problem, parts, _ = problem_of()
    made = descent_of(problem, parts)
    made.records[3:9, 4] = 0.1
    before = made.records.copy(), made.w.copy()
    for n in (0, 5, 7, face.SMALL_FACE + 1):
        assert not face.step_over_few_dense_rows(problem, made.records, made.w, n)
    assert (made.records == before[0]).all() and (made.w == before[1]).all()
    assert not face.step_over_few_dense_rows(problem_of("csr")[0], made.records, made.w, 6)
    assert face.step_over_few_dense_rows(problem, made.records, made.w, 6)


@pytest.mark.parametrize(("variance", "mean"), [(0.0, 0.0), (0.0, 0.5), (2.0, 0.0), (2.0, 0.5)])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_margins_of_a_face_are_at_the_kink_after_a_step(kind, variance, mean):
    """Without bounds in the way, the optimum over some multipliers has their margins at 1: others stay."""
    problem, parts, R = problem_of(kind, variance, mean, C=1e6)
    made = descent_of(problem, parts)
    A, v = matrix_of(problem, R)
    G, pull = R @ np.linalg.solve(A, R.T), R @ np.linalg.solve(A, mean * v)
    chosen, best = np.arange(3, 17), -np.ones(14)
    while (best <= 0).any():
        chosen = chosen[best > 0] if best.shape == chosen.shape and (best > 0).any() else chosen
        best = np.linalg.solve(G[np.ix_(chosen, chosen)], 1.0 - pull[chosen])
    made.records[chosen, 4] = best + np.random.default_rng(5).uniform(0.0, 0.01, chosen.shape[0])
    w = np.linalg.solve(A, R.T @ made.beta + mean * v)
    if variance:
        drain(made._begin_metric())
    else:
        made.u[:] = w
    drain(made._face_step(0.0))
    assert np.abs(R @ made.element - 1.0)[chosen].max() < 1e-7
    assert not made.beta[np.setdiff1d(np.arange(M), chosen)].any()


@pytest.mark.parametrize("variance", [0.0, 2.0])
def test_a_step_that_meets_bounds_raises_the_dual_and_keeps_its_identity(variance):
    problem, parts, R = problem_of(variance=variance, mean=0.3)
    made = descent_of(problem, parts)
    for _ in range(2):
        drain(made.sweep())
    before = dual_value(problem, R, made.beta)
    made.records[::3, 4] = 0.9 * problem.caps[::3]
    A, v = matrix_of(problem, R)
    w = np.linalg.solve(A, R.T @ made.beta + 0.3 * v)
    if variance:
        drain(made._begin_metric())
    else:
        made.u[:] = w
    before = dual_value(problem, R, made.beta)
    drain(made._face_step(0.0))
    beta = made.beta
    assert (beta >= 0).all()
    assert (beta <= problem.caps).all()
    assert dual_value(problem, R, beta) > before + 1e-3
    # The coefficients are those that the multipliers stand for.
    assert np.abs(A @ made.element - R.T @ beta - 0.3 * v).max() < 1e-10


def test_a_step_without_a_metric_keeps_what_sweeps_know_of_a_variance():
    """Of w = u + tau v they know u.v; u gets what the multipliers got."""
    problem, parts, R = problem_of(variance=2.0, mean=0.3)
    made = descent_of(problem, parts)
    for _ in range(2):
        drain(made.sweep())
    before, u = made.beta, made.u.copy()
    drain(made._face_step(0.0))
    change = made.beta - before
    assert np.abs(change).max() > 1e-4
    assert np.abs(made.u - u - R.T @ change).max() < 1e-12
    assert abs(made.ascent.along - matrix_of(problem, R)[1] @ made.u) < 1e-10


def test_a_diagonal_quadratic_ends_at_the_clipped_step():
    rng = np.random.default_rng(1)
    n = 12
    scale, b, step, caps = rng.uniform(1, 2, n), rng.uniform(0, 1, n), 3.0 * rng.standard_normal(n), np.ones(n)
    caps[2] = np.inf
    expected = np.clip(b + step, 0.0, caps)
    met = face_steps.ascend(np.diag(scale), b, step, caps, np.empty((n, n)), np.empty(n, dtype=np.int64))
    assert met == np.count_nonzero((expected == 0) | (expected == caps))
    assert np.abs(b - expected).max() < 1e-12


@pytest.mark.parametrize("most", [2, 30])
def test_a_face_step_has_no_slope_but_at_the_bounds_that_it_met(most):
    """Of 1/2 b'Hb - g'b, over the coordinates inside; with little room for bounds it ends earlier, within them."""
    rng = np.random.default_rng(2)
    n = 30
    F = rng.standard_normal((n, n + 5))
    H, b, caps = F @ F.T / n + 0.1 * np.eye(n), rng.uniform(0.2, 0.8, n), np.ones(n)
    slope = 2.0 * rng.standard_normal(n)
    L, start = np.linalg.cholesky(H), b.copy()
    met = face_steps.ascend(L, b, np.linalg.solve(H, slope), caps, np.empty((most, n)), np.empty(most, dtype=np.int64))
    inside = (b > 0) & (b < caps)
    assert ((b >= 0) & (b <= caps)).all()
    left = slope - H @ (b - start)
    assert met >= 2
    if most == 30:
        assert n - np.count_nonzero(inside) == met <= most
        assert np.abs(left[inside]).max() < 1e-10
    else:
        assert met == most + 1
    gain = slope @ (b - start) - 0.5 * (b - start) @ H @ (b - start)
    assert gain > 0


@pytest.mark.parametrize("variance", [0.0, 3.0])
def test_faces_end_a_fit_that_sweeps_alone_crawl_through(variance, monkeypatch):
    """Rows near a few directions: sweeps close a small share of the gap each, 55 or more, and a face step all of it."""
    rng = np.random.default_rng(3)
    X = 0.3 * (rng.standard_normal((300, 8)) @ rng.standard_normal((8, 350)) + rng.standard_normal((300, 350)))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(300) > 0, 1, -1)
    sweeps, plain = [], HybridDescent.sweep
    monkeypatch.setattr(HybridDescent, "sweep", lambda self, *given: sweeps.append(self) or plain(self, *given))
    monkeypatch.setattr(newton_start, "newton_start_beats_sweeps", lambda problem: False)
    monkeypatch.setattr(solver, "SemismoothNewton", None)  # nothing is left to it
    given = {"C": 1.0, "v": variance, "a": 0.0}
    model = mdlearn.fit(Hinge(), X, y, tol=1e-9, solver="hybrid", **given)
    assert model.certificate.converged
    assert len(sweeps) < 30


@pytest.mark.parametrize("mean", [0.0, 0.5])
def test_multipliers_of_a_variance_go_along_with_a_face(mean, monkeypatch):
    """Without bounds in the way margins of the face are at 1, and the others' multipliers are those of its place."""
    problem, _, R = problem_of("csr", 2.0, mean, C=1e6)
    monkeypatch.setattr(face, "VARIED_FACE_PROXIMITY", 1e-6)
    monkeypatch.setattr(face, "VARIED_FACE_RESIDUAL", 1e-8)
    monkeypatch.setattr(face, "MOST_VARIED_FACE_ITERATIONS", 100)
    A, v = matrix_of(problem, R)
    G, pull, others = R @ np.linalg.solve(A, R.T), mean * v, np.r_[0.2 * np.ones(3), np.zeros(M - 3)]
    chosen, best = np.arange(3, 17), -np.ones(14)
    while best.min() <= 0:
        chosen = chosen[best > 0] if best.max() > 0 else chosen
        slope = 1.0 - R[chosen] @ np.linalg.solve(A, R.T @ others + pull)
        best = np.linalg.solve(G[np.ix_(chosen, chosen)], slope)
    beta = others.copy()
    beta[chosen] = 1.0
    spread = problem.column.spread(np.random.default_rng(1).standard_normal(M))
    rows = AffineRows(problem.stored.take(chosen), True)
    step = face.VariedFaceStep(problem, chosen, beta[chosen], rows, spread)
    w = R.T @ (beta + spread) + pull
    drain(step.ascend_with_variance(w))
    w = w + step.moved
    np.testing.assert_allclose(step.beta + step.change, best, rtol=0, atol=1e-4)
    np.testing.assert_allclose(R[chosen] @ w, 1.0, atol=1e-4)
    np.testing.assert_allclose(step.spread + step.shift, problem.column.spread(R @ w), atol=1e-4)


def test_bounds_leave_a_face_step_with_a_variance_its_length(monkeypatch):
    """A third of the face meets bounds: iterations without these rows take nearly all that the others can."""
    C, variance = 0.3, 20.0
    problem, _, R = problem_of("csr", variance, 0.0, C=C)
    A, _ = matrix_of(problem, R)
    caps, face_rows = problem.caps, np.arange(5, 35)
    rng = np.random.default_rng(4)
    beta = np.zeros(M)
    beta[face_rows] = caps[face_rows] * rng.uniform(0.05, 0.95, 30)
    spread = problem.column.spread(R @ np.linalg.solve(A, R.T @ beta))
    start = dual_value(problem, R, beta)
    H = (R @ np.linalg.solve(A, R.T))[np.ix_(face_rows, face_rows)]
    best = beta[face_rows].copy()
    for _ in range(4000):
        for k in range(30):
            best[k] = np.clip(best[k] + (1.0 - H[k] @ best) / H[k, k], 0.0, caps[face_rows][k])
    assert 5 <= np.count_nonzero((best == 0) | (best == caps[face_rows])) <= 25
    whole = beta.copy()
    whole[face_rows] = best
    most, taken = dual_value(problem, R, whole) - start, []
    for cut in (0.9, 0.0):
        monkeypatch.setattr(face, "VARIED_FACE_CUT", cut)
        monkeypatch.setattr(face, "VARIED_FACE_PROXIMITY", 1e-3)
        rows = AffineRows(problem.stored.take(face_rows), True)
        step = face.VariedFaceStep(problem, face_rows, beta[face_rows], rows, spread.copy())
        drain(step.ascend_with_variance(R.T @ (beta + spread)))
        assert (step.beta + step.change >= -1e-12).all()
        assert (step.beta + step.change <= caps[face_rows] + 1e-12).all()
        np.testing.assert_allclose(step.moved, R[face_rows].T @ step.change + R.T @ step.shift, atol=1e-9)
        gain = float(step.change.sum()) - 0.5 * (np.square(R.T @ (beta + spread) + step.moved).sum())
        s = spread + step.shift
        stiff = 1.0 / (problem.column.kappa * problem.column.counts)
        taken.append((gain + beta.sum() - 0.5 * stiff @ (s * s) - start) / most)
    assert taken[0] > 0.9 > taken[1]


def test_faces_with_a_variance_end_a_fit_over_wide_rows(monkeypatch):
    """Faces whose variance stays leave a gap of 9e-6, from which sweeps crawl: there are none."""
    X, y = wide(800, 2500, 20)
    monkeypatch.setattr(HybridDescent, "_face_step", None)
    steps, plain = [], HybridDescent._varied_face_step
    monkeypatch.setattr(HybridDescent, "_varied_face_step", lambda self: steps.append(self) or plain(self))
    model = mdlearn.fit("ldm", X, y, C=3.0, tol=1e-8, solver="hybrid")
    assert model.certificate.converged and steps
    exact = mdlearn.fit("ldm", X, y, C=3.0, tol=1e-9, solver="cd", max_iter=10**5).certificate
    assert model.certificate.objective <= exact.objective * (1 + 2e-8)
    assert model.certificate.lower_bound <= exact.objective


def test_a_variance_goes_along_with_faces_before_a_dearer_metric():
    """Each digit to come is a step's; later steps follow the first whatever they cost, up to three."""
    problem, parts, _ = problem_of("csr", 2.0)
    descent = descent_of(problem, parts)
    faces, descent.lower_bound = descent.faces, 10.0
    faces.size = 12
    for gap, tol, digits in ((4e-3, 4e-3, 1.0), (4e-3, 4e-6, 3.0), (1e-4, 1e-3, 1.0)):
        descent.objective, descent.tol = 10.0 * (1.0 + gap), tol
        for share, near in ((1.01, True), (0.99, False)):
            descent.price_of_metric = share * digits * faces.varied_price(12)
            assert faces.near(descent._pace()) is near
    for steps, near in ((1, True), (2, True), (3, False)):
        faces.varied_steps = steps
        assert faces.near(descent._pace()) is near
    faces.varied_steps, descent.price_of_metric, descent.objective = 0, np.inf, 10.1
    assert faces.near(descent._pace())  # the rows of so few multipliers are far from dependent
    faces.size = D
    assert not faces.near(descent._pace())
    faces.paid = 1.0
    assert faces.near(descent._pace())


def test_a_sweep_beside_a_variance_that_is_near_the_gap_asked_for_says_what_is_exact():
    """Passes over the free rows raise the bound; values are those of the coefficients then."""
    problem, parts, R = problem_of("csr", 2.0, 0.3)
    column = problem.column
    made = {}
    for tol in (0.0, 1.0):
        descent = HybridDescent(problem, lambda: parts.quadratic(column), tol)
        while descent.sweeps < 12:
            list(descent.sweep())
        w = descent.element
        np.testing.assert_allclose(w, R.T @ (descent.beta + descent.sigma) + column.mean * problem.mean_row)
        assert descent.sigma.sum() == pytest.approx(0.0, abs=1e-12)
        used = descent.beta @ np.full(M, problem.kink) - 0.5 * w @ w
        bound = used - 0.5 * (descent.sigma**2 / (column.kappa * column.counts)).sum()
        made[tol] = 0.5 * w @ w + column.distribution_value(R @ w), bound
        assert descent.surveyed == (tol > 0)
    np.testing.assert_allclose((descent.objective, descent.lower_bound), made[1.0], rtol=1e-12)
    np.testing.assert_allclose(descent.margins, R @ w, atol=1e-12)
    assert made[1.0][1] > made[0.0][1]


def test_steps_after_sweeps_move_multipliers_by_their_size_at_most():
    """Margins at the kink but for little, multipliers that are small beside their bounds: flat envelopes."""
    problem, _, R = problem_of(C=100.0)
    beta = np.full(M, 0.01)
    w = np.linalg.lstsq(R, 1.0 - 0.1 * np.ones(M), rcond=None)[0]
    steepness = newton_start.newton_steepness_after_sweeps(problem, w, beta)
    assert steepness == pytest.approx(beta.sum() / np.abs(1.0 - R @ w).sum())


def test_prices_are_finite_up_to_a_size():
    problem, _, _ = problem_of()
    price = face.price_of_face_step(problem)
    assert np.isinf(price(0))
    assert 0 < price(5) < price(40) < np.inf
    assert np.isinf(price(face.LARGEST_FACE + 1))
