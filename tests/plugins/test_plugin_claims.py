"""Engines of plugins that `solver="auto"` asks: the cheapest claim is chosen, a faulty one is one sentence."""

from __future__ import annotations

import numpy as np
import pytest
from documents import EXAMPLES
from plugin_cases import Site
from scipy.optimize import minimize

import mdlearn
from mdlearn.cli import main
from mdlearn.extend import HingeTerm, Parameter, Terms
from mdlearn.testing import check_solver


class TwoSquares(mdlearn.Objective):
    """Squared hinges below 1 and above 3, which no built-in objective has."""

    name = summary = "two-squares"
    formula = "1/2 |w|^2 + C sum max(0, 1 - z)^2 + C sum max(0, z - 3)^2"
    parameters = {"C": Parameter(1.0, "weight of both")}  # noqa: RUF012

    def terms(self, params, total):
        return Terms(loss=(HingeTerm(params["C"], power=2), HingeTerm(params["C"], -1, 3.0, power=2)))


@pytest.fixture
def site(tmp_path, monkeypatch):
    return Site(tmp_path, monkeypatch)


def sample():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 90)) / np.sqrt(90)
    return X, np.where(X @ rng.standard_normal(90) + 0.1 * rng.standard_normal(150) > 0, 1, -1)


def test_the_example_is_chosen_where_its_claim_is_the_cheapest(site):
    site.add("descent-solver", EXAMPLES["solver"])
    X, y = sample()
    gentle = mdlearn.fit(TwoSquares, X, y, C=1e-3, bias="none", tol=1e-9)
    assert gentle.solver == "descent" and gentle.solver_reason == "losses that bend little: gradient steps"
    # 80 products and as much again for what the loss bends, against 20 matrices of 90 columns.
    assert gentle.solver_claims["descent"] == pytest.approx(80 * 150 * 90 * (1 + 2 * 150 * 2e-3))
    assert gentle.solver_claims["newton"] == pytest.approx(20 * 150 * 90 * 90)

    def value(w):
        z = y * (X @ w)
        return 0.5 * w @ w + 1e-3 * (np.maximum(0, 1 - z) ** 2 + np.maximum(0, z - 3) ** 2).sum()

    best = minimize(value, np.zeros(90), method="BFGS", options={"gtol": 1e-9}).fun
    assert gentle.certificate.converged and gentle.certificate.objective == pytest.approx(best, rel=1e-8)
    steep = mdlearn.fit(TwoSquares, X, y, C=1.0, bias="none")
    assert steep.solver == "newton" and steep.solver_claims["descent"] > steep.solver_claims["newton"]
    assert mdlearn.fit("svm", X, y).solver_claims["descent"] is None, "a loss that it refuses"


ENGINE = """
import mdlearn
from mdlearn.extend import Claim


class Claims(mdlearn.Solver):
    name, purpose = "claims", "says what it costs"
    kinds = frozenset({{"hinge"}})
    asked = 0

    def claims(self, form):
        Claims.asked += 1
        {body}

    def iterate(self, *given):
        raise AssertionError("not chosen")
        yield


@mdlearn.hookimpl
def mdlearn_solvers():
    return [Claims]
"""
FAULTS = [
    ("return 1e3", "returned 1000.0, a Claim or None is needed"),
    ("return 'cheap'", "returned str, a Claim or None is needed"),
    ("return Claim(float('nan'), 'why')", "returned nan as operations, a finite positive number is"),
    ("return Claim(float('inf'), 'why')", "returned inf as operations, a finite positive number is"),
    ("return Claim(0, 'why')", "returned 0 as operations, a finite positive number is"),
    ("return Claim(-1.0, 'why')", "returned -1.0 as operations, a finite positive number is"),
    ("return Claim('few', 'why')", "returned str as operations, a finite positive number is"),
    ("return Claim(1.0, '')", "returned str as reason, a text that is not empty is needed"),
    ("return Claim(1.0, None)", "returned NoneType as reason, a text that is not empty is needed"),
]


