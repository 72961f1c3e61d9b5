"""Exceptions and warnings that mdlearn raises beside the built-in ones."""


class ConvergenceWarning(UserWarning):
    """A fit stopped before its certified relative gap reached ``tol``."""


class PluginWarning(UserWarning):
    """A plugin could not be loaded or breaks a rule; nothing else is affected."""


class InsufficientMemory(ValueError, MemoryError):
    """A fit would not fit in memory; raised before anything large is allocated."""
