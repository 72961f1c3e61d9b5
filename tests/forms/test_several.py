"""Forms that say themselves which problems they consist of: other printed values, engines that the form names."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import mdlearn
from mdlearn.forms.margin import MarginForm
from mdlearn.forms.problem import ColumnProblem, Problem, Several, problems_of
from mdlearn.forms.proof import judge
from mdlearn.objectives.svm import SVM
from mdlearn.plugins.registry import find


class RootProblem(ColumnProblem):
    """The root of twice the value: an increasing function of it, so that the same engines serve."""

    def values(self, objective, lower):
        return np.sqrt(2 * objective), np.sqrt(2 * max(lower, 0.0))

    def certify(self, point, tol):
        solution = super().certify(point, tol)
        objective, lower = self.values(solution.certificate.objective, solution.certificate.lower_bound)
        at_zero = np.sqrt(2 * self.at_zero)
        return replace(solution, certificate=judge(objective, lower, at_zero, False, tol))

    certify_best = certify


@dataclass(frozen=True, eq=False)
class RootForm(MarginForm, Several):
    def problems(self):
        return tuple(RootProblem(self, column) for column in self.columns)


class Root(SVM):
    name: ClassVar[str] = "root"

    def form(self, data, features, bias, params):
        plain = super().form(data, features, bias, params)
        return RootForm(plain.features, plain.columns, plain.bias)


def sample(k):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    return X, np.argmax(X[:, :k] + 0.5 * rng.standard_normal((50, k)), axis=1)


@pytest.mark.parametrize("solver", ["interior", "cd"])
@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
@pytest.mark.parametrize("k", [2, 3])
def test_values_are_those_of_the_forms_own_problems(k, multiclass, solver):
    X, y = sample(k)
    settings = {"multiclass": multiclass, "solver": solver, "tol": 1e-10}
    plain, root = (mdlearn.fit(task, X, y, **settings) for task in ("svm", Root))
    assert root.decision_function(X) == pytest.approx(plain.decision_function(X), abs=1e-6)
    for ours, other in zip(
        root.certificate.parts or [root.certificate], plain.certificate.parts or [plain.certificate]
    ):
        assert ours.objective == pytest.approx(np.sqrt(2 * other.objective), rel=1e-9)
        assert ours.lower_bound <= ours.objective and ours.converged
    last = {state.problem: state for state in root.history}
    assert sum(state.objective for state in last.values()) == pytest.approx(root.certificate.objective, rel=1e-8)


def test_a_form_of_several_names_its_engine():
    class Named(RootProblem):
        engine = "cd"

    @dataclass(frozen=True, eq=False)
    class NamedForm(RootForm):
        def problems(self):
            return tuple(Named(self, column) for column in self.columns)

    class Task(Root):
        name: ClassVar[str] = "named"

        def form(self, data, features, bias, params):
            plain = super().form(data, features, bias, params)
            return NamedForm(plain.features, plain.columns, plain.bias)

    X, y = sample(3)
    assert mdlearn.fit(Root, X, y).solver == "hybrid"
    model = mdlearn.fit(Task, X, y)
    assert model.solver == "cd" and "names" in model.solver_reason and len(model.certificate.parts) == 3


def test_a_form_of_several_need_not_be_one_of_margins():
    class Lone(Problem):
        def start(self):
            return None

        def certify(self, point, tol):
            return None

    class Bare(Several):
        features, bias, own = None, "none", (Lone(), Lone())

        def problems(self):
            return self.own

    assert problems_of(Bare()) == Bare.own
    for name in mdlearn.list_solvers():
        assert isinstance(find("solver", name)().refusal(Bare()), str), name
