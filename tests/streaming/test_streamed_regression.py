"""Regression over row blocks: the answer of the fit in memory, that of scipy, and what becomes of weights and files."""

from __future__ import annotations

import pickle
from typing import ClassVar

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

import mdlearn
from mdlearn.extend import GivenLoss, HingeTerm, Objective, Task, Terms, plus
from mdlearn.model.regression import RegressionModel

TUBE = (HingeTerm(0.7, side=1, threshold=-0.3), HingeTerm(0.7, side=-1, threshold=0.3))
QUANTILE = (HingeTerm(0.2, side=1, threshold=0.0), HingeTerm(0.8, side=-1, threshold=0.0))
SQUARES = tuple(HingeTerm(0.5, side=side, threshold=0.0, power=2) for side in (1, -1))
HUBER = GivenLoss(
    lambda t: np.where(np.abs(t) <= 0.5, 0.5 * t * t, 0.5 * np.abs(t) - 0.125),
    lambda t: np.clip(t, -0.5, 0.5),
    lambda t: np.where(np.abs(t) <= 0.5, 1.0, 0.0),
).terms(0.9)
LOSSES = {"tube": TUBE, "quantile": QUANTILE, "squares": SQUARES, "Huber": HUBER}
RESTS = {"loss alone": {}, "variance": {"variance": 40.0}, "variance and mean": {"variance": 40.0, "mean": 9.0}}


def objective_of(loss, task="regression", **rest):
    declared = Terms(loss=loss, **rest)

    class Residuals(Objective):
        name = "residuals"
        summary = "for tests"

        def terms(self, params, total):
            return declared

    Residuals.task = task
    return Residuals


def numbers(m=400, level=1.5, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 4)) + 0.3
    return X, X @ [1.0, -2.0, 0.5, 0.0] + level + rng.standard_t(3, m)


def cut(X, *others):
    m = X.shape[0]
    return [tuple(one[part] for one in (X, *others)) for part in (slice(0, 90), slice(90, 91), slice(91, m))]


def check_both_fits(streamed, held, rel):
    """Check that both are certified, and that each bound holds for the other's objective."""
    assert held.certificate.converged and streamed.certificate.converged
    for one, other in ((held, streamed), (streamed, held)):
        scale = 1e-13 * abs(other.certificate.objective)
        assert one.certificate.lower_bound <= other.certificate.objective + scale
    assert streamed.certificate.objective == pytest.approx(held.certificate.objective, rel=rel)


