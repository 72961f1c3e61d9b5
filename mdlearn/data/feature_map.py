"""Deprecated: `mdlearn.data.features.feature_map`, whose public names `mdlearn.extend` has."""

from mdlearn.lazy import moved

__getattr__ = moved(__name__, "mdlearn.data.features.feature_map")
