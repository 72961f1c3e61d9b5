"""asgd and sgd: Algorithm 2 as printed, checked against exact expectations and a dense transcription."""

from __future__ import annotations

import itertools
import sys
import warnings
from typing import ClassVar

import data
import numpy as np
import pytest
from scipy import sparse

import mdlearn
from mdlearn._solvers.sgd import Problem, Walk, walk_csr, walk_dense
from mdlearn.data.features import LinearFeatures
from mdlearn.data.rows import CsrRows, DenseRows
from mdlearn.forms.certificate import dual
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.objectives.base import Objective, Parameter, Terms
from mdlearn.solvers import sgd
from mdlearn.solvers.bound import DualBound

HINGE = (HingeTerm(2.0),)
SQUARED_HINGE = (HingeTerm(0.7, power=2),)
BAND = (HingeTerm(0.5, threshold=0.5, power=2), HingeTerm(1.5, side=-1, threshold=1.5, power=2))
MIXED = (HingeTerm(1.0, threshold=0.3), HingeTerm(0.25, side=-1, threshold=0.8), HingeTerm(0.4, power=2))
LOSSES = {"hinge": HINGE, "squared hinge": SQUARED_HINGE, "band": BAND, "mixed": MIXED, "none": ()}
NEVER = sys.maxsize


class Band(Objective):
    """Squared loss outside a band, with variance and mean."""

    name = "band"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the loss")}

    def terms(self, params, total):
        C = params["C"]
        return Terms(0.3, 0.2, (HingeTerm(C, threshold=0.5, power=2), HingeTerm(C, side=-1, threshold=1.5, power=2)))


class SquaredHinge(Objective):
    """SVM with the squared hinge."""

    name = "squared-hinge"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the loss")}

    def terms(self, params, total):
        return Terms(loss=(HingeTerm(params["C"], power=2),))


def points(m=60, d=4, seed=0, noise=0.7):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    return X, np.where(X[:, 0] - 0.4 * X[:, 1] + noise * rng.standard_normal(m) > 0.2, 1, -1)


def task_of(X, y, terms, variance=0.0, mean=0.0, bias="none", counts=None):
    rows = CsrRows(X) if sparse.issparse(X) else DenseRows(X)
    counts = np.ones(len(y)) if counts is None else np.asarray(counts, dtype=float)
    column = Column(np.asarray(y, dtype=float), counts, variance, mean, terms)
    return sgd.Task(MarginForm(LinearFeatures(rows), (column,), bias), column)


def g(w, X, y, counts, terms, variance, mean):
    """The objective by its formula, in extended precision; a bias is a column of ones in X."""
    X, w, c = (np.asarray(a, dtype=np.longdouble) for a in (X, w, counts))
    z, m = y * (X @ w), c.sum()
    average = c @ z / m
    loss = sum(t.weight * (c @ np.maximum(0, t.side * (t.threshold - z)) ** t.power) for t in terms)
    return w @ w / 2 + variance * (c @ (z - average) ** 2) / m - mean * average + loss


def with_ones(X, bias):
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    return np.hstack([X, np.full((len(X), 1), 1.0 if bias == "regularized" else 0.0)])


def step_scale(terms, counts):
    """m C, or 1 without a loss."""
    return np.sum(counts) * max((t.weight for t in terms), default=0.0) or 1.0


