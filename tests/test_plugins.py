"""Objectives and solvers arrive through hooks and in no other way; a bad plugin harms nobody else."""

from __future__ import annotations

import importlib
import sys
import warnings
from textwrap import dedent

import numpy as np
import pytest

import mdlearn
import mdlearn.objectives
import mdlearn.solvers
from mdlearn.objectives.svm import SVM
from mdlearn.plugins import hookspecs
from mdlearn.plugins.manager import Registry, find, registry
from mdlearn.solvers.interior import Interior
from mdlearn.testing import CHECKS

# The built-in names, in the order of the hooks.
OBJECTIVES = [cls.name for cls in mdlearn.objectives.mdlearn_objectives()]
SOLVERS = [cls.name for cls in mdlearn.solvers.mdlearn_solvers()]
assert {"ldm", "svm"} <= set(OBJECTIVES) and {"cd", "interior", "asgd", "sgd"} <= set(SOLVERS)

GOOD = """
    import mdlearn
    from mdlearn.objectives.base import Parameter, Terms
    from mdlearn.forms.losses import HingeTerm
    from mdlearn.solvers.interior import Interior


    class Mean(mdlearn.Objective):
        name = "mean_hinge"
        summary = "SVM with the averaged hinge loss"
        formula = "1/2 |w|^2 + c mean max(0, 1 - z)"
        parameters = {"c": Parameter(10.0, "weight of the averaged loss")}

        def terms(self, params, total):
            return Terms(loss=(HingeTerm(params["c"] / total),))


    class Renamed(Interior):
        name = "renamed"
        purpose = "the interior point under another name"


    @mdlearn.hookimpl
    def mdlearn_objectives():
        return [Mean]


    @mdlearn.hookimpl
    def mdlearn_solvers():
        return [Renamed]
"""

DUPLICATE = """
    import mdlearn
    from mdlearn.objectives.svm import SVM


    class Impostor(SVM):
        name = "ldm"


    @mdlearn.hookimpl
    def mdlearn_objectives():
        return [Impostor]
"""

RAISING = """
    import mdlearn


    @mdlearn.hookimpl
    def mdlearn_objectives():
        raise RuntimeError("no objectives today")
"""

NAMELESS = """
    import mdlearn


    class Nameless(mdlearn.Objective):
        pass


    @mdlearn.hookimpl
    def mdlearn_objectives():
        return [Nameless]
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put distributions with an entry point of the group "mdlearn" on the path, as pip would; forget them after."""
    monkeypatch.syspath_prepend(tmp_path)
    registry.cache_clear()

    def add(name, code):
        (tmp_path / f"{name}.py").write_text(dedent(code))
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[mdlearn]\nmain = {name}\n")
        # Some tests build the registry twice; the module must be the one on file now.
        monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()

    yield add
    registry.cache_clear()


def test_the_specification_has_the_two_hooks():
    hooks = [name for name in vars(hookspecs) if name.startswith("mdlearn_")]
    assert hooks == ["mdlearn_objectives", "mdlearn_solvers"]
    assert all(getattr(hookspecs, name).__doc__ for name in hooks)


def test_built_in_names_are_what_the_hooks_return():
    found = Registry()
    for kind, module, names in (("objectives", mdlearn.objectives, OBJECTIVES), ("solvers", mdlearn.solvers, SOLVERS)):
        returned = getattr(module, f"mdlearn_{kind}")()
        assert getattr(found, kind) == {cls.name: cls for cls in returned}
        assert list(getattr(found, kind)) == names and sorted(names) == getattr(mdlearn, f"list_{kind}")()


def test_without_hook_implementations_there_is_nothing(monkeypatch):
    monkeypatch.setattr(Registry, "_register_builtins", lambda self: None)
    empty = Registry()
    assert empty.objectives == {} and empty.solvers == {}


