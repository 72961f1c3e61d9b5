"""What the fuzz program can see of paths, selections, pairs of classes and regression: one wrong number is found."""

from dataclasses import replace

import numpy as np
import pytest
from fuzz import grids, regression
from fuzz.judged_grids import GRID_PROPERTIES, r2_range
from fuzz.properties import PROPERTIES, everything
from fuzz.runs import Outcome, Run

SEED = 1
"""Of problems whose fits all end at once."""
PAIRS, RESTS, NUMBERS = 114, 1254, 893
"""Three classes or more by pairs, against the rest, and a regression."""


@pytest.fixture(scope="module")
def cases():
    return {index: grids.GridCase(SEED, index).run() for index in (PAIRS, RESTS, NUMBERS)}


def found(name, case):
    return [text for _, text in PROPERTIES[name](case)]


def with_certificate(out, **changed):
    model = replace(out.model, certificate=replace(out.model.certificate, **changed))
    return replace(out, model=model, _values=None)


def changed(case, **lists):
    """The same case with other lists."""
    other = object.__new__(grids.GridCase)
    other.__dict__.update(case.__dict__, **lists)
    return other


def test_these_cases_have_something_of_each(cases):
    pairs, rests, numbers = cases.values()
    assert pairs.class_pairs and all(alone.model is not None for _, _, alone, _ in pairs.class_pairs)
    for case in cases.values():
        assert case.grids and case.selections and case.ladders and not case.problem.linear
    assert [case.problem.multiclass for case in (pairs, rests, numbers)] == ["ovo", "ovr", "none"]


def test_nothing_is_found_in_them(cases):
    for case in cases.values():
        for name in {*GRID_PROPERTIES, "contradiction", "false bound", "predict", "certificate"} - {"slow path"}:
            assert found(name, case) == [], name


@pytest.mark.parametrize("index", [PAIRS, NUMBERS])
def test_a_tolerance_that_a_smaller_one_meets_but_not_it_is_found(cases, index):
    case = cases[index]
    (ladder,) = case.ladders
    done = [out for out in ladder if out.model is not None and out.complete]
    assert done[1].model.certificate.converged
    left = with_certificate(done[0], converged=False)
    assert len(found("ladder", changed(case, ladders=[[left, *done[1:]]]))) == 1


@pytest.mark.parametrize("index", [PAIRS, NUMBERS])
def test_a_point_that_a_path_leaves_is_found(cases, index):
    case = changed(cases[index], tol=1e-6)
    (grid,) = case.grids
    one, *rest = grid.points
    singles = [with_certificate(out, converged=True) for out in grid.singles]
    left = replace(with_certificate(one, converged=False), warned=())
    rest = [with_certificate(out, converged=True) for out in rest]
    assert len(found("path", changed(case, grids=[replace(grid, points=[left, *rest], singles=singles)]))) == 1


@pytest.mark.parametrize("gap, some", [(5e-6, 0), (5e-5, 1)])
def test_a_point_that_rounding_leaves_near_its_tolerance_is_none(cases, gap, some):
    case = changed(cases[NUMBERS], tol=1e-6)
    (grid,) = case.grids
    points, (_, *rest) = ([with_certificate(o, converged=True) for o in given] for given in (grid.points, grid.singles))
    alone = with_certificate(grid.singles[0], converged=False, gap=gap)
    alone.warned = (("ConvergenceWarning", "rounding allows no better", ""),)
    assert len(found("path", changed(case, grids=[replace(grid, points=points, singles=[alone, *rest])]))) == some


def test_a_path_slower_than_its_points_is_found(cases, monkeypatch):
    case = cases[NUMBERS]
    (grid,) = case.grids
    ends = [replace(with_certificate(out, converged=True), wall=0.0, warned=()) for out in grid.singles]
    slow = changed(case, grids=[replace(grid, singles=ends, whole=replace(grid.whole, cpu=500.0))])
    assert not found("slow path", slow), "the second and third time it was not slow"

    def fit(problem, run, **limits):
        return replace(grid.whole, cpu=500.0 if limits else 0.1)

    monkeypatch.setattr(grids.runs, "fit", fit)
    assert len(found("slow path", slow)) == 1


@pytest.mark.parametrize("index", [PAIRS, NUMBERS])
def test_a_bound_of_a_path_above_the_objective_of_a_single_fit_is_found(cases, index):
    case = cases[index]
    one, two = next(group for group in case.others if len(group) == 2 and group[0].run.role == "path")
    high = max(part.objective for part in one.parts) * 2
    parts = tuple(replace(part, lower_bound=high, objective=high) for part in one.model.certificate.parts)
    wrong = with_certificate(one, lower_bound=high, objective=high, parts=parts)
    assert found("contradiction", changed(case, others=[[wrong, two]]))