# ---------------------------------------------------------------- a step


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_expected_step_is_the_full_gradient(loss, bias, weighted):
    """Enumeration of all pairs; the objective is piecewise quadratic, so central differences are exact."""
    X, y = points(m=7, d=3, seed=4)
    counts = np.array([1.0, 0.5, 3.0, 0.25, 1.0, 2.0, 0.1]) if weighted else np.ones(7)
    terms, variance, mean, eta0 = LOSSES[loss], 0.8, 0.6, 0.3
    w = np.array([0.7, -0.4, 0.2, 0.3 if bias == "regularized" else 0.0])
    A, scale, h = with_ones(X, bias), step_scale(terms, counts), 1e-4
    z = y * (A @ w)
    assert all(np.abs(z - t.threshold).min() > 10 * h for t in terms), "too near a kink for this test"
    task = task_of(X, y, terms, variance, mean, bias, counts)
    expected = np.zeros(4)
    for i, j in itertools.product(range(7), repeat=2):
        track = task.start(eta0, NEVER)
        track.u[:4] = w
        task.run(track, np.array([i]), np.array([j]))
        direction = (w - track.current()[:4]) / (eta0 * (1 + eta0 / scale) ** -0.75)
        expected += counts[i] * counts[j] / counts.sum() ** 2 * direction
    along = [(g(w + e, A, y, counts, terms, variance, mean) - g(w - e, A, y, counts, terms, variance, mean)) / (2 * h)
             for e in h * np.eye(4)]  # fmt: skip
    gradient = np.array(along, dtype=float) / scale
    if bias == "none":
        assert expected[3] == 0.0
    np.testing.assert_allclose(expected, gradient, atol=1e-11)
    assert np.abs(gradient).max() > 1e-3


def transcription(X, y, terms, variance, mean, counts, eta0, t0, i, j):
    """Algorithm 2, dense, line by line, on g / (m C); returns the last iterate and the average."""
    m, scale = np.sum(counts), step_scale(terms, counts)
    w, average = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for t, (a, b) in enumerate(zip(i, j), start=1):
        r_a, r_b = y[a] * X[a], y[b] * X[b]
        z = r_a @ w
        gradient = 2 * variance * (r_a * z - r_a * (r_b @ w)) + w - mean * r_a
        for term in terms:
            excess = term.side * (term.threshold - z)
            if excess > 0:
                slope = 1.0 if term.power == 1 else 2.0 * excess
                gradient = gradient - m * term.weight * slope * term.side * r_a
        w = w - eta0 * (1 + eta0 * t / scale) ** -0.75 * gradient / scale
        average = average + (w - average) / max(1, t - t0)
    return w, average


def near(actual, wanted):
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


KINDS = {
    "dense": lambda X: X,
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "CSR": sparse.csr_matrix,
}


@pytest.mark.parametrize("t0", [0, 1, 37, 120, 1000])
@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
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
    problem = Problem(np.ones(1), np.zeros((6, 0)), 0.0, 1.0, 1.0, 0.0)
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
    problem = Problem(np.ones(3), np.ones((6, 1)), 0.0, 0.0, 1.0, 0.0)

    def walk(n=6):
        return Walk(0.1, 0, np.zeros(n), np.zeros(n))

    with pytest.raises(ValueError, match="six rows"):
        Problem(np.ones(3), np.ones((4, 1)), 0.0, 0.0, 1.0, 0.0)
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
    i, j = sgd.Stream(counts, np.random.default_rng(0))(n)
    table = np.zeros((6, 6))
    np.add.at(table, (i, j), 1.0)
    wanted = n * np.outer(p, p)
    assert (table[wanted == 0] == 0).all()
    assert (np.abs(table - wanted) <= 5 * np.sqrt(wanted)).all()  # i = j included
    equal, _ = sgd.Stream(np.full(5, 0.3), np.random.default_rng(0))(n)
    assert (np.abs(np.bincount(equal, minlength=5) - n / 5) <= 5 * np.sqrt(n / 5)).all()


@pytest.mark.parametrize("counts", [[3, 1, 2, 5, 1], [2, 2, 2, 2, 2], [1, 0, 7, 0, 0]], ids=str)
def test_integer_counts_draw_the_rows_that_repetition_draws(counts):
    counts = np.array(counts)
    weighted = sgd.Stream(counts.astype(float), np.random.default_rng(1))(5000)
    repeated = sgd.Stream(np.ones(counts.sum()), np.random.default_rng(1))(5000)
    copies = np.repeat(np.arange(len(counts)), counts)
    for a, b in zip(weighted, repeated):
        np.testing.assert_array_equal(a, copies[b])