def value(model, X, y, counts, loss, variance=0.0, mean=0.0):
    """The printed objective at a model's coefficients; a free bias is not part of the squared norm."""
    w, b = model.coef_[0].astype(float), float(model.intercept_[0])
    z = X @ w + b - y
    average = counts @ z / counts.sum()
    found = 0.5 * w @ w + 0.5 * b * b * (model.bias == "regularized")
    found += variance * (counts @ np.square(z - average)) / counts.sum() - mean * average
    return found + sum(term.value(z, counts.astype(float)) for term in loss)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("rest", RESTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_answer_of_the_fit_in_memory(loss, rest, bias):
    X, y = numbers()
    task, given = objective_of(LOSSES[loss], **RESTS[rest]), {"bias": bias, "tol": 1e-8}
    held, streamed = mdlearn.fit(task, X, y, **given), mdlearn.fit(task, cut(X, y), None, **given)
    check_both_fits(streamed, held, 2e-8)
    assert isinstance(streamed, RegressionModel) and streamed.predict(X).shape == (400,)
    told = value(streamed, X, y, np.ones(400), LOSSES[loss], **RESTS[rest])
    assert streamed.certificate.objective == pytest.approx(told, rel=1e-10)
    assert streamed.coef_ == pytest.approx(held.coef_, abs=1e-3)


@pytest.mark.parametrize("penalty, bias", [(0.0, "none"), (0.0, "regularized"), (0.0, "free"), (20.0, "none")])
@pytest.mark.parametrize("loss", ["squares", "Huber"])
def test_the_optimum_of_scipy(loss, penalty, bias):
    # Of a smooth loss; |w| is the sum of two parts >= 0.
    X, y = numbers(60)
    counts, d = np.arange(60) % 3 + 0.5, X.shape[1]
    task = objective_of(LOSSES[loss], variance=5.0, penalty=penalty)
    model = mdlearn.fit(task, cut(X, y, counts), None, bias=bias, tol=1e-10)

    def whole(v):
        w, b = v[:d] - v[d : 2 * d], v[-1] * (bias != "none")
        z = X @ w + b - y
        off = z - counts @ z / counts.sum()
        ridge = 0.5 * w @ w + 0.5 * b * b * (bias == "regularized")
        spread = 5.0 * counts @ off**2 / counts.sum()
        return ridge + penalty * v[: 2 * d].sum() + spread + sum(term.value(z, counts) for term in LOSSES[loss])

    limits = [(0.0, None)] * (2 * d) + [(None, None)]
    options = {"ftol": 1e-16, "gtol": 1e-9, "maxiter": 5000, "maxfun": 100000}
    best = minimize(whole, np.zeros(2 * d + 1), bounds=limits, method="L-BFGS-B", options=options).fun
    assert model.certificate.converged and model.certificate.objective == pytest.approx(best, rel=1e-7)
    assert model.certificate.lower_bound <= best * (1.0 + 1e-12)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("held", [None, 2])
def test_support_vectors_reach_the_program_of_scipy(held, bias):
    X, y = numbers(50)
    counts = np.arange(50) % 3 + 0.0
    blocks = mdlearn.RowBlocks(cut(X, y, counts), held=held)
    model = mdlearn.fit("svr", blocks, None, C=0.7, epsilon=0.3, bias=bias, tol=1e-9)
    F = np.column_stack([X, np.ones(50)])[:, : 4 + (bias != "none")]
    own = np.ones(F.shape[1])
    own[4:] = bias == "regularized"
    m, d = F.shape
    rows, cost = np.block([[-F, np.eye(m)], [F, np.eye(m)]]), np.append(np.zeros(d), 0.7 * counts)
    room = {"type": "ineq", "fun": lambda x: rows @ x + 0.3 + np.append(y, -y), "jac": lambda x: rows}

    def whole(x):
        return 0.5 * own @ x[:d] ** 2 + cost @ x, np.append(own * x[:d], np.zeros(m)) + cost

    start = np.append(np.zeros(d), np.maximum(np.abs(y) - 0.3, 0.0))
    given = {"bounds": [(None, None)] * d + [(0, None)] * m, "constraints": room, "method": "SLSQP"}
    w = minimize(whole, start, jac=True, options={"ftol": 1e-15, "maxiter": 1000}, **given).x[:d]
    best = 0.5 * own @ w**2 + 0.7 * counts @ np.maximum(0.0, np.abs(F @ w - y) - 0.3)
    assert model.certificate.converged and model.certificate.objective == pytest.approx(best, rel=1e-7)
    assert model.certificate.lower_bound <= best * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_weight_is_a_repetition(loss):
    X, y = numbers(150)
    counts, task = np.arange(150) % 4, objective_of(LOSSES[loss], variance=5.0)
    given = {"bias": "free", "tol": 1e-10}
    weighted = mdlearn.fit(task, cut(X, y, counts.astype(float)), None, **given)
    repeated = mdlearn.fit(task, cut(np.repeat(X, counts, axis=0), np.repeat(y, counts)), None, **given)
    check_both_fits(weighted, repeated, 1e-9)
    none = [(X[:5] + 1e3, y[:5], np.zeros(5)), *cut(X, y, counts.astype(float)), (X[:0], y[:0], np.ones(0))]
    assert mdlearn.fit(task, none, None, **given).coef_ == pytest.approx(weighted.coef_, abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["float32", "CSR", "CSR float32"])
def test_types_of_rows(kind, loss):
    X, y = numbers(300)
    X[np.abs(X) < 0.4] = 0.0
    held = X.astype(np.float32) if "float32" in kind else X
    task, tol = objective_of(LOSSES[loss], variance=5.0), 1e-5 if "float32" in kind else 1e-9
    blocks = [(csr_matrix(part) if "CSR" in kind else part, t) for part, t in cut(held, y)]
    model, whole = (mdlearn.fit(task, *data, bias="free", tol=tol) for data in ((blocks, None), (held, y)))
    check_both_fits(model, whole, 2.0 * tol)
    assert model.coef_.dtype == held.dtype
    told = value(model, held.astype(float), y, np.ones(300), LOSSES[loss], variance=5.0)
    assert model.certificate.objective == pytest.approx(told, rel=1e-10)


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize(
    "loss, rest",
    [("tube", {}), ("tube", {"variance": 5.0}), ("Huber", {}), ("Huber", {"variance": 5.0, "penalty": 3.0})],
)
def test_an_interrupted_fit_comes_to_the_same_bits(loss, rest, tmp_path):
    X, y = numbers()
    task = objective_of(LOSSES[loss], **rest)
    straight = mdlearn.fit(task, mdlearn.RowBlocks(cut(X, y), held=9), None, tol=1e-9)
    for most in (1, 2, 4, None):
        kept = mdlearn.RowBlocks(cut(X, y), checkpoint=tmp_path / "fit.npz", held=9)
        model = mdlearn.fit(task, kept, None, tol=1e-9, max_iter=most)
    assert model.certificate.converged and np.array_equal(model.coef_, straight.coef_)
    assert model.certificate.lower_bound == straight.certificate.lower_bound and model.n_iter == straight.n_iter
    model.save(tmp_path / "model.mdl")
    assert np.array_equal(mdlearn.load(tmp_path / "model.mdl").predict(X), model.predict(X))


def test_features_made_of_rows():
    X, y = numbers()
    given = {"kernel": "rbf", "approximation": "nystroem", "n_components": 30, "tol": 1e-8}
    streamed, held = mdlearn.fit("svr", cut(X, y), None, **given), mdlearn.fit("svr", X, y, **given)
    check_both_fits(streamed, held, 1e-7)
    assert streamed.predict(X) == pytest.approx(held.predict(X), abs=1e-2)


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["sgd", "asgd"])
def test_stochastic_epochs(solver):
    X, y = numbers(3000, level=0.0)
    best = mdlearn.fit("svr", X, y, C=0.01, tol=1e-9).certificate
    model = mdlearn.fit("svr", cut(X, y), None, C=0.01, solver=solver, solver_options={"epochs": 20})
    assert model.certificate.lower_bound <= best.objective <= model.certificate.objective * (1.0 + 1e-12)
    assert model.certificate.objective <= 1.02 * best.objective
    assert model.certificate.lower_bound >= 0.9 * best.objective


