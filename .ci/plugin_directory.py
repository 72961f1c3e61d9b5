"""Write docs/directory.md: what the packages in plugins/ bring, from their metadata and the classes in their hooks.

    python .ci/plugin_directory.py

Nothing is imported or built: sources are parsed.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "directory.md"
KINDS = {
    "mdlearn_objectives": "Objectives",
    "mdlearn_solvers": "Engines",
    "mdlearn_kernels": "Kernels",
    "mdlearn_sources": "Sources of row blocks",
    "mdlearn_commands": "Commands",
}
"""Titles by hook."""
BEGIN = """# Directory of plugins

The packages in the folder `plugins`, by what they bring ([plugins.md](plugins.md) says how one is written). This page
is made of their metadata by `python .ci/plugin_directory.py`; `python -m mdlearn plugins` lists what is installed.
"""


def directory(plugins: Path) -> str:
    """Return the page for a folder of packages."""
    packages, brought = [], {hook: list[tuple[str, str, str]]() for hook in KINDS}
    for project in sorted(plugins.glob("*/pyproject.toml")):
        metadata = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
        name = metadata["name"]
        packages.append((f"[{name}](../plugins/{project.parent.name}/README.md)", metadata["description"]))
        modules = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(project.parent.glob("src/**/*.py"))]
        classes = {node.name: node for tree in modules for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        for node in (node for tree in modules for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            if node.name in KINDS:
                listed = next(one.value for one in node.body if isinstance(one, ast.Return))
                assert isinstance(listed, ast.List), f"{name}: {node.name} needs to return a list of names"
                for one in listed.elts:
                    brought[node.name].append((*described(classes, ast.unparse(one)), name))
    lines = [BEGIN, table("package | is", packages)]
    for hook, found in brought.items():
        if found:
            lines += [f"## {KINDS[hook]}\n", table("name | is | package", [(f"`{one[0]}`", *one[1:]) for one in found])]
    return "\n".join(lines)


def described(classes: dict[str, ast.ClassDef], name: str) -> tuple[str, str]:
    """Return the declared name of a class and its summary (of an engine the purpose), else its first line of text."""
    found: dict[str, str] = {}
    node = classes.get(name)
    text = (ast.get_docstring(node) or "").partition("\n")[0].rstrip(".") if node else ""
    while node is not None:
        for one in node.body:
            target = one.targets[0] if isinstance(one, ast.Assign) else getattr(one, "target", None)
            if isinstance(target, ast.Name) and isinstance(value := getattr(one, "value", None), ast.Constant):
                found.setdefault(target.id, value.value)
        node = next((classes[ast.unparse(base)] for base in node.bases if ast.unparse(base) in classes), None)
    return found["name"], found.get("summary") or found.get("purpose") or text


def table(head: str, rows: list[tuple[str, ...]]) -> str:
    """Return rows as a Markdown table, sorted."""
    width = head.count("|") + 1
    lines = [f"| {head} |", "|" + "---|" * width]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in sorted(rows)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(directory(ROOT / "plugins"), encoding="utf-8")
