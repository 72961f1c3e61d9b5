"""Margin-distribution classifiers with certified solvers.

``mdlearn.fit("ldm", X, y)`` returns a `Model`. Importing this package imports numpy and pluggy only; the rest follows
at first use.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy  # noqa: F401  (measured baseline of the import time; everything below is loaded at first use)

from mdlearn.errors import ConvergenceWarning, InsufficientMemory, PluginWarning
from mdlearn.plugins.hookspecs import hookimpl

__version__ = "0.1.0"

_LAZY = {
    "fit": "mdlearn.api",
    "fit_path": "mdlearn.selection.path",
    "list_objectives": "mdlearn.api",
    "list_solvers": "mdlearn.api",
    "list_kernels": "mdlearn.api",
    "list_plugins": "mdlearn.plugins.manager",
    "load": "mdlearn.plugins.files",
    "Objective": "mdlearn.objectives.base",
    "KernelFunction": "mdlearn.data.kernels",
    "Solver": "mdlearn.solvers.base",
    "Model": "mdlearn.model.model",
    "Certificate": "mdlearn.forms.proof",
    "Path": "mdlearn.selection.result",
}
_SUBMODULES = ("datasets", "margins", "plotting", "selection", "testing")

__all__ = [
    "Certificate",
    "ConvergenceWarning",
    "InsufficientMemory",
    "KernelFunction",
    "Model",
    "Objective",
    "Path",
    "PluginWarning",
    "Solver",
    "datasets",
    "fit",
    "fit_path",
    "hookimpl",
    "list_kernels",
    "list_objectives",
    "list_plugins",
    "list_solvers",
    "load",
    "margins",
    "plotting",
    "selection",
    "testing",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    if name in _SUBMODULES:
        return importlib.import_module(f"mdlearn.{name}")
    raise AttributeError(f"module 'mdlearn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
