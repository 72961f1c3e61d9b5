"""A bad plugin is told of once, in exact words, and harms nobody else."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings

import pytest
from plugin_cases import FAULTS, GOOD, Site, offering

import mdlearn
import mdlearn.objectives
import mdlearn.solvers
from mdlearn.cli import main
from mdlearn.plugins.discovery import DISABLE
from mdlearn.plugins.records import PluginRecord
from mdlearn.plugins.registry import registry

OBJECTIVES = [cls.name for cls in mdlearn.objectives.mdlearn_objectives()]
SOLVERS = [cls.name for cls in mdlearn.solvers.mdlearn_solvers()]


@pytest.fixture
def site(tmp_path, monkeypatch):
    return Site(tmp_path, monkeypatch)


@pytest.mark.parametrize("case", FAULTS)
def test_a_bad_plugin_is_told_of_once_and_leaves_the_others(site, case, capsys):
    code, fault = FAULTS[case]
    site.add("good-plugin", GOOD)
    site.add("Bad_Plugin", code, version="0.3")
    with pytest.warns(mdlearn.PluginWarning) as caught:
        assert mdlearn.list_objectives() == sorted([*OBJECTIVES, "mean_hinge"])
    assert [str(one.message) for one in caught] == [f"plugin Bad_Plugin 0.3 (entry main): {fault}"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mdlearn.list_solvers() == sorted([*SOLVERS, "renamed"])
        assert mdlearn.list_plugins() == [
            PluginRecord("Bad_Plugin", "0.3", "main", state="error", error=fault),
            PluginRecord("good-plugin", "1.0", "main", ("mean_hinge",), ("renamed",)),
        ]
        for kind, given in (
            ("objective", {"objective": "strange"}),
            ("solver", {"objective": "svm", "solver": "strange"}),
        ):
            with pytest.raises(ValueError) as raised:
                mdlearn.fit(**given, X=[[0.0], [1.0]], y=[0, 1])
            known = ", ".join([*OBJECTIVES, "mean_hinge"] if kind == "objective" else [*SOLVERS, "renamed"])
            assert str(raised.value) == (
                f"{kind} 'strange' is unknown; known {kind}s: {known}; plugins with something missing: Bad_Plugin 0.3 "
                f"(entry main): {fault}"
            )
        assert mdlearn.fit("ldm", [[0.0], [1.0]], [0, 1]).certificate.converged
        assert registry().objectives["ldm"].__module__ == "mdlearn.objectives.ldm"
    assert main(["plugins"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"Bad_Plugin 0.3: nothing; error: {fault}",
        "good-plugin 1.0: objectives mean_hinge; solvers renamed; ok",
    ]


def test_what_is_right_in_a_bad_plugin_can_be_used(site):
    site.add("half-bad", offering("right", "Wrong", "ldm") + "\n@mdlearn.hookimpl\ndef mdlearn_solver():\n    pass\n")
    with pytest.warns(mdlearn.PluginWarning) as caught:
        (record,) = mdlearn.list_plugins()
    assert (record.objectives, record.state) == (("right",), "error")
    faults = record.error.split("; ")
    assert len(caught) == 1 and str(caught[0].message).endswith(record.error)
    assert any("mdlearn_solver" in one for one in faults) and any("'Wrong'" in one for one in faults)
    assert any("'ldm'" in one for one in faults)
    assert mdlearn.fit("right", [[0.0], [1.0]], [0, 1]).objective == "right"


def test_an_objective_that_has_moved_into_mdlearn_asks_to_upgrade_its_old_plugin(site, capsys):
    site.add("mdlearn-odm", offering("odm", "mcodm"), version="0.1.0")
    fault = "the objective name 'odm' is built in; upgrade the plugin, or give yours another name"
    with pytest.warns(mdlearn.PluginWarning) as caught:
        model = mdlearn.fit("odm", [[0.0], [1.0]], [0, 1])
    assert [str(one.message) for one in caught] == [f"plugin mdlearn-odm 0.1.0 (entry main): {fault}"]
    assert registry().objectives["odm"].__module__ == "mdlearn.objectives.odm" and set(model.params) >= {"mu", "theta"}
    assert mdlearn.fit("mcodm", [[0.0], [1.0]], [0, 1]).objective == "mcodm"
    assert main(["plugins"]) == 0
    assert capsys.readouterr().out == f"mdlearn-odm 0.1.0: objectives mcodm; error: {fault}\n"


def test_a_hook_with_arguments_leaves_no_hook_behind(site):
    code = offering("kept") + "\n@mdlearn.hookimpl\ndef mdlearn_solvers(chosen):\n    return []\n"
    site.add("bad-plugin", code)
    with pytest.warns(
        mdlearn.PluginWarning, match=r"^plugin bad-plugin 1\.0 \(entry main\): registration failed: .*chosen"
    ):
        assert mdlearn.list_objectives() == sorted(OBJECTIVES)
    owners = {one.plugin_name for one in registry().manager.hook.mdlearn_objectives.get_hookimpls()}
    assert owners == {"mdlearn:objectives"}


@pytest.mark.parametrize("options", ["", "(tryfirst=True)", "(trylast=True)"])
@pytest.mark.parametrize("names", [("a-plugin", "b-plugin"), ("b-plugin", "a-plugin")])
def test_a_name_of_two_plugins_is_an_error_when_it_is_asked_for(site, names, options, capsys):
    for name in names:
        own = "own-" + name[0]
        site.add(name, offering("same", own).replace("hookimpl", "hookimpl" + options, 1))
    told = (
        "objective 'same' is offered by a-plugin 1.0 (entry main) and by b-plugin 1.0 (entry main); uninstall all but "
        f"one, or disable them by name in {DISABLE}"
    )
    with pytest.warns(mdlearn.PluginWarning) as caught:
        assert mdlearn.list_objectives() == sorted([*OBJECTIVES, "own-a", "own-b"])
    assert [str(one.message) for one in caught] == [told]
    with pytest.raises(ValueError) as raised:
        mdlearn.fit("same", [[0.0], [1.0]], [0, 1])
    assert str(raised.value) == told
    assert all(mdlearn.fit(name, [[0.0], [1.0]], [0, 1]).objective == name for name in ("svm", "own-a", "own-b"))
    assert main(["plugins"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{letter}-plugin 1.0: objectives own-{letter}; conflict: {told}" for letter in "ab"
    ]
    site.monkeypatch.setenv(DISABLE, "b-plugin")
    site.forget()
    assert registry().objectives["same"] is not None and "own-b" not in registry().objectives


@pytest.mark.parametrize(
    ("names", "off"),
    [
        ("", set()),
        ("some.other", set()),
        ("Good_Plugin", {"good-plugin"}),
        (" good.plugin ,,", {"good-plugin"}),
        ("GOOD--PLUGIN, other_one", {"good-plugin", "Other.One"}),
        ("*", {"good-plugin", "Other.One"}),
        ("nothing, *", {"good-plugin", "Other.One"}),
    ],
)
def test_plugins_can_be_disabled_by_distribution(site, names, off):
    site.add("good-plugin", GOOD)
    site.add("Other.One", offering("other"))
    site.monkeypatch.setenv(DISABLE, names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {one.distribution for one in mdlearn.list_plugins() if one.state == "disabled"} == off
    assert ("mean_hinge" in registry().objectives) == ("good-plugin" not in off)
    assert ("other" in registry().objectives) == ("Other.One" not in off)
    assert set(OBJECTIVES) <= set(registry().objectives) and set(SOLVERS) <= set(registry().solvers)


def test_a_disabled_plugin_is_not_imported_but_named(site, capsys):
    site.add("bad-plugin", "raise RuntimeError")
    site.monkeypatch.setenv(DISABLE, "*")
    with pytest.raises(ValueError) as raised:
        mdlearn.fit("bad", [[0.0], [1.0]], [0, 1])
    assert str(raised.value) == (
        f"objective 'bad' is unknown; known objectives: {', '.join(OBJECTIVES)}; plugins with something missing: "
        "bad-plugin 1.0 (entry main): disabled"
    )
    assert "bad_plugin" not in sys.modules
    assert main(["plugins"]) == 0
    assert capsys.readouterr().out == "bad-plugin 1.0: nothing; disabled\n"


def test_ctrl_c_is_the_users_and_nothing_is_lost(site):
    site.add(
        "slow-plugin", "import mdlearn\nif mdlearn.pressed.pop():\n    raise KeyboardInterrupt\n" + offering("late")
    )
    site.monkeypatch.setattr(mdlearn, "pressed", [False, True], raising=False)
    with pytest.raises(KeyboardInterrupt):
        mdlearn.fit("svm", [[0.0], [1.0]], [0, 1])
    assert "late" in mdlearn.list_objectives()


def test_warnings_as_errors_come_one_by_one(site):
    for name in ("a-plugin", "b-plugin"):
        site.add(name, "1 / 0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("a-plugin", "b-plugin"):
            with pytest.raises(mdlearn.PluginWarning, match=name):
                mdlearn.fit("svm", [[0.0], [1.0]], [0, 1])
        mdlearn.fit("svm", [[0.0], [1.0]], [0, 1])


def test_a_broken_list_of_entry_points(site, capsys):
    for name, text in (("ours", "[mdlearn]\nmain\n"), ("theirs", "[other]\nmdlearn\n")):
        (site.add(name, "") / "entry_points.txt").write_text(text)
    (site.add("nameless", "1 / 0") / "METADATA").unlink()
    site.add("good-plugin", GOOD)
    with pytest.warns(
        mdlearn.PluginWarning, match=r"^plugin ours 1\.0: import failed: .*entry_points\.txt cannot be read"
    ):
        records = mdlearn.list_plugins()
    assert [(one.distribution, one.entry, one.state) for one in records] == [
        ("good-plugin", "main", "ok"),
        ("ours", "", "error"),
    ]
    site.add("mistaken", "", entries={"main": "mistaken:nothing", "other": "not a module"})
    assert main(["plugins"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["good-plugin 1.0", "mistaken 1.0", "ours 1.0"]
    assert lines[1].startswith("mistaken 1.0: nothing; error: entry main: import failed: AttributeError: ")
    assert lines[1].endswith("; entry other: import failed: ValueError: 'not a module' does not name a module")


def test_plugins_as_json(site, capsys):
    site.add("Good.Plugin", "print('hello')\n" + offering("good"), version="1.0rc1")
    assert main(["plugins", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == [
        {
            "distribution": "Good.Plugin",
            "version": "1.0rc1",
            "entry": "main",
            "objectives": ["good"],
            "solvers": [],
            "kernels": [],
            "sources": [],
            "state": "ok",
            "error": None,
            "commands": [],
        }
    ]
    assert printed.err == "hello\n"


def test_without_plugins(site, capsys):
    site.monkeypatch.setenv(DISABLE, "*")
    if mdlearn.list_plugins():
        pytest.skip("plugins are installed here")
    assert main(["plugins"]) == main(["plugins", "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "[]\n" and printed.err == "no plugins are installed\n" * 2


def test_plugins_are_loaded_at_first_use_not_at_import(site, tmp_path):
    site.add("loud-plugin", "print('loaded')\n" + offering("loud"))
    code = "import mdlearn; print('imported'); mdlearn.list_solvers(); mdlearn.list_plugins()"
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["imported", "loaded"]
