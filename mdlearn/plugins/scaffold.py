"""Scaffold of a new plugin: a small package that installs, registers and passes its own tests."""

from __future__ import annotations

import keyword
import re
import shutil
import sys
from pathlib import Path
from string import Template

from mdlearn.data.features.kernels import PARAMETERS
from mdlearn.output_files import check_folder
from mdlearn.plugins.command import BUILT_IN
from mdlearn.plugins.discovery import normalized_distribution_name
from mdlearn.plugins.registry import registry
from mdlearn.plugins.scaffold_files import files_of_kinds, registered_kinds
from mdlearn.plugins.templates_native import NATIVE_FILES

DISTRIBUTION_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*([-_.][A-Za-z0-9]+)*")
TAKEN = frozenset({"mdlearn", "numpy", "scipy", "pluggy", "threadpoolctl", "cython", "setuptools", "pytest", "tests"})
PREFIX = "mdlearn_"
BUILT_IN_NAMES = {"kernel": (*PARAMETERS, "precomputed"), "command": BUILT_IN}
"""Names of a kind that no plugin can have, and the registry does not list."""


def new_plugin(name: str, folder: str | Path = ".", native: bool = False, kind: str = "objective") -> Path:
    """Write the scaffold of a new plugin, the package `name`, into `folder`, which is made when it is missing.

    `name`: name of the distribution: letters, digits, and single '-', '_' or '.' between them. The module is the same
    with '_' and in lower case; what it brings has the module's name without a leading "mdlearn_"; `folder`: where the
    folder `name` goes; `native`: whether the loss of an objective is compiled (Cython), instead of declared; `kind`:
    what it brings, several with commas between them; a composite is an objective with value, gradient and prox of its
    own, an estimator comes with its objective. Returns the folder of the package. Raises ValueError for a name that
    cannot be used, another kind, a compiled loss of what is no objective, or when the folder `name` exists and is not
    empty.
    """
    kinds = [one.strip() for one in kind.split(",")]
    brought = registered_kinds(kinds)
    if native and kinds != ["objective"]:
        raise ValueError(f"a compiled loss is that of an objective; leave out --native, or --kind {kind}")
    values: dict[str, str] = {}
    for word in brought:
        values |= _new_plugin_values(name, word)
    target = Path(folder) / name
    check_folder(target, "give another NAME or --dir, or remove it")
    target.mkdir(parents=True, exist_ok=True)
    try:
        for path, text in (NATIVE_FILES if native else files_of_kinds(kinds)).items():
            file = target / Template(path).substitute(values)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(Template(text).substitute(values), encoding="utf-8", newline="\n")
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)  # half a package is worse than none
        raise
    return target


def _new_plugin_values(name: str, kind: str) -> dict[str, str]:
    """Values that the scaffold of a new plugin fills into its templates, by name; ValueError for a bad name."""
    if not DISTRIBUTION_NAME.fullmatch(name):
        raise ValueError(
            f"NAME {name!r} cannot be a package; use letters, digits and single '-', '_' or '.' between them, "
            "a letter first"
        )
    distribution = normalized_distribution_name(name)
    module = distribution.replace("-", "_")
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module in TAKEN:
        raise ValueError(f"NAME {name!r} would make a module {module!r}, which exists; give another NAME")
    objective, article = module.removeprefix(PREFIX), "an" if kind == "objective" else "a"
    if not objective[0].isalpha():
        raise ValueError(f"NAME {name!r} would make {article} {kind} {objective!r}; let a letter follow {PREFIX!r}")
    found = registry()
    mine = [one for one in found.records if normalized_distribution_name(one.distribution) == distribution]
    own = {known for one in mine for known in getattr(one, kind + "s")}
    taken = {*getattr(found, kind + "s"), *BUILT_IN_NAMES.get(kind, ())}
    if objective in taken and objective not in own:
        raise ValueError(f"NAME {name!r} would make {article} {kind} {objective!r}, which exists; give another NAME")
    # The ending keeps the class apart from everything that its module imports.
    capitals = "".join(part.capitalize() for part in objective.split("_"))
    cls = capitals + kind.capitalize()
    shared = {"distribution": name, "module": module, "objective": objective, "estimator": capitals + "Classifier"}
    return {**shared, "cls": cls, f"cls_{kind}": cls}
