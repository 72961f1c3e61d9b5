"""Choosing hyper-parameters: fits along a grid, cross-validation, selection and tests of significance."""

from typing import TYPE_CHECKING

from mdlearn.lazy import lazy_names

if TYPE_CHECKING:
    from mdlearn.selection.cross_validation import cross_validate
    from mdlearn.selection.grid_search import select
    from mdlearn.selection.paths.fits import fit_path
    from mdlearn.selection.paths.path import Path
    from mdlearn.selection.results import CrossValidation, Selection
    from mdlearn.selection.significance import TTest, paired_test, welch_test

_LAZY = {
    "mdlearn.selection.cross_validation": ("cross_validate",),
    "mdlearn.selection.grid_search": ("select",),
    "mdlearn.selection.paths.fits": ("fit_path",),
    "mdlearn.selection.paths.path": ("Path",),
    "mdlearn.selection.results": ("CrossValidation", "Selection"),
    "mdlearn.selection.significance": ("TTest", "paired_test", "welch_test"),
}

__all__ = [
    "CrossValidation",
    "Path",
    "Selection",
    "TTest",
    "cross_validate",
    "fit_path",
    "paired_test",
    "select",
    "welch_test",
]

if not TYPE_CHECKING:  # so that a misspelt name is an error
    __getattr__, __dir__ = lazy_names(__name__, _LAZY)
