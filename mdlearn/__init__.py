"""Margin-distribution classifiers with certified solvers.

``mdlearn.fit("ldm", X, y)`` returns a `Model`. Importing this package imports neither numpy nor anything else that
takes time: that follows at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdlearn.errors import ConvergenceWarning, InsufficientMemory, PluginWarning, UnprovenWarning
from mdlearn.lazy import lazy_names

if TYPE_CHECKING:
    # What `__getattr__` finds at run time, for type checkers: the same names as in _LAZY and _SUBMODULES.
    from mdlearn import datasets, margins, plotting, selection, sources, testing
    from mdlearn import sklearn as sklearn  # not in __all__: `import *` works without scikit-learn
    from mdlearn.api import fit, list_kernels, list_objectives, list_solvers
    from mdlearn.data.kernel_functions import KernelFunction
    from mdlearn.data.row_blocks.source import RowBlocks
    from mdlearn.forms.proof import Certificate
    from mdlearn.model.model import Model
    from mdlearn.objectives.base import Objective
    from mdlearn.objectives.declaration.relative import relative
    from mdlearn.plugins.command import Command
    from mdlearn.plugins.hookspecs import hookimpl
    from mdlearn.plugins.model_files import load
    from mdlearn.plugins.registry import list_plugins
    from mdlearn.reports.page import report
    from mdlearn.selection.cross_validation import cross_validate
    from mdlearn.selection.grid_search import select
    from mdlearn.selection.paths.fits import fit_path
    from mdlearn.selection.paths.path import Path
    from mdlearn.selection.results import CrossValidation, Selection
    from mdlearn.solvers.base import Solver

__version__ = "0.1.0"

_LAZY = {
    "mdlearn.api": ("fit", "list_kernels", "list_objectives", "list_solvers"),
    "mdlearn.data.kernel_functions": ("KernelFunction",),
    "mdlearn.data.row_blocks.source": ("RowBlocks",),
    "mdlearn.forms.proof": ("Certificate",),
    "mdlearn.model.model": ("Model",),
    "mdlearn.objectives.base": ("Objective",),
    "mdlearn.objectives.declaration.relative": ("relative",),
    "mdlearn.plugins.command": ("Command",),
    "mdlearn.plugins.hookspecs": ("hookimpl",),
    "mdlearn.plugins.model_files": ("load",),
    "mdlearn.plugins.registry": ("list_plugins",),
    "mdlearn.reports.page": ("report",),
    "mdlearn.selection.cross_validation": ("cross_validate",),
    "mdlearn.selection.grid_search": ("select",),
    "mdlearn.selection.paths.fits": ("fit_path",),
    "mdlearn.selection.paths.path": ("Path",),
    "mdlearn.selection.results": ("CrossValidation", "Selection"),
    "mdlearn.solvers.base": ("Solver",),
}
_SUBMODULES = ("datasets", "margins", "plotting", "selection", "sklearn", "sources", "testing")

__all__ = [
    "Certificate",
    "Command",
    "ConvergenceWarning",
    "CrossValidation",
    "InsufficientMemory",
    "KernelFunction",
    "Model",
    "Objective",
    "Path",
    "PluginWarning",
    "RowBlocks",
    "Selection",
    "Solver",
    "UnprovenWarning",
    "cross_validate",
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
    "relative",
    "report",
    "select",
    "selection",
    "sources",
    "testing",
]

if not TYPE_CHECKING:  # so that a misspelt name is an error
    __getattr__, __dir__ = lazy_names(__name__, {**_LAZY, **{f"mdlearn.{name}": (name,) for name in _SUBMODULES}})
