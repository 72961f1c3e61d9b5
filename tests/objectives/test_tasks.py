"""Tasks of plugins: how y is read, what decision values mean, and that models of them are kept, judged and checked."""

import importlib.util
from typing import ClassVar

import numpy as np
import pytest

import mdlearn
from mdlearn.extend import HingeTerm, Model, Parameter, Task, Terms
from mdlearn.model.file.loading import load_model_file
from mdlearn.model.file.schema import BUILT_IN_TASKS
from mdlearn.model.regression import RegressionModel
from mdlearn.model.task import TASKS, task_of
from mdlearn.testing import check_objective
from mdlearn.testing.checks import check_model


class LevelModel(Model):
    task = "level"
    measure = "share above"

    def predictions(self, f):
        return f >= 1.0

    def score(self, X, y=None, sample_weight=None):
        return float(np.average(self.predict(X), weights=sample_weight))


class Level(mdlearn.Objective):
    """1/2 |w|^2 + C sum max(0, 1 - f)^2 over rows alone."""

    name = "level"
    summary = "an objective with a task of its own"
    formula = "1/2 |w|^2 + C sum max(0, 1-f)^2"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the summed loss")}
    task = Task("none", LevelModel)

    def terms(self, params, total):
        return Terms(loss=(HingeTerm(params["C"], power=2),))

    def check_column(self, params, column, bias):
        if bias == "free":
            raise ValueError("a free bias alone reaches the level, and any larger one does as well")


class GradeModel(Model):
    """Numbers that are rounded to grades."""

    task = "grades"
    measure = "share met"

    def predictions(self, f):
        return np.rint(f)

    def score(self, X, y, sample_weight=None):
        return float(np.average(self.predict(X) == np.rint(y), weights=sample_weight))


class Grades(mdlearn.Objective):
    name = "grades"
    summary = "an objective with a task of its own"
    formula = "1/2 |w|^2 + C sum (f-y)^2"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the summed loss")}
    task = Task("numbers", GradeModel)

    def terms(self, params, total):
        return Terms(loss=(HingeTerm(params["C"], 1, 0.0, 2), HingeTerm(params["C"], -1, 0.0, 2)))


class LastModel(Model):
    task = "last class"

    def predictions(self, f):
        return np.where(f >= 0, self.classes_[-1], self.classes_[0])


class LastClass(mdlearn.Objective):
    """The last class against all others, one decision value whatever their number."""

    name = "last_class"
    summary = "an objective with a task of its own"
    formula = "1/2 |w|^2 + C sum max(0, 1-z)^2"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the summed loss")}
    task = Task("labels", LastModel)

    def terms(self, params, total):
        return Terms(loss=(HingeTerm(params["C"], power=2),))

    def form(self, data, features, bias, params):
        k = len(data.classes)
        signs = np.where(data.codes == k - 1, 1.0, -1.0)
        column = mdlearn.extend.Column(signs, data.counts, 0.0, 0.0, self.terms(params, data.total).loss)
        return mdlearn.extend.MarginForm(features, (column,), bias)


OWN = {"level": Level, "grades": Grades, "last_class": LastClass}


def sample(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3)) + 0.5
    y = {"level": None, "grades": 3.0 * X[:, 0] + rng.standard_normal(50)}
    return X, y.get(name, np.digitize(X[:, 0] + 0.3 * rng.standard_normal(50), [0.0, 1.0]))


def look_up(kind, name):
    if kind == "objective" and name in OWN:
        return OWN[name]
    raise ValueError(f"{kind} {name!r} is unknown")


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_conformance(name):
    check_objective(OWN[name])


def test_built_in_tasks_are_two_of_the_same_kind():
    assert tuple(TASKS) == BUILT_IN_TASKS and all(task.built_in for task in TASKS.values())
    assert task_of(mdlearn.Objective) is TASKS["classification"] and TASKS["classification"].model is Model
    assert TASKS["regression"].model is RegressionModel and not task_of(Level).built_in


def test_rows_alone():
    X, _ = sample("level")
    model = mdlearn.fit(Level, X, None, C=2.0, bias="none", tol=1e-12)
    assert type(model) is LevelModel and model.classes_.shape == (0,) and model.certificate.proven
    # The optimum's gradient is 0: w = 2 C sum max(0, 1 - w.x) x.
    assert model.coef_[0] == pytest.approx(4.0 * X.T @ np.maximum(0.0, 1.0 - X @ model.coef_[0]), abs=1e-5)
    ones = mdlearn.fit(Level, X, np.ones(50), C=2.0, bias="none", tol=1e-12)
    assert np.array_equal(ones.coef_, model.coef_) and model.predict(X).dtype == bool
    counts = np.arange(50) % 3
    weighted = mdlearn.fit(Level, X, None, sample_weight=counts, tol=1e-12).decision_function(X)
    repeated = mdlearn.fit(Level, np.repeat(X, counts, axis=0), None, tol=1e-12).decision_function(X)
    assert weighted == pytest.approx(repeated, abs=1e-5)
    with pytest.raises(ValueError, match="y holds another number than 1 in row 3; this objective takes rows alone"):
        mdlearn.fit(Level, X, np.where(np.arange(50) == 3, 2.0, 1.0))
    with pytest.raises(ValueError, match="class_weight 'balanced' is for classifiers"):
        mdlearn.fit(Level, X, None, class_weight="balanced")
    streamed = mdlearn.fit(Level, lambda: iter([(X, np.ones(50))]), None, C=2.0, bias="none", tol=1e-12)
    assert type(streamed) is LevelModel and streamed.coef_ == pytest.approx(model.coef_, abs=1e-5)


