"""Refusals of row blocks name a way, and the way works; what is wrong with a source is told in a sentence."""

from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import mdlearn
from mdlearn import extend, sources
from mdlearn.objectives.lsvm import LSVM

RNG = np.random.default_rng(4)
X = RNG.standard_normal((90, 3))
CODES = np.arange(90) % 3
NUMBERS = X @ [1.0, -1.0, 2.0]
SIGNS = (NUMBERS > 0).astype(int)


def cut(y):
    return [(X[i : i + 30], y[i : i + 30]) for i in range(0, 90, 30)]


class ByRow(LSVM):
    """Weights by row, in a class whose base has an answer of its own to whether row blocks will do."""

    name = "by_row"

    def row_terms(self, data, params):
        return extend.RowTerms(weights=np.where(data.codes == 1, 1.0, 0.1))


class OwnForm(LSVM):
    """Another form than the base's answer knows of."""

    name = "own_form"

    def form(self, data, features, bias, params):
        return super().form(data, features, bias, {**params, "nu": 0.01})


GRAM = {"X": X @ X.T, "y": SIGNS}
ALL = {"X": X, "y": SIGNS}
"""What `fit` is given instead of blocks."""
REFUSED = {
    "kernel": ("svm", SIGNS, {"kernel": "rbf"}, "approximation='nystroem'", {"approximation": "nystroem"}),
    "Gram matrix": ("svm", SIGNS, {"kernel": "precomputed"}, "the Gram matrix of all rows as X, with y", GRAM),
    "pairs": ("mdlm", CODES, {"multiclass": "ovo"}, "give multiclass='ovr'", {"multiclass": "ovr"}),
    "pairs by default": ("uldm", CODES, {}, "give multiclass='ovr'", {"multiclass": "ovr"}),
    "engine": ("svm", SIGNS, {"solver": "cd"}, "need solver='newton'", {"solver": "newton"}),
    "stochastic engine": ("svm", SIGNS, {"solver": "cd"}, "'asgd' or", {"solver": "asgd"}),
    "free bias": ("svm", SIGNS, {"solver": "asgd", "bias": "free"}, "leave out solver", {"solver": "auto"}),
    "numbers": ("svr", NUMBERS, {"class_weight": "balanced"}, r"a block \(X, y, weight\)", {"class_weight": None}),
    "hard": ("svm", SIGNS, {"C": np.inf}, "needs X and y, not row blocks: .* give it a finite weight", {"C": 9.0}),
    "hard, all rows": ("svm", SIGNS, {"C": np.inf}, "needs X and y, not row blocks", ALL),
    "no norm": ("rlp", SIGNS, {}, "'rlp' needs X and y, not row blocks", ALL),
    "all classes": ("ww", SIGNS, {}, "'ww' needs X and y, not row blocks", ALL),
    "reduced": ("lsvm", SIGNS, {"reduced": 5}, "leave out reduced", {"reduced": None}),
    "reduced, all rows": ("lsvm", SIGNS, {"reduced": 5}, "needs X and y", ALL),
    "basis": ("uldm", SIGNS, {"basis": "all"}, "give basis='euclidean'$", {"basis": "euclidean"}),
    "scale": ("uldm", SIGNS, {"c_scaling": "max_diag"}, "give c_scaling=None$", {"c_scaling": None}),
    "singular": ("uldm", SIGNS, {"C": 0.0}, "give C > 0$", {"C": 0.1}),
    "levels": ("l3svm", SIGNS, {"n_levels": 2}, "give n_levels=1$", {"n_levels": 1}),
    "row terms": (ByRow, SIGNS, {}, "'by_row' needs X and y, not row blocks: its row_terms may need all rows", ALL),
    "form of a derived class": (OwnForm, SIGNS, {}, "it makes its form of all rows", ALL),
    "features": (
        "svm",
        SIGNS,
        {"kernel": "rbf", "approximation": "nystroem", "solver": "sgd"},
        "leave out",
        {"solver": "auto"},
    ),
}


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize("case", REFUSED)
def test_what_a_refusal_says_to_do_works(case):
    objective, y, given, told, instead = REFUSED[case]
    with pytest.raises(ValueError, match=told):
        mdlearn.fit(objective, cut(y), None, **given)
    model = mdlearn.fit(objective, **{"X": cut(y), "y": None, **given, **instead})
    assert np.isfinite(model.certificate.objective)


