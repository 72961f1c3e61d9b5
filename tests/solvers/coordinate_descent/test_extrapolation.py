"""Extrapolated sweeps over sparse rows with a strong variance term: state, monotony and optimum, without the engine."""

import numpy as np
import pytest
import scipy.sparse as sp

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.forms.certificates.dual import feasible_dual
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.coordinate_descent.centred_rows import CentredDual

BIASES = ["none", "regularized", "free"]
BAND = (HingeTerm(0.2), HingeTerm(0.3, power=2, side=-1, threshold=1.4))


def rows(m=2500, d=300, seed=5):
    rng = np.random.default_rng(seed)
    X = sp.random(m, d, 0.03, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    y = np.where(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(m) > 0.2, 1.0, -1.0)
    return X, y, rng.integers(0, 3, m).astype(float)


def stiff(bias, terms):
    X, y, counts = rows()
    column = Column(y, counts, 5.0 * counts.sum(), 3.0 * counts.sum(), terms)
    form = MarginForm(LinearFeatures(CsrRows(X)), (column,), bias)
    return form, column, CentredDual(form, column)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("terms", [(HingeTerm(0.2),), BAND], ids=["hinge", "band"])
def test_state_fits_the_multipliers_and_the_dual_value_rises(bias, terms, monkeypatch):
    monkeypatch.setattr("mdlearn.solvers.coordinate_descent.centred_rows.QUIET", 1.0)
    form, column, state = stiff(bias, terms)
    rng, last = np.random.default_rng(0), -np.inf
    for _ in range(15):
        list(state.sweep(state.movable, rng))
        assert state.quiet
        assert (state.beta >= 0).all() and (state.beta <= column.caps).all()
        assert not state.s[column.counts == 0].any()
        scale = np.abs(state.s).max()
        assert abs(state.s.sum()) <= 1e-9 * scale
        alpha = column.y * (column.sides @ state.beta + state.s + column.pull)
        assert np.allclose(state.coef(), form.features.rows.X.T @ alpha, rtol=0, atol=1e-8 * scale)
        if bias == "free":
            assert abs(alpha.sum()) <= 1e-8 * scale
        value = feasible_dual(form, column, state.beta, state.s)[0]
        assert value >= last - 1e-10 * abs(value)
        last = value


@pytest.mark.parametrize("bias", BIASES)
def test_gradient_vanishes_where_no_hinge_is_active(bias):
    X, y, counts = rows()
    counts += 1.0
    m = counts.sum()
    model = mdlearn.fit("ldm", X, y, sample_weight=counts, C=1.0, lambda1=16 * m, bias=bias, solver="cd", tol=1e-12)
    w, b = model.coef_.ravel(), float(np.ravel(model.intercept_)[0])
    z = y * (X @ w + b)
    pull = 4 * m / m * counts
    slope = y * (64 * counts * (z - counts @ z / m) - pull - counts * (z < 1))
    gradient, size = w + X.T @ slope, np.linalg.norm(X.T @ (y * pull))
    assert np.linalg.norm(gradient) <= 1e-4 * size
    if bias != "none":
        assert abs(slope.sum() + (b if bias == "regularized" else 0.0)) <= 1e-4 * size


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("terms", [(HingeTerm(0.2),), BAND], ids=["hinge", "band"])
def test_slopes_and_inner_products_follow_every_step(bias, terms, monkeypatch):
    monkeypatch.setattr("mdlearn.solvers.coordinate_descent.centred_rows.QUIET", 1.0)
    _, _, state = stiff(bias, terms)
    ahead, rng = state.ahead, np.random.default_rng(1)
    for _ in range(12):
        list(state.sweep(state.movable, rng))
        k = min(ahead.count, ahead.most)
        moves, (e, beta) = ahead.moves[:k], ahead.last
        lengths = np.sqrt((moves**2).sum(axis=1))
        sizes = np.outer(lengths, lengths)
        assert np.allclose(ahead.gram[:k, :k] / sizes, moves @ moves.T / sizes)
        slopes = ahead.steps[:k] @ ahead.gain - moves @ e
        assert np.allclose(ahead.rest[:k] / lengths, slopes / lengths, rtol=0, atol=1e-10 * np.linalg.norm(e))
        assert (beta >= 0).all() and (beta <= state.column.caps.ravel()).all()


@pytest.mark.parametrize("variance", [0.0, 1.0])
@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("terms", [(HingeTerm(0.2),), BAND], ids=["hinge", "band"])
def test_sweeps_over_what_still_moves_never_lower_the_dual_value(bias, terms, variance):
    X, y, counts = rows()
    column = Column(y, counts, variance, 3.0, terms)
    form = MarginForm(LinearFeatures(CsrRows(X)), (column,), bias)
    state, rng, last = CentredDual(form, column), np.random.default_rng(0), -np.inf
    for _ in range(3):
        list(state.sweep(state.movable, rng))
    assert not state.stiff
    answers = 0
    for _ in range(6):
        list(state.sweep(state.movable, rng))
        if state.settled:  # the bias is in every update of a full sweep
            assert state.intercept() == pytest.approx(state.problem.total if bias == "regularized" else 0.0)
            value = feasible_dual(form, column, state.beta, state.s)[0]
            assert value >= last - 1e-10 * abs(value)
        state.settled = state.renew = True
        active = np.flatnonzero(state.keep.ravel())
        for _ in range(4):
            list(state.sweep(active, rng))
            assert (state.beta >= 0).all() and (state.beta <= column.caps).all()
            alpha = column.y * (column.sides @ state.beta + state.s + column.pull)
            w = X.T @ alpha
            assert np.allclose(state.coef(), w, rtol=0, atol=1e-9 * np.abs(w).max())
            if bias == "regularized" and last > -np.inf:
                assert state.problem.total == pytest.approx(alpha.sum(), rel=1e-9, abs=1e-9 * np.abs(alpha).sum())
            value = feasible_dual(form, column, state.beta, state.s)[0]
            assert value >= last - 1e-10 * abs(value)
            last = value
            check_recurrences(state, answers := answers + state.ahead.answering)
    assert (answers > 0) == (bias == "regularized")


def check_recurrences(state, answers):
    """Slopes and inner products of the moves, and of the answer to a move of the bias, are what they stand for."""
    ahead = state.ahead
    k = min(ahead.count, ahead.most)
    at = [*range(k), ahead.most] if answers else [*range(k)]
    moves, steps, (e, _) = ahead.moves[at], ahead.steps[at], ahead.last
    lengths = np.sqrt((moves**2).sum(axis=1))
    sizes = np.outer(lengths, lengths)
    assert np.allclose(ahead.gram[np.ix_(at, at)] / sizes, moves @ moves.T / sizes, rtol=0, atol=1e-9)
    slopes = steps @ ahead.gain - moves @ e
    assert np.allclose(ahead.rest[at] / lengths, slopes / lengths, rtol=0, atol=1e-9 * np.linalg.norm(e))


def test_a_sweep_visits_every_coordinate_once_in_runs_as_long_as_rows_differ():
    X, y, _ = rows()
    m = y.shape[0]
    lengths = []
    for shift in (0.0, 3.0):  # a constant in every row is what they have in common
        A = sp.csr_matrix(sp.hstack([X, np.full((m, 1), shift)]))
        column = Column(y, np.ones(m), 5.0 * m, 3.0 * m, (HingeTerm(0.2),))
        state = CentredDual(MarginForm(LinearFeatures(CsrRows(A)), (column,), "regularized"), column)
        state.quiet = True
        order = state._order(state.movable, np.random.default_rng(0))
        assert np.array_equal(np.sort(order), np.arange(m))
        lengths.append(np.mean(np.diff(order) == 1))
    assert lengths[0] > 0.9 and 0.7 < lengths[1] < 0.8


@pytest.mark.parametrize("bias", BIASES)
def test_a_sweep_that_moves_nothing_is_not_extrapolated(bias, monkeypatch):
    """Rounding between two sweeps, blown up to a step, would tear the coefficients from their multipliers."""
    monkeypatch.setattr("mdlearn.solvers.coordinate_descent.centred_rows.QUIET", 1.0)
    form, column, state = stiff(bias, (HingeTerm(0.2),))
    rng, nothing = np.random.default_rng(0), np.empty(0, dtype=np.intp)
    for k in range(12):
        list(state.sweep(nothing if k % 3 == 2 else state.movable, rng))
    before = state.coef()
    for _ in range(5):
        list(state.sweep(nothing, rng))
    alpha = column.y * (column.sides @ state.beta + state.s + column.pull)
    scale = np.abs(before).max()
    assert np.allclose(state.coef(), form.features.rows.X.T @ alpha, rtol=0, atol=1e-8 * scale)
    assert np.allclose(state.coef(), before, rtol=0, atol=1e-8 * scale)
