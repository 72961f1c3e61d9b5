"""Every public name has a docstring that documents its parameters, and none more, what it returns and raises."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re

import pytest
from docstrings import entries, faults_of_class, faults_of_function, members, names_of, sections

import mdlearn
from mdlearn.plugins.registry import registry

MODULES = ("mdlearn", "mdlearn.margins", "mdlearn.datasets", "mdlearn.plotting", "mdlearn.testing")
OPTIONAL = ("mdlearn.selection", "mdlearn.sklearn")
"""Modules that may be absent, or need scikit-learn."""
FOR_PLUGINS = {
    "mdlearn.objectives.base": ("Parameter", "Setting", "Terms"),
    "mdlearn.forms.losses": ("HingeTerm", "LogisticTerm"),
    "mdlearn.forms.given": ("GivenLoss",),
    "mdlearn.forms.native": ("NativeFunction",),
    "mdlearn.forms.proof": ("State",),
    "mdlearn.forms.composite": ("Composite",),
    "mdlearn.forms.joint.composite_point": ("CompositeEvaluation",),
    "mdlearn.forms.margin": ("Point",),
    "mdlearn.data.features.feature_map": ("FeatureMap",),
    "mdlearn.solvers.base": ("Claim", "Report"),
    "mdlearn.output_files": ("OutputFile",),
}
"""Names that docs/plugins.md uses beside those of the package itself."""
WRITTEN = {
    "Parameter": None,
    "Setting": None,
    "GivenLoss": {"terms"},
    "Composite": {"at", "lipschitz", "penalty", "prox", "least", "residual"},
    "FeatureMap": {"columns", "width", "features", "encoded", "decoded", "attributes", "shown", "rows", "scores"},
}
"""Of these classes, what plugins write or call; None: everything. Other methods are for engines and the certificate."""


def public():
    """(where, object) of every public function and class."""
    found = {}
    modules = [importlib.import_module(name) for name in MODULES]
    for name in OPTIONAL:
        try:
            modules.append(importlib.import_module(name))
        except ImportError:
            continue
    for module in modules:
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value) or (inspect.isclass(value) and value.__module__.startswith("mdlearn")):
                found[f"{module.__name__}.{name}"] = value
    for name, titles in FOR_PLUGINS.items():
        found |= {f"{name}.{title}": getattr(importlib.import_module(name), title) for title in titles}
    return found


PUBLIC = public()
FUNCTIONS = {where: value for where, value in PUBLIC.items() if inspect.isfunction(value)}
CLASSES = {where: value for where, value in PUBLIC.items() if inspect.isclass(value)}


def fields(cls):
    """Parameters of a constructor written for users, fields of a dataclass."""
    if dataclasses.is_dataclass(cls):
        return [field.name for field in dataclasses.fields(cls) if not field.name.startswith("_")]
    own, told = vars(cls).get("__init__"), sections(cls.__doc__)
    made_elsewhere = "Attributes" in told and "Parameters" not in told  # results, which users do not make
    return [name for name in names_of(inspect.signature(own)) if name != "given"] if own and not made_elsewhere else []


@pytest.mark.parametrize("where", FUNCTIONS)
def test_functions(where):
    assert faults_of_function(FUNCTIONS[where], where) == []


@pytest.mark.parametrize("where", CLASSES)
def test_classes(where):
    cls = CLASSES[where]
    inside = where.rpartition(".")[0] in FOR_PLUGINS
    chosen = WRITTEN.get(cls.__name__, set()) if inside else None
    assert faults_of_class(cls, where, fields(cls), chosen) == []


@pytest.mark.parametrize("name", [name for name, cls in registry().objectives.items() if "mdlearn." in cls.__module__])
def test_objectives(name):
    cls = registry().objectives[name]
    told = entries(sections(cls.__doc__).get("Parameters", []))
    assert list(told) == list(cls.parameters)
    for key, text in told.items():
        default = cls.parameters[key].default
        if default is None:
            assert "optional" in text or "default" in text, key
        elif isinstance(default, str):
            assert f'default "{default}"' in text, key
        elif callable(default):
            assert "default " in text, key
        else:
            assert float(re.search(r"default (\S+)", text).group(1)) == default, key
    assert "paper" in cls.__doc__ or "References" in cls.__doc__ or "(" in inspect.getmodule(cls).__doc__
    # What an objective overrides says what it does; parameters are those of the base class.
    for title, value in members(cls).items():
        if inspect.isfunction(value):
            assert inspect.getdoc(value), title


def test_the_modules_of_the_package_say_what_they_are():
    assert len(FUNCTIONS) > 20 and len(CLASSES) > 15
    for name in mdlearn._SUBMODULES:
        assert importlib.import_module(f"mdlearn.{name}").__doc__
