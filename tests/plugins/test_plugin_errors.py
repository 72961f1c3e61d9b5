"""Errors inside a plugin keep type and traceback, and gain one line: method, hook and plugin."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
import pytest
from given_losses import rubber, rubber_bend, rubber_slope
from odd_forms import PLACE, X, Y, adding, method
from plugin_cases import Site

import mdlearn
from mdlearn.cli import main
from mdlearn.errors import UndeclaredParameterError
from mdlearn.extend import GivenLoss, Parameter, Terms
from mdlearn.plugins.registry import registry
from mdlearn.testing import checks


@pytest.fixture
def add(tmp_path, monkeypatch):
    return adding(tmp_path, monkeypatch)


def noted(error, where):
    """Whether one line, and no other, says where an error was raised."""
    return error.__notes__ == [f"(raised in {where})"]


HOOK = f"objective 'odd' {PLACE}, hook mdlearn_objectives"
RAISING = {
    "terms": "params, total",
    "form": "*given",
    "features": "*given",
    "problem": "*given",
    "complete": "*given",
    "resolve": "total",
    "check_form": "*given",
    "check_column": "*given",
    "arranged": "*given",
}


@pytest.mark.parametrize("name", RAISING)
def test_an_error_inside_an_objective_keeps_its_type_and_says_where(add, name):
    add(odd=method(name, RAISING[name], "{'lam': 1}['other']"))
    for y, multiclass in ((Y[2], "ovr"), (Y[3], "ovr"), (Y[3], "ovo")):
        if name == "arranged" and multiclass == "ovo":
            continue
        with pytest.raises(KeyError) as raised:
            mdlearn.fit("odd", X, y, multiclass=multiclass)
        assert type(raised.value) is KeyError and raised.value.args == ("other",)
        assert noted(raised.value, f"Odd.{name}: {HOOK}")
        assert raised.traceback[-1].name == name and "odd_forms" in str(raised.traceback[-1].path)


def test_an_error_late_in_a_generator(add):
    add(odd="def features(self, *given):\n    yield\n    return [][0]")
    with pytest.raises(IndexError) as raised:
        mdlearn.fit("odd", X, Y[2])
    assert noted(raised.value, f"Odd.features: {HOOK}")


@pytest.mark.parametrize("name", ["at", "lipschitz", "prox"])
def test_an_error_inside_a_form(add, name):
    arguments = {"at": "W", "lipschitz": "*g", "prox": "V, step"}[name]
    add(squares=method(name, arguments, "{}['k']"))
    with pytest.raises(KeyError) as raised:
        mdlearn.fit("net", X, Y[3])
    assert noted(raised.value, f"Squares.{name}: a form {PLACE}")


def test_arithmetic_that_fails_inside_a_form_is_told_in_the_warning(add):
    """The engine is not to blame, and the best point so far, w = 0, is the answer."""
    add(squares=method("lipschitz", "", "1 / 0"))
    with pytest.warns(mdlearn.ConvergenceWarning) as caught:
        model = mdlearn.fit("net", X, Y[3])
    place = f"raised in Squares.lipschitz: a form {PLACE}"
    assert f"ZeroDivisionError: division by zero ({place})" in str(caught[0].message)
    assert not model.coef_.any() and not model.certificate.converged


def test_errors_for_users_and_of_callbacks_are_no_fault_of_a_plugin(add):
    add()
    with pytest.raises(ValueError, match="bias 'odd' is not possible") as raised:
        mdlearn.fit("odd", X, Y[2], bias="odd")
    assert not hasattr(raised.value, "__notes__")

    def callback(state):
        raise KeyError("the user's")

    with pytest.raises(KeyError) as raised:
        mdlearn.fit("odd", X, Y[2], callback=callback)
    assert not hasattr(raised.value, "__notes__")


ERRORS_OF_REFUSALS = {
    "return int('two')": (ValueError, True),  # Python's own
    "raise ValueError('three classes are needed')": (ValueError, False),
    "raise KeyError('three classes are needed')": (KeyError, True),  # no refusal
}


@pytest.mark.parametrize("line", ERRORS_OF_REFUSALS)
@pytest.mark.parametrize(("name", "streamed"), [("check_column", False), ("check_column", True), ("check_form", False)])
def test_a_refusal_of_a_plugin_is_a_sentence_alone(add, name, streamed, line):
    error, with_note = ERRORS_OF_REFUSALS[line]
    add(odd=f"def {name}(self, *given):\n    {line}")
    with pytest.raises(error) as raised:
        mdlearn.fit("odd", *(([(X, Y[2])], None) if streamed else (X, Y[2])))
    assert noted(raised.value, f"Odd.{name}: {HOOK}") if with_note else not hasattr(raised.value, "__notes__")


@pytest.mark.parametrize("name", ["terms", "form", "features", "check_form"])
def test_a_parameter_that_is_not_declared(add, name):
    arguments = {"terms": "params, total", "check_form": "form, params"}.get(name)
    arguments = arguments or {"form": "data, features, bias, params", "features": "data, kernel, params, rng"}[name]
    add(odd=method(name, arguments, "params['lam']"))
    with pytest.raises(UndeclaredParameterError) as raised:
        mdlearn.fit("odd", X, Y[2])
    told = (
        f"objective 'odd' {PLACE} is faulty: it reads the parameter 'lam', which it does not declare, or declares later"
    )
    assert isinstance(raised.value, KeyError) and str(raised.value) == f"{told}; declared: C"
    assert noted(raised.value, f"Odd.{name}: {HOOK}")


def test_a_default_that_reads_a_later_parameter(add):
    add(odd="parameters = {'C': Parameter(lambda p, m: p['D'], 'a'), 'D': Parameter(1.0, 'b')}")
    with pytest.raises(
        UndeclaredParameterError, match="it reads the parameter 'D', which it does not declare, or declares l"
    ):
        mdlearn.fit("odd", X, Y[2])


def test_the_kit_says_that_terms_raises(add):
    add(odd=method("terms", "params, total", "params['lam']"))
    with pytest.raises(AssertionError, match="it reads the parameter 'lam', which it does not declare"):
        checks.check_declaration("odd")
    other = type("Other", (registry().objectives["odd"],), {"terms": lambda self, params, total: {}["lam"]})
    with pytest.raises(AssertionError, match=r"odd: terms\(\) raises an error of its own: KeyError\('lam'\)") as raised:
        checks.check_declaration(other)
    assert isinstance(raised.value.__cause__, KeyError)


@pytest.mark.parametrize("name", ["value", "derivative", "second"])
def test_the_kit_names_the_function_of_a_loss_that_is_wrong(name):
    functions = {"value": rubber, "derivative": rubber_slope, "second": rubber_bend}
    right = functions[name]
    functions[name] = lambda t: 2.0 * right(t)

    class Task(mdlearn.Objective):
        name, summary, formula = "task", "a loss", "f"
        parameters: ClassVar = {"C": Parameter(1.0, "weight")}

        def terms(self, params, total):
            return Terms(loss=GivenLoss(**functions).terms(params["C"]))

    with pytest.raises(AssertionError, match=rf"^task: terms\(\) raises .*{name} of a given loss is") as raised:
        checks.check_declaration(Task)
    assert isinstance(raised.value.__cause__, ValueError)


def test_division_by_zero_in_terms_is_told(add):
    """What parameters lead to, by an error of the plugin's own, keeps that error as its cause."""
    add(odd=method("terms", "params, total", "1.0 / (1.0 - params['C'])"))
    with pytest.raises(ValueError, match="with C=1 and rows of weight 40") as raised:
        mdlearn.fit("odd", X, Y[2])
    assert isinstance(raised.value.__cause__, ZeroDivisionError) and noted(raised.value, f"Odd.terms: {HOOK}")


