"""Imports run one way, as docs/architecture.md says, and load no more than they need."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import re
import subprocess
import sys

import pytest
from documents import ARCHITECTURE, PACKAGE, PROJECT, ROOT, blocks, syntax_trees

import mdlearn
import mdlearn.extend

THIRD_PARTY = {"numpy", "scipy", "pluggy", "threadpoolctl"}


def modules():
    """Name -> tree of every module; of the kernels, the file with their annotations."""
    stubs = {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.pyi")}
    found = {}
    for path, tree in sorted({**syntax_trees(), **stubs}.items()):
        parts = ["mdlearn", *path.relative_to(PACKAGE).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = tree
    return found


MODULES = modules()


def imports(nodes):
    """Absolute names that import statements ask for; a name taken from a package may be a module of it."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in MODULES else node.module


def component(name):
    """Entry of the table of layers that a module belongs to: the longest one that fits."""
    short = name.removeprefix("mdlearn.")
    fits = [entry for line in LAYERS for entry in line if f"{short}.".startswith(f"{entry}.")]
    assert fits, f"docs/architecture.md has no layer for {name}"
    return max(fits, key=len)


LAYERS = [line.split(", ") for line in blocks(ARCHITECTURE.split("<!-- layers -->")[1], "")[0].splitlines()]
HEIGHT = {entry: -i for i, line in enumerate(LAYERS) for entry in line}


def crossings():
    """(importing module, imported module) over the borders of components, imports inside functions included."""
    for name, tree in MODULES.items():
        if name == "mdlearn":
            continue
        for asked in imports(ast.walk(tree)):
            if asked.split(".")[0] == "mdlearn" and component(asked) != component(name):
                yield name, asked


def test_the_table_of_layers_is_complete():
    entries = {entry.split(".")[0] for entry in HEIGHT}
    assert entries == {name.split(".")[1] for name in MODULES if "." in name}
    assert {"data", "forms", "solvers", "api"} <= entries


def test_imports_run_one_way():
    pairs = list(crossings())
    assert len(pairs) > 30
    wrong = [(name, asked) for name, asked in pairs if HEIGHT[component(asked)] >= HEIGHT[component(name)]]
    assert not wrong, f"imports against the order of docs/architecture.md: {wrong}"


def test_the_package_itself_loads_the_last_layer_only():
    eager = [asked for asked in imports(MODULES["mdlearn"].body) if asked.startswith("mdlearn")]
    assert {component(asked) for asked in eager} == {"errors", "lazy"}


