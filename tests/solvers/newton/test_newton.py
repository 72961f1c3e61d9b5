"""The newton engine on squared hinges: optima, the line search, interrupts, memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from newton_reference import BIASES, Band, features_of, form_in_name_only, minimum, printed, sample

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.objectives.base import Terms
from mdlearn.plugins.registry import registry


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("v, a", [(0.0, 0.0), (0.0, 2.0), (30.0, 0.0), (1000.0, 5.0)])
def test_variance_mean_and_both_sides(kernel, bias, v, a):
    X, y = sample(70, seed=1)
    weight = np.random.default_rng(2).uniform(0.2, 3.0, 70)
    given = {"C": 4.0, "D": 1.5, "v": v, "a": a}
    model = mdlearn.fit(Band, X, y, bias=bias, kernel=kernel, sample_weight=weight, tol=1e-12, **given)
    assert model.solver == "newton" and model.certificate.gap <= 1e-12
    F = features_of(X, kernel, weight)
    best, _ = minimum(F, y, bias, [(4.0, 1, 1.0), (1.5, -1, 2.0)], v, a, weight)
    assert model.certificate.objective == pytest.approx(best, rel=1e-10)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("objective", ["lsvm", Band])
def test_engines_agree(objective, kernel, bias):
    X, y = sample(80, 5, seed=2)
    settings = {"kernel": kernel, "bias": bias, "tol": 1e-11}
    model = mdlearn.fit(objective, X, y, solver="newton", **settings)
    others = ["interior"] if bias == "free" else ["interior", "cd"]
    for solver in others:
        other = mdlearn.fit(objective, X, y, solver=solver, **settings)
        assert other.solver == solver
        assert model.certificate.objective == pytest.approx(other.certificate.objective, rel=1e-10)


def signed_rows(X, y):
    return y[:, None] * np.hstack([X, np.ones((len(y), 1))])


def full_steps(H, nu, steps=40):
    """Newton's full step from v = 0: (some step raised the objective, a set of active rows came back)."""
    n = H.shape[1]
    v, seen, raised = np.zeros(n), set(), False

    def value(v):
        return 0.5 * v @ v + 0.5 * nu * (np.maximum(0, 1 - H @ v) ** 2).sum()

    for _ in range(steps):
        active = H @ v < 1
        if active.tobytes() in seen:
            return raised, True
        seen.add(active.tobytes())
        stack = np.vstack([np.sqrt(nu) * H[active], np.eye(n)])
        new = np.linalg.lstsq(stack, np.append(np.full(active.sum(), np.sqrt(nu)), np.zeros(n)), rcond=None)[0]
        raised |= value(new) > value(v) * (1 + 1e-9)
        if np.array_equal(H @ new < 1, active):
            return raised, False
        v = new
    return raised, False


def badly_scaled(seed):
    rng = np.random.default_rng(seed)
    m, d = int(rng.integers(4, 12)), int(rng.integers(2, 5))
    X = rng.standard_normal((m, d)) * 10.0 ** rng.uniform(-2, 2, d) * 10.0 ** rng.uniform(-1, 1, (m, 1))
    y = np.where(rng.random(m) < 0.5, 1, -1)
    y[:2] = 1, -1
    return X, y, 10.0 ** rng.uniform(-2, 4)


def test_it_converges_where_the_full_step_cycles():
    cycled = rose = 0
    for seed in range(600):
        X, y, nu = badly_scaled(seed)
        raised, cycle = full_steps(signed_rows(X, y), nu)
        if not (raised or cycle):
            continue
        cycled, rose = cycled + cycle, rose + raised
        model = mdlearn.fit("lsvm", X, y, nu=nu, tol=1e-12, solver="newton")
        values = [state.objective for state in model.history]
        assert model.certificate.gap <= 1e-12 and model.n_iter <= 25, seed
        assert all(b <= a + 1e-12 * abs(a) for a, b in itertools.pairwise(values)), seed
        primal, dual, *_ = printed(model, X, y, "linear", nu, "regularized")
        assert primal - dual <= 1e-9 * max(primal, 0.005 * nu * len(y)), seed
    assert cycled >= 3 and rose >= 10, "the problems no longer show why the line search is needed"


