"""What engines claim that a form costs, and the choice by the cheapest claim."""

from __future__ import annotations

import math
import re
from itertools import product

import numpy as np
import pytest
from documents import ARCHITECTURE
from shaped_forms import LOSSES, basis_of_rbf, dense, form, rbf, stored

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.class_contrasts import ContrastRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.driver.choice import choose_solver
from mdlearn.extend import Claim, HingeTerm
from mdlearn.plugins.registry import registry
from mdlearn.solvers.base import Solver

BUILT_IN = [cls for cls in registry().solvers.values() if cls.__module__.startswith("mdlearn.")]
SHAPES = (
    *(dense(m, d) for m, d in [(50, 2), (300, 400), (3000, 600), (9000, 6000)]),
    *(stored(m, d, each) for m, d, each in [(60, 30, 3), (3000, 2000, 5), (40000, 20000, 100), (300, 9000, 40)]),
    *(rbf(m) for m in (40, 900, 9000)),
)


def all_forms():
    for features, loss, bias, variance in product(SHAPES, LOSSES, ("none", "regularized", "free"), (0.0, 2.0)):
        yield form(features, loss, bias, variance)
        if isinstance(features, LinearFeatures):
            yield form(features, loss, bias, variance, ridge=0.0)
            yield form(features, loss, bias, variance, penalty=0.1)


def cheapest(given):
    """Name of the engine with the least claim, found by asking each alone."""
    claims = {cls.name: cls().claims(given) for cls in BUILT_IN}
    return min((one.operations, name) for name, one in claims.items() if one is not None)[1]


def test_claims_are_operations_of_forms_that_are_taken():
    claimed = set()
    for given in all_forms():
        for cls in BUILT_IN:
            claim = cls().claims(given)
            assert claim == cls().claims(given)
            if claim is not None:
                assert 0 < claim.operations < math.inf and claim.reason
                assert cls().refusal(given) is None, cls.name
                claimed.add(cls.name)
    assert claimed == {cls.name for cls in BUILT_IN if cls.claims is not Solver.claims}


def test_engines_are_asked_for_kinds_of_loss_that_they_declare(monkeypatch):
    """For others they have no claim, so the choice is as if all had been asked."""
    for given in all_forms():
        assert all(cls().claims(given) is None for cls in BUILT_IN if not given.kinds <= cls.kinds)
    asked = []
    for cls in BUILT_IN:
        own = cls.claims
        monkeypatch.setattr(cls, "claims", lambda self, form, own=own: asked.append(type(self)) or own(self, form))
    choice = choose_solver(form(dense(300, 5), (HingeTerm(1.0),)), BUILT_IN)  # features of a class of their own
    only = {"", "other features"}
    assert set(asked) == {cls for cls in BUILT_IN if "hinge" in cls.kinds and cls.claims_only in only} != set(BUILT_IN)
    assert choice.claims.keys() == {cls.name for cls in BUILT_IN}
    asked.clear()
    choose_solver(form(dense(300, 5), (HingeTerm(1.0, power=2),)), BUILT_IN)
    assert asked and "direct" not in [cls.name for cls in asked]


def test_a_choice_states_what_each_engine_claims_alone():
    """Engines that declare which sort of forms they claim have no claim for others: nothing changes without these."""
    for given in all_forms():
        if all(cls().refusal(given) is not None for cls in BUILT_IN):
            continue
        choice = choose_solver(given, BUILT_IN)
        for cls in BUILT_IN:
            claim = cls().claims(given)
            assert choice.claims[cls.name] == (None if claim is None else claim.operations), cls.name


def test_whatever_an_engine_takes_with_a_norm_has_a_claim():
    """The choice is a claim, not the way out for forms that nobody claims."""
    for given in all_forms():
        exact = [cls for cls in BUILT_IN if cls().refusal(given) is None and cls().reaches(given)]
        if exact and given.ridge > 0:
            choice = choose_solver(given, BUILT_IN)
            assert choice.claims[choice.solver] == min(filter(None, choice.claims.values()))
            assert choice.claims.keys() == {cls.name for cls in BUILT_IN}


@pytest.mark.parametrize(
    "features, loss, below, above",
    [
        (lambda m: rbf(m), "hinge", ("cd", 7900), ("decomposition", 8100)),
        (lambda m: rbf(m), "squared hinge", ("newton", 490), ("decomposition", 510)),
        (lambda m: rbf(m), "squared hinges", ("newton", 490), ("decomposition", 510)),
        (lambda m: rbf(m), "hinges", ("cd", 48), ("decomposition", 52)),
        (lambda m: rbf(m), "logistic", ("newton", 7900), ("newton-cg", 8100)),
        (lambda m: rbf(m), "squared", ("direct", 7900), ("newton-cg", 8100)),
        (lambda m: dense(m, 600), "hinge", ("interior", 23900), ("hybrid", 24100)),
        (lambda m: dense(m, 800), "logistic", ("newton", 490), ("hybrid", 510)),
        (lambda d: dense(9000, d), "hinges", ("interior", 4990), ("cd", 5010)),
        (lambda d: dense(9000, d), "squared hinges", ("newton", 4990), ("cd", 5010)),
        (lambda m: dense(m, 1000), "logistics", ("newton", 9900), ("apg", 10100)),
        (lambda each: stored(20000, 5001, each), "hinge", ("hybrid", 99), ("cd", 101)),
        (lambda d: stored(10000, d, 3), "hinges", ("interior", 495), ("cd", 700)),
    ],
)
def test_costs_cross_where_times_do(features, loss, below, above):
    """Sizes from which another engine was measured to be the faster one."""
    for name, size in (below, above):
        given = form(features(size), loss)
        assert choose_solver(given, BUILT_IN).solver == cheapest(given) == name, size


