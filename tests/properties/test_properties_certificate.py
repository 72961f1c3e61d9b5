"""For any data and parameters: the certificate tells the truth about the printed formula, whatever engine ran."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, note
from hypothesis import strategies as st
from printed import FORMULAS, LD, mmlr, signs, value, ww
from properties import KERNELS, attempt, examples, problems, sample_of, samples
from reference import gram, scale_gamma

import mdlearn

ROUNDING, EPS, TINY = 1e-9, 64 * np.finfo(float).eps, np.finfo(float).tiny
TOLS = st.sampled_from([1e-2, 1e-6, 1e-6, 1e-10])
ENGINES = st.sampled_from(["auto", "auto", *mdlearn.list_solvers()])
WITH_NORM = ["ldm", "odm", "svm", "lssvm", "lsldm", "lsvm"]


def judged(model, tol):
    """What every certificate says about itself."""
    c = model.certificate
    parts = c.parts or (c,)
    numbers = [model.intercept_, model.duals, *([model._coef] if model._coef is not None else [model.dual_coef_])]
    assert all(np.isfinite(a).all() for a in numbers), "NaN or infinity in a model"
    assert c.tol == tol and c.converged == all(part.converged for part in parts)
    for part in parts:
        assert part.lower_bound <= part.objective and part.gap >= 0.0 and part.converged == (part.gap <= tol)
    assert c.objective == pytest.approx(sum(part.objective for part in parts), rel=1e-12)
    assert c.lower_bound == pytest.approx(sum(part.lower_bound for part in parts), rel=1e-12)
    return c


class Point:
    """Coefficients and intercepts of a printed objective, in extended precision; K is the Gram matrix of a kernel."""

    def __init__(self, name, model, sample, bias, K):
        self.name, self.params, self.bias, self.K = name, model.params, bias, K
        self.M = np.asarray(sample.X, dtype=LD).T if K is None else K
        self.S, self.counts = signs(sample.y, len(model.classes_)), sample.counts.astype(LD)
        self.W = np.asarray(model.coef_ if K is None else model.dual_coef_, dtype=LD)
        self.b = np.asarray(model.intercept_, dtype=LD)

    def value(self, W, b, by=0.0):
        """(objective, size of its terms) with decision values moved by that share of theirs, or those of every row."""
        sizes = np.abs(W) @ np.abs(self.M) + np.abs(b)[:, None]
        F = W @ self.M + b[:, None] + by * sizes
        if np.isinf(self.params.get("C", 1.0)):  # constraints hold as far as float64 can tell
            F = F + EPS * self.S * sizes
        squares = ((W if self.K is None else W @ self.K) * W).sum(axis=1)
        penalised = W if self.name == "mdlm" else None
        return value(self.name, F, self.S, squares, penalised, b, self.counts, self.bias, self.params)

    def held(self):
        """(objective, what float64 can do to it: errors in decision values, norms and sums)."""
        base, size = self.value(self.W, self.b)
        if not np.isfinite(float(base)):
            return base, 0.0
        slack = ROUNDING * abs(base) + EPS * size
        slack += sum(abs(self.value(self.W, self.b, by)[0] - base) for by in EPS * np.eye(len(self.counts)))
        if self.K is not None:
            slack += EPS * (np.abs(self.W) * (np.abs(self.W) @ np.abs(self.K))).sum()
        return base, slack

    def others(self, rng):
        """Objectives at 0 and around the point."""
        yield self.value(0 * self.W, 0 * self.b)[0]
        for size in (1e-6, 1e-3, 0.1, 1.0):
            V = self.W + size * np.abs(self.W).max(initial=1e-3) * rng.standard_normal(self.W.shape)
            moved = 0.0 if self.bias == "none" else size * (1 + np.abs(self.b)) * rng.standard_normal(self.b.shape)
            yield self.value(V, self.b + moved)[0]


def check(name, model, sample, bias, tol, K=None):
    """Objective, gap and bound, each computed outside."""
    c, point = judged(model, tol), Point(name, model, sample, bias, K)
    held, slack = point.held()
    if np.isinf(c.objective):
        assert not c.converged
    else:
        assert abs(held - c.objective) <= slack, f"objective {c.objective!r}, the coefficients give {held!r}"
    at_zero, *around = point.others(np.random.default_rng(0))
    hard = np.isinf(model.params.get("C", 1.0))
    if np.isfinite(c.lower_bound) and np.isfinite(c.objective):
        scale = max(abs(c.objective), abs(c.lower_bound) if hard else 0.01 * abs(float(at_zero)), TINY)
        with np.errstate(over="ignore"):  # a gap of 0 against -7e28 is infinite
            gap = np.float64(c.objective - c.lower_bound) / scale
        assert c.gap == pytest.approx(gap, rel=1e-6, abs=1e-12)
    for other in (at_zero, *around):
        assert c.lower_bound <= other + slack + ROUNDING * abs(other), f"false bound: {other!r} is possible"


@pytest.mark.slow
@example(
    sample_of(2, 2, 2, 2505, ["columns"], 1e-3, "wide"),
    ("lsvm", {"nu": 0.01, "bias": "regularized", "solver": "apg", "tol": 0.01}),
)
@examples(140)
@given(samples(classes=(2, 4)), problems(FORMULAS, solver=ENGINES, tol=TOLS))
def test_linear(sample, problem):
    name, given_ = problem
    joint = name in ("mdlm",) and sample.y.max() > 1
    assume(not (name == "uldm" and sample.y.max() > 1))
    slow = {"max_iter": 50} if given_["solver"] == "smw" else {}
    model = attempt(name, sample, **given_, **slow)
    assume(model is not None)
    note(f"{model!r} {model.certificate!r}")
    if joint:
        assert model.multiclass == "joint"
    check(name, model, sample, given_["bias"], given_["tol"])


def far_out(m, d, seed, weighted, traits, kernel, name, scale=1e3, **given_):
    """An example whose kernel values are beyond 1e14, or whose rows are 1e7 apart."""
    given_ = {"bias": "none", "solver": "auto", "tol": 0.01, **given_}
    return example(sample_of(m, d, 2, seed, traits, scale, weighted), kernel, False, (name, given_))


CUBE = {"kernel": "poly", "gamma": 1.0, "degree": 3}
SQUARE = {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0}
NARROW = {"kernel": "rbf", "gamma": 1e3}
LS = {"C": 1e-6, "lambda1": 0.0, "lambda2": 1e5, "solver": "cd"}


@pytest.mark.slow
@far_out(4, 7, 5, "wide", ["columns"], CUBE, "lsldm", C=0.0, lambda1=1e-6, lambda2=1e5, solver="interior")
@far_out(3, 7, 4, "wide", ["columns"], CUBE, "lsldm", C=0.0, lambda1=1e-6, lambda2=1e5)
@far_out(2, 1, 3, "none", ["columns"], CUBE, "lsldm", C=0.0, lambda1=1e-6, lambda2=1e-6)
@far_out(3, 2, 2, "wide", ["constant column"], CUBE, "lsldm", **LS)
@far_out(4, 2, 2, "wide", [], CUBE, "lsldm", **LS)
@far_out(3, 3, 2, "wide", [], CUBE, "lsldm", **LS)
@far_out(3, 1, 3, "none", ["integers"], CUBE, "lsldm", **{**LS, "C": 0.01, "lambda2": 0.01})
@far_out(3, 1, 3, "none", [], CUBE, "lsldm", **{**LS, "lambda2": 0.01})
@far_out(2, 1, 3, "none", [], CUBE, "lsldm", **{**LS, "lambda2": 0.01})
@far_out(15, 3, 3, "fractions", ["columns"], CUBE, "lsvm", nu=1e-6, solver="newton")
@far_out(15, 3, 16859, "none", ["far away"], SQUARE, "lsvm", nu=0.5, solver="newton")
@far_out(15, 3, 16859, "none", ["far away"], SQUARE, "lssvm", C=0.5, solver="newton")
@far_out(3, 4, 1, "wide", ["far away"], CUBE, "lssvm", C=0.01, solver="newton")
@far_out(2, 4, 5, "wide", ["columns"], CUBE, "lssvm", C=1e-6, solver="newton")
@far_out(3, 5, 1, "none", [], {"kernel": "linear"}, "ldm", 1e-3, C=np.inf, lambda1=0.0, lambda2=0.0)
@far_out(15, 3, 3, "wide", ["columns"], NARROW, "lssvm", C=0.01)
@far_out(15, 3, 16859, "none", ["columns"], NARROW, "lssvm", C=1.0)
@examples(100)
@given(samples(classes=(2, 3)), KERNELS, st.booleans(), problems(WITH_NORM, solver=ENGINES, tol=TOLS))
def test_kernels(sample, kernel, precomputed, problem):
    name, given_ = problem
    assume(given_["solver"] not in ("apg", "asgd", "sgd", "linprog"))
    chosen = dict(kernel)
    shape = chosen.pop("kernel")
    if chosen.get("gamma") == "scale":
        assume(np.ptp(sample.X[sample.counts > 0]) > 0)
        chosen["gamma"] = scale_gamma(sample.X, sample.counts)
    K = gram(sample.X, sample.X, shape, **chosen)
    if precomputed:
        K = K.astype(float)
        model = attempt(name, replace(sample, X=K), kernel="precomputed", **given_)
        K = K.astype(LD)
    else:
        model = attempt(name, sample, **kernel, **given_)
    assume(model is not None)
    note(f"{model!r} {model.certificate!r}")
    plain = shape == "linear" and not precomputed
    check(name, model, sample, given_["bias"], given_["tol"], None if plain else K)


@examples(40)
@given(samples(classes=(3, 4)), problems(["ww", "mmlr"], tol=TOLS))
def test_joint(sample, problem):
    name, given_ = problem
    assume(not (name == "ww" and given_["bias"] == "free"))
    model = attempt(name, sample, **given_)
    assume(model is not None)
    c = judged(model, given_["tol"])
    formula, X, counts = {"ww": ww, "mmlr": mmlr}[name], sample.X.T.astype(LD), sample.counts.astype(LD)

    def at(W, b):
        square = (W * W).sum() + ((b * b).sum() if given_["bias"] == "regularized" else 0)
        return formula(W @ X + b[:, None], sample.y, square, counts, model.params)

    W, b, rng = model.coef_.astype(LD), model.intercept_.astype(LD), np.random.default_rng(0)
    assert abs(at(W, b) - c.objective) <= ROUNDING * abs(c.objective) + TINY
    others = [at(0 * W, 0 * b)]
    for size in (1e-4, 0.1, 1.0):
        move = size * rng.standard_normal(b.shape) * (given_["bias"] != "none")
        others.append(at(W + size * rng.standard_normal(W.shape), b + move))
    assert c.lower_bound <= min(others) * (1 + ROUNDING) + TINY


@pytest.mark.slow
@examples(60)
@given(samples(classes=(2, 3)), problems(FORMULAS), st.randoms(use_true_random=False))
def test_no_engine_is_below_the_bound_of_another(sample, problem, random):
    name, given_ = problem
    first = attempt(name, sample, **given_, tol=1e-8)
    assume(first is not None)
    for solver in random.sample(mdlearn.list_solvers(), 3):
        steps = {"max_iter": 50} if solver == "smw" else {}
        other = attempt(name, sample, **given_, tol=1e-8, solver=solver, **steps)
        if other is not None:
            a, b = first.certificate, other.certificate
            scale = max(abs(a.objective), abs(b.objective)) if np.isfinite(b.objective) else abs(a.objective)
            assert a.lower_bound <= b.objective + 1e-9 * scale, f"{first!r} against {other!r}"
            assert b.lower_bound <= a.objective + 1e-9 * scale, f"{other!r} against {first!r}"
