"""What the fuzz program of fits can see: a model with one wrong number is found by the property that owns it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from fuzz import problems, reference, regression, run, runs
from fuzz.cases import ENGINES, Case
from fuzz.large import LargeCase
from fuzz.properties import PROPERTIES

import mdlearn
from mdlearn.objectives import mdlearn_objectives


def plain(objective="svm", **changed):
    """A small problem without anything odd."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 3))
    codes = (X[:, 0] + 0.5 * rng.standard_normal(30) > 0).astype(int)
    given = {"labels": "codes", "weight": None, "class_weight": None, "kernel": "linear", "kernel_params": {}}
    given |= {"params": {"C": 1.0}, "bias": "regularized", "multiclass": "auto", "single": False, "sparse": False}
    if objective == "svr":
        given["targets"] = np.array([-1.0, 1.0])
    kind = regression.Regression if objective == "svr" else problems.Problem
    return kind(0, 0, objective, X, codes, traits=(), **{**given, **changed})


def case_of(*models, problem, **lists):
    """A case that holds these models of a problem."""
    outcomes = [runs.Outcome(problem, runs.Run(f"run {i}"), model) for i, model in enumerate(models)]
    empty = {"pairs": [], "efforts": [], "starts": [], "others": [], "weighted": None, "tol": 1e-9}
    return SimpleNamespace(problem=problem, outcomes=outcomes, **{**empty, **lists})


def found(name, case):
    return [text for _, text in PROPERTIES[name](case)]


def fitted(problem, **given):
    return runs.fit(problem, runs.Run("test", given={"tol": 1e-9, **given})).model


def with_certificate(model, **changed):
    return replace(model, certificate=replace(model.certificate, **changed))


@pytest.mark.parametrize("objective", sorted(ENGINES))
def test_a_sound_model_has_no_fault(objective):
    problem = plain(objective, params={}, bias=None)
    case = case_of(fitted(problem), fitted(problem, tol=1e-3), problem=problem)
    for name in ("contradiction", "false bound", "predict", "above zero", "certificate", "finite"):
        assert found(name, case) == [], name
    values = case.outcomes[0].values
    assert values.predicted is not None and (values.exact is not None or objective == "l3svm")


def test_margins_longer_than_a_hard_margin_asks_are_no_fault():
    """Where long margins pay, coefficients are not scaled down to margin 1."""
    problem = plain("ldm", params={"C": np.inf, "lambda1": 1e-3, "lambda2": 1e3}, bias="regularized")
    codes = (problem.X[:, 0] > 0).astype(int)
    problem = replace(problem, X=problem.X + np.outer(2.0 * codes - 1.0, [3.0, 0.0, 0.0]), codes=codes)
    model = fitted(problem)
    assert model.margins(problem.X, problem.y).min() > 1.1
    assert found("predict", case_of(model, problem=problem)) == []


def test_pairs_of_classes_predict_by_coordinates():
    """Those with more rows than columns: rounded dual coefficients say something else than rounded coefficients."""
    X = plain().X.astype(np.float32).astype(float)
    codes = np.r_[1, 2, np.zeros(28, dtype=int)]
    problem = replace(plain("uldm", params={}, bias=None, multiclass="fuzzy-min", single=True), X=X, codes=codes)
    model = fitted(problem, tol=1e-6)
    assert model.coef_.dtype == np.float32 and sorted(map(len, model.basis_indices_)) == [0, 0, 2]
    assert found("predict", case_of(model, problem=problem)) == []


def test_points_that_no_time_was_left_for_are_a_key_of_their_own():
    model = SimpleNamespace(extras={"landmarks_": np.empty((0, 3))}, params={})
    some = SimpleNamespace(extras={"landmarks_": np.ones((1, 3))}, params={})
    keys = [runs.Outcome(plain(), runs.Run("test"), one).key for one in (model, some)]
    assert keys[0] != keys[1]


