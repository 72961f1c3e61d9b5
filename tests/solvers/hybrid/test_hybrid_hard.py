"""The hybrid engine on problems that are hard for it: rows that are nearly separable, steep losses, strong means."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest
from hybrid_cases import OBJECTIVES, Logistic, sample

import mdlearn
from mdlearn.solvers.hybrid import loss_column, narrow, newton_start, smooth, smooth_steps


def noise(m, d, seed=0):
    """As many columns as tell nearly all rows apart, and labels that are half noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    return X, np.where(X @ rng.standard_normal(d) / np.sqrt(d) + rng.standard_normal(m) > 0, 1, -1)


@pytest.mark.parametrize("m, d, C", [(200, 600, 100.0), (600, 300, 1.0), (600, 300, 100.0), (600, 1500, 100.0)])
@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_many_steps_before_the_gap_falls(loss, m, d, C):
    X, y = noise(m, d)
    model = mdlearn.fit(OBJECTIVES[loss], X, y, C=C, solver="hybrid", tol=1e-8)
    other = mdlearn.fit(OBJECTIVES[loss], X, y, C=C, solver="interior", tol=1e-9)
    assert model.certificate.converged
    top = max(other.certificate.objective, 0.01 * C * m)
    assert abs(model.certificate.objective - other.certificate.objective) <= 2e-8 * top


@pytest.mark.parametrize("loss", ["hinge", "squared"])
@pytest.mark.parametrize("tol", [1e-2, 1e-8])
def test_coefficients_of_steep_losses_are_those_of_their_dual_coefficients(loss, tol):
    for seed in range(4):
        X, y = sample(120, 200, seed, 1.0)
        X = X + 2.0
        model = mdlearn.fit(OBJECTIVES[loss], X, y, C=1e3, bias="none", solver="hybrid", tol=tol)
        alpha = model.dual_coef_[0]
        assert (np.abs(X.T @ alpha - model.coef_[0]) <= 1e-9 * (np.abs(alpha) @ np.abs(X))).all(), seed


def test_a_mean_that_pulls_harder_than_the_loss():
    """Multipliers of the first steps are all at their bounds."""
    X, y = sample(60, 3, 2, 0.3)
    given = {"C": 1e-3, "a": 1.0, "bias": "free", "tol": 1e-8}
    model = mdlearn.fit(Logistic, X + 3.0, y, solver="hybrid", **given)
    other = mdlearn.fit(Logistic, X + 3.0, y, solver="newton", **given)
    assert model.certificate.converged and other.certificate.converged
    assert model.certificate.objective == pytest.approx(other.certificate.objective, rel=1e-7)


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_rows_beyond_its_digits_go_to_another_engine(loss):
    """C |x|^2 counts, whether C is large or rows are long: up to 1e12 the gap is reached, beyond nobody tries."""
    X, y = sample(200, 5, 3, 0.5)
    long = float(np.square(X).sum(axis=1).max())
    model = mdlearn.fit(OBJECTIVES[loss], X * np.sqrt(1e11 / long), y, C=1.0)
    assert model.solver == "hybrid" and model.certificate.converged
    model = mdlearn.fit(OBJECTIVES[loss], X * np.sqrt(1e14 / long), y, C=1.0)
    assert model.solver != "hybrid" and model.certificate.converged
    with pytest.raises(ValueError, match="beyond 1e\\+12"):
        mdlearn.fit(OBJECTIVES[loss], X * np.sqrt(1e14 / long), y, C=1.0, solver="hybrid")


def test_a_step_that_leads_to_no_numbers_is_not_taken(monkeypatch):
    """Loss and bound of a step can be finite where its coefficients are not: the answer is the place before."""
    monkeypatch.setattr(loss_column, "SMOOTH_NARROW_COLUMNS", 0)
    X, y = noise(400, 70)
    step, calls = smooth.logistic.newton_step, []

    def lost(*given):
        found = step(*given)
        calls.append(found)
        if len(calls) == 3:
            given[6][:] = np.nan
        return found

    monkeypatch.setattr(smooth, "logistic", SimpleNamespace(**{**vars(smooth.logistic), "newton_step": lost}))
    with pytest.warns(mdlearn.ConvergenceWarning):
        model = mdlearn.fit(Logistic, X, y, C=1e3, solver="hybrid", tol=1e-14)
    assert len(calls) == 3 and np.isfinite(model.coef_).all() and model.certificate.objective < calls[0][0]