SOURCES = {
    "list": cut(SIGNS),
    "list of sparse rows": [(csr_matrix(block), y) for block, y in cut(SIGNS)],
    "function": lambda: cut(SIGNS),
    "RowBlocks": mdlearn.RowBlocks(cut(SIGNS)),
    "RowBlocks of arrays": sources.of_arrays(X, SIGNS, rows=30),
}
GRID = {"C": [1.0, 2.0]}
MODEL = mdlearn.fit("svm", X, SIGNS)
CALLS = {
    "fit with y": lambda source: mdlearn.fit("svm", source, SIGNS),
    "path": lambda source: mdlearn.fit_path("svm", source, None, GRID),
    "selection": lambda source: mdlearn.select("svm", source, None, GRID),
    "cross-validation": lambda source: mdlearn.cross_validate("svm", source, None),
    "predict": MODEL.predict,
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("source", SOURCES)
def test_what_fit_alone_takes(source, call):
    with pytest.raises(
        TypeError, match=r"^X is a (list of tuples|function|RowBlocks), .*; row blocks go to fit, without y, alone$"
    ):
        CALLS[call](SOURCES[source])


@pytest.mark.parametrize("X", [None, 3.5, object()])
def test_what_is_no_array_at_all_is_named(X):
    with pytest.raises((TypeError, ValueError)) as raised:
        mdlearn.fit("svm", X, SIGNS)
    assert "row blocks" not in str(raised.value) and ("an array" in str(raised.value) or "2-D" in str(raised.value))


X_ = RNG.standard_normal((60, 5))
Y_ = (X_[:, 0] > 0).astype(int)


def changing():
    sizes = iter([60, 59])
    return lambda: [(X_[: (n := next(sizes))], Y_[:n])]


SENTENCES = {
    "an iterator": ("lsvm", iter([(X_, Y_)]), {}, TypeError, "an iterator only once"),
    "no tuple": ("lsvm", lambda: [X_], {}, TypeError, r"a tuple \(X, y\) or \(X, y, weight\); got ndarray"),
    "columns": (
        "lsvm",
        [(X_, Y_), (X_[:, :3], Y_)],
        {},
        ValueError,
        "a block has 3 columns",
    ),
    "labels": (
        "lsvm",
        [(X_, Y_), (X_, Y_.astype(str))],
        {},
        TypeError,
        "labels of some blocks are numbers",
    ),
    "lengths": (
        "lsvm",
        [(X_, Y_), (X_, Y_[1:])],
        {},
        ValueError,
        "block 1: X has 60 rows but y has 59 labels",
    ),
    "NaN": ("lsvm", [(X_ * np.nan, Y_)], {}, ValueError, "block 0: X contains NaN"),
    "one class": ("lsvm", [(X_, np.ones(60))], {}, ValueError, "one class"),
    "no rows": ("lsvm", [], {}, ValueError, "the blocks have no rows"),
    "change": ("lsvm", changing(), {}, ValueError, "60 rows .* in the first pass, and 59"),
    "targets": ("lsvm", [(X_, X_[:, 0])], {}, ValueError, "60 different numbers in 60 rows"),
    "sample_weight": ("lsvm", [(X_, Y_)], {"sample_weight": np.ones(60)}, ValueError, "part of its block"),
    "options": ("svm", [(X_, Y_)], {"solver_options": {"epochs": 2}}, ValueError, "take no solver_options"),
    "warm start": (
        "svm",
        [(X_, Y_)],
        {"warm_start": mdlearn.fit("svm", X_, Y_)},
        ValueError,
        "take no warm_start",
    ),
    "kernel": ("svm", [(X_, Y_)], {"kernel": "rbf"}, ValueError, "row blocks need kernel='linear'"),
    "solver": ("svm", [(X_, Y_)], {"solver": "cd"}, ValueError, "row blocks need solver='newton'"),
    "pairs": (
        "svm",
        [(X_, np.arange(60) % 3)],
        {"multiclass": "ovo"},
        ValueError,
        "one score per class, not multiclass='ovo'",
    ),
    "hard": ("svm", [(X_, Y_)], {"C": np.inf}, ValueError, "a constraint of every single row"),
    "no norm": ("rlp", [(X_, Y_)], {}, ValueError, "a hinge loss needs the squared norm"),
    "reduced": ("lsvm", [(X_, Y_)], {"reduced": 5}, ValueError, "its columns are made of single rows"),
    "basis": ("uldm", [(X_, Y_)], {"basis": "all", "multiclass": "ovr"}, ValueError, "give basis='euclidean'"),
    "joint": ("ww", [(X_, Y_)], {}, ValueError, "needs X and y, not row blocks: .* of all rows"),
    "held": ("svm", lambda: [(X_, Y_)], {"C": -1.0}, ValueError, "C needs to be"),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_refused_in_a_sentence(case):
    objective, source, given, kind, told = SENTENCES[case]
    with pytest.raises(kind, match=told):
        mdlearn.fit(objective, source, None, **given)


def test_sources():
    with pytest.raises(TypeError, match=r"row blocks need to be an iterable of \(X, y\)"):
        mdlearn.RowBlocks(3)
    with pytest.raises(ValueError, match="held needs to be an integer >= 1"):
        mdlearn.RowBlocks([], held=0)
    with pytest.raises(TypeError, match="y is None"):
        mdlearn.fit("svm", X_, None)
    with pytest.raises(TypeError, match="y is None"):
        mdlearn.fit("svm", X_.tolist(), None)


def test_objectives_without_an_optimum():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 40)), np.arange(20) % 2
    blocks = [(X[:10], y[:10]), (X[10:], y[10:])]
    with pytest.raises(ValueError, match="no optimum on these row blocks"):
        mdlearn.fit("mdlm", blocks, None, ridge=0.0)
    with pytest.raises(ValueError, match="no optimum on these row blocks"):
        mdlearn.fit("mdlm", blocks, None, lambda1=0.0, lambda2=0.0, ridge=0.0)


