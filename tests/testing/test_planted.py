"""Forty mistakes that authors of plugins make: the kit tells each, and no fit certifies what is not so.

What a fit comes to is "refused" (an error), "open" (no certificate that is proven to `tol`), or "right": the
certificate holds for the problem that the faulty code declares, by plain formulas and an independent optimum.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from faulty_objectives import ReadsCosts
from faulty_problems import Descent, Net, Ridge, net_task, ridge_task
from planted_engines import PLANTED_ENGINES, Sweeps
from planted_objectives import PLANTED_COMPOSITES, PLANTED_OBJECTIVES
from planted_sources import PLANTED_KERNELS, PLANTED_SOURCES, AnotherSample, Gaussian, PlainBlocks, ScaledByBlock, X, Y
from reference_qp import Program
from scipy.optimize import minimize

import mdlearn
from mdlearn.errors import ConvergenceWarning
from mdlearn.extend import Parameter, plus
from mdlearn.numerics.interruptible import finished
from mdlearn.objectives.svm import SVM
from mdlearn.plugins.registry import registry
from mdlearn.solvers.newton.solver import Newton
from mdlearn.testing import check_kernel, check_objective, check_solver, check_source
from mdlearn.testing.reference import reference_data, reference_form, reference_sample, reference_task

TOL = 1e-7
SECONDS = 20.0
"""Time limit of fits that would not end by themselves; others take a fraction of a second."""
ENDLESS = 0.3
"""The same of an engine that never ends."""


class Refused(Exception):
    """A fit that ended with an error."""


def check_engine(cls):
    check_solver(cls, ["lsvm"] if "squared" in cls.kinds else ["svm"])


def check_blocks(cls):
    check_source(cls(X, Y), X, Y)


def fitted(*given, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            return mdlearn.fit(*given, tol=TOL, **{"time_limit": SECONDS, **settings})
        except (TypeError, ValueError) as error:
            raise Refused from error


def judge_svm(part, F, y, weights, w, b, bias="regularized"):
    """Hold a proven certificate against 1/2 (|w|^2 + b^2) + sum_i weights_i max(0, 1 - y_i (F_i . w + b))."""
    value = 0.5 * (w @ w + b * b * (bias == "regularized")) + weights @ np.maximum(0.0, 1.0 - y * (F @ w + b))
    used = weights > 0
    optimum = Program(F[used], y[used], weights[used], 1.0, 0.0, 0.0, bias).solve()
    assert part.objective == pytest.approx(value, rel=1e-9)
    assert part.lower_bound <= optimum.value + 1e-9 * abs(optimum.value)
    assert part.objective <= optimum.value + 2 * TOL * abs(optimum.value)


# ---------------------------------------------------------------- what fits come to


def fit_objective(cls, monkeypatch):
    """Two classes with weights, and three: the problems are those that form() writes."""
    found = []
    for k in (2, 3):
        X, y, counts = reference_sample(cls, k)
        task = cls(C=1.75)
        try:
            model = fitted(task, X, y, sample_weight=counts, multiclass="ovr")
        except Refused:
            if k == 2:
                raise
            continue
        data = reference_data(task, X, y, counts)
        form = reference_form(task, X, y, "regularized", "linear", counts)
        costs = task.row_terms(data, {"C": 1.75})
        F = form.features.rows.block(slice(None))
        for j, (part, column) in enumerate(zip(model.certificate.parts or (model.certificate,), form.columns)):
            factor = column.terms[0].weight if costs is None else 1.75 * costs.weights
            weights = factor * column.counts
            found.append((part, F, column.y, weights, model._coef[j], float(model.intercept_[j])))
    return found


def fit_engine(cls, monkeypatch):
    """The SVM with weights, with a bias and without; squared hinges for an engine that takes them, by their formula."""
    found, squared = [], "squared" in cls.kinds
    monkeypatch.setattr(np.random, "permutation", np.random.default_rng(0).permutation)  # the same in every run
    X, y, counts = reference_sample("svm")
    for bias in ("none", "regularized"):
        limit = ENDLESS if cls.name == "never-ends" else SECONDS
        objective = "lsvm" if squared else "svm"
        model = fitted(objective, X, y, sample_weight=counts, bias=bias, solver=cls, time_limit=limit)
        found.append(
            (model.certificate, X, 2.0 * y - 1.0, 1.0 * counts, model.coef_[0], float(model.intercept_[0]), bias)
        )
    return found


def fit_kernel(cls, monkeypatch):
    """The SVM with the kernel that single pairs of rows have."""
    monkeypatch.setitem(registry().kernels, cls.name, cls)
    model = fitted("svm", X, Y, kernel=cls.name)
    K = np.array([[cls().values({"width": 0.5}, a[None], b[None])[0, 0] for b in X] for a in X])
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    F = vectors * np.sqrt(np.maximum(values, 0.0))
    y = np.where(Y == "yes", 1.0, -1.0)
    return [(model.certificate, F, y, np.ones(50), F.T @ model.dual_coef_[0], float(model.intercept_[0]))]


def fit_source(cls, monkeypatch):
    """The SVM over the rows that the first pass hands out."""
    model = fitted("svm", cls(X, Y), None)
    blocks = finished(cls(X, Y).reduced(lambda number, block: [block]))
    rows, labels = (np.concatenate(parts) for parts in zip(*blocks))
    y = np.where(labels == "yes", 1.0, -1.0)
    return [(model.certificate, rows, y, np.ones(len(y)), model.coef_[0], float(model.intercept_[0]))]


def outcome(found):
    """Word for certificates of fits, each held against its problem where it is proven."""
    proven = [part.proven and part.gap <= TOL for part, *_ in found]
    for one, holds in zip(found, proven):
        if holds:
            judge_svm(*one)
    return "right" if all(proven) else "open"


def composite_outcome(kind):
    """Word for the certificate of a composite, held against the values that it declares."""
    X, y, counts = reference_sample("svm")
    model = fitted(net_task(kind), X, y, sample_weight=counts)
    if not model.certificate.proven or model.certificate.gap > TOL:
        return "open"
    form = reference_form(reference_task(net_task(kind)), X, y, "none", "linear", counts)

    def value(W):
        return form.at(W).value + 0.5 * float(form.ridge @ (W**2).sum(axis=1)) + form.lam * float(np.abs(W).sum())

    def split(halves):
        return value((halves[:3] - halves[3:])[:, None])

    best = minimize(split, np.full(6, 0.1), bounds=[(0.0, None)] * 6, options={"ftol": 1e-15, "gtol": 1e-9}).fun
    assert model.certificate.objective == pytest.approx(value(model.coef_.T), rel=1e-9)
    assert model.certificate.lower_bound <= best + 1e-9
    assert model.certificate.objective <= best + 1e-6
    return "right"


GROUPS = {
    "objective": (PLANTED_OBJECTIVES, check_objective, fit_objective),
    "composite": (PLANTED_COMPOSITES, lambda kind: check_objective(net_task(kind)), None),
    "solver": (PLANTED_ENGINES, check_engine, fit_engine),
    "kernel": (PLANTED_KERNELS, check_kernel, fit_kernel),
    "source": (PLANTED_SOURCES, check_blocks, fit_source),
}
PLANTED = [(group, *entry) for group, (entries, *_) in GROUPS.items() for entry in entries]
IDS = [f"{group}-{cls.__name__}" for group, cls, *_ in PLANTED]
MISSED: dict[str, str] = {}
"""Mistakes that the kit does not tell, by name, with the reason; two of the forty at most."""


def test_they_are_forty():
    names = [group if group not in ("kernel", "source") else "input" for group, *_ in PLANTED]
    assert all(names.count(name) == 10 for name in ("objective", "composite", "solver", "input"))
    assert len(set(IDS)) == 40 and len(MISSED) <= 2 and MISSED.keys() <= set(IDS)


@pytest.mark.parametrize(("group", "cls", "words", "comes_to"), PLANTED, ids=IDS)
def test_the_kit_tells_it(group, cls, words, comes_to):
    check = GROUPS[group][1]
    if f"{group}-{cls.__name__}" in MISSED:
        check(cls)
        return
    with pytest.raises(AssertionError, match=words) as caught:
        check(cls)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("group", "cls", "words", "comes_to"), PLANTED, ids=IDS)
def test_no_fit_certifies_it_wrongly(group, cls, words, comes_to, monkeypatch):
    fit = GROUPS[group][2]
    try:
        found = composite_outcome(cls) if fit is None else outcome(fit(cls, monkeypatch))
    except Refused:
        found = "refused"
    assert found == comes_to


@pytest.mark.parametrize(("solver", "objectives"), [("apg", ["mdlm"]), (Descent, [ridge_task(Ridge)])])
def test_engines_of_other_problems_pass(solver, objectives):
    check_solver(solver, objectives)


@pytest.mark.parametrize("given", [{}, {"costs": 1.0 + np.arange(36.0) % 5}])
def test_values_by_row_go_with_their_rows(given):
    check_objective(ReadsCosts(**given))
    check_solver("cd", [ReadsCosts(**given)])


class InALine(PlainBlocks):
    """Blocks are added one after the other."""

    name = "in-a-line"

    def reduced(self, make):
        total = None
        for number, block in enumerate(self):
            total = plus(total, make(number, block))
            yield
        return total


class TakesArrays(PlainBlocks):
    """It takes every X for its own."""

    name = "takes-arrays"

    @classmethod
    def given(cls, X, y, weight):
        return cls(X, y)


class HalfMultipliers(Sweeps):
    """Its point is the optimum, and hands in half of the multipliers that belong there."""

    name = "half-multipliers"

    def report(self, form, column, beta, w, b):
        return super().report(form, column, 0.5 * beta, w, b)


class AnyOption(Sweeps):
    """Options are taken as they come."""

    name = "any-option"

    def check_options(self, given):
        return dict(given)


class Undocumented(Gaussian):
    """Its parameter has no text."""

    name = "undocumented"
    parameters: ClassVar = {"width": Parameter(0.5, "")}


OTHER_CLAUSES = (
    (check_blocks, InALine, "source_adds_up_in_pairs does not hold: reduced adds up 7 blocks as"),
    (check_blocks, TakesArrays, "source_leaves_arrays_alone does not hold: .* return None for them"),
    (
        check_engine,
        HalfMultipliers,
        "solver_reaches_the_optimum does not hold: .* so beta or sigma of its point are wrong",
    ),
    (check_engine, AnyOption, "solver_declares_options does not hold: check_options accepts no_such_option"),
    (check_kernel, Undocumented, "kernel_declares_parameters does not hold: parameter width has no doc"),
)


@pytest.mark.parametrize(("check", "cls", "words"), OTHER_CLAUSES)
def test_other_clauses_can_fail_too(check, cls, words):
    with pytest.raises(AssertionError, match=words):
        check(cls)


class OffsetsTwice(Newton):
    """It takes the targets of a regression off twice."""

    name = "offsets-twice"

    def iterate(self, form, column, *given):
        twice = column if column.offset is None else replace(column, offset=2.0 * column.offset)
        return super().iterate(form, twice, *given)


def test_what_an_engine_says_of_regression_is_tried():
    """No registered objective is a regression that it takes."""
    with pytest.raises(AssertionError, match="regression of squares, 8 rows, no bias"):
        check_solver(OffsetsTwice)


def test_both_values_of_a_kernel_that_depends_on_the_block_are_told():
    function = partial(ScaledByBlock().values, {"width": 0.5})
    with pytest.raises(ValueError, match=r"has the value 0\.\d+ for two rows among all rows, and 0\.\d+ for the same"):
        mdlearn.fit("svm", X, Y, kernel=function)


@pytest.mark.parametrize("objective", ["svm", "lssvm"])
def test_both_sums_of_other_rows_in_a_later_pass_are_told(objective):
    with pytest.raises(ValueError, match=r"column .* of class '.*' added up to .*, and to .*; give blocks"):
        mdlearn.fit(objective, AnotherSample(X, Y), None)


RIGHT = {"objective": SVM, "composite": Net, "solver": Sweeps, "kernel": Gaussian, "source": PlainBlocks}


@pytest.mark.parametrize("group", [pytest.param("objective", marks=pytest.mark.slow), *list(RIGHT)[1:]])
def test_what_is_right_passes(group, monkeypatch):
    _, check, fit = GROUPS[group]
    check(RIGHT[group])
    assert (composite_outcome(Net) if fit is None else outcome(fit(RIGHT[group], monkeypatch))) == "right"
