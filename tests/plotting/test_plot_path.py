"""Scores, objectives, coefficients and support vectors along a hyper-parameter."""

from types import SimpleNamespace

import numpy as np
import plot_cases
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from plot_cases import entries, named

import mdlearn
from mdlearn import plotting

pytestmark = pytest.mark.extras

ax = plot_cases.ax

RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 3))
Y = np.where(X[:, 0] + 0.5 * RNG.normal(size=40) > 0, 1, -1)


class Fits(list):
    """What a path is: models, their points, objectives and scores."""

    def __init__(self, points, X=X, y=Y, **options):
        super().__init__(mdlearn.fit("svm", X, y, **options, **point) for point in points)
        self.points = tuple(points)

    @property
    def objective(self):
        return np.array([model.certificate.objective for model in self])

    def score(self, X, y, scoring="accuracy"):
        return np.array([model.score(X, y) if scoring == "accuracy" else 0.5 for model in self])


@pytest.fixture(scope="module")
def fits():
    return Fits([{"C": C} for C in (10.0, 0.1, 1.0)])


def chosen(best=3, folds=4):
    points = [{"C": C, "gamma": g} for C in (1.0, 100.0) for g in (0.5, 2.0)]
    scores = np.random.default_rng(6).random((4, folds))
    mean = scores.mean(axis=1)
    told = {"mean_scores": mean, "std_scores": scores.std(axis=1), "best_index": best, "scoring": "f1_macro"}
    return SimpleNamespace(points=tuple(points), scores=scores, **told)


def test_objectives_stand_in_the_order_of_the_parameter(ax, fits):
    assert plotting.path(fits, ax=ax) is ax
    (line,) = ax.lines
    assert_array_equal(line.get_xdata(), [0.1, 1, 10])
    assert_array_equal(line.get_ydata(), fits.objective[[1, 2, 0]])
    assert ax.get_xscale() == "log" and (ax.get_xlabel(), ax.get_ylabel()) == ("C", "objective")


def test_values_of_a_path(ax, fits):
    plotting.path(fits, "C", X=X, y=Y, ax=ax)
    plotting.path(fits, "C", X=X, y=Y, scoring="auc", ax=ax)
    plotting.path(fits, "C", value="n_support", ax=ax)
    score, auc, support = ax.lines
    assert_array_equal(score.get_ydata(), fits.score(X, Y)[[1, 2, 0]])
    assert_array_equal(auc.get_ydata(), [0.5] * 3)
    exact = [mdlearn.fit("svm", X, Y, C=C, solver="cd", tol=1e-10) for C in (0.1, 1.0, 10.0)]
    assert_array_equal(support.get_ydata(), [len(model.support_) for model in exact])


def test_coefficients(ax):
    pd = pytest.importorskip("pandas")
    fits = Fits([{"C": 0.1}, {"C": 1.0}], pd.DataFrame(X, columns=["a", "b", "c"]))
    plotting.path(fits, value="coefficients", ax=ax)
    assert entries(ax) == ["a", "b", "c"]
    for j, name in enumerate("abc"):
        assert_array_equal(named(ax)[name].get_ydata(), [model.coef_[0, j] for model in fits])


def test_coefficients_of_several_classes(ax):
    fits = Fits([{"C": 0.1}, {"C": 1.0}], X, X.argmax(axis=1))
    plotting.path(fits, value="coefficients", ax=ax)
    assert entries(ax)[:4] == ["feature 1 (0)", "feature 2 (0)", "feature 3 (0)", "feature 1 (1)"]
    assert_array_equal(named(ax)["feature 2 (1)"].get_ydata(), [model.coef_[1, 1] for model in fits])


def test_of_many_coefficients_the_largest_are_named(ax):
    wide = np.random.default_rng(7).normal(size=(40, 30))
    fits = Fits([{"C": 0.1}, {"C": 1.0}], wide, Y)
    plotting.path(fits, value="coefficients", ax=ax)
    largest = np.abs([model.coef_[0] for model in fits]).max(axis=0)
    assert entries(ax) == [f"feature {j + 1}" for j in np.argsort(-largest)[:7]]
    assert len(ax.lines) == 30


