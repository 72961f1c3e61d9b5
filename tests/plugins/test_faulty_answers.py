"""Answers of plugins are looked at once per fit: whose it is, which method, what came and what is needed."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
import pytest
from odd_forms import PLACE, X, Y, adding, method

import mdlearn
import mdlearn.selection
from mdlearn.errors import FaultyPlugin
from mdlearn.extend import HingeTerm, Parameter, Terms
from mdlearn.forms import answer_faults
from mdlearn.plugins.registry import registry


@pytest.fixture
def add(tmp_path, monkeypatch):
    return adding(tmp_path, monkeypatch)


@pytest.mark.parametrize("name", [name for name, cls in registry().objectives.items() if cls.task == "classification"])
def test_nothing_is_wrong_with_what_built_in_objectives_return(name):
    """A class outside mdlearn that inherits all, and writes `form` and `features` anew, is looked at."""
    cls = registry().objectives[name]
    rest = {"features": lambda self, *given: cls.features(self, *given), "__module__": __name__}
    own = type("Own", (cls,), {"name": "own", "form": lambda self, *given: cls.form(self, *given), **rest})
    for y in Y.values():
        for kernel in ("linear", "rbf") if cls.kernels else ("linear",):
            settings = {"kernel": kernel, "max_iter": 20, "tol": 1e-3}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
                ours, theirs = (mdlearn.fit(task, X, y, **settings) for task in (own, cls))
            np.testing.assert_array_equal(ours.decision_function(X), theirs.decision_function(X))


ONE_COLUMN = method("form", "*given", "replace(self.plain(*given), columns=self.plain(*given).columns[:1])")
TWO_COLUMNS = method("form", "*given", "replace(self.plain(*given), columns=self.plain(*given).columns * 2)")
REPEATED = "(lambda form: replace(form, columns=(form.columns * 3)[:3]))(self.plain(*given))"


def test_without_a_fault_it_fits(add):
    add()
    for name in ("odd", "net", "whole"):
        for k, y in Y.items():
            model = mdlearn.fit(name, X, y)
            assert model.certificate.converged and model.coef_.shape == (1 if k == 2 else k, 3)


@pytest.mark.parametrize("settings", [{}, {"multiclass": "ovr"}, {"multiclass": "joint", "solver": "apg"}])
def test_one_column_for_three_classes(add, settings):
    add(odd=ONE_COLUMN)
    told = f"objective 'odd' {PLACE} is faulty: Odd.form returned 1 column for 3 classes, 3 are needed"
    with pytest.raises(FaultyPlugin) as raised:
        mdlearn.fit("odd", X, Y[3], **settings)
    assert str(raised.value) == told
    assert mdlearn.fit("odd", X, Y[2]).certificate.converged


@pytest.mark.parametrize("settings", [{}, {"multiclass": "ovo"}, {"multiclass": "fuzzy-min"}])
def test_three_columns_for_two_classes(add, settings):
    """Pairs of three classes are two classes each."""
    add(odd=method("form", "*given", REPEATED))
    k = 3 if settings else 2
    with pytest.raises(FaultyPlugin) as raised:
        mdlearn.fit("odd", X, Y[k], **settings)
    told = f"objective 'odd' {PLACE} is faulty: Odd.form returned 3 columns for 2 classes, 1 is needed"
    assert str(raised.value) == told


def test_columns_of_a_regression(add):
    add(odd="task = 'regression'\n" + TWO_COLUMNS)
    with pytest.raises(FaultyPlugin, match=r"Odd\.form returned 2 columns for numbers, 1 is needed$"):
        mdlearn.fit("odd", X, X[:, 0])


COLUMN = "changed(self.plain(*given), {})"
FORMS = {
    "form": {
        "None": "returned NoneType, a MarginForm, Composite, Problem or form of Several is needed",
        "replace(self.plain(*given), features=None)": "returned NoneType as features, LinearFeatures or",
        "replace(self.plain(*given), bias='odd')": "returned a form with the bias 'odd', one of none, regularized,",
        COLUMN.format("y=np.ones(7)"): r"shape \(7,\) as y of column 0, floats of shape \(40,\) are needed",
        COLUMN.format("y=np.ones(40, int)"): r"an array of int64 and shape \(40,\) as y of column 0, floats of",
        COLUMN.format("y=0.5 * np.ones(40)"): "y of column 0 with other values than signs, -1.0 or 1.0 is needed",
        COLUMN.format("y=np.nan * np.ones(40)"): "returned NaN or infinity as y of column 0, finite numbers are needed",
        COLUMN.format("counts=np.zeros(40)"): "counts of column 0 that are negative or all 0, counts >= 0 are needed",
        COLUMN.format("terms=('hinge',)"): "column 0 with terms that are wrong: a tuple with str as loss, a tuple of",
    },
    "terms": {
        "None": "returned NoneType, Terms are needed",
        "Terms(loss=HingeTerm(1.0))": "returned Terms with HingeTerm as loss, a tuple of HingeTerm, LogisticTerm or",
        "Terms(variance=None)": "returned Terms with NoneType as variance, a number >= 0 is needed",
        "Terms(mean=-1.0)": "returned Terms with -1.0 as mean, a number >= 0 is needed",
        "Terms(ridge=2.0)": "returned Terms with 2.0 as ridge, 0 or 1 is needed",
    },
    "problem": {
        "None": "returned NoneType, a generator is needed",
        "(one for one in ())": "returned NoneType, a MarginForm, Composite, Problem or form of Several is needed",
    },
    "features": {
        "None": "returned NoneType, a generator is needed",
        "(one for one in ())": "returned NoneType as features, LinearFeatures or KernelFeatures are needed",
    },
    "complete": {
        "None": "returned NoneType, a dict of all parameters is needed",
        "{}": "returned the parameters none, those declared are needed: C",
        "{'C': float('nan')}": "returned nan as C, a number is needed",
    },
    "arranged": {
        "None": "returned NoneType, a Solution is needed",
        "replace(given[0], coef=np.zeros(5))": r"shape \(5,\) as coef, a length of 3 is needed",
        "replace(given[0], coef=given[0].coef * np.nan)": "returned NaN or infinity as coef, finite numbers are needed",
        "replace(given[0], beta=np.zeros((1, 7)))": r"shape \(1, 7\) as beta, a length of 40 is needed",
        "replace(given[0], intercept=None)": "returned NoneType as intercept, a number is needed",
        "replace(given[0], certificate=None)": "returned NoneType as certificate, a Certificate is needed",
        "replace(given[0], coef=2.0 * given[0].coef)": "returned other coef than the form's, which is over",
        "replace(given[0], intercept=given[0].intercept + 1.0)": "returned other intercept than the form's, which is ",
        "given[0].coef.__imul__(2.0) is None or given[0]": "returned other coef than the form's, which is",
    },
}


@pytest.mark.parametrize(("name", "answer"), [(name, answer) for name in FORMS for answer in FORMS[name]])
def test_wrong_answers_of_an_objective(add, name, answer):
    add(odd=method(name, "*given", answer))
    for y in Y.values():
        with pytest.raises(
            FaultyPlugin, match=rf"^objective 'odd' {PLACE} is faulty: Odd\.{name} .*{FORMS[name][answer]}"
        ):
            mdlearn.fit("odd", X, y)


FLAT = "replace(self.evaluated(W), gradient=self.evaluated(W).gradient[:, 0])"
SUMMED = "replace(self.evaluated(W), gradient=self.evaluated(W).gradient.sum(axis=1))"
SQUARES = {
    ("at", "W", "None"): "returned NoneType, a CompositeEvaluation is needed",
    ("at", "W", FLAT): r"shape \(3,\) as gradient, floats of shape \(3, [13]\) are needed",
    ("at", "W", SUMMED): r"shape \(3,\) as gradient, floats of shape \(3, [13]\) are needed",
    ("at", "W", "replace(self.evaluated(W), value=np.nan)"): "returned nan as value, a number is needed",
    ("at", "W", "replace(self.evaluated(W), sizes=1.0)"): r"returned 1.0 as sizes, floats of shape \(3,\) are needed",
    ("lipschitz", "*g", "-1.0"): "returned -1.0, a number >= 0 is needed",
    ("lipschitz", "*g", "np.ones(2)"): r"an array of float64 and shape \(2,\), a number >= 0 is needed",
    ("penalty", "W", "None"): "returned NoneType, a number is needed",
    ("prox", "V, step", "V[:, 0]"): r"shape \(3,\), floats of shape \(3, [13]\) are needed",
    ("prox", "V, step", "V * np.nan"): "returned NaN or infinity, finite numbers are needed",
    ("least", "G, sizes", "np.nan"): "returned nan, a number is needed",
    ("product", "look", "3"): "returned 3, a function or None is needed",
    ("product", "look", "lambda V: V[0]"): "from its function, floats of shape",
    ("bound", "look, anchor", "1.0"): "returned 1.0, a number and the kind of proof are needed",
    ("residual", "look", "-1.0"): "returned -1.0, a number >= 0 is needed",
    ("multipliers", "look", "None"): r"returned NoneType, floats of shape \(k, T, m\) are needed",
    ("combination", "look", "np.ones(3)"): r"shape \(3,\), floats of shape \([13], 1, 40\) are needed",
    ("settle", "W", "self.evaluated(W).value"): "a CompositeEvaluation is needed",
    ("certify", "point, tol", "None"): "returned NoneType, a Solution is needed",
    ("prepare", "*g", "None"): "returned NoneType, a generator is needed",
}


@pytest.mark.parametrize("case", SQUARES, ids=lambda case: f"{case[0]}: {case[2]}")
def test_wrong_answers_of_a_composite(add, case):
    add(squares=method(*case))
    for y in Y.values():
        with pytest.raises(FaultyPlugin, match=rf"^a form {PLACE} is faulty: Squares\.{case[0]} .*{SQUARES[case]}"):
            mdlearn.fit("net", X, y, time_limit=5)


MADE = {
    "ridge = 1.0": r"returned 1.0 as ridge, floats of shape \(3,\) are needed",
    "ridge = -np.ones(3)": "returned a negative number as ridge, numbers >= 0 are needed",
    "at_zero = None": "returned NoneType as at_zero, a number is needed",
    "unit = 0.0": "returned 0.0 as unit, a finite positive number is needed",
    "shape = (4, 1)": r"returned a Composite of shape \(4, 1\), \(3, number of columns\) is needed",
    "shape = (3, 5)": "returned 5 columns for [23] classes, [13] (is|are) needed",
    "bias = 'odd'": "returned a form with the bias 'odd', one of",
}


@pytest.mark.parametrize("line", MADE)
def test_what_a_composite_is_made_of(add, line):
    add(squares=f"def finish(self):\n    self.{line}")
    for y in Y.values():
        with pytest.raises(FaultyPlugin, match=rf"^objective 'net' {PLACE} is faulty: Net\.form {MADE[line]}"):
            mdlearn.fit("net", X, y)


PARTS = {
    (
        "parts",
        "problems",
        "*g",
        "None",
    ): r"Parts\.problems returned NoneType, a tuple of at least one Problem is",
    ("parts", "problems", "*g", "('x',)"): r"Parts\.problems returned tuple, a tuple of at least one Problem is needed",
    ("part", "certify", "point, tol", "None"): r"Part\.certify returned NoneType, a Solution is needed",
    ("part", "values", "objective, lower", "lower"): r"Part\.values returned .*, two numbers are needed",
    ("part", "fault", "point", "3"): r"Part\.fault returned 3, a text or None is needed",
}


@pytest.mark.parametrize("case", PARTS, ids=lambda case: f"{case[1]}: {case[3]}")
def test_wrong_answers_of_problems(add, case):
    add(**{case[0]: method(*case[1:])})
    for y in Y.values():
        with pytest.raises(FaultyPlugin, match=rf"^a form {PLACE} is faulty: {PARTS[case]}"):
            mdlearn.fit("whole", X, y, solver="cd")  # which asks for each of them


def test_one_problem_for_three_classes(add):
    add(parts=method("problems", "*g", "(Part(self, self.columns[0]),)"))
    told = r"^objective 'whole' .*: Whole\.form led to 1 decision value for 3 classes, 3 are needed$"
    with pytest.raises(FaultyPlugin, match=told):
        mdlearn.fit("whole", X, Y[3])


def test_features_of_other_rows(add):
    add(odd="def features(self, data, *given):\n    yield\n    return LinearFeatures(data.X.take(np.arange(7)))")
    with pytest.raises(FaultyPlugin, match=r"Odd\.features returned features of 7 rows, those of all 40 rows are "):
        mdlearn.fit("odd", X, Y[2])


FEATURES_OF_OTHER_ROWS = {
    "other order": "LinearFeatures(data.X.take(np.arange(40)[::-1]))",
    "no map": "LinearFeatures(mdlearn.extend.DenseRows(data.X.block(slice(None)) / [1.0, 2.0, 3.0]))",
}


@pytest.mark.parametrize("case", FEATURES_OF_OTHER_ROWS)
def test_features_that_are_not_those_of_the_model(add, case):
    """The certificate was that of another problem than the one of the model's decision values."""
    made = FEATURES_OF_OTHER_ROWS[case]
    add(odd=f"def features(self, data, *given):\n    yield\n    return {made}")
    with pytest.raises(FaultyPlugin, match=r"Odd\.features returned features whose product with the coefficients is "):
        mdlearn.fit("odd", X, Y[2])