def test_what_a_built_in_hook_leaves_out_is_unknown(monkeypatch):
    @mdlearn.hookimpl
    def mdlearn_objectives():
        return [SVM]

    monkeypatch.setattr(mdlearn.objectives, "mdlearn_objectives", mdlearn_objectives)
    registry.cache_clear()
    try:
        assert mdlearn.list_objectives() == ["svm"]
        with pytest.raises(ValueError, match="objective 'ldm' is unknown; known objectives: svm"):
            mdlearn.fit("ldm", [[0.0], [1.0]], [0, 1])
    finally:
        registry.cache_clear()


def test_a_plugin_adds_names(install):
    install("good_plugin", GOOD)
    assert list(registry().objectives) == [*OBJECTIVES, "mean_hinge"]
    assert list(registry().solvers) == [*SOLVERS, "renamed"]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    y = X[:, 0] + rng.standard_normal(30) > 0
    model = mdlearn.fit("mean_hinge", X, y, c=30.0, solver="renamed", tol=1e-12)
    same = mdlearn.fit("svm", X, y, C=1.0, solver="interior", tol=1e-12)
    assert (model.objective, model.solver, model.params) == ("mean_hinge", "renamed", {"c": 30.0})
    assert model.decision_function(X) == pytest.approx(same.decision_function(X), abs=1e-9)
    with pytest.raises(ValueError, match=r"no parameter 'C' here; valid: c$"):
        mdlearn.fit("mean_hinge", X, y, C=1.0)


def test_a_plugin_passes_the_conformance_checks(install):
    install("good_plugin", GOOD)
    for check in CHECKS:
        check("mean_hinge")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (DUPLICATE, "'ldm' is already taken"),
        (DUPLICATE.replace("@mdlearn.hookimpl", "@mdlearn.hookimpl(trylast=True)"), "'ldm' is already taken"),
        (DUPLICATE.replace("@mdlearn.hookimpl", "@mdlearn.hookimpl(tryfirst=True)"), "'ldm' is already taken"),
        (RAISING, "no objectives today"),
        (NAMELESS, "name"),
        ("import no_such_module_anywhere", "no_such_module_anywhere"),
        ("1 / 0", "division by zero"),
        ("def broken(:", "SyntaxError"),
    ],
    ids=[
        "duplicate",
        "duplicate, last",
        "duplicate, first",
        "raising hook",
        "no name",
        "failing import",
        "failing module",
        "syntax error",
    ],
)
@pytest.mark.parametrize("name", ["a_bad_plugin", "z_bad_plugin"])
def test_a_bad_plugin_warns_and_leaves_the_others(install, name, code, told):
    install("good_plugin", GOOD)
    install(name, code)
    with pytest.warns(mdlearn.PluginWarning, match=told) as caught:
        found = Registry()
    assert len(caught) == 1
    assert f"{name}:main" in str(caught[0].message)
    assert list(found.objectives) == [*OBJECTIVES, "mean_hinge"]
    assert list(found.solvers) == [*SOLVERS, "renamed"]
    assert found.objectives["ldm"].__module__ == "mdlearn.objectives.ldm"


def test_two_plugins_with_one_name(install):
    install("a_plugin", GOOD)
    install("b_plugin", GOOD)
    with pytest.warns(
        mdlearn.PluginWarning, match="'mean_hinge' is already taken|'renamed' is already taken"
    ) as caught:
        found = Registry()
    assert len(caught) == 2
    # Whichever comes first keeps both names.
    kept = found.objectives["mean_hinge"].__module__
    assert kept in ("a_plugin", "b_plugin") and found.solvers["renamed"].__module__ == kept
    other = ({"a_plugin", "b_plugin"} - {kept}).pop()
    assert all(f"{other}:main" in str(warning.message) for warning in caught)


def test_the_registry_is_made_once(install):
    install("bad_plugin", RAISING)
    with pytest.warns(mdlearn.PluginWarning):
        mdlearn.list_objectives()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mdlearn.list_objectives() == sorted(OBJECTIVES)


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
