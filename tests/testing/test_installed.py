"""`python -m mdlearn plugins --check`: what holds, and one sentence for each kind of fault."""

from __future__ import annotations

import json
import re

import pytest
from documents import PLUGINS
from kernel_cases import LAPLACE
from planted_sources import Gaussian, PlainBlocks
from plugin_cases import GOOD, Site, offering

from mdlearn.cli import main
from mdlearn.plugins.discovery import DISABLE
from mdlearn.testing import CHECKS, check_kernel, check_solver, check_source, kernels, solvers, sources
from mdlearn.testing.installed import CLAUSES

FAULTY = """
    import numpy as np
    import mdlearn
    from mdlearn.objectives.svm import SVM
    from mdlearn.solvers.interior_point.solver import Interior

    class Doubled(SVM):
        name = "doubled"

        def terms(self, params, total):
            self.count = getattr(type(self), "count", 0.0) + 1.0
            type(self).count = self.count
            return super().terms({**params, "C": params["C"] * self.count}, total)

    class Raises(SVM):
        name = "raises"

        def row_terms(self, data, params):
            raise ZeroDivisionError("no costs")

    class Picky(Interior):
        name = "picky"

        def refusal(self, form):
            return "it takes nothing"

    class Ones(mdlearn.KernelFunction):
        name = "broken"
        summary = "no kernel"

        def values(self, params, A, B):
            raise ZeroDivisionError("no values")

    class Greedy(mdlearn.RowBlocks):
        name = "greedy"

        @classmethod
        def given(cls, X, y, weight):
            return cls(lambda: iter(()))

    @mdlearn.hookimpl
    def mdlearn_objectives():
        return [Doubled, Raises]

    @mdlearn.hookimpl
    def mdlearn_solvers():
        return [Picky]

    @mdlearn.hookimpl
    def mdlearn_kernels():
        return [Ones]

    @mdlearn.hookimpl
    def mdlearn_sources():
        return [Greedy]
"""
WORDS = """
    import mdlearn

    class Words(mdlearn.Command):
        name = "words"
        summary = "count words"

    @mdlearn.hookimpl
    def mdlearn_commands():
        return [Words]
"""


