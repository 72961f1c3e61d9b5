"""Problems that are not convex: certificates of first-order conditions, without a bound, from engine to file."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
import pytest
from faulty_problems import Descent

import mdlearn
from mdlearn.forms.composite import Composite
from mdlearn.forms.joint.composite_point import CompositeEvaluation
from mdlearn.forms.problem import Problem
from mdlearn.forms.proof import Certificate, Solution, combine_proofs, judge, judge_residual
from mdlearn.objectives.base import Parameter
from mdlearn.solvers.base import Report


class Sigmoid(Problem):
    """1/2 |w|^2 + C sum_i c_i (1 - tanh z_i) for two classes, without a bias."""

    engine = "descent"

    def __init__(self, data, features, C):
        self.features, self.bias, self.part, self.unit, self.C = features, "none", self, 1.0, C
        self.X, self.y, self.counts = features.matrix(), np.where(data.codes == 1, 1.0, -1.0), data.counts
        self.at_zero = self.look(np.zeros(features.width))[0]

    def look(self, w):
        z = np.tanh(self.y * (self.X @ w))
        value = 0.5 * w @ w + self.C * self.counts @ (1.0 - z)
        return value, w - self.C * self.X.T @ (self.counts * self.y * (1.0 - z**2))

    def start(self):
        return np.zeros(self.features.width)

    def certify(self, point, tol):
        w = point.astype(self.features.dtype).astype(float)
        value, slope = self.look(w)
        certificate = judge_residual(value, 0.5 * slope @ slope, self.at_zero, tol)
        none = np.zeros((1, self.counts.shape[0]))
        return Solution(w, 0.0, None, none, np.sqrt(w @ w), certificate)


class SigmoidLoss(mdlearn.Objective):
    name = "sigmoid-loss"
    summary = "a loss that is not convex"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the loss")}
    default_bias = "none"
    multiclass = ("ovo",)
    kernels = False

    def form(self, data, features, bias, params):
        return Sigmoid(data, features, params["C"])


class ResidualDescent(Descent):
    """The same steps, reported with what first-order conditions leave open."""

    name = "descent"

    def report(self, form, value, slope, w):
        return Report(value, -np.inf, w, 0.5 * slope @ slope)


def sample(k=2, m=60):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((m, 4))
    return X, np.argmax(X[:, :k] + 0.7 * rng.standard_normal((m, k)), axis=1)


def value_and_slope(w, X, y, C):
    """The objective of `SigmoidLoss` once more, by its formula and by differences."""

    def value(v):
        return 0.5 * v @ v + C * (1.0 - np.tanh(np.where(y == y.max(), 1, -1) * (X @ v))).sum()

    steps = 1e-6 * np.eye(len(w))
    return value(w), np.array([(value(w + h) - value(w - h)) / 2e-6 for h in steps])


def test_converged_means_first_order_conditions_and_claims_no_bound():
    X, y = sample()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = mdlearn.fit(SigmoidLoss, X, y, C=0.5, solver=ResidualDescent, tol=1e-9)
    value, slope = value_and_slope(model.coef_[0], X, y, 0.5)
    certificate = model.certificate
    assert (certificate.kind, certificate.lower_bound, certificate.converged) == ("residual", -np.inf, True)
    assert certificate.objective == pytest.approx(value, rel=1e-12)
    assert certificate.gap <= 1e-9 and np.abs(slope).max() <= 1e-4
    gaps = [state.gap for state in model.history]
    assert all(state.lower_bound == -np.inf for state in model.history)
    assert np.isfinite(gaps).all() and gaps[-1] == pytest.approx(certificate.gap, rel=1e-6) and gaps[0] > 1e-3


def test_the_gap_is_the_residual_over_the_objective():
    X, y = sample()
    with pytest.warns(mdlearn.ConvergenceWarning):
        model = mdlearn.fit(SigmoidLoss, X, y, C=0.5, solver=ResidualDescent, max_iter=2)
    value, slope = value_and_slope(model.coef_[0], X, y, 0.5)
    assert model.certificate.gap == pytest.approx(0.5 * slope @ slope / value, rel=1e-5)
    tiny = judge_residual(1e-9, 1e-8, 2.0, 1e-7)
    assert tiny.gap == pytest.approx(1e-8 / 0.02) and not tiny.converged


@pytest.mark.parametrize("given", [{"max_iter": 2}, {"time_limit": 0.0}, {"callback": lambda state: True}])
def test_an_early_end_tells_the_residual(given):
    X, y = sample()
    told = {"max_iter": "max_iter = 2 reached", "time_limit": "time_limit reached", "callback": "by the callback"}
    with pytest.warns(mdlearn.ConvergenceWarning) as caught:
        model = mdlearn.fit(SigmoidLoss, X, y, C=0.5, solver=ResidualDescent, tol=1e-10, **given)
    certificate, text = model.certificate, str(caught[0].message)
    assert not certificate.converged and 1e-10 < certificate.gap < np.inf and certificate.kind == "residual"
    assert f"stopped at relative first-order residual {certificate.gap:.2g} instead of 1e-10" in text
    assert told[next(iter(given))] in text and "gap" not in text


def test_without_bounds_the_lowest_point_is_kept_not_the_flattest():
    class Scripted(ResidualDescent):
        def iterate(self, form, part, shared, options, rng):
            for size in (0.0, 0.02, 0.1, 0.05):
                w = size * form.X.T @ (form.counts * form.y)
                value, slope = form.look(w)
                seen.append(value)
                # The flattest of all is said to be the first one.
                yield Report(value, -np.inf, w, 0.1 if size == 0.0 else 1.0 + 0.5 * slope @ slope)

    seen = []
    X, y = sample()
    with pytest.warns(mdlearn.ConvergenceWarning):
        model = mdlearn.fit(SigmoidLoss, X, y, C=0.5, solver=Scripted, tol=0.0)
    assert model.certificate.objective == min(seen) < seen[0]
    assert [s.objective for s in model.history] == np.minimum.accumulate(seen).tolist()


def test_several_problems_have_the_largest_residual_of_all():
    X, y = sample(3, m=90)
    model = mdlearn.fit(SigmoidLoss, X, y, C=0.5, solver=ResidualDescent, tol=1e-7)
    whole, parts = model.certificate, model.certificate.parts
    assert len(parts) == 3 and whole.kind == "residual" and whole.lower_bound == -np.inf and whole.converged
    assert whole.gap == max(part.gap for part in parts) <= 1e-7
    assert whole.objective == pytest.approx(sum(part.objective for part in parts))
    bounded = Certificate(2.0, 1.5, 0.25, "duality gap", 0.5, True)
    mixed = combine_proofs([parts[0], bounded], [(3.0, False)], 0.5)
    assert (mixed.lower_bound, mixed.gap, mixed.kind, mixed.converged) == (-np.inf, 0.25, "residual", True)
    nothing = combine_proofs([parts[0], judge_residual(1.0, np.inf, 1.0, 1e-6)], [(2.0, False)], 1e-6)
    assert (nothing.kind, nothing.gap, nothing.converged) == ("none", np.inf, False)


@pytest.mark.parametrize("objective, residual", [(np.inf, 0.0), (1.0, np.nan), (np.nan, 0.0)])
def test_values_that_are_no_numbers_prove_nothing(objective, residual):
    found = judge_residual(objective, residual, 1.0, 1e-6)
    assert (found.kind, found.converged, found.gap) == ("none", False, np.inf)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_saved_and_loaded(dtype, tmp_path):
    X, y = sample(3, m=90)
    model = mdlearn.fit(SigmoidLoss, X.astype(dtype), y, C=0.5, solver=ResidualDescent)
    model.save(tmp_path / "model.npz")
    again = mdlearn.load(tmp_path / "model.npz")
    assert again.certificate == model.certificate and again.history == model.history
    assert np.array_equal(again.decision_function(X), model.decision_function(X)) and again.coef_.dtype == dtype


def test_auto_takes_the_engine_that_the_problem_names():
    X, y = sample()
    with pytest.raises(ValueError, match="solver 'descent'"):
        mdlearn.fit(SigmoidLoss, X, y)  # a name that nobody has registered
    with pytest.raises(ValueError, match=r"solver 'auto' cannot take this problem: .*it needs margins or a gradient"):
        mdlearn.fit(type("Other", (SigmoidLoss,), {"form": lambda *given: _nameless(*given)}), X, y)


def _nameless(self, data, features, bias, params):
    form = Sigmoid(data, features, params["C"])
    form.engine = ""
    return form


class SmoothSigmoid(Composite):
    """The same objective as a Composite: h is not convex, and `residual` says so."""

    def __init__(self, data, features, C):
        super().__init__(features, "none", 1, np.ones(features.width), np.zeros(features.width))
        self.X, self.y, self.counts, self.C = features.matrix(), np.where(data.codes == 1, 1.0, -1.0), data.counts, C
        self.at_zero = C * data.total

    def at(self, W):
        z = np.tanh(self.y * (self.X @ W[:, 0]))
        terms = self.C * self.counts * self.y * (1.0 - z**2)
        value = self.C * float(self.counts @ (1.0 - z))
        return CompositeEvaluation(W, value, -(self.X.T @ terms)[:, None], np.abs(self.X).T @ np.abs(terms))

    def lipschitz(self):
        return 1.0 + 0.77 * self.C * float(np.linalg.norm(np.sqrt(self.counts)[:, None] * self.X, 2) ** 2)

    def residual(self, look):
        return 0.5 * float(np.square(self.slope(look)).sum())


class CompositeSigmoid(SigmoidLoss):
    name = "composite-sigmoid"

    def form(self, data, features, bias, params):
        return SmoothSigmoid(data, features, params["C"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_composite_that_is_not_convex(dtype):
    X, y = sample()
    model = mdlearn.fit(CompositeSigmoid, X.astype(dtype), y, C=0.5, tol=1e-6 if dtype == np.float32 else 1e-12)
    certificate = model.certificate
    value, slope = value_and_slope(model.coef_[0].astype(float), X.astype(dtype).astype(float), y, 0.5)
    assert model.solver == "apg" and model.coef_.dtype == dtype
    assert (certificate.kind, certificate.lower_bound, certificate.converged) == ("residual", -np.inf, True)
    assert certificate.objective == pytest.approx(value, rel=1e-12)
    assert np.abs(slope).max() <= 2 * np.sqrt(2 * value * certificate.tol) + 1e-7
    other = mdlearn.fit(SigmoidLoss, X, y, C=0.5, solver=ResidualDescent, tol=1e-12)
    assert certificate.objective == pytest.approx(other.certificate.objective, rel=1e-5)
    assert all(state.lower_bound == -np.inf and state.gap < np.inf for state in model.history)


def test_certificates_hold_numbers_of_python():
    """An engine's NumPy numbers make no `numpy.bool` of `converged`, of which `is True` would not hold."""
    two, one = np.float64(2.0), np.float64(1.0)
    for certificate in (
        judge(two, one, two, False, 1.0),
        judge_residual(two, one, two, 1.0),
        judge(two, np.float64(-np.inf), two, False, 1.0),
    ):
        kinds = [type(getattr(certificate, name)) for name in ("objective", "lower_bound", "gap", "converged")]
        assert kinds == [float, float, float, bool]
