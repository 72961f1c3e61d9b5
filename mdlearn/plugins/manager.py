"""The registry: asks every hook implementation once, one by one, and keeps what it returned by name."""

from __future__ import annotations

import functools
import importlib.metadata
import warnings
from typing import Any

import pluggy

from mdlearn.errors import PluginWarning
from mdlearn.plugins import hookspecs

GROUP = "mdlearn"


class Registry:
    """Objectives and solvers by name.

    Attributes
    ----------
    objectives, solvers : dict
        Name -> class, built-in ones first.
    """

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager("mdlearn")
        self.manager.add_hookspecs(hookspecs)
        self._register_builtins()
        self._register_entry_points()
        self.objectives = self._collect("mdlearn_objectives")
        self.solvers = self._collect("mdlearn_solvers")

    def _register_builtins(self) -> None:
        import mdlearn.objectives
        import mdlearn.solvers

        self.manager.register(mdlearn.objectives, "mdlearn:objectives")
        self.manager.register(mdlearn.solvers, "mdlearn:solvers")

    def _register_entry_points(self) -> None:
        # pluggy's own loader stops at the first plugin that fails to import; here the others go on.
        for entry in importlib.metadata.entry_points(group=GROUP):
            title = f"{entry.dist.name if entry.dist else 'unknown'}:{entry.name}"
            try:
                self.manager.register(entry.load(), title)
            except Exception as error:
                warnings.warn(f"plugin {title} could not be loaded: {error!r}", PluginWarning, stacklevel=2)

    def _collect(self, hook: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        # Built-in names come first, whatever order (tryfirst, trylast) the plugins ask for.
        implementations = getattr(self.manager.hook, hook).get_hookimpls()
        for implementation in sorted(implementations, key=lambda one: not one.plugin_name.startswith("mdlearn:")):
            title = f"hook {hook} of plugin {implementation.plugin_name}"
            try:
                classes = list(implementation.function())
            except Exception as error:
                warnings.warn(f"{title} failed: {error!r}", PluginWarning, stacklevel=2)
                continue
            for cls in classes:
                name = getattr(cls, "name", None)
                if not isinstance(name, str):
                    warnings.warn(f"{title} returned {cls!r}, which has no name", PluginWarning, stacklevel=2)
                elif found.setdefault(name, cls) is not cls:
                    warnings.warn(f"{title} failed: the name {name!r} is already taken", PluginWarning, stacklevel=2)
        return found


@functools.cache
def registry() -> Registry:
    """The registry, made at first use."""
    return Registry()


def find(kind: str, given: Any) -> Any:
    """Return the class (or instance) that `given` names; `kind` is "objective" or "solver".

    Raises
    ------
    ValueError, TypeError
        For an unknown name; the message lists the known ones.
    """
    known = getattr(registry(), kind + "s")
    if isinstance(given, str):
        if given not in known:
            raise ValueError(f"{kind} {given!r} is unknown; known {kind}s: {', '.join(known)}")
        return known[given]
    if hasattr(given, "name") and hasattr(given, "terms" if kind == "objective" else "iterate"):
        return given
    raise TypeError(f"{kind} needs to be a name ({', '.join(known)}), a class or an instance; got {given!r}")
