"""The conformance kit on everything registered, and proof that every one of its checks can fail."""

from __future__ import annotations

import sys
from itertools import count
from typing import ClassVar

import numpy as np
import pytest

import mdlearn
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.objectives.base import Objective, Parameter, Terms
from mdlearn.objectives.ldm import LDM
from mdlearn.objectives.svm import SVM
from mdlearn.plugins.manager import registry
from mdlearn.solvers.interior import Interior
from mdlearn.testing import CHECKS, checks, parametrize_with_checks

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


@parametrize_with_checks(POINTS)
def test_points_of_the_family(objective, check):
    check(objective)


@parametrize_with_checks(SquaredBand)
def test_not_registered(objective, check):
    check(objective)


# ---------------------------------------------------------------- objectives with one fault each


def written(task, data, features, bias, *, signs=None, counts=None, factor=1.0):
    """What `Objective.form` writes, with one thing changed."""
    terms = task.terms(task.resolve(data.total), data.total)
    loss = tuple(HingeTerm(factor * t.weight, t.side, t.threshold, t.power) for t in terms.loss)
    k = data.classes.shape[0]
    if signs is None:
        signs = [np.where(data.codes == c, 1.0, -1.0) for c in ([1] if k == 2 else range(k))]
    counts = data.counts if counts is None else counts
    return MarginForm(features, tuple(Column(y, counts, terms.variance, terms.mean, loss) for y in signs), bias)


class Faulty(SVM):
    """A name of its own, so that messages can be told apart."""

    name = "faulty"


class Capitals(SVM):
    name = "My SVM"


class NoSummary(Faulty):
    summary = ""


class Undocumented(Faulty):
    parameters: ClassVar = {"C": Parameter(1.0, "")}


class StrangeBias(Faulty):
    default_bias = "augmented"


class LossList(Faulty):
    def terms(self, params, total):
        return Terms(loss=[HingeTerm(params["C"])])


class NegativeVariance(Faulty):
    def terms(self, params, total):
        return Terms(-1.0, 0.0, (HingeTerm(params["C"]),))


class WrongSignOfMean(Faulty):
    def terms(self, params, total):
        return Terms(0.0, -1.0, (HingeTerm(params["C"]),))


class SwallowsUnknown(Faulty):
    def __init__(self, **given):
        super().__init__(**{name: value for name, value in given.items() if name in self.parameters})


class Unchecked(Parameter):
    def check(self, name, value):
        return value


class NoBounds(Faulty):
    parameters: ClassVar = {"C": Unchecked(1.0, "weight of the loss")}

    def terms(self, params, total):
        return Terms(loss=(HingeTerm(1.0),))


class InfinityAllowed(LDM):
    """lambda1 = infinity is within the declared bounds, but makes no problem."""

    name = "faulty"
    parameters: ClassVar = {**LDM.parameters, "lambda1": Parameter(1.0, "weight of the variance", finite=False)}


class DefaultOutside(Faulty):
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the loss", low=2.0)}


class HiddenDefault(Faulty):
    """What model.params shows is not what was used."""

    def terms(self, params, total):
        return Terms(loss=(HingeTerm(params["C"] if "C" in self.given else 3.0),))


class DropsParameters(Faulty):
    def resolve(self, total):
        return {}

    def terms(self, params, total):
        return Terms(loss=(HingeTerm(1.0),))


class IgnoresWeights(Faulty):
    def form(self, data, features, bias, multiclass):
        return written(self, data, features, bias, counts=np.ones_like(data.counts))


class MeanOverRows(Faulty):
    """Divides by the number of rows, where it should be the sum of their weights."""

    def form(self, data, features, bias, multiclass):
        return written(self, data, features, bias, factor=1.0 / data.rows.shape[0])


class Flipped(Faulty):
    """The first label is the positive one."""

    def form(self, data, features, bias, multiclass):
        return written(self, data, features, bias, signs=[np.where(data.codes == 0, 1.0, -1.0)])