@pytest.mark.parametrize("gamma, alike", [(None, True), (1.0, True), (1e17, False)])
def test_points_that_only_rounding_moves_are_the_same_key_but_for_a_kernel_that_sees_it(gamma, alike):
    points = np.array([[90.0], [91.0]])
    models = [SimpleNamespace(extras={"centers_": p}, params={"gamma": gamma}) for p in (points, points + 1e-12)]
    one, two = (runs.Outcome(plain(), runs.Run("test"), model).key for model in models)
    assert (one == two) == alike


def test_a_pair_whose_turn_never_came_is_zero():
    problem = plain("uldm", kernel="poly", kernel_params={"degree": 2, "coef0": 1.0}, multiclass="fuzzy-min")
    nothing = (np.empty(0, dtype=int),)
    given = {"dual_coef_": np.zeros((1, 30)), "intercept_": np.zeros(1), "params": {"gamma": 1.0}}
    model = SimpleNamespace(**given, extras={"basis_indices_": nothing})
    F, _, squares, _ = reference.decision_values(problem, model)
    assert not F.any() and not squares.any()


def test_a_negative_norm_is_rounding_of_the_matrix():
    G = np.ones((30, 30)) + np.diag(np.r_[-1e-16, np.zeros(29)])
    problem = replace(plain(kernel="precomputed"), X=G)
    alpha = np.zeros((1, 30))
    alpha[0, :2] = 1.0, -1.0
    model = SimpleNamespace(dual_coef_=alpha, intercept_=np.zeros(1), params={"gamma": None}, extras={})
    assert reference.decision_values(problem, model)[2][0] == 0.0


def test_every_objective_is_drawn():
    assert {one.name for one in mdlearn_objectives()} == set(ENGINES)
    assert {regression.draw(2, i).objective for i in range(200)} == set(ENGINES)


def test_a_bound_above_another_engines_objective_is_found():
    problem = plain()
    model = fitted(problem)
    high = model.certificate.objective * (1 + 1e-6)
    case = case_of(model, with_certificate(model, objective=high, lower_bound=high), problem=problem)
    assert found("contradiction", case) and found("false bound", case) and found("predict", case)


def test_an_answer_worse_than_zero_is_found():
    problem = plain()
    model = fitted(problem)
    model = with_certificate(model, objective=problem.counts.sum() * 1.001)
    assert found("above zero", case_of(model, problem=problem))


def test_an_objective_that_rises_is_found():
    problem = plain()
    model = fitted(problem)
    best = model.certificate
    worse = with_certificate(model, objective=best.objective * 1.001, lower_bound=best.lower_bound * 0.999)
    done = [runs.Outcome(problem, runs.Run("effort", given={"max_iter": n}), m) for n, m in ((1, model), (5, worse))]
    texts = found("effort", case_of(problem=problem, efforts=[done]))
    assert len(texts) == 2 and "objective" in texts[0] and "bound" in texts[1]
    assert not found("effort", case_of(problem=problem, efforts=[done[::-1]]))


def test_an_answer_worse_than_its_start_is_found():
    problem = plain()
    start = fitted(problem)
    out = runs.Outcome(
        problem, runs.Run("start"), with_certificate(start, objective=start.certificate.objective + 1e-3)
    )
    cold = runs.Outcome(problem, runs.Run("cold"), start)
    assert found("start", case_of(problem=problem, starts=[(out, start, cold)]))


@pytest.mark.parametrize(
    "spoil, word",
    [
        (lambda s: [*s[:-1], replace(s[-1], objective=s[-1].objective * 1.01)], "last entry"),
        (lambda s: [s[-1], *s], "tol is"),
        (lambda s: [replace(s[0], objective=s[-1].lower_bound - 1.0), *s], "certified is bound"),
        (lambda s: [replace(s[0], lower_bound=s[-1].objective + 1.0), *s], "has bound"),
    ],
)
def test_a_history_that_contradicts_is_found(spoil, word):
    problem = plain()
    model = fitted(problem)
    last = replace(model.history[-1], objective=model.certificate.objective, lower_bound=model.certificate.lower_bound)
    history = spoil([replace(last, iteration=1, gap=model.certificate.gap)])
    texts = found("history", case_of(replace(model, history=history), problem=problem))
    assert len(texts) == 1 and word in texts[0]


