"""Deprecated: `mdlearn.data.validation`, whose public names `mdlearn.extend` has."""

from mdlearn.lazy import moved

__getattr__ = moved(__name__, "mdlearn.data.validation")