def test_ways_of_several_classes_that_do_not_exist(add):
    add(odd="multiclass = 'ovr'")
    with pytest.warns(mdlearn.PluginWarning, match="has multiclass = 'ovr'; a tuple of some of these is needed: ovr, "):
        mdlearn.list_plugins()


# ---------------------------------------------------------------- kernels, sources, commands, engines over blocks

OTHERS = """
    from dataclasses import dataclass

    import numpy as np

    import mdlearn
    from mdlearn.extend import Parameter


    class Kern(mdlearn.KernelFunction):
        name, summary = "kern", "k"
        parameters = {{"width": Parameter(1.0, "w")}}

        def values(self, params, A, B):
            return {kernel}


    class Blocks(mdlearn.RowBlocks):
        name = "blocks"

        @classmethod
        def given(cls, X, y, weight):
            return {source}

        def reduced(self, make):
            yield
            return {reduced}


    class Speak(mdlearn.Command):
        name, summary = "speak", "says something"

        def run(self, given):
            return {command}


    @dataclass(frozen=True, eq=False)
    class Place:
        w: np.ndarray

        @property
        def current(self):
            return self.w


    class Step(mdlearn.Solver):
        name, purpose = "step", "a step"
        options = {{"epochs": 1}}
        kinds = frozenset({{"hinge"}})
        takes_blocks, block_state = True, Place

        def check_options(self, given):
            return {options}

        def begin_blocks(self, form, column, options, n_rows, rng):
            return {begin}

        def over_block(self, state, form, column, rng):
            return {over}


    @mdlearn.hookimpl
    def mdlearn_kernels():
        return [Kern]


    @mdlearn.hookimpl
    def mdlearn_sources():
        return [Blocks]


    @mdlearn.hookimpl
    def mdlearn_commands():
        return [Speak]


    @mdlearn.hookimpl
    def mdlearn_solvers():
        return [Step]
"""
SOUND = {
    "kernel": "A @ B.T",
    "source": "cls([(X.rows, y)]) if hasattr(X, 'rows') else None",
    "reduced": "sum((make(i, block) for i, block in enumerate(self.source)), start=None)",
    "command": "0",
    "options": "super().check_options(given)",
    "begin": "Place(np.zeros(form.features.width + 1))",
    "over": "state",
}
WHOSE = "of others 0.3"


