"""Objectives without a ridge: multipliers that meet the dual's condition, true bounds, existence of an optimum."""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from smooth_reference import BIASES, formula, optimum, overlapping

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.certificates.dual import feasible_dual
from mdlearn.forms.certificates.separability import LARGEST_ROWS, check_separable_by_program, separation_value
from mdlearn.forms.certificates.unboundedness import UnboundednessWatch, is_unbounded
from mdlearn.forms.certificates.without_ridge import CORRECTED_COLUMNS, without_ridge
from mdlearn.forms.losses import HingeTerm, LogisticTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.plugins.registry import registry

ALPHA = 3.0


def problem(X, y, bias, v=0.0, a=0.0, weight=None, loss=None):
    c = np.ones(len(y)) if weight is None else weight
    loss = (LogisticTerm(1.0 / c.sum(), ALPHA, 1.0),) if loss is None else loss
    column = Column(y.astype(float), c, v, a, loss)
    return MarginForm(LinearFeatures(DenseRows(X)), (column,), bias, ridge=0.0), column


def condition(X, column, bias, beta, sigma):
    """sum_i alpha_i (x_i, 1) and the sum of the sizes of its terms, from the definition."""
    alpha = column.y * (column.sides @ beta + sigma + column.mean * column.counts / column.counts.sum())
    A = X if bias == "none" else np.hstack([X, np.ones((len(X), 1))])
    return alpha @ A, np.abs(alpha) @ np.abs(A)


def multipliers(X, column, bias, u):
    """Slopes at u, as an engine would hand them in."""
    A = X if bias == "none" else np.hstack([X, np.ones((len(X), 1))])
    z = column.y * (A @ u)
    return np.array([t.slopes(z, column.counts) for t in column.terms]), column.spread(z)


SETTINGS = [(0.0, 0.0), (2.0, 0.0), (2.0, 0.1), (0.0, 0.01)]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("v, a", SETTINGS)
@pytest.mark.parametrize("bias", BIASES)
def test_corrected_multipliers_prove_a_bound(bias, v, a, weighted):
    X, y = overlapping()
    weight = np.random.default_rng(1).integers(0, 4, len(y)).astype(float) if weighted else None
    given = {"lam": 0.0, "alpha": ALPHA, "threshold": 1.0, "v": v, "a": a, "weight": weight}
    best, w, b = optimum(X, y, bias, **given)
    u = w if bias == "none" else np.append(w, b)
    form, column = problem(X, y, bias, v, a, weight)
    rng = np.random.default_rng(2)
    gaps = []
    for far in (3e-2, 1e-2, 1e-4, 1e-8):
        near = u + far * rng.standard_normal(u.shape)
        beta, sigma = multipliers(X, column, bias, near)
        assert np.abs(condition(X, column, bias, beta, sigma)[0]).max() > 1e-12, "nothing to correct"
        corrected = without_ridge(form, column, beta, sigma)
        assert corrected is not None
        beta, sigma = corrected
        residual, size = condition(X, column, bias, beta, sigma)
        assert (np.abs(residual) <= 1e-12 * size).all()
        assert (beta >= 0).all() and (beta <= column.caps).all()
        assert abs(sigma.sum()) <= 1e-14 * (1 + np.abs(sigma).sum()) and (v > 0 or not sigma.any())
        bound = feasible_dual(form, column, beta, sigma)[0]
        assert bound <= best * (1 + 1e-13) + 1e-15
        gaps.append(best - bound)
    # Least change in the conjugate's metric: the bound is second order in the distance.
    assert gaps[1] < 1e-3 and gaps[2] < 1e-7 and gaps[3] < 1e-12


@pytest.mark.parametrize("bias", BIASES)
def test_weak_duality_at_random_points(bias):
    X, y = overlapping(60, 3, seed=5)
    form, column = problem(X, y, bias, 0.5, 0.1)
    rng, given = np.random.default_rng(6), {"lam": 0.0, "alpha": ALPHA, "threshold": 1.0, "v": 0.5, "a": 0.1}
    _, w, b = optimum(X, y, bias, **given)
    u = w if bias == "none" else np.append(w, b)
    around = u + np.logspace(-4, 0, 200)[:, None] * rng.standard_normal((200, len(u)))
    bounds = [feasible_dual(form, column, *multipliers(X, column, bias, near))[0] for near in around]
    assert max(bounds) <= min(formula(near, X, y, bias, **given)[0] for near in around)
    assert np.isfinite(bounds).sum() > 50