@pytest.mark.parametrize("loss", ["squares", "Huber"])
def test_without_a_squared_norm(loss):
    X, y = numbers()
    task = objective_of(LOSSES[loss], ridge=0.0)
    streamed, held = mdlearn.fit(task, cut(X, y), None, tol=1e-8), mdlearn.fit(task, X, y, tol=1e-8)
    check_both_fits(streamed, held, 2e-8)


@pytest.mark.parametrize("level, spread", [(1e6, 1.0), (-3.0, 1e-9), (0.0, 1e7)])
@pytest.mark.parametrize("loss", ["tube", "squares"])
def test_targets_of_any_size(loss, level, spread):
    X, y = numbers()
    y, factor = level + spread * y, spread if loss == "tube" else 1.0
    terms = tuple(
        HingeTerm(factor * t.weight, side=t.side, threshold=spread * t.threshold, power=t.power) for t in LOSSES[loss]
    )
    # The gap's unit is the objective at w = 0 where that is far larger.
    task, given = objective_of(terms), {"bias": "free", "tol": 1e-12 if level > 0 else 1e-7}
    streamed, held = mdlearn.fit(task, cut(X, y), None, **given), mdlearn.fit(task, X, y, **given)
    assert streamed.certificate.objective == pytest.approx(held.certificate.objective, rel=1e-6)
    assert streamed.certificate.converged


