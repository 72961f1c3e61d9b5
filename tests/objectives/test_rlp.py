"""Robust linear programming against its printed formula, and the engine that hands linear programs to HiGHS."""

import subprocess
import sys
import threading
import types
import warnings
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

import mdlearn
from mdlearn.forms.losses import HingeTerm
from mdlearn.objectives.base import Objective, Parameter, Terms
from mdlearn.plugins.registry import registry
from mdlearn.solvers import linear_program as engine
from mdlearn.solvers.common import highs_thread


def sample(m=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d)) * 10.0 ** np.arange(d)
    y = np.where(X[:, 0] + rng.standard_normal(m) > 0.3, 1, -1)
    counts = rng.integers(0, 4, m)
    return X, y, counts


def printed_program(X, y, counts, bias=True):
    """min 1/m sum c_i xi_i over (w, b, xi >= 0) with y_i (w . x_i + b) >= 1 - xi_i."""
    n, d = X.shape
    signed = y[:, None] * np.column_stack([X, np.ones(n)])[:, : d + bias]
    cost = np.concatenate([np.zeros(d + bias), counts / counts.sum()])
    A = np.hstack([-signed, -np.eye(n)])
    bounds = [(None, None)] * (d + bias) + [(0, None)] * n
    return linprog(cost, A_ub=A, b_ub=-np.ones(n), bounds=bounds, method="highs-ds").fun


def value(model, X, y, counts):
    z = y * (X @ model.coef_[0] + model.intercept_[0])
    return counts @ np.maximum(0.0, 1.0 - z) / counts.sum()


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("seed", range(4))
def test_the_printed_program(seed, bias):
    X, y, counts = sample(seed=seed)
    model = mdlearn.fit("rlp", X, y, sample_weight=counts, bias=bias, tol=1e-11)
    told = model.certificate
    assert model.solver == "linprog" and told.converged and told.kind == "duality gap"
    assert told.objective == pytest.approx(printed_program(X, y, counts, bias != "none"), rel=1e-9)
    assert told.objective == pytest.approx(value(model, X, y, counts), rel=1e-12)
    assert not hasattr(model, "dual_coef_"), "w is no combination of rows"


def test_the_conditions_of_the_optimum():
    X, y, counts = sample(m=200)
    model = mdlearn.fit("rlp", X, y, sample_weight=counts, tol=1e-11)
    beta, caps = model.duals[0], counts / counts.sum()
    assert (beta >= 0).all() and (beta <= caps).all()
    z = y * model.decision_function(X)
    np.testing.assert_allclose(beta[z < 1 - 1e-7], caps[z < 1 - 1e-7], rtol=1e-9)
    assert not beta[z > 1 + 1e-7].any()
    np.testing.assert_allclose((beta * y) @ (X / np.abs(X).max(axis=0)), 0, atol=1e-12)
    assert beta @ y == pytest.approx(0, abs=1e-12)
    # Strong duality: what the multipliers prove is their sum.
    assert model.certificate.lower_bound == pytest.approx(beta.sum(), rel=1e-12)


def test_weights_are_repetitions():
    X, y, counts = sample(m=80)
    weighted = mdlearn.fit("rlp", X, y, sample_weight=counts, tol=1e-11)
    repeated = mdlearn.fit("rlp", np.repeat(X, counts, axis=0), np.repeat(y, counts), tol=1e-11)
    half = mdlearn.fit("rlp", X, y, sample_weight=0.5 * counts, tol=1e-11)
    # The optimum is one vertex here, so the coefficients are the same, too.
    for other in (repeated, half):
        assert other.certificate.objective == pytest.approx(weighted.certificate.objective, rel=1e-11)
        np.testing.assert_allclose(other.decision_function(X), weighted.decision_function(X), atol=1e-8)


@pytest.mark.parametrize("make", [sp.csr_matrix, np.asfortranarray, lambda X: X.astype(np.float32)])
def test_kinds_of_rows(make):
    X, y, counts = sample()
    X = np.round(X)
    model = mdlearn.fit("rlp", make(X), y, sample_weight=counts, tol=1e-6)
    assert model.certificate.converged and model.coef_.dtype == make(X).dtype
    assert model.certificate.objective == pytest.approx(printed_program(X, y, counts), rel=2e-6)


