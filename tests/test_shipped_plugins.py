"""The packages in plugins/ install and pass their own tests, each in a folder of its own."""

from __future__ import annotations

import re
import shutil
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from plugin_cases import can_build, can_compile, install, run_tests

from mdlearn.plugins.scaffold import new_plugin

FOLDER = Path(__file__).resolve().parents[1] / "plugins"
PLUGINS = sorted(path.parent.name for path in FOLDER.glob("*/pyproject.toml"))


def needed(name):
    """Packages beside mdlearn that a plugin imports."""
    project = tomllib.loads((FOLDER / name / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.split(r"[\[<>=!~ ]", one)[0] for one in project["dependencies"]]
    return [one for one in names if not one.startswith("mdlearn")]


@pytest.mark.skipif(not can_build(), reason="needs pip and setuptools>=70.1")
@pytest.mark.parametrize("name", PLUGINS)
def test_it_installs_and_passes_its_tests(name, tmp_path):
    missing = [one for one in needed(name) if find_spec(one) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    if list((FOLDER / name).rglob("*.pyx")) and not can_compile():
        pytest.skip("needs Cython and a C compiler")
    # Built in a copy: setuptools leaves its own files in the source folder.
    package = shutil.copytree(FOLDER / name, tmp_path / name, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    install(package, tmp_path / "site")
    shutil.rmtree(package / "src")
    done = run_tests(package, tmp_path / "site")
    assert done.returncode == 0, done.stdout
    assert re.search(r"^\d+ passed in", done.stdout.splitlines()[-1]), "tests were left out"


@pytest.mark.parametrize("name", PLUGINS)
def test_it_is_named_after_its_folder(name):
    project = tomllib.loads((FOLDER / name / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == name and project["entry-points"]["mdlearn"]


def test_the_native_example_is_what_new_plugin_writes(tmp_path):
    written = new_plugin("mdlearn-native-example", tmp_path, native=True)
    files = [path for path in written.rglob("*") if path.is_file()]
    assert len(files) == 6
    for path in files:
        shipped = FOLDER / "mdlearn-native-example" / path.relative_to(written)
        assert shipped.read_text(encoding="utf-8") == path.read_text(encoding="utf-8"), shipped
    source = (written / "src" / "mdlearn_native_example" / "_loss.pyx").read_text(encoding="utf-8")
    assert "import" not in re.sub(r'""".*?"""', "", source, flags=re.DOTALL)