@pytest.mark.parametrize("solver", ["asgd", "sgd"])
def test_weights_are_repetitions(solver):
    """Counts of mean 2: twice the epochs are the same number of steps, on the same stream."""
    X, y = points(m=60, d=3, seed=9)
    counts = np.tile([1, 3, 2], 20)
    given = {"eta0": 0.05, **({"t0": 70} if solver == "asgd" else {})}
    settings = {"solver": solver, "C": 0.4, "lambda1": 2.0, "lambda2": 1.0}
    a = mdlearn.fit("ldm", X, y, sample_weight=counts, solver_options={"epochs": 4, **given}, **settings)
    b = mdlearn.fit("ldm", np.repeat(X, counts, axis=0), np.repeat(y, counts), solver_options={"epochs": 2, **given},
                    **settings)  # fmt: skip
    near(a.coef_, b.coef_)
    near(a.intercept_, b.intercept_)
    assert a.certificate.objective == pytest.approx(b.certificate.objective, rel=1e-12)


# ---------------------------------------------------------------- fits


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("solver", ["asgd", "sgd"])
@pytest.mark.parametrize("kind", ["dense", "CSR"])
def test_fit_returns_the_published_point(kind, solver, bias, monkeypatch):
    """The coefficients are those of the transcription on the same stream, whatever the pieces."""
    X, y = points(m=80, d=4, seed=10)
    C, lambda1, lambda2, eta0, epochs = 0.5, 1.5, 0.7, 0.07, 3
    i, j = sgd.Stream(np.ones(80), np.random.default_rng([5, 0]))(80 * epochs)
    w, mean = transcription(
        with_ones(X, bias), y, (HingeTerm(C),), 2 * lambda1, lambda2, np.ones(80), eta0, 80, i, j
    )  # t0 = m is the default
    wanted = mean if solver == "asgd" else w
    for piece in (sgd.PIECE, 1 << 9):
        monkeypatch.setattr(sgd, "PIECE", piece)
        model = mdlearn.fit(
            "ldm", KINDS[kind](X), y, solver=solver, solver_options={"epochs": epochs, "eta0": eta0}, bias=bias, C=C,
            lambda1=lambda1, lambda2=lambda2, random_state=5,
        )  # fmt: skip
        near(np.append(model.coef_, model.intercept_), wanted)
        near(model.dual_coef_ @ X, model.coef_)
        assert model.solver == solver and model.n_iter == epochs == len(model.history)
        held = g(np.append(model.coef_, model.intercept_), with_ones(X, bias), y, np.ones(80), (HingeTerm(C),),
                 2 * lambda1, lambda2)  # fmt: skip
        assert model.certificate.objective == pytest.approx(float(held), rel=1e-12)


