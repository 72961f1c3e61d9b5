"""Choosing hyper-parameters: fits along a grid, cross-validation, selection and tests of significance."""

from mdlearn.selection.path import fit_path
from mdlearn.selection.result import Path
from mdlearn.selection.significance import TTest, paired_test, welch_test

__all__ = ["Path", "TTest", "fit_path", "paired_test", "welch_test"]
