"""Pairs of classes that an engine solves as one stack: answers, limits and records are those of single pairs."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

import mdlearn
from mdlearn.extend import HingeTerm, Parameter, Terms
from mdlearn.form_making import FormMaker
from mdlearn.forms.joint.pair_stack import PairPoint, PairStack
from mdlearn.solvers.base import Report, Steps
from mdlearn.solvers.coordinate_descent.solver import CoordinateDescent

K = 7
PAIRS = K * (K - 1) // 2
GIVEN: dict[str, Any] = {"kernel": "rbf", "gamma": 0.3, "C": 3.0, "multiclass": "ovo", "tol": 1e-3}


def sample(m: int = 210, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(m) % K)
    return rng.normal(size=(m, 4)) + rng.normal(size=(K, 4))[y], y


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the pairs of which a form of their own is made."""
    found: list[int] = []
    make = FormMaker.make

    def noted(self: FormMaker, j: int) -> Any:
        found.append(j)
        return (yield from make(self, j))

    monkeypatch.setattr(FormMaker, "make", noted)
    return found


@pytest.mark.parametrize("bias", ["free", "regularized", "none"])
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-9])
def test_no_pair_has_a_form_of_its_own_but_the_first(made: list[int], bias: str, tol: float) -> None:
    X, y = sample()
    model = mdlearn.fit("svm", X, y, bias=bias, **{**GIVEN, "tol": tol})
    assert made == [0]
    assert model.certificate.converged and len(model.certificate.parts) == PAIRS
    assert all(part.gap <= tol and part.kind == "duality gap" for part in model.certificate.parts)
    assert [state.problem for state in model.history] == list(range(PAIRS)) and model.solver == "cd"


@pytest.mark.parametrize("bias", ["free", "regularized", "none"])
def test_every_pair_is_that_of_a_fit_of_two_classes(bias: str) -> None:
    """Objectives are within the gap of the optimum of two classes alone, and what is certified is what is predicted."""
    X, y = sample(seed=1)
    weights = np.random.default_rng(1).uniform(0.0, 2.0, y.shape[0])
    weights[::9] = 0.0
    model = mdlearn.fit("svm", X, y, bias=bias, sample_weight=weights, **GIVEN)
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    G = np.exp(-0.3 * squares)
    pairs = [(a, b) for a in range(K) for b in range(a + 1, K)]
    for p, (pair, part) in enumerate(zip(pairs, model.certificate.parts)):
        own = np.isin(y, pair)
        given = {"kernel": "rbf", "gamma": 0.3, "C": 3.0, "bias": bias, "tol": 1e-8, "solver": "interior"}
        best = mdlearn.fit("svm", X[own], y[own], sample_weight=weights[own], **given).certificate
        assert part.lower_bound <= best.objective and best.lower_bound <= part.objective
        alpha, b, z = model.dual_coef_[p], model.intercept_[p], np.where(y[own] == pair[1], 1.0, -1.0)
        f = G[own] @ alpha + b
        ridge = alpha @ G @ alpha + (b * b if bias == "regularized" else 0.0)
        value = 0.5 * ridge + 3.0 * float(weights[own] @ np.maximum(0.0, 1.0 - z * f))
        assert value == pytest.approx(part.objective, rel=1e-10)
        assert not alpha[~own].any() and not alpha[weights == 0].any()


