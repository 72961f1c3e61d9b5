"""The registry: asks every plugin once, keeps what they bring by name, and says what was refused and why."""

from __future__ import annotations

import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pluggy

from mdlearn.data.features.kernels import DEFAULTS, PARAMETERS
from mdlearn.data.kernel_functions import KernelFunction
from mdlearn.data.row_blocks.source import RowBlocks
from mdlearn.errors import (
    PLUGIN_OF_MODULE,
    PluginWarning,
    call_with_error_notes,
    came,
    did_you_mean,
    faulty,
    is_foreign,
)
from mdlearn.objectives.base import FIT_ARGUMENTS, Objective
from mdlearn.plugins import hookspecs
from mdlearn.plugins.command import BUILT_IN
from mdlearn.plugins.discovery import (
    DISABLE,
    disabled_distributions,
    normalized_distribution_name,
    plugin_entry_points,
)
from mdlearn.plugins.loading import KINDS, LoadedPlugin, load_plugin
from mdlearn.plugins.records import PluginRecord
from mdlearn.solvers.base import Solver

BUILT_IN_PACKAGES = frozenset({"builtins", "numpy", "scipy", "pandas", "polars"})
"""Where the kinds of X are from that no plugin is asked about."""
SHOWN_LETTERS = 80
"""Letters of a wrong argument that an error shows."""


class Registry:
    """Registry of plugins: objectives, solvers, kernels and sources of row blocks by name.

    `objectives`, `solvers`, `kernels`, `sources`, `commands`: name -> class, built-in ones first; a name that two
    plugins offer is in none. Built-in kernels and commands are no classes here, their names stand for themselves; no
    source is built in. `records`: one per entry point, built-in ones not included; `conflicts`: (kind, name) -> a
    sentence that names the plugins which offer the same name; `unreported`: warnings that nobody has been given yet.
    """

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager("mdlearn")
        self.manager.add_hookspecs(hookspecs)
        self._register_builtins()
        self.objectives = self._builtins("objective")
        self.solvers = self._builtins("solver")
        self.kernels: dict[str, Any] = dict(zip(PARAMETERS, PARAMETERS))
        self.sources: dict[str, Any] = {}
        self.commands: dict[str, Any] = dict(zip(BUILT_IN, BUILT_IN))
        self.conflicts: dict[tuple[str, str], str] = {}
        off = disabled_distributions()
        plugins = [LoadedPlugin(source, off(source.distribution)) for source in plugin_entry_points()]
        for plugin in plugins:
            if not plugin.disabled:
                load_plugin(self.manager, plugin)
                _register_modules(plugin)
        for kind in KINDS:
            self._settle(kind, plugins)
        self.records = [plugin.record({kind: self.registered(kind) for kind in KINDS}) for plugin in plugins]
        faults = [f"plugin {plugin.source}: {'; '.join(plugin.faults)}" for plugin in plugins if plugin.faults]
        self.unreported = deque([*faults, *self.conflicts.values()])

    def _register_builtins(self) -> None:
        import mdlearn.objectives
        import mdlearn.solvers

        self.manager.register(mdlearn.objectives, "mdlearn:objectives")
        self.manager.register(mdlearn.solvers, "mdlearn:solvers")

    def _builtins(self, kind: str) -> dict[str, Any]:
        implementations = getattr(self.manager.hook, f"mdlearn_{kind}s").get_hookimpls()
        return {cls.name: cls for one in implementations for cls in one.function()}

    def registered(self, kind: str) -> dict[str, Any]:
        """Everything of a kind by name."""
        found: dict[str, Any] = getattr(self, kind + "s")
        return found

    def _settle(self, kind: str, plugins: list[LoadedPlugin]) -> None:
        """Give every name that one class alone has to that class; built-in ones keep theirs."""
        known = self.registered(kind)
        offers: dict[str, list[tuple[LoadedPlugin, Any]]] = {}
        for plugin in plugins:
            for cls in plugin.offered[kind]:
                offers.setdefault(cls.name, []).append((plugin, cls))
        for name, found in offers.items():
            owners = list(dict.fromkeys(str(plugin.source) for plugin, _ in found))
            if name in known:
                # A class that has moved into mdlearn since, or one whose author did not know the name.
                fault = f"the {kind} name {name!r} is built in; upgrade the plugin, or give yours another name"
                for plugin in (plugin for plugin, cls in found if cls is not known[name]):
                    plugin.faults.append(fault)
            elif all(cls is found[0][1] for _, cls in found):
                known[name] = found[0][1]
            elif len(owners) == 1:
                found[0][0].faults.append(f"it offers several {kind}s with the name {name!r}")
            else:
                sentence = (
                    f"{kind} {name!r} is offered by {' and by '.join(owners)}; uninstall all but one, or disable them "
                    f"by name in {DISABLE}"
                )
                self.conflicts[kind, name] = sentence
                for plugin in {id(plugin): plugin for plugin, _ in found}.values():
                    plugin.clashes.append(sentence)

    def report(self) -> None:
        """Warn of every fault not told yet. When warnings are errors, the next call goes on with the next one."""
        while self.unreported:
            try:
                message = self.unreported.popleft()
            except IndexError:  # another thread was faster
                return
            warnings.warn(message, PluginWarning, stacklevel=4)

    def unknown(self, kind: str, name: str) -> str:
        """The sentence for a name that is not here: the known names, and what became of plugins that are not whole."""
        if (kind, name) in self.conflicts:
            return self.conflicts[kind, name]
        known = (", ".join(self.registered(kind)) or "none") + (" or a callable k(A, B)" if kind == "kernel" else "")
        refused = [str(record) for record in self.records if record.state != "ok"]
        plugins = f"; plugins with something missing: {'; '.join(refused)}" if refused else ""
        return f"{kind} {name!r} is unknown; known {kind}s: {known}{plugins}{did_you_mean(name, self.registered(kind))}"


