"""Files of a new plugin by the kinds of what it brings: path -> text with $-placeholders."""

from __future__ import annotations

from collections.abc import Sequence

from mdlearn.plugins.templates import HOOK, PYPROJECT, README, TESTS
from mdlearn.plugins.templates_kinds import ESTIMATOR, ESTIMATOR_TEST, MODULES, REGISTERED, SUMMARIES, USAGE

FILE_KINDS = ("objective", "composite", "estimator", "solver", "kernel", "source", "command")
"""Kinds of what the files of a new plugin can bring."""
OWN_API = "requires_api = 1\n\n\n"
"""Lines of a module with hooks, which modules of several kinds leave to the package."""


def registered_kinds(kinds: Sequence[str]) -> dict[str, str]:
    """Kinds in the files of a new plugin that a hook brings, by the registry's word; an estimator has an objective.

    Raises ValueError for an unknown kind, and for a composite beside what stands for another objective.
    """
    found: dict[str, str] = {}
    for kind in kinds:
        if kind not in FILE_KINDS:
            raise ValueError(f"kind needs to be one of {', '.join(FILE_KINDS)}; got {kind!r}")
        if kind in ("objective", "estimator") and "composite" in kinds:
            raise ValueError(f"a composite is an objective, without a bias; leave out composite, or {kind}")
        if kind != "estimator":
            found["objective" if kind == "composite" else kind] = kind
    return {"objective": "objective", **found} if "estimator" in kinds else found


def files_of_kinds(kinds: Sequence[str]) -> dict[str, str]:
    """Files of a new plugin, whose classes are ``$cls_KIND``: one module, or a package with a module for each kind."""
    brought = registered_kinds(kinds)
    modules = {word: MODULES[kind][0].replace("$cls", f"$cls_{word}") for word, kind in brought.items()}
    hooks = "".join(HOOK.replace("$hook", f"{word}s").replace("$cls", f"$cls_{word}") for word in brought)
    estimator, several = "estimator" in kinds, len(brought) > 1
    *before, last = brought
    words = f"{', '.join(before)} and {last}" if before else last
    readme = README.replace("$kind", words).replace("$usage", "\n\n".join(map(USAGE.__getitem__, brought.values())))
    files = {"pyproject.toml": PYPROJECT.replace("The objective", f"The {words}"), "README.md": readme}
    if several or estimator:
        files["README.md"] = readme.replace("`src/$module/__init__.py`", "`src/$module`")
    if several:
        imports = "".join(f"from $module.{word} import $cls_{word}\n" for word in sorted(brought))
        head = f'"""The {words} $objective for mdlearn."""\n\nimport mdlearn\n\n{imports}\n{OWN_API.rstrip()}\n'
        files["src/$module/__init__.py"] = head + hooks
        files |= {f"src/$module/{word}.py": text.replace(OWN_API, "\n") for word, text in modules.items()}
    else:
        files["src/$module/__init__.py"] = "".join(modules.values()) + hooks
    for word, kind in brought.items():
        ending = f"_{word}" if several else ""
        files[f"tests/test_${{module}}{ending}.py"] = _tests_of_kind(kind, word)
    if estimator:
        files["pyproject.toml"] = files["pyproject.toml"].replace('["pytest>=8"]', '["pytest>=8", "scikit-learn>=1.6"]')
        files["src/$module/estimator.py"] = ESTIMATOR.replace("$cls", "$cls_objective")
        files["tests/test_${module}_estimator.py"] = ESTIMATOR_TEST
        files["README.md"] += f"\n{USAGE['estimator']}\n"
    return files


def _tests_of_kind(kind: str, word: str) -> str:
    """Tests among the files of a new plugin of what it brings of a kind; those of a composite are any objective's."""
    _, test, imports = MODULES[kind]
    head = TESTS
    if word != "objective":
        head = REGISTERED.replace("$test_summary", SUMMARIES[kind]).replace("$imports", imports)
    if kind == "command":
        head = head.replace("import mdlearn\n", "import subprocess\nimport sys\n\nimport mdlearn\n", 1)
    return head.replace("$hook", f"{word}s") + test
