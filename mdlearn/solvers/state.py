"""Deprecated: `mdlearn.solvers.common.primal_dual`, whose public names `mdlearn.extend` has."""

from mdlearn.lazy import moved

__getattr__ = moved(__name__, "mdlearn.solvers.common.primal_dual")