def test_one_decision_value_for_any_number_of_classes():
    X, y = sample("last_class")
    model = mdlearn.fit(LastClass, X, y, tol=1e-12)
    plain = type("Plain", (LastClass,), {"form": mdlearn.Objective.form, "task": "classification"})
    same = mdlearn.fit(plain, X, y == 2, tol=1e-12).decision_function(X)
    assert model.decision_function(X).shape == (50,) and model.multiclass == "none"
    assert set(model.predict(X)) == {0, 2} and model.n_support_.shape == (3,)
    assert model.decision_function(X) == pytest.approx(same, abs=1e-5)
    with pytest.raises(ValueError, match="multiclass 'ovr' is not possible here; give one of auto, none"):
        mdlearn.fit(LastClass, X, y, multiclass="ovr")

    class Several(LastClass):
        form = mdlearn.Objective.form

    with pytest.raises(TypeError, match=r"led to 3 decision values for the task 'last class', 1 is needed"):
        mdlearn.fit(Several, X, y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", OWN)
def test_files(name, kernel, tmp_path):
    X, y = sample(name)
    model, path = mdlearn.fit(OWN[name], X, y, kernel=kernel), tmp_path / "model.npz"
    model.save(path)
    again, _ = load_model_file(path, look_up)
    assert type(again) is type(model) and np.array_equal(again.predict(X), model.predict(X))
    assert again.score(X, y) == model.score(X, y) and np.array_equal(again.classes_, model.classes_)
    with pytest.raises(ValueError, match=f"it needs the objective '{name}' of a plugin"):
        mdlearn.load(path)
    if importlib.util.find_spec("onnx") is not None:
        with pytest.raises(ValueError, match=f"models of the task '{model.task}' cannot be exported"):
            model.to_onnx()
    other = type("Other", (OWN[name],), {"task": TASKS["regression"]})
    with pytest.raises(
        ValueError, match=f"its task is '{model.task}', that of the installed objective '{name}' is 'reg"
    ):
        load_model_file(path, lambda kind, name: other)


@pytest.mark.parametrize("name", OWN)
def test_paths_and_selection_judge_by_the_model(name):
    X, y = sample(name)
    path = mdlearn.fit_path(OWN[name], X, y, grid={"C": [0.01, 1.0]}, tol=1e-10)
    for model, predicted, score in zip(path, path.predict(X), path.score(X, y)):
        assert np.array_equal(predicted, model.predict(X)) and score == model.score(X, y)
    found = mdlearn.cross_validate(OWN[name], X, y, cv=4, tol=1e-10)
    truth = np.ones(50) if y is None else y
    for (train, test), score in zip(found.folds, found.scores):
        model = mdlearn.fit(OWN[name], X[train], None if y is None else y[train], tol=1e-10)
        assert score == pytest.approx(model.score(X[test], truth[test]))
    with pytest.raises(ValueError, match=f"predictions of the task '{found.task}' take the models"):
        _ = found.predictions
    chosen = mdlearn.select(OWN[name], X, y, grid={"C": [0.01, 1.0]}, cv=4)
    assert type(chosen.model) is OWN[name].task.model


def test_what_is_no_task():
    with pytest.raises(
        ValueError, match="y of a Task needs to be one of labels, numbers, none, some labels, indicators; got"
    ):
        Task("words", LevelModel)
    with pytest.raises(TypeError, match=r"model of a Task needs to be a subclass of mdlearn.Model; got <class 'int'>"):
        Task("none", int)
    with pytest.raises(ValueError, match="decision values by class need labels; got by_class=True with y='none'"):
        Task("none", LevelModel, by_class=True)
    X, _ = sample("level")
    nameless = type("Nameless", (Level,), {"task": Task("none", type("Forgotten", (Model,), {}))})
    with pytest.raises(TypeError, match="a task whose model Forgotten has task = 'classification', which mdlearn has"):
        mdlearn.fit(nameless, X, None)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"predict": lambda self, X: np.ones(len(X), dtype=int)}, "predict is not predictions"),
        (
            {"score": lambda self, X, y=None, sample_weight=None: float(self.predict(X).mean())},
            "count rows as their weig",
        ),
        ({"score": lambda self, X, y=None, sample_weight=None: np.nan}, "score is nan, a finite number is needed"),
    ],
)
def test_faults_of_models_that_the_checks_find(wrong, told):
    faulty = type("Faulty", (Level,), {"task": Task("none", type("FaultyModel", (LevelModel,), wrong))})
    with pytest.raises(AssertionError, match=told):
        check_model(faulty)