class _ProcessRegistry:
    """Registry of this process: of threads that ask first, each makes one, and the first complete one is kept.

    No lock is held meanwhile. Making it imports the plugins, and a thread that waited for a lock could be importing one
    itself: Python lets no other thread have a module that is being imported, so each would wait for the other.
    """

    def __init__(self) -> None:
        self.local = threading.local()
        self.made: list[Registry] = []

    def __call__(self) -> Registry:
        if not self.made:
            self.made.append(self._make())  # one operation: whoever comes later finds that of the first
        return self.made[0]

    def _make(self) -> Registry:
        if getattr(self.local, "busy", False):  # a plugin asks
            raise RuntimeError(
                "plugins are being loaded; a plugin cannot fit or ask for objectives and solvers while it is imported "
                "or its hooks are called"
            )
        self.local.busy = True
        try:
            return Registry()
        finally:
            self.local.busy = False


_once = _ProcessRegistry()


def registry() -> Registry:
    """Registry of this process, made at first use; faults of plugins are reported once, as PluginWarning."""
    found = _once.made[0] if _once.made else _once()
    if found.unreported:
        found.report()
    return found


def registered_commands() -> dict[str, Any]:
    """Subcommands in the registry by name; faults of plugins wait until a command asks for something else."""
    return _once().commands


def list_plugins(distribution: str | None = None) -> list[PluginRecord]:
    """List the installed plugins of the registry, sorted by distribution: what each provides and what is wrong.

    Parameters
    ----------
    distribution : str, optional
        Name of the one to list, spelt as package indexes allow. Default: all.

    Returns
    -------
    list of PluginRecord
        One per entry point: distribution, version, entry, objectives, solvers, kernels, sources, state ("ok", "error",
        "conflict", "disabled"), error, commands. What is built in is not among them.

    Raises
    ------
    ValueError
        When no plugin of that name is installed.
    """
    records = registry().records
    if distribution is None:
        return list(records)
    asked = normalized_distribution_name(distribution)
    found = [one for one in records if normalized_distribution_name(one.distribution) == asked]
    if not found:
        names = list(dict.fromkeys(one.distribution for one in records))
        hint = did_you_mean(distribution, names)
        raise ValueError(f"plugin {distribution!r} is not installed; installed: {', '.join(names) or 'none'}{hint}")
    return found


def find(kind: str, given: Any) -> Any:
    """Find an objective, solver or kernel in the registry by name; a class, instance or callable is returned as it is.

    `given`: a name; for objectives and solvers also a class or an instance, for kernels a callable k(A, B). Returns the
    class or instance; the name itself of a built-in kernel; the callable. Raises ValueError or TypeError for an unknown
    name, with the known ones and the plugins that could not be used, and for one that several plugins offer.
    """
    found = registry()
    known: dict[str, Any] = getattr(found, kind + "s")
    if isinstance(given, str):
        if given not in known:
            raise ValueError(found.unknown(kind, given))
        return known[given]
    usable, told = _FORMS[kind]
    if usable(given):
        return given
    shown = repr(given)
    if len(shown) > SHOWN_LETTERS:  # rows, where arguments were swapped
        shown = f"an object of type {type(given).__name__}"
    if kind == "kernel" and isinstance(given, type) and issubclass(given, KernelFunction):
        shown = f"a class, which goes by its name, {given.name!r}, once its plugin is installed"
    raise TypeError(f"{kind} needs to be a name ({', '.join(known)}), {told}; got {shown}")


