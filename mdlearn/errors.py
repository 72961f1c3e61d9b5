"""Exceptions and warnings that mdlearn raises beside the built-in ones."""

import sys


class ConvergenceWarning(UserWarning):
    """A fit stopped before its certified relative gap reached ``tol``."""


def convergence_warning() -> type[ConvergenceWarning]:
    """What fits warn with: once `mdlearn.sklearn` is loaded, a kind that is scikit-learn's ConvergenceWarning, too."""
    loaded = sys.modules.get("mdlearn.sklearn.reports")
    found: type[ConvergenceWarning] = getattr(loaded, "EstimatorConvergenceWarning", ConvergenceWarning)
    return found


class PluginWarning(UserWarning):
    """A plugin could not be loaded or breaks a rule; nothing else is affected."""


class InsufficientMemory(ValueError, MemoryError):
    """A fit would not fit in memory; raised before anything large is allocated."""
