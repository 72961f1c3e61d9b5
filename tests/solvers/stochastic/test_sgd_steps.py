"""asgd and sgd, one step after the other: exact expectations, a dense transcription, the stream of rows."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from pairwise import pairs_first
from scipy import sparse
from sgd_cases import HINGE, KINDS, LOSSES, NEVER, g, near, points, step_scale, task_of, transcription, with_ones

import mdlearn
from mdlearn._solvers.sgd import Problem, Walk, walk_csr, walk_dense
from mdlearn.forms.row_terms import RowTerms
from mdlearn.solvers.stochastic import task as sgd_task

# ---------------------------------------------------------------- a step


@pytest.mark.parametrize("differs", [False, True], ids=["alike", "by row"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_expected_step_is_the_full_gradient(loss, bias, weighted, differs):
    """Enumeration of all pairs; the objective is piecewise quadratic, so central differences are exact."""
    X, y = points(m=7, d=3, seed=4)
    counts = np.array([1.0, 0.5, 3.0, 0.25, 1.0, 2.0, 0.1]) if weighted else np.ones(7)
    terms, variance, mean, eta0 = LOSSES[loss], 0.8, 0.6, 0.3
    w = np.array([0.7, -0.4, 0.2, 0.3 if bias == "regularized" else 0.0])
    rng, shape = np.random.default_rng(8), (len(terms), 7)
    by_row = RowTerms(rng.uniform(0, 3, shape), rng.normal(0, 0.5, shape)) if differs else None
    A, scale, h = with_ones(X, bias), step_scale(terms, counts, by_row), 1e-4
    kinks = [t.threshold + (by_row.shifts[k] if differs else 0.0) for k, t in enumerate(terms)]
    assert all(np.abs(y * (A @ w) - kink).min() > 10 * h for kink in kinks), "too near a kink for this test"
    task = task_of(X, y, terms, variance, mean, bias, counts, by_row)
    expected = np.zeros(4)
    for i, j in itertools.product(range(7), repeat=2):
        track = task.start(eta0, NEVER)
        track.u[:4] = w
        task.run(track, np.array([i]), np.array([j]))
        direction = (w - track.current()[:4]) / (eta0 * (1 + eta0 / scale) ** -0.75)
        expected += counts[i] * counts[j] / counts.sum() ** 2 * direction
    stated = partial(g, X=A, y=y, counts=counts, terms=terms, variance=variance, mean=mean, by_row=by_row)
    along = [(stated(w + e) - stated(w - e)) / (2 * h) for e in h * np.eye(4)]
    gradient = np.array(along, dtype=float) / scale
    if bias == "none":
        assert expected[3] == 0.0
    np.testing.assert_allclose(expected, gradient, atol=1e-11)
    assert np.abs(gradient).max() > 1e-3


@pytest.mark.parametrize(
    *pairs_first(kind=[*KINDS], loss=[*LOSSES], bias=["none", "regularized"], t0=[0, 1, 37, 120, 1000])
)
def test_iterates_equal_a_dense_transcription(kind, loss, bias, t0):
    X, y = points(m=40, d=5, seed=2)
    X[np.random.default_rng(1).random(X.shape) < 0.4] = 0.0
    terms, counts, hyper, eta0 = LOSSES[loss], np.ones(40), (0.9, 0.4), 0.11
    i, j = np.random.default_rng(3).integers(0, 40, (2, 300))
    task = task_of(KINDS[kind](X), y, terms, *hyper, bias)
    last, average = task.start(eta0, NEVER), task.start(eta0, t0)
    for track, cuts in ((last, [0, 300]), (average, [0, 1, 50, 300])):
        for start, stop in itertools.pairwise(cuts):
            task.run(track, i[start:stop], j[start:stop])
    w, mean = transcription(with_ones(X, bias), y, terms, *hyper, counts, eta0, t0, i, j)
    near(last.current()[:6], w)
    near(average.current()[:6], mean)
    for track in (last, average):
        coef, intercept, alpha = task.split(track.current())
        near(alpha @ X, coef)
        assert alpha.sum() == pytest.approx(intercept, abs=1e-12) or bias == "none"
    if t0 < 299:
        assert np.abs(w - mean).max() > 1e-6


@pytest.mark.parametrize("eta0", [0.05, 1.0, 4.0, 30.0])
def test_the_scale_is_renormalised(eta0):
    """Without a loss the modulus is 1: w shrinks (or flips) by large factors in the first steps."""
    X, y = points(m=30, d=4, seed=5)
    i, j = np.random.default_rng(6).integers(0, 30, (2, 4000))
    task = task_of(0.3 * X, y, (), 0.1, 1.0, "none")
    for t0 in (NEVER, 10, 2000):
        track = task.start(eta0, t0)
        task.run(track, i, j)
        w, mean = transcription(0.3 * X, y, (), 0.1, 1.0, np.ones(30), eta0, t0, i, j)
        near(track.current()[:4], w if t0 == NEVER else mean)
        assert 0.05 < abs(track.walk.scale) < 20.0


def test_a_step_that_shrinks_to_zero():
    """eta = 1 / ridge exactly: what was there is gone, and nothing is divided by 0."""
    problem = Problem(np.ones(1), np.zeros(1), np.zeros((6, 0)), 0.0, 1.0, 1.0, 0.0)
    u, total = np.array([5.0, 0.0, 0.0]), np.zeros(3)
    walk = Walk(2.0, NEVER, u, total)  # chosen so that eta_1 = eta0 (1 + eta0)^(-3/4) is near 1
    walk_dense(np.ones((1, 1)), problem, walk, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    eta = 2.0 * 3.0**-0.75
    np.testing.assert_allclose(walk.scale * u[0], 5.0 * (1 - eta) + eta, rtol=1e-14)
    ridge = 1.0
    for _ in range(60):  # eta0 with eta_1 ridge = 1 for ridge = 1: a root of eta0 = (1 + eta0)^(3/4)
        ridge = (1.0 + ridge) ** 0.75
    u[:] = [5.0, 0.0, 0.0]
    walk = Walk(ridge, NEVER, u, total)
    walk_dense(np.ones((1, 1)), problem, walk, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    np.testing.assert_allclose(walk.scale * u[0], 1.0, rtol=1e-12)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_types(index):
    """float32 rows give what the same numbers in float64 give: sums are float64; indices are taken as they are."""
    X, y = points(m=50, d=6, seed=7)
    X[np.abs(X) < 0.5] = 0.0
    narrow = X.astype(np.float32)
    i, j = np.random.default_rng(8).integers(0, 50, (2, 400))

    def run(rows):
        task = task_of(rows, y, HINGE, 0.5, 0.2, "regularized")
        track = task.start(0.1, 50)
        task.run(track, i, j)
        return track.current()

    wanted = run(narrow.astype(float))
    for dtype in (np.float32, np.float64):
        A = sparse.csr_matrix(narrow.astype(dtype))
        A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
        A.data.flags.writeable = A.indices.flags.writeable = A.indptr.flags.writeable = False
        near(run(A), wanted)
    narrow.flags.writeable = False
    near(run(narrow), wanted)


def test_kernels_refuse_what_does_not_fit():
    X, i = np.ones((3, 2)), np.zeros(4, dtype=np.int64)
    problem = Problem(np.ones(3), np.zeros(3), np.ones((6, 1)), 0.0, 0.0, 1.0, 0.0)

    def walk(n=6):
        return Walk(0.1, 0, np.zeros(n), np.zeros(n))

    with pytest.raises(ValueError, match="six rows"):
        Problem(np.ones(3), np.zeros(3), np.ones((4, 1)), 0.0, 0.0, 1.0, 0.0)
    with pytest.raises(ValueError, match="one entry per column"):
        Walk(0.1, 0, np.zeros(6), np.zeros(5))
    with pytest.raises(ValueError, match="one entry per column"):
        walk_dense(X, problem, walk(5), i, i)
    with pytest.raises(ValueError, match="different numbers of rows"):
        walk_dense(np.ones((4, 2)), problem, walk(), i, i)
    with pytest.raises(ValueError, match="differ in length"):
        walk_dense(X, problem, walk(), i, i[1:])
    for bad in (-1, 3):
        with pytest.raises(ValueError, match="out of range"):
            walk_dense(X, problem, walk(), i, np.array([0, 0, bad, 0]))
    narrow = np.arange(4, dtype=np.int32)
    with pytest.raises(ValueError, match="indptr"):
        walk_csr(np.ones(2), narrow[:2], narrow, problem, walk(), i, i)
    with pytest.raises(ValueError, match="one entry per column"):
        walk_csr(
            np.ones(3), np.zeros(3, dtype=np.int32), np.array([0, 1, 2, 3], dtype=np.int32), problem, walk(4), i, i
        )


# ---------------------------------------------------------------- the stream of rows


def test_pairs_are_independent_with_the_counts_as_probabilities():
    counts = np.array([1.0, 0.0, 2.5, 0.5, 4.0, 0.0])
    p, n = counts / counts.sum(), 200_000
    i, j = sgd_task.TaskRowPairs(counts, np.random.default_rng(0))(n)
    table = np.zeros((6, 6))
    np.add.at(table, (i, j), 1.0)
    wanted = n * np.outer(p, p)
    assert (table[wanted == 0] == 0).all()
    assert (np.abs(table - wanted) <= 5 * np.sqrt(wanted)).all()  # i = j included
    equal, _ = sgd_task.TaskRowPairs(np.full(5, 0.3), np.random.default_rng(0))(n)
    assert (np.abs(np.bincount(equal, minlength=5) - n / 5) <= 5 * np.sqrt(n / 5)).all()


@pytest.mark.parametrize("counts", [[3, 1, 2, 5, 1], [2, 2, 2, 2, 2], [1, 0, 7, 0, 0]], ids=str)
def test_integer_counts_draw_the_rows_that_repetition_draws(counts):
    counts = np.array(counts)
    weighted = sgd_task.TaskRowPairs(counts.astype(float), np.random.default_rng(1))(5000)
    repeated = sgd_task.TaskRowPairs(np.ones(counts.sum()), np.random.default_rng(1))(5000)
    copies = np.repeat(np.arange(len(counts)), counts)
    for a, b in zip(weighted, repeated):
        np.testing.assert_array_equal(a, copies[b])


@pytest.mark.parametrize("solver", ["asgd", "sgd"])
def test_weights_are_repetitions(solver):
    """Counts of mean 2: twice the epochs are the same number of steps, on the same stream."""
    X, y = points(m=60, d=3, seed=9)
    counts = np.tile([1, 3, 2], 20)
    given = {"eta0": 0.005, **({"t0": 70} if solver == "asgd" else {})}
    settings = {"solver": solver, "C": 0.4, "lambda1": 2.0, "lambda2": 1.0}
    a = mdlearn.fit("ldm", X, y, sample_weight=counts, solver_options={"epochs": 4, **given}, **settings)
    b = mdlearn.fit("ldm", np.repeat(X, counts, axis=0), np.repeat(y, counts), solver_options={"epochs": 2, **given},
                    **settings)  # fmt: skip
    near(a.coef_, b.coef_)
    near(a.intercept_, b.intercept_)
    assert a.certificate.objective == pytest.approx(b.certificate.objective, rel=1e-12)
