"""Types: what type checkers see of the package is all of it, and the program that mypy checks runs."""

from __future__ import annotations

import ast
import importlib
import re

import pytest
import typed_uses
from documents import PACKAGE, ROOT

import mdlearn

STUBS = sorted((PACKAGE / "_solvers").glob("*.pyi"))


def test_the_typed_program_runs(tmp_path):
    model, loaded = typed_uses.main(tmp_path)
    assert (model.predict([[1.0, 1.0]]) == loaded.predict([[1.0, 1.0]])).all()
    assert [cls.name for cls in typed_uses.mdlearn_objectives()] == ["wide"]


@pytest.mark.parametrize("package", ["", "margins", "plotting", "selection"])
def test_type_checkers_know_every_lazy_name(package):
    front = importlib.import_module(f"mdlearn.{package}".rstrip("."))
    (block,) = [
        node for node in ast.parse((PACKAGE / package / "__init__.py").read_text(encoding="utf-8")).body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]  # fmt: skip
    told = {(alias.name, node.module) for node in block.body for alias in node.names}
    modules = [] if package else mdlearn._SUBMODULES
    lazy = {(name, module) for module, names in front._LAZY.items() for name in names}
    assert told == {*lazy, *((name, "mdlearn") for name in modules)}
    assert (PACKAGE / "py.typed").exists()


def offered(path):
    """Names of functions and classes at the top level of a .pyx file; of functions, those of the parameters, too."""
    text = re.sub(r"\[[^\]]*\]", "", path.read_text(encoding="utf-8"))  # memoryviews and fused types without shapes
    for name in re.findall(r"^(?:cdef )?class (\w+)", text, re.MULTILINE):
        yield name, None
    for name, parameters in re.findall(r"^def (\w+)\((.*?)\)", text, re.MULTILINE | re.DOTALL):
        yield (
            name,
            [one.replace(" not None", "").split("=")[0].split()[-1] for one in parameters.split(",") if one.strip()],
        )


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.stem)
def test_stubs_of_kernels_are_complete(stub):
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    told = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    source = ROOT / "mdlearn" / "_solvers" / f"{stub.stem}.pyx"
    found = {name: names for name, names in offered(source) if not name.startswith("_")}
    assert found and set(told) == set(found)
    for name, names in found.items():
        if names is not None:
            assert [arg.arg for arg in told[name].args.args] == names, name


def test_every_kernel_has_a_stub():
    sources = {path.stem for path in (ROOT / "mdlearn" / "_solvers").glob("*.pyx")}
    assert sources == {path.stem for path in STUBS}