def excesses(X, y, epochs, solver="asgd", **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        dense = X.toarray() if sparse.issparse(X) else X
        exact = mdlearn.fit("ldm", dense, y, solver="interior", tol=1e-9, **settings).certificate
    assert exact.gap < 1e-6
    found = []
    for n in epochs:
        c = mdlearn.fit("ldm", X, y, solver=solver, solver_options={"epochs": n}, **settings).certificate
        assert c.lower_bound <= exact.objective * (1 + 1e-9) and c.objective >= exact.lower_bound * (1 - 1e-9)
        found.append((c.objective - exact.objective) / exact.objective)
    return found


@pytest.mark.parametrize("settings", [{}, {"C": 1.0, "lambda1": 1.0, "lambda2": 1.0}], ids=["default", "small lambda"])
@pytest.mark.parametrize("name", ["a9a", "svmguide1", "generated"])
def test_excess_falls_as_epochs_grow(name, settings):
    if name == "generated":
        X, y = points(m=2000, d=10, seed=11)
    else:
        X, y = data.load(name)
        X = sparse.csr_matrix(X) if name == "a9a" else X
    few, some, many = excesses(X, y, (5, 20, 80), **settings)
    assert many < some < few < 0.05
    assert many < 0.5 * few


def test_sgd_approaches_the_optimum_too():
    X, y = points(m=1500, d=6, seed=12)
    few, many = excesses(X, y, (2, 200), solver="sgd", C=0.01, lambda1=1.0, lambda2=0.5)
    assert many < 0.2 * few and many < 0.02


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("objective", [Band, SquaredHinge])
def test_other_declared_losses(objective, bias):
    X, y = points(m=400, d=4, seed=13)
    exact = mdlearn.fit(objective, X, y, solver="interior", bias=bias, tol=1e-10).certificate
    found = [
        mdlearn.fit(objective, X, y, solver="asgd", bias=bias, solver_options={"epochs": n}).certificate
        for n in (5, 100)
    ]
    for c in found:
        assert c.lower_bound <= exact.objective * (1 + 1e-10) and c.kind == "duality gap"
    few, many = ((c.objective - exact.objective) / exact.objective for c in found)
    assert -1e-9 <= many < few and many < 2e-3
    assert found[1].gap < 0.05  # multipliers of squared terms follow the margins: the bound is tight here


HYPERS = [(0.0, 0.0, 0.0), (0.0, 3.0, 2.0), (1e-3, 1.0, 1.0), (1.0, 0.0, 0.0), (1.0, 50.0, 10.0), (100.0, 1.0, 0.0)]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("solver", ["asgd", "sgd"])
@pytest.mark.parametrize("hyper", HYPERS, ids=str)
def test_certificates_are_valid(hyper, solver, bias, weighted):
    X, y = points(m=120, d=3, seed=14)
    weight = np.random.default_rng(15).exponential(2.0, 120) if weighted else None
    settings = {"bias": bias, "C": hyper[0], "lambda1": hyper[1], "lambda2": hyper[2], "sample_weight": weight}
    exact = mdlearn.fit("ldm", X, y, solver="interior", tol=1e-9, **settings).certificate
    c = mdlearn.fit("ldm", X, y, solver=solver, **settings).certificate
    scale = max(abs(exact.objective), 1e-12)
    assert c.lower_bound <= exact.objective + 1e-9 * scale
    assert c.objective >= exact.lower_bound - 1e-9 * scale
    at_zero = hyper[0] * (120 if weight is None else weight.sum())
    assert c.objective < at_zero or hyper[0] == 0.0
    assert c.gap == pytest.approx(
        (c.objective - c.lower_bound) / max(abs(c.objective), 0.01 * at_zero, np.finfo(float).tiny), abs=1e-12
    )


def test_the_bound_never_falls_and_is_what_the_certificate_computes():
    X, y = points(m=90, d=4, seed=16)
    rng = np.random.default_rng(17)
    for terms, bias in itertools.product([HINGE, SQUARED_HINGE, BAND, MIXED], ["none", "regularized"]):
        counts = rng.exponential(1.0, 90)
        column = Column(y.astype(float), counts, 0.7, 0.5, terms)
        form = MarginForm(LinearFeatures(DenseRows(X)), (column,), bias)
        bound, values = DualBound(form, column), []
        for _ in range(6):
            best = bound.best
            assert (best.beta >= 0).all() and (best.beta <= column.caps).all()
            values.append(dual(form, column, best.beta, best.sigma)[0])
            for _ in bound.improve(2.0 * rng.standard_normal(90)):
                pass
        assert (np.diff(values) >= -1e-10 * abs(values[-1])).all()
        assert values[-1] > values[0]


def test_more_than_two_classes():
    rng = np.random.default_rng(18)
    X = rng.standard_normal((600, 4))
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + 0.1 * rng.standard_normal((600, 3)), axis=1)]
    model = mdlearn.fit("ldm", X, y, solver="asgd")
    assert model.coef_.shape == (3, 4) and model.score(X, y) > 0.85
    assert len(model.certificate.parts) == 3 and {s.problem for s in model.history} == {0, 1, 2}


