"""The directory of plugins: the page is that of the packages, and names what their hooks return."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def writer():
    spec = importlib.util.spec_from_file_location("plugin_directory", ROOT / ".ci" / "plugin_directory.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_that_of_the_packages(writer):
    assert writer.PAGE.read_text(encoding="utf-8") == writer.directory(ROOT / "plugins"), f"run {writer.__file__}"


def test_what_hooks_return_is_listed(writer, tmp_path):
    source = tmp_path / "some-package" / "src" / "some_package"
    source.mkdir(parents=True)
    project = '[project]\nname = "some-package"\ndescription = "two objectives | an engine"\n'
    (tmp_path / "some-package" / "pyproject.toml").write_text(project, encoding="utf-8")
    (source / "machines.py").write_text(
        "class First:\n    name: str = 'first'\n    summary = 'the first one'\n\n\n"
        "class Second(First):\n    name = 'second'\n\n\nclass Unlisted(First):\n    name = 'unlisted'\n",
        encoding="utf-8",
    )
    (source / "__init__.py").write_text(
        'class Engine:\n    """Steps.\n\n    More.\n    """\n\n    name = \'engine\'\n\n\n'
        "def mdlearn_objectives():\n    return [Second, First]\n\n\ndef mdlearn_solvers():\n    return [Engine]\n",
        encoding="utf-8",
    )
    lines = writer.directory(tmp_path).splitlines()
    assert "| [some-package](../plugins/some-package/README.md) | two objectives \\| an engine |" in lines
    first, second = (lines.index(f"| `{name}` | the first one | some-package |") for name in ("first", "second"))
    assert lines.index("## Objectives") < first < second < lines.index("## Engines")
    assert lines.index("| `engine` | Steps | some-package |") > lines.index("## Engines")
    assert "unlisted" not in "".join(lines) and "## Kernels" not in lines