def test_multipliers_that_meet_the_condition_are_left_alone():
    X, y = overlapping(40, 2)
    form, column = problem(np.vstack([X, X]), np.append(y, -y), "free")
    beta, sigma = np.full((1, 80), 0.3 / 80), np.zeros(80)
    corrected = without_ridge(form, column, beta, sigma)
    assert corrected is not None and corrected[0] is beta and corrected[1] is sigma
    assert feasible_dual(form, column, beta, sigma)[0] == pytest.approx(column.terms[0].bound(beta[0], column.counts))


def test_margins_that_can_all_be_equal():
    """As many columns as rows and a variance: alpha = 0 at the optimum, the difference of equal numbers."""
    X, y = overlapping(12, 12, seed=3)
    loss = (LogisticTerm(1 / 12, ALPHA, 1.0), HingeTerm(1 / 12, -1, 2.0, 2))
    form, column = problem(X, y, "none", 4.0, 0.0, loss=loss)
    z = np.linspace(1.0, 4.0, 300001)
    best = (np.logaddexp(0, -ALPHA * (z - 1)) / ALPHA + np.maximum(0, z - 2) ** 2).min()
    *_, last = (r for r in registry().solvers["newton"]().iterate(form, column, None, {}, None) if r is not None)
    assert last.objective == pytest.approx(best, rel=1e-8)
    assert last.objective - last.lower_bound <= 1e-10 * best


@pytest.mark.parametrize("mean", [0.0, 0.2])
def test_where_no_correction_is_found(mean):
    """Without a mean term nothing but 0 is known: no loss is negative. With one, no bound is known."""
    X, _ = overlapping(30, 2)
    form, column = problem(np.abs(X), np.ones(30), "none", 0.0, mean)  # every row pushes the same way
    bound = feasible_dual(form, column, np.full((1, 30), 0.5 / 30), np.zeros(30))[0]
    assert bound == (0.0 if mean == 0 else -np.inf)
    wide = np.random.default_rng(0).standard_normal((40, CORRECTED_COLUMNS + 1))
    form, column = problem(wide, np.where(wide[:, 0] > 0, 1, -1), "none")
    assert feasible_dual(form, column, np.full((1, 40), 0.5 / 40), np.zeros(40))[0] == 0.0


@pytest.mark.parametrize("v, a", SETTINGS)
@pytest.mark.parametrize("bias", BIASES)
def test_newton_certifies_without_any_correction(bias, v, a, monkeypatch):
    """Its own multipliers meet the condition: what makes wide problems cheap."""
    X, y = overlapping()
    best = optimum(X, y, bias, lam=0.0, alpha=ALPHA, threshold=1.0, v=v, a=a)[0]
    form, column = problem(X, y, bias, v, a)
    monkeypatch.setattr("mdlearn.forms.certificates.without_ridge.CORRECTED_COLUMNS", 0)
    reports = [r for r in registry().solvers["newton"]().iterate(form, column, None, {}, None) if r is not None]
    assert all(r.lower_bound <= best * (1 + 1e-13) + 1e-15 for r in reports)
    assert min(r.objective - r.lower_bound for r in reports) <= 1e-13 * abs(best)
    assert len(reports) <= 20


# ---------------------------------------------------------------- existence


def rows_of(case):
    """(X, y, bias, v, a, whether there is an optimum)."""
    X, y = overlapping(50, 3)
    side = np.where(X[:, 0] > 0.3, 1, -1)
    part = np.hstack([X, np.eye(50)[:, :1] * (y[:1, None] * y[0])])
    both = np.hstack([X, np.eye(50)[:, :1] + np.eye(50)[:, np.flatnonzero(y != y[0])[:1]]])
    square, _ = overlapping(6, 6, seed=2)
    mixed = np.array([1, -1, 1, 1, -1, -1])
    return {
        "overlap": (X, y, "free", 0.0, 0.0, True),
        "separable": (X, side, "free", 0.0, 0.0, False),
        "separable with a bias only": (X, side, "none", 0.0, 0.0, True),
        "separable in part": (part, y, "free", 0.0, 0.0, False),
        "a column that two classes have": (both, y, "free", 0.0, 0.0, True),
        "a small mean": (X, y, "free", 0.0, 0.005, True),
        "a mean beyond the loss": (X, y, "free", 0.0, 3.0, False),
        "separable, a tiny mean": (X, side, "free", 0.0, 1e-7, False),
        "a variance": (X, side, "free", 1.0, 0.0, True),
        "all margins can be equal": (square, mixed, "none", 1.0, 0.0, False),
        "all margins can be equal, with a mean": (square, mixed, "none", 1.0, 0.5, False),
    }[case]