class Costs(extend.Objective):
    """Hinges with costs by row."""

    name = "costs_over_blocks"
    summary = "for tests"
    power = 2
    parameters: ClassVar = {"costs": extend.Setting(None, "costs", lambda name, value: value)}

    def terms(self, params, total):
        return extend.Terms(loss=(extend.HingeTerm(1.0, power=self.power),))

    def row_terms(self, data, params):
        return extend.RowTerms(extend.row_values(data, params["costs"], "costs"))

    def needs_all_rows(self, params):
        return ""


def heavier_later(factor, power):
    """Objective whose rows weigh more, or less, from the third time on that they are asked for."""
    asked = {}

    def row_terms(self, data, params):
        key = int(data.rows[0]), data.rows.shape[0]
        asked[key] = asked.get(key, 0) + 1
        return extend.RowTerms(np.full(data.counts.shape[0], 1.0 if asked[key] <= 2 else factor))

    return type("Heavier", (Costs,), {"power": power, "row_terms": row_terms, "needs_all_rows": lambda *_: ""})


OTHER_TERMS = "row_terms of objective 'costs_over_blocks' say other things of the rows in the first pass than in"


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("factor", [0.2, 1.5, 4.0])
def test_row_terms_that_differ_between_passes(factor, power, bias):
    # Four times the weight: w = 0 had the objective 120 of the first pass, and the bound 120 of a later one.
    with pytest.raises(ValueError, match=OTHER_TERMS):
        mdlearn.fit(heavier_later(factor, power), cut(SIGNS), None, bias=bias)


class Passes:
    """Source that calls a function of the number of the pass, from 1 on."""

    def __init__(self, make):
        self.make, self.passes = make, 0

    def __call__(self):
        self.passes += 1
        return iter(self.make(self.passes))


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_costs_in_another_order_than_the_rows(task):
    objective = type("Mine", (Costs,), {"task": task, "needs_all_rows": lambda *_: ""})
    costs, y = np.exp(np.random.default_rng(9).standard_normal(90)), SIGNS if task == "classification" else NUMBERS

    def blocks(number):
        order = np.arange(90) if number == 1 else np.random.default_rng(7).permutation(90)
        return [(X[order[i : i + 30]], y[order[i : i + 30]]) for i in range(0, 90, 30)]

    assert mdlearn.fit(objective(costs=costs), Passes(lambda _: blocks(1)), None).certificate.converged
    # Where another order begins with the first pass that asks for them, costs belong to the rows as they come there.
    late = Passes(lambda number: blocks(1 if number <= 2 else 3))
    with pytest.raises(ValueError, match=OTHER_TERMS):
        mdlearn.fit(objective(costs=costs), late, None)


def test_three_classes_with_costs_take_single_steps():
    costs = np.exp(np.random.default_rng(10).standard_normal(90))
    objective = type("Mine", (Costs,), {"power": 1, "needs_all_rows": lambda *_: ""})(costs=costs)
    exact = mdlearn.fit(objective, cut(CODES), None).certificate
    rough = mdlearn.fit(objective, cut(CODES), None, solver="asgd", solver_options={"epochs": 4}).certificate
    assert rough.lower_bound <= exact.objective <= rough.objective * (1.0 + 1e-12)


def test_a_bound_above_an_objective_of_another_pass():
    # Targets grow after the second pass: w = 0 is judged by the first ones, and the bound is that of the others.
    def blocks(number):
        return cut(NUMBERS if number <= 2 else 30.0 * NUMBERS)

    with pytest.raises(ValueError, match=r"have the objective \S+ in one pass, below the bound \S+ of another; give"):
        mdlearn.fit("svr", Passes(blocks), None)


def test_no_row_is_near_one_of_two_kinks():
    # All rows of this source are far from both kinks of a tube where later passes look for them.
    def blocks(number):
        return cut(NUMBERS if number <= 2 else 100.0 * NUMBERS)

    with pytest.raises(ValueError, match="below the bound"):
        mdlearn.fit("svr", Passes(blocks), None)
