"""The hybrid engine on logistic losses whose matrix of second derivatives is dear: factors serve several steps."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hybrid_cases import Logistic, optimum, sample

import mdlearn
from mdlearn.forms.certificates import representer
from mdlearn.solvers.hybrid import narrow, newton_start, smooth
from mdlearn.solvers.hybrid.loss_column import LossColumn
from mdlearn.solvers.systems.weighted_gram import RunningWeightedGram

BIASES = ["none", "regularized", "free"]


@pytest.fixture(autouse=True)
def rows_as_they_are(monkeypatch):
    """Dense rows of these sizes would else be kept column by column."""
    monkeypatch.setattr(narrow, "ITERATED_ENTRIES", 0)


@pytest.fixture
def counted(monkeypatch):
    """Matrices, and steps, by the number of their rows; a matrix is of those with a weight."""
    matrices, steps, one = [], [], smooth.SmoothNewton._full_step
    go = RunningWeightedGram.to
    monkeypatch.setattr(
        RunningWeightedGram, "to", lambda self, D, *more: (matrices.append(np.count_nonzero(D)), go(self, D, *more))[1]
    )
    monkeypatch.setattr(
        smooth.SmoothNewton,
        "_full_step",
        lambda self, *given: (steps.append(self.problem.n_rows), one(self, *given))[1],
    )
    return matrices, steps


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("a", [0.0, 2.0])
def test_a_factor_serves_several_steps(bias, a, counted):
    """Fewer than half of the steps make a matrix, and the optimum is that of code that shares nothing."""
    X, y = sample(1200, 120, noise=4.0)
    model = mdlearn.fit(Logistic, X, y, C=0.05, a=a, bias=bias, solver="hybrid", tol=1e-9)
    value, f = optimum("logistic", X, y, bias, C=0.05, a=a)
    matrices, steps = counted
    assert model.certificate.converged and 2 * len(matrices) < len(steps)
    assert model.certificate.lower_bound <= value * (1 + 1e-12)
    assert model.certificate.objective == pytest.approx(value, rel=2e-9)
    assert model.decision_function(X) == pytest.approx(f, abs=1e-3)


@pytest.mark.parametrize("bias", BIASES)
def test_multipliers_of_every_step_by_a_factor_make_its_coefficients(bias, monkeypatch):
    """Steps by the factor of a sample lead to coefficients that are sums of rows: R' towards, for any iterations."""
    X, y = sample(6000, 80, noise=4.0)
    seen, direction = [], smooth.SmoothNewton._direction

    def noted(self, slope):
        made = yield from direction(self, slope)
        held = self.ridge > 0
        seen.append((made, (self.w + made.step)[held], self.problem.adjoint(made.towards)[held]))
        return made

    monkeypatch.setattr(smooth.SmoothNewton, "_direction", noted)
    model = mdlearn.fit(Logistic, X, y, C=0.5, bias=bias, solver="hybrid", tol=1e-7)
    assert model.certificate.converged and any(made.iterations > 1 for made, _, _ in seen)
    for made, w, sums in seen:
        assert made.made_of_rows
        np.testing.assert_allclose(sums, w, rtol=0, atol=1e-9 * np.abs(w).max())


@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_dual_coefficients_after_steps_by_a_factor_are_known(tol, monkeypatch):
    """Nobody looks for row weights that make the coefficients: the steps say them."""
    X, y = sample(6000, 100, noise=4.0)
    searches, search = [], representer._craig_steps_to_representer
    monkeypatch.setattr(
        representer, "_craig_steps_to_representer", lambda *given: (searches.append(1), search(*given))[1]
    )
    model = mdlearn.fit(Logistic, X, y, C=0.5, bias="free", solver="hybrid", tol=tol)
    assert model.certificate.converged and not searches


def test_a_short_step_is_followed_by_a_new_factor(counted, monkeypatch):
    """Where the factor of a sample leads a hundredth of the way, the next step is made with the present one."""
    X, y = sample(6000, 80, noise=4.0)
    find, evaluated = smooth.logistic.minimum, []

    def short(*given):
        if len(given[0]) < 6000:
            return find(*given)
        evaluated.append(counted[0].count(6000))
        return 0.01 if len(evaluated) == 1 else find(*given)

    monkeypatch.setattr(smooth, "FULL_STEP", -1.0)
    monkeypatch.setattr(smooth, "logistic", SimpleNamespace(**{**vars(smooth.logistic), "minimum": short}))
    model = mdlearn.fit(Logistic, X, y, C=0.5, solver="hybrid", tol=1e-4)
    assert model.certificate.converged and evaluated[:2] == [0, 1]


@pytest.mark.parametrize("bias", BIASES)
def test_steps_on_all_rows_begin_with_the_factor_of_a_sample(bias, counted):
    """Of 6,000 rows the first two steps are made without a matrix; the sample is one of a third of them at most."""
    X, y = sample(6000, 100, noise=4.0)
    model = mdlearn.fit(Logistic, X, y, C=0.05, bias=bias, solver="hybrid", tol=1e-2)
    matrices, steps = counted
    whole = [k for k, rows in enumerate(steps) if rows == 6000]
    assert model.certificate.converged and 0 < len(whole) <= 3 and steps[0] <= 2000
    assert matrices.count(6000) == max(0, len(whole) - 2)


