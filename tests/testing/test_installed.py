"""`python -m mdlearn plugins --check`: what holds, and one sentence for each kind of fault."""

from __future__ import annotations

import pytest
from plugin_cases import GOOD, Site, offering

from mdlearn.cli import main
from mdlearn.testing import CHECKS

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


@pytest.fixture
def site(tmp_path, monkeypatch):
    return Site(tmp_path, monkeypatch)


@pytest.mark.slow
def test_what_holds(site, capsys):
    site.add("good-plugin", GOOD)
    assert main(["plugins", "--check"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        f"good-plugin 1.0: objective mean_hinge: {len(CHECKS)} of {len(CHECKS)} hold",
        "good-plugin 1.0: solver renamed: 1 of 1 hold",
    ]
    assert err == "everything holds\n"


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
    assert "kernel 'broken': kernel_repeats_itself does not hold: ZeroDivisionError" in lines["kernel broken"]
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
        "hanging-plugin 1.0: kernel hangs: its checks took more than 8 s and were ended in kernel_repeats_itself",
    ]


def test_what_ends_python_is_a_fault_of_its_own(site, capsys):
    site.add("ending-plugin", ENDS)
    assert main(["plugins", "--check"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "ending-plugin 1.0: kernel leaves: the process of its checks ended with status 3 (without a word)",
        "ending-plugin 1.0: kernel right: 1 of 1 hold",
    ]


def test_other_time_limits_are_refused(site, capsys):
    assert main(["plugins", "--check", "--time-limit", "0"]) == 1
    assert capsys.readouterr().err == "error: time_limit needs to be a number > 0; got 0.0\n"
