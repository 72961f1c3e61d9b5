"""Offers with a gap wait for a heartbeat of their own problem, also where several problems share an engine."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn
from mdlearn.driver.checked_engine import CheckedEngine
from mdlearn.forms.margin import Point
from mdlearn.plugins.registry import registry
from mdlearn.solvers.base import Offer, Report, Solver


class Problem:
    """What the engine's checks ask of a problem."""

    def __init__(self, part):
        self.part = part

    def fault(self, point):
        return None


class Waiting:
    """An engine that offers a place, goes on, and ends with another one."""

    name = "waiting"
    draws, takes_tol, merges_equal_rows = True, False, True

    def iterate(self, form, column, shared, options, rng):
        def place(value):
            return lambda: Report(value, 0.0, Point(np.zeros((1, 2)), np.zeros(2)))

        yield Offer(place(10.0 * column), 0.5)
        yield None
        yield None
        yield Offer(place(10.0 * column + 1.0), 0.4)


def reports(engine, part):
    return engine.reports(None, Problem(part), None, {}, None)


def test_problems_side_by_side_keep_their_own():
    engine = CheckedEngine(Waiting())
    engine.tol = 1e-3
    first, second = reports(engine, 1), reports(engine, 2)
    pairs = [(next(first), next(second)) for _ in range(3)]
    assert [one.make().objective for one in pairs[0]] == [10.0, 20.0]
    assert pairs[1] == (None, None)
    assert [one.objective for one in pairs[2]] == [11.0, 21.0], "the last word of an engine is a report"


@pytest.mark.parametrize(
    "tol, kinds", [(1e-3, [Offer, type(None), Report]), (0.6, [Offer, type(None), type(None), Offer])]
)
def test_an_offer_that_meets_the_tolerance_does_not_wait(tol, kinds):
    engine = CheckedEngine(Waiting())
    engine.tol = tol
    assert [type(one) for one in reports(engine, 1)] == kinds


@pytest.mark.parametrize("objective", ["svm", "lsvm", "l2lr", "ldm"])
def test_classes_in_threads_are_the_classes_one_after_the_other(objective):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((4000, 12))
    y = np.argmax(X[:, :5] + 0.5 * rng.standard_normal((4000, 5)), axis=1)
    one, two = (mdlearn.fit(objective, X, y, n_threads=n, tol=1e-7) for n in (1, 2))
    assert one.certificate.converged and two.certificate.converged
    np.testing.assert_allclose(two.coef_, one.coef_, rtol=0, atol=1e-3)
    for model in (one, two):
        again = mdlearn.fit(objective, X, y, solver=model.solver, n_threads=1, tol=1e-7)
        assert model.certificate.lower_bound <= again.certificate.objective * (1 + 1e-12)


class Costly(Solver):
    """An engine that goes on for long, and whose offers take so many seconds to certify."""

    name, draws = "costly", False
    cost = 0.0

    def iterate(self, form, column, shared, options, rng):
        m = column.y.shape[0]

        def place():
            beta = np.full((1, m), 1e-3)
            return Report(0.5 * m, 0.0, Point(beta, np.zeros(m), form.features.expand(1e-3 * column.y)))

        for step in range(50):
            type(self).steps = step
            yield Offer(place, 0.5, lambda: self.cost)
            yield None
        yield place()


@pytest.mark.parametrize("cost, steps", [(0.0, 49), (500.0, 49), (2000.0, 0)])
def test_a_time_limit_leaves_time_for_the_certificate_of_an_offer(cost, steps, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), rng.integers(0, 2, 40)
    engine = type("Priced", (Costly,), {"cost": cost})
    monkeypatch.setitem(registry().solvers, "costly", engine)
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit" if cost > 1000.0 else "rounding"):
        model = mdlearn.fit("svm", X, y, solver="costly", time_limit=1000.0)
    assert engine.steps == steps and np.abs(model.duals).max() > 0


class Told(Costly):
    """An engine that wants to know the gap that is asked for."""

    takes_tol = True

    def iterate(self, form, column, shared, options, rng, tol):
        type(self).tol = tol
        return super().iterate(form, column, shared, options, rng)


class OwnSteps:
    """Steps of one's own, beside any engine."""

    def iterate(self, form, column, shared, options, rng):
        return Costly.iterate(self, form, column, shared, options, rng)


class Untold(Told):
    """One on top of it with steps of its own, which says nothing of it."""

    iterate = OwnSteps.iterate


class Mixed(OwnSteps, Told):
    """One whose steps come from a class that is no engine."""


def test_engines_that_say_so_are_told_the_gap_that_is_asked_for(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), rng.integers(0, 2, 40)
    assert type("Inherited", (Told,), {}).takes_tol
    for engine in (Told, Untold, Mixed, type("Derived", (Mixed,), {})):
        monkeypatch.setattr(Told, "tol", None, raising=False)
        monkeypatch.setitem(registry().solvers, "costly", engine)
        with pytest.warns(mdlearn.ConvergenceWarning):
            mdlearn.fit("svm", X, y, solver="costly", tol=1e-3)
        assert engine.tol == (1e-3 if engine is Told else None)
