"""Fits along a grid of hyper-parameters."""

from mdlearn.selection.path import fit_path
from mdlearn.selection.result import Path

__all__ = ["Path", "fit_path"]