def test_features_that_are_the_rows_of_x(add):
    add(odd="def features(self, data, *given):\n    yield\n    return LinearFeatures(data.X)")
    for rows in (X, X.astype(np.float32), 1e8 * X):
        assert mdlearn.fit("odd", rows, Y[3]).certificate.parts


def test_answers_are_looked_at_once(add, monkeypatch):
    """Later answers of one form are taken as they are."""
    add()
    looked = []
    look = answer_faults.ANSWERS["at"]
    monkeypatch.setitem(answer_faults.ANSWERS, "at", lambda *given: looked.append(1) or look(*given))
    model = mdlearn.fit("net", X, Y[3])
    assert model.n_iter > 3 and len(looked) == 1
    mdlearn.fit("net", X, Y[3])
    assert len(looked) == 2


MAPPED = """
    multiclass, kernels = ("ovr",), False

    class feature_map(FeatureMap):
        columns, width = 3, 3

        def features(self, A):
            return A.block(slice(None))

        def encoded(self):
            return {{}}

        @classmethod
        def decoded(cls, values):
            return cls()

        def {method}:
            return {answer}

    def features(self, data, *given):
        place = self.feature_map()
        return MappedFeatures((yield from place.rows(data.X)), map=place)
"""
ANSWERS_OF_MAPS = {
    ("attributes(self)", "None"): r"attributes returned NoneType, a dict of arrays is needed",
    ("attributes(self)", "{'a': 3}"): r"attributes returned dict, a dict of arrays is needed",
    ("shown(self, coef)", "None"): r"shown returned NoneType, an array is needed",
    (
        "scores(self, A, coef)",
        "np.zeros(3)",
    ): r"scores returned an array of float64 and shape \(3,\), floats of shape ",
    ("encoded(self)", "None"): r"encoded returned NoneType, a mapping is needed",
}