class FormIsNotTerms(Faulty):
    def form(self, data, features, bias, multiclass):
        return written(self, data, features, bias, factor=2.0)


class FirstRowCountsTwice(Faulty):
    def form(self, data, features, bias, multiclass):
        counts = data.counts.copy()
        counts[0] *= 2.0
        return written(self, data, features, bias, counts=counts)


class Restless(Faulty):
    """Every problem is another one."""

    calls = count(1)

    def form(self, data, features, bias, multiclass):
        return written(self, data, features, bias, factor=float(next(self.calls)))


class NumbersOnly(Faulty):
    def form(self, data, features, bias, multiclass):
        return written(self, data, features, bias, signs=[np.where(data.classes[data.codes] == 1, 1.0, -1.0)])


class LooksAtTheKernel(Faulty):
    def form(self, data, features, bias, multiclass):
        kernel = getattr(features, "kernel", None)
        return written(self, data, features, bias, factor=2.0 if kernel and kernel.name == "precomputed" else 1.0)


class ColumnPerClass(Faulty):
    """Two columns for two classes."""

    def form(self, data, features, bias, multiclass):
        k = data.classes.shape[0]
        return written(self, data, features, bias, signs=[np.where(data.codes == c, 1.0, -1.0) for c in range(k)])


class OneColumn(Faulty):
    def form(self, data, features, bias, multiclass):
        return written(self, data, features, bias, signs=[np.where(data.codes == 1, 1.0, -1.0)])


class ColumnsInDisorder(Faulty):
    def form(self, data, features, bias, multiclass):
        return written(self, data, features, bias, signs=[np.where(data.codes == c, 1.0, -1.0) for c in (1, 2, 0)])


FAULTS = (
    (checks.check_declaration, Capitals, "lower-case"),
    (checks.check_declaration, NoSummary, "summary needs to be one line"),
    (checks.check_declaration, Undocumented, "C has no doc"),
    (checks.check_declaration, StrangeBias, "default_bias"),
    (checks.check_declaration, LossList, "tuple of HingeTerm"),
    (checks.check_declaration, NegativeVariance, "Terms.variance is -1.0"),
    (checks.check_declaration, WrongSignOfMean, "Terms.mean is -1.0"),
    (checks.check_unknown_parameter, SwallowsUnknown, "the constructor accepts no_such_parameter"),
    (checks.check_bounds, NoBounds, "C=nan is accepted"),
    (checks.check_bounds, InfinityAllowed, "lambda1=inf, which its bounds allow"),
    (checks.check_params, DefaultOutside, "outside its own bounds"),
    (checks.check_params, HiddenDefault, "the defaults given explicitly"),
    (checks.check_params, DropsParameters, "resolve"),
    (checks.check_certificate, IgnoresWeights, "data.counts"),
    (checks.check_certificate, Flipped, "data.codes"),
    (checks.check_certificate, FormIsNotTerms, "pass on the terms"),
    (checks.check_perturbations, FormIsNotTerms, "below the certified bound"),
    (checks.check_weights, IgnoresWeights, "use `total` for m"),
    (checks.check_weights, MeanOverRows, "use `total` for m"),
    (checks.check_row_order, FirstRowCountsTwice, "positions"),
    (checks.check_engines_agree, Restless, "disagree"),
    (checks.check_determinism, Restless, "other bits"),
    (checks.check_string_labels, NumbersOnly, "data.codes"),
    (checks.check_precomputed, LooksAtTheKernel, "precomputed"),
    (checks.check_model, ColumnPerClass, r"intercept_ needs the shape \(1,\)"),
    (checks.check_three_classes, OneColumn, "one column per class"),
    (checks.check_three_classes, ColumnsInDisorder, "column j of form"),
)


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
    monkeypatch.setattr(Interior, "refusal", lambda self, form: "it takes nothing today")
    with pytest.raises(AssertionError, match="solver='auto' has no engine"):
        checks.check_engines_agree("svm")


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
