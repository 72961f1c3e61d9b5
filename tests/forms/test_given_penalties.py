"""Given and native losses with penalties and several classes as one problem: the engine apg, against other methods."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sysconfig
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from given_losses import EXPONENTIAL, HUBER, LOGISTIC, RUBBER, SHORT, rubber, rubber_bend, rubber_slope
from mdlm_paper import sample, signs_of
from scipy import LowLevelCallable
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

import mdlearn
from mdlearn.forms.given import GivenLoss
from mdlearn.forms.losses import HingeTerm, LogisticTerm
from mdlearn.forms.native import NativeFunction
from mdlearn.objectives.base import Parameter, Terms
from mdlearn.testing import parametrize_with_checks

LOGISTIC_DECLARED = SimpleNamespace(terms=lambda C: (LogisticTerm(C, 1.0, 0.0),))
DEEP = GivenLoss(lambda t: rubber(t) - 5.0, rubber_slope, rubber_bend)  # negative nearly everywhere
SINKING = GivenLoss(lambda t: np.exp(-t) - 0.05 * t, lambda t: -np.exp(-t) - 0.05, lambda t: np.exp(-t))
WALL = GivenLoss(lambda t: np.exp(t - 20.0), lambda t: np.exp(t - 20.0), lambda t: np.exp(t - 20.0))
BEYOND = GivenLoss(
    lambda t: np.maximum(0.0, t - 20.0) ** 2, lambda t: 2.0 * np.maximum(0.0, t - 20.0), lambda t: 2.0 * (t > 20.0)
)
LINE = GivenLoss(lambda t: -t, lambda t: -np.ones_like(t), np.zeros_like)


def objective_of(loss, joint=False, extra=(), **more):
    class Given(mdlearn.Objective):
        name = "given"
        summary = formula = "a given loss with a penalty"
        parameters: ClassVar = {"C": Parameter(1.0, "weight of the summed loss")}
        kernels = False
        multiclass = ("joint", "ovr") if joint else ("ovr",)

        def terms(self, params, total):
            return Terms(loss=(*loss.terms(params["C"]), *extra), **more)

    return Given


def optimum(each, X, y, bias, weight, C, variance=0.0, mean=0.0, ridge=1.0, penalty=0.0):
    """(objective, W, b) by quasi-Newton steps: |W_j| = min over W_j = s_j V_j of (s_j^2 + |V_j|^2) / 2 is smooth."""
    Y = signs_of(y)
    k, d, total = Y.shape[1], X.shape[1], weight.sum()

    def split(u):
        V, s, b = u[: d * k].reshape(d, k), u[d * k : d * k + d], u[d * k + d :]
        return (s[:, None] * V if penalty else V), V, s, (b if bias != "none" else np.zeros(k))

    def value(u):
        W, V, s, b = split(u)
        Z = Y * (X @ W + b)
        means = weight @ Z / total
        f = C * (weight @ each(Z)).sum() + variance * (weight @ (Z - means) ** 2 / total).sum() - mean * means.sum()
        f += 0.5 * ridge * ((W**2).sum() + (b @ b if bias == "regularized" else 0.0))
        return f + 0.5 * penalty * ((V**2).sum() + s @ s) if penalty else f

    u = np.random.default_rng(1).standard_normal(d * k + d + k)
    for _ in range(6):
        u = minimize(value, u, method="BFGS", options={"gtol": 1e-10, "maxiter": 4000}).x
    W, _, _, b = split(u)
    return value(u), W, b


CASES = {"rubber": RUBBER, "huber": HUBER, "deep": DEEP, "sinking": SINKING}


@pytest.mark.slow
@pytest.mark.parametrize("setting", [{}, {"variance": 0.5, "mean": 0.2}, {"ridge": 0.0}], ids=str)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_the_optimum_is_the_one_that_another_method_finds(case, k, setting):
    """L1 and a free bias for two classes, L2,1 over all columns for three; with weights."""
    X, y = sample(k, n=40, d=4)
    weight = np.random.default_rng(0).integers(0, 4, 40).astype(float)
    given, bias, setting = CASES[case], "free" if k == 2 else "none", {"penalty": 2.0, **setting}
    problem = objective_of(given, True, **setting)
    best, W, b = optimum(given.value, X, y, bias, weight, 0.5, **setting)
    model = mdlearn.fit(problem, X, y, C=0.5, bias=bias, sample_weight=weight, tol=1e-11)
    assert model.solver == "apg" and model.certificate.converged
    assert model.certificate.lower_bound <= best + 1e-12 * abs(best)
    assert model.certificate.objective == pytest.approx(best, rel=1e-8)
    assert model.coef_.T == pytest.approx(W, abs=1e-4) and model.intercept_ == pytest.approx(b, abs=1e-4)
    assert not model.coef_.all() or np.abs(W).min() > 1e-3, "the penalty makes coefficients 0"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.asarray, np.float32, csr_matrix], ids=["dense", "float32", "CSR"])
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("k", [2, 3])
def test_a_copy_of_a_declared_loss_gives_the_same_model(k, bias, kind):
    X, y = sample(k)
    X[np.abs(X) < 0.4] = 0.0
    weight = np.random.default_rng(4).integers(0, 4, 60)
    settings = {"bias": bias, "sample_weight": weight, "tol": 1e-13 if kind is not np.float32 else 1e-6}
    for more in ({"penalty": 1.5}, {"penalty": 1.5, "ridge": 0.0, "variance": 0.3, "mean": 0.1}, {}):
        copied, declared = (
            mdlearn.fit(objective_of(loss, True, **more), kind(X), y, solver="apg", **settings)
            for loss in (LOGISTIC, LOGISTIC_DECLARED)
        )
        assert copied.solver == declared.solver == "apg" and copied.certificate.converged
        assert copied.coef_.dtype == (np.float32 if kind is np.float32 else float)
        assert copied.certificate.objective == pytest.approx(declared.certificate.objective, rel=1e-9)
        # At 1e-13 rounding decides which of two proofs is closer.
        kinds = {copied.certificate.kind, declared.certificate.kind}
        assert len(kinds) == 1 or kinds == {"duality gap", "residual"}
        assert copied.decision_function(kind(X)) == pytest.approx(
            declared.decision_function(kind(X)), rel=1e-9, abs=1e-9
        )
        assert copied.duals == pytest.approx(declared.duals, rel=1e-7, abs=1e-9)


FLOORS = {"rubber": (RUBBER, 0.0), "deep": (DEEP, -5.0), "sinking": (SINKING, -np.inf), "line": (LINE, -np.inf)}
FLOORS |= {"logistic": (LOGISTIC, 0.0), "wall": (WALL, 0.0), "short": (SHORT, 0.0), "exponential": (EXPONENTIAL, 0.0)}


@pytest.mark.parametrize("case", FLOORS)
def test_no_margin_has_less_than_the_floor(case):
    given, floor = FLOORS[case]
    far = np.geomspace(1e-3, 1e90, 2000)
    values = given.value(np.concatenate([-far[::-1], np.linspace(-60.0, 60.0, 24001), far]))
    assert given.floor == pytest.approx(floor, abs=1e-12) and (values >= given.floor).all()
    assert sum(t.floor for t in given.terms(1.0)) == given.floor


def test_where_slopes_begin_to_change():
    assert RUBBER.reach == 8.0 and RUBBER.steepest == pytest.approx(1.0)
    assert 20.0 < BEYOND.reach < 40.0 and 1.0 < BEYOND.steepest <= 2.0, "flat up to a margin of 20"
    assert LINE.reach == 8.0 and LINE.steepest == 0.0


# ---------------------------------------------------------------- bounds, and losses that are steep far out


@pytest.mark.slow
@pytest.mark.parametrize("more", [{"ridge": 0.0}, {"ridge": 0.0, "mean": 3.0}, {"mean": 3.0}], ids=str)
@pytest.mark.parametrize("case", ["deep", "rubber", "huber", "sinking"])
def test_no_record_has_a_bound_above_the_optimum(case, more):
    """Also of a loss that is negative, for which 0 is no lower bound."""
    X, y = sample(3, n=40, d=4)
    more = {"penalty": 8.0 if case == "sinking" else 3.0, **more}
    model = mdlearn.fit(objective_of(CASES[case], True, **more), X, y, bias="none", tol=1e-12)
    best, _, _ = optimum(CASES[case].value, X, y, "none", np.ones(40), 1.0, **more)
    assert model.certificate.converged and model.certificate.objective == pytest.approx(best, rel=1e-8)
    assert all(s.lower_bound <= best + 1e-10 * abs(best) for s in model.history)


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("loss", [WALL, BEYOND, EXPONENTIAL], ids=["wall", "beyond", "exponential"])
@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_losses_whose_second_derivative_grows(loss, ridge, scale):
    """At W = 0 nothing tells of it: steps that lead too far are taken back, and no bound is made of them."""
    X, y = sample(2, n=40, d=4)
    model = mdlearn.fit(objective_of(loss, penalty=2.0, ridge=ridge, mean=30.0), scale * X, y, bias="none", tol=1e-9)
    certificate = model.certificate
    z = signs_of(y)[:, 0] * model.decision_function(scale * X)
    W = model.coef_[0]
    value = loss.value(z).sum() - 30.0 * z.mean() + 2.0 * np.abs(W).sum() + 0.5 * ridge * W @ W
    assert certificate.converged and certificate.objective == pytest.approx(value, rel=1e-9)
    assert value < loss.value(np.zeros(40)).sum()
    # Conditions of optimality, from the printed formula.
    G = scale * X.T @ (signs_of(y)[:, 0] * (loss.derivative(z) - 30.0 / 40)) + ridge * W
    size = 1e-4 * (2.0 + np.abs(scale * X).sum(axis=0).max())
    assert np.abs(G + 2.0 * np.sign(W))[W != 0].max(initial=0.0) <= size
    assert (np.abs(G)[W == 0] <= 2.0 + size).all()


def test_what_falls_without_end():
    X, y = sample(2)
    for loss, more, told in (
        (LINE, {"ridge": 0.0}, "the loss falls by more than the penalty grows"),
        (LINE, {}, "the loss falls by more"),  # along a free intercept: the classes differ in size
        (LOGISTIC, {"mean": 90.0, "ridge": 0.0}, "the margin mean outweighs loss and penalty"),
        (HUBER, {"mean": 90.0, "ridge": 0.0}, "the margin mean outweighs loss and penalty"),
        (SimpleNamespace(terms=lambda C: ()), {"mean": 90.0, "ridge": 0.0}, "the margin mean outweighs"),
    ):
        with pytest.raises(ValueError, match=f"unbounded below on these training rows: {told}"):
            mdlearn.fit(objective_of(loss, penalty=2.0, **more), X, y, bias="free")
    model = mdlearn.fit(objective_of(RUBBER, penalty=2.0, ridge=0.0, mean=50.0), X, y, bias="free")
    assert model.certificate.converged, "a loss that rises holds it"


# ---------------------------------------------------------------- options of the engine, native functions


OPTIONS = [(RUBBER, {"paper": True}), (EXPONENTIAL, {"paper": True, "l0": 1e-6}), (HUBER, {"batch": 20, "epochs": 40})]


@pytest.mark.parametrize(("loss", "options"), OPTIONS, ids=["paper", "paper, no largest bend", "batches"])
def test_the_printed_algorithm_and_batches(loss, options):
    X, y = sample(3)
    problem = objective_of(loss, True, penalty=2.0)
    best = mdlearn.fit(problem, X, y, tol=1e-12).certificate.objective
    certificate = mdlearn.fit(problem, X, y, solver="apg", solver_options=options).certificate
    assert certificate.lower_bound <= best + 1e-12
    assert certificate.objective <= best * (1.02 if "batch" in options else 1.0 + 2e-6)


SOURCE = """
double value(double z, void *p) { double t = z - ((double *)p)[0]; return t > 0 ? 0 : t * t; }
double slope(double z, void *p) { double t = z - ((double *)p)[0]; return t > 0 ? 0 : 2 * t; }
double bend(double z, void *p) { return z > ((double *)p)[0] ? 0 : 2; }
"""


@pytest.mark.parametrize("k", [2, 3])
def test_native_functions(k, tmp_path):
    compiler = (sysconfig.get_config_var("CC") or "cc").split()
    if shutil.which(compiler[0]) is None:
        pytest.skip("no C compiler")
    (tmp_path / "loss.c").write_text(SOURCE)
    subprocess.run([*compiler, "-shared", "-fPIC", "-O1", "-o", "loss.so", "loss.c"], cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "loss.so"))

    def taken(name):
        function = library[name]
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double, ctypes.c_void_p]
        return NativeFunction(LowLevelCallable(function), [0.7])

    native = GivenLoss(*(taken(name) for name in ("value", "slope", "bend")))
    declared = SimpleNamespace(terms=lambda C: (HingeTerm(C, threshold=0.7, power=2),))
    X, y = sample(k)
    for more in ({"penalty": 1.5, "variance": 0.2}, {"penalty": 1.5, "extra": RUBBER.terms(0.3)}):
        one, other = (
            mdlearn.fit(objective_of(loss, True, **more), X, y, bias="free", tol=1e-13) for loss in (native, declared)
        )
        assert one.solver == "apg" and one.certificate.converged
        assert one.certificate.objective == pytest.approx(other.certificate.objective, rel=1e-12)
        assert one.decision_function(X) == pytest.approx(other.decision_function(X), rel=1e-9, abs=1e-9)


def test_a_column_without_penalty():
    X, y = sample(2)
    one, other = (mdlearn.fit(objective_of(RUBBER), X, y, solver=s, tol=1e-13) for s in ("apg", "newton"))
    assert one.certificate.converged and one.coef_ == pytest.approx(other.coef_, abs=1e-7)


@parametrize_with_checks([objective_of(RUBBER, True, ridge=1.0), objective_of(HUBER, True, variance=0.5, mean=0.1)])
def test_conformance(objective, check):
    check(objective)