def test_ends():
    """Separable data cost nothing; a column of zeros holds nothing; several classes are so many programs."""
    X = np.array([[-2.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    model = mdlearn.fit("rlp", X, [0, 0, 1, 1])
    assert model.certificate.objective == 0.0 == model.certificate.lower_bound
    assert model.score(X, [0, 0, 1, 1]) == 1.0
    A, _, _ = sample()
    y = np.arange(60) % 3
    model = mdlearn.fit("rlp", A, y, tol=1e-9)
    parts = [printed_program(A, np.where(y == k, 1, -1), np.ones(60)) for k in range(3)]
    assert [p.objective for p in model.certificate.parts] == pytest.approx(parts, rel=1e-8)
    side_by_side = mdlearn.fit("rlp", A, y, tol=1e-9, n_threads=2)
    np.testing.assert_array_equal(side_by_side.coef_, model.coef_)


class Tilted(Objective):
    """Hinges of both sides and a mean, without a squared norm: a linear program that may be unbounded."""

    name = "tilted"
    summary = "band with a mean"
    formula = "c sum [max(0, 1 - z) + 1/2 max(0, z - 2)] - a mean(z)"
    parameters: ClassVar = {"a": Parameter(0.3, "weight of the mean")}
    default_bias = "free"

    def terms(self, params, total):
        loss = (HingeTerm(1.0 / total), HingeTerm(0.5 / total, side=-1, threshold=2.0))
        return Terms(mean=params["a"], loss=loss, ridge=0.0)


def test_terms_of_both_sides_and_a_mean():
    X, y, counts = sample()
    model = mdlearn.fit(Tilted, X, y, sample_weight=counts, tol=1e-10)
    assert model.solver == "linprog" and model.certificate.converged

    def at(coef, b):
        z, c = y * (X @ coef + b), counts / counts.sum()
        return c @ np.maximum(0, 1 - z) + 0.5 * c @ np.maximum(0, z - 2) - 0.3 * c @ z

    best = at(model.coef_[0], model.intercept_[0])
    assert model.certificate.objective == pytest.approx(best, rel=1e-10)
    rng = np.random.default_rng(0)
    for size in np.logspace(-6, 1, 60):
        w = model.coef_[0] + size * rng.standard_normal(4) / np.abs(X).max(axis=0)
        assert at(w, model.intercept_[0] + size * rng.standard_normal()) >= model.certificate.lower_bound - 1e-12
    with pytest.raises(ValueError, match="without a squared norm the objective is unbounded below"):
        mdlearn.fit(Tilted, X, y, a=20.0, sample_weight=counts)


def test_what_is_refused():
    X, y, _ = sample()
    with pytest.raises(ValueError, match="objective 'rlp' is linear; got kernel='rbf'"):
        mdlearn.fit("rlp", X, y, kernel="rbf")
    with pytest.raises(ValueError, match=r"cannot take this problem: its linear program has no squared norm"):
        mdlearn.fit("svm", X, y, solver="linprog")
    with pytest.raises(ValueError, match=r"kind 'squared'"):
        mdlearn.fit("lsvm", X, y, solver="linprog")
    able = [name for name, cls in registry().solvers.items() if cls.exact and not cls.needs_ridge]
    assert "linprog" in able
    with pytest.raises(ValueError, match=r"'cd' cannot take this problem: it needs the squared norm"):
        mdlearn.fit("rlp", X, y, solver="cd")
    with pytest.raises(ValueError, match=r"'interior' cannot take this problem: it needs the squared norm"):
        mdlearn.fit("rlp", sp.csr_matrix(X), y, solver="interior")
    with pytest.raises(ValueError, match=r"'interior' cannot take this problem: it needs the squared norm"):
        mdlearn.fit(Tilted, X, y, solver="interior")
    with pytest.raises(ValueError, match="'rlp' has no parameter 'C'"):
        mdlearn.fit("rlp", X, y, C=1.0)


# ---------------------------------------------------------------- one long call in a thread


def test_a_call_gets_more_and_more_time_while_somebody_waits():
    given, late, done = (
        [],
        types.SimpleNamespace(status=highs_thread.LATE),
        types.SimpleNamespace(status=engine.STATUS_SOLVED),
    )

    def call(seconds):
        given.append(seconds)
        return late if len(given) < 3 else done

    work = highs_thread.run_highs_in_thread(call)
    with pytest.raises(StopIteration) as caught:
        while True:
            next(work)
    assert caught.value.value is done
    assert given == [highs_thread.FIRST_CALL_SECONDS * highs_thread.CALL_GROWTH**i for i in range(3)]


def test_a_call_that_nobody_waits_for_is_not_begun_again():
    begun, go, ended, given = threading.Event(), threading.Event(), threading.Event(), []

    def call(seconds):
        given.append(seconds)
        begun.set()
        go.wait(30)
        threading.Timer(0.2, ended.set).start()
        return types.SimpleNamespace(status=highs_thread.LATE)

    work = highs_thread.run_highs_in_thread(call)
    next(work)  # control comes back while the call runs
    assert begun.wait(30)
    next(work)
    (thread,) = [t for t in threading.enumerate() if t.name == "mdlearn-linprog"]
    assert thread.daemon
    work.close()
    go.set()
    thread.join(30)
    assert not thread.is_alive() and len(given) == 1


def test_an_error_in_the_thread_is_raised_where_it_can_be_caught():
    def call(seconds):
        raise ZeroDivisionError("inside")

    with pytest.raises(ZeroDivisionError, match="inside"):
        list(highs_thread.run_highs_in_thread(call))


def test_a_time_limit_ends_the_fit_not_the_proof(monkeypatch):
    """The call is still running when the time is over: the point w = 0 is left, with the bound 0 of a loss."""
    go = threading.Event()
    monkeypatch.setattr(engine.DualLinearProgram, "call", lambda self, method, seconds: go.wait(30))
    X, y, _ = sample()
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit reached"):
        model = mdlearn.fit("rlp", X, y, time_limit=0.1)
    go.set()
    told = model.certificate
    assert told.lower_bound == 0.0 and 0 < told.objective <= 1.0 and told.gap == 1.0 and not told.converged


def test_the_simplex_method_where_the_interior_point_fails(monkeypatch):
    X, y, counts = sample()
    call, methods = engine.DualLinearProgram.call, []

    def failing(self, method, seconds):
        methods.append(method)
        return types.SimpleNamespace(status=4) if method == engine.METHODS[0] else call(self, method, seconds)

    monkeypatch.setattr(engine.DualLinearProgram, "call", failing)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = mdlearn.fit("rlp", X, y, sample_weight=counts, tol=1e-10)
    assert methods == list(engine.METHODS) and model.certificate.converged
    monkeypatch.setattr(engine.DualLinearProgram, "call", lambda self, method, seconds: types.SimpleNamespace(status=4))
    with pytest.warns(mdlearn.ConvergenceWarning, match=r"\(it handed in no point\); use another solver$"):
        assert not mdlearn.fit("rlp", X, y, solver="linprog").certificate.converged
    assert mdlearn.fit("rlp", X, y).certificate.converged, "interior points go on"


def test_repeated_rows_on_which_the_crossover_goes_round_in_circles():
    """HiGHS cleans up a vertex of these repeated rows for ever; the simplex method takes its place."""
    rng = np.random.default_rng(18)
    X = rng.standard_normal((16, 9)).astype(np.float32) + (1e3 * rng.standard_normal(9)).astype(np.float32)
    y, counts = np.arange(16) % 2, rng.integers(1, 8, 16)
    weighted = mdlearn.fit("rlp", X, y, sample_weight=counts, bias="free", time_limit=30)
    repeated = mdlearn.fit("rlp", np.repeat(X, counts, axis=0), np.repeat(y, counts), bias="free", time_limit=30)
    assert weighted.certificate.converged and repeated.certificate.converged


LEFT_ALONE = """
import sys, time
from mdlearn.solvers.common.highs_thread import run_highs_in_thread

def call(seconds):
    time.sleep({seconds})
    print("ended", flush=True)

work = run_highs_in_thread(call)
next(work)
work.close()
"""


@pytest.mark.parametrize(("seconds", "printed"), [(0.3, "ended\n"), (60, "")])
def test_an_exit_waits_for_a_call_that_nobody_waits_for_but_not_long(seconds, printed):
    """One that ended while the interpreter was torn down aborted the process."""
    code = LEFT_ALONE.format(seconds=seconds)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout) == (0, printed)


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(6))
def test_a_linear_program_over_far_rows(seed):
    """HiGHS ended far from the optimum, or called a loss without a mean unbounded."""
    rng = np.random.default_rng(seed)
    X = 8.4e5 + 1e-3 * rng.standard_normal((14, 1))
    y = np.where(X[:, 0] - 8.4e5 + 1e-3 * rng.standard_normal(14) > 0, 1, -1)
    model = mdlearn.fit("rlp", X, y, tol=1e-12)
    near = mdlearn.fit("rlp", X - 8.4e5, y, tol=1e-12)
    assert model.certificate.gap < 1e-4
    assert model.certificate.objective == pytest.approx(near.certificate.objective, rel=1e-4)


def test_a_constant_column_is_nothing_beside_a_bias():
    """Less its mean, rounding was left of it, and coefficients of 1e21 were what paid for that."""
    X, y, counts = sample()
    model = mdlearn.fit("rlp", np.c_[X, np.full(len(y), 1e-6)], y, bias="free", sample_weight=counts)
    plain = mdlearn.fit("rlp", X, y, bias="free", sample_weight=counts)
    assert model.certificate.converged and abs(model.coef_).max() < 1e3
    assert model.certificate.objective == pytest.approx(plain.certificate.objective, rel=1e-9)


def _dependent(X, rng):
    return np.hstack([X, X[:, :20], X @ rng.standard_normal((X.shape[1], 30)), np.zeros((X.shape[0], 1))])


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda X, rng: X,
        lambda X, rng: np.round(X),
        lambda X, rng: X * 10.0 ** rng.uniform(-6, 6, X.shape[1]),
        lambda X, rng: np.asfortranarray(X, dtype=np.float32),
        _dependent,
    ],
    ids=["plain", "equal rows", "columns of all sizes", "float32 by columns", "dependent columns"],
)
@pytest.mark.parametrize("bias", ["none", "free"])
def test_large_dense_programs(change, bias):
    """By interior points: bound and loss are those of HiGHS on the same program."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((4000, 60))
    y = np.where(X @ rng.standard_normal(60) + 5.0 * rng.standard_normal(4000) > 0, 1, -1)
    counts = rng.integers(1, 4, 4000)
    X = change(X, rng)
    model = mdlearn.fit("rlp", X, y, sample_weight=counts, bias=bias, tol=1e-6)
    other = mdlearn.fit("rlp", X, y, sample_weight=counts, bias=bias, tol=1e-6, solver="linprog")
    told = model.certificate
    assert model.solver == "interior" and model.n_iter > 1 and told.converged
    assert told.objective == pytest.approx(value(model, X.astype(float), y, counts), rel=1e-5)
    assert told.lower_bound <= other.certificate.objective * (1 + 1e-9)
    assert other.certificate.lower_bound <= told.objective * (1 + 1e-9)


def test_a_path_goes_on_where_multipliers_meet_their_condition_early():
    """A whole step meets it; what is left of the way is complementarity alone, and stood for a standstill."""
    rng = np.random.default_rng(1)
    X = (60.0 + 20.0 * rng.standard_normal((2000, 3))).round()
    y = np.where(X[:, 0] - 60.0 + 20.0 * rng.standard_normal(2000) > 30.0, 1, -1)
    found = mdlearn.fit("rlp", X, y, tol=1e-8, solver="interior").certificate
    other = mdlearn.fit("rlp", X, y, tol=1e-8, solver="linprog").certificate
    assert found.converged and found.objective == pytest.approx(other.objective, rel=1e-7)


def test_large_programs_of_rows_that_can_be_separated():
    """The optimum is 0, also with fewer rows than columns; coefficients have the size of the margins they give."""
    rng = np.random.default_rng(4)
    for m, d in ((400, 800), (4000, 60)):
        X = rng.standard_normal((m, d))
        y = np.where(X @ rng.standard_normal(d) > 0, 1, -1)
        X += 0.05 * y[:, None] * rng.standard_normal(d)
        model = mdlearn.fit("rlp", X, y, tol=1e-6)
        if m < d:
            assert model.certificate.objective == 0.0 == model.certificate.lower_bound
            assert np.abs(model.coef_).max() < 10.0
        assert model.solver == "interior" and model.certificate.converged


@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("programs", [8, 0])
def test_a_program_whose_way_is_too_long_for_interior_points(programs, bias, monkeypatch):
    """Steps end without a bound: the simplex method decides what they left undecided, else HiGHS goes on with all."""
    monkeypatch.setattr("mdlearn.solvers.interior_point.central_path.NEAR_GAP", -1.0)
    monkeypatch.setattr("mdlearn.solvers.interior_point.central_path.AT_END", 1e-4)
    monkeypatch.setattr("mdlearn.solvers.interior_point.solver.MOST_PROGRAMS", programs)
    asked, call = [], engine.DualLinearProgram.call
    monkeypatch.setattr(
        engine.DualLinearProgram, "call", lambda self, *arguments: (asked.append(1), call(self, *arguments))[1]
    )
    rng = np.random.default_rng(5)
    X = 100.0 + rng.standard_normal((4000, 60))
    y = np.where(X[:, 0] - 100.0 + rng.standard_normal(4000) > 0, 1, -1)
    counts = rng.integers(1, 4, 4000)
    model = mdlearn.fit("rlp", X, y, sample_weight=counts, bias=bias, tol=1e-9)
    assert model.certificate.converged and model.certificate.lower_bound > 0
    assert bool(asked) == (programs == 0)