@pytest.mark.parametrize("weight, chosen", [(1e-3, "decomposition"), (1e5, "newton"), (1e9, "interior")])
def test_weights_are_part_of_the_cost_over_a_kernel(weight, chosen):
    assert choose_solver(form(rbf(2000), (HingeTerm(weight, power=2),)), BUILT_IN).solver == chosen


@pytest.mark.parametrize(
    "columns, weight, rows",
    [(150, 0.1, 3000), (150, 1.0, 4000), (150, 10.0, 7113), (150, 1e3, 8000)]
    + [(100, 0.1, 4000), (100, 1.0, 6000), (128, 1.0, 6000), (129, 1.0, 4000), (100, 10.0, 8000)],
)
def test_wide_rows_are_left_to_working_sets_the_earlier_the_gentler_the_loss(columns, weight, rows):
    """Rows of a matrix over many columns are dear: no compiled loop makes just those that a step needs."""
    for m, chosen in ((rows - 50, "cd"), (rows + 50, "decomposition")):
        assert choose_solver(form(rbf(m, columns), (HingeTerm(weight),)), BUILT_IN).solver == chosen
    for alike in (form(rbf(3900, 40), (HingeTerm(weight),)), form(rbf(3900, 100), (HingeTerm(weight),), classes=2)):
        assert choose_solver(alike, BUILT_IN).solver == "cd", "few columns, or classes that share rows"


@pytest.mark.parametrize(
    "variance, weight, rows",
    [(10.0, 1.0, 1600), (11.0, 1.0, 1500), (11.0, 10.0, 1500), (11.0, 30.0, 1500), (11.0, 100.0, 5000)],
)
@pytest.mark.parametrize("classes", [1, 2])
def test_a_variance_is_left_to_working_sets_where_it_would_cost_a_factorisation(variance, weight, rows, classes):
    for m, chosen in ((rows - 50, "cd"), (rows + 50, "decomposition")):
        given = form(rbf(m), (HingeTerm(weight),), variance=variance, classes=classes)
        assert choose_solver(given, BUILT_IN).solver == chosen
        given.features.reuse()
        assert choose_solver(given, BUILT_IN).solver == "cd", "points of a path share the matrix"


@pytest.mark.parametrize(
    "variance, classes, rows", [(10.0, 1, 3000), (10.0, 2, 3000), (11.0, 1, 2000), (11.0, 2, 2518)]
)
def test_wide_rows_beside_a_variance_are_left_to_working_sets_later(variance, classes, rows):
    for m, chosen in ((rows - 50, "cd"), (rows + 50, "decomposition")):
        given = form(rbf(m, 100), (HingeTerm(10.0),), variance=variance, classes=classes)
        assert choose_solver(given, BUILT_IN).solver == chosen


def test_nearly_hard_margins_over_sparse_rows():
    for weight, chosen in ((1.0, "cd"), (1e5, "interior")):
        terms = HingeTerm(weight), HingeTerm(weight, side=-1, threshold=3.0)
        assert choose_solver(form(stored(2500, 1500, 5), terms), BUILT_IN).solver == chosen


def contrasts(m, d, k):
    rows = DenseRows(np.broadcast_to(1.0, (m, d)))
    index, own = np.arange(m), np.zeros(m, dtype=np.intp)
    return LinearFeatures(ContrastRows(rows, index, own, own + 1, k, False))