@pytest.mark.parametrize("index, amount", [(NUMBERS, 1e-3), (RESTS, 0.05)])
def test_another_score_is_found(cases, index, amount):
    case = cases[index]
    (chosen,) = case.selections
    for sign in (1, -1):
        scores = chosen.selection.scores.copy()
        scores[0, 0] += sign * amount
        selection = replace(chosen.selection, scores=scores, best_index=int(scores.mean(axis=1).argmax()))
        texts = found("scores", changed(case, selections=[replace(chosen, selection=selection)]))
        assert len(texts) == 1 and "scores" in texts[0]


def test_another_choice_is_found(cases):
    case = cases[NUMBERS]
    (chosen,) = case.selections
    worst = int(chosen.selection.scores.mean(axis=1).argmin())
    selection = replace(chosen.selection, best_index=worst)
    (text,) = found("scores", changed(case, selections=[replace(chosen, selection=selection)]))
    assert "best point" in text


def test_a_pair_that_is_not_the_problem_of_its_rows_is_found(cases):
    case = cases[PAIRS]
    first, j, alone, here = case.class_pairs[0]
    high = alone.model.certificate.objective * (1 + 1e-6)
    wrong = with_certificate(alone, objective=high, lower_bound=high)
    assert len(found("pair", changed(case, class_pairs=[(first, j, wrong, here)]))) == 1


class Turned:
    """A model that gives the scores of other classes."""

    def __init__(self, model):
        self._model = model

    def __getattr__(self, name):
        return getattr(self._model, name)

    def decision_function(self, X):
        return self._model.decision_function(X)[:, ::-1]


@pytest.mark.parametrize("way", ["ovo", "fuzzy-min", "fuzzy-avg"])
def test_votes_of_other_classes_are_found(cases, way):
    case = cases[PAIRS]
    out = replace(case.outcomes[0], model=replace(case.outcomes[0].model, multiclass=way))
    assert found("votes", changed(case, outcomes=[out])) == []
    assert len(found("votes", changed(case, outcomes=[replace(out, model=Turned(out.model))]))) == 1


def test_a_bound_above_a_constant_is_found():
    rng = np.random.default_rng(0)
    problem = replace(regression.draw(0, 3), bias="free", params={"C": 1.0, "epsilon": 0.5}, kernel="linear")
    problem = replace(problem, X=rng.standard_normal((20, 2)), codes=np.arange(20) % 2, targets=np.array([4.0, 4.5]))
    problem = replace(problem, weight=None, single=False, kernel_params={})
    model = grids.runs.fit(problem, Run("test")).model
    # A constant meets all targets, and w = 0 costs 3.5 and 4 a row.
    assert model.certificate.converged and model.certificate.objective == pytest.approx(0.0, abs=1e-6)
    case = grids.GridCase(SEED, NUMBERS)
    case.problem, case.outcomes = problem, [Outcome(problem, Run("test"), model)]
    assert found("constant", case) == []
    case.outcomes = [with_certificate(case.outcomes[0], objective=1.0, lower_bound=1.0)]
    assert len(found("constant", case)) == 1


def test_the_mirrored_problem_is_of_the_same_value():
    problem = regression.draw(1, 3)
    one, two = (grids.runs.fit(p, Run("test", given={"tol": 1e-9})) for p in (problem, problem.mirrored()))
    assert (two.problem.y == -problem.y).all()
    assert one.model.certificate.objective == pytest.approx(two.model.certificate.objective, rel=1e-7)


def test_what_gaps_leave_open_of_a_score():
    y, f, weight = np.array([0.0, 1.0, 4.0]), np.array([0.5, 1.0, 3.0]), np.array([1.0, 2.0, 1.0])
    low, high = r2_range(y, f, np.full(3, 0.25), weight)
    mean, off = 1.5, np.linspace(-0.25, 0.25, 41)
    whole = weight @ (y - mean) ** 2
    each = [
        1 - weight @ (y - f - np.array([a, b, c])) ** 2 / whole for a in off[::8] for b in off[::8] for c in off[::8]
    ]
    assert low == pytest.approx(min(each)) and high == pytest.approx(max(each), abs=1e-3)
    assert r2_range(np.full(3, 2.0), f, np.zeros(3), weight) is None


def test_pairs_count_among_all_outcomes(cases):
    case = cases[PAIRS]
    assert case.class_pairs[0][2] in everything(case)
