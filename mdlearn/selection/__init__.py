"""Choosing hyper-parameters: fits along a grid, cross-validation, selection and tests of significance."""

from mdlearn.selection.choosing import select
from mdlearn.selection.path import fit_path
from mdlearn.selection.result import Path
from mdlearn.selection.significance import TTest, paired_test, welch_test
from mdlearn.selection.validated import CrossValidation, Selection
from mdlearn.selection.validation import cross_validate

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