CASES = ["overlap", "separable", "separable with a bias only", "separable in part", "a column that two classes have",
         "a small mean", "a mean beyond the loss", "separable, a tiny mean", "a variance", "all margins can be equal",
         "all margins can be equal, with a mean"]  # fmt: skip


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
@pytest.mark.parametrize("case", CASES)
def test_whether_there_is_an_optimum(case, scale):
    X, y, bias, v, a, exists = rows_of(case)
    form, column = problem(scale * X, y, bias, v, a)
    assert is_unbounded(form, column) is not exists


@pytest.mark.parametrize("price", [0.2, 0.6, 1.5, np.inf])
def test_reach_by_hand(price):
    """z = (w, w, -w): raising w to 1 gains 2 - 1 and pays the price of the third margin."""
    signed = sp.csr_matrix([[1.0], [1.0], [-1.0]])
    assert separation_value(signed, np.ones(3), np.full(3, price)) == pytest.approx(max(0.0, 1.0 - price), abs=1e-9)
    assert separation_value(signed[:2], np.array([0.5, 2.0]), np.full(2, price)) == pytest.approx(2.5)


@pytest.mark.parametrize("seed", range(8))
def test_reach_is_the_largest_value(seed):
    """Concave and linear in pieces: the largest value in the plane is taken where two margins are 0 or 1."""
    rng = np.random.default_rng(seed)
    R, gain, price = rng.standard_normal((12, 2)), rng.random(12), 2.0 * rng.random(12)
    ends = list(itertools.product((0.0, 1.0), repeat=2))
    corners = [np.linalg.solve(R[[i, j]], end) for i, j in itertools.combinations(range(12), 2) for end in ends]
    Z = R @ np.array(corners).T
    values = gain @ np.minimum(1.0, Z) - price @ np.maximum(0.0, -Z)
    assert separation_value(sp.csr_matrix(R), gain, price) == pytest.approx(values.max(), rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("separable", [False, True])
def test_sparse_rows_stay_sparse(separable, monkeypatch):
    """More entries in all than dense rows may have. Every row comes twice, with one label or with both."""
    monkeypatch.setattr(CsrRows, "block", lambda *given: pytest.fail("made dense"))
    half = sp.random(150, 99_000, 1e-4, "csr", random_state=np.random.default_rng(3))
    rows, y = CsrRows(sp.vstack([half, half], format="csr")), np.repeat([1.0, 1.0 if separable else -1.0], 150)
    assert rows.shape[0] * rows.shape[1] > LARGEST_ROWS
    column = Column(y, np.ones(300), 0.0, 0.0, (LogisticTerm(1.0 / 300, ALPHA, 1.0),))
    assert is_unbounded(MarginForm(LinearFeatures(rows), (column,), "none", ridge=0.0), column) is separable
    column = Column(y, np.ones(300), 0.0, 0.0, (HingeTerm(np.inf),))
    with contextlib.nullcontext() if separable else pytest.raises(ValueError, match="not separable"):
        check_separable_by_program(MarginForm(LinearFeatures(rows), (column,), "none"), column)


@pytest.mark.parametrize("case", CASES)
def test_newton_finds_out(case):
    X, y, bias, v, a, exists = rows_of(case)
    form, column = problem(X, y, bias, v, a)
    steps = registry().solvers["newton"]().iterate(form, column, None, {}, None)
    if exists:
        last = [r for r in steps if r is not None][-1]
        assert last.objective - last.lower_bound <= 1e-10 * abs(last.objective)
    else:
        with pytest.raises(ValueError, match="there is no optimum on these training rows"):
            list(steps)


def test_the_program_is_asked_only_with_reason(monkeypatch):
    X, y = overlapping(200, 4)
    form, column = problem(X, y, "free")
    monkeypatch.setattr(
        "mdlearn.forms.certificates.unboundedness.is_unbounded", lambda *given: pytest.fail("asked without a reason")
    )
    assert len(list(registry().solvers["newton"]().iterate(form, column, None, {}, None))) > 3
    with_ridge = MarginForm(form.features, (column,), "free")
    UnboundednessWatch(with_ridge, column).examine(np.ones(200), 1.0, 0.0)


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize("bias", ["none", "free", "regularized"])
def test_no_bound_is_above_an_objective_where_rows_differ_in_the_last_digits(bias):
    """A residual of 1e-13 of its terms is a whole difference of rows there, and no rounding; or rounding is one."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        far = 10.0 ** rng.uniform(3, 8)
        X = far * (1.0 + (2e-13 if seed < 8 else 5e-16) * rng.standard_normal((20, 2)))
        y = np.where(np.arange(20) < 10, 1, -1)
        found = [mdlearn.fit("rlp", X, y, bias=bias, solver=solver).certificate for solver in ("interior", "linprog")]
        assert max(c.lower_bound for c in found) <= min(c.objective for c in found) * (1.0 + 1e-8)