@pytest.mark.parametrize("body, told", FAULTS)
def test_a_faulty_claim_is_told_with_plugin_and_method(body, told, site):
    site.add("claims-solver", ENGINE.format(body=body))
    X, y = sample()
    with pytest.raises(TypeError) as raised:
        mdlearn.fit("svm", X, y)
    assert str(raised.value).startswith(f"solver 'claims' of claims-solver 1.0 is faulty: Claims.claims {told}")
    assert mdlearn.fit("svm", X, y, solver="hybrid").certificate.converged, "who names an engine is not affected"


def test_the_listing_has_the_docstring_of_its_own_method(site, capsys):
    told = {"return None": "undocumented", '"""Cheap always."""': "Cheap always."}
    for number, (body, line) in enumerate(told.items()):
        name = f"claims{number}"
        site.add(
            f"{name}-solver",
            ENGINE.format(body="pass").replace("Claims.asked += 1", body).replace('"claims"', f'"{name}"'),
        )
        assert main(["solvers"]) == 0
        assert f"\n{name}: says what it costs\n    claims for 'auto': {line}\n" in capsys.readouterr().out


def test_what_it_refuses_it_cannot_claim(site):
    site.add("claims-solver", ENGINE.format(body="return Claim(1e30, 'any form')"))
    X, y = sample()
    assert mdlearn.fit("svm", X, y).solver == "hybrid"
    told = "Claims.claims claims a problem that its refusal does not take: it takes no loss of the kind 'squared'"
    with pytest.raises(TypeError, match=told):
        mdlearn.fit("lsvm", X, y)


def test_an_error_inside_keeps_its_place(site):
    site.add("claims-solver", ENGINE.format(body="return 1 / 0"))
    with pytest.raises(ZeroDivisionError) as raised:
        mdlearn.fit("svm", *sample())
    assert "Claims.claims: solver 'claims' of claims-solver 1.0, hook mdlearn_solvers" in raised.value.__notes__[0]


def test_it_is_asked_once_for_a_fit(site):
    site.add("claims-solver", ENGINE.format(body="return None"))
    X, y = sample()
    mdlearn.fit("svm", X, y)
    (found,) = [cls for name, cls in mdlearn.plugins.registry.registry().solvers.items() if name == "claims"]
    assert found.asked == 1
    mdlearn.fit("svm", X, y, solver="cd")
    assert found.asked == 1


@pytest.mark.parametrize(
    "body, told",
    [
        ("return 1e3", r"returned 1000.0, a Claim or None is needed"),
        ("return Claim(-1.0, 'why')", r"returned -1.0 as operations"),
        ("return Claim(1.0, 'any form')", r"claims a problem that its refusal does not take"),
        ("return Claim(Claims.asked, 'later ones')", r"and then .*; a claim depends on the form alone"),
    ],
)
def test_the_kit_tells_faulty_claims(body, told):
    space = {"__name__": "claims_plugin"}
    exec(ENGINE.format(body=body), space)
    objectives = ["lsvm"] if "any form" in body else ["svm"]
    with pytest.raises(AssertionError, match=f"solver_claims_what_it_takes does not hold: .*{told}"):
        check_solver(space["Claims"], objectives)


def test_an_inherited_claim_is_that_of_the_built_in_engine(site):
    """A variant of a built-in engine is chosen by a claim of its own, and harms nobody with what it refuses."""
    body = "from mdlearn.solvers.hybrid.solver import Hybrid\nimport mdlearn\n\n\nclass Variant(Hybrid):\n"
    body += '    name = "variant"\n\n    def refusal(self, form):\n        raise KeyError("inside")\n'
    site.add("variant-solver", body + "\n\n@mdlearn.hookimpl\ndef mdlearn_solvers():\n    return [Variant]\n")
    model = mdlearn.fit("svm", *sample())
    assert model.solver == "hybrid" and model.solver_claims["variant"] is None
