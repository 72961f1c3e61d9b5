"""The packages in plugins/ as they stand; `.ci/plugins.py` installs them from wheels and runs their own tests."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from mdlearn.plugins.scaffold import new_plugin

FOLDER = Path(__file__).resolve().parents[2] / "plugins"
PLUGINS = sorted(path.parent.name for path in FOLDER.glob("*/pyproject.toml"))


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
