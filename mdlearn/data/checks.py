"""Deprecated: `mdlearn.data.validation`, whose public names `mdlearn.extend` has."""

from mdlearn.lazy import names_of_moved_module

__getattr__ = names_of_moved_module(__name__, "mdlearn.data.validation")