@pytest.mark.parametrize("held", [None, 3])
@pytest.mark.parametrize("loss", ["tube", "quantile"])
def test_a_mean_that_would_outweigh_the_rows_near_a_kink(loss, held):
    X, y = numbers(60, level=0.0, seed=0)
    task, given = objective_of(LOSSES[loss], variance=40.0, mean=9.0), {"bias": "free", "tol": 1e-8}
    blocks = mdlearn.RowBlocks(cut(X, y), held=held)
    check_both_fits(mdlearn.fit(task, blocks, None, **given), mdlearn.fit(task, X, y, **given), 2e-8)


def test_equal_targets_are_met():
    X, _ = numbers(30)
    for y in (np.zeros(30), np.full(30, 2.0)):
        model = mdlearn.fit("svr", cut(X[:, :2], y), None, bias="free", epsilon=0.0)
        assert model.certificate.converged and model.predict(X[:, :2]) == pytest.approx(y, abs=1e-6)


class MedianModel(RegressionModel):
    """Model of a task of a plugin whose y holds numbers."""

    task = "median"


def test_a_task_of_numbers_that_a_plugin_brings():
    X, y = numbers()
    task = objective_of(QUANTILE, task=Task("numbers", MedianModel))
    streamed, held = mdlearn.fit(task, cut(X, y), None, tol=1e-8), mdlearn.fit(task, X, y, tol=1e-8)
    check_both_fits(streamed, held, 2e-8)
    assert type(streamed) is type(held) is MedianModel


class Elsewhere(mdlearn.RowBlocks):
    """Blocks of a source of a plugin, to whose processes work is sent; `change` is added to later passes."""

    name = "elsewhere"
    change: ClassVar = (0.0, 0.0)

    def reduced(self, make):
        passes, total = vars(self).setdefault("passes", 0), None
        self.passes += 1
        rows, targets = self.change if passes > 1 else (0.0, 0.0)
        for number, (X, y) in enumerate(self):
            total = plus(total, pickle.loads(pickle.dumps(make))(number, (X + rows, y + targets)))
            yield
        return pickle.loads(pickle.dumps(total))


@pytest.mark.parametrize("loss", ["tube", "quantile", "squares"])  # functions of a given loss may not be sent
def test_a_source_of_a_plugin(loss):
    X, y = numbers()
    task = objective_of(LOSSES[loss], variance=5.0)
    check_both_fits(mdlearn.fit(task, Elsewhere(cut(X, y)), None, tol=1e-8), mdlearn.fit(task, X, y, tol=1e-8), 2e-8)


@pytest.mark.parametrize("change, told", [((0.1, 0.0), "other rows .* column 0 added"), ((0.0, 0.1), "other targets")])
def test_a_source_of_a_plugin_that_changes(change, told):
    blocks = Elsewhere(cut(*numbers()))
    blocks.change = change
    with pytest.raises(ValueError, match=told):
        mdlearn.fit(objective_of(TUBE), blocks, None)


TARGETS = numbers(60)
REFUSED = {
    "no number": ([(TARGETS[0], np.full(60, np.nan))], {}, "block 0: "),
    "words": ([(TARGETS[0], np.array(["a"] * 60))], {}, "block 0: .*real numbers"),
    "class weights": ([TARGETS], {"class_weight": "balanced"}, "is for classifiers; give a block"),
    "no rows": ([], {}, "no rows; give at least one row$"),
    "no weight": ([(*TARGETS, np.zeros(60))], {}, "no row of positive weight"),
    "columns": ([TARGETS, (TARGETS[0][:, :2], TARGETS[1])], {}, "a block has 2 columns and an earlier one 4"),
    "lengths": ([(TARGETS[0], TARGETS[1][1:])], {}, "block 0: .*60 rows"),
    "a mean that outweighs": ([TARGETS], {"loss": HUBER, "mean": 1e3, "bias": "free"}, "unbounded below: the mean"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_a_sentence(case):
    blocks, given, told = REFUSED[case]
    fitted = {name: given[name] for name in ("class_weight", "bias") if name in given}
    task = objective_of(**{"loss": SQUARES, **{name: one for name, one in given.items() if name not in fitted}})
    with pytest.raises((ValueError, TypeError), match=told):
        mdlearn.fit(task, blocks, None, **fitted)
