"""What docstrings say, read plainly: sections of numpydoc, names that they document, names that they should."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap

SECTIONS = (
    "Parameters Returns Yields Raises Warns See Attributes Methods Notes References Examples Other".split()
)  # first words


def sections(doc):
    """Title -> lines of every section of a docstring; the text before them is under ''."""
    found, title = {"": []}, ""
    lines = inspect.cleandoc(doc).splitlines()
    for line, below in zip(lines, [*lines[1:], ""]):
        if re.fullmatch(r"-{3,}", below) and line.strip() and line.split()[0] in SECTIONS:
            title = line.strip()
            found[title] = []
        elif not (re.fullmatch(r"-{3,}", line) and not found[title]):
            found[title].append(line)
    return found


def entries(lines):
    """Name -> what is said of it, for the entries of a section; several names may share one."""
    found = {}
    for line in lines:
        if line and not line[0].isspace():
            names, _, kind = line.partition(" : ")
            shared = [kind]
            found |= {name.strip().lstrip("*"): shared for name in names.split(",")}
        elif line.strip():
            shared.append(line.strip())
    return {name: " ".join(text) for name, text in found.items()}


def raised(function):
    """Names of exceptions that a function raises in its own body, not those that only say what is not written yet."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError):
        return set()
    calls = (node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None)
    names = {getattr(call.func if isinstance(call, ast.Call) else call, "id", "") for call in calls}
    return {name for name in names if name.endswith(("Error", "Memory"))} - {"NotImplementedError"}


def names_of(signature):
    return [name for name in signature.parameters if name not in ("self", "cls")]


def faults_of_function(function, where):
    """What is wrong with the docstring of a function or method."""
    doc = inspect.getdoc(function)
    if not doc:
        return [f"{where} has no docstring"]
    told, signature = sections(doc), inspect.signature(function)
    faults = faults_of_summary(doc, where)
    documented, given = list(entries(told.get("Parameters", []))), names_of(signature)
    if sorted(documented) != sorted(given):  # several parameters may share an entry, out of their order
        faults.append(f"{where} documents the parameters {documented}; it has {given}")
    silent = signature.return_annotation in ("None", None, inspect.Signature.empty)
    if silent == bool({"Returns", "Yields"} & told.keys()):
        faults.append(
            f"{where} returns {signature.return_annotation}: a section Returns {'too many' if silent else 'is missing'}"
        )
    errors = " ".join(told.get("Raises", []))
    faults += [f"{where} raises {name} and does not say so" for name in sorted(raised(function)) if name not in errors]
    return faults


def faults_of_property(found, where):
    """What is wrong with the docstring of a property: a plain text that names its errors."""
    doc = inspect.getdoc(found)
    if not doc:
        return [f"{where} has no docstring"]
    return faults_of_summary(doc, where) + [
        f"{where} raises {name} and does not say so" for name in sorted(raised(found.fget)) if name not in doc
    ]


def faults_of_summary(doc, where):
    first = doc.split("\n\n")[0]
    return (
        []
        if first.rstrip().endswith((".", ":", "?", "``")) and "\n" not in first
        else [f"{where}: no first line that stands alone"]
    )


def members(cls):
    """Public members that a class or a base of ours defines, by name."""
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__.split(".")[0] == "mdlearn":
            found |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    return found


def faults_of_class(cls, where, fields=(), chosen=None):
    """What is wrong with the docstrings of a class: its parameters, its fields, its public methods (or chosen ones)."""
    doc = cls.__doc__
    if not doc:
        return [f"{where} has no docstring"]
    told, faults = sections(doc), faults_of_summary(inspect.cleandoc(doc), where)
    documented = [*entries(told.get("Parameters", [])), *entries(told.get("Attributes", []))]
    faults += [f"{where} does not document {name}" for name in fields if name not in documented]
    for name, value in members(cls).items():
        if chosen is not None and name not in chosen:
            faults += [] if not callable(value) or inspect.getdoc(value) else [f"{where}.{name} has no docstring"]
        elif isinstance(value, property):
            faults += faults_of_property(value, f"{where}.{name}")
        elif isinstance(value, (staticmethod, classmethod)):
            faults += faults_of_function(getattr(cls, name), f"{where}.{name}")
        elif inspect.isfunction(value):
            faults += faults_of_function(value, f"{where}.{name}")
    return faults
