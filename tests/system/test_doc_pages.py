"""Pages of the documentation: what they show runs, and what they say of objectives is so."""

from __future__ import annotations

import ast
import doctest
import re
import warnings

import pytest
from documents import README, ROOT

import mdlearn
from mdlearn.cli import main
from mdlearn.plugins.command import BUILT_IN
from mdlearn.plugins.registry import registry

DOCS = ROOT / "docs"
MADE = ("_build", "auto_gallery")
PAGES = sorted(path for path in DOCS.rglob("*.rst") if path.relative_to(DOCS).parts[0] not in MADE)
GALLERY = sorted((DOCS / "gallery").glob("*.py"))
OBJECTIVES = {name: cls for name, cls in registry().objectives.items() if cls.__module__.startswith("mdlearn.")}


def name_of(path):
    return str(path.relative_to(DOCS))


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")], ids=name_of)
def test_what_a_page_shows_runs(page, tmp_path, monkeypatch):
    if "sklearn" in page.read_text(encoding="utf-8"):
        pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8")
    assert done.attempted > 0 and done.failed == 0


def page_of(name):
    return (DOCS / "objectives" / f"{name}.rst").read_text(encoding="utf-8")


def test_every_objective_has_a_page():
    assert {path.stem for path in (DOCS / "objectives").glob("*.rst")} == {"index", *OBJECTIVES}
    index = (DOCS / "objectives" / "index.rst").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^   (\w+)$", index.split(".. toctree::")[1], re.MULTILINE)) == sorted(OBJECTIVES)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_parameters_on_pages(name):
    cls, told = OBJECTIVES[name], re.findall(r"^   \* - ``(\w+)``\n     - (.*)$", page_of(name), re.MULTILINE)
    assert [key for key, _ in told] == list(cls.parameters)
    for key, shown in told:
        default = cls.parameters[key].default
        if not callable(default) and not (default is None and shown not in ("``None``",)):
            assert ast.literal_eval(shown.strip("`")) == default, key


@pytest.mark.parametrize("name", OBJECTIVES)
def test_engines_biases_and_classes_on_pages(name):
    cls, text = OBJECTIVES[name], page_of(name)
    flat = text.replace("\n", " ")
    (row,) = re.findall(rf"^\| `{name}` \| .*$", README, re.MULTILINE)
    engines = re.findall(r"[\w-]+", row.rsplit("|", 2)[1])
    listed = re.findall(r"``([\w-]+)``", re.search(r" Engines: (.*?)[.;(]", flat).group(1))
    more = re.findall(r"squared hinge ``([\w-]+)``", text)
    assert sorted(listed) == engines, "README has the table that is tested"
    assert more == (["newton"] if name == "l3svm" else [])
    assert f'Default bias: ``"{cls.default_bias}"``' in flat
    ways = re.search(r"Several classes:(.*?)\.", flat).group(1)
    assert set(re.findall(r'"([\w-]+)"', ways)) == set(cls.multiclass)
    assert f":class:`{cls.__module__}.{cls.__qualname__}`" in flat
    for head in ("When, and when not", "Example", "Source"):
        assert f"\n{head}\n---" in text


def test_the_reference_is_complete():
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((DOCS / "api").glob("*.rst")))
    for module in ("margins", "datasets", "plotting"):
        for name in getattr(mdlearn, module).__all__:
            assert re.search(rf":: (?:mdlearn\.{module}\.)?{name}(?:\(\))?$", text, re.MULTILINE), f"{module}.{name}"
    for name in set(mdlearn.__all__) - set(mdlearn._SUBMODULES):
        assert re.search(rf":: (?:mdlearn\.)?{name}(?:\(\))?$", text, re.MULTILINE), name
    for cls in OBJECTIVES.values():
        assert f".. autoclass:: {cls.__module__}.{cls.__qualname__}\n" in text


def test_commands_on_their_page(capsys):
    told = re.findall(r"python -m mdlearn ([\w-]+)(.*)", (DOCS / "guide" / "commands.rst").read_text(encoding="utf-8"))
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = re.findall(r"^    ([\w-]+)(?: |$)", capsys.readouterr().out, re.MULTILINE)
    assert {name for name, _ in told} == set(BUILT_IN) <= set(listed)
    for name, rest in told:
        with pytest.raises(SystemExit):
            main([name, "--help"])
        help_text = capsys.readouterr().out
        assert all(option in help_text for option in re.findall(r"--\w+", rest))


@pytest.mark.parametrize("script", GALLERY, ids=name_of)
def test_gallery_scripts_are_well_formed(script):
    text = script.read_text(encoding="utf-8")
    title, line = ast.get_docstring(ast.parse(text)).splitlines()[:2]
    assert len(title) == len(line) and set(line) == {"="}
    assert not re.search(r"fetch_|urlopen|requests|/tmp", text), "bundled or synthetic data only"


def test_links_of_pages():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r":doc:`(?:[^`<]*<)?([^`>]+)>?`", text):
            if "auto_gallery" not in target:
                found = page.parent / target
                assert any(found.with_name(found.name + end).exists() for end in (".rst", ".md")), (page, target)
