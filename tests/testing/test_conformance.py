"""The conformance kit on everything registered, and proof that every one of its checks can fail."""

from __future__ import annotations

import sys
from typing import ClassVar

import numpy as np
import pytest
from faulty_maps import MAP_FAULTS
from faulty_objectives import FAULTS as OBJECTIVE_FAULTS
from faulty_problems import HighBound, LongGradient, net_task

import mdlearn
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.row_terms import RowTerms
from mdlearn.objectives.base import Objective, Parameter, Terms
from mdlearn.objectives.ldm import LDM
from mdlearn.objectives.svm import SVM
from mdlearn.plugins.registry import registry
from mdlearn.solvers.interior_point.solver import Interior
from mdlearn.testing import CHECKS, checks, parametrize_with_checks

COMPOSITE_FAULTS = ((checks.check_composite, net_task(LongGradient), "of the gradient is"),)
FAULTS = (*OBJECTIVE_FAULTS, *MAP_FAULTS, *COMPOSITE_FAULTS)
POINTS = (
    LDM(C=1e-3),
    LDM(C=2.0, lambda1=0.0, lambda2=0.5),
    LDM(lambda1=1e4, lambda2=1.0),
    LDM(C=0.0, lambda1=1.0, lambda2=1.0),
)


class SquaredBand(Objective):
    """Both sides, two thresholds, power 2: a loss that no built-in objective has."""

    name = "squared-band"
    summary = "squared loss outside a band"
    formula = "1/2 |w|^2 + Var(z) + C sum [max(0, 0.5 - z)^2 + max(0, z - 1.5)^2]"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the loss")}
    default_bias = "free"

    def terms(self, params, total):
        C = params["C"]
        return Terms(1.0, 0.0, (HingeTerm(C, threshold=0.5, power=2), HingeTerm(C, side=-1, threshold=1.5, power=2)))


def test_the_registry_is_not_empty():
    names = list(registry().objectives)
    assert {"ldm", "svm"} <= set(names) == set(mdlearn.list_objectives())
    cases = parametrize_with_checks().mark.args[1]
    assert len(cases) == len(names) * len(CHECKS) >= 28
    assert {case.values[0] for case in cases} == set(names)
    assert len({case.id for case in cases}) == len(cases)


@parametrize_with_checks()
def test_registered(objective, check):
    check(objective)


@pytest.mark.slow
@parametrize_with_checks(POINTS)
def test_points_of_the_family(objective, check):
    check(objective)


class Amounts(SquaredBand):
    """Costs and thresholds that follow from the rows."""

    name = "amounts"
    formula = "1/2 |w|^2 + Var(z) + C sum exp(x_1/2) [max(0, 0.5 + x_2 - z)^2 + max(0, z - 1.5 - x_2)^2]"
    needs_rows = True

    def row_terms(self, data, params):
        X = data.X.block(slice(None))
        return RowTerms(np.exp(0.5 * X[:, 0]), X[:, 1])


class Sparse(SquaredBand):
    """A penalty of coefficients, in which a regularized intercept has its part."""

    name = "sparse"
    formula = "1/2 |w|^2 + 3 |w|_1 + C sum max(0, 1 - z)^2"
    default_bias = "regularized"
    kernels = False

    def terms(self, params, total):
        return Terms(loss=(HingeTerm(params["C"], power=2),), penalty=3.0)


@parametrize_with_checks([SquaredBand, Amounts, Sparse])
def test_not_registered(objective, check):
    check(objective)


@pytest.mark.parametrize(
    ("check", "objective", "words"), FAULTS, ids=[f"{c.__name__}-{o.__name__}" for c, o, _ in FAULTS]
)
def test_a_fault_is_found(check, objective, words):
    with pytest.raises(AssertionError, match=words) as caught:
        check(objective)
    assert objective.name in str(caught.value)


def test_every_check_can_fail():
    assert {check for check, _, _ in FAULTS} == set(CHECKS)


class Sloppy(Interior):
    """Hands in its first report and ends."""

    name = "sloppy"

    def iterate(self, form, column, shared, options, rng):
        for report in super().iterate(form, column, shared, options, rng):
            yield report
            if report is not None:
                return


def test_a_sloppy_engine_is_found(monkeypatch):
    monkeypatch.setitem(registry().solvers, "sloppy", Sloppy)
    with pytest.raises(AssertionError, match="engine sloppy stops at the gap"):
        checks.check_engines_agree("ldm")


def test_a_problem_without_an_engine_is_found(monkeypatch):
    for cls in registry().solvers.values():
        if cls.exact:
            monkeypatch.setattr(cls, "refusal", lambda self, form: "it takes nothing today")
    with pytest.raises(AssertionError, match="solver='auto' has no engine"):
        checks.check_engines_agree("svm")


def test_what_only_a_fit_shows_is_told_too():
    checks.check_composite(net_task(HighBound))  # a bound of its own is none of the parts
    with pytest.raises(AssertionError, match=r"faulty_problems\.HighBound\.bound is too high"):
        checks.check_certificate(net_task(HighBound))


# ---------------------------------------------------------------- the decorator


def test_one_name_class_or_instance_is_enough():
    for given, title in (("svm", "svm"), (SVM, "svm"), (SVM(C=2), "svm-C=2")):
        cases = parametrize_with_checks(given).mark.args[1]
        assert [case.id for case in cases] == [f"{title}-{check.__name__}" for check in CHECKS]


def test_bad_lists_are_refused():
    with pytest.raises(ValueError, match=r"'nonsense' is unknown; known objectives: .*ldm"):
        parametrize_with_checks(["svm", "nonsense"])
    with pytest.raises(TypeError, match="objective needs to be a name"):
        parametrize_with_checks([3])
    with pytest.raises(ValueError, match="objectives is empty"):
        parametrize_with_checks([])


def test_without_pytest(monkeypatch):
    monkeypatch.setitem(sys.modules, "pytest", None)
    with pytest.raises(ImportError, match="pip install pytest"):
        parametrize_with_checks()
    checks.check_declaration("svm")