@pytest.mark.parametrize("solver", ["asgd", "sgd"])
def test_same_seed_same_bits(solver):
    X, y = points(m=300, d=5, seed=19)
    fits = [mdlearn.fit("ldm", X, y, solver=solver, random_state=seed) for seed in (3, 3, 4, 0, None)]
    bits = [m.coef_.tobytes() + m.intercept_.tobytes() + repr(m.certificate).encode() for m in fits]
    assert bits[0] == bits[1] and bits[3] == bits[4]
    assert len({bits[0], bits[2], bits[3]}) == 3


@pytest.mark.parametrize("factor", [1e-8, 1e-3, 1e3, 1e8])
def test_calibration_follows_the_scale_of_the_data(factor):
    X, y = points(m=500, d=4, seed=20)
    settings = {"C": 1.0 / factor**2, "lambda1": 1.0 / factor**2, "lambda2": 0.0, "bias": "none", "solver": "asgd"}
    c = mdlearn.fit("ldm", factor * X, y, **settings).certificate
    exact = mdlearn.fit("ldm", factor * X, y, **{**settings, "solver": "interior"}).certificate
    assert c.objective < 1.05 * exact.objective


def test_steps_that_diverge_after_calibration_start_again():
    """One row of huge length in a column of its own, which the calibration's sample does not hold."""
    X, y = points(m=4000, d=3, seed=21)
    i, _ = sgd.Stream(np.ones(4000), np.random.default_rng([0, 0]))(1000)
    strange = int(np.setdiff1d(np.arange(4000), i)[0])
    X[:, 2] = 0.0
    X[strange, 2] = 1e7
    with pytest.raises(ValueError, match=r"diverge with eta0=0\.1; give a smaller solver option eta0"):
        mdlearn.fit(Band, X, y, solver="sgd", solver_options={"eta0": 0.1, "epochs": 20})
    model = mdlearn.fit(Band, X, y, solver="sgd", solver_options={"epochs": 20})
    assert np.isfinite(model.coef_).all() and np.isfinite(model.certificate.gap)
    assert model.n_iter > 20  # the epochs before the restart are in the history too


# ---------------------------------------------------------------- ends


def test_the_published_end_is_a_normal_end():
    """No warning without tol; all epochs run even when the gap asked for is reached at once."""
    X, y = points(m=200, seed=22)
    model = mdlearn.fit("ldm", X, y, solver="asgd")  # warnings are errors here
    assert model.n_iter == 5 and model.certificate.tol == 1e-6 and not model.certificate.converged
    for tol in (1e-6, 1e-9):
        with pytest.warns(mdlearn.ConvergenceWarning, match="'asgd' stopped at relative gap .*published end"):
            given = mdlearn.fit("ldm", X, y, solver="asgd", tol=tol)
        assert given.n_iter == 5
        np.testing.assert_array_equal(given.coef_, model.coef_)
    loose = mdlearn.fit("ldm", X, y, solver="asgd", tol=1e6)
    assert loose.n_iter == 5 and loose.certificate.converged
    np.testing.assert_array_equal(loose.coef_, model.coef_)


@pytest.mark.parametrize("tol", [None, 1e-6])
def test_max_iter_counts_epochs(tol):
    X, y = points(m=200, seed=23)
    given = {} if tol is None else {"tol": tol}
    with pytest.warns(mdlearn.ConvergenceWarning, match="max_iter = 2 reached"):
        cut = mdlearn.fit("ldm", X, y, solver="asgd", max_iter=2, solver_options={"eta0": 0.1}, **given)
    assert cut.n_iter == 2
    short = mdlearn.fit("ldm", X, y, solver="asgd", solver_options={"eta0": 0.1, "epochs": 2})
    np.testing.assert_array_equal(cut.coef_, short.coef_)


@pytest.mark.parametrize("max_iter", [5, 6])
def test_max_iter_at_the_published_end_is_no_early_stop(max_iter):
    X, y = points(m=200, seed=24)
    assert mdlearn.fit("ldm", X, y, solver="asgd", max_iter=max_iter).n_iter == 5


