"""Compiled loops of the hybrid engine by themselves: what a sweep, a Newton step and a line search do, and refuse."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import cython_blas, cython_lapack
from scipy.optimize import brentq

from mdlearn._solvers import dual_descent, envelopes, logistic

M, D = 40, 5
SYRK, POSV = cython_blas.__pyx_capi__["dsyrk"], cython_lapack.__pyx_capi__["dposv"]
CAPS = {"hinge": (0.7, 0.0), "squared": (np.inf, 0.6)}


class Descent:
    """An ascent with its arrays, over dense or CSR rows."""

    def __init__(self, X, y, cap, softness, border=1.0, seed=7, pulled=None, index=np.int32):
        m, d = X.shape
        self.X, self.S, self.y, self.border = X, sp.csr_matrix(X), y, border
        self.S.indices, self.S.indptr = self.S.indices.astype(index), self.S.indptr.astype(index)
        self.records = np.zeros((m, 8))
        self.records[:, 0], self.records[:, 2], self.records[:, 3] = y, cap, softness
        self.records[:, 1] = (X**2).sum(axis=1) + border + softness
        self.w = np.zeros(d + 1) if pulled is None else pulled.copy()
        self.pulled = self.w.copy()
        self.order, self.spare = np.arange(m), np.empty(m, dtype=np.int64)
        self.ascent = dual_descent.Ascent(self.records, self.w, self.order, self.spare, 1.0, border, seed)

    def dense(self, whole=True, start=0, stop=None):
        stop = len(self.y) if stop is None else stop
        dual_descent.dense(self.X, self.ascent, whole, start, stop)

    def sparse(self, whole=True, start=0, stop=None):
        stop, S = len(self.y) if stop is None else stop, self.S
        dual_descent.sparse(S.data, S.indices, S.indptr, self.ascent, whole, start, stop)

    def passes(self, storage, most=2):
        S, limits = self.S, (most, 0.25, 2 * len(self.y))
        if storage == "dense":
            dual_descent.dense_passes(self.X, self.ascent, *limits)
        else:
            dual_descent.sparse_passes(S.data, S.indices, S.indptr, self.ascent, *limits)

    @property
    def beta(self):
        return self.records[:, 4]

    def stands_for(self):
        v = self.y * self.beta
        return self.pulled + np.append(self.X.T @ v, self.border * v.sum())

    def value(self):
        w, soft = self.stands_for(), self.records[:, 3]
        return self.beta.sum() - 0.5 * w @ w - 0.5 * soft @ self.beta**2


def rows(dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((M, D)) < 0.6, rng.standard_normal((M, D)), 0.0)
    X[3] = 0.0
    return X.astype(dtype), np.where(rng.random(M) < 0.5, 1.0, -1.0)


@pytest.mark.parametrize("kind", CAPS)
@pytest.mark.parametrize("border", [0.0, 1.0])
@pytest.mark.parametrize("pull", [False, True])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_no_sweep_lowers_the_dual_value(kind, border, pull, storage):
    X, y = rows()
    pulled = np.append(0.3 * (y @ X), border * 0.3 * y.sum()) if pull else None
    one = Descent(X, y, *CAPS[kind], border=border, pulled=pulled)
    before = one.value()
    for turn in range(30):
        if turn % 3 == 2:
            getattr(one, storage)(False, 0, one.ascent.n_free)
        else:
            if turn > 3:
                one.passes(storage)
            getattr(one, storage)()
        after = one.value()
        assert after >= before - 1e-13 * (1 + abs(before))
        np.testing.assert_allclose(one.w, one.stands_for(), rtol=0, atol=1e-12)
        assert (one.beta >= 0).all() and (one.beta <= CAPS[kind][0]).all()
        before = after
    one.dense()
    assert one.ascent.gain == pytest.approx((one.beta - 0.5 * one.records[:, 3] * one.beta**2).sum(), rel=1e-12)
    inside = (one.beta > 0) & (one.beta < CAPS[kind][0])
    assert one.ascent.n_between == inside.sum() and one.ascent.n_capped == (one.beta == CAPS[kind][0]).sum()
    assert set(one.spare[: one.ascent.n_free]) >= set(np.flatnonzero(inside))


@pytest.mark.parametrize("kind", CAPS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_dense_and_sparse_rows_are_the_same_problem(kind, dtype, index):
    X, y = rows(dtype)
    dense, sparse = (Descent(X, y, *CAPS[kind], index=index) for _ in range(2))
    for turn in range(12):
        if turn > 1:
            dense.passes("dense")
            sparse.passes("sparse")
        dense.dense()
        sparse.sparse()
        np.testing.assert_allclose(dense.beta, sparse.beta, rtol=0, atol=1e-11)
        np.testing.assert_allclose(dense.w, sparse.w, rtol=0, atol=1e-11)
    assert np.array_equal(dense.order, sparse.order) and sorted(dense.order) == list(range(M))
    assert dense.ascent.loss == pytest.approx(sparse.ascent.loss, rel=1e-10)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_a_sweep_in_pieces_is_the_sweep(storage):
    X, y = rows()
    whole, pieces = Descent(X, y, 0.7, 0.0), Descent(X, y, 0.7, 0.0)
    for _ in range(3):
        getattr(whole, storage)()
        for start in range(0, M, 7):
            getattr(pieces, storage)(True, start, min(start + 7, M))
    assert np.array_equal(whole.records, pieces.records) and np.array_equal(whole.w, pieces.w)


def test_loss_and_gain_are_the_gap_at_a_fixed_point():
    X, y = rows()
    one = Descent(X, y, 0.7, 0.0)
    for _ in range(3000):
        one.dense()
    w, z = one.w, y * (X @ one.w[:-1] + one.w[-1])
    assert one.ascent.loss == pytest.approx(0.7 * np.maximum(0, 1 - z).sum(), rel=1e-6)
    assert w @ w + one.ascent.loss - one.ascent.gain == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_passes_end_by_their_part_of_the_gap_or_their_number(storage):
    X, y = rows()
    one = Descent(X, y, 0.7, 0.0)
    for _ in range(2):
        one.dense()
    free, before = one.ascent.n_free, one.ascent.visits
    one.passes(storage, most=1)
    assert one.ascent.visits == before + free
    one.passes(storage, most=10**6)
    assert before + free < one.ascent.visits <= before + free + 2 * len(y)


def test_rows_without_length():
    X, y = np.zeros((3, 2)), np.ones(3)
    one = Descent(X, y, np.array([0.5, 0.0, 2.0]), 0.0, border=0.0)
    one.dense()
    assert one.beta.tolist() == [0.5, 0.0, 2.0] and (one.w == 0).all()


# ---------------------------------------------------------------- envelopes


def envelope(seed, kind="hinge", m=50):
    rng = np.random.default_rng(seed)
    caps = rng.uniform(0.2, 1.0, m) if kind == "hinge" else np.full(m, np.inf)
    caps[:2] = 0.0
    centre = 0.5 * np.minimum(caps, 1.0) * (kind == "hinge")
    steepness = rng.uniform(0.5, 4.0, m)
    steepness[:2] = 0.0
    return rng.normal(0.5, 1.5, m), rng.standard_normal(m), centre, steepness, caps


def multipliers(z, centre, steepness, caps, kink=1.0):
    return np.minimum(np.maximum(centre + steepness * (kink - z), 0.0), caps)


@pytest.mark.parametrize("kind", ["hinge", "squared"])
def test_slopes_of_envelopes(kind):
    z, _, centre, steepness, caps = envelope(1, kind)
    u, free = np.empty(50), np.empty(50, dtype=np.int64)
    n = envelopes.slopes(z, centre, steepness, caps, 1.0, u, free)
    expected = multipliers(z, centre, steepness, caps)
    np.testing.assert_array_equal(u, expected)
    assert free[:n].tolist() == np.flatnonzero((expected > 0) & (expected < caps)).tolist()


@pytest.mark.parametrize("kind", ["hinge", "squared"])
@pytest.mark.parametrize("close", [1e-3, 1e-12])
def test_the_minimum_along_a_line_is_where_the_derivative_is_zero(kind, close):
    for seed in range(40):
        z, dz, centre, steepness, caps = envelope(seed, kind)
        u = multipliers(z, centre, steepness, caps)
        bend = 10.0 ** (seed % 7 - 3)

        def slope(t, z=z, dz=dz, centre=centre, steepness=steepness, caps=caps, bend=bend, u=u):
            return -1.5 + t * bend - (multipliers(z + t * dz, centre, steepness, caps) - u) @ dz

        t = envelopes.minimum(z, dz, centre, steepness, caps, 1.0, u, -1.5, bend, close)
        far = 1.0
        while slope(far) < 0:
            far *= 2.0
        root = brentq(slope, 0.0, far, xtol=1e-15, rtol=1e-14)
        assert abs(slope(t)) <= 1.01 * close * 1.5 + 1e-13
        assert t == pytest.approx(root, rel=max(10 * close * max(1.0, 1 / (bend * root)), 1e-9))


def test_a_line_without_a_minimum():
    z, dz, centre, steepness, caps = envelope(3)
    u = multipliers(z, centre, steepness, caps)
    given = (z, dz, centre, steepness, caps, 1.0, u)
    assert envelopes.minimum(*given, 0.0, 1.0, 1e-3) == np.inf and envelopes.minimum(*given, 2.0, 1.0, 1e-3) == np.inf
    assert envelopes.minimum(*given, np.nan, 1.0, 1e-3) == np.inf
    assert envelopes.minimum(z, 0.0 * dz, centre, steepness, caps, 1.0, u, -1.0, 0.0, 1e-3) > 1e30


def newton(B, A, centre, steepness, caps, fixed, most=20, target=0.0, close=1e-12, w=None):
    k, n = B.shape
    w = np.zeros(n) if w is None else w
    z, u, alpha = B @ w, np.zeros(k), np.zeros(k)
    room = envelopes.Work(
        k, n, np.empty((n, n)), np.empty((k, n)), np.empty((4, max(n, k))), np.empty(k), SYRK, POSV
    )  # fmt: skip
    free = np.empty(k, dtype=np.int64)
    ended, share = envelopes.newton_steps(
        B, A, fixed, centre, steepness, caps, 1.0, w, z, u, alpha, free, room, most, target, close
    )
    return w, z, u, alpha, ended, share


@pytest.mark.parametrize("kind", ["hinge", "squared"])
@pytest.mark.parametrize("k, n", [(50, 4), (50, 120), (6, 40), (50, 1)])
@pytest.mark.parametrize("matrix", [False, True])
def test_newton_steps_find_the_minimum(kind, k, n, matrix):
    rng = np.random.default_rng(k + n)
    _, _, centre, steepness, caps = envelope(2, kind, k)
    B, fixed = rng.standard_normal((k, n)), rng.standard_normal(n)
    L = rng.standard_normal((n, n)) / np.sqrt(n)
    A = np.eye(n) + L @ L.T if matrix else np.empty((0, 0))
    full = A if matrix else np.eye(n)
    w, z, u, alpha, _, share = newton(B, A, centre, steepness, caps, fixed, most=60, target=1e-22)
    np.testing.assert_allclose(full @ w, fixed + B.T @ u, rtol=0, atol=1e-8)
    np.testing.assert_allclose(z, B @ w, rtol=0, atol=1e-11)
    np.testing.assert_allclose(u, multipliers(z, centre, steepness, caps), rtol=0, atol=1e-11)
    # w was 0 = B'0 + 0: what is left of that rest, and what `fixed` has taken of it.
    np.testing.assert_allclose(full @ w, B.T @ alpha + (1.0 - share) * fixed, rtol=0, atol=1e-10)


def test_newton_steps_are_counted():
    rng = np.random.default_rng(5)
    _, _, centre, steepness, caps = envelope(2)
    B, fixed, A = rng.standard_normal((50, 4)), rng.standard_normal(4), np.empty((0, 0))
    w, _, _, alpha, ended, share = newton(B, A, centre, steepness, caps, fixed, most=0)
    assert not ended and share == 1.0 and (w == 0).all() and (alpha == 0).all()
    w, *_, ended, share = newton(B, A, centre, steepness, caps, fixed, most=1)
    assert not ended and (w != 0).all()
    *_, ended, _ = newton(B, A, centre, steepness, caps, fixed, target=np.inf)
    assert ended


def evaluated(kind, B, A, fixed, caps, softness, w, u):
    """Objective and dual value, written anew."""
    e = np.maximum(0.0, 1.0 - B @ w)
    loss = caps @ e if kind == "hinge" else 0.5 * (e * e / softness).sum()
    pushed = B.T @ u + fixed
    gain = u.sum() - 0.5 * softness @ u**2
    return 0.5 * w @ A @ w - fixed @ w + loss, gain - 0.5 * pushed @ np.linalg.solve(A, pushed)


@pytest.mark.parametrize("kind", ["hinge", "squared"])
@pytest.mark.parametrize("k, n", [(50, 4), (50, 120), (6, 40), (50, 1), (1, 3)])
@pytest.mark.parametrize("matrix", [False, True])
def test_stages_lead_to_the_optimum(kind, k, n, matrix):
    """Objective and gap are told at every end; multipliers within their bounds prove in the end what w reaches."""
    rng = np.random.default_rng(k + n)
    cap, soft = CAPS[kind]
    caps, softness = np.full(k, cap), np.full(k, soft)
    B, fixed = rng.standard_normal((k, n)), 0.1 * rng.standard_normal(n)
    L = np.tril(rng.standard_normal((n, n))) / np.sqrt(n) + np.eye(n)
    A = L @ L.T if matrix else np.eye(n)
    given = (A, L) if matrix else (np.empty((0, 0)), np.empty((0, 0)))
    w, z, u, alpha, free = np.zeros(n), np.zeros(k), np.zeros(k), np.zeros(k), np.empty(k, dtype=np.int64)
    centre, steepness = np.zeros(k), 1.0 / softness if kind == "squared" else np.full(k, 2.0 * cap)
    if kind == "hinge":
        centre += 0.5 * cap
    room = work(k, n)
    moves, part, kept, gap = (2, 0.01, 1.0, np.inf) if kind == "hinge" else (0, 1e-4, 1.0, np.inf)
    for _ in range(40):
        taken, share, value, gap = envelopes.stage(
            B, *given, fixed, centre, steepness, caps, softness, 1.0, w, z, u, alpha, free, room, 20, gap, 0.05, 5.0,
            moves, part, 1e-12,
        )  # fmt: skip
        kept *= share
        objective, lower = evaluated(kind, B, A, fixed, caps, softness, w, u)
        assert value == pytest.approx(objective, rel=1e-12) and gap == pytest.approx(objective - lower, abs=1e-11)
        np.testing.assert_allclose(z, B @ w, rtol=0, atol=1e-11)
        assert (u >= 0).all() and (u <= caps).all()
        np.testing.assert_allclose(A @ w, B.T @ alpha + (1.0 - kept) * fixed, rtol=0, atol=1e-9)
        if gap <= 1e-10 * abs(objective) or not taken:
            break
    assert -1e-12 <= gap <= 1e-10 * abs(objective)


# ---------------------------------------------------------------- logistic


def state(**changes):
    m, d = 6, 3
    given = {"records": np.ones((m, 8)), "w": np.zeros(d + 1), "order": np.arange(m), "free": np.empty(m, np.int64)}
    return dual_descent.Ascent(**{**given, "kink": 1.0, "border": 1.0, "seed": 1, **changes})


def dense(X=None, whole=True, start=0, stop=6):
    dual_descent.dense(np.ones((6, 3)) if X is None else X, state(), whole, start, stop)


def test_chosen_rows_alone_are_visited():
    records = np.ones((6, 8))
    records[:, 4] = 0.0
    ascent = state(records=records, border=0.0)
    ascent.choose(np.array([1, 4]))
    dual_descent.dense(0.1 * np.ones((6, 3)), ascent, False, 0, ascent.n_free)
    assert ascent.visits == 2 and np.flatnonzero(records[:, 4]).tolist() == [1, 4]


def sparse(**changes):
    S = sp.csr_matrix(np.ones((6, 3)))
    given = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "whole": True, "start": 0}
    given = {**given, "stop": 6, **changes}
    dual_descent.sparse(*(given[k] for k in ("data", "indices", "indptr")), state(), *list(given.values())[3:])


def steps(k=5, n=3, **changes):
    given = {
        "B": np.ones((k, n)), "A": np.empty((0, 0)), "fixed": np.ones(n), "centre": np.ones(k),
        "steepness": np.ones(k), "caps": np.ones(k), "kink": 1.0, "w": np.ones(n), "z": np.ones(k), "u": np.ones(k),
        "alpha": np.ones(k), "free": np.empty(k, np.int64),
        "room": work(k, n), "most": 1, "target": 0.0, "close": 1e-3,
    }  # fmt: skip
    envelopes.newton_steps(*{**given, **changes}.values())


def work(k=5, n=3, **changes):
    given = {"M": np.empty((n, n)), "held": np.empty((k, n)), "columns": np.empty((4, max(n, k)))}
    given = {**given, "change": np.empty(k), "dsyrk": SYRK, "dposv": POSV}
    return envelopes.Work(k, n, *{**given, **changes}.values())


FIVE, FOUR = np.ones(5), np.ones(4)
FAULTS = {
    "records": (lambda: state(records=np.ones((6, 7))), "records, order, free rows and coefficients do not fit"),
    "order": (lambda: state(order=np.arange(5)), "records, order, free rows and coefficients do not fit"),
    "spare": (lambda: state(free=np.arange(5)), "records, order, free rows and coefficients do not fit"),
    "chosen": (lambda: state().choose(np.zeros(7, np.int64)), "more free rows than rows"),
    "chosen out of range": (lambda: state().choose(np.array([1, 6])), "a row is out of range"),
    "chosen below 0": (lambda: state().choose(np.array([-1, 0])), "a row is out of range"),
    "no coefficients": (lambda: state(w=np.zeros(0)), "records, order, free rows and coefficients do not fit"),
    "no rows": (
        lambda: state(records=np.ones((0, 8)), order=np.arange(0), free=np.arange(0)),
        "records, order, free rows and coefficients do not fit",
    ),
    "a row beyond": (lambda: state(order=np.arange(1, 7)), "a row is out of range"),
    "a row before": (lambda: state(order=np.arange(-1, 5)), "a row is out of range"),
    "columns": (lambda: dense(np.ones((6, 4))), "rows and problem differ in shape"),
    "rows": (lambda: dense(np.ones((5, 3))), "rows and problem differ in shape"),
    "strides": (lambda: dense(np.asfortranarray(np.ones((6, 3)))), "entries of a row need to lie one after the other"),
    "visits": (lambda: dense(stop=7), "the range of visits is out of bounds"),
    "visits backwards": (lambda: dense(start=4, stop=3), "the range of visits is out of bounds"),
    "free visits": (lambda: dense(whole=False, stop=1), "the range of visits is out of bounds"),
    "indptr": (lambda: sparse(indptr=np.zeros(6, np.int32)), "the arrays of the CSR matrix and those of its rows"),
    "indices": (lambda: sparse(indices=np.zeros(9, np.int32)), "the arrays of the CSR matrix and those of its rows"),
    "sparse visits": (lambda: sparse(stop=7), "the range of visits is out of bounds"),
    "slopes": (
        lambda: envelopes.slopes(FIVE, FOUR, FIVE, FIVE, 1.0, np.ones(5), np.empty(5, np.int64)),
        "margins, centres, steepness, caps, multipliers and rows differ in length",
    ),
    "minimum": (
        lambda: envelopes.minimum(FIVE, FOUR, FIVE, FIVE, FIVE, 1.0, FIVE, -1.0, 1.0, 0.1),
        "margins, steps, centres, steepness, caps and multipliers differ in length",
    ),
    "room of rows": (lambda: work(change=np.empty(4)), "the room does not fit the rows"),
    "room of columns": (lambda: work(columns=np.empty((3, 5))), "the room does not fit the columns"),
    "steps rows": (lambda: steps(z=np.ones(4)), "rows, coefficients and margins do not fit each other"),
    "steps caps": (lambda: steps(caps=np.ones(4)), "rows, centres, steepness and caps differ in length"),
    "steps matrix": (lambda: steps(A=np.ones((2, 2))), "the matrix does not fit the coefficients"),
    "steps room": (lambda: steps(room=work(5, 4)), "the matrix does not fit the coefficients"),
    "logistic slopes": (
        lambda: logistic.slopes(FIVE, FOUR, 1.0, 1.0, np.ones(5), np.ones(5)),
        "margins, caps, multipliers and second derivatives differ in length",
    ),
    "logistic loss": (lambda: logistic.loss(FIVE, FOUR, 1.0, 1.0), "margins and counts differ in length"),
    "logistic minimum": (
        lambda: logistic.minimum(FIVE, FIVE, FIVE, 1.0, 1.0, FOUR, -1.0, 1.0, 0.1),
        "margins, steps, caps and multipliers differ in length",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_arguments(fault):
    call, told = FAULTS[fault]
    with pytest.raises(ValueError, match=told):
        call()
