"""README.md, docs/architecture.md and pyproject.toml as text, what stands in them, and the package as syntax trees."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from pathlib import Path

import mdlearn

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PLUGINS = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"<!-- example: (\S+) -->\n```\w+\n(.*?)```\n", PLUGINS, re.DOTALL))
PACKAGE = Path(mdlearn.__file__).parent


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL)


@functools.cache
def syntax_trees():
    """Path -> tree of every Python file of the package, parsed once for all tests of a run."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
