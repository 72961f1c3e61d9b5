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


class FreeBias(mdlearn.extend.Composite):
    """mean_i ln(1 + exp(-y_i (x_i.w + b))) + 0.05 |w|^2 + 0.03 sum |w_j| with a free b; sizes times a factor."""

    convex, factor = True, 1.0

    def __init__(self, data, features, lam, ridge):
        X = features.rows.block(slice(None))
        weights = np.append(np.ones(X.shape[1]), 0.0)
        super().__init__(features, "free", 1, ridge * weights, lam * weights)
        self.A = np.where(data.codes == 1, 1.0, -1.0)[:, None] * np.hstack([X, np.ones((len(X), 1))])
        self.share, self.at_zero = data.counts[:, None] / data.total, float(np.log(2.0))

    def at(self, W):
        Z = self.A @ W
        force = self.share / (1.0 + np.exp(Z))
        sizes = self.factor * (np.abs(self.A).T @ force)[:, 0]
        value = float((self.share * np.logaddexp(0.0, -Z)).sum())
        return mdlearn.extend.CompositeEvaluation(W, value, -self.A.T @ force, sizes)

    def lipschitz(self):
        return 0.25 * float(np.linalg.norm(np.sqrt(self.share) * self.A, 2) ** 2 + self.ridge.max())


def fit_free_bias(factor, **limits):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((120, 3)), (rng.random(120) < 0.85).astype(int)
    mine = type("FreeBias", (FreeBias,), {"factor": factor})
    task = type("Task", (net_task(mine),), {"default_bias": "free"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        return mdlearn.fit(task, X, y, tol=1e-4, bias="free", **limits).certificate


@pytest.mark.parametrize("factor", [1e13, 1e16])
@pytest.mark.parametrize("limits", [{"max_iter": 2}, {}], ids=str)
def test_sizes_that_make_a_slope_of_the_bias_rounding(factor, limits):
    """The bound knew nothing of the slope along the free bias: 0.476 was certified, and the optimum is 0.392."""
    with pytest.raises(FaultyProblem, match=r"\.at returns sizes that are too large: sizes\[3\] = \S+ makes the slope"):
        fit_free_bias(factor, **limits)


@pytest.mark.parametrize("factor", [1e4, 1e7, 1e10])
def test_sizes_that_are_too_large_make_no_false_bound(factor):
    right = fit_free_bias(1.0)
    assert right.converged
    for limits in ({"max_iter": n} for n in (1, 2, 3, 5, 10, 1000)):
        assert fit_free_bias(factor, **limits).lower_bound <= right.objective * (1.0 + 1e-7)