def test_kernels_import_nothing_of_the_rest():
    sources = [*(ROOT / "mdlearn" / "_solvers").glob("*.pyx"), *(ROOT / "mdlearn" / "_solvers").glob("*.pxd")]
    assert sources
    for path in sources:
        asked = re.findall(r"^\s*(?:from|import|cimport)\s+(\S+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        own = ("mdlearn._solvers", "libc", "cpython", "cython")
        assert all(name.startswith(own) for name in asked), (path.name, asked)


def top_level(tree):
    """Statements that run at import: everything outside functions."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))


def packages_of(name):
    """The packages whose code runs before a module's: ("a", "a.b") of a.b.c."""
    parts = name.split(".")
    return {".".join(parts[:i]) for i in range(1, len(parts))}


def runs_first(name, tree):
    """Modules whose code the import of a module asks for, the packages of those included that it is not in itself."""
    typing = [node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    never = {id(node) for block in typing for node in ast.walk(block)}
    asked = {one for one in imports(node for node in top_level(tree) if id(node) not in never) if one in MODULES}
    around = {package for one in asked for package in packages_of(one)} - packages_of(name)
    return (asked | around) - {name}


def test_every_module_imports_alone():
    """No module's import comes back to itself: whichever comes first, the others are whole when it needs them."""
    waiting = {name: runs_first(name, tree) for name, tree in MODULES.items()}
    assert sum(map(len, waiting.values())) > 1000
    while waiting:
        ready = {name for name, asked in waiting.items() if not asked & waiting.keys()}
        assert ready, f"imports in a circle among {sorted(waiting)}"
        waiting = {name: asked for name, asked in waiting.items() if name not in ready}


def test_no_circle_hides_in_a_function():
    """Imports inside functions count as well: what a module needs, at whatever time, never needs it back."""
    needed = {name: {one for one in imports(ast.walk(tree)) if one in MODULES} for name, tree in MODULES.items()}
    del needed["mdlearn"]
    assert any("mdlearn.objectives.ldm" in asked for asked in needed.values())
    while needed:
        ready = {name for name, asked in needed.items() if not asked & needed.keys()}
        assert ready, f"imports in a circle among {sorted(needed)}"
        needed = {name: asked for name, asked in needed.items() if name not in ready}


def test_packages_are_entered_from_one_side():
    """By themselves, where they import their modules: a thread that enters by a module holds its lock meanwhile."""
    fronts = {
        package: {one for one in runs_first(package, tree) if one.startswith(f"{package}.")}
        for package, tree in MODULES.items()
        if package != "mdlearn"
    }
    fronts = {package: own for package, own in fronts.items() if own}
    assert "mdlearn.datasets" in fronts and "mdlearn.selection" not in fronts
    sides = [
        (name, asked)
        for name, tree in MODULES.items()
        for asked in imports(ast.walk(tree))
        for package in packages_of(asked) & fronts.keys()
        if not f"{name}.".startswith(f"{package}.")
    ]
    assert not sides, f"modules of packages that import them themselves: {sides}"
    deep = [
        (name, node.module)
        for name, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and re.match(r"scipy\.\w+\.", node.module or "")
    ]
    assert not deep, f"modules of scipy's packages: {deep}"


def test_lazy_names_hide_no_module():
    """Importing a module makes it an attribute of its package, in the place of a name that has not been loaded yet."""
    for package in ("mdlearn", "mdlearn.margins", "mdlearn.plotting", "mdlearn.selection"):
        front = importlib.import_module(package)
        assert not {name for names in front._LAZY.values() for name in names if f"{package}.{name}" in MODULES}
        assert set(front.__all__) <= set(dir(front)) and all(hasattr(front, name) for name in front.__all__)


def test_module_level_imports_are_the_declared_dependencies():
    declared = {re.match(r"[\w-]+", requirement).group() for requirement in PROJECT["dependencies"]}
    assert declared == THIRD_PARTY
    allowed = THIRD_PARTY | sys.stdlib_module_names | {"mdlearn"}
    for name, tree in MODULES.items():
        also = {"sklearn"} if name.startswith("mdlearn.sklearn") else set()
        strange = {asked.split(".")[0] for asked in imports(top_level(tree))} - allowed - also
        assert not strange, f"{name} imports {strange} at module level"


def test_import_mdlearn_loads_nothing_else():
    code = (
        "import sys, importlib, typing; before = set(sys.modules); import mdlearn; "
        "print(*sorted(set(sys.modules) - before - {'__future__'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["mdlearn", "mdlearn.errors", "mdlearn.lazy"]


def test_no_module_hides_a_public_name():
    for found in pkgutil.walk_packages(mdlearn.__path__, "mdlearn."):
        optional = found.name.startswith("mdlearn.sklearn") and importlib.util.find_spec("sklearn") is None
        if found.name != "mdlearn.__main__" and not optional:
            importlib.import_module(found.name)
    assert callable(mdlearn.fit) and not inspect.ismodule(mdlearn.fit)
    assert mdlearn.list_objectives() and mdlearn.list_solvers()
    model = mdlearn.fit("svm", [[0.0], [1.0]], [0, 1])
    assert isinstance(model, mdlearn.Model) and isinstance(model.certificate, mdlearn.Certificate)
    assert all(hasattr(mdlearn, name) for name in mdlearn.__all__)
    assert sorted(mdlearn.__all__) == mdlearn.__all__


MOVED = {
    "mdlearn.data.checks": "check_data",
    "mdlearn.data.feature_map": "FeatureMap",
    "mdlearn.data.features": "LinearFeatures",
    "mdlearn.data.kernels": "Kernel",
    "mdlearn.data.streams": "Portion",
    "mdlearn.solvers.state": "report_of",
}


@pytest.mark.parametrize("path", MOVED)
def test_deprecated_paths_warn_and_work(path):
    name = MOVED[path]
    with pytest.warns(DeprecationWarning, match=f"^{path} is mdlearn.* import {name} from mdlearn.extend$"):
        found = getattr(importlib.import_module(path), name)
    assert found is getattr(mdlearn.extend, name)
    with pytest.raises(AttributeError):
        _ = importlib.import_module(path).no_such_name


def test_the_name_of_before_of_what_a_composite_evaluates():
    with pytest.warns(DeprecationWarning, match="Look is CompositeEvaluation now"):
        found = importlib.import_module("mdlearn.forms.composite").Look
    assert found is mdlearn.extend.CompositeEvaluation


KEPT = ("forms.losses", "forms.given", "forms.native", "forms.margin", "forms.problem", "forms.proof")
KEPT += ("forms.composite", "objectives.base", "solvers.base")


@pytest.mark.parametrize("path", KEPT)
def test_paths_that_plugins_used_stay(path):
    module = importlib.import_module(f"mdlearn.{path}")
    assert module.__name__ == f"mdlearn.{path}" and len(vars(module)) > 8


def test_extend_has_what_it_lists():
    assert mdlearn.extend.API == 1
    assert all(hasattr(mdlearn.extend, name) for name in mdlearn.extend.__all__)
    assert sorted(mdlearn.extend.__all__) == sorted(set(mdlearn.extend.__all__))


def test_plugins_import_one_module():
    """Those shipped here, their tests too: mdlearn itself, mdlearn.extend and mdlearn.testing."""
    sources = [path for path in (ROOT / "plugins").glob("*/**/*.py") if "build" not in path.parts]
    if not sources:
        pytest.skip("plugins are beside the package in a checkout only")
    named = []
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and not node.level:
                named.append((node.module, path))
            elif isinstance(node, ast.Import):
                named += [(one.name, path) for one in node.names]
    asked = {(name, path) for name, path in named if name.split(".")[0] == "mdlearn"}
    assert "mdlearn.extend" in {name for name, _ in asked}
    assert not {one for one in asked if one[0] not in ("mdlearn", "mdlearn.extend", "mdlearn.testing")}