def test_a_step_is_the_minimum_along_its_line():
    """Every iterate is no worse than any point of the line through it and the one before."""
    problems = map(badly_scaled, range(600))
    X, y, nu = next((X, y, nu) for X, y, nu in problems if full_steps(signed_rows(X, y), nu)[1])
    column = Column(y.astype(float), np.ones(len(y)), 0.0, 0.0, (HingeTerm(0.5 * nu, power=2),))
    form = MarginForm(LinearFeatures(DenseRows(X)), (column,), "regularized")
    engine = registry().solvers["newton"]()
    steps = engine.iterate(form, column, None, {}, np.random.default_rng(0))
    points = [np.append(r.point.coef, r.point.intercept) for r in steps if r is not None]
    H = signed_rows(X, y)

    def value(v):
        return 0.5 * v @ v + 0.5 * nu * (np.maximum(0, 1 - H @ v) ** 2).sum()

    assert len(points) > 2
    for a, b in itertools.pairwise(points):
        along = [value(a + t * (b - a)) for t in (0.0, 0.5, 0.9, 1.1, 1.5, 2.0)]
        assert value(b) <= min(along) * (1 + 1e-12)


def test_rows_on_their_threshold_at_the_start():
    """At w = 0 no row is active; the mean sends many past the threshold at once, and the first step must see them."""
    X, y = sample(40, 3, seed=6)

    class Cap(Band):
        name = "cap"

        def terms(self, params, total):
            return Terms(0.0, 20.0, (HingeTerm(5.0, -1, 0.0, 2),))

    for bias in ("none", "regularized"):
        model = mdlearn.fit(Cap, X, y, bias=bias, tol=1e-12, solver="newton")
        best, _ = minimum(X, y, bias, [(5.0, -1, 0.0)], 0.0, 20.0)
        assert model.certificate.objective == pytest.approx(best, rel=1e-11)
        values = [state.objective for state in model.history]
        assert min(values) < 0 and all(b <= a for a, b in itertools.pairwise(values[:3]))
        rows = X if bias == "none" else np.hstack([X, np.ones((40, 1))])
        step = 20.0 / 40 * (y[:, None] * rows).sum(axis=0)
        z = y * (rows @ step)
        # The first step is the minimum along the mean row.
        t = (step @ step) / (step @ step + 10.0 * (np.maximum(z, 0.0) ** 2).sum())
        first = -0.5 * t * (step @ step)
        assert any(value == pytest.approx(first, rel=1e-9) for value in values[1:3])


# ---------------------------------------------------------------- interrupts and memory


def test_control_comes_back_while_it_factors():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1500, 900)), np.where(rng.random(1500) < 0.5, 1.0, -1.0)
    column = Column(y, np.ones(1500), 0.0, 0.0, (HingeTerm(0.5, power=2),))
    form = MarginForm(LinearFeatures(DenseRows(X)), (column,), "regularized")
    engine = registry().solvers["newton"]()
    steps = engine.iterate(form, column, None, {}, rng)
    kinds = []
    for report in steps:
        kinds.append(report is not None)
        if sum(kinds) == 3:
            break
    first, second = np.flatnonzero(kinds)[:2]
    assert second - first > 4, "one step hands control back after pieces of work"


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_stopped_early_it_tells_the_truth(kernel):
    X, y = sample(100, seed=3)
    settings = {"nu": 1e3, "kernel": kernel, "tol": 1e-12, "solver": "newton"}
    with pytest.warns(mdlearn.ConvergenceWarning, match="stopped by the callback"):
        model = mdlearn.fit("lsvm", X, y, callback=lambda state: state.iteration == 2, **settings)
    best = mdlearn.fit("lsvm", X, y, **settings).certificate
    primal, *_ = printed(model, X, y, kernel, 1e3, "regularized")
    assert model.certificate.objective == pytest.approx(primal, rel=1e-9) and not model.certificate.converged
    assert model.certificate.lower_bound <= best.objective <= model.certificate.objective

    def interrupt(state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mdlearn.fit("lsvm", X, y, callback=interrupt, **settings)
    again = mdlearn.fit("lsvm", X, y, **settings)
    assert again.certificate == best


@pytest.mark.parametrize("at_once", [1, 4])
@pytest.mark.parametrize("m, d, kernel", [(50, 10**6, "rbf"), (10**6, 50, "rbf"), (10**6, 10**6, "linear")])
def test_memory_is_asked_for(m, d, kernel, at_once):
    form, engine = form_in_name_only(m, d, kernel), registry().solvers["newton"]()
    if m == 50:
        engine.check_memory(form, at_once)
    else:
        with pytest.raises(mdlearn.InsufficientMemory, match="use "):
            engine.check_memory(form, at_once)