def test_a_selection_has_a_line_per_combination_and_a_star(ax):
    found = chosen()
    plotting.path(found, "C", ax=ax)
    assert entries(ax) == ["gamma=0.5", "gamma=2", "best"]
    assert_array_equal(named(ax)["gamma=2"].get_xydata(), np.column_stack([[1, 100], found.mean_scores[[1, 3]]]))
    assert_allclose(named(ax)["best"].get_xydata(), [[100, found.mean_scores[3]]])
    (bar,) = ax.collections
    assert_allclose(np.ptp(bar.get_segments()[0][:, 1]), 2 * found.scores[3].std())
    assert ax.get_ylabel() == "f1 macro, mean over folds"


def test_one_line_of_a_selection_has_a_band(ax):
    found = chosen()
    found.points = tuple({"C": C} for C in (1, 2, 3, 4))
    plotting.path(found, ax=ax)
    vertices = ax.collections[0].get_paths()[0].vertices
    for C, mean, spread in zip((1, 2, 3, 4), found.mean_scores, found.scores.std(axis=1)):
        heights = vertices[vertices[:, 0] == C, 1]
        assert_allclose([heights.min(), heights.max()], [mean - spread, mean + spread])
    assert ax.get_xscale() == "linear", "1 to 4 is less than a factor of ten"


def test_zero_and_infinity_have_a_place(ax):
    found = chosen(best=0)
    found.points = tuple({"lambda1": value} for value in (0, 0.5, 8, 64))
    plotting.path(found, ax=ax)
    assert ax.get_xscale() == "symlog"
    ax.figure.draw_without_rendering()
    places = ax.transData.transform(ax.lines[0].get_xydata())[:, 0]
    assert (np.diff(places) > 20).all()
    ax.clear()
    found.points = tuple({"C": value} for value in (float("inf"), 1.0, 100.0, 10.0))
    plotting.path(found, ax=ax)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "10", "100", "inf"]
    assert_array_equal(ax.lines[0].get_ydata(), found.mean_scores[[1, 3, 2, 0]])
    ax.clear()
    found.points = tuple({"kernel": value} for value in ("rbf", "linear", "poly", "mine"))
    plotting.path(found, ax=ax)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["rbf", "linear", "poly", "mine"]


def test_errors_are_one_clear_sentence(ax, fits):
    rbf = Fits([{"C": 1.0}, {"C": 2.0}], kernel="rbf")
    for arguments, options, error, message in [
        ((3,), {}, TypeError, "'int' object has no points; give what fit_path or select returned"),
        ((chosen(),), {}, ValueError, "the grid changes C, gamma; name the hyper-parameter"),
        ((fits, "nu"), {}, ValueError, "no hyper-parameter 'nu' in every point; it has C"),
        ((fits,), {"value": "objectiv"}, ValueError, "is unknown; .*; did you mean 'objective'[?]$"),
        ((fits,), {"value": "gap"}, ValueError, "value='gap' is unknown; give one of score"),
        ((fits,), {"value": "score"}, ValueError, "scores of a path need X and y"),
        ((chosen(), "C"), {"value": "objective"}, ValueError, "a selection has scores of its own"),
        ((rbf,), {"value": "coefficients"}, ValueError, "coefficients exist for the linear kernel only"),
    ]:
        with pytest.raises(error, match=message) as caught:
            plotting.path(*arguments, ax=ax, **options)
        assert "\n" not in str(caught.value) and not ax.lines


def test_what_fit_path_and_select_return(ax):
    found = mdlearn.fit_path("ldm", X, Y, {"C": [0.1, 1.0, 10.0]}, lambda1=1.0)
    for options in ({}, {"value": "coefficients"}, {"value": "n_support"}, {"X": X, "y": Y}):
        ax.clear()
        plotting.path(found, ax=ax, **options)
        assert_array_equal(ax.lines[0].get_xdata(), [0.1, 1, 10])
    assert ax.get_ylabel() == "accuracy"
    assert_array_equal(ax.lines[0].get_ydata(), found.score(X, Y))
    selected = mdlearn.select("ldm", X, Y, {"C": [0.1, 1.0], "lambda1": [0.0, 1.0]}, cv=3)
    plotting.path(selected, "C", ax=ax)
    best = named(ax)["best"].get_xydata()
    assert_allclose(best, [[selected.best_params["C"], selected.best_score]])