def test_pairs_without_an_answer_are_solved_alone(made: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = sample()
    whole = mdlearn.fit("svm", X, y, **GIVEN)
    certified = PairStack.certified
    lost = [0, 3, PAIRS - 1]

    def without(self: PairStack, *given: Any) -> Any:
        return [one for one in certified(self, *given) if one.j not in lost]

    monkeypatch.setattr(PairStack, "certified", without)
    made.clear()
    model = mdlearn.fit("svm", X, y, **GIVEN)
    assert made == [0, 3, PAIRS - 1]
    assert model.certificate.converged and {state.problem for state in model.history} == set(range(PAIRS))
    for j, (one, other) in enumerate(zip(model.certificate.parts, whole.certificate.parts)):
        assert (one == other) is (j not in lost)
        assert one.lower_bound <= other.objective and other.lower_bound <= one.objective


@pytest.mark.parametrize(
    "changed",
    [
        {"solver": "interior"},
        {"tol": 1e-11},
        {"C": 200.0},
        {"solver_options": {"cache": 1e6}, "solver": "cd"},
        {"kernel": "linear", "gamma": None},
    ],
    ids=["another engine", "a tiny gap", "long multipliers", "a small cache", "explicit rows"],
)
def test_what_is_solved_pair_by_pair(made: list[int], changed: dict[str, Any]) -> None:
    X, y = sample(m=385)  # their matrix takes more than the smallest cache
    given = {name: value for name, value in {**GIVEN, **changed}.items() if value is not None}
    assert mdlearn.fit("svm", X, y, **given).certificate.converged
    assert sorted(made) == list(range(PAIRS))


def test_other_objectives_and_types_are_solved_pair_by_pair(made: list[int]) -> None:
    X, y = sample()
    for objective, A in (("ldm", X), ("lsvm", X), ("svm", X.astype(np.float32))):
        made.clear()
        assert mdlearn.fit(objective, A, y, **GIVEN).certificate.converged
        assert sorted(made) == list(range(PAIRS))


def test_objectives_of_plugins_are_stacked_by_what_they_declare(made: list[int]) -> None:
    class Declared(mdlearn.Objective):
        """An SVM of another name."""

        name, summary, formula = "declared", "an SVM", "1/2 |w|^2 + C sum max(0, 1-z)"
        parameters: ClassVar = {"C": Parameter(1.0, "weight of the summed loss")}

        def terms(self, params: dict[str, Any], total: float) -> Terms:
            return Terms(loss=(HingeTerm(params["C"]),))

    class Checked(Declared):
        """The same with a check of each column, which pairs of a stack would not see."""

        name = "checked"

        def check_column(self, params: dict[str, Any], column: Any, bias: str) -> None:
            pass

    X, y = sample()
    whole = mdlearn.fit("svm", X, y, **GIVEN)
    for objective, forms in ((Declared, [0]), (Checked, list(range(PAIRS)))):
        made.clear()
        model = mdlearn.fit(objective, X, y, **GIVEN)
        assert sorted(made) == forms and model.certificate.converged
        if objective is Declared:
            np.testing.assert_array_equal(model.dual_coef_, whole.dual_coef_)


def test_a_callback_ends_all() -> None:
    X, y = sample()
    seen: list[Any] = []

    def third(state: Any) -> bool:
        seen.append(state)
        return len(seen) == 3

    with pytest.warns(mdlearn.ConvergenceWarning, match="callback"):
        model = mdlearn.fit("svm", X, y, callback=third, **GIVEN)
    assert [state.problem for state in seen] == [0, 1, 2] and len(model.history) == 3
    assert [part.converged for part in model.certificate.parts] == [True] * 3 + [False] * (PAIRS - 3)
    assert not model.dual_coef_[3:].any()


def test_one_report_each_is_enough() -> None:
    X, y = sample()
    assert mdlearn.fit("svm", X, y, max_iter=1, **GIVEN).certificate.converged


def test_time_that_is_up_leaves_the_others_at_zero(clock: Any, made: list[int]) -> None:
    X, y = sample()

    def slow(state: Any) -> None:
        if state.problem == 1:
            clock.sleep(100.0)

    with pytest.warns(mdlearn.ConvergenceWarning, match="time"):
        model = mdlearn.fit("svm", X, y, time_limit=50.0, callback=slow, **GIVEN)
    assert [part.converged for part in model.certificate.parts] == [True] * 2 + [False] * (PAIRS - 2)
    assert not model.dual_coef_[2:].any() and made == [0]


def test_no_matrix_is_made_once_time_is_up(clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = sample()
    stack, asked = FormMaker.stack, []

    def slow(self: FormMaker, first: Any) -> Any:
        asked.append(first)
        return stack(self, first)

    make = FormMaker.make

    def slow_form(self: FormMaker, j: int) -> Any:
        clock.sleep(100.0)
        return (yield from make(self, j))

    monkeypatch.setattr(FormMaker, "stack", slow)
    monkeypatch.setattr(FormMaker, "make", slow_form)
    with pytest.warns(mdlearn.ConvergenceWarning, match="time"):
        model = mdlearn.fit("svm", X, y, time_limit=50.0, **GIVEN)
    assert not asked and not model.dual_coef_.any()


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_bits_do_not_depend_on_threads(n_threads: int) -> None:
    X, y = sample()
    one, other = mdlearn.fit("svm", X, y, **GIVEN), mdlearn.fit("svm", X, y, n_threads=n_threads, **GIVEN)
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    assert one.certificate == other.certificate


def test_an_engine_with_an_iterate_of_its_own_gets_no_stack() -> None:
    class Own(CoordinateDescent):
        name: ClassVar[str] = "own"

        def iterate(self, *given: Any) -> Steps:
            return (yield from super().iterate(*given))

    class Renamed(CoordinateDescent):
        name: ClassVar[str] = "renamed"

    class Stacking(Own):
        name: ClassVar[str] = "stacking"

        def iterate(self, *given: Any) -> Steps:
            return (yield from super().iterate(*given))

        def takes_stack(self, *given: Any) -> bool:
            return True

    taken = [one().takes_stack.__func__ for one in (CoordinateDescent, Own, Renamed, Stacking)]
    assert taken[0] is taken[2] and len({*taken}) == 3
    assert Own().takes_stack(None, {}, 1.0) is False  # type: ignore[arg-type]


@pytest.mark.parametrize("point", [None, PairPoint(0, 1, np.zeros(3))])
def test_points_that_are_none_are_the_engine_s_fault(point: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = sample()
    iterate = CoordinateDescent.iterate

    def wrong(self: CoordinateDescent, form: Any, *given: Any) -> Steps:
        if isinstance(form, PairStack):
            yield Report(np.inf, -np.inf, point)
        return (yield from iterate(self, form, *given))

    monkeypatch.setattr(CoordinateDescent, "iterate", wrong)
    with pytest.raises(ValueError, match=r"solver 'cd' is faulty: .*use another solver"):
        mdlearn.fit("svm", X, y, **GIVEN)