@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_squared_hinges_that_are_nearly_a_hard_margin(bias, monkeypatch):
    """Weaker losses lead to the optimum: the one of another engine."""
    X, y = noise(1500, 120)
    X[np.random.default_rng(3).random(X.shape) < 0.7] = 0.0
    X *= 100.0
    through, losses = [], newton_start.newton_start_losses

    def weaker(problem):
        found = losses(problem)
        through.extend(one.column.terms[0].weight / problem.column.terms[0].weight for one in found)
        return found

    monkeypatch.setattr(newton_start, "newton_start_losses", weaker)
    model = mdlearn.fit("lsvm", X, y, solver="hybrid", bias=bias, tol=1e-8)
    other = mdlearn.fit("lsvm", X, y, solver="newton", bias=bias, tol=1e-10)
    assert through == pytest.approx(newton_start.WEAKER) and model.certificate.converged
    assert model.certificate.objective == pytest.approx(other.certificate.objective, rel=2e-8)


def test_places_on_the_way_through_weaker_losses_are_offered(monkeypatch):
    """Steps on weaker losses may take seconds: a fit that ended among them gave w = 0 back."""

    def endless(*_):
        while True:
            time.sleep(0.005)
            yield None

    rng = np.random.default_rng(0)
    X = 100.0 * rng.standard_normal((1500, 120))
    y = np.where((X[:, 0] > 0) ^ (rng.random(1500) < 0.05), 1, -1)
    monkeypatch.setattr(newton_start, "newton_steps_for_start", endless)
    with pytest.warns(mdlearn.ConvergenceWarning):
        model = mdlearn.fit("lsvm", X, y, solver="hybrid", time_limit=0.5)
    assert model.certificate.objective < 0.7 * 0.5 * 1500


def test_the_sample_of_second_derivatives_has_those_that_bend_most():
    """Their sum is that of all; the rows that bend most have their own."""
    X = noise(4000, 20)[0]
    bends = np.exp(-np.abs(np.linspace(0.0, 40.0, 4000)))
    problem = SimpleNamespace(n_rows=4000, squares=np.square(X).sum(axis=1))
    weights = smooth_steps.sampled_bends(problem, bends, 160)
    assert 100 <= np.count_nonzero(weights) <= 200
    assert weights.sum() == pytest.approx(bends.sum(), rel=1e-12)
    most = np.argsort(bends * problem.squares)[-80:]
    assert np.array_equal(weights[most], bends[most])
    assert np.array_equal(smooth_steps.sampled_bends(problem, bends, 5000), bends)


@pytest.mark.parametrize("engine, columns", [(narrow.NarrowLogisticSteps, 65), (smooth.SmoothNewton, 0)])
def test_steps_that_crawl_are_left_to_another_engine(engine, columns, monkeypatch):
    """Beside a sharp loss each goes a millionth of the way: 18,000 of them, where `newton` takes seven."""
    rng = np.random.default_rng(0)
    X, y = 5e4 * rng.standard_normal((20, 4)), (np.arange(20) >= 6).astype(int)
    X[:, 0] += 4e4 * (2 * y - 1)
    monkeypatch.setattr(loss_column, "NARROW_COLUMNS", columns)
    monkeypatch.setattr(loss_column, "SMOOTH_NARROW_COLUMNS", columns)
    places, steps = [], engine.steps

    def counted(self, tol):
        for new in steps(self, tol):
            places.append(new)
            yield new

    monkeypatch.setattr(engine, "steps", counted)
    model = mdlearn.fit("mmlr", X, y, tol=1e-6)
    assert model.certificate.converged and 10 < sum(places) <= 400