FORMS = (
    ("hybrid", form(dense(300, 20), "hinge")),
    ("hybrid", form(dense(3000, 500), "hinge")),
    ("hybrid", form(dense(400, 500), "logistic")),
    ("hybrid", form(stored(30000, 6000, 100), "hinge")),
    ("direct", form(dense(300, 20), "squared")),
    ("newton", form(dense(300, 20), "squared hinges")),
    ("interior", form(dense(300, 20), "hinges")),
    ("linprog", form(dense(300, 20), "hinge", ridge=0.0)),
    ("cd", form(dense(300, 20), "hinges")),
    ("cd", form(stored(3000, 2000, 5), "hinges")),
    ("cd", form(contrasts(3000, 40, 5), "hinge")),
    ("cd", form(rbf(200), "hinge")),
    ("decomposition", form(rbf(200), "hinge")),
    ("decomposition", form(rbf(200, 150), (HingeTerm(2.0),))),
    ("decomposition", form(rbf(200, 60), (HingeTerm(2.0),))),
    ("decomposition", form(rbf(200), "hinge", variance=10.0)),
    ("decomposition", form(rbf(200, 60), "hinge", variance=10.0)),
    ("decomposition", form(rbf(200), (HingeTerm(100.0),), variance=11.0)),
    ("decomposition", form(rbf(200), "squared hinges")),
    ("decomposition", form(rbf(200), (HingeTerm(1.0), HingeTerm(2.0, power=2, side=-1, threshold=2.0)))),
    ("decomposition", form(rbf(200), "hinges")),
    ("newton-cg", form(rbf(200), "logistic")),
    ("newton-cg", form(basis_of_rbf(200), "none", variance=1.0)),
    ("apg", form(dense(300, 20), "squared hinge", penalty=0.1)),
    ("apg", form(dense(9000, 1500), "logistics")),
    ("pmm", form(dense(300, 20), "hinge", penalty=0.1)),
)
"""A form for every line of the table of claims in docs/architecture.md."""


def test_the_table_of_claims_is_what_engines_claim():
    table = ARCHITECTURE.split("<!-- claims -->")[1].split("\n\n")[0]
    lines = re.findall(r"^\| `(\S+)` \| .* \| `(.*)` \|$", table, re.MULTILINE)
    assert [name for name, _ in lines] == [name for name, _ in FORMS]
    assert {name for name, _ in lines} == {cls.name for cls in BUILT_IN if cls.claims is not Solver.claims}
    for (name, formula), (_, given) in zip(lines, FORMS):
        features = given.features
        explicit = isinstance(features, LinearFeatures)
        m, d = features.n_rows, features.width
        known = {
            "m": m,
            "d": d,
            "e": features.n_entries if explicit else 0,
            "n": 1 if given.columns[0].terms in (LOSSES["squared"], ()) else 20,
            "s": m * d * min(m, d) if explicit else m**3 / 3,
            "c": max((term.weight for term in given.columns[0].terms), default=0.0),
            "min": min,
            "max": max,
        }
        claim = registry().solvers[name]().claims(given)
        assert claim.operations == pytest.approx(eval(formula, known), rel=1e-12), formula


def test_a_model_says_who_was_asked():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 2
    model = mdlearn.fit("svm", X, y)
    assert model.solver_claims.keys() == set(mdlearn.list_solvers())
    claimed = {name: value for name, value in model.solver_claims.items() if value is not None}
    assert {"hybrid", "interior", "cd"} <= claimed.keys() and "linprog" not in claimed
    assert model.solver == min(claimed, key=claimed.get) and "coordinate descent" in model.solver_reason
    assert mdlearn.fit("svm", X, y, solver="cd").solver_claims == {}


def test_points_of_a_path_share_a_matrix():
    """Working sets save the factors of a single fit; the points of a path go on with the matrix that they share."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((560, 2))
    y = np.where(X[:, 0] + rng.standard_normal(560) > 0, 1, 0)
    assert mdlearn.fit("lsvm", X, y, kernel="rbf", nu=1.0).solver == "decomposition"
    path = mdlearn.fit_path("lsvm", X, y, {"nu": [1.0, 2.0]}, kernel="rbf")
    assert [model.solver for model in path] == ["newton", "newton"]


class Silent(Solver):
    """An engine that claims nothing."""

    name, purpose = "silent", "one"


class Inexact(Silent):
    name, exact = "inexact", False


class Dear(Silent):
    name = "dear"

    def claims(self, form):
        return Claim(1e30, "at any cost")


class AlsoDear(Dear):
    name = "also dear"


def test_without_claims_the_first_that_takes_it():
    given = form(dense(10, 2), "hinge")
    assert choose_solver(given, [Inexact, Silent]).solver == "silent"
    assert choose_solver(given, [Inexact]).solver == "inexact"
    assert choose_solver(given, [Silent, Dear, AlsoDear]).solver == "dear", "the first of equals"
    with pytest.raises(ValueError, match=r"^solver 'auto' cannot take this problem: no engine can \(it takes no loss"):
        choose_solver(form(dense(10, 2), "logistic"), [Inexact, Silent])


def test_engines_of_plugins_are_made_for_every_choice():
    """They may keep what they like in themselves; those of mdlearn keep nothing, and are made once."""
    given = form(dense(10, 2), "hinge")
    first, second = (choose_solver(given, [Silent, Dear]).engine for _ in range(2))
    assert type(first) is type(second) is Dear and first is not second
    first, second = (choose_solver(given, BUILT_IN).engine for _ in range(2))
    assert first is second and not vars(first)


def test_points_of_a_path_keep_rows_of_the_matrix():
    """Where points know rows of the matrix from each other, working sets alone claim more than these cost."""
    features = rbf(8500)
    given = form(features, "hinge", "free")
    assert given.kinds == {"hinge"} and cheapest(given) == "decomposition"
    features.reuse()
    assert cheapest(given) == "cd"
