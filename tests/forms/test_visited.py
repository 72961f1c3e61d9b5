"""Composites of plugins are held against what they declare, by every fit: no mistake of theirs is certified."""

from __future__ import annotations

import re
import warnings
from itertools import islice

import numpy as np
import pytest
from faulty_problems import COMPOSITE_FAULTS, DeafGradient, HighLeast, Net, Waves, net_task, sample
from scipy.optimize import minimize

import mdlearn
from mdlearn.errors import FaultyProblem
from mdlearn.forms.joint import visited
from mdlearn.plugins.registry import registry
from mdlearn.solvers.proximal_gradient.solver import APG


def optimum(X, y, lam, ridge):
    """Smallest objective of Net, by L-BFGS-B on positive and negative parts."""
    A, d = np.where(y == 1, 1.0, -1.0)[:, None] * X, X.shape[1]

    def value(parts):
        w = parts[:d] - parts[d:]
        slope = -A.T @ (1.0 / (1.0 + np.exp(A @ w))) / len(A) + ridge * w
        f = np.logaddexp(0.0, -(A @ w)).mean() + 0.5 * ridge * w @ w + lam * parts.sum()
        return f, np.append(slope + lam, lam - slope)

    found = minimize(value, np.full(2 * d, 0.1), jac=True, bounds=[(0, None)] * 2 * d, tol=1e-15)
    return found.fun


@pytest.mark.parametrize("kind", COMPOSITE_FAULTS, ids=lambda kind: kind.__name__)
def test_a_mistake_ends_the_fit_and_is_named(kind):
    X, y = sample()
    with pytest.raises(FaultyProblem) as caught:
        mdlearn.fit(net_task(kind), X, y)
    told = str(caught.value)
    assert told.startswith(f"objective 'net' is faulty: faulty_problems.{kind.__name__}.")
    assert COMPOSITE_FAULTS[kind] in told


def test_both_values_are_told_and_are_true():
    """The two values of the inequality, by the formula of h at the points that the fit visited."""
    X, y = sample()
    seen = []

    class Watched(Waves):
        def at(self, W):
            seen.append(super().at(W))
            return seen[-1]

    with pytest.raises(FaultyProblem, match="h is not convex") as caught:
        mdlearn.fit(net_task(Watched), X, y)
    below, tangent = (float(text) for text in _numbers_of(str(caught.value)))
    pairs = [(b.value, a.value + float((a.gradient * (b.W - a.W)).sum())) for a in seen for b in seen]
    assert min(abs(below - u) + abs(tangent - v) for u, v in pairs) < 1e-12 and below < tangent


def _numbers_of(text):
    return re.search(r"of the fit h is (\S+), below its tangent at another, (\S+);", text).groups()


@pytest.mark.parametrize("limits", [{"max_iter": 1}, {"time_limit": 0.0}, {"callback": lambda state: True}])
@pytest.mark.parametrize("kind", [DeafGradient, HighLeast])
def test_a_mistake_that_no_visited_point_shows_is_found_however_early_the_fit_ends(kind, limits):
    """A coefficient that never moves, and a bound that is still far below all values: the certificate looks itself."""
    X, y = sample()
    with pytest.raises(FaultyProblem, match=COMPOSITE_FAULTS[kind]):
        mdlearn.fit(net_task(kind), X, y, **limits)


def test_what_another_engine_finds_out_is_not_passed_over(monkeypatch):
    """That goes on where the first one ends early, and its errors count for nothing but this."""

    class Lazy(APG):
        name = "lazy"

        def iterate(self, form, part, shared, options, rng):
            yield from islice(super().iterate(form, part, shared, options, rng), 3)

    class Late(Net):
        engine = "lazy"

        def bound(self, look, anchor):
            value = self.objective(look)
            return (super().bound(look, anchor)[0] if value > 0.6 else value + 1.0), "duality gap"

    monkeypatch.setitem(registry().solvers, "lazy", Lazy)
    X, y = sample()
    with pytest.raises(FaultyProblem, match="bound is too high"):
        mdlearn.fit(net_task(Late), X, y)


def test_without_a_declaration_there_is_no_bound():
    class Silent(Net):
        convex = False

    X, y = sample()
    with pytest.warns(mdlearn.ConvergenceWarning, match="Silent declares neither convex = True nor a residual"):
        model = mdlearn.fit(net_task(Silent), X, y)
    told = model.certificate
    assert (told.kind, told.lower_bound, told.gap, told.converged) == ("none", -np.inf, np.inf, False)
    assert all(state.lower_bound == -np.inf for state in model.history)
    assert told.objective == pytest.approx(optimum(X, y, 0.03, 0.1), rel=1e-6)  # the answer is none the worse


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lam", [0.0, 0.03, 10.0])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("shape", [(40, 3), (15, 30), (1, 1)])
def test_what_is_right_is_certified_whatever_its_scale(shape, scale, lam, dtype):
    X, y = sample(*shape, scale=scale)
    X, y = (np.vstack([X, -X]), np.append(y, 1 - y)) if len(X) == 1 else (X, y)
    X = X.astype(dtype)
    ridge, tol = 0.1 * scale**2, 1e-5 if dtype == np.float32 else 1e-9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = mdlearn.fit(net_task(Net), X, y, lam=lam * scale, ridge=ridge, tol=tol)
    told, least = model.certificate, optimum(X.astype(float) / scale, y, lam, ridge / scale**2)
    assert told.converged and told.proven and told.kind == "duality gap"
    assert told.lower_bound <= least * (1 + 1e-9) and told.objective >= least * (1 - 1e-9)


def test_it_is_asked_of_no_composite_of_mdlearn(monkeypatch):
    def asked(*given):
        raise AssertionError("nobody checks what mdlearn declares")

    for name in ("visit", "probe", "bound"):
        monkeypatch.setattr(visited.VisitedEvaluations, name, asked)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), rng.integers(0, 3, 60)
    for name in ("mdlm", "mmlr"):
        assert mdlearn.fit(name, X, y).certificate.converged
