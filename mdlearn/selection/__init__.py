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
    "CrossValidation": "mdlearn.selection.results",
    "Path": "mdlearn.selection.paths.path",
    "Selection": "mdlearn.selection.results",
    "TTest": "mdlearn.selection.significance",
    "cross_validate": "mdlearn.selection.cross_validation",
    "fit_path": "mdlearn.selection.paths.fits",
    "paired_test": "mdlearn.selection.significance",
    "select": "mdlearn.selection.grid_search",
    "welch_test": "mdlearn.selection.significance",
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
