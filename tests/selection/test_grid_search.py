"""select: the scores of every point, the point that is chosen, ties, and the last fit."""

import sys
import warnings

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

import mdlearn
from mdlearn.selection.grid_search import best_of_grid_search
from mdlearn.selection.study import Study, StudyScores


def sample(m=60, d=3, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    return X, np.digitize(X[:, 0] + 0.6 * rng.standard_normal(m), [0.0, 0.9][: classes - 1])


GRIDS = {
    "ldm": {"C": [0.1, 10.0], "lambda1": [0.0, 1.0, 100.0]},
    "uldm": {"C": [1e-6, 1e-2], "gamma": [0.1, 2.0]},
    "lsldm": {"lambda2": [0.0, 10.0], "C": [0.5, 50.0]},
    "svm": [{"C": 1.0, "gamma": 0.1}, {"C": 10.0, "gamma": 0.01}, {"C": 100.0, "gamma": 3.0}],
    "l2lr": {"lam": [1e-3, 1.0]},
}


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", GRIDS)
def test_scores_are_those_of_each_point_alone(name, classes):
    X, y = sample(classes=classes)
    folds = list(StratifiedKFold(3).split(X, y))
    given = {"tol": 1e-8} | ({"kernel": "rbf"} if name in ("uldm", "svm") else {})
    found = mdlearn.select(name, X, y, GRIDS[name], cv=folds, **given)
    assert found.scores.shape == (len(found.points), 3)
    for point, told in zip(found.points, found.scores):
        for (train, test), score in zip(folds, told):
            model = mdlearn.fit(name, X[train], y[train], **given, **point)
            assert abs(score - model.score(X[test], y[test])) <= 1.01 / len(test)
    assert found.best_score == found.mean_scores.max() == found.scores.mean(axis=1).max()
    assert found.best_params == found.points[found.best_index]
    model = mdlearn.fit(name, X, y, **given, **found.best_params)
    np.testing.assert_allclose(found.model.decision_function(X), model.decision_function(X), atol=1e-2)
    assert found.model.certificate.converged


def test_a_weight_is_a_repetition():
    X, y = sample()
    w = np.random.default_rng(3).integers(0, 4, 60)
    many = np.random.default_rng(4).permutation(np.repeat(np.arange(60), w))
    given = {"grid": {"C": [0.01, 1.0, 100.0]}, "lambda1": 1.0, "scoring": "auc", "tol": 1e-10}
    one = mdlearn.select("ldm", X, y, sample_weight=w, **given)
    other = mdlearn.select("ldm", X[many], y[many], **given)
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-12)
    assert one.best_index == other.best_index
    np.testing.assert_allclose(one.model.coef_, other.model.coef_, atol=1e-4)


def test_own_grids():
    X, y = sample(40)
    for name in ("ldm", "lssvm", "uldm"):
        found = mdlearn.select(name, X, y, cv=3)
        assert len(found.points) > 2 and not np.isnan(found.scores).any()
    # What the caller sets is not in the grid, and holds for every point.
    found = mdlearn.select("ldm", X, y, cv=3, C=2.0, refit=True)
    assert "C" not in found.points[0] and found.model.params["C"] == 2.0


def test_the_model_gets_what_all_points_have():
    X, y = sample()
    found = mdlearn.select("ldm", X, y, {"C": [0.1, 1.0]}, lambda1=3.0, bias="free", cv=3)
    assert (found.model.params["lambda1"], found.model.bias) == (3.0, "free")


# ---------------------------------------------------------------- ties


def study_of(name, grid, **params):
    X, y = sample(20)
    study = Study(call_of(name), X, y, None, None, None)
    study.ask(grid, params)
    return study


def call_of(name):
    from mdlearn.stages import Call, checked_limits

    return Call.of(name, "linear", "auto", None, None, "auto", checked_limits(0.0, 1e-6, None, None, None, 0, None), 0)


def best(study, means):
    return study.points[best_of_grid_search(StudyScores(np.array(means, dtype=float)[:, None]), study)]


def test_ties_go_to_the_smallest_C_then_lambda2_then_lambda1():
    grid = [
        {"C": 5.0, "lambda1": 0.0, "lambda2": 0.0},
        {"C": 1.0, "lambda1": 1.0, "lambda2": 2.0},
        {"C": 1.0, "lambda1": 4.0, "lambda2": 1.0},
        {"C": 1.0, "lambda1": 3.0, "lambda2": 1.0},
        {"C": 0.5, "lambda1": 0.0, "lambda2": 0.0},
    ]
    study = study_of("ldm", grid)
    assert best(study, [0.9, 0.9, 0.9, 0.9, 0.8]) == grid[3]
    assert best(study, [0.9, 0.9, 0.9, 0.8, 0.8]) == grid[2]
    assert best(study, [0.9] * 5) == grid[4]
    assert best(study, [0.91, 0.9, 0.9, 0.9, 0.9]) == grid[0]
    # The means of 0.1 + 0.2 and of 0.3 are the same score.
    assert best(study, [0.1 + 0.2, 0.3, 0.0, 0.0, 0.0]) == grid[1]


def test_defaults_count_in_ties_and_other_names_go_by_order():
    grid = [{"lambda1": 8.0}, {"lambda1": 2.0}]  # lambda2 = lambda1 / 4
    assert best(study_of("ldm", grid), [0.5, 0.5]) == grid[1]
    grid = [{"lam": 1.0}, {"lam": 0.1}]
    assert best(study_of("l2lr", grid), [0.5, 0.5]) == grid[0]
    assert best(study_of("l2lr", grid[::-1]), [0.5, 0.5]) == grid[1]
    assert best(study_of("svm", {"C": [10.0, 1.0]}), [-0.5, -0.5]) == {"C": 1.0}