CLAIMING = """
    import mdlearn
    from mdlearn.extend import Claim

    class Claiming(mdlearn.Solver):
        name = "claiming"
        purpose = "claim what it refuses"

        def refusal(self, form):
            return "it takes nothing"

        def claims(self, form):
            return Claim(1.0, "cheap")

    @mdlearn.hookimpl
    def mdlearn_solvers():
        return [Claiming]
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    return Site(tmp_path, monkeypatch)


def named(clauses):
    names = (clause.__name__.split("_", 1)[1].replace("_", " ") for clause in clauses)
    return f"{len(clauses)} clauses hold: {', '.join(names)}"


@pytest.mark.slow
def test_what_holds(site, capsys, monkeypatch):
    """The lines of the documents: clauses by name, and a plugin that is disabled is no fault."""
    site.add("good-plugin", GOOD)
    site.add("switched.off", FAULTY)
    monkeypatch.setenv(DISABLE, "switched.off")
    assert main(["plugins", "--check"]) == 0
    out, err = capsys.readouterr()
    objective, rest = out.split("\n", 1)
    assert objective == f"good-plugin 1.0: objective mean_hinge: {named(CHECKS)}"
    assert rest == re.search(r"<!-- checked -->\n```\n(.*?)```\n", PLUGINS, re.DOTALL).group(1)
    assert err == "everything holds\n"


def test_one_plugin_by_name(site, capsys, monkeypatch):
    site.add("ending-plugin", ENDS)
    site.add("My.Words", WORDS)
    site.add("switched-off", FAULTY)
    monkeypatch.setenv(DISABLE, "switched-off")
    assert main(["plugins", "my-words", "--check"]) == 0
    told = "My.Words 1.0: command words: 1 clause holds: declares arguments\n"
    assert capsys.readouterr() == (told, "everything holds\n")
    assert main(["plugins", "switched-off", "--check"]) == 0
    assert capsys.readouterr() == ("switched-off 1.0: plugin main: disabled\n", "nothing was checked\n")
    assert main(["plugins", "my-words"]) == 0
    assert capsys.readouterr() == ("My.Words 1.0: commands words; ok\n", "")
    assert main(["plugins", "my-words", "--json"]) == 0
    assert [one["distribution"] for one in json.loads(capsys.readouterr().out)] == ["My.Words"]
    for more in ([], ["--check"]):
        assert main(["plugins", "my-word", *more]) == 1
        known = "ending-plugin, My.Words, switched-off; did you mean 'My.Words'?"
        assert capsys.readouterr() == ("", f"error: plugin 'my-word' is not installed; installed: {known}\n")


@pytest.mark.slow
def test_a_faulty_engine_is_a_fault_of_its_own_plugin_alone(site, capsys):
    """`solver="auto"` asks all engines: in the checks of another plugin it is left out."""
    site.add("claiming", CLAIMING)
    metadata = site.add("laplace-plugin", LAPLACE) / "METADATA"
    told = "Claiming.claims claims a problem that its refusal does not take"
    assert main(["plugins", "laplace-plugin", "--check"]) == 0
    assert capsys.readouterr()[1] == "everything holds\n"
    assert main(["plugins", "claiming", "--check"]) == 1
    assert told in capsys.readouterr()[0]
    metadata.write_text(metadata.read_text() + "Requires-Dist: Claiming>=1.0\n")
    assert main(["plugins", "laplace-plugin", "--check"]) == 1, "an engine that a plugin requires is asked"
    assert told in capsys.readouterr()[0]


def test_nothing_installed_is_checked(site, capsys):
    assert main(["plugins", "--check"]) == 0
    assert capsys.readouterr() == ("", "nothing was checked\n")


def test_clauses_that_are_named_are_those_that_a_check_goes_through(monkeypatch):
    gone = []
    for module in (kernels, solvers, sources):
        monkeypatch.setattr(module, "require_clauses", lambda title, clauses, *subject: gone.extend(clauses))
    subjects = {check_solver: "newton", check_kernel: Gaussian, check_source: PlainBlocks}
    assert subjects.keys() == CLAUSES.keys()
    for check, subject in subjects.items():
        gone.clear()
        check(subject)
        assert tuple(gone) == tuple(CLAUSES[check])


def test_what_does_not(site, capsys):
    site.add("faulty-plugin", FAULTY)
    site.add("misspelt-plugin", offering("one").replace("mdlearn_objectives", "mdlearn_objective"))
    assert main(["plugins", "--check"]) == 1
    out, err = capsys.readouterr()
    lines = dict(line.split(": ", 2)[1:] for line in out.splitlines())
    assert "check_determinism: AssertionError" in lines["objective doubled"]
    told = "ZeroDivisionError: no costs (raised in Raises.row_terms: objective 'raises' of faulty-plugin 1.0, hook"
    assert told in lines["objective raises"]
    assert lines["solver picky"].endswith("no registered objective, at its defaults, is a problem that it takes")
    assert "kernel 'broken': kernel_returns_values does not hold: ZeroDivisionError" in lines["kernel broken"]
    assert "return None for them" in lines["source greedy"]
    assert "hook 'mdlearn_objective' does not exist" in lines["plugin main"]
    assert int(err.split()[0]) >= 5


HANGS = """
    import time
    import mdlearn

    class Hangs(mdlearn.KernelFunction):
        name = "hangs"
        summary = "never answers"

        def values(self, params, A, B):
            time.sleep(1000.0)

    @mdlearn.hookimpl
    def mdlearn_kernels():
        return [Hangs]
"""
ENDS = """
    import os
    import mdlearn

    class Leaves(mdlearn.KernelFunction):
        name = "leaves"
        summary = "ends Python"

        def values(self, params, A, B):
            os._exit(3)

    class Right(mdlearn.KernelFunction):
        name = "right"
        summary = "a + 1 where both are alike"

        def values(self, params, A, B):
            return A @ B.T + 1.0

    @mdlearn.hookimpl
    def mdlearn_kernels():
        return [Leaves, Right]
"""


@pytest.mark.slow
def test_what_hangs_is_ended(site, capsys):
    site.add("hanging-plugin", HANGS)
    assert main(["plugins", "--check", "--time-limit", "8"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "hanging-plugin 1.0: kernel hangs: its checks took more than 8 s and were ended in kernel_returns_values",
    ]


def test_what_ends_python_is_a_fault_of_its_own(site, capsys):
    site.add("ending-plugin", ENDS)
    assert main(["plugins", "--check"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "ending-plugin 1.0: kernel leaves: the process of its checks ended with status 3 (without a word)",
        f"ending-plugin 1.0: kernel right: {named(kernels.KERNEL_CLAUSES)}",
    ]


def test_other_time_limits_are_refused(site, capsys):
    assert main(["plugins", "--check", "--time-limit", "0"]) == 1
    assert capsys.readouterr().err == "error: time_limit needs to be a number > 0; got 0.0\n"