@pytest.mark.parametrize("case", ANSWERS_OF_MAPS, ids=": ".join)
def test_wrong_answers_of_a_feature_map(add, tmp_path, case):
    add(odd=MAPPED.format(method=case[0], answer=case[1]))
    with pytest.raises(FaultyPlugin, match=rf"^a feature map {PLACE} is faulty: feature_map\.{ANSWERS_OF_MAPS[case]}"):
        model = mdlearn.fit("odd", X, Y[2])
        assert model.coef_.shape == (1, 3)
        model.predict(X)
        model.save(tmp_path / "model.npz")


@pytest.mark.parametrize("call", [mdlearn.fit_path, mdlearn.selection.select], ids=["path", "select"])
def test_a_grid_of_its_own_that_is_none(add, call):
    """The user, who gave no grid, is not to blame."""
    add(odd=method("grid", "total", "3"))
    told = rf"^objective 'odd' {PLACE} is faulty: Odd\.grid returned 3, a mapping or a sequence of them is needed"
    with pytest.raises(FaultyPlugin, match=told):
        call("odd", X, Y[2])


class Listed(mdlearn.Objective):
    """An SVM whose declarations are lists."""

    name, summary, formula = "listed", "an SVM", "1/2 |w|^2 + C sum max(0, 1-z)"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the summed loss")}
    multiclass: ClassVar = ["ovr", "ovo"]

    def terms(self, params, total):
        return Terms(loss=[HingeTerm(params["C"])])


@pytest.mark.parametrize("multiclass, kernel", [("auto", "linear"), ("ovo", "rbf")])
def test_lists_in_the_place_of_tuples_are_no_fault(multiclass, kernel):
    given = {"multiclass": multiclass, "kernel": kernel, "bias": "free"}
    model, svm = (mdlearn.fit(one, X, Y[3], **given) for one in (Listed, "svm"))
    assert np.array_equal(model.decision_function(X), svm.decision_function(X))