def test_ties_through_and_through():
    X = np.array([[-2.0], [-1.5], [-1.0], [1.0], [1.5], [2.0]] * 3) + 1e-3 * np.arange(18)[:, None]
    found = mdlearn.select("ldm", X, X[:, 0] > 0, {"lambda1": [2.0, 1.0], "C": [10.0, 1.0]}, cv=3)
    assert (found.scores == 1).all() and found.best_params == {"lambda1": 1.0, "C": 1.0}


def test_points_are_compared_by_folds_that_all_have():
    study = study_of("svm", {"C": [1.0, 2.0, 3.0]})
    scores = np.array([[0.5, 1.0], [0.6, 0.1], [0.4, np.nan]])
    assert best_of_grid_search(StudyScores(scores), study) == 1
    scores = np.array([[0.5, np.nan], [0.9, np.nan], [np.nan, np.nan]])
    assert best_of_grid_search(StudyScores(scores), study) == 1
    assert best_of_grid_search(StudyScores(np.full((3, 2), np.nan)), study) == 0


# ---------------------------------------------------------------- limits, tables, errors


def test_time_limit_keeps_some_for_the_last_fit(clock):
    def slow(A, B):
        clock.sleep(0.2)  # 20 folds take far longer than the limit, and one of them far less
        return A @ B.T

    X, y = sample(60, 5)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = mdlearn.select("svm", X, y, {"C": [0.1, 1.0]}, cv=20, time_limit=3.0, kernel=slow)
    assert any("time_limit reached" in str(one.message) for one in told)
    assert np.isnan(found.scores).any() and not np.isnan(found.scores).all()
    assert not np.isnan(found.best_score) and np.isfinite(found.model.certificate.objective)


def test_callbacks_know_the_point_and_end_all():
    X, y = sample()
    seen = []
    mdlearn.select("svm", X, y, {"C": [1.0, 2.0, 3.0]}, cv=2, refit=False, callback=lambda s: seen.append(s.point))
    assert set(seen) == {0, 1, 2}
    with pytest.warns(mdlearn.ConvergenceWarning, match="stopped by the callback"):
        found = mdlearn.select("svm", X, y, {"C": [1.0, 2.0]}, refit=False, callback=lambda state: True)
    assert np.isnan(found.scores).all() and found.best_index == 0


def test_progress_counts_folds_and_points(capsys):
    X, y = sample()
    mdlearn.select("svm", X, y, {"C": [1.0, 2.0, 3.0]}, cv=4, verbose=1)
    assert "select: 12 of 12 fits" in capsys.readouterr().err


def test_threads_give_the_same_bits():
    X, y = sample(classes=3)
    one = mdlearn.select("ldm", X, y, {"C": [1.0, 10.0]}, cv=3, n_threads=1)
    two = mdlearn.select("ldm", X, y, {"C": [1.0, 10.0]}, cv=3, n_threads=2)
    again = mdlearn.select("ldm", X, y, {"C": [1.0, 10.0]}, cv=3, n_threads=2)
    np.testing.assert_array_equal(two.model.coef_, again.model.coef_)
    np.testing.assert_array_equal(two.scores, again.scores)
    np.testing.assert_allclose(one.scores, two.scores, atol=0.06)


def test_infinite_scores_have_no_spread():
    X, y = sample()
    values = iter([1.0, -np.inf, 0.5, 0.25])
    found = mdlearn.select("svm", X, y, {"C": [1.0, 2.0]}, cv=2, refit=False, scoring=lambda *_: next(values))
    assert found.best_index == 0 and found.best_score == 0.75
    with np.errstate(all="raise"):
        assert np.isnan(found.std_scores).sum() == 1 and np.isinf(found.mean_scores).sum() == 1
        assert "2 points" in repr(found)


@pytest.mark.extras
def test_to_frame(monkeypatch):
    X, y = sample()
    found = mdlearn.select("ldm", X, y, {"C": [0.1, 1.0], "lambda1": [0.0, 1.0]}, cv=3, refit=False)
    table = found.to_frame()
    assert list(table.columns) == ["C", "lambda1", "mean_score", "std_score", "score_0", "score_1", "score_2"]
    np.testing.assert_allclose(table["mean_score"], found.scores.mean(axis=1))
    np.testing.assert_allclose(table["std_score"], found.scores.std(axis=1), atol=1e-15)
    assert list(table["C"]) == [0.1, 0.1, 1.0, 1.0] and found.model is None and "4 points" in repr(found)
    of_numpy = mdlearn.select("ldm", X, y, {"C": np.array([0.5])}, cv=3, refit=False)
    assert repr(of_numpy).endswith(" at {'C': 0.5}, 1 point)")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="needs pandas"):
        found.to_frame()


@pytest.mark.parametrize(
    "given, match",
    [
        ({"grid": {}}, "grid is empty"),
        ({"grid": {"C": [1.0], "D": [2.0]}}, "no parameter 'D'"),
        ({"grid": {"C": [1.0, -1.0]}}, "C needs to be"),
        ({"grid": {"C": [1.0]}, "C": 2.0}, "'C' is in the grid"),
        ({"refit": "yes"}, "refit needs to be True or False"),
        ({"cv": "loo-ish"}, "'loo-ish' is unknown"),
        ({"scoring": "r2"}, "'r2' is unknown for classification"),
    ],
)
def test_errors_come_before_any_fit(given, match):
    X, y = sample()
    fits = []
    with pytest.raises((ValueError, TypeError), match=match):
        mdlearn.select(
            "ldm", X, y, **{"grid": {"C": [1.0]} if "C" not in given else None, **given}, callback=fits.append
        )
    assert not fits