def test_the_factor_of_a_sample_is_not_of_the_rows_that_it_began_with(monkeypatch):
    """They have fitted their noise, and bend less; those of the factor stand for the bends of all rows."""
    X, y = sample(6000, 80, noise=4.0)
    samples, factors, take, renew = [], [], LossColumn.sample, smooth.SmoothNewton.renew

    def noted(self, *given):
        yield from renew(self, *given)
        if self.problem.n_rows == 6000:
            factors.append((self.factor.bends, self.bends.copy(), self.fresh))

    monkeypatch.setattr(LossColumn, "sample", lambda self, step: (samples.append(step), take(self, step))[1])
    monkeypatch.setattr(smooth.SmoothNewton, "renew", noted)
    assert mdlearn.fit(Logistic, X, y, C=0.5, solver="hybrid", tol=1e-2).certificate.converged
    chosen, bends, fresh = factors[0]
    assert not chosen[:: samples[-1]].any() and 0 < np.count_nonzero(chosen) <= 2000 and not fresh
    assert chosen.sum() == pytest.approx(bends.sum(), rel=1e-12)
    factors.clear()
    assert mdlearn.fit(Logistic, sp.csr_matrix(X), y, C=5.0, solver="hybrid", tol=1e-2).certificate.converged
    assert factors[0][2]  # steep losses over CSR rows need the exact one soon


@pytest.mark.parametrize("fall, taken", [(-np.inf, 4), (0.05, 3), (0.7, 2)])
def test_steps_for_a_start_end_where_the_objective_hardly_falls(fall, taken):
    """The bound of squared hinges and logistic losses says so only steps later."""
    values = iter([50.0, 30.0, 29.5, 29.4])
    newton = SimpleNamespace(objective=100.0, gap=1e6)

    def steps():
        for value in values:
            newton.objective = value
            yield 1

    newton.steps = steps
    for _ in newton_start.newton_steps_for_start(newton, 1e-2, fall):
        pass
    assert 4 - len(list(values)) == taken


@pytest.mark.parametrize("full", [smooth.FULL_STEP, -1.0])
def test_columns_share_the_factor_at_zero(full, counted, monkeypatch):
    """Second derivatives at w = 0 do not depend on the signs: one column makes the matrix, and all take it.

    Alone, each has the same bits, also where no step has the length 1.
    """
    monkeypatch.setattr(smooth, "FULL_STEP", full)
    monkeypatch.setattr(smooth, "OTHER_STEP", smooth.OTHER_STEP if full > 0 else 1e-6)
    X, _ = sample(1200, 120, noise=4.0)
    y = np.argmax(X[:, :4] + np.random.default_rng(1).standard_normal((1200, 4)), axis=1)
    together = mdlearn.fit(Logistic, X, y, C=0.05, solver="hybrid", tol=1e-6)
    made = len(counted[0])
    counted[0].clear()
    alone = [mdlearn.fit(Logistic, X, np.where(y == k, 1, 0), C=0.05, solver="hybrid", tol=1e-6) for k in range(4)]
    assert made == len(counted[0]) - 3
    for k, one in enumerate(alone):
        assert np.array_equal(together.coef_[k], np.ravel(one.coef_))


@pytest.mark.parametrize("bias", BIASES)
def test_coefficients_are_those_of_their_row_weights(bias, monkeypatch):
    """On long rows, steps of other lengths than 1 add up to rounding: what is handed in is its sum, to the bit."""
    X, y = sample(1200, 120, noise=4.0)
    handed, report = [], smooth.SmoothNewton.report

    def noted(newton):
        found = report(newton)
        handed.append((found.point.coef, newton.problem.adjoint(newton.problem.y * found.point.alpha)))
        return found

    monkeypatch.setattr(smooth.SmoothNewton, "report", noted)
    model = mdlearn.fit(Logistic, 100.0 * X, y, C=1.0, bias=bias, solver="hybrid", tol=1e-4)
    assert model.certificate.converged and handed
    for coef, made in handed:
        assert np.array_equal(coef, made[: coef.shape[0]])


def test_a_step_with_an_old_factor_that_leads_nowhere_is_made_with_a_new_one(counted, monkeypatch):
    """The engine goes on with the present second derivatives before it gives up."""
    X, y = sample(1200, 120, noise=4.0)
    find, made, failed = smooth.logistic.minimum, [], []

    def lost(*given):
        made.append(len(counted[0]))
        old = len(made) > 1 and made[-1] == made[-2]
        if old and not failed:
            failed.append(made[-1])
            return np.inf
        return find(*given)

    monkeypatch.setattr(smooth, "FULL_STEP", -1.0)
    monkeypatch.setattr(smooth, "logistic", SimpleNamespace(**{**vars(smooth.logistic), "minimum": lost}))
    model = mdlearn.fit(Logistic, X, y, C=0.05, solver="hybrid", tol=1e-8)
    assert model.certificate.converged and failed and made[-1] > failed[0]


@pytest.mark.parametrize("loss", ["lsvm", "l2lr"])
@pytest.mark.parametrize(("m", "first"), [(8000, 16), (4000, 8)])
def test_first_sample(loss, m, first, monkeypatch):
    """16 rows per column, or 8 where 16 would be half of all."""
    monkeypatch.setattr(narrow, "SQUARED_COLUMNS", 0)
    X, y = sample(m, 90, noise=2.0)
    sizes, taken = [], LossColumn.sample

    def noted(self, step):
        found = taken(self, step)
        sizes.append(found.n_rows)
        return found

    monkeypatch.setattr(LossColumn, "sample", noted)
    monkeypatch.setattr(newton_start, "newton_start_beats_sweeps", lambda problem: True)
    mdlearn.fit(loss, X, y, solver="hybrid", tol=1e-3)
    assert first * 91 <= sizes[0] <= 2 * first * 91