def find_row_blocks(X: Any, y: Any, sample_weight: Any) -> RowBlocks | None:
    """Find what row blocks X, y and weights of a fit are: a source of them, or of a kind in the registry; else None."""
    if type(X) is np.ndarray:
        return None
    if y is None and _is_source_of_row_blocks(X):
        if sample_weight is not None:
            raise ValueError("with row blocks a weight is part of its block: give (X, y, weight), not sample_weight")
        return X if isinstance(X, RowBlocks) else RowBlocks(X)
    kind = type(X[0]) if isinstance(X, Sequence) and X else type(X)
    if kind.__module__.partition(".")[0] in BUILT_IN_PACKAGES:
        return None
    for source in registry().sources.values():
        found = call_with_error_notes(source, "source", "given", X, y, sample_weight)
        if isinstance(found, RowBlocks):
            return found
        if found is not None:
            raise faulty(source, "source", "given", f"returned {came(found)}, RowBlocks or None are needed")
    return None


def _is_source_of_row_blocks(X: Any) -> bool:
    """Whether data without y are a source of row blocks, which the registry need not know; a nested list is rows."""
    if isinstance(X, RowBlocks) or callable(X):
        return True
    if not isinstance(X, Iterable) or any(hasattr(X, name) for name in ("shape", "__array__", "columns")):
        return False
    return not isinstance(X, Sequence) or not X or isinstance(X[0], tuple)


def registered_objective(found: Any, own: dict[str, Any], kernel_names: tuple[str, ...]) -> Objective:
    """Objective of the registry, with its hyper-parameters; `kernel_names` are valid names of the kernel's."""
    unknown = [name for name in own if name not in found.parameters and name not in found.aliases]
    if unknown:
        valid = ", ".join((*found.parameters, *kernel_names)) or "none"
        hint = did_you_mean(unknown[0], (*found.parameters, *kernel_names, *FIT_ARGUMENTS.difference(DEFAULTS)))
        raise ValueError(f"objective {found.name!r} has no parameter {unknown[0]!r} here; valid: {valid}{hint}")
    return registered_objective_with(found, own)


def registered_solver(found: Any) -> Solver:
    """Engine from its class in the registry, or from an instance."""
    engine: Solver = found() if isinstance(found, type) else found
    return engine


def registered_engine_options(given: Any, engine: Solver | None) -> dict[str, Any]:
    """Options of an engine of the registry as a dict, names checked as far as it is known before any work."""
    if not isinstance(given, Mapping):
        raise TypeError(f"solver_options needs to be a mapping of option names to values; got {given!r}")
    if engine is not None:
        call_with_error_notes(engine, "solver", "check_options", dict(given))
    known = {name for cls in registry().solvers.values() for name in cls.options}
    unknown = [name for name in given if engine is None and name not in known]
    if unknown:
        hint = did_you_mean(unknown[0], sorted(known))
        told = ", ".join(sorted(known))
        raise ValueError(f"no solver has an option {unknown[0]!r}; known solver_options: {told}{hint}")
    return dict(given)


def requested_solver(solver: Any, solver_options: Any) -> tuple[Solver | None, dict[str, Any]]:
    """Look up the engine in the registry that a caller asks for, None for "auto", and check its options."""
    engine = None if isinstance(solver, str) and solver == "auto" else registered_solver(find("solver", solver))
    return engine, {} if solver_options is None else registered_engine_options(solver_options, engine)


def registered_objective_with(found: Any, own: Mapping[str, Any]) -> Objective:
    """Objective of the registry from its class or an instance, whose parameters the given ones replace."""
    if isinstance(found, type):
        task: Objective = found(**own)
        return task
    names = {found.aliases.get(name, name) for name in own}
    kept = {name: value for name, value in found.given.items() if name not in names}
    again: Objective = type(found)(**kept, **own)
    return again


def _register_modules(plugin: LoadedPlugin) -> None:
    """Remember in the registry which modules a plugin's classes are from, for errors inside them and their forms."""
    title = f"{plugin.source.distribution} {plugin.source.version}"
    for cls in chain.from_iterable(plugin.offered.values()):
        if is_foreign(cls):
            PLUGIN_OF_MODULE[cls.__module__] = title
            root = cls.__module__.partition(".")[0]
            # Of a package that several distributions share, the root tells nothing.
            PLUGIN_OF_MODULE[root] = title if PLUGIN_OF_MODULE.get(root, title) == title else ""


def _is_unregistered_kernel(given: Any) -> bool:
    """Whether a kernel can do without the registry: a callable that is no plugin's class."""
    # A class of a plugin goes by its name, by which a saved model finds it again.
    return callable(given) and not (isinstance(given, type) and issubclass(given, KernelFunction))


_FORMS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "objective": (lambda given: hasattr(given, "name") and hasattr(given, "terms"), "a class or an instance"),
    "solver": (lambda given: hasattr(given, "name") and hasattr(given, "iterate"), "a class or an instance"),
    "kernel": (_is_unregistered_kernel, "or a callable k(A, B)"),
}
"""Kind -> whether something that is no name can be used, and what else can be given."""
