"""Deprecated: `mdlearn.data.row_blocks.source`, whose public names `mdlearn.extend` has."""

from mdlearn.lazy import moved

__getattr__ = moved(__name__, "mdlearn.data.row_blocks.source")
