"""Parameters declared as whole numbers: what is refused, and that values and defaults are of type int."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pytest
from documents import EXAMPLES

import mdlearn
from mdlearn.extend import HingeTerm, Parameter, Terms
from mdlearn.plugins.registry import registry
from mdlearn.testing.declaration import check_bounds, check_params

X, y = mdlearn.datasets.two_gaussians(40, random_state=0)


class Steps(mdlearn.Objective):
    """Hinges at the thresholds 1, 1/2, ..., 1/n."""

    name = "steps"
    summary = "hinges at several thresholds"
    formula = "1/2 |w|^2 + C sum_{j <= n} sum max(0, 1/j - z)"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight of the summed loss"),
        "n": Parameter(2, "number of thresholds", low=1, high=50, integer=True),
        "first": Parameter(lambda params, m: params["n"] // 2, "threshold that counts twice", integer=True),
    }

    def terms(self, params, total):
        assert type(params["n"]) is int and type(params["first"]) is int
        weights = [params["C"] * (1 + (j == params["first"])) for j in range(1, params["n"] + 1)]
        return Terms(loss=tuple(HingeTerm(weight, threshold=1.0 / (j + 1)) for j, weight in enumerate(weights)))


@pytest.mark.parametrize("value", [2.5, 2.0, math.inf, math.nan, "2", True, 0, 51, np.float64(3.0)])
def test_what_is_no_whole_number_within_bounds_is_refused(value):
    with pytest.raises((TypeError, ValueError)) as raised:
        mdlearn.fit(Steps, X, y, n=value)
    assert str(raised.value) == f"n needs to be an integer >= 1 and <= 50; got {value!r}"


def test_values_and_defaults_are_of_type_int():
    assert mdlearn.fit(Steps, X, y).params == {"C": 1.0, "n": 2, "first": 1}
    model = mdlearn.fit(Steps, X, y, n=np.int32(5), first=0)
    assert [type(model.params[name]) for name in ("n", "first")] == [int, int]
    path = mdlearn.fit_path(Steps, X, y, {"n": [1, 3]})
    assert [model.params["n"] for model in path] == [1, 3]


def test_it_keeps_the_promises_of_a_declaration():
    check_bounds(Steps)
    check_params(Steps)


def test_a_declaration_that_takes_fractions_is_found():
    class Rounded(Parameter):
        def check(self, name, value):
            return super().check(name, int(value) if isinstance(value, float) and math.isfinite(value) else value)

    odd = Rounded(2, "number of thresholds", low=1, high=50, integer=True)
    faulty = type("Faulty", (Steps,), {"parameters": {**Steps.parameters, "n": odd}})
    with pytest.raises(AssertionError, match=r"^steps: n=1\.5 is accepted; Parameter\.check needs to refuse it$"):
        check_bounds(faulty)


def test_a_default_that_is_no_whole_number_is_told():
    half = {**Steps.parameters, "first": Parameter(lambda params, m: params["n"] / 2, "", integer=True)}
    with pytest.raises(
        TypeError, match=r"^the default needs to be an integer >= 0; got 1\.0\n\(raised in Faulty\.parameters"
    ):
        mdlearn.fit(type("Faulty", (Steps,), {"parameters": half}), X, y)


def test_it_cannot_be_relative():
    with pytest.raises(ValueError, match=r"^n of objective 'steps' cannot be relative to C m; give a number$"):
        mdlearn.fit(Steps, X, y, n=mdlearn.relative(1.0))


def test_lengths_of_the_documented_kernel_of_strings(monkeypatch):
    names = {"__name__": "example"}
    exec(EXAMPLES["strings"], names)
    monkeypatch.setitem(registry().kernels, "spectrum", names["Spectrum"])
    words, labels = ["abab", "abba", "ccab", "cabc", "bbab", "cc"], [0, 0, 1, 1, 0, 1]
    model = mdlearn.fit("svm", words, labels, kernel="spectrum", length=3)
    assert model.params["length"] == 3 and type(model.params["length"]) is int
    with pytest.raises(TypeError, match=r"^length needs to be an integer >= 1; got 2\.5$"):
        mdlearn.fit("svm", words, labels, kernel="spectrum", length=2.5)


def test_estimators_show_them_as_int():
    ms = pytest.importorskip("mdlearn.sklearn", reason="estimators need scikit-learn")

    class StepsClassifier(ms.MarginClassifier, objective=Steps):
        """Hinges at several thresholds."""

    assert type(StepsClassifier().n) is int and "\nn : int, default 2\n" in StepsClassifier.__doc__
    assert StepsClassifier().fit(X, y).model_.params["n"] == 2