class Held:
    """An X that only the plugin knows."""

    rows = X


@pytest.fixture
def others(tmp_path, monkeypatch):
    site = Site(tmp_path, monkeypatch)
    return lambda **parts: site.add("others", OTHERS.format(**SOUND | parts), version="0.3")


def fit_to_blocks(**settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        return mdlearn.fit("svm", [(X, Y[2])], None, solver="step", **settings)


CALLS = {
    "kernel": lambda: mdlearn.fit("svm", X, Y[2], kernel="kern"),
    "source": lambda: mdlearn.fit("svm", Held(), Y[2]),
    "reduced": lambda: mdlearn.fit("svm", Held(), Y[2]),
    "options": lambda: fit_to_blocks(),
    "begin": lambda: fit_to_blocks(),
    "over": lambda: fit_to_blocks(),
}
METHODS = {
    "kernel": ("Kern.values", "kernel 'kern'", "hook mdlearn_kernels"),
    "source": ("Blocks.given", "source 'blocks'", "hook mdlearn_sources"),
    "reduced": ("Blocks.reduced", "source 'blocks'", "hook mdlearn_sources"),
    "options": ("Step.check_options", "solver 'step'", "hook mdlearn_solvers"),
    "begin": ("Step.begin_blocks", "solver 'step'", "hook mdlearn_solvers"),
    "over": ("Step.over_block", "solver 'step'", "hook mdlearn_solvers"),
}


@pytest.mark.parametrize("part", METHODS)
def test_errors_inside_other_parts(others, part):
    others(**{part: "[][0]"})
    with pytest.raises(IndexError) as raised:
        CALLS[part]()
    where, title, hook = METHODS[part]
    assert noted(raised.value, f"{where}: {title} {WHOSE}, {hook}")


WRONG = {
    (
        "kernel",
        "None",
    ): "kernel 'kern' {} is faulty: Kern.values returned values of dtype object; it needs",
    ("kernel", "(A @ B.T)[:, 1:]"): "kernel 'kern' {} is faulty: Kern.values returned shape",
    (
        "kernel",
        "params['gamma']",
    ): "kernel 'kern' {} is faulty: it reads the parameter 'gamma', which it does not",
    ("source", "3"): "source 'blocks' {} is faulty: Blocks.given returned 3, RowBlocks or None are needed",
    (
        "reduced",
        "3",
    ): "source 'blocks' {} is faulty: Blocks.reduced returned 3, the sum of what make returned is ",
    ("options", "None"): "solver 'step' {} is faulty: Step.check_options returned NoneType, a dict of all options is",
    ("begin", "3"): "solver 'step' {} is faulty: Step.begin_blocks returned 3, a Place, its block_state, is needed",
    (
        "over",
        "state.w",
    ): "solver 'step' {} is faulty: Step.over_block returned an array of float64 and shape (4,), a ",
    ("over", "Place(np.zeros(2))"): "solver 'step' {} is faulty: Step.over_block returned a state with an array of fl",
    ("over", "Place(state.w * np.nan)"): "solver 'step' {} is faulty: Step.over_block returned a state with an arra",
}


@pytest.mark.parametrize("case", WRONG, ids=": ".join)
def test_wrong_answers_of_other_parts(others, case):
    others(**dict([case]))
    with pytest.raises((TypeError, ValueError, KeyError)) as raised:
        CALLS[case[0]]()
    assert str(raised.value).startswith(WRONG[case].format(WHOSE))


@pytest.mark.parametrize("answer", ["'done'", "1.5"])
def test_a_command_returns_its_exit_code(others, capsys, answer):
    others(command=answer)
    assert main(["speak"]) == 1
    told = f"error: command 'speak' {WHOSE} is faulty: Speak.run returned "
    assert capsys.readouterr().err.startswith(told)


def test_an_error_inside_a_command(others, capsys):
    others(command="[][0]")
    with pytest.raises(IndexError) as raised:
        main(["speak"])
    assert noted(raised.value, f"Speak.run: command 'speak' {WHOSE}, hook mdlearn_commands")


def test_a_command_says_what_is_wrong_with_values_in_its_own_words(others, capsys):
    others(command="exec('raise ValueError(\"no such file\")')")
    assert main(["speak"]) == 1
    assert capsys.readouterr().err == "error: no such file\n"


def test_the_command_line_says_where_an_error_was_raised(others, tmp_path, capsys):
    others(kernel="int('x')")
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.column_stack([X, Y[2]]), delimiter=",", header="a,b,c,y", comments="")
    assert main(["fit", str(path), "-o", str(tmp_path / "model.npz"), "--kernel", "kern"]) == 1
    assert capsys.readouterr().err.endswith(f"(raised in Kern.values: kernel 'kern' {WHOSE}, hook mdlearn_kernels)\n")
