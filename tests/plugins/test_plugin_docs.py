"""docs/plugins.md says what the plugin host does."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

import pytest
from odd_forms import X, Y, adding, method
from plugin_cases import FAULTS, GOOD, Site, offering

import mdlearn
import mdlearn.extend
from mdlearn.cli import main
from mdlearn.plugins import discovery, hookspecs, records

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "plugins.md").read_text(encoding="utf-8")
REFERENCE = (DOCS / "api" / "extending.rst").read_text(encoding="utf-8")
LISTED = frozenset(re.findall(r"^\.\. (?:auto|py:)\w+:: mdlearn\.extend\.(\w+)$", REFERENCE, re.MULTILINE))


def table(head):
    """Cells of the table under a line."""
    lines = TEXT.split(head, 1)[1].splitlines()[2:]
    end = next(i for i, line in enumerate(lines) if not line.startswith("|"))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:end]]


def test_the_listing(tmp_path, monkeypatch, capsys):
    site = Site(tmp_path, monkeypatch)
    site.add("yours", offering("odd"), version="3.1")
    site.add("Mine", offering("band", "odd"), version="0.2")
    site.add("broken", FAULTS["import error"][0])
    site.add("switched.off", GOOD)
    site.add("good-plugin", GOOD)
    monkeypatch.setenv(discovery.DISABLE, "switched.off")
    assert main(["plugins"]) == 0
    told = re.search(r"<!-- listing -->\n```\n(.*?)```\n", TEXT, re.DOTALL).group(1)
    assert capsys.readouterr().out == told


def test_hooks_states_and_fields():
    hooks = [name for name in vars(hookspecs) if name.startswith("mdlearn_")]
    assert [row[0] for row in table("| hook | returns |")] == [f"`{name}()`" for name in hooks]
    assert {row[0] for row in table("| state | meaning |")} == {f"`{state}`" for state in records.STATES}
    listed = re.search(r"returns:\n(.*?)\.\n", TEXT, re.DOTALL).group(1)
    fields = [field.name for field in dataclasses.fields(records.PluginRecord)]
    assert re.findall(r"`(\w+)`", listed) == fields
    assert callable(mdlearn.list_plugins) and f"`{discovery.DISABLE}=mdlearn-odm,other`" in TEXT


def test_names_of_the_examples_are_in_the_reference():
    trees = [ast.parse(code) for code in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)]
    found = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    used = {one.name for node in found if node.module == "mdlearn.extend" for one in node.names}
    missing = used - LISTED - set(mdlearn.__all__)
    assert len(used) > 25 and not missing, sorted(missing)
    assert set(LISTED) <= set(mdlearn.extend.__all__)


def test_modules_that_it_names_are_public():
    """A plugin imports from no other, so a page for its author names no other."""
    public = {*mdlearn.__all__, *mdlearn._SUBMODULES, "extend", "testing"}
    assert set(re.findall(r"`mdlearn\.(\w+)", TEXT)) <= public
    for cls in (mdlearn.Objective, mdlearn.Solver, mdlearn.KernelFunction, *map(vars(mdlearn.extend).get, LISTED)):
        methods = [one for name, one in vars(cls).items() if name[0] != "_"] if isinstance(cls, type) else []
        texts = [one.__doc__ or "" for one in (cls, *methods)]
        named = {name for text in texts for name in re.findall(r"mdlearn\.(\w+)", text)}
        assert named <= public, (cls, named - public)


@pytest.mark.parametrize("row", table("| a plugin | is told |"))
def test_what_is_refused(row):
    # The texts themselves are tested in test_plugin_host.
    assert row[1].strip("`") in {fault for _, fault in FAULTS.values()}


FITS = [
    ("odd", 3, {"odd": method("form", "*g", "replace(self.plain(*g), columns=self.plain(*g).columns[:1])")}),
    ("odd", 2, {"odd": method("terms", "*g", "None")}),
    ("odd", 2, {"odd": method("terms", "params, total", "params['lam']")}),
    ("net", 2, {"squares": method("at", "W", "replace(self.evaluated(W), gradient=W[:, 0])")}),
]


@pytest.mark.parametrize("place", range(len(FITS)))
def test_what_a_fit_tells(place, tmp_path, monkeypatch):
    rows = table("| in a fit | is told |")
    assert len(rows) == len(FITS)
    name, k, bodies = FITS[place]
    adding(tmp_path, monkeypatch)(**bodies)
    with pytest.raises((TypeError, KeyError)) as raised:
        mdlearn.fit(name, X, Y[k])
    assert str(raised.value) == rows[place][1].strip("`")
    if place == 2:
        (note,) = raised.value.__notes__
        assert f"`{note}`" in TEXT.replace("\n", " ")
