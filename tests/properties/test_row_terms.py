"""Weights and thresholds of single rows: every engine takes them or says that it does not, and none ignores them."""

from __future__ import annotations

import warnings
from unittest.mock import patch

import numpy as np
import pytest
from pairwise import pairs_first
from row_terms_cases import GAMMA, LOSSES, Formula, gram, objective_of, sample
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

import mdlearn
from mdlearn.extend import HingeTerm, RowTerms, Terms, row_values
from mdlearn.plugins.registry import registry
from mdlearn.solvers.auto import FOLLOWERS
from mdlearn.solvers.coordinate_descent import solver as coordinate_descent

BIASES = ("none", "regularized", "free")
STEPS = {"epochs": 400}
TAKES = {
    "weights": {"interior", "newton", "newton-cg", "cd", "decomposition", "hybrid", "linprog", "sgd", "asgd"},
    "shifts": {"interior", "newton", "newton-cg", "cd", "decomposition", "linprog", "sgd", "asgd"},
}
"""Engines that take them; the others refuse."""


def fit(objective, X, y, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        return mdlearn.fit(objective, X, y, **settings)


def fits(objective, X, y, **settings):
    """Fits by all engines that take the problem, by name; another one refuses it in words.

    Engines are on their own: none goes on where another gives up, but where sweeps may go round in circles.
    """
    with patch.dict(FOLLOWERS, clear=settings.get("bias") != "free"):
        return fits_of_engines(objective, X, y, **settings)


def fits_of_engines(objective, X, y, **settings):
    found = {}
    for name, cls in registry().solvers.items():
        options = STEPS if "epochs" in cls.options and cls.name != "apg" else {}
        try:
            found[name] = fit(objective, X, y, solver=name, solver_options=options, tol=1e-9, **settings)
        except ValueError as error:
            assert "cannot take this problem" in str(error), f"{name}: {error}"
    return found


def by_row(what):
    _, _, _, weights, shifts = sample()
    return {"weights": weights if what != "shifts" else None, "shifts": shifts if what != "weights" else None}


def formula(loss, X, y, counts, bias, kernel="linear", **given):
    y, c = np.where(y == 1, 1.0, -1.0), counts.astype(float)
    F, M = (gram(X),) * 2 if kernel == "rbf" else (X, np.eye(X.shape[1]))
    return Formula(loss, F, M, y, c, bias, **given)


def held_by(model, kernel):
    """Coefficients of a model as the formula has them."""
    w = model.dual_coef_[0] if kernel == "rbf" else model.coef_[0]
    return w if model.bias == "none" else np.append(w, model.intercept_)


def judge(models, stated, begin, kernel="linear"):
    """Objectives by the formula are those stated, and within the gap that is stated of the optimum."""
    low, best = stated.optimum()
    assert low <= best <= low + 2e-6 * (1 + abs(low))
    for name, model in models.items():
        own, where = model.certificate, f"{name}: {model.certificate}"
        assert stated.value(held_by(model, kernel)) == pytest.approx(own.objective, rel=1e-9), where
        assert own.lower_bound <= best + 1e-8 * (1 + abs(best)), where
        assert own.objective >= low - 1e-8 * (1 + abs(low)), where
        if registry().solvers[name].exact:
            assert own.converged and own.objective <= best + 1e-8 * (1 + abs(best)), where
        else:  # stochastic steps: nearly all of the way from w = 0
            assert own.objective - best <= 0.03 * (begin - best), where


@pytest.mark.parametrize(
    *pairs_first(loss=[*LOSSES], kernel=["linear", "rbf"], bias=BIASES, what=["weights", "shifts", "both"])
)
def test_every_engine_reaches_the_optimum_or_refuses(loss, kernel, bias, what):
    X, y, counts, *_ = sample()
    given = {**by_row(what), "v": 6.0, "a": 1.5} if what == "both" else by_row(what)
    settings = {"kernel": kernel, "bias": bias, "sample_weight": counts, **given}
    settings.update({"gamma": GAMMA} if kernel == "rbf" else {})
    stated = formula(loss, X, y, counts, bias, kernel, **given)
    with patch.dict(STEPS, epochs=150):  # enough over dense rows
        models = fits(objective_of(LOSSES[loss][0]), X, y, **settings)
    assert models and models.keys() <= TAKES["weights" if what == "weights" else "shifts"]
    judge(models, stated, stated.value(np.zeros(stated.R.shape[1])), kernel)
    chosen = fit(objective_of(LOSSES[loss][0]), X, y, tol=1e-9, **settings)
    assert chosen.solver in models and chosen.certificate.converged


@pytest.mark.parametrize("what", ["weights", "both"])
@pytest.mark.parametrize("loss", ["hinge", "both powers", "logistic"])
def test_sparse_rows(loss, what):
    X, y, counts, *_ = sample()
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0.0
    given = {**by_row(what), "v": 6.0, "a": 1.5}
    stated = formula(loss, X, y, counts, "regularized", **given)
    settings = {"bias": "regularized", "sample_weight": counts, **given}
    models = fits(objective_of(LOSSES[loss][0]), csr_matrix(X), y, **settings)
    assert {"asgd", "cd" if loss != "logistic" else "newton"} <= models.keys()
    judge(models, stated, stated.value(np.zeros(stated.R.shape[1])))


@pytest.mark.parametrize("v", [0.0, 6.0])
@pytest.mark.parametrize("kind", [np.asarray, csr_matrix], ids=["dense", "CSR"])
@pytest.mark.parametrize("loss", ["hinge", "both powers"])
def test_sweeps_over_rows(loss, kind, v, monkeypatch):
    """Coordinate descent as it goes over many rows: on the rows themselves, not on their Gram matrix."""
    monkeypatch.setattr(coordinate_descent, "GRAM_ROWS", 0)
    monkeypatch.delitem(FOLLOWERS, "cd")
    X, y, counts, *_ = sample()
    given = {**by_row("both"), "v": v}
    settings = {"solver": "cd", "sample_weight": counts, "tol": 1e-9, **given}
    model = fit(objective_of(LOSSES[loss][0]), kind(X), y, **settings)
    judge({"cd": model}, formula(loss, X, y, counts, "regularized", **given), 0.0)
    # The second-order finish would find the optimum from anywhere; sweeps alone come near it.
    monkeypatch.setattr(coordinate_descent.MatrixFreeAugmentedLagrangian, "run", lambda self: iter(()))
    assert fit(objective_of(LOSSES[loss][0]), kind(X), y, **settings).certificate.gap <= 0.005


def test_all_engines_that_say_so_take_them():
    """Over the losses and features of this file, each engine is met that takes weights or shifts at all."""
    X, y, *_ = sample()
    for what, expected in TAKES.items():
        met = set()
        for loss, kernel in (("hinge", "linear"), ("hinge", "rbf"), ("logistic", "linear"), ("logistic", "rbf")):
            met |= fits(objective_of(LOSSES[loss][0]), X, y, kernel=kernel, **by_row(what)).keys()
        met |= fits(objective_of(LOSSES["hinge"][0], ridge=0.0), X, y, bias="free", **by_row(what)).keys()
        assert met == expected
        assert expected <= {name for name, cls in registry().solvers.items() if cls.by_row}


@pytest.mark.parametrize("name", ["direct", "smw", "apg"])
def test_refusals_say_what_differs(name):
    X, y, *_ = sample()
    with pytest.raises(
        ValueError, match="one weight and one threshold per loss term, and these differ from row to row"
    ):
        fit(objective_of(LOSSES["squared"][0]), X, y, solver=name, bias="none", **by_row("weights"))


def test_foreign_engines_refuse_unless_they_say_otherwise():
    class Other(mdlearn.Solver):
        name = "other"
        purpose = "none"

    X, y, *_ = sample()
    with pytest.raises(ValueError, match="solver 'other' cannot take this problem: it reads one weight"):
        fit(objective_of(LOSSES["hinge"][0]), X, y, solver=Other, **by_row("weights"))
    with pytest.raises(NotImplementedError):
        fit(objective_of(LOSSES["hinge"][0]), X, y, solver=Other)


@pytest.mark.parametrize("bias", BIASES)
def test_without_the_squared_norm(bias):
    """sum_i c_i q_i max(0, 1 + s_i - z_i) alone: a linear program."""
    X, y, counts, weights, shifts = sample()
    R = np.where(y == 1, 1.0, -1.0)[:, None] * (X if bias == "none" else np.hstack([X, np.ones((len(y), 1))]))
    m, n = R.shape
    program = linprog(
        np.r_[np.zeros(n), 1.3 * counts * weights],
        A_ub=-np.hstack([R, np.eye(m)]),
        b_ub=-(1.0 + shifts),
        bounds=[(None, None)] * n + [(0, None)] * m,
    )
    given = {"bias": bias, "sample_weight": counts, "weights": weights, "shifts": shifts}
    models = fits(objective_of(LOSSES["hinge"][0], ridge=0.0), X, y, **given)
    assert models.keys() == {"interior", "linprog"}
    for model in models.values():
        assert model.certificate.converged
        assert model.certificate.objective == pytest.approx(program.fun, rel=1e-8)


@pytest.mark.parametrize("loss", ["two hinges", "given", "logistic"])
def test_each_term_has_its_own(loss):
    X, y, counts, *_ = sample()
    rng, terms = np.random.default_rng(3), LOSSES[loss][0]
    given = {"weights": rng.uniform(0, 3, (len(terms), 24)), "shifts": rng.standard_normal((len(terms), 24))}
    if loss == "given":  # the two sides of one function have to begin at the same place
        given = {name: np.broadcast_to(one[0], one.shape) for name, one in given.items()}
    stated = formula(loss, X, y, counts, "free", **given)
    models = fits(objective_of(terms), X, y, bias="free", sample_weight=counts, **given)
    judge(models, stated, stated.value(np.zeros(4)))


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_rows_that_repeat_keep_their_own_weights(loss):
    """A sample weight of 2 is a row twice with its weight; equal rows with two weights are one with their sum."""
    X, y, counts, weights, shifts = sample()
    task, whole = objective_of(LOSSES[loss][0]), np.repeat(np.arange(24), counts)
    given = {"tol": 1e-12, "v": 3.0}
    once = fit(task, X, y, sample_weight=counts, weights=weights, shifts=shifts, **given)
    twice = fit(task, X[whole], y[whole], weights=weights[whole], shifts=shifts[whole], **given)
    assert once.certificate.objective == pytest.approx(twice.certificate.objective, rel=1e-10)
    np.testing.assert_allclose(once.coef_, twice.coef_, atol=1e-5)
    split, rest = np.concatenate([0.3 * weights, 0.7 * weights]), np.tile(np.arange(24), 2)
    parts = fit(task, X[rest], y[rest], weights=split, tol=1e-12)
    one = fit(task, X, y, weights=weights, tol=1e-12)
    assert parts.certificate.objective == pytest.approx(one.certificate.objective, rel=1e-10)


def test_the_mean_of_the_weights_is_no_weight_of_the_variance():
    """Weights by row leave variance and mean alone, sample weights do not."""
    X, y, _, weights, _ = sample()
    settings = {"v": 6.0, "tol": 1e-10}
    own = fit(objective_of(LOSSES["hinge"][0]), X, y, weights=weights, **settings)
    counts = fit(objective_of(LOSSES["hinge"][0]), X, y, sample_weight=weights, **settings)
    assert abs(own.certificate.objective - counts.certificate.objective) > 1e-3


def test_pairs_of_classes_and_folds_take_their_rows():
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((60, 3)), rng.uniform(0.1, 3.0, 60)
    y = np.argmax(X + rng.standard_normal((60, 3)), axis=1)
    task = objective_of(LOSSES["hinge"][0])
    model = fit(task, X, y, multiclass="ovo", weights=weights, tol=1e-11)
    for j, (low, high) in enumerate(((0, 1), (0, 2), (1, 2))):
        chosen = (y == low) | (y == high)
        alone = fit(task, X[chosen], y[chosen], weights=weights[chosen], tol=1e-11)
        np.testing.assert_allclose(model.coef_[j], alone.coef_[0], atol=1e-4)
    rest = fit(task, X, y, weights=weights, tol=1e-11)
    for j in range(3):
        alone = fit(task, X, np.where(y == j, 1, 0), weights=weights, tol=1e-11)
        np.testing.assert_allclose(rest.coef_[j], alone.coef_[0], atol=1e-4)
    folds = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    two = np.where(y == 0, 1, 0)
    judged = mdlearn.cross_validate(task, X, two, cv=folds, weights=weights)
    for j, (train, test) in enumerate(folds):
        alone = fit(task, X[train], two[train], weights=weights[train])
        assert judged.scores[j] == pytest.approx(alone.score(X[test], two[test]))


def test_regression_between_two_targets_of_each_row():
    """sum max(0, low_i - f_i) + max(0, f_i - high_i): no loss between, and the certificate says how far f is off."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    low = X @ [1.0, -2.0, 0.5] + 0.3 * rng.standard_normal(40)
    high = low + rng.uniform(0, 1, 40)

    class Between(objective_of((HingeTerm(1.0, threshold=0.0), HingeTerm(1.0, side=-1, threshold=0.0)))):
        task = "regression"

    model = fit(Between, X, np.zeros(40), shifts=np.array([low, high]), tol=1e-10)
    f = model.predict(X)
    value = np.maximum(0, low - f).sum() + np.maximum(0, f - high).sum()
    value += 0.5 * (model.coef_[0] @ model.coef_[0] + float(model.intercept_[0]) ** 2)
    assert model.certificate.converged and model.certificate.objective == pytest.approx(value, rel=1e-9)
    assert np.mean((f > low - 0.3) & (f < high + 0.3)) > 0.8


def test_weights_that_are_one_change_nothing():
    X, y, counts, *_ = sample()
    for loss, (terms, _) in LOSSES.items():
        task = objective_of(terms)
        plain = fit(task, X, y, sample_weight=counts, tol=1e-10)
        ones = fit(task, X, y, sample_weight=counts, weights=np.ones(24), shifts=np.zeros(24), tol=1e-10)
        assert ones.certificate.objective == pytest.approx(plain.certificate.objective, rel=1e-8), loss


@pytest.mark.parametrize(
    "given, told",
    [
        ({"weights": np.ones(23)}, r"weights needs one number per row of X, shape \(24,\); got shape \(23,\)"),
        ({"weights": np.full(24, "a")}, "weights needs to be numbers, one per row of X"),
        ({"weights": np.r_[1.0, np.nan, np.ones(22)]}, "weights has NaN or infinity in row 1"),
        ({"weights": np.r_[np.ones(23), -1.0]}, r"weights of loss terms by row need to be >= 0; got -1\.0"),
        ({"weights": np.full(24, 1e200)}, "weights of loss terms by row are beyond 1e"),
        (
            {"shifts": np.ones((3, 24))},
            r"row_terms returned RowTerms with shifts that are an array .* \(24,\) or \(1, 24\)",
        ),
    ],
)
def test_wrong_weights_are_told(given, told):
    X, y, *_ = sample()
    with pytest.raises((ValueError, TypeError), match=told):
        fit(objective_of(LOSSES["hinge"][0]), X, y, **given)


def test_numbers_below_what_a_parameter_allows_are_told_with_its_name_and_row():
    class Costs(objective_of(LOSSES["hinge"][0])):
        def row_terms(self, data, params):
            return RowTerms(weights=row_values(data, params["weights"], "costs", low=0.0))

    X, y, *_ = sample()
    costs = np.r_[np.full(20, 2.0), 0.0, -0.5, -7.0, 1.0]
    with pytest.raises(ValueError, match=r"^costs needs to be numbers >= 0, one per row of X; got -0\.5 in row 21\b"):
        fit(Costs, X, y, weights=costs)
    counted = np.where(costs < 0, 0.0, 1.0)  # rows of weight 0 are not there, but rows keep their numbers
    assert fit(Costs, X, y, weights=costs, sample_weight=counted).certificate.converged
    with pytest.raises(ValueError, match=r"got -7\.0 in row 22\b"):
        fit(Costs, X, y, weights=costs, sample_weight=np.arange(24) != 21)


def test_other_answers_of_row_terms_are_a_fault():
    class Wrong(objective_of(LOSSES["hinge"][0])):
        def row_terms(self, data, params):
            return data.counts

    X, y, *_ = sample()
    with pytest.raises(
        TypeError, match=r"is faulty: Wrong\.row_terms returned an array of .* RowTerms or None is needed"
    ):
        fit(Wrong, X, y)


def test_terms_by_row_go_with_a_penalty_and_with_classes_as_one_problem():
    X, y, *_ = sample()

    class Sparse(objective_of(LOSSES["squared hinge"][0])):
        def terms(self, params, total):
            return Terms(loss=LOSSES["squared hinge"][0], penalty=0.1)

    class Joint(objective_of(LOSSES["squared hinge"][0])):
        multiclass = ("joint",)

    for task, labels in ((Sparse, y), (Joint, np.arange(24) % 3)):
        told = fit(task, X, labels, **by_row("weights")).certificate
        assert told.converged and told.lower_bound <= told.objective


def test_what_cannot_be_had_together_is_refused():
    X, y, *_ = sample()
    with pytest.raises(ValueError, match="single rows need a loss of finite weight"):
        fit(objective_of((HingeTerm(np.inf),)), X, y, **by_row("weights"))

    with pytest.raises(ValueError, match="its row_terms may need all rows"):
        fit(objective_of(LOSSES["hinge"][0]), [(X, y)], None, **by_row("weights"))
    with pytest.raises(ValueError, match="is the bound for ldm and svm"):
        mdlearn.cross_validate(objective_of((HingeTerm(1.0),)), X, y, cv="pseudo-loo", **by_row("weights"))

    class OwnForm(objective_of(LOSSES["hinge"][0])):
        def form(self, data, features, bias, params):
            return super().form(data, features, bias, params)

    with pytest.raises(TypeError, match="has row_terms and a form of its own, which does not read them"):
        fit(OwnForm, X, y, **by_row("weights"))


def test_leave_one_out_refits_where_rows_differ():
    """The closed form of quadratic losses knows one weight; the folds of single rows are the truth."""
    X, y, _, weights, _ = sample()
    task = objective_of(LOSSES["squared"][0])
    loo = mdlearn.cross_validate(task, X, y, cv="loo", weights=weights)
    folds = [(np.delete(np.arange(24), i), np.array([i])) for i in range(24)]
    right = mdlearn.cross_validate(task, X, y, cv=folds, weights=weights)
    assert loo.scores.mean() == pytest.approx(right.scores.mean())


def test_row_terms_of_a_column_take_the_largest_weight_into_the_term():
    given = RowTerms(np.array([0.5, 2.0, 0.0]), np.array([[0.0, 1.0, -1.0]]))
    column = mdlearn.extend.Column(np.ones(3), np.array([1.0, 3.0, 1.0]), 0.0, 0.0, (HingeTerm(1.5),), by_row=given)
    np.testing.assert_allclose(column.caps, [[0.75, 9.0, 0.0]])
    np.testing.assert_allclose(column.kinks, [[1.0, 2.0, 0.0]])
    assert column.distribution_value(np.zeros(3)) == pytest.approx(0.75 * 1 + 9.0 * 2)
    part = column.take(np.array([0, 2]), 2.0)
    np.testing.assert_allclose(part.caps, [[1.5, 0.0]])
