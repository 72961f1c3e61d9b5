"""Objectives and solvers arrive through hooks and in no other way; kernels: test_plugin_kernels."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
from plugin_cases import GOOD, Site, offering, returning

import mdlearn
import mdlearn.objectives
import mdlearn.solvers
from mdlearn.objectives.svm import SVM
from mdlearn.plugins import hookspecs
from mdlearn.plugins.registry import Registry, find, registry
from mdlearn.solvers.interior_point.solver import Interior
from mdlearn.testing import CHECKS

# The built-in names, in the order of the hooks.
OBJECTIVES = [cls.name for cls in mdlearn.objectives.mdlearn_objectives()]
SOLVERS = [cls.name for cls in mdlearn.solvers.mdlearn_solvers()]
assert {"ldm", "svm"} <= set(OBJECTIVES) and {"cd", "interior", "asgd", "sgd"} <= set(SOLVERS)


@pytest.fixture
def site(tmp_path, monkeypatch):
    return Site(tmp_path, monkeypatch)


def test_the_specification_has_four_hooks():
    hooks = [name for name in vars(hookspecs) if name.startswith("mdlearn_")]
    assert hooks == ["mdlearn_objectives", "mdlearn_solvers", "mdlearn_kernels", "mdlearn_sources", "mdlearn_commands"]
    assert all(getattr(hookspecs, name).__doc__ for name in hooks)


def test_built_in_names_are_what_the_hooks_return(site):
    found = registry()
    for kind, module, names in (("objectives", mdlearn.objectives, OBJECTIVES), ("solvers", mdlearn.solvers, SOLVERS)):
        returned = getattr(module, f"mdlearn_{kind}")()
        assert getattr(found, kind) == {cls.name: cls for cls in returned}
        assert list(getattr(found, kind)) == names and sorted(names) == getattr(mdlearn, f"list_{kind}")()
    assert mdlearn.list_plugins() == []


def test_without_hook_implementations_there_is_nothing(monkeypatch):
    monkeypatch.setattr(Registry, "_register_builtins", lambda self: None)
    empty = Registry()
    assert empty.objectives == {} and empty.solvers == {}


def test_what_a_built_in_hook_leaves_out_is_unknown(site, monkeypatch):
    @mdlearn.hookimpl
    def mdlearn_objectives():
        return [SVM]

    monkeypatch.setattr(mdlearn.objectives, "mdlearn_objectives", mdlearn_objectives)
    assert mdlearn.list_objectives() == ["svm"]
    with pytest.raises(ValueError, match=r"^objective 'ldm' is unknown; known objectives: svm$"):
        mdlearn.fit("ldm", [[0.0], [1.0]], [0, 1])


def test_a_plugin_adds_names(site):
    site.add("good-plugin", GOOD)
    assert list(registry().objectives) == [*OBJECTIVES, "mean_hinge"]
    assert list(registry().solvers) == [*SOLVERS, "renamed"]
    assert registry().manager.has_plugin("good-plugin:main")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    y = X[:, 0] + rng.standard_normal(30) > 0
    model = mdlearn.fit("mean_hinge", X, y, c=30.0, solver="renamed", tol=1e-12)
    same = mdlearn.fit("svm", X, y, C=1.0, solver="interior", tol=1e-12)
    assert (model.objective, model.solver, model.params) == ("mean_hinge", "renamed", {"c": 30.0})
    assert model.decision_function(X) == pytest.approx(same.decision_function(X), abs=1e-9)
    with pytest.raises(ValueError, match=r"no parameter 'C' here; valid: c; did you mean 'c'[?]$"):
        mdlearn.fit("mean_hinge", X, y, C=1.0)


@pytest.mark.slow
def test_a_plugin_passes_the_conformance_checks(site):
    site.add("good-plugin", GOOD)
    for check in CHECKS:
        check("mean_hinge")


def test_two_entry_points_of_one_distribution(site):
    (site.folder / "second_half.py").write_text(offering("second"))
    site.add("Both-Halves", offering("first"), entries={"b": "second_half", "a": "both_halves"})
    told = [(one.distribution, one.entry, one.objectives, one.state) for one in mdlearn.list_plugins()]
    assert told == [("Both-Halves", "a", ("first",), "ok"), ("Both-Halves", "b", ("second",), "ok")]


def test_an_entry_point_may_name_an_object(site):
    code = "import mdlearn\nfrom mdlearn.objectives.svm import SVM\nclass Box:\n    @mdlearn.hookimpl\n"
    code += "    def mdlearn_objectives(self):\n        yield type('Boxed', (SVM,), {'name': 'boxed'})\nbox = Box()\n"
    site.add("boxes", code, entries={"main": "boxes:box"})
    assert mdlearn.list_plugins()[0].objectives == ("boxed",)


def test_one_class_may_come_twice(site):
    twice = "[Twice, Twice]"
    site.add("first-part", returning(twice, "Twice = type('Twice', (SVM,), {'name': 'twice'})"))
    site.add("last-part", "from first_part import Twice\n" + returning("[Twice]"))
    assert [(one.objectives, one.state) for one in mdlearn.list_plugins()] == [(("twice",), "ok")] * 2
    site.add("third-part", returning("[SVM]"))
    assert mdlearn.list_plugins()[-1].state == "ok" and registry().objectives["svm"] is SVM


def test_a_distribution_found_twice_is_taken_once(site, tmp_path_factory):
    site.add("good-plugin", GOOD, version="2.0")
    # The same distribution earlier on the path, as after an editable installation in a source folder.
    other = tmp_path_factory.mktemp("older")
    Site(other, site.monkeypatch).add("Good_Plugin", offering("older"), version="1.0")
    assert [(one.distribution, one.version, one.objectives) for one in mdlearn.list_plugins()] == [
        ("Good_Plugin", "1.0", ("older",))
    ]
    site.monkeypatch.syspath_prepend(site.folder)
    site.monkeypatch.delitem(sys.modules, "good_plugin")
    site.forget()
    assert [(one.distribution, one.version, one.objectives) for one in mdlearn.list_plugins()] == [
        ("good-plugin", "2.0", ("mean_hinge",))
    ]


def test_the_first_use_may_come_from_many_threads(site):
    counting = (
        "import time\nwith open(__file__ + '.log', 'a') as log:\n    log.write('imported\\n')\ntime.sleep(0.05)\n"
    )
    site.add("slow-plugin", counting + offering("slow"))
    found, start = [], threading.Barrier(8)

    def ask():
        start.wait()
        found.append(registry())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and all(one is found[0] for one in found)
    assert "slow" in found[0].objectives
    assert (site.folder / "slow_plugin.py.log").read_text() == "imported\n"


def test_find():
    assert find("objective", "svm") is SVM is find("objective", SVM)
    task = SVM(C=2.0)
    assert find("objective", task) is task
    assert find("solver", "interior") is Interior
    with pytest.raises(ValueError, match="solver 'nonsense' is unknown; known solvers: " + ", ".join(SOLVERS)):
        find("solver", "nonsense")
    for wrong in (3, None, Interior):
        with pytest.raises(TypeError, match="objective needs to be a name"):
            find("objective", wrong)
    with pytest.raises(TypeError, match="solver needs to be a name"):
        find("solver", SVM)