def test_other_bits_are_found():
    problem = plain()
    model = fitted(problem)
    one = runs.Outcome(problem, runs.Run("first"), model)
    two = runs.Outcome(problem, runs.Run("again"), replace(model, intercept_=model.intercept_ + 1e-15))
    assert found("bits", case_of(problem=problem, pairs=[(one, two)])) == ["not the same bits: arrays"]


@pytest.mark.parametrize("error", [ZeroDivisionError("division by zero"), ValueError("array must not contain NaNs")])
def test_a_foreign_error_is_found(error, monkeypatch):
    def broken(*_, **__):
        raise error

    problem = plain()
    out = runs.fit(problem, runs.Run("broken"), call=broken)
    assert out.error is error
    assert found("traceback", SimpleNamespace(problem=problem, outcomes=[out], pairs=[], others=[]))


def test_our_own_sentence_is_none():
    problem = plain(params={"C": -1.0})
    out = runs.fit(problem, runs.Run("refused"))
    assert isinstance(out.error, ValueError)
    assert not found("traceback", SimpleNamespace(problem=problem, outcomes=[out], pairs=[], others=[]))


def test_a_weight_that_is_no_repetition_is_found():
    problem = plain(weight=np.arange(30) % 3 + 1)
    other, origin = runs.repeated(problem)
    assert len(other.codes) == problem.weight.sum() and (other.X == problem.X[origin]).all()
    one = runs.Outcome(problem, runs.Run("first"), fitted(problem))
    two = runs.Outcome(other, runs.Run("repeated"), with_certificate(fitted(other), converged=False), origin=origin)
    assert found("weights", case_of(problem=problem, weighted=(one, two)))


def test_a_problem_is_the_same_again():
    for index in range(20):
        one, two = problems.draw(3, index), problems.draw(3, index)
        assert str(one) == str(two) and one.X.tobytes() == two.X.tobytes()


def test_the_program_counts_and_ends():
    found, counts = run.judge(1, 4, ["bits", "finite"])
    assert found == [] and counts["fits"] >= 8 and counts["models"] > 0
    assert len(Case(1, 4).run().outcomes) >= 6


def test_a_large_problem_is_held_to_its_limit(monkeypatch):
    case = LargeCase(0, 99)
    case.problem = plain()
    out = runs.fit(case.problem, runs.Run("test"), limit=0.1)
    out.wall = out.cpu = 5.0
    case.outcomes.append(out)
    assert not found("late", case), "the second and third time it was not late"
    monkeypatch.setattr(runs, "ALLOWED", (0.1, -1.0))
    assert found("late", case)


def test_a_path_over_a_large_problem_has_a_grid():
    case = LargeCase(5007, 199)
    problem, given = case.gridded()
    assert case.problem.objective == "svr" and "C" in case.problem.params and "C" not in problem.params
    out = runs.fit(problem, runs.Run("test", given=given), limit=0.1, call=mdlearn.fit_path)
    assert len(out.model) == 3 and out.model[0].params["C"] == case.problem.params["C"]


def test_a_bad_choice_of_engine_is_found():
    problem = plain()
    model = fitted(problem)
    case = case_of(with_certificate(model, converged=False, gap=1.0), model, problem=problem, tol=1e-6)
    for out, role in zip(case.outcomes, ("first", "engine")):
        out.run = replace(out.run, role=role)
    assert len(found("choice", case)) == 1
    assert not found("choice", case_of(model, model, problem=problem, tol=1e-6))