def test_callback_stops_after_an_epoch():
    X, y = points(m=200, seed=25)
    seen = []

    def stop(state):
        seen.append(state)
        return state.iteration == 3

    with pytest.warns(mdlearn.ConvergenceWarning, match="stopped by the callback"):
        model = mdlearn.fit("ldm", X, y, solver="asgd", callback=stop)
    assert [s.iteration for s in seen] == [1, 2, 3] and model.n_iter == 3
    assert seen[-1].objective == pytest.approx(model.certificate.objective, rel=1e-12)
    assert all(s.lower_bound <= s.objective and s.gap >= 0 for s in seen)


def test_time_limit():
    X, y = points(m=2000, d=50, seed=26)
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit reached"):
        model = mdlearn.fit("ldm", X, y, solver="asgd", time_limit=0.3, solver_options={"epochs": 10**9})
    assert 1 <= model.n_iter < 10**6 and np.isfinite(model.certificate.gap)
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit reached"):
        model = mdlearn.fit("ldm", X, y, solver="asgd", time_limit=0.0)
    assert model.n_iter == 0 and model.certificate.objective <= 2000.0  # the value at w = 0


# ---------------------------------------------------------------- options and refusals


BAD_OPTIONS = {
    "epochs 0": ({"epochs": 0}, ValueError, "solver option epochs needs to be an integer >= 1; got 0"),
    "epochs 2.5": ({"epochs": 2.5}, TypeError, "solver option epochs needs to be an integer >= 1; got 2.5"),
    "epochs None": ({"epochs": None}, TypeError, "solver option epochs needs to be an integer"),
    "eta0 0": ({"eta0": 0.0}, ValueError, "solver option eta0 needs to be a number > 0 and finite; got 0.0"),
    "eta0 inf": ({"eta0": float("inf")}, ValueError, "solver option eta0 needs to be a number > 0 and finite"),
    "eta0 nan": ({"eta0": float("nan")}, ValueError, "solver option eta0 needs to be a number > 0 and finite"),
    "eta0 word": ({"eta0": "auto"}, TypeError, "solver option eta0 needs to be a number > 0 and finite; got 'auto'"),
    "t0 -1": ({"t0": -1}, ValueError, "solver option t0 needs to be an integer >= 0"),
    "t0 0.5": ({"t0": 0.5}, TypeError, "solver option t0 needs to be an integer >= 0"),
    "unknown": ({"averaging": 1}, ValueError, "no option 'averaging'; valid solver_options: epochs, eta0, t0"),
}


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_bad_options(name):
    given, kind, message = BAD_OPTIONS[name]
    X, y = points()
    with pytest.raises(kind, match=message) as caught:
        mdlearn.fit("ldm", X, y, solver="asgd", solver_options=given)
    assert "\n" not in str(caught.value) and str(caught.value).count(". ") == 0


def test_sgd_has_no_average_to_start():
    X, y = points()
    with pytest.raises(ValueError, match="no option 't0'; valid solver_options: epochs, eta0"):
        mdlearn.fit("ldm", X, y, solver="sgd", solver_options={"t0": 3})


REFUSALS = {
    "kernel": ({"kernel": "rbf"}, "only kernel='linear' has"),
    "precomputed": ({"kernel": lambda A, B: A @ B.T}, "only kernel='linear' has"),
    "free bias": ({"bias": "free"}, "strong convexity, which bias='free' breaks"),
    "hard margin": ({"C": float("inf")}, "no loss of the kind 'constraint'"),
}


@pytest.mark.parametrize("solver", ["asgd", "sgd"])
@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name, solver):
    settings, reason = REFUSALS[name]
    X, y = points()
    with pytest.raises(ValueError, match=f"solver '{solver}' cannot take this problem: .*{reason}; use one of "):
        mdlearn.fit("ldm", X, y, solver=solver, **settings)


def test_a_ridge_per_column_is_refused():
    X, y = points()
    column = Column(y.astype(float), np.ones(60), 0.0, 0.0, HINGE)
    form = MarginForm(LinearFeatures(DenseRows(X), np.arange(1.0, 5.0)), (column,), "none")
    assert "plain squared norm" in sgd.SGD().refusal(form)
