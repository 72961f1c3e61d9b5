"""Exceptions and warnings that mdlearn raises beside the built-in ones, and what errors of unknown names end with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class ConvergenceWarning(UserWarning):
    """A fit stopped before its certified relative gap reached ``tol``."""


class PluginWarning(UserWarning):
    """A plugin could not be loaded or breaks a rule; nothing else is affected."""


class InsufficientMemory(ValueError, MemoryError):
    """A fit would not fit in memory; raised before anything large is allocated."""


class FaultyProblem(ValueError):
    """A problem that a plugin declares contradicts itself: nothing can be certified, by no engine."""


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """End of an error's sentence about an unknown name, where a known one is close; else empty."""
    from difflib import get_close_matches

    names = [one for one in known if isinstance(one, str)]
    if not isinstance(name, str) or name in names:
        return ""
    lowered = {one.lower(): one for one in reversed(names)}
    close = get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return f"; did you mean {lowered[close[0]]!r}?" if close else ""
